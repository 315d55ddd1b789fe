"""Solutions of one use matrix, each for all the capacities that it holds for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.flows.demands import UseMatrix
    from topo.study.answer import Solved
    from topo.study.variants import Outcome
    from topo.topology.topology import Resource


_FILLED_ENTRIES: Final = 5_000  # up to so many a system is filled one by one (`topo.solve.maxmin`)
_MOST_KEPT: Final = 10_000  # of one sort: what differs in more is looked up less often
_ABOVE: Final = 1 + 1e-8  # what is so far above a level is above it, whatever was rounded


@dataclass(frozen=True, slots=True)
class _Solution:
    """An outcome, and what it holds for.

    `at_most` is about all other columns; `least` is what the places among the varied columns have
    to have at least, where their capacity is not part of the key; `peaks` the most that passes
    each of them.
    """

    outcome: Outcome
    at_most: bool
    least: tuple[tuple[int, float], ...]
    peaks: tuple[float, ...]


class Solutions:
    """Outcomes that hold for more than the capacities that they were found with.

    Filling freezes a demand at some level, its rate over its weight, and ends at the highest of
    these. A resource that would be full above that level, if all of its users rose to it, is never
    looked at: with any capacity from there up, each step is the same, to the last digit. So a
    solution is known by the capacities below, and holds for all others from their least up.

    Parameters
    ----------
    matrix
        The use matrix of the designs.
    varied
        The devices whose resources the axes change.
    """

    def __init__(self, matrix: UseMatrix | None, varied: Collection[str]) -> None:
        self._columns: tuple[int, ...] = ()
        self._looked_at: frozenset[int] = frozenset()
        self._of_columns: dict[tuple[int, ...], dict[tuple[float, ...], _Solution]] = {}
        # Large systems are solved another way.
        if matrix is None or len(matrix.system.resources) > _FILLED_ENTRIES:
            return
        system, self._basis = matrix.system, matrix.basis
        self._columns = tuple(
            column for column, each in enumerate(matrix.resources) if each.device in varied
        )
        self._looked_at = frozenset(self._columns)
        self._before = [matrix.resources[column] for column in self._columns]
        self._weights = system.weights
        self._pulls = [0.0] * len(system.capacities)  # of all users of each column
        for demand, weight in enumerate(system.weights):
            for entry in range(system.starts[demand], system.starts[demand + 1]):
                self._pulls[system.resources[entry]] += system.multiplicities[entry] * weight

    def _resources(self, changed: Mapping[int, Resource]) -> list[Resource]:
        return [
            changed.get(column, before)
            for column, before in zip(self._columns, self._before, strict=True)
        ]

    def known(self, changed: Mapping[int, Resource]) -> Outcome | None:
        """Return what is known to come of such a change, but for its cost."""
        if not self._of_columns or not changed.keys() <= self._looked_at:
            return None
        resources = self._resources(changed)
        capacities = [each.capacity.rate(self._basis) for each in resources]
        for places, by_capacities in self._of_columns.items():
            solution = by_capacities.get(tuple([capacities[place] for place in places]))
            if solution is None or any(
                capacities[place] < least for place, least in solution.least
            ):
                continue
            unknown = solution.at_most or any(
                each.capacity.unknown(self._basis, peak)
                for each, peak in zip(resources, solution.peaks, strict=True)
            )
            outcome = solution.outcome
            return outcome if outcome.at_most == unknown else replace(outcome, at_most=unknown)
        return None

    def keep(self, changed: Mapping[int, Resource], solved: Solved, outcome: Outcome) -> None:
        """Remember a solution with what it holds for."""
        if not self._columns or not changed.keys() <= self._looked_at:
            return
        spans = solved.whole.spans
        if solved.whole.rate != solved.whole.start_rate and not spans:
            return
        levels = [
            rate / weight
            for rate, weight in zip(solved.allocation.rates, self._weights, strict=True)
        ]
        levels += [
            rate / self._weights[demand]
            for span in spans
            for demand, rate in zip(span.demands, span.rates, strict=True)
        ]
        top = max(levels) * _ABOVE
        resources = self._resources(changed)
        capacities = [each.capacity.rate(self._basis) for each in resources]
        least = [self._pulls[column] * top for column in self._columns]
        below = [place for place, rate in enumerate(capacities) if rate < least[place]]
        peaks = [solved.peaks[column] for column in self._columns]
        unknown = [
            each.capacity.unknown(self._basis, peak)
            for each, peak in zip(resources, peaks, strict=True)
        ]
        if any(unknown):  # what else is unknown cannot be told from these
            return
        solution = _Solution(
            outcome,
            outcome.at_most,
            tuple((place, each) for place, each in enumerate(least) if place not in below),
            tuple(peaks),
        )
        of_columns = self._of_columns.setdefault(tuple(below), {})
        if len(of_columns) >= _MOST_KEPT:
            of_columns.clear()
        of_columns[tuple([capacities[place] for place in below])] = solution
