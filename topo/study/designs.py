"""The designs of a sweep answered: each in full, or only solved anew where only rates change.

An axis *changes rates only* when each of its keys is a figure in `RATES` of a device that is there
already. Nothing but that device's own resources (`topo.topology.capacities.device_resources`) and
its price follow from such a figure: no route, no verdict, no resource more or less. So all designs
that differ in such axes alone share one use matrix, and what the design has of each resource is put
into it.

So does an axis of the `rate` of links. The widest of the shortest ways is taken, and how wide a way
is is the least rate on it: which is taken follows from the order of the links' rates, whatever they
are (`_Order`). All designs with the same order share a use matrix.

Where more reads such a figure, the designs are answered in full:

* one worker after the other (serial stages) is as fast as what it passes;
* ``--nics best`` divides bytes by capacities;
* ``nearest`` pairs with the faster of two that are as near;
* beyond theory both directions of a link together have a rate of their own, as quadrants of a CPU
  may, and NCCL has one of GPU links: there axes of links are answered in full;
* in a folded cluster a figure of one server tells it from the others.

Axes of one device, and the channels of all memories (which a CPU has a number of), are built
together: a value of one may be illegal beside a value of another, or hide it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.part import Figure
from topo.description.description import Axis, Choice, Device
from topo.errors import CertificateError, Place, TopoError, UnknownNameError
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
    solved_outcome,
)

if TYPE_CHECKING:
    from topo.study.sweep import Sweep
    from topo.topology.resources import Resource
    from topo.topology.topology import Link, Topology


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
_NEAR: Final = 1e-8  # relative: beyond it no tolerance of the search makes two rates equal
_ANY_RATE: Final = Figure(None, "quoted", "")
_ANYWHERE: Final = Place("", 0, 0)


@dataclass(frozen=True, slots=True)
class _Change:
    """What some values of a group of axes change beside a machine.

    `touched` are the devices and links; `resources` are the new ones, by their ids; `rates` are
    those of links among them, in theory.
    """

    touched: frozenset[str]
    resources: Mapping[str, Resource]
    prices: Mapping[str, float | None]
    rates: Mapping[str, float]


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
        self._anchors: tuple[tuple[int, ...], dict[Hashable, _Anchor | None]] = ((), {})
        self._machine: _Machine | None = None
        self._of_links = tuple(
            only and any(" -- " in key for key in axis.keys)
            for axis, only in zip(sweep.axes, self._of_rates, strict=True)
        )

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
                anchor = self._anchor_of(self._fixed(number), choices)
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

    def _anchor_of(self, places: tuple[int, ...], choices: Sequence[Choice]) -> _Anchor | None:
        """Return what a design has in common with others; `None` where it is answered in full.

        `places` are those of its choices of the axes that change more than rates.
        """
        sweep = self._sweep
        if self._anchors[0] != places:
            self._anchors = (places, {})
            fixed = {
                place: sweep.changes_of([choice])
                for place, choice in enumerate(choices)
                if not self._of_rates[place]
            }
            try:
                if self._machine is None or self._machine.fixed != fixed:
                    self._machine = _Machine(sweep.topology, fixed)
            except TopoError:
                self._machine = None
        machine, anchors = self._machine, self._anchors[1]
        if machine is None:
            return None
        of_links = {place: choices[place] for place, only in enumerate(self._of_links) if only}
        rates: dict[str, float] = {}
        for place, choice in of_links.items():
            change = machine.change({place: choice})
            if change is None:
                return None
            rates |= change.rates
        order = machine.order.of(rates)
        if order not in anchors:
            anchors[order] = self._new_anchor(machine, choices, of_links)
        return anchors[order]

    def _new_anchor(
        self, machine: _Machine, choices: Sequence[Choice], of_links: Mapping[int, Choice]
    ) -> _Anchor | None:
        """Lay what is asked on a machine whose links have the rates of some choices."""
        sweep = self._sweep
        question = sweep.asked_of(choices)
        axes = {place: sweep.axes[place] for place, only in enumerate(self._of_rates) if only}
        try:
            topology = machine.with_choices(of_links)
            laid = lay(topology, question)
            if not _follows_from_rates_only(laid, question, axes.values()):
                return None
            if of_links and not _follows_from_order(topology, laid, question):
                return None
            touched = {place: _touched(machine, place, axis) for place, axis in axes.items()}
        except TopoError:
            return None
        varied = frozenset().union(*touched.values())
        solutions = Solutions(laid.matrix, varied)
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
        self.order = _Order(self.topology)
        self._known: dict[tuple[tuple[int, str], ...], _Change | None] = {}

    def _changed(self, by_place: Mapping[int, Mapping[str, str]]) -> Topology:
        changes = {
            key: text for _, changes in sorted(by_place.items()) for key, text in changes.items()
        }
        return self._base.replace(changes) if changes else self._base

    def with_choices(self, choices: Mapping[int, Choice]) -> Topology:
        """Return the machine with some choices, by the places of their axes."""
        of_choices = {place: choice.changes for place, choice in choices.items()}
        return self._changed({**self.fixed, **of_choices}) if choices else self.topology

    def change(self, choices: Mapping[int, Choice]) -> _Change | None:
        """Return what values change, by the places of their axes.

        `None` where it is illegal, or more than rates.
        """
        label = tuple([(place, choice.label) for place, choice in choices.items()])
        if label not in self._known:
            self._known[label] = self._change(choices)
        return self._known[label]

    def _change(self, choices: Mapping[int, Choice]) -> _Change | None:
        before = self.topology
        try:
            after = self.with_choices(choices)
        except TopoError:
            return None
        if not _differ_in_rates_only(before, after):
            return None
        links = [
            link
            for link, old in zip(after.links, before.links, strict=True)
            if link.cable != old.cable
        ]
        devices = (name for name in before.devices if before[name] != after[name])
        return _Change(
            frozenset((*devices, *(link.name for link in links))),
            {
                name: resource
                for name, resource in after.resources.items()
                if resource.capacity != before.resources[name].capacity
            },
            {name: price for name, price in prices_of(after).items() if price != self.prices[name]},
            {resource.id: resource.capacity.rate("theoretical") for resource in _directions(links)},
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
        self._columns = {resource.id: column for column, resource in enumerate(resources)}
        # of links, which are laid with the rates of one design
        before = machine.topology.resources
        self._before = {
            column: before[resource.id]
            for column, resource in enumerate(resources)
            if resource.id in before and before[resource.id].capacity != resource.capacity
        }

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
        changed = self._before | {
            self._columns[name]: resource
            for change in changes
            for name, resource in change.resources.items()
            if name in self._columns
        }
        kept_outcome = self._solutions.find(changed)
        if kept_outcome is not None:
            same = kept_outcome.cost == cost
            return kept_outcome if same else replace(kept_outcome, cost=cost)
        laid = self._laid
        if laid.matrix is not None:
            resources, capacities = list(laid.matrix.resources), list(laid.matrix.system.capacities)
            for column, resource in changed.items():
                resources[column] = resource
                capacities[column] = resource.capacity.rate(laid.matrix.basis)
            matrix = replace(laid.matrix, resources=tuple(resources))
            laid = replace(laid, matrix=matrix.with_capacities(capacities))
        solved = solve(laid)
        outcome = solved_outcome(laid, solved, cost)
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
    """Whether each key of an axis is a figure of `RATES` of devices that are there, or of links."""
    for key in axis.keys:
        pattern, _, figure = key.rpartition(".")
        if " -- " in pattern and figure == "rate":
            continue
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


def _follows_from_order(topology: Topology, laid: Laid, question: Question) -> bool:
    """Whether what is asked reads rates of links in capacities and, of routes, in their order."""
    return (
        question.at == "theoretical"
        and not topology.unplaced
        and not laid.workload.collective
        and "nearest" not in (question.policy.pairing, laid.workload.pairing)
    )


def _directions(links: Iterable[Link]) -> Iterator[Resource]:
    """Yield the resources of links, one a direction."""
    return (
        resource
        for link in links
        for resource in (link.forward, link.backward)
        if resource is not None
    )


class _Order:
    """The order of the rates of a machine's links, of which routes follow.

    Every comparison of two ways is one of the least rates on them, so it comes out the same while
    the order does. Two exceptions have their very rates told: what is nearly equal, since ways are
    equally wide up to a tolerance, and links between the same two devices, which share by rates.
    """

    def __init__(self, topology: Topology) -> None:
        self._rates = {
            resource.id: resource.capacity.rate("theoretical")
            for resource in _directions(topology.links)
        }
        together: dict[frozenset[str], list[Link]] = {}
        for link in topology.links:
            if link.layer != "network":
                together.setdefault(frozenset((link.a.device, link.b.device)), []).append(link)
        parallel = (links for links in together.values() if len(links) > 1)
        self._parallel = {resource.id for links in parallel for resource in _directions(links)}
        self._others: dict[tuple[str, ...], list[float]] = {}

    def of(self, rates: Mapping[str, float]) -> Hashable:
        """Return what is the same for rates of some links that leave the order as it is."""
        names = tuple(rates)
        if names not in self._others:
            kept = {rate for name, rate in self._rates.items() if name not in rates}
            self._others[names] = sorted(kept)
        others = self._others[names]
        values = sorted({*rates.values()})
        ranks = {
            value: (place, bisect_left(others, value), bisect_right(others, value))
            for place, value in enumerate(values)
        }
        exact = tuple(rate for name, rate in rates.items() if name in self._parallel)
        if any(
            0 < abs(value - other) <= _NEAR * min(value, other)
            for value in values
            for other in (*values, *others[max(ranks[value][1] - 1, 0) : ranks[value][2] + 1])
        ):
            exact = tuple(rates.values())
        return names, tuple([ranks[rate] for rate in rates.values()]), exact


def _differ_in_rates_only(topology: Topology, variant: Topology) -> bool:
    """Whether all that routes and verdicts are made of is the same in a variant."""

    def shape(device: Device) -> Device:
        figures = {key: figure for key, figure in device.part.figures.items() if key not in RATES}
        return replace(device, part=replace(device.part, figures=figures))

    def without_rate(link: Link) -> Link:
        cable = replace(link.cable, rate=_ANY_RATE, stated=None)
        return replace(link, cable=cable, place=_ANYWHERE, forward=None, backward=None)

    before, after = topology.devices, variant.devices
    return (
        list(before) == list(after)
        and all(
            after[name] == device or shape(after[name]) == shape(device)
            for name, device in before.items()
        )
        and (
            topology.links == variant.links
            or list(map(without_rate, topology.links)) == list(map(without_rate, variant.links))
        )
        and replace(topology.description, devices=(), links=(), findings=())
        == replace(variant.description, devices=(), links=(), findings=())
        and [(resource.id, resource.kind) for resource in topology.resources.values()]
        == [(resource.id, resource.kind) for resource in variant.resources.values()]
    )


def _touched(machine: _Machine, place: int, axis: Axis) -> frozenset[str]:
    """Return the devices that an axis changes rates of, and the resources of links."""
    patterns = dict.fromkeys(key.rpartition(".")[0] for key in axis.keys if " -- " not in key)
    names = {device.name for pattern in patterns for device in machine.topology.select(pattern)}
    if len(patterns) < len(axis.keys):
        by_keys = {tuple(choice.changes): choice for choice in reversed(axis.choices)}
        changes = (machine.change({place: choice}) for choice in by_keys.values())
        names |= {name for change in changes if change is not None for name in change.rates}
    return frozenset(names)


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
