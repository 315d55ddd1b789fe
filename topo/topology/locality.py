"""The class of every pair of devices, as `nvidia-smi topo -m` names it.

Classes, best first: ``X`` (itself), ``NV#`` (NVLinks), ``PIX`` (at most one PCIe switch), ``PXB``
(several switches, no host bridge), ``PHB`` (one host bridge), ``NODE`` (several host bridges of
one NUMA node), ``SYS`` (the link between NUMA nodes or sockets).

Reference: the legend that `nvidia-smi topo -m` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.topology.model import Device, Step, Topology

__all__ = ["CLASSES", "locality", "matrix", "matrix_devices", "pci_functions", "rank", "socket_of"]

CLASSES = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")

_HOSTS = ("cpu", "root-complex")


@dataclass(frozen=True, slots=True)
class _Attachment:
    """How a device hangs on its host: the bridges from the device up, then the host and its side.

    `bridges` holds ``(device, whether a pair meeting there crosses more than one switch)``.
    """

    bridges: tuple[tuple[str, bool], ...]
    host: str
    side: str


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
    name = "NV" if locality_class.startswith("NV") else locality_class
    return CLASSES.index(name) if name in CLASSES else len(CLASSES)


def matrix_devices(topology: Topology) -> tuple[Device, ...]:
    """Return the rows of the matrix: GPUs, then network cards, each in PCI-address order."""
    rows: list[Device] = []
    for kinds in (("gpu",), ("nic", "dpu")):
        found = topology.of_kind(*kinds)  # type: ignore[arg-type]
        order = {device.name: place for place, device in enumerate(found)}
        rows.extend(
            sorted(found, key=lambda device: (_address(device), order[device.name]))
        )
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
    """Return the CPU or root complex that `name` hangs on (itself, for one), ``""`` if none."""
    if topology[name].kind in _HOSTS:
        return name
    found = _attachment(topology, name)
    return found.host if found else ""


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
    here, there = _attachment(topology, one), _attachment(topology, other)
    if here is None or there is None:
        return ""
    met = _met_below_host(here, there, one, other)
    if met:
        return met
    if here.host != there.host:
        return "SYS" if _joined(topology, here.host, there.host) else ""
    if here.side and there.side and here.side != there.side:
        return "SYS"
    return "PHB" if topology[here.host].kind == "root-complex" else "NODE"


def _met_below_host(here: _Attachment, there: _Attachment, one: str, other: str) -> str:
    """Return PIX or PXB when the two meet under the host, counting switches on the way."""
    chain_here = ((one, False), *here.bridges)
    chain_there = {name: depth for depth, (name, _) in enumerate(((other, False), *there.bridges))}
    for depth, (name, several) in enumerate(chain_here):
        if name in chain_there:
            # The switch where they meet counts once; every bridge below it counts as well.
            crossed = max(depth, 1) - 1 + max(chain_there[name], 1) - 1 + 1
            return "PIX" if crossed <= 1 and not several and name not in (one, other) else "PXB"
    return ""


def _attachment(topology: Topology, name: str) -> _Attachment | None:
    """Walk up the PCIe tree (or chip-to-chip link) from a device to its host."""
    bridges: list[tuple[str, bool]] = []
    current, seen = name, {name}
    while True:
        step = _upward(topology, current, seen)
        if step is None:
            return None
        if topology[step.target].kind in _HOSTS:
            return _Attachment(tuple(bridges), step.target, _node(step))
        bridges.append((step.target, _several_switches(topology[step.target])))
        seen.add(step.target)
        current = step.target


def _upward(topology: Topology, name: str, seen: set[str]) -> Step | None:
    """Return the step towards the host: to a host if there is one, else to a switch or bridge."""
    ways = [
        step
        for step in topology.steps[name]
        if step.link.layer in ("host", "memory") and step.target not in seen
    ]
    for step in ways:
        if topology[step.target].kind in _HOSTS:
            return step
    for step in ways:
        if _forwards(topology[step.target]) and _leads_up(topology, step.target, {*seen, name}):
            return step
    return None


def _leads_up(topology: Topology, name: str, seen: set[str]) -> bool:
    """Whether a host can be reached from `name` without going back."""
    if topology[name].kind in _HOSTS:
        return True
    return any(
        _leads_up(topology, step.target, {*seen, name})
        for step in topology.steps[name]
        if step.link.layer == "host"
        and step.target not in seen
        and (topology[step.target].kind in _HOSTS or _forwards(topology[step.target]))
    )


def _forwards(device: Device) -> bool:
    return device.kind in ("pcie-switch", "hba") or bool(device.part.flag("bridge"))


def _several_switches(device: Device) -> bool:
    """Whether two ports of it may be more than one switch apart: several chips, or not known."""
    figure = device.part.figure("chips")
    return figure is not None and (figure.value is None or figure.value > 1)


def _node(step: Step) -> str:
    """Return the NUMA node of a step's host end: the named one, or the host as a whole."""
    return step.entry_side if step.entry_side.startswith("numa") else ""


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
