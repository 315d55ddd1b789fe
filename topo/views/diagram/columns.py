"""Where each box stands from left to right.

Every box on a side of a socket has a column of its own; what it hangs on is a bar over all of its
columns. So a wire is a straight vertical line, and no two cross, save where a machine cannot be
drawn in the plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import free_place, spread

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from topo.views.diagram.ends import Ends
    from topo.views.diagram.zones import Node, Server, Zones


GAP = 12.0  # between columns
REACH = 8.0  # how far beyond a column the labels in it reach
PAD = 12.0  # between a frame and what is in it
_UPLINK = 60.0  # a switch's part under its CPU, when the rest is under its cards
_LEFT = 20.0  # at least so much of a box is on the left of its wire
_STRETCH = 1.25  # a box is at most so much wider than its text
_SERVERS = 44.0  # between servers

Span = tuple[float, float]


@dataclass
class Columns:
    """The spans found so far, ``(left, right)`` by box, and of the frames by host and server.

    `labels` are the sizes of labels with their distance from the wire; `edges` is how far right
    the labels beside a box may reach; `nudges` move the lone upper wire of a network bar;
    `passing` are the x of wires from the network that pass behind bars.
    """

    sizes: Mapping[str, tuple[float, float]]
    labels: Mapping[Hashable, tuple[float, float]]
    ends: Ends
    edges: dict[str, float] = field(default_factory=dict)
    nudges: dict[str, float] = field(default_factory=dict)
    passing: tuple[float, ...] = ()
    spans: dict[str, Span] = field(default_factory=dict)
    sockets: dict[str, Span] = field(default_factory=dict)
    servers: dict[str, Span] = field(default_factory=dict)

    def column(self, box: str) -> float:
        """Return the width that a box and the labels of its wires need."""
        needed = self.sizes[box][0]
        for side in ("top", "bottom"):
            wires = self.ends.at(box, side)
            label = self._label(wires)
            if len(wires) == 1:
                needed = max(needed, label + _LEFT - GAP)
            elif wires:
                needed = max(needed, (len(wires) + 1) * label)
        return needed

    def _label(self, wires: tuple[Hashable, ...]) -> float:
        return max((self.labels.get(wire, (0.0,))[0] for wire in wires), default=0.0)

    def uplink(self, upper: str, lower: str, wire: Hashable) -> float:
        """Return the x at which `wire` joins two bars, where one is above the other."""
        high, low = self.spans[upper], self.spans[lower]
        left, right = max(high[0], low[0]), min(high[1], low[1])
        wires = self.ends.at(lower, "top")
        x = left + (right - left) * (wires.index(wire) + 1) / (len(wires) + 1)
        if len(wires) > 1:
            return x
        below = self.ends.at(lower, "bottom")
        if len(below) == 1:
            kid = self.ends.of[below[0]].other(lower)
            straight = self.slot(kid, "top", below[0])
            if left + 12 < straight < right - 12 and not self.ends.at(kid, "bottom")[1:]:
                return straight
        label = self._label(wires)
        x = max(min(x, right + REACH - label), left + 12)
        if any(x - 8 < one < x + label for one in self.passing):
            middle = free_place(left + 4, right + REACH, self.passing, label + 8)
            return max(middle - label / 2 + 4, left + 12)
        return x

    def slot(self, box: str, side: str, wire: Hashable) -> float:
        """Return the x at which `wire` leaves `box` by its upper or lower side.

        A lone wire stands in the middle, or as far left of it as its label needs.
        """
        wires = self.ends.at(box, side)
        left, right = self.spans[box]
        if len(wires) > 1:
            return left + (right - left) * (wires.index(wire) + 1) / (len(wires) + 1)
        sides = (self.ends.at(box, one) for one in ("top", "bottom"))
        label = max(self._label(own) for own in sides if len(own) <= 1)
        middle = (left + right) / 2
        if side == "top" and box in self.nudges:
            return max(min(middle + self.nudges[box], right - 12), left + 12)
        return max(min(middle, self.edges[box] - label), left + 12)

    # --- trees ----------------------------------------------------------------------------------

    def north_width(self, node: Node) -> float:
        """Return the width of a tree on the storage's side."""
        kids = [self.north_width(kid) for kid in node.north]
        return max(self.column(node.box), _row(kids))

    def south_width(self, node: Node) -> float:
        """Return the width of a tree on the GPUs' side, without what is above it."""
        kids = [self.south_width(kid) for kid in node.south]
        own = self.sizes[node.box][0] if kids else self.column(node.box)
        return max(own, _row(kids))

    def put_north(self, nodes: tuple[Node, ...], left: float, width: float) -> None:
        """Place trees of the storage's side."""
        slots = spread(tuple(self.north_width(node) for node in nodes), left, width, GAP)
        for node, (start, room) in zip(nodes, slots, strict=True):
            self._put(node.box, start, room, self.column(node.box), bar=bool(node.north))
            self.put_north(node.north, start, room)

    def put_south(
        self, nodes: tuple[Node, ...], widths: tuple[float, ...], left: float, width: float
    ) -> None:
        """Place trees of the GPUs' side in slots of at least `widths`."""
        for node, (start, room) in zip(nodes, spread(widths, left, width, GAP), strict=True):
            bar = bool(node.south or node.north)
            self._put(node.box, start, room, self.column(node.box), bar=bar)
            kids = tuple(self.south_width(kid) for kid in node.south)
            self.put_south(node.south, kids, start, room)

    def _put(self, box: str, start: float, room: float, own: float, *, bar: bool) -> None:
        width = room if bar else min(own, self._stretched(box))
        left = start + (room - (own if not bar else width)) / 2
        self.spans[box] = (left, left + width)
        self.edges[box] = left + max(own, width) + REACH

    def _stretched(self, box: str) -> float:
        """Return how wide a box may get where the labels beside it need more room than it."""
        several = any(len(self.ends.at(box, side)) > 1 for side in ("top", "bottom"))
        return math.inf if several else self.sizes[box][0] * _STRETCH

    def put_host(self, node: Node, left: float, *, mirrored: bool) -> float:
        """Place a CPU with all that hangs on it and return the width that it takes."""
        west, east = _flanks(node, mirrored=mirrored)
        widths = [self.south_width(kid) for kid in node.south]
        room_west, room_east = self._flank(west), self._flank(east)
        uplinks = [self._uplink(kid.box) for kid in node.south]
        if room_west:
            widths[0] = max(widths[0], room_west + uplinks[0])
        if room_east:
            widths[-1] = max(widths[-1], room_east + uplinks[-1])
        own = max(
            self.sizes[node.box][0],
            _row([self.north_width(kid) for kid in node.north]),
            _row(uplinks) if room_west or room_east else 0.0,
        )
        width = max(room_west + own + room_east, _row(widths))
        self.spans[node.box] = (left + room_west, left + width - room_east)
        self.put_north(node.north, left + room_west, width - room_west - room_east)
        self.put_north(west, left, room_west - GAP)
        self.put_north(east, left + width - room_east + GAP, room_east - GAP)
        self.put_south(node.south, tuple(widths), left, width)
        return width

    def _uplink(self, box: str) -> float:
        """Return the width of the part of a switch under its CPU: the label of its uplink fits."""
        return max(_UPLINK, self._label(self.ends.at(box, "top")) + _LEFT)

    def _flank(self, nodes: tuple[Node, ...]) -> float:
        return _row([self.north_width(node) for node in nodes]) + GAP if nodes else 0.0

    # --- servers --------------------------------------------------------------------------------

    def put_server(self, server: Server, left: float) -> float:
        """Place a server and return its right side."""
        start = left
        for place, host in enumerate(server.hosts):
            if place:
                left += self._between(server.hosts[place - 1].box, host.box)
            mirrored = place * 2 >= len(server.hosts) > 1
            width = self.put_host(host, left + PAD, mirrored=mirrored)
            self.sockets[host.box] = (left, left + width + 2 * PAD)
            left += width + 2 * PAD
        for number, box in enumerate(server.loose):
            left += GAP if number or server.hosts else 0.0
            self._put(box, left, self.column(box), self.column(box), bar=False)
            left += self.column(box)
        self.servers[server.name] = (start, left)
        return left

    def _between(self, one: str, other: str) -> float:
        """Return the gap between two sockets: their link's label fits in it."""
        wires = [wire for wire in self.ends.between(one, other) if wire in self.labels]
        return max((self.labels[wire][0] + 6 for wire in wires), default=24.0)


def stand(
    zones: Zones,
    sizes: Mapping[str, tuple[float, float]],
    labels: Mapping[Hashable, tuple[float, float]],
    ends: Ends,
) -> Columns:
    """Return the columns of everything that is in a server."""
    columns = Columns(sizes, labels, ends)
    left = 0.0
    for server in zones.servers:
        framed = PAD if server.name else 0.0
        left = columns.put_server(server, left + framed) + framed + _SERVERS
    return columns


def _row(widths: list[float]) -> float:
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def _flanks(node: Node, *, mirrored: bool) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return what stands on the left and on the right of a CPU, above the switches below it.

    A lone switch has its cards on the outer side of the socket.
    """
    if not node.south:
        return (), ()
    if len(node.south) > 1:
        return node.south[0].north, node.south[-1].north
    return ((), node.south[0].north) if mirrored else (node.south[0].north, ())
