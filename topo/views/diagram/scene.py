"""One machine ready to be drawn: what is written where, which routes run over it, its layout."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property

from topo.catalogue.kinds import CARDS, HOSTS, MEMORIES, STORAGE
from topo.catalogue.part import Figure
from topo.description.description import Basis, Device
from topo.phrases import and_more
from topo.records import dataclass
from topo.routes.route import Route
from topo.topology.resources import Resource
from topo.topology.topology import Topology
from topo.units import format_bit_rate, format_rate, format_size
from topo.views.diagram.geometry import Line, Rect, balanced, clipped, height, widest
from topo.views.diagram.grouping import (
    Box,
    Grouping,
    Mesh,
    Wire,
    WireKey,
    Wiring,
    Zones,
    group,
    sort_into_zones,
    wiring_of,
)
from topo.views.diagram.hops import DrawnHop, DrawnRoute, drawn_hops, drawn_route
from topo.views.diagram.layout import GAP, Layout, Plan, Row
from topo.views.diagram.outage import Outage

BUFFER = (82.0, 32.0)  # a RAM buffer's size
DATA = "data in RAM"  # stands beside a buffer that it is copied to or from
BUFFER_GAP = 44.0  # between two buffers: an arrow with its number
ASIDE = 20.0  # between two hops along one wire
LANE = 16.0  # a route's way inside a bar
_LANE = 14.0  # what a wire takes from side to side along which a hop runs
PORT = 28.0  # between two hops that end at one buffer
EDGE = 5.0  # the border of a box that binds, all inside the box's rectangle
_BESIDE, _BESIDE_ROUTE = 10.0, 18.0  # what a label takes besides its text
_MARGIN = (7.0, 5.0)
_STUBS = 24.0  # room beside a bar's text for the hops that come in by a side
_BESIDE_TEXT = 16.0  # on both sides of a text, between hops
_CROSS = 12.0  # room for the cross of what failed, beside a name
_ARROW = 12.0  # more room between rows where arrows run

_NAME = 12.0  # the size of a box's name
_TITLE_POINTS = 104.0  # as wide as a title in a box gets before it is broken
_MAKERS = ("NVIDIA ", "AMD ", "Intel ", "Broadcom ", "Mellanox ")
_FAMILIES = {
    "pcie": "PCIe",
    "infiniband": "IB",
    "ethernet": "Ethernet",
    "nvlink": "NVLink",
    "nvlink-c2c": "NVLink-C2C",
    "upi": "UPI",
    "qpi": "QPI",
    "xgmi": "xGMI",
    "gaudi-roce": "RoCE",
    "memory-bus": "memory bus",
    "cxl": "CXL",
}
# What is said of a device: figures of its part, and sides of it that have a rate.
_COUNTS = {"channels": MEMORIES, "cores": HOSTS, "chips": ("nvswitch", "pcie-switch")}
_RATES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(CARDS, ("chip in",)),
    **dict.fromkeys(MEMORIES, ("bus",)),
    **dict.fromkeys(STORAGE, ("read", "write")),
}
_OUT_OF_ORDER = {"failed": "FAILED", "stopped": "NO WAY LEFT"}
_UNLIMITED, _UNKNOWN = "not modelled", "rate unknown"


@dataclass(frozen=True)
class Scene:
    """One machine with its routes.

    `lines` is what is written in each box, `labels` beside each wire; `buffers` are those of each
    memory, with which traversals of RAM each is (`DATA` is none); `alarms` are the boxes and wires
    that bind. `layout` is empty until `lay_out`. `outage` is what failed.
    """

    topology: Topology
    basis: Basis
    grouping: Grouping
    zones: Zones
    wiring: Wiring
    routes: tuple[DrawnRoute, ...]
    hops: tuple[DrawnHop, ...]
    buffers: Mapping[str, Mapping[str, tuple[int, ...]]]
    lines: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    labels: Mapping[WireKey, tuple[Line, ...]] = field(default_factory=dict)
    alarms: frozenset[WireKey | str] = frozenset()
    layout: Layout = field(default_factory=Layout)
    outage: Outage = field(default_factory=Outage)

    @property
    def dimmed(self) -> bool:
        """Whether something runs over the machine, so that what no route touches steps back."""
        return bool(self.routes)

    @cached_property
    def devices(self) -> frozenset[str]:
        """The devices that a route's data is in or passes."""
        return frozenset[str]().union(*(route.devices for route in self.routes))

    @cached_property
    def walked(self) -> frozenset[WireKey]:
        """The wires that a route runs along."""
        walked = frozenset[int]().union(*(route.links for route in self.routes))
        wires = self.grouping.wires
        return frozenset(wire.key for wire in wires if walked & set(map(id, wire.links)))

    @cached_property
    def uses(self) -> Counter[WireKey]:
        """How many lines of hops run along each wire: hops with one number are one line."""
        lines = {
            (part.wire, hop.lane(part.source)): None for hop in self.hops for part in hop.stretches
        }
        return Counter(wire for wire, _ in lines)

    @cached_property
    def lanes(self) -> Mapping[str, tuple[int, int]]:
        """How many lanes each bar has along its upper and its lower side."""
        lines = {
            (passage.bar, passage.strip, hop.lane()): None
            for hop in self.hops
            for passage in hop.passages
        }
        counts = Counter((bar, strip) for bar, strip, _ in lines)
        return {bar: (counts[bar, "top"], counts[bar, "bottom"]) for bar, _ in counts}

    @cached_property
    def passed(self) -> Counter[str]:
        """How many lines of hops run down or up through the middle of each bar."""
        lines = {
            (passage.bar, hop.lane()): None
            for hop in self.hops
            for passage in hop.passages
            if {self.wiring.ends[wire].side(passage.bar) for wire in (passage.entry, passage.leave)}
            == {"top", "bottom"}
        }
        return Counter(bar for bar, _ in lines)

    @cached_property
    def ports(self) -> Mapping[tuple[str, str], tuple[tuple[int, str, bool], ...]]:
        """What ends at the lower side of each buffer, by memory and buffer."""
        ports: dict[tuple[str, str], dict[tuple[int, str, bool], None]] = {}
        for drawn in self.hops:
            hop = drawn.hop
            for device, buffer, into in (
                (hop.source, hop.source_buffer, False),
                (hop.target, hop.target_buffer, True),
            ):
                if hop.steps and buffer:
                    box = self.grouping.box_of[device]
                    ports.setdefault((box, buffer), {})[drawn.port(into=into)] = None
        return {key: tuple(joined) for key, joined in ports.items()}

    def inner(self, box: str) -> Rect:
        """Return a box's rectangle without the border that marks a bottleneck."""
        rect = self.layout.boxes[box]
        return rect.within(EDGE) if box in self.alarms else rect

    def mark(self, box: str) -> str:
        """Return whether a box ``failed``, or ``stopped`` for what did."""
        boxes = self.grouping.boxes
        return self.outage.mark(boxes[box].devices[0].name) if box in boxes else ""

    def is_broken(self, wire: Wire) -> bool:
        """Whether a wire failed by itself, and not for the device at one of its ends."""
        return wire.failed and "failed" not in (self.mark(wire.a), self.mark(wire.b))

    def wire(self, key: WireKey) -> Wire:
        """Return a wire by its key; the stubs of a mesh are all like its first wire."""
        if isinstance(key, tuple):
            return next(mesh.wires[0] for mesh in self.zones.meshes if mesh.key == key[0])
        return self.grouping.wires[key]


# --- what is in a scene ---------------------------------------------------------------------------


def scene_of(
    topology: Topology,
    routes: Mapping[str, tuple[int, Route]],
    limits: Mapping[str, tuple[str, ...]],
    *,
    level: int,
    alone: frozenset[str],
    basis: Basis,
    outage: Outage = Outage(),  # noqa: B008  (it is frozen)
) -> Scene:
    """Return the scene of a machine with these routes, ``label -> (look, route)``."""
    grouping = group(topology, level, alone, outage)
    zones = sort_into_zones(grouping)
    wiring = wiring_of(grouping, zones)
    drawn = tuple(
        drawn_route(topology, grouping, label, look, route)
        for label, (look, route) in routes.items()
    )
    buffers: dict[str, dict[str, tuple[int, ...]]] = {}
    for route in drawn:
        for memory, buffer, numbers in route.buffers:
            buffers.setdefault(memory, {}).setdefault(buffer, numbers)
    hops = drawn_hops(grouping, zones, wiring, drawn)
    for drawn_hop in hops:
        hop = drawn_hop.hop
        if not drawn_hop.stretches and bool(hop.source_buffer) != bool(hop.target_buffer):
            buffers.setdefault(grouping.box_of[hop.source], {}).setdefault(DATA, ())
    scene = Scene(topology, basis, grouping, zones, wiring, drawn, hops, buffers, outage=outage)
    # What is written in each box; what no route touches has its name and part alone.
    lines: dict[str, tuple[Line, ...]] = {}
    for key, box in grouping.boxes.items():
        lines[key] = _box_lines(topology, box, basis)
        if scene.dimmed and not any(device.name in scene.devices for device in box.devices):
            part = (line for line in lines[key][1:] if line.tone == "ink")
            lines[key] = (Line(box.name, _NAME, bold=True), *part)
        if mark := scene.mark(key):
            lines[key] = (*lines[key], Line(_OUT_OF_ORDER[mark], bold=True, tone="out"))
    for mesh in zones.meshes:
        lines[mesh.key] = _mesh_lines(topology, mesh, basis)
    labels = _labels(scene)
    alarms = _alarms(scene, limits, lines, labels)
    return replace(scene, lines=lines, labels=labels, alarms=alarms)


def _labels(scene: Scene) -> dict[WireKey, tuple[Line, ...]]:
    """Return what is written beside each wire; what no route touches has its medium alone.

    A wire that is drawn aside has no label where another says the same.
    """
    ends = scene.wiring.ends
    labels: dict[WireKey, tuple[Line, ...]] = {
        wire.key: wire_lines(scene.topology, wire, scene.basis)
        for wire in scene.grouping.wires
        if wire.key in ends
    }
    in_order = {lines for key, lines in labels.items() if not ends[key].aside}
    shown = {
        key: lines if not scene.dimmed or key in scene.walked else lines[:1]
        for key, lines in labels.items()
        if not (ends[key].aside and lines in in_order)
    }
    failed = Line(_OUT_OF_ORDER["failed"], bold=True, tone="out")
    for wire in scene.grouping.wires:
        if scene.is_broken(wire) and wire.key in ends:
            shown[wire.key] = (failed, labels[wire.key][0])
        elif scene.is_broken(wire):
            count = sum(link.cable.count for link in wire.links)
            part = replace(failed, text=f"{count} FAILED")
            shown |= {
                key: (part, *lines)
                for key, lines in shown.items()
                if ends[key].across and ends[key].ends == {wire.a, wire.b}
            }
    return shown


def _alarms(
    scene: Scene,
    limits: Mapping[str, tuple[str, ...]],
    lines: dict[str, tuple[Line, ...]],
    labels: dict[WireKey, tuple[Line, ...]],
) -> frozenset[WireKey | str]:
    """Write BOTTLENECK into the boxes and beside the wires that have what binds.

    That is what binds the routes shown, or any where none is shown.
    """
    both_ways = scene.topology.both_ways
    resources = {**scene.topology.resources, **{link.id: link for link in both_ways.values()}}
    for route in scene.routes:
        resources |= {resource.id: resource for resource in route.route.extra}
    shown = [route.label for route in scene.routes] or list(limits)
    whose: dict[str, list[str]] = {}  # by resource
    for label in shown:
        for name in limits.get(label, ()):
            whose.setdefault(name, []).append(label)
    if len(shown) == 1:
        whose = {name: [] for name in whose}  # no need to say
    if scene.topology.folding is not None:  # what binds is named for all that are alike
        for name, alike in scene.topology.alike_resources.items():
            if alike.resource.id in whose:
                whose[name] = whose[alike.resource.id]
                resources[name] = replace(resources[name], name=alike.resource.name)
    binding = {name: resources[name] for name in whose if name in resources}
    alarms: set[WireKey | str] = set()
    inside: dict[str, list[Resource]] = {}
    for wire in scene.grouping.wires:
        directions = [side for link in wire.links for side in (link.forward, link.backward) if side]
        directions += [both_ways[side.id] for side in directions if side.id in both_ways]
        full = [binding.pop(side.id) for side in directions if side.id in binding]
        if full and wire.key in scene.wiring.ends:
            labels[wire.key] = (*_alarm_lines(full, whose), *labels.get(wire.key, ()))
            alarms.add(wire.key)
        elif full:
            mesh = next(mesh for mesh in scene.zones.meshes if wire in mesh.wires)
            inside.setdefault(mesh.key, []).extend(full)
    for resource in binding.values():
        if resource.device in scene.grouping.box_of:
            inside.setdefault(scene.grouping.box_of[resource.device], []).append(resource)
    for key, full in inside.items():
        lines[key] = (*lines[key], *_alarm_lines(full, whose, scene.basis))
    return frozenset(alarms | set(inside))


def _alarm_lines(
    full: list[Resource], whose: Mapping[str, list[str]], basis: Basis | None = None
) -> tuple[Line, ...]:
    """Return what cries out, with the rate at `basis` where it is not already written there.

    `whose` are the routes that each resource binds, where several are shown.
    """
    routes = and_more(
        list(dict.fromkeys(label for side in full for label in whose.get(side.id, ())))
    )
    names = tuple(dict.fromkeys(resource.name for resource in full))
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    figures = [resource.capacity.at(basis) for resource in full] if basis else []
    rate = ""
    if len({figure.value for figure in figures}) == 1 and figures[0].value is not None:
        rate = "at most " * figures[0].at_most + format_rate(figures[0].value)
    texts = ["BOTTLENECK" + (f" of {routes}" if routes else ""), f"{names[0]}{more}"]
    if more and rate:
        texts.append(f"{rate} each")
    elif rate:
        texts[-1] += f" {rate}"
    return tuple(Line(text, bold=True, tone="alarm") for text in texts)


# --- what is written in boxes ---------------------------------------------------------------------


def _box_lines(topology: Topology, box: Box, basis: Basis) -> tuple[Line, ...]:
    """Return the lines of a box: name, part, key figures."""
    device = box.devices[0]
    name = box.name
    if box.count == 1 and device.label and device.label.lower() != box.name.lower():
        name += f" ({clipped(device.label, 24)})"
    elif device.slot_name and box.count == 1:
        name += f" ({clipped(device.slot_name, 12)})"
    elif device.role:
        name += f" ({clipped(device.role, 12)})"
    # The part's title without maker, article and subordinate clauses.
    title = re.split(r" \(|, | with | of ", device.part.title or device.part.name, maxsplit=1)[0]
    title = re.sub(r"^(an?|the) ", "", title)
    for maker in _MAKERS:
        title = title.removeprefix(maker)
    many, each = (f"{box.count}x ", " each") if box.count > 1 else ("", "")
    parts = balanced(many + (title or device.part.name), _TITLE_POINTS)
    notes = [text + each for text in _figures(topology, device, basis)]
    if box.count == 1 and device.pci and box.servers == 1:
        notes.append(device.pci[0])
    return (
        Line(name, _NAME, bold=True),
        *(Line(text) for text in parts),
        *(Line(text, tone="soft") for text in notes),
    )


def _figures(topology: Topology, device: Device, basis: Basis) -> Iterator[str]:
    """Yield the key figures of a device, as far as they are known."""

    def stated(name: str) -> float:
        figure = device.part.figure(name)
        return (figure.value or 0.0) if figure else 0.0

    if device.kind == "gpu":
        memory, hbm = stated("memory"), stated("hbm")
        texts = [format_size(memory)] * bool(memory) + [format_rate(hbm)] * bool(hbm)
        if texts:
            yield ", ".join(texts)
    for noun, kinds in _COUNTS.items():
        if device.kind in kinds and stated(noun) > (noun == "chips"):  # one chip is not said
            yield f"{stated(noun):g} {noun}"
    rates = {}
    for side in _RATES.get(device.kind, ()):
        resource = topology.resources.get(f"{device.name}/{side}")
        if resource:
            spelled = format_bit_rate if side == "chip in" else format_rate
            value = resource.capacity.at(basis).value
            known = "unknown" if value is None else spelled(value)
            unlimited = value is not None and math.isinf(value)
            rates[side.removesuffix(" in")] = _UNLIMITED if unlimited else known
    if device.is_storage and set(rates.values()) == {_UNLIMITED}:
        yield f"rate {_UNLIMITED}"
    else:
        yield from (f"{side} {rate}" for side, rate in rates.items())


def _mesh_lines(topology: Topology, mesh: Mesh, basis: Basis) -> tuple[Line, ...]:
    """Return the lines of the bar that stands for links without a switch."""
    links: Counter[tuple[str, str]] = Counter()  # how many are what, at which rate
    for wire in mesh.wires:
        name, speed, *_ = wire_lines(topology, replace(wire, count=1), basis)
        links[name.text, speed.text] += wire.count
    joined = [(link.a.device, link.b.device) for wire in mesh.wires for link in wire.links]
    devices = {device for ends in joined for device in ends}
    pairs = {frozenset(ends) for ends in joined}
    full = len(pairs) == len(devices) * (len(devices) - 1) // 2 and len(devices) > 2  # noqa: PLR2004
    noun = mesh.kind.upper()
    shape = f"every {noun} to every other" if full else f"{noun} to {noun}"
    many = ", ".join(
        f"{count} links, {rate}" if rate == _UNKNOWN else f"{count} x {rate}"
        for (_, rate), count in links.items()
    )
    (what, _), *others = links
    if full or others:
        family = mesh.wires[0].links[0].cable.family
        what = _FAMILIES.get(family, family)
    return (
        Line(what, _NAME, bold=True),
        Line(f"{shape}: {many}", tone="soft"),
    )


# --- what is written beside wires -----------------------------------------------------------------


def wire_lines(topology: Topology, wire: Wire, basis: Basis) -> tuple[Line, ...]:
    """Return the lines beside a wire: what it is, the rate of one direction of one, NUMA nodes."""
    cable = wire.links[0].cable
    many, each = (f"{wire.count} x ", " each") if wire.count > 1 else ("", "")
    if wire.layer == "memory":
        return (Line(f"{many}memory bus", tone="soft"),)
    family, _, generation = cable.medium.partition(" ")
    words = [_FAMILIES.get(family, family)]
    if generation:
        words.append(generation.upper() if family == "infiniband" else generation)
    if cable.lanes:
        words.append(f"x{cable.lanes}")
    if cable.count > 1:
        words.insert(0, f"{cable.count}x")
    figure = figure_of(topology, wire, basis)
    if figure is None or figure.value is None:
        rate = _UNKNOWN
    elif not math.isfinite(figure.value):
        rate = "unlimited"
    else:
        spelled = format_bit_rate if wire.layer == "network" else format_rate
        rate = "at most " * figure.at_most + spelled(figure.value)
    texts = [many + " ".join(words), rate + each]
    sides = {end.side for link in wire.links for end in (link.a, link.b)}
    nodes = sorted(side.removeprefix("numa") for side in sides if side.startswith("numa"))
    if nodes:
        texts.append(f"NUMA {nodes[0]}" + (f"-{nodes[-1]}" if len(nodes) > 1 else ""))
    return tuple(Line(text, tone="soft") for text in texts)


def figure_of(topology: Topology, wire: Wire, basis: Basis) -> Figure | None:
    """Return bytes/s of one link of the wire, one direction; a memory's is its bus."""
    link = wire.links[0]
    resource = link.forward
    if wire.layer == "memory":
        buses = (topology.resources.get(f"{end.device}/bus") for end in (link.a, link.b))
        resource = next((bus for bus in buses if bus is not None), None)
    return resource.capacity.at(basis) if resource else None


# --- layout ---------------------------------------------------------------------------------------


def lay_out(scenes: tuple[Scene, ...]) -> tuple[Scene, ...]:
    """Return every scene with its layout, rows of the same machine being equally high in all."""
    plans = []
    heights: dict[Row, float] = {}
    gaps: dict[Row, float] = {}
    lanes: dict[int, float] = {}
    for scene in scenes:
        sizes = {key: _size(scene, key) for key in scene.lines}
        drawn = scene.wiring.ends
        broken = [
            wire for wire in scene.grouping.wires if scene.is_broken(wire) and wire.key in drawn
        ]
        crossed = {frozenset((wire.a, wire.b)) for wire in broken}
        labels = {}  # the size of each wire's label, with its distance from the wire
        for wire, lines in scene.labels.items():
            busy = wire in scene.walked or wire in scene.alarms
            busy = busy or scene.is_broken(scene.wire(wire))
            beside = _BESIDE_ROUTE if busy else _BESIDE
            if frozenset((scene.wire(wire).a, scene.wire(wire).b)) in crossed:
                beside += _CROSS
            if wire in scene.walked:
                beside += max(scene.uses[wire] - 1, 0) * ASIDE / 2
            labels[wire] = (widest(lines) + beside, height(lines))
        titles = {}
        for host in scene.zones.hosts():
            box = scene.grouping.boxes[host.box]
            numa = box.devices[0].numa
            ends = dict.fromkeys(map(str, (*numa[:1], *numa[-1:])))  # the first and the last
            nodes = [f"NUMA {'-'.join(ends)}"] if ends and box.kind == "cpu" else []
            of_host = f"{'socket of' if box.kind == 'cpu' else 'under'} {box.name}"
            titles[host.box] = (
                *(", ".join([name, *nodes]) for name in (of_host, box.name)),
                *nodes,
            )
        breadths = {
            wire: _LANE + ASIDE * max(scene.uses[wire] - 1, 0)
            for wire in scene.wiring.ends
            if wire in scene.uses or wire in scene.alarms
        }
        plan = Plan(scene.zones, scene.wiring, sizes, labels, titles, breadths)
        plans.append(plan)
        for row, high in plan.heights.items():
            heights[row] = max(heights.get(row, 0.0), high)
        for row, high in plan.gaps.items():
            gaps[row] = max(gaps.get(row, 0.0), high + (_ARROW if scene.dimmed else 0.0))
        for gap, high in enumerate(plan.courses.heights):
            lanes[gap] = max(lanes.get(gap, 0.0), high)
    return tuple(
        replace(scene, layout=plan.layout(heights, gaps, lanes))
        for scene, plan in zip(scenes, plans, strict=True)
    )


def _size(scene: Scene, key: str) -> tuple[float, float]:
    """Return a box's size: its text, its buffers, its lanes, the border of a bottleneck."""
    wide = widest(scene.lines[key]) + 2 * _MARGIN[0]
    wide += 2 * _CROSS * (scene.mark(key) == "failed")
    high = height(scene.lines[key]) + 2 * _MARGIN[1]
    buffers = scene.buffers.get(key, {})
    if buffers:
        count = len(buffers)
        wide = max(wide, count * BUFFER[0] + (count - 1) * BUFFER_GAP + 2 * _MARGIN[0])
        high += BUFFER[1] + _MARGIN[1]
    if len(buffers) == 1:  # the label of its wire stands after the last hop, not between buffers
        ports = len(scene.ports.get((key, next(iter(buffers))), ()))
        wires = [wire for wire in scene.wiring.at(key, "bottom") if wire in scene.labels]
        label = max((widest(scene.labels[wire]) for wire in wires), default=0.0)
        wide = max(wide, 2 * (PORT * (ports - 1) / 2 + _BESIDE_ROUTE + label) - GAP)
    for side in ("left", "right"):
        if any(wire in scene.uses for wire in scene.wiring.at(key, side)):
            wide += _STUBS
    above, below = scene.lanes.get(key, (0, 0))
    if through := scene.passed[key]:  # its text has room beside the hops through its middle
        wide = max(wide, 2 * (widest(scene.lines[key]) + _BESIDE_TEXT) + PORT * (through - 1))
    edge = 2 * EDGE if key in scene.alarms else 0.0
    return wide + edge, high + LANE * (above + below) + edge
