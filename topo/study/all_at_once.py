"""What a comparison leaves out: its workloads not one by one, but all at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.study.compare import path_of
from topo.study.timeline import run_demands, simulate

if TYPE_CHECKING:
    from topo.study.answers import Comparison, PathAnswer, WorkloadAnswer
    from topo.study.timeline import Simulation


_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The workloads of a comparison run together, once by each data path that all can take.

    `at_most` are the data paths on whose way a capacity is unknown: they take at least as long.
    """

    runs: tuple[tuple[str, Simulation], ...]
    at_most: tuple[str, ...]

    @property
    def ranked(self) -> tuple[tuple[str, Simulation], ...]:
        """The runs, best first: by when the last workload is done, then by all together."""
        return tuple(sorted(self.runs, key=lambda run: _times(run[1])))

    @property
    def result(self) -> Literal["wins", "same", "mixed"]:
        """Whether the first of `ranked` wins: no workload is later than by another data path.

        ``same`` where every workload is done at the same time by all.
        """
        (_, best), *others = self.ranked
        if all(_same(best, simulation) for _, simulation in others):
            return "same"
        return "wins" if all(_beats(best, simulation) for _, simulation in others) else "mixed"


def at_once(found: Comparison) -> AtOnce | None:
    """Run the workloads of a comparison together; `None` for one, or where no path serves all.

    Parameters
    ----------
    found
        A comparison of all workloads. What was laid for it is used again, so that it costs little.
    """
    if len(found.workloads) < 2:  # noqa: PLR2004
        return None
    names = _names(found)
    chosen = {name: [_path(found, answer, name) for answer in found.workloads] for name in names}
    ways = {
        name: paths
        for name, paths in chosen.items()
        if all(path.matrix is not None for path in paths)
    }
    if not ways:
        return None
    return AtOnce(
        runs=tuple((name, _run(found, paths)) for name, paths in ways.items()),
        at_most=tuple(name for name, paths in ways.items() if any(one.at_most for one in paths)),
    )


def _names(found: Comparison) -> tuple[str, ...]:
    """Return the data paths to run by: storage's, beside which a copy keeps to its own."""
    storage = [one for one in found.workloads if one.workload.direction != "copy"]
    return tuple(
        dict.fromkeys(path.name for one in storage or found.workloads for path in one.paths)
    )


def _path(found: Comparison, answer: WorkloadAnswer, name: str) -> PathAnswer:
    """Return a workload's answer by a data path; one that was not asked by it keeps to its own."""
    by_name = {path.name: path for path in answer.paths}
    own = path_of(found.topology, answer.workload, "")
    return by_name.get(name) or by_name.get(own) or answer.paths[0]


def _run(found: Comparison, paths: list[PathAnswer]) -> Simulation:
    workloads = tuple(answer.workload for answer in found.workloads)
    names = {one.name: path.name for one, path in zip(workloads, paths, strict=True)}
    if found.policy.nics == "best":  # the best split for one alone is another one
        return simulate(
            found.topology, workloads=workloads, via=names, at=found.basis, policy=found.policy
        )
    demands = tuple(demand for path in paths if path.matrix for demand in path.matrix.demands)
    return run_demands(found.topology, workloads, names, demands, found.basis)


def _times(run: Simulation) -> tuple[float, ...]:
    """Sort by when the last is done, then by all together."""
    return (
        float(f"{run.end:.9g}"),
        float(f"{math.fsum(one.finish for one in run.runs):.9g}"),
    )


def _same(one: Simulation, other: Simulation) -> bool:
    return all(
        math.isclose(mine.finish, theirs.finish, rel_tol=_SAME)
        for mine, theirs in zip(one.runs, other.runs, strict=True)
    )


def _beats(one: Simulation, other: Simulation) -> bool:
    """Whether no workload is later than by the other, and one earlier."""
    never_later = all(
        mine.finish <= theirs.finish * (1 + _SAME)
        for mine, theirs in zip(one.runs, other.runs, strict=True)
    )
    return never_later and not _same(one, other)
