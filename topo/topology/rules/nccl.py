"""A topology as NCCL sees it: its graph, and types and bandwidths between GPUs and cards.

Before NCCL's later steps, which depend on settings: whether peer-to-peer and GPUDirect RDMA are
used, and detours through other GPUs (PXN).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from topo.topology.locality import matrix_devices
from topo.topology.rules.constants import NEWEST, cpu_numbers, nccl_numbers
from topo.topology.rules.paths import Graph, paths_from

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.topology.rules.constants import NcclNumbers
    from topo.topology.rules.paths import Path
    from topo.topology.topology import Topology
    from topo.topology.tree import Attachment


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
        Whose numbers to use, one of `topo.topology.rules.constants.nccl_releases`.

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
