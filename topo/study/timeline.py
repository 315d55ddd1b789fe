"""Several workloads at once, over time: who gets what when, what binds, when each is done."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_path
from topo.errors import Finding, NoRouteError, UnknownNameError
from topo.flows.demands import demands_of
from topo.flows.system import use_matrix
from topo.phrases import listed
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.solve.fluid import complete
from topo.study.answer import chosen_split, route_reasons
from topo.study.bounded import naming_demands
from topo.study.compare import DEFAULT_PATHS, chosen_workloads, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from topo.description.description import Basis, Workload
    from topo.flows.demands import Demand
    from topo.flows.system import UseMatrix
    from topo.solve.fluid import Timeline
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Run:
    """One workload from its start to its last byte, by one data path."""

    workload: Workload
    data_path: str
    start: float
    finish: float

    @property
    def duration(self) -> float:
        """Seconds from start to last byte."""
        return self.finish - self.start


@dataclass(frozen=True, slots=True)
class WorkloadRate:
    """What one workload gets during a span: bytes/s in all, its GPUs still running, what stops it.

    `stopped_by` is empty where only the workload's own limits do.
    """

    workload: str
    rate: float
    gpus: tuple[str, ...]
    stopped_by: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A span of seconds in which nothing changes."""

    start: float
    end: float
    rates: tuple[WorkloadRate, ...]

    @property
    def rate(self) -> float:
        """Bytes/s of all workloads together."""
        return math.fsum(one.rate for one in self.rates)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A whole timeline: the runs in the order of the file, the moments in time.

    `finishes` are seconds by demand name (``load gpu0``).
    """

    topology: Topology
    basis: Basis
    runs: tuple[Run, ...]
    moments: tuple[Moment, ...]
    finishes: Mapping[str, float]

    def __getitem__(self, workload: str) -> Run:
        """Return the run of the workload of that name."""
        for run in self.runs:
            if run.workload.name == workload:
                return run
        raise KeyError(workload)

    @property
    def end(self) -> float:
        """Seconds until the last byte of all."""
        return max((run.finish for run in self.runs), default=0.0)

    @property
    def bound(self) -> tuple[Resource, ...]:
        """What stops the workloads while the most of them run, each resource once."""
        busiest = max(self.moments, key=lambda moment: len(moment.rates), default=None)
        rates = busiest.rates if busiest else ()
        return tuple(dict.fromkeys(resource for rate in rates for resource in rate.stopped_by))


def simulate(
    topology: Topology,
    *,
    workloads: Sequence[Workload] | None = None,
    via: str | Mapping[str, str] = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Simulation:
    """Run workloads together, max-min fair at every moment, until each has its bytes.

    Parameters
    ----------
    topology
        The machine.
    workloads
        What runs; all of the file's by default, each from its own `start`.
    via
        The data path of all, or one a workload by name; where it is not said, the first of the
        workload's own `via`, else ``legacy``.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Raises
    ------
    NoRouteError
        If a workload's data path is refused.
    UnknownNameError
        For a workload in `via`, or a data path, that is not there.

    Examples
    --------
    >>> import topo
    >>> found = topo.simulate(topo.load("gds-textbook"), via="legacy")
    >>> [(run.workload.name, round(run.finish, 9)) for run in found.runs]
    [('load', 7.8), ('checkpoint', 2.8)]
    """
    router = Router(topology, policy or Policy())
    chosen = tuple(workloads) if workloads is not None else chosen_workloads(topology, None)
    _check_names(chosen, via)
    paths = {one.name: path_of(topology, one, via) for one in chosen}
    return run_demands(topology, chosen, paths, _demands(router, chosen, paths, at), at)


def run_demands(
    topology: Topology,
    workloads: tuple[Workload, ...],
    paths: Mapping[str, str],
    demands: tuple[Demand, ...],
    at: Basis,
) -> Simulation:
    """Run demands that are laid already, as `simulate` does.

    Parameters
    ----------
    topology
        The machine.
    workloads, paths
        What runs, and the data path of each by name.
    demands
        Those of all workloads; none is refused.
    at
        Which figure of each capacity to use.
    """
    matrix = use_matrix(topology, demands, basis=at)
    with naming_demands(matrix):
        timeline = complete(
            matrix.system,
            [demand.size for demand in demands],
            [demand.start for demand in demands],
            spans=True,
        )
    return Simulation(
        topology=topology,
        basis=at,
        runs=tuple(_run(one, paths[one.name], matrix, timeline) for one in workloads),
        moments=tuple(_moments(matrix, timeline)),
        finishes={
            demand.name: finish for demand, finish in zip(demands, timeline.finishes, strict=True)
        },
    )


def together(
    topology: Topology,
    *,
    workloads: Sequence[Workload] | None = None,
    via: Sequence[str] = DEFAULT_PATHS,
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> tuple[tuple[str, Simulation], ...]:
    """Run the workloads together once by each data path, as ``(data path, simulation)`` pairs.

    A workload that says its own `via` and none of them keeps to its own.

    Raises
    ------
    NoRouteError
        If a data path is refused for a workload.
    """
    chosen = tuple(workloads) if workloads is not None else chosen_workloads(topology, None)
    return tuple(
        (
            name,
            simulate(
                topology,
                workloads=chosen,
                via={one.name: _own_or(topology, one, name, via) for one in chosen},
                at=at,
                policy=policy,
            ),
        )
        for name in via
    )


def _own_or(topology: Topology, workload: Workload, name: str, via: Sequence[str]) -> str:
    """Return `name`, or the workload's own path where it names others, or copies."""
    keeps = bool(workload.via) and not set(workload.via) & set(via)
    if keeps or workload.direction == "copy":
        return path_of(topology, workload, "")
    return name


def _check_names(chosen: Sequence[Workload], via: str | Mapping[str, str]) -> None:
    known = [one.name for one in chosen]
    wrong = [] if isinstance(via, str) else [name for name in via if name not in known]
    if wrong:
        raise UnknownNameError(
            Finding("unknown-name", f"no workload {wrong[0]}", help=f"known: {', '.join(known)}")
        )


def _demands(
    router: Router, chosen: tuple[Workload, ...], paths: Mapping[str, str], basis: Basis
) -> tuple[Demand, ...]:
    demands: list[Demand] = []
    for workload in chosen:
        path = data_path(router.topology.description, paths[workload.name])
        found = demands_of(router, workload, path, basis=basis)
        _check(workload, path.name, found)
        demands.extend(found)
    return chosen_split(router, tuple(demands), basis)


def _check(workload: Workload, path: str, demands: tuple[Demand, ...]) -> None:
    reasons = route_reasons(tuple(demand.route for demand in demands))
    refused = [reason.text for reason in reasons if reason.effect == "refused"]
    if refused:
        instead = next((reason.instead for reason in reasons if reason.instead), "")
        advice = f"what is taken instead: --via {instead}" if instead else ""
        message = f"{workload.name} cannot go by {path}: {listed(refused, most=4)}"
        raise NoRouteError(Finding("refused", message, help=advice))


def _run(workload: Workload, path: str, matrix: UseMatrix, timeline: Timeline) -> Run:
    finish = max(
        finish
        for demand, finish in zip(matrix.demands, timeline.finishes, strict=True)
        if demand.workload == workload.name
    )
    return Run(workload=workload, data_path=path, start=workload.start, finish=finish)


def _moments(matrix: UseMatrix, timeline: Timeline) -> Iterator[Moment]:
    for span in timeline.spans:
        running: dict[str, list[int]] = {}
        for position, index in enumerate(span.demands):
            running.setdefault(matrix.demands[index].workload, []).append(position)
        yield Moment(
            start=span.start,
            end=span.end,
            rates=tuple(
                WorkloadRate(
                    workload=name,
                    rate=math.fsum(span.rates[position] for position in positions),
                    gpus=tuple(
                        matrix.demands[span.demands[position]].gpu for position in positions
                    ),
                    stopped_by=_stopping(matrix, [span.stops[position] for position in positions]),
                )
                for name, positions in running.items()
            ),
        )


def _stopping(matrix: UseMatrix, stops: Sequence[Sequence[int]]) -> tuple[Resource, ...]:
    found = sorted({index for one in stops for index in one})
    return tuple(matrix.resources[index] for index in found)
