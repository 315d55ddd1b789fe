"""What follows of a collective: which hops go otherwise than asked, or than NCCL goes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from topo.study.insights import FallenBack, NoAlgorithm, NoRdmaByNccl, NotByNccl
from topo.topology.locality import locality, rank
from topo.topology.rules import farthest_peers

if TYPE_CHECKING:
    from topo.flows.collectives import Hop
    from topo.study.answers import PathAnswer, WorkloadAnswer
    from topo.study.insights import Insight
    from topo.topology.topology import Topology

# From a card farther from its GPU NCCL goes through RAM (NCCL_NET_GDR_LEVEL; src/graph/paths.cc).
_FARTHEST_CARD: Final = "PXB"


def collective_insights(topology: Topology, result: WorkloadAnswer) -> Iterator[Insight]:
    """Yield which hops go otherwise than its data path says, or NCCL would, and what bounds all."""
    solved = [path for path in result.paths if path.rate is not None]
    through_ram: dict[tuple[tuple[str, str], ...], list[PathAnswer]] = {}
    for path in solved:
        if path.collective is None:
            return
        fallen: dict[str, list[tuple[str, str]]] = {}
        far: dict[tuple[str, str], str] = {}
        by_cards: dict[tuple[str, str], None] = {}
        for hop in path.collective.hops:
            pair = (hop.source, hop.target)
            name = hop.route.data_path.name
            if name != path.name:
                fallen.setdefault(name, []).append(pair)
            if name == "peer-pcie" and not hop.apart:
                label = locality(topology, *pair)
                if rank(label) > rank(farthest_peers(topology, hop.source)):
                    far[pair] = label
            if hop.data_path == "peer-rdma":
                by_cards |= dict.fromkeys(_far_cards(topology, hop))
        if fallen:
            hops = tuple((name, tuple(pairs)) for name, pairs in fallen.items())
            yield FallenBack(path, hops)
        if far:
            yield NotByNccl(path, tuple(far), tuple(dict.fromkeys(far.values())))
        if by_cards:
            through_ram.setdefault(tuple(by_cards), []).append(path)
    for pairs, paths in through_ram.items():
        classes = dict.fromkeys(locality(topology, *pair) for pair in pairs)
        yield NoRdmaByNccl(tuple(paths), pairs, tuple(classes))
    if solved and result.bound is not None:
        yield NoAlgorithm(result.bound, max(solved, key=lambda path: path.rate or 0.0))


def _far_cards(topology: Topology, hop: Hop) -> Iterator[tuple[str, str]]:
    """Yield the GPUs of a hop between servers with cards so far that NCCL goes through RAM.

    Not where C2C joins a GPU to its CPU: NCCL goes by that.
    """
    for subflow in hop.route.subflows:
        for gpu, card in ((hop.source, subflow.target_card), (hop.target, subflow.card)):
            by_c2c = any(step.link.cable.family == "nvlink-c2c" for step in topology.steps[gpu])
            if not by_c2c and rank(locality(topology, gpu, card)) > rank(_FARTHEST_CARD):
                yield gpu, card
