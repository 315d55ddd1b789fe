"""How the GDS driver ranks the cards and drives of each GPU: distance first, then the link.

References
----------
NVIDIA/gds-nvidia-fs, ``src/nvfs-pci.c``: the distance is counted in PCI bridges; without a common
root port it begins at 127, across NUMA nodes at 254.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS
from topo.records import dataclass
from topo.topology.locality import numa_nodes

if TYPE_CHECKING:
    from topo.description.description import Device
    from topo.topology.topology import Topology

_WITHOUT_ROOT_PORT: Final = 127  # where the distance begins without a common root port
_ACROSS_NODES: Final = 254  # and across NUMA nodes
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
        The machine; what hangs on no host has no rank.
    """
    peers = topology.of_kind(*CARDS, "nvme")
    ranking: dict[str, tuple[GdsPeer, ...]] = {}
    for gpu in topology.of_kind("gpu"):
        ranked = (_ranked(topology, gpu, peer) for peer in peers)
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
