"""How sure an answer is: what each guess does to it, its range, and what to measure first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from topo.catalogue.part import Figure
from topo.description.description import Basis, Workload
from topo.display import Displayed
from topo.errors import Finding
from topo.flows.demands import GUESSED_CORE_COPY, Demand, UseMatrix, at_basis
from topo.flows.needs import accelerators_at, rate_of_one
from topo.phrases import brief, counted
from topo.records import dataclass
from topo.solve.system import TIE, rounded
from topo.study.answer import bottlenecks_of, completion, shared, solved
from topo.study.answers import Comparison, PathAnswer, WorkloadAnswer
from topo.study.bands import Band, Uncertain, Values, positions, values_at, with_value
from topo.study.compare import compare
from topo.study.solutions import AnswersByCapacity, sufficient
from topo.topology.resources import Capacity, Resource
from topo.topology.topology import Topology
from topo.units import format_rate

if TYPE_CHECKING:
    from topo.routes.route import Policy
    from topo.solve.equivalence import Folded

DRAWS: Final = 400
"""Draws of all bands at once, for the range at `LEVEL`."""
LEVEL: Final = 0.9
"""How many of the draws the range holds at the least."""
_OUTCOMES: Final = (-0.75, -0.25, 0.25, 0.75)  # of a measurement, equally likely
_FEWER: Final = 100  # draws among which a band changes something, or nothing


@dataclass(frozen=True, slots=True)
class Swing:
    """What one band does to an answer, all else as it is.

    Parameters
    ----------
    band
        What is not certain.
    low_rate, high_rate
        Bytes/s of the whole with the least and with the most of it.
    low_binds, high_binds
        The full resources that stop the workload then.
    touches
        The resources whose capacity it changes.
    settles
        What part of the range is expected to go when it is measured.
    """

    band: Band
    low_rate: float
    high_rate: float
    low_binds: tuple[Resource, ...]
    high_binds: tuple[Resource, ...]
    touches: tuple[Resource, ...]
    settles: float = 0.0

    @property
    def width(self) -> float:
        """How far apart the two rates are, bytes/s."""
        return abs(self.high_rate - self.low_rate)

    @property
    def binding(self) -> tuple[Resource, ...]:
        """Those that it changes and that stop the workload when they are least."""
        touched = {resource.id for resource in self.touches}
        return tuple(resource for resource in self.low_binds if resource.id in touched)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A resource whose rate nobody knows: the answer is less where it passes less than `load`."""

    resource: Resource
    load: float


@dataclass(frozen=True, slots=True)
class PathDoubt:
    """How sure the answer of one workload by one data path is.

    Parameters
    ----------
    workload, answer
        What was asked, and what comes out with all figures as they are.
    swings
        What each band does, the widest first; those that change nothing are `idle`.
    rate_range
        Bytes/s between which at least `LEVEL` of all draws lie; `None` where it is refused.
    extremes
        The least and the most of all that was tried: the answer itself, each band at its ends, all
        at theirs, and every draw.
    idle
        Bands on the way that change nothing, not even together with others.
    unknown
        What nobody knows: `rate_range` is "at most" then.
    """

    workload: Workload
    answer: PathAnswer
    swings: tuple[Swing, ...] = ()
    rate_range: tuple[float, float] | None = None
    extremes: tuple[float, float] | None = None
    idle: tuple[Band, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    @property
    def at_most(self) -> bool:
        """Whether something is unknown, so that the range is an upper bound."""
        return self.answer.at_most

    @property
    def certain(self) -> bool:
        """Whether no guess changes the answer."""
        return self.rate_range is not None and self.rate_range[0] == self.rate_range[1]

    @property
    def best(self) -> Swing | None:
        """What is to be measured first: what is expected to take the most of the range away."""
        settling = [swing for swing in self.swings if swing.settles > 0]
        return max(settling, key=lambda swing: swing.settles, default=None)

    @property
    def time_range(self) -> tuple[float, float] | None:
        """Seconds from the fastest to the slowest; `None` where nobody said a size."""
        size = self.answer.size
        if self.rate_range is None or size is None or self.answer.time is None:
            return None
        low, high = self.rate_range
        return size / high, size / low


@dataclass(frozen=True, slots=True)
class Doubt(Displayed):
    """How sure the answers about a machine are."""

    topology: Topology
    basis: Basis
    answers: tuple[PathDoubt, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def bands(self) -> tuple[Band, ...]:
        """Every band that lies on some way, once."""
        of_answers = (
            band
            for answer in self.answers
            for band in (*(swing.band for swing in answer.swings), *answer.idle)
        )
        return tuple(sorted(dict.fromkeys(of_answers), key=lambda band: band.order))

    def __repr__(self) -> str:
        words = [counted(len(self.bands), "band")]
        for answer in self.answers:
            rates = " to ".join(map(format_rate, answer.rate_range or ()))
            words.append(f"{answer.workload.name} by {answer.answer.name} {rates or 'refused'}")
        return brief(self, f"{self.topology.name}: {'; '.join(words)}")


def doubt(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str | Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "achievable",
    policy: Policy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Doubt:
    """Return how sure the answers about a machine are.

    Parameters
    ----------
    topology
        The machine.
    workload, via, source, target, policy
        What is asked, as of `topo.compare`.
    at
        Which figure of each capacity to use: most guesses are of what is achievable.
    progress
        Is told how many of the answers are done with, and how many there are.

    Raises
    ------
    UnknownNameError
        For a workload, device or data path that is not there.
    DescriptionError
        When there is nothing to ask about.

    Examples
    --------
    >>> import topo
    >>> doubted = topo.doubt(topo.load("dgx-a100"), workload="load", via=["legacy"]).answers[0]
    >>> doubted.best.band.key, [round(rate / 1e9, 1) for rate in doubted.rate_range]
    ('efficiency', [48.7, 49.7])
    """
    comparison = compare(
        topology,
        workload=workload,
        via=via,
        source=source,
        target=target,
        at=at,
        policy=policy,
    )
    return doubt_of(comparison, progress=progress)


def doubt_of(
    comparison: Comparison, *, progress: Callable[[int, int], None] | None = None
) -> Doubt:
    """Return how sure the answers of a comparison are; `progress` as of `doubt`."""
    asked = [(answer, path) for answer in comparison.workloads for path in answer.paths]
    answers = []
    for done, (answer, path) in enumerate(asked):
        if progress is not None:
            progress(done, len(asked))
        answers.append(_doubted(comparison, answer, path))
    # no range of times by a workload's own efficiency is shown
    findings = [finding for finding in comparison.findings if finding.code != "efficiency-ignored"]
    return Doubt(comparison.topology, comparison.basis, tuple(answers), tuple(findings))


def _doubted(comparison: Comparison, asked: WorkloadAnswer, path: PathAnswer) -> PathDoubt:
    workload = asked.workload
    if path.matrix is None:
        return PathDoubt(workload, path)
    asking = _Asking(comparison.topology, path.matrix, workload)
    bands = asking.bands
    middle = [band.middle for band in bands]
    nominal = asking.rate(middle)
    tried = [nominal]
    swings: list[Swing] = []
    for place, band in enumerate(bands):
        ends = [with_value(middle, place, end) for end in (band.low, band.high)]
        low, high = (asking.rate(values) for values in ends)
        low_binds, high_binds = (asking.binds(values) for values in ends)
        touches = asking.touched_by(place)
        swings.append(Swing(band, low, high, low_binds, high_binds, touches))
        tried += (low, high)
    draws = positions(bands, DRAWS)
    both = [asking.rate(values_at(bands, draw)) for draw in draws]
    # What turns out better makes up for nothing at the lower end, and at the upper end nothing
    # worse: so a band that is made wider never makes the range narrower.
    worse = [asking.rate(values_at(bands, [min(at, 0.0) for at in draw])) for draw in draws]
    better = [asking.rate(values_at(bands, [max(at, 0.0) for at in draw])) for draw in draws]
    ends_of_all = [asking.rate([getattr(band, end) for band in bands]) for end in ("low", "high")]
    tried += (*both, *worse, *better, *ends_of_all)
    least = min(_middle_of(both)[0], _middle_of(worse)[0]) if draws else nominal
    most = max(_middle_of(both)[1], _middle_of(better)[1]) if draws else nominal
    moving = [
        place
        for place, swing in enumerate(swings)
        if swing.width > TIE * nominal or asking.moves(place, draws[:_FEWER])
    ]
    for place in moving:
        swings[place] = replace(swings[place], settles=_settled(asking, place, moving))
    shown = sorted((swings[place] for place in moving), key=lambda swing: -rounded(swing.width))
    loads = asking.peaks(middle)
    unknown = tuple(
        Unknown(resource, load)
        for resource, load in zip(path.matrix.resources, loads, strict=True)
        if resource.id in path.unknowns
    )
    return PathDoubt(
        workload,
        path,
        tuple(shown),
        (_level(least, nominal), _level(most, nominal)),
        (min(tried), max(tried)),
        tuple(band for place, band in enumerate(bands) if place not in moving),
        unknown,
    )


def _level(rate: float, nominal: float) -> float:
    """Return a rate, or the answer itself where it is no other."""
    return nominal if abs(rate - nominal) <= TIE * nominal else rate


def _middle_of(rates: Iterable[float]) -> tuple[float, float]:
    """Return between what `LEVEL` of some rates lie, as many left out below as above."""
    ordered = sorted(rates)
    left_out = math.floor(len(ordered) * (1 - LEVEL) / 2 + TIE)
    return ordered[left_out], ordered[-1 - left_out]


def _settled(asking: _Asking, place: int, moving: Sequence[int]) -> float:
    """Return what part of the range goes when one band is measured, on the average of outcomes."""
    bands = asking.bands
    draws = positions(bands, DRAWS)

    def spread(outcome: float | None) -> float:
        rates = []
        for draw in draws:
            at = [position if number in moving else 0.0 for number, position in enumerate(draw)]
            rates.append(
                asking.rate(
                    values_at(bands, at if outcome is None else with_value(at, place, outcome))
                )
            )
        least, most = _middle_of(rates)
        return most - least

    before = spread(None)
    if before <= 0:
        return 0.0
    if len(moving) == 1:
        return 1.0
    after = math.fsum(map(spread, _OUTCOMES)) / len(_OUTCOMES)
    return max(1 - after / before, 0.0)


def _stage_resources(topology: Topology, matrix: UseMatrix) -> Iterator[Resource]:
    """Yield what the stages of the demands use, each once, and one core of each that copies."""
    used: dict[str, Resource] = {}
    hosts: dict[str, None] = {}
    for demand in matrix.demands:
        for subflow in demand.route.subflows:
            for transfer in subflow.transfers:
                used |= demand.route.resources(topology, transfer.use)
                if transfer.move.mover == "core" and transfer.engine in topology:
                    hosts[transfer.engine] = None
    yield from used.values()
    for host in hosts:
        figure = topology[host].part.figure("core-copy") or GUESSED_CORE_COPY
        name = f"{host}/one core"
        yield Resource(name, "cpu-copy", Capacity(figure), host, limited_by="one core")


def _need_limits(topology: Topology, workload: Workload, matrix: UseMatrix) -> list[Resource]:
    """Return what a model asks for behind each endpoint, as a resource; none where none asks."""
    need = workload.need
    if need is None or need.asks != "needs":
        return []
    figures = (rate_of_one(topology, need, demand.endpoint) for demand in matrix.demands)
    return [
        Resource(need.model.name, "workload-limit", Capacity(figure), "", "", need.model.name)
        for figure in figures
    ]


class _Asking:
    """One answer, asked again with other figures: the routes stay, the capacities change.

    Demands and resources that no figure tells apart are solved as one.
    """

    def __init__(self, topology: Topology, matrix: UseMatrix, workload: Workload) -> None:
        self._topology, self._matrix, self._workload = topology, matrix, workload
        self._sized = workload.sized
        # What one worker's stages take one after the other limits it whatever others do.
        self._serial = any(demand.route.data_path.stages == "serial" for demand in matrix.demands)
        self._stages = tuple(_stage_resources(topology, matrix)) if self._serial else ()
        self._needs = tuple(_need_limits(topology, workload, matrix))
        resources = (*matrix.resources, *self._stages, *self._needs)
        self._uncertain = Uncertain(topology, resources, matrix.basis)
        self.bands = self._uncertain.bands
        classes = self._uncertain.classes[len(resources) - len(self._needs) :]
        self._need_classes = (
            classes if any(map(self._uncertain.touched.__getitem__, classes)) else ()
        )
        self._has_limits = self._serial or bool(self._need_classes)  # that bands change
        self._rates: dict[tuple[float, ...], float] = {}
        self._answers: AnswersByCapacity[float] = AnswersByCapacity()

    @cached_property
    def _folded(self) -> Folded:
        from topo.solve.equivalence import fold

        matrix = self._matrix
        kinds: dict[object, int] = {}
        own = (
            (demand.limit, demand.size, demand.count, self._has_limits and place)
            for place, demand in enumerate(matrix.demands)
        )
        colours = [float(kinds.setdefault(key, len(kinds) + 1)) for key in own]
        numbers = self._uncertain.classes[: len(matrix.resources)]
        classes = [float(number + 1) for number in numbers]
        return fold(replace(matrix.system, capacities=classes, limits=colours))

    @cached_property
    def _small(self) -> UseMatrix:
        """The use matrix of one demand and one resource of each class."""
        matrix, folded = self._matrix, self._folded
        counts = [0] * folded.demands.count
        for demand, kind in zip(matrix.demands, folded.demands.of.tolist(), strict=True):
            counts[kind] += demand.count
        demands = tuple(
            replace(matrix.demands[first], count=count)
            for first, count in zip(folded.demands.first.tolist(), counts, strict=True)
        )
        firsts = folded.resources.first.tolist()
        system = replace(folded.system, limits=tuple(demand.limit for demand in demands))
        resources = tuple(matrix.resources[first] for first in firsts)
        return UseMatrix(demands, resources, matrix.basis, system)

    @cached_property
    def _kinds(self) -> list[int]:
        """For each resource of the small matrix the class that its capacity is computed for."""
        return [self._uncertain.classes[first] for first in self._folded.resources.first.tolist()]

    @cached_property
    def _varied(self) -> list[int]:
        """The resources of the small matrix whose capacity some band changes."""
        touched = self._uncertain.touched
        return [column for column, kind in enumerate(self._kinds) if touched[kind]]

    def _with_values(self, values: Values) -> UseMatrix:
        rates = self._uncertain.rates(values)
        matrix = self._small.with_capacities(rates[kind] for kind in self._kinds)
        if not self._has_limits:
            return matrix
        topology = self._with_stages(rates) if self._serial else self._topology
        demands = map(self._with_need, matrix.demands, self._small_needs(rates))
        limits = tuple(at_basis(topology, demand, matrix.basis).limit for demand in demands)
        return replace(matrix, system=replace(matrix.system, limits=limits))

    def _small_needs(self, rates: Sequence[float]) -> Iterator[float]:
        """Yield what one accelerator of each demand of the small matrix asks for, bytes/s."""
        for first in self._folded.demands.first.tolist():
            yield rates[self._need_classes[first]] if self._need_classes else math.inf

    def _with_need(self, demand: Demand, rate: float) -> Demand:
        """Return a demand with what its model asks for behind it, `rate` each."""
        need, stated = self._workload.need, self._workload.limit
        if need is None or not self._need_classes:
            return demand
        alone = stated if stated is not None and demand.limit_in_all == math.inf else math.inf
        return replace(demand, own_limit=min(alone, rate * accelerators_at(need)))

    def _with_stages(self, rates: Sequence[float]) -> Topology:
        """Return the topology with these rates of what stages use, and of a core's copying."""
        first = len(self._matrix.resources)
        numbers = self._uncertain.classes[first : first + len(self._stages)]
        resources, devices = dict(self._topology.resources), dict(self._topology.devices)
        for stage, number in zip(self._stages, numbers, strict=True):
            figure = Figure(rates[number], "formula", "")
            if stage.name != f"{stage.device}/one core":
                resources[stage.id] = replace(stage, capacity=Capacity(figure))
                continue
            host = devices[stage.device]
            figures = {**host.part.figures, "core-copy": figure}
            devices[stage.device] = replace(host, part=replace(host.part, figures=figures))
        return replace(self._topology, resources=resources, devices=devices)

    def rate(self, values: Values) -> float:
        """Return bytes/s of the whole with these values of the bands."""
        key = tuple(values)
        if key not in self._rates:
            self._rates[key] = self._rate(values)
        return self._rates[key]

    def _rate(self, values: Values) -> float:
        matrix = self._with_values(values)
        capacities = [matrix.system.capacities[column] for column in self._varied]
        kept = None if self._has_limits else self._answers.find(capacities)
        if kept is not None:
            return kept
        allocation = shared(matrix.system)
        whole = completion(matrix, allocation, sized=self._sized)
        enough = None if self._has_limits else sufficient(matrix.system, allocation, whole)
        if enough is not None:
            least = [enough[column] for column in self._varied]
            self._answers.keep(capacities, least, whole.rate)
        return whole.rate

    def binds(self, values: Values) -> tuple[Resource, ...]:
        """Return the full resources that stop the workload with these values."""
        matrix = self._with_values(values)
        run = solved(matrix, sized=self._sized)
        full = {
            bottleneck.resource.id
            for bottleneck in bottlenecks_of(matrix, run.allocation, run.whole)
        }
        kinds = {kind for kind, resource in enumerate(matrix.resources) if resource.id in full}
        return tuple(
            resource
            for resource, kind in zip(
                self._matrix.resources, self._folded.resources.of.tolist(), strict=True
            )
            if kind in kinds
        )

    def peaks(self, values: Values) -> list[float]:
        """Return the most bytes/s that ever pass each resource with these values."""
        peaks = solved(self._with_values(values), sized=self._sized).peaks
        return [peaks[kind] for kind in self._folded.resources.of.tolist()]

    def touched_by(self, place: int) -> tuple[Resource, ...]:
        """Return the resources whose capacity a band changes."""
        return tuple(
            resource
            for resource, number in zip(
                (*self._matrix.resources, *self._stages, *self._needs),
                self._uncertain.classes,
                strict=True,
            )
            if place in self._uncertain.touched[number]
        )

    def moves(self, place: int, draws: Iterable[Sequence[float]]) -> bool:
        """Whether a band changes something in one of some draws, where others lie elsewhere."""
        for draw in draws:
            values = values_at(self.bands, draw)
            at_middle = with_value(values, place, self.bands[place].middle)
            rate = self.rate(values)
            if abs(rate - self.rate(at_middle)) > TIE * rate:
                return True
        return False
