"""InfraGraph's YAML, hosts and switches: components as devices, edges as what joins them.

Slots and connectors pass on what they join. InfraGraph has graphs, not rates: a bandwidth is used
where a link states one, a part's own where a description names it, and the rest is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from topo.catalogue.cables import parse_cable
from topo.catalogue.identities import part_named
from topo.catalogue.kinds import CARDS, KINDS
from topo.catalogue.parts import catalogue
from topo.description.devices import NEEDED
from topo.discovery.describe import network_cable
from topo.discovery.foreign import nothing_there
from topo.discovery.machine import (
    NUMA_LINK,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    printable,
    unknown_place,
)
from topo.discovery.sources.infragraph_file import (
    SLOT,
    Device,
    Infrastructure,
    Instance,
    Thing,
    plain_text,
    read_infrastructure,
)
from topo.document.nodes import Mapping, Node
from topo.errors import Finding, UnitError
from topo.graph import components
from topo.phrases import and_more

_PARTS: Final = {"storage": "nvme-of-target", "root-complex": "root-complex", "dpu": "nic-unknown"}
_UNITS: Final = {"gigabits_per_second": 1.0, "gigabytes_per_second": 8.0}  # in Gb/s
_PCIE: Final = re.compile(r"(?:gen|pcie|express)[ _-]*([1-7])(?:\.0)?\b", re.IGNORECASE)
_LANES: Final = re.compile(r"\bx(1|2|4|8|16|32)\b")
_WITHIN_HOST: Final = re.compile(r"(\d+x )?(pcie|nvlink-c2c|memory-bus)\b")
_NVLINK: Final = re.compile(r"nvlink[ _-]*([1-6])\b", re.IGNORECASE)
_SOCKETS: Final = (("upi", "upi unknown"), ("qpi", "upi unknown"), ("infinity", "xgmi unknown"))
_MEMORY: Final = "memory-bus"
_NAME: Final = re.compile(r"[^A-Za-z0-9_]+")


def read(data: bytes, name: str) -> Machine:
    """Read an infrastructure, or a device's file alone.

    Raises
    ------
    ExchangeError
        With every mistake of the file, if it is not whole.
    """
    infrastructure = read_infrastructure(data, name)
    # A switch or a storage target by itself is none of the hosts that need names of their own.
    instances = infrastructure.instances.values()
    hosts = [instance for instance in instances if _is_host(instance.device)]
    is_one = sum(instance.count for instance in hosts) <= 1
    left_out: Counter[str] = Counter()
    devices: list[DiscoveredDevice] = []
    cables: list[DiscoveredCable] = []
    inside = {instance.device.name: _inside(instance.device) for instance in instances}
    for instance in instances:
        inner_devices, inner_cables = inside[instance.device.name]
        # Component by component through all hosts, which makes ranges.
        for component in dict.fromkeys(device.id.partition(".")[0] for device in inner_devices):
            of_component = [
                device for device in inner_devices if device.id.partition(".")[0] == component
            ]
            devices += (
                _placed(device, instance, number, is_one=is_one, is_alone=len(inner_devices) == 1)
                for number in range(instance.count)
                for device in of_component
            )
        cables += (
            replace(
                cable,
                a=_outer_id(f"{instance.name}.{number}", cable.a),
                b=_outer_id(f"{instance.name}.{number}", cable.b),
            )
            for number in range(instance.count)
            for cable in inner_cables
        )
        if not instance.device.is_switch:
            for part in instance.device.components.values():
                if not part.kind:
                    left_out[part.text] += part.count * instance.count
    cables += _network(infrastructure, devices, left_out)
    cpu_of = {cable.a: cable.b for cable in cables if cable.cable == _MEMORY}
    if not devices:
        message = f"`{name}` has no instances of devices"
        raise nothing_there(message, "`instances:` says how many")
    findings = list(infrastructure.findings)
    if left_out:
        names = [f"{printable(text)} ({count})" for text, count in left_out.items()]
        message = f"left out is what topo has no device for: {and_more(names)}"
        findings.append(Finding("left-out", message, severity="note"))
    return Machine(
        kind="infragraph",
        source="an InfraGraph file",
        file=name,
        devices=tuple(
            replace(device, parent=cpu_of[device.id]) if device.kind == "memory" else device
            for device in devices
            if device.kind != "memory" or device.id in cpu_of
        ),
        cables=tuple(cable for cable in cables if cable.cable != _MEMORY),
        notes=("InfraGraph has graphs, and few rates: fill in what is `unknown`.",),
        left_out=tuple(left_out),
        findings=tuple(findings),
        fabric_known=True,
    )


def _network(
    infrastructure: Infrastructure, devices: Iterable[DiscoveredDevice], left_out: Counter[str]
) -> Iterator[DiscoveredCable]:
    """Yield the cables between hosts and switches, those of one pair together."""
    kinds = {device.id: device for device in devices}
    counts: Counter[tuple[str, str, str]] = Counter()
    for edge in infrastructure.edges:
        a, b = (
            _outer_id(
                f"{thing.instance}.{thing.number}",
                _inner_id(thing, infrastructure.instances[thing.instance].device),
            )
            for thing in (edge.a, edge.b)
        )
        ends = [kinds[end].kind for end in (a, b) if end in kinds]
        if len(ends) == 2 and all(  # noqa: PLR2004  (both are devices)
            kind in (*CARDS, "network-switch", "storage") for kind in ends
        ):
            counts[a, b, edge.link] += 1
        else:
            left_out[f"an edge by `{printable(edge.link)}`"] += 1
    for (a, b, link), count in counts.items():
        cable = _network_cable(link, infrastructure.links[link], (kinds[a], kinds[b]))
        yield DiscoveredCable(a, b, bundle(count, cable), printable(link))


# --- one host -------------------------------------------------------------------------------------

_HOSTS: Final = ("cpu", "pcie-switch", "root-complex")
_UPWARDS: Final = (
    *(kind for kind in KINDS if kind not in (*_HOSTS, "nvswitch")),
    *("pcie-switch", "root-complex", "cpu", "nvswitch"),
)


def _inside(device: Device) -> tuple[list[DiscoveredDevice], list[DiscoveredCable]]:
    """Return the devices of one host and what joins them, or a network switch.

    The `id` of each is its own within the host.
    """
    if device.is_switch:
        return [_discovered("", "network-switch", device.text, ports=device.ports)], []
    devices: dict[str, DiscoveredDevice] = {}
    for component in device.components.values():
        chips = component.count if component.kind == "nvswitch" else 0  # one device has them all
        if component.kind not in ("", SLOT):
            for index in range(1 if chips else component.count):
                id_ = f"{component.name}.{index}"
                devices[id_] = _discovered(
                    id_, component.kind, component.text, ports=component.ports, chips=chips
                )
    generation = next(
        filter(None, map(_NVLINK.search, map(_link_text, device.links.values()))), None
    )
    cables = []
    for (a, b), text in _joined(device, devices).items():
        both = (devices[a], devices[b])
        if cable := _host_cable(both, text, generation[0] if generation else ""):
            first, second = sorted(both, key=lambda end: _UPWARDS.index(end.kind))
            evidence = "" if text.endswith(f" {cable}") else printable(text)
            cables.append(DiscoveredCable(first.id, second.id, cable, evidence))
    return _with_places(devices, cables), cables


def _joined(device: Device, devices: dict[str, DiscoveredDevice]) -> dict[tuple[str, str], str]:
    """Return the text of the link between each two devices, slots passed over.

    A slot that joins two things is nothing by itself, one that joins more gets a switch, which is
    added to the devices.
    """
    joined: dict[tuple[str, str], str] = {}

    def join(a: str, b: str, text: str) -> None:
        if a != b and a in devices and b in devices:
            joined.setdefault((min(a, b), max(a, b)), text)

    slots: dict[str, dict[str, str]] = {}
    for edge in device.edges:
        a, b = (_inner_id(thing, device) for thing in (edge.a, edge.b))
        text = f"{edge.link} {_link_text(device.links[edge.link])}".strip()
        for end, thing, far in ((a, edge.a, b), (b, edge.b, a)):
            if device.components[thing.component].kind == SLOT:
                slots.setdefault(end, {}).setdefault(far, text)
        join(a, b, text)
    for slot, ends in slots.items():
        reached = [far for far in ends if far in devices]
        if len(reached) == 2 and any(devices[far].kind in _HOSTS for far in reached):  # noqa: PLR2004
            join(reached[0], reached[1], ends[reached[0]])
        elif len(reached) > 1:
            words = "slot: a guess, since it joins several things"
            devices[slot] = _discovered(slot, "pcie-switch", words)
            for far in reached:
                join(far, slot, ends[far])
    return joined


def _with_places(
    devices: dict[str, DiscoveredDevice], cables: list[DiscoveredCable]
) -> list[DiscoveredDevice]:
    """Return the devices, and a place for what the file joins with no CPU by PCIe or C2C."""
    neighbours: dict[str, list[str]] = {name: [] for name in devices}
    for cable in cables:
        if _WITHIN_HOST.match(cable.cable):
            neighbours[cable.a].append(cable.b)
            neighbours[cable.b].append(cable.a)
    complete = list(devices.values())
    for names in components(devices, neighbours.__getitem__):
        members = sorted(
            (devices[name] for name in names),
            key=lambda device: (*_HOSTS, device.kind).index(device.kind),
        )
        if any(member.kind in ("cpu", "root-complex") for member in members) or all(
            member.kind in ("nvswitch", "storage", "memory") for member in members
        ):
            continue
        place = unknown_place(f"place of {names[0]}", "the file joins what is here with no CPU")
        complete.append(place)
        top = complete.index(members[0])
        complete[top] = replace(members[0], parent=place.id, link=DiscoveredLink())
    return complete


def _discovered(
    id_: str, kind: str, text: str, *, ports: int = 0, chips: int = 0
) -> DiscoveredDevice:
    part = _part(kind, text, ports)
    plugs = catalogue().parts[part].ports
    facts = [("chips", str(chips))] if chips > 1 else []
    if kind == "network-switch" and plugs is not None and plugs.count is None:
        facts = [("ports", str(ports))]
    catalogue_part = catalogue().parts[part]
    if not (kind == "memory" and catalogue_part.figure("bus")):
        lacking = (
            key for key in NEEDED.get(catalogue_part.kind, ()) if catalogue_part.figure(key) is None
        )
        facts += ((key, "unknown") for key in lacking)
    return DiscoveredDevice(
        id_,
        next(word for word in KINDS if word == kind),
        part,
        facts=tuple(facts),
        evidence=printable(text),
        name=id_,
    )


def _is_host(device: Device) -> bool:
    return not device.is_switch and {part.kind for part in device.components.values()} != {
        "storage"
    }


def _inner_id(thing: Thing, device: Device) -> str:
    """Return the `id` of a component within its host; all chips of an NVSwitch are one device."""
    if device.is_switch:
        return ""
    chip = device.components[thing.component].kind == "nvswitch"
    return f"{thing.component}.{0 if chip else thing.index}"


def _placed(
    device: DiscoveredDevice, instance: Instance, number: int, *, is_one: bool, is_alone: bool
) -> DiscoveredDevice:
    """Return a device of one of the hosts; where that is the only one, it is named as usual.

    Else its component is numbered through all hosts, which makes ranges: of 2 hosts with 8 each
    `dgx-xpu[8-15]` are of the second.
    """
    host = f"{instance.name}.{number}"
    stem = _NAME.sub("-", instance.name).strip("-_") or "host"
    stem = stem if stem[0].isalpha() else f"host-{stem}"
    component, _, index = device.id.partition(".")
    if is_alone:
        name = _numbered(stem, number)
    elif is_one or not device.name:
        name = ""
    else:
        part = instance.device.components[component]
        count = 1 if part.kind == "nvswitch" else part.count
        inner = _NAME.sub("-", component).strip("-_")
        name = _numbered(f"{stem}-{inner}", number * count + int(index))
    return replace(
        device,
        id=_outer_id(host, device.id),
        parent=_outer_id(host, device.parent) if device.parent else "",
        name=name,
        host="" if is_one else host,
    )


def _outer_id(host: str, id_: str) -> str:
    return f"{host}.{id_}"


def _numbered(stem: str, number: int) -> str:
    return f"{stem}{'-' * stem[-1:].isdigit()}{number}"


# --- words ----------------------------------------------------------------------------------------


def _part(kind: str, text: str, ports: int) -> str:
    """Return the part that a description names, else the one of which nothing is known."""
    named, _, title = text.partition(": ")[2].rpartition(": ")
    for name in (named, title, part_named(f"[{title}]", ports=ports or 1)):
        part = catalogue().parts.get(name)
        if part is not None and part.kind == kind:
            return part.name
    titled = [
        part.name
        for part in catalogue().parts.values()
        if part.kind == kind and title and f"{part.title} ".lower().startswith(f"{title} ".lower())
    ]
    if len(titled) == 1:
        return titled[0]
    vendors = {"nvidia": "nvidia-data-centre-gpu", "amd": "amd-instinct"} if kind == "gpu" else {}
    vendor = title.partition(" ")[0].lower()
    return vendors.get(vendor, _PARTS.get(kind, f"{kind}-unknown"))


def _link_text(link: Node) -> str:
    return plain_text(link.get("description")) if isinstance(link, Mapping) else ""


def _cable_named(text: str) -> str:
    """Return a link's description where it is a cable as topo writes it, else nothing."""
    try:
        return parse_cable(text, catalogue().media).text
    except UnitError:
        return ""


def _gigabits(link: Node) -> float | None:
    """Return the bandwidth that a link states in Gb/s, `None` where it states none."""
    stated: Node | None = link
    for key in ("physical", "bandwidth"):
        stated = stated.get(key) if isinstance(stated, Mapping) else None
    for unit, factor in _UNITS.items():
        text = plain_text(stated.get(unit)) if isinstance(stated, Mapping) else ""
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
            return float(text) * factor or None
    return None


def _network_cable(name: str, link: Node, ends: tuple[DiscoveredDevice, ...]) -> str:
    """Return the network cable of a link: its rate as stated, its medium as far as it is told."""
    if known := _cable_named(_link_text(link)):
        return known
    text = f"{name} {_link_text(link)}".lower()
    media = [
        part.ports.medium.partition(" ")[0]
        for end in ends
        if (part := catalogue().parts.get(end.part)) and part.ports and part.ports.medium
    ]
    infiniband = "infiniband" in (*media, *text.split()) or bool(
        re.search(r"\b(ndr|hdr|xdr)", text)
    )
    gigabits = _gigabits(link)
    network = "infiniband" if infiniband else "ethernet"
    return f"{network} unknown" if gigabits is None else network_cable(1, gigabits * 1e9, network)


def _host_cable(ends: tuple[DiscoveredDevice, DiscoveredDevice], text: str, gpu_links: str) -> str:
    """Return what joins two devices of a host, by what they are; empty where nothing may.

    `text` is the link's own, `gpu_links` what another link of the host says of NVLink.
    """
    kinds = {end.kind for end in ends}
    if known := _cable_named(text.partition(" ")[2]):
        return known
    if "memory" in kinds:
        return _MEMORY if kinds <= {"memory", "cpu", "root-complex"} else ""
    if kinds <= {"gpu", "nvswitch"}:
        if kinds == {"gpu"} and re.search("xgmi|infinity", text, re.IGNORECASE):
            return "xgmi unknown"
        generation = _NVLINK.search(f"{text} {gpu_links}")
        return f"nvlink {generation[1]}" if generation else "nvlink unknown"
    if "nvswitch" in kinds:
        return ""  # how it is managed
    if kinds == {"cpu"}:
        words = text.lower()
        return next((cable for word, cable in _SOCKETS if word in words), NUMA_LINK)
    generation, lanes = _PCIE.search(text), _LANES.search(text)
    # A plan may give a device a link that its part cannot have: the part is right.
    slots = [slot for end in ends if (slot := catalogue().parts[end.part].slot) is not None]
    widths = [slot.lanes for slot in slots if slot.lanes]
    generations = [slot.generation for slot in slots]
    return DiscoveredLink(
        min([int(generation[1]), *generations]) if generation else None,
        min([int(lanes[1]), *widths]) if lanes else None,
    ).cable
