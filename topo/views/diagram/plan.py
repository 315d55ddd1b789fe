"""A machine with everything at its place from left to right, and in its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.views.diagram.columns import GAP, stand
from topo.views.diagram.rows import packed, rows_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from topo.views.diagram.columns import Span
    from topo.views.diagram.ends import End, Ends
    from topo.views.diagram.rows import Row
    from topo.views.diagram.zones import Zones


_OVERHANG = 26.0  # of a bar beyond its outermost wire


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
        titles: Mapping[str, str],
    ) -> None:
        self.zones, self.ends, self.sizes, self.labels = zones, ends, sizes, labels
        self.titles = titles
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
            upper, lower = self.upper_lower(end)
            if self.rows.of[upper][0] == "net" and self.rows.of[lower][0] in ("leaf", "south"):
                yield self.columns.slot(lower, "top", wire)

    def _span_bars(self, boxes: Iterable[str], side: str) -> None:
        """Let each bar reach over its wires on one side, and under what is above."""
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
        """Let the lone upper wires of bars above each other pass with their labels."""
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
            upper, lower = self.upper_lower(end)
            row = self.label_row(upper, lower)
            if row is not None and wire in self.labels:
                found[row] = max(found.get(row, 0.0), self.labels[wire][1])
        return found

    def upper_lower(self, end: End) -> tuple[str, str]:
        """Return the two boxes of a wire, the upper one first."""
        return (end.b, end.a) if end.a_side == "top" else (end.a, end.b)

    def label_row(self, upper: str, lower: str) -> Row | None:
        """Return the row above which a wire's label stands."""
        order = self.rows.order
        high, low = self.rows.of[upper], self.rows.of[lower]
        if high == low:
            return None
        if low[0] in ("leaf", "south", "fabric") and high[0] not in ("net", "north"):
            return low
        return order[order.index(high) + 1]
