"""What follows from a comparison; each fact is computed from the numbers that it quotes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from topo.study.answers import (
    CoresBusy,
    Faster,
    MeasuredOtherwise,
    NoFaster,
    NotKnown,
    NotModelled,
    Refused,
    SerialWorker,
    Slower,
    TakenAsUnlimited,
    ThroughRam,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.study.answers import Insight, PathAnswer, WorkloadAnswer
    from topo.topology.topology import Topology


_AS_FAST = 1e-6  # relative: below it two rates read the same


def insights(topology: Topology, answer: WorkloadAnswer) -> tuple[Insight, ...]:
    """Return what a careful engineer would say about the answers, most important first."""
    solved = [path for path in answer.paths if path.rate is not None]
    facts: list[Insight] = []
    for path in answer.paths:
        if path.rate is None:
            facts.append(Refused(topology, path))
        elif path.verdict == "unknown":
            facts.append(NotKnown(topology, path))
    if len(solved) > 1:
        facts += _ranking(solved)
    for path in solved:
        if path.counts.ram_traversals:
            facts.append(ThroughRam(path))
        facts += _cores(path, solved)
        # several paths can meet the same: it is a fact once
        facts += [fact for fact in _unlimited(topology, path) if fact not in facts]
    return tuple(facts)


def _ranking(solved: list[PathAnswer]) -> Iterator[Insight]:
    """Yield how the path that spares the RAM, or else the first, compares to the others."""
    best = next((path for path in solved if not path.counts.ram_traversals), solved[0])
    for other in solved:
        if other is not best:
            yield _against(best, other)
            yield from _as_measured(best, other)


def _against(path: PathAnswer, other: PathAnswer) -> Insight:
    assert path.rate is not None
    assert other.rate is not None
    ratio = path.rate / other.rate
    if abs(ratio - 1) <= _AS_FAST:
        full = {bottleneck.resource.id for bottleneck in path.bottlenecks}
        resources = [bottleneck.resource for bottleneck in other.bottlenecks]
        return NoFaster(
            path,
            other,
            shared=tuple(resource for resource in resources if resource.id in full),
            only_other=tuple(resource for resource in resources if resource.id not in full),
        )
    return Faster(path, other, ratio) if ratio > 1 else Slower(path, other)


def _as_measured(path: PathAnswer, other: PathAnswer) -> Iterator[Insight]:
    """Yield who wins by what was measured, where that is not who wins by the figures asked for."""
    matrices = [answer.matrix for answer in (path, other) if answer.matrix]
    if any(resource.capacity.measured for matrix in matrices for resource in matrix.resources):
        rates = (path.by_basis["measured"], other.by_basis["measured"])
        result = _result(*rates)
        if result != _result(path.rate or 0.0, other.rate or 0.0):
            yield MeasuredOtherwise(path, other, rates, result)


def _result(rate: float, other_rate: float) -> Literal["faster", "same", "slower"]:
    if math.isclose(rate, other_rate, rel_tol=_AS_FAST):
        return "same"
    return "faster" if rate > other_rate else "slower"


def _cores(path: PathAnswer, solved: list[PathAnswer]) -> Iterator[Insight]:
    if path.cores is None:
        return
    yield CoresBusy(path, path.cores)
    direct = next((answer for answer in solved if not answer.counts.ram_traversals), None)
    if path.serial_rate is None or direct is None or direct.rate is None:
        return
    if direct.rate > path.serial_rate * (1 + _AS_FAST):
        yield SerialWorker(path, direct, path.serial_rate, direct.rate / path.serial_rate)


def _unlimited(topology: Topology, path: PathAnswer) -> Iterator[Insight]:
    """Yield what the user took as unlimited: appliances, then anything else."""
    known = topology.resources
    resources = [known[name] for name in path.unlimited if name in known]
    sides = ("storage-read", "storage-write")
    storages = [resource.device for resource in resources if resource.kind in sides]
    others = [resource.name for resource in resources if resource.kind not in sides]
    if storages:
        yield NotModelled(tuple(dict.fromkeys(storages)))
    if others:
        yield TakenAsUnlimited(tuple(dict.fromkeys(others)))
