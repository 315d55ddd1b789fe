"""Solutions of one use matrix, each for all the capacities that it holds for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.flows.demands import System, UseMatrix
    from topo.solve.system import Allocation
    from topo.study.answer import Completion, Solved
    from topo.study.variants import Outcome
    from topo.topology.resources import Resource


_FILLED_ENTRIES: Final = 5_000  # up to so many a system is filled one by one (`topo.solve.maxmin`)
_MOST_KEPT: Final = 10_000  # of one sort: what differs in more is looked up less often
_ABOVE: Final = 1 + 1e-8  # what is so far above a level is above it, whatever was rounded


Answer = TypeVar("Answer")


def sufficient(
    system: System, allocation: Allocation, whole: Completion
) -> tuple[float, ...] | None:
    """Return the capacity of each resource from which up an answer is the same, to the last digit.

    Filling freezes a demand at some level, its rate over its weight, and ends at the highest of
    these. A resource that would be full above that level, if all of its users rose to it, is never
    looked at: with any capacity from there up, each step is the same. `None` where another way of
    solving was taken, or it is not kept what ran when.
    """
    spans = whole.spans
    if len(system.resources) > _FILLED_ENTRIES or (whole.rate != whole.start_rate and not spans):
        return None
    weights = system.weights
    levels = [rate / weight for rate, weight in zip(allocation.rates, weights, strict=True)]
    levels += [
        rate / weights[demand]
        for span in spans
        for demand, rate in zip(span.demands, span.rates, strict=True)
    ]
    top = max(levels) * _ABOVE
    pulls = [0.0] * len(system.capacities)  # of all users of each resource
    for demand, weight in enumerate(weights):
        for entry in range(system.starts[demand], system.starts[demand + 1]):
            pulls[system.resources[entry]] += system.multiplicities[entry] * weight
    return tuple([pull * top for pull in pulls])


class AnswersByCapacity(Generic[Answer]):
    """Answers of one system, each for all the capacities that it holds for.

    An answer is known by the capacities below what is `sufficient`, and holds for all others from
    there up.
    """

    def __init__(self) -> None:
        self._of_columns: dict[
            tuple[int, ...], dict[tuple[float, ...], tuple[Answer, tuple[tuple[int, float], ...]]]
        ] = {}

    def find(self, capacities: Sequence[float]) -> Answer | None:
        """Return what is known for these capacities, bytes/s."""
        for places, by_capacities in self._of_columns.items():
            kept = by_capacities.get(tuple([capacities[place] for place in places]))
            if kept is None:
                continue
            answer, least = kept
            if not any(capacities[place] < enough for place, enough in least):
                return answer
        return None

    def keep(self, capacities: Sequence[float], enough: Sequence[float], answer: Answer) -> None:
        """Remember an answer with the capacities that it was found with, and what is enough."""
        below = tuple([at for at, rate in enumerate(capacities) if rate < enough[at]])
        of_columns = self._of_columns.setdefault(below, {})
        if len(of_columns) >= _MOST_KEPT:
            of_columns.clear()
        least = tuple([(at, rate) for at, rate in enumerate(enough) if at not in below])
        of_columns[tuple([capacities[place] for place in below])] = (answer, least)


@dataclass(frozen=True, slots=True)
class _Solution:
    """An outcome, whether another than the varied columns is unknown, and the peaks of these."""

    outcome: Outcome
    at_most: bool
    peaks: tuple[float, ...]


class Solutions:
    """Outcomes of the designs of one use matrix, each for all the designs that it holds for.

    Parameters
    ----------
    matrix
        The use matrix of the designs.
    varied
        The devices whose resources the axes change, and resources that they change.
    """

    def __init__(self, matrix: UseMatrix | None, varied: frozenset[str]) -> None:
        self._columns: tuple[int, ...] = ()
        self._looked_at: frozenset[int] = frozenset()
        self._solutions: AnswersByCapacity[_Solution] = AnswersByCapacity()
        # Large systems are solved another way.
        if matrix is None or len(matrix.system.resources) > _FILLED_ENTRIES:
            return
        self._system, self._basis = matrix.system, matrix.basis
        self._columns = tuple(
            column
            for column, resource in enumerate(matrix.resources)
            if not varied.isdisjoint((resource.device, resource.id))
        )
        self._looked_at = frozenset(self._columns)
        self._before = [matrix.resources[column] for column in self._columns]

    def _resources(self, changed: Mapping[int, Resource]) -> list[Resource]:
        return [
            changed.get(column, before)
            for column, before in zip(self._columns, self._before, strict=True)
        ]

    def find(self, changed: Mapping[int, Resource]) -> Outcome | None:
        """Return what is known to come of such a change, but for its cost."""
        if not changed.keys() <= self._looked_at:
            return None
        resources = self._resources(changed)
        solution = self._solutions.find(
            [resource.capacity.rate(self._basis) for resource in resources]
        )
        if solution is None:
            return None
        unknown = solution.at_most or any(
            resource.capacity.unknown(self._basis, peak)
            for resource, peak in zip(resources, solution.peaks, strict=True)
        )
        outcome = solution.outcome
        return outcome if outcome.at_most == unknown else replace(outcome, at_most=unknown)

    def keep(self, changed: Mapping[int, Resource], solved: Solved, outcome: Outcome) -> None:
        """Remember a solution with what it holds for."""
        if not self._columns or not changed.keys() <= self._looked_at:
            return
        enough = sufficient(self._system, solved.allocation, solved.whole)
        if enough is None:
            return
        resources = self._resources(changed)
        peaks = tuple([solved.peaks[column] for column in self._columns])
        unknown = [
            resource.capacity.unknown(self._basis, peak)
            for resource, peak in zip(resources, peaks, strict=True)
        ]
        if any(unknown):  # what else is unknown cannot be told from these
            return
        self._solutions.keep(
            [resource.capacity.rate(self._basis) for resource in resources],
            [enough[column] for column in self._columns],
            _Solution(outcome, outcome.at_most, peaks),
        )
