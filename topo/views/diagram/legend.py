"""The signs of a picture, explained below it: only those that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.views.diagram.geometry import Rect
from topo.views.diagram.metrics import Line
from topo.views.diagram.strokes import sample

if TYPE_CHECKING:
    from topo.views.diagram.canvas import Canvas
    from topo.views.diagram.geometry import Point
    from topo.views.diagram.scene import Scene


_SIGN, _GAP, _ROW = 38.0, 18.0, 24.0


@dataclass(frozen=True, slots=True)
class Item:
    """One sign and its meaning; `look` is a route's."""

    sign: Literal["route", "hop", "buffer", "alarm", "alike", "rate", "unknown", "outside"]
    text: str
    look: int = 0

    @property
    def width(self) -> float:
        """Points that sign and text take."""
        return _SIGN + 6 + Line(self.text).width + _GAP


def legend_items(scenes: tuple[Scene, ...]) -> tuple[Item, ...]:
    """Return the signs that these scenes have."""
    items = [
        Item("route", f"{one.label} path", one.look) for scene in scenes for one in scene.overlays
    ]
    if items:
        items.append(Item("hop", "hop, in order of travel", items[0].look))
    if any(scene.buffers for scene in scenes):
        items.append(Item("buffer", "buffer in system RAM"))
    if any(scene.alarms for scene in scenes):
        items.append(Item("alarm", "bottleneck"))
    boxes = [box for scene in scenes for box in scene.grouping.boxes.values()]
    if any(len(box.devices) > 1 for box in boxes):
        items.append(Item("alike", "several alike, drawn as one"))
    if any(box.devices[0].outside for box in boxes):
        items.append(Item("outside", "outside this machine"))
    items.append(Item("rate", "link: thin to 10, thick over 350 GB/s"))
    if any(
        line.text == "rate unknown"
        for scene in scenes
        for lines in scene.labels.values()
        for line in lines
    ):
        items.append(Item("unknown", "rate unknown"))
    return tuple(items)


def _rows(items: tuple[Item, ...], wide: float) -> list[list[Item]]:
    """Return the items in as few rows as fit, about as many in each."""
    least = len(_filled(items, wide))
    for count in range(-(-len(items) // least), len(items)):
        rows = [list(items[place : place + count]) for place in range(0, len(items), count)]
        if len(rows) == least and all(_fits(row, wide) for row in rows):
            return rows
    return _filled(items, wide)


def _filled(items: tuple[Item, ...], wide: float) -> list[list[Item]]:
    rows: list[list[Item]] = [[]]
    for item in items:
        if rows[-1] and not _fits([*rows[-1], item], wide):
            rows.append([])
        rows[-1].append(item)
    return rows


def _fits(row: list[Item], wide: float) -> bool:
    return sum(one.width for one in row) - _GAP <= wide


def _widths(rows: list[list[Item]], wide: float) -> list[float]:
    """Return how wide each place of a row is: the same in all rows, where that fits."""
    places = [
        max(row[place].width for row in rows if place < len(row)) for place in range(len(rows[0]))
    ]
    return places if len(rows) > 1 and sum(places) - _GAP <= wide else []


def legend_size(items: tuple[Item, ...], wide: float) -> float:
    """Return the height that the legend takes in this width."""
    return len(_rows(items, wide)) * _ROW + 12 if items else 0.0


def paint_legend(canvas: Canvas, items: tuple[Item, ...], at: Point, wide: float) -> None:
    """Paint the legend with its left upper corner at a point."""
    if not items:
        return
    y = at[1] + 12 + _ROW / 2
    count = 0
    rows = _rows(items, wide)
    places = _widths(rows, wide)
    for row in rows:
        x = at[0]
        for place, item in enumerate(row):
            count += 1
            _sign(canvas, item, f"sign {count}", (x, y))
            text = (Line(item.text, tone="soft"),)
            canvas.words(f"meaning {count}", (x + _SIGN + 6, y), text, left=True)
            x += places[place] if places else item.width
        y += _ROW


def _sign(canvas: Canvas, item: Item, name: str, at: Point) -> None:
    x, y = at
    theme = canvas.theme
    rect = Rect(x + 4, y - 8, _SIGN - 8, 16)
    look = theme.routes[item.look]
    if item.sign in ("route", "hop", "rate", "unknown"):
        canvas.box(name, Rect(x, y, 1, 1), style="invis")
        _line_sign(canvas, item, name, at)
    elif item.sign == "buffer":
        canvas.box(name, rect, fillcolor=theme.chip, color=look.colour, penwidth="2")
    elif item.sign == "alarm":
        border = {"color": theme.alarm, "penwidth": "2.6", "peripheries": "2"}
        canvas.box(name, rect, fillcolor=theme.paper, **border)
    elif item.sign == "alike":
        fill, edge = theme.box("gpu")
        for step in (2, 1, 0):
            behind = rect.moved(2.0 * step - 2, 2.0 * step - 2)
            canvas.box(f"{name} behind {step}", behind, fillcolor=fill, color=edge)
    else:
        style = "filled,rounded,dashed"
        canvas.box(name, rect, fillcolor=theme.paper, color=theme.soft, style=style)


def _line_sign(canvas: Canvas, item: Item, name: str, at: Point) -> None:
    x, y = at
    theme = canvas.theme
    look = theme.routes[item.look]
    ends = [(x, y), (x + _SIGN, y)]
    if item.sign == "route":
        sample(canvas, name, ends, look)
    elif item.sign == "hop":
        colours = {"fill": look.colour, "border": theme.paper, "text": look.text}
        canvas.badge(name, name, (x + _SIGN / 2, y), "1", **colours)
    elif item.sign == "unknown":
        canvas.line(name, name, ends, color=theme.wire, penwidth="0.8", style="dashed")
    else:
        for width, up in (("0.8", -4), ("5", 3)):
            raised = [(x, y + up), (x + _SIGN, y + up)]
            canvas.line(name, name, raised, color=theme.wire, penwidth=width)
