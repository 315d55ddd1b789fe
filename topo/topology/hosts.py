"""Hosts: what host links join. A network link leads to another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.graph import components

if TYPE_CHECKING:
    from topo.topology.topology import Layer, Topology


def host_numbers(
    topology: Topology, layers: tuple[Layer, ...] = ("host", "memory", "gpu")
) -> dict[str, int]:
    """Return the number of each device's host; devices that only network links join are apart.

    `layers` are the links that join: without ``gpu``, servers that share a fabric of their GPUs are
    apart as well.

    Examples
    --------
    >>> import topo
    >>> hosts = host_numbers(topo.load("gds-textbook"))
    >>> hosts["gpu0"] == hosts["slot1"], hosts["gpu0"] == hosts["storage"]
    (True, False)
    """
    joined: dict[str, list[str]] = {name: [] for name in topology.devices}
    for link in topology.links:
        if link.layer in layers:
            joined[link.a.device].append(link.b.device)
            joined[link.b.device].append(link.a.device)
    hosts = components(joined, joined.__getitem__)
    return {name: number for number, host in enumerate(hosts) for name in host}
