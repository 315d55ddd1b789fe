"""From what a file says to what the machine is: devices, links with their ports, resources."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topo.catalogue.part import memory_bus_rate
from topo.description import loading
from topo.description.description import End
from topo.topology.resources import Resource, cable_capacity, part_capacity
from topo.topology.topology import Layer, Link, Topology

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from topo.catalogue.part import Figure, Part, Ports
    from topo.description.description import DescribedLink, Description, Device, Measurement
    from topo.topology.resources import ResourceClass


_CARDS = ("nic", "dpu")
_HOSTS = ("cpu", "root-complex")
_GPU_SIDE = ("gpu", "nvswitch")


def build_topology(description: Description) -> Topology:
    """Return the topology that `description` describes.

    Every cable gets its port, every finite rate becomes a resource with its figures, and measured
    rates between neighbours are laid over what joins them.
    """
    devices = {device.name: device for device in description.devices}
    said = tuple(_ported(description.links, devices))
    measured = Measured(said, description.measurements)
    links = tuple(_Wiring(devices, measured).links(said))
    resources = {
        resource.id: resource
        for resource in (
            *(measured.over(own) for device in devices.values() for own in _own(device)),
            *(way for link in links for way in (link.forward, link.backward) if way is not None),
        )
    }
    return Topology(
        description=description,
        devices=devices,
        links=links,
        resources=resources,
        findings=description.findings,
    )


# --- a device's own resources -------------------------------------------------------------------


def _own(device: Device) -> Iterator[Resource]:
    maker = _OWN.get(device.kind)
    return maker(device) if maker else iter(())


_SIDES: dict[str, tuple[ResourceClass, ResourceClass]] = {
    "storage": ("storage-read", "storage-write"),
    "nvme": ("drive-read", "drive-write"),
    "hba": ("controller-read", "controller-write"),
}


def _storage(device: Device) -> Iterator[Resource]:
    for key, kind in zip(("read", "write"), _SIDES[device.kind], strict=True):
        yield from _figure(device, key, key, kind)


def _card(device: Device) -> Iterator[Resource]:
    for direction in ("in", "out"):
        yield from _figure(device, "chip", "chip", "nic-chip", direction)


def _memory(device: Device) -> Iterator[Resource]:
    figure = memory_bus_rate(device.part)
    if figure is not None:
        yield _resource(device, figure, "bus", "memory-bus")


def _host(device: Device) -> Iterator[Resource]:
    yield from _figure(device, "copy", "copy", "cpu-copy")


def _gpu(device: Device) -> Iterator[Resource]:
    yield from _figure(device, "hbm", "hbm", "gpu-memory")


_OWN: dict[str, Callable[[Device], Iterator[Resource]]] = {
    "storage": _storage,
    "nvme": _storage,
    "hba": _storage,
    "nic": _card,
    "dpu": _card,
    "memory": _memory,
    "cxl-memory": _memory,
    "cpu": _host,
    "root-complex": _host,
    "gpu": _gpu,
}


def _figure(
    device: Device, key: str, side: str, kind: ResourceClass, direction: str = ""
) -> Iterator[Resource]:
    figure = device.part.figure(key)
    if figure is not None:
        yield _resource(device, figure, side, kind, direction)


def _resource(
    device: Device, figure: Figure, side: str, kind: ResourceClass, direction: str = ""
) -> Resource:
    return Resource(
        name=f"{device.name}/{side}",
        direction=direction,
        kind=kind,
        capacity=part_capacity(figure, device.part),
        device=device.name,
        limited_by=device.part.name,
        place=device.place,
    )


# --- links --------------------------------------------------------------------------------------


class _Wiring:
    """Gives the links of one machine their layer and a resource for each direction."""

    def __init__(self, devices: Mapping[str, Device], measured: Measured) -> None:
        self._devices = devices
        self._measured = measured
        self._taken: Counter[str] = Counter()

    def links(self, said: Iterable[DescribedLink]) -> Iterator[Link]:
        """Yield the links of `said`, whose ports are dealt out."""
        for link in said:
            layer = _layer(link, self._devices)
            made = Link(link.a, link.b, link.cable, layer, link.place)
            if layer != "memory":
                made = replace(
                    made,
                    forward=self._way(made, link.a, link.b),
                    backward=self._way(made, link.b, link.a),
                )
            yield made

    def _way(self, link: Link, source: End, target: End) -> Resource:
        """Return the resource of one direction of a link."""
        capacity, limited_by = cable_capacity(
            link.cable,
            tuple(
                (end.device, _sockets(self._devices[end.device].part, link.layer))
                for end in (source, target)
            ),
        )
        name, direction, owner = _way_name(link, source, target, self._devices)
        self._taken[f"{name} {direction}"] += 1
        count = self._taken[f"{name} {direction}"]
        return Resource(
            name=name if count == 1 else f"{name} #{count}",
            direction=direction,
            kind=_way_kind(link, source, target, self._devices),
            capacity=replace(
                capacity,
                measured=self._measured.of_way(source, target, cables=link.cable.count),
            ),
            device=owner,
            limited_by=limited_by,
            place=link.place,
        )


def _layer(link: DescribedLink, devices: Mapping[str, Device]) -> Layer:
    """Return what a link is part of; NVLink and xGMI are host links where a CPU holds one end."""
    kinds = (devices[link.a.device].kind, devices[link.b.device].kind)
    if link.cable.reach in ("memory", "network"):
        return link.cable.reach
    if all(kind in _GPU_SIDE for kind in kinds):
        return "gpu"
    return "host"


def _ported(
    said: Iterable[DescribedLink], devices: Mapping[str, Device]
) -> Iterator[DescribedLink]:
    """Yield the links with every network cable of a card in a port of its own.

    Each cable takes the next free port; a named port is never dealt to another cable.
    """
    said = tuple(said)
    named = {str(end) for link in said for end in (link.a, link.b) if end.side}
    following: Counter[str] = Counter()
    for link in said:
        ends = (link.a, link.b)
        cards = [devices[end.device].kind in _CARDS for end in ends]
        if link.cable.reach != "network" or not any(cards):
            yield link
            continue
        for _ in range(link.cable.count):
            a, b = (
                _port(end, named, following) if card else end
                for end, card in zip(ends, cards, strict=True)
            )
            yield replace(link, a=a, b=b, cable=replace(link.cable, count=1))


def _port(end: End, named: set[str], following: Counter[str]) -> End:
    if end.side:
        return end
    while True:
        following[end.device] += 1
        port = End(end.device, f"p{following[end.device]}")
        if str(port) not in named:
            return port


def _sockets(part: Part, layer: Layer) -> Ports | None:
    if layer == "network":
        return part.ports
    return part.fabric if layer == "gpu" else None


def _way_name(
    link: Link, source: End, target: End, devices: Mapping[str, Device]
) -> tuple[str, str, str]:
    """Return name, direction and owner: a card's port by its port, any other way by its ends."""
    if link.layer == "network":
        for end, direction in ((target, "in"), (source, "out")):
            if devices[end.device].kind in _CARDS:
                return str(end), direction, end.device
    return f"{source.device} -> {target.device}", "", source.device


def _way_kind(link: Link, source: End, target: End, devices: Mapping[str, Device]) -> ResourceClass:
    """Return the class by which equal resources are grouped: what the link is to its two ends."""
    kinds = {devices[source.device].kind, devices[target.device].kind}
    if link.layer == "network":
        return "network-port" if kinds & set(_CARDS) else "network-link"
    if link.layer == "gpu":
        return "gpu-fabric"
    if kinds <= set(_HOSTS):
        return "uplink" if len(kinds) > 1 else "socket-link"
    if "gpu" in kinds:
        return "gpu-pcie" if link.cable.family == "pcie" else "c2c"
    if "nvme" in kinds:
        return "drive-pcie"
    if "hba" in kinds:
        return "controller-pcie"
    if "pcie-switch" in kinds:
        return "card-pcie" if kinds & set(_CARDS) else "uplink"
    bridges = any(devices[end.device].part.flag("bridge") for end in (source, target))
    return "uplink" if bridges else "card-pcie"


class Measured:
    """The measurements of one file, looked up by what they are of.

    Parameters
    ----------
    links
        The links, ports dealt out.
    measurements
        Rates from one device, port or NUMA node to another. Where several cables run side by side,
        a rate between the two devices is of all of them together, and each gets its part.
    """

    def __init__(self, links: Iterable[DescribedLink], measurements: Iterable[Measurement]) -> None:
        self._seen = {(seen.source, seen.target): seen.rate for seen in measurements}
        self._abreast: Counter[tuple[str, str]] = Counter()
        self._buses: dict[str, Figure] = {}
        for link in links:
            for source, target in ((link.a, link.b), (link.b, link.a)):
                self._abreast[source.device, target.device] += link.cable.count
                if link.cable.reach == "memory":
                    self._note_bus(source, target)

    def of_way(self, source: End, target: End, *, cables: int) -> Figure | None:
        """Return the rate measured on `cables` cables from `source` to `target`, `None` if none."""
        named = self._named(source, target)
        if named is not None:
            return named
        pair = (source.device, target.device)
        rate = self._seen.get(pair)
        if rate is None or rate.value is None or cables == self._abreast[pair]:
            return rate
        return replace(
            rate,
            value=rate.value * cables / self._abreast[pair],
            source=f"{cables} of {self._abreast[pair]} cables: {rate.source}",
        )

    def over(self, resource: Resource) -> Resource:
        """Return a device's own resource; a memory's bus with what was measured on its link."""
        rate = self._buses.get(resource.device) if resource.kind == "memory-bus" else None
        if rate is None:
            return resource
        return replace(resource, capacity=replace(resource.capacity, measured=rate))

    def _named(self, source: End, target: End) -> Figure | None:
        """Return what was measured on the very port or NUMA node of either end."""
        plain = (source.device, target.device)
        return next(
            (
                self._seen[names]
                for names in (
                    (str(source), str(target)),
                    (str(source), target.device),
                    (source.device, str(target)),
                )
                if names != plain and names in self._seen
            ),
            None,
        )

    def _note_bus(self, source: End, target: End) -> None:
        """Remember the rate of a memory's link: of both directions the lower, the bus is one."""
        rate = self._named(source, target) or self._seen.get((source.device, target.device))
        for device in (source.device, target.device):
            known = self._buses.get(device)
            if rate is not None and (known is None or (rate.value or 0) < (known.value or 0)):
                self._buses[device] = rate


def load(
    path_or_name: str | os.PathLike[str], *, overrides: Mapping[str, str] | None = None
) -> Topology:
    """Return the topology of a file, of standard input (``-``) or of a built-in machine.

    Parameters
    ----------
    path_or_name
        A path, or a text: with a ``/`` or ending in ``.yaml`` it is a file, anything else the
        name of a machine that topo ships.
    overrides
        What to change on the way: ``{"slot1.part": "connectx-8", "settings.iommu": "on"}``.

    Raises
    ------
    TopoError
        If the file cannot be read or says something wrong.

    Examples
    --------
    >>> import topo
    >>> topo.load("dgx-h100")["slot1"].part.name
    'connectx-7-dual-port'
    """
    return build_topology(loading.load(path_or_name, overrides=overrides))


def loads(
    text: str | bytes, *, name: str = "<text>", overrides: Mapping[str, str] | None = None
) -> Topology:
    """Return the topology that YAML text describes.

    Parameters
    ----------
    text
        The text of a topology file.
    name
        What messages call it.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> import topo
    >>> topo.loads("{topo: 1, devices: {'gpu[0-1]': h100-sxm-80gb}}")
    <Topology topology: 2 devices, 0 links, 2 resources>
    """
    return build_topology(loading.loads(text, name=name, overrides=overrides))


def build(document: Mapping[str, Any], *, overrides: Mapping[str, str] | None = None) -> Topology:
    """Return the topology that a `dict` of the YAML's shape describes.

    Parameters
    ----------
    document
        Mappings, lists, texts, numbers and booleans, as ``json.load`` gives them.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> import topo
    >>> topo.build({"topo": 1, "devices": {"gpu0": "h100-sxm-80gb"}})["gpu0"].kind
    'gpu'
    """
    return build_topology(loading.build(document, overrides=overrides))
