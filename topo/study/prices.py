"""What one GB/s more is worth, and what one less costs, by class of equal resources, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.solve import max_min, price
from topo.study.words import class_words, limited_by
from topo.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.flows import UseMatrix
    from topo.solve import Price
    from topo.topology import Resource

__all__ = ["ClassPrice", "TiedPrice", "price_classes", "price_tie"]

_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class ClassPrice:
    """The price of resources of one class that are alike: same capacity, same load.

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
    next_bound: tuple[Resource, ...]

    @property
    def sentence(self) -> str:
        """The price in words."""
        return _sentence(self)


@dataclass(frozen=True, slots=True)
class TiedPrice:
    """Full resources of several classes that stop the same demands, raised together.

    Each is raised in proportion to its capacity, since raising one alone gains nothing. `gain` and
    `cost` of `together` are for each byte/s on the smallest of them.
    """

    resources: tuple[Resource, ...]
    together: Price
    next_bound: tuple[Resource, ...]

    @property
    def sentence(self) -> str:
        """The price in words."""
        return (
            f"{limited_by(self.resources)} are full together: raising one of them alone gains "
            f"nothing; all in proportion gain {self.together.gain:.4g} GB/s for each GB/s on the "
            f"smallest{_until(self.together, self.next_bound)}"
        )


def price_classes(matrix: UseMatrix) -> tuple[ClassPrice, ...]:
    """Return the price of every class of like resources that the demands use.

    Parameters
    ----------
    matrix
        The use matrix that was solved.

    Notes
    -----
    A price is two numbers found by solving again (`topo.solve.price`): with identical GPUs a dual
    of the linear program is one of many.
    """
    allocation = max_min(matrix.system)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, resource in enumerate(matrix.resources):
        capacity = matrix.system.capacities[index]
        if math.isfinite(capacity):
            key = (resource.kind, f"{capacity:.9g}", f"{allocation.loads[index]:.9g}")
            groups.setdefault(key, []).append(index)
    return tuple(
        ClassPrice(
            kind=kind,
            resources=tuple(matrix.resources[index] for index in group),
            one=price(matrix.system, group[:1]),
            together=(together := price(matrix.system, group)),
            next_bound=_named(matrix, together.next_bound),
        )
        for (kind, _, _), group in groups.items()
    )


def price_tie(matrix: UseMatrix) -> TiedPrice | None:
    """Return the price of the full resources as a group, `None` unless several classes tie."""
    allocation = max_min(matrix.system)
    full = sorted({index for stops in allocation.stops for index in stops})
    if len({matrix.resources[index].kind for index in full}) < 2:  # noqa: PLR2004
        return None
    least = min(matrix.system.capacities[index] for index in full)
    together = price(
        matrix.system, {index: matrix.system.capacities[index] / least for index in full}
    )
    return TiedPrice(
        resources=_named(matrix, full),
        together=together,
        next_bound=_named(matrix, together.next_bound),
    )


def _named(matrix: UseMatrix, indices: Sequence[int]) -> tuple[Resource, ...]:
    return tuple(matrix.resources[index] for index in indices)


def _sentence(found: ClassPrice) -> str:
    count = len(found.resources)
    words = class_words(found.kind, count)
    where = f"both {words.removeprefix('the ')}" if count == 2 else words  # noqa: PLR2004
    if abs(found.together.gain) <= _TIE and abs(found.together.cost) <= _TIE:
        return f"one GB/s more or less on {where} changes nothing"
    each = "" if count == 1 else " each"
    return (
        f"one GB/s more{each} on {where} adds {found.together.gain:.4g} GB/s in all"
        f"{_until(found.together, found.next_bound)}; one less{each} costs "
        f"{found.together.cost:.4g} GB/s"
    )


def _until(found: Price, bound: tuple[Resource, ...]) -> str:
    if not found.gain or math.isinf(found.range_up):
        return ""
    by = f", where {limited_by(bound)} binds" if bound else ""
    return f", up to +{format_rate(found.range_up)} each{by}"
