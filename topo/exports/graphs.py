"""A topology as a graph for other programs: JSON, GraphML, CSV, DOT, Mermaid, SimGrid."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import networkx

from topo.exports.formats import Exported, not_held
from topo.topology.topology import Topology
from topo.views.diagram.sheet import draw

# --- the public graph (`Topology.graph`), and its edges as a table --------------------------------

_COLUMNS: Final = (
    *("from", "to", "link", "medium", "cables", "lanes", "bandwidth_GBps", "achievable_GBps"),
    *("measured_GBps", "source"),
)


def write_json(topology: Topology) -> Exported:
    """Write node-link JSON: two edges a duplex link, rates in GB/s.

    An unlimited rate is the text ``unlimited``, an unknown one null.
    """
    document = networkx.node_link_data(topology.graph(), edges="edges")
    for entries, first in (("nodes", ("id",)), ("edges", ("source", "target", "key"))):
        document[entries] = [
            {name: entry[name] for name in first}
            | {name: "unlimited" if value == math.inf else value for name, value in entry.items()}
            for entry in document[entries]
        ]
    return Exported(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_graphml(topology: Topology) -> Exported:
    """Write GraphML, which yEd, Gephi and NetworkX read; what is unknown has no data element."""
    public = topology.graph()
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(**public.graph)
    for name, data in public.nodes(data=True):
        graph.add_node(name, **_known(data))
    for number, (source, target, data) in enumerate(public.edges(data=True)):
        graph.add_edge(source, target, key=f"e{number}", **_known(data))
    return Exported("\n".join(networkx.generate_graphml(graph)) + "\n")


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None and value != ""}


def write_csv(topology: Topology) -> Exported:
    """Write one row for each direction of each link; an unknown rate is empty."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    sources = {link.name: link.cable.rate.source for link in reversed(topology.links)}
    for source, target, data in topology.graph().edges(data=True):
        link = data["link"]
        row = [source, target, link, data["medium"], data["cables"], data["lanes"]]
        rates = [data["bandwidth"], data["achievable"], data["measured"]]
        shown = ["" if rate is None else f"{rate:.6g}" for rate in rates]
        table.writerow([*row, *shown, sources[link]])
    return Exported(out.getvalue(), not_held("a table of links", "what devices have inside"))


# --- pictures -------------------------------------------------------------------------------------

_SHAPES: Final = {"storage": "[({})]", "nvme": "[({})]", "cpu": "[[{}]]", "memory": "({})"}


def write_dot(topology: Topology) -> Exported:
    """Write the DOT text of the picture that `topo draw` makes, with every shape at its place."""
    return Exported(draw(topology).dot)


def write_mermaid(topology: Topology) -> Exported:
    """Write a flowchart, which Markdown shows: a box a device, a line with its cable a link."""
    names = {name: f"d{number}" for number, name in enumerate(topology.devices)}
    lines = ["flowchart TB"]
    for name, device in topology.devices.items():
        shape = _SHAPES.get(device.kind, "[{}]")
        text = f'"{_plain(name)}<br/>{_plain(device.part.name)}"'
        lines.append(f"  {names[name]}{shape.format(text)}")
    for link in topology.links:
        a, b = names[link.a.device], names[link.b.device]
        lines.append(f'  {a} ---|"{_plain(link.cable.text)}"| {b}')
    return Exported("\n".join(lines) + "\n")


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,/:()+-]", " ", text)


# --- SimGrid --------------------------------------------------------------------------------------

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
