"""Boxes and wires: which devices are drawn as one because they are alike.

Devices are alike when nothing in the picture could tell them apart: the same part, and the same
cables to the same (or alike) neighbours. That is found by refining classes until they are stable
(Weisfeiler and Leman's colour refinement).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from topo.description.description import Device
    from topo.topology.topology import Link, Topology


# How much is drawn as one: 0 nothing; 1 cards, drives, memories, GPUs; 2 switches too; 3 whole
# servers; 4 the network's first switches too.
STRONGEST = 4
SERVERS = 3
_SWITCHES, _LEAVES = 2, 4
_HOSTS = ("cpu", "root-complex")


@dataclass(frozen=True, slots=True)
class Box:
    """One device, or several that are alike; `key` is the first one's name.

    `server` names the servers that they are in (``node0-15``), empty at the top; `servers` is how
    many.
    """

    key: str
    name: str
    devices: tuple[Device, ...]
    server: str = ""
    servers: int = 1

    @property
    def kind(self) -> str:
        """The kind of its devices."""
        return self.devices[0].kind

    @property
    def count(self) -> int:
        """Devices drawn as one, in each server."""
        return len(self.devices) // self.servers


@dataclass(frozen=True, slots=True)
class Wire:
    """Equal links between two boxes; `count` is in each server when both ends are in one."""

    key: int
    a: str
    b: str
    links: tuple[Link, ...]
    count: int


@dataclass(frozen=True)
class Grouping:
    """The boxes by key in the order of the file, and the wires between them."""

    boxes: Mapping[str, Box]
    wires: tuple[Wire, ...]
    box_of: Mapping[str, str]


def group(topology: Topology, level: int, alone: frozenset[str] = frozenset()) -> Grouping:
    """Return boxes and wires of `topology`; devices of `alone` are never drawn with others."""
    classes = _classes(topology, level, alone)
    members: dict[object, list[Device]] = defaultdict(list)
    for name, device in topology.devices.items():
        members[classes[name]].append(device)
    boxes = {box.key: box for box in map(_box, members.values())}
    box_of = {device.name: box.key for box in boxes.values() for device in box.devices}
    return Grouping(boxes, tuple(_wires(topology, boxes, box_of)), box_of)


def _box(devices: list[Device]) -> Box:
    servers = tuple(dict.fromkeys(_server(device.name) for device in devices))
    local = tuple(dict.fromkeys(_local(device.name) for device in devices))
    return Box(
        key=devices[0].name,
        name=compressed(local),
        devices=tuple(devices),
        server=compressed(servers),
        servers=len(servers),
    )


def _wires(
    topology: Topology, boxes: Mapping[str, Box], box_of: Mapping[str, str]
) -> Iterable[Wire]:
    found: dict[tuple[object, ...], list[Link]] = defaultdict(list)
    for link in topology.links:
        ends = sorted((box_of[link.a.device], box_of[link.b.device]))
        found[(*ends, *_cable(link))].append(link)
    for key, links in enumerate(found.values()):
        a, b = box_of[links[0].a.device], box_of[links[0].b.device]
        one = boxes[a].server == boxes[b].server
        yield Wire(key, a, b, tuple(links), len(links) // (boxes[a].servers if one else 1))


def _cable(link: Link) -> tuple[object, ...]:
    cable = link.cable
    return (link.layer, cable.medium, cable.lanes or 0, cable.count, str(cable.rate.value))


# --- which are alike ------------------------------------------------------------------------------


def _classes(topology: Topology, level: int, alone: frozenset[str]) -> Mapping[str, object]:
    if level == 0:
        return {name: name for name in topology.devices}
    colours: dict[str, int] = _numbered(
        {name: _first(topology, name, level, alone) for name in topology.devices}
    )
    count = len(set(colours.values()))
    while True:
        finer = _numbered(
            {name: (colour, _around(topology, name, colours)) for name, colour in colours.items()}
        )
        if len(set(finer.values())) == count:
            return finer
        colours, count = finer, len(set(finer.values()))


def _numbered(signatures: Mapping[str, object]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {
        name: numbers.setdefault(signature, len(numbers)) for name, signature in signatures.items()
    }


def _first(topology: Topology, name: str, level: int, alone: frozenset[str]) -> object:
    """Return what a device is by itself, or its name where it stands for itself."""
    device = topology[name]
    if name in alone or _stands_alone(topology, device, level):
        return name if level < SERVERS or name in alone else ("one", _local(name))
    figures = tuple((key, figure.value) for key, figure in sorted(device.part.figures.items()))
    server = _server(name) if level < SERVERS else ""
    stem = _local(name).rstrip("0123456789")
    return (device.kind, device.part.name, figures, device.role, device.outside, server, stem)


def _stands_alone(topology: Topology, device: Device, level: int) -> bool:
    if device.kind in _HOSTS:
        return True
    if device.kind == "pcie-switch":
        return level < _SWITCHES
    if device.kind != "network-switch" or level >= _LEAVES:
        return False
    return level < SERVERS or any(
        topology[step.target].kind not in ("storage", "network-switch")
        for step in topology.steps[device.name]
    )


def _around(topology: Topology, name: str, colours: Mapping[str, int]) -> tuple[object, ...]:
    return tuple(sorted((_cable(step.link), colours[step.target]) for step in topology.steps[name]))


# --- names ----------------------------------------------------------------------------------------


def _server(name: str) -> str:
    return name.rpartition(".")[0]


def _local(name: str) -> str:
    return name.rpartition(".")[2]


def compressed(names: Iterable[str], limit: int = 3) -> str:
    """Return names as ranges, at most `limit` of them.

    Examples
    --------
    >>> compressed(["gpu0", "gpu1", "gpu2", "gpu5", "nic"])
    'gpu0-2, gpu5, nic'
    """
    ranges: list[str] = []
    for stem, found in groupby((_split(name) for name in names), key=lambda part: part[0]):
        numbers = [number for _, number in found]
        runs = groupby(enumerate(numbers), key=lambda pair: _run(*pair))
        for _, run in runs:
            members = [number for _, number in run]
            last = f"-{members[-1]}" if len(members) > 1 else ""
            ranges.append(f"{stem}{members[0]}{last}")
    more = f", … ({len(ranges) - limit} more)" if len(ranges) > limit else ""
    return ", ".join(ranges[:limit]) + more


def _split(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?)([0-9]*)", name, re.DOTALL)
    assert match is not None
    return match[1], match[2]


def _run(place: int, number: str) -> object:
    """Return what is equal for consecutive numbers, and different for everything else."""
    plain = number.isdigit() and str(int(number)) == number
    return int(number) - place if plain else (place, number)
