"""The hops of a route, numbered as people count them, on the boxes and wires of a picture.

A hop leads from one waypoint to the next: the storage, the card, each RAM buffer, the medium by
which a GPU is entered or left, the GPU's memory. So the legacy path has five and the direct path
three, however many links each of them walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths.registry import is_ram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.routes.route import Route, Subflow, Transfer
    from topo.topology.topology import Step, Topology


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


def hops(topology: Topology, subflow: Subflow) -> tuple[Hop, ...]:
    """Return the hops of one branch in the order of travel."""
    found: list[Hop] = []
    number = 1
    for transfer in subflow.transfers:
        own = tuple(_leg_hops(topology, transfer, number))
        found.extend(own)
        number += len(_between(topology, transfer)) + 1
    return tuple(found)


def buffers(subflow: Subflow) -> tuple[Buffer, ...]:
    """Return the RAM buffers of one branch in the order in which the data fills them."""
    where: dict[str, str] = {}
    for transfer in subflow.transfers:
        for end, device in (
            (transfer.move.source, transfer.source),
            (transfer.move.target, transfer.target),
        ):
            if is_ram(end):
                where.setdefault(end, device)
    return tuple(
        Buffer(number, name, memory) for number, (name, memory) in enumerate(where.items(), 1)
    )


def touched(route: Route) -> tuple[frozenset[str], frozenset[int]]:
    """Return the devices that a route's data is in or passes, and the links (by `id`) it walks."""
    devices: set[str] = set()
    links: set[int] = set()
    for subflow in route.subflows:
        for transfer in subflow.transfers:
            devices |= {transfer.source, transfer.target}
            for step in (*transfer.walk, *(step for step, _ in transfer.shares)):
                devices |= {step.source, step.target}
                links.add(id(step.link))
    return frozenset(devices), frozenset(links)


def _leg_hops(topology: Topology, transfer: Transfer, number: int) -> Iterator[Hop]:
    source = transfer.move.source if is_ram(transfer.move.source) else ""
    target = transfer.move.target if is_ram(transfer.move.target) else ""
    if not transfer.walk:
        yield Hop(str(number), transfer.source, transfer.target, (), source, target)
        return
    pieces = tuple(_pieces(transfer, _between(topology, transfer), number))
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
    transfer: Transfer, between: tuple[int, ...], number: int
) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Yield the parts of a walk between waypoints; an empty part lends its number to the next."""
    first = number
    for start, stop in zip((0, *between), (*between, len(transfer.walk)), strict=True):
        if start < stop:
            label = str(number) if first == number else f"{first}-{number}"
            yield label, transfer.walk[start:stop]
            first = number + 1
        number += 1


def _between(topology: Topology, transfer: Transfer) -> tuple[int, ...]:
    """Return where a walk passes a waypoint: links walked before the card, before the medium."""
    cuts: list[int] = []
    carried = transfer.move.mover in ("nic", "drive") and transfer.engine not in (
        transfer.source,
        transfer.target,
    )
    if carried:
        names = [step.target for step in transfer.walk]
        cuts.append(names.index(transfer.engine) + 1 if transfer.engine in names else 0)
    if transfer.walk and topology[transfer.source].kind == "gpu":
        cuts.append(1)
    elif transfer.walk and topology[transfer.target].kind == "gpu":
        cuts.append(len(transfer.walk) - 1)
    return tuple(sorted(cuts))
