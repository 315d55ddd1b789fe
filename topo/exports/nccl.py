"""NCCL's topology XML, within the limits of NCCL's own small parser.

No prolog, no tabs, no text, no line break inside a tag, no entities, at most 16 attributes, values
under 255 characters, at most 256 nodes and 640 children.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from topo.catalogue import identities
from topo.catalogue.kinds import CARDS, Kind
from topo.description.description import Device
from topo.discovery.pci import MADE_UP, NAME_ATTRIBUTE, read_address
from topo.errors import ExchangeError, Finding
from topo.exports.formats import Exported, not_held
from topo.phrases import counted
from topo.records import dataclass
from topo.topology.locality import Attachment, socket_of
from topo.topology.rules import cpu_numbers, is_interface
from topo.topology.topology import Link, Topology

_LONGEST: Final = 254
_MOST_NODES: Final = 256
_MOST_CHILDREN: Final = 640
_DEVICES: Final = 32  # on one bus
_ON_PCI: Final = ("pcie-switch", "gpu", *CARDS)
_BRIDGE: Final = {"class": "0x060400"}
_SWITCH_CLASS: Final = "0x068000"
_HIDDEN: Final = "fffffff:ffff:ff"  # NCCL takes such a target for an NVSwitch
_MEGA: Final = 1e6
_PCIE_4: Final = 4
_NOT_HELD: Final[dict[Kind, str]] = {
    "memory": "memories",
    "cxl-memory": "CXL memory",
    "storage": "storage",
    "nvme": "drives",
    "hba": "storage controllers",
    "network-switch": "network switches",
    "root-complex": "root complexes",
}


@dataclass(slots=True)
class _Element:
    """One element: its attributes in order, and what is in it."""

    tag: str
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the element's lines, indented, without what NCCL's parser stumbles over."""
        words = [self.tag]
        for name, text in self.attributes.items():
            plain = re.sub(r"[\"'<>&\t\n\r]", " ", text)[:_LONGEST]
            words.append(f'{name}="{plain}"')
        lead = "  " * depth
        if not self.children:
            yield f"{lead}<{' '.join(words)}/>"
            return
        yield f"{lead}<{' '.join(words)}>"
        for child in self.children:
            yield from child.lines(depth + 1)
        yield f"{lead}</{self.tag}>"

    def walk(self) -> Iterator[_Element]:
        """Yield the element and all that is in it."""
        yield self
        for child in self.children:
            yield from child.walk()


def write_nccl(topology: Topology) -> Exported:
    """Write NCCL's XML of one host.

    Raises
    ------
    ExchangeError
        If there is no CPU, or there are several hosts.
    """
    writer = _Writer(topology)
    root = writer.system()
    text = "\n".join(root.lines()) + "\n"
    losses = [noun for kind, noun in _NOT_HELD.items() if topology.of_kind(kind)]
    description = topology.description
    if description.workloads or description.expectations:
        losses.append("workloads and expectations")
    if description.measurements:
        losses.append("measured rates")
    chips = (switch.part.figure("chips") for switch in topology.of_kind("pcie-switch"))
    if any(figure is not None and figure.value != 1 for figure in chips):
        losses.append("a switch of several chips (each is one: PXB across it reads as PIX)")
    losses.append("links between sockets (it has its own numbers)")
    losses.append("what NCCL adds on the machine (CPU masks, subsystem numbers, `maxconn`, `coll`)")
    unnumbered = sum(
        "sm" not in element.attributes for element in root.walk() if element.tag == "gpu"
    )
    if unnumbered:
        losses.append(f"the compute capability (`sm`) of {counted(unnumbered, 'GPU')}")
    findings = (*writer.findings(root), *not_held("NCCL's XML", *losses))
    return Exported(text, findings)


class _Writer:
    """Makes the elements of one topology; addresses and network numbers count up on the way."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._made_up: list[str] = []  # the devices without an address
        self._nets = 0
        self._cards: list[tuple[str, _Element]] = []  # the element that tells each card's name
        self._gpus = {gpu.name: str(rank) for rank, gpu in enumerate(topology.of_kind("gpu"))}
        self._fabric: dict[str, list[Link]] = {name: [] for name in self._gpus}
        for link in topology.links:
            for end in (link.a.device, link.b.device):
                if end in self._gpus and link.cable.family in ("nvlink", "xgmi", "nvlink-c2c"):
                    self._fabric[end].append(link)
        self._addresses = {}
        for name, device in topology.devices.items():
            if device.pci:
                self._addresses[name] = read_address(device.pci[0])
            elif device.kind in _ON_PCI and not is_interface(self._topology, device):
                self._addresses[name] = self._next_address(name)

    def system(self) -> _Element:
        """Return the whole tree: CPUs or their NUMA nodes, and below them PCI functions."""
        hosts = self._hosts()
        attachments = {
            name: attachment
            for name, device in self._topology.devices.items()
            if device.kind in _ON_PCI
            and (attachment := self._topology.tree.attachment(name)) is not None
        }
        nodes: dict[tuple[str, str], list[str]] = {}
        for cpu in hosts:
            sides = {hung.node for hung in attachments.values() if hung.socket == cpu.name}
            for side in sorted(sides) or [""]:
                nodes[cpu.name, side] = []
        below: dict[str, list[str]] = {}
        for name, attachment in attachments.items():
            if attachment.bridges:
                below.setdefault(attachment.bridges[0], []).append(name)
            elif (attachment.socket, attachment.node) in nodes:
                nodes[attachment.socket, attachment.node].append(name)
        families = {link.cable.family for links in self._fabric.values() for link in links}
        root = _Element("system", {"version": "2" if "xgmi" in families else "1"})
        for (cpu_name, side), members in nodes.items():
            device = self._topology[cpu_name]
            vendor, family, model = cpu_numbers(self._topology, device)
            numa = side.removeprefix("numa") or (str(device.numa[0]) if device.numa else "-1")
            element = _Element("cpu", {"numaid": numa})
            if vendor == "arm":
                element.attributes["arch"] = "arm64"
            elif cpuid_vendor := identities.vendor_of_processor(vendor):
                numbers = {"familyid": str(family), "modelid": str(model)}
                element.attributes |= {"arch": "x86_64", "vendor": cpuid_vendor, **numbers}
            for name in members:
                element.children += self._pci(name, attachments, below)
            root.children.append(element)
        # An import numbers cards as they stand here, those without a PCI device last.
        named = sorted(self._cards, key=lambda pair: pair[1].tag != "pci")
        for number, (name, element) in enumerate(named):
            if name != f"nic{number}":
                element.attributes[NAME_ATTRIBUTE] = name
        return root

    def _hosts(self) -> list[Device]:
        topology = self._topology
        roots = topology.of_kind("root-complex")
        alone = [root for root in roots if socket_of(topology, root.name) == root.name]
        hosts = [*topology.of_kind("cpu"), *alone]
        if not hosts:
            message = "NCCL's XML begins at CPUs, and this machine has none"
            raise ExchangeError(Finding("not-held", message))

        joined = topology.tree.linked_hosts(hosts[0].name)
        apart = [host.name for host in hosts if host.name not in joined]
        if apart:
            message = f"NCCL's XML holds one host, and {apart[0]} is of another"
            raise ExchangeError(Finding("not-held", message, help="export a file of one server"))
        return hosts

    # --- PCI functions ------------------------------------------------------------------------

    def _pci(
        self, name: str, attachments: dict[str, Attachment], below: dict[str, list[str]]
    ) -> list[_Element]:
        """Return the elements of a device: one a PCI function, a switch with what is below it."""
        device = self._topology[name]
        speed = self._link(name, attachments[name])
        inner = [
            element
            for child in below.get(name, ())
            for element in self._pci(child, attachments, below)
        ]
        if device.kind == "pcie-switch":
            numbers = self._broadcom(name, attachments, below)
            bridge = {"busid": self._addresses[name], **_BRIDGE, **numbers, **speed}
            return [_Element("pci", bridge, inner)]
        functions = (
            [self._gpu(device, speed)] if device.kind == "gpu" else self._card(device, speed)
        )
        if inner or device.part.flag("bridge"):  # a card with two levels of switches inside
            outer = {"busid": self._next_address(name), **_BRIDGE, **speed}
            lower = _Element("pci", {**outer, "busid": self._next_address(name)}, inner)
            return [_Element("pci", outer, [*functions, lower])]
        return functions

    def _link(self, name: str, attachment: Attachment) -> dict[str, str]:
        """Return speed and width of the link by which a device hangs on what is above it."""
        parent = attachment.bridges[0] if attachment.bridges else attachment.root
        for step in self._topology.steps[name]:
            cable = step.link.cable
            if step.target == parent and cable.family == "pcie":
                speed, generation = "", cable.generation
                if generation in identities.generations():
                    speed = f"{identities.transfer_rate(generation) / 1e9:.1f} GT/s PCIe"
                lanes = (cable.lanes or 0) * cable.count
                return {"link_speed": speed, "link_width": str(lanes)}
        return {"link_speed": "", "link_width": "0"}

    def _broadcom(
        self, name: str, attachments: dict[str, Attachment], below: dict[str, list[str]]
    ) -> dict[str, str]:
        """Return the numbers by which NCCL tells a Broadcom switch and its virtual ones."""

        def is_virtual(switch: str) -> bool:
            return bool(self._topology[switch].part.flag("virtual"))

        lower = [name] if is_virtual(name) else [*filter(is_virtual, below.get(name, ()))]
        if not lower:
            return {}
        generations = (
            step.link.cable.generation
            for step in self._topology.steps[lower[0]]
            if step.target in attachments[lower[0]].bridges
        )
        # As NCCL's own table has them; a switch of PCIe 4 has the same at both levels.
        device, subsystem = ("0xc030", "0x1000" if is_virtual(name) else "0x0000")
        if next(generations, None) == _PCIE_4:
            device, subsystem = "0xc010", "0xa000"
        broadcom = "0x1000"
        return {
            "vendor": broadcom,
            "device": device,
            "subsystem_vendor": broadcom,
            "subsystem_device": subsystem,
        }

    def _next_address(self, name: str) -> str:
        self._made_up.append(name)
        bus, device = divmod(len(self._made_up), _DEVICES)
        return f"{MADE_UP}:{bus % 256:02x}:{device:02x}.0"

    # --- GPUs ---------------------------------------------------------------------------------

    def _gpu(self, device: Device, speed: dict[str, str]) -> _Element:
        rank, fabric = self._gpus[device.name], self._fabric[device.name]
        attributes = {"dev": rank}
        media = [link.cable.medium for link in fabric]
        if device.part.fabric is not None and device.part.fabric.medium:
            media.append(device.part.fabric.medium)
        compute = next(filter(None, map(identities.compute_of, media)), "")
        if compute:
            attributes["sm"] = compute
        unable = False in (device.part.flag("gdr"), device.part.flag("p2p"))
        attributes |= {"rank": rank, "gdr": "0" if unable else "1"}
        links = [element for link in fabric for element in self._gpu_link(device, link)]
        pci = {"busid": self._addresses[device.name], "class": _gpu_class(device)}
        return _Element(
            "pci", {**pci, **_numbers(device), **speed}, [_Element("gpu", attributes, links)]
        )

    def _gpu_link(self, device: Device, link: Link) -> list[_Element]:
        """Return the elements of a GPU's link to another GPU, its CPU, or a switch's chips."""
        far = self._topology[link.b.device if link.a.device == device.name else link.a.device]
        cable = link.cable
        if cable.family == "nvlink-c2c":
            rate = round((cable.rate.value or 0.0) / _MEGA)
            return [_Element("c2c", {"bw": str(rate), "count": str(cable.count)})]
        if far.kind == "nvswitch":
            chips = [read_address(address) for address in far.pci] or [_HIDDEN]
            even, more = divmod(cable.count, len(chips))
            counts = [even + (number < more) for number in range(len(chips))]
            return [
                _Element("nvlink", {"target": chip, "count": str(count), "tclass": _SWITCH_CLASS})
                for chip, count in zip(chips, counts, strict=True)
                if count
            ]
        if far.kind != "gpu":
            return []
        target = {"target": self._addresses[far.name], "count": str(cable.count)}
        tag = "xgmi" if cable.family == "xgmi" else "nvlink"
        return [_Element(tag, {**target, "tclass": _gpu_class(far)})]

    # --- cards --------------------------------------------------------------------------------

    def _card(self, device: Device, speed: dict[str, str]) -> list[_Element]:
        names = list(device.rdma) or (device.label.split(", ") if device.label else [])
        if is_interface(self._topology, device):
            nets = [self._net(device, name, 1) for name in names]
            self._cards.append((device.name, nets[0]))
            return [_Element("nic", {}, nets)]
        families = {step.link.cable.family for step in self._topology.steps[device.name]}
        code = "0x020700" if "infiniband" in families else "0x020000"
        addresses = [read_address(address) for address in device.pci]
        addresses = addresses or [self._addresses[device.name]]
        share = -(-len(names) // len(addresses))
        functions = []
        for number, address in enumerate(addresses):
            ports = names[number * share : (number + 1) * share]
            nets = [self._net(device, name, port) for port, name in enumerate(ports, 1)]
            inner = [_Element("nic", {}, nets)] if nets else []
            attributes = {"busid": address, "class": code, **_numbers(device), **speed}
            functions.append(_Element("pci", attributes, inner))
        self._cards.append((device.name, functions[0]))
        return functions

    def _net(self, device: Device, name: str, port: int) -> _Element:
        ports = device.part.ports
        rate = ports.rate.value if ports and ports.rate else None
        attributes = {"name": name, "dev": str(self._nets)}
        if rate:
            attributes["speed"] = str(round(rate * 8 / _MEGA))
        attributes |= {"port": str(port), "guid": hex(self._nets)}
        if device.rdma or device.part.flag("gdr") is False:  # NCCL takes what is not there for 0
            attributes["gdr"] = "0" if device.part.flag("gdr") is False else "1"
        self._nets += 1
        return _Element("net", attributes)

    # --- what does not fit --------------------------------------------------------------------

    def findings(self, root: _Element) -> Iterator[Finding]:
        """Yield what had to be made up, and what NCCL's parser refuses."""
        if self._made_up:
            count, first = len(self._made_up), self._made_up[0]
            yield Finding(
                "made-up-address",
                f"{count} devices have no PCI address and got one of domain {MADE_UP}: {first}"
                + (" and others" if count > 1 else ""),
                severity="warning",
                help="NCCL finds GPUs and cards by their addresses: add `pci:` to the YAML",
            )
        elements = list(root.walk())
        most_children = max(len(element.children) for element in elements)
        if len(elements) > _MOST_NODES or most_children > _MOST_CHILDREN:
            yield Finding(
                "format-limit",
                f"{len(elements)} elements: NCCL's parser takes {_MOST_NODES} a host",
                severity="warning",
                help="it refuses this file",
            )


def _gpu_class(device: Device) -> str:
    return "0x038000" if device.part.name.startswith(("amd", "mi")) else "0x030200"


def _numbers(device: Device) -> dict[str, str]:
    """Return vendor and device numbers, as far as the part has them."""
    numbers = identities.numbers_of(device.part.name)
    if numbers is not None:
        return {"vendor": f"0x{numbers[0]}", "device": f"0x{numbers[1]}"}
    return {"vendor": "0x1002"} if device.part.name == "amd-instinct" else {}
