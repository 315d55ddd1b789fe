"""What one more, or one less, of a resource does to the total rate: always two numbers.

Where several resources are full at once the dual of a linear program is one price of many, and
max-min rates have no dual. So a price is found by asking the question again with a little more and
a little less: the one-sided derivatives of the total. Both kinds of rates are piecewise linear in
the capacities, so a small step gives the exact slope, and the slope holds up to a kink, which is
found too: that is where the next thing binds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from topo.errors import Finding, SolverError
from topo.flows.demands import System
from topo.records import dataclass
from topo.solve.maxmin import max_min
from topo.solve.system import TIE, Allocation, plain

_STEP = 2.0**-20
"""Of the least capacity in the group: small beside a kink, large beside rounding."""
_SAME = 1e-7
"""Two slopes are one within this."""


@dataclass(frozen=True, slots=True)
class Price:
    """What changes in a group of resources do to the sum of all rates.

    Parameters
    ----------
    gain
        Bytes/s that the total grows for each byte/s added to *each* resource of the group.
    cost
        Bytes/s that the total falls for each byte/s taken from each.
    range_up
        Bytes/s that can be added to each with the same gain; `math.inf` if nothing else ever binds,
        or if nothing is ever gained.
    next_bound
        The resources that stop some demand from there on which they did not stop before.
    next_limits
        The demands that are at their own limit from there on and were not before.
    """

    gain: float
    cost: float
    range_up: float
    next_bound: tuple[int, ...] = ()
    next_limits: tuple[int, ...] = ()


def price(
    system: System,
    group: Sequence[int] | Mapping[int, float],
    *,
    answer: Callable[[System], Allocation] = max_min,
    counts: Sequence[int] = (),
) -> Price:
    """Price a resource, or several that are raised and lowered together.

    Parameters
    ----------
    system
        What was asked.
    group
        The resources; as a mapping, how many bytes/s each gets for one of the step (four on the
        memory bus for one on the card).
    answer
        The question whose total is priced: `max_min`, or
        ``lambda system: largest_total(system).allocation``.
    counts
        How many demands each row stands for; one where it is not said.

    Returns
    -------
    Price
        Of the sum of all rates.

    Raises
    ------
    SolverError
        The group is empty, or names what is not there; and whatever `answer` raises.

    Notes
    -----
    Slopes are taken over millionths of a capacity, so `answer` must be exact to twelve digits: for
    a linear program of more than ten thousand entries, ask for ``method="simplex"`` or ``"ipm"``.

    Examples
    --------
    A card of 50 and a memory bus of 200, four demands that cross it four times:

    >>> from topo.flows.demands import System
    >>> tied = System.of([50.0, 200.0], [{0: 1.0, 1: 4.0}] * 4)
    >>> price(tied, [0]), price(tied, [1])
    (Price(gain=0.0, cost=1.0, range_up=inf, next_bound=(), next_limits=()),
     Price(gain=0.0, cost=0.25, range_up=inf, next_bound=(), next_limits=()))
    >>> price(tied, [0, 1]).gain, price(tied, {0: 1.0, 1: 4.0}).gain
    (0.25, 1.0)
    """
    steps = _steps(system, group)
    ray = _Ray(system, steps, answer, counts or (1,) * system.demand_count)
    if not ray.unit:
        return Price(gain=0.0, cost=0.0, range_up=math.inf)
    gain, cost = ray.slope(+1.0), ray.slope(-1.0)
    kink = ray.kink(gain)
    if kink == math.inf:
        return Price(_tidy(gain), _tidy(cost), kink)
    bounds, limits = ray.new_reasons(kink)
    return Price(_tidy(gain), _tidy(cost), kink, bounds, limits)


def _steps(system: System, group: Sequence[int] | Mapping[int, float]) -> dict[int, float]:
    steps = dict(group.items() if hasattr(group, "items") else ((r, 1.0) for r in group))
    count = len(system.capacities)
    if not steps or not all(0 <= r < count and 0.0 < s < math.inf for r, s in steps.items()):
        raise SolverError(
            Finding("bad-group", f"expected resources among 0 to {count - 1}, with positive steps")
        )
    return steps


class _Ray:
    """The total as a function of how far a group is raised."""

    def __init__(
        self,
        system: System,
        steps: dict[int, float],
        answer: Callable[[System], Allocation],
        counts: Sequence[int],
    ) -> None:
        self.system, self.steps, self.answer, self.counts = system, steps, answer, counts
        self.capacities = plain(system.capacities)
        self.unit = _STEP * min(
            (self.capacities[r] / s for r, s in steps.items() if self.capacities[r] < math.inf),
            default=0.0,
        )
        self.here = answer(system)

    def at(self, distance: float) -> Allocation:
        """Answer with so much more (or less) on each."""
        capacities = list(self.capacities)
        for resource, step in self.steps.items():
            capacities[resource] += step * distance
        return self.answer(dataclasses.replace(self.system, capacities=tuple(capacities)))

    def slope(self, sign: float) -> float:
        """Give the one-sided derivative, with a step inside of the first kink."""
        step = self.unit
        slope = self._between(self.here, self.at(sign * step), step)
        for _ in range(2):
            half = self._between(self.here, self.at(sign * step / 2.0), step / 2.0)
            if abs(half - slope) <= _SAME:
                break
            step /= 64.0
            slope = self._between(self.here, self.at(sign * step), step)
        return sign * slope

    def kink(self, slope: float) -> float:
        """Find how far up the total keeps its slope: double until it does not, then close in."""
        most = 4096.0 * max(c for c in self.capacities if c < math.inf) / min(self.steps.values())
        low, high = 0.0, 4.0 * self.unit
        while self._has_slope(high, slope):
            low, high = high, 4.0 * high
            if high > most:
                return math.inf
        for _ in range(64):
            guess = self._meeting(low, high, slope)
            before, after = guess * (1.0 - 4.0 * _STEP), guess * (1.0 + 4.0 * _STEP)
            if not self._has_slope(before, slope):
                high = before
            elif self._has_slope(after, slope):
                low = after
            else:
                return guess
        return low

    def new_reasons(self, kink: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """List what binds beyond a kink and does not here."""
        there = self.at(kink * (1.0 + 4.0 * _STEP))
        stopping = {
            resource
            for before, after in zip(self.here.stops, there.stops, strict=True)
            for resource in after
            if resource not in before
        }
        limited = set(self._limited(there)) - set(self._limited(self.here))
        return tuple(sorted(stopping)), tuple(sorted(limited))

    def _limited(self, allocation: Allocation) -> list[int]:
        limits = plain(self.system.limits)
        return [d for d, rate in enumerate(allocation.rates) if rate >= limits[d] * (1.0 - TIE)]

    def _has_slope(self, distance: float, slope: float) -> bool:
        """Tell whether the total has the slope there, and had it on average all the way."""
        near = _SAME * max(1.0, abs(slope))
        if abs(self._slope_below(distance) - slope) > near:
            return False
        return abs(self._between(self.here, self.at(distance), distance) - slope) <= near

    def _slope_below(self, distance: float) -> float:
        # Never below a quarter of the unit: rates of 1e10 bytes/s round at 1e-6.
        step = min(max(distance * _STEP, self.unit / 4.0), distance)
        return self._between(self.at(distance - step), self.at(distance), step)

    def _meeting(self, low: float, high: float, slope: float) -> float:
        """Guess where the line from here meets the one through `high`, else the middle."""
        steep = self._slope_below(high)
        rise = self._between(self.here, self.at(high), 1.0)
        if abs(steep - slope) > _SAME:
            guess = (rise - steep * high) / (slope - steep)
            # Rounding must not put it just below `low`, where the slope still held.
            if 0.0 < guess < high and guess >= low * (1.0 - _STEP):
                return guess
        return (low + high) / 2.0

    def _between(self, before: Allocation, after: Allocation, step: float) -> float:
        """Give the slope between two answers; rates that did not change cancel exactly."""
        rates = zip(self.counts, before.rates, after.rates, strict=True)
        return math.fsum(count * (b - a) for count, a, b in rates) / step


def _tidy(slope: float) -> float:
    """Take the simple fraction that a slope is but for rounding."""
    simple = float(Fraction(slope).limit_denominator(1000))
    return simple if abs(simple - slope) <= _SAME else slope
