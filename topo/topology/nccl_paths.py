"""A topology as NCCL sees it: its graph, and types and bandwidths between GPUs and cards.

Before NCCL's later steps, which depend on settings: whether peer-to-peer and GPUDirect RDMA are
used, and detours through other GPUs (PXN).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

from topo.document.nodes import plain
from topo.document.parse import parse
from topo.errors import Finding, UnknownNameError
from topo.topology.locality import matrix_devices

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from topo.catalogue.part import Cable
    from topo.description.description import Device
    from topo.topology.locality import Attachment
    from topo.topology.topology import Topology


NEWEST: Final = "current"
_NAMED: Final = re.compile(r"(intel|amd|zhaoxin|arm|power)-([0-9]+)-([0-9]+)")
_PER_LANE: Final = 80.0  # 100 Mbit/s a lane into GB/s, eight bits in a byte


@dataclass(frozen=True, slots=True)
class NcclNumbers:
    """What one release of NCCL takes links for, in GB/s."""

    release: str
    source: str
    lane: Table[str, float]
    lanes: int
    nvlink: Table[str, float]
    between: tuple[Table[str, str], ...]
    inside: float

    def pcie(self, cable: Cable) -> float:
        """Return what a PCIe link counts as."""
        key = str(cable.generation) if cable.generation else "unknown"
        each = self.lane.get(key, self.lane["unknown"])
        return (cable.lanes or self.lanes) * cable.count * each / _PER_LANE

    def links(self, cable: Cable) -> float:
        """Return what a bundle of NVLinks counts as."""
        return self.nvlink.get(cable.medium, self.nvlink["unknown"]) * cable.count

    def sockets(self, vendor: str, family: int, model: int) -> float:
        """Return what the way from one NUMA node to another counts as."""
        for row in self.between:
            fits = "family" not in row or (
                int(row["family"]) == family and model >= int(row["model"])
            )
            if row["vendor"] == vendor and fits:
                return float(row["rate"])
        return self.inside


@cache
def nccl_releases() -> tuple[str, ...]:
    """Return the releases that there are numbers of, the newest first."""
    return tuple(_read("nccl"))


@cache
def nccl_numbers(release: str = NEWEST) -> NcclNumbers:
    """Return the numbers of a release.

    Raises
    ------
    UnknownNameError
        If there are none.
    """
    table = _read("nccl")
    if release not in table:
        message = f"no numbers of NCCL's release `{release}`"
        help = f"there are {', '.join(table)}"
        raise UnknownNameError(Finding("unknown-name", message, help=help))
    own: dict[str, Any] = table[release]
    row = {**table.get(own.get("like", ""), {}), **own}
    return NcclNumbers(
        release=release,
        source=row["source"],
        lane={key: float(value) for key, value in row["pcie-lane"].items()},
        lanes=int(row["pcie-lanes"]),
        nvlink={key: float(value) for key, value in row["nvlink"].items()},
        between=tuple(row["between-cpus"]),
        inside=float(row["inside"]),
    )


def cpu_numbers(topology: Topology, device: Device) -> tuple[str, int, int]:
    """Return vendor, family and model of a CPU, ``("unknown", 0, 0)`` where nothing says it."""
    name: str | None = device.part.name
    table = _read("cpus")
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        found = _NAMED.fullmatch(name)
        if found:
            return found[1], int(found[2]), int(found[3])
        if name in table:
            vendor, family, model = table[name].split()
            return vendor, int(family), int(model)
        name = topology.description.likes.get(name)
    return ("arm" if device.part.facts.get("architecture") == "arm" else "unknown", 0, 0)


@cache
def _read(name: str) -> dict[str, Any]:
    file = files("topo.topology") / "data" / f"{name}.yaml"
    found = plain(parse(file.read_bytes(), name=f"{name}.yaml").root)
    assert isinstance(found, dict)
    return found


NodeKind = Literal["CPU", "PCI", "GPU", "NIC", "NET", "NVS"]
EdgeKind = Literal["LOC", "NVL", "C2C", "PCI", "SYS", "NET"]

# Better first; the place is NCCL's number.
TYPES: Final = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
_STEP: Final[Table[str, str]] = {"NET": "LOC", "PCI": "PIX"}
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


_HOSTS: Final = ("cpu", "root-complex")
_LEAVES: Final = ("gpu", "nic", "dpu")
# A bridge card has two levels of switches inside: what hangs below it is PXB to its own function.
_SWITCH: Final = "/switch"
_BELOW: Final = "/below"
_NVS: Final = "NVS"
_GIGA: Final = 1e9


def nccl_matrix(topology: Topology, *, release: str = NEWEST) -> dict[str, dict[str, Path | None]]:
    """Return NCCL's path between every two GPUs and network cards, `None` where there is none.

    Parameters
    ----------
    topology
        The machine.
    release
        Whose numbers to use, one of `nccl_releases`.

    Raises
    ------
    UnknownNameError
        If there are no numbers of that release.
    """
    graph = nccl_graph(topology, release=release)
    names = [device.name for device in matrix_devices(topology)]
    found = {name: paths_from(graph, name) if name in graph.kinds else {} for name in names}
    return {row: {column: found[row].get(column) for column in names} for row in names}


def nccl_graph(topology: Topology, *, release: str = NEWEST) -> Graph:
    """Return the graph that NCCL makes of a machine.

    Switches and NUMA nodes are nodes, root complexes and ports are not; all NVSwitches are one.

    Raises
    ------
    UnknownNameError
        If there are no numbers of that release.
    """
    maker = _Maker(topology, nccl_numbers(release))
    maker.tree()
    maker.sockets()
    maker.fabric()
    maker.networks()
    return maker.graph


class _Maker:
    def __init__(self, topology: Topology, numbers: NcclNumbers) -> None:
        self._topology = topology
        self._numbers = numbers
        self.graph = Graph()
        self._hosts: dict[str, str] = {}  # node to CPU

    def tree(self) -> None:
        """Add GPUs, cards and switches with the links above them."""
        for device in self._topology.of_kind("pcie-switch", *_LEAVES):
            found = self._topology.tree.attachment(device.name)
            if found is not None:
                self._hang(device.name, found)

    def _hang(self, name: str, found: Attachment) -> None:
        device = self._topology[name]
        kind = "PCI" if device.kind == "pcie-switch" else "GPU" if device.kind == "gpu" else "NIC"
        self.graph.node(name, kind)  # type: ignore[arg-type]  # one of the three
        parent = found.bridges[0] if found.bridges else found.root
        above = self._above(found)
        cable = self._cable(name, parent)
        bandwidth = self._numbers.pcie(cable) if cable else self._numbers.inside
        if device.part.flag("bridge"):
            upper, lower = f"{name}{_SWITCH}", f"{name}{_BELOW}"
            self.graph.node(upper, "PCI")
            self.graph.node(lower, "PCI")
            self.graph.join(name, upper, "PCI", bandwidth)
            self.graph.join(lower, upper, "PCI", bandwidth)
            name = upper
        self.graph.join(name, above, "PCI", bandwidth)

    def _above(self, found: Attachment) -> str:
        """Return the node above: a switch, the one inside a card, or the NUMA node."""
        if not found.bridges:
            return self._cpu(found)
        parent = found.bridges[0]
        inner = self._topology[parent].kind != "pcie-switch"
        name = f"{parent}{_BELOW}" if inner else parent
        self.graph.node(name, "PCI")
        return name

    def _cpu(self, found: Attachment) -> str:
        node = f"{found.socket}/{found.node}" if found.node else found.socket
        self.graph.node(node, "CPU")
        self._hosts[node] = found.socket
        return node

    def _cable(self, name: str, parent: str) -> Cable | None:
        for step in self._topology.steps[name]:
            if step.target == parent and step.link.cable.family == "pcie":
                return step.link.cable
        return None

    def sockets(self) -> None:
        """Join every two NUMA nodes of one host."""
        for device in self._topology.of_kind("cpu"):
            if device.name not in self._hosts.values():
                self.graph.node(device.name, "CPU")
                self._hosts[device.name] = device.name
        for one, other in combinations(self._hosts, 2):
            if self._same_host(self._hosts[one], self._hosts[other]):
                self.graph.way(one, other, "SYS", self._between(one))
                self.graph.way(other, one, "SYS", self._between(other))

    def _between(self, node: str) -> float:
        device = self._topology[self._hosts[node]]
        return self._numbers.sockets(*cpu_numbers(self._topology, device))

    def _same_host(self, one: str, other: str) -> bool:
        seen, front = {one}, [one]
        for name in front:
            for step in self._topology.steps[name]:
                near = step.target
                if self._topology[near].kind in _HOSTS and near not in seen:
                    seen.add(near)
                    front.append(near)
        return other in seen

    def fabric(self) -> None:
        """Add links between GPUs, to NVSwitches, and to a CPU's chip."""
        for link in self._topology.links:
            ends = (link.a.device, link.b.device)
            kinds = {self._topology[end].kind for end in ends}
            if link.cable.family == "nvlink-c2c":
                self._chip(ends, link.cable)
            elif "gpu" in kinds and kinds <= {"gpu", "nvswitch"}:
                one, other = (self._fabric_node(end) for end in ends)
                self.graph.join(one, other, "NVL", self._numbers.links(link.cable))

    def _fabric_node(self, name: str) -> str:
        switch = self._topology[name].kind == "nvswitch"
        node = _NVS if switch else name
        self.graph.node(node, "NVS" if switch else "GPU")
        return node

    def _chip(self, ends: tuple[str, str], cable: Cable) -> None:
        one, other = (
            self._hosting(end) if self._topology[end].kind in _HOSTS else end for end in ends
        )
        rate = (cable.rate.value or 0.0) * cable.count / _GIGA
        if one in self.graph.kinds and other in self.graph.kinds and rate:
            self.graph.join(one, other, "C2C", rate)

    def _hosting(self, cpu: str) -> str:
        return next((node for node, host in self._hosts.items() if host == cpu), cpu)

    def networks(self) -> None:
        """Add the network behind each card whose ports' rate is known."""
        for card in self._topology.of_kind("nic", "dpu"):
            ports = card.part.ports
            if card.name in self.graph.kinds and ports and ports.rate and ports.rate.value:
                net = f"{card.name}/net"
                self.graph.node(net, "NET")
                self.graph.join(card.name, net, "NET", ports.rate.value / _GIGA)
