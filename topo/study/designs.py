"""The designs of a sweep answered: each in full, or only solved anew where only rates change.

An axis *changes rates only* when each of its keys is a figure in `RATES` of a device that is there
already. Nothing but that device's own resources (`topo.topology.capacities.device_resources`) and
its price follow from such a figure: no route, no verdict, no resource more or less. So all designs
that differ in such axes alone share one use matrix, and what the design has of each resource is put
into it.

Where more reads such a figure, the designs are answered in full:

* one worker after the other (serial stages) is as fast as what it passes;
* ``--nics best`` divides bytes by capacities;
* ``nearest`` pairs with the faster of two that are as near;
* in a folded cluster a figure of one server tells it from the others.

Axes of one device, and the channels of all memories (which a CPU has a number of), are built
together: a value of one may be illegal beside a value of another, or hide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.description.description import Axis, Choice, Device
from topo.errors import CertificateError, TopoError, UnknownNameError
from topo.records import dataclass
from topo.study.solutions import Solutions
from topo.study.sweep import is_question
from topo.study.variants import (
    Laid,
    Outcome,
    Question,
    cost_of,
    illegal,
    lay,
    outcome_of,
    prices_of,
    solve,
    told,
)

if TYPE_CHECKING:
    from topo.study.sweep import Sweep
    from topo.topology.topology import Resource, Topology


RATES: Final = frozenset(
    {
        *("read", "write", "chip", "hbm", "copy", "cores", "core-copy", "posted-to-roots"),
        *("bus", "channels", "transfer-rate", "transfer-rate-2dpc", "bytes-per-transfer"),
        *("dimms-per-channel", "efficiency", "price"),
    }
)
"""Figures of a device that nothing but its own resources, or its price, follow from."""
_BY_NEARNESS: Final = frozenset({"chip", "read"})  # what decides between two that are as near
# Work is counted in designs that are solved only; to build one, of so many devices, costs as much
# as so many of these.
_BUILT_AT_COST: Final = 60
_DEVICES_AT_COST: Final = 24
_BATCH: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Change:
    """What some values of a group of axes change beside a machine.

    `touched` are the devices; `resources` are the new ones, by their ids.
    """

    touched: frozenset[str]
    resources: Mapping[str, Resource]
    prices: Mapping[str, float | None]


class Designs:
    """Answers the designs of one sweep; what several of them share is built once.

    Parameters
    ----------
    sweep
        What is varied and asked.
    quick
        Whether rates alone are changed in a use matrix that is there, where they can be.
    """

    def __init__(self, sweep: Sweep, *, quick: bool = True) -> None:
        self._sweep = sweep
        rates_only = (_changes_rates_only(sweep.topology, axis) for axis in sweep.axes)
        folded = sweep.topology.folding is not None
        self._of_rates = tuple(changes and quick and not folded for changes in rates_only)
        # Designs come in the order of `batches`: the last ones are enough.
        self._anchor: tuple[tuple[int, ...], _Anchor | None] = ((), None)
        self._machine: _Machine | None = None

    def batches(self, numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """Yield designs that are best answered together, what shares a use matrix first."""
        sweep = self._sweep
        build = _BUILT_AT_COST * max(1, len(sweep.topology.devices) // _DEVICES_AT_COST)
        of_rates = [axis for axis, only in zip(sweep.axes, self._of_rates, strict=True) if only]
        anchor = min(build * (1 + sum(len(axis.choices) for axis in of_rates)), _BATCH // 4)
        anchor = anchor if of_rates else 0
        # what asks something else of the same machine follows it
        machine = [not is_question(axis) for axis in sweep.axes]

        def key(number: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
            fixed = self._fixed(number)
            return (
                tuple(place for place, first in zip(fixed, machine, strict=True) if first),
                fixed,
                number,
            )

        batch: list[int] = []
        cost = 0
        before: tuple[int, ...] | None = None
        for _, fixed, number in sorted(map(key, numbers)):
            cost += (1 if of_rates else build) + (anchor if fixed != before else 0)
            before = fixed
            batch.append(number)
            if cost >= _BATCH:
                yield tuple(batch)
                batch, cost = [], 0
        if batch:
            yield tuple(batch)

    def outcomes(self, numbers: Sequence[int]) -> tuple[tuple[int, Outcome], ...]:
        """Return what came of some designs, by their numbers."""
        return tuple((number, self._outcome(number)) for number in numbers)

    def _fixed(self, number: int) -> tuple[int, ...]:
        """Return the places of a design's choices, 0 on axes that change rates only."""
        places = zip(self._sweep.places(number), self._of_rates, strict=True)
        return tuple([0 if of_rates else place for place, of_rates in places])

    def _outcome(self, number: int) -> Outcome:
        sweep = self._sweep
        choices = sweep.design(number)
        try:
            if any(self._of_rates):
                fixed = self._fixed(number)
                if self._anchor[0] != fixed:
                    self._anchor = (fixed, self._anchor_of(choices))
                anchor = self._anchor[1]
                outcome = anchor.outcome(choices) if anchor is not None else None
                if outcome is not None:
                    return outcome
            changes = sweep.changes_of(choices)
            topology = sweep.topology.replace(changes) if changes else sweep.topology
            priced = _priced(sweep, topology)
            return outcome_of(topology, sweep.asked_of(choices), priced=priced)
        except CertificateError:  # a fault of topo, not of the design
            raise
        except TopoError as error:
            return illegal(sweep.asked_of(choices), error)

    def _anchor_of(self, choices: Sequence[Choice]) -> _Anchor | None:
        """Return what designs with these choices of the axes that change more have in common.

        `None` where they have to be answered in full.
        """
        sweep = self._sweep
        question = sweep.asked_of(choices)
        places = [place for place, only in enumerate(self._of_rates) if only]
        fixed = {
            place: sweep.changes_of([choice])
            for place, choice in enumerate(choices)
            if place not in places
        }
        axes = {place: sweep.axes[place] for place in places}
        try:
            if self._machine is None or self._machine.fixed != fixed:
                self._machine = _Machine(sweep.topology, fixed)
            machine = self._machine
            laid = lay(machine.topology, question)
            if not _follows_from_rates_only(laid, question, axes.values()):
                return None
            touched = {place: _devices(machine.topology, axis) for place, axis in axes.items()}
        except TopoError:
            return None
        solutions = Solutions(laid.matrix, frozenset().union(*touched.values()))
        priced = _priced(sweep, machine.topology)
        return _Anchor(machine, laid, _groups(axes, touched), priced, solutions)


class _Machine:
    """A machine, and what each change of rates alone makes of it, found once.

    Parameters
    ----------
    topology
        Before anything is varied.
    fixed
        What is changed in it for good, by the place of the axis: of two changes of one thing the
        later axis' holds.
    """

    def __init__(self, topology: Topology, fixed: Mapping[int, Mapping[str, str]]) -> None:
        self._base = topology
        self.fixed = fixed
        self.topology = self._changed(fixed)
        self.prices = prices_of(self.topology)
        self._known: dict[tuple[tuple[int, str], ...], _Change | None] = {}

    def _changed(self, by_place: Mapping[int, Mapping[str, str]]) -> Topology:
        changes = {
            key: text for _, changes in sorted(by_place.items()) for key, text in changes.items()
        }
        return self._base.replace(changes) if changes else self._base

    def change(self, choices: Mapping[int, Choice]) -> _Change | None:
        """Return what values change, by the places of their axes.

        `None` where it is illegal, or more than rates.
        """
        label = tuple([(place, choice.label) for place, choice in choices.items()])
        if label not in self._known:
            self._known[label] = self._change(choices)
        return self._known[label]

    def _change(self, choices: Mapping[int, Choice]) -> _Change | None:
        of_choices = {place: choice.changes for place, choice in choices.items()}
        before = self.topology
        try:
            after = self._changed({**self.fixed, **of_choices})
        except TopoError:
            return None
        if not _differ_in_rates_only(before, after):
            return None
        return _Change(
            frozenset(name for name in before.devices if before[name] != after[name]),
            {
                name: resource
                for name, resource in after.resources.items()
                if resource.capacity != before.resources[name].capacity
            },
            {name: price for name, price in prices_of(after).items() if price != self.prices[name]},
        )


class _Anchor:
    """A question laid on a machine, whose use matrix designs share that differ in rates only."""

    def __init__(
        self,
        machine: _Machine,
        laid: Laid,
        groups: Sequence[tuple[int, ...]],
        priced: tuple[str, ...],
        solutions: Solutions,
    ) -> None:
        self._machine, self._laid, self._priced = machine, laid, priced
        self._groups, self._solutions = groups, solutions
        resources = laid.matrix.resources if laid.matrix is not None else ()
        self._columns = {each.id: column for column, each in enumerate(resources)}

    def outcome(self, choices: Sequence[Choice]) -> Outcome | None:
        """Return what a design gives; `None` where it has to be asked in full.

        Raises
        ------
        TopoError
            Where nothing limits a demand.
        """
        changes: list[_Change] = []
        touched: set[str] = set()
        for group in self._groups:
            change = self._machine.change({place: choices[place] for place in group})
            if change is None or not touched.isdisjoint(change.touched):
                return None
            touched |= change.touched
            changes.append(change)
        prices = self._machine.prices
        for change in changes:
            prices = {**prices, **change.prices} if change.prices else prices
        cost = cost_of(prices, self._priced)
        changed = {
            self._columns[name]: resource
            for change in changes
            for name, resource in change.resources.items()
            if name in self._columns
        }
        known_outcome = self._solutions.known(changed)
        if known_outcome is not None:
            same = known_outcome.cost == cost
            return known_outcome if same else replace(known_outcome, cost=cost)
        laid = self._laid
        if laid.matrix is not None:
            resources, capacities = list(laid.matrix.resources), list(laid.matrix.system.capacities)
            for column, resource in changed.items():
                resources[column] = resource
                capacities[column] = resource.capacity.rate(laid.matrix.basis)
            matrix = replace(laid.matrix, resources=tuple(resources))
            laid = replace(laid, matrix=matrix.with_capacities(capacities))
        solved = solve(laid)
        outcome = told(laid, solved, cost)
        if solved is not None:
            self._solutions.keep(changed, solved, outcome)
        return outcome


def _priced(sweep: Sweep, topology: Topology) -> tuple[str, ...]:
    """Return the devices of a design that need a price for its cost to be known."""
    names: dict[str, None] = {}
    for pattern in sweep.priced:
        try:
            names |= dict.fromkeys(device.name for device in topology.select(pattern))
        except UnknownNameError:
            continue
    return tuple(names)


# --- what changes rates only ----------------------------------------------------------------------


def _changes_rates_only(topology: Topology, axis: Axis) -> bool:
    """Whether each key of an axis is a figure of `RATES` of devices that are there."""
    for key in axis.keys:
        pattern, _, figure = key.rpartition(".")
        if not pattern or " " in key or figure not in RATES:
            return False
        try:
            topology.select(pattern)
        except UnknownNameError:
            return False
    return not is_question(axis)


def _follows_from_rates_only(laid: Laid, question: Question, axes: Iterable[Axis]) -> bool:
    """Whether what is asked reads rates nowhere but in the capacities of the use matrix."""
    if laid.answer.data_path.stages == "serial" or question.policy.nics == "best":
        return False
    if "nearest" not in (question.policy.pairing, laid.workload.pairing):
        return True
    keys = (key for axis in axes for key in axis.keys)
    return not any(key.rpartition(".")[2] in _BY_NEARNESS for key in keys)


def _differ_in_rates_only(topology: Topology, variant: Topology) -> bool:
    """Whether all that routes and verdicts are made of is the same in a variant."""

    def shape(device: Device) -> Device:
        figures = {key: each for key, each in device.part.figures.items() if key not in RATES}
        return replace(device, part=replace(device.part, figures=figures))

    before, after = topology.devices, variant.devices
    return (
        list(before) == list(after)
        and all(
            after[name] == device or shape(after[name]) == shape(device)
            for name, device in before.items()
        )
        and topology.links == variant.links
        and replace(topology.description, devices=(), findings=())
        == replace(variant.description, devices=(), findings=())
        and [(each.id, each.kind) for each in topology.resources.values()]
        == [(each.id, each.kind) for each in variant.resources.values()]
    )


def _devices(topology: Topology, axis: Axis) -> frozenset[str]:
    """Return the devices that an axis changes rates of."""
    patterns = dict.fromkeys(key.rpartition(".")[0] for key in axis.keys)
    return frozenset(device.name for each in patterns for device in topology.select(each))


def _groups(
    axes: Mapping[int, Axis], touched: Mapping[int, frozenset[str]]
) -> tuple[tuple[int, ...], ...]:
    """Return the places of axes in groups that have no device in common.

    Nor the channels of memories: a CPU has a number of them for all of its.
    """
    groups: list[tuple[frozenset[str], list[int]]] = []
    for place, axis in axes.items():
        names = touched[place]
        if any(key.endswith(".channels") for key in axis.keys):
            names |= {".channels"}
        joined = [group for group in groups if group[0] & names]
        groups = [group for group in groups if group not in joined]
        groups.append(
            (
                names.union(*(known for known, _ in joined)),
                [*(at for _, places in joined for at in places), place],
            )
        )
    return tuple(sorted(tuple(sorted(places)) for _, places in groups))
