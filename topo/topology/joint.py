"""What limits transfers beside the links: a link both ways, quadrants of a CPU, devices' share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.part import Figure
from topo.catalogue.parts import catalogue
from topo.topology.resources import Capacity, Resource

if TYPE_CHECKING:
    from topo.catalogue.part import Medium
    from topo.description.description import Basis, Device
    from topo.topology.topology import Link, Topology

# --- a link both ways -----------------------------------------------------------------------------


def both_ways(topology: Topology) -> dict[str, Resource]:
    """Return what links carry in both directions at once, by the ids of their directions.

    A part's own `duplex` goes before that of the cable or its medium.
    """
    shared: dict[str, Resource] = {}
    for link in topology.links:
        resource = link_both_ways(link, topology.devices)
        if resource is not None and link.forward is not None and link.backward is not None:
            shared |= dict.fromkeys((link.forward.id, link.backward.id), resource)
    return shared


def link_both_ways(link: Link, devices: Mapping[str, Device]) -> Resource | None:
    """Return what a link carries in both directions at once, `None` where that is twice one."""
    duplex = link.cable.duplex
    if link.cable.family == "pcie":
        parts = (devices[end.device].part for end in (link.a, link.b))
        stated = filter(None, (part.figure("duplex") for part in parts))
        duplex = min(stated, key=lambda ratio: ratio.value or 1.0, default=duplex)
    if duplex is None or link.forward is None or link.backward is None:
        return None
    return _both_ways(link.forward, link.backward, duplex)


def _both_ways(forward: Resource, backward: Resource, duplex: Figure) -> Resource | None:
    """Return what two directions of a link carry at once, `None` where a rate is not known."""
    capacities = (forward.capacity, backward.capacity)
    twice = math.fsum(capacity.rate("theoretical") for capacity in capacities)
    if duplex.value is None or math.isinf(twice):
        return None

    def at(basis: Basis) -> Figure:
        """Return so much of both, and at least what one direction carries alone."""
        assert duplex.value is not None
        rates = [capacity.rate(basis) for capacity in capacities]
        figures = [capacity.at(basis) for capacity in capacities]
        return Figure(
            value=max(duplex.value * math.fsum(rates), *rates),
            kind="guess" if any(figure.kind == "guess" for figure in figures) else duplex.kind,
            source=f"{duplex.value:.4g} of both directions at once: {duplex.source}",
            at_most=any(figure.unknown for figure in figures),
        )

    return replace(
        forward,
        name=forward.name.replace(" -> ", " <-> "),
        direction="",
        limited_by="both directions at once",
        capacity=Capacity(
            theoretical=Figure(twice, "formula", "both directions, each with its own rate"),
            achievable=at("achievable"),
            measured=at("measured") if any(each.measured for each in capacities) else None,
        ),
    )


# --- quadrants of a CPU ---------------------------------------------------------------------------

QUADRANTS: Final = 4  # of an I/O die; a CPU with as many NUMA nodes has one in each


def quadrant_of(device: Device, side: str) -> str:
    """Return the quadrant of a CPU by the side that a link names, ``""`` where it names none."""
    node = side.removeprefix("numa")
    if node != side and len(device.numa) == QUADRANTS:
        return f"quadrant{device.numa.index(int(node))}"
    return side if side.startswith("quadrant") else ""


def quadrant_resources(devices: Mapping[str, Device], links: Iterable[Link]) -> Iterator[Resource]:
    """Yield for each quadrant that a PCIe link names what passes into the CPU and out of it."""
    quadrants = {
        f"{end.device}/{quadrant}": devices[end.device]
        for link in links
        for end in (link.a, link.b)
        if link.cable.family == "pcie" and (quadrant := quadrant_of(devices[end.device], end.side))
    }
    for name, cpu in quadrants.items():
        figure = cpu.part.figure("quadrant")
        for direction in ("in", "out") if figure else ():
            assert figure is not None
            yield Resource(
                name=name,
                direction=direction,
                kind="quadrant",
                capacity=Capacity(theoretical=figure),
                device=cpu.name,
                limited_by=cpu.part.name,
                place=cpu.place,
            )


def unplaced_quadrants(topology: Topology) -> dict[str, Resource]:
    """Return the quadrants of CPUs that links do not name, by the ids of the links' directions.

    How much passes them is unknown, where each quadrant of the CPU has a stated rate.
    """
    unplaced: dict[str, Resource] = {}
    stated = {cpu.name for cpu in topology.of_kind("cpu") if cpu.part.figure("quadrant")}
    for link in topology.links if stated else ():
        forward, backward = link.forward, link.backward
        if link.cable.family != "pcie" or forward is None or backward is None:
            continue
        for end, into, out_of in ((link.a, backward, forward), (link.b, forward, backward)):
            cpu = topology.devices[end.device]
            if cpu.name not in stated or quadrant_of(cpu, end.side):
                continue
            unknown = Figure(None, "quoted", "which links share a quadrant is not stated")
            for side, direction in ((into, "in"), (out_of, "out")):
                unplaced[side.id] = Resource(
                    name=f"{cpu.name}/quadrant",
                    direction=direction,
                    kind="quadrant",
                    capacity=Capacity(theoretical=unknown),
                    device=cpu.name,
                    place=cpu.place,
                )
    return unplaced


# --- what devices get of a link -------------------------------------------------------------------


def media_of(topology: Topology) -> Callable[[str], Medium | None]:
    """Return what finds a medium by its name: the file's own, else that of the catalogue."""
    own_media = topology.description.media
    return lambda name: own_media.get(name) or catalogue().media.get(name)


def dma_limits(topology: Topology) -> dict[str, Resource]:
    """Return what devices get of links whose medium says that it is not all (`Medium.dma`)."""
    medium_of = media_of(topology)
    media = {name: medium_of(name) for name in {link.cable.medium for link in topology.links}}
    limits: dict[str, Resource] = {}
    for link in topology.links:
        medium = media[link.cable.medium]
        for resource in filter(None, (link.forward, link.backward)):
            if medium is None or medium.dma is None:
                continue
            share, rate = medium.dma, resource.capacity.theoretical.value
            value = None if share.value is None or rate is None else share.value * rate
            limits[resource.id] = replace(
                resource,
                name=f"{resource.name}/dma",
                capacity=Capacity(theoretical=Figure(value, share.kind, share.source)),
                limited_by=medium.title or medium.name,
            )
    return limits
