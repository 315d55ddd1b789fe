"""A topology as other programs see it: NCCL's paths, and the GPUDirect Storage driver's ranking.

Of NCCL what comes before the steps that depend on settings: whether peer-to-peer and GPUDirect RDMA
are used, and detours through other GPUs (PXN).

References
----------
NVIDIA NCCL, ``src/graph/topo.cc``: the graph; ``src/graph/paths.cc``: a search level by level from
each node; a path's type is the worst of its steps', its bandwidth the least. NVIDIA/gds-nvidia-fs,
``src/nvfs-pci.c``: distances in PCI bridges, from 127 on without a common root port, from 254 on
across NUMA nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Final, Literal

from topo.catalogue.kinds import CARDS
from topo.catalogue.part import Cable, Figure
from topo.description.description import Device
from topo.document.nodes import plain
from topo.document.parse import parse
from topo.errors import Finding, UnknownNameError
from topo.graph import components
from topo.limits import MOST_PAIRS, refuse_more
from topo.records import dataclass
from topo.topology.locality import matrix_devices, numa_nodes
from topo.topology.topology import Topology

# --- NCCL: the numbers of a release ---------------------------------------------------------------

NEWEST: Final = "current"
_NAMED: Final = re.compile(r"(intel|amd|zhaoxin|arm|power)-([0-9]+)-([0-9]+)")
_PER_LANE: Final = 80.0  # 100 Mbit/s a lane into GB/s, eight bits in a byte
_GIGA: Final = 1e9


@dataclass(frozen=True, slots=True)
class NcclNumbers:
    """What one release of NCCL takes links for, in GB/s."""

    release: str
    source: str
    lane: Mapping[str, float]
    lanes: int
    nvlink: Mapping[str, float]
    between: tuple[Mapping[str, str], ...]
    inside: float

    def pcie(self, cable: Cable) -> float:
        """Return what a PCIe link counts as."""
        key = str(cable.generation) if cable.generation else "unknown"
        rate = self.lane.get(key, self.lane["unknown"])
        return (cable.lanes or self.lanes) * cable.count * rate / _PER_LANE

    def links(self, cable: Cable) -> float:
        """Return what a bundle of NVLinks counts as."""
        return self.nvlink.get(cable.medium, self.nvlink["unknown"]) * cable.count

    def sockets(self, vendor: str, family: int, model: int) -> float:
        """Return what the link from one NUMA node to another counts as."""
        row = self._row(vendor, family, model)
        return float(row["rate"]) if row else self.inside

    def of_generation(self, vendor: str, family: int, model: int) -> float | None:
        """Return the same where it is a figure of the CPU's generation, not of all of a vendor."""
        row = self._row(vendor, family, model)
        return float(row["rate"]) if row and "model" in row else None

    def _row(self, vendor: str, family: int, model: int) -> Mapping[str, str] | None:
        for row in self.between:
            of_any_family = "family" not in row
            if row["vendor"] == vendor and (
                of_any_family or (int(row["family"]) == family and int(row["model"]) <= model)
            ):
                return row
        return None


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
        help = f"there are {', '.join(nccl_releases())}"
        raise UnknownNameError(Finding("unknown-name", message, help=help))
    changed: dict[str, Any] = table[release]
    row = {**table.get(changed.get("like", ""), {}), **changed}
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
    tried: set[str] = set()
    while name and name not in tried:
        tried.add(name)
        stated = _NAMED.fullmatch(name)
        if stated:
            return stated[1], int(stated[2]), int(stated[3])
        if name in table:
            vendor, family, model = table[name].split()
            return vendor, int(family), int(model)
        name = topology.description.likes.get(name)
    return ("arm" if device.part.facts.get("architecture") == "arm" else "unknown", 0, 0)


def farthest_peers(topology: Topology, gpu: str) -> str:
    """Return the farthest class at which NCCL by itself lets GPUs of a server copy over PCIe.

    Two GPUs of a server with AMD's processors at any (NCCL, ``src/graph/paths.cc``).
    """
    host = topology.host_of.get(gpu)
    inside = [topology[name] for name in (host.devices if host is not None else ())]
    vendors = {cpu_numbers(topology, device)[0] for device in inside if device.kind == "cpu"}
    few = sum(device.kind == "gpu" for device in inside) <= _FEW_GPUS
    return "SYS" if few and vendors == {"amd"} else "PXB"


def peer_flow(topology: Topology, hosts: Iterable[str]) -> Figure | None:
    """Return what one flow between root complexes of these CPUs is taken for where nobody knows.

    It is the least of what NCCL takes their generations for, in bytes/s; `None` where it has no
    figure of one of them.
    """
    numbers = nccl_numbers()
    rates = [numbers.of_generation(*cpu_numbers(topology, topology[host])) for host in hosts]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return None
    source = f"NCCL takes a flow between root complexes of this CPU for it: {numbers.source}"
    return Figure(min(known) * _GIGA, "guess", source)


def nccl_link(cable: Cable) -> Figure | None:
    """Return what NCCL takes a bundle of NVLinks for, `None` where it has no figure of them."""
    numbers = nccl_numbers()
    if cable.medium not in numbers.nvlink:
        return None
    rate = numbers.links(cable) * _GIGA
    source = (
        f"NCCL takes the links for it: {numbers.source}; busbw of 230 of 240 GB/s on HGX A100, 370 "
        "of 370.8 on DGX H100: https://github.com/NVIDIA/nccl-tests/issues/149 and 212"
    )
    return Figure(rate, "guess", source, range=(0.95 * rate, rate))


@cache
def _read(name: str) -> dict[str, Any]:
    file = files("topo.topology") / "data" / f"{name}.yaml"
    table = plain(parse(file.read_bytes(), name=f"{name}.yaml").root)
    assert isinstance(table, dict)
    return table


# --- NCCL: paths ----------------------------------------------------------------------------------

NodeKind = Literal["CPU", "PCI", "GPU", "NIC", "NET", "NVS"]
EdgeKind = Literal["LOC", "NVL", "C2C", "PCI", "SYS", "NET"]

# Better first; the place is NCCL's number.
_FEW_GPUS: Final = 2
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
    """Nodes by name with their kind, and the edges out of each, the widest first."""

    def __init__(self) -> None:
        self.kinds: dict[str, NodeKind] = {}
        self.edges: dict[str, list[Edge]] = {}

    def add_node(self, name: str, kind: NodeKind) -> None:
        """Add a node; again is the same."""
        self.kinds.setdefault(name, kind)
        self.edges.setdefault(name, [])

    def add_edge(self, source: str, target: str, kind: EdgeKind, bandwidth: float) -> None:
        """Add an edge in one direction; equal ones between two nodes add up."""
        edges = self.edges[source]
        for index, edge in enumerate(edges):
            if (edge.target, edge.kind) == (target, kind):
                edges[index] = Edge(target, kind, edge.bandwidth + bandwidth)
                break
        else:
            edges.append(Edge(target, kind, bandwidth))
        edges.sort(key=lambda edge: -edge.bandwidth)

    def join(self, a: str, b: str, kind: EdgeKind, bandwidth: float) -> None:
        """Join two nodes in both directions."""
        self.add_edge(a, b, kind, bandwidth)
        self.add_edge(b, a, kind, bandwidth)


def paths_from(graph: Graph, base: str) -> dict[str, Path]:
    """Return the best path from `base` to each node that it reaches.

    Level by level, as NCCL does it: a node whose path got better is gone on from once more.
    """
    paths = {base: Path("LOC", _INSIDE, 0)}
    front = [base]
    while front:
        improved: dict[str, None] = {}
        for node in front:
            for edge in graph.edges[node]:
                target = edge.target
                # A path goes on through a GPU only by NVLink to another one, and once.
                onward = (
                    node == base
                    or graph.kinds[node] != "GPU"
                    or (
                        edge.kind == "NVL"
                        and graph.kinds[target] == "GPU"
                        and paths[node].hops <= 1
                    )
                )
                if target == base or not onward:
                    continue
                path = _longer(graph, node, edge, paths[node])
                if target not in paths or _order(path) < _order(paths[target]):
                    paths[target] = path
                    improved[target] = None
        front = list(improved)
    return paths


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


def _order(path: Path) -> tuple[int, float, int]:
    return TYPES.index(path.type), -path.bandwidth, path.hops


# --- NCCL: the graph of a machine -----------------------------------------------------------------

# A bridge card has two levels of switches inside: what hangs below it is PXB to its own function.
_SWITCH: Final = "/switch"
_BELOW: Final = "/below"
_NVS: Final = "NVS"


def nccl_matrix(
    topology: Topology, *, devices: Sequence[Device] = (), release: str = NEWEST
) -> dict[str, dict[str, Path | None]]:
    """Return NCCL's path between every two GPUs and network cards, `None` where there is none.

    Parameters
    ----------
    topology
        The machine.
    devices
        The rows; `matrix_devices` where none are given.
    release
        Whose numbers to use, one of `nccl_releases`.

    Raises
    ------
    UnknownNameError
        If there are no numbers of that release.
    """
    graph = nccl_graph(topology, release=release)
    names = [device.name for device in devices or matrix_devices(topology)]
    paths = {name: paths_from(graph, name) if name in graph.kinds else {} for name in names}
    return {row: {column: paths[row].get(column) for column in names} for row in names}


def nccl_graph(topology: Topology, *, release: str = NEWEST) -> Graph:
    """Return the graph that NCCL makes of a machine.

    Switches and NUMA nodes are nodes, root complexes and ports are not; all NVSwitches are one, and
    so is a Broadcom switch with the virtual ones below it.

    Raises
    ------
    UnknownNameError
        If there are no numbers of that release.
    """
    graph, numbers = Graph(), nccl_numbers(release)
    sockets = _add_tree(graph, topology, numbers)
    _add_sockets(graph, topology, numbers, sockets)
    _add_fabric(graph, topology, numbers, sockets)
    # The network behind each card whose ports' rate is known.
    for card in topology.of_kind(*CARDS):
        ports = card.part.ports
        if card.name in graph.kinds and ports and ports.rate and ports.rate.value:
            network = f"{card.name}/net"
            graph.add_node(network, "NET")
            graph.join(card.name, network, "NET", ports.rate.value / _GIGA)
    return graph


def _add_tree(graph: Graph, topology: Topology, numbers: NcclNumbers) -> dict[str, str]:
    """Add GPUs, cards and switches with the links above them; return sockets by NUMA node."""
    sockets: dict[str, str] = {}
    kinds: dict[str, NodeKind] = {"pcie-switch": "PCI", "gpu": "GPU"}
    for device in topology.of_kind("pcie-switch", "gpu", *CARDS):
        attachment = topology.tree.attachment(device.name)
        if attachment is None or _switch_around(topology, device.name) != device.name:
            continue
        graph.add_node(device.name, kinds.get(device.kind, "NIC"))
        parent = (*attachment.bridges, attachment.root)[0]
        if attachment.bridges:
            in_card = topology[parent].kind != "pcie-switch"
            above = f"{parent}{_BELOW}" if in_card else _switch_around(topology, parent)
            graph.add_node(above, "PCI")
        else:
            socket = attachment.socket
            above = f"{socket}/{attachment.node}" if attachment.node else socket
            graph.add_node(above, "CPU")
            sockets[above] = socket
        bandwidth = numbers.inside
        for step in topology.steps[device.name]:
            is_pcie = step.link.cable.family == "pcie" and not is_interface(topology, device)
            if step.target == parent and is_pcie:
                bandwidth = numbers.pcie(step.link.cable)
                break
        top = device.name
        if device.part.flag("bridge"):
            top, lower = f"{device.name}{_SWITCH}", f"{device.name}{_BELOW}"
            graph.add_node(top, "PCI")
            graph.add_node(lower, "PCI")
            graph.join(device.name, top, "PCI", bandwidth)
            graph.join(lower, top, "PCI", bandwidth)
        graph.join(top, above, "PCI", bandwidth)
    return sockets


def is_interface(topology: Topology, device: Device) -> bool:
    """Whether a card is an interface without a PCI device, in a machine that names those.

    NCCL joins it with its NUMA node as if it were inside.
    """
    if device.pci or device.rdma or not device.label or device.part.name != "nic-unknown":
        return False
    attachment = topology.tree.attachment(device.name)
    named = any(each.pci for each in topology.devices.values())
    links = (step.link.cable for step in topology.steps[device.name] if step.link.layer == "host")
    link_told = any(cable.generation or cable.lanes for cable in links)
    return named and attachment is not None and not attachment.bridges and not link_told


def _switch_around(topology: Topology, name: str) -> str:
    """Return the switch that NCCL takes a virtual one for a part of; else the device itself.

    It merges two levels: what is virtual below a virtual switch stays one of its own.
    """
    if not topology[name].part.flag("virtual"):
        return name
    attachment = topology.tree.attachment(name)
    above = attachment.bridges[0] if attachment and attachment.bridges else ""
    if not above or topology[above].kind != "pcie-switch":
        return name
    return above if _switch_around(topology, above) == above else name


def _add_sockets(
    graph: Graph, topology: Topology, numbers: NcclNumbers, sockets: dict[str, str]
) -> None:
    """Join every two NUMA nodes of one host."""
    for device in topology.of_kind("cpu"):
        if device.name not in sockets.values():
            graph.add_node(device.name, "CPU")
            sockets[device.name] = device.name
    hosts = {name: topology.tree.linked_hosts(name) for name in dict.fromkeys(sockets.values())}
    rates = {name: numbers.sockets(*cpu_numbers(topology, topology[name])) for name in hosts}
    for (a, socket), (b, other_socket) in combinations(sockets.items(), 2):
        if other_socket in hosts[socket]:
            graph.add_edge(a, b, "SYS", rates[socket])
            graph.add_edge(b, a, "SYS", rates[other_socket])


def _add_fabric(
    graph: Graph, topology: Topology, numbers: NcclNumbers, sockets: dict[str, str]
) -> None:
    """Add links between GPUs, to NVSwitches, and to a CPU's chip."""
    # The first NUMA node of each CPU.
    nodes = {socket: node for node, socket in reversed(sockets.items())}
    switches = _fabrics(topology)
    for link in topology.links:
        ends = (topology[link.a.device], topology[link.b.device])
        kinds = {device.kind for device in ends}
        if link.cable.family == "nvlink-c2c":
            a, b = (nodes.get(end.name, end.name) for end in ends)
            rate = (link.cable.rate.value or 0.0) * link.cable.count / _GIGA
            if a in graph.kinds and b in graph.kinds and rate:
                graph.join(a, b, "C2C", rate)
        elif "gpu" in kinds and kinds <= {"gpu", "nvswitch"}:
            a, b = (switches.get(end.name, end.name) for end in ends)
            for node, end in ((a, ends[0]), (b, ends[1])):
                graph.add_node(node, "NVS" if end.kind == "nvswitch" else "GPU")
            graph.join(a, b, "NVL", numbers.links(link.cable))


def _fabrics(topology: Topology) -> dict[str, str]:
    """Return for each NVSwitch the node that it is part of: all that one GPU reaches are one."""
    switches = dict.fromkeys(device.name for device in topology.of_kind("nvswitch"))

    def beside(name: str) -> list[str]:
        near = [step.target for step in topology.steps[name] if step.link.layer == "gpu"]
        through = [step.target for end in near for step in topology.steps[end]]
        return [end for end in (*near, *through) if end in switches]

    fabrics = components(switches, beside)
    return {
        name: f"{_NVS} {number}" if number else _NVS
        for number, fabric in enumerate(fabrics)
        for name in fabric
    }


# --- GPUDirect Storage: the driver's distances ----------------------------------------------------

_WITHOUT_ROOT_PORT: Final = 127
_ACROSS_NODES: Final = 254
_WIDEST: Final = 160  # of generation times lanes
_DISTANCE_SHIFT: Final = 16


@dataclass(frozen=True, slots=True)
class GdsPeer:
    """One card or drive as a GPU sees it.

    Parameters
    ----------
    name
        The device.
    distance
        Bridges between, and more where the path leads over a root complex.
    bandwidth
        The driver's index: PCIe generation times lanes; 0 is unknown.
    rank
        What the driver sorts by, smaller first.
    """

    name: str
    distance: int
    bandwidth: int
    rank: int

    @property
    def crosses(self) -> bool:
        """Whether the path leads through a root complex."""
        return self.distance >= _WITHOUT_ROOT_PORT


def gds_ranking(topology: Topology) -> dict[str, tuple[GdsPeer, ...]]:
    """Return for each GPU its cards and drives, the best first, ties in the order of the file.

    Parameters
    ----------
    topology
        The machine; what hangs on no host, or in another server, has no rank.
    """
    tree = topology.tree
    peers: dict[int | None, list[Device]] = {}
    for device in topology.of_kind(*CARDS, "nvme"):
        peers.setdefault(tree.server_of(device.name), []).append(device)
    gpus = [gpu for gpu in topology.of_kind("gpu") if topology.is_representative(gpu.name)]
    refuse_more(
        sum(len(peers.get(tree.server_of(gpu.name), ())) for gpu in gpus),
        MOST_PAIRS,
        "pairs of a GPU and a card or drive",
        "name fewer: each GPU has all of its server ranked",
    )
    ranking: dict[str, tuple[GdsPeer, ...]] = {}
    for gpu in gpus:
        beside = peers.get(tree.server_of(gpu.name), ())
        ranked = (_ranked(topology, gpu, peer) for peer in beside)
        of_gpu = [peer for peer in ranked if peer is not None]
        ranking[gpu.name] = tuple(sorted(of_gpu, key=lambda peer: peer.rank))
    return ranking


def _ranked(topology: Topology, gpu: Device, peer: Device) -> GdsPeer | None:
    above_gpu, above_peer = _bridges(topology, gpu.name), _bridges(topology, peer.name)
    if not above_gpu or not above_peer:
        return None
    common = next((bridge for bridge in above_gpu if bridge in above_peer), "")
    if common:
        height = above_gpu.index(common)
        distance = height + above_peer.index(common) + 1
        # Access control where the two meet sends traffic to the root; not stated counts as off.
        if height and common in topology and topology[common].part.flag("acs"):
            distance += len(above_gpu) - 1 - height
    else:
        a, b = topology.tree.attachment(gpu.name), topology.tree.attachment(peer.name)
        same_node = (
            a
            and b
            and a.socket == b.socket
            and (
                a.node == b.node
                or {*numa_nodes(topology, gpu.name)} == {*numa_nodes(topology, peer.name)}
            )
        )
        base = _WITHOUT_ROOT_PORT if same_node else _ACROSS_NODES
        distance = base + len(above_gpu) + len(above_peer) + 1
    bandwidth = 0
    for step in topology.steps[peer.name]:
        cable = step.link.cable
        if cable.family == "pcie" and cable.generation and cable.lanes:
            bandwidth = min(cable.generation * cable.lanes, _WIDEST)
            break
    rank = distance << _DISTANCE_SHIFT | (_WIDEST - bandwidth)
    return GdsPeer(peer.name, distance, bandwidth, rank)


def _bridges(topology: Topology, name: str) -> list[str]:
    """Return the PCI bridges above a device, up to its root port.

    A switch has a bridge for each port: the downstream one that a device hangs on, and the
    upstream one.
    """
    attachment = topology.tree.attachment(name)
    if attachment is None:
        return []
    bridges: list[str] = []
    below = name
    inner = (name,) if topology[name].part.flag("bridge") else ()
    for switch in (*inner, *attachment.bridges):
        bridges += [f"{switch} down to {below}", switch]
        below = switch
    return [*bridges, f"{attachment.root} port to {below}"]
