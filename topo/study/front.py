"""What a sweep found: how many designs are possible, which are best, what each price buys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeAlias

from topo.description.description import Basis
from topo.display import Displayed
from topo.errors import Finding, UnknownNameError
from topo.phrases import brief, counted, did_you_mean, listed
from topo.records import dataclass
from topo.routes.route import Policy
from topo.solve.system import TIE, rounded
from topo.study.designs import Designs
from topo.study.sweep import Sweep, axis_of, numbers_of, planned
from topo.study.variants import Outcome, Question, prices_of
from topo.topology.topology import Topology

Aim: TypeAlias = Literal["time", "rate"]
COST = "cost"


@dataclass(frozen=True, slots=True)
class Placed:
    """A design among the others: its number and outcome, what it takes of `against`, how it does.

    `value` is seconds or bytes/s, by the aim; `alike` is how many others take and do the same.
    """

    number: int
    outcome: Outcome
    taken: float | None
    value: float
    alike: int = 0


@dataclass(frozen=True, eq=False)
class Swept(Displayed):
    """All designs of a sweep, answered.

    Parameters
    ----------
    sweep
        What was varied and asked.
    outcomes
        What came of each design, in their order.
    aim
        What is best: the least time, or the highest rate.
    against
        What a design shall take little of: ``cost``, or an axis of numbers; empty for nothing.
    """

    sweep: Sweep
    outcomes: Mapping[int, Outcome]
    aim: Aim
    against: str = ""

    def __repr__(self) -> str:
        words = f"{self.sweep.topology.name}: {counted(len(self.outcomes), 'design')}"
        return brief(self, f"{words}, {len(self.placed)} of them possible")

    @property
    def topology(self) -> Topology:
        """The machine, before anything is varied."""
        return self.sweep.topology

    @property
    def verdicts(self) -> Mapping[str, int]:
        """How many designs have each verdict."""
        return Counter(outcome.verdict for outcome in self.outcomes.values())

    @property
    def limits(self) -> Mapping[str, int]:
        """How many designs each thing limits, the most first."""
        limits = Counter(placed.outcome.limited_by for placed in self.placed)
        return dict(sorted(limits.items(), key=lambda item: (-item[1], item[0])))

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why designs are not possible, and how many each, the most first."""
        reasons = Counter(outcome.reason for outcome in self.outcomes.values() if outcome.reason)
        return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def without_effect(self) -> tuple[str, ...]:
        """Names of axes that change no verdict, rate, time or limit, whatever the others are."""
        names: list[str] = []
        stride = self.sweep.count
        for axis in self.sweep.axes:
            size, stride = len(axis.choices), stride // len(axis.choices)
            known: dict[int, tuple[object, ...]] = {}  # by the design with the axis' first value
            if size > 1 and all(
                known.setdefault(number - number // stride % size * stride, said) == said
                for number, said in ((n, _said(outcome)) for n, outcome in self.outcomes.items())
            ):
                names.append(axis.name)
        return tuple(names)

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """The designs that have a rate, in their order."""
        return tuple(
            Placed(number, outcome, self._taken(number, outcome), value)
            for number, outcome in self.outcomes.items()
            if (value := outcome.time if self.aim == "time" else outcome.rate) is not None
        )

    def _taken(self, number: int, outcome: Outcome) -> float | None:
        if self.against in ("", COST):
            return outcome.cost if self.against else None
        return self._numbers[self.sweep.design(number)[self._place].label]

    @cached_property
    def _place(self) -> int:
        """The place of the axis that designs are held against."""
        return [axis.name for axis in self.sweep.axes].index(self.against)

    @cached_property
    def _numbers(self) -> Mapping[str, float]:
        axis = self.sweep.axes[self._place]
        labels = (choice.label for choice in axis.choices)
        return dict(zip(labels, numbers_of(axis) or (), strict=True))

    def _better(self, value: float) -> float:
        """Return a value so that less is better."""
        return value if self.aim == "time" else -value

    @cached_property
    def best(self) -> tuple[Placed, ...]:
        """The designs by how they do, then by what they take: the first of those that are alike."""

        def key(design: Placed) -> tuple[float, bool, float, int]:
            taken = math.inf if design.taken is None else design.taken
            return (
                rounded(self._better(design.value)),
                design.outcome.at_most,
                taken,
                design.number,
            )

        alike: dict[tuple[object, ...], list[Placed]] = {}
        for design in sorted(self.placed, key=key):
            same = (rounded(design.value), design.outcome.limited_by, design.outcome.via)
            alike.setdefault(same, []).append(design)
        return tuple(replace(group[0], alike=len(group) - 1) for group in alike.values())

    @cached_property
    def front(self) -> tuple[Placed, ...]:
        """The designs that nothing beats that takes no more, from the least taken up.

        Of those that take and do the same the first.
        """
        front: list[Placed] = []
        known = [design for design in self.placed if design.taken is not None]
        for design in sorted(
            known, key=lambda one: (one.taken, self._better(one.value), one.number)
        ):
            last = front[-1] if front else None
            if last is None or _better(self._better(design.value), self._better(last.value)):
                front.append(design)
            elif last.taken == design.taken and rounded(last.value) == rounded(design.value):
                front[-1] = replace(last, alike=last.alike + 1)
        return tuple(front)


def _said(outcome: Outcome) -> tuple[object, ...]:
    """Return what is said of a design beside what it takes, equal figures alike."""
    figures = (
        None if figure is None else rounded(figure) for figure in (outcome.rate, outcome.time)
    )
    return (outcome.verdict, *figures, outcome.at_most, outcome.limited_by, outcome.reason)


def _better(value: float, than: float) -> bool:
    return value < than - abs(than) * TIE


def swept(
    sweep: Sweep, outcomes: Mapping[int, Outcome], *, aim: Aim | None = None, against: str = ""
) -> Swept:
    """Return what a sweep found.

    Parameters
    ----------
    sweep
        What was varied and asked.
    outcomes
        What came of each design, in any order.
    aim
        What is best; the time where every design has one, else the rate.
    against
        As for `Swept`; the cost where nothing is named and some design has one.

    Raises
    ------
    UnknownNameError
        If `against` is neither, or its values are no numbers.
    """
    ordered = dict(sorted(outcomes.items()))
    rated = [outcome for outcome in ordered.values() if outcome.rate is not None]
    if aim is None:
        aim = "time" if all(outcome.time is not None for outcome in rated) else "rate"
    priced = any(outcome.cost is not None for outcome in rated)
    if not against:
        against = COST if priced else ""
    else:
        check_against(sweep, against)
    if against == COST and rated and not priced:
        message = "no design has a cost: no device has a price, or one that is changed has none"
        advice = "write `price: 1800` at parts and devices, all of one currency"
        raise UnknownNameError(Finding("no-price", message, help=advice))
    return Swept(sweep, ordered, aim, against)


def may_cost(sweep: Sweep) -> bool:
    """Whether a design may have a cost: something has a price, or may get one."""
    keys = (key for axis in sweep.axes for key in axis.keys)
    priced = any(price is not None for price in prices_of(sweep.topology).values())
    return priced or any(key.endswith((".price", ".part", ".use")) for key in keys)


def check_against(sweep: Sweep, against: str) -> None:
    """Raise where designs cannot be put in order of `against`.

    Raises
    ------
    UnknownNameError
        If it is neither the cost nor an axis, or an axis whose values are no numbers.
    """
    axes = {axis.name: axis for axis in sweep.axes}
    if against != COST and against not in axes:
        advice = did_you_mean(against, (COST, *axes)) or f"there are {listed((COST, *axes))}"
        message = f"no axis `{against}` to hold designs against"
        raise UnknownNameError(Finding("unknown-name", message, help=advice))
    if against != COST and numbers_of(axes[against]) is None:
        message = f"the values of {against} are no numbers, and have no order"
        raise UnknownNameError(Finding("unknown-name", message, help="name the cost, or another"))


def sweep(  # noqa: PLR0913  (all that a question can say)
    topology: Topology,
    vary: Mapping[str, str | Sequence[object]],
    *,
    workload: str = "",
    via: str = "",
    source: str = "",
    target: str = "",
    needs: str | None = None,
    checkpoint: str | None = None,
    at: Basis = "theoretical",
    policy: Policy | None = None,
    aim: Aim | None = None,
    against: str = "",
) -> Swept:
    """Answer one question of many variants of a machine.

    Parameters
    ----------
    topology
        The machine.
    vary
        The values of each axis, by what they change: a target of ``--set``, or a word of
        `topo.study.sweep.QUESTIONS`.
    workload, via
        What is asked; by default the first workload by the best data path that is not refused.
    source, target, at, policy
        As for `topo.compare`.
    needs, checkpoint
        The model whose data feeds the GPUs, or whose checkpoint they write, instead of a workload.
    aim, against
        As for `swept`.

    Raises
    ------
    TopoError
        If an axis is not there, has no values or such as cannot be read, or there are too many
        designs.

    Examples
    --------
    >>> import topo
    >>> found = topo.sweep(
    ...     topo.load("gds-textbook"),
    ...     {"ram.bus": ["100 GB/s", "200 GB/s"], "via": ["legacy", "direct"]},
    ... )
    >>> [(outcome.via, outcome.rate / 1e9) for outcome in found.outcomes.values()]
    [('legacy', 50.0), ('direct', 100.0), ('legacy', 100.0), ('direct', 100.0)]
    """
    policy = policy or Policy()
    question = Question(workload, via, source, target, needs, checkpoint, at=at, policy=policy)
    axes = (axis_of(name, values) for name, values in vary.items())
    plan = planned(topology, axes, question)
    if against:
        check_against(plan, against)
    designs = Designs(plan)
    outcomes = dict(
        pair for batch in designs.batches(range(plan.count)) for pair in designs.outcomes(batch)
    )
    return swept(plan, outcomes, aim=aim, against=against)
