"""The course of each hop over a laid-out scene: polylines along the wires and through the bars."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.views.draw.geometry import ASIDE, BUFFER, BUFFER_GAP, LANE, Rect
from topo.views.draw.lanes import BARS, each_hop, kind_of, moves_of, onward_of, passes_of, uses_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from topo.views.draw.geometry import Point
    from topo.views.draw.hops import Hop
    from topo.views.draw.lanes import Move, Pass
    from topo.views.draw.scene import Overlay, Scene

__all__ = ["Course", "buffer_places", "courses", "crossings"]

_STUB = 9.0
_JOG = 30.0  # a course is not bent for less
_BACK = 5.0  # a number stands so far back from the middle, clear of the arrow's head


@dataclass(frozen=True, slots=True)
class Course:
    """One hop's line: broken where it runs through a box that has no room for it.

    `badges` are the places of its number, `lines` its parts along wires, each by wire.
    """

    look: int
    label: str
    source: str
    target: str
    pieces: tuple[tuple[Point, ...], ...]
    badges: tuple[tuple[Hashable, Point], ...]
    lines: tuple[tuple[Hashable, tuple[Point, ...]], ...] = ()


def courses(scene: Scene) -> tuple[Course, ...]:
    """Return the course of every hop of a laid-out scene."""
    return tuple(_Tracer(scene).all())


def crossings(scene: Scene, bar: str, drawn: tuple[Course, ...]) -> tuple[float, ...]:
    """Return the x of every upright line that runs through the middle of a bar."""
    rect = scene.layout.boxes[bar]
    found = []
    for course in drawn:
        for piece in course.pieces:
            for (x, y), (end_x, end_y) in pairwise(piece):
                upright = abs(x - end_x) < 1 and rect.x < x < rect.right
                if upright and min(y, end_y) < rect.cy + 8 and max(y, end_y) > rect.cy - 8:
                    found.append(x)
    return tuple(found)


def buffer_places(scene: Scene, box: str) -> Mapping[str, Rect]:
    """Return where each buffer of a memory stands, by its name."""
    own = scene.buffers.get(box, ())
    if not own:
        return {}
    rect = scene.layout.boxes[box]
    wide = len(own) * BUFFER[0] + (len(own) - 1) * BUFFER_GAP
    left, top = rect.cx - wide / 2, rect.bottom - 6 - BUFFER[1]
    return {
        buffer.name: Rect(left + place * (BUFFER[0] + BUFFER_GAP), top, *BUFFER)
        for place, buffer in enumerate(own)
    }


def _leads(hop: Hop, following: Hop) -> bool:
    """Whether the move of `hop` goes on with `following`: branches may share the latter."""
    if hop.onward is None or not following.steps:
        return False
    first = following.steps[0]
    return first.link is hop.onward.link and first.source == hop.onward.source


class _Tracer:
    """Draws hops one after the other, remembering which lanes and places beside wires are taken."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.uses = uses_of(scene)
        self.used: Counter[Hashable] = Counter()
        self.lanes: Counter[tuple[str, str]] = Counter()

    def all(self) -> Iterator[Course]:
        """Yield the courses in order."""
        plans = [(overlay, hop, self._offsets(hop)) for overlay, hop in each_hop(self.scene)]
        drawn: list[tuple[Overlay, Hop, list[tuple[Point, ...]]]] = []
        for overlay, hop, own in plans:
            before = (line for by, one, line in drawn if by is overlay and _leads(one, hop))
            entry = next((lines[-1][-1] for lines in before), None)
            drawn.append((overlay, hop, self._lines(hop, own, entry)))
        for overlay, hop, lines in drawn:
            after = (line for by, one, line in drawn if by is overlay and _leads(hop, one))
            yield self._course(overlay, hop, lines, next(after, []))

    def _offsets(self, hop: Hop) -> list[float]:
        found = []
        for move in moves_of(self.scene, hop):
            count = self.uses[move.track]
            found.append((self.used[move.track] - (count - 1) / 2) * ASIDE)
            self.used[move.track] += 1
        return found

    def _lines(
        self, hop: Hop, offsets: list[float], entry: Point | None
    ) -> list[tuple[Point, ...]]:
        """Return the line along each wire of a hop; `entry` is where it comes in."""
        moves = moves_of(self.scene, hop)
        found: list[tuple[Point, ...]] = []
        for place, (move, offset) in enumerate(zip(moves, offsets, strict=True)):
            track = self.scene.layout.tracks[move.track]
            points = track.points if track.a == move.source else track.points[::-1]
            if track.across:
                line = [(x, y + offset) for x, y in points]
            else:
                line = [(x + offset, y) for x, y in points]
            if place == 0 and hop.source_buffer:
                line = self._at_buffer(move.source, hop.source_buffer, line[::-1])[::-1]
            if place == len(moves) - 1 and hop.target_buffer:
                line = self._at_buffer(move.target, hop.target_buffer, line)
            if entry and not (hop.target_buffer and place == len(moves) - 1):
                line = self._straightened(move, entry, line)
            found.append(tuple(line))
            entry = found[-1][-1]
        return found

    def _straightened(self, move: Move, entry: Point, line: list[Point]) -> list[Point]:
        """Return a line moved a little to the side, where that saves a small bend in a bar."""
        (x, y), (end_x, end_y) = line[0], line[-1]
        rect = self.scene.layout.boxes[move.target]
        if self.uses[move.track] > 1 or kind_of(self.scene, move.source) not in BARS:
            return line
        fits = rect.x + 12 < entry[0] < rect.right - 12
        down = (end_y - y) * (y - entry[1]) > 0
        if len(line) == 2 and x == end_x and 0 < abs(x - entry[0]) < _JOG and fits and down:  # noqa: PLR2004
            return [(entry[0], y), (entry[0], end_y)]
        return line

    def _at_buffer(self, box: str, name: str, line: list[Point]) -> list[Point]:
        """Return a line that ends at a buffer's lower side."""
        place = buffer_places(self.scene, box).get(name)
        if place is None:
            return line
        return [*((place.cx, y) for _, y in line[:-1]), (place.cx, place.bottom)]

    def _course(
        self,
        overlay: Overlay,
        hop: Hop,
        lines: list[tuple[Point, ...]],
        onward: list[tuple[Point, ...]],
    ) -> Course:
        box_of = self.scene.grouping.box_of
        source, target = box_of[hop.source], box_of[hop.target]
        if not lines:
            piece, badge = self._copy(source, hop)
            drawn = (piece,) if piece else ()
            return Course(overlay.look, hop.label, source, target, drawn, ((None, badge),))
        passes = {(one.entry, one.leave): one for one in passes_of(self.scene, hop)}
        moves = moves_of(self.scene, hop)
        pieces: list[list[Point]] = [list(lines[0])]
        for place in range(1, len(moves)):
            through = passes.get((moves[place - 1].track, moves[place].track))
            if through is None:
                pieces.append(list(lines[place]))
            else:
                pieces[-1] += self._through(through, pieces[-1][-1], lines[place][0])
                pieces[-1] += lines[place]
        last = onward_of(self.scene, hop, moves[-1])
        if last is not None and onward:
            through = passes[moves[-1].track, last.track]
            pieces[-1] += [
                *self._through(through, pieces[-1][-1], onward[0][0]),
                onward[0][0],
            ]
        badges = tuple(
            (move.track, self._badge(move, line)) for move, line in zip(moves, lines, strict=True)
        )
        return Course(
            overlay.look,
            hop.label,
            source,
            target,
            tuple(tuple(piece) for piece in pieces),
            badges,
            tuple(zip((move.track for move in moves), lines, strict=True)),
        )

    def _through(self, one: Pass, entry: Point, leave: Point) -> list[Point]:
        """Return the points inside a bar, between the ends of two wires at its border."""
        rect = self.scene.layout.boxes[one.bar]
        lane = self.lanes[one.bar, one.strip]
        self.lanes[one.bar, one.strip] += 1
        down = LANE * (lane + 0.5) + 2
        y = rect.y + down if one.strip == "top" else rect.bottom - down
        if abs(entry[0] - leave[0]) < 1:
            return []
        return [*self._turn(rect, entry, y), *reversed(self._turn(rect, leave, y))]

    @staticmethod
    def _turn(rect: Rect, point: Point, y: float) -> list[Point]:
        """Return the corners between a point on a bar's border and a lane inside."""
        if abs(point[0] - rect.x) < 1:
            return [(rect.x + _STUB, point[1]), (rect.x + _STUB, y)]
        if abs(point[0] - rect.right) < 1:
            return [(rect.right - _STUB, point[1]), (rect.right - _STUB, y)]
        return [(point[0], y)]

    def _badge(self, move: Move, line: tuple[Point, ...]) -> Point:
        track = self.scene.layout.tracks[move.track]
        (x, y), (end_x, end_y) = line[0], line[-1]
        if track.across:
            return ((x + end_x) / 2, y)
        if abs(x - end_x) < 1:
            back = _BACK if end_y > y else -_BACK
            return (x, track.label[1] - back)
        return ((x + end_x) / 2, (y + end_y) / 2)

    def _copy(self, box: str, hop: Hop) -> tuple[tuple[Point, ...], Point]:
        """Return the line of a copy inside one memory, and where its number stands."""
        places = buffer_places(self.scene, box)
        if not {hop.source_buffer, hop.target_buffer} <= set(places):
            rect = self.scene.layout.boxes[box]
            return (), (rect.right - 8, rect.y)
        start, stop = places[hop.source_buffer], places[hop.target_buffer]
        points = ((start.right, start.cy), (stop.x, stop.cy))
        return points, (start.right + 12, start.cy)
