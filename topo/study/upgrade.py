"""What to change: candidates for what binds, each asked in full, ranked by what it does.

A candidate is a set of overrides, exactly what ``--set`` takes, so whatever topo says of it can be
asked again by hand. Where no single one gains anything, pairs are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from typing import NamedTuple, TypeVar

from topo.datapaths.registry import count, data_path
from topo.description.description import Basis, DataPath, Workload
from topo.description.flat import flat
from topo.display import Displayed
from topo.errors import Finding, NoRouteError, TopoError
from topo.flows.demands import ways_of
from topo.limits import MOST_IN_VARIANTS, refuse_more
from topo.phrases import brief, listed
from topo.records import dataclass
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.solve.system import TIE, rounded
from topo.study.answer import answer, unknown_capacity
from topo.study.answers import PathAnswer
from topo.study.candidates import KINDS, Candidate, candidates, is_rented
from topo.study.compare import compare, usable
from topo.study.needs import Checkpointing, Feeding
from topo.study.question import asked_workloads, chosen_workloads, joins
from topo.study.timeline import simulate_each
from topo.topology.resources import Resource
from topo.topology.topology import Topology
from topo.units import format_duration, format_rate

# Combinations begin with the best of each kind that may gain something with another.
_MOST_FIRSTS = 10
# Of a large machine fewer combinations are asked: so many devices in all of them together.
_MOST_DEVICES = 40_000
_FEWEST_ASKED = 12

Item = TypeVar("Item")

Progress = Callable[[int, int], None]
"""Told how many questions are answered, and how many there are so far."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds until each workload has its last byte, and what binds while the most run.

    `stops` is all that binds at any time. `certified` is whether the times were checked
    (`topo.solve.certificates`); `unknowns` are the capacities on the way that nobody knows, so that
    it takes at least as long. `met` is what comes of what a model asks for: accelerators fed, or
    how often to write a checkpoint. Where nobody says how many bytes, `rate` is what all could get,
    and the times are those of equally many.
    """

    times: Mapping[str, float]
    bound: tuple[Resource, ...]
    certified: bool = False
    unknowns: tuple[str, ...] = ()
    stops: tuple[Resource, ...] = ()
    met: Feeding | Checkpointing | None = None
    rate: float | None = None

    @property
    def at_most(self) -> bool:
        """Whether the times are the least that there can be."""
        return bool(self.unknowns)

    @property
    def time(self) -> float:
        """Seconds until all are done."""
        return max(self.times.values())

    @property
    def words(self) -> str:
        """That time as a reader sees it, or what all could get."""
        if self.rate is not None:
            return f"{'at most ' * self.at_most}{format_rate(self.rate)}"
        return f"{'at least ' * self.at_most}{format_duration(self.time)}"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One candidate, or several together, with what comes out.

    `cables` are those that links get with their new ends (`link-adapted`). `cost` is `None` where
    the user gave no cost for one of the kinds.
    """

    parts: tuple[Candidate, ...]
    outcome: Outcome
    cables: tuple[str, ...] = ()
    cost: float | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.outcome.words}: {self.title}")

    @property
    def title(self) -> str:
        """What is changed."""
        return " + ".join(part.title for part in self.parts)

    @property
    def changes(self) -> dict[str, str]:
        """All overrides together."""
        return {key: value for part in self.parts for key, value in part.changes.items()}

    @property
    def count(self) -> int:
        """How many things have to be bought or moved."""
        return sum(part.count for part in self.parts)

    @property
    def via(self) -> str:
        """Another data path, if that is part of it."""
        return next((part.via for part in self.parts if part.via), "")


@dataclass(frozen=True, slots=True)
class Upgrades(Displayed):
    """What is, and what each change would make of it, best first.

    `rejected` are candidates that break a rule or close the way, with the reason; `unasked` is how
    many were not asked, since they are alike to others that were or too many for a machine of this
    size; `notes` say which data path was taken instead of a refused one; `ends` are the devices
    that were asked about, ``from`` and ``to``, empty where none was named.
    """

    topology: Topology
    workloads: tuple[Workload, ...]
    via: str
    basis: Basis
    policy: Policy
    now: Outcome
    ranked: tuple[Upgrade, ...]
    rejected: tuple[tuple[Candidate, str], ...]
    unasked: int = 0
    notes: tuple[Finding, ...] = ()
    ends: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = ", ".join(workload.name for workload in self.workloads)
        gaining = self._at(lambda time: time < self.now.time * (1 - TIE))
        words = f"{self.topology.name}: {names} by {self.via} {self.now.words}; "
        if not gaining:
            return brief(self, f"{words}of {len(self.ranked)} changes none gains anything")
        best = f"the best {gaining[0].outcome.words}: {gaining[0].title}"
        return brief(self, f"{words}of {len(self.ranked)} changes {best}")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the times as things are rest on."""
        return (*self.notes, *unknown_capacity(f"rates by {self.via}", self.now.unknowns))

    @property
    def certified(self) -> bool:
        """Whether every time in it was checked."""
        return self.now.certified and all(upgrade.outcome.certified for upgrade in self.ranked)

    @property
    def rows(self) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """What gains, with what comes out the same on one line: a title for all, and which."""
        return self._rows(self._at(lambda time: time < self.now.time * (1 - TIE)))

    def best_rows(self, most: int) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """Return so many of `rows`, the best of each kind of change among them."""
        return tuple(best_of_each_kind(self.rows, lambda row: _kinds(row[1][0]), most))

    @property
    def without_gain(self) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """What gains nothing, as `rows`."""
        return self._rows(self._at(lambda time: abs(time - self.now.time) <= self.now.time * TIE))

    @property
    def slower(self) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """What takes longer, as `rows`."""
        return self._rows(self._at(lambda time: time > self.now.time * (1 + TIE)))

    def _at(self, holds: Callable[[float], bool]) -> list[Upgrade]:
        return [upgrade for upgrade in self.ranked if holds(upgrade.outcome.time)]

    def _rows(self, ranked: Sequence[Upgrade]) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        groups: list[list[Upgrade]] = []
        for upgrade in ranked:
            for group in groups:  # of the same effect, and all of it differs in one thing only
                if _effect(upgrade) != _effect(group[0]):
                    continue
                places = zip(*(alike.parts for alike in (*group, upgrade)), strict=True)
                if sum(len({part.thing for part in parts}) > 1 for parts in places) <= 1:
                    group.append(upgrade)
                    break
            else:
                groups.append([upgrade])
        rows = []
        for group in groups:
            places = zip(*(upgrade.parts for upgrade in group), strict=True)
            rows.append((" + ".join(map(_framed, places)), tuple(group)))
        return tuple(rows)

    @property
    def obstacles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The reasons why candidates are rejected, once each, with the titles."""
        reasons: dict[str, dict[str, list[Candidate]]] = {}
        for candidate, why in self.rejected:
            reasons.setdefault(why, {}).setdefault(candidate.frame, []).append(candidate)
        return tuple((why, tuple(map(_framed, groups.values()))) for why, groups in reasons.items())


def upgrades(  # noqa: PLR0913  (all that a question can say)
    topology: Topology,
    *,
    workload: str | None = None,
    needs: str | None = None,
    checkpoint: str | None = None,
    source: str = "",
    target: str = "",
    via: str = "",
    together: bool = False,
    combine: int = 1,
    costs: Mapping[str, float] | None = None,
    at: Basis = "theoretical",
    policy: Policy | None = None,
    progress: Progress | None = None,
) -> Upgrades:
    """Rank changes by the time that the workload takes with them.

    Parameters
    ----------
    topology
        The machine.
    workload
        Which workload; the first of the file by default, all of them `together`.
    needs, checkpoint
        The model whose data feeds the GPUs, or whose checkpoint they write, instead of a workload
        of the file.
    source, target
        Device names or stems: ask about these instead.
    via
        The data path in use; by default that of `topo.study.compare.usable`.
    together
        Ask about all workloads at once, by the time until the last is done.
    combine
        How many candidates may be taken together; two where no single one gains anything.
    costs
        What one of each kind of candidate costs (`KINDS`), in any currency.
    at, policy
        As for `topo.compare`.
    progress
        Told after every question.

    Returns
    -------
    Upgrades
        Candidates for what binds, asked in full, exactly as ``compare`` with the same overrides.

    Raises
    ------
    NoRouteError
        If the data path is refused as things are.
    UnknownNameError
        For a workload or data path that is not there.

    Examples
    --------
    >>> import topo
    >>> upgrades = topo.upgrades(topo.load("dgx-h100"), workload="load", via="direct")
    >>> upgrades.ranked[0].title
    'connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)'
    >>> round(upgrades.now.time, 3), round(upgrades.ranked[0].outcome.time, 3)
    (6.4, 5.078)
    """
    topology = topology.written_out("what to change is asked of")  # a change names each

    def asked_of(variant: Topology) -> tuple[Workload, ...]:
        if together:
            return chosen_workloads(variant, None)
        asked = asked_workloads(
            variant, workload, source, target, needs=needs, checkpoint=checkpoint
        )
        return asked[:1]

    workloads = asked_of(topology)
    size = len(topology.devices) + len(topology.links)

    def refuse_more_than_fit(ways: int) -> None:
        refuse_more(
            (size + ways) * _FEWEST_ASKED,
            MOST_IN_VARIANTS,
            f"devices, links and ways are in the {_FEWEST_ASKED} variants that are asked at least",
            "ask about one workload, or about fewer devices",
        )

    router = Router(topology, policy)
    refuse_more_than_fit(sum(ways_of(router, asked) for asked in workloads))  # before any answer
    # the data path in question is that of storage: a copy keeps to its own
    leading = next((asked for asked in workloads if asked.direction != "copy"), workloads[0])
    in_use, notes = _in_use(topology, workloads, leading, via, at, policy)
    via = in_use[leading.name].name
    if is_rented(topology):
        message = f"{topology.name} is an instance of a cloud: only its data path can be another"
        notes = (Finding("cloud-instance", message, severity="note"), *notes)
    question = _Question(topology, asked_of, via, together, at, policy, progress)
    now = question.ask(()).outcome
    in_each = size + sum(
        len(route.subflows) for answered in in_use.values() for route in answered.routes
    )
    refuse_more_than_fit(in_each - size)
    question.asks_at_most(MOST_IN_VARIANTS // in_each)
    every = candidates(topology, now.stops, via, workloads)
    first = every[: MOST_IN_VARIANTS // in_each]
    singles, rejected, unasked = question.all_of([(candidate,) for candidate in first])
    unasked += len(every) - len(first)
    ranked = list(singles)
    helps = any(single.outcome.time < now.time * (1 - TIE) for single in singles)
    level = singles
    for _ in range(2, max(combine, 1 if helps else 2) + 1):
        level, left = question.combined(level, now)
        unasked += left
        ranked += level
    if costs:
        for place, upgrade in enumerate(ranked):
            if all(part.kind in costs for part in upgrade.parts):
                cost = sum(costs[part.kind] * part.count for part in upgrade.parts)
                ranked[place] = replace(upgrade, cost=cost)
    return Upgrades(
        topology=topology,
        workloads=workloads,
        via=via,
        basis=at,
        policy=router.policy,
        now=now,
        ranked=tuple(sorted(ranked, key=question.order)),
        rejected=tuple((parts[0], why) for parts, why in rejected),
        unasked=unasked,
        notes=notes,
        ends={"from": source, "to": target},
    )


def _in_use(
    topology: Topology,
    workloads: Sequence[Workload],
    leading: Workload,
    via: str,
    at: Basis,
    policy: Policy | None,
) -> tuple[dict[str, PathAnswer], tuple[Finding, ...]]:
    """Return each workload by the data path in use, and what is taken instead of a refused one."""

    def by(workload: Workload) -> Callable[[DataPath], PathAnswer]:
        def answered(path: DataPath) -> PathAnswer:
            asked = compare(topology, workload=workload, via=(path.name,), at=at, policy=policy)
            return asked.workloads[0][path.name]

        return answered

    first, findings = usable(topology, leading, by(leading), stated=via)
    answers = {workload.name: first for workload in workloads}
    for workload in workloads:
        if workload is not leading:
            stated = first.name if joins(topology, workload, first.data_path) else ""
            answers[workload.name], _ = usable(topology, workload, by(workload), stated=stated)
    return answers, findings


class _Asked(NamedTuple):
    upgrades: list[Upgrade]
    rejected: list[tuple[tuple[Candidate, ...], str]]
    unasked: int


class _Question:
    """One question, asked of a machine and of its variants; no variant is asked twice."""

    def __init__(
        self,
        topology: Topology,
        asked_of: Callable[[Topology], tuple[Workload, ...]],
        via: str,
        together: bool,  # noqa: FBT001  (as the caller has it)
        at: Basis,
        policy: Policy | None,
        progress: Progress | None,
    ) -> None:
        self._topology = topology
        self._asked_of = asked_of
        self._workloads = asked_of(topology)
        self._via = via
        self._together = together
        self._at = at
        self._policy = policy
        self._progress = progress or (lambda _done, _total: None)
        self._router = Router(topology, policy)
        self._asked: dict[tuple[frozenset[tuple[str, str]], str], Upgrade] = {}
        self._done = self._total = 0
        self._left = max(_FEWEST_ASKED, _MOST_DEVICES // len(topology.devices))

    def asks_at_most(self, variants: int) -> None:
        """Ask so few variants of a machine with many ways."""
        self._left = min(self._left, max(_FEWEST_ASKED, variants))

    def all_of(self, groups: Sequence[tuple[Candidate, ...]]) -> _Asked:
        """Return what each group of candidates does, and those that are not possible, with why."""
        asked = _Asked([], [], sum(part.alike for parts in groups for part in parts))
        self._total += len(groups)
        for parts in groups:
            try:
                asked.upgrades.append(self.ask(parts))
            except TopoError as error:
                errors = [finding for finding in error.findings if finding.severity == "error"]
                asked.rejected.append((parts, errors[0].message))
            self._done += 1
            self._progress(self._done, self._total)
        return asked

    def ask(self, parts: tuple[Candidate, ...]) -> Upgrade:
        """Return what candidates do together.

        Raises
        ------
        TopoError
            If they break a rule, or close the way.
        """
        changes = {key: value for part in parts for key, value in part.changes.items()}
        via = next((part.via for part in parts if part.via), self._via)
        key = (frozenset(changes.items()), via)
        if key not in self._asked:
            topology = self._topology.replace(changes) if changes else self._topology
            cables = _new_cables(self._topology, topology, changes)
            self._asked[key] = Upgrade(parts, self._outcome(topology, via), cables)
        return replace(self._asked[key], parts=parts)

    def _outcome(self, topology: Topology, via: str) -> Outcome:
        """Return the times on one variant of the machine."""
        if self._together:
            ((_, simulation),) = simulate_each(
                topology, via=(via,), at=self._at, policy=self._policy
            )
            times = {run.workload.name: run.finish for run in simulation.runs if not run.goes_on}
            rates = [rate for moment in simulation.moments for rate in moment.rates]
            stops = dict.fromkeys(stop for rate in rates for stop in rate.stopped_by)
            bound, unknowns = simulation.bound, simulation.unknowns
            return Outcome(times, bound, simulation.certified, unknowns, tuple(stops))
        (workload,) = self._asked_of(topology)
        same = topology is self._topology
        router = self._router if same else Router(topology, self._policy)
        path = data_path(topology.description, via)
        result = answer(router, workload, path, basis=self._at)
        if not workload.sized and isinstance(result.met, Feeding):
            feeding, rate = result.met, result.met.supply
            times = {workload.name: workload.size / rate}
            bound, unknowns = feeding.bound, feeding.unknowns
            return Outcome(times, bound, result.certified, unknowns, bound, feeding, rate)
        if result.rate is None:
            refused = [reason.text for reason in result.reasons if reason.effect == "refused"]
            message = f"{workload.name} cannot go by {via}: {listed(refused, most=4)}"
            raise NoRouteError(Finding("refused", message))
        full = tuple(bottleneck.resource for bottleneck in result.bottlenecks)
        certified, unknowns = result.certified, result.unknowns
        if result.time is None:
            times = {workload.name: workload.size / result.rate}
            return Outcome(times, full, certified, unknowns, full, rate=result.rate)
        met = result.met if isinstance(result.met, Checkpointing) else None
        return Outcome({workload.name: result.time}, full, certified, unknowns, full, met)

    def combined(self, upgrades: Sequence[Upgrade], now: Outcome) -> tuple[list[Upgrade], int]:
        """Return what gains more with one change more, for what binds then, and what is unasked.

        Nothing in a combination is for nothing: it is faster than each of its parts alone.
        """
        groups: dict[frozenset[str], tuple[Candidate, ...]] = {}
        for first in self._firsts(upgrades, now):
            changes = first.changes
            topology = self._topology.replace(changes) if changes else self._topology
            via = first.via or self._via
            for second in candidates(topology, first.outcome.stops, via, self._workloads):
                clashes = changes.keys() & second.changes.keys() or (first.via and second.via)
                if not clashes:
                    parts = tuple(
                        sorted((*first.parts, second), key=lambda part: KINDS.index(part.kind))
                    )
                    texts = {
                        f"{key}={value}" for part in parts for key, value in part.changes.items()
                    }
                    groups.setdefault(frozenset({*texts, second.via or via}), parts)
        wanted = list(groups.values())[: self._left]
        self._left -= len(wanted)
        better: list[Upgrade] = []
        for upgrade in self.all_of(wanted).upgrades:
            alone = [now.time]
            if upgrade.outcome.time < now.time * (1 - TIE):
                alone += self._times_of_parts(upgrade.parts)
            if upgrade.outcome.time < min(alone) * (1 - TIE):
                better.append(upgrade)
        return better, len(groups) - len(wanted)

    def _times_of_parts(self, parts: tuple[Candidate, ...]) -> list[float]:
        """Return the times with one part less, where that is possible."""
        times = []
        for fewer in combinations(parts, len(parts) - 1):
            try:
                times.append(self.ask(fewer).outcome.time)
            except TopoError:  # it needs the one that is left out
                continue
        return times

    def _firsts(self, upgrades: Sequence[Upgrade], now: Outcome) -> list[Upgrade]:
        """Return what to begin combinations with: of each kind first the best, each effect once.

        What gains nothing alone can gain with another, where two things bind in a tie.
        """
        effects: dict[tuple[object, ...], Upgrade] = {}
        for upgrade in sorted(upgrades, key=self.order):
            if upgrade.outcome.time <= now.time * (1 + TIE):
                kinds = tuple(part.kind for part in upgrade.parts)
                stops = frozenset(resource.id for resource in upgrade.outcome.stops)
                effects.setdefault((kinds, rounded(upgrade.outcome.time), stops), upgrade)
        return best_of_each_kind(effects.values(), _kinds, _MOST_FIRSTS)

    def order(self, upgrade: Upgrade) -> tuple[int, float, float, int, float, int, str]:
        """Sort by time, by the sum of all times, fewest things, least cost, least use of RAM.

        A gain that is known goes before one that may be less, "at least 5 s".
        """
        outcome, now = upgrade.outcome, self._asked[frozenset(), self._via].outcome
        gains = outcome.time < now.time * (1 - TIE)
        certainty = (1 if outcome.at_most else 0) if gains else 2
        total = sum(outcome.times.values())
        cost = upgrade.cost or 0.0
        path = data_path(self._topology.description, upgrade.via or self._via)
        ranks = (certainty, rounded(outcome.time), rounded(total), upgrade.count, cost)
        return (*ranks, count(path).dram_bytes, upgrade.title)


def best_of_each_kind(
    items: Iterable[Item], kind: Callable[[Item], Hashable], most: int
) -> list[Item]:
    """Return so many of the items, in their order: the first of each kind before any other.

    Examples
    --------
    >>> best_of_each_kind(["a1", "a2", "a3", "b1", "c1"], lambda item: item[0], 4)
    ['a1', 'a2', 'b1', 'c1']
    """
    ordered = list(items)
    rank: dict[Hashable, int] = {}
    by_rank: list[tuple[int, int]] = []  # how many of its kind come before, and the place
    for place, item in enumerate(ordered):
        before = rank[kind(item)] = rank.get(kind(item), -1) + 1
        by_rank.append((before, place))
    return [ordered[place] for place in sorted(place for _, place in sorted(by_rank)[:most])]


def _kinds(upgrade: Upgrade) -> tuple[str, ...]:
    return tuple(part.kind for part in upgrade.parts)


def _new_cables(before: Topology, after: Topology, changes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cables that links got which no change names."""
    if before is after:
        return ()
    changed = flat(after.description.folded) if after.description.folded else after.description
    pairs = zip(before.description.links, changed.links, strict=False)
    return tuple(
        dict.fromkeys(
            new.cable.text
            for old, new in pairs
            if old.cable.text != new.cable.text
            and not {f"{new.a.device} -- {new.b.device}", f"{new.b.device} -- {new.a.device}"}
            & changes.keys()
        )
    )


# --- several on one line --------------------------------------------------------------------------


def _effect(upgrade: Upgrade) -> tuple[object, ...]:
    """Return what two changes have in common that share a line: what binds by class only."""
    names: dict[str, set[str]] = {}
    for resource in upgrade.outcome.bound:
        names.setdefault(resource.kind, set()).add(resource.name)
    return (
        [part.frame for part in upgrade.parts],
        upgrade.count,
        upgrade.cost,
        upgrade.outcome.at_most,
        {name: rounded(time) for name, time in upgrade.outcome.times.items()},
        [(kind, len(several) > 1) for kind, several in names.items()],
    )


def _framed(same_frame: Sequence[Candidate]) -> str:
    """Return one title for candidates of one frame."""
    things = dict.fromkeys(candidate.thing for candidate in same_frame)
    return same_frame[0].framed(listed(things, "or"))
