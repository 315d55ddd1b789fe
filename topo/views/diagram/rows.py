"""Where each box stands from top to bottom, and how high its row is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from topo.views.diagram.columns import Span
    from topo.views.diagram.zones import Node, Zones


BETWEEN = 22.0  # around the labels between two rows
_STRIP = 20.0  # a frame's title
_PAD = 10.0

Row = tuple[str, int]  # a zone and which row of it, counted away from the CPUs


@dataclass(frozen=True)
class Rows:
    """The row of each box; `heights` by row, `gaps` is the room for labels above each row.

    `order` is from top to bottom.
    """

    of: Mapping[str, Row]
    order: tuple[Row, ...]


def rows_of(zones: Zones, net: Mapping[str, int], fabric: Mapping[str, int]) -> Rows:
    """Return the row of every box; `net` and `fabric` are already packed into rows."""
    found: dict[str, Row] = {box: ("net", row) for box, row in net.items()}
    for server in zones.servers:
        found.update(dict.fromkeys(server.loose, ("leaf", 0)))
        for host in server.hosts:
            found[host.box] = ("host", 0)
            for node in host.north:
                found.update(_north(node, 1))
            for node in host.south:
                found.update(_south(node, 1))
    found.update({box: ("fabric", row) for box, row in fabric.items()})
    used = set(found.values())
    order = [
        *_numbered(used, "net", down=True),
        *_numbered(used, "north", down=True),
        *_numbered(used, "host"),
        *_numbered(used, "south"),
        *_numbered(used, "leaf"),
        *_numbered(used, "fabric"),
    ]
    return Rows(found, tuple(order))


def _numbered(used: set[Row], zone: str, *, down: bool = False) -> list[Row]:
    return sorted((row for row in used if row[0] == zone), reverse=down)


def _north(node: Node, depth: int) -> Iterable[tuple[str, Row]]:
    yield node.box, ("north", depth)
    for kid in node.north:
        yield from _north(kid, depth + 1)


def _south(node: Node, depth: int) -> Iterable[tuple[str, Row]]:
    yield node.box, ("south", depth) if node.south or node.north else ("leaf", 0)
    for kid in node.north:
        yield from _north(kid, 1)
    for kid in node.south:
        yield from _south(kid, depth + 1)


def packed(spans: Mapping[str, Span], first: int = 0) -> dict[str, int]:
    """Return a row for each span so that none overlaps another, in as few rows as that takes."""
    ends: list[float] = []
    rows: dict[str, int] = {}
    for box, (left, right) in sorted(spans.items(), key=lambda pair: pair[1]):
        row = next((place for place, end in enumerate(ends) if end <= left), len(ends))
        ends[row : row + 1] = [right + BETWEEN]
        rows[box] = first + row
    return rows


def stacked(
    rows: Rows,
    heights: Mapping[Row, float],
    labels: Mapping[Row, float],
    *,
    servers: bool,
    sockets: bool,
) -> tuple[dict[Row, tuple[float, float]], tuple[float, float], float]:
    """Return ``(top, bottom)`` of each row, the same of the frames' inside, and the whole height.

    `labels` is the height of the tallest label between a row and the one above it.
    """
    strip = (_STRIP + _PAD if sockets else 0.0) + (_STRIP + _PAD if servers else 0.0)
    below = (_PAD if sockets else 0.0) + (_PAD if servers else 0.0)
    found: dict[Row, tuple[float, float]] = {}
    y, inside = 0.0, False
    top = bottom = 0.0
    for place, row in enumerate(rows.order):
        within = row[0] not in ("net", "fabric")
        gap = labels.get(row, 0.0) + BETWEEN if place else 0.0
        if within and not inside:
            y += gap + strip
            top = y
        elif inside and not within:
            y += below + gap
        else:
            y += gap
        found[row] = (y, y + heights[row])
        y += heights[row]
        if within:
            bottom = y
        inside = within
    ends_inside = inside
    return found, (top, bottom), y + (below if ends_inside else 0.0)
