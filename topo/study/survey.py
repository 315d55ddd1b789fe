"""Which data paths are possible, and how each is laid, without asking how fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths.registry import count, data_path, data_paths
from topo.flows.demands import demands_of
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.study.answer import chosen_split, reasons_of
from topo.study.compare import ask, chosen_workloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, DataPath, Workload
    from topo.routes.route import Policy, Reason, Route, Verdict
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class RoutedPath:
    """A data path laid for one workload: the worst verdict, every reason, one route a GPU."""

    workload: Workload
    verdict: Verdict
    reasons: tuple[Reason, ...]
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class PathSurvey:
    """A data path: what its moves do to RAM, and how it is laid for each workload asked about."""

    data_path: DataPath
    counts: Counts
    laid: tuple[RoutedPath, ...]


def survey(
    topology: Topology,
    *,
    workload: str | None = None,
    via: Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> tuple[PathSurvey, ...]:
    """Lay data paths for the workloads of a topology, or between two ends.

    Parameters
    ----------
    topology
        The machine.
    workload
        One workload's name; all of the file's by default, and where it has none, all of its
        storage and GPUs.
    via
        Data paths; by default all that the file can use.
    source, target
        Device names or stems: ask about these instead of the file's workloads.
    at
        Which figure of each capacity decides the best division over cards.
    policy
        How cards, memories and equal walks are chosen.
    """
    if source or target or not (topology.description.workloads or workload):
        workloads: tuple[Workload, ...] = (ask(topology, source, target),)
    else:
        workloads = chosen_workloads(topology, workload)
    description = topology.description
    if via:
        paths = tuple(data_path(description, name) for name in via)
    else:
        far_ends = {"peer" if one.direction == "copy" else "storage" for one in workloads}
        paths = tuple(path for path in data_paths(description) if path.far_end in far_ends)
    router = Router(topology, policy)
    return tuple(
        PathSurvey(path, count(path), tuple(_laid(router, one, path, at) for one in workloads))
        for path in paths
    )


def _laid(router: Router, workload: Workload, path: DataPath, basis: Basis) -> RoutedPath:
    demands = chosen_split(router, demands_of(router, workload, path, basis=basis), basis)
    routes = tuple(demand.route for demand in demands)
    reasons = reasons_of(router.topology, workload, path, routes)
    return RoutedPath(workload, verdict_of(reasons), reasons, routes)
