"""The course of each hop over a laid-out scene: polylines along the wires and through the bars."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import ASIDE, BUFFER, BUFFER_GAP, LANE, PORT, Rect
from topo.views.diagram.lanes import BARS, kind_of, placed, ports_of, ways_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from topo.views.diagram.geometry import Point
    from topo.views.diagram.hops import Hop
    from topo.views.diagram.lanes import Move, Order, Pass, Way
    from topo.views.diagram.scene import Scene


_STUB = 9.0
_JOG = 30.0  # a course is not bent for less
_COPY = 12.0  # the same for a copy, from the border of the buffer that it leaves
_BACK = 5.0  # a number stands so far back from the middle, clear of the arrow's head


@dataclass(frozen=True, slots=True)
class Course:
    """One hop's line: broken where it runs through a box that has no room for it.

    `badges` are the places of its number, `lines` its parts along wires, each by wire. `ends` is
    false where the next hop takes up its line inside a bar: there is no arrow's head there.
    """

    look: int
    label: str
    source: str
    target: str
    pieces: tuple[tuple[Point, ...], ...]
    badges: tuple[tuple[Hashable, Point], ...]
    lines: tuple[tuple[Hashable, tuple[Point, ...]], ...] = ()
    ends: bool = True


def courses(scene: Scene) -> tuple[Course, ...]:
    """Return the course of every hop of a laid-out scene."""
    return Tracer(scene).courses(scene.order)


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


def buffer_places(scene: Scene, box: str, order: Order) -> Mapping[str, Rect]:
    """Return where each buffer of a memory stands, by its name."""
    own = scene.buffers.get(box, ())
    if not own:
        return {}
    rect = scene.inner(box)
    wide = len(own) * BUFFER[0] + (len(own) - 1) * BUFFER_GAP
    left, top = rect.cx - wide / 2, rect.bottom - 6 - BUFFER[1]
    return {
        buffer.name: Rect(
            left + placed(order, ("buffers", box), number) * (BUFFER[0] + BUFFER_GAP), top, *BUFFER
        )
        for number, buffer in enumerate(own)
    }


def _follows(way: Way, following: Way) -> bool:
    """Whether the move of `way` goes on with `following`: branches may share the latter."""
    hop = way.hop
    if way.overlay is not following.overlay or hop.onward is None or not following.hop.steps:
        return False
    first = following.hop.steps[0]
    return first.link is hop.onward.link and first.source == hop.onward.source


class Tracer:
    """Draws hops one after the other, remembering which lanes and places beside wires are taken."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.ways = ways_of(scene)
        self.uses = Counter(move.track for way in self.ways for move in way.moves)
        self.ports = ports_of(scene)
        self.onward = [
            next((place for place, one in enumerate(self.ways) if _follows(way, one)), None)
            for way in self.ways
        ]
        self.order: Order = {}
        self.used: Counter[Hashable] = Counter()
        self.lanes: Counter[tuple[str, str]] = Counter()

    def courses(self, order: Order) -> tuple[Course, ...]:
        """Return the course of every hop, with what is side by side in this order."""
        self.order = order
        self.used, self.lanes = Counter(), Counter()
        offsets = [self._offsets(way) for way in self.ways]
        drawn: list[list[tuple[Point, ...]]] = []
        for place, way in enumerate(self.ways):
            before = (lines for lines, to in zip(drawn, self.onward, strict=False) if to == place)
            entry = next((lines[-1][-1] for lines in before), None)
            drawn.append(self._lines(way, offsets[place], entry))
        return tuple(
            self._course(way, drawn[place], drawn[to] if to is not None else [])
            for place, (way, to) in enumerate(zip(self.ways, self.onward, strict=True))
        )

    def _offsets(self, way: Way) -> list[float]:
        found = []
        for move in way.moves:
            count = self.uses[move.track]
            place = placed(self.order, ("wire", move.track), self.used[move.track])
            found.append((place - (count - 1) / 2) * ASIDE)
            self.used[move.track] += 1
        return found

    def _lines(
        self, way: Way, offsets: list[float], entry: Point | None
    ) -> list[tuple[Point, ...]]:
        """Return the line along each wire of a hop; `entry` is where it comes in."""
        hop, moves = way.hop, way.moves
        found: list[tuple[Point, ...]] = []
        for place, (move, offset) in enumerate(zip(moves, offsets, strict=True)):
            track = self.scene.layout.tracks[move.track]
            points = track.points if track.a == move.source else track.points[::-1]
            if track.across:
                line = [(x, y + offset) for x, y in points]
            else:
                line = [(x + offset, y) for x, y in points]
            if place == 0 and hop.source_buffer:
                line = self._at_buffer(way, line[::-1], into=False)[::-1]
            if place == len(moves) - 1 and hop.target_buffer:
                line = self._at_buffer(way, line, into=True)
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

    def _at_buffer(self, way: Way, line: list[Point], *, into: bool) -> list[Point]:
        """Return a line that ends at a port of a buffer's lower side."""
        hop = way.hop
        name = hop.target_buffer if into else hop.source_buffer
        box = way.moves[-1].target if into else way.moves[0].source
        rect = buffer_places(self.scene, box, self.order).get(name)
        if rect is None:
            return line
        ports = self.ports[box, name]
        port = ports.index((way.overlay.look, hop.label, into))
        place = placed(self.order, ("ports", box, name), port)
        apart = min(PORT, rect.w / len(ports))
        x = rect.cx + (place - (len(ports) - 1) / 2) * apart
        return [*((x, y) for _, y in line[:-1]), (x, rect.bottom)]

    def _course(
        self, way: Way, lines: list[tuple[Point, ...]], onward: list[tuple[Point, ...]]
    ) -> Course:
        box_of = self.scene.grouping.box_of
        hop, look = way.hop, way.overlay.look
        source, target = box_of[hop.source], box_of[hop.target]
        if not lines:
            piece, badge = self._copy(source, hop)
            drawn = (piece,) if piece else ()
            return Course(look, hop.label, source, target, drawn, ((None, badge),))
        passes = {(one.entry, one.leave): one for one in way.passes}
        pieces: list[list[Point]] = [list(lines[0])]
        for place in range(1, len(way.moves)):
            through = passes.get((way.moves[place - 1].track, way.moves[place].track))
            if through is None:
                pieces.append(list(lines[place]))
            else:
                pieces[-1] += self._through(through, pieces[-1][-1], lines[place][0])
                pieces[-1] += lines[place]
        goes_on = way.onward is not None and bool(onward)
        if way.onward is not None and onward:
            through = passes[way.moves[-1].track, way.onward.track]
            pieces[-1] += [
                *self._through(through, pieces[-1][-1], onward[0][0]),
                onward[0][0],
            ]
        return Course(
            look,
            hop.label,
            source,
            target,
            tuple(tuple(piece) for piece in pieces),
            tuple(
                (move.track, self._badge(move, line))
                for move, line in zip(way.moves, lines, strict=True)
            ),
            tuple(zip((move.track for move in way.moves), lines, strict=True)),
            ends=not goes_on,
        )

    def _through(self, one: Pass, entry: Point, leave: Point) -> list[Point]:
        """Return the points inside a bar, between the ends of two wires at its border."""
        rect = self.scene.inner(one.bar)
        lane = placed(self.order, ("lanes", one.bar, one.strip), self.lanes[one.bar, one.strip])
        self.lanes[one.bar, one.strip] += 1
        down = LANE * (lane + 0.5) + 2
        y = rect.y + down if one.strip == "top" else rect.bottom - down
        if abs(entry[0] - leave[0]) < 1:
            return []
        return [*self._turn(one.bar, entry, y), *reversed(self._turn(one.bar, leave, y))]

    def _turn(self, bar: str, point: Point, y: float) -> list[Point]:
        """Return the corners between a point on a bar's border and a lane inside."""
        rect, inner = self.scene.layout.boxes[bar], self.scene.inner(bar)
        for side, x in ((rect.x, inner.x + _STUB), (rect.right, inner.right - _STUB)):
            if abs(point[0] - side) < 1:
                return [(x, point[1]), (x, y)]
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
        places = buffer_places(self.scene, box, self.order)
        if not {hop.source_buffer, hop.target_buffer} <= set(places):
            rect = self.scene.layout.boxes[box]
            return (), (rect.right - 8, rect.y)
        start, stop = places[hop.source_buffer], places[hop.target_buffer]
        if start.x < stop.x:
            return ((start.right, start.cy), (stop.x, stop.cy)), (start.right + _COPY, start.cy)
        return ((start.x, start.cy), (stop.right, stop.cy)), (start.x - _COPY, start.cy)
