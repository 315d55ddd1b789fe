"""The layout of one machine: columns and rows put together, wires drawn between the boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.views.draw.columns import GAP, stand
from topo.views.draw.geometry import Frame, Layout, Rect, Track
from topo.views.draw.rows import packed, rows_of, stacked

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from topo.views.draw.columns import Columns, Span
    from topo.views.draw.ends import End, Ends
    from topo.views.draw.geometry import Point
    from topo.views.draw.rows import Row
    from topo.views.draw.zones import Zones

__all__ = ["Plan", "finish", "plan"]

_OVERHANG = 26.0  # of a bar beyond its outermost wire
_SOCKET, _SERVER = 10.0, 20.0  # frames round what is in them, above and below
_STRIP = 20.0


class Plan:
    """A machine with its columns known and its row heights still open.

    Several pictures of one machine, side by side, take the tallest of each row, so that they can
    be compared line by line.
    """

    def __init__(
        self,
        zones: Zones,
        ends: Ends,
        sizes: Mapping[str, tuple[float, float]],
        labels: Mapping[Hashable, tuple[float, float]],
    ) -> None:
        self.zones, self.ends, self.sizes, self.labels = zones, ends, sizes, labels
        self.columns = stand(zones, sizes, labels, ends)
        self.rows = rows_of(zones, self._network(), self._fabric())
        self.columns.passing = tuple(self._passing())
        self.heights = self._heights()
        self.gaps = self._gaps()

    def _network(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for level in self.zones.network:
            first = max(found.values(), default=-1) + 1
            self._span_bars(level, "bottom")
            rows = packed({box: self.columns.spans[box] for box in level}, first)
            self._spread_tops(rows)
            found.update(rows)
        return found

    def _fabric(self) -> dict[str, int]:
        bars = (*self.zones.fabric, *(mesh.key for mesh in self.zones.meshes))
        self._span_bars(bars, "top")
        return packed({box: self.columns.spans[box] for box in bars})

    def _passing(self) -> Iterable[float]:
        """Yield the x of wires between the network and cards that stand beside GPUs."""
        for wire, end in self.ends.of.items():
            upper, lower = self._upper_lower(end)
            if self.rows.of[upper][0] == "net" and self.rows.of[lower][0] in ("leaf", "south"):
                yield self.columns.slot(lower, "top", wire)

    def _span_bars(self, boxes: Iterable[str], side: str) -> None:
        """Let each bar reach over the wires that come to it by `side`, and under what is above."""
        spans = self.columns.spans
        for box in boxes:
            xs = []
            for wire in self.ends.at(box, side):
                end = self.ends.of[wire]
                far, far_side = (end.b, end.b_side) if end.a == box else (end.a, end.a_side)
                if far in spans:
                    xs.append(self.columns.slot(far, far_side, wire))
            middle = (min(xs) + max(xs)) / 2 if xs else self._free_x(spans)
            reach = (max(xs) - min(xs)) / 2 + _OVERHANG if xs else 0.0
            half = max(reach, self.columns.column(box) / 2, self._carried(box) / 2)
            spans[box] = (middle - half, middle + half)
            self.columns.edges[box] = middle + half + GAP

    def _spread_tops(self, rows: Mapping[str, int]) -> None:
        """Let the lone upper wires of bars one above the other pass each other with their labels."""
        count = len(set(rows.values()))
        for box, row in rows.items():
            wires = self.ends.at(box, "top")
            room = max((self.labels.get(wire, (0.0,))[0] for wire in wires), default=0.0) + GAP
            place = row - min(rows.values())
            self.columns.nudges[box] = (place - (count - 1) / 2) * room

    def _carried(self, box: str) -> float:
        """Return the width of what stands on a bar: its upper wires as far apart as their boxes."""
        wires = self.ends.at(box, "top")
        above = [self.ends.of[wire].other(box) for wire in wires]
        if len(set(above)) < 2 or any(box in self.zones.fabric for _ in above):  # noqa: PLR2004
            return 0.0
        return (len(wires) + 1) * max(self.columns.column(one) + 2 * GAP for one in above)

    def _free_x(self, spans: Mapping[str, Span]) -> float:
        return max((right for _, right in spans.values()), default=0.0) + 80.0

    def _heights(self) -> dict[Row, float]:
        found: dict[Row, float] = {}
        for box, row in self.rows.of.items():
            found[row] = max(found.get(row, 0.0), self.sizes[box][1])
        return found

    def _gaps(self) -> dict[Row, float]:
        """Return the tallest label between each row and the one above it."""
        found: dict[Row, float] = {}
        for wire, end in self.ends.of.items():
            upper, lower = self._upper_lower(end)
            row = self._label_row(upper, lower)
            if row is not None and wire in self.labels:
                found[row] = max(found.get(row, 0.0), self.labels[wire][1])
        return found

    def _upper_lower(self, end: End) -> tuple[str, str]:
        return (end.b, end.a) if end.a_side == "top" else (end.a, end.b)

    def _label_row(self, upper: str, lower: str) -> Row | None:
        """Return the row above which a wire's label stands."""
        order = self.rows.order
        high, low = self.rows.of[upper], self.rows.of[lower]
        if high == low:
            return None
        if low[0] in ("leaf", "south", "fabric") and high[0] not in ("net", "north"):
            return low
        return order[order.index(high) + 1]


def plan(
    zones: Zones,
    ends: Ends,
    sizes: Mapping[str, tuple[float, float]],
    labels: Mapping[Hashable, tuple[float, float]],
) -> Plan:
    """Return the plan of a machine: columns placed, heights measured."""
    return Plan(zones, ends, sizes, labels)


def finish(
    plan: Plan, heights: Mapping[Row, float], gaps: Mapping[Row, float], bars: frozenset[str]
) -> Layout:
    """Return the layout of `plan` with these heights of its rows."""
    zones, columns = plan.zones, plan.columns
    named = any(server.name for server in zones.servers)
    sockets = any(server.hosts for server in zones.servers)
    lines, inside, height = stacked(plan.rows, heights, gaps, servers=named, sockets=sockets)
    shift = -min((left for left, _ in _spans(columns)), default=0.0)
    boxes = {
        box: _rect(box, columns.spans[box], row, lines[row], plan.sizes[box][1], shift)
        for box, row in plan.rows.of.items()
    }
    tracks = _tracks(plan, boxes, lines, gaps, shift)
    frames = tuple(_frames(plan, inside, shift, tracks.values()))
    width = max((right for _, right in _spans(columns)), default=0.0) + shift
    return Layout(width, height, boxes, tracks, frames, bars)


def _spans(columns: Columns) -> list[Span]:
    return [
        *columns.spans.values(),
        *columns.sockets.values(),
        *((left - GAP, right + GAP) for name, (left, right) in columns.servers.items() if name),
    ]


def _rect(
    box: str, span: Span, row: Row, line: tuple[float, float], own: float, shift: float
) -> Rect:
    """Return a box's rectangle: as high as its row, save on the storage's side."""
    del box
    top, bottom = line
    if row[0] == "north":
        top = bottom - own
    return Rect(span[0] + shift, top, span[1] - span[0], bottom - top)


# --- frames ---------------------------------------------------------------------------------------


def _frames(
    plan: Plan, inside: tuple[float, float], shift: float, tracks: Iterable[Track]
) -> Iterable[Frame]:
    crossing = tuple(x for track in tracks for x, y in track.points if y < inside[0])
    for server in plan.zones.servers:
        if server.name:
            left, right = plan.columns.servers[server.name]
            around = (left + shift - GAP, right + shift + GAP)
            high = _SERVER + 2 * _STRIP if server.hosts else _SERVER + _STRIP
            yield _frame(server.name, "server", around, inside, (high, _SERVER), crossing)
        for host in server.hosts:
            left, right = plan.columns.sockets[host.box]
            span = (left + shift, right + shift)
            edges = (_SOCKET + _STRIP, _SOCKET)
            yield _frame(host.box, "socket", span, inside, edges, crossing)


def _frame(
    name: str,
    kind: str,
    span: Span,
    inside: tuple[float, float],
    edges: tuple[float, float],
    crossing: tuple[float, ...],
) -> Frame:
    left, right = span
    top = inside[0] - edges[0]
    rect = Rect(left, top, right - left, inside[1] + edges[1] - top)
    place = _title_x(left, right, crossing)
    return Frame(name, name, rect, "server" if kind == "server" else "socket", place)


def _title_x(left: float, right: float, crossing: tuple[float, ...]) -> float:
    """Return the left end of a title: at the left side, or beside the wires that come down there."""
    title = 150.0
    for start in (left + 10, *sorted(x + 8 for x in crossing if left < x < right)):
        if start + title <= right and not any(start - 6 < x < start + title for x in crossing):
            return start
    return left + 10


# --- wires ----------------------------------------------------------------------------------------


def _tracks(
    plan: Plan,
    boxes: Mapping[str, Rect],
    lines: Mapping[Row, tuple[float, float]],
    gaps: Mapping[Row, float],
    shift: float,
) -> dict[Hashable, Track]:
    asides = 0
    found: dict[Hashable, Track] = {}
    for wire, end in plan.ends.of.items():
        if {end.a_side, end.b_side} == {"left", "right"}:
            found[wire] = _level(end, boxes)
        elif end.aside:
            asides += 1
            found[wire] = _aside(end, boxes, asides)
        else:
            found[wire] = _upright(plan, wire, end, boxes, lines, gaps, shift)
    return found


def _level(end: End, boxes: Mapping[str, Rect]) -> Track:
    a, b = boxes[end.a], boxes[end.b]
    y = a.cy
    start = a.right if end.a_side == "right" else a.x
    stop = b.x if end.b_side == "left" else b.right
    points = ((start, y), (stop, y))
    return Track(end.a, end.b, points, end.a_side, end.b_side, ((start + stop) / 2, y), across=True)


def _aside(end: End, boxes: Mapping[str, Rect], number: int) -> Track:
    """Return the course of a wire that is no part of the order: round below, or as the crow flies."""
    a, b = boxes[end.a], boxes[end.b]
    off = 6.0 * number
    if end.a_side == end.b_side:
        down = end.a_side == "bottom"
        y = max(a.bottom, b.bottom) + 4 + off if down else min(a.y, b.y) - 4 - off
        start, stop = (
            (a.cx + off, a.bottom if down else a.y),
            (b.cx - off, b.bottom if down else b.y),
        )
        points: tuple[Point, ...] = (start, (start[0], y), (stop[0], y), stop)
        label = ((start[0] + stop[0]) / 2, y)
    else:
        ends = [(a.cx + off, a.bottom), (b.cx - off, b.y)]
        if end.a_side == "top":
            ends = [(a.cx + off, a.y), (b.cx - off, b.bottom)]
        points = tuple(ends)
        label = ((ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2)
    return Track(end.a, end.b, points, end.a_side, end.b_side, label)


def _upright(
    plan: Plan,
    wire: Hashable,
    end: End,
    boxes: Mapping[str, Rect],
    lines: Mapping[Row, tuple[float, float]],
    gaps: Mapping[Row, float],
    shift: float,
) -> Track:
    upper, lower = plan._upper_lower(end)  # noqa: SLF001  (the same file)
    x = _x(plan, wire, upper, lower) + shift
    top, bottom = boxes[upper].bottom, boxes[lower].y
    row = plan._label_row(upper, lower)  # noqa: SLF001
    low_row, high_row = plan.rows.of[lower], plan.rows.of[upper]
    if row == low_row and high_row[0] != "net":
        y = bottom - _half(gaps, row)
    else:
        y = lines[high_row][1] + _half(gaps, row)
    points = ((x, top), (x, bottom)) if end.a == upper else ((x, bottom), (x, top))
    return Track(end.a, end.b, points, end.a_side, end.b_side, (x, y))


def _half(gaps: Mapping[Row, float], row: Row | None) -> float:
    return (gaps.get(row, 0.0) + 22.0) / 2 if row else 11.0


def _x(plan: Plan, wire: Hashable, upper: str, lower: str) -> float:
    """Return the x of an upright wire: in the column of the box that has one."""
    columns = plan.columns
    high = columns.spans[upper]
    if plan.rows.of[lower][0] == "fabric" or plan.rows.of[upper][0] == "north":
        return columns.slot(upper, "bottom", wire)
    x = columns.slot(lower, "top", wire)
    if high[0] <= x <= high[1] and plan.rows.of[lower][0] != "south":
        return x
    return columns.uplink(upper, lower, wire)
