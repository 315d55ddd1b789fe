"""What binds one workload by one data path, and what would bind next, up to what nobody sells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.description.description import Workload
from topo.errors import UnboundedError
from topo.flows.system import use_matrix
from topo.study.answer import ask, bottlenecks_of, chosen_workloads, path_of, shared
from topo.study.answers import Ladder, LadderEnd, Refused, Rung
from topo.study.compare import compare
from topo.study.routing_bound import routing_bound

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.flows.system import UseMatrix
    from topo.routes.route import Policy
    from topo.study.answers import Bottleneck
    from topo.topology.topology import Topology


# What comes with the GPU: no one can buy more of it for the same GPU.
_NOT_FOR_SALE = frozenset({"gpu-pcie", "gpu-memory", "c2c"})


def bottleneck(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str = "",
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Ladder:
    """Return what binds a workload, and the ladder of what would bind next.

    Parameters
    ----------
    topology
        The machine.
    workload
        The workload or its name; the first of the file by default.
    via
        The data path: by default ``direct`` for storage, for a copy its own first, else
        ``peer-nvlink`` between GPUs and ``nic-direct`` with a card.
    source, target
        Device names or stems: ask about these instead of a workload of the file.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Ladder
        Without rungs when the path is refused; its `end` is why.

    Examples
    --------
    >>> import topo
    >>> ladder = topo.bottleneck(topo.load("gds-textbook"), via="legacy")
    >>> [round(rung.rate / 1e9, 2) for rung in ladder.rungs]
    [100.0, 126.03, 200.0, 504.12]
    """
    if not isinstance(workload, Workload):
        if source or target:
            workload = ask(topology, source, target)
        else:
            workload = chosen_workloads(topology, workload)[0]
    if not via:
        via = path_of(topology, workload, "") if workload.direction == "copy" else "direct"
    comparison = compare(topology, workload=workload, via=(via,), at=at, policy=policy)
    (path,) = comparison.workloads[0].paths
    rungs: tuple[Rung, ...] = ()
    end: LadderEnd | Refused = Refused(topology, path)
    if path.matrix is not None:
        rungs, end = _ladder(topology, path.matrix)
    # no range of times is shown, so a workload's own efficiency is no matter
    findings = [finding for finding in comparison.findings if finding.code != "efficiency-ignored"]
    bound = None if path.matrix is None else routing_bound(topology, workload, path, at)
    return Ladder(workload, path, rungs, end, at, tuple(findings), bound)


def _ladder(topology: Topology, matrix: UseMatrix) -> tuple[tuple[Rung, ...], LadderEnd]:
    """Return what binds, then what would bind next, and why it ends.

    Each step removes every full resource that stops a demand and can be bought, as one set. It
    ends where raising what can be bought would help nobody.
    """
    demands, basis = matrix.demands, matrix.basis
    removed: frozenset[str] = frozenset()
    rungs: list[Rung] = []
    while True:
        matrix = use_matrix(topology, demands, basis=basis, without=removed)
        try:
            allocation = shared(matrix.system)
        except UnboundedError:
            return tuple(rungs), LadderEnd("unlimited")
        binding = bottlenecks_of(matrix, allocation)
        if not binding:
            return tuple(rungs), LadderEnd("own-limits")
        classes: dict[str, list[Bottleneck]] = {}
        for full in binding:
            classes.setdefault(full.resource.kind, []).append(full)
        groups = tuple((kind, tuple(group)) for kind, group in classes.items())
        rungs.append(Rung(math.fsum(allocation.rates), groups))
        kept = tuple(full.resource for full in binding if full.resource.kind in _NOT_FOR_SALE)
        kept_ids = {resource.id for resource in kept}
        raised = {full.resource.id for full in binding} - kept_ids
        fixed = {
            index for index, resource in enumerate(matrix.resources) if resource.id in kept_ids
        }
        # every demand is stopped by something that cannot be bought
        stuck = all(fixed & set(stops) for stops in allocation.stops)
        if not raised or stuck:
            return tuple(rungs), LadderEnd("not-for-sale", kept)
        removed |= raised
