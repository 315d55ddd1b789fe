"""How devices hang on their hosts, and the class of every pair as `nvidia-smi topo -m` names it.

Classes, best first: ``X`` (itself), ``NV#`` (NVLinks; AMD's links between GPUs are ``XGMI``),
``PIX`` (at most one PCIe switch), ``PXB`` (several switches, no host bridge), ``PHB`` (one host
bridge), ``NODE`` (several host bridges of one NUMA node), ``SYS`` (the link between NUMA nodes or
sockets).

Reference: the legend that `nvidia-smi topo -m` prints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS, HOSTS
from topo.errors import Finding
from topo.graph import breadth_first, components
from topo.limits import LARGEST_MATRIX, MOST_PAIRS, refuse_more
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.description.description import Device
    from topo.topology.topology import Step, Topology

CLASSES: Final = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")

_NODE: Final = "numa"  # what the name of a NUMA node begins with


# --- the PCIe tree --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attachment:
    """How a device hangs on its host.

    Parameters
    ----------
    bridges
        Switches and cards with a switch between the device and its root, from the device up.
    root
        The first host: a CPU, or a root complex that several links share.
    socket
        The CPU that the root complex belongs to; the root itself where the file names no CPU.
    node
        The NUMA node of the socket by its name (``numa3``), empty for the socket as a whole.
    """

    bridges: tuple[str, ...]
    root: str
    socket: str
    node: str = ""


class Tree:
    """The PCIe trees of one topology; each device is climbed from once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._attachments: dict[str, tuple[Attachment, ...]] = {}
        self._climbs: dict[str, tuple[Step, tuple[str, ...]]] = {}
        self._sockets: dict[str, tuple[str, str]] = {}
        self._reaching: dict[str, bool] = {}
        self._linked: dict[str, Mapping[str, int]] = {}
        self._numa: dict[str, tuple[int, ...]] = {}

    def attachments(self, name: str) -> tuple[Attachment, ...]:
        """Return how `name` hangs on its hosts: a card cabled to two sockets has two."""
        if name not in self._attachments:
            is_host = self._topology[name].is_host
            attachments = [self._at_root(name, (), "")] if is_host else []
            for first in () if is_host else self._upward(name, {name}):
                step, bridges = first, tuple[str, ...]()
                if not self._topology[step.target].is_host:
                    step, bridges = self._climb(name, step.target)
                attachments.append(self._at_root(step.target, bridges, _node(step)))
            self._attachments[name] = tuple(attachments)
        return self._attachments[name]

    def _climb(self, name: str, bridge: str) -> tuple[Step, tuple[str, ...]]:
        """Return the step to the root, and the bridges up to it, from `bridge` above `name` on."""
        if bridge not in self._climbs:  # once for all that hang on it
            self._climbs[bridge] = self._way_up(bridge, set())
        step, bridges = self._climbs[bridge]
        return self._way_up(bridge, {name}) if name in bridges else (step, bridges)

    def _way_up(self, bridge: str, passed: set[str]) -> tuple[Step, tuple[str, ...]]:
        bridges = [bridge]
        step = self._upward(bridge, {*passed, bridge})[0]
        while not self._topology[step.target].is_host:
            bridges.append(step.target)
            step = self._upward(step.target, {*passed, *bridges})[0]
        return step, tuple(bridges)

    def attachment(self, name: str) -> Attachment | None:
        """Return how `name` hangs on its (first) host, `None` when it does not."""
        return next(iter(self.attachments(name)), None)

    def meeting(self, a: str, b: str) -> str:
        """Return the device below the root where two devices meet, ``""`` when none is.

        It is one of the two where the other hangs on it.
        """
        of_a, of_b = self.attachment(a), self.attachment(b)
        if of_a is None or of_b is None:
            return ""
        return _first_common((a, *of_a.bridges), (b, *of_b.bridges))

    def leads_up(self, step: Step) -> bool:
        """Whether a step leads towards a host: to what is fewer PCIe links away from one."""
        far = len(self._topology.devices)
        return self.depths.get(step.target, far) < self.depths.get(step.source, far)

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How many PCIe links away from its host each device is; what has no host is not there."""
        steps = self._topology.steps
        hosts = [host.name for host in self._topology.of_kind(*HOSTS)]
        return breadth_first(
            hosts,
            lambda name: [step.target for step in steps[name] if step.link.cable.family == "pcie"],
        )

    @cached_property
    def servers(self) -> Mapping[str, int]:
        """The number of the server that each CPU and root complex is in: linked ones are in one."""
        hosts = [host.name for host in self._topology.of_kind(*HOSTS)]
        parts = components(hosts, self._hosts_beside.__getitem__)
        return {host: number for number, part in enumerate(parts) for host in part}

    @cached_property
    def _hosts_beside(self) -> Mapping[str, list[str]]:
        """The CPUs and root complexes that each is linked to."""
        topology = self._topology
        return {
            host.name: [
                step.target for step in topology.steps[host.name] if topology[step.target].is_host
            ]
            for host in topology.of_kind(*HOSTS)
        }

    def linked_hosts(self, host: str) -> Mapping[str, int]:
        """Return how many links away each CPU and root complex of one machine is from `host`."""
        if host not in self._linked:
            self._linked[host] = breadth_first([host], self._hosts_beside.__getitem__)
        return self._linked[host]

    def numa_of(self, socket: str) -> tuple[int, ...]:
        """Return the NUMA nodes of a socket, or those that a root complex of no one CPU is near."""
        if self._topology[socket].kind != "root-complex":
            return self._topology[socket].numa
        if socket not in self._numa:
            beside = [step.target for step in self._topology.steps[socket]]
            near, all_nodes = (
                {node for name in names for node in self._topology[name].numa}
                for names in (beside, self.linked_hosts(socket))
            )
            self._numa[socket] = tuple(sorted(near)) if near != all_nodes else ()
        return self._numa[socket]

    @cached_property
    def gpu_links(self) -> Mapping[str, Mapping[str, list[Cable]]]:
        """The cables between GPUs and their switches, by the names of both ends."""
        cables: dict[str, dict[str, list[Cable]]] = {}
        for link in self._topology.links:
            if link.layer == "gpu":
                for a, b in ((link.a.device, link.b.device), (link.b.device, link.a.device)):
                    cables.setdefault(a, {}).setdefault(b, []).append(link.cable)
        return cables

    def server_of(self, name: str) -> int | None:
        """Return the number of the server that a device hangs in, `None` where it is in none."""
        attachment = self.attachment(name)
        return self.servers[attachment.root] if attachment else None

    def _at_root(self, root: str, bridges: tuple[str, ...], node: str) -> Attachment:
        """Return the attachment with the CPU that a root complex belongs to.

        One that is joined to several CPUs is in none of them: which is its own is not known.
        """
        if root not in self._sockets:
            self._sockets[root] = root, ""
            if self._topology[root].kind == "root-complex":
                steps = self._topology.steps[root]
                cpus = {
                    step.target: step for step in steps if self._topology[step.target].kind == "cpu"
                }
                if len(cpus) == 1:
                    ((cpu, step),) = cpus.items()
                    self._sockets[root] = cpu, _node(step)
        socket, own_node = self._sockets[root]
        return Attachment(bridges, root, socket, node if socket == root else own_node)

    def _upward(self, name: str, passed: set[str]) -> list[Step]:
        """Return the steps towards a host: to hosts if there are, else to what leads there."""
        steps = [
            step
            for step in self._topology.steps[name]
            if step.link.layer in ("host", "memory") and step.target not in passed
        ]
        to_hosts = [step for step in steps if self._topology[step.target].is_host]
        if to_hosts:
            return to_hosts
        if forwards(self._topology[name]):
            return [step for step in steps if self._reaches_host(step.target, passed)]
        for step in steps:  # nothing comes back by what cannot be passed: it is the same for all
            if step.target not in self._reaching:
                self._reaching[step.target] = self._reaches_host(step.target, set())
        return [step for step in steps if self._reaching[step.target]]

    def _reaches_host(self, name: str, passed: set[str]) -> bool:
        """Whether a host can be reached through `name` without going back."""
        front, met = [name], {*passed, name}
        while front:
            bridge = front.pop()
            if self._topology[bridge].is_host:
                return True
            if forwards(self._topology[bridge]):
                onward = (s.target for s in self._topology.steps[bridge] if s.link.layer == "host")
                beyond = [target for target in onward if target not in met]
                if any(self._topology[target].is_host for target in beyond):
                    return True
                met.update(beyond)
                front += beyond
        return False


def forwards(device: Device) -> bool:
    """Whether traffic of what hangs below a device goes through it: a switch, or one inside."""
    return device.kind in ("pcie-switch", "hba") or bool(device.part.flag("bridge"))


def socket_of(topology: Topology, name: str) -> str:
    """Return the socket that `name` hangs on: a CPU, or a root complex without one; or ``""``."""
    attachment = topology.tree.attachment(name)
    return attachment.socket if attachment else ""


def numa_nodes(topology: Topology, name: str) -> tuple[int, ...]:
    """Return a device's NUMA nodes by the numbers of the operating system.

    The one that its link names, else all of its socket; none when not stated. A root complex that
    is joined to some of the CPUs, and in none of them, is near the nodes of those.
    """
    attachment = topology.tree.attachment(name)
    if attachment is None:
        return ()
    if attachment.node:
        return (int(attachment.node.removeprefix(_NODE)),)
    return topology.tree.numa_of(attachment.socket)


def _node(step: Step) -> str:
    return step.entry_side if step.entry_side.startswith(_NODE) else ""


def _first_common(upward: Sequence[str], other_upward: Sequence[str]) -> str:
    """Return the first name on the path up from one device that is above the other, or ``""``."""
    return next((name for name in upward if name in other_upward), "")


# --- classes --------------------------------------------------------------------------------------


def locality(topology: Topology, a: str, b: str) -> str:
    """Return the class of the pair, ``""`` when no host joins the two.

    Parameters
    ----------
    topology
        The machine.
    a, b
        Device names.

    Raises
    ------
    UnknownNameError
        If a name is not a device.
    """
    if topology[a].name == topology[b].name:
        return "X"
    fabric = _fabric_class(topology, a, b)
    if fabric:
        return fabric
    classes = [
        _tree_class(topology, (a, of_a), (b, of_b))
        for of_a in topology.tree.attachments(a)
        for of_b in topology.tree.attachments(b)
    ]
    return min(classes, key=rank, default="")


def rank(locality_class: str) -> int:
    """Return how far a class is, smaller is nearer; no class at all is farthest."""
    by_gpu_links = locality_class.startswith("NV") or locality_class == "XGMI"
    name = "NV" if by_gpu_links else locality_class
    return CLASSES.index(name) if name in CLASSES else len(CLASSES)


def _fabric_class(topology: Topology, a: str, b: str) -> str:
    """Return ``NV<links>`` when GPU links join the pair, directly or through one switch."""
    links = topology.tree.gpu_links
    of_a = links.get(a, {})
    direct = [cable for cable in of_a.get(b, ()) if cable.family.startswith(("nvlink", "xgmi"))]
    if direct and all(cable.family == "xgmi" for cable in direct):
        return "XGMI"
    count = sum(cable.count for cable in direct)
    if not direct and b in links:
        for switch, cables in of_a.items():
            if topology[switch].kind == "nvswitch":
                onward = sum(cable.count for cable in links[switch].get(b, ()))
                count += sum(min(cable.count, onward) for cable in cables)
    return f"NV{count}" if count else ""


def _tree_class(topology: Topology, a: tuple[str, Attachment], b: tuple[str, Attachment]) -> str:
    """Return the class of two devices, each with one attachment, in the PCIe tree."""
    (a_name, of_a), (b_name, of_b) = a, b
    meeting = _first_common((a_name, *of_a.bridges), (b_name, *of_b.bridges))
    if meeting:
        # PIX at one switch of one chip; two ports of a switch with several chips, or with nobody
        # knows how many, may be more than one switch apart.
        chips = topology[meeting].part.figure("chips")
        # A card with a switch inside is one more switch away, also at the end.
        at_end = any(topology[name].part.flag("bridge") for name in (a_name, b_name))
        at_end = at_end or meeting in (a_name, b_name)
        directly = of_a.bridges[:1] == of_b.bridges[:1] == (meeting,)
        one_chip = chips is None or (chips.value is not None and chips.value <= 1)
        return "PIX" if directly and one_chip and not at_end else "PXB"
    if of_a.root == of_b.root and topology[of_a.root].kind == "root-complex":
        return "PHB"
    if of_a.socket != of_b.socket:
        servers = topology.tree.servers
        return "SYS" if servers[of_a.socket] == servers[of_b.socket] else ""
    apart = of_a.node and of_b.node and of_a.node != of_b.node
    return "SYS" if apart else "NODE"


# --- the matrix -----------------------------------------------------------------------------------


def matrix_devices(topology: Topology) -> tuple[Device, ...]:
    """Return the rows of the matrix: GPUs, then network cards, by server and PCI address.

    Of servers that are folded one answers for all that are alike.
    """

    def address(device: Device) -> tuple[float, int, str]:
        host = hosts.get(device.name, math.inf)
        if not device.pci:
            return (host, 1, "")
        number = device.pci[0].lower()
        return (host, 0, number if number.count(":") == 2 else f"0000:{number}")  # noqa: PLR2004

    hosts = {name: at for at, host in enumerate(topology.hosts) for name in host.devices}

    # Stable: without an address in file order.
    return tuple(
        device
        for kinds in (("gpu",), CARDS)
        for device in sorted(topology.of_kind(*kinds), key=address)
        if topology.is_representative(device.name)
    )


def matrix_rows(
    topology: Topology, *, every: bool = False
) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    """Return the rows of a matrix that can be read, and a note of what is left out.

    Where there are more than `LARGEST_MATRIX`, they are those of the first row's server, since the
    pairs are the square of the rows and between servers nothing is told.

    Parameters
    ----------
    topology
        The machine.
    every
        All rows, however many they are.
    """
    devices = matrix_devices(topology)
    if every:
        refuse_matrix(len(devices))
    if every or len(devices) <= LARGEST_MATRIX:
        return devices, ()
    tree = topology.tree
    server = tree.server_of(devices[0].name)
    rows = [device for device in devices if tree.server_of(device.name) == server]
    rows = rows[:LARGEST_MATRIX]
    message = (
        f"{len(rows)} of {len(devices)} devices are shown, those of the server of {rows[0].name}: "
        f"all of them make {len(devices) ** 2:,} pairs"
    )
    note = Finding("matrix-cut", message, severity="note", help="--all shows every device")
    return tuple(rows), (note,)


def refuse_matrix(rows: int) -> None:
    """Refuse a matrix of more pairs than topo looks at.

    Raises
    ------
    DescriptionError
        If they are more than `MOST_PAIRS`.
    """
    most = math.isqrt(MOST_PAIRS)
    advice = f"leave out --all, or some of the devices: {most:,} rows are the most"
    refuse_more(rows**2, MOST_PAIRS, f"pairs in a matrix of {rows:,} devices", advice)


def pci_functions(device: Device) -> tuple[str, ...]:
    """Return the names of a card's PCI functions: ``slot1/f0``, ``slot1/f1``; one has no suffix."""
    figure = device.part.figure("functions")
    count = int(figure.value) if figure and figure.value else 1
    return tuple(f"{device.name}/f{n}" for n in range(count)) if count > 1 else (device.name,)


def matrix(
    topology: Topology,
    *,
    devices: Sequence[Device] = (),
    functions: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, dict[str, str]]:
    """Return ``{row: {column: class}}`` for GPUs and network cards.

    Parameters
    ----------
    topology
        The machine.
    devices
        The rows; `matrix_devices` where none are given.
    functions
        Show each PCI function of a card: two functions of one card are ``PIX``.
    progress
        Is told how many rows are done, and of how many.
    """
    devices = devices or matrix_devices(topology)
    rows = [
        (name, device.name)
        for device in devices
        for name in (pci_functions(device) if functions else (device.name,))
    ]
    refuse_matrix(len(rows))
    classes: dict[tuple[str, str], str] = {}
    for done, a in enumerate(devices, 1):
        classes |= {(a.name, b.name): locality(topology, a.name, b.name) for b in devices}
        if progress is not None:
            progress(done, len(devices))
    return {
        name: {
            column: ("X" if name == column else "PIX" if device == peer else classes[device, peer])
            for column, peer in rows
        }
        for name, device in rows
    }
