"""hwloc's XML: what ``lstopo x.xml`` writes, of versions 1 to 3.

References
----------
hwloc, ``topology-xml.c`` and ``pci-common.c``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.discovery.hwloc_fabric import fabric_of
from topo.discovery.hwloc_read import read_file
from topo.discovery.machine import Machine, printable
from topo.discovery.numa import NumaNode, Package, hosts_of
from topo.discovery.nvswitches import joined
from topo.discovery.pci import Function, HostBridge
from topo.discovery.pci_tree import by_address, devices_of, hidden_ports
from topo.errors import Finding

if TYPE_CHECKING:
    from topo.discovery.hwloc_read import HwlocFile, Thing
    from topo.discovery.numa import Hosts
    from topo.discovery.pci_tree import PciDevices


_GPU_MEMORY: Final = "GPUMemory"
_ACTIVE: Final = re.compile(r"Port(\d{1,2})State")
_BUSSES: Final = re.compile(r"\[([0-9a-fA-F]+)-([0-9a-fA-F]+)\]")


def read(data: bytes, name: str) -> Machine:
    """Read an hwloc file.

    Parameters
    ----------
    data, name
        The file, and what messages call it.

    Raises
    ------
    ExchangeError
        If it is not XML, or XML of another kind.
    """
    file = read_file(data, name)
    hosts = _hosts(file)
    reader = _Reader(file, hosts)
    reader.visit(file.machine, "", file.machine.nodes())
    bridges = reader.bridges or [HostBridge("none", hosts.first)]
    grown = devices_of(by_address(reader.functions), bridges, hosts.forwards)
    devices = (*hosts.devices, *grown.devices)
    names = {**reader.packages, **reader.names(grown)}
    fabric = fabric_of(file.matrices, names, {one.id: one for one in devices})
    devices, cables, guesses = joined(devices, fabric.cables)
    return Machine(
        kind="hwloc",
        source=f"hwloc XML, version {file.version}",
        file=name,
        devices=devices,
        cables=cables,
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        notes=(
            "hwloc tells rates of links, not generation and width: those are guesses of that rate.",
        ),
        left_out=(*grown.left_out, *reader.left_out),
        findings=(
            *(*_version(file), *_filtered(file), *grown.findings),
            *(*_hidden(file, reader.functions), *fabric.findings, *guesses),
        ),
    )


# --- CPUs -----------------------------------------------------------------------------------------


def _hosts(file: HwlocFile) -> Hosts:
    nodes = [
        NumaNode(int(number), _size(thing.get("local_memory")))
        for thing in file.things("NUMANode")
        if (number := thing.get("os_index")).isdecimal()
        and len(number) <= 4  # noqa: PLR2004
        and thing.get("subtype") != _GPU_MEMORY
        and "PCIBusID" not in thing.infos
    ]
    sockets = file.things("Package")
    packages = [Package(frozenset(one.nodes()), _model(one, file)) for one in sockets]
    return hosts_of(nodes, packages, _model(file.machine, file))


def _model(thing: Thing, file: HwlocFile) -> str:
    infos = {**file.machine.infos, **thing.infos}
    return infos.get("CPUModel", "") or infos.get("CPUVendor", "")


def _size(text: str) -> int | None:
    """Return bytes of ``68719476736`` or ``67108864KiB``."""
    found = re.fullmatch(r"(\d{1,18})\s*(KiB)?", text.strip())
    return int(found[1]) * (1024 if found[2] else 1) or None if found else None


# --- the PCI tree ---------------------------------------------------------------------------------


class _Reader:
    """Walks the objects and collects PCI functions with what the system calls them."""

    def __init__(self, file: HwlocFile, hosts: Hosts) -> None:
        self.file = file
        self.hosts = hosts
        self.functions: list[Function] = []
        self.bridges: list[HostBridge] = []
        self.packages: dict[str, str] = {}
        self.left_out: list[str] = []
        self._objects: dict[str, str] = {}

    def visit(self, thing: Thing, parent: str, nodes: tuple[int, ...]) -> None:
        """Take an object and all below it; `parent` is the bridge it hangs on."""
        here = parent
        nodes = thing.nodes() or nodes
        if thing.type == "Package":
            cpu, _ = self.hosts.place(thing.nodes())
            self.packages[f"Package:{thing.get('gp_index')}"] = cpu
        elif thing.is_host_bridge:
            here = self._host(nodes, thing.get("bridge_pci"))
        elif thing.type in ("Bridge", "PCIDev"):
            here = self._function(thing, parent or self._host(nodes, ""))
        for child in thing.children:
            self.visit(child, here, nodes)

    def _host(self, nodes: tuple[int, ...], buses: str) -> str:
        cpu, node = self.hosts.place(nodes)
        key = f"host {len(self.bridges)}"
        said = f"host bridge of busses {printable(buses)}" if buses else ""
        self.bridges.append(HostBridge(key, cpu, node, said))
        return key

    def _function(self, thing: Thing, parent: str) -> str:
        code, vendor, device = thing.numbers()
        key = f"pci {len(self.functions)}"
        inner = [child for child in thing.children if child.type == "OSDev"]
        self._objects |= {
            f"{one.type}:{one.get('gp_index')}": key
            for one in (thing, *inner)
            if one.get("gp_index")
        }
        bridge = thing.type == "Bridge"
        self.functions.append(
            Function(
                id=key,
                parent=parent,
                address=thing.address,
                code="0604" if bridge and not code.strip("0") else code.strip("0") and code,
                vendor=vendor,
                device=device,
                text=_text(thing, inner),
                rate=thing.rate(),
                slot=thing.infos.get("PCISlot", ""),
                nets=self._named(inner, "network", but="openfabrics"),
                rdma=self._named(inner, "openfabrics"),
                ports=_ports(inner),
                drives=self._named(inner, "storage"),
                size=_drive_size(inner),
            )
        )
        return key

    def _named(self, inner: list[Thing], sort: str, but: str = "") -> tuple[str, ...]:
        found = [(one, self.file.sorts(one)) for one in inner]
        return tuple(
            printable(one.get("name"))
            for one, sorts in found
            if sort in sorts and but not in sorts and one.get("name")
        )

    def names(self, grown: PciDevices) -> dict[str, str]:
        """Return the devices by the names that matrices have for their objects."""
        return {
            name: grown.device_of[key]
            for name, key in self._objects.items()
            if key in grown.device_of
        }


def _text(thing: Thing, inner: list[Thing]) -> str:
    """Return what people call it: the GPU's or drive's model."""
    if "NVSwitch" in (thing.get("subtype"), *(one.get("subtype") for one in inner)):
        return "NVSwitch"
    for one in inner:
        for name in ("GPUModel", "Model"):
            if one.infos.get(name):
                return printable(one.infos[name])
    return printable(thing.infos.get("PCIDevice", ""))


def _ports(inner: list[Thing]) -> tuple[None, ...]:
    """Return one entry for each port of the RDMA devices; hwloc tells no rates."""
    return (None,) * sum(
        1 for one in inner for name in one.infos if _ACTIVE.fullmatch(name) is not None
    )


def _drive_size(inner: list[Thing]) -> int | None:
    """Return the bytes of a drive: hwloc's sizes are KiB."""
    for one in inner:
        found = re.fullmatch(r"(\d{1,15})\s*(?:KiB)?", one.infos.get("Size", "").strip())
        if found and one.get("name").startswith("nvme"):
            return int(found[1]) * 1024
    return None


# --- what is odd ----------------------------------------------------------------------------------


def _version(file: HwlocFile) -> tuple[Finding, ...]:
    if file.major > 1:
        return ()
    return (
        Finding(
            "hwloc-version",
            "hwloc's version 1: old, and without the matrices of links between GPUs",
            severity="warning",
            help="write it anew with a newer lstopo: lstopo x.xml",
        ),
    )


def _filtered(file: HwlocFile) -> tuple[Finding, ...]:
    devices, bridges = file.things("PCIDev"), file.things("Bridge")
    if not devices and not any(one.address for one in bridges):
        return (
            Finding(
                "no-io",
                "the file has no PCI devices: I/O was filtered out, or there is none",
                severity="warning",
                help="write it with them: lstopo --whole-io x.xml",
            ),
        )
    hidden = any(one.is_host_bridge for one in bridges) and not any(one.address for one in bridges)
    far = any(":00:" not in f":{one.address.partition(':')[2]}" for one in devices if one.address)
    if not bridges or (hidden and far and not _flat(bridges)):
        return (
            Finding(
                "no-bridges",
                "the file has PCI devices and no bridges: which of them share a switch is not told",
                severity="warning",
                help="write it with them: lstopo --whole-io x.xml",
            ),
        )
    return ()


def _hidden(file: HwlocFile, functions: list[Function]) -> tuple[Finding, ...]:
    """Return the finding about GPUs without a port above them, unless ports were filtered out."""
    bridges = file.things("Bridge")
    whole = bridges and (_flat(bridges) or any(one.address for one in bridges))
    return hidden_ports(functions) if whole else ()


def _flat(bridges: list[Thing]) -> bool:
    """Whether each host bridge has one bus, so that there is nothing that could be left out."""
    found = [_BUSSES.search(one.get("bridge_pci")) for one in bridges]
    return all(one is not None and one[1] == one[2] for one in found)
