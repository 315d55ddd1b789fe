"""The hops of a route, numbered as people count them, on the boxes and wires of a picture.

A hop leads from one waypoint to the next: the storage, the card, each RAM buffer, the medium by
which a GPU is entered or left, the GPU's memory. So the legacy path has five and the direct path
three, however many links each of them walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths import is_ram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.routes.model import Branch, Leg, Route
    from topo.topology import Step, Topology

__all__ = ["Buffer", "Hop", "buffers", "hops", "touched"]


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


@dataclass(frozen=True, slots=True)
class Buffer:
    """A RAM buffer that a route fills: which traversal of RAM it is, and where it lies."""

    number: int
    name: str
    memory: str


def hops(topology: Topology, branch: Branch) -> tuple[Hop, ...]:
    """Return the hops of one branch in the order of travel."""
    found: list[Hop] = []
    number = 1
    for leg in branch.legs:
        own = tuple(_leg_hops(topology, leg, number))
        found.extend(own)
        number += len(_between(topology, leg)) + 1
    return tuple(found)


def buffers(branch: Branch) -> tuple[Buffer, ...]:
    """Return the RAM buffers of one branch in the order in which the data fills them."""
    where: dict[str, str] = {}
    for leg in branch.legs:
        for end, device in ((leg.move.source, leg.source), (leg.move.target, leg.target)):
            if is_ram(end):
                where.setdefault(end, device)
    return tuple(
        Buffer(number, name, memory) for number, (name, memory) in enumerate(where.items(), 1)
    )


def touched(route: Route) -> tuple[frozenset[str], frozenset[int]]:
    """Return the devices that a route's data is in or passes, and the links (by `id`) it walks."""
    devices: set[str] = set()
    links: set[int] = set()
    for branch in route.branches:
        for leg in branch.legs:
            devices |= {leg.source, leg.target}
            for step in (*leg.walk, *(step for step, _ in leg.shares)):
                devices |= {step.source, step.target}
                links.add(id(step.link))
    return frozenset(devices), frozenset(links)


def _leg_hops(topology: Topology, leg: Leg, number: int) -> Iterator[Hop]:
    source = leg.move.source if is_ram(leg.move.source) else ""
    target = leg.move.target if is_ram(leg.move.target) else ""
    if not leg.walk:
        yield Hop(str(number), leg.source, leg.target, (), source, target)
        return
    pieces = tuple(_pieces(leg, _between(topology, leg), number))
    for place, (label, steps) in enumerate(pieces):
        yield Hop(
            label,
            steps[0].source,
            steps[-1].target,
            steps,
            source if place == 0 else "",
            target if place == len(pieces) - 1 else "",
            None if place == len(pieces) - 1 else pieces[place + 1][1][0],
        )


def _pieces(
    leg: Leg, between: tuple[int, ...], number: int
) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Yield the parts of a walk between waypoints; an empty part lends its number to the next."""
    first = number
    for start, stop in zip((0, *between), (*between, len(leg.walk)), strict=True):
        if start < stop:
            label = str(number) if first == number else f"{first}-{number}"
            yield label, leg.walk[start:stop]
            first = number + 1
        number += 1


def _between(topology: Topology, leg: Leg) -> tuple[int, ...]:
    """Return where a walk passes a waypoint: links walked before the card, before the medium."""
    cuts: list[int] = []
    carried = leg.move.mover in ("nic", "drive") and leg.engine not in (leg.source, leg.target)
    if carried:
        names = [step.target for step in leg.walk]
        cuts.append(names.index(leg.engine) + 1 if leg.engine in names else 0)
    if leg.walk and topology[leg.source].kind == "gpu":
        cuts.append(1)
    elif leg.walk and topology[leg.target].kind == "gpu":
        cuts.append(len(leg.walk) - 1)
    return tuple(sorted(cuts))
