"""PCI functions from /sys/bus/pci: the real path of each is its place in the tree.

References
----------
Linux, ``Documentation/ABI/testing/sysfs-bus-pci``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import NVIDIA
from topo.discovery.machine import printable
from topo.discovery.pci import Function, HostBridge, LinkSpeed, card_of, generation_of, read_address
from topo.discovery.sysfs_config import links_of
from topo.discovery.sysfs_net import network_of

if TYPE_CHECKING:
    from topo.discovery.sysfs_cpu import Processors
    from topo.discovery.sysfs_files import Tree


NO_PLACE: Final = "bus"  # how the parent of a function begins whose path does not tell it

_DEVICES: Final = "/sys/bus/pci/devices"
_SLOTS: Final = "/sys/bus/pci/slots"
_ROOT: Final = re.compile(r"pci([0-9a-f]{4,8}:[0-9a-f]{2})", re.IGNORECASE)
_SECTOR: Final = 512


@dataclass(frozen=True, slots=True)
class PciTree:
    """The functions, and the host bridges that they hang on."""

    functions: tuple[Function, ...]
    hosts: tuple[HostBridge, ...]


def read_pci(tree: Tree, processors: Processors) -> PciTree:
    """Read all PCI functions."""
    slots = _slots(tree)
    functions = []
    for name in tree.names(_DEVICES):
        address = read_address(name)
        here = tree.resolve(f"{_DEVICES}/{name}")
        if address and here:
            functions.append(_function(tree, here, address, slots, processors))
    known = {one.id for one in functions}
    node_of: dict[str, int | None] = {}
    for one in functions:
        if one.parent not in known:
            node_of[one.parent] = node_of.get(one.parent) or one.node
    return PciTree(tuple(functions), _hosts(functions, node_of, processors))


def _hosts(
    functions: list[Function], node_of: dict[str, int | None], processors: Processors
) -> tuple[HostBridge, ...]:
    """Return the host bridges, each by the NUMA node that most of what hangs on it says."""
    above = {one.id: one.parent for one in functions}
    for one in functions:
        top = one.id
        for _ in range(len(above)):
            if above[top] not in above:
                break
            top = above[top]
        if node_of.get(above[top]) is None:
            node_of[above[top]] = one.node
    found = []
    for root, node in sorted(node_of.items()):
        cpu, part = processors.hosts.place([node] if node is not None else [])
        said = f"host bridge of bus {printable(root.removeprefix(NO_PLACE).strip())}"
        found.append(HostBridge(root, cpu, part, said))
    return tuple(found)


def _slots(tree: Tree) -> dict[str, str]:
    """Return the label of a slot by the address of a card in it."""
    found = {}
    for name in tree.names(_SLOTS):
        address = read_address(tree.text(f"{_SLOTS}/{name}/address"))
        if address:
            found[card_of(address)] = printable(name)
    return found


def _function(
    tree: Tree, here: str, address: str, slots: dict[str, str], processors: Processors
) -> Function:
    vendor = _hexadecimal(tree.text(f"{here}/vendor"))
    now, most = _links(tree, here)
    network = network_of(tree, here)
    drives, size, model = _drive(tree, here)
    return Function(
        id=address,
        parent=_parent(here, address),
        address=address,
        code=_hexadecimal(tree.text(f"{here}/class")).zfill(6),
        vendor=vendor or (NVIDIA if address in processors.gpus else ""),
        device=_hexadecimal(tree.text(f"{here}/device")),
        text=model,
        current=now,
        most=most,
        node=_node(tree, here, processors),
        slot=slots.get(card_of(address), ""),
        nets=network.nets,
        rdma=network.rdma,
        ports=network.rates,
        network=network.sort,
        drives=drives,
        size=size,
        virtual=True if tree.resolve(f"{here}/physfn") else None,
    )


def _parent(here: str, address: str) -> str:
    """Return the bridge or host bridge above, by the real path of a function."""
    steps = here.split("/")
    for step in reversed(steps[:-1]):
        if read_address(step):
            return read_address(step)
        if found := _ROOT.fullmatch(step):
            return found[1].lower()
    return f"{NO_PLACE} {address.rpartition(':')[0]}"


def _node(tree: Tree, here: str, processors: Processors) -> int | None:
    text = tree.text(f"{here}/numa_node")
    if re.fullmatch(r"\d{1,4}", text):
        return int(text)
    if text:
        return None  # -1: the firmware does not know
    cpus, mask = tree.text(f"{here}/local_cpulist"), tree.text(f"{here}/local_cpus")
    return processors.node_near(cpus, mask)


def _hexadecimal(text: str) -> str:
    plain = text.lower().removeprefix("0x")
    return plain if re.fullmatch(r"[0-9a-f]{1,8}", plain) else ""


def _links(tree: Tree, here: str) -> tuple[LinkSpeed, LinkSpeed]:
    """Return the link as it is and at its most: the kernel's words, else the config space."""
    now, most = (
        LinkSpeed(
            generation_of(tree.text(f"{here}/{word}_link_speed")),
            _width(tree.text(f"{here}/{word}_link_width")),
        )
        for word in ("current", "max")
    )
    if not now and not most:
        return links_of(tree.data(f"{here}/config"))
    return now, most


def _width(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 4 and int(text) in LANES else None  # noqa: PLR2004


def _drive(tree: Tree, here: str) -> tuple[tuple[str, ...], int | None, str]:
    """Return the names of an NVMe drive, its bytes and its model."""
    spaces: dict[str, str] = {}
    model = ""
    for name in tree.names(f"{here}/nvme"):
        model = model or printable(tree.text(f"{here}/nvme/{name}/model"))
        for space in tree.names(f"{here}/nvme/{name}"):
            if re.fullmatch(r"nvme\d+n\d+", space):
                spaces[space] = f"{here}/nvme/{name}/{space}"
    for name in tree.names(f"{here}/block"):
        spaces.setdefault(name, f"{here}/block/{name}")
    texts = [tree.text(f"{path}/size") for path in spaces.values()]
    sectors = sum(int(text) for text in texts if re.fullmatch(r"\d{1,15}", text))
    return tuple(printable(name) for name in spaces), sectors * _SECTOR or None, model
