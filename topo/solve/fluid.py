"""When each demand is done, if rates are max-min fair at every moment.

A fluid simulation: between two events (a demand arrives, or has all its bytes) rates are constant;
at each event they are found anew, so that as some finish, the others speed up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace

from topo.errors import Finding, SolverError
from topo.flows.demands import System
from topo.records import dataclass
from topo.solve.certificates import certify_timeline, require
from topo.solve.maxmin import max_min_unchecked
from topo.solve.system import check, plain

_SAME_TIME = 1e-12
"""Events nearer than this, relative to the time since the start, are one."""
_ANEW_ENTRIES = 50_000
"""So many entries of the use matrix may be solved anew in plain Python, over all events together,
before those are left alone that an event does not touch: that has to be compiled first."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time during which nothing changes.

    Parameters
    ----------
    start, end
        Seconds.
    demands
        Those that run, ascending.
    rates
        Bytes/s of each of them.
    stops
        For each of them the full resources that stop it (see `Allocation`).
    """

    start: float
    end: float
    demands: tuple[int, ...]
    rates: tuple[float, ...]
    stops: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each demand is done.

    Parameters
    ----------
    finishes
        Seconds at which each demand has all its bytes.
    spans
        What ran in between, in order, without the times at which nothing ran; empty if they were
        not kept.
    certified
        Whether `topo.solve.certificates` has checked every span; it cannot where none were found.
    """

    finishes: tuple[float, ...]
    spans: tuple[Span, ...] = ()
    certified: bool = field(default=False, compare=False)

    @property
    def end(self) -> float:
        """Seconds until all are done."""
        return max(self.finishes, default=0.0)


def complete(
    system: System,
    sizes: Sequence[float],
    arrivals: Sequence[float] | None = None,
    *,
    spans: bool | None = None,
) -> Timeline:
    """Simulate until every demand has its bytes.

    Parameters
    ----------
    system
        Capacities and limits in bytes/s.
    sizes
        Bytes of each demand; one of zero bytes is done when it arrives.
    arrivals
        Seconds at which each demand starts; all at 0 when not given.
    spans
        Whether to keep what ran when: with many demands and many events, this takes much longer.
        When not given, spans are kept if they are few for the number of demands.

    Returns
    -------
    Timeline
        Seconds.

    Raises
    ------
    SolverError
        Nonsense in the system, a size or an arrival.
    UnboundedError
        A demand meets no finite resource and has no limit of its own.

    Examples
    --------
    Two demands share 10 B/s; when the first has its 20 bytes, the second has all of it:

    >>> from topo.flows.demands import System
    >>> timeline = complete(System.of([10.0], [{0: 1.0}, {0: 1.0}]), [20.0, 50.0])
    >>> timeline.finishes, [span.rates for span in timeline.spans]
    ((4.0, 7.0), [(5.0, 5.0), (10.0,)])
    """
    check(system)
    starts = [0.0] * len(sizes) if arrivals is None else list(arrivals)
    if len(sizes) != system.demand_count or len(starts) != len(sizes):
        raise SolverError(Finding("bad-system", "expected a size and an arrival for each demand"))
    for noun, values in (("size", sizes), ("arrival", starts)):
        for demand, value in enumerate(values):
            if not 0.0 <= value < math.inf:
                raise SolverError(
                    Finding(
                        "bad-system",
                        f"the {noun} of demand {demand} is {value!r}; expected zero or more",
                    )
                )
    timeline = _simulate(
        system, [float(size) for size in sizes], starts, most=math.inf if spans else _ANEW_ENTRIES
    )
    if timeline is not None:
        require(certify_timeline(system, sizes, timeline, starts), "times of completion")
        return replace(timeline, spans=() if spans is False else timeline.spans, certified=True)
    from topo.solve.arrays import Arrays, floats
    from topo.solve.events import finishes

    ends = finishes(Arrays.of(system), floats(sizes), floats(starts))
    return Timeline(finishes=tuple(ends.tolist()))


def _simulate(
    system: System, sizes: list[float], arrivals: list[float], *, most: float
) -> Timeline | None:
    """Find all rates anew at each event; give up after solving `most` entries."""
    coming = sorted(range(len(sizes)), key=lambda demand: (arrivals[demand], demand), reverse=True)
    left = list(sizes)
    finishes = list(arrivals)
    running: list[int] = []
    spans: list[Span] = []
    clock = 0.0
    work = 0
    while running or coming:
        if not running:
            clock = max(clock, arrivals[coming[-1]])
        while coming and arrivals[coming[-1]] <= clock * (1.0 + _SAME_TIME):
            demand = coming.pop()
            if left[demand] > 0.0:
                running.append(demand)
        if not running:
            continue
        running.sort()
        part = _only(system, running)
        work += len(part.resources)
        if work > most:
            return None
        allocation = max_min_unchecked(part)
        ends = [
            clock + left[demand] / rate
            for demand, rate in zip(running, allocation.rates, strict=True)
        ]
        first = min(ends)
        # Nobody stops later than the next arrival; who is done by then is done.
        stop = min(first, arrivals[coming[-1]]) if coming else first
        spans.append(Span(clock, stop, tuple(running), tuple(allocation.rates), allocation.stops))
        for demand, rate, end in zip(running, allocation.rates, ends, strict=True):
            if end <= stop * (1.0 + _SAME_TIME):
                left[demand] = 0.0
                finishes[demand] = stop
            else:
                left[demand] -= rate * (stop - clock)
        running = [demand for demand in running if left[demand] > 0.0]
        clock = stop
    return Timeline(finishes=tuple(finishes), spans=tuple(spans))


def _only(system: System, demands: list[int]) -> System:
    """Take some demands of a system, with all resources."""
    if len(demands) == system.demand_count:
        return system
    starts, resources = plain(system.starts), plain(system.resources)
    multiplicities = plain(system.multiplicities)
    weights, limits = plain(system.weights), plain(system.limits)
    new_starts = [0]
    new_resources: list[int] = []
    new_multiplicities: list[float] = []
    for demand in demands:
        row = slice(starts[demand], starts[demand + 1])
        new_resources += resources[row]
        new_multiplicities += multiplicities[row]
        new_starts.append(len(new_resources))
    return System(
        capacities=system.capacities,
        starts=new_starts,
        resources=new_resources,
        multiplicities=new_multiplicities,
        weights=[weights[demand] for demand in demands],
        limits=[limits[demand] for demand in demands],
    )
