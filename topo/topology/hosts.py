"""Hosts: what host links join. A network link leads to another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.graph import components

if TYPE_CHECKING:
    from topo.topology.topology import Topology


def host_numbers(topology: Topology) -> dict[str, int]:
    """Return the number of each device's host; devices that only network links join are apart.

    Examples
    --------
    >>> import topo
    >>> hosts = host_numbers(topo.load("gds-textbook"))
    >>> hosts["gpu0"] == hosts["slot1"], hosts["gpu0"] == hosts["storage"]
    (True, False)
    """
    hosts = components(
        topology.devices,
        lambda name: [step.target for step in topology.steps[name] if step.link.layer != "network"],
    )
    return {name: number for number, host in enumerate(hosts) for name in host}
