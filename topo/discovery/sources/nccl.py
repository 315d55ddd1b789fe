"""NCCL's topology XML: what ``NCCL_TOPO_DUMP_FILE`` writes and ``NCCL_TOPO_FILE`` takes.

A ``cpu`` is a NUMA domain, a ``pci`` of class 0604 a whole switch. Devices are told by the class of
their ``pci``, since templates have no ``gpu`` and ``nic`` in them. RCCL writes version 2.

References
----------
NVIDIA NCCL, ``src/graph/xml.cc`` and ``src/graph/topo.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from topo.catalogue.cables import LANES
from topo.catalogue.identities import AMD, nvlink_of, processor, vendor_name
from topo.catalogue.parts import catalogue
from topo.discovery.foreign import read_xml
from topo.discovery.machine import (
    NVSWITCH,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    DiscoveredPart,
    Machine,
    bundle,
    by_depth,
    first_node,
    printable,
)
from topo.discovery.numa import bits_of
from topo.discovery.pci import NAME_ATTRIBUTE, Function, HostBridge, generation_of, read_address
from topo.discovery.pci_tree import devices_of
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more, counted
from topo.records import dataclass

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from topo.catalogue.kinds import Kind


# NCCL matches classes by their beginnings, in this order.
_CLASSES: Final[tuple[tuple[str, Kind], ...]] = (
    ("060400", "pcie-switch"),
    ("080100", "pcie-switch"),  # ConnectX-8 Data Direct
    ("068000", "nvswitch"),
    ("03", "gpu"),
    ("12", "gpu"),  # processing accelerators: AMD's GPUs
    ("02", "nic"),
    ("0108", "nvme"),
    ("01", "hba"),
)
_CONSOLES: Final = ("1a03", "102b")  # ASPEED and Matrox: the picture of the management port
# Upper and lower switch of Broadcom's PEX880xx (PCIe 4) and PEX890xx (PCIe 5).
_VIRTUAL_SWITCHES: Final = (
    ("1000:c010:1000:a", "1000:c010:1000:a"),
    ("1000:c030:1000:0", "1000:c030:1000:1"),
)
_SOFTWARE_NET: Final = re.compile(
    r"(veth|cali|br-|docker|virbr|vnet|tap|tun|cni|flannel|vxlan|lo$|lxc|ovs|kube|dummy|podman)"
)
_RDMA: Final = re.compile(r"(mlx\d|rdma|roce|ib[ps_]|ibp|efa|hfi\d|irdma|qedr|bnxt_re|mana_\d|ion)")
_NUMBER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})")
_MBIT: Final = 1e6
_MOST_LINKS: Final = 4096
_NAMED: Final = 16  # GPUs that a message names


def read(data: bytes, name: str) -> Machine:
    """Read an NCCL topology file; an `ExchangeError` if it is not XML, or XML of another kind."""
    root = read_xml(data, name)
    if root.tag != "system":
        message = f"`{name}` has <{printable(root.tag)}> at its top, not <system>"
        raise ExchangeError(Finding("wrong-kind", message))
    reader = _Reader()
    for cpu in root.iter("cpu"):
        reader.take_cpu(cpu)
    if not reader.cpus:
        raise ExchangeError(Finding("nothing-there", f"`{name}` has no <cpu>, so no machine"))
    return reader.machine(name, version=root.get("version", "").strip())


class _Gpu(NamedTuple):
    """A ``gpu`` element, the `id` of its function and of the CPU it is under."""

    id: str
    cpu: str
    element: Element


class _Reader:
    """Collects what the elements say."""

    def __init__(self) -> None:
        self.cpus: list[DiscoveredDevice] = []
        self.parts: dict[str, DiscoveredPart] = {}
        self.socket_cables: set[str] = set()
        self.functions: list[Function] = []
        self.gpus: list[_Gpu] = []
        self.interfaces: dict[str, DiscoveredDevice] = {}  # without a PCI device
        self.left_out: list[str] = []
        self.places: list[tuple[str, str]] = []
        self.repeated: list[str] = []
        self.facts: dict[str, dict[str, str]] = {}  # further keys of devices, by `id`
        self.names: dict[str, str] = {}  # what cards were called where topo exported them
        self.peer_links = 0
        self._keys: set[str] = set()

    # --- elements -----------------------------------------------------------------------------

    def take_cpu(self, element: Element) -> None:
        """Take a CPU with everything below it."""
        part, cable = _cpu_part(element)
        if part is not None:
            self.parts.setdefault(part.name, part)
        self.socket_cables.add(cable)
        node = _number(element, "numaid")
        logical_cpus = len(bits_of(element.get("affinity", "")))
        texts = [f"affinity: {logical_cpus} logical CPUs"] if logical_cpus else []
        if part is None and (vendor := element.get("vendor", "").strip()):
            texts.append(f"vendor {vendor}")
        cpu = DiscoveredDevice(
            id=f"cpu {len(self.cpus)}",
            kind="cpu",
            part=part.name if part else "cpu-unknown",
            numa=(node,) if node is not None and node >= 0 else (),
            evidence=printable(", ".join(texts)),
        )
        self.cpus.append(cpu)
        for child in element:
            if child.tag == "pci":
                self._take_pci(child, cpu.id)
            elif child.tag == "nic":
                for net in child.iter("net"):
                    self._take_interface(net, cpu.id)

    def _take_pci(self, element: Element, parent: str, *, is_virtual: bool = False) -> None:
        key = read_address(element.get("busid", "")) or f"pci {len(self._keys)}"
        kind = _kind_of(element)
        if key in self._keys:
            self.repeated.append(key)
            if kind != "pcie-switch":
                return
            key = f"pci {len(self._keys)}"
        self._keys.add(key)
        self.facts[key] = {}
        if kind == "nic":
            self.names[key] = element.get(NAME_ATTRIBUTE, "")
        if is_virtual:
            self.facts[key]["virtual"] = "yes"
        if _is_without_gdr(element, kind):
            self.facts[key]["gdr"] = "no"
        if kind is None:
            self.places.append((key, parent))
            self.left_out.append(key)
        elif kind != "nvswitch":
            self.functions.append(_function(element, key, parent, kind))
        if kind in ("pcie-switch", "gpu", "nic"):
            inner = element.find("gpu")
            if kind == "gpu" and inner is not None:
                self.gpus.append(_Gpu(key, self.cpus[-1].id, inner))
            for child in element.findall("pci"):
                is_virtual = kind == "pcie-switch" and _is_virtual_switch(element, child)
                above = key if kind == "pcie-switch" else parent
                self._take_pci(child, above, is_virtual=is_virtual)
        self.peer_links += len(element.findall("pcilink"))

    def _take_interface(self, net: Element, parent: str) -> None:
        name = printable(net.get("name", "")) or f"net {len(self.interfaces)}"
        if _SOFTWARE_NET.match(name):
            self.left_out.append(name)
        elif name not in self.interfaces:
            self.interfaces[name] = DiscoveredDevice(
                id=f"net {name}",
                kind="nic",
                part="nic-unknown",
                parent=parent,
                link=_link_of(net),
                label=name,
                ports=(_speed(net),),
                facts=(("gdr", "no"),) if _number(net, "gdr") == 0 else (),
                evidence="no PCI device: a virtual interface",
                name=net.get(NAME_ATTRIBUTE, ""),
            )

    # --- the machine --------------------------------------------------------------------------

    def machine(self, name: str, *, version: str) -> Machine:
        """Return the machine of all that was taken."""
        hosts = [HostBridge(cpu.id, cpu.id, is_told=False) for cpu in self.cpus]
        pci = devices_of(self.functions, hosts, keep_switches=True)
        order = {function.id: place for place, function in enumerate(self.functions)}
        facts = dict(self.facts)
        for key, device_id in pci.device_of.items():  # what all functions of a card say
            shared = self.facts[key].items() & facts[device_id].items()
            facts[device_id] = dict(sorted(shared))
        in_file = [
            replace(
                device,
                facts=(*device.facts, *facts[device.id].items()),
                name=self.names.get(device.id, ""),
            )
            for device in sorted(pci.devices, key=lambda device: order[device.id])
        ]
        gpus = [device for device in in_file if device.kind == "gpu"]
        number_of = {gpu.id: _number(gpu.element, "dev") for gpu in self.gpus}
        numbers = [number for gpu in gpus if (number := number_of.get(gpu.id)) is not None]
        if len(set(numbers)) == len(gpus):  # NCCL numbers them all
            gpus.sort(key=lambda gpu: number_of[gpu.id] or 0)
        fabric = _Fabric(self.gpus, gpus)
        devices = (
            *(device for device in in_file if device.is_nic),
            *self.interfaces.values(),
            *sorted(self.cpus, key=first_node),
            *by_depth(device for device in in_file if device.kind == "pcie-switch"),
            *gpus,
            *fabric.switches(),
            *(device for device in in_file if device.is_drive),
        )
        return Machine(
            kind="nccl",
            source="an NCCL topology file",
            file=name,
            devices=devices,
            cables=fabric.cables(),
            parts=tuple(self.parts.values()),
            socket_cable=next(iter(self.socket_cables)) if len(self.socket_cables) == 1 else "",
            notes=("A cpu here is a NUMA node: NCCL does not tell which of them share a socket.",),
            left_out=tuple(self.left_out),
            places=tuple(self.places),
            findings=(*self._findings(version), *fabric.findings()),
        )

    def _findings(self, version: str) -> Iterator[Finding]:
        if version == "2":
            message = "version 2: RCCL's form, with xGMI between GPUs"
            yield Finding("nccl-version", message, severity="note")
        elif version != "1":
            message = f"version `{printable(version)}` is none that NCCL or RCCL write"
            yield Finding("nccl-version", message, severity="warning")
        if self.repeated:
            message = (
                f"PCI addresses stand several times: {and_more(list(dict.fromkeys(self.repeated)))}"
            )
            help = "switches were taken as different ones, devices once"
            yield Finding("address-again", message, severity="warning", help=help)
        unclassified = [address for address, _ in self.places]
        software = [name for name in self.left_out if name not in unclassified]
        if software:
            count = counted(len(software), "software interface")
            message = f"left out: {count}: {and_more(software)}"
            yield Finding("virtual-interfaces", message, severity="note")
        if unclassified:
            count = counted(len(unclassified), "PCI device")
            message = f"left out: {count} without a class: {and_more(unclassified)}"
            help = "add them to the YAML by hand, or dump the file on the machine itself"
            yield Finding("unclassified-device", message, severity="warning", help=help)
        virtual = [key for key, facts in self.facts.items() if "virtual" in facts]
        if virtual:
            message = f"virtual parts of the Broadcom switch above them: {and_more(virtual)}"
            help = "NCCL, and `--rules nccl`, takes the two for one switch; nvidia-smi does not"
            yield Finding("virtual-switch", message, severity="note", help=help)
        if self.peer_links:
            message = f"{self.peer_links} links between virtual switches (pcilink) were left out"
            help = "they close loops, and PCIe is a tree here"
            yield Finding("left-out-link", message, severity="note", help=help)


# --- elements as values ---------------------------------------------------------------------------


def _number(element: Element, name: str) -> int | None:
    """Return an attribute as a whole number, `None` when it is absent or none.

    Hexadecimal with ``0x``, as NCCL reads it.
    """
    text = element.get(name, "").strip()
    if not _NUMBER.fullmatch(text):
        return None
    return int(text, 16) if "x" in text.lower() else int(text)


def _hexadecimal(element: Element, name: str) -> str:
    return element.get(name, "").lower().removeprefix("0x")


def _link_of(element: Element) -> DiscoveredLink:
    """Return the link of a ``pci`` element to what is above it."""
    speed, width = element.get("link_speed"), element.get("link_width")
    texts = [f'link_speed "{speed}"'] if speed is not None else []
    texts += [f"link_width {width}"] if width is not None else []
    lanes = _number(element, "link_width")
    return DiscoveredLink(
        generation=generation_of(speed or ""),
        lanes=lanes if lanes in LANES else None,
        evidence=", ".join(texts) or "no link attributes",
    )


def _speed(net: Element) -> float | None:
    """Return a net's speed in bits/s, `None` when it says none that can be."""
    megabits = _number(net, "speed")
    return megabits * _MBIT if megabits is not None and megabits > 0 else None


def _kind_of(element: Element) -> Kind | None:
    """Return what a ``pci`` element is: by the GPU or the card in it, otherwise by its class.

    NCCL too takes the parent of a ``gpu`` or a ``nic`` for one whatever its class is: a cloud's
    card may have any. `None` where neither tells.
    """
    is_parent = element.find("pci") is not None
    inner: tuple[Kind, ...] = ("gpu", "nic")
    for kind in inner:
        if element.find(kind) is not None and not is_parent:
            return kind
    code = _hexadecimal(element, "class")
    if code.startswith("068001"):
        return None  # an NVLink bridge inside a CPU
    console = _hexadecimal(element, "vendor") in _CONSOLES
    for start, kind in _CLASSES:
        if code.startswith(start) and not (kind == "gpu" and console):
            return kind
    return "pcie-switch" if is_parent else None


def _is_without_gdr(element: Element, kind: Kind | None) -> bool:
    """Whether NCCL found no GPUDirect RDMA: for a GPU, or for every port of a card."""
    nets = element.iter("net") if kind == "nic" else ()
    ends = element.findall("gpu") if kind == "gpu" else nets
    numbers = [_number(end, "gdr") for end in ends]
    return bool(numbers) and all(number == 0 for number in numbers)


def _is_virtual_switch(upper: Element, lower: Element) -> bool:
    """Whether NCCL takes two switches for one: a Broadcom switch that is cut into virtual ones."""
    names = ("vendor", "device", "subsystem_vendor", "subsystem_device")
    above, below = (
        ":".join(_hexadecimal(element, name) for name in names)[:-3]
        for element in (upper, lower)  # the last three digits differ from machine to machine
    )
    return (above, below) in _VIRTUAL_SWITCHES


def _function(element: Element, key: str, parent: str, kind: Kind) -> Function:
    """Return the PCI function of a ``pci`` element; a switch is one as a whole."""
    inner = element.find("gpu")
    nets = list(element.iter("net")) if kind == "nic" else []
    names = [name for net in nets if (name := printable(net.get("name", "")))]
    vendor, device = element.get("vendor", ""), element.get("device", "")
    texts = [f"class {code}"] if (code := element.get("class")) else []
    texts += [f"{vendor_name(vendor)} {device}"] if vendor and device else []
    if kind == "gpu" and inner is not None:
        levels = {name: inner.get(name) for name in ("sm", "gcn")}
        texts += [f"{name} {level}" for name, level in levels.items() if level is not None]
        if inner.get("gcn") is not None:
            vendor = vendor or AMD
    if kind not in ("gpu", "nic"):
        vendor = device = ""  # what switches and drives say names no part
    return Function(
        id=key,
        parent=parent,
        address="" if key.startswith("pci ") else key,
        vendor=vendor,
        device=device,
        kind=kind,
        port="upstream" if kind == "pcie-switch" else "",
        link=_link_of(element),
        nets=tuple(name for name in names if not _RDMA.match(name)),
        rdma=tuple(name for name in names if _RDMA.match(name)),
        ports=tuple(_speed(net) for net in nets),
        network="infiniband" if _hexadecimal(element, "class").startswith("0207") else "",
        virtual=False,
        evidence=printable(", ".join(texts)),
    )


def _cpu_part(element: Element) -> tuple[DiscoveredPart | None, str]:
    """Return the part that a ``cpu`` needs in the file, and what joins it with others."""
    if element.get("arch") == "arm64":
        facts = (("architecture", "arm"),)
        return DiscoveredPart("arm-cpu", "cpu-unknown", "an Arm CPU", facts), ""
    family, model = _number(element, "familyid"), _number(element, "modelid")
    if family is None or model is None or min(family, model) < 0:
        family = model = None
    cpu = processor(element.get("vendor", "").strip(), family, model)
    if cpu is None or family is None:
        return None, cpu.cable if cpu else ""
    maker, generation = cpu.title
    title = f"{maker}, family {family} model {model}" + (f" ({generation})" if generation else "")
    return DiscoveredPart(f"{cpu.vendor}-{family}-{model}", cpu.like, title), cpu.cable


# --- links between GPUs ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Port:
    """One ``nvlink`` or ``xgmi`` element: links of one GPU to one target."""

    gpu: str
    target: str
    count: int
    medium: str
    to_switch: bool


class _Fabric:
    """The links that GPUs say they have: to each other, to switches, to a CPU's chip.

    Parameters
    ----------
    elements
        The GPUs in the order of the file.
    devices
        The same as they are numbered.
    """

    def __init__(self, elements: Sequence[_Gpu], devices: Sequence[DiscoveredDevice]) -> None:
        self.cpu_of = {gpu.id: gpu.cpu for gpu in elements}
        self.place_of = {device.id: place for place, device in enumerate(devices)}
        self.ports: list[_Port] = []
        self.chip_links: list[DiscoveredCable] = []
        self.to_itself: list[str] = []
        self.hides_ends = False
        part_of = {device.id: device.part for device in devices}
        for gpu in elements:
            part = catalogue().parts.get(part_of[gpu.id])
            fabric = part.fabric if part is not None else None
            medium = fabric.medium if fabric is not None else None
            medium = medium or nvlink_of(_number(gpu.element, "sm"))
            for child in gpu.element:
                count = _number(child, "count") or 1
                if not 0 < count <= _MOST_LINKS:
                    continue
                if child.tag == "c2c":
                    rate = _number(child, "bw")
                    speed = f"{rate / 1000:.10g} GB/s" if rate and rate > 0 else "unknown"
                    cable = bundle(count, f"nvlink-c2c {speed}")
                    self.chip_links.append(DiscoveredCable(gpu.id, gpu.cpu, cable, "c2c bw, count"))
                elif child.tag in ("nvlink", "xgmi"):
                    is_nvlink = child.tag == "nvlink"
                    self._take_port(gpu, child, count, medium if is_nvlink else "xgmi unknown")

    def _take_port(self, gpu: _Gpu, element: Element, count: int, medium: str) -> None:
        is_nvlink = element.tag == "nvlink"
        target = read_address(element.get("target", "").strip())
        if is_nvlink and not target:  # a virtual machine hides the far end
            self.hides_ends = True
        if target == gpu.id:
            self.to_itself.append(gpu.id)
            return
        code = _hexadecimal(element, "tclass")
        if code.startswith("068001"):
            self.ports.append(_Port(gpu.id, gpu.cpu, count, medium, to_switch=False))
            return
        to_switch = is_nvlink and (not target or code.startswith("068000"))
        self.ports.append(_Port(gpu.id, target, count, medium, to_switch))

    def _is_here(self, target: str) -> bool:
        return target in self.cpu_of or target in self.cpu_of.values()

    def switches(self) -> tuple[DiscoveredDevice, ...]:
        """Return all NVSwitches as one device, as NCCL takes them; none when there is none."""
        ports = [port for port in self.ports if port.to_switch]
        if not ports:
            return ()
        targets = sorted({port.target for port in ports if port.target})
        evidence = f"{len(targets)} targets of nvlink" if targets else "its addresses are hidden"
        return (
            DiscoveredDevice(
                id=NVSWITCH,
                kind="nvswitch",
                part="nvswitch-unknown",
                pci=tuple(targets),
                facts=(("chips", str(len(targets))),) if targets else (),
                evidence=evidence,
            ),
        )

    def cables(self) -> tuple[DiscoveredCable, ...]:
        """Return the cables: between two GPUs once, although both say it."""
        last = len(self.place_of)
        sides: dict[tuple[str, str], dict[str, int]] = {}
        media: dict[tuple[str, str], str] = {}
        for port in self.ports:
            if port.to_switch:
                ends = (port.gpu, NVSWITCH)
            elif self._is_here(port.target):
                first, second = sorted(
                    (port.gpu, port.target), key=lambda end: self.place_of.get(end, last)
                )
                ends = (first, second)
            else:
                continue
            counts = sides.setdefault(ends, {})
            counts[port.gpu] = counts.get(port.gpu, 0) + port.count
            media.setdefault(ends, port.medium)

        def place(ends: tuple[str, str]) -> tuple[int, int, bool]:
            first, second = (self.place_of.get(end, last) for end in ends)
            return first, second, ends[1] == NVSWITCH

        return (
            *(
                DiscoveredCable(*ends, bundle(max(sides[ends].values()), media[ends]))
                for ends in sorted(sides, key=place)
            ),
            *self.chip_links,
        )

    def findings(self) -> Iterator[Finding]:
        """Yield what is odd about the links."""
        if self.hides_ends:
            message = "the far ends of NVLinks are hidden, as a virtual machine does: NVSwitches"
            yield Finding("hidden-nvswitch", message, severity="note")
        to_itself = list(dict.fromkeys(self.to_itself))
        if to_itself:
            message = "NVLinks lead from a GPU to itself and were left out: "
            message += and_more(to_itself, _NAMED)
            yield Finding("self-link", message, severity="warning")
        missing = dict.fromkeys(
            port.target or "nowhere"
            for port in self.ports
            if not port.to_switch and not self._is_here(port.target)
        )
        if missing:
            message = "links lead to GPUs that the file does not have, and were left out: "
            message += and_more(list(missing), _NAMED)
            yield Finding("gpu-missing", message, severity="warning")
        counts: dict[tuple[str, str], int] = {}
        for port in self.ports:
            ends = (port.gpu, port.target)
            counts[ends] = counts.get(ends, 0) + port.count
        unequal = [
            (gpu, target)
            for gpu, target in counts
            if target in self.cpu_of and gpu < target
            if counts[gpu, target] != counts.get((target, gpu), 0)
        ]
        if unequal:
            pairs = [
                f"{gpu} says {counts[gpu, target]} links to {target}, "
                f"which says {counts.get((target, gpu), 0)}"
                for gpu, target in unequal
            ]
            yield Finding(
                "asymmetric-links",
                pairs[0],
                severity="warning",
                help="the larger number was taken",
                notes=tuple(pairs[1:_NAMED]),
            )
