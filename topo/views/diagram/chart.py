"""What charts are made of: rules, boxes, numbers and lines of text on a canvas; round scales."""

from __future__ import annotations

import math
from typing import Final

from topo.views.diagram.geometry import Line, Rect
from topo.views.diagram.picture import Canvas, Theme

_SAME: Final = 1e-9  # what is as near as this is one


class Chart:
    """A canvas with the pieces that charts have.

    Parameters
    ----------
    size
        Width and height in points.
    theme
        Its colours.
    name
        The picture's name.
    """

    def __init__(self, size: tuple[float, float], theme: Theme, name: str) -> None:
        self.theme = theme
        self.canvas = Canvas(size, theme, name)
        self._count = 0

    def paper(self) -> None:
        """Paint the ground."""
        page = Rect(0, 0, self.canvas.width, self.canvas.height)
        self.canvas.frame(page, fill=self.theme.paper, border=self.theme.paper)

    def box(self, rect: Rect, **attributes: str) -> None:
        """Paint a box."""
        self._count += 1
        self.canvas.box(f"box {self._count}", rect, **attributes)

    def rule(self, rect: Rect, colour: str) -> None:
        """Paint a rectangle without a border: a line, or a ground."""
        self.box(rect, fillcolor=colour, color=colour, style="filled", penwidth="0")

    def number(self, x: float, y: float, number: int) -> None:
        """Write a number in a frame, its middle at a point."""
        line = Line(str(number), bold=True)
        wide = max(line.width + 7, 15.0)
        rect = Rect(x - wide / 2, y - 6.5, wide, 13)
        self.box(rect, fillcolor=self.theme.paper, color=self.theme.soft)
        self.write((x, y), line, middle=True)

    def write(self, at: tuple[float, float], line: Line, *, middle: bool = False) -> None:
        """Write a line from a point on, or around it."""
        self._count += 1
        self.canvas.words(f"words {self._count}", at, (line,), left=not middle)


# --- scales ---------------------------------------------------------------------------------------


def round_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.

    Examples
    --------
    >>> round_up(97e9), round_up(126.03e9), round_up(0.0)
    (100000000000.0, 150000000000.0, 1.0)
    """
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(step * unit for step in steps if step * unit >= value * (1 - _SAME))


def ticks(end: float, most: int = 10, *, start: float = 0.0) -> tuple[float, ...]:
    """Return round numbers from `start` to at most `end`, no more than `most` and one.

    Examples
    --------
    >>> ticks(7.8)
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    >>> ticks(52.0, 6, start=41.0)
    (42.0, 44.0, 46.0, 48.0, 50.0, 52.0)
    """
    rough = (end - start) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= rough * (1 - _SAME))
    first, last = math.ceil(start / step * (1 - _SAME)), int(end / step * (1 + _SAME))
    return tuple(float(f"{number * step:.12g}") for number in range(first, last + 1))
