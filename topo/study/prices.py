"""What one GB/s more is worth, and what one less costs, by class of equal resources, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.solve.maxmin import max_min
from topo.solve.prices import Price, price
from topo.study.equivalence import alike
from topo.study.words import class_words, classes_of, is_plural
from topo.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.flows.system import System, UseMatrix
    from topo.solve.system import Allocation
    from topo.topology.resources import Resource


Rule: TypeAlias = Literal["max-min", "largest-total"]

_SAME = 1e-9
_NOTHING = Price(gain=0.0, cost=0.0, range_up=math.inf)
# One of a class, as in "up to +13.0 GB/s a card".
_ONE = {
    "nic-chip": "card",
    "card-pcie": "slot",
    "network-port": "port",
    "memory-bus": "bus",
    "drive-read": "drive",
    "drive-write": "drive",
    "drive-pcie": "drive",
    "controller-read": "controller",
    "controller-write": "controller",
    "controller-pcie": "controller",
    "gpu-pcie": "GPU",
    "gpu-memory": "GPU",
    "cpu-copy": "CPU",
    "uplink": "uplink",
    "network-link": "link",
    "socket-link": "link",
    "gpu-fabric": "link",
}


@dataclass(frozen=True, slots=True)
class ClassPrice:
    """The price of resources that are alike: same class, capacity and load, like users.

    Parameters
    ----------
    kind
        The class.
    resources
        The resources, in the matrix's order.
    one
        The price of one of them alone.
    together
        The price of raising or lowering all of them, for each byte/s on each.
    next_bound
        What binds where the gain of `together` ends.
    """

    kind: str
    resources: tuple[Resource, ...]
    one: Price
    together: Price
    next_bound: tuple[Resource, ...] = ()

    @property
    def matters(self) -> bool:
        """Whether more or less of it changes the total."""
        return any(
            abs(value) > _SAME
            for found in (self.one, self.together)
            for value in (found.gain, found.cost)
        )

    @property
    def sentence(self) -> str:
        """The price in words."""
        where = _on(self.kind, len(self.resources))
        if not self.matters:
            return f"one GB/s more or less {where} changes nothing"
        end = _until(self.together, self.next_bound, _each(self.kind, len(self.resources)))
        return (
            f"one GB/s more {where} adds {_gigabytes(self.together.gain)}{_in_all(self)}{end}; "
            f"one less costs {_gigabytes(self.together.cost)}{_alone(self)}"
        )


@dataclass(frozen=True, slots=True)
class TiedPrice:
    """Full resources of several classes that stop demands together, raised as a group.

    Each is raised in proportion to its capacity, since raising one alone may gain nothing. `gain`
    and `cost` of `together` are for each byte/s on the smallest of them; `steps` says how many
    bytes/s that is on each resource.
    """

    resources: tuple[Resource, ...]
    steps: tuple[float, ...]
    together: Price
    next_bound: tuple[Resource, ...]

    @property
    def sentence(self) -> str:
        """The price in words."""
        steps = {one.kind: step for one, step in zip(self.resources, self.steps, strict=True)}
        count = {kind: sum(one.kind == kind for one in self.resources) for kind in steps}
        raised = " and ".join(
            f"{_gigabytes(step)} more {_on(kind, count[kind])}" for kind, step in steps.items()
        )
        least = self.resources[self.steps.index(min(self.steps))].kind
        end = _until(self.together, self.next_bound, _each(least, count[least]))
        return (
            f"{classes_of(self.resources)} are full together; as a group, {raised} "
            f"add {_gigabytes(self.together.gain)} in all{end}; as much less costs "
            f"{_gigabytes(self.together.cost)}"
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """What is worth having more of.

    Parameters
    ----------
    rule
        Which question's total is priced.
    total
        Bytes/s of all demands by that rule.
    fair_total
        The same by max-min.
    classes
        A price for each class of like resources with a finite capacity.
    tie
        Where several classes are full at once, their price as a group.
    """

    rule: Rule
    total: float
    fair_total: float
    classes: tuple[ClassPrice, ...]
    tie: TiedPrice | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The prices in words; what changes nothing in one sentence."""
        found = [_capital(one.sentence) for one in self.classes if one.matters]
        if self.tie is not None:
            found.append(_capital(self.tie.sentence))
        rest = [one for price in self.classes if not price.matters for one in price.resources]
        if rest:
            found.append(f"One GB/s more or less on {classes_of(rest)} changes nothing")
        return tuple(f"{sentence}." for sentence in found)


def allocation_by(rule: Rule, system: System) -> Allocation:
    """Return what the demands get by a rule.

    Raises
    ------
    SolverError
        No answer within the time limit.
    UnboundedError
        A demand meets no finite resource.
    """
    if rule == "max-min":
        return max_min(system)
    from topo.solve.linear_program import largest_total  # imports the LP solver

    # Bytes count the same whoever sends them: a fair-share weight is no worth.
    return largest_total(system, worths=(1.0,) * system.demand_count).allocation


def prices(matrix: UseMatrix, *, rule: Rule = "max-min") -> Prices:
    """Return the price of every class of like resources that the demands use.

    Parameters
    ----------
    matrix
        The use matrix that was solved.
    rule
        Which total is priced.

    Notes
    -----
    A price is two numbers found by solving again (`topo.solve.price`): with identical GPUs a dual
    of the linear program is one of many. What is not full has the price nothing, on both sides.
    """
    allocation = allocation_by(rule, matrix.system)
    fair = allocation if rule == "max-min" else max_min(matrix.system)
    return Prices(
        rule=rule,
        total=math.fsum(allocation.rates),
        fair_total=math.fsum(fair.rates),
        classes=tuple(
            _class_price(matrix, allocation, group, rule)
            for group in alike(matrix, allocation)[1]
            if math.isfinite(matrix.system.capacities[group[0]])
        ),
        tie=_tie(matrix, allocation, rule),
    )


def _class_price(
    matrix: UseMatrix, allocation: Allocation, group: tuple[int, ...], rule: Rule
) -> ClassPrice:
    kind = matrix.resources[group[0]].kind
    resources = _named(matrix, group)
    capacity = matrix.system.capacities[group[0]]
    if allocation.loads[group[0]] < capacity * (1 - _SAME):
        return ClassPrice(kind, resources, _NOTHING, _NOTHING)
    one = _price(matrix, dict.fromkeys(group[:1], 1.0), rule)
    together = one if len(group) == 1 else _price(matrix, dict.fromkeys(group, 1.0), rule)
    return ClassPrice(kind, resources, one, together, _named(matrix, together.next_bound))


def _tie(matrix: UseMatrix, allocation: Allocation, rule: Rule) -> TiedPrice | None:
    """Return the price of the full resources that stop a demand as a group, if they are a tie."""
    full = sorted({index for stops in allocation.stops for index in stops})
    if not any(
        len({matrix.resources[index].kind for index in stops}) > 1 for stops in allocation.stops
    ):
        return None
    least = min(matrix.system.capacities[index] for index in full)
    steps = {index: matrix.system.capacities[index] / least for index in full}
    together = _price(matrix, steps, rule)
    return TiedPrice(
        resources=_named(matrix, full),
        steps=tuple(steps.values()),
        together=together,
        next_bound=_named(matrix, together.next_bound),
    )


def _price(matrix: UseMatrix, steps: dict[int, float], rule: Rule) -> Price:
    return price(matrix.system, steps, answer=lambda system: allocation_by(rule, system))


def _named(matrix: UseMatrix, indices: Sequence[int]) -> tuple[Resource, ...]:
    return tuple(matrix.resources[index] for index in indices)


# --- words ----------------------------------------------------------------------------------------


def _on(kind: str, count: int) -> str:
    words = class_words(kind, count)
    if count == 1:
        return f"on {words}"
    return f"on both {words.removeprefix('the ')}" if count == 2 else f"on each of {words}"  # noqa: PLR2004


def _each(kind: str, count: int) -> str:
    if count == 1:
        return ""
    return f" a {_ONE[kind]}" if kind in _ONE else " each"


def _in_all(found: ClassPrice) -> str:
    return " in all" if len(found.resources) > 1 and found.together.gain > _SAME else ""


def _until(found: Price, bound: tuple[Resource, ...], each: str) -> str:
    if found.gain <= _SAME or math.isinf(found.range_up):
        return ""
    by = f", where {classes_of(bound)} {'bind' if is_plural(bound) else 'binds'}" if bound else ""
    return f", up to +{_headroom(found.range_up)}{each}{by}"


def _alone(found: ClassPrice) -> str:
    """Say what one alone does where all together are worth more than their number times that."""
    count = len(found.resources)
    if count == 1 or abs(found.one.gain * count - found.together.gain) <= _SAME * count:
        return ""
    return f" (on one alone, one more adds {_gigabytes(found.one.gain)})"


def _gigabytes(slope: float) -> str:
    """Return what a slope makes of one GB/s."""
    return "nothing" if abs(slope) <= _SAME else f"{slope:.4g} GB/s"


def _headroom(rate: float) -> str:
    giga = rate / 1e9
    return f"{giga:.1f} GB/s" if giga >= 1 else format_rate(rate)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
