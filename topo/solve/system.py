"""What every solver takes for granted and gives: an answer, and a system without nonsense in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from topo.errors import Finding, SolverError, UnboundedError
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.flows.demands import System
    from topo.solve.arrays import Arrays


TIE = 1e-9
"""Two levels are one, and a resource is full, within this relative difference."""


def rounded(value: float) -> float:
    """Return a figure to nine digits, so that equal ones are in order by what comes next."""
    return float(f"{value:.9g}")


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each demand gets.

    Parameters
    ----------
    rates
        Bytes/s of each demand.
    loads
        Bytes/s carried by each resource.
    stops
        For each demand the full resources that stop it (ascending), empty when its own limit does.
        Ties within a relative 1e-9 are all listed.
    rule
        Which question was asked.
    certified
        Whether `topo.solve.certificates` has checked it.
    """

    rates: Sequence[float]
    loads: Sequence[float]
    stops: tuple[tuple[int, ...], ...]
    rule: Literal["max-min", "largest-total"] = "max-min"
    certified: bool = field(default=False, compare=False)


_MANY = 5_000
"""Entries from which NumPy looks first whether anything is wrong at all."""


def plain(values: Sequence[Any]) -> Sequence[Any]:
    """Give the values as a tuple or list of Python numbers, which plain Python reads fastest.

    A NumPy array becomes a list: reading it element by element would make a NumPy scalar each.
    """
    if isinstance(values, (list, tuple)):
        return values
    to_list = getattr(values, "tolist", values.__iter__)
    return list(to_list())


def check(system: System) -> None:
    """Raise on the first kind of nonsense in a system, naming where it stands.

    Raises
    ------
    SolverError
        A capacity, weight, multiplicity or limit is zero, negative or not a number; a weight or a
        multiplicity is infinite; the rows are not what `System` promises.
    UnboundedError
        A demand meets no finite resource and has no limit of its own.
    """
    if len(system.resources) > _MANY and _is_fine(system):
        return
    findings = (
        *_wrong_numbers("capacity", "resource", plain(system.capacities), most=math.inf),
        *_wrong_numbers("weight", "demand", plain(system.weights)),
        *_wrong_numbers("limit", "demand", plain(system.limits), most=math.inf),
        *_wrong_numbers("multiplicity", "entry", plain(system.multiplicities)),
        *_wrong_rows(system),
    )
    if findings:
        raise SolverError(findings)
    endless = unbounded_demands(system)
    if endless:
        raise UnboundedError(
            Finding(
                code="unbounded-demand",
                message=f"demand {demand} meets no finite resource and has no limit of its own",
            )
            for demand in endless
        )


def unbounded_demands(system: System) -> tuple[int, ...]:
    """List the demands that neither a finite resource nor an own limit ever stops."""
    starts, resources = plain(system.starts), plain(system.resources)
    finite = [capacity != math.inf for capacity in plain(system.capacities)]
    return tuple(
        demand
        for demand, limit in enumerate(plain(system.limits))
        if limit == math.inf
        and not any(finite[r] for r in resources[starts[demand] : starts[demand + 1]])
    )


def _is_fine(system: System) -> bool:
    """Tell quickly, from arrays, whether there is nothing to complain about."""
    import numpy as np

    from topo.solve.arrays import Arrays

    try:
        arrays = Arrays.of(system)
    except (TypeError, ValueError):
        return False
    uses, count = arrays.uses, arrays.weights.size
    if not (
        uses.starts.size == count + 1
        and arrays.limits.size == count
        and uses.columns.size == uses.values.size == uses.starts[-1]
        and uses.starts[0] == 0
        and (np.diff(uses.starts) >= 0).all()
    ):
        return False
    rising = np.diff(uses.columns, prepend=-1) > 0
    rising[uses.starts[:-1][np.diff(uses.starts) > 0]] = True
    columns = (arrays.capacities, arrays.weights, arrays.limits, uses.values)
    return bool(
        rising.all()
        and uses.columns.min(initial=0) >= 0
        and uses.columns.max(initial=-1) < uses.width
        and all((column > 0.0).all() for column in columns)
        and np.isfinite(arrays.weights).all()
        and np.isfinite(uses.values).all()
        and _all_bounded(arrays)
    )


def _all_bounded(arrays: Arrays) -> bool:
    import numpy as np

    finite = np.isfinite(arrays.capacities)[arrays.uses.columns]
    met = np.bincount(arrays.uses.owners()[finite], minlength=arrays.limits.size)
    return bool(((met > 0) | np.isfinite(arrays.limits)).all())


def _wrong_numbers(
    noun: str, owner: str, values: Iterable[float], most: float = math.nextafter(math.inf, 0.0)
) -> Iterator[Finding]:
    for index, value in enumerate(values):
        # Written so that a NaN, which no comparison holds for, is wrong too.
        if not 0.0 < value <= most:
            finite = "" if most == math.inf else ", not infinite"
            yield Finding(
                code="bad-system",
                message=f"the {noun} of {owner} {index} is {value!r}; "
                f"expected a number greater than zero{finite}",
            )


def _wrong_rows(system: System) -> Iterator[Finding]:
    starts, resources = plain(system.starts), plain(system.resources)
    count, resource_count = len(system.weights), len(system.capacities)
    if len(starts) != count + 1 or starts[0] != 0 or starts[-1] != len(resources):
        yield Finding(code="bad-system", message="the row pointer does not fit the demands")
        return
    if len(system.limits) != count or len(system.multiplicities) != len(resources):
        yield Finding(code="bad-system", message="the columns of the system differ in length")
        return
    for demand in range(count):
        before = -1
        for resource in resources[starts[demand] : starts[demand + 1]]:
            if not before < resource < resource_count:
                yield Finding(
                    code="bad-system",
                    message=f"demand {demand} uses resource {resource} of {resource_count}; "
                    "expected ascending indices without repeats",
                )
                break
            before = resource
