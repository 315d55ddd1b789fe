"""NUMA nodes, packages and the CPU's name from /sys and /proc."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.discovery.numa import NumaNode, Package, hosts_of
from topo.discovery.pci import read_address

if TYPE_CHECKING:
    from topo.discovery.numa import Hosts
    from topo.discovery.sysfs_files import Tree


_NODES: Final = "/sys/devices/system/node"
_CPUS: Final = "/sys/devices/system/cpu"
_GPUS: Final = "/proc/driver/nvidia/gpus"
_MEMORY: Final = re.compile(r"MemTotal:\s*(\d{1,15})\s*kB")
_MODEL: Final = re.compile(r"(?m)^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$")
_GPU_NODE: Final = re.compile(r"Node:\s*(\d{1,4})\b")
_MOST: Final = 8192


@dataclass(frozen=True, slots=True)
class Processors:
    """The CPUs, which NUMA node each logical CPU is in, and the nodes that are no host memory.

    `gpu_nodes` are memory of GPUs by the driver's word, `bare` other nodes without CPUs; `gpus`
    are the addresses that NVIDIA's driver has.
    """

    hosts: Hosts
    node_of: dict[int, int]
    gpu_nodes: tuple[int, ...]
    bare: tuple[int, ...]
    gpus: tuple[str, ...]

    def node_near(self, cpus: str, mask: str) -> int | None:
        """Return the one NUMA node of a ``local_cpulist`` or ``local_cpus``, else `None`."""
        found = {self.node_of.get(cpu) for cpu in _listed(cpus) or _masked(mask)}
        return found.pop() if len(found) == 1 else None


def read_processors(tree: Tree) -> Processors:
    """Read what the system says of its CPUs."""
    gpus = tree.names(_GPUS)
    texts = [tree.text(f"{_GPUS}/{gpu}/numa_status") for gpu in gpus]
    of_gpus = {int(found[1]) for text in texts if (found := _GPU_NODE.search(text))}
    nodes: list[NumaNode] = []
    bare: list[int] = []
    node_of: dict[int, int] = {}
    for number in _numbered(tree.names(_NODES), "node"):
        here = f"{_NODES}/node{number}"
        cpus = _listed(tree.text(f"{here}/cpulist")) or _masked(tree.text(f"{here}/cpumap"))
        if cpus:
            found = _MEMORY.search(tree.text(f"{here}/meminfo"))
            nodes.append(NumaNode(number, int(found[1]) * 1024 if found else None))
            node_of |= dict.fromkeys(cpus, number)
        elif number not in of_gpus:
            bare.append(number)
    model = _MODEL.search(tree.text("/proc/cpuinfo"))
    hosts = hosts_of(nodes, _packages(tree, node_of), model[1].strip() if model else "")
    known = tuple(address for gpu in gpus if (address := read_address(gpu)))
    return Processors(hosts, node_of, tuple(sorted(of_gpus)), tuple(bare), known)


def _packages(tree: Tree, node_of: dict[int, int]) -> list[Package]:
    found: dict[str, set[int]] = {}
    for cpu in _numbered(tree.names(_CPUS), "cpu"):
        text = tree.text(f"{_CPUS}/cpu{cpu}/topology/physical_package_id")
        if text.isdecimal() and cpu in node_of:
            found.setdefault(text, set()).add(node_of[cpu])
    return [Package(frozenset(nodes)) for nodes in found.values()]


def _numbered(names: list[str], stem: str) -> list[int]:
    texts = [name.removeprefix(stem) for name in names if name.startswith(stem)]
    return sorted(int(text) for text in texts if re.fullmatch(r"\d{1,4}", text))


def _listed(text: str) -> list[int]:
    """Return the numbers of ``0-7,16-23``."""
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if found is not None:
            first, last = int(found[1]), int(found[2] or found[1])
            numbers += range(first, min(last, _MOST) + 1)
    return numbers


def _masked(text: str) -> list[int]:
    """Return the bits of ``00000000,0000ffff``."""
    digits = text.replace(",", "").strip()
    if not re.fullmatch(r"[0-9a-fA-F]{1,2048}", digits):
        return []
    value = int(digits, 16)
    return [at for at in range(value.bit_length()) if value >> at & 1]
