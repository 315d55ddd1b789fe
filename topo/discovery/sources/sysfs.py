"""Linux's /sys and /proc: of this machine, or a copy as a folder or a tar archive.

References
----------
Linux, ``Documentation/ABI/testing/sysfs-bus-pci``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import NVIDIA
from topo.discovery.describe import fastest_cards, network_cable
from topo.discovery.gpu_links import with_nvswitch_links
from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, Machine, printable
from topo.discovery.numa import Hosts, Package, bits_of, hosts_of, with_generation
from topo.discovery.pci import (
    Function,
    HostBridge,
    LinkSpeed,
    card_of,
    chain_of,
    generation_of,
    read_address,
)
from topo.discovery.pci_tree import by_address, devices_of, hidden_ports
from topo.discovery.sources.config_space import config_links, config_redirects
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more, counted
from topo.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from topo.discovery.sources.file_tree import FileTree


_NODES: Final = "/sys/devices/system/node"
_CPUS: Final = "/sys/devices/system/cpu"
_GPUS: Final = "/proc/driver/nvidia/gpus"
FUNCTIONS: Final = "/sys/bus/pci/devices"
_SLOTS: Final = "/sys/bus/pci/slots"
_NVME: Final = "/sys/class/nvme"

_MEMORY: Final = re.compile(r"MemTotal:\s*(\d{1,15})\s*kB")
_MODEL: Final = re.compile(r"(?m)^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$")
_CPUID: Final = re.compile(r"(?m)^(vendor_id|cpu family|model)\s*:\s*(\w{1,20})\s*$")
_GPU_NODE: Final = re.compile(r"Node:\s*(\d{1,4})\b")
_ROOT: Final = re.compile(r"pci([0-9a-f]{4,8}:[0-9a-f]{2})", re.IGNORECASE)
_RATE: Final = re.compile(r"(\d{1,8}(?:\.\d{0,7})?) Gb/sec")
_ACTIVE: Final = re.compile(r"4:|ACTIVE")
_MORE: Final = 1.1  # of what the nodes tell, from which the host's word for its memory counts
_MOST_CPUS: Final = 8192
_MOST_GIDS: Final = 64
_SECTOR: Final = 512  # bytes
_REMOTE: Final = ("rdma", "tcp", "fc")
_NO_PLACE: Final = "bus"  # how the parent of a function begins whose path does not tell it


def root_of(folder: Path) -> Path:
    """Return the folder that has ``sys`` in it, of itself or of a single folder in it."""
    root = folder.resolve()
    if root.name == "sys" and not (root / "sys").exists():
        root = root.parent
    if not (root / "sys").exists() and root.is_dir():
        inner = [child for child in sorted(root.iterdir())[:1000] if (child / "sys").is_dir()]
        root = inner[0] if len(inner) == 1 else root
    return root


def read_tree(tree: FileTree, name: str) -> Machine:
    """Return the machine of a tree of files that has ``sys`` in it: a host's own, or a copy.

    Raises
    ------
    ExchangeError
        If nothing of a machine is in it.
    """
    processors = read_processors(tree)
    functions = read_functions(tree, processors)
    if not functions and not processors.node_of:
        message = f"`{name}` has no sys/bus/pci/devices and no sys/devices/system/node in it"
        help = "give a folder or archive with `sys` in it, or / for this machine"
        raise ExchangeError(Finding("nothing-there", message, help=help))
    hosts = processors.hosts
    bridges = _bridges(functions, hosts) or [HostBridge("none", hosts.first)]
    pci = devices_of(by_address(functions), bridges, hosts.forwards)
    cards = [device for device in pci.devices if device.is_nic]
    targets, target_cables, doubts = _targets(tree, cards)
    devices, cables, guesses = with_nvswitch_links(
        (*targets, *hosts.devices, *pci.devices), target_cables
    )
    placeless = [
        function.address for function in functions if function.parent.startswith(_NO_PLACE)
    ]
    odd = list(tree.findings)
    if processors.gpu_nodes:
        numbers = ", ".join(map(str, processors.gpu_nodes))
        message = f"NUMA nodes {numbers} are memory of GPUs, not of the host"
        odd.append(Finding("gpu-memory-nodes", message, severity="note"))
    if processors.bare_nodes:
        numbers = ", ".join(map(str, processors.bare_nodes))
        message = f"NUMA nodes {numbers} have no CPUs and were left out: CXL, or memory of a device"
        odd.append(Finding("memory-only-nodes", message, severity="note"))
    if not functions:
        message = "there are no PCI devices: they were not copied, or there is none"
        help = "copy sys/bus/pci and sys/devices too"
        odd.append(Finding("no-io", message, severity="warning", help=help))
    odd += hidden_ports(functions, _NO_PLACE)
    if placeless:
        message = f"{and_more(placeless)}: copied without their place in the tree"
        help = "copy sys/devices too, and keep the links of sys/bus/pci/devices"
        odd.append(Finding("no-tree", message, severity="warning", help=help))
    return Machine(
        kind="sysfs",
        source="Linux's /sys",
        file=name,
        devices=devices,
        cables=cables,
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        notes=("Speeds are the most that both ends of a link can. /sys knows no NVLink.",),
        left_out=pci.left_out,
        findings=(*odd, *pci.findings, *doubts, *guesses),
    )


# --- CPUs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Processors:
    """The CPUs, which NUMA node each logical CPU is in, and the nodes that are no host memory.

    `gpu_nodes` are memory of GPUs by the driver's word, `bare_nodes` others without CPUs; `gpus`
    are the addresses that NVIDIA's driver has.
    """

    hosts: Hosts
    node_of: dict[int, int]
    gpu_nodes: tuple[int, ...]
    bare_nodes: tuple[int, ...]
    gpus: tuple[str, ...]

    def node_near(self, cpus: str, mask: str) -> int | None:
        """Return the one NUMA node of a ``local_cpulist`` or ``local_cpus``, else `None`."""
        nodes = {self.node_of.get(cpu) for cpu in _listed(cpus) or bits_of(mask)}
        return nodes.pop() if len(nodes) == 1 else None


def read_processors(tree: FileTree) -> Processors:
    """Read what the system says of its CPUs."""
    gpus = tree.names(_GPUS)
    texts = [tree.text(f"{_GPUS}/{gpu}/numa_status") for gpu in gpus]
    gpu_nodes = {int(match[1]) for text in texts if (match := _GPU_NODE.search(text))}
    nodes: dict[int, int | None] = {}
    bare: list[int] = []
    node_of: dict[int, int] = {}
    for number in _numbered(tree.names(_NODES), "node"):
        path = f"{_NODES}/node{number}"
        cpus = _listed(tree.text(f"{path}/cpulist")) or bits_of(tree.text(f"{path}/cpumap"))
        if cpus:
            nodes[number] = _bytes(tree.text(f"{path}/meminfo"))
            node_of |= dict.fromkeys(cpus, number)
        elif number not in gpu_nodes:
            bare.append(number)
    of_host = _bytes(tree.text("/proc/meminfo"))
    of_nodes = sum(size or 0 for size in nodes.values())
    is_more = bool(of_host and not bare and not gpu_nodes and of_host > _MORE * of_nodes)
    if is_more:  # a virtual machine's nodes may tell what is set up so far, and not all
        nodes = dict.fromkeys(nodes, of_host if len(nodes) == 1 else None)
    packages: dict[str, set[int]] = {}
    for cpu in _numbered(tree.names(_CPUS), "cpu"):
        package = tree.text(f"{_CPUS}/cpu{cpu}/topology/physical_package_id")
        if package.isdecimal() and cpu in node_of:
            packages.setdefault(package, set()).add(node_of[cpu])
    text = tree.text("/proc/cpuinfo")
    named, numbers = _MODEL.search(text), dict(_CPUID.findall(text.partition("\n\n")[0]))
    model = with_generation(
        named[1].strip() if named else "",
        *(numbers.get(key, "") for key in ("vendor_id", "cpu family", "model")),
    )
    sockets = [Package(frozenset(overlapped)) for overlapped in packages.values()]
    hosts = hosts_of(nodes, sockets, model)
    if is_more and of_nodes:
        evidence = f"the host tells its size, and its NUMA nodes {of_nodes / 1e9:.4g} GB"
        devices = (
            replace(device, evidence=evidence, is_host_size=True) if device.is_memory else device
            for device in hosts.devices
        )
        hosts = replace(hosts, devices=tuple(devices))
    addresses = tuple(address for gpu in gpus if (address := read_address(gpu)))
    return Processors(hosts, node_of, tuple(sorted(gpu_nodes)), tuple(bare), addresses)


def _bytes(meminfo: str) -> int | None:
    match = _MEMORY.search(meminfo)
    return int(match[1]) * 1024 if match else None


def _numbered(names: list[str], stem: str) -> list[int]:
    texts = [name.removeprefix(stem) for name in names if name.startswith(stem)]
    return sorted(int(text) for text in texts if re.fullmatch(r"\d{1,4}", text))


def _listed(text: str) -> list[int]:
    """Return the numbers of ``0-7,16-23``."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            numbers += range(first, min(last, _MOST_CPUS) + 1)
    return numbers


# --- PCI functions --------------------------------------------------------------------------------


def read_functions(tree: FileTree, processors: Processors) -> list[Function]:
    """Return all PCI functions that the system shows."""
    slots = {  # labels by the address of a card
        card_of(address): printable(slot)
        for slot in tree.names(_SLOTS)
        if (address := read_address(tree.text(f"{_SLOTS}/{slot}/address")))
    }
    return [
        _function(tree, path, address, slots.get(card_of(address), ""), processors)
        for entry in tree.names(FUNCTIONS)
        if (address := read_address(entry)) and (path := tree.resolve(f"{FUNCTIONS}/{entry}"))
    ]


def _bridges(functions: list[Function], hosts: Hosts) -> list[HostBridge]:
    """Return the host bridges, each by the NUMA node that what hangs on it says first."""
    by_id = {function.id: function for function in functions}
    node_of: dict[str, int | None] = {}
    for function in functions:
        if function.parent not in by_id:
            node_of[function.parent] = node_of.get(function.parent) or function.node
    for function in functions:
        root = [function, *chain_of(function, by_id)][-1].parent
        if node_of.get(root) is None:
            node_of[root] = function.node
    bridges = []
    for root, node in sorted(node_of.items()):
        cpu, near = hosts.place([node] if node is not None else [])
        bus = printable(root.removeprefix(_NO_PLACE).strip())
        bridges.append(HostBridge(root, cpu, near, f"host bridge of bus {bus}"))
    return bridges


def _function(
    tree: FileTree, path: str, address: str, slot: str, processors: Processors
) -> Function:
    """Return the function whose real path this is, which is its place in the tree."""
    vendor = _hexadecimal(tree.text(f"{path}/vendor"))
    lanes_of_text = {str(lanes): lanes for lanes in LANES}
    current, most = (
        LinkSpeed(
            generation_of(tree.text(f"{path}/{word}_link_speed")),
            lanes_of_text.get(tree.text(f"{path}/{word}_link_width")),
        )
        for word in ("current", "max")
    )
    config = tree.data(f"{path}/config")
    if not current and not most:  # in the kernel's words
        current, most = config_links(config)
    rates, layer = _network_ports(tree, path)
    drives, size, model = _drive(tree, path)
    node, text = None, tree.text(f"{path}/numa_node")
    if re.fullmatch(r"\d{1,4}", text):
        node = int(text)
    elif not text:  # -1: the firmware does not know
        cpus, mask = tree.text(f"{path}/local_cpulist"), tree.text(f"{path}/local_cpus")
        node = processors.node_near(cpus, mask)
    return Function(
        id=address,
        parent=_parent(path, address),
        address=address,
        code=_hexadecimal(tree.text(f"{path}/class")).zfill(6),
        vendor=vendor or (NVIDIA if address in processors.gpus else ""),
        device=_hexadecimal(tree.text(f"{path}/device")),
        text=model,
        current=current,
        most=most,
        node=node,
        slot=slot,
        nets=tuple(printable(name) for name in tree.names(f"{path}/net")),
        rdma=tuple(printable(name) for name in tree.names(f"{path}/infiniband")),
        ports=rates,
        network=layer,
        drives=drives,
        size=size,
        virtual=True if tree.resolve(f"{path}/physfn") else None,
        redirects=config_redirects(config),
    )


def _parent(path: str, address: str) -> str:
    """Return the bridge or host bridge above, by the real path of a function."""
    for step in reversed(path.split("/")[:-1]):
        if read_address(step):
            return read_address(step)
        if root := _ROOT.fullmatch(step):
            return root[1].lower()
    return f"{_NO_PLACE} {address.rpartition(':')[0]}"


def _hexadecimal(text: str) -> str:
    digits = text.lower().removeprefix("0x")
    return digits if re.fullmatch(r"[0-9a-f]{1,8}", digits) else ""


def _drive(tree: FileTree, path: str) -> tuple[tuple[str, ...], int | None, str]:
    """Return the names of an NVMe drive, its bytes and its model."""
    spaces: dict[str, str] = {}
    model = ""
    for name in tree.names(f"{path}/nvme"):
        model = model or printable(tree.text(f"{path}/nvme/{name}/model"))
        for space in tree.names(f"{path}/nvme/{name}"):
            if re.fullmatch(r"nvme\d+n\d+", space):
                spaces[space] = f"{path}/nvme/{name}/{space}"
    for name in tree.names(f"{path}/block"):
        spaces.setdefault(name, f"{path}/block/{name}")
    sizes = [tree.text(f"{space}/size") for space in spaces.values()]
    sectors = sum(int(size) for size in sizes if re.fullmatch(r"\d{1,15}", size))
    return tuple(printable(name) for name in spaces), sectors * _SECTOR or None, model


# --- network --------------------------------------------------------------------------------------


def _network_ports(tree: FileTree, path: str) -> tuple[tuple[float | None, ...], str]:
    """Return the rates of a function's ports in bits/s, and ``infiniband`` or ``ethernet``."""
    rates: list[float | None] = []
    rdma = tree.names(f"{path}/infiniband")
    if not rdma:
        for name in tree.names(f"{path}/net"):
            speed = tree.text(f"{path}/net/{name}/speed")  # Mbit/s, and -1 while it is down
            rates.append(int(speed) * 1e6 or None if re.fullmatch(r"\d{1,8}", speed) else None)
    layers: set[str] = set()
    for name in rdma:
        for number in tree.names(f"{path}/infiniband/{name}/ports"):
            port = f"{path}/infiniband/{name}/ports/{number}"
            layers.add(tree.text(f"{port}/link_layer").lower())
            state, rate = tree.text(f"{port}/state"), _RATE.match(tree.text(f"{port}/rate"))
            is_down = bool(state) and not _ACTIVE.search(state)  # then it says any number
            rates.append(float(rate[1]) * 1e9 or None if rate and not is_down else None)
    return tuple(rates), next(
        (layer for layer in ("infiniband", "ethernet") if layer in layers), ""
    )


# --- storage over a network -----------------------------------------------------------------------


def _targets(
    tree: FileTree, cards: Sequence[DiscoveredDevice]
) -> tuple[list[DiscoveredDevice], list[DiscoveredCable], list[Finding]]:
    """Return the NVMe-oF targets that the system is connected to, their cables, and doubts.

    Their controllers have no place in the PCI tree. Which card leads to one follows from the
    address it was reached from, else from the routes, else it is a guess.
    """
    paths: dict[str, list[tuple[str, str]]] = {}
    for name in tree.names(_NVME):
        transport = tree.text(f"{_NVME}/{name}/transport").lower()
        if transport in _REMOTE:
            key = tree.text(f"{_NVME}/{name}/subsysnqn") or name
            address = tree.text(f"{_NVME}/{name}/address")
            paths.setdefault(key, []).append((transport, address))
    if not paths:
        return [], [], []
    if not cards:
        message = f"no network card leads to {counted(len(paths), 'NVMe-oF target')}: left out"
        return [], [], [Finding("target-without-card", message, severity="warning")]
    card_of_end = _cards_by_ends(tree, cards)
    targets, cables, guessed = list[DiscoveredDevice](), list[DiscoveredCable](), list[str]()
    for number, (nqn, ways_in) in enumerate(sorted(paths.items())):
        label = printable(nqn.rpartition(":")[2])
        target = DiscoveredDevice(
            f"target {number}",
            "storage",
            "nvme-of-target",
            label=label,
            facts=(("outside", "yes"),),
            evidence=printable(f"NVMe over {ways_in[0][0]}, {ways_in[0][1]}"),
        )
        targets.append(target)
        matched = []
        for _, text in ways_in:  # like `traddr=10.0.0.5,trsvcid=4420,src_addr=10.0.0.1`
            values = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
            ends = [values.get(key, "") for key in ("host_iface", "src_addr", "host_traddr")]
            ends.append(_route(tree, values.get("traddr", "")))
            matched += [card_of_end[end] for end in ends if end in card_of_end][:1]
        if not matched:
            guessed.append(label)
        for card in {card.id: card for card in matched or fastest_cards(cards)}.values():
            rate = max((rate for rate in card.ports if rate), default=None)
            count = len(card.ports) if rate else 1
            doubt = "" if rate else "speed guessed: edit it"
            cable = network_cable(count, rate, card.network)
            cables.append(DiscoveredCable(target.id, card.id, cable, doubt))
    if not guessed:
        return targets, cables, []
    message = f"which card leads to {', '.join(guessed[:3])} is not told: a guess"
    return targets, cables, [Finding("guessed-storage", message, severity="note")]


def _cards_by_ends(
    tree: FileTree, cards: Sequence[DiscoveredDevice]
) -> dict[str, DiscoveredDevice]:
    """Return the cards by the IP addresses and interfaces that are theirs."""
    card_of_end: dict[str, DiscoveredDevice] = {}
    for card in cards:
        ends = [name for name in card.label.split(", ") if name]
        for rdma in card.rdma:
            for port in tree.names(f"/sys/class/infiniband/{rdma}/ports"):
                gids = f"/sys/class/infiniband/{rdma}/ports/{port}/gids"
                for name in tree.names(gids)[:_MOST_GIDS]:
                    try:
                        address = IPv6Address(tree.text(f"{gids}/{name}"))
                    except AddressValueError:
                        continue
                    ends.append(str(address.ipv4_mapped or address))
        card_of_end |= dict.fromkeys(ends, card)
    return card_of_end


def _route(tree: FileTree, target: str) -> str:
    """Return the interface that /proc/net/route sends a target's packets by."""
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", target):
        return ""
    try:
        number = int.from_bytes(IPv4Address(target).packed, "little")
    except ValueError:
        return ""
    best = (-1, "")
    for line in tree.text("/proc/net/route").splitlines()[1:]:
        cells = line.split()
        if len(cells) > 7 and all(re.fullmatch(r"[0-9A-F]{8}", cells[at]) for at in (1, 7)):  # noqa: PLR2004
            destination, mask = int(cells[1], 16), int(cells[7], 16)
            if number & mask == destination:
                best = max(best, (mask.bit_count(), cells[0]))
    return best[1]
