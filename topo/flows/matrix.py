"""Demands to a use matrix: the one place where routes meet the solvers' plain numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.flows.demand import UseMatrix
from topo.flows.system import System

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.description.description import Basis
    from topo.flows.demand import Demand
    from topo.topology import Resource, Topology


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
        extra = {resource.id: resource for resource in demand.route.extra}
        for name in demand.route.use:
            if name not in used:
                used[name] = topology.resources.get(name) or extra[name]
    order = {name: index for index, name in enumerate(used)}
    capacities = [
        math.inf if name in without else resource.capacity.rate(basis)
        for name, resource in used.items()
    ]
    return UseMatrix(
        demands=tuple(demands),
        resources=tuple(used.values()),
        basis=basis,
        system=System.of(
            capacities,
            [
                {order[name]: weight for name, weight in demand.route.use.items()}
                for demand in demands
            ],
            weights=[demand.weight for demand in demands],
            limits=[demand.limit for demand in demands],
        ),
    )
