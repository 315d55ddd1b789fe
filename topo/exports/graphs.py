"""A topology as a graph for other programs: JSON, GraphML, CSV, DOT, Mermaid, SimGrid."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import networkx

from topo.errors import ExchangeError, Finding
from topo.exports.formats import Exported, not_held
from topo.phrases import visible
from topo.topology.locality import forwards
from topo.topology.topology import Step, Topology
from topo.views.diagram.sheet import draw
from topo.views.mermaid import mermaid

# --- the public graph (`Topology.graph`), and its edges as a table --------------------------------

_COLUMNS: Final = (
    *("from", "to", "link", "medium", "cables", "lanes", "bandwidth_GBps", "achievable_GBps"),
    *("measured_GBps", "source"),
)
_LOST: Final = ("what devices have inside", "settings", "workloads")


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
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return Exported(visible(text, controls=False) + "\n", not_held("node-link JSON", *_LOST))


def write_graphml(topology: Topology) -> Exported:
    """Write GraphML, which yEd, Gephi and NetworkX read; what is unknown has no data element."""
    public = topology.graph()
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(**public.graph)
    for name, data in public.nodes(data=True):
        graph.add_node(name, **_known(data))
    for number, (source, target, data) in enumerate(public.edges(data=True)):
        graph.add_edge(source, target, key=f"e{number}", **_known(data))
    text = "\n".join(networkx.generate_graphml(graph)) + "\n"
    return Exported(text, not_held("GraphML", *_LOST))


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: visible(value) if isinstance(value, str) else value
        for name, value in data.items()
        if value is not None and value != ""
    }


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
        numbers = ["" if rate is None else f"{rate:.6g}" for rate in rates]
        table.writerow(_cell(value) for value in (*row, *numbers, sources[link]))
    return Exported(out.getvalue(), not_held("a table of links", *_LOST))


def _cell(value: object) -> object:
    """Return a cell that a spreadsheet shows and does not compute."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# --- pictures -------------------------------------------------------------------------------------


def write_dot(topology: Topology) -> Exported:
    """Write the DOT text of the picture that `topo draw` makes, with every shape at its place."""
    return Exported(draw(topology, answer=None).dot)


def write_mermaid(topology: Topology) -> Exported:
    """Write a flowchart, which Markdown shows: servers and sockets with their devices and links."""
    return Exported(mermaid(topology))


# --- SimGrid --------------------------------------------------------------------------------------

_ENDS: Final = ("gpu", "storage", "nvme", "memory", "cxl-memory")  # data never passes through
_COMPUTE: Final = (*_ENDS, "cpu")  # hosts to SimGrid
_FREE: Final = "1EBps"  # SimGrid has no unlimited link
_MOST_ENDS: Final = 400  # SimGrid wants a route for each pair


def write_simgrid(topology: Topology) -> Exported:
    """Write devices as hosts and routers, each resource as a link, and a route for each pair.

    A route takes the fewest links, then the widest, and passes no GPU, memory or storage. Parallel
    cables are one link of both.

    Raises
    ------
    ExchangeError
        If there are more pairs than a file can hold.
    """
    ends = {name: None for name, device in topology.devices.items() if device.kind in _COMPUTE}
    if len(ends) > _MOST_ENDS:
        message = f"a SimGrid platform holds a route for each pair, and {len(ends)} devices are "
        message += f"more than {_MOST_ENDS}"
        raise ExchangeError(Finding("not-held", message, help="export a file of one server"))
    rates = _rates(topology)
    cables = _cables(topology, rates)
    routes = [
        (source, target, _links_used(walk, cables, rates))
        for source in ends
        for target, walk in _walks_from(topology, source).items()
        if target in ends
    ]
    carrying = dict.fromkeys(name for *_, used in routes for name in used)
    lines = ["<?xml version='1.0'?>"]
    lines.append('<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">')
    lines += ['<platform version="4.1">', f'  <zone id={quoteattr(topology.name)} routing="Full">']
    for name, device in topology.devices.items():
        tag = 'host id={} speed="1Gf"' if device.kind in _COMPUTE else "router id={}"
        lines.append(f"    <{tag.format(quoteattr(name))}/>")
    lines.append(
        f'    <link id="free" bandwidth="{_FREE}" latency="0us" sharing_policy="FATPIPE"/>'
    )
    lines += [
        f'    <link id={quoteattr(name)} bandwidth="{rates[name]:.0f}Bps" latency="0us"/>'
        for name in carrying
    ]
    quoted = {name: quoteattr(name) for name in ("free", *ends, *carrying)}
    for source, target, used in routes:
        pair = f"src={quoted[source]} dst={quoted[target]}"
        steps = "".join(f"<link_ctn id={quoted[name]}/>" for name in used or ["free"])
        lines.append(f'    <route {pair} symmetrical="NO">{steps}</route>')
    text = "\n".join([*lines, "  </zone>", "</platform>"]) + "\n"
    losses = ("peer-to-peer caps", "equal paths beside one another (each pair takes one)")
    return Exported(text, not_held("a SimGrid platform", *losses))


def _walks_from(topology: Topology, source: str) -> dict[str, list[Step]]:
    """Return the walk from a device to each that it reaches: fewest links, then the widest."""
    widths = {source: math.inf}
    walks: dict[str, list[Step]] = {source: []}
    front = [source]
    while front:
        level: dict[str, tuple[float, list[Step]]] = {}
        for name in front:
            for step in topology.steps[name]:
                if step.target in walks or not _passes(topology, walks[name], step):
                    continue
                rate = step.resource.capacity.rate("theoretical") if step.resource else math.inf
                width = min(widths[name], rate)
                if step.target not in level or width > level[step.target][0]:
                    level[step.target] = (width, [*walks[name], step])
        for name, (width, walk) in level.items():
            widths[name], walks[name] = width, walk
        front = list(level)
    del walks[source]
    return walks


def _passes(topology: Topology, walk: list[Step], step: Step) -> bool:
    """Whether data that came by a walk may go on by a step."""
    if not walk:
        return True
    device = topology[step.source]
    if device.is_nic:  # from the wire to PCIe or back, or by a switch inside
        return walk[-1].link.layer != step.link.layer or forwards(device)
    return device.kind not in _ENDS


def _rates(topology: Topology) -> dict[str, float]:
    """Return the rate of each resource that may bind: unknown and unlimited ones never do."""
    rates = {
        name: resource.capacity.rate("theoretical") for name, resource in topology.resources.items()
    }
    return {name: rate for name, rate in rates.items() if math.isfinite(rate)}


def _cables(topology: Topology, rates: dict[str, float]) -> dict[tuple[str, str, str], str]:
    """Return the link from one device to another in a layer, and add the rates of joined ones."""
    beside: dict[tuple[str, str, str], dict[str, None]] = {}
    for steps in topology.steps.values():
        for step in steps:
            if step.resource:
                at = (step.source, step.target, step.link.layer)
                beside.setdefault(at, {})[step.resource.id] = None
    joined = {ends: " + ".join(names) for ends, names in beside.items()}
    for ends, names in beside.items():
        if len(names) > 1 and all(name in rates for name in names):
            rates[joined[ends]] = sum(rates[name] for name in names)
    return joined


def _links_used(
    walk: list[Step], cables: Mapping[tuple[str, str, str], str], rates: Mapping[str, float]
) -> list[str]:
    """Return the names of the links on a walk that may bind."""
    first, last = walk[0].source, walk[-1].target
    used = [f"{first}/read"]
    layer = None
    for step in walk:
        if layer is not None and layer != step.link.layer:
            if step.link.layer == "host":
                used.append(f"{step.source}/chip in")
            elif layer == "host":
                used.append(f"{step.source}/chip out")
        layer = step.link.layer
        used.append(cables.get((step.source, step.target, layer), ""))
    used += [f"{last}/write", f"{first}/bus", f"{last}/bus"]
    return [name for name in used if name in rates]
