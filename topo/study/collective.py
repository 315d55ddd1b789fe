"""What bandwidth a collective of some GPUs has: the question of every `all_reduce_perf`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from topo.description.description import COLLECTIVES, Basis, Collective
from topo.routes.route import Policy
from topo.study.compare import compare_all
from topo.study.question import ask_collective
from topo.topology.hosts import host_numbers
from topo.topology.locality import locality, rank

if TYPE_CHECKING:
    from topo.study.answers import Comparison
    from topo.topology.topology import Topology

_MOST_BY_EACH: Final = 128  # GPUs, each to each other one, by data paths that NCCL does not take


def collective(
    topology: Topology,
    kind: Collective | Literal[""] = "",
    *,
    over: str | Sequence[str] = "",
    size: float = 1e9,
    root: str = "",
    via: str | Sequence[str] = (),
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
        Data paths; by default through RAM, peer to peer over PCIe, and by GPU links. Where these
        join all GPUs of each server, all collectives together, and an all-to-all of more than 128
        GPUs, are asked about by them alone.
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
    gpus = workloads[0].sources
    many = not kind or (kind == "all-to-all" and len(gpus) > _MOST_BY_EACH)
    if many and not via and _joined_by_links(topology, gpus):
        via = ("peer-nvlink",)
    return compare_all(topology, workloads, via=via, at=at, policy=policy or Policy())


def _joined_by_links(topology: Topology, gpus: Sequence[str]) -> bool:
    """Whether GPU links lead from each GPU to each other one of its server."""
    beside: dict[int, list[str]] = {}
    numbers = host_numbers(topology)
    for name in gpus:
        beside.setdefault(numbers[name], []).append(name)
    pairs = [pair for names in beside.values() for pair in combinations(names, 2)]
    return bool(pairs) and all(rank(locality(topology, *pair)) == rank("NV") for pair in pairs)
