"""Points, rectangles and lines of text: what room things take, in points (1/72 inch), y downwards.

No engine is asked how wide a text is. The widths are those of Arial and its metric twins
(Helvetica, Liberation Sans, Arimo), which every engine has one of; what the table does not know is
taken to be wide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from topo.records import dataclass

Point = tuple[float, float]
Side = Literal["top", "bottom", "left", "right"]
Tone = Literal["ink", "soft", "alarm", "out"]

_ROUND = 7.0  # radius of a corner
_LEADING = 1.22  # line height over font size
_BOLD = 1.08
_ALARM = 12.0  # what the ground of an alarm adds, above and below and at the sides
_WIDE, _UNLISTED = 1.0, 0.72  # over font size: East Asian letters, and others that no line has
_WIDTHS = {
    **dict.fromkeys("ijl'", 0.222),
    **dict.fromkeys(" !/,.:;I[]\\ft·", 0.278),
    **dict.fromkeys("()-r`|{}", 0.334),
    **dict.fromkeys('*"^', 0.43),
    **dict.fromkeys("Jckvsxyz", 0.5),
    **dict.fromkeys("#$?_0123456789abdeghnopquL", 0.556),
    **dict.fromkeys("+<=>~FTZ", 0.611),
    **dict.fromkeys("&ABEKPSVXY", 0.667),
    **dict.fromkeys("CDHNRUw", 0.722),
    **dict.fromkeys("GOQ", 0.778),
    **dict.fromkeys("Mm", 0.833),
    **dict.fromkeys("%@W→←…", 1.0),
}


# --- places ---------------------------------------------------------------------------------------


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


def spread(
    widths: tuple[float, ...], left: float, room: float, gap: float
) -> tuple[tuple[float, float], ...]:
    """Return ``(left, width)`` of slots side by side that fill `room`, each wide enough.

    Examples
    --------
    >>> spread((10, 20), 0, 50, 10)
    ((0, 15.0), (25.0, 25.0))
    """
    if not widths:
        return ()
    extra = (room - sum(widths) - gap * (len(widths) - 1)) / len(widths)
    slots = []
    for needed in widths:
        slots.append((left, needed + extra))
        left += needed + extra + gap
    return tuple(slots)


def free_place(left: float, right: float, taken: tuple[float, ...], room: float) -> float:
    """Return the middle of a place for `room` in ``left..right`` that no `taken` x crosses.

    The one nearest to the middle of the whole; without room the widest.
    """
    middle = (left + right) / 2
    gaps = list(pairwise([left, *sorted(x for x in taken if left < x < right), right]))
    wide = [gap for gap in gaps if gap[1] - gap[0] >= room]
    if not wide:
        widest = max(gaps, key=lambda gap: gap[1] - gap[0])
        return (widest[0] + widest[1]) / 2
    middles = [min(max(middle, low + room / 2), high - room / 2) for low, high in wide]
    return min(middles, key=lambda x: (abs(x - middle), x))


# --- lines ----------------------------------------------------------------------------------------


def curve(points: Sequence[Point]) -> list[Point]:
    """Return the control points of a Bézier curve: straight pieces, corners rounded off."""
    controls = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        controls += [*_straight(controls[-1], _rounded(corner, before)), corner]
        controls += [corner, _rounded(corner, after)]
    return [*controls, *_straight(controls[-1], points[-1])]


def _rounded(corner: Point, end: Point) -> Point:
    """Return the point on the way from a corner to an end where the rounding is over."""
    length = max(abs(end[0] - corner[0]), abs(end[1] - corner[1]), 1e-9)
    part = min(_ROUND / length, 0.5)
    return (corner[0] + (end[0] - corner[0]) * part, corner[1] + (end[1] - corner[1]) * part)


def _straight(start: Point, stop: Point) -> list[Point]:
    (x, y), (end_x, end_y) = start, stop
    return [
        ((2 * x + end_x) / 3, (2 * y + end_y) / 3),
        ((x + 2 * end_x) / 3, (y + 2 * end_y) / 3),
        stop,
    ]


# --- text -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a label: text, size in points, weight, and what it is for the theme."""

    text: str
    size: float = 10.0
    bold: bool = False
    tone: Tone = "ink"

    @property
    def width(self) -> float:
        """Points that it takes."""
        ground = _ALARM if self.grounded else 0.0
        return width(self.text, self.size, bold=self.bold) + ground

    @property
    def grounded(self) -> bool:
        """Whether it stands on a ground of its own colour: what binds, and what is out of order."""
        return self.tone in ("alarm", "out")


@cache
def _em(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _UNLISTED


def width(text: str, size: float = 10.0, *, bold: bool = False) -> float:
    """Return the points that `text` takes, a little more rather than less.

    Examples
    --------
    >>> round(width("PCIe 5 x16"))
    51
    """
    return 1.03 * size * (_BOLD if bold else 1.0) * sum(_em(character) for character in text)


def widest(lines: tuple[Line, ...]) -> float:
    """Return the points that the widest of the lines takes."""
    return max(line.width for line in lines)


def height(lines: tuple[Line, ...]) -> float:
    """Return the points that the lines take, one below the other."""
    grounds = len({line.tone for line in lines if line.grounded})
    return sum(line.size * _LEADING for line in lines) + _ALARM * grounds


def clipped(text: str, limit: int) -> str:
    """Return `text` with at most `limit` characters, the last an ellipsis where some went.

    Examples
    --------
    >>> clipped("ConnectX-7", 6)
    'Conne…'
    """
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def wrapped(text: str, points: float, size: float = 10.0, *, lines: int = 3) -> tuple[str, ...]:
    """Return `text` in at most `lines` lines of at most `points` each, broken at spaces.

    What does not fit in the last line ends with an ellipsis.
    """
    broken: list[str] = []
    words = text.split()
    while words and len(broken) < lines:
        line = words.pop(0)
        while words and width(f"{line} {words[0]}", size) <= points:
            line = f"{line} {words.pop(0)}"
        broken.append(line)
    if words:
        broken[-1] += " …"
    for place, line in enumerate(broken):
        cut = line
        while len(cut) > 1 and width(cut, size) > points:
            cut = cut.removesuffix("…")[:-1].rstrip() + "…"
        broken[place] = cut
    return tuple(broken)


def balanced(text: str, points: float) -> tuple[str, ...]:
    """Return `text` in one line of at most `points`, or in two that are about as long.

    Examples
    --------
    >>> balanced("2x PCIe 4 data-centre drive", 104.0)
    ('2x PCIe 4', 'data-centre drive')
    """
    lines = wrapped(text, points, lines=2)
    words = text.split()
    pairs = [(" ".join(words[:n]), " ".join(words[n:])) for n in range(1, len(words))]
    broad = [max(map(width, pair)) for pair in pairs]
    if len(lines) == 1 or not pairs or min(broad) > points:
        return lines
    near = [pair for pair, wide in zip(pairs, broad, strict=True) if wide <= 1.2 * min(broad)]
    return near[-1]  # the later break: a name's number belongs to what stands before it
