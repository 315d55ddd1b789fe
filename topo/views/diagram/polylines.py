"""The hops over a laid-out scene: polylines along the wires and through the bars, none crossing.

Buffers of a memory, lanes of a bar, hops along one wire, ports of a buffer: each of these groups
stands side by side in any order. Many pictures have no crossing as they come; in the others all
orders are tried where they are few. Where they are many, one group after the other, then two at
once, are put in every order, as long as that helps: once from the order that they come in, once
with all buffers the other way round.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import TYPE_CHECKING

from topo.records import dataclass
from topo.views.diagram.geometry import Point, Rect
from topo.views.diagram.hops import BARS, DrawnHop, Hop, Passage, Stretch
from topo.views.diagram.scene import ASIDE, BUFFER, BUFFER_GAP, DATA, LANE, PORT, Scene

if TYPE_CHECKING:
    from topo.views.diagram.grouping import WireKey
    from topo.views.diagram.layout import Track


_STUB = 9.0
_JOG = 30.0  # a polyline is not bent for less
_WORDS = 44.0  # what the words of `DATA` take from side to side
_COPY = 12.0  # a number's distance from the border of the buffer that a copy leaves
_BACK = 5.0  # a number stands so far back from the middle, clear of the arrow's head

_TRIES = 300  # orders of a whole picture
_PAIRS = 60_000  # pairs of hops that are looked at in all of them
_SWAPS = 24  # orders of one large group
_SAME_ROUTE, _TWO_ROUTES = 100, 1  # how bad a crossing of one route is, and one of two routes
_NEAR, _ALONG = 6.0, 8.0  # lines as near as this, for longer than that, look like one

# What is side by side, by what it is (lanes of a strip, hops along a wire, buffers of a memory,
# ports of a buffer), and at which place each of them stands; without an entry, as it comes.
Group = tuple[object, ...]
Order = dict[Group, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Polyline:
    """One hop's line: broken where it runs through a box that has no room for it.

    `badges` are the places of its number, `lines` its parts along wires, each by wire. `ends` is
    false where the next hop takes up its line inside a bar: there is no arrow's head there.
    """

    look: int
    label: str
    source: str
    target: str
    pieces: tuple[tuple[Point, ...], ...]
    badges: tuple[tuple[WireKey | None, Point], ...]
    lines: tuple[tuple[WireKey, tuple[Point, ...]], ...] = ()
    ends: bool = True


@dataclass(frozen=True, slots=True)
class HopLines:
    """The polyline of each hop of a scene, and where each buffer stands, by memory and name."""

    polylines: tuple[Polyline, ...]
    buffers: Mapping[str, Mapping[str, Rect]]


def hop_lines(scene: Scene) -> HopLines:
    """Return the polylines of a laid-out scene's hops, in the order in which the fewest cross."""
    tracer = _Tracer(scene)
    order = _least_crossings(tracer)
    buffers = {box: buffer_places(scene, box, order) for box in scene.buffers}
    return HopLines(tracer.polylines(order), buffers)


def buffer_places(scene: Scene, box: str, order: Order) -> Mapping[str, Rect]:
    """Return where each buffer of a memory stands, by its name."""
    buffers = scene.buffers.get(box, {})
    if not buffers:
        return {}
    rect = scene.inner(box)
    step = BUFFER[0] + BUFFER_GAP
    left = rect.cx - (len(buffers) * BUFFER[0] + (len(buffers) - 1) * BUFFER_GAP) / 2
    top = rect.bottom - 6 - BUFFER[1]
    places = {
        buffer: Rect(left + _placed(order, ("buffers", box), number) * step, top, *BUFFER)
        for number, buffer in enumerate(buffers)
    }
    if DATA in places:  # words without a frame
        place = places[DATA]
        places[DATA] = Rect(place.cx - _WORDS / 2, place.y, _WORDS, place.h)
    return places


def _placed(order: Order, group: Group, number: int) -> int:
    """Return the place of the `number`-th of a group."""
    return order[group][number] if group in order else number


# --- one order ------------------------------------------------------------------------------------


class _Tracer:
    """Draws hops one after the other, remembering which lanes and places beside wires are taken."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.onward = [
            next((at for at, next_hop in enumerate(scene.hops) if hop.goes_on_in(next_hop)), None)
            for hop in scene.hops
        ]
        self.order: Order = {}
        self.walkers = Counter(part.wire for hop in scene.hops for part in hop.stretches)
        self.used: dict[Group, dict[Group, int]] = {}  # the place of each line in its group

    def polylines(self, order: Order) -> tuple[Polyline, ...]:
        """Return the polyline of every hop, with what is side by side in this order."""
        self.order = order
        self.used = {}
        offsets: list[list[float]] = []  # how far beside each wire each hop runs
        for hop in self.scene.hops:
            offsets.append([])
            for part in hop.stretches:
                place = self._place(("wire", part.wire), hop.lane(part.source))
                offsets[-1].append((place - (self.scene.uses[part.wire] - 1) / 2) * ASIDE)
        lines: list[list[tuple[Point, ...]]] = []
        for place, hop in enumerate(self.scene.hops):
            before = (line for line, to in zip(lines, self.onward, strict=False) if to == place)
            entry = next((line[-1][-1] for line in before), None)
            lines.append(self._lines(hop, offsets[place], entry))
        return tuple(
            self._polyline(hop, lines[place], lines[to] if to is not None else [])
            for place, (hop, to) in enumerate(zip(self.scene.hops, self.onward, strict=True))
        )

    def _lines(
        self, drawn: DrawnHop, offsets: list[float], entry: Point | None
    ) -> list[tuple[Point, ...]]:
        """Return the line along each wire of a hop; `entry` is where it comes in."""
        lines: list[tuple[Point, ...]] = []
        last = len(drawn.stretches) - 1
        for place, (stretch, offset) in enumerate(zip(drawn.stretches, offsets, strict=True)):
            track = self.scene.layout.tracks[stretch.wire]
            line = beside(track.points, offset)
            if track.a != stretch.source:
                line.reverse()
            ends_at_buffer = place == last and bool(drawn.hop.target_buffer)
            if place == 0 and drawn.hop.source_buffer:
                line = self._at_buffer(drawn, line[::-1], into=False)[::-1]
            if ends_at_buffer:
                line = self._at_buffer(drawn, line, into=True)
            if entry and not ends_at_buffer:
                line = self._straightened(stretch, entry, line)
            lines.append(tuple(line))
            entry = line[-1]
        return lines

    def _straightened(self, stretch: Stretch, entry: Point, line: list[Point]) -> list[Point]:
        """Return a line moved a little to the side, where that saves a small bend in a bar."""
        (x, y), (end_x, end_y) = line[0], line[-1]
        rect = self.scene.layout.boxes[stretch.target]
        alone = self.walkers[stretch.wire] == 1
        if stretch.wire in self.scene.alarms and entry[0] > x:  # its label has no more room
            return line
        if not alone or self.scene.grouping.kind(stretch.source) not in BARS:
            return line
        fits = rect.x + 12 < entry[0] < rect.right - 12
        down = (end_y - y) * (y - entry[1]) > 0
        if len(line) == 2 and x == end_x and 0 < abs(x - entry[0]) < _JOG and fits and down:  # noqa: PLR2004
            return [(entry[0], y), (entry[0], end_y)]
        return line

    def _at_buffer(self, drawn: DrawnHop, line: list[Point], *, into: bool) -> list[Point]:
        """Return a line that ends at a port of a buffer's lower side."""
        name = drawn.hop.target_buffer if into else drawn.hop.source_buffer
        box = drawn.stretches[-1].target if into else drawn.stretches[0].source
        rect = buffer_places(self.scene, box, self.order).get(name)
        if rect is None:
            return line
        ports = self.scene.ports[box, name]
        place = _placed(self.order, ("ports", box, name), ports.index(drawn.port(into=into)))
        x = rect.cx + (place - (len(ports) - 1) / 2) * min(PORT, rect.w / len(ports))
        return [*line[:-2], (x, line[-2][1]), (x, rect.bottom)]

    def _polyline(
        self, drawn: DrawnHop, lines: list[tuple[Point, ...]], onward: list[tuple[Point, ...]]
    ) -> Polyline:
        """Return a hop's polyline from its lines along wires and those of the hop after it."""
        box_of = self.scene.grouping.box_of
        hop, look = drawn.hop, drawn.route.look
        source, target = box_of[hop.source], box_of[hop.target]
        if not lines:
            copy, badge = self._copy(source, hop)
            return Polyline(
                look, hop.label, source, target, (copy,) if copy else (), ((None, badge),)
            )
        passages = {(passage.entry, passage.leave): passage for passage in drawn.passages}
        wires = [stretch.wire for stretch in drawn.stretches]
        pieces: list[list[Point]] = [list(lines[0])]
        for (entry, leave), line in zip(pairwise(wires), lines[1:], strict=True):
            if (entry, leave) in passages:
                passage = passages[entry, leave]
                pieces[-1] += self._through(drawn, passage, pieces[-1][-1], line[0])
                pieces[-1] += line
            else:
                pieces.append(list(line))
        if drawn.onward and onward:
            passage = passages[wires[-1], drawn.onward.wire]
            start = onward[0][0]
            pieces[-1] += [*self._through(drawn, passage, pieces[-1][-1], start), start]
        badges: list[tuple[WireKey | None, Point]] = []
        for wire, line in zip(wires, lines, strict=True):
            badges.append((wire, _badge(self.scene.layout.tracks[wire], line)))
        return Polyline(
            look,
            hop.label,
            source,
            target,
            tuple(tuple(piece) for piece in pieces),
            tuple(badges),
            tuple(zip(wires, lines, strict=True)),
            ends=not (drawn.onward and onward),
        )

    def _place(self, group: Group, line: Group) -> int:
        """Return the place of a line in its group; hops that are one line have one."""
        numbers = self.used.setdefault(group, {})
        return _placed(self.order, group, numbers.setdefault(line, len(numbers)))

    def _through(
        self, drawn: DrawnHop, passage: Passage, entry: Point, leave: Point
    ) -> list[Point]:
        """Return the points inside a bar, between the ends of two wires at its border."""
        rect = self.scene.inner(passage.bar)
        lane = self._place(("lanes", passage.bar, passage.strip), drawn.lane())
        down = LANE * (lane + 0.5) + 2
        y = rect.y + down if passage.strip == "top" else rect.bottom - down
        if abs(entry[0] - leave[0]) < 1:
            return []
        corners = self._corners(passage.bar, leave, y)
        return [*self._corners(passage.bar, entry, y), *reversed(corners)]

    def _corners(self, bar: str, point: Point, y: float) -> list[Point]:
        """Return the corners between a point on a bar's border and a lane inside."""
        rect, inner = self.scene.layout.boxes[bar], self.scene.inner(bar)
        for side, x in ((rect.x, inner.x + _STUB), (rect.right, inner.right - _STUB)):
            if abs(point[0] - side) < 1:
                return [(x, point[1]), (x, y)]
        return [(point[0], y)]

    def _copy(self, box: str, hop: Hop) -> tuple[tuple[Point, ...], Point]:
        """Return the line of a copy inside one memory, and where its number stands."""
        places = buffer_places(self.scene, box, self.order)
        source, target = hop.source_buffer or DATA, hop.target_buffer or DATA
        if not {source, target} <= set(places):
            rect = self.scene.layout.boxes[box]
            return (), (rect.right - 8, rect.y)
        start, stop = places[source], places[target]
        if start.x < stop.x:
            return ((start.right, start.cy), (stop.x, stop.cy)), (start.right + _COPY, start.cy)
        return ((start.x, start.cy), (stop.right, stop.cy)), (start.x - _COPY, start.cy)


def beside(points: Sequence[Point], offset: float) -> list[Point]:
    """Return a line so far beside another: to the right of an upright one, below a level one.

    Where the other turns, it keeps to the same side of it.

    Examples
    --------
    >>> beside([(0, 0), (0, 10), (20, 10), (20, 30)], 4.0)
    [(4.0, 0.0), (4.0, 6.0), (24.0, 6.0), (24.0, 30.0)]
    """
    (x, y), (next_x, next_y) = points[:2]
    if len(points) == 2 and y == next_y:  # noqa: PLR2004  (a level line)
        return [(x, y + offset), (next_x, next_y + offset)]
    side = offset if points[-1][1] >= y else -offset
    shifts = [
        (0.0, side if end_x < x else -side) if y == end_y else (side if end_y > y else -side, 0.0)
        for (x, y), (end_x, end_y) in pairwise(points)
    ]
    at_ends = zip([shifts[0], *shifts], [*shifts, shifts[-1]], strict=True)
    return [
        (x + (before[0] or after[0]), y + (before[1] or after[1]) * (before != after))
        for (x, y), (before, after) in zip(points, at_ends, strict=True)
    ]


def _badge(track: Track, line: Sequence[Point]) -> Point:
    """Return where a hop's number stands on its line along a wire: beside the wire's label."""
    if track.across:
        (x, y), (end_x, _) = max(pairwise(line), key=lambda ends: abs(ends[0][0] - ends[1][0]))
        return ((x + end_x) / 2, y)
    back = _BACK if line[-1][1] > line[0][1] else -_BACK
    y = track.label[1] - back
    for (x, start), (end_x, stop) in pairwise(line):
        if abs(x - end_x) < 1 and min(start, stop) <= y <= max(start, stop):
            return (x, y)
    (x, start), (end_x, stop) = line[0], line[-1]
    return ((x + end_x) / 2, (start + stop) / 2)


# --- the order with the fewest crossings ----------------------------------------------------------


def _least_crossings(tracer: _Tracer) -> Order:
    """Return the order in which the fewest hops of a laid-out scene cross."""
    best: Order = {}
    least = _cost(tracer, best)
    if not least:
        return best
    scene = tracer.scene
    sizes: dict[Group, int] = {("buffers", box): len(names) for box, names in scene.buffers.items()}
    for bar, counts in scene.lanes.items():
        sizes |= {
            ("lanes", bar, strip): n for strip, n in zip(("top", "bottom"), counts, strict=True)
        }
    sizes |= {("wire", wire): count for wire, count in scene.uses.items()}
    sizes |= {("ports", *buffer): len(ports) for buffer, ports in scene.ports.items()}
    sizes = {group: size for group, size in sizes.items() if size > 1}
    if math.prod(math.factorial(size) for size in sizes.values()) <= _TRIES:
        every = product(*(_orders(size) for size in sizes.values()))
        orders = (dict(zip(sizes, places, strict=True)) for places in every)
        return min(orders, key=lambda order: _cost(tracer, order))
    pairs = math.comb(len(scene.hops), 2)
    tries = iter(range(min(_TRIES, _PAIRS // max(pairs, 1))))
    backwards: Order = {
        ("buffers", box): tuple(range(len(names)))[::-1] for box, names in scene.buffers.items()
    }
    for start in ({}, backwards):
        order, cost = _improved(tracer, start, sizes, tries)
        if cost < least:
            best, least = order, cost
    return best


def _improved(
    tracer: _Tracer, start: Order, sizes: Mapping[Group, int], tries: Iterator[int]
) -> tuple[Order, int]:
    """Change an order, a group or two at a time, while that helps; return it and what it costs."""
    order, least = dict(start), _cost(tracer, start)
    before = least + 1
    while 0 < least < before:
        before = least
        for change in _changes(sizes):
            if not least or next(tries, None) is None:
                return order, least
            cost = _cost(tracer, order | change)
            if cost < least:
                order, least = order | change, cost
    return order, least


def _changes(sizes: Mapping[Group, int]) -> Iterator[Order]:
    """Yield what may be changed at once: the order of one group, then those of two."""
    for group, size in sizes.items():
        for places in _orders(size):
            yield {group: places}
    for (a, a_size), (b, b_size) in combinations(sizes.items(), 2):
        for a_places, b_places in product(_orders(a_size), _orders(b_size)):
            yield {a: a_places, b: b_places}


def _orders(size: int) -> Iterator[tuple[int, ...]]:
    """Yield orders of so many: all of a few, else as they come, backwards, or two swapped."""
    places = tuple(range(size))
    if size <= 4:  # noqa: PLR2004
        yield from permutations(places)
        return
    yield places
    yield places[::-1]
    for place in range(min(size - 1, _SWAPS)):
        yield (*places[:place], place + 1, place, *places[place + 2 :])


def _cost(tracer: _Tracer, order: Order) -> int:
    """Return how bad an order is: what crosses, and how many buffers copies run over."""
    cost = sum(
        _SAME_ROUTE if a.look == b.look else _TWO_ROUTES
        for a, b in crossings(tracer.polylines(order))
    )
    for drawn in tracer.scene.hops:
        hop, box = drawn.hop, tracer.scene.grouping.box_of[drawn.hop.source]
        places = buffer_places(tracer.scene, box, order)
        if not drawn.stretches and {hop.source_buffer, hop.target_buffer} <= set(places):
            apart = abs(places[hop.source_buffer].x - places[hop.target_buffer].x)
            cost += _SAME_ROUTE * (round(apart / (BUFFER[0] + BUFFER_GAP)) - 1)
    return cost


# --- what crosses ---------------------------------------------------------------------------------


def crossings(polylines: tuple[Polyline, ...]) -> Iterator[tuple[Polyline, Polyline]]:
    """Yield two polylines for each time that they cross, or run where they look like one.

    Hops of one route with one number may join; a part that they share counts once.
    """
    drawn: set[object] = set()
    segments = []
    for polyline in polylines:
        pairs = {pair: None for piece in polyline.pieces for pair in pairwise(piece)}
        new = [p for p in pairs if p[0] != p[1] and (polyline.look, polyline.label, p) not in drawn]
        drawn |= {(polyline.look, polyline.label, pair) for pair in new}
        segments.append(new)
    for (p, of_p), (q, of_q) in combinations(zip(polylines, segments, strict=True), 2):
        joined = (p.look, p.label) == (q.look, q.label)
        for (a, b), (c, d) in product(of_p, of_q):
            apart = (  # by what is round the two lines
                max(a[axis], b[axis]) + _NEAR < min(c[axis], d[axis])
                or max(c[axis], d[axis]) + _NEAR < min(a[axis], b[axis])
                for axis in (0, 1)
            )
            if any(apart):
                continue
            cross = _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0
            if cross or (not joined and _cover(a, b, c, d)):
                yield p, q


def _side(a: Point, b: Point, c: Point) -> int:
    """Return on which side of a line a point is, 0 within half a point of it."""
    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    length = max(abs(b[0] - a[0]), abs(b[1] - a[1]))
    return 0 if abs(area) <= length / 2 else (1 if area > 0 else -1)


def _cover(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two upright or two level lines run so near each other that they look like one."""
    for along, aside in ((1, 0), (0, 1)):
        if abs(a[aside] - b[aside]) < 1 and abs(c[aside] - d[aside]) < 1:
            low = max(min(a[along], b[along]), min(c[along], d[along]))
            high = min(max(a[along], b[along]), max(c[along], d[along]))
            return abs(a[aside] - c[aside]) < _NEAR and high - low > _ALONG
    return False
