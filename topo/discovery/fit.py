"""What a device says in a topology file: its part, and where what was seen differs from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.discovery.addresses import short_address
from topo.discovery.naming import runs
from topo.errors import Finding
from topo.units import spell_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.catalogue.part import Part
    from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, Machine


Value = str | list[str]
Entries = dict[str, Value]

_COUNT: Final = re.compile(r"(?:(\d+)x )?([\w-]+)(?: (\w+))?")
_FABRICS: Final = ("nvlink", "xgmi")


def part_of(device: DiscoveredDevice, machine: Machine) -> Part | None:
    """Return the catalogue's part that a device is, or that its part of the file is like."""
    from topo.catalogue.load import catalogue

    like = next((own.like for own in machine.parts if own.name == device.part), device.part)
    return catalogue().parts.get(like)


def entries_of(device: DiscoveredDevice, machine: Machine, *, domains: bool) -> Entries:
    """Return the keys and values under a device's name, its part first.

    Parameters
    ----------
    device, machine
        What was seen.
    domains
        Whether PCI addresses are written with their domain.
    """
    part = part_of(device, machine)
    addresses = [one if domains else short_address(one) for one in device.pci]
    found: Entries = {
        "part": device.part,
        "label": device.label,
        "slot": device.slot,
        **_ports(device, part),
        **_slot(device, part),
        **_fabric(device, part, machine.cables),
        **_functions(device, part),
        **dict(device.facts),
        "pci": _one_or_many(addresses),
        "rdma": _one_or_many(list(device.rdma)),
        "numa": runs(device.numa),
    }
    return {key: value for key, value in found.items() if value}


def exceeding(machine: Machine) -> tuple[Finding, ...]:
    """Return a finding for each kind of device whose link is faster than its part can be."""
    over: dict[tuple[str, str, str], list[DiscoveredDevice]] = {}
    for device in machine.devices:
        part = part_of(device, machine)
        if part is not None and part.slot is not None and device.link is not None:
            lanes = f" x{part.slot.lanes}" if part.slot.lanes else ""
            if _slot(device, part):
                key = (part.name, f"PCIe {part.slot.generation}{lanes}", device.link.cable)
                over.setdefault(key, []).append(device)
    return tuple(
        Finding(
            "link-over-part",
            f"{len(devices)} x {name}: the file says `{cable}`, and the part has {slot}",
            severity="warning",
            help="what the file says was kept; a virtual machine often says more than there is",
        )
        for (name, slot, cable), devices in over.items()
    )


def _one_or_many(texts: list[str]) -> Value:
    return texts[0] if len(texts) == 1 else texts


def _slot(device: DiscoveredDevice, part: Part | None) -> Entries:
    """Return `pcie:` where the link has more than the part's own slot."""
    slot, link = part.slot if part else None, device.link
    if slot is None or link is None or link.generation is None:
        return {}
    lanes = link.lanes or 0
    if link.generation <= slot.generation and lanes <= (slot.lanes or lanes):
        return {}
    width = max(lanes, slot.lanes or 0)
    generation = max(link.generation, slot.generation)
    return {"pcie": f"{generation} x{width}" if width else str(generation)}


def _ports(device: DiscoveredDevice, part: Part | None) -> Entries:
    """Return `ports:` where those seen are not those of the part."""
    rates = [rate for rate in device.ports if rate]
    if not rates:
        return {}
    count, rate = len(device.ports), max(rates)
    own = part.ports if part else None
    same_rate = own is not None and own.rate is not None and own.rate.value == rate / 8
    if own is not None and own.count == count and same_rate:
        return {}
    medium = "ethernet " if own is not None and (own.medium or "").startswith("ethernet") else ""
    return {"ports": f"{count}x {medium}{_gigabits(rate)}"}


def _gigabits(bits: float) -> str:
    return f"{bits / 1e9:.10g} Gb/s" if bits >= 1e9 else spell_rate(bits / 8)  # noqa: PLR2004


def _functions(device: DiscoveredDevice, part: Part | None) -> Entries:
    if part is None or device.kind not in ("nic", "dpu"):
        return {}
    figure = part.figure("functions")
    own = int(figure.value) if figure and figure.value else 1
    seen = max(1, len(device.pci), len(device.rdma) if not device.pci else 0)
    return {"functions": str(seen)} if seen != own else {}


def _fabric(
    device: DiscoveredDevice, part: Part | None, cables: Iterable[DiscoveredCable]
) -> Entries:
    """Return `fabric: unknown` where the links to other GPUs do not fit the part's own ports."""
    if device.kind != "gpu":
        return {}
    used, media = 0, set()
    for cable in cables:
        found = _COUNT.match(cable.cable)
        if found and found[2] in _FABRICS and device.id in (cable.a, cable.b):
            used += int(found[1] or 1)
            media.add(found[2] if found[3] in (None, "unknown") else f"{found[2]} {found[3]}")
    own = part.fabric if part else None
    if not used:
        return {}
    fits = own is not None and all(
        medium in (own.medium, (own.medium or "").partition(" ")[0]) for medium in media
    )
    return {} if fits and own and (own.count or used) >= used else {"fabric": "unknown"}
