"""A SimGrid platform: hosts and routers, links of each direction, routes found by Floyd."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from topo.exports import Exported, not_held

if TYPE_CHECKING:
    from topo.topology.topology import Link, Topology


_HOSTS: Final = ("gpu", "storage", "nvme", "memory", "cpu", "cxl-memory")
_FREE: Final = "1EBps"  # SimGrid has no unlimited link


def write(topology: Topology) -> Exported:
    """Write devices as hosts and routers, and each link as one link each way."""
    lines = ["<?xml version='1.0'?>"]
    lines.append('<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">')
    lines += ['<platform version="4.1">', f'  <zone id={quoteattr(topology.name)} routing="Floyd">']
    for name, device in topology.devices.items():
        tag = 'host id={} speed="1Gf"' if device.kind in _HOSTS else "router id={}"
        lines.append(f"    <{tag.format(quoteattr(name))}/>")
    for at, link in enumerate(topology.links):
        lines.append(
            f'    <link id="l{at}" bandwidth="{_bandwidth(topology, link)}" latency="0us" '
            'sharing_policy="SPLITDUPLEX"/>'
        )
    for at, link in enumerate(topology.links):
        ends = f"src={quoteattr(link.a.device)} dst={quoteattr(link.b.device)}"
        lines.append(
            f'    <route {ends} symmetrical="NO"><link_ctn id="l{at}" direction="UP"/></route>'
        )
        ends = f"src={quoteattr(link.b.device)} dst={quoteattr(link.a.device)}"
        lines.append(
            f'    <route {ends} symmetrical="NO"><link_ctn id="l{at}" direction="DOWN"/></route>'
        )
    text = "\n".join([*lines, "  </zone>", "</platform>"]) + "\n"
    lost = "caps inside devices (chips, memory buses' shared directions, peer-to-peer)"
    return Exported(text, not_held("a SimGrid platform", lost))


def _bandwidth(topology: Topology, link: Link) -> str:
    """Return a link's bandwidth in bytes/s; unknown and unlimited ones never bind."""
    resource = link.forward
    if resource is None:  # a memory's link: its bus is the limit
        names = [f"{end}/bus" for end in (link.a.device, link.b.device)]
        resource = next((found for name in names if (found := topology.resources.get(name))), None)
    rate = resource.capacity.rate("theoretical") if resource else math.inf
    return _FREE if math.isinf(rate) else f"{rate:.0f}Bps"
