"""How near a card or drive is to a GPU, as nvidia-smi, NCCL or the GDS driver see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.routes.search import Search, passes_host
from topo.topology.gds_ranking import gds_ranking
from topo.topology.locality import locality, rank
from topo.topology.nccl_paths import TYPES, nccl_matrix

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.topology.topology import Topology


Rules = Literal["nvidia-smi", "nccl", "gds"]
RULES: tuple[Rules, ...] = ("nvidia-smi", "nccl", "gds")

_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near two devices are.

    Parameters
    ----------
    said
        In the rules' own words: ``PXB``, ``PHB``, ``distance 3``.
    links
        Links between the two, NCCL's hops; `None` where the distance says it.
    rate
        Bytes/s at the narrowest of them as the rules see it; `None` where they do not say.
    key
        What the rules compare, smaller is nearer.
    """

    said: str
    links: int | None
    rate: float | None
    key: tuple[float, ...]


_Measure: TypeAlias = "Callable[[str, str], Nearness | None]"


def nearness_by(topology: Topology, rules: Rules) -> _Measure:
    """Return a function of a GPU and another device: how near, `None` when nothing joins them."""
    if rules == "nccl":
        return _by_nccl(topology)
    return _by_gds(topology) if rules == "gds" else _by_class(topology)


def _by_class(topology: Topology) -> _Measure:
    search = Search(topology, ("host", "memory"), passes_host)

    def measure(gpu: str, other: str) -> Nearness | None:
        said = locality(topology, gpu, other)
        ways = search.paths(other, gpu)
        if not said or ways is None:
            return None
        links, width = len(ways.example), ways.width
        rate = width if math.isfinite(width) else None
        return Nearness(said, links, rate, (rank(said), links, -width))

    return measure


def _by_nccl(topology: Topology) -> _Measure:
    paths = nccl_matrix(topology)

    def measure(gpu: str, other: str) -> Nearness | None:
        path = paths.get(gpu, {}).get(other)
        if path is None:
            return None
        key = (TYPES.index(path.type), -path.bandwidth, path.hops)
        return Nearness(path.type, path.hops, path.bandwidth * _GIGA, key)

    return measure


def _by_gds(topology: Topology) -> _Measure:
    ranking = gds_ranking(topology)
    peers = {(gpu, peer.name): peer for gpu, found in ranking.items() for peer in found}

    def measure(gpu: str, other: str) -> Nearness | None:
        peer = peers.get((gpu, other))
        if peer is None:
            return None
        return Nearness(f"distance {peer.distance}", None, None, (peer.rank,))

    return measure


def same_server(topology: Topology) -> dict[str, str]:
    """Return for each device the first one of its server: what links inside hosts join."""
    first: dict[str, str] = {}
    for start in topology.devices:
        front = [start] if start not in first else []
        while front:
            name = front.pop()
            if name in first:
                continue
            first[name] = start
            front += [
                step.target
                for step in topology.steps[name]
                if step.link.layer in ("host", "memory") and step.target not in first
            ]
    return first
