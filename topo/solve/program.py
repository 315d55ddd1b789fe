"""One linear program, handed to HiGHS as arrays, and its answer brought back whole.

Between the program as stated and the one that HiGHS sees stand three exact steps: like columns and
like rows are merged (`topo.solve.classes`), so that identical GPUs get identical rates and prices;
rows of one column become bounds and rows that can never bind fall away; and numbers are divided by
a power of two, since HiGHS's tolerances are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from topo.errors import Finding, SolverError
from topo.solve.arrays import Matrix, pointers
from topo.solve.classes import Classes, pair_colours, partition, quotient

if TYPE_CHECKING:
    from topo.solve.arrays import Bools, Floats, Ints

    Method: TypeAlias = Literal["simplex", "ipm", "pdlp"]


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
    variables, rows = _classes_of(program)
    small = _merged(program, variables, rows)
    answer = _solve_scaled(small, time_limit, method)
    return Optimum(
        values=answer.values[variables.of],
        # One of n like rows takes an equal part of the price of all.
        prices=(answer.prices / rows.sizes)[rows.of],
        method=answer.method,
    )


def _classes_of(program: Program) -> tuple[Classes, Classes]:
    return partition(
        program.columns,
        pair_colours(program.worths, program.bounds),
        pair_colours(program.low, program.high),
    )


def _merged(program: Program, variables: Classes, rows: Classes) -> Program:
    return Program(
        worths=program.worths[variables.first] * variables.sizes,
        bounds=program.bounds[variables.first],
        columns=quotient(program.columns, variables, rows),
        low=program.low[rows.first],
        high=program.high[rows.first],
    )


def _solve_scaled(program: Program, time_limit: float, method: Method | None) -> Optimum:
    """Fold rows into bounds, scale, solve, and give the prices of the folded rows back."""
    by_row = program.columns.transpose()
    single = _bounding_rows(program, by_row)
    bounds, owners = _folded_bounds(program, by_row, single)
    never = (program.low == -np.inf) & (_most(by_row, bounds) <= program.high)
    kept: Bools = ~single & ~never
    scale = _scale(np.concatenate((bounds, program.high[kept])))
    reduced = Program(
        worths=program.worths,
        bounds=bounds / scale,
        columns=_with_rows(program.columns, kept),
        low=program.low[kept] / scale,
        high=program.high[kept] / scale,
    )
    chosen = method or _method(reduced.columns)
    values, duals = _run(reduced, chosen, time_limit)
    prices = np.zeros(program.high.size)
    prices[kept] = duals
    # What a variable at its bound is still worth is the price of the row that gave the bound.
    gain = program.worths - program.columns.times(prices)
    mine = (gain > 0.0) & (owners >= 0)
    entry = owners[mine]
    np.add.at(prices, by_row.owners()[entry], gain[mine] / by_row.values[entry])
    return Optimum(values=values * scale, prices=prices, method=chosen)


def _bounding_rows(program: Program, by_row: Matrix) -> Bools:
    """Find the rows that say no more than that one variable is at most so much."""
    single: Bools = (np.diff(by_row.starts) == 1) & (program.low == -np.inf)
    single[single] = by_row.values[by_row.starts[:-1][single]] > 0.0
    return single


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


def _most(by_row: Matrix, bounds: Floats) -> Floats:
    """Give the most that each row can come to: negative entries count when nothing is on them."""
    rising = np.where(by_row.values > 0.0, by_row.values, 0.0)
    amounts = np.where(by_row.values > 0.0, bounds[by_row.columns], 0.0)
    sums = np.bincount(by_row.owners(), weights=rising * amounts, minlength=by_row.height)
    return np.asarray(sums, np.float64)


def _with_rows(columns: Matrix, kept: Bools) -> Matrix:
    chosen = kept[columns.columns]
    number = np.cumsum(kept) - 1
    return Matrix(
        starts=pointers(np.bincount(columns.owners()[chosen], minlength=columns.height)),
        columns=number[columns.columns[chosen]],
        values=columns.values[chosen],
        width=int(kept.sum()),
    )


def _scale(numbers: Floats) -> float:
    """Give a power of two (so that dividing is exact) that makes the largest at most 1024."""
    finite = numbers[np.isfinite(numbers)]
    largest = float(finite.max(initial=1.0))
    return float(2.0 ** np.ceil(np.log2(largest / _SCALED)))


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
