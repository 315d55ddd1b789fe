"""NCCL's search for paths: a graph of its kinds of nodes, and the best path between any two.

References
----------
NVIDIA NCCL, ``src/graph/paths.cc``: a search level by level from each node; a path's type is the
worst of its steps', its bandwidth the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


NodeKind = Literal["CPU", "PCI", "GPU", "NIC", "NET", "NVS"]
EdgeKind = Literal["LOC", "NVL", "C2C", "PCI", "SYS", "NET"]

# Better first; the place is NCCL's number.
TYPES: Final = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
_STEP: Final[Mapping[str, str]] = {"NET": "LOC", "PCI": "PIX"}
_INSIDE: Final = 5000.0


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of a link, its bandwidth in GB/s."""

    target: str
    kind: EdgeKind
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Path:
    """The best path: its type, its bandwidth in GB/s, its hops."""

    type: str
    bandwidth: float
    hops: int


class Graph:
    """Nodes by name with their kind, and the edges out of each."""

    def __init__(self) -> None:
        self.kinds: dict[str, NodeKind] = {}
        self.edges: dict[str, list[Edge]] = {}

    def node(self, name: str, kind: NodeKind) -> None:
        """Add a node; again is the same."""
        self.kinds.setdefault(name, kind)
        self.edges.setdefault(name, [])

    def join(self, one: str, other: str, kind: EdgeKind, bandwidth: float) -> None:
        """Join two nodes both ways; equal links between two nodes add up."""
        for source, target in ((one, other), (other, one)):
            self.way(source, target, kind, bandwidth)

    def way(self, source: str, target: str, kind: EdgeKind, bandwidth: float) -> None:
        """Add an edge in one direction."""
        ways = self.edges[source]
        for at, edge in enumerate(ways):
            if (edge.target, edge.kind) == (target, kind):
                ways[at] = Edge(target, kind, edge.bandwidth + bandwidth)
                break
        else:
            ways.append(Edge(target, kind, bandwidth))
        ways.sort(key=lambda edge: -edge.bandwidth)


def paths_from(graph: Graph, base: str) -> dict[str, Path]:
    """Return the best path from `base` to each node that it reaches."""
    found = {base: Path("LOC", _INSIDE, 0)}
    front = [base]
    while front:
        reached: dict[str, None] = {}
        for node in front:
            for edge in graph.edges[node]:
                if not _may_pass(graph, base, node, edge, found[node]):
                    continue
                path = _longer(graph, node, edge, found[node])
                if edge.target != base and _is_better(path, found.get(edge.target)):
                    found[edge.target] = path
                    reached[edge.target] = None
        front = list(reached)
    return found


def _may_pass(graph: Graph, base: str, node: str, edge: Edge, path: Path) -> bool:
    """Whether a path goes on through a node: through a GPU only by NVLink, and once."""
    if node == base or graph.kinds[node] != "GPU":
        return True
    return edge.kind == "NVL" and graph.kinds[edge.target] == "GPU" and path.hops <= 1


def _longer(graph: Graph, node: str, edge: Edge, path: Path) -> Path:
    kinds = (graph.kinds[node], graph.kinds[edge.target])
    step = _STEP.get(edge.kind, edge.kind)
    if kinds == ("PCI", "PCI") and edge.kind == "PCI":
        step = "PXB"
    if edge.kind == "PCI" and "CPU" in kinds:
        step = "PHB"
    if kinds[0] == "GPU" and path.type == "NVL" and step == "NVL" and path.hops:
        step = "NVB"
    worst = max(path.type, step, key=TYPES.index)
    return Path(worst, min(path.bandwidth, edge.bandwidth), path.hops + 1)


def _is_better(path: Path, other: Path | None) -> bool:
    if other is None:
        return True

    def order(one: Path) -> tuple[int, float, int]:
        return TYPES.index(one.type), -one.bandwidth, one.hops

    return order(path) < order(other)
