"""Courses of the wires that cannot run straight: round the boxes in between, through free columns.

A picture's boxes stand in rows, with a gap above each row and one below the last. A wire that would
run through a box turns in the gaps and passes each row where nothing stands; of all such courses
it takes the one with the least way to the side and the fewest turns.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import accumulate, chain, pairwise, product

from topo.records import dataclass

Span = tuple[float, float]

_CLEAR = 4.0  # between a wire and a box that it passes
_TURN = 60.0  # a turn is as bad as so many points to the side
_OVER_LABEL = 80.0  # and so is a way through the text beside another wire
_ALONGSIDE = 3  # so many wires of one box run side by side before further ones join them
_NARROW = 15.0  # and between two boxes that are near each other, and along a frame
_SMALL = 1e-6
_INSET = 7.0  # what the spans of a wire's ends leave free at a box's corner, and a bit


@dataclass(frozen=True, slots=True)
class Turn:
    """A level part of a course: from where to where, in which gap, how far below its lanes' top."""

    gap: int
    start: float
    stop: float
    down: float = 0.0


@dataclass(frozen=True, slots=True)
class Course:
    """A wire's way down from `start` at its upper end, or along its row: where it turns."""

    start: float
    turns: tuple[Turn, ...] = ()

    @property
    def xs(self) -> tuple[float, ...]:
        """Every x at which it runs up or down."""
        return (self.start, *(turn.stop for turn in self.turns))


@dataclass(frozen=True, slots=True)
class Post:
    """An upright part of a wire where it passes a row; wires of one `bar` may join."""

    x: float
    breadth: float
    bar: str = ""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A course whose ends and lanes are still open: its gaps, and where it passes between them."""

    gaps: range
    ways: tuple[float, ...]
    start: Span
    stop: Span
    breadth: float
    bar: str


class Courses:
    """Lays courses one after the other; each keeps clear of the boxes, labels and wires before.

    Parameters
    ----------
    rows
        The spans of the boxes in each row, from top to bottom.
    labels
        The spans of the labels in each gap; gap `g` is above row `g`.
    edges
        Where frames begin and end: a course does not run along them.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[Span]],
        labels: dict[int, list[Span]],
        edges: Sequence[float],
    ) -> None:
        self.rows, self.labels, self.edges = rows, labels, edges
        self.posts: list[list[Post]] = [[] for _ in rows]
        self.heights: list[float] = [0.0] * (len(rows) + 1)  # of the lanes in each gap
        self._drafts: list[_Draft] = []

    def straight(self, x: float, upper: int, lower: int, breadth: float) -> bool:
        """Whether a wire can go straight down from one row to another; it is then remembered."""
        between = range(upper + 1, lower)
        boxes = chain.from_iterable(self.rows[row] for row in between)
        if any(left - _CLEAR / 2 < x < right + _CLEAR / 2 for left, right in boxes):
            return False
        for row in between:
            self.posts[row].append(Post(x, breadth))
        return True

    def add(self, gaps: range, start: Span, stop: Span, breadth: float, bar: str) -> None:
        """Add a wire that turns in some of these gaps.

        It begins and ends somewhere in two spans; `bar` is the box where it has no place of its
        own, so that it may join others that lead there.
        """
        between = gaps[:-1]  # the row below each gap but the last
        mates = {row: [post.x for post in self.posts[row] if post.bar == bar] for row in between}
        places = (self._places(row, breadth).union(mates[row]) for row in between)
        xs = sorted(set[float]().union(start, stop, *places))
        costs = [_away(x, start) for x in xs]
        before: list[list[int]] = []  # where each place of a row is reached from
        for row in between:
            costs, origins = _moved(xs, costs)
            tolls = self._tolls(row, xs, breadth, mates[row])
            costs = [cost + toll for cost, toll in zip(costs, tolls, strict=True)]
            before.append(origins)
        totals = [cost + _away(x, stop) for x, cost in zip(xs, costs, strict=True)]
        passed = [min(range(len(xs)), key=totals.__getitem__)]
        for origins in reversed(before[1:]):
            passed.append(origins[passed[-1]])
        ways = tuple(xs[place] for place in reversed(passed))
        for row, x in zip(between, ways, strict=False):
            self.posts[row].append(Post(x, breadth, bar))
        self._drafts.append(_Draft(gaps, ways, start, stop, breadth, bar))

    def finished(self) -> list[Course]:
        """Return the courses in the order in which they were added, side by side in their gaps."""
        lines = self._landed()
        lanes: dict[int, list[_Lane]] = {}
        places: list[list[tuple[int, _Lane]]] = []  # where each of them turns
        for draft, line in zip(self._drafts, lines, strict=True):
            places.append([])
            for gap, (x, to) in zip(draft.gaps, pairwise(line), strict=True):
                if x != to:
                    lane = _free_lane(lanes.setdefault(gap, []), (x, to), draft)
                    places[-1].append((gap, lane))
        downs: dict[int, float] = {}
        for gap, in_gap in lanes.items():
            for lane in _least_crossings(in_gap):
                downs[id(lane)] = self.heights[gap] + lane.breadth / 2
                self.heights[gap] += lane.breadth
        courses = []
        for line, turns in zip(lines, places, strict=True):
            moves = ((x, to) for x, to in pairwise(line) if x != to)
            courses.append(
                Course(
                    line[0],
                    tuple(
                        Turn(gap, x, to, downs[id(lane)])
                        for (gap, lane), (x, to) in zip(turns, moves, strict=True)
                    ),
                )
            )
        return courses

    def _landed(self) -> list[tuple[float, ...]]:
        """Return every x of each draft; where several end at a corner, the outermost ends there."""
        corners: dict[tuple[Span, bool], dict[float, float]] = {}
        for draft in self._drafts:
            for span, x in ((draft.start, draft.ways[0]), (draft.stop, draft.ways[-1])):
                if not span[0] <= x <= span[1]:
                    at_corner = corners.setdefault((span, x < span[0]), {})
                    at_corner[x] = max(draft.breadth + 2, at_corner.get(x, 0.0))
        ends: dict[tuple[Span, float], float] = {}
        for (span, left), at_corner in corners.items():
            room = 0.0
            for x in sorted(at_corner, reverse=not left):
                step = min(max(room + at_corner[x] / 2 - _INSET, 0.0), span[1] - span[0])
                ends[span, x] = span[0] + step if left else span[1] - step
                room += at_corner[x]
        lines = []
        for draft in self._drafts:
            first, last = draft.ways[0], draft.ways[-1]
            ways = draft.ways if len(draft.gaps) > 1 else ()
            start, stop = ends.get((draft.start, first), first), ends.get((draft.stop, last), last)
            lines.append((start, *ways, stop))
        return lines

    # --- where a row can be passed --------------------------------------------------------------

    def _places(self, row: int, breadth: float) -> set[float]:
        """Return the places beside boxes and wires where a wire may pass a row."""
        boxes = [(left - _CLEAR, right + _CLEAR) for left, right in self.rows[row]]
        posts = ((post.x, post.breadth / 2) for post in self.posts[row])
        walls = [*boxes, *((x - half, x + half) for x, half in posts)]
        walls += [(x - _CLEAR / 2, x + _CLEAR / 2) for x in self.edges]
        walls += self._labels_beside(row)
        return {x for left, right in walls for x in (left - breadth / 2, right + breadth / 2)}

    def _labels_beside(self, row: int) -> list[Span]:
        """Return the spans of the labels in the gaps above and below a row."""
        return [*self.labels.get(row, []), *self.labels.get(row + 1, [])]

    def _tolls(
        self, row: int, xs: Sequence[float], breadth: float, mates: Sequence[float]
    ) -> Iterator[float]:
        """Yield how bad it is to pass a row at each x, infinite where something stands."""
        room = _CLEAR + breadth / 2 - _SMALL
        reach = room + breadth + _CLEAR  # what is further away is not looked at
        boxes = sorted(self.rows[row])
        lefts = [left for left, _ in boxes]
        rights = list(accumulate((right for _, right in boxes), max))
        posts = sorted((post.x, post.breadth) for post in self.posts[row])
        wide = (max((each for _, each in posts), default=0.0) + breadth) / 2 + _CLEAR
        post_xs = [x for x, _ in posts]
        spans = [(left, right) for left, right in self._labels_beside(row) if left < right]
        starts, ends = sorted(left for left, _ in spans), sorted(right for _, right in spans)
        for x in xs:
            if x in mates[_ALONGSIDE - 1 :]:
                yield -_TURN / 2
                continue
            around = boxes[bisect_left(rights, x - reach) : bisect_right(lefts, x + reach)]
            sides = [(left - x, x - right) for left, right in around]
            beside = posts[bisect_left(post_xs, x - wide) : bisect_right(post_xs, x + wide)]
            if any(max(pair) < room for pair in sides) or any(
                abs(at - x) < (its + breadth) / 2 - _SMALL for at, its in beside
            ):
                yield math.inf
                continue
            near = sum(0 <= distance < room + breadth for pair in sides for distance in pair)
            narrow = near > 1 or any(abs(x - edge) < breadth / 2 for edge in self.edges)
            crossed = bisect_left(starts, x) - bisect_right(ends, x)
            yield _OVER_LABEL * crossed + _NARROW * narrow


# --- lanes ----------------------------------------------------------------------------------------


@dataclass
class _Lane:
    """The level parts side by side at one height: ``(from x, to x)``, and the bar of each."""

    breadth: float
    runs: list[tuple[float, float, str]] = field(default_factory=list)


def _free_lane(lanes: list[_Lane], run: Span, draft: _Draft) -> _Lane:
    """Return the first lane that is free from one x to another, or that of a wire to join."""
    breadth, bar = draft.breadth, draft.bar
    left, right = min(run), max(run)

    def fits(lane: _Lane) -> bool:
        apart = (
            max(x, to) + breadth <= left or right + breadth <= min(x, to) for x, to, _ in lane.runs
        )
        return lane.breadth >= breadth and all(apart)

    joined = (
        lane for lane in lanes if any(b == bar and {x, to} & {*run} for x, to, b in lane.runs)
    )
    lane = next(joined, None) or next(filter(fits, lanes), None)
    if lane is None:
        lane = _Lane(breadth)
        lanes.append(lane)
    lane.runs.append((*run, bar))
    return lane


def _least_crossings(lanes: list[_Lane]) -> list[_Lane]:
    """Return lanes in an order from top to bottom in which few of their wires cross."""

    def crossed(upper: _Lane, lower: _Lane) -> int:
        pairs = list(product(upper.runs, lower.runs))
        down = sum(min(b[:2]) < a[1] < max(b[:2]) for a, b in pairs)  # where the upper ones go on
        up = sum(min(a[:2]) < b[0] < max(a[:2]) for a, b in pairs)  # where the lower ones come from
        return down + up

    ordered = list(lanes)
    for _ in lanes:
        for place, (a, b) in enumerate(pairwise(list(ordered))):
            if [ordered[place], ordered[place + 1]] == [a, b] and crossed(b, a) < crossed(a, b):
                ordered[place : place + 2] = [b, a]
    return ordered


# --- the cheapest way -----------------------------------------------------------------------------


def _away(x: float, span: Span) -> float:
    """Return how bad it is to be at an x and not in a span."""
    left, right = span
    return 0.0 if left <= x <= right else _TURN + max(left - x, x - right)


def _moved(xs: list[float], costs: list[float]) -> tuple[list[float], list[int]]:
    """Return what each x costs after a turn, where that helps, and which x it is reached from."""
    best, origins = list(costs), list(range(len(xs)))

    def sweep(places: Iterator[int]) -> None:
        cost, origin, x = math.inf, 0, 0.0
        for place in places:
            cost += abs(xs[place] - x) if math.isfinite(cost) else 0.0
            x = xs[place]
            if cost + _TURN < best[place]:
                best[place], origins[place] = cost + _TURN, origin
            if costs[place] < cost:
                cost, origin = costs[place], place

    sweep(iter(range(len(xs))))
    sweep(iter(reversed(range(len(xs)))))
    return best, origins
