"""NUMA nodes and packages become CPUs with their memories.

A package with several nodes is one CPU with several; several packages that share a node are one
CPU too, since nothing tells which of them a device is near. A CPU's part is told by the name that
the operating system has for it: ``Intel(R) Xeon(R) Platinum 8480C``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from topo.catalogue.identities import architecture_named, processor, processor_named
from topo.catalogue.parts import catalogue
from topo.discovery.machine import (
    DiscoveredDevice,
    DiscoveredLink,
    DiscoveredPart,
    printable,
    unknown_place,
)
from topo.errors import Finding
from topo.graph import components
from topo.records import dataclass

_NOISE: Final = re.compile(r"\((?:R|TM|tm)\)|\bCPU\b|@.*|\d+-Core|\bProcessor\b")
_OLD_XEON: Final = re.compile(r"E([57])-?\s*(\d{4})\s*(v\d)?")
_LONGEST_NAME: Final = 24
_MOST_BITS: Final = 8192


@dataclass(frozen=True, slots=True)
class Package:
    """A socket: the nodes it overlaps, its CPU's name."""

    nodes: frozenset[int]
    model: str = ""


@dataclass(frozen=True, slots=True)
class Hosts:
    """CPUs, memories, their parts; where each NUMA node is.

    `cpu_of` gives a CPU's `id` by node; `split` are the CPUs with more than one node. `forwards`
    says by CPU whether its part is known to forward peer-to-peer traffic.
    """

    devices: tuple[DiscoveredDevice, ...]
    parts: tuple[DiscoveredPart, ...]
    socket_cable: str
    cpu_of: dict[int, str]
    split: frozenset[str]
    forwards: dict[str, bool]

    @property
    def first(self) -> str:
        """The CPU that a device is put under when nothing else is known."""
        return self.devices[0].id

    def place(self, nodes: Sequence[int]) -> tuple[str, int | None]:
        """Return CPU and, where it has several, NUMA node of what is near these nodes.

        The CPU is ``""`` where these nodes do not tell which of several it is.
        """
        cpus = list(dict.fromkeys(self.cpu_of[node] for node in nodes if node in self.cpu_of))
        if len(cpus) != 1:
            several = sum(device.kind == "cpu" for device in self.devices) > 1
            return "" if several else self.first, None
        return cpus[0], nodes[0] if len(nodes) == 1 and cpus[0] in self.split else None


def hosts_of(
    nodes: Mapping[int, int | None], packages: Sequence[Package] = (), model: str = ""
) -> Hosts:
    """Return the CPUs of a machine.

    Parameters
    ----------
    nodes
        The bytes of memory of each NUMA node with CPUs, by the number that the operating system
        has for it; without nodes, all is one CPU.
    packages
        The sockets, where they are told.
    model
        The CPU's name where packages do not say it.
    """

    def sharing(number: int) -> set[int]:
        shared = {near for package in packages if number in package.nodes for near in package.nodes}
        return shared & nodes.keys()

    cpus: list[DiscoveredDevice] = []
    memories: list[DiscoveredDevice] = []
    parts: dict[str, DiscoveredPart] = {}
    models: list[str] = []
    cpu_of: dict[int, str] = {}
    forwards: dict[str, bool] = {}
    for place, group in enumerate(components(sorted(nodes), sharing) or [[]]):
        sockets = [package for package in packages if package.nodes & {*group} or not group]
        name = next((socket.model for socket in sockets if socket.model), model)
        part, own_part = cpu_part(name)
        if own_part is not None:
            parts.setdefault(own_part.name, own_part)
        models.append(name)
        cpu = f"cpu {place}"
        cpu_of |= dict.fromkeys(group, cpu)
        shared = len(sockets) > 1 and group
        evidence = f"{len(sockets)} packages share this NUMA node" if shared else ""
        cpus.append(DiscoveredDevice(cpu, "cpu", part, numa=tuple(group), evidence=evidence))
        for number in group:
            size = nodes[number]
            memory = DiscoveredDevice(
                id=f"ram {number}",
                kind="memory",
                part="memory-unknown",
                parent=cpu,
                node=number if len(group) > 1 else None,
                facts=(("size", f"{size / 1e9:.4g} GB"),) if size else (),
            )
            memories.append(memory)
        like = parts[part].like if part in parts else part
        flag = catalogue().parts[like].flag("forwards-p2p")
        if flag is not None:
            forwards[cpu] = flag
    cables = {processor_named(name)[1] for name in models}
    return Hosts(
        devices=(*cpus, *memories),
        parts=tuple(parts.values()),
        socket_cable=cables.pop() if len(cables) == 1 else "",
        cpu_of=cpu_of,
        split=frozenset(cpu.id for cpu in cpus if len(cpu.numa) > 1),
        forwards=forwards,
    )


def with_generation(name: str, vendor: str, family: str, model: str) -> str:
    """Return a CPU's name with its generation by CPUID where it has no number, as in a cloud.

    Examples
    --------
    >>> with_generation("Intel(R) Xeon(R) CPU @ 2.00GHz", "GenuineIntel", "6", "143")
    'Intel Xeon (Sapphire Rapids)'
    """
    plain = " ".join(_NOISE.sub(" ", name).split())
    if re.search(r"[\d(]", plain) or not (family.isdecimal() and model.isdecimal()):
        return name
    cpu = processor(vendor, int(family[:4]), int(model[:4]))
    return f"{plain} ({cpu.title[1]})" if cpu is not None and cpu.title[1] else name


def bits_of(mask: str) -> list[int]:
    """Return the bits of a mask of CPUs or nodes, none where it is none or has no end.

    Parts between commas have 32 bits each, and an empty one is 0.

    Examples
    --------
    >>> bits_of("00000000,0000000f"), bits_of("0x00000001,,0x0"), bits_of("0xf...f")
    ([0, 1, 2, 3], [64], [])
    """
    value = 0
    for part in mask.split(","):
        digits = part.strip().removeprefix("0x")
        if not re.fullmatch(r"[0-9a-fA-F]{0,8}", digits) or value.bit_length() > _MOST_BITS:
            return []
        value = value << 32 | int(digits or "0", 16)
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def below_nodes(
    gpus: Iterable[DiscoveredDevice], node_of: Mapping[str, int]
) -> tuple[DiscoveredDevice, ...]:
    """Return GPUs, by `id`, below the CPUs of their NUMA nodes, and before them these CPUs.

    One whose node is not told is in a place of its own, where there are several nodes.
    """
    hosts = hosts_of(dict.fromkeys(sorted({*node_of.values()})))
    placed, places = list[DiscoveredDevice](), list[DiscoveredDevice]()
    for gpu in gpus:
        cpu, node = hosts.place([node_of[gpu.id]] if gpu.id in node_of else [])
        if not cpu:
            places.append(unknown_place(f"place of {gpu.id}"))
        placed.append(replace(gpu, parent=cpu or places[-1].id, node=node, link=DiscoveredLink()))
    return (*hosts.devices, *places, *placed)


def nodes_not_told(what: str, help: str) -> Finding:
    """Return the finding that a source tells no NUMA node of several GPUs."""
    message = f"the NUMA nodes of the {what} are not told: all were put under one CPU"
    return Finding("numa-unknown", message, severity="warning", help=help)


def cpu_part(model: str) -> tuple[str, DiscoveredPart | None]:
    """Return the part's name, and the part itself where the catalogue has none.

    Examples
    --------
    >>> cpu_part("AMD EPYC 7763 64-Core Processor")[0]
    'epyc-7763'
    >>> cpu_part("Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz")[1].like
    'xeon-scalable'
    """
    plain = " ".join(_NOISE.sub(" ", model).split())
    if not plain:
        return "cpu-unknown", None
    parts = catalogue().parts
    like, _ = processor_named(plain)
    number = plain.split()[-1].lower().replace("+", "plus")
    names = [f"xeon-{number}", f"epyc-{number}"]
    if old := _OLD_XEON.search(plain):
        names.append(f"xeon-e{old[1]}-{old[2]}{old[3] or ''}")
    for name in names:
        if name in parts and parts[name].kind == "cpu" and like != "cpu-unknown":
            return name, None
    slug = ""
    for word in re.findall(r"[a-z0-9]+", plain.lower()):
        longer = f"{slug}-{word}" if slug else word[:_LONGEST_NAME]
        if len(longer) > _LONGEST_NAME:
            break
        slug = longer
    if not slug or not slug[0].isalpha() or slug in parts:
        slug = f"host-{slug}".strip("-")
    architecture = architecture_named(plain)
    facts = (("architecture", architecture),) if architecture else ()
    return slug, DiscoveredPart(slug, like, printable(plain), facts)
