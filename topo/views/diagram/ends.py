"""By which side of a box each wire leaves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from topo.views.diagram.geometry import Side
    from topo.views.diagram.group import Grouping, Wire
    from topo.views.diagram.zones import Node, Zones


@dataclass(frozen=True, slots=True)
class End:
    """A wire between two boxes and the sides that it leaves them by.

    `aside` marks a wire that is no part of the picture's order: it is drawn as it comes.
    """

    wire: Hashable
    a: str
    b: str
    a_side: Side
    b_side: Side
    aside: bool = False

    def other(self, box: str) -> str:
        """Return the box at the other end."""
        return self.b if box == self.a else self.a


@dataclass(frozen=True)
class Ends:
    """The ends of every wire, by wire; and the wires at each side of each box."""

    of: Mapping[Hashable, End]
    sides: Mapping[tuple[str, str], tuple[Hashable, ...]]

    def at(self, box: str, side: str) -> tuple[Hashable, ...]:
        """Return the wires that leave a box by a side, in order."""
        return self.sides.get((box, side), ())

    def between(self, one: str, other: str) -> tuple[Hashable, ...]:
        """Return the wires that join two boxes."""
        return tuple(end.wire for end in self.of.values() if {end.a, end.b} == {one, other})


def ends_of(grouping: Grouping, zones: Zones) -> Ends:
    """Return the ends of every wire of `grouping`, and of a mesh's stubs."""
    ranks = _ranks(zones)
    found = [end for wire in grouping.wires if (end := _end(grouping, zones, ranks, wire))]
    found += [
        End((mesh.key, box), box, mesh.key, "bottom", "top")
        for mesh in zones.meshes
        for box in mesh.boxes
    ]
    sides: dict[tuple[str, str], list[Hashable]] = {}
    for end in found:
        if not end.aside:
            sides.setdefault((end.a, end.a_side), []).append(end.wire)
            sides.setdefault((end.b, end.b_side), []).append(end.wire)
    return Ends(
        {end.wire: end for end in found}, {key: tuple(wires) for key, wires in sides.items()}
    )


def _end(grouping: Grouping, zones: Zones, ranks: Mapping[str, int], wire: Wire) -> End | None:
    """Return a wire's ends, `None` when a mesh shows it or both ends are one box."""
    a, b = wire.a, wire.b
    kinds = {grouping.boxes[a].kind, grouping.boxes[b].kind}
    if a == b or (wire.links[0].layer == "gpu" and kinds == {"gpu"}):
        return None
    hosts = [host.box for server in zones.servers for host in server.hosts]
    if a in hosts and b in hosts:
        forward = hosts.index(a) < hosts.index(b)
        near = abs(hosts.index(a) - hosts.index(b)) == 1
        sides: tuple[Side, Side] = ("right", "left") if forward else ("left", "right")
        return End(wire.key, a, b, *(sides if near else ("bottom", "bottom")), aside=not near)
    tree = zones.parent.get(a) == b or zones.parent.get(b) == a
    outside = {"storage", "network-switch", "nvswitch"} & kinds
    aside = not tree and not outside
    if ranks[a] == ranks[b]:
        return End(wire.key, a, b, "top", "top", aside=True)
    if ranks[a] > ranks[b]:
        return End(wire.key, a, b, "top", "bottom", aside=aside)
    return End(wire.key, a, b, "bottom", "top", aside=aside)


def _ranks(zones: Zones) -> dict[str, int]:
    """Return how far down each box stands: what is above has the smaller number."""
    ranks: dict[str, int] = {}
    for level, row in enumerate(zones.network):
        ranks.update(dict.fromkeys(row, -1000 - level))
    for server in zones.servers:
        ranks.update(dict.fromkeys(server.loose, 500))
        for host in server.hosts:
            ranks.update(_tree(host, 0))
    ranks.update(dict.fromkeys(zones.fabric, 1000))
    return ranks


def _tree(node: Node, rank: int) -> Iterator[tuple[str, int]]:
    yield node.box, rank
    for kid in node.north:
        yield from _north(kid, min(rank, 0) - 1)
    for kid in node.south:
        yield from _tree(kid, rank + 1)


def _north(node: Node, rank: int) -> Iterator[tuple[str, int]]:
    yield node.box, rank
    for kid in node.north:
        yield from _north(kid, rank - 1)
