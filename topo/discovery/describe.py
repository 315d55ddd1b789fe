"""A machine as the document of a topology file: what no source tells is guessed, and said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from textwrap import wrap
from typing import Any, Final

from topo.catalogue.kinds import CARDS
from topo.catalogue.part import Part
from topo.catalogue.parts import catalogue
from topo.description.names import RESERVED
from topo.description.write import Comments, by_number, selection, stem_of
from topo.discovery.machine import (
    GPU_LINK,
    NUMA_LINK,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    printable,
)
from topo.discovery.pci import read_address, short_address
from topo.errors import ExchangeError, Finding
from topo.phrases import counted, did_you_mean, listed, number_ranges, ranges
from topo.units import spell_rate

Plain = dict[str, Any]

ASSUMED_STORAGE: Final = "storage"  # the `id`, and alone the name, of a target no source tells
_MEDIA: Final = {
    NUMA_LINK: {"title": "whatever joins the NUMA nodes", "reach": "host", "rate": "unknown"},
    GPU_LINK: {"title": "the vendor's links between GPUs", "reach": "gpu", "rate": "unknown"},
}
_STEMS: Final[Mapping[str, str]] = {
    "storage": "storage",
    "nic": "nic",
    "dpu": "nic",
    "nvme": "nvme",
    "hba": "hba",
    "pcie-switch": "sw",
    "root-complex": "rc",
    "cpu": "cpu",
    "memory": "ram",
    "cxl-memory": "cxl",
    "gpu": "gpu",
    "nvswitch": "nvswitch",
    "network-switch": "leaf",
}
_DEVICE_ORDER: Final = (
    *("storage", "nic", "cpu", "rc", "ram", "cxl", "sw"),
    *("gpu", "nvswitch", "nvme", "hba", "leaf"),
)
_LINK_ORDER: Final = (
    *("storage", "ram", "cpu", "rc", "sw", "nic", "nvme", "hba", "cxl", "gpu"),
    *("nvswitch", "leaf"),
)
_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_]|-(?!-))*")
_HEAD_WIDTH: Final = 96
_LONGEST_COMMENT: Final = 160
_LONGEST_NOTE: Final = 400  # characters, over several lines
_FABRIC_CABLE: Final = re.compile(r"(?:(\d+)x )?(nvlink|xgmi)(?: (\w+))?(?![\w-])")
_FILE_ENDING: Final = re.compile(
    r"(?:\.(?!\d)\w{2,4})?\.(?:gz|bz2|xz)$|\.(?!\d)\w{2,4}$", re.IGNORECASE
)


# --- names ----------------------------------------------------------------------------------------


def device_names(devices: Iterable[DiscoveredDevice]) -> dict[str, str]:
    """Return the name of each device by its `id`: ``gpu0``, ``nic3``, ``sw1``.

    One that has a name keeps it, as long as nothing else is called so.
    """
    devices = tuple(devices)
    targets = sum(device.kind == "storage" for device in devices)
    told: dict[str, str] = {}
    for device in devices:
        if _is_free(device.name, _STEMS[device.kind]):
            told.setdefault(device.name.lower(), device.id)
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for device in devices:
        if device.id == ASSUMED_STORAGE and targets == 1:
            names[device.id] = ASSUMED_STORAGE
            continue
        stem = _STEMS[device.kind]
        number = counts.get(stem, 0)
        counts[stem] = number + 1
        if told.get(device.name.lower()) == device.id:
            names[device.id] = device.name
            continue
        while f"{stem}{number}" in told:
            number += 1
        counts[stem] = max(counts[stem], number + 1)
        names[device.id] = f"{stem}{number}"
    return names


def _is_free(name: str, stem: str) -> bool:
    """Whether a device whose kind has this stem may be called so, whatever else is there."""
    of_name = stem_of(name)
    is_own = of_name == stem and name != stem
    return (
        bool(_NAME.fullmatch(name))
        and name not in RESERVED
        and (is_own or of_name.lower() not in _STEMS.values())
    )


def file_title(file: str) -> str:
    """Return the last part of a file's path."""
    return re.split(r"[/\\]", file)[-1]


def machine_name(file: str) -> str:
    """Return a name for the machine from its file's: ``node 7.xml`` is ``node-7``.

    Examples
    --------
    >>> machine_name("dumps/node 7.xml"), machine_name("<stdin>"), machine_name("8gpu.txt")
    ('node-7', 'stdin', 'host-8gpu')
    >>> machine_name("g5.48xl.tar.gz"), machine_name("topo.xml.gz")
    ('g5-48xl', 'topo')
    """
    stem = _FILE_ENDING.sub("", file_title(file))
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", stem).strip("-_") or "imported"
    return plain if plain[0].isalpha() else f"host-{plain}"


# --- the document ---------------------------------------------------------------------------------


def describe(machine: Machine, title: str) -> tuple[Plain, Comments]:
    """Return the document of a machine, and the comments that its file gets.

    Parameters
    ----------
    machine
        A machine with all that a topology needs (`topo.discovery.describe.completed`).
    title
        What is in it, in words.
    """
    names = device_names(machine.devices)
    devices = sorted(machine.devices, key=lambda device: _DEVICE_ORDER.index(_STEMS[device.kind]))
    head = [
        f"Imported from {printable(file_title(machine.file))} ({machine.source}).",
        *(f"Combined with {printable(source)}." for source in machine.together),
        "What the source does not tell is `unknown`; memories and their buses are assumed.",
    ]
    for note in machine.notes:
        head += wrap(printable(note, _LONGEST_NOTE), _HEAD_WIDTH, break_on_hyphens=False)
    domains = any(not address.startswith("0000:") for device in devices for address in device.pci)
    links = _links(machine, names)
    document: Plain = {"topo": 1, "name": machine_name(machine.file), "title": title}
    if machine.parts:
        document["parts"] = {
            part.name: {"like": part.like, "title": part.title, **dict(part.facts)}
            for part in machine.parts
        }
    used = {cable for _, cable, _ in links}
    media = {name: medium for name, medium in _MEDIA.items() if name in used}
    if media:
        document["media"] = media
    cables_of: dict[str, list[DiscoveredCable]] = {}
    for cable in machine.cables:
        for end in {cable.a: None, cable.b: None}:
            cables_of.setdefault(end, []).append(cable)
    document["devices"] = {
        names[device.id]: _device_value(
            device, machine, cables_of.get(device.id, ()), domains=domains
        )
        for device in devices
    }
    document["links"] = [{ends: cable} for ends, cable, _ in links]
    workload = _workload(machine, names)
    if workload:
        document["workloads"] = {"load": workload}
    comments = Comments(
        head=tuple(head),
        above={
            names[device.id]: tuple(printable(notice, _LONGEST_NOTE) for notice in device.notices)
            for device in devices
        },
        devices={
            names[device.id]: printable(device.evidence, _LONGEST_COMMENT) for device in devices
        },
        links=tuple(printable(comment, _LONGEST_COMMENT) for _, _, comment in links),
        workloads={"load": "to begin with: edit it"},
    )
    return document, comments


def _links(machine: Machine, names: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return ends, cable and comment of each link, in the order of the file."""
    links: list[tuple[str, str, str]] = []
    for device in machine.devices:
        if not device.parent or (device.link is None and device.kind != "memory"):
            continue
        above = names[device.parent]
        if device.node is not None:
            above = f"{above}/numa{device.node}"
        link = device.link
        cable, evidence = (link.cable, link.evidence) if link is not None else ("memory-bus", "")
        links.append((f"{names[device.id]} -- {above}", cable, evidence))
    links += [
        (f"{names[cable.a]} -- {names[cable.b]}", cable.cable, cable.evidence)
        for cable in machine.cables
    ]
    stems = {names[device.id]: _STEMS[device.kind] for device in machine.devices}
    return sorted(links, key=lambda link: _LINK_ORDER.index(stems[link[0].partition(" ")[0]]))


def _workload(machine: Machine, names: dict[str, str]) -> Plain:
    """Return a workload to begin with, where there is something to read from and to."""
    gpus, drives = machine.of_kind("gpu"), machine.of_kind("nvme")
    storage = machine.of_kind("storage")
    if not gpus or not (storage or drives) or any(gpu.host for gpu in gpus):
        return {}
    stems = list(dict.fromkeys(stem_of(names[device.id]) for device in storage))
    if stems:
        source: str | list[str] = stems if len(stems) > 1 else stems[0]
    else:
        source = _drives_to_read(drives, machine, names)
    return {"read": "80 GB each", "from": source, "to": "gpu" if len(gpus) > 1 else "gpu0"}


def _drives_to_read(
    drives: Sequence[DiscoveredDevice], machine: Machine, names: dict[str, str]
) -> str:
    """Return the drives that a workload reads: those of the host, where volumes are beside them."""
    local = [
        drive
        for drive in drives
        if (part := part_of(drive, machine)) is None or not part.flag("on-network")
    ]
    all_names = sorted((names[drive.id] for drive in drives), key=by_number)
    chosen = {names[drive.id] for drive in local or drives}
    return selection([name for name in all_names if name in chosen], {"nvme": all_names})


# --- a device -------------------------------------------------------------------------------------


def part_of(device: DiscoveredDevice, machine: Machine) -> Part | None:
    """Return the catalogue's part that a device is, or that its part of the file is like."""
    like = next((part.like for part in machine.parts if part.name == device.part), device.part)
    return catalogue().parts.get(like)


def _device_value(
    device: DiscoveredDevice, machine: Machine, cables: Iterable[DiscoveredCable], *, domains: bool
) -> Any:
    """Return a device's part, with what differs from it.

    `cables` are the device's own; `domains` says whether PCI addresses are written with theirs.
    """
    part = part_of(device, machine)
    addresses = [address if domains else short_address(address) for address in device.pci]
    functions = ""
    if part is not None and device.kind in CARDS and machine.kind != "infragraph":
        figure = part.figure("functions")
        usual = int(figure.value) if figure and figure.value else 1
        count = max(1, len(device.pci) or len(device.rdma))
        functions = str(count) if count != usual else ""
    entries: Plain = {
        "label": printable(device.label),
        "slot": printable(device.slot),
        "ports": _ports(device, part),
        "pcie": larger_slot(device, part),
        "fabric": _fabric(device, part, cables),
        "functions": functions,
        **dict(device.facts),
        "pci": addresses[0] if len(addresses) == 1 else addresses,
        "rdma": device.rdma[0] if len(device.rdma) == 1 else list(device.rdma),
        "numa": number_ranges(device.numa) if device.kind == "cpu" else "",
    }
    entries = {key: value for key, value in entries.items() if value}
    return {"part": device.part, **entries} if entries else device.part


def larger_slot(device: DiscoveredDevice, part: Part | None) -> str:
    """Return `pcie:` of a device whose link has more than its part's own slot, else ``""``."""
    slot, link = part.slot if part else None, device.link
    if slot is None or link is None or link.generation is None:
        return ""
    lanes = link.lanes or 0
    if link.generation <= slot.generation and lanes <= (slot.lanes or lanes):
        return ""
    width = max(lanes, slot.lanes or 0)
    generation = max(link.generation, slot.generation)
    return f"{generation} x{width}" if width else str(generation)


def _ports(device: DiscoveredDevice, part: Part | None) -> str:
    """Return `ports:` where those discovered are not those of the part."""
    rates = [rate for rate in device.ports if rate]
    if not rates:
        return ""
    count, bits_per_s = len(device.ports), max(rates)
    ports = part.ports if part else None
    rate_of_part = ports.rate.value if ports and ports.rate else None
    if ports is not None and (ports.count, rate_of_part) == (count, bits_per_s / 8):
        return ""
    ethernet = ports is not None and (ports.medium or "").startswith("ethernet")
    rate = f"{bits_per_s / 1e9:.10g} Gb/s" if bits_per_s >= 1e9 else spell_rate(bits_per_s / 8)  # noqa: PLR2004
    return f"{count}x {'ethernet ' if ethernet else ''}{rate}"


def _fabric(device: DiscoveredDevice, part: Part | None, cables: Iterable[DiscoveredCable]) -> str:
    """Return `unknown` where the links to other GPUs do not fit the part's own ports."""
    if device.kind != "gpu":
        return ""
    count, media = 0, set()
    for cable in cables:
        if cable.cable == GPU_LINK:
            return "unknown"
        if parsed := _FABRIC_CABLE.match(cable.cable):
            links, family, generation = parsed.groups()
            count += int(links or 1)
            media.add(family if generation in (None, "unknown") else f"{family} {generation}")
    if not count:
        return ""
    ports = part.fabric if part else None
    if ports is None or (ports.count or count) < count:
        return "unknown"
    medium = ports.medium or ""
    return "" if media <= {medium, medium.partition(" ")[0]} else "unknown"


# --- what no source tells: links of drives, memories, links between sockets, storage --------------

_USUAL_DRIVE_LINK: Final = DiscoveredLink(3, 4, evidence="speed guessed: edit it")
_INFINIBAND: Final = {100: "edr", 200: "hdr", 400: "ndr", 800: "xdr"}
_GUESSED_RATE: Final = 100e9  # bits/s, where a card's ports are unknown: something must end
_GUESSED_PORT: Final = "ethernet 100 Gb/s"


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
        f"no link here has a known speed: {_USUAL_DRIVE_LINK.cable} for "
        f"{counted(len(drives), 'drive')} is a guess",
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
    hosts = {device.host for device in machine.devices}
    with_memory = {memory.host for memory in machine.of_kind("memory")}
    cpus_of: dict[str, list[DiscoveredDevice]] = {}
    for cpu in machine.of_kind("cpu"):
        cpus_of.setdefault(cpu.host, []).append(cpu)
    memories = [
        DiscoveredDevice(f"ram of {cpu.id}", "memory", "memory-unknown", parent=cpu.id)
        for host, cpus in cpus_of.items()
        if host not in with_memory
        for cpu in cpus
    ]
    joined = {frozenset((cable.a, cable.b)) for cable in machine.cables}
    cables = [
        DiscoveredCable(a.id, b.id, machine.socket_cable or NUMA_LINK)
        for cpus in cpus_of.values()
        for a, b in combinations(cpus, 2)
        if frozenset((a.id, b.id)) not in joined
    ]
    ends = {end for cable in machine.cables for end in (cable.a, cable.b)}
    cables += [
        DiscoveredCable(place.id, cpu.id, NUMA_LINK)
        for place in machine.of_kind("root-complex")
        if not place.parent and place.id not in ends
        for cpu in cpus_of.get(place.host, ())
        if not place.numa or {*place.numa} & {*cpu.numa}
    ]
    cards = _storage_cards(machine, names, storage)
    # ibnetdiscover has a link for each port; who tells switches tells what is cabled to them.
    is_cabled = machine.kind == "ibnetdiscover" or bool(machine.of_kind("network-switch"))
    if not storage and (machine.of_kind("nvme", "storage") or "" not in hosts or is_cabled):
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
    leaves, joined_cables = _with_leaves([*cables, *machine.cables], machine)
    complete = replace(
        machine,
        devices=(*machine.devices, *((target,) if cards else ()), *memories, *leaves),
        cables=joined_cables,
    )
    return complete, tuple(_guesses(machine, cards, names, guessed=not storage))


def _with_leaves(
    cables: Sequence[DiscoveredCable], machine: Machine
) -> tuple[list[DiscoveredDevice], tuple[DiscoveredCable, ...]]:
    """Return network switches where one card leads to several targets, and the cables by them."""
    targets = {ASSUMED_STORAGE, *(device.id for device in machine.of_kind("storage"))}
    switches = {device.id for device in machine.of_kind("network-switch")}
    cards = [cable.b for cable in cables if cable.a in targets and cable.b not in switches]
    shared = [card for card in dict.fromkeys(cards) if cards.count(card) > 1]
    if not shared:
        return [], tuple(cables)
    evidence = "a guess: something must lead from one card to several targets"
    leaves = {
        card: DiscoveredDevice(
            f"leaf of {card}", "network-switch", "network-switch-unknown", evidence=evidence
        )
        for card in shared
    }
    trunks: dict[str, DiscoveredCable] = {}
    rerouted: list[DiscoveredCable] = []
    for cable in cables:
        if cable.a in targets and cable.b in leaves:
            leaf = leaves[cable.b].id
            trunks.setdefault(cable.b, replace(cable, a=cable.b, b=leaf))
            rerouted.append(replace(cable, b=leaf))
        else:
            rerouted.append(cable)
    return list(leaves.values()), (*rerouted, *trunks.values())


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
    """Return the cards with the most bits/s over all of their ports, as told or of their parts.

    One that can do RDMA counts as what is guessed of it where its rate is not known: it is no
    card for management.
    """
    rates = [
        sum(rate or 0.0 for rate in port_rates(card))
        or (_GUESSED_RATE if card.rdma or card.network == "infiniband" else 0.0)
        for card in cards
    ]
    return [card for card, rate in zip(cards, rates, strict=True) if rate == max(rates)]


def port_rates(card: DiscoveredDevice) -> tuple[float | None, ...]:
    """Return the line rate of each port in bits/s: as told, else as the card's part has it."""
    part = catalogue().parts.get(card.part)
    ports = part.ports if part else None
    if any(card.ports) or ports is None or ports.rate is None or not ports.rate.value:
        return card.ports
    return (ports.rate.value * 8,) * (len(card.ports) or ports.count or 1)


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
        if machine.of_kind(*CARDS):
            message = "the source names no storage, and none is guessed where there are many hosts"
            help = "add it to the file, cabled to a switch, or ask `--from gpu0 --to ...`"
        return [Finding("no-storage", message, severity="note", help=help)]
    cards_text = listed(ranges(names[card.id] for card in cards), most=4)
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
