"""Where everything of one machine stands: boxes in columns and rows, wires between them, frames.

Every box on a side of a socket has a column of its own; what it hangs on is a bar over all of its
columns. So a wire is a straight vertical line, and no two cross, save where a machine cannot be
drawn in the plane. Several pictures of one machine, side by side, take the tallest of each row, so
that they can be compared line by line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.records import dataclass
from topo.views.diagram.courses import Course, Courses, Span
from topo.views.diagram.frames import PAD, SERVERS_APART, SOCKETS_APART, STRIP, Frame, framed
from topo.views.diagram.geometry import Point, Rect, spread

if TYPE_CHECKING:
    from topo.views.diagram.grouping import Node, WireEnds, WireKey, Wiring, Zones


GAP = 12.0  # between columns
_REACH = 8.0  # how far beyond a column the labels in it reach
_FRAME = 12.0  # between a frame and what is in it
_ROWS = 22.0  # around the labels between two rows; between bars in one row
_UPLINK = 60.0  # a switch's part under its CPU, when the rest is under its cards
_LEFT = 20.0  # at least so much of a box is on the left of its wire
_STRETCH = 1.25  # a box is at most so much wider than its text
_APART = 80.0  # of a bar without wires from everything else
_OVERHANG = 26.0  # of a bar beyond its outermost wire
_ZONES = ("net", "north", "host", "south", "leaf", "fabric")  # from top to bottom
_OUTSIDE = ("net", "fabric")  # of servers and sockets
_UPWARDS = ("net", "north")  # whose rows are counted upwards
_BESIDE = 7.0  # between a wire, with its arrow's head, and a title
_BEYOND = 3.0  # of a frame beyond a wire at its side
_LANE = 8.0  # a wire that turns, with what is free beside it

Row = tuple[str, int]  # a zone and which row of it, counted away from the CPUs


@dataclass(frozen=True, slots=True)
class Track:
    """The course of a wire from its end `a` to its end `b`.

    `label` is the point beside which its text stands, with the wire on the left of it; or, where
    the wire goes `across` to a box in its row, above which.
    """

    a: str
    b: str
    points: tuple[Point, ...]
    label: Point
    across: bool = False


@dataclass(frozen=True)
class Layout:
    """A laid-out machine, from (0, 0) to (`width`, `height`)."""

    width: float = 0.0
    height: float = 0.0
    boxes: Mapping[str, Rect] = field(default_factory=dict)
    tracks: Mapping[WireKey, Track] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()


@dataclass
class Columns:
    """The spans found so far, ``(left, right)`` by box, and of the frames by host and server.

    `labels` are the sizes of labels with their distance from the wire; `edges` is how far right
    the labels beside a box may reach; `nudges` move the lone upper wire of a network bar.
    """

    zones: Zones
    wiring: Wiring
    sizes: Mapping[str, tuple[float, float]]
    labels: Mapping[WireKey, tuple[float, float]]
    edges: dict[str, float] = field(default_factory=dict)
    nudges: dict[str, float] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    sockets: dict[str, Span] = field(default_factory=dict)
    servers: dict[str, Span] = field(default_factory=dict)

    def column(self, box: str) -> float:
        """Return the width that a box and the labels of its wires need."""
        needed = self.sizes[box][0]
        for side in ("top", "bottom"):
            wires = self.wiring.at(box, side)
            label = self._label(wires)
            if len(wires) == 1:
                needed = max(needed, label + _LEFT - GAP)
            elif wires:
                needed = max(needed, (len(wires) + 1) * label)
        return needed

    def _label(self, wires: Iterable[WireKey]) -> float:
        return max((self.labels.get(wire, (0.0,))[0] for wire in wires), default=0.0)

    # --- wires ----------------------------------------------------------------------------------

    def uplink(self, upper: str, lower: str, wire: WireKey) -> float:
        """Return the x at which `wire` joins two bars, where one is above the other."""
        high, low = self.spans[upper], self.spans[lower]
        left, right = max(high[0], low[0]), min(high[1], low[1])
        wires = self.wiring.at(lower, "top")
        x = left + (right - left) * (wires.index(wire) + 1) / (len(wires) + 1)
        below = self.wiring.at(lower, "bottom")
        most = right + _REACH - self._label((wire,))
        if len(wires) == len(below) == 1:
            kid = self.wiring.ends[below[0]].opposite(lower)
            straight = self.slot(kid, "top", below[0])
            fits = left + 12 < straight < min(right - 12, most)
            if fits and not self.wiring.at(kid, "bottom")[1:]:
                return straight
        others = (self.wiring.ends[each].opposite(lower) for each in wires if each != wire)
        if any(self._overlaps(box, left, right) for box in others):
            return x
        return max(min(x, most), left + 12)

    def _overlaps(self, box: str, left: float, right: float) -> bool:
        """Whether a box, if it has a place, reaches into a span."""
        span = self.spans.get(box, (left, right))
        return span[0] < right and left < span[1]

    def slot(self, box: str, side: str, wire: WireKey) -> float:
        """Return the x at which `wire` leaves `box` by its upper or lower side.

        A lone wire stands in the middle, or as far left of it as its label needs.
        """
        wires = self.wiring.at(box, side)
        left, right = self.spans[box]
        if len(wires) > 1:
            return left + (right - left) * (wires.index(wire) + 1) / (len(wires) + 1)
        middle = (left + right) / 2
        if side == "top" and box in self.nudges:
            return max(min(middle + self.nudges[box], right - 12), left + 12)
        sides = (self.wiring.at(box, each_side) for each_side in ("top", "bottom"))
        label = max(self._label(lone) for lone in sides if len(lone) <= 1)
        return max(min(middle, self.edges[box] - label), left + 12)

    # --- trees ----------------------------------------------------------------------------------

    def _north_width(self, node: Node) -> float:
        """Return the width of a tree on the storage's side."""
        return max(self.column(node.box), _row(map(self._north_width, node.north)))

    def _south_width(self, node: Node) -> float:
        """Return the width of a tree on the GPUs' side, without what is above it."""
        ends = [end for end in self.wiring.ends.values() if node.box in (end.a, end.b)]
        if not node.south:  # the label of a wire that comes round what is above fits on either side
            aside = self._label(end.wire for end in ends if end.aside)
            needed = self.column(node.box) + 2 * aside
        elif any(end.opposite(node.box) in row for end in ends for row in self.zones.network):
            needed = self.column(node.box)  # a card with GPUs below it: its network comes round too
        else:  # a bar: the label of its uplink may reach over the gap beside it
            label = self._label(self.wiring.at(node.box, "top"))
            needed = max(self.sizes[node.box][0], label + _LEFT - GAP)
        return max(needed, _row(map(self._south_width, node.south)))

    def _put_north(self, nodes: tuple[Node, ...], left: float, width: float) -> None:
        """Place trees of the storage's side."""
        slots = spread(tuple(self._north_width(node) for node in nodes), left, width, GAP)
        for node, (start, room) in zip(nodes, slots, strict=True):
            self._put(node.box, start, room, bar=bool(node.north))
            self._put_north(node.north, start, room)

    def _put_south(
        self, nodes: tuple[Node, ...], widths: tuple[float, ...], left: float, width: float
    ) -> None:
        """Place trees of the GPUs' side in slots of at least `widths`."""
        for node, (start, room) in zip(nodes, spread(widths, left, width, GAP), strict=True):
            self._put(node.box, start, room, bar=bool(node.south or node.north))
            kids = tuple(self._south_width(kid) for kid in node.south)
            self._put_south(node.south, kids, start, room)

    def _put(self, box: str, start: float, room: float, *, bar: bool) -> None:
        """Place a box in its column: a bar fills it, another box is not much wider than its text.

        Where the labels beside a box need more room than it, they stand outside.
        """
        column = self.column(box)
        several = any(len(self.wiring.at(box, side)) > 1 for side in ("top", "bottom"))
        longest = math.inf if several else self.sizes[box][0] * _STRETCH
        width = room if bar else min(column, longest)
        left = start + (room - (width if bar else column)) / 2
        self.spans[box] = (left, left + width)
        self.edges[box] = left + max(column, width) + _REACH

    def _put_host(self, node: Node, left: float, *, mirrored: bool) -> float:
        """Place a CPU with all that hangs on it and return the width that it takes.

        What hangs on the outer switches below stands beside the CPU; a lone switch has its cards on
        the outer side of the socket.
        """
        west: tuple[Node, ...] = ()
        east: tuple[Node, ...] = ()
        if node.south and not (mirrored and len(node.south) == 1):
            west = node.south[0].north
        if node.south and (mirrored or len(node.south) > 1):
            east = node.south[-1].north
        room_west, room_east = (
            _row(map(self._north_width, flank)) + GAP if flank else 0.0 for flank in (west, east)
        )
        # The part of each switch under the CPU: the label of its uplink fits.
        uplinks = [
            max(_UPLINK, self._label(self.wiring.at(kid.box, "top")) + _LEFT) for kid in node.south
        ]
        widths = [self._south_width(kid) for kid in node.south]
        if room_west:
            widths[0] = max(widths[0], room_west + uplinks[0])
        if room_east:
            widths[-1] = max(widths[-1], room_east + uplinks[-1])
        middle = max(
            self.sizes[node.box][0],
            _row(map(self._north_width, node.north)),
            _row(uplinks) if room_west or room_east else 0.0,
        )
        width = max(room_west + middle + room_east, _row(widths))
        self.spans[node.box] = (left + room_west, left + width - room_east)
        self.edges[node.box] = left + width - room_east + _REACH
        self._put_north(node.north, left + room_west, width - room_west - room_east)
        self._put_north(west, left, room_west - GAP)
        self._put_north(east, left + width - room_east + GAP, room_east - GAP)
        self._put_south(node.south, tuple(widths), left, width)
        return width

    def put_servers(self) -> None:
        """Place everything that is in a server."""
        left = 0.0
        for server in self.zones.servers:
            framed = _FRAME if server.name else 0.0
            left = start = left + framed
            for place, host in enumerate(server.hosts):
                if place:  # the label of the link between two sockets fits
                    pair = {server.hosts[place - 1].box, host.box}
                    ends = self.wiring.ends.values()
                    wires = [
                        wire_ends.wire for wire_ends in ends if {wire_ends.a, wire_ends.b} == pair
                    ]
                    labels = [self.labels[wire][0] + 6 for wire in wires if wire in self.labels]
                    left += max(labels, default=SOCKETS_APART)
                mirrored = place * 2 >= len(server.hosts) > 1
                width = self._put_host(host, left + _FRAME, mirrored=mirrored) + 2 * _FRAME
                self.sockets[host.box] = (left, left + width)
                left += width
            for number, box in enumerate(server.loose):
                left += GAP if number or server.hosts else 0.0
                self._put(box, left, self.column(box), bar=False)
                left += self.column(box)
            self.servers[server.name] = (start, left)
            left += framed + SERVERS_APART

    # --- bars of the network and of the GPUs' links ---------------------------------------------

    def put_bars(self, boxes: tuple[str, ...], side: str, first: int = 0) -> dict[str, int]:
        """Place bars over their wires on one side, under what is above, and return their rows."""
        for box in boxes:
            xs = []
            for wire in self.wiring.at(box, side):
                ends = self.wiring.ends[wire]
                far = ends.opposite(box)
                if far in self.spans:
                    xs.append(self.slot(far, ends.side(far), wire))
            if xs:
                middle, reach = (min(xs) + max(xs)) / 2, (max(xs) - min(xs)) / 2 + _OVERHANG
            else:
                rightmost = max((right for _, right in self.spans.values()), default=0.0)
                middle, reach = rightmost + _APART, 0.0
            half = max(reach, self.column(box) / 2)
            wires = self.wiring.at(box, "top")
            above = {self.wiring.ends[wire].opposite(box) for wire in wires}
            if len(above) > 1 and side == "bottom":  # as far apart as what they lead to
                widest = max(self.column(far) + 2 * GAP for far in above)
                half = max(half, (len(wires) + 1) * widest / 2)
            self.spans[box] = (middle - half, middle + half)
            self.edges[box] = middle + half + GAP
        # A row for each bar so that none overlaps another, in as few rows as that takes.
        rights: list[float] = []
        rows: dict[str, int] = {}
        for box in sorted(boxes, key=self.spans.__getitem__):
            left, right = self.spans[box]
            row = next((place for place, end in enumerate(rights) if end <= left), len(rights))
            rights[row : row + 1] = [right + _ROWS]
            rows[box] = first + row
        return rows

    def nudge_tops(self, rows: Mapping[str, int]) -> None:
        """Let the lone upper wires of bars above each other pass with their labels."""
        count = len(set(rows.values()))
        for box, row in rows.items():
            room = self._label(self.wiring.at(box, "top")) + GAP
            self.nudges[box] = (row - min(rows.values()) - (count - 1) / 2) * room


def _row(widths: Iterable[float]) -> float:
    widths = list(widths)
    return sum(widths) + GAP * max(len(widths) - 1, 0)


class Plan:
    """A machine with everything at its place from left to right, and in its row.

    Parameters
    ----------
    zones, wiring
        What belongs where, and which sides the wires leave it by.
    sizes, labels
        Width and height of each box, and of each wire's label with its distance from the wire.
    titles
        What may be written on the frame of each host, the longest first.
    breadths
        What each wire takes from side to side where hops run along it.
    """

    def __init__(
        self,
        zones: Zones,
        wiring: Wiring,
        sizes: Mapping[str, tuple[float, float]],
        labels: Mapping[WireKey, tuple[float, float]],
        titles: Mapping[str, tuple[str, ...]],
        breadths: Mapping[WireKey, float],
    ) -> None:
        self.zones, self.wiring, self.sizes = zones, wiring, sizes
        self.titles, self.breadths = titles, breadths
        self.columns = Columns(zones, wiring, sizes, labels)
        self.columns.put_servers()
        network: dict[str, int] = {}
        for level in zones.network:
            rows = self.columns.put_bars(level, "bottom", max(network.values(), default=-1) + 1)
            self.columns.nudge_tops(rows)
            network |= rows
        fabric: dict[str, int] = {}
        sockets = tuple(mesh.key for mesh in zones.meshes if mesh.kind == "cpu")
        gpus = tuple(mesh.key for mesh in zones.meshes if mesh.kind != "cpu")
        for bars in ((*zones.fabric, *gpus), sockets):  # the CPUs' below the GPUs'
            fabric |= self.columns.put_bars(bars, "top", max(fabric.values(), default=-1) + 1)
        self.rows = {box: ("net", row) for box, row in network.items()}
        for server in zones.servers:
            self.rows |= dict.fromkeys(server.loose, ("leaf", 0))
            for host in server.hosts:
                for node, depth in host.walk():
                    zone = "north" if depth < 0 else "south" if depth else "host"
                    leaf = zone == "south" and not (node.south or node.north)
                    self.rows[node.box] = ("leaf", 0) if leaf else (zone, abs(depth))
        self.rows |= {box: ("fabric", row) for box, row in fabric.items()}
        self.order = sorted(
            set(self.rows.values()),
            key=lambda row: (_ZONES.index(row[0]), -row[1] if row[0] in _UPWARDS else row[1]),
        )
        self.heights: dict[Row, float] = {}
        for box, row in self.rows.items():
            self.heights[row] = max(self.heights.get(row, 0.0), sizes[box][1])
        self.courses = Courses(
            [
                [self.columns.spans[box] for box, at in self.rows.items() if at == row]
                for row in self.order
            ],
            {},
            [x for span in self.columns.sockets.values() for x in span],
        )
        self.label_gaps: dict[WireKey, int] = {}  # the gap in which each wire's label stands
        self.course_of = self._laid(breadths)
        self._widen_sockets()
        self.gaps: dict[Row, float] = {}  # the tallest label between each row and the one above
        for wire, gap in self.label_gaps.items():
            row, high = self.order[gap], labels[wire][1] if wire in labels else 0.0
            self.gaps[row] = max(self.gaps.get(row, 0.0), high)

    def _laid(self, breadths: Mapping[WireKey, float]) -> dict[WireKey, tuple[str, Course]]:
        """Return the upper box and the course of every wire but those across to the next socket.

        The straight ones first, so that the others keep clear of them.
        """
        labels, courses = self.columns.labels, self.courses
        laid: dict[WireKey, tuple[str, Course]] = {}
        askew: dict[WireKey, str] = {}
        for wire, ends in self.wiring.ends.items():
            if ends.across:
                if wire in labels:
                    row = self.order.index(self.rows[ends.a])
                    courses.labels.setdefault(row, []).append(self._label_across(ends))
                continue
            upper, lower = ends.upper_lower
            high, low = (self.order.index(self.rows[box]) for box in (upper, lower))
            x = 0.0 if ends.aside or high >= low else self._straight_x(ends)
            breadth = breadths.get(wire, _LANE)
            if ends.aside or high >= low or not courses.straight(x, high, low, breadth):
                askew[wire] = lower if high > low else upper
                continue
            laid[wire] = (upper, Course(x))
            self.label_gaps[wire] = gap = self._label_gap(high, low)
            if wire in labels:
                courses.labels.setdefault(gap, []).append((x, x + labels[wire][0]))
        for wire, upper in askew.items():
            self._add(self.wiring.ends[wire], upper, breadths.get(wire, _LANE))
        for (wire, upper), course in zip(askew.items(), courses.finished(), strict=True):
            laid[wire] = (upper, course)
        return laid

    def _widen_sockets(self) -> None:
        """Let the frame of a socket reach round a wire that would run along its side."""
        sockets = self.columns.sockets
        sides = [(socket, side) for socket in sockets for side in (0, 1)]
        for wire, (_, course) in self.course_of.items():
            half = self.breadths.get(wire, _LANE) / 2 + _BEYOND
            for turn, following in pairwise(course.turns):
                x, passed = turn.stop, self.order[turn.gap : following.gap]
                if all(zone in _OUTSIDE for zone, _ in passed):
                    continue
                socket, side = min(sides, key=lambda place: abs(sockets[place[0]][place[1]] - x))
                left, right = sockets[socket]
                if abs(sockets[socket][side] - x) < half:
                    sockets[socket] = (left, x + half) if side else (x - half, right)

    def _label_across(self, ends: WireEnds) -> Span:
        """Return what the label of a wire between two boxes of a row takes, in their middle."""
        spans = [self.columns.spans[box] for box in (ends.a, ends.b)]
        middle = (min(right for _, right in spans) + max(left for left, _ in spans)) / 2
        half = self.columns.labels[ends.wire][0] / 2
        return (middle - half, middle + half)

    def _label_gap(self, high: int, low: int) -> int:
        """Return the gap in which the label of a straight wire between two rows stands."""
        zones = (self.order[high][0], self.order[low][0])
        at_lower = zones[1] in ("leaf", "south", "fabric") and zones[0] not in _UPWARDS
        return low if at_lower else high + 1

    def _add(self, ends: WireEnds, upper: str, breadth: float) -> None:
        """Add a wire that has something in its way, or is along a row; its label is at its end."""
        lower = ends.opposite(upper)
        high, low = (self.order.index(self.rows[box]) for box in (upper, lower))
        start, stop = (
            (left + 8, right - 8)
            for left, right in (self.columns.spans[box] for box in (upper, lower))
        )
        if high == low:
            if ends.wire in self.columns.labels:
                breadth += self.columns.labels[ends.wire][1] + 4
            gap = high + 1 if ends.a_side == ends.b_side == "bottom" else high
            self.courses.add(range(gap, gap + 1), start, stop, breadth, "")
            return
        bar = ""
        if not ends.aside and self._from_above(upper, lower):
            x = self.columns.slot(upper, "bottom", ends.wire)
            start, bar = (x, x), lower
        elif not ends.aside:
            x = self.columns.slot(lower, "top", ends.wire)
            stop, bar = (x, x), upper
        self.label_gaps[ends.wire] = high + 1 if bar == lower else low
        self.courses.add(range(high + 1, low + 1), start, stop, breadth, bar)

    def _from_above(self, upper: str, lower: str) -> bool:
        """Whether a wire is in the column of its upper box, not of its lower one."""
        return self.rows[lower][0] == "fabric" or self.rows[upper][0] == "north"

    def _straight_x(self, ends: WireEnds) -> float:
        """Return the x of a wire that goes straight down: in the column of the box that has one."""
        upper, lower = ends.upper_lower
        if self._from_above(upper, lower):
            return self.columns.slot(upper, "bottom", ends.wire)
        x = self.columns.slot(lower, "top", ends.wire)
        left, right = self.columns.spans[upper]
        if not left <= x <= right or self.rows[lower][0] == "south":
            return self.columns.uplink(upper, lower, ends.wire)
        return x

    def layout(
        self, heights: Mapping[Row, float], gaps: Mapping[Row, float], lanes: Mapping[int, float]
    ) -> Layout:
        """Return the layout with these heights of rows, of labels above rows, of lanes in gaps."""
        lines, places, inside, bottom = self._stacked(heights, gaps, lanes)
        spans = [
            *self.columns.spans.values(),
            *self.columns.sockets.values(),
            *((a - GAP, b + GAP) for name, (a, b) in self.columns.servers.items() if name),
            *((x - _LANE, x + _LANE) for _, course in self.course_of.values() for x in course.xs),
        ]
        shift = -min((left for left, _ in spans), default=0.0)
        boxes = {}
        for box, row in self.rows.items():
            left, right = self.columns.spans[box]
            top, low = lines[row]
            if row[0] == "north":  # these stand on the CPUs, each as high as it is
                top = low - self.sizes[box][1]
            boxes[box] = Rect(left + shift, top, right - left, low - top)
        tracks: dict[WireKey, Track] = {}
        for wire, ends in self.wiring.ends.items():
            if wire not in self.course_of:
                a, b = boxes[ends.a], boxes[ends.b]
                start = a.right if ends.a_side == "right" else a.x
                stop = b.x if ends.b_side == "left" else b.right
                points = ((start, a.cy), (stop, a.cy))
                label = ((start + stop) / 2, a.cy)
                tracks[wire] = Track(ends.a, ends.b, points, label, across=True)
            else:
                tracks[wire] = self._track(ends, boxes, places, shift)
        passing = {
            (x - half, x + half)
            for wire, track in tracks.items()
            for half in (_BESIDE + self.breadths.get(wire, _BESIDE) / 2,)
            for x, y in track.points
            if y < inside[0]
        }
        spans_of = self.columns.sockets, self.columns.servers
        frames = tuple(framed(self.zones, spans_of, self.titles, passing, inside, boxes, shift))
        wide = max((right for _, right in spans), default=0.0) + shift
        wide = max([wide, *(frame.rect.right for frame in frames)])
        high = max([bottom, *(frame.rect.bottom for frame in frames)])
        return Layout(wide, high, boxes, tracks, frames)

    # --- rows -----------------------------------------------------------------------------------

    def _stacked(
        self, heights: Mapping[Row, float], gaps: Mapping[Row, float], lanes: Mapping[int, float]
    ) -> tuple[dict[Row, Span], list[Span], Span, float]:
        """Return ``(top, bottom)`` of each row and of the frames' inside, and the whole height.

        And of each gap where its lanes begin and the middle of its labels. The lanes of the
        network and of the GPUs' links are below the labels, since their wires end there.
        """
        servers = self.zones.servers
        frames = any(server.hosts for server in servers) + any(server.name for server in servers)
        lines: dict[Row, Span] = {}
        places: list[Span] = []
        top = bottom = y = 0.0
        inside = False
        for number, row in enumerate(self.order):
            within = row[0] not in _OUTSIDE
            gap = gaps.get(row, 0.0) + _ROWS if lines else 0.0
            lane = lanes.get(number, 0.0)
            y += PAD * frames if inside and not within else 0.0
            below = row[0] == "fabric" or (number and self.order[number - 1][0] == "net")
            places.append(
                (y + gap - _LANE, y + gap / 2) if below else (y + _LANE, y + lane + gap / 2)
            )
            y += gap + lane
            if within and not inside:
                y += (STRIP + PAD) * frames
                top = y
            lines[row] = (y, y + heights[row])
            y += heights[row]
            if within:
                bottom = y
            inside = within
        places.append((y + _LANE, y))
        if lanes.get(len(self.order)):
            y += lanes[len(self.order)] + _LANE
            bottom = y if inside else bottom
        return lines, places, (top, bottom), y + (PAD * frames if inside else 0.0)

    # --- wires ----------------------------------------------------------------------------------

    def _track(
        self, ends: WireEnds, boxes: Mapping[str, Rect], places: list[Span], shift: float
    ) -> Track:
        """Return the track of a wire that goes up or down, from its end `a`."""
        upper, course = self.course_of[ends.wire]
        lower = ends.opposite(upper)
        row = self.rows[upper]
        level = self.rows[lower] == row
        above = level and course.turns[0].gap == self.order.index(row)
        points = [(course.start + shift, boxes[upper].y if above else boxes[upper].bottom)]
        for turn in course.turns:
            y = places[turn.gap][0] + turn.down
            points += [(turn.start + shift, y), (turn.stop + shift, y)]
        below = level and not above
        points.append((points[-1][0], boxes[lower].bottom if below else boxes[lower].y))
        if level:
            label = ((points[1][0] + points[2][0]) / 2, points[1][1])
        else:
            gap = self.label_gaps[ends.wire]
            at_upper, y = gap == self.order.index(row) + 1, places[gap][1]
            uprights = (x for (x, top), (_, low) in pairwise(points) if top <= y <= low)
            label = (next(uprights, points[0 if at_upper else -1][0]), y)
        ordered = points if ends.a == upper else points[::-1]
        return Track(ends.a, ends.b, tuple(ordered), label, across=level)
