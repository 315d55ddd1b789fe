"""The best division of each GPU's bytes over the cards: routes reweighted by the solver's split."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topo.flows.demands import at_basis
from topo.routes.usage import total_use
from topo.solve.concurrent_flow import split

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.flows.demands import Demand
    from topo.routes.route import Subflow
    from topo.routes.router import Router
    from topo.topology.resources import Resource


def best_split(router: Router, demands: tuple[Demand, ...], basis: Basis) -> tuple[Demand, ...]:
    """Return `demands` with the shares over branches that serve all of them best.

    First the largest rate that all can have at once, then the largest total, then the fewest
    links, then the most even; see `topo.solve.split`.
    """
    resources = _resources(router, demands)
    order = {name: index for index, name in enumerate(resources)}
    found = split(
        [resource.capacity.rate(basis) for resource in resources.values()],
        [
            [
                {order[name]: weight for name, weight in _whole(subflow).items()}
                for subflow in demand.route.subflows
            ]
            for demand in demands
        ],
        wanted=[demand.size for demand in demands],
        limits=[demand.limit for demand in demands],
        detours=[
            [
                float(sum(len(transfer.walk) for transfer in subflow.transfers))
                for subflow in demand.route.subflows
            ]
            for demand in demands
        ],
    )
    divided = []
    for demand, shares in zip(demands, found.shares, strict=True):
        route = router.reweighted(demand.route, shares)
        divided.append(at_basis(router.topology, replace(demand, route=route), basis))
    return tuple(divided)


def _whole(subflow: Subflow) -> dict[str, float]:
    """Return the use of a branch as if it carried everything."""
    return total_use([replace(subflow, share=1.0)])


def _resources(router: Router, demands: tuple[Demand, ...]) -> dict[str, Resource]:
    found: dict[str, Resource] = {}
    for demand in demands:
        extra = {resource.id: resource for resource in demand.route.extra}
        for name in demand.route.use:
            found[name] = router.topology.resources.get(name) or extra[name]
    return found
