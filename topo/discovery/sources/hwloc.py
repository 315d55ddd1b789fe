"""hwloc's XML: what ``lstopo x.xml`` writes, of versions 1 to 3.

References
----------
hwloc, ``topology-xml.c``, ``pci-common.c``, ``hwloc2.dtd``, and ``hwloc.dtd`` of version 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from topo.catalogue.parts import catalogue
from topo.discovery.foreign import read_xml
from topo.discovery.gpu_links import with_nvswitch_links
from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, Machine, bundle, printable
from topo.discovery.numa import Hosts, Package, bits_of, hosts_of, with_generation
from topo.discovery.pci import Function, HostBridge, read_address
from topo.discovery.pci_tree import by_address, devices_of, hidden_ports
from topo.errors import ExchangeError, Finding
from topo.records import dataclass

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_OLD_NAMES: Final = {"Socket": "Package", "System": "Machine", "Node": "NUMANode"}
_PCI_TYPE: Final = re.compile(
    r"([0-9a-f]{4})\s*(?:\(\w*\)\s*)?(?:\[([0-9a-f]{4}):([0-9a-f]{4})\]|\Z)", re.IGNORECASE
)
_RATE: Final = re.compile(r"\d{1,6}(?:\.\d{1,12})?")
_BYTES: Final = re.compile(r"(\d{1,18})\s*(KiB)?")
_KIBIBYTES: Final = re.compile(r"(\d{1,15})\s*(?:KiB)?")
_PORT_STATE: Final = re.compile(r"Port(\d{1,2})State")
_BUSES: Final = re.compile(r"\[([0-9a-fA-F]+)-([0-9a-fA-F]+)\]")
# What `osdev_type` means: a number up to version 2, bits from version 3 on.
_SORTS_2: Final = ("storage", "gpu", "network", "openfabrics", "dma", "coprocessor")
_SORTS_3: Final = ("storage", "memory", "gpu", "coprocessor", "network", "openfabrics", "dma")
_MOST_CELLS: Final = 250_000
_MOST_DIGITS: Final = 4

_NVLINK_RATES: Final = {  # MB/s of a link in one direction
    "nvlink 1": 20_000.0,
    "nvlink 2": 25_000.0,
    "nvlink 3": 25_000.0,
    "nvlink 4": 25_000.0,
    "nvlink 5": 50_000.0,
}
_MOST_RATE: Final = 1_000_000.0  # MB/s: more is the diagonal's mark, no link


def read(data: bytes, name: str) -> Machine:
    """Read an hwloc file; an `ExchangeError` if it is not XML, or XML of another kind."""
    return machine_of(read_file(data, name), name)


def machine_of(file: HwlocFile, name: str) -> Machine:
    """Return the machine of hwloc's objects, `name` being what the user calls their file."""
    hosts = _hosts(file)
    reader = _Reader(file, hosts)
    reader.visit(file.machine, "", file.machine.nodes())
    bridges = reader.bridges or [HostBridge("none", hosts.first)]
    pci = devices_of(by_address(reader.functions), bridges, hosts.forwards)
    device_of = reader.packages | {
        name: pci.device_of[key] for name, key in reader.function_of.items() if key in pci.device_of
    }
    devices = (*hosts.devices, *pci.devices)
    cables, odd_links = _fabric(file.matrices, device_of, {device.id: device for device in devices})
    devices, cables, guesses = with_nvswitch_links(devices, cables)
    odd_file = list(_filtered(file))
    if file.major <= 1:
        message = "hwloc's version 1: old, and without the matrices of links between GPUs"
        help = "write it anew with a newer lstopo: lstopo x.xml"
        odd_file.insert(0, Finding("hwloc-version", message, severity="warning", help=help))
    # Ports that were filtered out are none that a virtual machine hides.
    ports = file.objects("Bridge")
    shows_ports = _has_single_buses(ports) or any(not port.is_host_bridge for port in ports)
    hidden = hidden_ports(reader.functions) if ports and shows_ports else ()
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
        left_out=pci.left_out,
        findings=(*odd_file, *pci.findings, *hidden, *odd_links, *guesses),
    )


# --- objects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Object:
    """One object: its type, attributes and infos, what hangs below it."""

    type: str
    attributes: dict[str, str]
    infos: dict[str, str]
    children: tuple[Object, ...]

    def get(self, name: str) -> str:
        """Return an attribute, ``""`` when it is absent."""
        return self.attributes.get(name, "")

    def walk(self) -> Iterator[Object]:
        """Yield this object and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def address(self) -> str:
        """Its PCI address in full, ``""`` when it has none."""
        return read_address(self.get("pci_busid"))

    @property
    def is_host_bridge(self) -> bool:
        """Whether it is a bridge from the CPU to PCI."""
        return self.type == "Bridge" and self.get("bridge_type").startswith("0-")

    def numbers(self) -> tuple[str, str, str]:
        """Return class, vendor and device of a PCI object."""
        match = _PCI_TYPE.match(self.get("pci_type").strip())
        code, vendor, device = match.groups(default="") if match else ("", "", "")
        return code.lower(), vendor.lower(), device.lower()

    def rate(self) -> float | None:
        """Return the link's GB/s, `None` when it is 0 or absent: not known."""
        text = self.get("pci_link_speed")
        return float(text) or None if _RATE.fullmatch(text.strip()) else None

    def nodes(self) -> tuple[int, ...]:
        """Return the NUMA nodes of its nodeset."""
        return tuple(bits_of(self.get("nodeset")))


@dataclass(frozen=True, slots=True)
class Matrix:
    """Distances: the objects by ``Type:index``, and one row for each."""

    name: str
    objects: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class HwlocFile:
    """A file: its version (``1`` when it names none), its machine, its matrices."""

    version: str
    machine: Object
    matrices: tuple[Matrix, ...]

    @property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.version.partition(".")[0])

    def objects(self, *types: str) -> list[Object]:
        """Return the objects of these types."""
        return [item for item in self.machine.walk() if item.type in types]

    def sorts(self, device: Object) -> frozenset[str]:
        """Return what an OS device is: ``network``, ``openfabrics``, ``storage`` ..."""
        number = device.get("osdev_type").strip()
        if not re.fullmatch(r"\d{1,4}", number):
            return frozenset()
        value = int(number)
        if self.major >= 3:  # noqa: PLR2004
            return frozenset(name for bit, name in enumerate(_SORTS_3) if value >> bit & 1)
        if value >= len(_SORTS_2):
            return frozenset()
        sort = _SORTS_2[value]
        is_memory = device.get("subtype") in ("CXLMem", "SPM", "NVM")
        if sort == "storage" and (is_memory or device.get("name").startswith("dax")):
            return frozenset({"memory"})
        return frozenset({sort, "network"} if sort == "openfabrics" else {sort})


def read_file(data: bytes, name: str) -> HwlocFile:
    """Read a file.

    Raises
    ------
    ExchangeError
        If it is not XML, or XML of another kind, or has no machine in it.
    """
    root = read_xml(data, name, doctype=True)
    if root.tag != "topology":
        message = f"`{name}` has <{printable(root.tag)}> at its top, not <topology>"
        raise ExchangeError(Finding("wrong-kind", message))
    version = root.get("version", "1").strip()
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3})*", version):
        version = "2"
    top = next((child for child in root if child.tag == "object"), None)
    if top is None:
        raise ExchangeError(Finding("nothing-there", f"`{name}` has no <object>, so no machine"))
    matrices = (
        _matrix(element) for element in root if element.tag in ("distances2", "distances2hetero")
    )
    return HwlocFile(version, _object(top), tuple(matrix for matrix in matrices if matrix))


def _object(element: Element) -> Object:
    name = element.get("type", "")
    infos: dict[str, str] = {}
    for child in element:
        if child.tag == "info" and child.get("name"):
            infos.setdefault(child.get("name", ""), child.get("value", ""))
    below = tuple(_object(child) for child in element if child.tag == "object")
    return Object(_OLD_NAMES.get(name, name), dict(element.attrib), infos, below)


def _matrix(element: Element) -> Matrix | None:
    """Return one matrix, `None` when its numbers do not make a square."""
    indexes, texts = (
        " ".join(child.text or "" for child in element if child.tag == tag).split()[:_MOST_CELLS]
        for tag in ("indexes", "u64values")
    )
    size = len(indexes)
    all_numbers = all(re.fullmatch(r"\d{1,18}", text) for text in texts)
    if not size or size * size != len(texts) or not all_numbers:
        return None
    usual_type = element.get("type", "")
    cells = [float(text) for text in texts]
    return Matrix(
        element.get("name", ""),
        tuple(index if ":" in index else f"{usual_type}:{index}" for index in indexes),
        tuple(tuple(cells[row * size : (row + 1) * size]) for row in range(size)),
    )


# --- CPUs -----------------------------------------------------------------------------------------


def _hosts(file: HwlocFile) -> Hosts:
    nodes: dict[int, int | None] = {}
    for node in file.objects("NUMANode"):
        number = node.get("os_index")
        of_a_device = node.get("subtype") == "GPUMemory" or "PCIBusID" in node.infos
        if number.isdecimal() and len(number) <= _MOST_DIGITS and not of_a_device:
            match = _BYTES.fullmatch(node.get("local_memory").strip())
            size = int(match[1]) * (1024 if match[2] else 1) if match else 0
            nodes[int(number)] = size or None

    def model(package: Object) -> str:
        infos = file.machine.infos | package.infos
        name = infos.get("CPUModel", "") or infos.get("CPUVendor", "")
        numbers = (infos.get(f"CPU{key}", "") for key in ("Vendor", "FamilyNumber", "ModelNumber"))
        return with_generation(name, *numbers)

    packages = [
        Package(frozenset(package.nodes()), model(package)) for package in file.objects("Package")
    ]
    return hosts_of(nodes, packages, model(file.machine))


# --- the PCI tree ---------------------------------------------------------------------------------


class _Reader:
    """Walks the objects and collects PCI functions with what the system calls them."""

    def __init__(self, file: HwlocFile, hosts: Hosts) -> None:
        self.file = file
        self.hosts = hosts
        # A NUMA node that is a GPU's memory tells which function is the GPU.
        self.gpus = {
            read_address(node.infos.get("PCIBusID", "")) for node in file.objects("NUMANode")
        }
        self.functions: list[Function] = []
        self.bridges: list[HostBridge] = []
        # By the names that matrices have for objects: CPUs, and functions.
        self.packages: dict[str, str] = {}
        self.function_of: dict[str, str] = {}

    def visit(self, item: Object, parent: str, nodes: tuple[int, ...]) -> None:
        """Take an object and all below it; `parent` is the bridge it hangs on."""
        nodes = item.nodes() or nodes
        if item.type == "Package":
            cpu, _ = self.hosts.place(item.nodes())
            self.packages[f"Package:{item.get('gp_index')}"] = cpu
        elif item.is_host_bridge:
            parent = self._take_host(nodes, item.get("bridge_pci"))
        elif item.type in ("Bridge", "PCIDev"):
            parent = self._take_function(item, parent or self._take_host(nodes, ""))
        for child in item.children:
            self.visit(child, parent, nodes)

    def _take_host(self, nodes: tuple[int, ...], buses: str) -> str:
        cpu, node = self.hosts.place(nodes)
        key = f"host {len(self.bridges)}"
        evidence = f"host bridge of busses {printable(buses)}" if buses else ""
        near = () if cpu or {*nodes} >= self.hosts.cpu_of.keys() else nodes
        self.bridges.append(HostBridge(key, cpu, node, evidence, nodes=near))
        return key

    def _take_function(self, item: Object, parent: str) -> str:
        code, vendor, device = item.numbers()
        key = f"pci {len(self.functions)}"
        inner = [child for child in item.children if child.type == "OSDev"]
        for part in (item, *inner):
            if part.get("gp_index"):
                self.function_of[f"{part.type}:{part.get('gp_index')}"] = key
        sizes = [
            int(match[1]) * 1024
            for part in inner
            if (match := _KIBIBYTES.fullmatch(part.infos.get("Size", "").strip()))
            and part.get("name").startswith("nvme")
        ]
        unnamed_bridge = item.type == "Bridge" and not code.strip("0")
        ports = sum(bool(_PORT_STATE.fullmatch(name)) for part in inner for name in part.infos)
        self.functions.append(
            Function(
                id=key,
                parent=parent,
                address=item.address,
                code="0604" if unnamed_bridge else code.strip("0") and code,
                vendor=vendor,
                device=device,
                text=_text(item, inner),
                kind="gpu" if item.address and item.address in self.gpus else None,
                rate=item.rate(),
                slot=item.infos.get("PCISlot", ""),
                nets=self._named(inner, "network", but="openfabrics"),
                rdma=self._named(inner, "openfabrics"),
                ports=(None,) * ports,  # hwloc tells no rates
                drives=self._named(inner, "storage"),
                size=sizes[0] if sizes else None,
            )
        )
        return key

    def _named(self, inner: list[Object], sort: str, but: str = "") -> tuple[str, ...]:
        return tuple(
            printable(device.get("name"))
            for device in inner
            if device.get("name")
            and sort in (sorts := self.file.sorts(device))
            and but not in sorts
        )


def _text(item: Object, inner: list[Object]) -> str:
    """Return what people call it: the GPU's or drive's model."""
    if any(part.get("subtype") == "NVSwitch" for part in (item, *inner)):
        return "NVSwitch"
    for device in inner:
        for name in ("GPUModel", "Model"):
            if device.infos.get(name):
                return printable(device.infos[name])
    return printable(item.infos.get("PCIDevice", ""))


# --- links between GPUs ---------------------------------------------------------------------------


def _fabric(
    matrices: Sequence[Matrix],
    device_of: Mapping[str, str],
    devices: Mapping[str, DiscoveredDevice],
) -> tuple[tuple[DiscoveredCable, ...], tuple[Finding, ...]]:
    """Return what the matrices NVLinkBandwidth and XGMIBandwidth join, and what is odd.

    Values are MB/s in one direction. A switch's ports are rows of their own, and no GPU has an
    entry for another that it reaches through a switch.

    Parameters
    ----------
    matrices
        Those of a file.
    device_of
        A device's `id` by the name that matrices have for an object: ``PCIDev:12``.
    devices
        The devices by their `id`.
    """
    rates: dict[tuple[str, str], tuple[float, float]] = {}
    by_xgmi: dict[tuple[str, str], bool] = {}
    missing: list[str] = []
    for matrix in matrices:
        if matrix.name not in ("NVLinkBandwidth", "XGMIBandwidth"):
            continue
        missing += [name for name in matrix.objects if name not in device_of]
        for (row, name_a), (column, name_b) in combinations(enumerate(matrix.objects), 2):
            a, b = device_of.get(name_a, ""), device_of.get(name_b, "")
            forth, back = matrix.rows[row][column], matrix.rows[column][row]
            if a and b and a != b and 0 < max(forth, back) < _MOST_RATE:
                sums = rates.get((a, b), (0.0, 0.0))
                rates[a, b] = (sums[0] + forth, sums[1] + back)
                by_xgmi.setdefault((a, b), matrix.name == "XGMIBandwidth")
    times = 2 if _counts_both_ways(rates, devices) else 1
    cables = [
        _cable(max(both_ways) / times, devices[a], devices[b], xgmi=by_xgmi[a, b])
        for (a, b), both_ways in rates.items()
    ]
    findings = []
    unequal = [ends for ends, (forth, back) in rates.items() if forth != back]
    if unequal:
        (a, b), (forth, back) = unequal[0], rates[unequal[0]]
        message = f"{a} to {b} is {forth:g} MB/s, and back {back:g}"
        help = "the larger number was taken"
        findings.append(Finding("asymmetric-links", message, severity="warning", help=help))
    if missing:
        message = f"a matrix of links names {missing[0]}, which the file does not have; left out"
        findings.append(Finding("gpu-missing", message, severity="warning"))
    return tuple(cables), tuple(findings)


def _counts_both_ways(
    rates: Mapping[tuple[str, str], tuple[float, float]], devices: Mapping[str, DiscoveredDevice]
) -> bool:
    """Whether a GPU would have more links than its part: hwloc once counted 50 GB/s for each.

    Until 2023 it did of NVLink 3 and 4: https://github.com/open-mpi/hwloc/issues/574.
    """
    totals: Counter[str] = Counter()
    for ends, both_ways in rates.items():
        for end in ends:
            totals[end] += round(max(both_ways))
    for name, total in totals.items():
        part = catalogue().parts.get(devices[name].part)
        fabric = part.fabric if part is not None else None
        if fabric is None or fabric.medium not in ("nvlink 3", "nvlink 4"):
            continue
        if fabric.count and total > fabric.count * _NVLINK_RATES[fabric.medium]:
            return True
    return False


def _cable(rate: float, a: DiscoveredDevice, b: DiscoveredDevice, *, xgmi: bool) -> DiscoveredCable:
    """Return a cable of as many links of the GPU's kind as the MB/s need."""
    evidence = f"{rate / 1000:g} GB/s each way"
    if xgmi:
        return DiscoveredCable(a.id, b.id, f"xgmi {rate / 1000:g} GB/s", evidence)
    parts = [catalogue().parts.get(device.part) for device in (a, b) if device.kind == "gpu"]
    media = [part.fabric.medium for part in parts if part is not None and part.fabric is not None]
    medium = next((name for name in media if name in _NVLINK_RATES), None)
    if medium is None:
        first = rate % _NVLINK_RATES["nvlink 3"] and not rate % _NVLINK_RATES["nvlink 1"]
        medium = "nvlink 1" if first else "nvlink 3"
        evidence += f"; {medium} is a guess"
    count = max(1, round(rate / _NVLINK_RATES[medium]))
    return DiscoveredCable(a.id, b.id, bundle(count, medium), evidence)


# --- what is odd ----------------------------------------------------------------------------------


def _filtered(file: HwlocFile) -> Iterator[Finding]:
    devices, bridges = file.objects("PCIDev"), file.objects("Bridge")
    help = "write it with them: lstopo --whole-io x.xml"
    shows_ports = any(not bridge.is_host_bridge for bridge in bridges)
    if not devices and not shows_ports:
        message = "the file has no PCI devices: I/O was filtered out, or there is none"
        yield Finding("no-io", message, severity="warning", help=help)
        return
    hides_ports = any(bridge.is_host_bridge for bridge in bridges) and not shows_ports
    addresses = [device.address for device in devices if device.address]
    behind_ports = any(":00:" not in f":{address.partition(':')[2]}" for address in addresses)
    if not bridges or (hides_ports and behind_ports and not _has_single_buses(bridges)):
        message = (
            "the file has PCI devices and no bridges: which of them share a switch is not told"
        )
        yield Finding("no-bridges", message, severity="warning", help=help)


def _has_single_buses(bridges: list[Object]) -> bool:
    """Whether each host bridge has one bus, so that there is nothing that could be left out."""
    buses = [_BUSES.search(bridge.get("bridge_pci")) for bridge in bridges]
    return all(match is not None and match[1] == match[2] for match in buses)
