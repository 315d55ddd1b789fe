"""What is written in a box and beside a wire."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.units import format_bit_rate, format_rate, format_size
from topo.views.diagram.metrics import Line, shortened, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.description.description import Basis, Device
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology
    from topo.views.diagram.group import Box, Wire


_NAME, _TEXT = 12.0, 10.0
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
    "memory-bus": "memory bus",
    "cxl": "CXL",
}
_UNLIMITED = "not modelled"
# Bytes/s up to which a wire is drawn with so many points.
_PENS = ((10e9, 0.8), (40e9, 1.4), (70e9, 2.0), (150e9, 2.8), (350e9, 3.8), (math.inf, 5.0))


def pen(rate: float | None) -> float:
    """Return the width of a wire of `rate` bytes/s, in points; unknown ones are thin."""
    if rate is None:
        return _PENS[0][1]
    return next(width for limit, width in _PENS if rate <= limit)


# --- boxes ----------------------------------------------------------------------------------------


def box_lines(topology: Topology, box: Box, basis: Basis) -> tuple[Line, ...]:
    """Return the lines of a box: name, part, key figures."""
    device = box.devices[0]
    lines = [Line(_name(box), _NAME, bold=True)]
    many = f"{box.count}x " if box.count > 1 else ""
    lines += [
        Line(text, _TEXT) for text in wrapped(many + _part(device), _TITLE_POINTS, _TEXT, lines=2)
    ]
    each = " each" if box.count > 1 else ""
    lines += [Line(text + each, _TEXT, tone="soft") for text in _figures(topology, device, basis)]
    if box.count == 1 and device.pci and box.servers == 1:
        lines.append(Line(device.pci[0], _TEXT, tone="soft"))
    return tuple(lines)


def _name(box: Box) -> str:
    device = box.devices[0]
    label = device.label if box.count == 1 else ""
    words = [box.name]
    if label and label.lower() != box.name.lower():
        words.append(f"({shortened(label, 24)})")
    elif device.slot_name and box.count == 1:
        words.append(f"({shortened(device.slot_name, 12)})")
    elif device.role:
        words.append(f"({shortened(device.role, 12)})")
    return " ".join(words)


def _part(device: Device) -> str:
    """Return the part's title without maker, article and subordinate clauses."""
    title = device.part.title or device.part.name
    title = re.split(r" \(|, | with | of ", title, maxsplit=1)[0]
    title = re.sub(r"^(an?|the) ", "", title)
    for maker in _MAKERS:
        title = title.removeprefix(maker)
    return title or device.part.name


def _figures(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    maker = _FIGURES.get(device.kind)
    return tuple(text for text in maker(topology, device, basis) if text) if maker else ()


def _gpu(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    del topology, basis
    memory, hbm = device.part.figure("memory"), device.part.figure("hbm")
    said = [format_size(memory.value)] if memory and memory.value else []
    said += [format_rate(hbm.value)] if hbm and hbm.value else []
    return (", ".join(said),)


def _card(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    chip = topology.resources.get(f"{device.name}/chip in")
    return (f"chip {_bits(chip, basis)}" if chip else "",)


def _memory(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    bus = topology.resources.get(f"{device.name}/bus")
    channels = device.part.figure("channels")
    count = f"{channels.value:g} channels" if channels and channels.value else ""
    return (count, f"bus {_rate(bus, basis)}" if bus else "")


def _storage(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    sides = (topology.resources.get(f"{device.name}/{side}") for side in ("read", "write"))
    said = {side.name.rpartition("/")[2]: _rate(side, basis) for side in sides if side}
    if set(said.values()) == {_UNLIMITED}:
        return (f"rate {_UNLIMITED}",)
    return tuple(f"{side} {rate}" for side, rate in said.items())


def _host(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    del topology, basis
    cores = device.part.figure("cores")
    return (f"{cores.value:g} cores" if cores and cores.value else "",)


def _chips(topology: Topology, device: Device, basis: Basis) -> tuple[str, ...]:
    del topology, basis
    chips = device.part.figure("chips")
    return (f"{chips.value:g} chips" if chips and chips.value and chips.value > 1 else "",)


_FIGURES: dict[str, Callable[[Topology, Device, Basis], tuple[str, ...]]] = {
    "gpu": _gpu,
    "nic": _card,
    "dpu": _card,
    "memory": _memory,
    "cxl-memory": _memory,
    "storage": _storage,
    "nvme": _storage,
    "hba": _storage,
    "cpu": _host,
    "root-complex": _host,
    "nvswitch": _chips,
    "pcie-switch": _chips,
}


def _rate(resource: Resource, basis: Basis) -> str:
    value = resource.capacity.at(basis).value
    if value is None:
        return "unknown"
    return format_rate(value) if math.isfinite(value) else _UNLIMITED


def _bits(resource: Resource, basis: Basis) -> str:
    value = resource.capacity.at(basis).value
    if value is None:
        return "unknown"
    return format_bit_rate(value) if math.isfinite(value) else _UNLIMITED


def socket_title(box: Box) -> str:
    """Return what is written on the frame round a CPU and what hangs on it."""
    device = box.devices[0]
    numa = ""
    if device.numa:
        first, last = device.numa[0], device.numa[-1]
        numa = f", NUMA {first}" if first == last else f", NUMA {first}-{last}"
    return f"socket of {box.name}{numa}" if device.kind == "cpu" else f"under {box.name}"


def server_title(server: str, servers: int) -> str:
    """Return what is written on the frame round a server."""
    return f"{server}: {servers} servers alike" if servers > 1 else server


# --- wires ----------------------------------------------------------------------------------------


def wire_lines(topology: Topology, wire: Wire, basis: Basis) -> tuple[Line, ...]:
    """Return the two lines beside a wire: what it is, and the rate of one direction of one."""
    link = wire.links[0]
    cable = link.cable
    each = " each" if wire.count > 1 else ""
    if link.layer == "memory":
        return (Line(_counted(wire.count, "memory bus"), _TEXT, tone="soft"),)
    words = _medium(cable.medium, cable.lanes)
    if cable.count > 1:
        words = f"{cable.count}x {words}"
    name = _counted(wire.count, words)
    value = rate_of(topology, wire, basis)
    if value is None:
        rate = "rate unknown"
    elif not math.isfinite(value):
        rate = "unlimited"
    else:
        rate = format_bit_rate(value) if link.layer == "network" else format_rate(value)
    lines = [Line(name, _TEXT, tone="soft"), Line(rate + each, _TEXT, tone="soft")]
    node = _node(wire)
    return (*lines, Line(node, _TEXT, tone="soft")) if node else tuple(lines)


def mesh_lines(topology: Topology, wires: tuple[Wire, ...], basis: Basis) -> tuple[Line, ...]:
    """Return the lines of the bar that stands for links between GPUs without a switch."""
    words = wire_lines(topology, replace(wires[0], count=1), basis)
    devices = {end.device for wire in wires for link in wire.links for end in (link.a, link.b)}
    links = sum(wire.count for wire in wires)
    pairs = {frozenset((link.a.device, link.b.device)) for wire in wires for link in wire.links}
    full = len(pairs) == len(devices) * (len(devices) - 1) // 2 and len(devices) > 2  # noqa: PLR2004
    shape = "every GPU to every other" if full else "GPU to GPU"
    return (
        Line(words[0].text.split(" ")[0] if full else words[0].text, _NAME, bold=True),
        Line(f"{shape}: {links} x {words[-1].text}", _TEXT, tone="soft"),
    )


def rate_of(topology: Topology, wire: Wire, basis: Basis) -> float | None:
    """Return bytes/s of one link of the wire, one direction; a memory's is its bus."""
    link = wire.links[0]
    resource = link.forward
    if link.layer == "memory":
        ends = (link.a.device, link.b.device)
        buses = (topology.resources.get(f"{end}/bus") for end in ends)
        resource = next((bus for bus in buses if bus is not None), None)
    return resource.capacity.at(basis).value if resource else None


def _counted(count: int, words: str) -> str:
    return f"{count} x {words}" if count > 1 else words


def _medium(medium: str, lanes: int | None) -> str:
    family, _, rest = medium.partition(" ")
    words = [_FAMILIES.get(family, family)]
    if rest:
        words.append(rest.upper() if family == "infiniband" else rest)
    if lanes:
        words.append(f"x{lanes}")
    return " ".join(words)


def _node(wire: Wire) -> str:
    """Return the NUMA nodes that the links hang on, when the file says."""
    sides = {end.side for link in wire.links for end in (link.a, link.b)}
    nodes = sorted(side for side in sides if side.startswith("numa"))
    if not nodes:
        return ""
    last = f"-{nodes[-1].removeprefix('numa')}" if len(nodes) > 1 else ""
    return f"NUMA {nodes[0].removeprefix('numa')}{last}"
