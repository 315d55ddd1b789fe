"""All that a report of a machine shows: its workloads by every data path, and what binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_paths
from topo.errors import UnboundedError
from topo.records import dataclass
from topo.study.answers import Comparison, LadderEnd, PathAnswer, Rung, WorkloadAnswer
from topo.study.bottleneck import ladder_of
from topo.study.compare import compare
from topo.study.question import joins
from topo.study.timeline import AtOnce, at_once
from topo.topology.build import build_topology
from topo.topology.locality import matrix, matrix_devices

if TYPE_CHECKING:
    from topo.description.description import Basis, Workload
    from topo.errors import Finding
    from topo.routes.route import Policy
    from topo.topology.topology import Topology

_FOLDED_FROM = 150  # devices of a cluster from which what is alike stands together on the page
_MOST_ROWS = 24  # of the localities


@dataclass(frozen=True, slots=True)
class PathReport:
    """A data path's answer, with its ladder where it is not refused.

    `usual` is whether the comparison asks about it: by itself, or because somebody named it.
    """

    answer: PathAnswer
    usual: bool
    ladder: tuple[Rung, ...] = ()
    end: LadderEnd | None = None


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
    findings
        What it rests on.
    """

    comparison: Comparison
    workloads: tuple[WorkloadReport, ...]
    together: AtOnce | None
    localities: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()

    @property
    def topology(self) -> Topology:
        """The machine."""
        return self.comparison.topology


def report(
    topology: Topology,
    *,
    workload: str | None = None,
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
        Is told how many data paths are answered, and of how many.

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
    comparison = compare(
        topology,
        workload=workload,
        via=via,
        source=source,
        target=target,
        at=at,
        policy=policy,
    )
    other_paths = {
        answer.workload.name: [
            path.name
            for path in data_paths(topology.description)
            if path.name not in {usual.name for usual in answer.paths}
            and joins(topology, answer.workload, path)
        ]
        for answer in comparison.workloads
    }
    total, done = sum(map(len, other_paths.values())), 0
    workloads = []
    for answer in comparison.workloads:
        paths = list(answer.paths)
        for name in other_paths[answer.workload.name]:
            try:
                asked = compare(
                    topology, workload=answer.workload, via=(name,), at=at, policy=policy
                )
            except UnboundedError:  # it has no rate that anybody knows: nothing to show
                continue
            paths.append(asked[name])
            done += 1
            if progress is not None:
                progress(done, total)
        reports = []
        for path in paths:
            rungs: tuple[Rung, ...] = ()
            end = None
            if path.matrix is not None:
                rungs, end = ladder_of(topology, path.matrix, sized=answer.workload.sized)
            reports.append(PathReport(path, path in answer.paths, rungs, end))
        workloads.append(WorkloadReport(answer, tuple(reports)))
    rows, server = matrix_devices(topology), topology.tree.server_of
    if len(rows) > _MOST_ROWS:
        rows = tuple(row for row in rows if server(row.name) == server(rows[0].name))[:_MOST_ROWS]
    return Report(
        comparison=comparison,
        workloads=tuple(workloads),
        together=at_once(comparison),
        localities=matrix(topology, devices=rows),
        findings=(*topology.findings, *comparison.findings),
    )
