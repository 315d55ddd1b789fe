"""The hops of a route, numbered as people count them, on the boxes and wires of a picture.

A hop leads from one waypoint to the next: the storage, the card, each RAM buffer, the medium by
which a GPU is entered or left, the GPU's memory. So the legacy path has five and the direct path
three, however many links each of them walks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.catalogue.kinds import HOSTS
from topo.datapaths.registry import is_buffer
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.routes.route import Route, Subflow, Transfer
    from topo.topology.topology import Step, Topology
    from topo.views.diagram.geometry import Side
    from topo.views.diagram.grouping import Grouping, WireKey, Wiring, Zones


# Boxes that a hop runs through in a lane of its own.
BARS = (*HOSTS, "pcie-switch", "hba", "network-switch", "nvswitch", "mesh")


@dataclass(frozen=True, slots=True)
class Hop:
    """One numbered step: the links walked, and the buffers at its ends where it has any.

    A copy inside one memory walks no link. `label` is its number, or ``2-3`` where two hops share
    one link. `onward` is the first link of the hop that follows in the same move.
    """

    label: str
    source: str
    target: str
    steps: tuple[Step, ...] = ()
    source_buffer: str = ""
    target_buffer: str = ""
    onward: Step | None = None


# --- of a route -----------------------------------------------------------------------------------


def hops_of(topology: Topology, subflow: Subflow) -> tuple[Hop, ...]:
    """Return the hops of one subflow in the order of travel."""
    hops: list[Hop] = []
    number = 1
    for transfer in subflow.transfers:
        cuts: list[int] = []  # links walked before each waypoint: the card, the medium
        ends = (transfer.source, transfer.target)
        if transfer.move.mover in ("nic", "drive") and transfer.engine not in ends:
            names = [step.target for step in transfer.walk]
            cuts.append(names.index(transfer.engine) + 1 if transfer.engine in names else 0)
        if transfer.walk and topology[transfer.source].kind == "gpu":
            cuts.append(1)
        elif transfer.walk and topology[transfer.target].kind == "gpu":
            cuts.append(len(transfer.walk) - 1)
        hops += _hops_of_transfer(transfer, sorted(cuts), number)
        number += len(cuts) + 1
    return tuple(hops)


def _hops_of_transfer(transfer: Transfer, cuts: list[int], number: int) -> Iterator[Hop]:
    source = transfer.move.source if is_buffer(transfer.move.source) else ""
    target = transfer.move.target if is_buffer(transfer.move.target) else ""
    if not transfer.walk:
        yield Hop(str(number), transfer.source, transfer.target, (), source, target)
        return
    pieces: list[tuple[str, tuple[Step, ...]]] = []
    first = number  # an empty piece lends its number to the next
    for last, (start, stop) in enumerate(pairwise((0, *cuts, len(transfer.walk))), number):
        if start < stop:
            label = str(last) if first == last else f"{first}-{last}"
            pieces.append((label, transfer.walk[start:stop]))
            first = last + 1
    for place, (label, steps) in enumerate(pieces):
        following = pieces[place + 1][1] if place + 1 < len(pieces) else ()
        yield Hop(
            label,
            source=steps[0].source,
            target=steps[-1].target,
            steps=steps,
            source_buffer=source if place == 0 else "",
            target_buffer="" if following else target,
            onward=following[0] if following else None,
        )


# --- on a picture ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnRoute:
    """One route to draw: its label, which look it has, its hops, what it runs through.

    `devices` and `links` (by `id`) are what its data is in or passes; `buffers` are the RAM buffers
    that it fills, each with its box, its name and which traversals of RAM it is.
    """

    label: str
    look: int
    route: Route
    hops: tuple[Hop, ...]
    buffers: tuple[tuple[str, str, tuple[int, ...]], ...]
    devices: frozenset[str]
    links: frozenset[int]


def drawn_route(
    topology: Topology, grouping: Grouping, label: str, look: int, route: Route
) -> DrawnRoute:
    """Return a route to draw; hops of several subflows that look the same are one."""
    devices: set[str] = set()
    links: set[int] = set()
    for subflow in route.subflows:
        for transfer in subflow.transfers:
            devices |= {transfer.source, transfer.target}
            for step in (*transfer.walk, *(step for step, _ in transfer.shares)):
                devices |= {step.source, step.target}
                links.add(id(step.link))
    hops: dict[object, Hop] = {}
    buffers: list[tuple[str, str, tuple[int, ...]]] = []
    for subflow in route.subflows:
        for variant in _variants(subflow):
            for hop in hops_of(topology, variant):
                ends = [hop.source, *(step.target for step in hop.steps), hop.target_buffer]
                ends += [hop.onward.target] if hop.onward else []
                looks = (hop.label, *(grouping.box_of.get(end, end) for end in ends))
                hops.setdefault(looks, hop)
        filled = [each for each in subflow.transfers if is_buffer(each.move.target)]
        traversals: dict[tuple[str, str], tuple[int, ...]] = {}
        for number, each in enumerate(filled, 1):
            buffer = (grouping.box_of[each.target], each.move.target)
            traversals[buffer] = (*traversals.get(buffer, ()), number)
        buffers += ((*buffer, numbers) for buffer, numbers in traversals.items())
    shown = (tuple(hops.values()), tuple(buffers))
    return DrawnRoute(label, look, route, *shown, frozenset(devices), frozenset(links))


def _variants(subflow: Subflow) -> Iterator[Subflow]:
    """Yield a subflow by so many of its equally good walks that each of their links is in one."""
    every = [_walks(transfer) for transfer in subflow.transfers]
    for place in range(max(map(len, every), default=0)):
        yield replace(
            subflow,
            transfers=tuple(
                replace(transfer, walk=walks[min(place, len(walks) - 1)])
                for transfer, walks in zip(subflow.transfers, every, strict=True)
            ),
        )


def _walks(transfer: Transfer) -> list[tuple[Step, ...]]:
    """Return the walk of a transfer, and others until every step of equally good ones is in one."""
    walks = [transfer.walk]
    steps = [step for step, _ in transfer.shares]
    onwards = {step.source: step for step in reversed(steps)}
    before = {step.target: step for step in reversed(steps)}
    walked = {(id(step.link), step.source) for step in transfer.walk}
    for step in steps:
        if (id(step.link), step.source) in walked:
            continue
        walk = [step]
        while walk[0].source != transfer.source and walk[0].source in before:
            walk.insert(0, before[walk[0].source])
        while walk[-1].target != transfer.target and walk[-1].target in onwards:
            walk.append(onwards[walk[-1].target])
        walked |= {(id(step.link), step.source) for step in walk}
        walks.append(tuple(walk))
    return walks


@dataclass(frozen=True, slots=True)
class Stretch:
    """One wire of a hop, walked from one box to another."""

    wire: WireKey
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A hop's way through a bar: in by one wire, out by another, in a lane of its own."""

    bar: str
    entry: WireKey
    leave: WireKey
    strip: Side


@dataclass(frozen=True, slots=True)
class DrawnHop:
    """A hop with the wires that it runs along, the bars it runs through, and where it goes on."""

    route: DrawnRoute
    hop: Hop
    stretches: tuple[Stretch, ...]
    passages: tuple[Passage, ...]
    onward: Stretch | None

    def port(self, *, into: bool) -> tuple[int, str, bool]:
        """Return where it ends at a buffer: hops with one number and one direction join there."""
        return (self.route.look, self.hop.label, into)

    def lane(self, source: str = "") -> tuple[int, str, str]:
        """Return which lane it has along a wire from a box, or in a bar: one number shares one."""
        return (self.route.look, self.hop.label, source)

    def goes_on_in(self, following: DrawnHop) -> bool:
        """Whether its move goes on with `following`: subflows may share the latter."""
        onward, steps = self.hop.onward, following.hop.steps
        if self.route is not following.route or onward is None or not steps:
            return False
        return steps[0].link is onward.link and steps[0].source == onward.source


def drawn_hops(
    grouping: Grouping, zones: Zones, wiring: Wiring, routes: tuple[DrawnRoute, ...]
) -> tuple[DrawnHop, ...]:
    """Return every hop of the routes on the wires and bars of the picture."""
    wire_of = {id(link): wire for wire in grouping.wires for link in wire.links}

    def stretches_of(step: Step) -> tuple[Stretch, ...]:
        source, target = grouping.box_of[step.source], grouping.box_of[step.target]
        wire = wire_of[id(step.link)]
        if wire.key in wiring.ends:
            return (Stretch(wire.key, source, target),)
        mesh = next((mesh.key for mesh in zones.meshes if wire in mesh.wires), "")
        if not mesh:
            return ()
        return (Stretch((mesh, source), source, mesh), Stretch((mesh, target), mesh, target))

    hops = []
    for route in routes:
        for hop in route.hops:
            stretches = tuple(part for step in hop.steps for part in stretches_of(step))
            onward = None
            if hop.onward and stretches and grouping.kind(stretches[-1].target) in BARS:
                onward = next(iter(stretches_of(hop.onward)), None)
            chain = (*stretches, onward) if onward else stretches
            passages = []
            for entry, leave in pairwise(chain):
                bar = entry.target
                if grouping.kind(bar) in BARS:
                    sides = {wiring.ends[part.wire].side(bar) for part in (entry, leave)}
                    strip: Side = "top" if "top" in sides and "bottom" not in sides else "bottom"
                    passages.append(Passage(bar, entry.wire, leave.wire, strip))
            hops.append(DrawnHop(route, hop, stretches, tuple(passages), onward))
    return tuple(hops)
