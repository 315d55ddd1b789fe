"""Pictures that other programs draw: Graphviz and Mermaid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.exports.formats import Exported
from topo.views.diagram.sheet import draw

if TYPE_CHECKING:
    from topo.topology.topology import Topology

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
