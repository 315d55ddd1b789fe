"""Which order of what is side by side lets no two hops cross.

Buffers of a memory, lanes of a bar, hops along one wire, ports of a buffer: each group may stand
in any order. Many pictures have no crossing as they come; in the others all orders are tried where
they are few. Where they are many, one group after the other, then two at once, are put in every
order, as long as that helps: once from the order that they come in, once with all buffers the other
way round.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise, permutations, product
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import BUFFER, BUFFER_GAP
from topo.views.diagram.polylines import Tracer, buffer_places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.views.diagram.geometry import Point
    from topo.views.diagram.lanes import Order
    from topo.views.diagram.polylines import Course
    from topo.views.diagram.scene import Scene


_TRIES = 300  # orders of a whole picture
_SWAPS = 24  # orders of one large group
_OWN, _OTHERS = 100, 1  # how bad a crossing of one route is, and one of two routes
_NEAR, _ALONG = 6.0, 8.0  # lines as near as this, for longer than that, look like one


def untangled(scene: Scene) -> Order:
    """Return the order in which the fewest hops of a laid-out scene cross."""
    tracer = Tracer(scene)
    best: Order = {}
    least = _cost(tracer, best)
    if not least:
        return best
    groups = _groups(tracer)
    if math.prod(math.factorial(count) for count in groups.values()) <= _TRIES:
        every = product(*(_orders(count) for count in groups.values()))
        orders = (dict(zip(groups, places, strict=True)) for places in every)
        return min(orders, key=lambda order: _cost(tracer, order))
    tries = iter(range(_TRIES))
    backwards: Order = {
        ("buffers", box): tuple(range(len(own)))[::-1] for box, own in scene.buffers.items()
    }
    for start in ({}, backwards):
        order, cost = _improved(tracer, start, groups, tries)
        if cost < least:
            best, least = order, cost
    return best


def _groups(tracer: Tracer) -> dict[tuple[object, ...], int]:
    """Return the groups that are side by side, with how many each has."""
    lanes = Counter((one.bar, one.strip) for way in tracer.ways for one in way.passes)
    found: dict[tuple[object, ...], int] = {
        ("buffers", box): len(own) for box, own in tracer.scene.buffers.items()
    }
    found |= {("lanes", *strip): count for strip, count in lanes.items()}
    found |= {("wire", track): count for track, count in tracer.uses.items()}
    found |= {("ports", *buffer): len(ports) for buffer, ports in tracer.ports.items()}
    return {key: count for key, count in found.items() if count > 1}


def _improved(
    tracer: Tracer, start: Order, groups: dict[tuple[object, ...], int], tries: Iterator[int]
) -> tuple[Order, int]:
    """Change an order, a group or two at a time, while that helps; return it and what it costs."""
    order, least = dict(start), _cost(tracer, start)
    before = least + 1
    while 0 < least < before:
        before = least
        for change in _changes(groups):
            if not least or next(tries, None) is None:
                return order, least
            cost = _cost(tracer, order | change)
            if cost < least:
                order, least = order | change, cost
    return order, least


def _changes(groups: dict[tuple[object, ...], int]) -> Iterator[Order]:
    """Yield what may be changed at once: the order of one group, then those of two."""
    for key, count in groups.items():
        for places in _orders(count):
            yield {key: places}
    for (one, count), (other, many) in combinations(groups.items(), 2):
        for mine, yours in product(_orders(count), _orders(many)):
            yield {one: mine, other: yours}


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    """Yield orders of so many: all of a few, else as they come, backwards, or two swapped."""
    places = tuple(range(count))
    if count <= 4:  # noqa: PLR2004
        yield from permutations(places)
        return
    yield places
    yield places[::-1]
    for one in range(min(count - 1, _SWAPS)):
        yield (*places[:one], one + 1, one, *places[one + 2 :])


def _cost(tracer: Tracer, order: Order) -> int:
    found = tracer.courses(order)
    return sum(
        _OWN if one.look == other.look else _OTHERS for one, other in tangles(found)
    ) + _OWN * _leaps(tracer, order)


def _leaps(tracer: Tracer, order: Order) -> int:
    """Return how many buffers copies run over, from one buffer to one that is not beside it."""
    found = 0
    for way in tracer.ways:
        box = tracer.scene.grouping.box_of[way.hop.source]
        places = buffer_places(tracer.scene, box, order)
        if not way.moves and {way.hop.source_buffer, way.hop.target_buffer} <= set(places):
            start, stop = places[way.hop.source_buffer], places[way.hop.target_buffer]
            found += round(abs(start.x - stop.x) / (BUFFER[0] + BUFFER_GAP)) - 1
    return found


def tangles(drawn: tuple[Course, ...]) -> Iterator[tuple[Course, Course]]:
    """Yield two courses for each time that they cross, or run where they look like one.

    Hops of one route with one number may join.
    """
    lines = [tuple(_segments(course)) for course in drawn]
    for (one, mine), (other, yours) in combinations(zip(drawn, lines, strict=True), 2):
        joined = (one.look, one.label) == (other.look, other.label)
        for own, its in product(mine, yours):
            if not _apart(own, its) and (_cross(*own, *its) or (not joined and _cover(*own, *its))):
                yield one, other


def _segments(course: Course) -> Iterator[tuple[Point, Point]]:
    for piece in course.pieces:
        yield from (pair for pair in pairwise(piece) if pair[0] != pair[1])


def _apart(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Whether two lines are too far from each other to meet, judged by what is round them."""
    (a, b), (c, d) = one, other
    return any(
        max(a[axis], b[axis]) + _NEAR < min(c[axis], d[axis])
        or max(c[axis], d[axis]) + _NEAR < min(a[axis], b[axis])
        for axis in (0, 1)
    )


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two lines cross at a point that is inside both."""
    sides = (_turn(a, b, c), _turn(a, b, d), _turn(c, d, a), _turn(c, d, b))
    return sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0


def _turn(a: Point, b: Point, c: Point) -> int:
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
