"""Refuse what no solver could answer: a system with nonsense in it, or a demand without an end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from topo.errors import Finding, SolverError, UnboundedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from topo.solve.system import System

__all__ = ["check", "plain", "unbounded_demands"]


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
    findings = tuple(_nonsense(system))
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


def _nonsense(system: System) -> Iterator[Finding]:
    yield from _wrong_numbers("capacity", "resource", plain(system.capacities), most=math.inf)
    yield from _wrong_numbers("weight", "demand", plain(system.weights))
    yield from _wrong_numbers("limit", "demand", plain(system.limits), most=math.inf)
    yield from _wrong_numbers("multiplicity", "entry", plain(system.multiplicities))
    yield from _wrong_rows(system)


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
    count, known = len(system.weights), len(system.capacities)
    if len(starts) != count + 1 or starts[0] != 0 or starts[-1] != len(resources):
        yield Finding(code="bad-system", message="the row pointer does not fit the demands")
        return
    if len(system.limits) != count or len(system.multiplicities) != len(resources):
        yield Finding(code="bad-system", message="the columns of the system differ in length")
        return
    for demand in range(count):
        before = -1
        for resource in resources[starts[demand] : starts[demand + 1]]:
            if not before < resource < known:
                yield Finding(
                    code="bad-system",
                    message=f"demand {demand} uses resource {resource} of {known}; "
                    "expected ascending indices without repeats",
                )
                break
            before = resource
