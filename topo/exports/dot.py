"""Graphviz: the picture's own DOT text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.exports import Exported
from topo.views.diagram.sheet import draw

if TYPE_CHECKING:
    from topo.topology.topology import Topology


def write(topology: Topology) -> Exported:
    """Write the machine as a Graphviz graph."""
    return Exported(draw(topology).dot)
