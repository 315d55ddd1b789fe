"""All that a report of a machine shows: its workloads by every data path, and what binds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_paths
from topo.errors import UnboundedError
from topo.flows.ends import paired_ends
from topo.records import dataclass
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.routes.usage import alone, total_use
from topo.study.answers import Comparison, LadderEnd, PathAnswer, Rung, WorkloadAnswer
from topo.study.bottleneck import ladder_of
from topo.study.compare import compare
from topo.study.doubt import Doubt, doubt_of
from topo.study.question import joins
from topo.study.timeline import AtOnce, at_once
from topo.topology.build import build_topology
from topo.topology.locality import matrix, matrix_devices

if TYPE_CHECKING:
    from topo.description.description import Basis, Workload
    from topo.errors import Finding
    from topo.topology.topology import Topology

_FOLDED_FROM = 150  # devices of a cluster from which what is alike stands together on the page
_MOST_ROWS = 24  # of the localities
_MOST_PAIRS = 128  # of storage and endpoints: more nobody reads


@dataclass(frozen=True, slots=True)
class PairRate:
    """Bytes/s between an endpoint and storage, by one card if any, while nothing else runs.

    `rate` is `None` where nobody knows what limits it; `at_most` where something on the way might
    limit it further.
    """

    far: str
    endpoint: str
    rate: float | None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class PathReport:
    """A data path's answer, with its ladder where it is not refused.

    `usual` is whether the comparison asks about it: by itself, or because somebody named it; then
    `pairs` are what each storage, or card to it, and endpoint could do alone.
    """

    answer: PathAnswer
    usual: bool
    ladder: tuple[Rung, ...] = ()
    end: LadderEnd | None = None
    pairs: tuple[PairRate, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """A workload by every data path that joins its ends: those of the comparison first."""

    answer: WorkloadAnswer
    paths: tuple[PathReport, ...]

    @property
    def workload(self) -> Workload:
        """What moves."""
        return self.answer.workload


@dataclass(frozen=True, slots=True)
class Report:
    """What a report of a machine says.

    Parameters
    ----------
    comparison
        The workloads by legacy and direct, or by what was asked for, with what follows.
    workloads
        The same by every data path.
    together
        The workloads run at once, by each data path that all can take; `None` for one alone.
    localities
        The locality class of every pair of GPUs and cards; of many servers, in the first one.
    doubt
        How sure the comparison's answers are: where it is theoretical, the achievable ones, since
        in theory there is little to doubt.
    findings
        What it rests on.
    """

    comparison: Comparison
    workloads: tuple[WorkloadReport, ...]
    together: AtOnce | None
    localities: Mapping[str, Mapping[str, str]]
    doubt: Doubt
    findings: tuple[Finding, ...] = ()

    @property
    def topology(self) -> Topology:
        """The machine."""
        return self.comparison.topology


def report(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Answer what a report shows. Machines that are used many times are answered by their kinds.

    Parameters
    ----------
    topology, workload, via, source, target, at, policy
        As for `topo.compare`.
    progress
        Is told how many answers are done with, and of how many.

    Examples
    --------
    >>> import topo
    >>> whole = report(topo.load("gds-textbook"), workload="load")
    >>> [path.answer.name for path in whole.workloads[0].paths if path.answer.rate][:3]
    ['legacy', 'direct', 'legacy-pageable']
    """
    written = topology.description.folded
    if topology.folding is None and written is not None and len(topology.devices) >= _FOLDED_FROM:
        topology = build_topology(written, fold_from=_FOLDED_FROM)

    def compared(basis: Basis) -> Comparison:
        return compare(
            topology,
            workload=workload,
            via=via,
            source=source,
            target=target,
            at=basis,
            policy=policy,
        )

    comparison = compared(at)
    other_paths = {
        answer.workload.name: [
            path.name
            for path in data_paths(topology.description)
            if path.name not in {usual.name for usual in answer.paths}
            and joins(topology, answer.workload, path)
        ]
        for answer in comparison.workloads
    }
    # every card serves every endpoint, as the pairs are asked about one by one
    router = Router(topology, replace(policy or Policy(), nics="stripe"))
    others, done = sum(map(len, other_paths.values())), 0
    total = others + sum(len(answer.paths) for answer in comparison.workloads)
    workloads = []
    for answer in comparison.workloads:
        paths = list(answer.paths)
        for name in other_paths[answer.workload.name]:
            try:
                asked = compare(
                    topology, workload=answer.workload, via=(name,), at=at, policy=policy
                )
                paths.append(asked[name])
            except UnboundedError:  # it has no rate that anybody knows: nothing to show
                pass
            done += 1
            if progress is not None:
                progress(done, total)
        reports = []
        for path in paths:
            rungs: tuple[Rung, ...] = ()
            end = None
            if path.matrix is not None:
                rungs, end = ladder_of(path.matrix, sized=answer.workload.sized)
            usual = path in answer.paths
            pairs = pair_rates(router, answer.workload, path, at) if usual else ()
            reports.append(PathReport(path, usual, rungs, end, pairs))
        workloads.append(WorkloadReport(answer, tuple(reports)))
    rows, server = matrix_devices(topology), topology.tree.server_of
    if len(rows) > _MOST_ROWS:
        rows = tuple(row for row in rows if server(row.name) == server(rows[0].name))[:_MOST_ROWS]
    doubted = doubt_of(
        compared("achievable") if at == "theoretical" else comparison,
        progress=progress and (lambda of_doubt, _: progress(others + of_doubt, total)),
    )
    return Report(
        comparison=comparison,
        workloads=tuple(workloads),
        together=at_once(comparison),
        localities=matrix(topology, devices=rows),
        doubt=doubted,
        findings=(*topology.findings, *comparison.findings),
    )


def pair_rates(
    router: Router, workload: Workload, path: PathAnswer, basis: Basis
) -> tuple[PairRate, ...]:
    """Return what each pair of storage, or of a card to it, and endpoint could do alone.

    Parameters
    ----------
    router
        Lays the routes; it should let every card serve every endpoint.
    workload, path
        What moves, and by which data path; none of a refused one, or in a folded topology.
    basis
        Which figure of each capacity to use.
    """
    topology = router.topology
    if path.matrix is None or topology.folding is not None:
        return ()
    ends = paired_ends(router, workload)
    if sum(len(pair.far) for pair in ends) > _MOST_PAIRS:
        return ()
    rates = []
    for pair in ends:
        route = router.route(
            path.data_path, pair.far, pair.endpoint, pair.direction, target=workload.target
        )
        for cards in route.by_far_end_and_card():
            for places in cards:
                subflows = alone([route.subflows[place] for place in places])
                use = total_use(subflows)
                used = [(r, use[name]) for name, r in route.resources(topology, use).items()]
                rate = min(r.capacity.rate(basis) / weight for r, weight in used)
                first = subflows[0]
                far = first.far if len(pair.far) > 1 or not first.card else first.card
                if first.card and len(pair.far) > 1 and len(cards) > 1:
                    far = f"{first.far} by {first.card}"
                known = rate if math.isfinite(rate) else None
                bounded = any(r.capacity.unknown(basis, rate * weight) for r, weight in used)
                rates.append(PairRate(far, pair.endpoint, known, bounded))
    return tuple(rates) if len(rates) <= _MOST_PAIRS else ()
