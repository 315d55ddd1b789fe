"""Mermaid, which Markdown pages show as a picture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.exports import Exported

if TYPE_CHECKING:
    from topo.topology.topology import Topology


_SHAPES: Final = {"storage": "[({})]", "nvme": "[({})]", "cpu": "[[{}]]", "memory": "({})"}


def write(topology: Topology) -> Exported:
    """Write a flowchart: a box for each device, a line for each link with its cable."""
    names = {name: f"d{at}" for at, name in enumerate(topology.devices)}
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
