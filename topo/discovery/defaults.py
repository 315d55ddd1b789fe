"""What no source tells and a topology needs: memories, a link between CPUs, a storage target."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from topo.discovery.addresses import read_address
from topo.discovery.fit import part_of
from topo.discovery.machine import DiscoveredDevice
from topo.discovery.wire import Wire
from topo.errors import ExchangeError, Finding
from topo.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.discovery.machine import Machine


_CARDS: Final = ("nic", "dpu")
_NUMA_LINK: Final = "numa-link"
_MEDIA: Final = (
    "",
    "media:",
    f"  {_NUMA_LINK}: {{title: whatever joins the NUMA nodes, reach: host, rate: unknown}}",
)
_INFINIBAND: Final = {100: "edr", 200: "hdr", 400: "ndr", 800: "xdr"}
_GUESSED: Final = "ethernet 100 Gb/s"  # where a card's ports are unknown: something must end
_EACH: Final = "80 GB each"


@dataclass(frozen=True, slots=True)
class Supply:
    """What was added to a discovered machine; `findings` say it."""

    devices: tuple[DiscoveredDevice, ...]
    names: dict[str, str]
    wires: tuple[Wire, ...]
    media: tuple[str, ...]
    storage: tuple[str, ...]
    targets: tuple[str, ...]
    workloads: tuple[str, ...]
    findings: tuple[Finding, ...]


def supplied(machine: Machine, names: dict[str, str], storage: Sequence[str]) -> Supply:
    """Return what the machine lacks.

    Parameters
    ----------
    machine, names
        What was seen, and the names of the devices by their `id`.
    storage
        Cards that a storage target is to be cabled to; guessed when empty.

    Raises
    ------
    ExchangeError
        If `storage` names something that is not there.
    """
    memories = _memories(machine, names)
    wires = _socket_wires(machine, names)
    cards = _chosen(machine, names, storage)
    drives = [names[drive.id] for drive in machine.of_kind("nvme")]
    targets = machine.of_kind("storage")
    attached = cards if storage or not (drives or targets) else []
    wires += [_storage_wire(card, names[card.id], machine) for card in attached]
    own = any(wire.cable == _NUMA_LINK for wire in wires)
    return Supply(
        devices=tuple(memory for memory, _ in memories),
        names={memory.id: name for memory, name in memories},
        wires=tuple(wires),
        media=_MEDIA if own else (),
        storage=tuple(_storage_lines(attached, guessed=not storage)),
        targets=("storage",) if attached else (),
        workloads=tuple(_workloads(machine, _source(machine, attached))),
        findings=tuple(_said(attached, names, machine, guessed=not storage)),
    )


def _memories(machine: Machine, names: dict[str, str]) -> list[tuple[DiscoveredDevice, str]]:
    """Return a memory for each CPU, where the source names none at all."""
    if machine.of_kind("memory"):
        return []
    hosts = machine.of_kind("cpu")
    return [
        (
            DiscoveredDevice(f"ram of {cpu.id}", "memory", "memory-unknown", parent=cpu.id),
            names[cpu.id].replace("cpu", "ram"),
        )
        for cpu in hosts
    ]


def _socket_wires(machine: Machine, names: dict[str, str]) -> list[Wire]:
    """Return links between all CPUs that the source does not join itself."""
    joined = {frozenset((cable.a, cable.b)) for cable in machine.cables}
    cable = machine.socket_cable or _NUMA_LINK
    return [
        Wire(names[one.id], names[other.id], cable)
        for one, other in combinations(machine.of_kind("cpu"), 2)
        if frozenset((one.id, other.id)) not in joined
    ]


# --- storage --------------------------------------------------------------------------------------


def _chosen(
    machine: Machine, names: dict[str, str], storage: Sequence[str]
) -> list[DiscoveredDevice]:
    cards = machine.of_kind(*_CARDS)
    if not storage:
        fastest = max((_rate(card) for card in cards), default=0)
        return [card for card in cards if _rate(card) == fastest]
    known = {key: card for card in cards for key in _keys(card, names[card.id])}
    chosen = {}
    for name in storage:
        card = known.get(name) or known.get(read_address(name))
        if card is None:
            message = f"there is no network card `{name}` to cable storage to"
            listed = ", ".join(names[one.id] for one in cards) or "none"
            help = did_you_mean(name, known) or f"cards: {listed}"
            raise ExchangeError(Finding("unknown-name", message, help=help))
        chosen[card.id] = card
    return list(chosen.values())


def _keys(card: DiscoveredDevice, name: str) -> tuple[str, ...]:
    return (name, *card.rdma, *card.pci, *(card.label.split(", ") if card.label else ()))


def _rate(card: DiscoveredDevice) -> float:
    """Return the rate of all ports of a card, for comparison."""
    return sum(rate or 0.0 for rate in card.ports)


def _cable(card: DiscoveredDevice, machine: Machine) -> str:
    """Return the network cables of a card's ports."""
    part = part_of(card, machine)
    own = part.ports if part else None
    rates = [rate for rate in card.ports if rate]
    count = len(card.ports) or (own.count if own and own.count else 1)
    if not rates and own is not None and own.rate is not None and own.rate.value:
        rates = [own.rate.value * 8]
    times = f"{count}x " if count > 1 else ""
    if not rates:
        return f"{times}{_GUESSED}"
    gigabits = max(rates) / 1e9
    if card.network == "infiniband" and gigabits in _INFINIBAND:
        return f"{times}infiniband {_INFINIBAND[int(gigabits)]}"
    return f"{times}ethernet {gigabits:.10g} Gb/s"


def _storage_wire(card: DiscoveredDevice, name: str, machine: Machine) -> Wire:
    cable = _cable(card, machine)
    return Wire("storage", name, cable, "speed guessed: edit it" if _is_guess(cable) else "")


def _is_guess(cable: str) -> bool:
    return cable.endswith(_GUESSED)


def _storage_lines(cards: list[DiscoveredDevice], *, guessed: bool) -> list[str]:
    if not cards:
        return []
    why = "  # a guess: the source does not name storage" if guessed else ""
    return [f"  storage: {{part: nvme-of-target, outside: yes}}{why}"]


def _source(machine: Machine, attached: list[DiscoveredDevice]) -> str:
    """Return the stem of what data comes from."""
    if attached or machine.of_kind("storage"):
        return "storage"
    return "nvme" if machine.of_kind("nvme") else ""


def _workloads(machine: Machine, source: str) -> list[str]:
    """Return a workload to begin with, where there is something to read from and to."""
    gpus = machine.of_kind("gpu")
    if not gpus or not source:
        return []
    to = "gpu" if len(gpus) > 1 else "gpu0"
    origin = "nvme0" if source == "nvme" and len(machine.of_kind("nvme")) == 1 else source
    line = f"  load: {{read: {_EACH}, from: {origin}, to: {to}}}  # to begin with: edit it"
    return ["", "workloads:", line]


def _said(
    cards: list[DiscoveredDevice], names: dict[str, str], machine: Machine, *, guessed: bool
) -> list[Finding]:
    if cards:
        return _said_cards(cards, names, machine, guessed=guessed)
    if not machine.of_kind("nvme", "storage") and machine.of_kind("gpu"):
        return [
            Finding(
                "no-storage",
                "the source names no network card and no drive that data could come by",
                severity="note",
                help="add one to the file, with its link, before you compare data paths",
            )
        ]
    return []


def _said_cards(
    cards: list[DiscoveredDevice], names: dict[str, str], machine: Machine, *, guessed: bool
) -> list[Finding]:
    named = [names[card.id] for card in cards]
    shown = named[0] if len(named) == 1 else f"{named[0]} to {named[-1]} ({len(named)} cards)"
    speed = any(_is_guess(_cable(card, machine)) and not any(card.ports) for card in cards)
    found = []
    if guessed:
        message = f"a storage target was cabled to {shown}, which is a guess"
        help = "say which cards lead to storage: `--storage nic0`"
        found.append(Finding("guessed-storage", message, severity="note", help=help))
    if speed:
        message = f"how fast the ports of {shown} are is not told: 100 Gb/s each is a guess"
        help = "write the speed of the cables to `storage` in the YAML"
        found.append(Finding("guessed-speed", message, severity="note", help=help))
    return found
