"""JSON in node-link form, which NetworkX, D3 and others read."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from topo.exports import Exported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.topology.topology import Topology


def write(topology: Topology) -> Exported:
    """Write the public graph (`Topology.graph`): two edges a duplex link, rates in GB/s.

    An unlimited rate is the text ``unlimited``, an unknown one null.
    """
    graph = topology.graph()
    document = {
        "directed": True,
        "multigraph": True,
        "graph": {"name": topology.name},
        "nodes": [{"id": name, **_finite(data)} for name, data in graph.nodes(data=True)],
        "edges": [
            {"source": source, "target": target, "key": key, **_finite(data)}
            for source, target, key, data in graph.edges(keys=True, data=True)
        ],
    }
    return Exported(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _finite(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: "unlimited" if isinstance(value, float) and math.isinf(value) else value
        for key, value in data.items()
    }
