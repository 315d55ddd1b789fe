"""Certificates: check an answer by what it claims to be, sharing no code with the solvers.

A checker returns what is violated, one sentence each, and nothing when the certificate holds. It
reads inputs and answer only, in plain Python, and takes as long as reading them once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.solve.system import Allocation, System

__all__ = ["certify"]

_SLACK = 1e-9


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
    facts = _Facts(system, allocation.rates)
    complaints = [*_impossible(facts, system), *_misstated_loads(facts, allocation.loads)]
    if allocation.rule == "max-min":
        complaints += _unfair(facts, system, allocation)
    return tuple(complaints)


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
