"""NCCL's topology XML: what ``NCCL_TOPO_DUMP_FILE`` writes and ``NCCL_TOPO_FILE`` takes.

A ``cpu`` is a NUMA domain, a ``pci`` of class 0604 a whole switch. Devices are told by the class of
their ``pci``, since templates have no ``gpu`` and ``nic`` in them. RCCL writes version 2.

References
----------
NVIDIA NCCL, ``src/graph/xml.cc`` and ``src/graph/topo.cc``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import generic_gpu, identify, vendor_name
from topo.discovery.addresses import MADE_UP, card_of, read_address
from topo.discovery.foreign import read_xml
from topo.discovery.machine import DiscoveredDevice, Machine, by_depth, printable, some_of
from topo.discovery.nccl_cpu import cpu_of
from topo.discovery.nccl_fabric import Fabric
from topo.discovery.nccl_read import is_virtual_part, kind_of, link_of, number
from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from topo.discovery.machine import DiscoveredPart


_SOFTWARE: Final = re.compile(
    r"(veth|cali|br-|docker|virbr|vnet|tap|tun|cni|flannel|vxlan|lo$|lxc|ovs|kube|dummy|podman)"
)
_RDMA: Final = re.compile(r"(mlx\d|rdma|roce|ib[ps_]|ibp|efa|hfi\d|irdma|qedr|bnxt_re|mana_\d|ion)")
_MBIT: Final = 1e6


def read(data: bytes, name: str) -> Machine:
    """Read an NCCL topology file.

    Parameters
    ----------
    data, name
        The file, and what messages call it.

    Raises
    ------
    ExchangeError
        If it is not XML, or XML of another kind.
    """
    root = read_xml(data, name)
    if root.tag != "system":
        message = f"`{name}` has <{printable(root.tag)}> at its top, not <system>"
        raise ExchangeError(Finding("wrong-kind", message))
    reader = _Reader()
    for cpu in root.iter("cpu"):
        reader.cpu(cpu)
    if not reader.cpus:
        raise ExchangeError(Finding("nothing-there", f"`{name}` has no <cpu>, so no machine"))
    return reader.machine(name, version=root.get("version", ""))


class _Reader:
    """Collects what the elements say."""

    def __init__(self) -> None:
        self.cpus: list[tuple[int, DiscoveredDevice]] = []
        self.parts: dict[str, DiscoveredPart] = {}
        self.socket_cables: list[str] = []
        self.switches: list[DiscoveredDevice] = []
        self.gpus: list[tuple[int | None, DiscoveredDevice]] = []
        self.others: list[DiscoveredDevice] = []
        self.cards: dict[tuple[str, ...], list[tuple[Element, str]]] = {}
        self.virtual: dict[str, DiscoveredDevice] = {}
        self.fabric = Fabric()
        self.left_out: list[str] = []
        self.places: list[tuple[str, str]] = []
        self.findings: list[Finding] = []
        self._unclassified: list[str] = []
        self._repeated: list[str] = []
        self._virtual_parts = 0
        self._peer_links = 0
        self._seen: set[str] = set()

    # --- elements -----------------------------------------------------------------------------

    def cpu(self, element: Element) -> None:
        device, part, cable = cpu_of(element, f"cpu {len(self.cpus)}")
        if part is not None:
            self.parts.setdefault(part.name, part)
        self.socket_cables.append(cable)
        self.cpus.append((device.numa[0] if device.numa else 1 << 20, device))
        for child in element:
            if child.tag == "pci":
                self._pci(child, device.id)
            elif child.tag == "nic":
                for net in child.iter("net"):
                    self._virtual(net, device.id)

    def _pci(self, element: Element, parent: str) -> None:
        address = read_address(element.get("busid", ""))
        here = address or f"pci {len(self._seen)}"
        kind = kind_of(element)
        if here in self._seen:
            self._repeated.append(here)
            if kind != "switch":
                return
            here = f"pci {len(self._seen)}"
        self._seen.add(here)
        if kind == "gpu":
            self._gpu(element, here, parent)
        elif kind == "nic":
            numbers = (element.get("vendor", ""), element.get("device", ""))
            key = (parent, card_of(address) or here, *numbers)
            self.cards.setdefault(key, []).append((element, here))
        elif kind == "unknown":
            self._unclassified.append(here)
            self.places.append((here, parent))
            self.left_out.append(here)
        elif kind != "nvswitch":
            self._other(element, here, parent)
        if kind in ("switch", "gpu", "nic"):
            above = here if kind == "switch" else parent
            for child in element.findall("pci"):
                self._virtual_parts += kind == "switch" and is_virtual_part(element, child)
                self._pci(child, above)
        self._peer_links += len(element.findall("pcilink"))

    def _other(self, element: Element, here: str, parent: str) -> None:
        kind = kind_of(element)
        device = DiscoveredDevice(
            id=here,
            kind="pcie-switch" if kind == "switch" else "nvme" if kind == "nvme" else "hba",
            part="pcie-switch-unknown" if kind == "switch" else f"{kind}-unknown",
            parent=parent,
            link=link_of(element),
            pci=_addresses(here),
            said=_numbers(element),
        )
        (self.switches if kind == "switch" else self.others).append(device)

    def _gpu(self, element: Element, here: str, parent: str) -> None:
        inner = element.find("gpu")
        vendor, number_ = element.get("vendor", ""), element.get("device", "")
        amd = inner is not None and inner.get("gcn") is not None
        part = identify(vendor, number_) or generic_gpu("1002" if amd else vendor or "0")
        device = DiscoveredDevice(
            id=here,
            kind="gpu",
            part=part,
            parent=parent,
            link=link_of(element),
            pci=_addresses(here),
            said=_numbers(element, inner, ("sm", "gcn")),
        )
        self.gpus.append((number(inner, "dev") if inner is not None else None, device))
        if inner is not None:
            cpu = self.cpus[-1][1].id
            self.fabric.gpu(device, inner, cpu)

    def _virtual(self, net: Element, parent: str) -> None:
        name = printable(net.get("name", "")) or f"net {len(self.virtual)}"
        if _SOFTWARE.match(name):
            self.left_out.append(name)
            return
        if name in self.virtual:
            return
        self.virtual[name] = DiscoveredDevice(
            id=f"net {name}",
            kind="nic",
            part="nic-unknown",
            parent=parent,
            link=link_of(net),
            label=name,
            ports=(_speed(net),),
            said="no PCI device: a virtual interface",
        )

    # --- the whole ----------------------------------------------------------------------------

    def machine(self, name: str, *, version: str) -> Machine:
        self._note_version(version)
        self._note_left_out()
        cpus = [device for _, device in sorted(self.cpus, key=lambda pair: pair[0])]
        cards = [_card(key, functions) for key, functions in self.cards.items()]
        switch = self.fabric.switch()
        devices = (
            *cards,
            *self.virtual.values(),
            *cpus,
            *by_depth(self.switches),
            *self._in_order(),
        )
        devices = (*devices, *((switch,) if switch else ()), *self.others)
        return Machine(
            kind="nccl",
            source="an NCCL topology file",
            file=name,
            devices=devices,
            cables=self.fabric.cables(gpu.id for gpu in self._in_order()),
            parts=tuple(self.parts.values()),
            socket_cable=self.socket_cables[0] if len(set(self.socket_cables)) == 1 else "",
            notes=("A cpu here is a NUMA node: NCCL does not tell which of them share a socket.",),
            left_out=tuple(self.left_out),
            places=tuple(self.places),
            findings=(*self.findings, *self._of_switches(), *self.fabric.findings()),
        )

    def _in_order(self) -> list[DiscoveredDevice]:
        """Return the GPUs as NCCL numbers them, in the file's order where it does not."""
        numbers = [dev for dev, _ in self.gpus]
        if None in numbers or len(set(numbers)) != len(numbers):
            return [gpu for _, gpu in self.gpus]
        return [gpu for _, gpu in sorted(self.gpus, key=lambda pair: pair[0] or 0)]

    def _of_switches(self) -> Iterator[Finding]:
        if self._virtual_parts:
            message = f"{self._virtual_parts} switches are parts of the Broadcom switch above them"
            help = "NCCL takes each with its parts for one switch: PIX where here is PXB"
            yield Finding("virtual-switch", message, severity="note", help=help)
        if self._peer_links:
            message = f"{self._peer_links} links between virtual switches (pcilink) were left out"
            help = "they close loops, and PCIe is a tree here"
            yield Finding("left-out-link", message, severity="note", help=help)

    def _note_version(self, version: str) -> None:
        if version.strip() == "2":
            message = "version 2: RCCL's form, with xGMI between GPUs"
            self.findings.append(Finding("nccl-version", message, severity="note"))
        elif version.strip() != "1":
            message = f"version `{printable(version)}` is none that NCCL or RCCL write"
            self.findings.append(Finding("nccl-version", message, severity="warning"))

    def _note_left_out(self) -> None:
        if self._repeated:
            message = f"PCI addresses stand several times: {some_of(self._repeated)}"
            help = "switches were taken as different ones, devices once"
            self.findings.append(Finding("address-again", message, severity="warning", help=help))
        software = [name for name in self.left_out if name not in self._unclassified]
        if software:
            message = f"{len(software)} software interfaces were left out: {some_of(software)}"
            self.findings.append(Finding("virtual-interfaces", message, severity="note"))
        if self._unclassified:
            count = len(self._unclassified)
            message = f"{count} PCI devices have no class and were left out: "
            message += some_of(self._unclassified)
            help = "add them to the YAML by hand, or dump the file on the machine itself"
            self.findings.append(
                Finding("unclassified-device", message, severity="warning", help=help)
            )


def _card(key: tuple[str, ...], functions: list[tuple[Element, str]]) -> DiscoveredDevice:
    """Return one card from the functions that share its place on the bus."""
    element, here = functions[0]
    nets = [net for function, _ in functions for net in function.iter("net")]
    names = list(dict.fromkeys(printable(net.get("name", "")) for net in nets))
    named = [name for name in names if name]
    rdma = [name for name in named if _RDMA.match(name)]
    plain = [name for name in named if name not in rdma]
    count = max(len(nets), len(functions))
    part = identify(element.get("vendor", ""), element.get("device", ""), ports=count)
    code = element.get("class", "").lower().removeprefix("0x")
    return DiscoveredDevice(
        id=here,
        kind="dpu" if part.startswith("bluefield") else "nic",
        part=part or "nic-unknown",
        parent=key[0],
        link=link_of(element),
        pci=tuple(address for _, one in functions for address in _addresses(one)),
        rdma=tuple(rdma),
        label=", ".join(plain),
        ports=tuple(_speed(net) for net in nets),
        network="infiniband" if code.startswith("0207") else "",
        said=_numbers(element),
    )


def _speed(net: Element) -> float | None:
    """Return a net's speed in bits/s, `None` when it says none that can be."""
    megabits = number(net, "speed")
    return megabits * _MBIT if megabits is not None and megabits > 0 else None


def _addresses(here: str) -> tuple[str, ...]:
    return () if here.startswith(("pci ", f"{MADE_UP}:")) else (here,)


def _numbers(element: Element, inner: Element | None = None, names: tuple[str, ...] = ()) -> str:
    """Return class and numbers of a ``pci`` for the comment."""
    texts = [f"class {code}"] if (code := element.get("class")) else []
    vendor, device = element.get("vendor", ""), element.get("device", "")
    if vendor and device:
        texts.append(f"{vendor_name(vendor)} {device}")
    if inner is not None:
        texts += [f"{name} {value}" for name in names if (value := inner.get(name)) is not None]
    return printable(", ".join(texts))
