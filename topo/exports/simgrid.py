"""A SimGrid platform: hosts and routers, links of each direction, routes found by Floyd."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from topo.exports.formats import Exported, not_held

if TYPE_CHECKING:
    from topo.topology.topology import Topology

_COMPUTE: Final = ("gpu", "storage", "nvme", "memory", "cpu", "cxl-memory")  # hosts to SimGrid
_FREE: Final = "1EBps"  # SimGrid has no unlimited link


def write_simgrid(topology: Topology) -> Exported:
    """Write devices as hosts and routers, and each link as one link each way."""
    lines = ["<?xml version='1.0'?>"]
    lines.append('<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">')
    lines += ['<platform version="4.1">', f'  <zone id={quoteattr(topology.name)} routing="Floyd">']
    for name, device in topology.devices.items():
        tag = 'host id={} speed="1Gf"' if device.kind in _COMPUTE else "router id={}"
        lines.append(f"    <{tag.format(quoteattr(name))}/>")
    for number, link in enumerate(topology.links):
        resource = link.forward
        if resource is None:  # a memory's link: its bus is the limit
            buses = (topology.resources.get(f"{end.device}/bus") for end in (link.a, link.b))
            resource = next(filter(None, buses), None)
        # Unknown and unlimited rates never bind.
        rate = resource.capacity.rate("theoretical") if resource else math.inf
        bandwidth = _FREE if math.isinf(rate) else f"{rate:.0f}Bps"
        lines.append(
            f'    <link id="l{number}" bandwidth="{bandwidth}" latency="0us" '
            'sharing_policy="SPLITDUPLEX"/>'
        )
    for number, link in enumerate(topology.links):
        a, b = link.a.device, link.b.device
        for source, target, direction in ((a, b, "UP"), (b, a, "DOWN")):
            ends = f"src={quoteattr(source)} dst={quoteattr(target)}"
            step = f'<link_ctn id="l{number}" direction="{direction}"/>'
            lines.append(f'    <route {ends} symmetrical="NO">{step}</route>')
    text = "\n".join([*lines, "  </zone>", "</platform>"]) + "\n"
    caps = "caps inside devices (chips, memory buses' shared directions, peer-to-peer)"
    return Exported(text, not_held("a SimGrid platform", caps))
