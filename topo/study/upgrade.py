"""What to change: candidates from the catalogue, each asked in full, ranked by what it does.

A candidate is a set of overrides, exactly what ``--set`` takes, so whatever topo says of it can be
asked again by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import combinations

from topo.catalogue.kinds import HOSTS
from topo.catalogue.part import Part, module_limit
from topo.catalogue.parts import catalogue
from topo.datapaths.registry import data_path, data_paths
from topo.description.description import Basis, DataPath, Device, Workload
from topo.errors import Finding, NoRouteError, TopoError
from topo.phrases import listed
from topo.records import dataclass
from topo.routes.route import Policy, Route
from topo.solve.system import TIE
from topo.study.answer import unknown_capacity
from topo.study.answers import PathAnswer
from topo.study.compare import compare, usable
from topo.study.question import chosen_workloads, joins
from topo.study.timeline import simulate_each
from topo.topology.locality import socket_of
from topo.topology.topology import Link, Resource, Topology
from topo.units import format_bit_rate

KINDS = ("other-card", "another-card", "faster-pcie", "faster-memory", "other-socket", "data-path")
"""What a candidate changes; costs are given by these."""

# Combinations are made of the single candidates that helped, or might together: so many at most.
_MOST_COMBINED = 10


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to change.

    Parameters
    ----------
    kind
        One of `KINDS`.
    frame, thing
        What it is, in a few words: `frame` with `thing` in the place of ``{}``. Candidates of one
        frame differ in their thing only, and can share a line.
    changes
        Overrides, as ``--set`` takes them.
    via
        Another data path to ask by; empty keeps the one asked about.
    count
        How many things have to be bought or moved: costs are for each.
    """

    kind: str
    frame: str
    thing: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    via: str = ""
    count: int = 1

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.framed(self.thing)

    def framed(self, things: str) -> str:
        """Return the title with other things in it."""
        return self.frame.replace("{}", things)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds until each workload has its last byte, and what binds while the most run.

    `certified` is whether the times were checked (`topo.solve.certificates`); `unknowns` are the
    capacities on the way that nobody knows, so that it takes at least as long.
    """

    times: Mapping[str, float]
    bound: tuple[Resource, ...]
    certified: bool = False
    unknowns: tuple[str, ...] = ()

    @property
    def at_most(self) -> bool:
        """Whether the times are the least that there can be."""
        return bool(self.unknowns)

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
    cost: float | None = None

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

    `rejected` are candidates that break a rule or close the way, with the reason; `notes` say
    which data path was taken instead of a refused one.
    """

    topology: Topology
    workloads: tuple[Workload, ...]
    via: str
    basis: Basis
    now: Outcome
    ranked: tuple[Upgrade, ...]
    rejected: tuple[tuple[Candidate, str], ...]
    notes: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the times as things are rest on."""
        return (*self.notes, *unknown_capacity(f"rates by {self.via}", self.now.unknowns))

    @property
    def certified(self) -> bool:
        """Whether every time in it was checked."""
        outcomes = (self.now, *(upgrade.outcome for upgrade in self.ranked))
        return all(outcome.certified for outcome in outcomes)

    @property
    def rows(self) -> tuple[tuple[str, tuple[Upgrade, ...]], ...]:
        """The ranking with what comes out the same on one line: a title for all, and which."""
        groups: list[list[Upgrade]] = []
        for upgrade in self.ranked:
            for group in groups:  # of the same effect, and all of it differs in one thing only
                if _effect(upgrade) != _effect(group[0]):
                    continue
                places = zip(*(each.parts for each in (*group, upgrade)), strict=True)
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
        The data path in use; by default that of `topo.study.compare.usable`.
    together
        Ask about all workloads at once, by the time until the last is done.
    combine
        How many candidates may be taken together.
    costs
        What one of each kind of candidate costs (`KINDS`), in any currency.
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
    >>> upgrades = topo.upgrades(topo.load("dgx-h100"), workload="load", via="direct")
    >>> upgrades.ranked[0].title
    'connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)'
    >>> round(upgrades.now.time, 3), round(upgrades.ranked[0].outcome.time, 3)
    (6.4, 5.078)
    """
    workloads = chosen_workloads(topology, None if together else workload)
    if not together:
        workloads = workloads[:1]
    # the data path in question is that of storage: a copy keeps to its own
    leading = next((each for each in workloads if each.direction != "copy"), workloads[0])
    in_use, notes = _in_use(topology, workloads, leading, via, at, policy)
    via = in_use[leading.name].name
    ask = partial(_outcome, name="" if together else workloads[0].name, at=at, policy=policy)
    now = ask(topology, via)
    singles: list[Upgrade] = []
    rejected: list[tuple[Candidate, str]] = []
    routes = [route for answer in in_use.values() for route in answer.routes]
    for candidate in candidates(topology, routes, via):
        try:
            outcome = ask(_changed(topology, candidate), candidate.via or via)
        except TopoError as error:
            rejected.append((candidate, error.findings[0].message))
        else:
            singles.append(Upgrade((candidate,), outcome))
    ranked = list(singles)
    # To combine: no slower than now, the best of each kind of change first. A candidate that gains
    # nothing alone can gain with another (two things that bind in a tie).
    promising = [
        upgrade.parts[0]
        for upgrade in sorted(singles, key=_order)
        if upgrade.outcome.time <= now.time * (1 + TIE)
    ]
    for size in range(2, combine + 1):
        for group in combinations(promising[:_MOST_COMBINED], size):
            keys = [key for candidate in group for key in candidate.changes]
            paths = [candidate.via for candidate in group if candidate.via]
            if len(set(keys)) < len(keys) or len(paths) > 1:  # two of them change the same thing
                continue
            try:
                outcome = ask(_changed(topology, *group), *(paths or [via]))
            except TopoError:  # together they break a rule
                continue
            # nothing in it is for nothing: it beats each of its members alone
            alone = [single.outcome.time for single in singles if single.parts[0] in group]
            if outcome.time < min(alone) * (1 - TIE):
                ranked.append(Upgrade(group, outcome))
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
        now=now,
        ranked=tuple(sorted(ranked, key=_order)),
        rejected=tuple(rejected),
        notes=notes,
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
            name, paths = workload.name, (path.name,)
            return compare(topology, workload=name, via=paths, at=at, policy=policy)[path.name]

        return answered

    first, findings = usable(topology, leading, by(leading), stated=via)
    answers = {workload.name: first for workload in workloads}
    for workload in workloads:
        if workload is not leading:
            stated = first.name if joins(topology, workload, first.data_path) else ""
            answers[workload.name], _ = usable(topology, workload, by(workload), stated=stated)
    return answers, findings


def _outcome(
    topology: Topology, via: str, *, name: str, at: Basis, policy: Policy | None
) -> Outcome:
    """Return the times on one variant of the machine, of all workloads at once without a `name`.

    Raises
    ------
    NoRouteError
        If the data path is refused.
    """
    if not name:
        ((_, simulation),) = simulate_each(topology, via=(via,), at=at, policy=policy)
        times = {run.workload.name: run.finish for run in simulation.runs}
        return Outcome(times, simulation.bound, simulation.certified, simulation.unknowns)
    answer = compare(topology, workload=name, via=(via,), at=at, policy=policy)[via]
    if answer.time is None:
        refused = [reason.text for reason in answer.reasons if reason.effect == "refused"]
        message = f"{name} cannot go by {via}: {listed(refused, most=4)}"
        raise NoRouteError(Finding("refused", message))
    full = (bottleneck.resource for bottleneck in answer.bottlenecks)
    return Outcome({name: answer.time}, tuple(full), answer.certified, answer.unknowns)


def _changed(topology: Topology, *parts: Candidate) -> Topology:
    changes = {key: value for part in parts for key, value in part.changes.items()}
    return topology.replace(changes) if changes else topology


def _order(upgrade: Upgrade) -> tuple[float, float, int, float, str]:
    """Sort by time, then by the sum of all times, fewest changes, least cost, title."""
    outcome = upgrade.outcome
    total = sum(outcome.times.values())
    cost = upgrade.cost or 0.0
    return (_round(outcome.time), _round(total), upgrade.count, cost, upgrade.title)


def _round(value: float) -> float:
    return float(f"{value:.9g}")


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
        {name: _round(time) for name, time in upgrade.outcome.times.items()},
        [(kind, len(several) > 1) for kind, several in names.items()],
    )


def _framed(same_frame: Sequence[Candidate]) -> str:
    """Return one title for candidates of one frame."""
    things = dict.fromkeys(candidate.thing for candidate in same_frame)
    return same_frame[0].framed(listed(things, "or"))


# --- candidates -----------------------------------------------------------------------------------


def candidates(topology: Topology, routes: Iterable[Route], via: str) -> tuple[Candidate, ...]:
    """Return what could be changed on the way of `routes`, without asking whether it helps.

    Parameters
    ----------
    topology
        The machine.
    routes
        The routes in use: only cards and memories on them are changed.
    via
        The data path in use.
    """
    subflows = [subflow for route in routes for subflow in route.subflows]
    used_cards = {subflow.card for subflow in subflows}
    used_memories = {name for subflow in subflows for _, name in subflow.memories}
    devices = topology.devices
    cards = [device for name, device in devices.items() if name in used_cards]
    memories = [device for name, device in devices.items() if name in used_memories]
    # the data paths that join the same sort of ends
    used = data_path(topology.description, via)
    paths = [
        path.name
        for path in data_paths(topology.description)
        if (path.far_end, path.near_end) == (used.far_end, used.near_end)
    ]
    return (
        *_other_cards(topology, cards),
        *_another_card(topology, cards),
        *_faster_pcie(topology, cards),
        *_faster_memory(topology, memories),
        *_other_socket(topology, cards),
        *(Candidate("data-path", "data path {}", name, via=name) for name in paths if name != via),
    )


def _by_part(devices: Sequence[Device]) -> Iterator[tuple[Part, list[Device]]]:
    for name in dict.fromkeys(device.part.name for device in devices):
        same = [device for device in devices if device.part.name == name]
        yield same[0].part, same


def _other_cards(topology: Topology, cards: Sequence[Device]) -> Iterator[Candidate]:
    """Yield the cards of the catalogue with a faster chip that have as many ports as are cabled."""
    for part, same in _by_part(cards):
        if part.flag("bridge"):
            continue
        cabled = max(
            sum(step.link.layer == "network" for step in topology.steps[card.name]) for card in same
        )
        by_rate: dict[float, Part] = {}  # for each faster chip rate its first card by name
        for _, card in sorted(catalogue().parts.items()):
            enough = card.ports is not None and (card.ports.count or 0) >= cabled
            fits = card.kind == part.kind and enough and not card.flag("bridge")
            if fits and _value(card, "chip") > _value(part, "chip"):
                by_rate.setdefault(_value(card, "chip"), card)
        for rate, faster in sorted(by_rate.items()):
            changes = {f"{device.name}.part": faster.name for device in same}
            title = f"{faster.name} instead of {part.name} ({format_bit_rate(rate)} a chip)"
            yield Candidate("other-card", title, changes=changes, count=len(same))
            if faster.slot:
                generation = faster.slot.generation
                wider = _generation_changes(topology, same, generation)
                if wider:
                    yield Candidate(
                        "other-card",
                        f"{title} on PCIe {generation}",
                        changes={**changes, **wider},
                        count=len(same),
                    )


def _another_card(topology: Topology, cards: Sequence[Device]) -> Iterator[Candidate]:
    """Yield one more of each kind of card, and one more beside every one of them."""
    for part, same in _by_part(cards):
        if part.flag("bridge"):
            continue
        stem = re.sub(r"\d+$", "", same[0].name)
        matches = (re.fullmatch(rf"{re.escape(stem)}(\d+)", name) for name in topology.devices)
        first = max((int(match[1]) for match in matches if match), default=0) + 1
        names = [f"{stem}{number}" for number in range(first, first + len(same))]
        if len(same) > 1:
            every = {name: card.name for name, card in zip(names, same, strict=True)}
            title = f"a second {part.name} beside each ({', '.join(every)})"
            yield Candidate("another-card", title, changes=every, count=len(same))
        for card in same:
            yield Candidate(
                "another-card",
                f"another {part.name} ({names[0]}) beside {{}}",
                card.name,
                {names[0]: card.name},
            )


def _faster_pcie(topology: Topology, cards: Sequence[Device]) -> Iterator[Candidate]:
    """Yield the next PCIe generation for the cards' slots where the cards themselves have it."""
    for part, same in _by_part(cards):
        generation = part.slot.generation if part.slot else 0
        changes = _generation_changes(topology, same, generation)
        if changes:
            title = f"PCIe {generation} in the slots of {part.name}"
            yield Candidate("faster-pcie", title, changes=changes, count=len(changes))


def _generation_changes(
    topology: Topology, cards: Sequence[Device], generation: int
) -> dict[str, str]:
    """Return what puts the cards' own PCIe links at `generation`, where they are below it."""
    return {
        f"{card.name} -- {far}": f"pcie {generation} x{link.cable.lanes}"
        for card in cards
        for link, far in _pcie_links(topology, card)
        if (link.cable.generation or generation) < generation and link.cable.lanes
    }


def _pcie_links(topology: Topology, card: Device) -> list[tuple[Link, str]]:
    """Return the PCIe links of a card with what is at their other ends."""
    steps = topology.steps[card.name]
    return [(step.link, step.target) for step in steps if step.link.cable.family == "pcie"]


def _other_socket(topology: Topology, cards: Sequence[Device]) -> Iterator[Candidate]:
    """Yield each card moved to each other socket."""
    for card in cards:
        socket = socket_of(topology, card.name)
        links = [far for _, far in _pcie_links(topology, card) if far == socket]
        for host in topology.of_kind(*HOSTS):
            if host.name != socket and len(links) == 1:
                yield Candidate(
                    "other-socket",
                    f"{{}} moved from {socket} to {host.name}",
                    card.name,
                    {f"{card.name} -- {socket}": f"{card.name} -- {host.name}"},
                )


def _faster_memory(topology: Topology, memories: Sequence[Device]) -> Iterator[Candidate]:
    """Yield one DIMM a channel where there are two, and faster modules that the CPUs take.

    A memory whose bus is quoted as a whole has no channels to change.
    """
    for part, same in _by_part(memories):
        if part.figure("bus") is not None or part.figure("channels") is None:
            continue
        if _value(part, "dimms-per-channel") > 1:
            changes = {f"{memory.name}.dimms-per-channel": "1" for memory in same}
            yield Candidate("faster-memory", "one DIMM a channel", changes=changes, count=len(same))
        sockets = dict.fromkeys(socket_of(topology, memory.name) for memory in same)
        cpus = [topology[socket].part for socket in sockets if socket]
        for name, module in sorted(catalogue().parts.items()):
            sort, rate = module.facts.get("module", ""), _value(module, "transfer-rate")
            limits = [module_limit(cpu, sort) for cpu in cpus if sort]
            fits = all(limit and limit.value and rate <= limit.value for limit in limits)
            if limits and fits and rate > _value(part, "transfer-rate"):
                changes = {f"{memory.name}.part": name for memory in same}
                frame = f"{{}} instead of {part.name}"
                yield Candidate("faster-memory", frame, name, changes, count=len(same))


def _value(part: Part, key: str) -> float:
    figure = part.figure(key)
    return figure.value if figure is not None and figure.value is not None else 0.0
