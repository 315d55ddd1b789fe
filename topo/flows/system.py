"""What every solver takes: demands on shared resources, as plain numbers.

A *system* knows nothing of devices: resource `r` has a capacity, demand `d` uses some resources,
each with a multiplicity (how many bytes pass it per payload byte; `legacy` puts 4 on a RAM bus).
Names live in `UseMatrix`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.description.description import Basis
    from topo.flows.demands import Demand
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class System:
    """A use matrix in compressed rows, one row a demand.

    Parameters
    ----------
    capacities
        Bytes/s of each resource, greater than zero; `math.inf` for one that never binds.
    starts
        Row pointer: demand `d` owns entries ``starts[d]:starts[d + 1]``.
    resources
        Resource index of each entry, ascending within a row, no repeats.
    multiplicities
        Bytes through that resource per payload byte, greater than zero.
    weights
        Fair-share weight of each demand, greater than zero.
    limits
        Own rate limit of each demand in bytes/s; `math.inf` for none.

    Notes
    -----
    Each field is a tuple or a one-dimensional NumPy array; solvers for small systems read either.
    """

    capacities: Sequence[float]
    starts: Sequence[int]
    resources: Sequence[int]
    multiplicities: Sequence[float]
    weights: Sequence[float]
    limits: Sequence[float]

    @classmethod
    def of(
        cls,
        capacities: Sequence[float],
        uses: Sequence[dict[int, float]],
        *,
        weights: Sequence[float] | None = None,
        limits: Sequence[float] | None = None,
    ) -> System:
        """Build a system from one ``{resource: multiplicity}`` a demand."""
        starts = [0]
        resources: list[int] = []
        multiplicities: list[float] = []
        for use in uses:
            for resource in sorted(use):
                resources.append(resource)
                multiplicities.append(use[resource])
            starts.append(len(resources))
        return cls(
            capacities=tuple(capacities),
            starts=tuple(starts),
            resources=tuple(resources),
            multiplicities=tuple(multiplicities),
            weights=tuple(weights) if weights is not None else (1.0,) * len(uses),
            limits=tuple(limits) if limits is not None else (math.inf,) * len(uses),
        )

    @property
    def demand_count(self) -> int:
        """How many demands there are."""
        return len(self.weights)


@dataclass(frozen=True, slots=True)
class UseMatrix:
    """Demands and resources: row `d` of `system` is ``demands[d]``, column `r` ``resources[r]``.

    `basis` is what the capacities were taken at; an unknown capacity does not bind.
    """

    demands: tuple[Demand, ...]
    resources: tuple[Resource, ...]
    basis: Basis
    system: System


def use_matrix(
    topology: Topology,
    demands: Sequence[Demand],
    *,
    basis: Basis = "theoretical",
    without: frozenset[str] = frozenset(),
) -> UseMatrix:
    """Return the use matrix of `demands` with capacities at `basis`.

    Parameters
    ----------
    topology
        Where the resources come from.
    demands
        Demands with routes that are not refused.
    basis
        Which figure of each capacity to use.
    without
        Ids of resources to treat as unlimited.
    """
    used: dict[str, Resource] = {}
    for demand in demands:
        unmet = (name for name in demand.route.use if name not in used)
        used |= demand.route.resources(topology, unmet)
    columns = {name: index for index, name in enumerate(used)}
    system = System.of(
        [
            math.inf if name in without else resource.capacity.rate(basis)
            for name, resource in used.items()
        ],
        [
            {columns[name]: weight for name, weight in demand.route.use.items()}
            for demand in demands
        ],
        weights=[demand.weight for demand in demands],
        limits=[demand.limit for demand in demands],
    )
    return UseMatrix(tuple(demands), tuple(used.values()), basis, system)
