"""The public graph (`Topology.graph`) as NetworkX writes it, and its edges as a table."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any, Final

import networkx

from topo.exports.formats import Exported, not_held

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.topology.topology import Topology

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
