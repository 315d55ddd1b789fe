"""One workload by one data path: verdict, rates, what binds, floors, cores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.datapaths.registry import count
from topo.description.description import Basis, DataPath, Workload
from topo.errors import Finding, UnboundedError
from topo.flows.demands import (
    Demand,
    System,
    UseMatrix,
    at_basis,
    core_copy_rate,
    demands_of,
    limit_resource,
    use_matrix,
)
from topo.flows.ends import ends_of
from topo.graph import components
from topo.phrases import listed, ranges
from topo.records import dataclass
from topo.routes.route import Reason, Route, hops_range, links_range, merged
from topo.routes.usage import alone, joint_use, total_use
from topo.routes.verdict import verdict_of, wrong_ends
from topo.solve.maxmin import max_min
from topo.solve.system import TIE, Allocation, rounded
from topo.study.answers import Bottleneck, CopyingCores, OwnLimit, PathAnswer
from topo.topology.capacities import ram_rate
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.routes.router import Router
    from topo.solve.fluid import Span


_BASES: tuple[Basis, ...] = ("theoretical", "achievable", "measured")
_MOST = 4  # names in a list before "and 3 more"
_WRONG_ENDS = "wrong-ends"
# What has no limit of its own in theory: the links that it stands for have.
_OF_THEIR_LINKS = ("measured-pair", "nccl-link", "in-switch")
# Why data has no way where something is not there.
CUT_OFF = ("no-way", "no-memory", "other-server", "needs-c2c", "needs-gpu-links")
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
    routed, matrix = laid(router, workload, path, basis=basis)
    if matrix is None:
        return routed
    demands = matrix.demands
    with naming_demands(matrix):
        run = solved(matrix, sized=workload.sized)
    allocation, whole = run.allocation, run.whole
    rate, time = whole.rate, whole.time
    time_range = None
    if workload.efficiency and basis == "theoretical" and time is not None:
        # Rounded to 15 digits, so that 1.4 s at 80 % is 1.75 s and not the float next to it.
        slow, fast = (float(f"{time / ratio:.15g}") for ratio in workload.efficiency)
        time_range = (fast, slow)
    serial_rate = None
    if len(path.moves) > 1 and routed.collective is None:  # else nothing would change
        serial = replace(path, stages="serial", workers=1)
        serial_rate, _ = _rate_at(
            topology,
            [replace(demand, route=replace(demand.route, data_path=serial)) for demand in demands],
            basis,
            sized=workload.sized,
        )
    figures = {resource.id: resource.capacity.at(basis) for resource in matrix.resources}
    unknowns = matrix.unknowns(run.peaks)
    by_basis = {
        name: (rate, unknowns)
        if name == basis
        else _rate_at(topology, demands, name, sized=workload.sized)
        for name in _BASES
    }
    answered = replace(
        routed,
        ram_floor=_floor(topology, routed.ram_traffic, basis),
        dram_floor=_floor(topology, routed.dram_bytes, basis),
        hops_range=hops_range(topology, routed.routes),
        links_range=links_range(routed.routes),
        rates=dict(
            zip(
                (demand.endpoints or demand.endpoint for demand in demands),
                allocation.rates,
                strict=True,
            )
        ),
        rate=rate,
        start_rate=whole.start_rate,
        time=time,
        time_range=time_range,
        unknowns=unknowns,
        unlimited=tuple(
            resource.id
            for resource in matrix.resources
            if figures[resource.id].value == math.inf and resource.kind not in _OF_THEIR_LINKS
        ),
        at_most=bool(unknowns),
        bottlenecks=bottlenecks_of(matrix, allocation, whole),
        tied=_are_tied(matrix, whole),
        own_limits=own_limits_of(matrix, whole),
        by_basis={name: rate for name, (rate, _) in by_basis.items()},
        at_most_by_basis={name: bool(unknown) for name, (_, unknown) in by_basis.items()},
        serial_rate=serial_rate,
        cores=_cores(topology, routed, rate),
        matrix=matrix,
        certified=whole.certified,
    )
    if workload.need is None:
        return answered
    from topo.study.needs import met  # most workloads move nothing for a model

    return replace(answered, met=met(topology, workload.need, answered, shared))


def laid(
    router: Router, workload: Workload, path: DataPath, *, basis: Basis = "theoretical"
) -> tuple[PathAnswer, UseMatrix | None]:
    """Return what of an answer stands before anything is solved, and the use matrix to solve.

    There is no matrix where `path` is refused. The arguments are those of `answer`.
    """
    topology = router.topology
    going, cut_off = running(topology, demands_of(router, workload, path, basis=basis))
    demands = chosen_split(router, going, basis, timed=workload.sized)
    routes = tuple(demand.route for demand in demands)
    reasons = reasons_of(topology, workload, path, routes)
    routed = PathAnswer(
        data_path=path,
        verdict=verdict_of(reasons),
        reasons=reasons,
        routes=routes,
        counts=count(path),
        size=_size(workload, going, cut_off),
        stopped=tuple(demand.names for demand in cut_off),
        stopped_count=sum(demand.count for demand in cut_off),
        collective=demands[0].collective,
    )
    refused = routed.verdict == "refused"
    return routed, None if refused else use_matrix(topology, demands, basis=basis)


def running(
    topology: Topology, demands: tuple[Demand, ...]
) -> tuple[tuple[Demand, ...], tuple[Demand, ...]]:
    """Return the demands that go, and those that something out of order cuts off.

    Where nothing is out of order, or nothing goes, all belong together: they are an answer as a
    whole, refused or not.
    """
    if not topology.description.lost:
        return demands, ()

    def stops(demand: Demand) -> bool:
        return any(
            reason.code in CUT_OFF and reason.effect == "refused" for reason in demand.route.reasons
        )

    left = tuple(demand for demand in demands if not stops(demand))
    cut_off = tuple(filter(stops, demands))
    return (left, cut_off) if left else (demands, ())


def _size(workload: Workload, demands: Iterable[Demand], cut_off: Iterable[Demand]) -> float | None:
    """Return the bytes of those that go; `None` where nobody said a size."""
    if not workload.sized:
        return None
    if not cut_off:
        return workload.size
    return math.fsum(demand.size * demand.count for demand in demands)


def chosen_split(
    router: Router, demands: tuple[Demand, ...], basis: Basis, *, timed: bool = True
) -> tuple[Demand, ...]:
    """Return the demands with the cards' shares that the policy asks for.

    Under ``best`` a linear program chooses how the bytes of each GPU and storage divide over the
    cards: first the largest rate that all can have at once, then the largest total, then the fewest
    links, then the most even (`topo.solve.concurrent_flow.split`). Storages and memories keep their
    even shares. Where `nearest` or `stripe` ends sooner, or gives more in the same time, that is
    best; without bytes (`timed` is false) the total alone counts.
    """
    refused = any(demand.route.verdict == "refused" for demand in demands)
    together = any(demand.collective for demand in demands)
    if router.policy.nics != "best" or refused or together:
        return demands
    from topo.solve.concurrent_flow import split  # imports the LP solver
    from topo.solve.fluid import complete

    matrix = use_matrix(router.topology, demands, basis=basis)
    order = {resource.id: index for index, resource in enumerate(matrix.resources)}
    # Of each demand and storage the subflows by card, by their places in the route.
    parts = [
        (index, cards)
        for index, demand in enumerate(demands)
        for cards in demand.route.by_far_end_and_card()
    ]
    storages = Counter(index for index, _ in parts)

    def branch(demand: Demand, places: list[int]) -> tuple[dict[int, float], float]:
        subflows = alone([demand.route.subflows[place] for place in places])
        links = math.fsum(
            subflow.share * sum(len(transfer.walk) for transfer in subflow.transfers)
            for subflow in subflows
        )
        use = total_use(subflows)
        use |= joint_use(router.topology, order, use, subflows)
        limit = limit_resource(demand)
        use |= {limit.id: 1.0} if limit else {}
        return {order[name]: weight for name, weight in use.items()}, links

    branches = [[branch(demands[index], places) for places in cards] for index, cards in parts]
    best = split(
        matrix.system.capacities,
        [[use for use, _ in of_part] for of_part in branches],
        wanted=[demands[index].size / storages[index] for index, _ in parts],
        limits=[demands[index].limit / storages[index] for index, _ in parts],
        detours=[[links for _, links in of_part] for of_part in branches],
    )
    chosen = [[0.0] * len(demand.route.subflows) for demand in demands]
    for (index, cards), shares in zip(parts, best.shares, strict=True):
        subflows = demands[index].route.subflows
        for places, share in zip(cards, shares, strict=True):
            whole = math.fsum(subflows[place].share for place in places)
            for place in places:
                chosen[index][place] = share / storages[index] * subflows[place].share / whole
    candidates: list[Sequence[Sequence[float]]] = [
        chosen,
        [router.nearest_shares(demand.route) for demand in demands],
        [[subflow.share for subflow in demand.route.subflows] for demand in demands],
    ]
    ranked: list[tuple[float, float, tuple[Demand, ...]]] = []
    for of_demands in candidates:
        laid = tuple(
            at_basis(
                router.topology,
                replace(demand, route=router.reweighted(demand.route, tuple(shares))),
                basis,
            )
            for demand, shares in zip(demands, of_demands, strict=True)
        )
        system = use_matrix(router.topology, laid, basis=basis).system
        work = ([demand.size for demand in laid], [demand.start for demand in laid])
        end = complete(system, *work).end if timed else 0.0
        ranked.append((end, -math.fsum(shared(system).rates), laid))  # the first of equals wins
    return min(ranked, key=lambda candidate: (rounded(candidate[0]), rounded(candidate[1])))[2]


@contextmanager
def naming_demands(matrix: UseMatrix, lost: Sequence[str] = ()) -> Iterator[None]:
    """Name the demands, and what is on their way, when a solver finds one without a limit.

    Parameters
    ----------
    matrix
        What is solved inside the block.
    lost
        What is out of order in it.

    Raises
    ------
    UnboundedError
        With the names.
    """
    try:
        yield
    except UnboundedError:
        from topo.solve.system import unbounded_demands

        endless = [matrix.demands[index] for index in unbounded_demands(matrix.system)]
        used = dict.fromkeys(
            resource.name
            for resource in matrix.resources
            if any(resource.id in demand.route.use for demand in endless)
        )
        names = listed((demand.name for demand in endless), most=_MOST)
        paths = listed(dict.fromkeys(demand.route.data_path.name for demand in endless))
        without = f"without {listed(lost, most=_MOST)} " if lost else ""
        raise UnboundedError(
            Finding(
                "unbounded-demand",
                f"{without}nothing limits {names} by {paths}: everything on the way is unknown or "
                "unlimited",
                help=f"state a rate for one of {listed(used, most=8)}",
            )
        ) from None


def reasons_of(
    topology: Topology, workload: Workload, path: DataPath, routes: Iterable[Route]
) -> tuple[Reason, ...]:
    """Return every reason of the routes once; what joins the wrong ends is said in one sentence."""
    reasons = merged(reason for route in routes for reason in route.reasons)
    folding = topology.folding
    if folding is not None:
        reasons = tuple(
            replace(reason, about=tuple(dict.fromkeys(map(folding.shown, reason.about))))
            for reason in reasons
        )
    if not any(reason.code == _WRONG_ENDS for reason in reasons):
        return reasons
    first, *_ = ends = ends_of(topology, workload)
    far_names = {name for pair in ends for name in pair.far}
    far = dict.fromkeys(
        name for name in (*workload.sources, *workload.targets) if name in far_names
    )
    return (
        *wrong_ends(topology, path, tuple(far), first.endpoint),
        *(reason for reason in reasons if reason.code != _WRONG_ENDS),
    )


def unknown_capacity(rates: str, unknowns: Sequence[str]) -> tuple[Finding, ...]:
    """Return the finding that `rates` are at most, where there are unknown capacities."""
    if not unknowns:
        return ()
    names = listed(ranges(unknowns), most=_MOST)
    message = f"{rates} are at most: the capacity of {names} is unknown"
    return (Finding("unknown-capacity", message, severity="warning"),)


@dataclass(frozen=True, slots=True)
class Completion:
    """How the demands of a use matrix are done with, max-min fair at every moment.

    Parameters
    ----------
    rate
        All bytes over `time`; without sizes bytes/s while all run.
    start_rate
        Bytes/s while all run.
    time
        Seconds until the last byte; `None` without sizes.
    stops
        What stops the demands that are done last: the demand's index with the full resources, once
        for each set that stops it at some moment. Without sizes all demands.
    spans
        What ran when; empty where all demands are done at once, and where they are too many.
    certified
        Whether rates and time were checked.
    """

    rate: float
    start_rate: float
    time: float | None
    stops: tuple[tuple[int, tuple[int, ...]], ...]
    spans: tuple[Span, ...] = ()
    certified: bool = False


def completion(matrix: UseMatrix, allocation: Allocation, *, sized: bool) -> Completion:
    """Return when the demands are done, which is not at once where their rates differ.

    As demands finish, the others speed up.

    Parameters
    ----------
    matrix, allocation
        The demands, and what each gets while all run.
    sized
        Whether somebody said how many bytes there are.
    """
    total = matrix.total(allocation.rates)
    stops = tuple(enumerate(allocation.stops))
    if not sized:
        return Completion(total, total, None, stops, certified=allocation.certified)
    sizes = [demand.size for demand in matrix.demands]
    times = [size / rate for size, rate in zip(sizes, allocation.rates, strict=True)]
    end = max(times)
    if end <= min(times) * (1 + TIE):
        return Completion(total, total, end, stops, certified=allocation.certified)
    from topo.solve.fluid import complete  # only where demands end at different times

    timeline = complete(matrix.system, sizes)
    end = timeline.end
    last = {index for index, finish in enumerate(timeline.finishes) if finish >= end * (1 - TIE)}
    moments = dict.fromkeys(
        (index, full)
        for span in timeline.spans
        for index, full in zip(span.demands, span.stops, strict=True)
        if index in last
    )
    return Completion(
        rate=matrix.total(sizes) / end,
        start_rate=total,
        time=end,
        stops=tuple(moments) or tuple(stop for stop in stops if stop[0] in last),
        spans=timeline.spans,
        certified=timeline.certified,
    )


@dataclass(frozen=True, slots=True)
class Solved:
    """A use matrix solved: what each demand gets, until when, and the most that passes each column.

    `peaks` are bytes/s at any time; infinite where it is not kept what ran when.
    """

    allocation: Allocation
    whole: Completion
    peaks: Sequence[float]


def solved(matrix: UseMatrix, *, sized: bool) -> Solved:
    """Return the demands of a use matrix run until the last is done, as `completion` does.

    Raises
    ------
    UnboundedError
        Where nothing limits a demand (`naming_demands` says which).
    """
    allocation = shared(matrix.system)
    whole = completion(matrix, allocation, sized=sized)
    return Solved(allocation, whole, peaks_of(matrix, allocation, whole))


def bottlenecks_of(
    matrix: UseMatrix, allocation: Allocation, whole: Completion
) -> tuple[Bottleneck, ...]:
    """Return the full resources that stop a demand that is done last, in the matrix's order.

    A limit that a workload states is no part of the machine, and not among them.
    """
    stopped: dict[int, dict[str, None]] = {}
    for demand, stops in whole.stops:
        for resource in stops:
            if matrix.resources[resource].kind != "workload-limit":
                stopped.setdefault(resource, {})[matrix.demands[demand].name] = None
    capacities = matrix.system.capacities
    return tuple(
        Bottleneck(
            resource=matrix.resources[index],
            basis=matrix.basis,
            capacity=capacities[index],
            # what is full later only is loaded with all that it has, then
            load=allocation.loads[index]
            if allocation.loads[index] >= capacities[index] * (1 - TIE)
            else capacities[index],
            stops=tuple(names),
        )
        for index, names in sorted(stopped.items())
    )


def own_limits_of(matrix: UseMatrix, whole: Completion) -> tuple[OwnLimit, ...]:
    """Return what stops the demands done last that no full resource stops, each once."""
    own_limits: dict[OwnLimit, None] = {}
    for index, stops in whole.stops:
        if any(matrix.resources[stop].kind == "workload-limit" for stop in stops):
            own_limits[OwnLimit()] = None
        elif not stops:
            demand = matrix.demands[index]
            path, stated = demand.route.data_path, demand.limit >= demand.own_limit
            serial = path.stages == "serial"
            limit = OwnLimit(path.workers, serial, path.near_end)
            limit = OwnLimit(model=demand.model) if stated else limit
            own_limits[limit] = None
    return tuple(own_limits)


def _are_tied(matrix: UseMatrix, whole: Completion) -> bool:
    """Whether full resources of several classes stop the same demands at the same moments."""
    at_once = [{matrix.resources[index].kind for index in stops} for _, stops in whole.stops]
    kinds = {kind for group in at_once for kind in group}

    parts = components(kinds, lambda kind: {k for group in at_once if kind in group for k in group})
    return len(kinds) > 1 and len(parts) == 1


def shared(system: System) -> Allocation:
    """Return the max-min fair rates; like demands of a large system are solved as one."""
    if len(system.resources) <= _MOST_ENTRIES_ONE_BY_ONE:
        return max_min(system)
    from topo.solve.equivalence import max_min_by_class  # NumPy: a small machine does without

    return max_min_by_class(system)


def _rate_at(
    topology: Topology, demands: Sequence[Demand], basis: Basis, *, sized: bool
) -> tuple[float, tuple[str, ...]]:
    """Return the total at a basis, and what is unknown.

    There one worker's stages have other rates as well.
    """
    at = [at_basis(topology, demand, basis) for demand in demands]
    matrix = use_matrix(topology, at, basis=basis)
    run = solved(matrix, sized=sized)
    return run.whole.rate, matrix.unknowns(run.peaks)


def peaks_of(matrix: UseMatrix, allocation: Allocation, whole: Completion) -> Sequence[float]:
    """Return the most bytes/s that ever pass each resource, until all demands are done.

    With many demands it is not kept what ran when, and then nothing bounds them.
    """
    if whole.rate == whole.start_rate:
        return allocation.loads
    return most_loads(matrix, whole.spans) if whole.spans else [math.inf] * len(matrix.resources)


def most_loads(matrix: UseMatrix, spans: Iterable[Span]) -> list[float]:
    """Return the most bytes/s that pass each resource in any of some spans."""
    system, peaks = matrix.system, [0.0] * len(matrix.resources)
    for span in spans:
        loads = [0.0] * len(peaks)
        for demand, rate in zip(span.demands, span.rates, strict=True):
            for entry in range(system.starts[demand], system.starts[demand + 1]):
                loads[system.resources[entry]] += rate * system.multiplicities[entry]
        peaks = list(map(max, peaks, loads))
    return peaks


def _cores(topology: Topology, routed: PathAnswer, rate: float) -> CopyingCores | None:
    copies = routed.counts.core_copies
    if not copies:
        return None
    hosts = dict.fromkeys(
        transfer.engine
        for route in routed.routes
        for subflow in route.subflows
        for transfer in subflow.transfers
        if transfer.move.mover == "core"
    )
    slowest = min(hosts, key=lambda host: core_copy_rate(topology, host))
    per_core = core_copy_rate(topology, slowest)
    figure = topology[slowest].part.figure("core-copy") if slowest in topology else None
    return CopyingCores(
        cores=copies * rate / per_core,
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
