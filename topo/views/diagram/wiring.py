"""The course of every wire between boxes that have their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.views.diagram.geometry import Track
from topo.views.diagram.rows import BETWEEN

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from topo.views.diagram.ends import End
    from topo.views.diagram.geometry import Point, Rect
    from topo.views.diagram.plan import Plan
    from topo.views.diagram.rows import Row


_LANE = 6.0  # between wires that are drawn aside


class Wiring:
    """Draws the wires of a plan between boxes; `lines` are top and bottom of each row."""

    def __init__(
        self,
        plan: Plan,
        boxes: Mapping[str, Rect],
        lines: Mapping[Row, tuple[float, float]],
        gaps: Mapping[Row, float],
        shift: float,
    ) -> None:
        self.plan, self.boxes, self.lines = plan, boxes, lines
        self.gaps, self.shift = gaps, shift

    def tracks(self) -> dict[Hashable, Track]:
        """Return the track of every wire."""
        asides = 0
        found: dict[Hashable, Track] = {}
        for wire, end in self.plan.ends.of.items():
            if {end.a_side, end.b_side} == {"left", "right"}:
                found[wire] = self._level(end)
            elif end.aside:
                asides += 1
                found[wire] = self._aside(end, _LANE * asides)
            else:
                found[wire] = self._upright(wire, end)
        return found

    def _level(self, end: End) -> Track:
        a, b = self.boxes[end.a], self.boxes[end.b]
        y = a.cy
        start = a.right if end.a_side == "right" else a.x
        stop = b.x if end.b_side == "left" else b.right
        label = ((start + stop) / 2, y)
        return Track(
            end.a, end.b, ((start, y), (stop, y)), end.a_side, end.b_side, label, across=True
        )

    def _aside(self, end: End, off: float) -> Track:
        """Return the course of a wire that is no part of the order: round, or straight across."""
        a, b = self.boxes[end.a], self.boxes[end.b]
        if end.a_side != end.b_side:
            down = end.a_side == "bottom"
            start = (a.cx + off, a.bottom if down else a.y)
            stop = (b.cx - off, b.y if down else b.bottom)
            middle = ((start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2)
            return Track(end.a, end.b, (start, stop), end.a_side, end.b_side, middle)
        down = end.a_side == "bottom"
        y = max(a.bottom, b.bottom) + 4 + off if down else min(a.y, b.y) - 4 - off
        start = (a.cx + a.w / 5 + off, a.bottom if down else a.y)
        stop = (b.cx - b.w / 5 - off, b.bottom if down else b.y)
        points: tuple[Point, ...] = (start, (start[0], y), (stop[0], y), stop)
        label = ((start[0] + stop[0]) / 2, y)
        return Track(end.a, end.b, points, end.a_side, end.b_side, label)

    def _upright(self, wire: Hashable, end: End) -> Track:
        upper, lower = self.plan.upper_lower(end)
        x = self._x(wire, upper, lower) + self.shift
        top, bottom = self.boxes[upper].bottom, self.boxes[lower].y
        row = self.plan.label_row(upper, lower)
        half = (self.gaps.get(row, 0.0) + BETWEEN) / 2 if row else BETWEEN / 2
        high_row = self.plan.rows.of[upper]
        below = row == self.plan.rows.of[lower] and high_row[0] != "net"
        y = bottom - half if below else self.lines[high_row][1] + half
        points = ((x, top), (x, bottom)) if end.a == upper else ((x, bottom), (x, top))
        return Track(end.a, end.b, points, end.a_side, end.b_side, (x, y))

    def _x(self, wire: Hashable, upper: str, lower: str) -> float:
        """Return the x of an upright wire: in the column of the box that has one."""
        columns, rows = self.plan.columns, self.plan.rows.of
        if rows[lower][0] == "fabric" or rows[upper][0] == "north":
            return columns.slot(upper, "bottom", wire)
        x = columns.slot(lower, "top", wire)
        high = columns.spans[upper]
        if high[0] <= x <= high[1] and rows[lower][0] != "south":
            return x
        return columns.uplink(upper, lower, wire)
