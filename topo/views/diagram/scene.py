"""One machine ready to be drawn: what is written where, which routes run over it, its layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from topo.units import format_rate
from topo.views.diagram.columns import GAP
from topo.views.diagram.crossings import untangled
from topo.views.diagram.ends import ends_of
from topo.views.diagram.geometry import ASIDE, BUFFER, BUFFER_GAP, EDGE, LANE, PORT
from topo.views.diagram.group import group
from topo.views.diagram.hops import Buffer, buffers, hops, touched
from topo.views.diagram.lanes import lanes_of, ports_of, uses_of
from topo.views.diagram.metrics import Line, height
from topo.views.diagram.place import finish
from topo.views.diagram.plan import Plan
from topo.views.diagram.words import box_lines, mesh_lines, socket_title, wire_lines
from topo.views.diagram.zones import sort_into_zones

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from topo.description.description import Basis
    from topo.routes.route import Route
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology
    from topo.views.diagram.ends import Ends
    from topo.views.diagram.geometry import Layout, Rect
    from topo.views.diagram.group import Grouping
    from topo.views.diagram.hops import Hop
    from topo.views.diagram.lanes import Order
    from topo.views.diagram.rows import Row
    from topo.views.diagram.zones import Zones


BESIDE, BESIDE_ROUTE = 10.0, 18.0  # what a label takes besides its text
_MARGIN = (7.0, 5.0)
_STUBS = 24.0  # room beside a bar's text for the hops that come in by a side
_ARROW = 12.0  # more room between rows where arrows run
_BRANCHES = 4  # branches of one route that are drawn with arrows; more are only coloured


@dataclass(frozen=True, slots=True)
class Overlay:
    """One route to draw: its label, which look it has, what it runs through."""

    label: str
    look: int
    route: Route
    hops: tuple[Hop, ...]
    devices: frozenset[str]
    links: frozenset[int]


@dataclass
class Scene:
    """One machine with its routes; `layout` is set when its rows are known.

    `dimmed` says that something runs over it, so that the rest steps back; `order` is how what is
    side by side (buffers, lanes, hops along one wire) is swapped so that no lines cross.
    """

    topology: Topology
    basis: Basis
    grouping: Grouping
    zones: Zones
    ends: Ends
    overlays: tuple[Overlay, ...]
    buffers: Mapping[str, tuple[Buffer, ...]]
    lines: dict[str, tuple[Line, ...]]
    labels: dict[Hashable, tuple[Line, ...]]
    alarms: frozenset[Hashable]
    lanes: dict[str, tuple[int, int]]
    plan: Plan = field(init=False)
    layout: Layout = field(init=False)

    @cached_property
    def walked(self) -> frozenset[Hashable]:
        """The wires that a route runs along."""
        links = frozenset[int]().union(*(overlay.links for overlay in self.overlays))
        return frozenset(
            wire.key
            for wire in self.grouping.wires
            if any(id(link) in links for link in wire.links)
        )

    def inner(self, box: str) -> Rect:
        """Return a box's rectangle without the border that marks a bottleneck."""
        rect = self.layout.boxes[box]
        return rect.within(EDGE) if box in self.alarms else rect

    @cached_property
    def order(self) -> Order:
        """How what is side by side is swapped, once the layout is known."""
        return untangled(self)

    @property
    def dimmed(self) -> bool:
        """Whether what no route touches steps back."""
        return bool(self.overlays)


def scene_of(
    topology: Topology,
    routes: Mapping[str, tuple[int, Route]],
    limits: Mapping[str, tuple[str, ...]],
    *,
    level: int,
    alone: frozenset[str],
    basis: Basis,
) -> Scene:
    """Return the scene of a machine with these routes, ``label -> (look, route)``."""
    grouping = group(topology, level, alone)
    zones = sort_into_zones(grouping)
    ends = ends_of(grouping, zones)
    overlays = tuple(_overlay(topology, grouping, label, *said) for label, said in routes.items())
    binding = _binding(topology, overlays, limits)
    lines = {key: box_lines(topology, box, basis) for key, box in grouping.boxes.items()}
    labels: dict[Hashable, tuple[Line, ...]] = {
        wire.key: wire_lines(topology, wire, basis)
        for wire in grouping.wires
        if wire.key in ends.of
    }
    for mesh in zones.meshes:
        lines[mesh.key] = mesh_lines(topology, mesh.wires, basis)
    _say_once(ends, labels)
    if overlays:
        _quieten(grouping, overlays, lines, labels)
    alarms = _alarms(grouping, zones, binding, lines, labels, basis)
    scene = Scene(
        topology=topology,
        basis=basis,
        grouping=grouping,
        zones=zones,
        ends=ends,
        overlays=overlays,
        buffers=_buffers(grouping, overlays),
        lines=lines,
        labels=labels,
        alarms=alarms,
        lanes={},
    )
    scene.lanes = lanes_of(scene)
    sizes = {key: _size(scene, key) for key in lines}
    extents = {key: _extent(scene, key, text) for key, text in labels.items()}
    titles = {
        host.box: socket_title(grouping.boxes[host.box])
        for server in zones.servers
        for host in server.hosts
    }
    scene.plan = Plan(zones, ends, sizes, extents, titles)
    return scene


def lay_out(scenes: tuple[Scene, ...]) -> None:
    """Give every scene its layout, rows of the same machine being equally high in all."""
    heights: dict[Row, float] = {}
    gaps: dict[Row, float] = {}
    for scene in scenes:
        for row, high in scene.plan.heights.items():
            heights[row] = max(heights.get(row, 0.0), high)
        for row, high in scene.plan.gaps.items():
            gaps[row] = max(gaps.get(row, 0.0), high + (_ARROW if scene.dimmed else 0.0))
    for scene in scenes:
        scene.layout = finish(scene.plan, heights, gaps, frozenset(scene.lanes))


# --- what is in a scene ---------------------------------------------------------------------------


def _overlay(
    topology: Topology, grouping: Grouping, label: str, look: int, route: Route
) -> Overlay:
    """Return a route to draw; hops of several branches that look the same are one."""
    devices, links = touched(route)
    found: dict[object, Hop] = {}
    for subflow in route.subflows[:_BRANCHES]:
        for hop in hops(topology, subflow):
            ends = [hop.source, *(step.target for step in hop.steps), hop.target_buffer]
            key = (hop.label, *(grouping.box_of.get(end, end) for end in ends))
            found.setdefault(key, hop)
    return Overlay(label, look, route, tuple(found.values()), devices, links)


def _say_once(ends: Ends, labels: dict[Hashable, tuple[Line, ...]]) -> None:
    """Leave a wire that is drawn aside without its label where another says the same."""
    said = {lines for wire, lines in labels.items() if not ends.of[wire].aside}
    for wire, lines in list(labels.items()):
        if ends.of[wire].aside and lines in said:
            del labels[wire]


def _quieten(
    grouping: Grouping,
    overlays: tuple[Overlay, ...],
    lines: dict[str, tuple[Line, ...]],
    labels: dict[Hashable, tuple[Line, ...]],
) -> None:
    """Leave what no route touches with its name and part alone, and a wire with its medium."""
    devices = frozenset[str]().union(*(overlay.devices for overlay in overlays))
    links = frozenset[int]().union(*(overlay.links for overlay in overlays))
    for key, box in grouping.boxes.items():
        if not any(device.name in devices for device in box.devices):
            name = Line(box.name, lines[key][0].size, bold=True)
            lines[key] = (name, *(line for line in lines[key][1:] if line.tone == "ink"))
    for wire in grouping.wires:
        if wire.key in labels and not any(id(link) in links for link in wire.links):
            labels[wire.key] = labels[wire.key][:1]


def _buffers(grouping: Grouping, overlays: tuple[Overlay, ...]) -> Mapping[str, tuple[Buffer, ...]]:
    found: dict[str, list[Buffer]] = {}
    for overlay in overlays:
        for subflow in overlay.route.subflows[:_BRANCHES]:
            for buffer in buffers(subflow):
                own = found.setdefault(grouping.box_of[buffer.memory], [])
                if all(other.name != buffer.name for other in own):
                    own.append(buffer)
    return {key: tuple(own) for key, own in found.items()}


def _binding(
    topology: Topology, overlays: tuple[Overlay, ...], limits: Mapping[str, tuple[str, ...]]
) -> dict[str, Resource]:
    """Return the resources that bind, by id: of the routes shown, or of all without routes."""
    known = dict(topology.resources)
    for overlay in overlays:
        known |= {resource.id: resource for resource in overlay.route.extra}
    labels = [overlay.label for overlay in overlays] or list(limits)
    return {
        name: known[name] for label in labels for name in limits.get(label, ()) if name in known
    }


def _alarms(
    grouping: Grouping,
    zones: Zones,
    binding: Mapping[str, Resource],
    lines: dict[str, tuple[Line, ...]],
    labels: dict[Hashable, tuple[Line, ...]],
    basis: Basis,
) -> frozenset[Hashable]:
    """Write BOTTLENECK into the boxes and beside the wires that have what binds."""
    left = dict(binding)
    alarms: set[Hashable] = set()
    for wire in grouping.wires:
        ways = [way for link in wire.links for way in (link.forward, link.backward) if way]
        own = [left.pop(way.id) for way in ways if way.id in left]
        if own and wire.key in labels:
            labels[wire.key] = (*_alarm_lines(own), *labels[wire.key])
            alarms.add(wire.key)
        elif own:
            mesh = next(mesh for mesh in zones.meshes if wire in mesh.wires)
            lines[mesh.key] = (*lines[mesh.key], *_alarm_lines(own, basis))
            alarms.add(mesh.key)
    by_box: dict[str, list[Resource]] = {}
    for resource in left.values():
        if resource.device in grouping.box_of:
            by_box.setdefault(grouping.box_of[resource.device], []).append(resource)
    for key, found in by_box.items():
        lines[key] = (*lines[key], *_alarm_lines(found, basis))
        alarms.add(key)
    return frozenset(alarms)


def _alarm_lines(found: list[Resource], basis: Basis | None = None) -> tuple[Line, ...]:
    """Return what cries out, with the rate at `basis` where it is not already written there."""
    names = tuple(dict.fromkeys(resource.name for resource in found))
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    value = found[0].capacity.at(basis).value if basis else None
    rate = f" {format_rate(value)}" if value is not None else ""
    return (
        Line("BOTTLENECK", 10.0, bold=True, tone="alarm"),
        Line(f"{names[0]}{more}{rate}", 10.0, bold=True, tone="alarm"),
    )


def _size(scene: Scene, key: str) -> tuple[float, float]:
    """Return a box's size: its text, its buffers, its lanes, the border of a bottleneck."""
    lines, walked = scene.lines[key], uses_of(scene).keys()
    wide = max(line.width for line in lines) + 2 * _MARGIN[0]
    high = height(lines) + 2 * _MARGIN[1]
    count = len(scene.buffers.get(key, ()))
    if count:
        wide = max(wide, count * BUFFER[0] + (count - 1) * BUFFER_GAP + 2 * _MARGIN[0])
        wide = max(wide, 2 * _right_of_ports(scene, key) - GAP)
        high += BUFFER[1] + _MARGIN[1]
    wide += _STUBS * sum(bool(walked & {*scene.ends.at(key, side)}) for side in ("left", "right"))
    above, below = scene.lanes.get(key, (0, 0))
    edge = 2 * EDGE if key in scene.alarms else 0.0
    return wide + edge, high + LANE * (above + below) + edge


def _right_of_ports(scene: Scene, key: str) -> float:
    """Return how far right of a memory's middle the label of its wire reaches.

    Between two buffers there is room for it; beside a single one it stands after the last hop.
    """
    if len(scene.buffers[key]) > 1:
        return 0.0
    ports = len(ports_of(scene).get((key, scene.buffers[key][0].name), ()))
    labels = [scene.labels[wire] for wire in scene.ends.at(key, "bottom") if wire in scene.labels]
    wide = max((line.width for lines in labels for line in lines), default=0.0)
    return PORT * (ports - 1) / 2 + BESIDE_ROUTE + wide


def _extent(scene: Scene, wire: Hashable, lines: tuple[Line, ...]) -> tuple[float, float]:
    """Return the size of a wire's label, with its distance from the wire."""
    wide = max(line.width for line in lines)
    if wire not in scene.walked:
        return wide + (BESIDE_ROUTE if wire in scene.alarms else BESIDE), height(lines)
    return wide + BESIDE_ROUTE + max(uses_of(scene)[wire] - 1, 0) * ASIDE / 2, height(lines)
