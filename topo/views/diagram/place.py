"""The layout of one machine: columns and rows put together, frames round what belongs together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.views.diagram.columns import GAP
from topo.views.diagram.geometry import Frame, Layout, Rect
from topo.views.diagram.metrics import width
from topo.views.diagram.rows import stacked
from topo.views.diagram.wiring import Wiring
from topo.views.diagram.words import server_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from topo.views.diagram.columns import Columns, Span
    from topo.views.diagram.geometry import Track
    from topo.views.diagram.plan import Plan
    from topo.views.diagram.rows import Row


_SOCKET, _SERVER = 10.0, 20.0  # frames round what is in them, above and below
_STRIP = 20.0
_ASIDE = 14.0  # between a wire, with its arrow's head, and a title


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
    tracks = Wiring(plan, boxes, lines, gaps, shift).tracks()
    frames = tuple(_frames(plan, inside, shift, tracks.values(), boxes))
    wide = max((right for _, right in _spans(columns)), default=0.0) + shift
    high = max([height, *(frame.rect.bottom for frame in frames)])
    return Layout(wide, high, boxes, tracks, frames, bars)


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
    plan: Plan,
    inside: tuple[float, float],
    shift: float,
    tracks: Iterable[Track],
    boxes: Mapping[str, Rect],
) -> Iterable[Frame]:
    crossing = tuple(x for track in tracks for x, y in track.points if y < inside[0])
    for server in plan.zones.servers:
        if server.name:
            left, right = plan.columns.servers[server.name]
            own = [boxes[box] for box in plan.zones.fabric_of(server.name)]
            left = min([left + shift, *(rect.x for rect in own)]) - GAP
            right = max([right + shift, *(rect.right for rect in own)]) + GAP
            top = inside[0] - (_SERVER + 2 * _STRIP if server.hosts else _SERVER + _STRIP)
            bottom = max([inside[1] + _SERVER, *(rect.bottom + _SOCKET for rect in own)])
            rect = Rect(left, top, right - left, bottom - top)
            title = server_title(server.name, server.servers)
            yield Frame(title, rect, "server", _title_x(title, rect, crossing))
        for host in server.hosts:
            left, right = plan.columns.sockets[host.box]
            top, bottom = inside[0] - _SOCKET - _STRIP, inside[1] + _SOCKET
            rect = Rect(left + shift, top, right - left, bottom - top)
            title = plan.titles[host.box]
            yield Frame(title, rect, "socket", _title_x(title, rect, crossing))


def _title_x(title: str, rect: Rect, crossing: tuple[float, ...]) -> float:
    """Return the left end of a title: at the left side, or beside a wire that comes down."""
    wide = width(title, bold=True) + 8
    for start in (rect.x + 10, *sorted(x + _ASIDE for x in crossing if rect.x < x < rect.right)):
        if start + wide <= rect.right and not any(
            start - _ASIDE < x < start + wide for x in crossing
        ):
            return start
    return rect.x + 10
