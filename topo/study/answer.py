"""One workload by one data path: verdict, rates, what binds, floors, cores."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.datapaths.registry import count
from topo.flows.demands import at_basis, core_copy_rate, demands_of, ends_of
from topo.flows.system import use_matrix
from topo.routes.route import merged
from topo.routes.verdict import verdict_of, wrong_ends
from topo.solve.maxmin import max_min
from topo.study.answers import Bottleneck, CopyingCores, OwnLimit, PathAnswer
from topo.study.bounded import naming_demands
from topo.study.lengths import hops_range, links_range
from topo.topology.resources import ram_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, DataPath, Workload
    from topo.flows.demands import Demand
    from topo.flows.system import System, UseMatrix
    from topo.routes.route import Reason, Route
    from topo.routes.router import Router
    from topo.solve.system import Allocation
    from topo.topology.topology import Topology


_BASES: tuple[Basis, ...] = ("theoretical", "achievable", "measured")
_TIE = 1e-9
_WRONG_ENDS = "wrong-ends"
# Above it folding into classes costs less than it saves; below it, only NumPy's import.
_MOST_ENTRIES_ONE_BY_ONE = 5_000


def answer(
    router: Router, workload: Workload, path: DataPath, *, basis: Basis = "theoretical"
) -> PathAnswer:
    """Return what `workload` gets by `path`, all of its GPUs at once, max-min fair.

    Parameters
    ----------
    router
        Lays the routes; carries topology and policy.
    workload
        How many bytes, between which devices.
    path
        The data path.
    basis
        Which figure of each capacity to use.
    """
    topology = router.topology
    demands = chosen_split(router, demands_of(router, workload, path, basis=basis), basis)
    routes = tuple(demand.route for demand in demands)
    reasons = reasons_of(topology, workload, path, routes)
    known = PathAnswer(
        data_path=path,
        verdict=verdict_of(reasons),
        reasons=reasons,
        routes=routes,
        counts=count(path),
        size=workload.size if workload.sized else None,
    )
    if known.verdict == "refused":
        return known
    known = replace(
        known,
        ram_floor=_floor(topology, known.ram_traffic, basis),
        dram_floor=_floor(topology, known.dram_bytes, basis),
        hops_range=hops_range(topology, routes),
        links_range=links_range(routes),
    )
    return _solve(topology, workload, known, demands, basis)


def _solve(
    topology: Topology,
    workload: Workload,
    known: PathAnswer,
    demands: tuple[Demand, ...],
    basis: Basis,
) -> PathAnswer:
    matrix = use_matrix(topology, demands, basis=basis)
    with naming_demands(matrix):
        allocation = shared(matrix.system)
    rate = math.fsum(allocation.rates)
    time = _time(matrix, allocation) if workload.sized else None
    ratio = workload.efficiency if basis == "theoretical" else None
    unknowns = tuple(
        resource.id for resource in matrix.resources if resource.capacity.at(basis).value is None
    )
    return replace(
        known,
        rates={demand.gpu: given for demand, given in zip(demands, allocation.rates, strict=True)},
        rate=rate,
        time=time,
        time_range=_time_range(time, ratio) if ratio and time is not None else None,
        unknowns=unknowns,
        unlimited=tuple(
            resource.id
            for resource in matrix.resources
            if resource.capacity.at(basis).value == math.inf and resource.kind != "measured-pair"
        ),
        at_most=bool(unknowns),
        bottlenecks=bottlenecks_of(matrix, allocation),
        own_limits=_own_limits(matrix, allocation),
        by_basis={each: rate if each == basis else _at(topology, demands, each) for each in _BASES},
        serial_rate=_serial_rate(topology, demands, basis),
        cores=_cores(topology, known.routes, known.counts, rate),
        matrix=matrix,
    )


def chosen_split(router: Router, demands: tuple[Demand, ...], basis: Basis) -> tuple[Demand, ...]:
    """Return the demands with the cards' shares that the policy asks for.

    Under ``best`` a linear program chooses how each GPU's bytes divide over the cards; otherwise
    the routes carry their shares already.
    """
    refused = any(demand.route.verdict == "refused" for demand in demands)
    if router.policy.nics != "best" or refused:
        return demands
    from topo.study.split import best_split  # imports the LP solver

    return best_split(router, demands, basis)


def route_reasons(routes: Iterable[Route]) -> tuple[Reason, ...]:
    """Return every reason of the routes once, with all devices that it holds for."""
    return merged(reason for route in routes for reason in route.reasons)


def reasons_of(
    topology: Topology, workload: Workload, path: DataPath, routes: Iterable[Route]
) -> tuple[Reason, ...]:
    """Return every reason of the routes once; what joins the wrong ends is said in one sentence."""
    found = route_reasons(routes)
    if not any(reason.code == _WRONG_ENDS for reason in found):
        return found
    asked = {name for ends in ends_of(topology, workload) for name in ends.far}
    far = dict.fromkeys(name for name in (*workload.sources, *workload.targets) if name in asked)
    rest = tuple(reason for reason in found if reason.code != _WRONG_ENDS)
    return (*wrong_ends(topology, path, tuple(far)), *rest)


def bottlenecks_of(matrix: UseMatrix, allocation: Allocation) -> tuple[Bottleneck, ...]:
    """Return the full resources that stop a demand, in the matrix's order."""
    stopped: dict[int, list[str]] = {}
    for demand, stops in zip(matrix.demands, allocation.stops, strict=True):
        for resource in stops:
            stopped.setdefault(resource, []).append(demand.name)
    return tuple(
        Bottleneck(
            resource=matrix.resources[index],
            basis=matrix.basis,
            capacity=matrix.system.capacities[index],
            load=allocation.loads[index],
            stops=tuple(stopped[index]),
        )
        for index in sorted(stopped)
    )


def _own_limits(matrix: UseMatrix, allocation: Allocation) -> tuple[OwnLimit, ...]:
    """Return what stops the demands that no full resource stops, each once."""
    limits: dict[OwnLimit, None] = {}
    for demand, stops in zip(matrix.demands, allocation.stops, strict=True):
        if not stops:
            path = demand.route.data_path
            stated = demand.limit >= demand.own_limit
            limits[OwnLimit() if stated else OwnLimit(path.workers, path.stages == "serial")] = None
    return tuple(limits)


def shared(system: System) -> Allocation:
    """Return the max-min fair rates; like demands of a large system are solved as one."""
    if len(system.resources) <= _MOST_ENTRIES_ONE_BY_ONE:
        return max_min(system)
    from topo.solve.equivalence import max_min_by_class  # NumPy: a small machine does without

    return max_min_by_class(system)


def solved(topology: Topology, demands: Sequence[Demand], basis: Basis) -> float:
    """Return the total max-min rate of `demands` in bytes/s."""
    return math.fsum(shared(use_matrix(topology, demands, basis=basis).system).rates)


def _time(matrix: UseMatrix, allocation: Allocation) -> float:
    """Return seconds until the last byte; as demands finish, the rest speed up."""
    times = [
        demand.size / rate for demand, rate in zip(matrix.demands, allocation.rates, strict=True)
    ]
    if max(times) <= min(times) * (1 + _TIE):
        return max(times)
    from topo.solve.fluid import complete  # only where demands end at different times

    timeline = complete(matrix.system, [demand.size for demand in matrix.demands])
    return max(timeline.finishes)


def _time_range(time: float, ratio: tuple[float, float]) -> tuple[float, float]:
    """Return seconds (fast, slow) under an end-to-end efficiency (low, high).

    Rounded to 15 digits, so that 1.4 s at 80 % is 1.75 s and not the float next to it.
    """
    low, high = ratio
    return float(f"{time / high:.15g}"), float(f"{time / low:.15g}")


def _at(topology: Topology, demands: tuple[Demand, ...], basis: Basis) -> float:
    """Return the total at another basis, where one worker's stages have other rates as well."""
    return solved(topology, [at_basis(topology, demand, basis) for demand in demands], basis)


def _serial_rate(topology: Topology, demands: tuple[Demand, ...], basis: Basis) -> float | None:
    """Return the total with one worker a GPU that does one stage after another.

    `None` where there is only one stage: nothing would change.
    """
    if len(demands[0].route.data_path.moves) < 2:  # noqa: PLR2004
        return None
    serial = []
    for demand in demands:
        path = replace(demand.route.data_path, stages="serial", workers=1)
        route = replace(demand.route, data_path=path)
        serial.append(at_basis(topology, replace(demand, route=route), basis))
    return solved(topology, serial, basis)


def _cores(
    topology: Topology, routes: tuple[Route, ...], counts: Counts, rate: float
) -> CopyingCores | None:
    if not counts.core_copies:
        return None
    hosts = dict.fromkeys(
        transfer.engine
        for route in routes
        for subflow in route.subflows
        for transfer in subflow.transfers
        if transfer.move.mover == "core"
    )
    slowest = min(hosts, key=lambda host: core_copy_rate(topology, host))
    per_core = core_copy_rate(topology, slowest)
    figure = topology[slowest].part.figure("core-copy") if slowest in topology else None
    return CopyingCores(
        cores=counts.core_copies * rate / per_core,
        rate_per_core=per_core,
        source=f"{figure.kind}: {figure.source}" if figure else "guess: 10 GB/s a core",
    )


def _floor(topology: Topology, traffic: float | None, basis: Basis) -> float | None:
    """Return seconds that all system memories together need for `traffic` bytes at least.

    Nothing takes no time; `None` when the rate of a memory is unknown or there is none, or when
    nobody said how many bytes.
    """
    if traffic is None:
        return None
    if not traffic:
        return 0.0
    rate = ram_rate(topology, basis)
    return None if rate is None else traffic / rate
