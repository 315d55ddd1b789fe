"""The class of every pair of devices, as `nvidia-smi topo -m` names it.

Classes, best first: ``X`` (itself), ``NV#`` (NVLinks; AMD's links between GPUs are ``XGMI``),
``PIX`` (at most one PCIe switch), ``PXB`` (several switches, no host bridge), ``PHB`` (one host
bridge), ``NODE`` (several host bridges of one NUMA node), ``SYS`` (the link between NUMA nodes or
sockets).

Reference: the legend that `nvidia-smi topo -m` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.description.description import Device
    from topo.topology.topology import Step, Topology


CLASSES = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")

_HOSTS = ("cpu", "root-complex")


def locality(topology: Topology, one: str, other: str) -> str:
    """Return the class of the pair, ``""`` when no host joins the two.

    Parameters
    ----------
    topology
        The machine.
    one, other
        Device names.

    Raises
    ------
    UnknownNameError
        If a name is not a device.
    """
    if topology[one].name == topology[other].name:
        return "X"
    return _fabric(topology, one, other) or _tree(topology, one, other)


def rank(locality_class: str) -> int:
    """Return how far a class is, smaller is nearer; no class at all is farthest."""
    links = locality_class.startswith("NV") or locality_class == "XGMI"
    name = "NV" if links else locality_class
    return CLASSES.index(name) if name in CLASSES else len(CLASSES)


def matrix_devices(topology: Topology) -> tuple[Device, ...]:
    """Return the rows of the matrix: GPUs, then network cards, each in PCI-address order."""
    rows: list[Device] = []
    for found in (topology.of_kind("gpu"), topology.of_kind("nic", "dpu")):
        rows.extend(sorted(found, key=_address))  # stable: without an address in file order
    return tuple(rows)


def pci_functions(device: Device) -> tuple[str, ...]:
    """Return the names of a card's PCI functions: ``slot1/f0``, ``slot1/f1``; one has no suffix."""
    figure = device.part.figure("functions")
    count = int(figure.value) if figure and figure.value else 1
    return tuple(f"{device.name}/f{n}" for n in range(count)) if count > 1 else (device.name,)


def matrix(topology: Topology, *, functions: bool = False) -> dict[str, dict[str, str]]:
    """Return ``{row: {column: class}}`` for GPUs and network cards.

    Parameters
    ----------
    topology
        The machine.
    functions
        Show each PCI function of a card: two functions of one card are ``PIX``.
    """
    devices = matrix_devices(topology)
    rows = [
        (name, device.name)
        for device in devices
        for name in (pci_functions(device) if functions else (device.name,))
    ]
    classes = {
        (one.name, other.name): locality(topology, one.name, other.name)
        for one in devices
        for other in devices
    }
    return {
        name: {
            other: ("X" if name == other else "PIX" if device == peer else classes[device, peer])
            for other, peer in rows
        }
        for name, device in rows
    }


def socket_of(topology: Topology, name: str) -> str:
    """Return the socket that `name` hangs on: a CPU, or a root complex without one; or ``""``."""
    found = topology.tree.attachment(name)
    return found.socket if found else ""


def _address(device: Device) -> tuple[int, str]:
    if not device.pci:
        return (1, "")
    address = device.pci[0].lower()
    return (0, address if address.count(":") == 2 else f"0000:{address}")  # noqa: PLR2004


# --- NVLink -------------------------------------------------------------------------------------


def _fabric(topology: Topology, one: str, other: str) -> str:
    """Return ``NV<links>`` when GPU links join the pair, directly or through one switch."""
    direct = sum(
        step.link.cable.count for step in _gpu_steps(topology, one) if step.target == other
    )
    if direct:
        return _fabric_class(topology, one, other, direct)
    through = 0
    for step in _gpu_steps(topology, one):
        if topology[step.target].kind == "nvswitch":
            back = sum(
                onward.link.cable.count
                for onward in _gpu_steps(topology, step.target)
                if onward.target == other
            )
            through += min(step.link.cable.count, back)
    return f"NV{through}" if through else ""


def _fabric_class(topology: Topology, one: str, other: str, count: int) -> str:
    families = {
        step.link.cable.family for step in _gpu_steps(topology, one) if step.target == other
    }
    return "XGMI" if families == {"xgmi"} else f"NV{count}"


def _gpu_steps(topology: Topology, name: str) -> tuple[Step, ...]:
    return tuple(step for step in topology.steps[name] if step.link.layer == "gpu")


# --- the PCIe tree ------------------------------------------------------------------------------


def _tree(topology: Topology, one: str, other: str) -> str:
    """Return the best class over every way that the two hang on their hosts."""
    classes = [
        _attached(topology, (one, here), (other, there))
        for here in topology.tree.attachments(one)
        for there in topology.tree.attachments(other)
    ]
    return min(classes, key=rank, default="")


def _attached(
    topology: Topology, one: tuple[str, Attachment], other: tuple[str, Attachment]
) -> str:
    here, there = one[1], other[1]
    meeting = met((one[0], *here.bridges), (other[0], *there.bridges))
    if meeting:
        return _below_root(topology, meeting, one, other)
    if here.root == there.root and topology[here.root].kind == "root-complex":
        return "PHB"
    if here.socket != there.socket:
        return "SYS" if _joined(topology, here.socket, there.socket) else ""
    apart = here.node and there.node and here.node != there.node
    return "SYS" if apart else "NODE"


def _below_root(
    topology: Topology,
    meeting: str,
    one: tuple[str, Attachment],
    other: tuple[str, Attachment],
) -> str:
    """Return PIX when the two meet at one switch of one chip, PXB when they cross more."""
    at_one_of_them = meeting in (one[0], other[0])
    nearest = all(found.bridges[:1] == (meeting,) for _, found in (one, other))
    if at_one_of_them or not nearest or _several_switches(topology[meeting]):
        return "PXB"
    return "PIX"


def _several_switches(device: Device) -> bool:
    """Whether two ports of it may be more than one switch apart: several chips, or not known."""
    figure = device.part.figure("chips")
    return figure is not None and (figure.value is None or figure.value > 1)


def _joined(topology: Topology, one: str, other: str) -> bool:
    """Whether links between hosts lead from one to the other."""
    seen, front = {one}, [one]
    while front:
        current = front.pop()
        if current == other:
            return True
        for step in topology.steps[current]:
            if topology[step.target].kind in _HOSTS and step.target not in seen:
                seen.add(step.target)
                front.append(step.target)
    return False


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

    def attachments(self, name: str) -> tuple[Attachment, ...]:
        """Return how `name` hangs on its hosts: a card cabled to two sockets has two."""
        if name not in self._attachments:
            self._attachments[name] = tuple(self._climb(name))
        return self._attachments[name]

    def attachment(self, name: str) -> Attachment | None:
        """Return how `name` hangs on its (first) host, `None` when it does not."""
        return next(iter(self.attachments(name)), None)

    def meeting(self, one: str, other: str) -> str:
        """Return the device below the root where two devices meet, ``""`` when none is.

        It is one of the two where the other hangs on it.
        """
        here, there = self.attachment(one), self.attachment(other)
        if here is None or there is None:
            return ""
        return met((one, *here.bridges), (other, *there.bridges))

    def _climb(self, name: str) -> Iterator[Attachment]:
        if self._topology[name].kind in _HOSTS:
            yield self._above(name, (), "")
            return
        for first in self._upward(name, {name}):
            step, bridges, seen = first, list[str](), {name}
            while self._topology[step.target].kind not in _HOSTS:
                bridges.append(step.target)
                seen.add(step.target)
                step = self._upward(step.target, seen)[0]
            yield self._above(step.target, tuple(bridges), _node(step))

    def _above(self, root: str, bridges: tuple[str, ...], node: str) -> Attachment:
        """Return the attachment with the CPU that a root complex belongs to."""
        if self._topology[root].kind == "root-complex":
            for step in self._topology.steps[root]:
                if self._topology[step.target].kind == "cpu":
                    return Attachment(bridges, root, step.target, _node(step))
        return Attachment(bridges, root, root, node)

    def _upward(self, name: str, seen: set[str]) -> list[Step]:
        """Return the steps towards a host: to hosts if there are, else to what leads there."""
        ways = [
            step
            for step in self._topology.steps[name]
            if step.link.layer in ("host", "memory") and step.target not in seen
        ]
        hosts = [step for step in ways if self._topology[step.target].kind in _HOSTS]
        return hosts or [step for step in ways if self._leads_up(step.target, {*seen, name})]

    def _leads_up(self, name: str, seen: set[str]) -> bool:
        """Whether a host can be reached through `name` without going back."""
        if self._topology[name].kind in _HOSTS:
            return True
        return _forwards(self._topology[name]) and any(
            self._leads_up(step.target, {*seen, name})
            for step in self._topology.steps[name]
            if step.link.layer == "host" and step.target not in seen
        )


def met(here: tuple[str, ...], there: tuple[str, ...]) -> str:
    """Return the first name on the way up from one device that is above the other, or ``""``."""
    return next((name for name in here if name in there), "")


def _forwards(device: Device) -> bool:
    return device.kind in ("pcie-switch", "hba") or bool(device.part.flag("bridge"))


def _node(step: Step) -> str:
    return step.entry_side if step.entry_side.startswith("numa") else ""


_SIDE = "numa"


def numa_nodes(topology: Topology, name: str) -> tuple[int, ...]:
    """Return the nodes: the one its link names, else all of its socket, none when not stated."""
    found = topology.tree.attachment(name)
    if found is None:
        return ()
    if found.node.startswith(_SIDE):
        return (int(found.node.removeprefix(_SIDE)),)
    return topology[found.socket].numa if found.socket in topology else ()
