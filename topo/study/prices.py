"""What one GB/s more is worth, and what one less costs, by class of equal resources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.solve.maxmin import max_min
from topo.solve.prices import Price, price
from topo.study.equivalence import alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.flows.system import System, UseMatrix
    from topo.solve.system import Allocation
    from topo.topology.resources import Resource


Rule: TypeAlias = Literal["max-min", "largest-total"]

_SAME = 1e-9
_NOTHING = Price(gain=0.0, cost=0.0, range_up=math.inf)


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
            for price in (self.one, self.together)
            for value in (price.gain, price.cost)
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
