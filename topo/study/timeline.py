"""Several workloads at once, over time: who gets what when, what binds, when each is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from topo.datapaths.registry import data_path
from topo.description.description import Basis, DataPath, Workload
from topo.display import Displayed
from topo.errors import DescriptionError, Finding, NoRouteError, UnknownNameError
from topo.flows.demands import Demand, UseMatrix, demands_of, use_matrix
from topo.phrases import brief, listed
from topo.records import dataclass
from topo.routes.route import Policy, Reason, Verdict
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.solve.fluid import Timeline, complete
from topo.solve.system import TIE, rounded
from topo.study.answer import (
    chosen_split,
    most_loads,
    naming_demands,
    reasons_of,
    running,
    unknown_capacity,
)
from topo.study.answers import Comparison, called
from topo.study.compare import taken_instead, usable
from topo.study.question import chosen_workloads, joins, usual_paths
from topo.topology.resources import Resource
from topo.topology.topology import Topology
from topo.units import format_duration

_NO_END: Final = 1e30
"""Bytes of what goes on: more than anything moves until all others are done."""


@dataclass(frozen=True, slots=True)
class Run:
    """One workload from its start to its last byte, by one data path.

    `at_most` is whether an unknown capacity lies on its way: then it takes at least as long. One of
    which nobody says how many bytes it has `goes_on` until all others are done.
    """

    workload: Workload
    data_path: str
    start: float
    finish: float
    at_most: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether it has no last byte."""
        return not self.workload.sized

    @property
    def duration(self) -> float:
        """Seconds from start to last byte."""
        return self.finish - self.start


@dataclass(frozen=True, slots=True)
class WorkloadRate:
    """What one workload gets during a span: bytes/s in all, what still runs, what stops it.

    `endpoints` are the GPUs, or whatever else is filled or emptied, and `near_end` what they are.
    `stopped_by` is empty where only the workload's own limits do; `at_most` is as for `Run`.
    """

    workload: str
    rate: float
    endpoints: tuple[str, ...]
    near_end: str
    stopped_by: tuple[Resource, ...]
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A span of seconds in which nothing changes."""

    start: float
    end: float
    rates: tuple[WorkloadRate, ...]

    @property
    def rate(self) -> float:
        """Bytes/s of all workloads together."""
        return math.fsum(workload.rate for workload in self.rates)


@dataclass(frozen=True, slots=True)
class CutOff:
    """The endpoints of a workload that have no way where something is out of order.

    `endpoints` are their names, or ranges of them, and `whole` is whether they are all.
    """

    workload: str
    data_path: str
    endpoints: tuple[str, ...]
    count: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Simulation(Displayed):
    """A whole timeline: the runs in the order of the file, the moments in time.

    `finishes` are seconds by demand name (``load gpu0``); `certified` is whether they, and every
    moment's rates, were checked (`topo.solve.certificates`). `unknowns` are the capacities on the
    way that nobody knows: who meets one takes at least as long as it says. `notes` say which data
    path was taken instead of a refused one; `matrix` is what was run, for further questions.
    `cut_off` is who does not run: a workload of which nobody does is not among the runs.
    """

    topology: Topology
    basis: Basis
    runs: tuple[Run, ...]
    moments: tuple[Moment, ...]
    finishes: Mapping[str, float]
    certified: bool = False
    unknowns: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    matrix: UseMatrix | None = None
    cut_off: tuple[CutOff, ...] = ()

    @property
    def at_most(self) -> bool:
        """Whether the rates are upper bounds, and the end the soonest that there can be."""
        return bool(self.unknowns)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What it rests on."""
        names = [run.workload.name for run in self.runs if run.at_most]
        unknown = unknown_capacity(f"rates of {listed(names, most=4)}", self.unknowns)
        return (*self.notes, *unknown)

    def __repr__(self) -> str:
        runs = (
            f"{run.workload.name} by {run.data_path} until "
            f"{'at least ' * run.at_most}{format_duration(run.finish)}"
            for run in self.runs
            if not run.goes_on
        )
        return brief(self, f"{self.topology.name}: {', '.join(runs)}")

    def __getitem__(self, workload: str) -> Run:
        """Return the run of the workload of that name.

        Raises
        ------
        UnknownNameError
            If there is none.
        """
        return called(workload, {run.workload.name: run for run in self.runs}, "workload")

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

    @property
    def shared(self) -> tuple[Resource, ...]:
        """What of `bound` more than one workload uses."""
        if self.matrix is None:
            return ()
        system = self.matrix.system
        users: dict[int, set[str]] = {}
        for place, demand in enumerate(self.matrix.demands):
            for resource in system.resources[system.starts[place] : system.starts[place + 1]]:
                users.setdefault(resource, set()).add(demand.workload)
        shared = {self.matrix.resources[at].id for at, names in users.items() if len(names) > 1}
        return tuple(resource for resource in self.bound if resource.id in shared)


def simulate(
    topology: Topology,
    *,
    workloads: Sequence[Workload] | None = None,
    via: str | Mapping[str, str] = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Run workloads together, max-min fair at every moment, until each has its bytes.

    Parameters
    ----------
    topology
        The machine.
    workloads
        What runs; all of the file's by default, each from its own `start`.
    via
        The data path of all whose ends it joins, or one a workload by name; where it is not said,
        that of `topo.study.compare.usable`.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.
    progress
        Is told how many workloads are laid, and of how many; the run itself counts as one.

    Raises
    ------
    NoRouteError
        If a workload's data path is refused.
    UnknownNameError
        For a workload in `via`, or a data path, that is not there.

    Examples
    --------
    >>> import topo
    >>> simulation = topo.simulate(topo.load("gds-textbook"), via="legacy")
    >>> [(run.workload.name, round(run.finish, 9)) for run in simulation.runs]
    [('load', 7.8), ('checkpoint', 2.8)]
    """
    running = tuple(workloads) if workloads is not None else chosen_workloads(topology, None)
    names = [workload.name for workload in running]
    wrong = [] if isinstance(via, str) else [name for name in via if name not in names]
    if wrong:
        raise UnknownNameError(
            Finding("unknown-name", f"no workload {wrong[0]}", help=f"known: {', '.join(names)}")
        )
    stated = _by_workload(topology, running, via) if isinstance(via, str) else via
    return _Runner(topology, running, at, policy).run(stated=stated, progress=progress)


def simulate_each(
    topology: Topology,
    *,
    workloads: Sequence[Workload] | None = None,
    via: Sequence[str] = (),
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> tuple[tuple[str, Simulation], ...]:
    """Run the workloads together once by each data path, as ``(data path, simulation)`` pairs.

    A workload whose ends a data path does not join keeps to its own. Without `via` it is each of
    the usual ones of storage, or of copies where there is nothing else, and for one that is
    refused what is taken instead; a workload that says its own `via` keeps to that.

    Raises
    ------
    NoRouteError
        If a data path is refused for a workload.
    """
    running = tuple(workloads) if workloads is not None else chosen_workloads(topology, None)
    runner = _Runner(topology, running, at, policy)
    if via:
        return tuple(
            (name, runner.run(stated=_by_workload(topology, running, name))) for name in via
        )
    leading = [workload for workload in running if workload.direction != "copy"] or running
    leading = [workload for workload in leading if not workload.via] or leading
    notes_by_name: dict[str, dict[Finding, None]] = {}
    for workload in leading:
        for name in workload.via or usual_paths(topology, workload):
            laid, notes = usable(topology, workload, runner.lay(workload), first=name)
            notes_by_name.setdefault(laid.data_path.name, {}).update(dict.fromkeys(notes))
    simulations = []
    for name, refused in notes_by_name.items():
        first = _by_workload(
            topology,
            [workload for workload in running if not workload.via or name in workload.via],
            name,
        )
        simulation = runner.run(first=first)
        simulation = replace(simulation, notes=(*refused, *simulation.notes))
        simulations.append((name, simulation))
    return tuple(simulations)


def _by_workload(topology: Topology, workloads: Sequence[Workload], name: str) -> dict[str, str]:
    """Return one data path for each workload whose ends it joins; for all where it joins none's."""
    if not name:
        return {}
    path = data_path(topology.description, name)
    joined = [workload for workload in workloads if joins(topology, workload, path)]
    return {workload.name: name for workload in joined or workloads}


class _Demands(NamedTuple):
    """The demands of a workload by a data path, with what stands against it."""

    data_path: DataPath
    verdict: Verdict
    reasons: tuple[Reason, ...]
    demands: tuple[Demand, ...]
    cut_off: tuple[Demand, ...]


class _Runner:
    """Runs workloads together by this and that data path; what is laid once is used again."""

    def __init__(
        self, topology: Topology, workloads: Sequence[Workload], at: Basis, policy: Policy | None
    ) -> None:
        self._workloads, self._at = tuple(workloads), at
        self._router = Router(topology.telling_apart(self._workloads), policy or Policy())
        self._topology = self._router.topology
        self._laid: dict[tuple[str, str], _Demands] = {}

    def lay(self, workload: Workload) -> Callable[[DataPath], _Demands]:
        """Return what lays a workload by a data path."""

        def by(path: DataPath) -> _Demands:
            key = (workload.name, path.name)
            if key not in self._laid:
                demands, cut_off = running(
                    self._topology, demands_of(self._router, workload, path, basis=self._at)
                )
                routes = [demand.route for demand in demands]
                reasons = reasons_of(self._topology, workload, path, routes)
                verdict = verdict_of(reasons)
                if verdict == "refused":
                    cut_off = demands
                self._laid[key] = _Demands(path, verdict, reasons, demands, cut_off)
            return self._laid[key]

        return by

    def run(
        self,
        *,
        stated: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Simulation:
        """Run each workload by the data path stated for it, or by one that is not refused."""
        stated, first = stated or {}, first or {}
        demands: list[Demand] = []
        paths: dict[str, str] = {}
        notes_of_all: list[Finding] = []
        cut_off: list[CutOff] = []
        for done, workload in enumerate(self._workloads, 1):
            name = workload.name
            laid, notes = usable(
                self._topology,
                workload,
                self.lay(workload),
                stated=stated.get(name, ""),
                first=first.get(name, ""),
            )
            if laid.cut_off:
                cut_off.append(_cut_off(workload, laid))
            if laid.verdict == "refused" and self._topology.description.lost:
                continue
            if laid.verdict == "refused":
                why = [reason.text for reason in laid.reasons if reason.effect == "refused"]
                instead = next(iter(taken_instead(self._topology, laid)), "")
                advice = f"what is taken instead: --via {instead}" if instead else ""
                message = f"{name} cannot go by {laid.data_path.name}: {listed(why, most=4)}"
                raise NoRouteError(Finding("refused", message, help=advice))
            paths[name] = laid.data_path.name
            demands += laid.demands
            notes_of_all += notes
            if progress is not None:
                progress(done, len(self._workloads) + 1)
        split = chosen_split(self._router, tuple(demands), self._at)
        going = tuple(workload for workload in self._workloads if workload.name in paths)
        simulation = _run(self._topology, going, paths, split, self._at)
        return replace(simulation, notes=tuple(notes_of_all), cut_off=tuple(cut_off))


def _cut_off(workload: Workload, laid: _Demands) -> CutOff:
    return CutOff(
        workload.name,
        laid.data_path.name,
        tuple(demand.names for demand in laid.cut_off),
        sum(demand.count for demand in laid.cut_off),
        whole=laid.verdict == "refused",
    )


def _run(
    topology: Topology,
    workloads: tuple[Workload, ...],
    paths: Mapping[str, str],
    demands: tuple[Demand, ...],
    at: Basis,
) -> Simulation:
    """Run demands that are laid already, none of them refused; `paths` by workload name."""
    if not demands:
        return Simulation(topology, at, (), (), {}, certified=True)
    goes_on = {workload.name for workload in workloads if not workload.sized}
    if len(goes_on) == len(workloads):
        raise DescriptionError(_no_end(workloads))
    matrix = use_matrix(topology, demands, basis=at)
    with naming_demands(matrix):
        timeline = complete(
            matrix.system,
            [_NO_END if demand.workload in goes_on else demand.size for demand in demands],
            [demand.start for demand in demands],
            spans=True,
        )
    if goes_on:
        timeline = _until_all_are_done(timeline, [demand.workload in goes_on for demand in demands])
    unknowns = matrix.unknowns(most_loads(matrix, timeline.spans))
    bounded = {
        demand.workload for demand in demands if not demand.route.use.keys().isdisjoint(unknowns)
    }
    last = {workload.name: 0.0 for workload in workloads}
    for demand, finish in zip(demands, timeline.finishes, strict=True):
        last[demand.workload] = max(last[demand.workload], finish)
    names = [demand.name for demand in demands]
    return Simulation(
        topology=topology,
        basis=at,
        runs=tuple(
            Run(workload, paths[name], workload.start, last[name], name in bounded)
            for workload in workloads
            for name in [workload.name]
        ),
        moments=tuple(_moments(matrix, timeline, bounded)),
        finishes=dict(zip(names, timeline.finishes, strict=True)),
        certified=timeline.certified,
        unknowns=unknowns,
        matrix=matrix,
    )


def _no_end(workloads: Sequence[Workload]) -> Finding:
    first = workloads[0]
    names = listed((workload.name for workload in workloads), most=4)
    return Finding(
        "no-end",
        f"nothing here ends: {names} {'goes' if len(workloads) == 1 else 'go'} on and on",
        help=f"say how much there is to read: `{first.name}: {{read: 640 GB, needs: ...}}`",
        place=first.place,
    )


def _until_all_are_done(timeline: Timeline, goes_on: Sequence[bool]) -> Timeline:
    """Return a timeline until the last of the demands that end, when those that go on stop."""
    end = max(finish for finish, on in zip(timeline.finishes, goes_on, strict=True) if not on)
    spans = (replace(span, end=min(span.end, end)) for span in timeline.spans if span.start < end)
    return replace(
        timeline,
        finishes=tuple(min(finish, end) for finish in timeline.finishes),
        spans=tuple(spans),
    )


def _moments(matrix: UseMatrix, timeline: Timeline, bounded: set[str]) -> Iterator[Moment]:
    for span in timeline.spans:
        running: dict[str, list[int]] = {}
        for position, index in enumerate(span.demands):
            running.setdefault(matrix.demands[index].workload, []).append(position)
        rates = []
        for name, positions in running.items():
            stops = sorted({stop for position in positions for stop in span.stops[position]})
            rates.append(
                WorkloadRate(
                    workload=name,
                    rate=math.fsum(
                        span.rates[position] * matrix.demands[span.demands[position]].count
                        for position in positions
                    ),
                    endpoints=tuple(
                        matrix.demands[span.demands[position]].names for position in positions
                    ),
                    near_end=matrix.demands[span.demands[positions[0]]].route.data_path.near_end,
                    stopped_by=tuple(
                        resource
                        for resource in map(matrix.resources.__getitem__, stops)
                        if resource.kind != "workload-limit"
                    ),
                    at_most=name in bounded,
                )
            )
        yield Moment(start=span.start, end=span.end, rates=tuple(rates))


# --- a comparison's workloads, not one by one but all at once -------------------------------------


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The workloads of a comparison run together, once by each data path that all can take."""

    runs: tuple[tuple[str, Simulation], ...]

    @property
    def at_most(self) -> tuple[str, ...]:
        """The data paths on whose way a capacity is unknown: they take at least as long."""
        return tuple(name for name, simulation in self.runs if simulation.at_most)

    @property
    def ranked(self) -> tuple[tuple[str, Simulation], ...]:
        """The runs, best first: by when the last workload is done, then by all together."""

        def times(run: tuple[str, Simulation]) -> tuple[float, float]:
            _, simulation = run
            total = math.fsum(run.finish for run in simulation.runs)
            return rounded(simulation.end), rounded(total)

        return tuple(sorted(self.runs, key=times))

    @property
    def alike(self) -> tuple[tuple[tuple[str, ...], Simulation], ...]:
        """The runs, best first, those in which each workload is done at the same time as one."""
        groups: list[tuple[list[str], Simulation]] = []
        for name, simulation in self.ranked:
            if groups and _same(groups[-1][1], simulation):
                groups[-1][0].append(name)
            else:
                groups.append(([name], simulation))
        return tuple((tuple(names), simulation) for names, simulation in groups)

    @property
    def result(self) -> Literal["wins", "same", "mixed"]:
        """Whether the first of `ranked` wins: no workload is later than by another data path.

        ``same`` where every workload is done at the same time by all.
        """
        (_, best), *slower = self.ranked
        if all(_same(best, simulation) for _, simulation in slower):
            return "same"
        wins = all(
            not _same(best, simulation)
            and all(
                run.finish <= rival.finish * (1 + TIE)
                for run, rival in zip(best.runs, simulation.runs, strict=True)
            )
            for _, simulation in slower
        )
        return "wins" if wins else "mixed"


def _same(simulation: Simulation, rival: Simulation) -> bool:
    return all(
        math.isclose(run.finish, rival_run.finish, rel_tol=TIE)
        for run, rival_run in zip(simulation.runs, rival.runs, strict=True)
    )


def at_once(comparison: Comparison) -> AtOnce | None:
    """Run the workloads of a comparison together; `None` for one, or where no path serves all.

    Parameters
    ----------
    comparison
        Of all workloads. What was laid for it is used again, so that it costs little.
    """
    answers = comparison.workloads
    if len(answers) < 2 or not any(answer.workload.sized for answer in answers):  # noqa: PLR2004
        return None
    # the data paths of storage, beside which a copy keeps to its own
    leading = [answer for answer in answers if answer.workload.direction != "copy"] or answers
    topology, at, policy = comparison.topology, comparison.basis, comparison.policy
    workloads = tuple(answer.workload for answer in answers)
    runs = []
    for name in dict.fromkeys(path.name for answer in leading for path in answer.paths):
        paths = []
        for answer in answers:  # by this data path; what was not asked by it, by its own
            by_name = {path.name: path for path in answer.paths}
            best = [by_name[own] for own in answer.workload.via if own in by_name]
            best = [path for path in best or answer.paths[::-1] if path.matrix is not None]
            paths.append(by_name.get(name) or next(iter(best), answer.paths[0]))
        demands = [demand for path in paths if path.matrix for demand in path.matrix.demands]
        if any(path.matrix is None for path in paths):
            continue
        via = {workload.name: path.name for workload, path in zip(workloads, paths, strict=True)}
        if policy.nics == "best":  # the best split for one alone is another one
            simulation = simulate(topology, workloads=workloads, via=via, at=at, policy=policy)
        else:
            simulation = _run(topology, workloads, via, tuple(demands), at)
        runs.append((name, simulation))
    return AtOnce(tuple(runs)) if runs else None
