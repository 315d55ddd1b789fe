"""Hops on the wires of a picture: which they run along, which bars they run through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from topo.topology import Step
    from topo.views.draw.geometry import Side
    from topo.views.draw.hops import Hop
    from topo.views.draw.scene import Overlay, Scene

__all__ = [
    "BARS",
    "Move",
    "Pass",
    "each_hop",
    "kind_of",
    "lanes_of",
    "moves_of",
    "onward_of",
    "passes_of",
    "uses_of",
]

BARS = ("cpu", "root-complex", "pcie-switch", "hba", "network-switch", "nvswitch", "mesh")


@dataclass(frozen=True, slots=True)
class Move:
    """One wire of a hop, walked from one box to another."""

    track: Hashable
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Pass:
    """A hop's way through a bar: in by one wire, out by another, in a lane of its own."""

    bar: str
    entry: Hashable
    leave: Hashable
    strip: Side


def lanes_of(scene: Scene) -> dict[str, tuple[int, int]]:
    """Return how many lanes each bar needs along its upper and its lower side."""
    counts: Counter[tuple[str, str]] = Counter()
    for _, hop in each_hop(scene):
        for one in passes_of(scene, hop):
            counts[one.bar, one.strip] += 1
    return {
        bar: (counts[bar, "top"], counts[bar, "bottom"])
        for bar in dict.fromkeys(bar for bar, _ in counts)
    }


def uses_of(scene: Scene) -> Counter[Hashable]:
    """Return how many hops run along each wire."""
    return Counter(move.track for _, hop in each_hop(scene) for move in moves_of(scene, hop))


def each_hop(scene: Scene) -> Iterator[tuple[Overlay, Hop]]:
    """Yield every hop to draw, with its route."""
    for overlay in scene.overlays:
        for hop in overlay.hops:
            yield overlay, hop


def _moves(scene: Scene, step: Step) -> tuple[Move, ...]:
    """Return the wires of the picture that show one link walked."""
    box_of = scene.grouping.box_of
    source, target = box_of[step.source], box_of[step.target]
    wire = next(wire for wire in scene.grouping.wires if step.link in wire.links)
    if wire.key in scene.ends.of:
        return (Move(wire.key, source, target),)
    for mesh in scene.zones.meshes:
        if wire in mesh.wires:
            return (
                Move((mesh.key, source), source, mesh.key),
                Move((mesh.key, target), mesh.key, target),
            )
    return ()


def moves_of(scene: Scene, hop: Hop) -> tuple[Move, ...]:
    """Return the wires of the picture that a hop runs along."""
    return tuple(move for step in hop.steps for move in _moves(scene, step))


def onward_of(scene: Scene, hop: Hop, last: Move) -> Move | None:
    """Return the wire after a hop that ends inside a bar."""
    if hop.onward is None or kind_of(scene, last.target) not in BARS:
        return None
    return next(iter(_moves(scene, hop.onward)), None)


def kind_of(scene: Scene, box: str) -> str:
    """Return the kind of a box, ``mesh`` for the links between GPUs."""
    found = scene.grouping.boxes.get(box)
    return found.kind if found else "mesh"


def passes_of(scene: Scene, hop: Hop) -> Iterator[Pass]:
    """Yield the bars that a hop runs through."""
    moves = list(moves_of(scene, hop))
    onward = onward_of(scene, hop, moves[-1]) if moves else None
    chain = [*moves, onward] if onward else moves
    for entry, leave in pairwise(chain):
        if kind_of(scene, entry.target) in BARS:
            sides = {
                _side(scene, entry.track, entry.target),
                _side(scene, leave.track, entry.target),
            }
            strip: Side = "top" if "top" in sides and "bottom" not in sides else "bottom"
            yield Pass(entry.target, entry.track, leave.track, strip)


def _side(scene: Scene, track: Hashable, box: str) -> Side:
    end = scene.ends.of[track]
    return end.a_side if end.a == box else end.b_side
