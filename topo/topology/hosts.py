"""Hosts: what host links join. A network link leads to another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    root = {name: name for name in topology.devices}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = name = root[root[name]]
        return name

    for link in topology.links:
        if link.layer in layers:
            root[find(link.b.device)] = find(link.a.device)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(find(name), len(numbers)) for name in topology.devices}
