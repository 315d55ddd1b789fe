"""The bottleneck ladder: what binds, what would bind next, up to what cannot be bought."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.errors import UnboundedError
from topo.flows.system import use_matrix
from topo.study.answer import bottlenecks_of, shared
from topo.study.answers import Ladder, LadderEnd, Rung

if TYPE_CHECKING:
    from topo.description.description import Basis, Workload
    from topo.flows.system import UseMatrix
    from topo.solve.system import Allocation
    from topo.study.answers import Bottleneck, PathAnswer
    from topo.topology.topology import Topology


# What comes with the GPU: no one can buy more of it for the same GPU.
_NOT_FOR_SALE = frozenset({"gpu-pcie", "gpu-memory", "c2c"})


def ladder(
    topology: Topology, workload: Workload, found: PathAnswer, *, basis: Basis = "theoretical"
) -> Ladder:
    """Return the ladder of one answer.

    Each step removes every full resource that stops a demand and can be bought, as one set. It
    ends where raising what can be bought would help nobody.

    Parameters
    ----------
    topology
        The machine.
    workload
        The workload that was asked about.
    found
        The answer; it must not be refused.
    basis
        Which figure of each capacity to use.
    """
    assert found.matrix is not None, "a refused path has no ladder"
    demands = found.matrix.demands
    removed: frozenset[str] = frozenset()
    rungs: list[Rung] = []
    while True:
        matrix = use_matrix(topology, demands, basis=basis, without=removed)
        try:
            allocation = shared(matrix.system)
        except UnboundedError:
            return Ladder(workload, found, tuple(rungs), LadderEnd("unlimited"), basis)
        binding = bottlenecks_of(matrix, allocation)
        if not binding:
            return Ladder(workload, found, tuple(rungs), LadderEnd("own-limits"), basis)
        rungs.append(Rung(math.fsum(allocation.rates), _grouped(binding)))
        kept = [one for one in binding if one.resource.kind in _NOT_FOR_SALE]
        raised = {one.resource.id for one in binding} - {one.resource.id for one in kept}
        if not raised or _stuck(matrix, allocation, {one.resource.id for one in kept}):
            end = LadderEnd("not-for-sale", tuple(full.resource for full in kept))
            return Ladder(workload, found, tuple(rungs), end, basis)
        removed |= raised


def _stuck(matrix: UseMatrix, allocation: Allocation, not_for_sale: set[str]) -> bool:
    """Whether every demand is stopped by something that cannot be bought."""
    fixed = {index for index, one in enumerate(matrix.resources) if one.id in not_for_sale}
    return all(fixed & set(stops) for stops in allocation.stops)


def _grouped(binding: tuple[Bottleneck, ...]) -> tuple[tuple[str, tuple[Bottleneck, ...]], ...]:
    groups: dict[str, list[Bottleneck]] = {}
    for one in binding:
        groups.setdefault(one.resource.kind, []).append(one)
    return tuple((kind, tuple(group)) for kind, group in groups.items())
