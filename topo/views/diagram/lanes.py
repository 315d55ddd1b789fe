"""Hops on the wires of a picture: which they run along, which bars they run through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from topo.topology.topology import Step
    from topo.views.diagram.geometry import Side
    from topo.views.diagram.hops import Hop
    from topo.views.diagram.scene import Overlay, Scene


# What is side by side, by what it is (lanes of a strip, hops along a wire, buffers of a memory,
# ports of a buffer), and at which place each of them stands; without an entry, as it comes.
Order = dict[tuple[object, ...], tuple[int, ...]]

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


@dataclass(frozen=True, slots=True)
class Way:
    """A hop with the wires that it runs along, the bars it runs through, and where it goes on."""

    overlay: Overlay
    hop: Hop
    moves: tuple[Move, ...]
    passes: tuple[Pass, ...]
    onward: Move | None


def ways_of(scene: Scene) -> tuple[Way, ...]:
    """Return the way of every hop to draw."""
    found = []
    for overlay, hop in each_hop(scene):
        moves = moves_of(scene, hop)
        onward = onward_of(scene, hop, moves[-1]) if moves else None
        found.append(Way(overlay, hop, moves, tuple(passes_of(scene, hop)), onward))
    return tuple(found)


def placed(order: Order, key: tuple[object, ...], place: int) -> int:
    """Return the place of the `place`-th of what is side by side."""
    places = order.get(key)
    return places[place] if places else place


def ports_of(scene: Scene) -> dict[tuple[str, str], tuple[object, ...]]:
    """Return what ends at the lower side of each buffer, by memory and buffer.

    Hops with one number and one direction end at the same port: there they join.
    """
    box_of = scene.grouping.box_of
    found: dict[tuple[str, str], list[object]] = {}
    for overlay, hop in each_hop(scene):
        if not hop.steps:
            continue
        for device, buffer, into in (
            (hop.source, hop.source_buffer, False),
            (hop.target, hop.target_buffer, True),
        ):
            ports = found.setdefault((box_of[device], buffer), []) if buffer else []
            port = (overlay.look, hop.label, into)
            if port not in ports:
                ports.append(port)
    return {key: tuple(ports) for key, ports in found.items()}


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
