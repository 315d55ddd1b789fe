"""What binds one workload by one data path, and what would bind next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topo.description.description import Workload
from topo.study.answers import Ladder, Refused
from topo.study.compare import ask, chosen_workloads, compare, path_of
from topo.study.ladder import ladder

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.routes.route import Policy
    from topo.topology.topology import Topology


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
        Without rungs when the path is refused; its `end` says why.

    Examples
    --------
    >>> import topo
    >>> found = topo.bottleneck(topo.load("gds-textbook"), via="legacy")
    >>> [round(rung.rate / 1e9, 2) for rung in found.rungs]
    [100.0, 126.03, 200.0, 504.12]
    """
    asked = _asked(topology, workload, source, target)
    usual = path_of(topology, asked, "") if asked.direction == "copy" else "direct"
    found = compare(topology, workload=asked, via=(via or usual,), at=at, policy=policy)
    (path,) = found.workloads[0].paths
    # no range of times is shown, so a workload's own efficiency is no matter
    findings = tuple(one for one in found.findings if one.code != "efficiency-ignored")
    if path.matrix is None:
        return Ladder(asked, path, (), Refused(topology, path), at, findings)
    return replace(ladder(topology, asked, path, basis=at), findings=findings)


def _asked(
    topology: Topology, workload: str | Workload | None, source: str, target: str
) -> Workload:
    if isinstance(workload, Workload):
        return workload
    if source or target:
        return ask(topology, source, target)
    return chosen_workloads(topology, workload)[0]
