"""What no source tells and a topology needs: memories, links between CPUs, a storage target.

Each is a guess that is said, in a comment or a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from topo.catalogue.kinds import CARDS
from topo.catalogue.load import catalogue
from topo.discovery.importing import ASSUMED_STORAGE, NUMA_LINK, device_names, part_of
from topo.discovery.machine import (
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
)
from topo.discovery.pci import read_address
from topo.errors import ExchangeError, Finding
from topo.phrases import did_you_mean

_USUAL_DRIVE_LINK: Final = DiscoveredLink(3, 4, evidence="speed guessed: edit it")
_INFINIBAND: Final = {100: "edr", 200: "hdr", 400: "ndr", 800: "xdr"}
_GUESSED_PORT: Final = "ethernet 100 Gb/s"  # where a card's ports are unknown: something must end


def with_drive_links(machine: Machine) -> Machine:
    """Return the machine with a link for its drives, if neither they nor the GPUs have a known one.

    A question without any finite rate has no answer. Elsewhere an unknown link stays unknown: it
    never binds, and what is known does.
    """
    drives, gpus = machine.of_kind("nvme"), machine.of_kind("gpu")
    if not drives or not gpus or machine.of_kind("storage"):
        return machine
    for device in (*drives, *gpus):
        link, part = device.link, part_of(device, machine)
        if link is not None and link.generation is not None and link.lanes is not None:
            return machine
        if part is not None and part.slot is not None:
            return machine
    finding = Finding(
        "guessed-speed",
        f"no link here has a known speed: {_USUAL_DRIVE_LINK.cable} for {len(drives)} drives "
        "is a guess",
        severity="note",
        help="write the speed of the drives' links in the YAML",
    )
    return replace(
        machine,
        devices=tuple(
            replace(device, link=_USUAL_DRIVE_LINK) if device.kind == "nvme" else device
            for device in machine.devices
        ),
        findings=(*machine.findings, finding),
    )


def completed(machine: Machine, storage: Sequence[str] = ()) -> tuple[Machine, tuple[Finding, ...]]:
    """Return the machine with what it lacks, and what is a guess of that.

    Parameters
    ----------
    machine
        What the source told.
    storage
        Cards that a storage target is to be cabled to, by the names that the file gives them,
        their RDMA names or PCI addresses; guessed when empty.

    Raises
    ------
    ExchangeError
        If `storage` names something that is not there.
    """
    names = device_names(machine.devices)
    cpus = machine.of_kind("cpu")
    memories: list[DiscoveredDevice] = []
    if not machine.of_kind("memory"):
        memories = [
            DiscoveredDevice(f"ram of {cpu.id}", "memory", "memory-unknown", parent=cpu.id)
            for cpu in cpus
        ]
    joined = {frozenset((cable.a, cable.b)) for cable in machine.cables}
    cables = [
        DiscoveredCable(a.id, b.id, machine.socket_cable or NUMA_LINK)
        for a, b in combinations(cpus, 2)
        if frozenset((a.id, b.id)) not in joined
    ]
    cards = _storage_cards(machine, names, storage)
    if not storage and machine.of_kind("nvme", "storage"):
        cards = []
    for card in cards:
        cable = storage_cable(card, machine)
        doubt = "speed guessed: edit it" if cable.endswith(_GUESSED_PORT) else ""
        cables.append(DiscoveredCable(ASSUMED_STORAGE, card.id, cable, doubt))
    target = DiscoveredDevice(
        ASSUMED_STORAGE,
        "storage",
        "nvme-of-target",
        facts=(("outside", "yes"),),
        evidence="" if storage else "a guess: the source does not name storage",
    )
    complete = replace(
        machine,
        devices=(*((target,) if cards else ()), *machine.devices, *memories),
        cables=(*cables, *machine.cables),
    )
    return complete, tuple(_guesses(machine, cards, names, guessed=not storage))


def _storage_cards(
    machine: Machine, names: dict[str, str], storage: Sequence[str]
) -> list[DiscoveredDevice]:
    """Return the cards that are meant; the fastest ones where nobody says."""
    cards = machine.of_kind(*CARDS)
    if not storage:
        return fastest_cards(cards)
    card_of_name = {
        name: card
        for card in cards
        for name in (names[card.id], *card.rdma, *card.pci, *card.label.split(", "))
        if name
    }
    chosen = {}
    for name in storage:
        card = card_of_name.get(name) or card_of_name.get(read_address(name))
        if card is None:
            message = f"there is no network card `{name}` to cable storage to"
            help = did_you_mean(name, card_of_name)
            if not help:
                help = f"cards: {', '.join(names[card.id] for card in cards) or 'none'}"
            raise ExchangeError(Finding("unknown-name", message, help=help))
        chosen[card.id] = card
    return list(chosen.values())


def fastest_cards(cards: Sequence[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return the cards with the most bits/s over all of their ports."""
    rates = [sum(rate or 0.0 for rate in card.ports) for card in cards]
    return [card for card, rate in zip(cards, rates, strict=True) if rate == max(rates)]


def storage_cable(card: DiscoveredDevice, machine: Machine) -> str:
    """Return the network cables of a card's ports, at the rate of ports or part, or at a guess."""
    part = part_of(card, machine)
    ports = part.ports if part else None
    rates = [rate for rate in card.ports if rate]
    if not rates and ports is not None and ports.rate is not None and ports.rate.value:
        rates = [ports.rate.value * 8]
    count = len(card.ports) or (ports.count if ports and ports.count else 1)
    return network_cable(count, max(rates, default=None), card.network)


def network_cable(count: int, bits_per_s: float | None, network: str) -> str:
    """Return so many network cables of a rate, ``2x infiniband ndr``; 100 Gb/s where unknown."""
    if bits_per_s is None:
        return bundle(count, _GUESSED_PORT)
    gigabits = bits_per_s / 1e9
    if network == "infiniband" and gigabits in _INFINIBAND:
        return bundle(count, f"infiniband {_INFINIBAND[int(gigabits)]}")
    return bundle(count, f"ethernet {gigabits:.10g} Gb/s")


def _guesses(
    machine: Machine, cards: list[DiscoveredDevice], names: dict[str, str], *, guessed: bool
) -> list[Finding]:
    if not cards:
        if machine.of_kind("nvme", "storage") or not machine.of_kind("gpu"):
            return []
        message = "the source names no network card and no drive that data could come by"
        help = "add one to the file, with its link, before you compare data paths"
        return [Finding("no-storage", message, severity="note", help=help)]
    cards_text = names[cards[0].id]
    if len(cards) > 1:
        cards_text = f"{cards_text} to {names[cards[-1].id]} ({len(cards)} cards)"
    findings = []
    if guessed:
        message = f"a storage target was cabled to {cards_text}, which is a guess"
        help = "say which cards lead to storage: `--storage nic0`"
        findings.append(Finding("guessed-storage", message, severity="note", help=help))
    unknown = (card for card in cards if not any(card.ports))
    if any(storage_cable(card, machine).endswith(_GUESSED_PORT) for card in unknown):
        message = f"how fast the ports of {cards_text} are is not told: 100 Gb/s each is a guess"
        help = "write the speed of the cables to `storage` in the YAML"
        findings.append(Finding("guessed-speed", message, severity="note", help=help))
    return findings


# --- NVSwitches -----------------------------------------------------------------------------------


def with_nvswitch_links(
    devices: Sequence[DiscoveredDevice], cables: Sequence[DiscoveredCable] = ()
) -> tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...], tuple[Finding, ...]]:
    """Return devices and cables with each NVSwitch joined to the GPUs, or left out, and findings.

    Parameters
    ----------
    devices, cables
        What the source tells. Where no cable leads to a switch that the PCI bus shows, every GPU
        whose part has a fabric of its own gets all its links, which is how such machines are
        built, and which is said.
    """
    ends = {end for cable in cables for end in (cable.a, cable.b)}
    lost = [device for device in devices if device.kind == "nvswitch" and device.id not in ends]
    if not lost:
        return tuple(devices), tuple(cables), ()
    guessed = []
    for device in devices:
        part = catalogue().parts.get(device.part)
        fabric = part.fabric if part is not None else None
        if device.kind != "gpu" or device.id in ends or fabric is None:
            continue
        if fabric.count and fabric.medium:
            cable = bundle(fabric.count, fabric.medium)
            evidence = "a guess: all links of the part"
            guessed.append(DiscoveredCable(device.id, lost[0].id, cable, evidence))
    if guessed:
        message = f"NVSwitches are there, and their links are not told: {guessed[0].cable} a GPU"
        help = "`nvidia-smi topo -m` counts the links; correct them in the YAML"
        finding = Finding("guessed-nvlinks", f"{message} is a guess", severity="note", help=help)
        return tuple(devices), (*cables, *guessed), (finding,)
    message = "NVSwitches are there, and which GPUs have links to them is not told: left out"
    finding = Finding("nvlinks-not-told", message, severity="warning")
    return tuple(device for device in devices if device not in lost), tuple(cables), (finding,)
