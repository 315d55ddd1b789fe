"""Answers: what a person asked, computed, with the reason beside each number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.catalogue.part import Figure
    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, DataPath, Workload
    from topo.errors import Finding
    from topo.flows.system import UseMatrix
    from topo.routes.route import Policy, Reason, Route, Verdict
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


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
class PathAnswer:
    """One workload by one data path.

    Parameters
    ----------
    verdict, reasons
        The worst verdict over the GPUs, and every reason once.
    routes
        One for each GPU, in the order of the workload.
    rates
        Bytes/s of each GPU by name; empty when refused.
    size
        Bytes in all; `None` where nobody said a size, and then there are no times.
    ram_floor, dram_floor
        Seconds that all memories need at least; `None` when refused, too.
    rate, time
        Of the whole: bytes/s while all run, and seconds until the last byte; `None` when refused.
    time_range
        Seconds (fast, slow) under the workload's own efficiency.
    at_most
        Whether an unknown capacity lies on the way, so the rate is an upper bound.
    bottlenecks
        Full resources that stop a demand; several at once are a tie.
    own_limits
        What stops the demands that no full resource does, in words: workers, a stated limit.
    by_basis
        The rate at each basis; see `rate_at`.
    hops_range, links_range
        The fewest and the most over all GPUs and branches.
    serial_rate
        Bytes/s of the whole with one serial worker a GPU.
    matrix
        The use matrix that was solved, for further questions; `None` when refused.
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
    time: float | None = None
    time_range: tuple[float, float] | None = None
    at_most: bool = False
    unknowns: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    own_limits: tuple[str, ...] = ()
    by_basis: Mapping[Basis, float] = field(default_factory=dict)
    serial_rate: float | None = None
    cores: CopyingCores | None = None
    matrix: UseMatrix | None = None

    @property
    def name(self) -> str:
        """The data path's name."""
        return self.data_path.name

    @property
    def ram_traffic(self) -> float | None:
        """Bytes resident in RAM buffers: traversals times size (the seed's count)."""
        return self._moved(self.counts.ram_traversals)

    @property
    def dram_bytes(self) -> float | None:
        """Bytes written to and read from memory (the physical count)."""
        return self._moved(self.counts.dram_bytes)

    def _moved(self, times: int) -> float | None:
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
        if basis == "measured" and not any(map(_is_measured, self.matrix.resources)):
            return None
        return self.by_basis[basis]

    def at_most_at(self, basis: Basis) -> bool:
        """Whether a capacity on the way is unknown at a basis."""
        resources = self.matrix.resources if self.matrix else ()
        return any(one.capacity.at(basis).value is None for one in resources)

    @property
    def logical_hops(self) -> int:
        """Waypoints less one, of the first GPU's route."""
        return self.routes[0].logical_hops if self.routes else 0

    @property
    def physical_links(self) -> int:
        """Links walked by the first GPU's route."""
        return self.routes[0].physical_links if self.routes else 0


def _is_measured(resource: Resource) -> bool:
    capacity = resource.capacity
    return capacity.measured is not None or capacity.theoretical.kind == "measured"


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """A workload by each of the data paths asked for, with what follows, in words."""

    workload: Workload
    paths: tuple[PathAnswer, ...]
    insights: tuple[str, ...] = ()

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
class Rung:
    """One step of the ladder: the total in bytes/s and the full resources, grouped by class."""

    rate: float
    classes: tuple[tuple[str, tuple[Bottleneck, ...]], ...]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource of the rung."""
        return tuple(one.resource for _, group in self.classes for one in group)


@dataclass(frozen=True, slots=True)
class Ladder:
    """What binds, then what would bind next, until only what cannot be bought is left.

    `end` says in words why it ends; `findings` are what the answer rests on.
    """

    workload: Workload
    answer: PathAnswer
    rungs: tuple[Rung, ...]
    end: str
    basis: Basis
    findings: tuple[Finding, ...] = ()
