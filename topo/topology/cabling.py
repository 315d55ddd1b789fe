"""Rules of physics for cables: what a medium may join, and the ports and lanes of its ends.

Each rule is a function from a topology to the mistakes that it reports. Devices that share a cause
are named together, so that one cause gives one message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Final, TypeVar

from topo.catalogue.cables import LANES, cable_rate
from topo.catalogue.kinds import CARDS, DRIVES, HOSTS, MEMORIES, Kind
from topo.catalogue.part import Cable, Medium, Ports, Slot
from topo.description.description import Device, End
from topo.description.names import ranged
from topo.document.nodes import Report
from topo.errors import Place
from topo.phrases import counted, listed
from topo.records import dataclass
from topo.topology.joint import QUADRANTS
from topo.topology.topology import Layer, Link, Topology

Cause = TypeVar("Cause", bound="Hashable")

_PORTS_NAMED: Final = 2  # so many ports a message names one by one


def check_cabling(topology: Topology, report: Report) -> Topology:
    """Report every mistake of cables, and return the topology of links with the right medium.

    The others are left out of the rules about ports and lanes: one cause gives one message.
    """
    sound_links = check_media(topology, report)
    if len(sound_links) < len(topology.links):
        topology = replace(topology, links=sound_links)
    check_named_ports(topology, report)
    check_ports(topology, report)
    check_fabric(topology, report)
    check_generations(topology, report)
    check_slots(topology, report)
    check_host_lanes(topology, report)
    return topology


# --- words ----------------------------------------------------------------------------------------

_NOUNS: Final[dict[Kind, tuple[str, str]]] = {
    "storage": ("a storage target", "storage targets"),
    "nic": ("a NIC", "NICs"),
    "nvme": ("a drive", "drives"),
    "hba": ("a storage controller", "storage controllers"),
    "pcie-switch": ("a PCIe switch", "PCIe switches"),
    "root-complex": ("a root complex", "root complexes"),
    "cpu": ("a CPU", "CPUs"),
    "memory": ("a memory", "memories"),
    "gpu": ("a GPU", "GPUs"),
    "nvswitch": ("an NVSwitch", "NVSwitches"),
    "network-switch": ("a network switch", "network switches"),
    "dpu": ("a DPU", "DPUs"),
    "cxl-memory": ("a CXL memory", "CXL memories"),
}


def names_of(names: Iterable[str]) -> str:
    """Write device names as a sentence does: ``slot1 and gpu[0-7]``."""
    return listed(ranged(names))


def has(names: Collection[str], verb: str = "has", plural: str = "have") -> str:
    """Write device names with their verb: ``slot1 has``, ``gpu[0-7] have``."""
    return f"{names_of(names)} {verb if len(names) == 1 else plural}"


def noun_of(kind: Kind, count: int = 1) -> str:
    """Name devices of a kind in words: ``a NIC``, or ``NICs`` where there are several."""
    singular, plural = _NOUNS[kind]
    return singular if count == 1 else plural


def lines_of(links: Iterable[Link], verb: str = "", plural: str = "") -> str:
    """Write where links stand, with a verb: ``line 12 uses``, ``lines 12 and 14 use``."""
    lines = list(dict.fromkeys(link.place.line for link in links))
    noun, word = ("line", verb) if len(lines) == 1 else ("lines", plural)
    return f"{noun} {listed(map(str, lines))} {word}".rstrip()


def names_by_cause(pairs: Iterable[tuple[Cause, str]]) -> dict[Cause, list[str]]:
    """Collect the names that share a cause, in the order they come, each once."""
    names: dict[Cause, dict[str, None]] = {}
    for cause, name in pairs:
        names.setdefault(cause, {})[name] = None
    return {cause: list(members) for cause, members in names.items()}


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong at a place, whichever device it is of.

    The message reads ``slot1 has``, then what it has by its `count`, then `lack`.
    """

    place: Place
    lack: str
    advice: str
    notes: tuple[str, ...] = ()
    count: str = ""


def _report_by_cause(report: Report, code: str, faults: Iterable[tuple[_Fault, str]]) -> None:
    """Report every fault once, with the names of all devices that have it."""
    for fault, names in names_by_cause(faults).items():
        apiece = " each" if fault.count and len(names) > 1 else ""
        message = f"{has(names)} {fault.count}{apiece}{fault.lack}"
        report.add(fault.place, code, message, help=fault.advice, notes=fault.notes)


# --- media ----------------------------------------------------------------------------------------

_ON_PCIE: Final[tuple[Kind, ...]] = (
    *(*CARDS, *DRIVES),
    *("gpu", "pcie-switch", "cxl-memory"),
    *HOSTS,
)
_BETWEEN_CHIPS: Final[tuple[Kind, ...]] = (*HOSTS, "gpu")
# What a medium joins, by its family; a family that is not here goes by its reach.
_JOINED_BY_FAMILY: Final[dict[str, tuple[Kind, ...]]] = {
    "pcie": _ON_PCIE,
    "upi": HOSTS,
    "qpi": HOSTS,
    "xgmi": _BETWEEN_CHIPS,
    "nvlink-c2c": _BETWEEN_CHIPS,
}
_JOINED_BY_REACH: Final[dict[str, tuple[Kind, ...]]] = {
    "memory": (*MEMORIES, *HOSTS),
    "network": (*CARDS, "storage", "network-switch"),
    "gpu": ("gpu", "nvswitch", "cpu"),
    "host": _ON_PCIE,
}
# What to write for a kind that the medium does not join.
_ADVICE_FOR_CARD: Final = (
    "a card is linked to its CPU or switch by `pcie 5 x16`, to the network by "
    "`infiniband ndr` or `ethernet 400 Gb/s`"
)
_ADVICE_FOR_HOST: Final = (
    "a CPU is linked by `pcie 5 x16`, to another CPU by `4x upi 16 GT/s` or "
    "`3x xgmi 32 GT/s`; a network ends in a NIC"
)
_ADVICE: Final[dict[Kind, str]] = {
    "storage": "a target is cabled to a NIC: `infiniband ndr` or `ethernet 400 Gb/s`; "
    "a drive inside the machine is an `nvme` part",
    "memory": "a memory hangs on its CPU: `- ram0 -- cpu0: memory-bus`",
    "cxl-memory": "CXL memory hangs on PCIe: `pcie 5 x8`",
    "nvswitch": "an NVSwitch is linked to GPUs: `18x nvlink 4`",
    "network-switch": "a network switch takes `infiniband ndr` or `ethernet 400 Gb/s`",
    "nic": _ADVICE_FOR_CARD,
    "dpu": _ADVICE_FOR_CARD,
    "gpu": "a GPU is linked by `pcie 5 x16` or `18x nvlink 4`, a Gaudi to others by "
    "`3x gaudi-roce 200 Gb/s`; a network ends in a NIC",
    "cpu": _ADVICE_FOR_HOST,
    "root-complex": _ADVICE_FOR_HOST,
}
_ADVICE_BETWEEN_SOCKETS: Final = (
    "write `4x upi 16 GT/s` (Intel), `3x xgmi 32 GT/s` (AMD), or `upi unknown`"
)
_ADVICE_ON_PCIE: Final = "the link is `pcie 5 x16`, with the generation and lanes that both have"


def check_media(topology: Topology, report: Report) -> tuple[Link, ...]:
    """Report links whose medium does not join what stands at their ends, and return the others.

    A line gives one message, whatever it joins.
    """
    sound: list[Link] = []
    cables: dict[Place, Cable] = {}
    mismatches: dict[Place, tuple[str, str]] = {}
    misfits: dict[Place, list[tuple[Kind, str]]] = {}
    for link in topology.links:
        ends = (topology[link.a.device], topology[link.b.device])
        joined = _joined_by(link.cable)
        unjoined = [(device.kind, device.name) for device in ends if device.kind not in joined]
        mismatch = None if unjoined else _mismatch(link.cable, *ends)
        if not unjoined and mismatch is None:
            sound.append(link)
            continue
        cables.setdefault(link.place, link.cable)
        if mismatch is not None and link.place not in misfits:
            mismatches.setdefault(link.place, mismatch)
        elif link.place not in mismatches:
            misfits.setdefault(link.place, []).extend(unjoined)
    for place, cable in cables.items():
        if place in mismatches:
            message, advice = mismatches[place]
        else:
            names = names_by_cause(misfits[place])
            are = listed(
                f"{has(members, 'is', 'are')} {noun_of(kind, len(members))}"
                for kind, members in names.items()
            )
            if cable.family == "pcie":
                joined_kinds = "CPUs, PCIe switches and what hangs on them"
            elif cable.reach == "memory":
                joined_kinds = "a memory with its CPU"
            else:
                kinds = (
                    kind for kind in _joined_by(cable) if (cable.reach, kind) != ("gpu", "cpu")
                )
                joined_kinds = listed(noun_of(kind, 2) for kind in kinds)
            message = f"{cable.family} joins {joined_kinds}; {are}"
            otherwise = _ADVICE_ON_PCIE if cable.family != "pcie" else ""
            advice = _ADVICE.get(next(iter(names)), otherwise)
        report.add(place, "wrong-medium", message, help=advice)
    return tuple(sound)


def _joined_by(cable: Cable) -> tuple[Kind, ...]:
    return _JOINED_BY_FAMILY.get(cable.family, _JOINED_BY_REACH[cable.reach])


def _mismatch(cable: Cable, a: Device, b: Device) -> tuple[str, str] | None:
    """Return message and advice where each end fits the medium and the two do not fit together."""
    kinds = (a.kind, b.kind)
    second = noun_of(b.kind) if a.kind != b.kind else "another"
    if cable.reach == "memory" and a.is_memory == b.is_memory:
        message = f"a memory bus joins a memory with its CPU, not {noun_of(a.kind)} with {second}"
        return message, _ADVICE["memory"] if a.is_memory else _ADVICE_BETWEEN_SOCKETS
    if cable.family != "pcie":
        return None
    if kinds == ("cpu", "cpu"):
        return "PCIe does not join two CPUs", _ADVICE_BETWEEN_SOCKETS
    if _may_lead_down(a) or _may_lead_down(b):
        return None
    if kinds == ("gpu", "gpu"):
        advice = "between GPUs it is `18x nvlink 4` or `xgmi 64 GB/s`; PCIe goes by a switch or CPU"
    elif "nic" in kinds:
        advice = "a card with a PCIe switch inside says so: `connectx-7-bridge`, or `bridge: yes`"
    else:
        advice = "link each of them to a CPU or a switch"
    upper = "one end of a PCIe link is a CPU, a root complex or a switch"
    return f"{upper}, and here are {noun_of(a.kind)} and {second}", advice


def _may_lead_down(device: Device) -> bool:
    """Whether something may hang below a device on PCIe: unless it is known not to be a bridge."""
    if device.is_host or device.kind in ("pcie-switch", "hba", "dpu"):
        return True
    return device.part.flags.get("bridge", False) is not False


# --- ports ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plugged:
    """The links in one sort of a device's ports, of which there are `count` (`None`: any)."""

    device: Device
    ports: Ports
    count: int | None
    noun: str
    links: list[Link]


def check_ports(topology: Topology, report: Report) -> None:
    """Report more cables than a card, a target or a switch has ports for."""
    plugged: list[_Plugged] = []
    on_network = topology.of_kind("storage", *CARDS, "network-switch")
    for device in (*on_network, *topology.of_kind("pcie-switch")):
        ports, steps = device.part.ports, topology.steps[device.name]
        if ports is None:
            continue
        if device.kind == "pcie-switch":
            noun = "downstream port"
            links = [
                step.link
                for step in steps
                if step.link.cable.family == "pcie" and not topology.tree.leads_up(step)
            ]
        else:
            noun, links = "port", _links_of(topology, device, "network")
        plugged.append(_Plugged(device, ports, ports.count, noun, links))
    _check_plugged(plugged, report)


def _links_of(topology: Topology, device: Device, layer: Layer) -> list[Link]:
    """Return the links of a layer at a device, each as often as the device has it."""
    steps = topology.steps[device.name]
    return [step.link for step in steps if step.link.layer == layer for _ in range(step.times[0])]


def check_fabric(topology: Topology, report: Report) -> None:
    """Report more links between GPUs than they have ports for, or of another medium."""
    plugged: list[_Plugged] = []
    portless: list[tuple[_Fault, str]] = []
    for device in topology.of_kind("gpu", "nvswitch"):
        ports = device.part.fabric
        links = _links_of(topology, device, "gpu")
        if ports is not None:
            noun = f"{ports.medium} port" if ports.medium else "port to other GPUs"
            plugged.append(_Plugged(device, ports, _fabric_ports(device), noun, links))
        elif links:
            lack = f"no ports for {links[0].cable.family}: {device.part.name} states none"
            advice = "leave the link out, or say what it has: `fabric: 4x nvlink 4`"
            portless.append((_Fault(links[0].place, lack, advice), device.name))
    _check_plugged(plugged, report)
    _report_by_cause(report, "no-port", portless)


def _fabric_ports(device: Device) -> int | None:
    """Return the fabric ports of a device: of one chip times its chips, `None` when unknown."""
    count = device.part.fabric.count if device.part.fabric else None
    chips = device.part.figures.get("chips")
    if count is None or chips is None:
        return count
    return None if chips.value is None else count * int(chips.value)


def _check_plugged(plugged: list[_Plugged], report: Report) -> None:
    """Report more cables than ports, then cables that the ports do not take."""
    overflows = [(fault, plugs.device.name) for plugs in plugged if (fault := _overflow(plugs))]
    _report_by_cause(report, "ports-used-up", overflows)
    misfits: list[tuple[_Fault, str]] = []
    for plugs in plugged:
        medium = plugs.ports.medium
        family = medium.partition(" ")[0] if medium else ""
        for link in plugs.links:
            cable = link.cable
            # NVLink fits its own generation only.
            exact = family != "nvlink" or cable.medium in (family, medium)
            if medium and (cable.family != family or not exact):
                lack = f"{medium} ports, and this cable is {cable.medium}"
                advice = (
                    f"write `{cable.count}x {medium}`" if cable.count > 1 else f"write `{medium}`"
                )
                misfits.append((_Fault(link.place, lack, advice), plugs.device.name))
                break
    _report_by_cause(report, "wrong-medium", misfits)


def _overflow(plugs: _Plugged) -> _Fault | None:
    """Return what is wrong at the first link without a port, and what uses the ports."""
    count, links = plugs.count, plugs.links
    if count is None:
        return None
    used = accumulate(1 if link.cable.family == "pcie" else link.cable.count for link in links)
    first = next((index for index, ports_used in enumerate(used) if ports_used > count), None)
    if first is None:
        return None
    link = links[first]
    earlier = [before for before in links[:first] if before.place != link.place]
    taken = sum(before.cable.count for before in earlier)
    cables = sum(same.cable.count for same in links if same.place == link.place)
    are_cables = "is 1 cable" if cables == 1 else f"are {cables} cables"
    left = count - taken
    if earlier and left > 0:
        use = lines_of(earlier, "uses", "use")
        lack = f"; {use} {taken} of them, and here {are_cables} more"
    elif earlier:
        lack = f"; {lines_of(earlier, 'uses', 'use')} {'it' if count == 1 else 'them'}"
    else:
        lack = f", and here {are_cables}"
    advice = "leave this cable out, or take a part with more ports"
    if link.cable.count > 1 and left > 0:
        single = link.cable.text.rpartition("x ")[2]
        advice = f"write `{left}x {single}`" if left > 1 else f"write `{single}`"
    source = plugs.ports.source
    notes = (f"{plugs.device.part.name}: {count} {plugs.noun}s, {source}",) if source else ()
    return _Fault(link.place, lack, advice, notes, counted(count, plugs.noun))


def check_named_ports(topology: Topology, report: Report) -> None:
    """Report ports that a device does not have, and ports that two cables share."""
    owners: dict[tuple[str, bool], Link] = {}
    absent: list[tuple[_Fault, str]] = []
    ends = ((link, end) for link in topology.links for end in (link.a, link.b))
    for link, end in ((link, end) for link, end in ends if end.side.startswith("p")):
        fault = _absent_port(topology[end.device], end, link)
        if fault is not None:
            absent.append((fault, end.device))
            continue
        owner = owners.setdefault((str(end), link.layer == "gpu"), link)
        if owner is not link:
            report.add(
                link.place,
                "port-taken",
                f"{end} is taken already",
                help="one port takes one cable; leave the port out and the next free one is used",
                notes=[f"it is taken on {lines_of([owner])}"],
            )
        elif link.cable.count > 1:
            message = f"{end} is one port, and here are {link.cable.count} cables"
            advice = f"write `{link.a.device} -- {link.b.device}: {link.cable.text}`"
            report.add(link.place, "port-taken", message, help=advice)
    absent += [
        (fault, end.device)
        for link in topology.links
        for end in (link.a, link.b)
        if end.side.startswith("quadrant") and (fault := _absent_quadrant(topology, end, link))
    ]
    _report_by_cause(report, "no-port", absent)


def _absent_quadrant(topology: Topology, end: End, link: Link) -> _Fault | None:
    """Return what is wrong where an end names a quadrant and is no PCIe link to one."""
    if topology[end.device].kind != "cpu" or link.cable.family != "pcie":
        lack = f"no {end.side} that {link.cable.family} plugs into"
        advice = f"a quadrant is of a CPU's PCIe links; leave `/{end.side}` out"
        return _Fault(link.place, lack, advice)
    if int(end.side.removeprefix("quadrant")) < QUADRANTS:
        return None
    return _Fault(link.place, f"no {end.side}: quadrants are 0 to {QUADRANTS - 1}", "")


def _absent_port(device: Device, end: End, link: Link) -> _Fault | None:
    """Return what is wrong where an end names a port that is not there for its cable."""
    part = device.part
    number = int(end.side.removeprefix("p"))
    if link.layer == "network" or device.kind == "pcie-switch":
        ports, count = part.ports, part.ports.count if part.ports else None
    elif link.layer == "gpu":
        ports, count = part.fabric, _fabric_ports(device)
    else:
        ports, count = None, None
    if ports is None and device.kind not in ("storage", "pcie-switch"):
        lack = f"no port {end.side} that {link.cable.family} plugs into"
        return _Fault(link.place, lack, f"leave `/{end.side}` out")
    if number and (count is None or number <= count):
        return None
    advice = "leave the port out and the next free one is used"
    if count is None:
        lack = f"no port {end.side}: ports are numbered from p1"
        return _Fault(link.place, lack, advice)
    names = f", {listed(f'p{n + 1}' for n in range(count))}" if count <= _PORTS_NAMED else ""
    return _Fault(link.place, f"{counted(count, 'port')}{names}, and no {end.side}", advice)


# --- lanes ----------------------------------------------------------------------------------------


def check_generations(topology: Topology, report: Report) -> None:
    """Report cables of a PCIe generation that an end does not have."""
    newer = names_by_cause(
        ((link.place, device.part.name, slot, _best_cable(link, topology)), device.name)
        for link in topology.links
        for device, slot in _slots(link, topology)
        if link.cable.generation is not None and link.cable.generation > slot.generation
    )
    reported: dict[Place, Slot] = {}
    for (place, part_name, slot, best), names in newer.items():
        if place in reported and reported[place].generation <= slot.generation:
            continue  # the other end, which lacks it too
        reported[place] = slot
        report.add(
            place,
            "pcie-generation",
            f"{names_of(names)} ({part_name}) {'is' if len(names) == 1 else 'are'} "
            f"PCIe {slot.generation}",
            help=f"write `{best}`",
            notes=_source(part_name, slot),
        )


def check_slots(topology: Topology, report: Report) -> None:
    """Report links with more lanes than a device's slot has, alone or together."""
    wider: list[tuple[_Fault, str]] = []
    for link in topology.links:
        for device, slot in _slots(link, topology):
            if slot.lanes and _lanes(link) > slot.lanes and _is_bound(link, device, topology):
                lack = f"x{slot.lanes} ({device.part.name}), so the link can be at most that"
                advice = f"write `{_best_cable(link, topology)}`"
                notes = _source(device.part.name, slot)
                wider.append((_Fault(link.place, lack, advice, notes), device.name))
    _report_by_cause(report, "lanes-over-slot", wider)
    together: list[tuple[_Fault, str]] = []
    for device in topology.devices.values():
        lanes = device.part.slot.lanes if device.part.slot else None
        if lanes is None or device.is_host or device.kind == "pcie-switch":
            continue
        for links in _sharing_lanes(device, topology):
            widths = [_lanes(link) for link in links]
            if len(links) > 1 and sum(widths) > lanes >= max(widths):
                uses = f"{' and '.join(f'x{width}' for width in widths)} ({lines_of(links)})"
                lack = f"x{lanes} in all ({device.part.name}), and here are {uses}"
                advice = "leave one out, or make them narrower"
                together.append((_Fault(links[-1].place, lack, advice), device.name))
    _report_by_cause(report, "lanes-over-slot", together)


def check_host_lanes(topology: Topology, report: Report) -> None:
    """Report CPUs, root complexes and switches with more lanes in use than they have."""
    over: list[tuple[_Fault, str]] = []
    for device in topology.of_kind(*HOSTS, "pcie-switch"):
        figure = device.part.figure("pcie-lanes")
        if figure is None or figure.value is None:
            continue
        used = 0
        steps = topology.steps[device.name]
        links = [step.link for step in steps if step.link.cable.family == "pcie"]
        for link in links:
            before, used = used, used + _lanes(link)
            if before <= figure.value < used:
                culprit = link
        if used > figure.value:
            lanes = int(figure.value)
            lack = f" ({device.part.name}), and the links take {used}"
            advice = "narrow or leave out a link, or put a PCIe switch between"
            notes = (f"they stand on {lines_of(links)}", f"{lanes} lanes: {figure.source}")
            fault = _Fault(culprit.place, lack, advice, notes, f"{lanes} PCIe lanes")
            over.append((fault, device.name))
    _report_by_cause(report, "lanes-used-up", over)


def _slots(link: Link, topology: Topology) -> Iterator[tuple[Device, Slot]]:
    """Yield the ends of a PCIe link that say what they have."""
    if link.cable.family != "pcie":
        return
    for end in (link.a, link.b):
        device = topology[end.device]
        if device.part.slot is not None:
            yield device, device.part.slot


def _lanes(link: Link) -> int:
    return (link.cable.lanes or 0) * link.cable.count


def _best_cable(link: Link, topology: Topology) -> str:
    """Return the cable that both ends can have."""
    slots = list(_slots(link, topology))
    generation = min([slot.generation for _, slot in slots] + [link.cable.generation or 99])
    bounds = [
        slot.lanes for device, slot in slots if slot.lanes and _is_bound(link, device, topology)
    ]
    lanes = min([*bounds, _lanes(link)])
    medium = f"pcie {generation}" if link.cable.generation else "pcie unknown"
    return f"{medium} x{lanes}" if lanes else medium


def fastest_pcie(
    link: Link, topology: Topology, medium_of: Callable[[str], Medium | None]
) -> tuple[str, Ports] | None:
    """Return the end that holds a PCIe link of unknown rate back, and what it takes at most.

    Generation and lanes are the least of both ends and the cable; `None` where nobody says one.
    """
    cable, slots = link.cable, list(_slots(link, topology))
    widths = [
        max(slot.lanes // cable.count, 1)
        for device, slot in slots
        if slot.lanes and _is_bound(link, device, topology)
    ]
    widths += [cable.lanes] if cable.lanes else []
    if cable.rate.value is not None or not slots or not widths:
        return None
    device, slot = min(slots, key=lambda end: (end[1].generation, end[1].lanes or LANES[-1]))
    medium = medium_of(f"pcie {slot.generation}")
    if medium is None:
        return None
    return device.name, Ports(None, cable_rate(medium, min(widths)), medium.name)


def _is_bound(link: Link, device: Device, topology: Topology) -> bool:
    """Whether the device's own slot bounds a link of it: not what hangs below a RAID card."""
    if device.kind not in ("hba", "dpu"):
        return True
    return any(
        topology.tree.leads_up(step) for step in topology.steps[device.name] if step.link is link
    )


def _sharing_lanes(device: Device, topology: Topology) -> list[list[Link]]:
    """Return a device's PCIe links that share its lanes: all, or those up and those down."""
    steps = [step for step in topology.steps[device.name] if step.link.cable.family == "pcie"]
    if not _may_lead_down(device):
        return [[step.link for step in steps]]
    up = [step.link for step in steps if topology.tree.leads_up(step)]
    down = [step.link for step in steps if not topology.tree.leads_up(step)]
    return [up] if device.kind in ("hba", "dpu") else [up, down]


def _source(part_name: str, slot: Slot) -> tuple[str, ...]:
    lanes = f" x{slot.lanes}" if slot.lanes else ""
    return (f"{part_name}: PCIe {slot.generation}{lanes}, {slot.source}",) if slot.source else ()
