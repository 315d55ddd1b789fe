"""Which devices are drawn as one box, and which part of the picture each box belongs to.

Devices are alike when nothing in the picture could tell them apart: the same part, and the same
cables to the same (or alike) neighbours.

From top to bottom a picture has storage and network, what hangs on the CPUs on that side (cards,
drives, memories), the CPUs, the switches below them, the GPUs, and the GPUs' own links. A CPU is a
bar as wide as what hangs on it, so that links are straight lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from string import ascii_letters
from typing import TYPE_CHECKING

from topo.catalogue.kinds import CARDS, DRIVES, HOSTS, MEMORIES
from topo.graph import breadth_first, components, groups, refine
from topo.records import dataclass
from topo.views.diagram.outage import Outage

if TYPE_CHECKING:
    from topo.description.description import Device
    from topo.topology.topology import Link, Topology
    from topo.views.diagram.geometry import Side


# How much is drawn as one: 0 nothing; 1 cards, drives, memories, GPUs; 2 switches too; 3 whole
# servers; 4 the network's first switches too.
STRONGEST = 4
_FEW_SOCKETS = 4  # their links are drawn one by one
SERVERS = 3
_SWITCHES, _LEAVES = 2, 4

_NETWORK = ("storage", "network-switch")
_INSIDE = ("host", "memory")  # the layers of links inside a host
_FORWARDING = (*HOSTS, *CARDS, "pcie-switch", "hba")
_ENDS = (*CARDS, *DRIVES, *MEMORIES)
# From the outer side of a socket to the inner one.
_NORTH_ORDER: dict[str, int] = {**dict.fromkeys(DRIVES, 0), **dict.fromkeys(MEMORIES, 1)}

WireKey = int | tuple[str, str]  # a wire, or a mesh and the box that is joined to it


@dataclass(frozen=True, slots=True)
class Box:
    """One device, or several that are alike; `key` is the first one's name.

    `server` names the servers that they are in (``node0-15``), empty at the top; `servers` is how
    many. `count` is how many devices are drawn as one, in each server: in a folded topology each of
    `devices` stands for several.
    """

    key: str
    name: str
    devices: tuple[Device, ...]
    count: int
    server: str = ""
    servers: int = 1

    @property
    def kind(self) -> str:
        """The kind of its devices."""
        return self.devices[0].kind

    @property
    def several(self) -> bool:
        """Whether more than one device is drawn as one."""
        return self.count * self.servers > 1


@dataclass(frozen=True, slots=True)
class Wire:
    """Equal links between two boxes; `count` is in each server when both ends are in one.

    A wire that `failed` carries nothing.
    """

    key: int
    a: str
    b: str
    links: tuple[Link, ...]
    count: int
    failed: bool = False

    @property
    def layer(self) -> str:
        """The layer of its links."""
        return self.links[0].layer


@dataclass(frozen=True)
class Grouping:
    """The boxes by key in the order of the file, and the wires between them."""

    boxes: Mapping[str, Box]
    wires: tuple[Wire, ...]
    box_of: Mapping[str, str]

    def kind(self, box: str) -> str:
        """Return the kind of a box, ``mesh`` for the links between GPUs."""
        return self.boxes[box].kind if box in self.boxes else "mesh"

    def kinds(self, wire: Wire) -> set[str]:
        """Return the kinds of a wire's two boxes."""
        return {self.boxes[wire.a].kind, self.boxes[wire.b].kind}


# --- which are alike ------------------------------------------------------------------------------


def group(
    topology: Topology,
    level: int,
    alone: frozenset[str] = frozenset(),
    outage: Outage = Outage(),  # noqa: B008  (it is frozen)
) -> Grouping:
    """Return boxes and wires of `topology`; devices of `alone` are never drawn with others."""
    homes = _homes(topology, level)

    def cable_of(link: Link) -> tuple[object, ...]:
        return (*_cable(link), id(link) in outage.links)

    classes = refine(
        {
            name: (outage.mark(name), _by_itself(topology, name, level, alone, homes))
            for name in topology.devices
        },
        lambda name, classes: tuple(
            sorted((cable_of(step.link), classes[step.target]) for step in topology.steps[name])
        ),
    )
    boxes: dict[str, Box] = {}
    for members in groups(classes):
        servers = tuple(dict.fromkeys(homes[name].server for name in members))
        first = [name for name in members if homes[name].server == servers[0]]
        local, in_all = [homes[name].local for name in first], servers
        if topology.folding is not None:
            in_all = tuple(chain.from_iterable(map(topology.folding.in_cell, servers)))
            if servers == ("",):
                local = list(chain.from_iterable(map(topology.folding.in_cell, first)))
        boxes[members[0]] = Box(
            key=members[0],
            name=_compressed(dict.fromkeys(local)),
            devices=tuple(topology[name] for name in members),
            count=len(local),
            server=_compressed(in_all),
            servers=len(in_all),
        )
    box_of = {device.name: box.key for box in boxes.values() for device in box.devices}
    bundles: dict[tuple[object, ...], list[Link]] = {}
    for link in topology.links:
        ends = sorted((box_of[link.a.device], box_of[link.b.device]))
        bundles.setdefault((*ends, *cable_of(link)), []).append(link)
    wires = []
    for key, links in enumerate(bundles.values()):
        a, b = box_of[links[0].a.device], box_of[links[0].b.device]
        count = sum(link.times[0] * topology.cell_size(link.a.device) for link in links)
        copies = boxes[a].servers if boxes[a].server == boxes[b].server else 1
        failed = id(links[0]) in outage.links
        wires.append(Wire(key, a, b, tuple(links), count // copies, failed))
    return Grouping(boxes, tuple(wires), box_of)


@dataclass(frozen=True, slots=True)
class _Home:
    """The server that a device is in, its name there, and what its like in another is called."""

    server: str
    local: str
    place: str


def _homes(topology: Topology, level: int) -> dict[str, _Home]:
    """Return where each device is.

    Its name tells the server (``node3.gpu5``), or else, where servers may be drawn as one, what
    hangs together by links inside a host.
    """
    homes = {}
    for name in topology.devices:
        server, _, local = name.rpartition(".")
        homes[name] = _Home(server, local, local)
    if level < SERVERS or any(home.server for home in homes.values()):
        return homes

    def inside(name: str) -> list[str]:
        links = [step for step in topology.steps[name] if step.link.layer in _INSIDE]
        return [step.target for step in links]

    parts = components(topology.devices, inside)
    hosts = [part for part in parts if any(topology[name].is_host for name in part)]
    if len(hosts) > 1:
        host_of = {name: number for number, part in enumerate(hosts) for name in part}
        for part in parts:  # an NVSwitch is in the host whose GPUs it links
            steps = (step for name in part for step in topology.steps[name])
            linked = {host_of.get(step.target) for step in steps if step.link.layer == "gpu"}
            if part not in hosts and len(linked) == 1:
                hosts[linked.pop() or 0].extend(part)
        prefixes = [_prefix(part) for part in hosts]
        distinct = all(prefixes) and len(set(prefixes)) == len(hosts)
        for part, prefix in zip(hosts, prefixes, strict=True):
            homes |= _homes_in(topology, part, prefix if distinct else "")
    return homes


def _prefix(names: list[str]) -> str:
    """Return what all names begin with, up to a number or a hyphen.

    Examples
    --------
    >>> _prefix(["n1-cpu", "n1-card0"]), _prefix(["cpu0", "cpu1"])
    ('n1-', '')
    """
    columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in columns).rstrip(ascii_letters)


def _homes_in(topology: Topology, host: list[str], prefix: str) -> Iterator[tuple[str, _Home]]:
    """Yield the homes of the devices of one host, whose names begin with its own or with none."""
    server = prefix.rstrip("-_") or next(name for name in host if topology[name].is_host)
    numbers: dict[str, int] = {}
    for name in host:
        stem = name.rstrip("0123456789")
        number = numbers[stem] = numbers.get(stem, -1) + 1
        local = name.removeprefix(prefix) or name
        yield name, _Home(server, local, local if prefix else f"{stem}{number}")


def _by_itself(
    topology: Topology,
    name: str,
    level: int,
    alone: frozenset[str],
    homes: Mapping[str, _Home],
) -> object:
    """Return what a device is by itself, or its name where it stands for itself."""
    if level == 0 or name in alone:
        return name
    device, local = topology[name], homes[name].local
    stands_alone = device.is_host or (device.kind == "pcie-switch" and level < _SWITCHES)
    if device.kind == "network-switch" and level < _LEAVES:
        stands_alone = level < SERVERS or any(
            topology[step.target].kind not in _NETWORK for step in topology.steps[name]
        )
    if stands_alone:
        return name if level < SERVERS else ("one", homes[name].place)
    figures = tuple((key, figure.value) for key, figure in sorted(device.part.figures.items()))
    stem = local.rstrip("0123456789")
    server = homes[name].server if level < SERVERS else ""
    return (device.kind, device.part.name, figures, device.role, device.outside, server, stem)


def _cable(link: Link) -> tuple[object, ...]:
    cable = link.cable
    return (link.layer, cable.medium, cable.lanes or 0, cable.count, str(cable.rate.value))


def _compressed(names: Iterable[str], limit: int = 3) -> str:
    """Return names as ranges, at most `limit` of them.

    Examples
    --------
    >>> _compressed(["gpu0", "gpu1", "gpu2", "gpu5", "nic"])
    'gpu0-2, gpu5, nic'
    """
    runs: list[tuple[str, str, str]] = []  # stem, first number, last number
    for name in names:
        stem = name.rstrip("0123456789")
        number, last = name.removeprefix(stem), runs[-1][2] if runs else ""
        plain = re.fullmatch("0|[1-9][0-9]*", last)
        if plain and runs[-1][0] == stem and number == str(int(last) + 1):
            runs[-1] = (*runs[-1][:2], number)
        else:
            runs.append((stem, number, number))
    ranges = [
        f"{stem}{first}" + (f"-{last}" if last != first else "") for stem, first, last in runs
    ]
    more = f", … ({len(ranges) - limit} more)" if len(ranges) > limit else ""
    return ", ".join(ranges[:limit]) + more


# --- which part of the picture --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """A box with what hangs on it: on the storage's side (north) and on the GPUs' (south)."""

    box: str
    north: tuple[Node, ...] = ()
    south: tuple[Node, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[Node, int]]:
        """Yield the tree's nodes with how far below its CPU each is, above it less than nothing."""
        yield self, depth
        for node in self.north:
            yield from node.walk(min(depth, 0) - 1)
        for node in self.south:
            yield from node.walk(depth + 1)


@dataclass(frozen=True, slots=True)
class Server:
    """The CPUs of one server with what hangs on them, and what hangs on none."""

    name: str
    servers: int
    hosts: tuple[Node, ...]
    loose: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is written on the frame round it."""
        return f"{self.name}: {self.servers} servers alike" if self.servers > 1 else self.name


@dataclass(frozen=True, slots=True)
class Mesh:
    """GPUs, or many CPUs, linked to each other without a switch: drawn as a bar below them."""

    key: str
    kind: str
    wires: tuple[Wire, ...]
    boxes: tuple[str, ...]


@dataclass(frozen=True)
class Zones:
    """The picture's parts; `network` has the rows from the one nearest the servers upwards.

    `parent` is what each box hangs on, `owners` the server that each part of the GPUs' links is in.
    """

    servers: tuple[Server, ...]
    network: tuple[tuple[str, ...], ...]
    fabric: tuple[str, ...]
    meshes: tuple[Mesh, ...]
    parent: Mapping[str, str]
    owners: Mapping[str, str]

    def hosts(self) -> list[Node]:
        """Return the CPUs of all servers with what hangs on them."""
        return [host for server in self.servers for host in server.hosts]


def sort_into_zones(grouping: Grouping) -> Zones:
    """Return where each box of `grouping` belongs."""
    boxes = grouping.boxes
    network = [key for key, box in boxes.items() if box.kind in _NETWORK]
    fabric = tuple(key for key, box in boxes.items() if box.kind == "nvswitch")
    under_cpu = {
        end
        for wire in grouping.wires
        for end in (wire.a, wire.b)
        if grouping.kinds(wire) == set(HOSTS) and boxes[end].kind == "root-complex"
    }
    hosts = [key for key, box in boxes.items() if box.kind in HOSTS and key not in under_cpu]
    parent = _parents(grouping, hosts)
    kids: dict[str, list[str]] = {key: [] for key in boxes}
    for kid, above in parent.items():
        kids[above].append(kid)
    placed = {*network, *fabric, *hosts, *parent}
    servers = []
    for name in dict.fromkeys(boxes[key].server for key in boxes if key not in (*network, *fabric)):
        inside = [key for key, box in boxes.items() if box.server == name]
        sockets = [key for key in hosts if key in inside]
        nodes = tuple(
            _host_node(grouping, kids, key, place, len(sockets))
            for place, key in enumerate(sockets)
        )
        loose = tuple(key for key in inside if key not in placed)
        servers.append(Server(name, boxes[inside[0]].servers, nodes, loose))
    meshes = (*_meshes(grouping, "gpu"), *_meshes(grouping, "cpu", hosts))
    bars = {key: key for key in fabric} | {mesh.key: mesh.boxes[0] for mesh in meshes}
    return Zones(
        servers=tuple(servers),
        network=_network_rows(grouping, network),
        fabric=fabric,
        meshes=meshes,
        parent=parent,
        owners={bar: boxes[key].server for bar, key in bars.items()},
    )


def _neighbours(boxes: Iterable[str], wires: Iterable[Wire]) -> dict[str, list[str]]:
    neighbours: dict[str, list[str]] = {key: [] for key in boxes}
    for wire in wires:
        neighbours[wire.a].append(wire.b)
        neighbours[wire.b].append(wire.a)
    return neighbours


def _parents(grouping: Grouping, hosts: list[str]) -> dict[str, str]:
    """Return the box that each box hangs on, walking down from the hosts in breadth.

    A GPU on a host's chip link that hangs on a card or switch as well (GB300) stands below that.
    """
    wires = (wire for wire in grouping.wires if wire.layer in ("host", "memory"))
    neighbours = _neighbours(grouping.boxes, wires)
    gpus = {key for key, box in grouping.boxes.items() if box.kind == "gpu"}
    parent, besides = dict[str, str](), dict[str, str]()
    front = list(hosts)
    for key in front:
        if grouping.boxes[key].kind in _FORWARDING:
            for kid in (x for x in neighbours[key] if x not in parent and x not in hosts):
                if key in hosts and kid in gpus and not {*neighbours[kid]} <= {*hosts}:
                    besides.setdefault(kid, key)
                else:
                    parent[kid] = key
                    front.append(kid)
    every = besides | parent
    return {key: every[key] for key in grouping.boxes if key in every}


def _host_node(
    grouping: Grouping, kids: Mapping[str, list[str]], host: str, place: int, count: int
) -> Node:
    """Return a host's tree; the sockets of the right half are the mirror of those of the left."""
    south = [key for key in kids[host] if _leads_south(grouping, kids, key)]
    north = [key for key in kids[host] if key not in south]
    north.sort(
        key=lambda key: _NORTH_ORDER.get(grouping.boxes[key].kind, 2),
        reverse=count == 1 or place * 2 >= count,
    )
    flanks = (south[0], south[-1]) if south else ()
    return Node(
        host,
        tuple(_north_node(kids, key) for key in north),
        tuple(_south_node(grouping, kids, key, flank=key in flanks) for key in south),
    )


def _leads_south(grouping: Grouping, kids: Mapping[str, list[str]], key: str) -> bool:
    """Whether a box is on the GPUs' side: it has GPUs below it, or nothing that stores or sends."""
    kinds = {grouping.boxes[below].kind for below in breadth_first([key], kids.__getitem__)}
    return "gpu" in kinds or not kinds & set(_ENDS)


def _north_node(kids: Mapping[str, list[str]], key: str) -> Node:
    return Node(key, north=tuple(_north_node(kids, kid) for kid in kids[key]))


def _south_node(
    grouping: Grouping, kids: Mapping[str, list[str]], key: str, *, flank: bool
) -> Node:
    """Return a tree on the GPUs' side; only a switch at the side of its socket has room upwards."""
    north = [kid for kid in kids[key] if flank and not _leads_south(grouping, kids, kid)]
    south = [kid for kid in kids[key] if kid not in north]
    return Node(
        key,
        north=tuple(_north_node(kids, kid) for kid in north),
        south=tuple(_south_node(grouping, kids, kid, flank=False) for kid in south),
    )


def _network_rows(grouping: Grouping, network: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return rows of network boxes by their distance from the servers, storage in the last."""
    servers = [key for key in grouping.boxes if key not in network]
    wires = (wire for wire in grouping.wires if wire.layer == "network")
    distance = breadth_first(servers, _neighbours(grouping.boxes, wires).__getitem__)
    last = max((distance.get(key, 1) for key in network), default=0)
    rows: list[list[str]] = [[] for _ in range(last + 1)]
    for key in network:
        stores = grouping.boxes[key].kind == "storage"
        rows[last if stores else distance.get(key, 1)].append(key)
    return tuple(tuple(row) for row in rows if row)


def _meshes(grouping: Grouping, kind: str, row: Sequence[str] = ()) -> Iterator[Mesh]:
    """Yield the groups of GPUs, or of CPUs in a `row`, that links between them join.

    A few CPUs are no mesh, and neither are those that are linked in the order of their row.
    """
    wires = [
        wire
        for wire in grouping.wires
        if grouping.kinds(wire) == {kind}
        and (wire.layer == "gpu" or kind != "gpu")
        and not wire.failed
    ]
    ends = [end for wire in wires for end in (wire.a, wire.b)]
    for members in components(ends, _neighbours(ends, wires).__getitem__):
        boxes = tuple(key for key in grouping.boxes if key in members)
        inside = tuple(wire for wire in wires if wire.a in members)
        steps = (abs(row.index(wire.a) - row.index(wire.b)) for wire in inside)
        if not row or (len(boxes) > _FEW_SOCKETS and max(steps) > 1):
            yield Mesh(f"mesh of {boxes[0]}", kind, inside, boxes)


# --- by which side of a box each wire leaves it ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class WireEnds:
    """A wire between two boxes and the sides that it leaves them by.

    `aside` marks a wire that is no part of the picture's order: it is drawn as it comes.
    """

    wire: WireKey
    a: str
    b: str
    a_side: Side
    b_side: Side
    aside: bool = False

    @property
    def across(self) -> bool:
        """Whether it goes to the next socket of a row."""
        return {self.a_side, self.b_side} == {"left", "right"}

    @property
    def ends(self) -> frozenset[str]:
        """Its two boxes."""
        return frozenset((self.a, self.b))

    def opposite(self, box: str) -> str:
        """Return the box at the other end."""
        return self.b if box == self.a else self.a

    def side(self, box: str) -> Side:
        """Return the side by which the wire leaves a box."""
        return self.a_side if box == self.a else self.b_side

    @property
    def upper_lower(self) -> tuple[str, str]:
        """The two boxes, the upper one first."""
        return (self.b, self.a) if self.a_side == "top" else (self.a, self.b)


@dataclass(frozen=True)
class Wiring:
    """The ends of every wire, by wire; and the wires at each side of each box."""

    ends: Mapping[WireKey, WireEnds]
    sides: Mapping[tuple[str, str], tuple[WireKey, ...]]

    def at(self, box: str, side: str) -> tuple[WireKey, ...]:
        """Return the wires that leave a box by a side, in order."""
        return self.sides.get((box, side), ())


def wiring_of(grouping: Grouping, zones: Zones) -> Wiring:
    """Return the ends of every wire of `grouping`, and of a mesh's stubs."""
    ranks: dict[str, int] = {}  # how far down each box stands
    for level, row in enumerate(zones.network):
        ranks.update(dict.fromkeys(row, -1000 - level))
    for server in zones.servers:
        ranks.update(dict.fromkeys(server.loose, 500))
    ranks.update({node.box: depth for host in zones.hosts() for node, depth in host.walk()})
    ranks.update(dict.fromkeys(zones.fabric, 1000))
    meshed = {wire.key for mesh in zones.meshes for wire in mesh.wires}
    drawn = {
        wire: _wire_ends(grouping, zones, ranks, wire)
        for wire in grouping.wires
        if wire.a != wire.b and wire.key not in meshed
    }
    sound = {ends.ends for wire, ends in drawn.items() if not wire.failed}
    wires = [  # between two sockets there is room for one: its label says what failed of it
        ends
        for wire, ends in drawn.items()
        if not (wire.failed and ends.across and ends.ends in sound)
    ]
    wires += [
        WireEnds((mesh.key, box), box, mesh.key, "bottom", "top")
        for mesh in zones.meshes
        for box in mesh.boxes
    ]
    sides: dict[tuple[str, str], list[WireKey]] = {}
    for ends in wires:
        if not ends.aside:
            sides.setdefault((ends.a, ends.a_side), []).append(ends.wire)
            sides.setdefault((ends.b, ends.b_side), []).append(ends.wire)
    return Wiring(
        {ends.wire: ends for ends in wires}, {key: tuple(keys) for key, keys in sides.items()}
    )


def _wire_ends(grouping: Grouping, zones: Zones, ranks: Mapping[str, int], wire: Wire) -> WireEnds:
    a, b = wire.a, wire.b
    sides: tuple[Side, Side]
    hosts = [host.box for host in zones.hosts()]
    if a in hosts and b in hosts:
        steps = hosts.index(b) - hosts.index(a)
        if abs(steps) > 1:
            return WireEnds(wire.key, a, b, "bottom", "bottom", aside=True)
        sides = ("right", "left") if steps > 0 else ("left", "right")
        return WireEnds(wire.key, a, b, *sides)
    if ranks[a] == ranks[b]:
        # A link of a mesh that failed: above the GPUs stand the labels of their other links.
        side: Side = "bottom" if wire.failed and wire.layer == "gpu" else "top"
        return WireEnds(wire.key, a, b, side, side, aside=True)
    tree = zones.parent.get(a) == b or zones.parent.get(b) == a
    aside = not tree and not {*_NETWORK, "nvswitch"} & grouping.kinds(wire)
    sides = ("top", "bottom") if ranks[a] > ranks[b] else ("bottom", "top")
    return WireEnds(wire.key, a, b, sides[0], sides[1], aside=aside)
