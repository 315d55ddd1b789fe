"""Where the label of each wire stands, clear of the lines that run along the wire."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import Rect, free_place
from topo.views.diagram.metrics import height

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from topo.views.diagram.geometry import Point
    from topo.views.diagram.metrics import Line
    from topo.views.diagram.polylines import Course
    from topo.views.diagram.scene import Scene


BAND = 13.0  # the width of the band under a wire that binds
_LABEL = 6.0  # between a wire and its text
_ROUTE_LABEL = 13.0  # the same where a number or a band is on the wire
_INSET = 5.0  # of the text in the ground of an alarm


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of one label, and the rectangle that they take; `left` says how they are aligned."""

    lines: tuple[Line, ...]
    rect: Rect
    left: bool

    @property
    def at(self) -> Point:
        """The middle, or the middle of the left side."""
        return (self.rect.x if self.left else self.rect.cx, self.rect.cy)


def blocks(scene: Scene, drawn: tuple[Course, ...], key: Hashable) -> Iterator[Block]:
    """Yield the parts of a wire's label: what cries out, and what the wire is.

    Beside a wire, both texts begin at one x.
    """
    lines, track = scene.labels[key], scene.layout.tracks[key]
    wide, high = max(line.width for line in lines), height(lines)
    busy = key in scene.walked or key in scene.alarms
    y = track.label[1]
    if track.across:
        ys = [at[1] for course in drawn for own, at in course.badges if own == key]
        bottom = min([y, *ys]) - (12 if busy else 5)
        x = _above(scene, key, (bottom - high, bottom), wide)
        yield Block(lines, Rect(x - wide / 2, bottom - high, wide, high), left=False)
        return
    left = _beside(scene, drawn, key, wide) + (_ROUTE_LABEL if busy else _LABEL)
    top = y - high / 2
    for alarm, group in groupby(lines, key=lambda line: line.tone == "alarm"):
        own = tuple(group)
        inset = _INSET if key in scene.alarms and not alarm else 0.0
        size = (max(line.width for line in own), height(own))
        yield Block(own, Rect(left + inset, top, *size), left=True)
        top += size[1]


def bands(scene: Scene, drawn: tuple[Course, ...], key: Hashable) -> list[tuple[Point, ...]]:
    """Return the lines under which the band of a wire that binds lies: its hops, or itself."""
    hops = [line for course in drawn for own, line in course.lines if own == key]
    return hops or [scene.layout.tracks[key].points]


def _above(scene: Scene, key: Hashable, rows: tuple[float, float], wide: float) -> float:
    """Return the middle of a label over a level wire: where no upright wire runs through it."""
    tracks = scene.layout.tracks
    taken = tuple(
        x
        for other, track in tracks.items()
        if other != key
        for (x, y), (end_x, end_y) in pairwise(track.points)
        if abs(x - end_x) < 1 and min(y, end_y) < rows[1] and max(y, end_y) > rows[0]
    )
    left, right = sorted(x for x, _ in tracks[key].points)
    return free_place(left, right, taken, wide + 2 * _LABEL)


def _beside(scene: Scene, drawn: tuple[Course, ...], key: Hashable, wide: float) -> float:
    """Return the x on the right of which a wire's label stands: between its hops, or after."""
    xs = sorted(badge[0] for course in drawn for own, badge in course.badges if own == key)
    for x, following in pairwise(xs):
        if following - x > wide + 2 * _ROUTE_LABEL:
            return x
    return xs[-1] if xs else scene.layout.tracks[key].label[0]
