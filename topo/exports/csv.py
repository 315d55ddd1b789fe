"""A table of the links: what a spreadsheet takes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from topo.exports import Exported, not_held

if TYPE_CHECKING:
    from topo.topology.topology import Topology


_HEAD: Final = (
    *("from", "to", "link", "medium", "cables", "lanes", "bandwidth_GBps", "achievable_GBps"),
    *("measured_GBps", "source"),
)


def write(topology: Topology) -> Exported:
    """Write one row for each direction of each link; an unknown rate is empty."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_HEAD)
    for source, target, data in topology.graph().edges(data=True):
        link = next(step.link for step in topology.steps[source] if step.link.name == data["link"])
        row = [source, target, link.name, data["medium"], data["cables"], data["lanes"]]
        rates = [data["bandwidth"], data["achievable"], data["measured"]]
        shown = ["" if rate is None else f"{rate:.6g}" for rate in rates]
        table.writerow([*row, *shown, link.cable.rate.source])
    return Exported(out.getvalue(), not_held("a table of links", "what devices have inside"))
