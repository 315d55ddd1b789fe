"""From a description to what the machine is: devices, links with their ports, resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.kinds import CARDS, HOSTS
from topo.catalogue.part import Figure
from topo.description import loading
from topo.description.description import Description, Device, End, Measurement
from topo.description.flat import flat
from topo.description.links import FreePorts
from topo.errors import DescriptionError, Finding
from topo.topology import physics
from topo.topology.cabling import fastest_pcie
from topo.topology.capacities import cable_capacity, device_resources
from topo.topology.joint import media_of, quadrant_resources
from topo.topology.resources import Capacity, Resource, ResourceClass
from topo.topology.topology import Layer, Link, Topology

if TYPE_CHECKING:
    import os

    from topo.catalogue.part import Cable, Medium, Ports
    from topo.topology.folding import Folding


FOLDED_FROM: Final = 10_000
"""Devices from which a description that uses machines is answered by kinds of machine."""


def build_topology(
    description: Description, *, fold_from: int = FOLDED_FROM, left_of: Topology | None = None
) -> Topology:
    """Return the topology that `description` describes.

    Machines that it uses are written out, or folded where they are many and alike. It is checked
    against physics first. Every cable gets its port, every finite rate becomes a resource with its
    figures, and measured rates between neighbours are laid over what joins them.

    Parameters
    ----------
    description
        What a file says.
    fold_from
        How many devices a description has from which it is folded if it can be
        (`topo.topology.folding`).
    left_of
        What it is left of when something fails: what is known of that is not found anew.

    Raises
    ------
    DescriptionError
        With every mistake, if no such machine can be.
    """
    folding: Folding | None = None
    whole = description
    if description.uses and description.device_count >= fold_from:
        from topo.topology.folding import NotFolded, folded  # NumPy: a small machine does without

        with suppress(NotFolded):
            known = left_of.folding if left_of is not None else None
            description, folding = folded(description, known.cluster if known else None)
    description = flat(description)
    if folding is not None:
        description = replace(description, folded=whole)
    devices = {device.name: device for device in description.devices}
    described_links: list[Link] = []
    for link in description.links:
        layer = layer_of(link.cable, devices[link.a.device], devices[link.b.device])
        described_links.append(
            Link(link.a, link.b, link.cable, layer, link.place, times=link.times)
        )
    described = Topology(
        description, devices, tuple(described_links), resources={}, folding=folding
    )
    findings = _sound(described)
    links = tuple(_in_ports(described))
    measured = _MeasuredRates(links, description.measurements)
    links = tuple(_with_resources(links, described, measured))
    of_devices = (resource for device in devices.values() for resource in device_resources(device))
    of_links = (
        resource
        for link in links
        for resource in (link.forward, link.backward)
        if resource is not None
    )
    of_quadrants = quadrant_resources(devices, links)
    resources = chain(map(measured.over, of_devices), of_links, of_quadrants)
    return replace(
        described,
        links=links,
        resources={resource.id: resource for resource in resources},
        findings=findings,
        build=build_topology,
    )


def _sound(topology: Topology) -> tuple[Finding, ...]:
    """Return the findings of physics; of a folded topology with what the units named stand for."""
    folding, known = topology.folding, topology.description.findings
    if folding is None:
        return physics.check(topology)
    try:
        return tuple(folding.noted(physics.check(topology), known))
    except DescriptionError as error:
        raise DescriptionError(folding.noted(error.findings, known)) from None


# --- links ----------------------------------------------------------------------------------------


def layer_of(cable: Cable, a: Device, b: Device) -> Layer:
    """Return the layer of a link between two devices."""
    if cable.reach in ("memory", "network"):
        return cable.reach
    # NVLink and xGMI are host links where a CPU holds one end.
    return "gpu" if {a.kind, b.kind} <= {"gpu", "nvswitch"} else "host"


def _in_ports(topology: Topology) -> Iterator[Link]:
    """Yield the links with every network cable of a card in a port of its own."""
    free = FreePorts(end for link in topology.links for end in (link.a, link.b))

    def in_port(end: End) -> End:
        if end.side or not topology[end.device].is_nic:
            return end
        return End(end.device, free.next_of(end.device))

    for link in topology.links:
        of_card = any(topology[end.device].is_nic for end in (link.a, link.b))
        if link.layer != "network" or not of_card:
            yield link
            continue
        single = replace(link.cable, count=1)
        for _ in range(link.cable.count):
            yield replace(link, a=in_port(link.a), b=in_port(link.b), cable=single)


def _with_resources(
    links: Iterable[Link], described: Topology, measured: _MeasuredRates
) -> Iterator[Link]:
    """Yield the links with a resource for each direction; a memory's link has none of its own."""
    devices, medium_of = described.devices, media_of(described)
    namesakes: Counter[str] = Counter()

    def resource(link: Link, source: End, target: End) -> Resource:
        ends = [devices[end.device] for end in (source, target)]
        capacity, limited_by = link_capacity(link, (source, target), described, medium_of)
        name, direction, owner = f"{source.device} -> {target.device}", "", source.device
        if link.layer == "network":  # a card's is named by its port
            for end, towards_end in ((source, "out"), (target, "in")):
                if devices[end.device].is_nic:
                    name, direction, owner = str(end), towards_end, end.device
        namesakes[f"{name} {direction}"] += 1
        number = namesakes[f"{name} {direction}"]
        rate = measured.of_cables(source, target, link.cable.count)
        if rate is not None:
            capacity = replace(capacity, measured=rate)
        return Resource(
            name=name if number == 1 else f"{name} #{number}",
            direction=direction,
            kind=_class(link, *ends),
            capacity=capacity,
            device=owner,
            limited_by=limited_by,
            place=link.place,
        )

    for link in links:
        if link.layer == "memory":
            yield link
            continue
        forward = resource(link, link.a, link.b)
        yield replace(link, forward=forward, backward=resource(link, link.b, link.a))


def link_capacity(
    link: Link, ends: tuple[End, End], topology: Topology, medium_of: Callable[[str], Medium | None]
) -> tuple[Capacity, str]:
    """Return what a link carries from the first of its ends to the other, and what sets it."""
    devices = [topology.devices[end.device] for end in ends]
    plugs: list[tuple[str, Ports | None]] = []
    if link.layer == "network":
        plugs = [(device.name, device.part.ports) for device in devices]
    elif link.layer == "gpu":
        plugs = [(device.name, device.part.fabric) for device in devices]
    elif slower_end := fastest_pcie(link, topology, medium_of):
        plugs = [slower_end]
    cable = link.cable
    if link.layer == "gpu" and cable.efficiency is None:
        ratios = filter(None, (device.part.figure("fabric-efficiency") for device in devices))
        least = min(ratios, key=lambda ratio: ratio.value or 1.0, default=None)
        cable = replace(cable, efficiency=least)
    return cable_capacity(cable, plugs, medium_of)


def _class(link: Link, source: Device, target: Device) -> ResourceClass:
    """Return the class by which equal resources are grouped: what the link is to its two ends."""
    kinds = {source.kind, target.kind}
    has_card = not kinds.isdisjoint(CARDS)
    if link.layer == "network":
        return "network-port" if has_card else "network-link"
    if link.layer == "gpu":
        return "gpu-fabric"
    if kinds <= {*HOSTS}:
        return "uplink" if len(kinds) > 1 else "socket-link"
    if "gpu" in kinds:
        return "gpu-pcie" if link.cable.family == "pcie" else "c2c"
    if "nvme" in kinds:
        return "drive-pcie"
    if "hba" in kinds:
        return "controller-pcie"
    if "pcie-switch" in kinds:
        return "card-pcie" if has_card else "uplink"
    bridged = source.part.flag("bridge") or target.part.flag("bridge")
    return "uplink" if bridged else "card-pcie"


# --- measured rates -------------------------------------------------------------------------------


class _MeasuredRates:
    """The measurements of one file, looked up by what they are of.

    Parameters
    ----------
    links
        The links, ports dealt out.
    measurements
        Rates from one device, port or NUMA node to another. Where several cables run side by side,
        a rate between the two devices is of all of them together, and each gets its part.
    """

    def __init__(self, links: Iterable[Link], measurements: Iterable[Measurement]) -> None:
        self._rates = {(rate.source, rate.target): rate.rate for rate in measurements}
        self._cables: Counter[tuple[str, str]] = Counter()  # side by side
        self._buses: dict[str, Figure] = {}  # of both directions the lower, since a bus is one
        for link in links:
            for source, target in ((link.a, link.b), (link.b, link.a)):
                pair = (source.device, target.device)
                self._cables[pair] += link.cable.count * link.times[0]  # each of one: measured
                if link.layer != "memory":
                    continue
                rate = self._between_sides(source, target) or self._rates.get(pair)
                if rate is None:
                    continue
                for device in pair:
                    lowest = self._buses.get(device)
                    if lowest is None or (rate.value or 0) < (lowest.value or 0):
                        self._buses[device] = rate

    def of_cables(self, source: End, target: End, count: int) -> Figure | None:
        """Return the rate measured on `count` cables from `source` to `target`, `None` if none."""
        if not self._rates:
            return None
        exact = self._between_sides(source, target)
        if exact is not None:
            return exact
        pair = (source.device, target.device)
        rate, cables = self._rates.get(pair), self._cables[pair]
        if rate is None or rate.value is None or count == cables:
            return rate
        return replace(
            rate,
            value=rate.value * count / cables,
            range=None,
            source=f"{count} of {cables} cables: {rate.source}",
        )

    def over(self, resource: Resource) -> Resource:
        """Return a device's own resource; a memory's bus with what was measured on its link."""
        rate = self._buses.get(resource.device) if resource.kind == "memory-bus" else None
        if rate is None:
            return resource
        return replace(resource, capacity=replace(resource.capacity, measured=rate))

    def _between_sides(self, source: End, target: End) -> Figure | None:
        """Return what was measured on the very port or NUMA node of either end."""
        devices = (source.device, target.device)
        pairs = (
            (str(source), str(target)),
            (str(source), target.device),
            (source.device, str(target)),
        )
        return next((self._rates[p] for p in pairs if p != devices and p in self._rates), None)


# --- loading --------------------------------------------------------------------------------------


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
