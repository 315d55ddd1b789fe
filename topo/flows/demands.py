"""From a workload and a data path to one demand a GPU."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.flows.demand import Demand
from topo.flows.ends import ends_of

if TYPE_CHECKING:
    from topo.description.description import Basis, DataPath, Workload
    from topo.routes import Route, Router, Transfer
    from topo.topology import Topology


# What one core copies when neither the file nor its part says: a guess between the 8 and 15 GB/s
# that single-threaded copies reach on current servers.
_GUESSED_CORE_COPY = 10e9


def demands_of(
    router: Router, workload: Workload, path: DataPath, *, basis: Basis = "theoretical"
) -> tuple[Demand, ...]:
    """Return one demand for each GPU of `workload`, all by `path`.

    The size and a limit are shared equally over the GPUs. A refused route gives a demand as well;
    the caller looks at its verdict before solving.
    """
    ends = ends_of(router.topology, workload)
    count = len(ends)
    own_limit = math.inf if workload.limit is None else workload.limit / count
    routes = (router.route(path, one.far, one.gpu, one.direction) for one in ends)
    return tuple(
        Demand(
            workload=workload.name,
            gpu=route.gpu,
            route=route,
            size=workload.size / count,
            weight=workload.weight,
            limit=min(own_limit, worker_limit(router.topology, route, basis)),
            start=workload.start,
            own_limit=own_limit,
        )
        for route in routes
    )


def at_basis(topology: Topology, demand: Demand, basis: Basis) -> Demand:
    """Return `demand` with the limit that its workers have at `basis`."""
    return replace(demand, limit=min(demand.own_limit, worker_limit(topology, demand.route, basis)))


def worker_limit(topology: Topology, route: Route, basis: Basis) -> float:
    """Return what the workers of one GPU can move at most, in bytes/s.

    Serial stages of one worker follow each other, so a payload byte takes the sum of the stages'
    times: `n` workers reach ``n / sum(1 / s_i)``. Pipelined stages overlap, and only a stage with
    a stated rate of one worker limits: ``n * min(s_i)``. What stages share is left to the solver.
    """
    path = route.data_path
    if not route.subflows:
        return math.inf
    if path.stages == "pipelined":
        stated = [
            move.rate.value
            for move in path.moves
            if move.per_worker and move.rate is not None and move.rate.value is not None
        ]
        return path.workers * min(stated, default=math.inf)
    seconds_per_byte = sum(
        subflow.share / _stage_rate(topology, route, transfer, basis)
        for subflow in route.subflows
        for transfer in subflow.transfers
    )
    return path.workers / seconds_per_byte if seconds_per_byte > 0 else math.inf


def core_copy_rate(topology: Topology, host: str) -> float:
    """Return bytes/s that one core of `host` copies: its part's figure, or a guess of 10 GB/s."""
    figure = topology[host].part.figure("core-copy") if host in topology else None
    return figure.value if figure and figure.value else _GUESSED_CORE_COPY


def _stage_rate(topology: Topology, route: Route, transfer: Transfer, basis: Basis) -> float:
    """Return what one worker's stage reaches alone: its stated rate and everything it uses."""
    extra = {resource.id: resource for resource in route.extra}
    rates = [
        (topology.resources.get(name) or extra[name]).capacity.rate(basis) / weight
        for name, weight in transfer.use.items()
    ]
    if transfer.move.rate is not None and transfer.move.rate.value is not None:
        rates.append(transfer.move.rate.value)
    elif transfer.move.mover == "core":
        rates.append(core_copy_rate(topology, transfer.engine))
    return min(rates, default=math.inf)
