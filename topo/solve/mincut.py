"""The most that can go from some nodes to others at once, and the cut that holds it there.

For a demand that may use every way at once, whatever routing does, this is the end of the ladder:
no allocation of rates to routes can carry more. Capacities stay the floats they are, so the flow
and the cut that proves it are equal but for rounding. The algorithm is Dinic's [1]_.

References
----------
.. [1] E. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
   estimation", Soviet Mathematics Doklady 11, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from topo.errors import Finding, SolverError, UnboundedError
from topo.records import dataclass
from topo.solve.certificates import certify_cut, require
from topo.solve.system import plain

_MANY = 20_000
"""Arcs from which compiling pays."""
_NOTHING = 1e-14
"""What is left of an arc, relative to its capacity, when rounding is all that is left."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A largest flow and a smallest cut: each proves the other.

    Parameters
    ----------
    value
        Bytes/s of the flow; the capacities of the cut's arcs sum to it.
    flows
        Bytes/s on each arc.
    arcs
        The arcs of the cut, ascending: full, and the only ones from the sources' side to the
        other.
    near
        The nodes on the sources' side, ascending.
    """

    value: float
    flows: tuple[float, ...]
    arcs: tuple[int, ...]
    near: tuple[int, ...]


def min_cut(
    tails: Sequence[int],
    heads: Sequence[int],
    capacities: Sequence[float],
    *,
    sources: Collection[int],
    sinks: Collection[int],
) -> Cut:
    """Find a largest flow between two sets of nodes, and the smallest cut nearest to the sources.

    Parameters
    ----------
    tails, heads
        The nodes (from 0) that each arc leaves and enters; parallel arcs are welcome.
    capacities
        Bytes/s of each arc, zero or more; `math.inf` for one that never binds.
    sources, sinks
        Nodes, at least one of each, none in both.

    Returns
    -------
    Cut
        Equal input gives equal output; among several smallest cuts, the one nearest to the sources.

    Raises
    ------
    SolverError
        Nonsense in the numbers.
    UnboundedError
        Some way from a source to a sink has no finite arc.

    Examples
    --------
    Two ways, of 10 and 4, into an arc of 12:

    >>> cut = min_cut([0, 0, 1, 2], [1, 2, 2, 3], [4.0, 10.0, 4.0, 12.0], sources=[0], sinks=[3])
    >>> cut.value, cut.arcs
    (12.0, (3,))
    """
    tails, heads, capacities = plain(tails), plain(heads), plain(capacities)
    count = _check(tails, heads, capacities, sources, sinks)
    graph = _Residual(count + 2, len(tails) + len(sources) + len(sinks))
    for tail, head, capacity in zip(tails, heads, capacities, strict=True):
        graph.add(tail, head, capacity)
    for source in sorted(sources):
        graph.add(count, source, math.inf)
    for sink in sorted(sinks):
        graph.add(sink, count + 1, math.inf)
    value, reached = graph.push(count, count + 1)
    if value == math.inf:
        raise UnboundedError(
            Finding("unbounded-demand", "some way from a source to a sink has no finite arc")
        )
    crossing = [
        arc
        for arc in range(len(tails))
        if reached[tails[arc]] and not reached[heads[arc]] and capacities[arc] > 0.0
    ]
    cut = Cut(
        # The cut's own sum is exact, the flow's is not quite.
        value=math.fsum(capacities[arc] for arc in crossing),
        flows=tuple(float(graph.rest[2 * arc + 1]) for arc in range(len(tails))),
        arcs=tuple(crossing),
        near=tuple(node for node in range(count) if reached[node]),
    )
    complaints = certify_cut(tails, heads, capacities, cut, sources=sources, sinks=sinks)
    require(complaints, "flow and the cut")
    return cut


def _check(
    tails: Sequence[int],
    heads: Sequence[int],
    capacities: Sequence[float],
    sources: Collection[int],
    sinks: Collection[int],
) -> int:
    """Refuse nonsense; give the number of nodes."""
    wrong = ""
    if not len(tails) == len(heads) == len(capacities):
        wrong = "the arcs' columns differ in length"
    elif not sources or not sinks or set(sources) & set(sinks):
        wrong = "expected sources and sinks, and none that is both"
    elif min(*tails, *heads, *sources, *sinks) < 0:
        wrong = "a node has a negative number"
    else:
        bad = [arc for arc, capacity in enumerate(capacities) if not capacity >= 0.0]
        if bad:
            wrong = f"the capacity of arc {bad[0]} is {capacities[bad[0]]!r}; expected zero or more"
    if wrong:
        raise SolverError(Finding("bad-graph", wrong))
    return max(*tails, *heads, *sources, *sinks) + 1


class _Residual:
    """What is left of each arc, and what could be taken back: arc `2 i` and arc ``2 i + 1``."""

    def __init__(self, nodes: int, arcs: int) -> None:
        self.nodes, self.arcs = nodes, arcs
        self.to: list[int] = []
        self.rest: Any = []

    def add(self, tail: int, head: int, capacity: float) -> None:
        """Add an arc."""
        self.to += [head, tail]
        self.rest += [capacity, 0.0]

    def push(self, source: int, sink: int) -> tuple[float, Sequence[bool]]:
        """Push all that goes; give its rate and which nodes could still be reached."""
        leaving: list[list[int]] = [[] for _ in range(self.nodes)]
        for arc in range(len(self.to)):
            leaving[self.to[arc ^ 1]].append(arc)
        starts = [0, *accumulate(map(len, leaving))]
        order = [arc for arcs in leaving for arc in arcs]
        least = [_NOTHING * capacity if capacity < math.inf else 0.0 for capacity in self.rest[::2]]
        levels, *scratch = ([0] * self.nodes for _ in range(4))
        columns: list[Any] = [self.to, self.rest, least, starts, order, levels, *scratch]
        if self.arcs < _MANY:
            value = _push_all(columns, source, sink)
        else:
            value, self.rest, levels = _push_all_compiled(columns, source, sink)
        return value, [level >= 0 for level in levels]


def _push_all_compiled(
    columns: list[Any], source: int, sink: int
) -> tuple[float, list[float], list[int]]:
    import numpy as np

    arrays: Any = [np.asarray(column) for column in columns]
    value = _compiled()(tuple(arrays), source, sink)
    return float(value), arrays[1].tolist(), arrays[5].tolist()


@cache
def _compiled() -> Any:
    from topo.solve.arrays import compiled

    return compiled(_push_all)


def _push_all(columns: Any, source: int, sink: int) -> float:  # noqa: C901, PLR0912
    """Push flow along shortest ways until the sink is out of reach.

    One long function on lists or arrays, so that it can be compiled as it is. At the end `levels`
    is -1 for the nodes out of reach.
    """
    to, rest, least, starts, order, levels, place, queue, path = columns
    total = 0.0
    while True:
        for node in range(len(levels)):
            levels[node] = -1
            place[node] = starts[node]
        levels[source] = 0
        queue[0] = source
        done, queued = 0, 1
        while done < queued:
            node = queue[done]
            done += 1
            for at in range(starts[node], starts[node + 1]):
                arc = order[at]
                if levels[to[arc]] < 0 and rest[arc] > least[arc >> 1]:
                    levels[to[arc]] = levels[node] + 1
                    queue[queued] = to[arc]
                    queued += 1
        if levels[sink] < 0:
            return total
        # Depth first, along arcs that go one level up; dead ends are not entered again.
        node, depth = source, 0
        while True:
            if node == sink:
                amount = math.inf
                for step in range(depth):
                    amount = min(amount, rest[path[step]])
                if amount == math.inf:
                    return math.inf
                total += amount
                back = depth
                for step in range(depth - 1, -1, -1):
                    arc = path[step]
                    rest[arc] -= amount
                    rest[arc ^ 1] += amount
                    if rest[arc] <= least[arc >> 1]:
                        back = step
                depth = back
                node = to[path[depth] ^ 1]
                continue
            if place[node] < starts[node + 1]:
                arc = order[place[node]]
                if levels[to[arc]] == levels[node] + 1 and rest[arc] > least[arc >> 1]:
                    path[depth] = arc
                    depth += 1
                    node = to[arc]
                else:
                    place[node] += 1
            else:
                if node == source:
                    break
                depth -= 1
                node = to[path[depth] ^ 1]
                place[node] += 1
