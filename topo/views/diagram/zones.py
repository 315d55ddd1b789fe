"""Which part of the picture each box belongs to.

From top to bottom: storage and network, what hangs on the CPUs on that side (cards, drives,
memories), the CPUs, the switches below them, the GPUs, and the GPUs' own links. A CPU is a bar
as wide as what hangs on it, so that links are straight lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.views.diagram.group import Grouping, Wire


_HOSTS = ("cpu", "root-complex")
_NETWORK = ("storage", "network-switch")
_FORWARDING = ("cpu", "root-complex", "pcie-switch", "nic", "dpu", "hba")
_ENDS = ("nic", "dpu", "nvme", "hba", "memory", "cxl-memory")
# From the outer side of a socket to the inner one.
_NORTH_ORDER = {"nvme": 0, "hba": 0, "memory": 1, "cxl-memory": 1}


@dataclass(frozen=True, slots=True)
class Node:
    """A box with what hangs on it: on the storage's side (north) and on the GPUs' (south)."""

    box: str
    north: tuple[Node, ...] = ()
    south: tuple[Node, ...] = ()

    @property
    def north_depth(self) -> int:
        """Rows that the north side takes."""
        return max((1 + node.north_depth for node in self.north), default=0)

    @property
    def south_depth(self) -> int:
        """Rows of bars below this box before the GPUs."""
        return max((1 + node.south_depth for node in self.south if node.south), default=0)


@dataclass(frozen=True, slots=True)
class Server:
    """The CPUs of one server with what hangs on them, and what hangs on none."""

    name: str
    servers: int
    hosts: tuple[Node, ...]
    loose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mesh:
    """GPUs linked to each other without a switch: drawn as a bar below them."""

    key: str
    wires: tuple[Wire, ...]
    boxes: tuple[str, ...]


@dataclass(frozen=True)
class Zones:
    """The picture's parts; `network` has the rows from the one nearest the servers upwards."""

    servers: tuple[Server, ...]
    network: tuple[tuple[str, ...], ...]
    fabric: tuple[str, ...]
    meshes: tuple[Mesh, ...]
    parent: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def fabric_of(self, server: str) -> tuple[str, ...]:
        """Return the GPU switches and meshes that are in one server."""
        return tuple(box for box, owner in self.owners.items() if owner == server)


def sort_into_zones(grouping: Grouping) -> Zones:
    """Return where each box of `grouping` belongs."""
    boxes = grouping.boxes
    network = tuple(key for key, box in boxes.items() if box.kind in _NETWORK)
    fabric = tuple(key for key, box in boxes.items() if box.kind == "nvswitch")
    hosts = _hosts(grouping)
    parent = _parents(grouping, hosts)
    kids: dict[str, list[str]] = {key: [] for key in boxes}
    for kid, above in parent.items():
        kids[above].append(kid)
    placed = {*network, *fabric, *hosts, *parent}
    names = dict.fromkeys(boxes[key].server for key in boxes if key not in (*network, *fabric))
    meshes = tuple(_meshes(grouping))
    servers = []
    for name in names:
        own = [key for key in hosts if boxes[key].server == name]
        nodes = tuple(
            _host_node(grouping, kids, key, place, len(own)) for place, key in enumerate(own)
        )
        loose = tuple(key for key, box in boxes.items() if key not in placed and box.server == name)
        count = next(box.servers for box in boxes.values() if box.server == name)
        servers.append(Server(name, count, nodes, loose))
    return Zones(
        servers=tuple(servers),
        network=_network_rows(grouping, network),
        fabric=fabric,
        meshes=meshes,
        parent=parent,
        owners=_owners(grouping, fabric, meshes),
    )


def _owners(
    grouping: Grouping, fabric: tuple[str, ...], meshes: tuple[Mesh, ...]
) -> dict[str, str]:
    """Return the server that each part of the GPUs' links is in."""
    found = {key: grouping.boxes[key].server for key in fabric}
    for mesh in meshes:
        found[mesh.key] = grouping.boxes[mesh.boxes[0]].server
    return found


# --- what hangs on what ---------------------------------------------------------------------------


def _hosts(grouping: Grouping) -> tuple[str, ...]:
    """Return the CPUs, and the root complexes that hang on none of them."""
    boxes = grouping.boxes
    under_cpu = {
        end
        for wire in grouping.wires
        for end in (wire.a, wire.b)
        if {boxes[wire.a].kind, boxes[wire.b].kind} == set(_HOSTS)
        and boxes[end].kind == "root-complex"
    }
    return tuple(key for key, box in boxes.items() if box.kind in _HOSTS and key not in under_cpu)


def _parents(grouping: Grouping, hosts: tuple[str, ...]) -> dict[str, str]:
    """Return the box that each box hangs on, walking down from the hosts in breadth."""
    around: dict[str, list[str]] = {key: [] for key in grouping.boxes}
    for wire in grouping.wires:
        if wire.links[0].layer in ("host", "memory") and wire.a != wire.b:
            around[wire.a].append(wire.b)
            around[wire.b].append(wire.a)
    parent: dict[str, str] = {}
    front = list(hosts)
    for key in front:
        if grouping.boxes[key].kind not in _FORWARDING:
            continue
        for kid in dict.fromkeys(around[key]):
            if kid not in parent and kid not in hosts:
                parent[kid] = key
                front.append(kid)
    order = {key: place for place, key in enumerate(grouping.boxes)}
    return dict(sorted(parent.items(), key=lambda pair: order[pair[0]]))


def _host_node(
    grouping: Grouping, kids: Mapping[str, list[str]], host: str, place: int, count: int
) -> Node:
    """Return a host's tree; the sockets of the right half are the mirror of those of the left."""
    north = [key for key in kids[host] if not _leads_south(grouping, kids, key)]
    mirrored = place * 2 >= count > 1
    inner = [_NORTH_ORDER.get(grouping.boxes[key].kind, 2) for key in north]
    ranked = sorted(zip(inner, north, strict=True), key=lambda pair: pair[0], reverse=mirrored)
    if count == 1:
        ranked = sorted(zip(inner, north, strict=True), key=lambda pair: -pair[0])
    south = [key for key in kids[host] if _leads_south(grouping, kids, key)]
    nodes = []
    for number, key in enumerate(south):
        flank = number in (0, len(south) - 1)
        nodes.append(_south_node(grouping, kids, key, flank=flank))
    return Node(host, tuple(_north_node(kids, key) for _, key in ranked), tuple(nodes))


def _leads_south(grouping: Grouping, kids: Mapping[str, list[str]], key: str) -> bool:
    """Whether a box is on the GPUs' side: it has GPUs below it, or nothing that stores or sends."""
    below = [key]
    for one in below:
        below.extend(kids[one])
    kinds = {grouping.boxes[one].kind for one in below}
    return "gpu" in kinds or not kinds & set(_ENDS)


def _north_node(kids: Mapping[str, list[str]], key: str) -> Node:
    return Node(key, north=tuple(_north_node(kids, kid) for kid in kids[key]))


def _south_node(
    grouping: Grouping, kids: Mapping[str, list[str]], key: str, *, flank: bool
) -> Node:
    """Return a tree on the GPUs' side; only a switch at the side of its socket has room upwards."""
    north = [kid for kid in kids[key] if flank and not _leads_south(grouping, kids, kid)]
    return Node(
        key,
        north=tuple(_north_node(kids, kid) for kid in north),
        south=tuple(
            _south_node(grouping, kids, kid, flank=False) for kid in kids[key] if kid not in north
        ),
    )


# --- network and GPU links ------------------------------------------------------------------------


def _network_rows(grouping: Grouping, network: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return rows of network boxes by their distance from the servers, storage in the last."""
    around: dict[str, list[str]] = {key: [] for key in grouping.boxes}
    for wire in grouping.wires:
        if wire.links[0].layer == "network":
            around[wire.a].append(wire.b)
            around[wire.b].append(wire.a)
    distance = {key: 0 for key in grouping.boxes if key not in network}
    front = list(distance)
    for key in front:
        for other in around[key]:
            if other not in distance:
                distance[other] = distance[key] + 1
                front.append(other)
    last = max((distance.get(key, 1) for key in network), default=0)
    rows: list[list[str]] = [[] for _ in range(last + 1)]
    for key in network:
        stores = grouping.boxes[key].kind == "storage"
        rows[last if stores else distance.get(key, 1)].append(key)
    return tuple(tuple(row) for row in rows if row)


def _meshes(grouping: Grouping) -> list[Mesh]:
    """Return the groups of GPUs that links between GPUs join."""
    boxes = grouping.boxes
    wires = [
        wire
        for wire in grouping.wires
        if wire.links[0].layer == "gpu" and {boxes[wire.a].kind, boxes[wire.b].kind} == {"gpu"}
    ]
    found: list[Mesh] = []
    left = list(wires)
    while left:
        inside = {left[0].a, left[0].b}
        while True:
            more = {end for wire in left if {wire.a, wire.b} & inside for end in (wire.a, wire.b)}
            if more <= inside:
                break
            inside |= more
        own = tuple(wire for wire in left if wire.a in inside)
        left = [wire for wire in left if wire.a not in inside]
        members = tuple(key for key in boxes if key in inside)
        found.append(Mesh(f"mesh of {members[0]}", own, members))
    return found
