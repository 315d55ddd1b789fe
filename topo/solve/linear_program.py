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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from topo.errors import Finding, SolverError
from topo.flows.demands import System
from topo.records import dataclass
from topo.solve.arrays import Arrays, Bools, Floats, Ints, Matrix, floats, pointers
from topo.solve.certificates import certify_total, require
from topo.solve.equivalence import pair_colours, partition, quotient
from topo.solve.system import TIE, Allocation, check, plain

Method: TypeAlias = Literal["simplex", "ipm", "pdlp"]


_GAP = 1e-7
"""A larger relative gap than this is no answer."""
_TOLERANCE = 1e-9
"""Of HiGHS, absolute, on numbers scaled to at most `_SCALED`."""
_SCALED = 1024.0

_SIMPLEX_ENTRIES = 12_000
"""Up to so many matrix entries simplex is done at once, and its answer is exact."""
_IPM_ENTRIES = 120_000
"""With more of them a tangled matrix is too much for factorising."""
_TANGLED = 8.0
"""Entries a row from which a matrix is tangled: a random one has 24, a fabric 4."""


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

    >>> from topo.flows.demands import System
    >>> answer = largest_total(System.of([10.0, 10.0], [{0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0}]))
    >>> answer.total, answer.allocation.rates, answer.prices
    (20.0, (0.0, 10.0, 10.0), (1.0, 1.0))
    """
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
    answer = _proven(system, arrays, worth, solve(program, time_limit=time_limit, method=method))
    require(certify_total(system, answer, worths=worths), "rates of the largest total")
    return replace(answer, allocation=replace(answer.allocation, certified=True))


def full_stops(system: System, rates: Sequence[float]) -> Allocation:
    """Describe rates that are not meant to be fair: every full resource stops its users."""
    starts, resources = plain(system.starts), plain(system.resources)
    multiplicities = plain(system.multiplicities)
    loads = [0.0] * len(system.capacities)
    for demand, rate in enumerate(rates):
        for entry in range(starts[demand], starts[demand + 1]):
            loads[resources[entry]] += multiplicities[entry] * rate
    full = [
        load >= capacity * (1.0 - TIE)
        for load, capacity in zip(loads, plain(system.capacities), strict=True)
    ]
    stops = tuple(
        tuple(r for r in resources[starts[demand] : starts[demand + 1]] if full[r])
        for demand in range(len(rates))
    )
    return Allocation(rates=tuple(rates), loads=tuple(loads), stops=stops, rule="largest-total")


def _proven(system: System, arrays: Arrays, worth: Floats, optimum: Optimum) -> LinearAnswer:
    """Make the answer exactly possible, its prices exactly sufficient, and measure the gap."""
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
        allocation=full_stops(system, rates.tolist()),
        total=total,
        prices=tuple(prices.tolist()),
        limit_prices=tuple(limit_prices.tolist()),
        bound=bound,
        gap=max(gap, 0.0),
        method=optimum.method,
    )


def _possible(arrays: Arrays, values: Floats) -> Floats:
    """Cut rates to their limits, and scale down where a resource is overloaded by rounding."""
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


@dataclass(frozen=True, slots=True)
class Program:
    """Maximise ``worths @ x`` over ``low <= A x <= high``, ``0 <= x <= bounds``.

    `columns` holds `A` by its columns: a row of that `Matrix` is a variable.
    """

    worths: Floats
    bounds: Floats
    columns: Matrix
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Optimum:
    """What HiGHS found.

    `prices` are those of the rows: what one more of ``high`` (or, when negative, of ``low``) adds.
    """

    values: Floats
    prices: Floats
    method: Method


def solve(program: Program, *, time_limit: float, method: Method | None = None) -> Optimum:
    """Solve a linear program.

    Parameters
    ----------
    program
        What to maximise, and under which rows.
    time_limit
        Seconds after which to give up.
    method
        Which of HiGHS's solvers; chosen by structure when not given.

    Raises
    ------
    SolverError
        It has no optimum, or none was found in time.
    """
    variables, rows = partition(
        program.columns,
        pair_colours(program.worths, program.bounds),
        pair_colours(program.low, program.high),
    )
    merged = Program(
        worths=program.worths[variables.first] * variables.sizes,
        bounds=program.bounds[variables.first],
        columns=quotient(program.columns, variables, rows),
        low=program.low[rows.first],
        high=program.high[rows.first],
    )
    answer = _solve_scaled(merged, time_limit, method)
    return Optimum(
        values=answer.values[variables.of],
        # One of n like rows takes an equal part of the price of all.
        prices=(answer.prices / rows.sizes)[rows.of],
        method=answer.method,
    )


def _solve_scaled(program: Program, time_limit: float, method: Method | None) -> Optimum:
    """Fold rows into bounds, scale, solve, and give the prices of the folded rows back."""
    by_row = program.columns.transpose()
    # Rows that say no more than that one variable is at most so much.
    single: Bools = (np.diff(by_row.starts) == 1) & (program.low == -np.inf)
    single[single] = by_row.values[by_row.starts[:-1][single]] > 0.0
    bounds, owners = _folded_bounds(program, by_row, single)
    # What each row can come to at most: negative entries count when nothing is on them.
    rising = by_row.values > 0.0
    amounts = np.where(rising, by_row.values, 0.0) * np.where(rising, bounds[by_row.columns], 0.0)
    most = np.bincount(by_row.owners(), weights=amounts, minlength=by_row.height)
    remaining: Bools = ~single & ~((program.low == -np.inf) & (most <= program.high))
    # A power of two, so that dividing is exact.
    numbers = np.concatenate((bounds, program.high[remaining]))
    largest = float(numbers[np.isfinite(numbers)].max(initial=1.0))
    scale = float(2.0 ** np.ceil(np.log2(largest / _SCALED)))
    columns = program.columns
    chosen = remaining[columns.columns]
    reduced = Program(
        worths=program.worths,
        bounds=bounds / scale,
        columns=Matrix(
            starts=pointers(np.bincount(columns.owners()[chosen], minlength=columns.height)),
            columns=(np.cumsum(remaining) - 1)[columns.columns[chosen]],
            values=columns.values[chosen],
            width=int(remaining.sum()),
        ),
        low=program.low[remaining] / scale,
        high=program.high[remaining] / scale,
    )
    method = method or _method(reduced.columns)
    values, duals = _run(reduced, method, time_limit)
    prices = np.zeros(program.high.size)
    prices[remaining] = duals
    # What a variable at its bound is still worth is the price of the row that gave the bound.
    gain = program.worths - columns.times(prices)
    mine = (gain > 0.0) & (owners >= 0)
    entry = owners[mine]
    np.add.at(prices, by_row.owners()[entry], gain[mine] / by_row.values[entry])
    return Optimum(values=values * scale, prices=prices, method=method)


def _folded_bounds(program: Program, by_row: Matrix, single: Bools) -> tuple[Floats, Ints]:
    """Give the bounds with rows of one variable folded in, and which entry (or -1) gave them."""
    bounds = program.bounds.copy()
    owners = np.full(bounds.size, -1)
    entries = by_row.starts[:-1][single]
    implied = program.high[single] / by_row.values[entries]
    # In descending order, so that of several rows the tightest (then the first) is written last.
    for place in np.lexsort((-entries, -implied)):
        variable = by_row.columns[entries[place]]
        if implied[place] <= bounds[variable] and implied[place] < np.inf:
            bounds[variable], owners[variable] = implied[place], entries[place]
    return bounds, owners


def _method(columns: Matrix) -> Method:
    """Choose by size and structure.

    Large fabrics are solved fastest, and in time that grows no faster than they do, by the
    first-order PDLP, if less exactly (a gap of some 1e-9); where rows meet many demands that meet
    many rows it needs many steps, and the interior point method is faster while it can factorise.
    """
    entries = columns.values.size
    if entries <= _SIMPLEX_ENTRIES:
        return "simplex"
    tangled = entries >= _TANGLED * columns.width
    return "ipm" if tangled and entries <= _IPM_ENTRIES else "pdlp"


def _run(program: Program, method: Method, time_limit: float) -> tuple[Floats, Floats]:
    import highspy

    highs = _quiet_solver()
    options: dict[str, Any] = {
        "solver": method,
        "threads": 1,  # one order of work, one answer
        "time_limit": float(time_limit),
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
        "pdlp_optimality_tolerance": _TOLERANCE,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    _pass_model(highs, program)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolverError(_failure(highs.modelStatusToString(status), method, time_limit))
    solution = highs.getSolution()
    return np.asarray(solution.col_value), np.asarray(solution.row_dual)


def _failure(status: str, method: Method, time_limit: float) -> Finding:
    if status == "Time limit reached":
        return Finding(
            code="solver-time-limit",
            message=f"the linear program ({method}) was not solved in {time_limit:g} s",
            help="allow more time, or ask for max-min rates",
        )
    return Finding(
        code="solver-failed",
        message=f"the linear program ({method}) has no optimum: {status.lower()}",
    )


def _quiet_solver() -> Any:
    """Make a solver that writes nothing: results alone belong on standard output."""
    import highspy

    def hush(highs: Any) -> None:
        highs.setOptionValue("output_flag", False)

    # The constructor enables callbacks, which topo has no use for, and that prints a banner before
    # anybody could ask for silence.
    quiet: Any = type("Quiet", (highspy.Highs,), {"enableCallbacks": hush})
    highs = quiet()
    hush(highs)
    return highs


def _pass_model(highs: Any, program: Program) -> None:
    import highspy

    columns = program.columns
    highs.passModel(
        columns.height,
        columns.width,
        columns.values.size,
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        program.worths,
        np.zeros(columns.height),
        program.bounds,
        program.low,
        program.high,
        columns.starts.astype(np.int32),
        columns.columns.astype(np.int32),
        columns.values,
        np.zeros(columns.height, np.int32),
    )
