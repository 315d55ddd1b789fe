"""What resources have when some figures of parts, cables and media are others.

Which devices and links there are, and so the ways of data, stays as it is: only rates change. What
one figure says of several things changes in all of them together, and what is alike is computed
once.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from topo.catalogue.part import Cable, Figure, Medium, Part, Ports
from topo.topology.build import link_capacity
from topo.topology.capacities import device_resources
from topo.topology.joint import link_both_ways, media_of
from topo.topology.resources import Capacity, Resource
from topo.topology.topology import Link, Topology

if TYPE_CHECKING:
    from topo.description.description import Device

Change: TypeAlias = Callable[[str, Figure, str], Figure]
"""Returns the figure to take for one: its key, itself, and the part or medium whose it is."""


class Varying:
    """Resources, to be had with other figures.

    Parameters
    ----------
    topology
        The machine.
    resources
        Those of a use matrix of it.

    Attributes
    ----------
    classes
        For each resource the number of its class: those of one class depend on the same figures in
        the same way.
    """

    def __init__(self, topology: Topology, resources: Iterable[Resource]) -> None:
        self._topology = topology
        self._links = {
            resource.id: link
            for link in topology.links
            for resource in (link.forward, link.backward)
            if resource is not None
        }
        self._both_ways = {
            topology.both_ways[name].id: link
            for name, link in self._links.items()
            if name in topology.both_ways
        }
        firsts: dict[str, str] = {}  # of a folded topology: whose resource is told for a class
        if topology.folding is not None:
            for name, alike in topology.alike_resources.items():
                firsts.setdefault(alike.resource.id, name)
        numbers: dict[Hashable, int] = {}
        self._makers: list[Callable[[Change], Capacity]] = []
        classes: list[int] = []
        for resource in resources:
            key, maker = self._origin(firsts.get(resource.id, resource.id), resource)
            if key not in numbers:
                numbers[key] = len(numbers)
                self._makers.append(maker)
            classes.append(numbers[key])
        self.classes = tuple(classes)

    def capacities(self, change: Change) -> list[Capacity]:
        """Return the capacity of each class with each figure as `change` has it."""
        return [maker(change) for maker in self._makers]

    def _origin(
        self, name: str, resource: Resource
    ) -> tuple[Hashable, Callable[[Change], Capacity]]:
        """Return what a resource depends on, as a key, and what computes its capacity."""
        topology = self._topology
        if name in self._links:
            link = self._links[name]
            forward = link.forward is not None and link.forward.id == name
            parts = tuple(id(topology.devices[end.device].part) for end in (link.a, link.b))
            own = id(link) if link.cable.rate.value is None else 0
            key = ("link", link.cable, *parts, own, resource.capacity)
            return key, lambda change: self._of_link(link, change, forward=forward)
        if name in self._both_ways:
            link = self._both_ways[name]
            parts = tuple(id(topology.devices[end.device].part) for end in (link.a, link.b))
            key = ("both ways", link.cable, *parts, resource.capacity)
            return key, lambda change: self._of_both_ways(link, resource, change)
        device = topology.devices.get(resource.device)
        if name in topology.resources and device is not None and resource.kind != "quadrant":
            side = name[len(device.name) :]
            key = ("device", id(device.part), side, resource.capacity)
            return key, lambda change: self._of_device(device, side, resource, change)
        owner = device.part.name if device is not None else resource.limited_by
        return ("own", owner, resource.kind, resource.capacity), lambda change: _own(
            resource, owner, change
        )

    # --- each sort of resource ---

    def _of_device(self, device: Device, side: str, resource: Resource, change: Change) -> Capacity:
        varied = replace(device, part=varied_part(device.part, change))
        made = {each.id[len(device.name) :]: each for each in device_resources(varied)}
        return _measured(made[side].capacity, resource, device.part.name, change)

    def _varied_link(self, link: Link, change: Change) -> tuple[Link, Topology]:
        """Return a link of a varied cable, and the topology with its ends varied."""
        topology, medium_of = self._topology, media_of(self._topology)
        ends = {
            name: replace(device, part=varied_part(device.part, change))
            for name in (link.a.device, link.b.device)
            for device in (topology.devices[name],)
        }
        devices: Mapping[str, Device] = ChainMap(ends, topology.devices)  # type: ignore[arg-type]
        cable = varied_cable(link.cable, medium_of(link.cable.medium), change)
        return replace(link, cable=cable), replace(topology, devices=devices)

    def _of_link(self, link: Link, change: Change, *, forward: bool) -> Capacity:
        medium_of = media_of(self._topology)

        def varied_medium_of(name: str) -> Medium | None:
            medium = medium_of(name)
            return medium and varied_medium(medium, change)

        varied, topology = self._varied_link(link, change)
        ends = (link.a, link.b) if forward else (link.b, link.a)
        capacity, _ = link_capacity(varied, ends, topology, varied_medium_of)
        resource = link.forward if forward else link.backward
        assert resource is not None
        return _measured(capacity, resource, link.cable.medium, change)

    def _of_both_ways(self, link: Link, resource: Resource, change: Change) -> Capacity:
        varied, topology = self._varied_link(link, change)
        assert link.forward is not None
        assert link.backward is not None
        varied = replace(
            varied,
            forward=replace(link.forward, capacity=self._of_link(link, change, forward=True)),
            backward=replace(link.backward, capacity=self._of_link(link, change, forward=False)),
        )
        made = link_both_ways(varied, topology.devices)
        return made.capacity if made is not None else resource.capacity


_KEYS_OF_KINDS: Final[Mapping[str, str]] = {"cpu-copy": "core-copy", "workload-limit": "rate"}
"""The keys of figures that are what one thing has, by the class of resource that stands for it."""


def _own(resource: Resource, owner: str, change: Change) -> Capacity:
    """Return the capacity of what is a stated figure itself, such as a peer-to-peer cap."""
    key, capacity = _KEYS_OF_KINDS.get(resource.kind, resource.kind), resource.capacity
    achievable = capacity.achievable
    varied = Capacity(
        theoretical=change(key, capacity.theoretical, owner),
        achievable=achievable and change(key, achievable, owner),
    )
    return _measured(varied, resource, owner, change)


def _measured(capacity: Capacity, resource: Resource, owner: str, change: Change) -> Capacity:
    """Return a capacity with what was measured of the resource."""
    measured = resource.capacity.measured
    return replace(capacity, measured=measured and change("measured", measured, owner))


# --- parts, cables and media ----------------------------------------------------------------------


def varied_part(part: Part, change: Change) -> Part:
    """Return a part with each of its figures as `change` has it."""

    def ports(key: str, ports: Ports | None) -> Ports | None:
        if ports is None or ports.rate is None:
            return ports
        return replace(ports, rate=change(key, ports.rate, part.name))

    return replace(
        part,
        figures={key: change(key, figure, part.name) for key, figure in part.figures.items()},
        ports=ports("ports", part.ports),
        fabric=ports("fabric", part.fabric),
    )


def varied_medium(medium: Medium, change: Change) -> Medium:
    """Return a medium with each of its figures as `change` has it."""

    def varied(key: str, figure: Figure | None) -> Figure | None:
        return figure and change(key, figure, medium.name)

    return replace(
        medium,
        rate=varied("rate", medium.rate),
        transfer_rate=varied("transfer-rate", medium.transfer_rate),
        bytes_per_transfer=varied("bytes-per-transfer", medium.bytes_per_transfer),
        efficiency=varied("efficiency", medium.efficiency),
        duplex=varied("duplex", medium.duplex),
    )


def varied_cable(cable: Cable, medium: Medium | None, change: Change) -> Cable:
    """Return a cable with its figures as `change` has them, and those that its rate is made of."""
    rate = change("rate", cable.rate, cable.medium)
    transferred = medium.bytes_per_transfer if medium is not None else None
    if transferred is not None and transferred.value and rate.kind == "formula" and rate.known:
        varied = change("bytes-per-transfer", transferred, cable.medium)
        assert rate.value is not None
        rate = replace(rate, value=rate.value * ((varied.value or 0.0) / transferred.value))
    return replace(
        cable,
        rate=rate,
        efficiency=cable.efficiency and change("efficiency", cable.efficiency, cable.medium),
        duplex=cable.duplex and change("duplex", cable.duplex, cable.medium),
    )
