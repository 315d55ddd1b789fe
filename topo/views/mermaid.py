"""A machine as a Mermaid flowchart, which Markdown pages show: servers and sockets are subgraphs.

Reference: https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from topo.views.diagram.grouping import SERVERS, Node, Server
from topo.views.diagram.picture import theme_named
from topo.views.diagram.scene import Scene, scene_of, wire_lines

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.study.answers import WorkloadAnswer
    from topo.topology.topology import Topology
    from topo.views.diagram.geometry import Line

_SHAPES: Final = {"storage": "[({})]", "nvme": "[({})]", "cpu": "[[{}]]", "memory": "({})"}
_MANY, _LARGE = 60, 300  # devices from which those alike, and alike servers, are one


def mermaid(
    topology: Topology, answer: WorkloadAnswer | None = None, *, at: Basis = "theoretical"
) -> str:
    """Return a flowchart: a node a device with its figures, a line with cable and rate a link.

    Parameters
    ----------
    topology
        The machine; in a large one devices that are alike are one node.
    answer
        Whose bottlenecks are marked: their nodes have the class ``bottleneck``.
    at
        Which figure of each capacity is written.
    """
    paths = answer.paths if answer else ()
    limits = {path.name: tuple(resource.id for resource in path.bound) for path in paths}
    count = len(topology.devices)
    level = 0 if count <= _MANY else 1 if count <= _LARGE else SERVERS
    scene = scene_of(topology, {}, limits, level=level, alone=frozenset(), basis=at)
    return "\n".join(["flowchart TB", *_statements(scene)]) + "\n"


def _statements(scene: Scene) -> Iterator[str]:
    ids = {key: f"d{place}" for place, key in enumerate(scene.grouping.boxes)}
    zones = scene.zones
    inside = {*zones.fabric, *(key for row in zones.network for key in row)}
    for row in reversed(zones.network):
        yield from (_node(scene, ids, key) for key in row)
    for place, server in enumerate(zones.servers):
        # A frame says something where there are several, or where it has a name.
        framed = bool(server.name) or len(zones.servers) > 1
        fabric = [key for key in zones.fabric if zones.owners[key] == server.name]
        lines = [*_server(scene, ids, server, place), *(_node(scene, ids, key) for key in fabric)]
        inside -= set(fabric)
        yield from _subgraph(f"server{place}", server.title, lines) if framed else lines
    yield from (_node(scene, ids, key) for key in zones.fabric if key in inside)
    meshed = {wire.key: mesh.key for mesh in zones.meshes for wire in mesh.wires}
    full = []
    for place, wire in enumerate(scene.grouping.wires):
        label = scene.labels.get(wire.key) or wire_lines(scene.topology, wire, scene.basis)
        yield f"{ids[wire.a]} ---|{_text(label)}| {ids[wire.b]}"
        if {wire.key, meshed.get(wire.key)} & scene.alarms:
            full.append(str(place))
    theme = theme_named("light")
    bound = [ids[key] for key in ids if key in scene.alarms]
    if bound:
        ground = f"fill:{theme.alarm},stroke:{theme.ink},stroke-width:3px"
        yield f"classDef bottleneck {ground},color:{theme.paper}"
        yield f"class {','.join(bound)} bottleneck"
    if full:
        yield f"linkStyle {','.join(full)} stroke:{theme.alarm},stroke-width:5px"


def _server(scene: Scene, ids: dict[str, str], server: Server, place: int) -> Iterator[str]:
    """Yield what is in a server: a subgraph a CPU with what hangs on it."""
    for number, host in enumerate(server.hosts):
        boxes = list(dict.fromkeys(node.box for node, _ in host.walk()))
        lines = [_node(scene, ids, key) for key in boxes]
        title = _socket_title(scene, host)
        yield from _subgraph(f"socket{place}_{number}", title, lines) if len(boxes) > 1 else lines
    yield from (_node(scene, ids, key) for key in server.loose)


def _socket_title(scene: Scene, host: Node) -> str:
    box = scene.grouping.boxes[host.box]
    return f"socket of {box.name}" if box.kind == "cpu" else f"under {box.name}"


def _subgraph(name: str, title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f'subgraph {name}["{_plain(title)}"]'
    yield from (f"  {line}" for line in lines)
    yield "end"


def _node(scene: Scene, ids: dict[str, str], key: str) -> str:
    shape = _SHAPES.get(scene.grouping.kind(key), "[{}]")
    return f"{ids[key]}{shape.format(_text(scene.lines[key]))}"


def _text(lines: Iterable[Line]) -> str:
    return f'"{"<br/>".join(_plain(line.text) for line in lines)}"'


def _plain(text: str) -> str:
    """Return text without what means something to Mermaid or HTML, or opens a list."""
    plain = re.sub(r"[^\w ',./:()\[\]…·<>+-]", " ", text).replace("<", "#lt;").replace(">", "#gt;")
    return re.sub(r"^(\s*(?:\d+\.|[-+]))(?=\s)", "\\1\u200b", plain)
