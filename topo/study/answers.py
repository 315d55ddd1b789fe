"""Answers: what a person asked, computed, with the reason beside each number.

Reasons and what follows are facts here; `topo.views.sentences` has the words for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from topo.display import Displayed
from topo.errors import Finding, UnknownNameError
from topo.phrases import brief, counted, listed, nearest_names, shortened
from topo.records import dataclass
from topo.units import format_rate

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, DataPath, Workload
    from topo.flows.collectives import Laid
    from topo.flows.demands import UseMatrix
    from topo.routes.route import Policy, Reason, Route, Verdict
    from topo.study.insights import Insight, Refused
    from topo.study.needs import Met
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology

Value = TypeVar("Value")
AS_FAST: Final = 1e-6
"""Relative: below it two rates read the same."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A full resource that stops demands: its capacity and load in bytes/s, and whom it stops.

    `basis` is what the answer was asked at.
    """

    resource: Resource
    basis: Basis
    capacity: float
    load: float
    stops: tuple[str, ...]

    @property
    def figure(self) -> Figure:
        """The figure that its capacity is."""
        return self.resource.capacity.at(self.basis)

    @property
    def figure_basis(self) -> Basis:
        """What that figure is, where nobody stated one for `basis`."""
        return self.resource.capacity.used(self.basis)


@dataclass(frozen=True, slots=True)
class CopyingCores:
    """Cores that the copying keeps busy at the path's rate; `rate_per_core` is often a guess."""

    cores: float
    rate_per_core: float
    source: str


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """What stops a demand that no full resource stops.

    Its `workers`, whose stages follow each other where `serial`; without any, what its `model`
    asks for, else the workload's own limit. `endpoint` is what they fill or empty, a word of
    `ENDS`.
    """

    workers: int = 0
    serial: bool = False
    endpoint: str = "gpu"
    model: str = ""


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """One workload by one data path.

    Parameters
    ----------
    verdict, reasons
        The worst verdict over the GPUs, and every reason once.
    routes
        One for each GPU, in the order of the workload.
    rates
        Bytes/s of each GPU by name while all run; empty when refused.
    size
        Bytes in all; `None` where nobody said a size, and then there are no times.
    ram_floor, dram_floor
        Seconds that all memories need at least; `None` when refused, too.
    rate, time
        Of the whole: all bytes over the seconds until the last one, and those seconds; without a
        size bytes/s while all run. `None` when refused.
    start_rate
        Bytes/s of the whole while all run: more than `rate` where the GPUs finish apart.
    time_range
        Seconds (fast, slow) under the workload's own efficiency.
    at_most
        Whether an unknown capacity lies on the way, so the rate is an upper bound.
    bottlenecks
        Full resources that stop a demand, of those that are done last: they make the time.
    tied
        Whether several classes of them stop the same demands at once.
    own_limits
        What stops the demands that no full resource does, each once.
    by_basis, at_most_by_basis
        The rate at each basis, and whether it is an upper bound; see `rate_at`.
    hops_range, links_range
        The fewest and the most over all GPUs and branches.
    serial_rate
        Bytes/s of the whole with one serial worker a GPU.
    matrix
        The use matrix that was solved, for further questions; `None` when refused.
    certified
        Whether what the solvers gave was checked (`topo.solve.certificates`); not when refused.
    stopped, stopped_count
        The endpoints that have no way any more where something is out of order, by name or as
        ranges, and how many they are: all else is about the others. None where all have none: then
        it is refused.
    collective
        What several GPUs do together, as it is laid: then `rate` is the algorithm bandwidth of
        nccl-tests. `None` for a transfer from here to there.
    met
        What comes of what a model asks for, where the workload moves something for one; `None` when
        refused, too.
    """

    data_path: DataPath
    verdict: Verdict
    reasons: tuple[Reason, ...]
    routes: tuple[Route, ...]
    counts: Counts
    size: float | None
    ram_floor: float | None = None
    dram_floor: float | None = None
    hops_range: tuple[int, int] = (0, 0)
    links_range: tuple[int, int] = (0, 0)
    rates: Mapping[str, float] = field(default_factory=dict)
    rate: float | None = None
    start_rate: float | None = None
    time: float | None = None
    time_range: tuple[float, float] | None = None
    at_most: bool = False
    unknowns: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    tied: bool = False
    own_limits: tuple[OwnLimit, ...] = ()
    by_basis: Mapping[Basis, float] = field(default_factory=dict)
    at_most_by_basis: Mapping[Basis, bool] = field(default_factory=dict)
    serial_rate: float | None = None
    cores: CopyingCores | None = None
    matrix: UseMatrix | None = None
    certified: bool = False
    stopped: tuple[str, ...] = ()
    stopped_count: int = 0
    collective: Laid | None = None
    met: Met | None = None

    def __repr__(self) -> str:
        limits = f", limited by {shortened(full.name for full in self.bound)}" if self.bound else ""
        hops = "" if self.rate is None else f", {counted(self.logical_hops, 'hop')}"
        return brief(self, f"{self.outcome}{hops}{limits}")

    @property
    def name(self) -> str:
        """The data path's name."""
        return self.data_path.name

    @property
    def outcome(self) -> str:
        """The data path, and its rate or that it is refused, in few words."""
        if self.rate is None:
            return f"{self.name} {self.verdict}"
        return f"{self.name} {'at most ' * self.at_most}{format_rate(self.rate)}"

    @property
    def bus_rate(self) -> float | None:
        """The bus bandwidth of a collective in bytes/s, as nccl-tests counts it."""
        if self.collective is None or self.rate is None:
            return None
        return float(f"{self.rate * self.collective.bus_factor:.15g}")

    @property
    def target_path(self) -> DataPath | None:
        """The data path inside the hosts of drives that are elsewhere; `None` for none."""
        return next((route.target_path for route in self.routes if route.target_path), None)

    @property
    def between_servers(self) -> bool:
        """Whether that is RAM's or a GPU's way out of another server, no drive's."""
        return self.target_path is not None and self.target_path.far_end != "storage"

    @property
    def target_size(self) -> float | None:
        """Bytes that pass the RAM of those hosts in all; `None` where nobody said a size."""
        shares = (
            subflow.share
            for route in self.routes
            for subflow in route.subflows
            if subflow.target_card
        )
        if self.size is None or self.collective is not None:
            return None
        return self.size * math.fsum(shares) / len(self.routes)

    @property
    def route(self) -> Route:
        """The first GPU's, which is shown for all."""
        return self.routes[0]

    @property
    def finish_apart(self) -> bool:
        """Whether some GPUs are done before others, so that the rate is not that of the start."""
        return self.start_rate is not None and self.rate != self.start_rate

    @property
    def bound(self) -> tuple[Resource, ...]:
        """The full resources that stop a demand."""
        return tuple(bottleneck.resource for bottleneck in self.bottlenecks)

    @property
    def ram_traffic(self) -> float | None:
        """Bytes resident in RAM buffers: traversals times size (the seed's count)."""
        return self._bytes(self.counts.ram_traversals)

    @property
    def dram_bytes(self) -> float | None:
        """Bytes written to and read from memory (the physical count)."""
        return self._bytes(self.counts.dram_bytes)

    def _bytes(self, times: int) -> float | None:
        """Return so many times the size; `None` when refused, or where there is no size.

        Of a collective some flows may pass RAM, and others not.
        """
        refused = self.verdict == "refused" or self.collective is not None
        return None if refused or self.size is None else times * self.size

    @property
    def time_s(self) -> float | None:
        """Seconds until the last byte."""
        return self.time

    def rate_at(self, basis: Basis) -> float | None:
        """Return bytes/s at a basis; `None` when refused, or measured where nothing was."""
        if self.matrix is None:
            return None
        if basis == "measured" and not any(
            capacity.measured is not None or capacity.theoretical.kind == "measured"
            for capacity in (resource.capacity for resource in self.matrix.resources)
        ):
            return None
        return self.by_basis[basis]

    @property
    def logical_hops(self) -> int:
        """Waypoints less one, of the first GPU's route."""
        return self.routes[0].logical_hops if self.routes else 0

    @property
    def physical_links(self) -> int:
        """Links walked by the first GPU's route."""
        return self.routes[0].physical_links if self.routes else 0


# --- a workload, and all of them ------------------------------------------------------------------


def called(name: str, values: Mapping[str, Value], noun: str) -> Value:
    """Return the value of that name.

    Raises
    ------
    UnknownNameError
        If there is none, with a near name.
    """
    if name not in values:
        advice = nearest_names(str(name), values) if values else ""
        raise UnknownNameError(Finding("unknown-name", f"no {noun} {name}", help=advice))
    return values[name]


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """A workload by each of the data paths asked for, with what follows.

    `bound` is what no algorithm of a collective exceeds, whatever the data path.
    """

    workload: Workload
    paths: tuple[PathAnswer, ...]
    insights: tuple[Insight, ...] = ()
    bound: CollectiveBound | None = None

    def __repr__(self) -> str:
        return brief(self, self.outcome)

    @property
    def outcome(self) -> str:
        """The workload, and what each data path gives it, in few words."""
        return f"{self.workload.name} by {', '.join(path.outcome for path in self.paths)}"

    def __iter__(self) -> Iterator[str]:
        return (path.name for path in self.paths)

    def __getitem__(self, name: str) -> PathAnswer:
        """Return the answer for the data path called `name`.

        Raises
        ------
        UnknownNameError
            If it was not asked about.
        """
        return called(name, {path.name: path for path in self.paths}, "data path")


@dataclass(frozen=True, slots=True)
class Comparison(Displayed):
    """The main answer: every workload asked about, by every data path asked for."""

    topology: Topology
    basis: Basis
    policy: Policy
    workloads: tuple[WorkloadAnswer, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def certified(self) -> bool:
        """Whether every rate and time in it was checked."""
        paths = (path for answer in self.workloads for path in answer.paths)
        return all(path.certified for path in paths if path.rate is not None)

    def __repr__(self) -> str:
        outcomes = [answer.outcome for answer in self.workloads]
        return brief(self, f"{self.topology.name}: {'; '.join(outcomes)}")

    def __iter__(self) -> Iterator[str]:
        return (answer.workload.name for answer in self.workloads)

    def __getitem__(self, name: str) -> Any:
        """Return the answer for a workload, or for a data path of the only one.

        Returns
        -------
        WorkloadAnswer or PathAnswer
            ``comparison["load"]["direct"]``, and ``comparison["direct"]`` of one workload.

        Raises
        ------
        UnknownNameError
            If there is no such workload, or several have such a path.
        """
        answers = {answer.workload.name: answer for answer in self.workloads}
        if name in answers or not answers:
            return called(name, answers, "workload")
        if len(answers) == 1:
            paths = {path.name: path for path in self.workloads[0].paths}
            return called(name, paths, "workload or data path")
        asked = [
            workload
            for workload, answer in answers.items()
            if any(path.name == name for path in answer.paths)
        ]
        if asked:
            message = f"{name} is a data path of {listed(asked, most=4)}"
            advice = f'name the workload as well: comparison["{asked[0]}"]["{name}"]'
            raise UnknownNameError(Finding("unknown-name", message, help=advice))
        return called(name, answers, "workload")


@dataclass(frozen=True, slots=True)
class RoutedPath:
    """A data path laid for one workload: the worst verdict, every reason, one route a GPU.

    `links` are the fewest and the most links walked. Of the routes there is the first alone where
    nobody asked for them. `stopped` have no way where something is out of order, as for
    `PathAnswer`.
    """

    workload: Workload
    verdict: Verdict
    reasons: tuple[Reason, ...]
    links: tuple[int, int]
    routes: tuple[Route, ...]
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathRoutes:
    """A data path: what its moves do to RAM, and how it is laid for each workload asked about."""

    data_path: DataPath
    counts: Counts
    workloads: tuple[RoutedPath, ...]

    def __repr__(self) -> str:
        verdicts = (f"{routed.workload.name} {routed.verdict}" for routed in self.workloads)
        return brief(self, f"{self.data_path.name}: {', '.join(verdicts)}")


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder: the total in bytes/s and the full resources, grouped by class.

    `time` is seconds until the last byte, and `rate` all bytes over it; without a size there is
    only the rate while all run. `at_most` is whether a capacity is unknown that might bind first.
    """

    rate: float
    time: float | None
    classes: tuple[tuple[str, tuple[Bottleneck, ...]], ...]
    at_most: bool = False

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource of the rung."""
        return tuple(full.resource for _, group in self.classes for full in group)


@dataclass(frozen=True, slots=True)
class LadderEnd:
    """Why a ladder ends: nothing else limits, only the demands do, or what is not for sale.

    `resources` are those that cannot be bought apart from the GPU, `own_limits` what stops demands
    that no resource stops.
    """

    why: Literal["unlimited", "own-limits", "not-for-sale"]
    resources: tuple[Resource, ...] = ()
    own_limits: tuple[OwnLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class Ladder(Displayed):
    """What binds, then what would bind next, until only what cannot be bought is left.

    `end` is why it ends; `findings` are what the answer rests on; `any_routing` is what no choice
    of cards, routes and buffers exceeds, where that is known.
    """

    topology: Topology
    workload: Workload
    answer: PathAnswer
    rungs: tuple[Rung, ...]
    end: LadderEnd | Refused
    basis: Basis
    findings: tuple[Finding, ...] = ()
    any_routing: RoutingBound | None = None

    def __repr__(self) -> str:
        steps = (f"then {format_rate(rung.rate)}" for rung in self.rungs[1:])
        limits = (f"limited by {shortened(full.name for full in self.answer.bound)}",)
        words = ", ".join((self.answer.outcome, *limits * bool(self.answer.bound), *steps))
        return brief(self, f"{self.workload.name} by {words}")


@dataclass(frozen=True, slots=True)
class RoutingBound:
    """Bytes/s that no choice of cards, routes and buffers exceeds, and the resources of the cut.

    `reached` is whether the answer comes up to it, so that another choice could not do better.
    `resources` is empty where the demands' own limits, workers or a stated rate, are the bound.
    """

    rate: float
    resources: tuple[Resource, ...]
    reached: bool = False


@dataclass(frozen=True, slots=True)
class CollectiveBound:
    """What no algorithm of a collective can exceed: bytes/s of its size over time, of its bus.

    `resources` are the links that hold it there.
    """

    rate: float
    bus_rate: float
    resources: tuple[Resource, ...]


# --- what came of an expectation ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """Something that an expectation names is out of order; `message` says what."""

    message: str


@dataclass(frozen=True, slots=True)
class PathRefused:
    """A data path is refused: all of its reasons."""

    data_path: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class TimeOrRate:
    """The time (seconds) or the rate (bytes/s) that a path has, a bound where it `at_most` has."""

    quantity: Literal["time", "rate"]
    value: float
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class LimitedBy:
    """What limits a path."""

    path: PathAnswer


@dataclass(frozen=True, slots=True)
class TwoRates:
    """The rates of two paths that were held against each other."""

    path: PathAnswer
    rival: PathAnswer


@dataclass(frozen=True, slots=True)
class OtherLocalities:
    """Pairs whose locality class is another: two devices and the class, empty if not joined."""

    pairs: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class VerdictIs:
    """The verdict of a path that is not refused."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Fed:
    """An answer of which was expected how many accelerators it feeds."""

    path: PathAnswer


CheckOutcome: TypeAlias = (
    OutOfOrder | PathRefused | TimeOrRate | LimitedBy | TwoRates | Fed | OtherLocalities | VerdictIs
)
