"""Answers: what a person asked, computed, with the reason beside each number.

Reasons and what follows are facts here; `topo.views.sentences` has the words for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, DataPath, Workload
    from topo.errors import Finding
    from topo.flows.demands import UseMatrix
    from topo.routes.route import Policy, Reason, Route, Verdict
    from topo.topology.topology import Resource, Topology


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

    Its `workers`, whose stages follow each other where `serial`; without any, the workload's own
    limit. `endpoint` is what they fill or empty, a word of `ENDS`.
    """

    workers: int = 0
    serial: bool = False
    endpoint: str = "gpu"


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

    @property
    def name(self) -> str:
        """The data path's name."""
        return self.data_path.name

    @property
    def target_path(self) -> DataPath | None:
        """The data path inside the hosts of drives that are elsewhere; `None` for none."""
        return next((route.target_path for route in self.routes if route.target_path), None)

    @property
    def target_size(self) -> float | None:
        """Bytes that pass the RAM of those hosts in all; `None` where nobody said a size."""
        shares = (
            subflow.share
            for route in self.routes
            for subflow in route.subflows
            if subflow.target_card
        )
        return None if self.size is None else self.size * math.fsum(shares) / len(self.routes)

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
        """Return so many times the size; `None` when refused, or where there is no size."""
        refused = self.verdict == "refused"
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


# --- what follows from the answers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """A path is refused on a machine, for the reasons of its answer."""

    topology: Topology
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Whether a path works on a machine is not known, for the reasons of its answer."""

    topology: Topology
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class OkSlower:
    """A path works, but not as well as it could, for the reasons of its answer."""

    topology: Topology
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class SlowerCards:
    """Cards that hold a path back, since every card of a GPU carries the same.

    `without` is bytes/s of the whole without them, `best` with the best division over all cards.
    """

    path: PathAnswer
    cards: tuple[str, ...]
    without: float
    best: float


@dataclass(frozen=True, slots=True)
class IdleLinks:
    """Links by their names that carry nothing, since others as short are wider."""

    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoFaster:
    """Two paths are equally fast: the full resources of `rival` that `path` has full as well.

    `only_rival` are those that it has not.
    """

    path: PathAnswer
    rival: PathAnswer
    shared: tuple[Resource, ...]
    only_rival: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Faster:
    """A path is `ratio` times as fast as its rival."""

    path: PathAnswer
    rival: PathAnswer
    ratio: float


@dataclass(frozen=True, slots=True)
class Slower:
    """A path loses to its rival."""

    path: PathAnswer
    rival: PathAnswer


@dataclass(frozen=True, slots=True)
class MeasuredOtherwise:
    """By what was measured it is not as by the figures asked for: how `path` does against `rival`.

    `rates` are bytes/s of both.
    """

    path: PathAnswer
    rival: PathAnswer
    rates: tuple[float, float]
    result: Literal["faster", "same", "slower"]


@dataclass(frozen=True, slots=True)
class ThroughRam:
    """A path takes every byte through RAM."""

    path: PathAnswer


@dataclass(frozen=True, slots=True)
class CoresBusy:
    """A path keeps cores busy copying."""

    path: PathAnswer
    cores: CopyingCores


@dataclass(frozen=True, slots=True)
class SerialWorker:
    """With one worker a GPU that does one stage after the other, `direct` is faster than `path`.

    `rate` is what `path` has then, in bytes/s; `ratio` how many times as fast `direct` is.
    """

    path: PathAnswer
    direct: PathAnswer
    rate: float
    ratio: float


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Hosts have less of a path when all ask at once than one by itself would have.

    `each` and `alone` are bytes/s of one host, the one with the least of `hosts`.
    """

    path: PathAnswer
    hosts: int
    each: float
    alone: float


@dataclass(frozen=True, slots=True)
class NotModelled:
    """Storages whose own rates the user took as unlimited."""

    storages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TakenAsUnlimited:
    """Other resources that the user took as unlimited, by name."""

    resources: tuple[str, ...]


Insight: TypeAlias = (
    Refused
    | NotKnown
    | OkSlower
    | SlowerCards
    | IdleLinks
    | NoFaster
    | Faster
    | Slower
    | MeasuredOtherwise
    | ThroughRam
    | CoresBusy
    | SerialWorker
    | AllAtOnce
    | NotModelled
    | TakenAsUnlimited
)


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """A workload by each of the data paths asked for, with what follows."""

    workload: Workload
    paths: tuple[PathAnswer, ...]
    insights: tuple[Insight, ...] = ()

    def __getitem__(self, name: str) -> PathAnswer:
        """Return the answer for the data path called `name`."""
        for path in self.paths:
            if path.name == name:
                return path
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Comparison:
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

    def __getitem__(self, name: str) -> PathAnswer:
        """Return the answer for a data path of the only workload.

        Raises
        ------
        KeyError
            If there is no such path, or more than one workload.
        """
        if len(self.workloads) != 1:
            raise KeyError(name)
        return self.workloads[0][name]


@dataclass(frozen=True, slots=True)
class RoutedPath:
    """A data path laid for one workload: the worst verdict, every reason, one route a GPU.

    `links` are the fewest and the most links walked. Of the routes there is the first alone where
    nobody asked for them.
    """

    workload: Workload
    verdict: Verdict
    reasons: tuple[Reason, ...]
    links: tuple[int, int]
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class PathRoutes:
    """A data path: what its moves do to RAM, and how it is laid for each workload asked about."""

    data_path: DataPath
    counts: Counts
    workloads: tuple[RoutedPath, ...]


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

    `resources` are those that cannot be bought apart from the GPU.
    """

    why: Literal["unlimited", "own-limits", "not-for-sale"]
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Ladder:
    """What binds, then what would bind next, until only what cannot be bought is left.

    `end` is why it ends; `findings` are what the answer rests on; `any_routing` is what no choice
    of cards, routes and buffers exceeds, where that is known.
    """

    workload: Workload
    answer: PathAnswer
    rungs: tuple[Rung, ...]
    end: LadderEnd | Refused
    basis: Basis
    findings: tuple[Finding, ...] = ()
    any_routing: RoutingBound | None = None


@dataclass(frozen=True, slots=True)
class RoutingBound:
    """Bytes/s that no choice of cards, routes and buffers exceeds, and the resources of the cut.

    `reached` is whether the answer comes up to it, so that another choice could not do better.
    `resources` is empty where the demands' own limits, workers or a stated rate, are the bound.
    """

    rate: float
    resources: tuple[Resource, ...]
    reached: bool = False


# --- what came of an expectation ------------------------------------------------------------------


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


CheckOutcome: TypeAlias = (
    PathRefused | TimeOrRate | LimitedBy | TwoRates | OtherLocalities | VerdictIs
)
