"""What bandwidth a collective of some GPUs has: the question of every `all_reduce_perf`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from topo.description.description import COLLECTIVES, Basis, Collective
from topo.routes.route import Policy
from topo.study.compare import compare_all
from topo.study.question import ask_collective

if TYPE_CHECKING:
    from topo.study.answers import Comparison
    from topo.topology.topology import Topology


def collective(
    topology: Topology,
    kind: Collective | Literal[""] = "",
    *,
    over: str | Sequence[str] = "",
    size: float = 1e9,
    root: str = "",
    via: Sequence[str] = (),
    at: Basis = "achievable",
    policy: Policy | None = None,
) -> Comparison:
    """Return algorithm and bus bandwidth of a collective, as nccl-tests counts them.

    Parameters
    ----------
    topology
        The machine.
    kind
        ``all-reduce``, ``all-gather``, ``reduce-scatter``, ``all-to-all``, ``broadcast`` or
        ``reduce``; each of them where it is empty.
    over
        The GPUs that take part, as a selection names them, or one by one; all by default.
    size
        Bytes, as nccl-tests counts them.
    root
        Where a broadcast begins, or a reduce ends: the first GPU by default.
    via
        Data paths; by default through RAM, peer to peer over PCIe, and by GPU links.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Comparison
        Indexed by collective and data path, as that of `topo.compare`.

    Raises
    ------
    UnknownNameError
        For a device or data path that is not there.
    DescriptionError
        When something else than GPUs takes part, or too few or too many.

    Examples
    --------
    >>> import topo
    >>> answer = topo.collective(topo.load("dgx-h100"), "all-reduce", at="theoretical")
    >>> round(answer["peer-nvlink"].bus_rate / 1e9, 2)
    450.0
    """
    workloads = tuple(
        ask_collective(topology, each, over, size=size, root=root)
        for each in ((kind,) if kind else COLLECTIVES)
    )
    return compare_all(topology, workloads, via=via, at=at, policy=policy or Policy())
