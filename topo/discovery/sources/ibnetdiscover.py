"""Output of ``ibnetdiscover``: the switches of an InfiniBand fabric, hosts by their cards, links.

A card's description is its host's name and its own, ``node01 mlx5_0``; what else is in the host is
not told. Each link stands at both of its ends.

References
----------
rdma-core, ``infiniband-diags/ibnetdiscover.c`` and its manual page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from topo.catalogue.identities import MELLANOX, identify
from topo.catalogue.parts import catalogue
from topo.description.names import stem_of as numbered
from topo.discovery.describe import machine_name
from topo.discovery.foreign import nothing_there, read_lines
from topo.discovery.machine import (
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    printable,
)
from topo.errors import Finding
from topo.phrases import and_more, counted
from topo.records import dataclass

KIND: Final = "ibnetdiscover"
_NODE: Final = r'"([SHR])-([^"\s]{1,40})"'
_HEAD: Final = re.compile(rf"\s*(?:Switch|Ca|Rt)\s+(\d{{1,4}})\s+{_NODE}\s*(?:#\s*\"([^\"]*)\")?")
_LINK: Final = re.compile(
    rf"\s*\[(\d{{1,4}})\](?:\[ext \d+\])?(?:\([^()\s]{{1,40}}\))?\s+{_NODE}\[(\d{{1,4}})\](.*)"
)
_NAME: Final = re.compile(r'#[^"]*"([^"]*)"')
_SPEED: Final = re.compile(r"\b(\d{1,2})x([A-Z]{3}\d{0,2})\b")
_DEVICE: Final = re.compile(r"\s*devid=0x([0-9a-fA-F]{1,4})\b")
_IMAGE: Final = re.compile(r"\s*sysimgguid=(0x[^\s#]{1,40})")
_VENDOR: Final = re.compile(r"\s*vendid=")
_CARD: Final = re.compile(r"(\S+)\s+((?:[a-z][a-z_]*\d[\w]*)|HCA[- ]?\d+)")
_SHARP: Final = "aggregation node"  # a switch's own card, which reduces
_GENERIC: Final = re.compile(
    r"mellanox technologies|infiniscale|switchx|quantum|switch-?ib", re.IGNORECASE
)
# Gb/s of a lane after coding: InfiniBand Trade Association roadmap.
_LANES: Final = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 13.64,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
_MEDIA: Final = {"2xNDR": "ndr200", "4xNDR": "ndr", "4xXDR": "xdr"}
_BY_RATE: Final = {100.0: "edr", 200.0: "hdr", 400.0: "ndr", 800.0: "xdr", 54.56: "fdr"}
# Switches by the PCI number that their chip has, and by the model in their description.
_CHIPS: Final = {"d2f0": "quantum", "d2f2": "quantum-2", "d2f4": "quantum-x800"}
_MODELS: Final = {"MQM87": "quantum", "MQM97": "quantum-2", "Q3400": "quantum-x800"}
_UNKNOWN: Final = "network-switch-unknown"
_SPLIT: Final = "2xNDR"  # half of a port, which makes two of it
_NOTE: Final = (
    "The fabric knows hosts by their cards alone: put each host's own file in the place of its "
    "machine here, or name the host's source as you import, --node NAME=FILE."
)
_MOST: Final = 100_000
_NAMED: Final = 6


@dataclass(slots=True)
class _Node:
    """A switch, a card or a router of the fabric."""

    sort: str
    guid: str
    name: str = ""
    ports: int = 0
    device: str = ""
    image: str = ""
    links: dict[int, tuple[str, int, str]] = field(
        default_factory=dict
    )  # port: far key, its, speed


def read(data: bytes, name: str) -> Machine:
    """Read a fabric; an `ExchangeError` if it has no link."""
    nodes = _nodes(read_lines(data, name))
    if not any(node.links for node in nodes.values()):
        message = f"`{name}` has no link of ibnetdiscover"
        help = "paste the output of `ibnetdiscover`, run on a host of the fabric"
        raise nothing_there(message, help)
    ours = {key: node for key, node in nodes.items() if _is_read(node)}
    hosts = _hosts(ours)
    cards = list(_cards(ours, hosts))
    device_of = {key: device.id for device, keys in cards for key in keys}
    device_of |= {key: f"switch {key}" for key, node in ours.items() if node.sort == "S"}
    cables = tuple(_cables(nodes, device_of))
    joined = {end for cable in cables for end in (cable.a, cable.b)}
    left_out = [
        printable(node.name or key)
        for key, node in nodes.items()
        if key not in ours or (node.sort == "S" and device_of[key] not in joined)
    ]
    findings = list(_findings(ours, left_out, hosts))
    switches = (switch for switch in _switches(ours) if switch.id in joined)
    return Machine(
        kind=KIND,
        source="output of ibnetdiscover",
        file=name,
        devices=(*_boxes(hosts), *(device for device, _ in cards), *switches),
        cables=cables,
        notes=(_NOTE,),
        left_out=tuple(left_out),
        findings=tuple(findings),
        fabric_known=True,
    )


def _nodes(lines: Iterable[str]) -> dict[str, _Node]:
    """Return the nodes by their keys, ``S-0002c9...``; those that only a link names too."""
    nodes: dict[str, _Node] = {}
    device = image = ""
    current: _Node | None = None
    for line in lines:
        if _VENDOR.match(line):
            device = image = ""
            current = None
        elif number := _DEVICE.match(line):
            device = number[1].lower().zfill(4)
        elif of_image := _IMAGE.match(line):
            image = of_image[1].lower()
        elif head := _HEAD.match(line):
            current = _named(nodes, head[2], head[3], head[4] or "")
            current.ports, current.device, current.image = int(head[1]), device, image
        elif (link := _LINK.match(line)) and current is not None and len(nodes) < _MOST:
            port, sort, guid, far_port, behind = link.groups()
            name, speed = _NAME.search(behind), _SPEED.search(behind)
            far = _named(nodes, sort, guid, name[1] if name else "")
            text = speed[0] if speed else ""
            key = f"{current.sort}-{current.guid}"
            current.links.setdefault(int(port), (f"{sort}-{guid}", int(far_port), text))
            far.links.setdefault(int(far_port), (key, int(port), text))
    return nodes


def _named(nodes: dict[str, _Node], sort: str, guid: str, name: str) -> _Node:
    node = nodes.setdefault(f"{sort}-{guid}", _Node(sort, guid))
    node.name = node.name or printable(name)
    return node


def _is_read(node: _Node) -> bool:
    return node.sort == "S" or (node.sort == "H" and _SHARP not in node.name.lower())


# --- hosts ----------------------------------------------------------------------------------------


def _hosts(nodes: Mapping[str, _Node]) -> dict[str, dict[str, str]]:
    """Return the cards of each host by their keys, with the names that these have there.

    Two cards of one name are of two hosts that have the same.
    """
    cards_of: dict[str, dict[str, str]] = {}
    for key, node in nodes.items():
        if node.sort != "H":
            continue
        named = _CARD.fullmatch(node.name)
        host, card = (named[1].strip("'"), named[2]) if named else (node.name or node.guid, "")
        name, count = host, 1
        while name in cards_of and (not card or card in cards_of[name].values()):
            count += 1
            name = f"{host}.{count}"
        cards_of.setdefault(name, {})[key] = card
    return {
        host: dict(sorted(cards_of[host].items(), key=lambda card: numbered(card[1] or card[0])))
        for host in sorted(cards_of, key=_in_order)
    }


def _in_order(name: str) -> list[tuple[bool, int, str]]:
    """Return what names are sorted by: node2 before node10."""
    words = re.split(r"(\d{1,18})", name)
    return [(word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in words]


def _boxes(hosts: Iterable[str]) -> Iterator[DiscoveredDevice]:
    """Yield a CPU for each host: something that its cards hang on."""
    for host in hosts:
        yield DiscoveredDevice(
            f"{host}.cpu", "cpu", "cpu-unknown", host=host, evidence="what the host is, is not told"
        )


def _cards(
    nodes: Mapping[str, _Node], hosts: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[DiscoveredDevice, list[str]]]:
    """Yield the cards with the keys that they have: those of one image are ports of one card."""
    for host, names in hosts.items():
        images: dict[str, list[str]] = {}
        for key in names:
            images.setdefault(nodes[key].image or key, []).append(key)
        for keys in images.values():
            rates = [_gigabits(speed) for key in keys for _, _, speed in nodes[key].links.values()]
            first = nodes[keys[0]]
            part = identify(MELLANOX, first.device or "0", ports=max(len(keys), len(rates)))
            catalogue_part = catalogue().parts.get(part)
            is_card = catalogue_part is not None and catalogue_part.kind in ("nic", "dpu")
            rdma = tuple(names[key] for key in keys if names[key])
            is_named = all(not name.startswith("HCA") for name in rdma)
            device = DiscoveredDevice(
                id=f"{host}.{keys[0]}",
                kind=catalogue_part.kind if catalogue_part is not None and is_card else "nic",
                part=part if is_card else "nic-unknown",
                parent=f"{host}.cpu",
                link=DiscoveredLink(evidence="not of the fabric"),
                rdma=rdma if is_named else (),
                label="" if is_named else ", ".join(rdma),
                ports=tuple(rate * 1e9 if rate else None for rate in rates),
                network="infiniband",
                host=host,
                evidence=f"devid 0x{first.device}" if first.device else "named by a switch alone",
            )
            yield device, keys


# --- switches and links ---------------------------------------------------------------------------


def _switches(nodes: Mapping[str, _Node]) -> Iterator[DiscoveredDevice]:
    taken: set[str] = set()

    def order(item: tuple[str, _Node]) -> tuple[bool, list[tuple[bool, int, str]]]:
        far_ends = (far for far, _, _ in item[1].links.values())
        return not any(far in nodes and far[0] == "H" for far in far_ends), _in_order(item[1].name)

    for key, node in sorted(nodes.items(), key=order):  # those at hosts first
        if node.sort != "S":
            continue
        part = next(
            (part for word, part in _MODELS.items() if word in node.name),
            _CHIPS.get(node.device, _UNKNOWN),
        )
        ports = catalogue().parts[part].ports
        count = ports.count if ports is not None and ports.count else node.ports
        facts: tuple[tuple[str, str], ...] = ()
        speeds = {speed for *_, speed in node.links.values()}
        if len(node.links) > count and speeds == {_SPLIT} and len(node.links) <= 2 * count:
            facts = (("ports", f"{2 * count}x {_cable(_SPLIT)}"),)
        elif part == _UNKNOWN or len(node.links) > count:
            part, facts = _UNKNOWN, (("ports", str(max(node.ports, len(node.links)))),)
        text = node.name.partition(";")[2].partition(":")[0] or node.name
        title = "" if _GENERIC.search(text) else machine_name(text.replace(".", "-"))
        title = title if title and title.lower() not in taken and title != "imported" else ""
        taken.add(title.lower())
        yield DiscoveredDevice(
            id=f"switch {key}",
            kind="network-switch",
            part=part,
            label="" if title == text else node.name,
            facts=facts,
            evidence=f"devid 0x{node.device}" if node.device else "",
            name=title,
        )


def _cables(nodes: Mapping[str, _Node], device_of: Mapping[str, str]) -> Iterator[DiscoveredCable]:
    """Yield the links, those of one pair and speed together."""
    counts: dict[tuple[str, str, str], int] = {}
    used: set[tuple[str, int]] = set()
    for key, node in nodes.items():
        for port, (far, far_port, speed) in node.links.items():
            ends = {(key, port), (far, far_port)}  # each of which has one link
            if key not in device_of or far not in device_of or used & ends:
                continue
            if device_of[key] == device_of[far]:
                continue
            used |= ends
            a, b = sorted((key, far), key=lambda end: (end[0] == "S", end == far))
            pair = device_of[a], device_of[b]
            turned = (pair[1], pair[0], speed)
            pair_key = turned if turned in counts else (*pair, speed)
            counts[pair_key] = counts.get(pair_key, 0) + 1
    for (first, second, speed), count in counts.items():
        yield DiscoveredCable(first, second, bundle(count, _cable(speed)), speed)


def _gigabits(speed: str) -> float | None:
    match = _SPEED.fullmatch(speed)
    lane = _LANES.get(match[2]) if match else None
    return int(match[1]) * lane if match and lane else None


def _cable(speed: str) -> str:
    """Return the cable of ``4xNDR``; what has no name is a cable of its rate."""
    rate = _gigabits(speed)
    if rate is None:
        return "infiniband unknown"
    return f"infiniband {_MEDIA.get(speed) or _BY_RATE.get(rate) or f'{rate:g} Gb/s'}"


# --- what is odd ----------------------------------------------------------------------------------


def _findings(
    nodes: Mapping[str, _Node], left_out: list[str], hosts: Mapping[str, object]
) -> Iterator[Finding]:
    odd = dict.fromkeys(
        f"{node.name or key} port {port}: {speed or 'no speed'}"
        for key, node in nodes.items()
        for port, (_, _, speed) in node.links.items()
        if _cable(speed).endswith("unknown") and node.sort == "S"
    )
    if odd:
        message = f"links have a speed that no cable here has: {and_more([*odd], _NAMED)}"
        help = "they are `unknown` in the YAML, and no limit: is a cable bad?"
        yield Finding("odd-link-speed", message, severity="warning", help=help)
    single = dict.fromkeys(
        f"{node.name or key} port {port}: {speed}"
        for key, node in nodes.items()
        for port, (_, _, speed) in node.links.items()
        if speed.startswith("1x") and node.sort == "S"
    )
    if single:
        message = f"links have one lane where cables have four: {and_more([*single], _NAMED)}"
        help = "is a cable bad, or not all of it plugged in?"
        yield Finding("narrow-link", message, severity="warning", help=help)
    if left_out:
        message = (
            f"{len(left_out)} routers, cards inside switches and switches alone were left out: "
        )
        message += and_more(list(dict.fromkeys(left_out)), _NAMED)
        yield Finding("left-out", message, severity="note")
    cut = [key for key, node in nodes.items() if node.sort == "H" and not node.ports]
    if cut:
        message = f"{counted(len(cut), 'card')} stand at switches alone: was the text cut?"
        help = "the cards' own entries tell what they are"
        yield Finding("abridged", message, severity="note", help=help)
    if hosts:
        message = f"what is in the {counted(len(hosts), 'host')} is not told, but for cards"
        help = "name each host's own source too: `--node NAME=FILE`"
        yield Finding("hosts-by-cards", message, severity="note", help=help)
