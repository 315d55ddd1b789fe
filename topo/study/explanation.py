"""One answer explained: who gets what, what is used by whom, what more of it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.study.prices import allocation_by, prices
from topo.study.shares import shares, uses

if TYPE_CHECKING:
    from topo.flows.system import UseMatrix
    from topo.solve.system import Allocation
    from topo.study.prices import Prices, Rule
    from topo.study.shares import Share, Use


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tables behind one answer, by demand and by resource, and the prices."""

    matrix: UseMatrix
    allocation: Allocation
    shares: tuple[Share, ...]
    uses: tuple[Use, ...]
    prices: Prices


def explain(matrix: UseMatrix, *, rule: Rule = "max-min", each: bool = False) -> Explanation:
    """Explain what the demands of a use matrix get.

    Parameters
    ----------
    matrix
        Demands and resources, as `PathAnswer.matrix` has them.
    rule
        Share max-min fairly, or reach the largest total.
    each
        One entry a demand and a resource; otherwise equal ones are one.

    Examples
    --------
    >>> import topo
    >>> found = topo.bottleneck(topo.load("gds-textbook"), via="direct")
    >>> explained = explain(found.answer.matrix)
    >>> [(len(one.demands), one.rate, one.share) for one in explained.shares]
    [(8, 12500000000.0, 0.125)]
    >>> [(price.kind, price.together.gain) for price in explained.prices.classes if price.matters]
    [('nic-chip', 2.0)]
    """
    allocation = allocation_by(rule, matrix.system)
    return Explanation(
        matrix=matrix,
        allocation=allocation,
        shares=shares(matrix, allocation, each=each),
        uses=uses(matrix, allocation, each=each),
        prices=prices(matrix, rule=rule),
    )
