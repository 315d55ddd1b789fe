"""NCCL's topology XML, within the limits of NCCL's own small parser.

No prolog, no tabs, no text, no line break inside a tag, no entities, at most 16 attributes, values
under 255 characters, at most 256 nodes and 640 children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import generations, transfer_rate, vendor_of_processor
from topo.discovery.pci import MADE_UP, read_address
from topo.errors import ExchangeError, Finding
from topo.exports import Exported, not_held
from topo.exports.element import Element
from topo.exports.nccl_leaves import Leaves
from topo.topology.nccl_paths import cpu_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.catalogue.part import Cable
    from topo.description.description import Device
    from topo.topology.locality import Attachment
    from topo.topology.topology import Topology


_MOST_NODES: Final = 256
_MOST_CHILDREN: Final = 640
_DEVICES: Final = 32  # on one bus
_LEAVES: Final = ("gpu", "nic", "dpu")


def write(topology: Topology) -> Exported:
    """Write NCCL's XML of one host.

    Raises
    ------
    ExchangeError
        If there is no CPU, or there are several hosts.
    """
    writer = _Writer(topology)
    root = writer.system()
    text = "\n".join(root.lines()) + "\n"
    return Exported(text, (*writer.findings, *_limits(root), *_lost(topology)))


class _Writer:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._made_up: list[str] = []
        self.findings: list[Finding] = []
        self._addresses = {name: self._address(device) for name, device in topology.devices.items()}
        self._leaves = Leaves(topology, self._addresses)

    def system(self) -> Element:
        hosts = self._hosts()
        placed = {
            name: found
            for name, device in self._topology.devices.items()
            if device.kind in ("pcie-switch", *_LEAVES)
            and (found := self._topology.tree.attachment(name)) is not None
        }
        nodes: dict[tuple[str, str], list[str]] = {}
        for cpu in hosts:
            sides = {found.node for found in placed.values() if found.socket == cpu.name}
            for side in sorted(sides) or [""]:
                nodes[cpu.name, side] = []
        below: dict[str, list[str]] = {}
        for name, found in placed.items():
            if found.bridges:
                below.setdefault(found.bridges[0], []).append(name)
            elif (found.socket, found.node) in nodes:
                nodes[found.socket, found.node].append(name)
        version = "2" if self._leaves.has_xgmi else "1"
        root = Element("system", {"version": version})
        for (cpu_name, side), members in nodes.items():
            element = self._cpu(self._topology[cpu_name], side)
            for name in members:
                element.children += self._pci(name, placed, below)
            root.children.append(element)
        self._note_made_up()
        return root

    def _hosts(self) -> list[Device]:
        roots = [
            root
            for root in self._topology.of_kind("root-complex")
            if (found := self._topology.tree.attachment(root.name)) and found.socket == root.name
        ]
        hosts = [*self._topology.of_kind("cpu"), *roots]
        if not hosts:
            message = "NCCL's XML begins at CPUs, and this machine has none"
            raise ExchangeError(Finding("not-held", message))
        seen, front = {hosts[0].name}, [hosts[0].name]
        for name in front:
            for step in self._topology.steps[name]:
                host = self._topology[step.target].kind in ("cpu", "root-complex")
                if host and step.target not in seen:
                    seen.add(step.target)
                    front.append(step.target)
        apart = [host.name for host in hosts if host.name not in seen]
        if apart:
            message = f"NCCL's XML holds one host, and {apart[0]} is of another"
            raise ExchangeError(Finding("not-held", message, help="export a file of one server"))
        return hosts

    def _cpu(self, device: Device, side: str) -> Element:
        vendor, family, model = cpu_numbers(self._topology, device)
        numa = side.removeprefix("numa") or (str(device.numa[0]) if device.numa else "")
        attributes = {"numaid": numa or "-1"}
        if vendor == "arm":
            attributes["arch"] = "arm64"
        elif cpuid_vendor := vendor_of_processor(vendor):
            numbers = {"familyid": str(family), "modelid": str(model)}
            attributes |= {"arch": "x86_64", "vendor": cpuid_vendor, **numbers}
        return Element("cpu", attributes)

    def _pci(
        self, name: str, placed: dict[str, Attachment], below: dict[str, list[str]]
    ) -> list[Element]:
        """Return the elements of a device: one a PCI function, a switch with what is below it."""
        device = self._topology[name]
        link = self._link(name, placed[name])
        inner = [
            element for child in below.get(name, ()) for element in self._pci(child, placed, below)
        ]
        if device.kind == "pcie-switch":
            attributes = {"busid": self._addresses[name], "class": "0x060400", **link}
            return [Element("pci", attributes, inner)]
        functions = self._leaves.functions(device, link, virtual=self._is_virtual(device))
        if inner:  # a card with two levels of switches inside
            upper, lower = (
                {"busid": self._next(name), "class": "0x060400", **link} for _ in range(2)
            )
            return [Element("pci", upper, [*functions, Element("pci", lower, inner)])]
        return functions

    def _is_virtual(self, device: Device) -> bool:
        """Whether a card is an interface without a PCI device, in a machine that names those."""
        if device.pci or device.rdma or not device.label or device.part.name != "nic-unknown":
            return False
        found = self._topology.tree.attachment(device.name)
        others = any(one.pci for one in self._topology.devices.values())
        return others and found is not None and not found.bridges

    def _link(self, name: str, found: Attachment) -> dict[str, str]:
        parent = found.bridges[0] if found.bridges else found.root
        cable = self._cable(name, parent)
        generation = cable.generation if cable else None
        speed = ""
        if generation in generations():
            speed = f"{transfer_rate(generation) / 1e9:.1f} GT/s PCIe"
        lanes = (cable.lanes or 0) * cable.count if cable else 0
        return {"link_speed": speed, "link_width": str(lanes)}

    def _cable(self, name: str, parent: str) -> Cable | None:
        for step in self._topology.steps[name]:
            if step.target == parent and step.link.cable.family == "pcie":
                return step.link.cable
        return None

    # --- addresses ----------------------------------------------------------------------------

    def _address(self, device: Device) -> str:
        if device.pci:
            return read_address(device.pci[0])
        named = device.kind in ("pcie-switch", *_LEAVES) and not self._is_virtual(device)
        return self._next(device.name) if named else ""

    def _next(self, name: str) -> str:
        self._made_up.append(name)
        bus, device = divmod(len(self._made_up), _DEVICES)
        return f"{MADE_UP}:{bus % 256:02x}:{device:02x}.0"

    def _note_made_up(self) -> None:
        if self._made_up:
            count, first = len(self._made_up), self._made_up[0]
            self.findings.append(
                Finding(
                    "made-up-address",
                    f"{count} devices have no PCI address and got one of domain {MADE_UP}: {first}"
                    + (" and others" if count > 1 else ""),
                    severity="warning",
                    help="NCCL finds GPUs and cards by their addresses: add `pci:` to the YAML",
                )
            )


# --- what does not fit ----------------------------------------------------------------------------


def _limits(root: Element) -> Iterator[Finding]:
    def count(element: Element) -> int:
        return 1 + sum(map(count, element.children))

    def widest(element: Element) -> int:
        return max([len(element.children), *map(widest, element.children)])

    nodes = count(root)
    if nodes > _MOST_NODES or widest(root) > _MOST_CHILDREN:
        yield Finding(
            "format-limit",
            f"{nodes} elements: NCCL's parser takes {_MOST_NODES} a host",
            severity="warning",
            help="it refuses this file",
        )


def _lost(topology: Topology) -> tuple[Finding, ...]:
    kinds = {
        "memory": "memories",
        "cxl-memory": "CXL memory",
        "storage": "storage",
        "nvme": "drives",
        "hba": "storage controllers",
        "network-switch": "network switches",
        "root-complex": "root complexes",
    }
    things = [noun for kind, noun in kinds.items() if topology.of_kind(kind)]  # type: ignore[arg-type]
    description = topology.description
    if description.workloads or description.expectations:
        things.append("workloads and expectations")
    if description.measurements:
        things.append("measured rates")
    return not_held("NCCL's XML", *things, "links between sockets (it has its own numbers)")
