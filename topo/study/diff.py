"""Two machines side by side: what differs in them, and what that does to the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, Literal, TypeAlias, get_args

from topo.catalogue.values import Word
from topo.datapaths.registry import data_path, data_paths
from topo.description.description import Basis, Workload
from topo.display import Displayed
from topo.errors import Finding
from topo.phrases import brief, counted, listed, ranges
from topo.records import dataclass
from topo.routes.route import Policy
from topo.study.answers import AS_FAST, Comparison, PathAnswer
from topo.study.compare import compare_all
from topo.study.inventory import (
    PLACEMENT,
    Fact,
    Facts,
    Inventory,
    Section,
    inventory_of,
    oriented,
    without_places,
)
from topo.study.question import asked_workloads, chosen_workloads, path_names
from topo.topology.topology import Topology

_MOST: Final = 4  # names in a line

Sort: TypeAlias = Literal["added", "gone", "changed", "renamed"]
Outcome: TypeAlias = Literal["same", "faster", "slower", "refused", "possible", "before", "after"]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One fact of something, before and after; `None` where it is not stated."""

    key: str
    before: Fact | None
    after: Fact | None


@dataclass(frozen=True, slots=True)
class Change:
    """What differs, once for all that differ alike.

    Parameters
    ----------
    section
        What it is about: devices, links, settings ...
    sort
        Whether it is only after, only before, in both, or probably the same by another name.
    names, count
        The names of all of them, as ranges, and how many they are.
    fields
        The facts that differ; of what is added or gone what it is.
    """

    section: Section
    sort: Sort
    names: str
    count: int
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """A workload by a data path, on both machines; `None` where one was not asked about it.

    `alike` is whether the workload moves as many bytes in both.
    """

    workload: str
    data_path: str
    before: PathAnswer | None
    after: PathAnswer | None
    alike: bool = True

    @property
    def times_as_fast(self) -> float | None:
        """How many times as fast it is after: by the time, or the rate where bytes differ."""
        before, after = self.before, self.after
        if before is None or after is None or not before.rate or not after.rate:
            return None
        if self.alike and before.time and after.time:
            return before.time / after.time
        return after.rate / before.rate

    @property
    def outcome(self) -> Outcome:
        """What became of it; `before` and `after` are where only that side was asked."""
        if self.before is None or self.after is None:
            return "after" if self.before is None else "before"
        ratio = self.times_as_fast
        if ratio is None:
            if self.after.rate is None:
                return "same" if self.before.rate is None else "refused"
            return "possible"
        if abs(ratio - 1) <= AS_FAST:
            return "same"
        return "faster" if ratio > 1 else "slower"

    @property
    def unproven(self) -> bool:
        """Whether it holds by the known capacities alone: "at most" is no proof of a gain."""
        if self.before is None or self.after is None:
            return False
        before, after = self.before.at_most, self.after.at_most
        return {"faster": after, "slower": before, "same": before or after}.get(self.outcome, False)

    @property
    def differs(self) -> bool:
        """Whether the answers differ in anything that is said of them."""
        return self.outcome != "same" or _said(self.before) != _said(self.after)


def _said(path: PathAnswer | None) -> tuple[object, ...]:
    """Return what is said of an answer beside its rate and time."""
    if path is None:
        return ()
    bound = tuple(resource.name for resource in path.bound)
    stopped = (path.stopped_count, path.stopped)
    return (path.verdict, path.at_most, path.counts, bound, path.own_limits, stopped)


@dataclass(frozen=True, slots=True)
class Diff(Displayed):
    """What differs between two machines, and the answers of both.

    `workloads` are those of the answers, as they are before and after.
    """

    before: Topology
    after: Topology
    basis: Basis
    changes: tuple[Change, ...]
    workloads: tuple[tuple[Workload | None, Workload | None], ...]
    answers: tuple[AnswerPair, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def topology(self) -> Topology:
        """The machine as it is after."""
        return self.after

    def pairs_of(self, workload: Workload | None) -> tuple[AnswerPair, ...]:
        """Return the answers about a workload."""
        return tuple(pair for pair in self.answers if workload and pair.workload == workload.name)

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes) or any(pair.differs for pair in self.answers)

    @property
    def slower(self) -> tuple[AnswerPair, ...]:
        """What takes longer after, or is refused then."""
        return tuple(pair for pair in self.answers if pair.outcome in ("slower", "refused"))

    @property
    def refused(self) -> tuple[AnswerPair, ...]:
        """What is refused after, and was not before."""
        return tuple(pair for pair in self.answers if pair.outcome == "refused")

    def __repr__(self) -> str:
        outcomes = Counter(pair.outcome for pair in self.answers)
        answers = (f"{count} {outcome}" for outcome, count in outcomes.items())
        words = (counted(len(self.changes), "difference"), *answers)
        return brief(self, f"{self.before.name} to {self.after.name}: {', '.join(words)}")


def diff(  # noqa: PLR0913  (all that a question can say)
    before: Topology,
    after: Topology,
    *,
    workload: str | None = None,
    via: str | Sequence[str] = (),
    source: str = "",
    target: str = "",
    needs: str | None = None,
    checkpoint: str | None = None,
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Diff:
    """Return what differs between two machines, and what that does to their answers.

    Devices are matched by name, links by their ends, machines that are used by their names. A
    device that is only before and one that is only after are probably the same where both are the
    same part with the same neighbours, and no other device of either side is.

    Parameters
    ----------
    before, after
        The machines.
    workload, via, source, target, at, policy
        What is asked of both, as of `topo.compare`.
    needs, checkpoint
        The model whose data feeds the GPUs, or whose checkpoint they write, instead of a workload.

    Raises
    ------
    UnknownNameError
        For a workload, model or data path that neither has, a device that one of them has not.

    Examples
    --------
    >>> import topo
    >>> machine = topo.load("gds-textbook")
    >>> wider = machine.replace({"slot.part": "connectx-8-dual-port"})
    >>> result = topo.diff(machine, wider, workload="load", via=["direct"])
    >>> result.changes[0].names, round(result.answers[0].times_as_fast, 2)
    ('slot1, slot2', 1.26)
    """
    via = path_names(via)
    comparisons: list[Comparison | None] = []
    by_words = bool(source or target) or needs is not None or checkpoint is not None
    known = [
        any(workload in (None, stated.name) for stated in side.description.workloads)
        for side in (before, after)
    ]
    if workload is not None and not any(known):
        chosen_workloads(before, workload)  # which says that it is not there
    paths = [{path.name for path in data_paths(side.description)} for side in (before, after)]
    for name in via:
        if not any(name in names for names in paths):
            data_path(before.description, name)  # which says so as well
    for side, has_any, names in zip((before, after), known, paths, strict=True):
        asked = None
        own_via = tuple(name for name in via if name in names)
        if (by_words or has_any) and (own_via or not via):
            workloads = asked_workloads(
                side, workload, source, target, needs=needs, checkpoint=checkpoint
            )
            asked = compare_all(side, workloads, via=own_via, at=at, policy=policy or Policy())
        comparisons.append(asked)
    paired, answers = _side_by_side(*comparisons)
    stated = (finding for asked in comparisons if asked for finding in asked.findings)
    return Diff(
        before=before,
        after=after,
        basis=at,
        changes=tuple(_changes(inventory_of(before), inventory_of(after))),
        workloads=paired,
        answers=answers,
        findings=tuple(dict.fromkeys(stated)),
    )


def _side_by_side(
    before: Comparison | None, after: Comparison | None
) -> tuple[tuple[tuple[Workload | None, Workload | None], ...], tuple[AnswerPair, ...]]:
    sides = [
        {answer.workload.name: answer for answer in side.workloads} if side else {}
        for side in (before, after)
    ]
    workloads: list[tuple[Workload | None, Workload | None]] = []
    pairs: list[AnswerPair] = []
    for name in dict.fromkeys(chain(*sides)):
        answers = [side.get(name) for side in sides]
        first, second = (answer.workload if answer else None for answer in answers)
        workloads.append((first, second))
        paths = [{path.name: path for path in answer.paths} if answer else {} for answer in answers]
        alike = not first or not second or first.size == second.size
        pairs += (
            AnswerPair(name, path, paths[0].get(path), paths[1].get(path), alike)
            for path in dict.fromkeys(chain(*paths))
        )
    return tuple(workloads), tuple(pairs)


# --- what differs ---------------------------------------------------------------------------------


def _changes(before: Inventory, after: Inventory) -> Iterator[Change]:
    """Yield what differs, section by section, what differs alike once."""
    alike: dict[object, tuple[Section, Sort, tuple[FieldChange, ...], dict[object, _Names]]] = {}
    for units, section, sort, name, fields in _differences(before, after, ("",)):
        keys = tuple(field.key for field in fields)
        name_alone = name if not fields else ""
        key = (section, sort, name_alone, keys if {*keys} <= PLACEMENT else without_places(fields))
        group = alike.setdefault(key, (section, sort, fields, {}))
        inside = group[3].setdefault(id(units), (units, []))
        inside[1].append(name)
        if without_places(group[2]) != without_places(fields):
            alike[key] = (section, sort, tuple(map(_of_each, fields)), group[3])
    order = get_args(Section)
    for section, sort, fields, names in sorted(
        alike.values(), key=lambda group: order.index(group[0])
    ):
        count = sum(len(units) * len(inside) for units, inside in names.values())
        yield Change(section, sort, _shown(list(names.values())), count, fields)


_Names: TypeAlias = "tuple[tuple[str, ...], list[str]]"  # of machines that are used, and inside


def _shown(names: Sequence[_Names]) -> str:
    """Return names inside machines that are alike as ranges: ``node[0-31].gpu[0-7]``."""
    texts: list[str] = []
    for units, inside in names:
        if units == ("",):
            texts += ranges(inside)
        else:
            machines = ranges(units)
            for text in ranges(inside):
                if " " in text:
                    texts.append(f"{text} of {listed(machines)}")
                else:
                    texts += (f"{machine}.{text}" if text else machine for machine in machines)
    return ", ".join(texts)


_Difference: TypeAlias = "tuple[tuple[str, ...], Section, Sort, str, tuple[FieldChange, ...]]"


def _differences(
    before: Inventory, after: Inventory, units: tuple[str, ...]
) -> Iterator[_Difference]:
    """Yield each difference of two inventories, which are of all these machines."""
    renamed = before.renamed_in(after)
    for old, new in renamed.items():
        renaming = FieldChange("name", Word(None, old, ""), Word(None, new, ""))
        yield units, "devices", "renamed", old, (renaming,)
    before = before.named(renamed)
    for section, facts in before.sections.items():
        theirs = after.sections[section]
        if section == "links":
            theirs = oriented(theirs, facts)
        for name, own in facts.items():
            if name not in theirs:
                yield units, section, "gone", name, _fields(_sort_of_thing(own), {})
            elif own is not theirs[name]:
                fields = _fields(own, theirs[name])
                for sits in (False, True):
                    part = tuple(field for field in fields if (field.key in PLACEMENT) is sits)
                    if part:
                        yield units, section, "changed", name, part
        for name, own in theirs.items():
            if name not in facts:
                yield units, section, "added", name, _fields({}, _sort_of_thing(own))
    pairs: dict[tuple[int, int], tuple[Inventory, Inventory, list[str]]] = {}
    for name, machine in before.machines.items():
        their = after.machines.get(name)
        if their is not None and their.description is not machine.description:
            pairs.setdefault((id(machine), id(their)), (machine, their, []))[2].append(name)
    for machine, their, inside in pairs.values():
        names = tuple(f"{unit}.{name}" if unit else name for unit in units for name in inside)
        yield from _differences(machine, their, names)


def _sort_of_thing(facts: Facts) -> Facts:
    """Return what something is, without where it sits."""
    return {key: fact for key, fact in facts.items() if key not in PLACEMENT}


def _of_each(change: FieldChange) -> FieldChange:
    """Return a change whose values differ from one to another, which are counted, not listed."""
    each = Word(None, "one of each", "")
    return FieldChange(change.key, change.before and each, change.after and each)


def _fields(before: Facts, after: Facts) -> tuple[FieldChange, ...]:
    """Return the facts that differ, whatever line of a file they stand on."""
    return tuple(
        FieldChange(key, first, second)
        for key in dict.fromkeys((*before, *after))
        for first, second in ((before.get(key), after.get(key)),)
        if first != second and without_places(first) != without_places(second)
    )
