"""Linux's /sys and /proc: of this machine, or a copy as a folder or a tar archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.discovery.machine import Machine
from topo.discovery.nvswitches import joined
from topo.discovery.pci import HostBridge
from topo.discovery.pci_tree import by_address, devices_of, hidden_ports
from topo.discovery.sysfs_archive import Archive
from topo.discovery.sysfs_cpu import read_processors
from topo.discovery.sysfs_fabrics import read_fabrics
from topo.discovery.sysfs_files import Folder
from topo.discovery.sysfs_pci import NO_PLACE, read_pci
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more

if TYPE_CHECKING:
    from pathlib import Path

    from topo.discovery.pci import Function
    from topo.discovery.sysfs_cpu import Processors
    from topo.discovery.sysfs_files import Tree
    from topo.discovery.sysfs_pci import PciTree


def read(data: bytes, name: str) -> Machine:
    """Read a copied tree from a tar archive, as ``tar czf x.tar.gz sys proc`` makes it.

    Parameters
    ----------
    data, name
        The archive, and what messages call it.

    Raises
    ------
    ExchangeError
        If it is no archive, or nothing of a machine is in it.
    """
    tree = Archive(data, name)
    cut = Finding(
        "broken-archive",
        "the archive breaks off: what came before was read",
        severity="warning",
        help="pack it anew on the machine",
    )
    return _sighting(tree, name, (cut,) if tree.broken else ())


def read_folder(folder: Path, name: str) -> Machine:
    """Read a folder that has ``sys`` in it: a copied tree, or ``/`` for this machine.

    Parameters
    ----------
    folder
        The folder, ``sys`` itself, or one that has a single such folder in it.
    name
        What messages and the machine are called after.

    Raises
    ------
    ExchangeError
        If nothing of a machine is in it.
    """
    root = folder.resolve()
    if root.name == "sys" and not (root / "sys").exists():
        root = root.parent
    if not (root / "sys").exists() and root.is_dir():
        inner = [child for child in sorted(root.iterdir())[:1000] if (child / "sys").is_dir()]
        root = inner[0] if len(inner) == 1 else root
    return _sighting(Folder(root), name, ())


def _sighting(tree: Tree, name: str, cut: tuple[Finding, ...]) -> Machine:
    processors = read_processors(tree)
    pci = read_pci(tree, processors)
    if not pci.functions and not processors.node_of:
        message = f"`{name}` has no sys/bus/pci/devices and no sys/devices/system/node in it"
        help = "give a folder or archive with `sys` in it, or / for this machine"
        raise ExchangeError(Finding("nothing-there", message, help=help))
    hosts = processors.hosts
    bridges = pci.hosts or [HostBridge("none", hosts.first)]
    grown = devices_of(by_address(pci.functions), bridges, hosts.forwards)
    cards = [device for device in grown.devices if device.kind in ("nic", "dpu")]
    fabrics = read_fabrics(tree, cards)
    devices = (*fabrics.devices, *hosts.devices, *grown.devices)
    devices, cables, guesses = joined(devices, fabrics.cables)
    return Machine(
        kind="sysfs",
        source="Linux's /sys",
        file=name,
        devices=devices,
        cables=cables,
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        notes=("Speeds are the most that both ends of a link can. /sys knows no NVLink.",),
        left_out=grown.left_out,
        findings=(
            *(*cut, *_memory(processors), *_io(pci)),
            *(*grown.findings, *fabrics.findings, *guesses),
        ),
    )


def _memory(processors: Processors) -> tuple[Finding, ...]:
    found = []
    if processors.gpu_nodes:
        numbers = ", ".join(str(node) for node in processors.gpu_nodes)
        message = f"NUMA nodes {numbers} are memory of GPUs, not of the host"
        found.append(Finding("gpu-memory-nodes", message, severity="note"))
    if processors.bare:
        numbers = ", ".join(str(node) for node in processors.bare)
        message = f"NUMA nodes {numbers} have no CPUs and were left out: CXL, or memory of a device"
        found.append(Finding("memory-only-nodes", message, severity="note"))
    return tuple(found)


def _io(pci: PciTree) -> tuple[Finding, ...]:
    if pci.functions:
        lost = [one for one in pci.functions if one.parent.startswith(NO_PLACE)]
        return (*hidden_ports(pci.functions, NO_PLACE), *_placeless(lost))
    message = "there are no PCI devices: they were not copied, or there is none"
    help = "copy sys/bus/pci and sys/devices too"
    return (Finding("no-io", message, severity="warning", help=help),)


def _placeless(lost: list[Function]) -> tuple[Finding, ...]:
    if not lost:
        return ()
    message = f"{and_more([one.address for one in lost])}: copied without their place in the tree"
    help = "copy sys/devices too, and keep the links of sys/bus/pci/devices"
    return (Finding("no-tree", message, severity="warning", help=help),)
