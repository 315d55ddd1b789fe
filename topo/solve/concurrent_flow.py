"""How much of each demand should go which way, where several ways are open to it.

A demand with a choice of NICs has one *branch* for each. The shares are chosen in four steps, each
keeping what the ones before have reached:

1. the largest fraction of their wanted rates that all demands can have at the same time (the
   maximum concurrent flow [1]_);
2. the largest total;
3. the least detour: the sum over branches of detour (say, links beyond the fewest) times rate;
4. the most even: the least sum over demands of the largest branch.

Demands and branches that cannot be told apart get equal shares (`topo.solve.equivalence`), so eight
like GPUs are served alike. What is still open is HiGHS's choice, which is always the same.

References
----------
.. [1] F. Shahrokhi, D. Matula, "The Maximum Concurrent Flow Problem", Journal of the ACM 37(2),
   1990.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

from topo.errors import Finding, SolverError, UnboundedError
from topo.records import dataclass
from topo.solve.certificates import certify_split, require

if TYPE_CHECKING:
    from topo.solve.linear_program import Optimum, Program


_SMALL = 1e-9
"""A share below this is none; two shares nearer than this are one number."""


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of the branches, and what they allow.

    Parameters
    ----------
    fraction
        All demands at the same time can have this times their wanted rate.
    shares
        For each demand the part that takes each of its branches; they sum to 1.
    uses
        Each demand as one: ``{resource: multiplicity}``, the branches' summed by share.
    rates
        The rates with the largest total that the shares were chosen for, in bytes/s.
    prices, limit_prices
        What holds the fraction down: what one more byte/s of each resource, and of each demand's
        limit, adds to it. They prove that no shares allow more.
    """

    fraction: float
    shares: tuple[tuple[float, ...], ...]
    uses: tuple[dict[int, float], ...]
    rates: tuple[float, ...]
    prices: tuple[float, ...]
    limit_prices: tuple[float, ...]


def split(
    capacities: Sequence[float],
    choices: Sequence[Sequence[Mapping[int, float]]],
    *,
    wanted: Sequence[float] | None = None,
    limits: Sequence[float] | None = None,
    detours: Sequence[Sequence[float]] | None = None,
    time_limit: float = 60.0,
) -> Split:
    """Choose the shares with which demands go their several ways.

    Parameters
    ----------
    capacities
        Bytes/s of each resource; `math.inf` for one that never binds.
    choices
        For each demand its branches, each a ``{resource: multiplicity}``; at least one.
    wanted
        What each demand wants, in any unit, greater than zero; all the same when not given.
    limits
        Own rate limit of each demand in bytes/s.
    detours
        For each branch what a byte/s on it costs, zero or more, to choose among equally good
        answers; nothing when not given.
    time_limit
        Seconds for each of the steps.

    Returns
    -------
    Split
        With `wanted` not given, its `fraction` is the rate in bytes/s that each can have.

    Raises
    ------
    SolverError
        Nonsense in the numbers, or no answer within the time limit.
    UnboundedError
        A branch meets no finite resource and its demand has no limit.

    Examples
    --------
    One demand on two cards of 50 and 25, and one that has the first card only:

    >>> answer = split([50.0, 25.0], [[{0: 1.0}, {1: 1.0}], [{0: 1.0}]])
    >>> answer.fraction, answer.shares
    (37.5, ((0.3333333333333333, 0.6666666666666666), (1.0,)))
    """
    count = len(choices)
    wants = [1.0] * count if wanted is None else list(wanted)
    caps = [math.inf] * count if limits is None else list(limits)
    _check(capacities, choices, wants, caps)
    if not count:
        return Split(math.inf, (), (), (), (0.0,) * len(capacities), ())
    steps = _Steps(capacities, choices, caps, time_limit)
    unit = math.fsum(wants) / count
    goals = [want / unit for want in wants]
    level, prices = steps.largest_level(goals)
    floors = [min(level * goal, cap) for goal, cap in zip(goals, caps, strict=True)]
    rates = steps.best_rates(floors, detours)
    shares = tuple(_shares(branch_rates) for branch_rates in rates)
    answer = Split(
        fraction=level / unit,
        shares=shares,
        uses=tuple(_use(*both) for both in zip(choices, shares, strict=True)),
        rates=tuple(math.fsum(branch_rates) for branch_rates in rates),
        prices=tuple(price / unit for price in prices[: len(capacities)]),
        limit_prices=tuple(price / unit for price in prices[len(capacities) :]),
    )
    complaints = certify_split(capacities, choices, answer, wanted=wanted, limits=limits)
    require(complaints, "shares of the branches")
    return answer


def _check(
    capacities: Sequence[float],
    choices: Sequence[Sequence[Mapping[int, float]]],
    wants: list[float],
    limits: list[float],
) -> None:
    from topo.flows.demands import System
    from topo.solve.system import check

    if not len(choices) == len(wants) == len(limits) or not all(choices):
        raise SolverError(
            Finding("bad-system", "expected for each demand at least one branch, a want, a limit")
        )
    subflows = [(demand, dict(use)) for demand, uses in enumerate(choices) for use in uses]
    for demand, use in subflows:
        if limits[demand] == math.inf and not any(capacities[r] < math.inf for r in use):
            raise UnboundedError(
                Finding(
                    "unbounded-demand",
                    f"a branch of demand {demand} meets no finite resource, and it has no limit",
                )
            )
    check(
        System.of(
            capacities,
            [use for _, use in subflows],
            weights=[wants[demand] for demand, _ in subflows],
            limits=[limits[demand] for demand, _ in subflows],
        )
    )


class _Steps:
    """The linear programs of one split; variables are the rates of all branches, then helpers."""

    def __init__(
        self,
        capacities: Sequence[float],
        choices: Sequence[Sequence[Mapping[int, float]]],
        limits: list[float],
        time_limit: float,
    ) -> None:
        self.capacities = list(capacities)
        self.limits = limits
        self.time_limit = time_limit
        self.demands = [demand for demand, uses in enumerate(choices) for _ in uses]
        self.ends = [0, *accumulate(len(uses) for uses in choices)]
        first = len(self.capacities)
        # Rows: resources, then for each demand the sum of its branches.
        self.subflows = [
            {**use, first + demand: 1.0} for demand, uses in enumerate(choices) for use in uses
        ]

    def largest_level(self, goals: list[float]) -> tuple[float, list[float]]:
        """Maximise the level at which every demand has level times its goal.

        The prices are those of the resources, then of the limits.
        """
        first = len(self.capacities)
        second = first + len(goals)
        # Rows once more for each demand: sum of branches - goal * level >= 0.
        columns = [
            {**column, second + demand: 1.0}
            for column, demand in zip(self.subflows, self.demands, strict=True)
        ]
        columns.append({second + demand: -goal for demand, goal in enumerate(goals)})
        free = len(goals) * [-math.inf]
        answer = self._solve(
            columns,
            worths=[0.0] * len(self.subflows) + [1.0],
            low=[-math.inf] * first + free + [0.0] * len(goals),
            high=self.capacities + self.limits + [math.inf] * len(goals),
        )
        prices = [
            max(0.0, float(price)) if amount < math.inf else 0.0
            for price, amount in zip(answer.prices, self.capacities + self.limits, strict=False)
        ]
        return float(answer.values[-1]), prices

    def best_rates(
        self, floors: list[float], detours: Sequence[Sequence[float]] | None
    ) -> list[list[float]]:
        """Find the branch rates of steps 2 to 4 with no demand below its floor."""
        low = [-math.inf] * len(self.capacities) + floors
        high = self.capacities + self.limits
        ones = [1.0] * len(self.subflows)
        rates = self._solve(self.subflows, ones, low, high).values.tolist()
        columns, low, high = self._keeping(self.subflows, low, high, ones, math.fsum(rates))
        if detours is not None:
            costs = [-cost for cost in chain.from_iterable(detours)]
            rates = self._solve(columns, costs, low, high).values.tolist()
            least = math.fsum(cost * rate for cost, rate in zip(costs, rates, strict=True))
            columns, low, high = self._keeping(columns, low, high, costs, least)
        rates = self._most_even(columns, low, high)
        return [rates[first:end] for first, end in pairwise(self.ends)]

    def _keeping(
        self,
        columns: list[dict[int, float]],
        low: list[float],
        high: list[float],
        worths: list[float],
        reached: float,
    ) -> tuple[list[dict[int, float]], list[float], list[float]]:
        """Add the row that keeps what a step has reached."""
        row = len(low)
        extended = [
            {**column, row: worth} if worth else column
            for column, worth in zip(columns, worths, strict=True)
        ]
        return extended, [*low, reached], [*high, math.inf]

    def _most_even(
        self, columns: list[dict[int, float]], low: list[float], high: list[float]
    ) -> list[float]:
        """Minimise the sum over demands of a helper that no branch of the demand exceeds."""
        first, count = len(low), len(columns)
        evened = [{**column, first + subflow: 1.0} for subflow, column in enumerate(columns)]
        helpers = [
            {first + subflow: -1.0 for subflow in range(start, end)}
            for start, end in pairwise(self.ends)
        ]
        answer = self._solve(
            evened + helpers,
            worths=[0.0] * count + [-1.0] * len(helpers),
            low=low + [-math.inf] * count,
            high=high + [0.0] * count,
        )
        return [float(rate) for rate in answer.values[:count]]

    def _solve(
        self,
        columns: list[dict[int, float]],
        worths: list[float],
        low: list[float],
        high: list[float],
    ) -> Optimum:
        from topo.solve.linear_program import solve

        return solve(_program(columns, worths, low, high), time_limit=self.time_limit)


def _program(
    columns: list[dict[int, float]], worths: list[float], low: list[float], high: list[float]
) -> Program:
    import numpy as np

    from topo.solve.arrays import Matrix, floats, ints
    from topo.solve.linear_program import Program

    entries = [sorted(column.items()) for column in columns]
    return Program(
        worths=floats(worths),
        bounds=np.full(len(columns), math.inf),
        columns=Matrix(
            starts=ints([0, *accumulate(map(len, entries))]),
            columns=ints([row for column in entries for row, _ in column]),
            values=floats([value for column in entries for _, value in column]),
            width=len(low),
        ),
        low=floats(low),
        high=floats(high),
    )


def _shares(rates: list[float]) -> tuple[float, ...]:
    total = math.fsum(rates)
    shares = [_tidy(rate / total) if rate > _SMALL * total else 0.0 for rate in rates]
    whole = math.fsum(shares)
    return tuple(share / whole for share in shares)


def _tidy(share: float) -> float:
    """Take the simple fraction that a share is but for rounding, so that halves are halves."""
    simple = float(Fraction(share).limit_denominator(10_000))
    return simple if abs(simple - share) <= _SMALL * share else share


def _use(subflows: Sequence[Mapping[int, float]], shares: Sequence[float]) -> dict[int, float]:
    use: dict[int, float] = {}
    for subflow, share in zip(subflows, shares, strict=True):
        for resource, multiplicity in subflow.items():
            if share > 0.0:
                use[resource] = use.get(resource, 0.0) + share * multiplicity
    return dict(sorted(use.items()))
