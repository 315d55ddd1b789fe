"""Where the labels of wires stand: beside them, clear of boxes, lines, titles and each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, product
from typing import TYPE_CHECKING

from topo.records import dataclass
from topo.views.diagram.geometry import Line, Point, Rect, free_place, height, widest

if TYPE_CHECKING:
    from topo.views.diagram.grouping import WireKey
    from topo.views.diagram.polylines import Polyline
    from topo.views.diagram.scene import Scene

CROSS = 10.0  # the size of the cross of what failed
BAND = 14.0  # the width of the band under a wire that binds
_LABEL = 6.0  # between a wire and its text
_ROUTE_LABEL = 13.0  # the same where a number or a band is on the wire
_INSET = 5.0  # of the text in the ground of an alarm
_WIRE, _HOP, _EDGE = 2.0, 3.0, 1.0  # half of what a line takes from side to side
_BADGE = 15.0  # the size of a hop's number
_TITLE = 14.0  # the height of a frame's title
_STEP = 4.0  # places of a label along its wire are so far apart
_LEFT = 40.0  # the left of a wire is as bad as so many points along it
_CELL = 80.0  # what is taken is looked up in squares of this size


@dataclass(frozen=True, slots=True)
class LabelBlock:
    """Lines of one label, and the rectangle that they take; `left` says how they are aligned."""

    lines: tuple[Line, ...]
    rect: Rect
    left: bool

    @property
    def at(self) -> Point:
        """The middle, or the middle of the left side."""
        return (self.rect.x if self.left else self.rect.cx, self.rect.cy)


def placed_labels(
    scene: Scene, polylines: tuple[Polyline, ...]
) -> Mapping[WireKey, tuple[LabelBlock, ...]]:
    """Return the parts of each wire's label: what cries out, and what the wire is.

    A label stands at its usual place, on the right of an upright wire or above a level one. Where
    something else is there, it stands along its wire or on the other side, as near as is free.
    """
    ground, frames = _Ground(_taken(scene, polylines)), _Ground(_frames(scene))
    usual = {key: _usual(scene, polylines, key) for key in scene.labels}
    placed: dict[WireKey, Rect] = {}
    for key, rect in usual.items():
        if ground.is_free(rect) and frames.is_free(rect):
            placed[key] = rect
            ground.take(rect.within(_EDGE))
    for key, rect in usual.items():
        if key not in placed:
            places = sorted(_places(scene, polylines, key, rect), key=lambda place: place[0])
            free = [place for _, place in places if ground.is_free(place)]
            placed[key] = next(filter(frames.is_free, free), (*free, rect)[0])
            ground.take(placed[key].within(_EDGE))
    return {key: tuple(_blocks(scene, key, placed[key])) for key in scene.labels}


def bands(scene: Scene, polylines: tuple[Polyline, ...], key: WireKey) -> list[tuple[Point, ...]]:
    """Return the lines under which the band of a wire that binds lies: its hops, or itself."""
    hops = [line for polyline in polylines for wire, line in polyline.lines if wire == key]
    return hops or [scene.layout.tracks[key].points]


def middle_of(points: Sequence[Point]) -> Point:
    """Return the point halfway along a line."""
    lengths = [abs(x - end_x) + abs(y - end_y) for (x, y), (end_x, end_y) in pairwise(points)]
    left = sum(lengths) / 2
    for ((x, y), (end_x, end_y)), length in zip(pairwise(points), lengths, strict=True):
        if left <= length and length:
            part = left / length
            return (x + (end_x - x) * part, y + (end_y - y) * part)
        left -= length
    return points[0]


def _blocks(scene: Scene, key: WireKey, rect: Rect) -> Iterator[LabelBlock]:
    """Yield the parts of a wire's label, one below the other from the top of a rectangle."""
    lines = scene.labels[key]
    if scene.layout.tracks[key].across:
        yield LabelBlock(lines, rect, left=False)
        return
    top = rect.y
    for alarm, group in groupby(lines, key=lambda line: line.grounded):
        part = tuple(group)
        inset = _INSET if key in scene.alarms and not alarm else 0.0
        yield LabelBlock(part, Rect(rect.x + inset, top, widest(part), height(part)), left=True)
        top += height(part)


# --- places ---------------------------------------------------------------------------------------


def _usual(scene: Scene, polylines: tuple[Polyline, ...], key: WireKey) -> Rect:
    """Return where a label stands as long as nothing is in its way.

    Above a level wire, where no upright one runs through; on the right of an upright one, between
    its hops or after them, both at one x.
    """
    lines, track = scene.labels[key], scene.layout.tracks[key]
    wide, high, y = widest(lines), height(lines), track.label[1]
    badges = [at for polyline in polylines for wire, at in polyline.badges if wire == key]
    if track.across:
        bottom = min([y, *(at[1] for at in badges)]) - (12 if _is_busy(scene, key) else 5)
        tracks = scene.layout.tracks.items()
        passing = [track.points for wire, track in tracks if wire != key]
        passing += [piece for polyline in polylines for piece in polyline.pieces]
        taken = tuple(
            x
            for points in passing
            for (x, y), (end_x, end_y) in pairwise(points)
            if abs(x - end_x) < 1 and min(y, end_y) < bottom and max(y, end_y) > bottom - high
        )
        start, stop = min(x for x, _ in track.points), max(x for x, _ in track.points)
        x = free_place(start, stop, taken, wide + 2 * _LABEL)
        return Rect(x - wide / 2, bottom - high, wide, high)
    xs = sorted(at[0] for at in badges)
    after = xs[-1] if xs else track.label[0]
    between = (x for x, following in pairwise(xs) if following - x > wide + 2 * _ROUTE_LABEL)
    left = next(between, after) + _distance(scene, key)
    return Rect(left, y - high / 2, wide + _inset(scene, key), high)


def _places(
    scene: Scene, polylines: tuple[Polyline, ...], key: WireKey, usual: Rect
) -> Iterator[tuple[float, Rect]]:
    """Yield the other places of a label, and how bad each is: on both sides along its wire."""
    wide, high, away = usual.w, usual.h, _distance(scene, key)
    for points in bands(scene, polylines, key):
        for (x, y), (end_x, end_y) in pairwise(points):
            if scene.layout.tracks[key].across != (abs(y - end_y) < abs(x - end_x)):
                continue
            if scene.layout.tracks[key].across:
                lefts = _steps(min(x, end_x), max(x, end_x) - wide)
                places = product(lefts, ((y - away - high, 0.0), (y + away, _LEFT)))
                rects = ((toll, Rect(left, top, wide, high)) for left, (top, toll) in places)
            else:
                tops = _steps(min(y, end_y), max(y, end_y) - high)
                sides = ((x + away, 0.0), (x - away - wide, _LEFT))
                rects = (
                    (toll, Rect(left, top, wide, high))
                    for (left, toll), top in product(sides, tops)
                )
            for toll, rect in rects:
                far = abs(rect.x - usual.x) * (toll == 0.0) + abs(rect.y - usual.y)
                yield toll + far, rect


def _steps(start: float, stop: float) -> list[float]:
    """Return places from a start to a stop; where the stop is before it, halfway."""
    if stop <= start:
        return [(start + stop) / 2]
    return [start + number * _STEP for number in range(int((stop - start) / _STEP) + 1)]


def _is_busy(scene: Scene, key: WireKey) -> bool:
    """Whether a number, a band or a cross is on a wire."""
    return key in scene.walked or key in scene.alarms or scene.is_broken(scene.wire(key))


def _distance(scene: Scene, key: WireKey) -> float:
    return _ROUTE_LABEL if _is_busy(scene, key) else _LABEL


def _inset(scene: Scene, key: WireKey) -> float:
    """Return what a label takes more where its lines below an alarm are set in."""
    lines = scene.labels[key]
    plain = [line.width + _INSET for line in lines if not line.grounded]
    return max([*plain, widest(lines)]) - widest(lines) if key in scene.alarms else 0.0


# --- what is taken --------------------------------------------------------------------------------


class _Ground:
    """The rectangles that are taken, by the squares that they reach into."""

    def __init__(self, rects: Iterable[Rect]) -> None:
        self._cells: dict[tuple[int, int], list[Rect]] = {}
        for rect in rects:
            self.take(rect)

    def take(self, rect: Rect) -> None:
        for cell in self._reached(rect):
            self._cells.setdefault(cell, []).append(rect)

    def is_free(self, rect: Rect) -> bool:
        return not any(
            rect.x < taken.right
            and taken.x < rect.right
            and rect.y < taken.bottom
            and taken.y < rect.bottom
            for cell in self._reached(rect)
            for taken in self._cells.get(cell, ())
        )

    @staticmethod
    def _reached(rect: Rect) -> Iterator[tuple[int, int]]:
        columns = range(int(rect.x // _CELL), int(rect.right // _CELL) + 1)
        rows = range(int(rect.y // _CELL), int(rect.bottom // _CELL) + 1)
        return product(columns, rows)


def _taken(scene: Scene, polylines: tuple[Polyline, ...]) -> Iterator[Rect]:
    """Yield what no label may stand on, boxes a little smaller than they are drawn."""
    layout = scene.layout
    yield from (rect.within(_EDGE) for rect in layout.boxes.values())
    covered = {key for polyline in polylines for key, _ in polyline.lines}
    for key, track in layout.tracks.items():
        if key in scene.alarms:
            for points in bands(scene, polylines, key):
                yield from _along(points, BAND / 2)
        elif key not in covered:
            yield from _along(track.points, _WIRE)
            if scene.is_broken(scene.wire(key)):
                yield _square(middle_of(track.points), CROSS)
    for polyline in polylines:
        for piece in polyline.pieces:
            yield from _along(piece, _HOP)
        yield from (_square(at, _BADGE - 2 * _EDGE) for _, at in polyline.badges)


def _frames(scene: Scene) -> Iterator[Rect]:
    """Yield the sides and titles of frames, which a label keeps clear of where it can."""
    for frame in scene.layout.frames:
        rect = frame.rect
        title = Line(frame.title, bold=True)
        yield Rect(frame.title_x, rect.y + 12 - _TITLE / 2, title.width, _TITLE)
        for x in (rect.x, rect.right):
            yield from _along(((x, rect.y), (x, rect.bottom)), _EDGE)


def _along(points: Sequence[Point], half: float) -> Iterator[Rect]:
    """Yield what each piece of a line takes."""
    for (x, y), (end_x, end_y) in pairwise(points):
        left, top = min(x, end_x) - half, min(y, end_y) - half
        yield Rect(left, top, abs(x - end_x) + 2 * half, abs(y - end_y) + 2 * half)


def _square(at: Point, size: float) -> Rect:
    return Rect(at[0] - size / 2, at[1] - size / 2, size, size)
