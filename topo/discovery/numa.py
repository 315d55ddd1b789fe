"""NUMA nodes and packages become CPUs with their memories.

A package with several nodes is one CPU with several; several packages that share a node are one
CPU too, since nothing tells which of them a device is near.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.discovery.cpu_models import cpu_part, socket_cable
from topo.discovery.machine import DiscoveredDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.discovery.machine import DiscoveredPart


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with CPUs: its number, its memory in bytes."""

    number: int
    size: int | None = None


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
        """Return CPU and, where it has several, NUMA node of what is near these nodes."""
        cpus = list(dict.fromkeys(self.cpu_of[node] for node in nodes if node in self.cpu_of))
        if len(cpus) != 1:
            return self.first, None
        one = nodes[0] if len(nodes) == 1 and cpus[0] in self.split else None
        return cpus[0], one


def hosts_of(nodes: Sequence[NumaNode], packages: Sequence[Package], model: str = "") -> Hosts:
    """Return the CPUs of a machine.

    Parameters
    ----------
    nodes, packages
        As the operating system numbers them; without nodes, all is one CPU.
    model
        The CPU's name where packages do not say it.
    """
    known = {node.number: node for node in sorted(nodes, key=lambda node: node.number)}
    groups = _joined(list(known), packages)
    devices: list[DiscoveredDevice] = []
    memories: list[DiscoveredDevice] = []
    parts: dict[str, DiscoveredPart] = {}
    models: list[str] = []
    cpu_of: dict[int, str] = {}
    for at, group in enumerate(groups or [[]]):
        mine = [one for one in packages if one.nodes & {*group} or not group]
        name = next((one.model for one in mine if one.model), model)
        part, own = cpu_part(name)
        if own is not None:
            parts.setdefault(own.name, own)
        models.append(name)
        cpu = f"cpu {at}"
        cpu_of |= dict.fromkeys(group, cpu)
        said = f"{len(mine)} packages share this NUMA node" if len(mine) > 1 and group else ""
        devices.append(DiscoveredDevice(cpu, "cpu", part, numa=tuple(group), evidence=said))
        memories += [_memory(known[node], cpu, split=len(group) > 1) for node in group]
    return Hosts(
        (*devices, *memories),
        tuple(parts.values()),
        socket_cable(models),
        cpu_of,
        frozenset(one.id for one in devices if len(one.numa) > 1),
        _forwards(devices, parts),
    )


def _forwards(
    cpus: Sequence[DiscoveredDevice], parts: dict[str, DiscoveredPart]
) -> dict[str, bool]:
    from topo.catalogue.load import catalogue

    found = {}
    for cpu in cpus:
        name = parts[cpu.part].like if cpu.part in parts else cpu.part
        flag = catalogue().parts[name].flag("forwards-p2p")
        if flag is not None:
            found[cpu.id] = flag
    return found


def _memory(node: NumaNode, cpu: str, *, split: bool) -> DiscoveredDevice:
    facts = (("size", f"{node.size / 1e9:.4g} GB"),) if node.size else ()
    return DiscoveredDevice(
        id=f"ram {node.number}",
        kind="memory",
        part="memory-unknown",
        parent=cpu,
        node=node.number if split else None,
        facts=facts,
    )


def _joined(nodes: list[int], packages: Sequence[Package]) -> list[list[int]]:
    """Return the groups of nodes that packages make, in order."""
    group = {node: [node] for node in nodes}
    for package in packages:
        mine = [node for node in nodes if node in package.nodes]
        for node in mine[1:]:
            if group[node] is not group[mine[0]]:
                merged = sorted({*group[mine[0]], *group[node]})
                for one in merged:
                    group[one] = merged
    return list({id(members): members for members in group.values()}.values())
