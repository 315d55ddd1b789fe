"""Who gets what, and what is used of each resource by whom: alike ones as one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.study.equivalence import alike

if TYPE_CHECKING:
    from topo.flows.demands import Demand
    from topo.flows.system import UseMatrix
    from topo.solve.system import Allocation
    from topo.topology.resources import Resource


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
    """

    demands: tuple[Demand, ...]
    rate: float
    share: float
    stopped_by: tuple[Resource, ...]


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
    """

    resources: tuple[Resource, ...]
    capacity: float | None
    load: float
    utilisation: float | None
    users: tuple[Demand, ...]


def shares(matrix: UseMatrix, allocation: Allocation, *, each: bool = False) -> tuple[Share, ...]:
    """Return what the demands get, equal demands as one unless `each` is asked for.

    Parameters
    ----------
    matrix
        Demands and resources.
    allocation
        What was solved.
    each
        One entry a demand.
    """
    total = math.fsum(allocation.rates) or 1.0
    groups = (
        [(one,) for one in range(len(matrix.demands))] if each else alike(matrix, allocation)[0]
    )
    return tuple(
        Share(
            demands=tuple(matrix.demands[index] for index in group),
            rate=allocation.rates[group[0]],
            share=allocation.rates[group[0]] / total,
            stopped_by=tuple(
                matrix.resources[index]
                for index in sorted({stop for one in group for stop in allocation.stops[one]})
            ),
        )
        for group in groups
    )


def uses(matrix: UseMatrix, allocation: Allocation, *, each: bool = False) -> tuple[Use, ...]:
    """Return what is used of the resources, the fullest first, equal ones as one.

    Parameters
    ----------
    matrix, allocation, each
        As for `shares`.
    """
    groups = (
        [(one,) for one in range(len(matrix.resources))] if each else alike(matrix, allocation)[1]
    )
    users = _users(matrix)
    found = [
        Use(
            resources=tuple(matrix.resources[index] for index in group),
            capacity=matrix.resources[group[0]].capacity.at(matrix.basis).value,
            load=allocation.loads[group[0]],
            utilisation=_utilisation(
                matrix.system.capacities[group[0]], allocation.loads[group[0]]
            ),
            users=tuple(
                matrix.demands[one]
                for one in sorted({one for index in group for one in users[index]})
            ),
        )
        for group in groups
    ]
    return tuple(
        sorted(
            found,
            key=lambda one: -(_UNBOUND if one.utilisation is None else round(one.utilisation, 9)),
        )
    )


_UNBOUND = -1.0  # sorts what has no capacity to the end


def _utilisation(capacity: float, load: float) -> float | None:
    return load / capacity if math.isfinite(capacity) else None


def _users(matrix: UseMatrix) -> list[list[int]]:
    """Return the demands that use each resource."""
    system = matrix.system
    found: list[list[int]] = [[] for _ in matrix.resources]
    for demand in range(len(matrix.demands)):
        for resource in system.resources[system.starts[demand] : system.starts[demand + 1]]:
            found[resource].append(demand)
    return found
