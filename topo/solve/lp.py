"""The largest total that all demands together can reach, and what each resource is worth to it.

Max-min rates are fair; the largest total is not, and may starve a demand that uses much of what
others could use better. It is the linear program: maximise the sum of worth times rate, such that
no resource carries more than its capacity and no demand more than its limit. Its dual gives
prices, and the gap between the two is a proof of how good the answer is [1]_.

References
----------
.. [1] D. Bertsimas, J. Tsitsiklis, *Introduction to Linear Optimization*, 1997, chapter 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.errors import Finding, SolverError
from topo.solve.checks import check, plain
from topo.solve.system import TIE, Allocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.flows.system import System
    from topo.solve.arrays import Arrays, Floats
    from topo.solve.program import Method, Optimum


_GAP = 1e-7
"""A larger relative gap than this is no answer."""


@dataclass(frozen=True, slots=True)
class LinearAnswer:
    """The largest total, with its proof.

    Parameters
    ----------
    allocation
        Rates and loads in bytes/s; `stops` lists the full resources that each demand uses.
    total
        Sum of worth times rate.
    prices
        What one more byte/s of each resource adds to the total, as far as the dual says. Where
        several answers are best at once, this is one of many; `topo.solve.price` gives both sides.
    limit_prices
        The same for each demand's own limit.
    bound
        No total can be larger: the value of all capacities and limits at these prices.
    gap
        ``(bound - total) / max(bound, 1)``, at most 1e-7.
    method
        Which of HiGHS's solvers found it.
    """

    allocation: Allocation
    total: float
    prices: tuple[float, ...]
    limit_prices: tuple[float, ...]
    bound: float
    gap: float
    method: Method


@dataclass(frozen=True, slots=True)
class FractionAnswer:
    """How much of what everybody wants they can have at the same time.

    Parameters
    ----------
    fraction
        Each demand gets this times its wanted rate.
    allocation
        The rates and loads in bytes/s; `stops` lists for each demand which of its resources are
        full. A demand may have none: it waits for others.
    binding
        The full resources.
    limited
        The demands that are at their own limit.
    """

    fraction: float
    allocation: Allocation
    binding: tuple[int, ...]
    limited: tuple[int, ...]


def largest_total(
    system: System,
    *,
    worths: Sequence[float] | None = None,
    time_limit: float = 60.0,
    method: Method | None = None,
) -> LinearAnswer:
    """Find rates with the largest sum of worth times rate.

    Parameters
    ----------
    system
        Capacities and limits in bytes/s.
    worths
        What a byte/s of each demand counts; its weight when not given.
    time_limit
        Seconds after which to give up.
    method
        `simplex`, `ipm` or `pdlp`; chosen by structure when not given.

    Returns
    -------
    LinearAnswer
        Demands that cannot be told apart get equal rates; resources, equal prices.

    Raises
    ------
    SolverError
        Nonsense in the system, or no answer within the time limit or to a gap of 1e-7.
    UnboundedError
        A demand meets no finite resource and has no limit of its own.

    Examples
    --------
    One long demand and two short ones: fair is 5, 5, 5; the largest total starves the long one.

    >>> from topo.solve import System
    >>> answer = largest_total(System.of([10.0, 10.0], [{0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0}]))
    >>> answer.total, answer.allocation.rates, answer.prices
    (20.0, (0.0, 10.0, 10.0), (1.0, 1.0))
    """
    import numpy as np

    from topo.solve.arrays import Arrays, floats
    from topo.solve.program import Program, solve

    check(system)
    arrays = Arrays.of(system)
    worth = arrays.weights if worths is None else floats(worths)
    program = Program(
        worths=worth,
        bounds=arrays.limits,
        columns=arrays.uses,
        low=np.full(arrays.capacities.size, -math.inf),
        high=arrays.capacities,
    )
    return _proven(arrays, worth, solve(program, time_limit=time_limit, method=method))


def largest_fraction(system: System, wanted: Sequence[float]) -> FractionAnswer:
    """Find the largest fraction of their wanted rates that all can have at the same time.

    With every demand on one fixed way this needs no linear program: the fraction is the least of
    capacity over need. (Where demands may choose among ways, see `topo.solve.split`.)

    Parameters
    ----------
    system
        Capacities and limits in bytes/s; weights play no part.
    wanted
        Bytes/s that each demand wants, greater than zero.

    Raises
    ------
    SolverError
        Nonsense in the system or in `wanted`.
    UnboundedError
        A demand meets no finite resource and has no limit of its own.
    """
    check(system)
    if len(wanted) != system.demand_count or not all(0.0 < want < math.inf for want in wanted):
        raise SolverError(
            Finding("bad-system", "expected for each demand a wanted rate greater than zero")
        )
    needs = _loads(system, wanted)
    limits, capacities = plain(system.limits), plain(system.capacities)
    fraction = min(
        *(capacity / need for capacity, need in zip(capacities, needs, strict=True) if need > 0.0),
        *(limit / want for limit, want in zip(limits, wanted, strict=True)),
        math.inf,
    )
    rates = tuple(fraction * want for want in wanted)
    allocation = full_stops(system, rates)
    return FractionAnswer(
        fraction=fraction,
        allocation=allocation,
        binding=tuple(
            resource
            for resource, load in enumerate(allocation.loads)
            if load >= capacities[resource] * (1.0 - TIE)
        ),
        limited=tuple(
            demand for demand, rate in enumerate(rates) if rate >= limits[demand] * (1.0 - TIE)
        ),
    )


def full_stops(system: System, rates: Sequence[float]) -> Allocation:
    """Describe rates that are not meant to be fair: every full resource stops its users."""
    starts, resources = plain(system.starts), plain(system.resources)
    loads = _loads(system, rates)
    full = [
        load >= capacity * (1.0 - TIE)
        for load, capacity in zip(loads, plain(system.capacities), strict=True)
    ]
    stops = tuple(
        tuple(r for r in resources[starts[demand] : starts[demand + 1]] if full[r])
        for demand in range(len(rates))
    )
    return Allocation(rates=tuple(rates), loads=loads, stops=stops, rule="largest-total")


def _loads(system: System, rates: Sequence[float]) -> tuple[float, ...]:
    starts, resources = plain(system.starts), plain(system.resources)
    multiplicities = plain(system.multiplicities)
    loads = [0.0] * len(system.capacities)
    for demand, rate in enumerate(rates):
        for entry in range(starts[demand], starts[demand + 1]):
            loads[resources[entry]] += multiplicities[entry] * rate
    return tuple(loads)


def _proven(arrays: Arrays, worth: Floats, optimum: Optimum) -> LinearAnswer:
    """Make the answer exactly possible, its prices exactly sufficient, and measure the gap."""
    import numpy as np

    rates = _possible(arrays, optimum.values)
    prices, limit_prices = _sufficient(arrays, worth, np.maximum(optimum.prices, 0.0))
    total = float(worth @ rates)
    bound = _value(arrays.capacities, prices) + _value(arrays.limits, limit_prices)
    gap = (bound - total) / max(bound, 1.0)
    if not gap <= _GAP:
        raise SolverError(
            Finding(
                code="solver-inexact",
                message=f"the linear program ({optimum.method}) was solved only to {gap:.1e}",
                help="try another method: simplex, ipm or pdlp",
            )
        )
    return LinearAnswer(
        allocation=_described(arrays, rates),
        total=total,
        prices=tuple(prices.tolist()),
        limit_prices=tuple(limit_prices.tolist()),
        bound=bound,
        gap=max(gap, 0.0),
        method=optimum.method,
    )


def _possible(arrays: Arrays, values: Floats) -> Floats:
    """Cut rates to their limits, and scale down where a resource is overloaded by rounding."""
    import numpy as np

    rates = np.clip(values, 0.0, arrays.limits)
    loads = arrays.uses.transposed_times(rates)
    over = loads > arrays.capacities
    if not over.any():
        return rates
    factors = np.ones(loads.size)
    factors[over] = arrays.capacities[over] / loads[over]
    owners = arrays.uses.owners()
    least = np.ones(rates.size)
    np.minimum.at(least, owners, factors[arrays.uses.columns])
    return rates * least


def _sufficient(arrays: Arrays, worth: Floats, prices: Floats) -> tuple[Floats, Floats]:
    """Raise prices until no demand is worth more than what it uses, and its limit, cost."""
    import numpy as np

    lacking = worth - arrays.uses.times(prices)
    limited = (lacking > 0.0) & np.isfinite(arrays.limits)
    limit_prices = np.where(limited, lacking, 0.0)
    for demand in np.flatnonzero((lacking > 0.0) & ~limited):
        # Without a limit, the lack is rounding: put it on what bounds the demand most.
        row = slice(int(arrays.uses.starts[demand]), int(arrays.uses.starts[demand + 1]))
        tightest = np.argmin(arrays.capacities[arrays.uses.columns[row]] / arrays.uses.values[row])
        prices[arrays.uses.columns[row][tightest]] += (
            lacking[demand] / arrays.uses.values[row][tightest]
        )
    return prices, limit_prices


def _value(amounts: Floats, prices: Floats) -> float:
    """Sum amount times price, an infinite amount at no price being worth nothing."""
    priced = prices > 0.0
    return float(amounts[priced] @ prices[priced])


def _described(arrays: Arrays, rates: Floats) -> Allocation:
    from topo.flows.system import System

    system = System(
        capacities=arrays.capacities.tolist(),
        starts=arrays.uses.starts.tolist(),
        resources=arrays.uses.columns.tolist(),
        multiplicities=arrays.uses.values.tolist(),
        weights=(),
        limits=(),
    )
    return full_stops(system, rates.tolist())
