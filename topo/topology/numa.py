"""The NUMA nodes that a device is attached to, by the numbers of the operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.topology.topology import Topology


_SIDE = "numa"


def numa_nodes(topology: Topology, name: str) -> tuple[int, ...]:
    """Return the nodes: the one its link names, else all of its socket, none when not stated."""
    found = topology.tree.attachment(name)
    if found is None:
        return ()
    if found.node.startswith(_SIDE):
        return (int(found.node.removeprefix(_SIDE)),)
    return topology[found.socket].numa if found.socket in topology else ()
