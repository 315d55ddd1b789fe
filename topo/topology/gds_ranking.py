"""How the GDS driver ranks the cards and drives of each GPU: distance first, then the link.

References
----------
NVIDIA/gds-nvidia-fs, ``src/nvfs-pci.c``: the distance is counted in PCI bridges; without a common
root port it begins at 127, across NUMA nodes at 254.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.topology.locality import numa_nodes

if TYPE_CHECKING:
    from topo.description.description import Device
    from topo.topology.topology import Topology


_ROOT: Final = 127  # no common root port
_REMOTE: Final = 254  # and another NUMA node
_MOST: Final = 160  # of generation times lanes
_SHIFT: Final = 16


@dataclass(frozen=True, slots=True)
class GdsPeer:
    """One card or drive as a GPU sees it.

    Parameters
    ----------
    name
        The device.
    distance
        Bridges between, and more where the way leads over a root complex.
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
        """Whether the way leads through a root complex."""
        return self.distance >= _ROOT


def gds_ranking(topology: Topology) -> dict[str, tuple[GdsPeer, ...]]:
    """Return for each GPU its cards and drives, the best first, ties in the order of the file.

    Parameters
    ----------
    topology
        The machine; what hangs on no host has no rank.
    """
    peers = topology.of_kind("nic", "dpu", "nvme")
    return {
        gpu.name: tuple(
            sorted(
                (peer for other in peers if (peer := _peer(topology, gpu, other)) is not None),
                key=lambda peer: peer.rank,
            )
        )
        for gpu in topology.of_kind("gpu")
    }


def _peer(topology: Topology, gpu: Device, other: Device) -> GdsPeer | None:
    mine, its = _bridges(topology, gpu.name), _bridges(topology, other.name)
    if not mine or not its:
        return None
    common = next((bridge for bridge in mine if bridge in its), "")
    if common:
        distance = mine.index(common) + its.index(common) + 1
        if mine.index(common) and _redirects(topology, common):
            distance += len(mine) - 1 - mine.index(common)
    else:
        base = _ROOT if _same_node(topology, gpu.name, other.name) else _REMOTE
        distance = base + len(mine) + len(its) + 1
    bandwidth = min(_index(topology, other), _MOST)
    return GdsPeer(other.name, distance, bandwidth, distance << _SHIFT | (_MOST - bandwidth))


def _bridges(topology: Topology, name: str) -> list[str]:
    """Return the PCI bridges above a device, up to its root port.

    A switch has a bridge for each port: the downstream one that a device hangs on, and the
    upstream one.
    """
    found = topology.tree.attachment(name)
    if found is None:
        return []
    bridges: list[str] = []
    below = name
    chain = (name, *found.bridges) if topology[name].part.flag("bridge") else found.bridges
    for switch in chain:
        bridges += [f"{switch} down to {below}", switch]
        below = switch
    return [*bridges, f"{found.root} port to {below}"]


def _redirects(topology: Topology, bridge: str) -> bool:
    """Whether access control is on where two ways meet; what is not said counts as off."""
    return bool(bridge in topology and topology[bridge].part.flag("acs"))


def _same_node(topology: Topology, one: str, other: str) -> bool:
    mine, its = topology.tree.attachment(one), topology.tree.attachment(other)
    if mine is None or its is None or mine.socket != its.socket:
        return False
    return mine.node == its.node or not {*numa_nodes(topology, one)} ^ {
        *numa_nodes(topology, other)
    }


def _index(topology: Topology, device: Device) -> int:
    for step in topology.steps[device.name]:
        cable = step.link.cable
        if cable.family == "pcie" and cable.generation and cable.lanes:
            return cable.generation * cable.lanes
    return 0
