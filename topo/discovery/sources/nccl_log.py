"""The log of NCCL or RCCL with ``NCCL_DEBUG=INFO``: its graph of the machine, as devices.

The graph has rates that NCCL counts with, and few numbers of parts: what generation, width or
number of links they stand for is concluded from NCCL's own table, and said to be a guess. All
graphs that a host's processes wrote are one machine; several hosts are several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from topo.catalogue.cables import LANES
from topo.catalogue.identities import AMD, processor, vendor_name
from topo.catalogue.parts import catalogue
from topo.discovery.foreign import lines_of_log, nothing_there
from topo.discovery.machine import (
    NVSWITCH,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    by_depth,
    first_node,
    printable,
)
from topo.discovery.pci import Function, HostBridge, read_address
from topo.discovery.pci_tree import by_address, devices_of
from topo.discovery.sources.nccl_graph import CardName, Graph, Log, Node, read_log
from topo.errors import Finding
from topo.phrases import and_more, counted
from topo.topology.rules import nccl_numbers

_HELP: Final = "run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV and import all of the log"
# What a NVLink counts as in releases whose numbers are not kept: src/graph/topo.h of 2.5 to 2.27.
_OLDER_NVLINK: Final = {
    "nvlink 2": (21.0, 22.0),
    "nvlink 3": (21.0, 22.0),
    "nvlink 4": (20.0,),
    "nvlink 5": (40.0,),
}
# A CPU's vendor by NCCL's number for it, and the first model of its classes of Intel's.
_VENDORS: Final = {"1": "GenuineIntel", "2": "AuthenticAMD", "3": "CentaurHauls"}
_INTEL_MODELS: Final = {"2": 0x55, "3": 0x8F, "4": 0xCF}
_X86, _ARM = "1", "3"
_INTEL_FAMILY: Final = 6
_LAST_NODE: Final = 1 << 20  # a number from which on it is none
_USUAL_LANES, _OLD_GENERATION = 16, 3
_NUMBERS: Final = re.compile(r"[0-9a-f]{1,16}")
_FUNCTION: Final = 0xF  # of a PCI address as a number
_OF_GPUS: Final = ("NVL", "XGMI", "C2C")
_ROUNDED: Final = 0.05  # GB/s that a written rate of one link can be off
_MOST_LINKS: Final = 36
_NAMED: Final = 8

_Found = tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...]]


def read(data: bytes, name: str) -> Machine:
    """Read a log; an `ExchangeError` if there is no graph in it."""
    log = read_log(lines_of_log(data, name))
    if not log.graphs:
        message = f"`{name}` has no graph of NCCL: no line `CPU/0` with what hangs on it"
        raise nothing_there(message, _HELP)
    domain = any(
        node.system for graph in log.graphs for node in graph.nodes.values() if node.kind == "CPU"
    )
    hosts: dict[str, _Host] = {}
    for graph in log.graphs:
        cpus = (node for node in graph.nodes.values() if node.kind == "CPU")
        for system in dict.fromkeys(cpu.system for cpu in cpus):
            host = f"host.{system}" if domain else graph.host
            # Which of a domain's hosts wrote a line is not told.
            hosts.setdefault(host, _Host(log, "" if domain else graph.host)).take(graph, system)
    machines = {host: of_host.machine() for host, of_host in hosts.items()}
    findings = list(_findings(log, hosts))
    if len(hosts) == 1:
        (found,) = machines.values()
        devices, cables = found
    else:
        devices, cables = _all_hosts(machines, one_switch=domain)
        of_domain = " of one NVLink domain" if domain else ""
        message = f"the log is of {len(hosts)} hosts{of_domain}, "
        message += "and what joins their network cards is not told"
        help = "write `fabrics:` or `links:`; with -o OUT each kind of host is a file"
        findings.append(Finding("unknown-network", message, severity="note", help=help))
    vendors = {of_host.vendor for of_host in hosts.values()}
    socket = processor(next(iter(vendors)), None, None) if len(vendors) == 1 else None
    return Machine(
        kind="nccl-log",
        source="a log of RCCL" if log.is_of_amd else "a log of NCCL",
        file=name,
        devices=devices,
        cables=cables,
        socket_cable=socket.cable if socket is not None else "",
        notes=(
            "A cpu here is a NUMA node: NCCL does not tell which of them share a socket.",
            "The log has the GPUs and cards that the job used; there may be more.",
        ),
        findings=tuple(findings),
    )


def _findings(log: Log, hosts: dict[str, _Host]) -> Iterator[Finding]:
    lost = sum(graph.lost for graph in log.graphs)
    missing = list(dict.fromkeys(name for graph in log.graphs for name in _missing(graph)))
    if lost:
        message = f"{counted(lost, 'line')} of the graph stand below nothing: cut by hand?"
        help = "what they stood for is missing; paste the whole log"
        yield Finding("abridged", message, severity="warning", help=help)
    elif missing:
        message = f"the table of paths has what the graph has not: {and_more(missing, _NAMED)}"
        help = "the graph was cut; paste the whole log"
        yield Finding("abridged", message, severity="warning", help=help)
    if any(graph.is_flat for graph in log.graphs):
        message = "the graph's lines begin all at one column: what hangs on which switch is lost"
        help = "paste the log with its spaces, as a file"
        yield Finding("no-tree", message, severity="warning", help=help)
    moved = [address for host in hosts.values() for address in host.moved]
    if moved:
        message = f"graphs of one host differ in where this hangs: {and_more(moved, _NAMED)}"
        help = "the first was taken; is the log of two runs?"
        yield Finding("sources-disagree", message, severity="warning", help=help)
    guessed = [host.links_guessed for host in hosts.values() if host.links_guessed]
    if guessed:
        message = f"how many NVLinks a GPU has is not told: {guessed[0]} is a guess by their rate"
        help = "`nvidia-smi topo -m` counts them: --and FILE"
        yield Finding("guessed-nvlinks", message, severity="note", help=help)


def _missing(graph: Graph) -> Iterator[str]:
    """Yield what the table of paths has and the graph has not."""
    keys = {node.key.replace("DEV/", "GPU/") for node in graph.nodes.values()}
    keys |= {
        f"NET/{graph.nodes[port.card].system:x}-{port.index:x}" for port in graph.ports.values()
    }
    keys |= {edge.b for edge in graph.edges}
    return (key for key in graph.listed if key not in keys)


def _all_hosts(machines: dict[str, _Found], *, one_switch: bool) -> _Found:
    """Return the devices of several hosts; the NVSwitch of a domain is in none of them."""
    devices: dict[str, DiscoveredDevice] = {}
    cables: list[DiscoveredCable] = []
    for host, (of_host, cables_of_host) in machines.items():

        def outer(id_: str, host: str = host) -> str:
            return id_ if one_switch and id_ == NVSWITCH else f"{host}.{id_}"

        for device in of_host:
            id_ = outer(device.id)
            devices[id_] = replace(
                device,
                id=id_,
                parent=outer(device.parent) if device.parent else "",
                host="" if id_ == NVSWITCH else host,
            )
        cables += (replace(cable, a=outer(cable.a), b=outer(cable.b)) for cable in cables_of_host)
    return tuple(devices.values()), tuple(cables)


# --- one host -------------------------------------------------------------------------------------


class _Links(NamedTuple):
    """Links from a GPU to another, to NVSwitches or to its CPU's chip: their rate together."""

    sort: str
    gpu: str
    target: str
    rate: float


class _Host:
    """What all graphs of one host say of it, the first before the others."""

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name
        self.cpus: dict[str, Node] = {}
        self.nodes: dict[str, Node] = {}  # in the tree, by their `id` here
        self.ids: dict[str, str] = {}  # by their keys in the graph
        self.ports: dict[tuple[str, int], float | None] = {}
        self.links: dict[tuple[str, str, str], _Links] = {}
        self.moved: dict[str, None] = {}
        self.links_guessed = ""
        self.vendor = ""

    def take(self, graph: Graph, system: int) -> None:
        """Take what a graph has of this host, one of its systems."""
        # A GPU that is cut in two is two devices with one address.
        halves = {edge.a for edge in graph.edges if edge.link == "LOC" and edge.b[:3] == "DEV"}
        here = [node for node in graph.nodes.values() if node.system == system]
        for node in here:
            number = node.number & ~_FUNCTION if node.key in halves else node.number
            self.ids[node.key] = _address(number) or node.key
            if node.kind == "DEV":  # links lead to GPUs or to their devices
                self.ids.setdefault(node.key.replace("DEV/", "GPU/"), self.ids[node.key])
        for node in here:
            if node.kind == "CPU":
                self.ids[node.key] = node.key
                self.cpus.setdefault(node.key, node)
                self.vendor = self.vendor or _vendor(node)
                continue
            before = self.nodes.setdefault(self.ids[node.key], node)
            if self.ids.get(before.above) != self.ids.get(node.above):
                self.moved[self.ids[node.key]] = None
        for port in graph.ports.values():
            if port.card in self.ids:
                self.ports.setdefault((self.ids[port.card], port.index), port.rate)
        of_graph: dict[tuple[str, str, str], float] = {}
        for edge in graph.edges:
            gpu = self.ids.get(edge.a, "")
            if edge.link in _OF_GPUS and gpu in self.nodes and _is_gpu(self.nodes[gpu]):
                key = edge.link, gpu, self.ids.get(edge.b, edge.b)
                added = 0.0 if edge.b[:4] == "XC2C" else of_graph.get(key, 0.0)  # one for both
                of_graph[key] = added + float(edge.rate)
        for key, rate in of_graph.items():
            self.links.setdefault(key, _Links(*key, rate))

    def machine(self) -> _Found:
        """Return the devices and the links between GPUs."""
        cpus = sorted(map(_cpu, self.cpus.values()), key=first_node)
        hosts = [HostBridge(cpu.id, cpu.id, is_told=False) for cpu in cpus]
        tree = devices_of(by_address(self._functions()), hosts, keep_switches=True)
        gpus = [device for device in tree.devices if device.kind == "gpu"]
        cables = self._cables(gpus)
        switch = DiscoveredDevice(
            NVSWITCH, "nvswitch", "nvswitch-unknown", evidence="NVS: how many chips is not told"
        )
        devices = (
            *(device for device in tree.devices if device.is_nic),
            *self._interfaces(),
            *cpus,
            *by_depth(device for device in tree.devices if device.kind == "pcie-switch"),
            *gpus,
            *((switch,) if any(cable.b == NVSWITCH for cable in cables) else ()),
        )
        return devices, tuple(cables)

    def _functions(self) -> Iterator[Function]:
        """Yield the PCI functions of the graph; a switch is one as a whole."""
        for id_, node in self.nodes.items():
            vendor, device = _vendor_and_device(node)
            is_gpu = _is_gpu(node)
            if node.kind == "NIC" and not node.number:
                continue
            name = self.log.gpus_at.get((self.name, id_), "") if is_gpu else ""
            card = self._card(id_)
            texts = [name, f"{vendor_name(vendor)} {device}" if vendor else ""]
            yield Function(
                id=id_,
                parent=self.ids.get(node.above, node.above),
                address=id_ if id_ != node.key else "",
                vendor=vendor or (AMD if is_gpu and self.log.is_of_amd else ""),
                device=device,
                text=f"[{_plain_name(name)}]" if name else "",
                kind="gpu" if is_gpu else "nic" if node.kind == "NIC" else "pcie-switch",
                port="upstream" if node.kind == "PCI" else "",
                link=pcie_link(node.rate),
                nets=() if card.is_rdma else card.names,
                rdma=card.names if card.is_rdma else (),
                ports=self._rates(id_),
                network=card.network,
                virtual=False,
                evidence=printable(", ".join(filter(None, texts))) or node.key.replace("0-", ""),
            )

    def _card(self, id_: str) -> CardName:
        """Return the names of a card's ports, their sort, and whether they are RDMA's."""
        name = self.log.names_at.get((self.name, id_))
        cards = [self.log.cards.get((self.name, index)) for of, index in self.ports if of == id_]
        named_cards = [card for card in cards if card is not None]
        names = dict.fromkeys(name for card in named_cards for name in card.names)
        networks = {card.network for card in named_cards}
        return CardName(
            tuple(names) or ((name,) if name else ()),
            networks.pop() if len(networks) == 1 else "",
            bool(named_cards) and all(card.is_rdma for card in named_cards),
        )

    def _rates(self, id_: str) -> tuple[float | None, ...]:
        """Return bits/s of each port of a card: NCCL may count several of them as one."""
        rates: list[float | None] = []
        for (of, index), rate in self.ports.items():
            if of == id_:
                card = self.log.cards.get((self.name, index))
                count = len(card.names) if card is not None else 1
                rates += [rate / count if rate else None] * count
        return tuple(rates)

    def _interfaces(self) -> Iterator[DiscoveredDevice]:
        """Yield the cards without a PCI device."""
        for id_, node in self.nodes.items():
            if node.kind == "NIC" and not node.number:
                card = self._card(id_)
                yield DiscoveredDevice(
                    id=id_,
                    kind="nic",
                    part="nic-unknown",
                    parent=self._cpu_above(node),
                    link=DiscoveredLink(evidence="speed not told"),
                    rdma=card.names if card.is_rdma else (),
                    label="" if card.is_rdma else ", ".join(card.names),
                    ports=self._rates(id_),
                    network=card.network,
                    evidence="no PCI device: a virtual interface",
                )

    def _cpu_above(self, node: Node) -> str:
        for _ in self.nodes:
            if node.above in self.cpus:
                return node.above
            node = self.nodes.get(self.ids.get(node.above, ""), node)
        return next(iter(self.cpus))

    # --- links between GPUs -----------------------------------------------------------------------

    def _cables(self, gpus: Sequence[DiscoveredDevice]) -> list[DiscoveredCable]:
        """Return the cables of the GPUs: between two once, although both say it."""
        part_of = {gpu.id: gpu.part for gpu in gpus}
        place = {gpu.id: at for at, gpu in enumerate(gpus)}
        total: dict[str, float] = {}
        for links in self.links.values():
            if links.sort == "NVL":
                total[links.gpu] = total.get(links.gpu, 0.0) + links.rate
        cables: dict[tuple[str, str], DiscoveredCable] = {}
        for links in self.links.values():
            if links.gpu not in place:
                continue
            cable, evidence = "xgmi unknown", f"{links.sort}[{links.rate:.10g}]"
            if links.sort == "C2C":
                cable = f"nvlink-c2c {links.rate:.10g} GB/s"
            elif links.sort == "NVL":
                cable, guess = nvlinks(links.rate, total[links.gpu], part_of[links.gpu])
                evidence += guess
                self.links_guessed = self.links_guessed or (cable if guess else "")
            ends = links.gpu, links.target
            if links.target[:4] == "NVS/":
                ends = links.gpu, NVSWITCH
            elif links.sort == "C2C" or links.target[:4] == "CPU/":
                ends = links.gpu, self._cpu_above(self.nodes[links.gpu])
            elif links.target not in place or links.target == links.gpu:
                continue
            elif place[links.target] < place[links.gpu]:
                ends = links.target, links.gpu
            cables.setdefault(ends, DiscoveredCable(*ends, cable, evidence))
        last = len(place)
        return sorted(
            cables.values(), key=lambda cable: (place[cable.a], place.get(cable.b, last), cable.b)
        )


# --- numbers --------------------------------------------------------------------------------------


def _address(number: int) -> str:
    """Return the PCI address of NCCL's number for it, ``""`` where it is none."""
    return read_address(
        f"{number >> 20:x}:{number >> 12 & 0xFF:x}:{number >> 4 & 0xFF:x}.{number & _FUNCTION}"
        if number
        else ""
    )


def _is_gpu(node: Node) -> bool:
    return node.kind in ("GPU", "DEV")


def _vendor_and_device(node: Node) -> tuple[str, str]:
    """Return the numbers of a switch or a GPU's hardware: vendor, device, those of the board."""
    if node.kind not in ("PCI", "DEV") or not _NUMBERS.fullmatch(node.facts):
        return "", ""
    digits = node.facts.lower().zfill(16)
    return (digits[:4], digits[4:8]) if digits[:4] != "0000" else ("", "")


def _plain_name(name: str) -> str:
    """Return CUDA's name of a GPU as lspci has it: ``A100 SXM4 80GB``."""
    return name.removeprefix("NVIDIA ").replace("-", " ")


def _vendor(cpu: Node) -> str:
    """Return CPUID's vendor of a CPU, ``""`` where it is not x86 or not told."""
    architecture, vendor, *_ = (*cpu.facts.split("/"), "", "")
    return _VENDORS.get(vendor, "") if architecture == _X86 else ""


def _cpu(node: Node) -> DiscoveredDevice:
    architecture, _, model, *_ = (*node.facts.split("/"), "", "", "")
    vendor = _vendor(node)
    family, first_model = None, None
    if vendor == "GenuineIntel" and model in _INTEL_MODELS:
        family, first_model = _INTEL_FAMILY, _INTEL_MODELS[model]
    x86 = processor(vendor, family, first_model)
    words = x86.title[0] if x86 is not None else ""
    words += f", NCCL's model {model}" if first_model is not None else ""
    return DiscoveredDevice(
        id=node.key,
        kind="cpu",
        part=x86.like if x86 is not None else "cpu-unknown",
        numa=(node.number,) if node.number < _LAST_NODE else (),
        evidence="Arm" if architecture == _ARM else words,
    )


def pcie_link(rate: str) -> DiscoveredLink:
    """Return a PCIe link of the rate that NCCL counts with, ``24.0``: generation and width.

    Several have the same, and what NCCL does not know counts as 16 lanes of PCIe 3.

    Examples
    --------
    >>> pcie_link("24.0").cable, pcie_link("6.0").cable, pcie_link("0.2").cable
    ('pcie 4 x16', 'pcie 3 x8', 'pcie 1 x1')
    """
    numbers = nccl_numbers()
    digits = ".1f" if "." in rate else ".0f"  # release 2.5 wrote whole numbers

    def unlikely(split: tuple[int, int]) -> tuple[bool, float]:
        return split[0] < _OLD_GENERATION, abs(math.log(split[1] / _USUAL_LANES))

    splits = [
        (int(generation), lanes)
        for generation, of_lane in numbers.lane.items()
        if generation.isdecimal()
        for lanes in LANES
        if f"{of_lane * lanes / 80:{digits}}" == f"{float(rate):{digits}}"
    ]
    if not splits:
        return DiscoveredLink(evidence=f"PCI[{rate}], which no PCIe link has")
    evidence = f"PCI[{rate}]; generation and width are a guess"
    return DiscoveredLink(*min(splits, key=unlikely), evidence)


def nvlinks(rate: float, total: float, part: str) -> tuple[str, str]:
    """Return NVLinks of the rate that NCCL counts with, and what of it is a guess.

    Parameters
    ----------
    rate
        Of these links.
    total
        Of all links of the GPU.
    part
        The GPU's part, whose links are those of the catalogue.

    Examples
    --------
    >>> nvlinks(370.8, 370.8, "gpu-unknown")
    ('18x nvlink 4', ': number and generation are a guess')
    >>> nvlinks(20.0, 120.0, "v100-sxm-32gb")
    ('nvlink 2', '')
    """
    catalogue_part = catalogue().parts.get(part)
    fabric = catalogue_part.fabric if catalogue_part is not None else None
    if fabric is not None and fabric.medium:
        of_part = _counts(total, {(fabric.medium, fabric.count or _MOST_LINKS)})
        if of_part:
            count = _nearest(rate, total, of_part[0][1])
            return bundle(count, fabric.medium), ""
    fabrics = {
        (part.fabric.medium, part.fabric.count)
        for part in catalogue().parts.values()
        if part.kind == "gpu" and part.fabric and part.fabric.count and part.fabric.medium
    }
    candidates = _counts(total, fabrics)
    full = [candidate for candidate in candidates if candidate in fabrics]
    media = {medium for medium, _ in full or candidates}
    counts = {count for _, count in full or candidates}
    medium = media.pop() if len(media) == 1 else "nvlink unknown"
    if len(counts) != 1:
        return medium, ": how many is not told"
    guess = "number and generation are" if medium != "nvlink unknown" else "the number is"
    return bundle(_nearest(rate, total, counts.pop()), medium), f": {guess} a guess"


def _nearest(rate: float, total: float, count: int) -> int:
    return max(1, round(rate / total * count)) if total else 1


def _counts(total: float, fabrics: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the media and numbers of links, at most those of a fabric, that make up a rate."""
    fitting: dict[tuple[str, int], None] = {}
    current = nccl_numbers().nvlink
    for medium, most in sorted(fabrics):
        for of_one in (current.get(medium, 0.0), *_OLDER_NVLINK.get(medium, ())):
            count = round(total / of_one) if of_one else 0
            if 0 < count <= most and abs(count * of_one - total) < _ROUNDED * count:
                fitting[medium, count] = None
    return list(fitting)
