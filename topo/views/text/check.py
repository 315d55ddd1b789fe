"""The line that says a file is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.topology.topology import Topology


def check_line(topology: Topology) -> str:
    """Return one line about a file without mistakes, whose expectations all hold."""
    count = len(topology.description.expectations)
    held = {0: "nothing expected", 1: "1 expectation holds"}.get(
        count, f"{count} expectations hold"
    )
    return f"{topology.name}: {held}\n"
