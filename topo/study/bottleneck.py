"""What binds one workload by one data path, and what would bind next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.study.compare import compare
from topo.study.ladder import ladder
from topo.study.model import Ladder
from topo.study.words import listed

if TYPE_CHECKING:
    from topo.routes import Policy
    from topo.spec.model import Basis, Workload
    from topo.topology import Topology

__all__ = ["bottleneck"]


def bottleneck(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str = "direct",
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
        The data path.
    source, target
        Device names or stems: ask about these instead of a workload of the file.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Ladder
        Without rungs when the path is refused; its `end` says why.

    Examples
    --------
    >>> import topo
    >>> found = topo.bottleneck(topo.load("gds-textbook"), via="legacy")
    >>> [round(rung.rate / 1e9, 2) for rung in found.rungs]
    [100.0, 126.03, 200.0, 504.12]
    """
    if workload is None and not (source or target) and topology.spec.workloads:
        workload = topology.spec.workloads[0]
    found = compare(
        topology,
        workload=workload,
        via=(via,),
        source=source,
        target=target,
        at=at,
        policy=policy,
    )
    (asked,) = found.workloads
    (path,) = asked.paths
    if path.matrix is None:
        why = listed(reason.text for reason in path.reasons if reason.effect == "refused")
        return Ladder(asked.workload, path, (), f"{path.name} is refused: {why}", at)
    return ladder(topology, asked.workload, path, basis=at)
