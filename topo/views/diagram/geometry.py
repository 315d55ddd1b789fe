"""Points, rectangles, and what a laid-out picture is. Points are 1/72 inch, y grows downwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


BUFFER = (82.0, 32.0)  # a RAM buffer's size
BUFFER_GAP = 36.0  # between two buffers: an arrow with its number
ASIDE = 20.0  # between two hops along one wire
LANE = 16.0  # a route's way inside a bar
PORT = 28.0  # between two hops that end at one buffer
EDGE = 5.0  # the border of a box that binds, all inside the box's rectangle

Point = tuple[float, float]
Side = Literal["top", "bottom", "left", "right"]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle by its left upper corner and its size."""

    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        """The x of its right side."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """The y of its lower side."""
        return self.y + self.h

    @property
    def cx(self) -> float:
        """The x of its middle."""
        return self.x + self.w / 2

    @property
    def cy(self) -> float:
        """The y of its middle."""
        return self.y + self.h / 2

    def moved(self, dx: float, dy: float) -> Rect:
        """Return it somewhere else."""
        return Rect(self.x + dx, self.y + dy, self.w, self.h)

    def within(self, edge: float) -> Rect:
        """Return what is left of it inside an edge."""
        return Rect(self.x + edge, self.y + edge, self.w - 2 * edge, self.h - 2 * edge)


@dataclass(frozen=True, slots=True)
class Track:
    """The course of a wire from its end `a` to its end `b`, leaving each box by a side.

    `label` is the point beside which its text stands, with the wire on the left of it.
    """

    a: str
    b: str
    points: tuple[Point, ...]
    a_side: Side
    b_side: Side
    label: Point
    across: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle round what belongs together, with a title in its upper strip."""

    title: str
    rect: Rect
    kind: Literal["socket", "server"]
    title_x: float


@dataclass(frozen=True)
class Layout:
    """A laid-out machine, from (0, 0) to (`width`, `height`)."""

    width: float
    height: float
    boxes: Mapping[str, Rect]
    tracks: Mapping[Hashable, Track]
    frames: tuple[Frame, ...]
    bars: frozenset[str] = field(default_factory=frozenset)


def spread(
    widths: tuple[float, ...], left: float, width: float, gap: float
) -> tuple[tuple[float, float], ...]:
    """Return ``(left, width)`` of slots side by side that fill `width`, each wide enough.

    Examples
    --------
    >>> spread((10, 20), 0, 50, 10)
    ((0, 15.0), (25.0, 25.0))
    """
    if not widths:
        return ()
    extra = (width - sum(widths) - gap * (len(widths) - 1)) / len(widths)
    slots = []
    for own in widths:
        slots.append((left, own + extra))
        left += own + extra + gap
    return tuple(slots)


def free_place(left: float, right: float, taken: tuple[float, ...], width: float) -> float:
    """Return the middle of a place for `width` in ``left..right`` that no `taken` x crosses.

    The one nearest to the middle of the whole; without room the widest.
    """
    middle = (left + right) / 2
    bounds = [left, *sorted(x for x in taken if left < x < right), right]
    gaps = list(pairwise(bounds))
    wide = [gap for gap in gaps if gap[1] - gap[0] >= width]
    if not wide:
        widest = max(gaps, key=lambda gap: gap[1] - gap[0])
        return (widest[0] + widest[1]) / 2
    middles = [min(max(middle, low + width / 2), high - width / 2) for low, high in wide]
    return min(middles, key=lambda x: (abs(x - middle), x))
