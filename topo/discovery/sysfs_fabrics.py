"""Storage over a network that is mounted here: NVMe controllers with a transport of their own.

Such a controller has no place in the PCI tree. Which card leads to it follows from the address it
was reached from, else from the routes, else it is a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, printable
from topo.discovery.sysfs_net import addresses_of
from topo.errors import Finding

if TYPE_CHECKING:
    from topo.discovery.sysfs_files import Tree


_NVME: Final = "/sys/class/nvme"
_REMOTE: Final = ("rdma", "tcp", "fc")
_INFINIBAND: Final = {100: "edr", 200: "hdr", 400: "ndr", 800: "xdr"}


@dataclass(frozen=True, slots=True)
class Fabrics:
    """Targets on a network, their cables to cards, and what is doubtful about them."""

    devices: tuple[DiscoveredDevice, ...] = ()
    cables: tuple[DiscoveredCable, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_fabrics(tree: Tree, cards: list[DiscoveredDevice]) -> Fabrics:
    """Return the NVMe-oF targets that the system is connected to.

    Parameters
    ----------
    tree
        The files.
    cards
        The network cards of the machine.
    """
    targets: dict[str, list[tuple[str, str]]] = {}
    for name in tree.names(_NVME):
        transport = tree.text(f"{_NVME}/{name}/transport").lower()
        if transport in _REMOTE:
            key = tree.text(f"{_NVME}/{name}/subsysnqn") or name
            address = tree.text(f"{_NVME}/{name}/address")
            targets.setdefault(key, []).append((transport, address))
    if not targets:
        return Fabrics()
    if not cards:
        message = f"{len(targets)} NVMe-oF targets, and no network card to reach them by: left out"
        return Fabrics(findings=(Finding("target-without-card", message, severity="warning"),))
    return _cabled(tree, targets, cards)


def _cabled(
    tree: Tree, targets: dict[str, list[tuple[str, str]]], cards: list[DiscoveredDevice]
) -> Fabrics:
    devices, cables, guessed = [], [], []
    places = _places(tree, cards)
    for at, (nqn, paths) in enumerate(sorted(targets.items())):
        storage = f"target {at}"
        said = printable(f"NVMe over {paths[0][0]}, {paths[0][1]}")
        facts = (("outside", "yes"),)
        label = printable(nqn.rpartition(":")[2])
        devices.append(
            DiscoveredDevice(
                storage, "storage", "nvme-of-target", label=label, facts=facts, evidence=said
            )
        )
        found = [card for _, text in paths if (card := _card(tree, text, places)) is not None]
        if not found:
            guessed.append(label)
        chosen = {card.id: card for card in found or _fastest(cards)}
        cables += [DiscoveredCable(storage, card.id, *_cable(card)) for card in chosen.values()]
    message = f"which card leads to {', '.join(guessed[:3])} is not told: a guess"
    doubt = Finding("guessed-storage", message, severity="note")
    return Fabrics(tuple(devices), tuple(cables), (doubt,) if guessed else ())


def _places(tree: Tree, cards: list[DiscoveredDevice]) -> dict[str, DiscoveredDevice]:
    """Return the cards by the IP addresses and interfaces that are theirs."""
    found: dict[str, DiscoveredDevice] = {}
    for card in cards:
        found |= dict.fromkeys(card.label.split(", "), card)
        for name in card.rdma:
            found |= dict.fromkeys(addresses_of(tree, name), card)
    found.pop("", None)
    return found


def _card(tree: Tree, text: str, places: dict[str, DiscoveredDevice]) -> DiscoveredDevice | None:
    """Return the card of an address like ``traddr=10.0.0.5,trsvcid=4420,src_addr=10.0.0.1``."""
    said = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    for key in ("host_iface", "src_addr", "host_traddr"):
        if said.get(key, "") in places:
            return places[said[key]]
    interface = _route(tree, said.get("traddr", ""))
    return places.get(interface)


def _route(tree: Tree, target: str) -> str:
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
            goal, mask = int(cells[1], 16), int(cells[7], 16)
            if number & mask == goal:
                best = max(best, (mask.bit_count(), cells[0]))
    return best[1]


def _fastest(cards: list[DiscoveredDevice]) -> list[DiscoveredDevice]:
    most = max(sum(rate or 0.0 for rate in card.ports) for card in cards)
    return [card for card in cards if sum(rate or 0.0 for rate in card.ports) == most]


def _cable(card: DiscoveredDevice) -> tuple[str, str]:
    """Return the cables of a card's ports, and what is doubtful about them."""
    rates = [rate for rate in card.ports if rate]
    if not rates:
        return "ethernet 100 Gb/s", "speed guessed: edit it"
    times = f"{len(card.ports)}x " if len(card.ports) > 1 else ""
    gigabits = max(rates) / 1e9
    if card.network == "infiniband" and gigabits in _INFINIBAND:
        return f"{times}infiniband {_INFINIBAND[int(gigabits)]}", ""
    return f"{times}ethernet {gigabits:.10g} Gb/s", ""
