"""Legacy against direct, or any data paths against each other, for a file's workloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeVar

from topo.datapaths.registry import count, data_path, data_paths
from topo.description.description import Basis, DataPath, Workload
from topo.errors import Finding, UnboundedError
from topo.flows.demands import Demand, at_basis, demands_of, pairs_of, use_matrix
from topo.phrases import listed
from topo.routes.route import Policy, Reason, Verdict, links_range, merged
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.study.answer import (
    answer,
    chosen_split,
    completion,
    reasons_of,
    running,
    shared,
    unknown_capacity,
)
from topo.study.answers import (
    AS_FAST,
    CollectiveBound,
    Comparison,
    PathAnswer,
    PathRoutes,
    RoutedPath,
    WorkloadAnswer,
)
from topo.study.insights import (
    AllAtOnce,
    CoresBusy,
    Faster,
    IdleLinks,
    Insight,
    MeasuredOtherwise,
    NeedMet,
    NoFaster,
    NotKnown,
    NotModelled,
    OkSlower,
    Refused,
    SerialWorker,
    Slower,
    SlowerCards,
    TakenAsUnlimited,
    ThroughRam,
)
from topo.study.question import (
    ask,
    asked_workloads,
    between_servers,
    end_words,
    joins,
    path_names,
    usual_paths,
)
from topo.topology.hosts import host_numbers
from topo.topology.topology import Topology

_MOST = 4  # names in a list before "and 3 more"
# What a copy among GPUs and network cards may join.
_PEERS = {("gpu", "gpu"), ("card", "gpu")}


def compare(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str | Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Comparison:
    """Compare data paths for the workloads of a topology.

    Parameters
    ----------
    topology
        The machine.
    workload
        One workload's name, or a workload value; all of the file's by default.
    via
        Data paths; by default the workload's own `via`, else legacy and direct. A workload whose
        ends none of them joins is left out, where another is left.
    source, target
        Device names or stems: ask about these instead of the file's workloads.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Comparison
        Indexed by data path when there is one workload.

    Raises
    ------
    UnknownNameError
        For a workload, device or data path that is not there.
    DescriptionError
        When there is nothing to compare: no workload in the file and none asked for.

    Examples
    --------
    >>> import topo
    >>> machine = topo.load("gds-textbook")
    >>> topo.compare(machine, workload="load")["direct"].time_s
    6.4
    """
    if isinstance(workload, Workload):
        workloads: tuple[Workload, ...] = (workload,)
    else:
        workloads = asked_workloads(topology, workload, source, target)
    return compare_all(topology, workloads, via=via, at=at, policy=policy or Policy())


def compare_all(
    topology: Topology,
    workloads: tuple[Workload, ...],
    *,
    via: str | Sequence[str] = (),
    at: Basis,
    policy: Policy,
) -> Comparison:
    """Compare data paths for some workloads, as `compare` does for those of a file."""
    via = path_names(via)
    router = Router(topology.telling_apart(workloads), policy)
    topology = router.topology
    # What is asked of several workloads is asked of those that it can serve.
    served = {workload.name: via for workload in workloads}
    left_out: list[Workload] = []
    if via and len(workloads) > 1:
        definitions = [data_path(topology.description, name) for name in via]
        joined = {
            workload.name: tuple(
                path.name for path in definitions if joins(topology, workload, path)
            )
            for workload in workloads
        }
        if any(joined.values()):
            served = joined
            left_out = [workload for workload in workloads if not joined[workload.name]]
    answers = tuple(
        _workload_answer(router, workload, served[workload.name], at)
        for workload in workloads
        if workload not in left_out
    )
    findings = [*_findings(answers, at)]
    if left_out:
        names = listed((workload.name for workload in left_out), most=_MOST)
        be, join = "is" if len(left_out) == 1 else "are", "joins" if len(via) == 1 else "join"
        message = f"{names} {be} left out: {listed(via, most=_MOST)} {join} other ends"
        findings.append(Finding("workload-left-out", message, severity="note"))
    return Comparison(topology, at, policy, answers, tuple(findings))


def _workload_answer(
    router: Router, workload: Workload, via: tuple[str, ...], basis: Basis
) -> WorkloadAnswer:
    def by(name: str) -> PathAnswer:
        return answer(router, workload, data_path(description, name), basis=basis)

    description = router.topology.description
    stated = via or workload.via
    names = dict.fromkeys(stated or usual_paths(router.topology, workload))
    paths = [by(name) for name in names]
    if not stated:  # what is taken instead is asked about as well
        instead = dict.fromkeys(
            reason.instead for path in paths for reason in path.reasons if reason.instead
        )
        paths += [by(name) for name in instead if name not in names]
    result = WorkloadAnswer(workload=workload, paths=tuple(paths))
    if workload.collective:
        result = replace(result, bound=_bound(router.topology, result, basis))
    facts = tuple(_insights(router, result, basis))
    if workload.collective:
        from topo.study.collective_insights import collective_insights

        facts = (*facts, *collective_insights(router.topology, result))
    return replace(result, insights=facts)


def _bound(topology: Topology, result: WorkloadAnswer, basis: Basis) -> CollectiveBound | None:
    """Return what no algorithm of a collective exceeds; switches reduce where a path has them."""
    from topo.study.collective_bound import collective_bound  # few machines have a collective

    laid = [path.collective for path in result.paths if path.collective is not None]
    if len(result.workload.sources) == 1:  # one is left of those that failed
        return None
    in_switch = next((collective for collective in laid if collective.in_switch), laid[0])
    return collective_bound(topology, in_switch, basis, root=result.workload.root)


# --- one path, where nobody names one -------------------------------------------------------------


class Laid(Protocol):
    """What came of a data path for a workload, be it laid or answered."""

    @property
    def data_path(self) -> DataPath:
        """The data path."""

    @property
    def verdict(self) -> Verdict:
        """The worst over its GPUs."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason once."""


_Laid = TypeVar("_Laid", bound=Laid)


def usable(
    topology: Topology,
    workload: Workload,
    lay: Callable[[DataPath], _Laid],
    *,
    stated: str = "",
    first: str = "",
) -> tuple[_Laid, tuple[Finding, ...]]:
    """Return a workload by the data path that it is asked about, and a note if that is a fallback.

    Where nobody states one, it is the first of the workload's own, else the best of its kind
    (direct, peer-nvlink, nic-direct); where that is refused, what is taken instead, and so on.
    Where all are refused it is the first.

    Parameters
    ----------
    topology, workload
        The machine, and what moves.
    lay
        Lays the workload by a data path, or answers it.
    stated
        The data path that somebody named: it alone is asked about, refused or not.
    first
        What is asked about before anything else.
    """
    if stated:
        return lay(data_path(topology.description, stated)), ()
    own_or_best = workload.via or tuple(reversed(usual_paths(topology, workload)))
    waiting = [*([first] if first else []), *own_or_best]
    laid: dict[str, _Laid] = {}
    while waiting:
        name = waiting.pop(0)
        if name in laid:
            continue
        laid[name] = result = lay(data_path(topology.description, name))
        if result.verdict != "refused":
            break
        instead = taken_instead(topology, result)
        waiting = [*waiting, *instead] if workload.via else [*instead, *waiting]
    best, *_ = laid.values()
    if result.verdict == "refused" or result is best:
        return best, ()
    why = (reason.text for reason in best.reasons if reason.effect == "refused")
    message = (
        f"{workload.name} goes by {result.data_path.name}: {best.data_path.name} is refused, "
        f"{listed(why, most=_MOST)}"
    )
    note = Finding("taken-instead", message, severity="note", place=workload.place)
    return result, (note,)


def taken_instead(topology: Topology, refused: Laid) -> tuple[str, ...]:
    """Return the data paths that a refused one leads to, by what refuses it and by itself."""
    names = [reason.instead for reason in refused.reasons if reason.effect == "refused"]
    fallback = refused.data_path.falls_back_to
    modes = {settings.compat_mode for settings in topology.settings_by_host.values()}
    if fallback != "compat" or modes != {"off"}:
        names.append(fallback)
    return tuple(dict.fromkeys(filter(None, names)))


# --- what the answers rest on ---------------------------------------------------------------------


def _findings(answers: tuple[WorkloadAnswer, ...], basis: Basis) -> Iterator[Finding]:
    """Yield what the answers rest on: an efficiency not used, unknown figures, assumptions."""
    for result in answers:
        if result.workload.efficiency and basis != "theoretical":
            yield Finding(
                "efficiency-ignored",
                f"the efficiency of workload {result.workload.name} is for theoretical results; "
                f"at {basis} it is ignored",
                severity="note",
                place=result.workload.place,
            )
    by_path: dict[str, list[PathAnswer]] = {}
    for result in answers:
        for path in result.paths:
            by_path.setdefault(path.name, []).append(path)
    # each is said once for all data paths that meet the same
    paths_by_unknowns: dict[tuple[str, ...], list[str]] = {}
    paths_by_reason: dict[Reason, list[str]] = {}
    for name, paths in by_path.items():
        unknowns = tuple(dict.fromkeys(unknown for path in paths for unknown in path.unknowns))
        paths_by_unknowns.setdefault(unknowns, []).append(name)
        possible = (path for path in paths if path.verdict != "refused")
        for reason in merged(reason for path in possible for reason in path.reasons):
            if reason.effect == "assumed":
                paths_by_reason.setdefault(reason, []).append(name)
    for unknowns, names in paths_by_unknowns.items():
        yield from unknown_capacity(f"rates by {listed(names, most=_MOST)}", unknowns)
    for reason, names in paths_by_reason.items():
        text = f"{listed(names, most=_MOST)}: {reason.text}"
        yield Finding(reason.code, text, severity="note", place=reason.place)


# --- what follows from the answers ----------------------------------------------------------------


def _insights(router: Router, result: WorkloadAnswer, basis: Basis) -> Iterator[Insight]:
    """Yield what a careful engineer would say about the answers, most important first."""
    topology = router.topology
    solved = [path for path in result.paths if path.rate is not None]
    for path in result.paths:
        if path.rate is None:
            yield Refused(topology, path, _fallback(router, result.workload, path))
        elif path.verdict == "unknown":
            yield NotKnown(topology, path)
    yield from (NeedMet(path) for path in solved if path.met is not None)
    if len(solved) > 1:  # the path that spares the RAM, or else the first, against each other
        best = min(solved, key=lambda path: path.counts.ram_traversals > 0)
        for path in solved:
            if path is not best:
                yield from _against(best, path)
    for path in solved:
        if path.verdict == "ok-slower":
            yield OkSlower(topology, path)
        yield from _slower_cards(router, result.workload, path, basis)
    if solved:
        yield from _all_at_once(topology, min(solved, key=lambda path: path.counts.ram_traversals))
    direct = next((path for path in solved if not path.counts.ram_traversals), None)
    unlimited: set[Insight] = set()
    for path in solved:
        if path.counts.ram_traversals:
            yield ThroughRam(path)
        if path.cores is not None:
            yield CoresBusy(path, path.cores)
            serial, direct_rate = path.serial_rate, direct and direct.rate
            if direct and serial and direct_rate and direct_rate > serial * (1 + AS_FAST):
                yield SerialWorker(path, direct, serial, direct_rate / serial)
        facts = (*_idle_links(path), *_unlimited(topology, path))
        yield from (fact for fact in facts if fact not in unlimited)
        unlimited.update(facts)  # several paths can meet the same: it is a fact once


def _fallback(router: Router, workload: Workload, path: PathAnswer) -> str:
    """Return the first data path that a refused one falls back to and that is not refused as well.

    Hops of a collective fall back by themselves.
    """
    if workload.collective:
        return ""
    refused = next(route.endpoint for route in path.routes if route.verdict == "refused")
    far, endpoint, direction = next(e for e in pairs_of(router, workload) if e[1] == refused)
    tried, name = {path.name}, path.data_path.falls_back_to
    while name and name not in tried:
        tried.add(name)
        fallback = data_path(router.topology.description, name)
        route = router.route(fallback, far, endpoint, direction, target=workload.target)
        if route.verdict != "refused":
            return name
        name = fallback.falls_back_to
    return ""


def _idle_links(path: PathAnswer) -> Iterator[IdleLinks]:
    """Yield the links that a path leaves idle beside wider ones and uses for nothing else."""
    transfers = [
        transfer for route in path.routes for flow in route.subflows for transfer in flow.transfers
    ]
    idle = {step.link.name: None for transfer in transfers for step in transfer.idle}
    used = {step.link.name for transfer in transfers for step, _ in transfer.shares}
    if names := tuple(name for name in idle if name not in used):
        yield IdleLinks(names)


def _slower_cards(
    router: Router, workload: Workload, path: PathAnswer, basis: Basis
) -> Iterator[SlowerCards]:
    """Yield the cards that bind while others of the same GPUs could do better without them."""
    assert path.matrix is not None
    assert path.rate is not None
    topology = router.topology
    devices = {resource.device for resource in path.bound if resource.device in topology.devices}
    slow = {name for name in devices if topology[name].is_nic}
    chosen = router.policy.nics == "best" or path.collective is not None
    if not slow or chosen or topology.folding is not None:
        return
    left_out: dict[str, None] = {}
    demands = []
    for demand in path.matrix.demands:
        subflows = demand.route.subflows
        by_storage: dict[str, list[float]] = {}  # in all, and by other cards
        for subflow in subflows:
            shares = by_storage.setdefault(subflow.far, [0.0, 0.0])
            shares[0] += subflow.share
            shares[1] += 0.0 if subflow.card in slow else subflow.share
        factors = [by_storage[subflow.far] for subflow in subflows]
        shares_without = [
            subflow.share * whole / others if others else subflow.share
            for subflow, (whole, others) in zip(subflows, factors, strict=True)
        ]
        for index, subflow in enumerate(subflows):
            if subflow.card in slow and factors[index][1]:
                shares_without[index] = 0.0
                left_out[subflow.card] = None
        route = router.reweighted(demand.route, tuple(shares_without))
        demands.append(at_basis(topology, replace(demand, route=route), basis))
    if not left_out:
        return
    matrix = use_matrix(topology, demands, basis=basis)
    try:
        without = completion(matrix, shared(matrix.system), sized=workload.sized).rate
    except UnboundedError:
        return
    if without > path.rate * (1 + AS_FAST):
        best_router = Router(topology, replace(router.policy, nics="best"))
        best = answer(best_router, workload, path.data_path, basis=basis)
        yield SlowerCards(path, tuple(left_out), without, best.rate or without)


def _all_at_once(topology: Topology, path: PathAnswer) -> Iterator[AllAtOnce]:
    """Yield what a host has when all ask at once, where by itself it would have more."""
    matrix = path.matrix
    if matrix is None or path.collective or not topology.of_kind("network-switch"):
        return
    host_of = host_numbers(topology)
    by_host: dict[int, list[Demand]] = {}
    for demand in matrix.demands:
        by_host.setdefault(host_of[demand.endpoint], []).append(demand)
    count = sum(demands[0].count for demands in by_host.values())
    if count == 1:
        return
    rate_of = {
        host: math.fsum(path.rates[demand.names] for demand in of_host)
        for host, of_host in by_host.items()
    }
    least = min(rate_of, key=rate_of.__getitem__)
    each, demands = rate_of[least], by_host[least]
    if topology.folding is not None:  # nothing but this host's own use counts
        topology = replace(topology, folding=None)
        demands = [replace(demand, count=1) for demand in demands]
    alone = math.fsum(shared(use_matrix(topology, demands, basis=matrix.basis).system).rates)
    if alone > each * (1 + AS_FAST):
        alike = max(rate_of.values()) <= each * (1 + AS_FAST)
        yield AllAtOnce(path, count, each, alone, alike)


def _against(path: PathAnswer, rival: PathAnswer) -> Iterator[Insight]:
    """Yield which of two is faster, and by what was measured, where that is another."""
    assert path.rate is not None
    assert rival.rate is not None
    ratio = path.rate / rival.rate
    if abs(ratio - 1) <= AS_FAST:
        full = {bottleneck.resource.id for bottleneck in path.bottlenecks}
        resources = [bottleneck.resource for bottleneck in rival.bottlenecks]
        yield NoFaster(
            path,
            rival,
            shared=tuple(resource for resource in resources if resource.id in full),
            only_rival=tuple(resource for resource in resources if resource.id not in full),
        )
    else:
        yield Faster(path, rival, ratio) if ratio > 1 else Slower(path, rival)
    matrices = [side.matrix for side in (path, rival) if side.matrix]
    if any(resource.capacity.measured for matrix in matrices for resource in matrix.resources):
        rates = (path.by_basis["measured"], rival.by_basis["measured"])
        result = _result(*rates)
        bounds = [side.at_most_by_basis["measured"] for side in (path, rival)]
        proven = not any({"faster": bounds[:1], "slower": bounds[1:], "same": bounds}[result])
        if proven and result != _result(path.rate, rival.rate):
            yield MeasuredOtherwise(path, rival, rates, result)


def _result(rate: float, rival_rate: float) -> Literal["faster", "same", "slower"]:
    if math.isclose(rate, rival_rate, rel_tol=AS_FAST):
        return "same"
    return "faster" if rate > rival_rate else "slower"


def _unlimited(topology: Topology, path: PathAnswer) -> Iterator[Insight]:
    """Yield what the user took as unlimited: appliances, then anything else."""
    resources = [topology.resources[name] for name in path.unlimited if name in topology.resources]
    sides = ("storage-read", "storage-write")
    storages = [resource.device for resource in resources if resource.kind in sides]
    names = [resource.name for resource in resources if resource.kind not in sides]
    if storages:
        yield NotModelled(tuple(dict.fromkeys(storages)))
    if names:
        yield TakenAsUnlimited(tuple(dict.fromkeys(names)))


# --- without asking how fast ----------------------------------------------------------------------


def paths(  # noqa: PLR0913  (everything after the machine is by keyword)
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str | Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
    routes: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[PathRoutes, ...]:
    """Lay data paths for the workloads of a topology, or between two ends.

    Parameters
    ----------
    topology
        The machine.
    workload
        One workload's name, or a workload value; all of the file's by default, and where it has
        none, all of its storage and GPUs.
    via
        Data paths; by default all that the file can use.
    source, target
        Device names or stems: ask about these instead of the file's workloads.
    at
        Which figure of each capacity decides the best division over cards.
    policy
        How cards, memories and equal walks are wanted.
    routes
        Whether every route is kept, and not the first alone: those of thousands of GPUs by every
        data path fill gigabytes.
    progress
        Is told how many data paths are laid, and of how many.
    """
    if isinstance(workload, Workload):
        workloads: tuple[Workload, ...] = (workload,)
    elif topology.description.workloads or workload:
        workloads = asked_workloads(topology, workload, source, target)
    else:
        workloads = (ask(topology, source, target),)
    router = Router(topology.telling_apart(workloads), policy)
    topology = router.topology
    description = topology.description
    if via:
        wanted = tuple(data_path(description, name) for name in path_names(via))
    else:
        joined = {end_words(topology, workload) for workload in workloads}
        if joined & _PEERS:
            joined |= _PEERS
        any_between_servers = any(between_servers(topology, workload) for workload in workloads)
        wanted = tuple(
            path
            for path in data_paths(description)
            if (path.far_end, path.near_end) in joined
            and (not path.between_servers or any_between_servers)
        )

    def routed(workload: Workload, path: DataPath) -> RoutedPath:
        going, cut_off = running(topology, demands_of(router, workload, path, basis=at))
        demands = chosen_split(router, going, at)
        laid = tuple(demand.route for demand in demands)
        reasons = reasons_of(topology, workload, path, laid)
        kept = laid if routes else laid[:1]
        stopped = tuple(demand.names for demand in cut_off)
        return RoutedPath(workload, verdict_of(reasons), reasons, links_range(laid), kept, stopped)

    surveys: list[PathRoutes] = []
    for path in wanted:
        laid = tuple(routed(workload, path) for workload in workloads)
        surveys.append(PathRoutes(path, count(path), laid))
        if progress is not None:
            progress(len(surveys), len(wanted))
    return tuple(surveys)
