"""One answer explained: who gets what, what is used by whom, what one GB/s more or less is worth.

Equal demands and equal resources stand together, so that one line is for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from topo.flows.demands import Demand, System, UseMatrix
from topo.graph import groups, refine
from topo.records import dataclass
from topo.solve.maxmin import max_min
from topo.solve.prices import Price, price
from topo.solve.system import TIE, Allocation
from topo.study.answer import completion, peaks_of
from topo.topology.resources import Resource

Rule: TypeAlias = Literal["max-min", "largest-total"]
_Groups: TypeAlias = "Sequence[Sequence[int]]"

_GIGABYTE = 1e9
_NOTHING = Price(gain=0.0, cost=0.0, range_up=math.inf)


@dataclass(frozen=True, slots=True)
class Share:
    """What each of some equal demands gets.

    Parameters
    ----------
    demands
        The demands; more than one where all figures are the same.
    rate
        Bytes/s of each.
    share
        The part of the total that each has.
    stopped_by
        The full resources that stop them; empty where only their own limit does.
    at_most
        Whether a capacity is unknown on their way, so that the rate is an upper bound.
    """

    demands: tuple[Demand, ...]
    rate: float
    share: float
    stopped_by: tuple[Resource, ...]
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """What is used of each of some equal resources.

    Parameters
    ----------
    resources
        The resources; more than one where all figures are the same.
    capacity
        Bytes/s that each has at the basis asked for: `math.inf` for unlimited, `None` for unknown.
    load
        Bytes/s that pass each.
    utilisation
        Load over capacity; `None` without a finite capacity.
    users
        The demands that use one of them.
    at_most
        Whether the capacity is only what cannot be exceeded.
    """

    resources: tuple[Resource, ...]
    capacity: float | None
    load: float
    utilisation: float | None
    users: tuple[Demand, ...]
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class TimePrice:
    """What one GB/s does to the time until the last byte, found by solving again.

    Parameters
    ----------
    saved
        Seconds that one GB/s more on each resource of a group saves.
    lost
        Seconds that one GB/s less on each costs; `None` where that leaves nothing of one.
    """

    saved: float
    lost: float | None

    @property
    def matters(self) -> bool:
        """Whether more or less of it changes the time."""
        return bool(self.saved or self.lost)


@dataclass(frozen=True, slots=True)
class ClassPrice:
    """The price of resources that are equal: same class, capacity and load, equal users.

    Parameters
    ----------
    kind
        The class.
    resources
        The resources, in the matrix's order.
    single
        The price of one of them alone.
    together
        The price of raising or lowering all of them, for each byte/s on each.
    next_bound
        What binds where the gain of `together` ends.
    single_time, together_time
        The same of the time, where somebody said how many bytes there are.
    at_most
        Whether some capacity on the way is unknown, so that it may be worth less.
    """

    kind: str
    resources: tuple[Resource, ...]
    single: Price
    together: Price
    next_bound: tuple[Resource, ...] = ()
    single_time: TimePrice | None = None
    together_time: TimePrice | None = None
    at_most: bool = False

    @property
    def matters(self) -> bool:
        """Whether more or less of it changes the total of the rates."""
        return any(
            abs(value) > TIE
            for price in (self.single, self.together)
            for value in (price.gain, price.cost)
        )


@dataclass(frozen=True, slots=True)
class TiedPrice:
    """Full resources of several classes that stop demands together, raised as a group.

    Each is raised in proportion to its capacity, since raising one alone may gain nothing. `gain`
    and `cost` of `together` are for each byte/s on the smallest of them; `steps` says how many
    bytes/s that is on each resource. `together_time` is for one GB/s on the smallest; `at_most` is
    as for `ClassPrice`.
    """

    resources: tuple[Resource, ...]
    steps: tuple[float, ...]
    together: Price
    next_bound: tuple[Resource, ...]
    together_time: TimePrice | None = None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Prices:
    """What is worth having more of.

    Parameters
    ----------
    rule
        Which question's total is priced.
    total
        Bytes/s of all demands by that rule, while all run.
    fair_total
        The same by max-min.
    time
        Seconds until the last byte by max-min; `None` where nobody said how many bytes there are.
    finish_apart
        Whether some demands are done before others: then only the prices of time are of the whole.
    at_most
        Whether some capacity on the way is unknown: then totals and prices are upper bounds.
    classes
        A price for each class of equal resources with a finite capacity.
    tie
        Where several classes are full at once, their price as a group.
    """

    rule: Rule
    total: float
    fair_total: float
    classes: tuple[ClassPrice, ...]
    tie: TiedPrice | None
    time: float | None = None
    finish_apart: bool = False
    at_most: bool = False

    def matters(self, price: ClassPrice) -> bool:
        """Whether more or less of a class changes the answer: the time, else the total."""
        by_time = any(time and time.matters for time in (price.single_time, price.together_time))
        return by_time or (price.matters and not self.finish_apart)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tables behind one answer, by demand and by resource, and the prices."""

    matrix: UseMatrix
    allocation: Allocation
    shares: tuple[Share, ...]
    uses: tuple[Use, ...]
    prices: Prices


def explain(
    matrix: UseMatrix, *, rule: Rule = "max-min", each: bool = False, sized: bool = False
) -> Explanation:
    """Explain what the demands of a use matrix get.

    Parameters
    ----------
    matrix
        Demands and resources, as `PathAnswer.matrix` has them.
    rule
        Share max-min fairly, or reach the largest total.
    each
        One entry a demand and a resource; otherwise equal ones are one.
    sized
        Whether somebody said how many bytes there are, so that time has a price: by max-min, since
        the largest total says nothing of what comes later.

    Raises
    ------
    SolverError
        No answer within the time limit.
    UnboundedError
        A demand meets no finite resource.

    Examples
    --------
    >>> import topo
    >>> ladder = topo.bottleneck(topo.load("gds-textbook"), via="direct")
    >>> explained = explain(ladder.answer.matrix)
    >>> [(len(share.demands), share.rate, share.share) for share in explained.shares]
    [(8, 12500000000.0, 0.125)]
    >>> [(price.kind, price.together.gain) for price in explained.prices.classes if price.matters]
    [('nic-chip', 2.0)]

    Notes
    -----
    A price is two numbers found by solving again (`topo.solve.prices`): with identical GPUs a dual
    of the linear program is one of many. What is not full has the price nothing, on both sides.
    """
    allocation = _allocation(rule, matrix.system)
    demands, resources = _equal(matrix, allocation)
    rows, columns = demands, resources
    if each:
        rows = [(index,) for index in range(len(matrix.demands))]
        columns = [(index,) for index in range(len(matrix.resources))]
    total = matrix.total(allocation.rates)
    fair = allocation if rule == "max-min" else max_min(matrix.system)
    clock = _Clock(matrix, fair) if sized and rule == "max-min" else None
    unknown = set(matrix.unknowns(clock.peaks if clock else allocation.loads))
    tie = _tied_price(matrix, allocation, rule, clock)
    return Explanation(
        matrix=matrix,
        allocation=allocation,
        shares=tuple(
            Share(
                demands=tuple(matrix.demands[index] for index in members),
                rate=allocation.rates[members[0]],
                share=allocation.rates[members[0]] / (total or 1.0),
                stopped_by=_resources(
                    matrix, sorted({stop for index in members for stop in allocation.stops[index]})
                ),
                at_most=not unknown.isdisjoint(matrix.demands[members[0]].route.use),
            )
            for members in rows
        ),
        uses=_uses(matrix, allocation, columns),
        prices=Prices(
            rule=rule,
            total=total,
            fair_total=matrix.total(fair.rates),
            classes=tuple(
                replace(
                    _class_price(matrix, allocation, members, rule, clock), at_most=bool(unknown)
                )
                for members in resources
                if math.isfinite(matrix.system.capacities[members[0]])
            ),
            tie=tie and replace(tie, at_most=bool(unknown)),
            time=clock.whole.time if clock else None,
            finish_apart=bool(clock and clock.whole.rate != clock.whole.start_rate),
            at_most=bool(unknown),
        ),
    )


def _allocation(rule: Rule, system: System) -> Allocation:
    """Return what the demands get by a rule."""
    if rule == "max-min":
        return max_min(system)
    from topo.solve.linear_program import largest_total  # imports the LP solver

    # Bytes count the same whoever sends them: a fair-share weight is no worth.
    return largest_total(system, worths=(1.0,) * system.demand_count).allocation


def _equal(matrix: UseMatrix, allocation: Allocation) -> tuple[_Groups, _Groups]:
    """Return the classes of demands and of resources that no figure tells apart, by index.

    Two demands are equal when weight, limit, size and rate are the same and they use equal
    resources equally often; two resources, when class, capacity and load are the same and equal
    demands use them. What ties to nine digits is the same.
    """
    count = len(matrix.demands)
    met: list[list[tuple[int, float]]] = [[] for _ in (*matrix.demands, *matrix.resources)]
    system = matrix.system
    for row in range(count):
        entries = range(system.starts[row], system.starts[row + 1])
        for entry in entries:
            column, weight = count + system.resources[entry], system.multiplicities[entry]
            met[row].append((column, weight))
            met[column].append((row, weight))
    colours: dict[int, Hashable] = {
        index: (
            demand.workload,
            demand.weight,
            f"{demand.limit:.9g}",
            demand.size,
            demand.start,
            f"{allocation.rates[index]:.9g}",
        )
        for index, demand in enumerate(matrix.demands)
    }
    for index, resource in enumerate(matrix.resources):
        capacity, load = system.capacities[index], allocation.loads[index]
        colours[count + index] = (resource.kind, f"{capacity:.9g}", f"{load:.9g}")

    def around(node: int, classes: Mapping[int, int]) -> Hashable:
        return tuple(sorted((classes[neighbour], weight) for neighbour, weight in met[node]))

    classes = groups(refine(colours, around))
    return (
        [members for members in classes if members[0] < count],
        [[node - count for node in members] for members in classes if members[0] >= count],
    )


def _uses(matrix: UseMatrix, allocation: Allocation, classes: _Groups) -> tuple[Use, ...]:
    """Return what is used of the resources, the fullest first."""
    system = matrix.system
    users: list[list[int]] = [[] for _ in matrix.resources]
    for demand in range(len(matrix.demands)):
        for resource in system.resources[system.starts[demand] : system.starts[demand + 1]]:
            users[resource].append(demand)
    uses = []
    for members in classes:
        capacity, load = system.capacities[members[0]], allocation.loads[members[0]]
        figures = [matrix.resources[member].capacity.at(matrix.basis) for member in members]
        uses.append(
            Use(
                resources=_resources(matrix, members),
                capacity=figures[0].value,
                at_most=any(figure.at_most for figure in figures),
                load=load,
                utilisation=load / capacity if math.isfinite(capacity) else None,
                users=tuple(
                    matrix.demands[index]
                    for index in sorted({user for member in members for user in users[member]})
                ),
            )
        )
    uses.sort(
        key=lambda use: -1.0 if use.utilisation is None else round(use.utilisation, 9), reverse=True
    )
    return tuple(uses)


class _Clock:
    """The time until the last byte as a function of the capacities."""

    def __init__(self, matrix: UseMatrix, allocation: Allocation) -> None:
        self._matrix = matrix
        self.whole = completion(matrix, allocation, sized=True)
        self.peaks = peaks_of(matrix, allocation, self.whole)

    def price(self, steps: Mapping[int, float]) -> TimePrice:
        """Return the price of some resources, each raised by its steps of one GB/s, or lowered."""
        capacities, now = self._matrix.system.capacities, self.whole.time or 0.0
        less = {index: capacities[index] - step * _GIGABYTE for index, step in steps.items()}
        saved, lost = 0.0, 0.0
        if any(self.peaks[index] >= capacities[index] * (1 - TIE) for index in steps):
            saved = self._tidy(now - self._time(steps, _GIGABYTE))
        if min(less.values()) <= 0:
            return TimePrice(saved, None)
        if any(self.peaks[index] > capacity for index, capacity in less.items()):
            lost = self._tidy(self._time(steps, -_GIGABYTE) - now)
        return TimePrice(saved, lost)

    def _time(self, steps: Mapping[int, float], more: float) -> float:
        capacities = list(self._matrix.system.capacities)
        for index, step in steps.items():
            capacities[index] += step * more
        matrix = self._matrix.with_capacities(capacities)
        return completion(matrix, max_min(matrix.system), sized=True).time or 0.0

    def _tidy(self, seconds: float) -> float:
        return 0.0 if abs(seconds) <= TIE * (self.whole.time or 0.0) else seconds


def _class_price(
    matrix: UseMatrix,
    allocation: Allocation,
    members: Sequence[int],
    rule: Rule,
    clock: _Clock | None,
) -> ClassPrice:
    first = members[0]
    kind, resources = matrix.resources[first].kind, _resources(matrix, members)
    single_time = together_time = clock.price({first: 1.0}) if clock else None
    if clock and len(members) > 1:
        together_time = clock.price(dict.fromkeys(members, 1.0))
    single = together = _NOTHING
    if allocation.loads[first] >= matrix.system.capacities[first] * (1 - TIE):
        single = together = _price(matrix, {first: 1.0}, rule)
        if len(members) > 1:
            together = _price(matrix, dict.fromkeys(members, 1.0), rule)
    next_bound = _resources(matrix, together.next_bound)
    return ClassPrice(kind, resources, single, together, next_bound, single_time, together_time)


def _tied_price(
    matrix: UseMatrix, allocation: Allocation, rule: Rule, clock: _Clock | None
) -> TiedPrice | None:
    """Return the price of the full resources that stop the same demands, as a group, if any do."""
    every_stops = allocation.stops
    if clock and clock.whole.rate != clock.whole.start_rate:
        every_stops = tuple(stops for _, stops in clock.whole.stops)
    ties = [
        stops for stops in every_stops if len({matrix.resources[index].kind for index in stops}) > 1
    ]
    full = sorted({index for stops in ties for index in stops})
    if not full:
        return None
    least = min(matrix.system.capacities[index] for index in full)
    steps = {index: matrix.system.capacities[index] / least for index in full}
    together = _price(matrix, steps, rule)
    return TiedPrice(
        resources=_resources(matrix, full),
        steps=tuple(steps.values()),
        together=together,
        next_bound=_resources(matrix, together.next_bound),
        together_time=clock.price(steps) if clock else None,
    )


def _price(matrix: UseMatrix, steps: dict[int, float], rule: Rule) -> Price:
    counts = [demand.count for demand in matrix.demands]
    return price(
        matrix.system, steps, answer=lambda system: _allocation(rule, system), counts=counts
    )


def _resources(matrix: UseMatrix, indices: Sequence[int]) -> tuple[Resource, ...]:
    return tuple(matrix.resources[index] for index in indices)
