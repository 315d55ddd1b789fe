"""How lines are drawn: a route's in its own way, a wire's in parts where it passes behind a box."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.views.diagram.canvas import Canvas
    from topo.views.diagram.geometry import Point, Rect, Track
    from topo.views.diagram.themes import RouteLook


_PEN = 5.0
_HEAD = 15.0  # the length of an arrow's head


def stroke(
    canvas: Canvas,
    ends: tuple[str, str],
    points: list[Point],
    look: RouteLook,
    *,
    head: bool = True,
) -> None:
    """Draw a route's line in its own way, with an arrow's head or to its end without one."""
    style = {"dashed": "dashed", "dotted": "dotted"}.get(look.stroke, "solid")
    thin = _PEN - 2 if style != "solid" else _PEN
    arrow = {"dir": "forward", "arrowsize": "1.1"} if head else {}
    canvas.line(*ends, points, color=look.colour, penwidth=f"{thin:g}", style=style, **arrow)


def hollow(
    canvas: Canvas,
    ends: tuple[str, str],
    points: list[Point],
    look: RouteLook,
    *,
    head: bool = True,
) -> None:
    """Draw the inside of a hollow line, after all lines that join it."""
    del look
    inside = [*points[:-1], _before(points)] if head else points
    canvas.line(*ends, inside, color=canvas.theme.paper, penwidth=f"{_PEN * 0.4:g}")


def sample(canvas: Canvas, name: str, points: list[Point], look: RouteLook) -> None:
    """Draw a piece of a route that explains it."""
    stroke(canvas, (name, name), points, look)
    if look.stroke == "hollow":
        hollow(canvas, (name, name), points, look)


def _before(points: list[Point]) -> Point:
    """Return where the inside of a hollow line ends: before the arrow's head."""
    (x, y), (end_x, end_y) = points[-2:]
    length = max(abs(end_x - x), abs(end_y - y), 1e-9)
    part = max(1 - _HEAD / length, 0.0)
    return (x + (end_x - x) * part, y + (end_y - y) * part)


def pieces(track: Track, boxes: Mapping[str, Rect]) -> Iterator[tuple[tuple[Point, ...], bool]]:
    """Yield the parts of a wire, and whether a box hides them."""
    if track.across or len(track.points) != 2:  # noqa: PLR2004
        yield track.points, False
        return
    (x, y), (end_x, end_y) = sorted(track.points, key=lambda point: point[1])
    if abs(x - end_x) > 1:
        yield track.points, False
        return
    over = sorted(
        (rect.y, rect.bottom)
        for name, rect in boxes.items()
        if name not in (track.a, track.b) and rect.x < x < rect.right and y < rect.cy < end_y
    )
    for top, bottom in over:
        yield ((x, y), (x, top)), False
        yield ((x, top), (x, bottom)), True
        y = bottom
    yield ((x, y), (x, end_y)), False
