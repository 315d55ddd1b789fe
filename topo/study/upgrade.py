"""What to change: every candidate asked in full, ranked by what it does to the time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from topo.errors import Finding, NoRouteError, TopoError
from topo.phrases import listed
from topo.study.candidates import Candidate, candidates
from topo.study.compare import chosen_workloads, compare, path_of
from topo.study.timeline import together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topo.description.description import Basis, Workload
    from topo.routes.route import Policy, Route
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


_SAME = 1e-9
# Combinations are made of the single candidates that helped, or might together: so many at most.
_MOST_COMBINED = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds until each workload has its last byte, and what binds while the most run."""

    times: Mapping[str, float]
    bound: tuple[Resource, ...]

    @property
    def time(self) -> float:
        """Seconds until all are done."""
        return max(self.times.values())


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One candidate, or several together, with what comes out.

    `cost` is `None` where the user gave no cost for one of the kinds.
    """

    parts: tuple[Candidate, ...]
    outcome: Outcome
    cost: float | None

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
class Upgrades:
    """What is, and what each change would make of it, best first.

    `rejected` are candidates that break a rule or close the way, with the reason.
    """

    topology: Topology
    workloads: tuple[Workload, ...]
    via: str
    basis: Basis
    now: Outcome
    ranked: tuple[Upgrade, ...]
    rejected: tuple[tuple[Candidate, str], ...]

    @property
    def rows(self) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """The ranking with what comes out the same on one line: a title for all, and which."""
        return _rows(self.ranked)

    @property
    def obstacles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The reasons why candidates are rejected, once each, with the titles."""
        reasons: dict[str, dict[str, list[Candidate]]] = {}
        for candidate, why in self.rejected:
            reasons.setdefault(why, {}).setdefault(candidate.frame, []).append(candidate)
        return tuple(
            (why, tuple(map(_title_of, groups.values()))) for why, groups in reasons.items()
        )


def upgrades(
    topology: Topology,
    *,
    workload: str | None = None,
    via: str = "",
    together: bool = False,
    combine: int = 1,
    costs: Mapping[str, float] | None = None,
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Upgrades:
    """Rank changes by the time that the workload takes with them.

    Parameters
    ----------
    topology
        The machine.
    workload
        Which workload; the first of the file by default, all of them `together`.
    via
        The data path in use; by default the workload's own first, else ``legacy``.
    together
        Ask about all workloads at once, by the time until the last is done.
    combine
        How many candidates may be taken together.
    costs
        What one of each kind of candidate costs (`topo.study.candidates.KINDS`), in any currency.
    at, policy
        As for `topo.compare`.

    Returns
    -------
    Upgrades
        Every candidate asked in full, exactly as ``compare`` with the same overrides.

    Raises
    ------
    NoRouteError
        If the data path is refused as things are.
    UnknownNameError
        For a workload or data path that is not there.

    Examples
    --------
    >>> import topo
    >>> found = topo.upgrades(topo.load("dgx-h100"), workload="load", via="direct")
    >>> found.ranked[0].title
    'connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)'
    >>> round(found.now.time, 3), round(found.ranked[0].outcome.time, 3)
    (6.4, 5.078)
    """
    chosen = chosen_workloads(topology, None if together else workload)
    if not together:
        chosen = chosen[:1]
    via = via or path_of(topology, _first_of_storage(chosen), "")
    asked = _Question(tuple(one.name for one in chosen), together=together, at=at, policy=policy)
    now = asked.outcome(topology, via)
    singles, rejected = asked.single(
        topology, candidates(topology, asked.routes(topology, via), via), via
    )
    found = list(singles)
    promising = _promising(singles, now)
    for size in range(2, combine + 1):
        for group in combinations(promising, size):
            found.extend(
                one for one in asked.combined(topology, group, via) if _worth_more(one, singles)
            )
    priced = tuple(Upgrade(one.parts, one.outcome, _cost(one.parts, costs or {})) for one in found)
    return Upgrades(
        topology=topology,
        workloads=chosen,
        via=via,
        basis=at,
        now=now,
        ranked=tuple(sorted(priced, key=_order)),
        rejected=rejected,
    )


def _first_of_storage(workloads: tuple[Workload, ...]) -> Workload:
    """Return the workload whose data path is in question: a copy keeps to its own."""
    storage = (one for one in workloads if one.direction != "copy")
    return next(storage, workloads[0])


def _rows(ranked: Sequence[Upgrade]) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
    groups: list[list[Upgrade]] = []
    for one in ranked:
        fitting = (group for group in groups if _joins(one, group))
        group = next(fitting, None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return tuple((_title_together(group), tuple(group)) for group in groups)


def _joins(one: Upgrade, group: Sequence[Upgrade]) -> bool:
    """Whether it has the same effect, and all of the group would differ in one thing only."""
    first = group[0]
    alike = (
        [part.frame for part in one.parts] == [part.frame for part in first.parts]
        and (one.count, one.cost) == (first.count, first.cost)
        and {name: _round(time) for name, time in one.outcome.times.items()}
        == {name: _round(time) for name, time in first.outcome.times.items()}
        and _bound_classes(one) == _bound_classes(first)
    )
    return alike and len(_differing([*group, one])) <= 1


def _bound_classes(upgrade: Upgrade) -> list[tuple[str, bool]]:
    """Return the classes of what binds, each with whether there are several of it."""
    names: dict[str, set[str]] = {}
    for resource in upgrade.outcome.bound:
        names.setdefault(resource.kind, set()).add(resource.name)
    return [(kind, len(several) > 1) for kind, several in names.items()]


def _differing(group: Sequence[Upgrade]) -> list[int]:
    return [
        place
        for place in range(len(group[0].parts))
        if len({one.parts[place].thing for one in group}) > 1
    ]


def _title_together(group: Sequence[Upgrade]) -> str:
    places = _differing(group)
    return " + ".join(
        _title_of([one.parts[place] for one in group]) if place in places else part.title
        for place, part in enumerate(group[0].parts)
    )


def _title_of(alike: Sequence[Candidate]) -> str:
    """Return one title for candidates of one frame."""
    things = list(dict.fromkeys(one.thing for one in alike))
    text = " or ".join([", ".join(things[:-1]), things[-1]]) if len(things) > 1 else things[0]
    return alike[0].framed(text)


def _worth_more(one: Upgrade, singles: Sequence[Upgrade]) -> bool:
    """Whether a combination beats each of its members alone: nothing in it is for nothing."""
    alone = [single.outcome.time for single in singles if single.parts[0] in one.parts]
    return one.outcome.time < min(alone) * (1 - _SAME)


def _order(one: Upgrade) -> tuple[float, float, int, float, str]:
    """Sort by time, then by the sum of all times, fewest changes, least cost, title."""
    total = sum(one.outcome.times.values())
    return (_round(one.outcome.time), _round(total), one.count, one.cost or 0.0, one.title)


def _round(value: float) -> float:
    return float(f"{value:.9g}")


def _promising(singles: Sequence[Upgrade], now: Outcome) -> list[Candidate]:
    """Return the candidates to combine: no slower than now, the best of each kind of change first.

    A candidate that gains nothing alone can gain with another (two things that bind in a tie).
    """
    kept = [
        one for one in sorted(singles, key=_order) if one.outcome.time <= now.time * (1 + _SAME)
    ]
    return [one.parts[0] for one in kept[:_MOST_COMBINED]]


def _cost(parts: tuple[Candidate, ...], costs: Mapping[str, float]) -> float | None:
    known = [costs.get(part.kind) for part in parts]
    if not costs or any(cost is None for cost in known):
        return None
    return sum(
        cost * part.count for cost, part in zip(known, parts, strict=True) if cost is not None
    )


class _Question:
    """What is asked of every variant of the machine."""

    def __init__(
        self,
        names: tuple[str, ...],
        *,
        together: bool,
        at: Basis,
        policy: Policy | None,
    ) -> None:
        self._names = names
        self._together = together
        self._at: Basis = at
        self._policy = policy

    def outcome(self, topology: Topology, via: str) -> Outcome:
        """Return the times of the workloads on one variant.

        Raises
        ------
        NoRouteError
            If the data path is refused.
        """
        if self._together:
            ((_, run),) = together(topology, via=(via,), at=self._at, policy=self._policy)
            return Outcome(
                times={one.workload.name: one.finish for one in run.runs},
                bound=run.bound,
            )
        (name,) = self._names
        asked = compare(topology, workload=name, via=(via,), at=self._at, policy=self._policy)
        answer = asked[via]
        if answer.time is None:
            refused = [one.text for one in answer.reasons if one.effect == "refused"]
            raise NoRouteError(
                Finding("refused", f"{name} cannot go by {via}: {listed(refused, most=4)}")
            )
        return Outcome(
            times={name: answer.time},
            bound=tuple(one.resource for one in answer.bottlenecks),
        )

    def routes(self, topology: Topology, via: str) -> tuple[Route, ...]:
        """Return every route in use."""
        found = (
            compare(
                topology,
                workload=one.name,
                via=(path_of(topology, one, "") if one.direction == "copy" else via,),
                at=self._at,
                policy=self._policy,
            )
            for one in chosen_workloads(topology, None)
            if one.name in self._names
        )
        return tuple(
            route
            for comparison in found
            for path in comparison.workloads[0].paths
            for route in path.routes
        )

    def single(
        self, topology: Topology, found: Sequence[Candidate], via: str
    ) -> tuple[tuple[Upgrade, ...], tuple[tuple[Candidate, str], ...]]:
        """Ask each candidate alone; those that break a rule come back with the reason."""
        singles: list[Upgrade] = []
        rejected: list[tuple[Candidate, str]] = []
        for candidate in found:
            try:
                changed = topology.replace(candidate.changes) if candidate.changes else topology
                outcome = self.outcome(changed, candidate.via or via)
            except TopoError as error:
                rejected.append((candidate, error.findings[0].message))
            else:
                singles.append(Upgrade((candidate,), outcome, None))
        return tuple(singles), tuple(rejected)

    def combined(
        self, topology: Topology, group: tuple[Candidate, ...], via: str
    ) -> tuple[Upgrade, ...]:
        """Ask several candidates together; none that change the same thing or break a rule."""
        keys = [key for one in group for key in one.changes]
        paths = [one.via for one in group if one.via]
        if len(set(keys)) < len(keys) or len(paths) > 1:
            return ()
        changes = {key: value for one in group for key, value in one.changes.items()}
        try:
            changed = topology.replace(changes) if changes else topology
            outcome = self.outcome(changed, paths[0] if paths else via)
        except TopoError:
            return ()
        return (Upgrade(group, outcome, None),)
