"""GraphML, which yEd, Gephi and NetworkX read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from topo.exports import Exported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.topology.topology import Topology


_TYPES: Final = {bool: "boolean", int: "long", float: "double", str: "string"}


def write(topology: Topology) -> Exported:
    """Write the public graph (`Topology.graph`); what is unknown has no data element."""
    graph = topology.graph()
    nodes = [(name, _known(data)) for name, data in graph.nodes(data=True)]
    edges = [(a, b, _known(data)) for a, b, data in graph.edges(data=True)]
    keys = {("node", key): value for _, data in nodes for key, value in data.items()}
    keys |= {("edge", key): value for _, _, data in edges for key, value in data.items()}
    ids = {key: f"k{at}" for at, key in enumerate(keys)}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">')
    for (owner, name), value in keys.items():
        kind = _TYPES[type(value)]
        attributes = f'for="{owner}" attr.name={quoteattr(name)} attr.type="{kind}"'
        lines.append(f'  <key id="{ids[owner, name]}" {attributes}/>')
    lines.append(f'  <graph id={quoteattr(topology.name)} edgedefault="directed">')
    for name, data in nodes:
        lines.append(f"    <node id={quoteattr(name)}>")
        lines += _data("node", data, ids)
        lines.append("    </node>")
    for source, target, data in edges:
        lines.append(f"    <edge source={quoteattr(source)} target={quoteattr(target)}>")
        lines += _data("edge", data, ids)
        lines.append("    </edge>")
    return Exported("\n".join([*lines, "  </graph>", "</graphml>"]) + "\n")


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in data.items() if value is not None and value != ""}
    return {key: float(value) if key in _RATES else value for key, value in known.items()}


_RATES: Final = ("bandwidth", "achievable", "measured")


def _data(owner: str, data: Mapping[str, Any], ids: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for key, value in data.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, float) and math.isinf(value):
            text = "INF"
        yield f'      <data key="{ids[owner, key]}">{escape(text)}</data>'
