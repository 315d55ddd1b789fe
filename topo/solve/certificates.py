"""Certificates: check an answer by what it claims to be, sharing no code with the solvers.

A checker returns what is violated, one sentence each, and nothing when the certificate holds. It
reads inputs and answer only, and takes as long as reading them once: in plain Python, and above
some thousand entries first in NumPy, which tells that all holds but not what does not.

Every solver has its answer checked before it gives it away, and `require` raises where the
certificate does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from topo.errors import CertificateError, Finding

if TYPE_CHECKING:
    from topo.flows.demands import System
    from topo.solve.concurrent_flow import Split
    from topo.solve.fluid import Span, Timeline
    from topo.solve.linear_program import LinearAnswer
    from topo.solve.mincut import Cut
    from topo.solve.system import Allocation


_SLACK = 1e-9
_GAP = 1e-7
"""Between what is reached and what prices prove to be the most."""
_MOMENT = 2e-12
"""Of the time since the start: events that are nearer to each other may be taken for one."""
_MANY = 5_000
"""Entries from which NumPy looks first whether all holds."""


def require(complaints: Sequence[str], answer: str) -> None:
    """Raise if a certificate does not hold.

    Parameters
    ----------
    complaints
        What a checker returned.
    answer
        What was checked, in words: ``max-min rates``.

    Raises
    ------
    CertificateError
        There are complaints: the solver, or the checker, has a fault.
    """
    if complaints:
        raise CertificateError(
            Finding(
                "not-certified",
                f"the {answer} do not hold: {complaints[0]}",
                help="this is a fault of topo, not of the file: please report it, with the file "
                "and the command line",
                notes=tuple(complaints[1:4]),
            )
        )


def certified(system: System, allocation: Allocation) -> Allocation:
    """Return an allocation with the word that it was checked.

    Raises
    ------
    CertificateError
        The check found something.
    """
    words = "max-min rates" if allocation.rule == "max-min" else "rates of the largest total"
    require(certify(system, allocation), words)
    return replace(allocation, certified=True)


def certify(system: System, allocation: Allocation) -> tuple[str, ...]:
    """Check that an allocation is possible and, for max-min, that it is fair.

    It is possible when no resource carries more than its capacity and no demand more than its
    limit. It is max-min fair if and only if every demand is at its own limit or uses a full
    resource on which nobody has a higher rate per weight [1]_. The reasons given in `stops` are
    checked both ways: those listed hold, and none is missing.

    Parameters
    ----------
    system
        What was asked.
    allocation
        What was answered; bytes/s.

    Returns
    -------
    tuple of str
        What is violated by more than a relative 1e-9; empty when the certificate holds.

    References
    ----------
    .. [1] D. Bertsekas, R. Gallager, *Data Networks*, 2nd ed., 1992, section 6.5.2 (bottleneck
       condition).
    """
    if len(system.resources) > _MANY and _surely_holds(system, allocation):
        return ()
    facts = _Facts(system, allocation.rates)
    complaints = [*_impossible(facts, system), *_misstated_loads(facts, allocation.loads)]
    if allocation.rule == "max-min":
        complaints += _unfair(facts, system, allocation)
    return tuple(complaints)


def _surely_holds(system: System, allocation: Allocation) -> bool:
    """Tell quickly, from arrays, whether there is nothing to complain about."""
    import numpy as np

    starts, resources = np.asarray(system.starts), np.asarray(system.resources)
    capacities, limits = np.asarray(system.capacities), np.asarray(system.limits)
    rates = np.asarray(allocation.rates)
    sizes = np.diff(starts)
    loads = np.bincount(
        resources,
        weights=np.asarray(system.multiplicities) * np.repeat(rates, sizes),
        minlength=capacities.size,
    )
    possible = (
        len(allocation.loads) == loads.size
        and np.isfinite(rates).all()
        and (rates >= 0.0).all()
        and (rates <= limits * (1.0 + _SLACK)).all()
        and (loads <= capacities * (1.0 + _SLACK)).all()
        and np.allclose(loads, np.asarray(allocation.loads), rtol=_SLACK, atol=0.0)
    )
    if not possible or allocation.rule != "max-min":
        return bool(possible)
    levels = np.repeat(rates / np.asarray(system.weights), sizes)
    tops = np.zeros(loads.size)
    np.maximum.at(tops, resources, levels)

    def stopping(slack: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        full = loads >= capacities * (1.0 - slack)
        stops = full[resources] & (levels >= tops[resources] * (1.0 - slack))
        return np.asarray(stops, np.bool_)

    # Entries and reasons as numbers that rise: demand by demand, in each by resource.
    entries = np.repeat(np.arange(rates.size) * loads.size, sizes) + resources
    counts = np.fromiter(map(len, allocation.stops), np.int64, rates.size)
    reasons = np.fromiter(chain.from_iterable(allocation.stops), np.int64, int(counts.sum()))
    reasons += np.repeat(np.arange(rates.size) * loads.size, counts)
    places = np.searchsorted(entries, reasons)
    if (places >= entries.size).any() or (entries[places] != reasons).any():
        return False
    given = np.zeros(entries.size, np.bool_)
    given[places] = True
    at_limit = rates >= limits * (1.0 - _SLACK)
    return bool(
        not (given & ~stopping(_SLACK * 10.0)).any()
        and not (stopping(_SLACK / 10.0) & ~given).any()
        and (at_limit | (counts > 0)).all()
    )


class _Facts:
    """Loads and highest levels, summed afresh from the rates."""

    def __init__(self, system: System, rates: Sequence[float]) -> None:
        self.rates = [float(rate) for rate in rates]
        self.levels = [
            rate / float(weight) for rate, weight in zip(self.rates, system.weights, strict=True)
        ]
        self.rows = [_row(system, demand) for demand in range(len(self.rates))]
        carried: list[list[float]] = [[] for _ in system.capacities]
        self.tops = [0.0] * len(carried)
        for rate, level, row in zip(self.rates, self.levels, self.rows, strict=True):
            for resource, multiplicity in row:
                carried[resource].append(multiplicity * rate)
                self.tops[resource] = max(self.tops[resource], level)
        self.loads = [math.fsum(parts) for parts in carried]


def _row(system: System, demand: int) -> list[tuple[int, float]]:
    first, end = int(system.starts[demand]), int(system.starts[demand + 1])
    return [
        (int(system.resources[entry]), float(system.multiplicities[entry]))
        for entry in range(first, end)
    ]


def _impossible(facts: _Facts, system: System) -> Iterator[str]:
    for resource, load in enumerate(facts.loads):
        capacity = float(system.capacities[resource])
        if not load <= capacity * (1.0 + _SLACK):
            yield f"resource {resource} carries {load!r} of {capacity!r} B/s"
    for demand, rate in enumerate(facts.rates):
        limit = float(system.limits[demand])
        if not 0.0 <= rate <= limit * (1.0 + _SLACK) or math.isinf(rate):
            yield f"demand {demand} gets {rate!r} B/s, its limit being {limit!r}"


def _misstated_loads(facts: _Facts, loads: Sequence[float]) -> Iterator[str]:
    if len(loads) != len(facts.loads):
        yield f"{len(loads)} loads are given for {len(facts.loads)} resources"
        return
    for resource, load in enumerate(facts.loads):
        if not math.isclose(load, float(loads[resource]), rel_tol=_SLACK):
            yield f"resource {resource} is said to carry {loads[resource]!r}, not {load!r} B/s"


def _unfair(facts: _Facts, system: System, allocation: Allocation) -> Iterator[str]:
    for demand, row in enumerate(facts.rows):
        said = set(allocation.stops[demand])
        surely = {r for r, _ in row if _stops(facts, system, demand, r, _SLACK / 10.0)}
        perhaps = {r for r, _ in row if _stops(facts, system, demand, r, _SLACK * 10.0)}
        limit = float(system.limits[demand])
        at_limit = facts.rates[demand] >= limit * (1.0 - _SLACK)
        if not perhaps and not at_limit:
            yield f"demand {demand} could get more than {facts.rates[demand]!r} B/s"
        for resource in sorted(said - perhaps):
            yield f"resource {resource} does not stop demand {demand}, as is said"
        for resource in sorted(surely - said):
            yield f"resource {resource} stops demand {demand}, which is not said"
        if not said and not at_limit:
            yield f"demand {demand} is not at its limit, and no reason is given"


def _stops(facts: _Facts, system: System, demand: int, resource: int, slack: float) -> bool:
    full = facts.loads[resource] >= float(system.capacities[resource]) * (1.0 - slack)
    return full and facts.levels[demand] >= facts.tops[resource] * (1.0 - slack)


def certify_total(
    system: System, answer: LinearAnswer, *, worths: Sequence[float] | None = None
) -> tuple[str, ...]:
    """Check that rates are possible and that prices prove their total to be the largest.

    The proof is weak duality: if no demand is worth more than the resources it uses, and its limit,
    cost, then no total can be larger than the value of all capacities and limits.

    Parameters
    ----------
    system
        What was asked.
    answer
        What was answered.
    worths
        What a byte/s of each demand counts; its weight when not given.

    Returns
    -------
    tuple of str
        What is violated; empty when the total is within a relative 1e-7 of the largest.
    """
    facts = _Facts(system, answer.allocation.rates)
    worth = [
        float(worth_per_byte) for worth_per_byte in (system.weights if worths is None else worths)
    ]
    complaints = [
        *_impossible(facts, system),
        *_misstated_loads(facts, answer.allocation.loads),
        *_too_cheap(facts.rows, worth, answer.prices, answer.limit_prices),
    ]
    total = math.fsum(
        worth_per_byte * rate for worth_per_byte, rate in zip(worth, facts.rates, strict=True)
    )
    most = _value(system.capacities, answer.prices) + _value(system.limits, answer.limit_prices)
    if not math.isclose(total, answer.total, rel_tol=_SLACK):
        complaints.append(f"the total is said to be {answer.total!r}, not {total!r} B/s")
    if not most - total <= _GAP * max(most, 1.0):
        complaints.append(f"the prices prove {most!r} to be the most, and {total!r} is reached")
    return tuple(complaints)


def certify_split(
    capacities: Sequence[float],
    choices: Sequence[Sequence[Mapping[int, float]]],
    answer: Split,
    *,
    wanted: Sequence[float] | None = None,
    limits: Sequence[float] | None = None,
) -> tuple[str, ...]:
    """Check that shares allow the fraction and that prices prove that none allow more.

    The proof is that of concurrent flow: whichever branch a demand takes, what it wants costs at
    least so much at these prices; and all capacities and limits are worth no more than the
    fraction of that.

    Parameters
    ----------
    capacities, choices, wanted, limits
        What was asked.
    answer
        What was answered.

    Returns
    -------
    tuple of str
        What is violated; empty when the fraction is within a relative 1e-7 of the largest.
    """
    wants = [1.0] * len(choices) if wanted is None else list(wanted)
    caps = [math.inf] * len(choices) if limits is None else list(limits)
    complaints = []
    carried: list[list[float]] = [[] for _ in capacities]
    costs = []
    for demand, (subflows, shares) in enumerate(zip(choices, answer.shares, strict=True)):
        rate = answer.fraction * wants[demand]
        if min(shares) < 0.0 or not math.isclose(math.fsum(shares), 1.0, rel_tol=_SLACK):
            complaints.append(f"the shares of demand {demand} do not sum to 1")
        if not rate <= caps[demand] * (1.0 + _GAP):
            complaints.append(f"demand {demand} has {rate!r}, its limit being {caps[demand]!r} B/s")
        for subflow, share in zip(subflows, shares, strict=True):
            for resource, multiplicity in subflow.items():
                carried[resource].append(share * rate * multiplicity)
        cheapest = min(
            math.fsum(answer.prices[r] * multiplicity for r, multiplicity in subflow.items())
            for subflow in subflows
        )
        costs.append(wants[demand] * (cheapest + answer.limit_prices[demand]))
    for resource, parts in enumerate(carried):
        if not math.fsum(parts) <= capacities[resource] * (1.0 + _GAP):
            complaints.append(f"resource {resource} carries more than its capacity")
    worth = _value(capacities, answer.prices) + _value(caps, answer.limit_prices)
    if choices and not worth <= answer.fraction * math.fsum(costs) * (1.0 + _GAP):
        complaints.append(f"the prices do not prove that {answer.fraction!r} is the most")
    return tuple(complaints)


def certify_timeline(
    system: System,
    sizes: Sequence[float],
    timeline: Timeline,
    arrivals: Sequence[float] | None = None,
) -> tuple[str, ...]:
    """Check that bytes add up and that rates were fair at every moment.

    Parameters
    ----------
    system, sizes, arrivals
        What was asked.
    timeline
        What was answered, with its spans.

    Returns
    -------
    tuple of str
        What is violated by more than a relative 1e-9, or than what passes in a moment (2e-12 of
        the time since the start): a byte that comes after a second is gone within one.
    """
    comes = [0.0] * len(sizes) if arrivals is None else list(arrivals)
    complaints = []
    moved: list[list[float]] = [[] for _ in sizes]
    unseen = [0.0] * len(sizes)  # bytes that pass in one moment
    clock = 0.0
    for span in timeline.spans:
        if span.start < clock or span.end < span.start:
            complaints.append(f"the span from {span.start!r} to {span.end!r} s is out of order")
        clock = span.end
        complaints += _unfair_span(system, span)
        for demand, rate in zip(span.demands, span.rates, strict=True):
            moved[demand].append(rate * (span.end - span.start))
            unseen[demand] = max(unseen[demand], rate * _MOMENT * span.end)
            late = span.end > timeline.finishes[demand] * (1.0 + _SLACK)
            if late or span.start < comes[demand] * (1.0 - _SLACK):
                complaints.append(f"demand {demand} runs before it arrives or after its end")
    for demand, size in enumerate(sizes):
        total = math.fsum(moved[demand])
        if not math.isclose(total, size, rel_tol=_SLACK, abs_tol=unseen[demand]):
            complaints.append(f"demand {demand} moved {total!r} of {size!r} B")
        if size == 0.0 and timeline.finishes[demand] != comes[demand]:
            complaints.append(f"demand {demand} has nothing to move and is not done at once")
    return tuple(complaints + _waiting(timeline, sizes, comes))


def _unfair_span(system: System, span: Span) -> Iterator[str]:
    from topo.flows.demands import System
    from topo.solve.system import Allocation

    rows = [_row(system, demand) for demand in span.demands]
    part = System.of(
        system.capacities,
        [dict(row) for row in rows],
        weights=[system.weights[demand] for demand in span.demands],
        limits=[system.limits[demand] for demand in span.demands],
    )
    loads = _Facts(part, span.rates).loads
    for complaint in certify(part, Allocation(span.rates, loads, span.stops)):
        yield f"from {span.start!r} to {span.end!r} s: {complaint} (counted among those that run)"


def _waiting(timeline: Timeline, sizes: Sequence[float], comes: Sequence[float]) -> list[str]:
    """Find demands that have arrived, are not done, and do not run."""
    ran = [0.0] * len(sizes)
    for span in timeline.spans:
        for demand in span.demands:
            ran[demand] += span.end - span.start
    waits = []
    for demand, (finish, come) in enumerate(zip(timeline.finishes, comes, strict=True)):
        there, slack = finish - come, _MOMENT * finish
        if sizes[demand] and not math.isclose(ran[demand], there, rel_tol=_SLACK, abs_tol=slack):
            waits.append(f"demand {demand} waits though it could run")
    return waits


def certify_cut(
    tails: Sequence[int],
    heads: Sequence[int],
    capacities: Sequence[float],
    cut: Cut,
    *,
    sources: Collection[int],
    sinks: Collection[int],
) -> tuple[str, ...]:
    """Check that a flow is one, that a cut is one, and that they are equal.

    Any flow must pass any cut, so a flow and a cut of the same value prove each other to be the
    largest and the smallest.

    Parameters
    ----------
    tails, heads, capacities, sources, sinks
        What was asked.
    cut
        What was answered.

    Returns
    -------
    tuple of str
        What is violated by more than a relative 1e-9.
    """
    arcs = list(zip(map(int, tails), map(int, heads), map(float, capacities), strict=True))
    gets: dict[int, list[float]] = {}
    complaints = []
    for number, ((tail, head, capacity), flow) in enumerate(zip(arcs, cut.flows, strict=True)):
        gets.setdefault(tail, []).append(-flow)
        gets.setdefault(head, []).append(flow)
        if not 0.0 <= flow <= capacity * (1.0 + _SLACK):
            complaints.append(f"arc {number} carries {flow!r} of {capacity!r} B/s")
    ends = {*sources, *sinks}
    complaints += [
        f"node {node} gets {math.fsum(parts)!r} B/s more than it gives"
        for node, parts in sorted(gets.items())
        if node not in ends
        and abs(math.fsum(parts)) > _SLACK * max(cut.value, math.fsum(map(abs, parts)))
    ]
    out = -math.fsum(part for node in sources for part in gets.get(node, []))
    if not math.isclose(out, cut.value, rel_tol=_SLACK, abs_tol=1e-12):
        complaints.append(f"the flow out of the sources is {out!r}, not {cut.value!r} B/s")
    across = math.fsum(arcs[number][2] for number in cut.arcs)
    if not math.isclose(across, cut.value, rel_tol=_SLACK, abs_tol=1e-12):
        complaints.append(f"the cut's arcs sum to {across!r}, not {cut.value!r} B/s")
    if _reach(arcs, set(cut.arcs), sources) & set(sinks):
        complaints.append("a way around the cut reaches a sink")
    return tuple(complaints)


def _reach(
    arcs: Sequence[tuple[int, int, float]], without: set[int], sources: Collection[int]
) -> set[int]:
    leaving: dict[int, list[int]] = {}
    for number, (tail, head, capacity) in enumerate(arcs):
        if number not in without and capacity > 0.0:
            leaving.setdefault(tail, []).append(head)
    reached, front = set(sources), list(sources)
    while front:
        for head in leaving.get(front.pop(), []):
            if head not in reached:
                reached.add(head)
                front.append(head)
    return reached


def _too_cheap(
    rows: Sequence[Sequence[tuple[int, float]]],
    worths: Sequence[float],
    prices: Sequence[float],
    limit_prices: Sequence[float],
) -> Iterator[str]:
    if min(*prices, *limit_prices, 0.0) < 0.0:
        yield "a price is negative"
    for demand, (row, worth) in enumerate(zip(rows, worths, strict=True)):
        cost = math.fsum(prices[resource] * multiplicity for resource, multiplicity in row)
        cost += limit_prices[demand]
        if cost < worth * (1.0 - _SLACK):
            yield f"demand {demand} is worth {worth!r} and costs only {cost!r}"


def _value(amounts: Sequence[float], prices: Sequence[float]) -> float:
    """Sum amount times price; what has no price may be infinite."""
    return math.fsum(
        float(amount) * price for amount, price in zip(amounts, prices, strict=True) if price > 0.0
    )
