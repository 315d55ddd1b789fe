"""What is odd about a machine as its source tells it: links, speeds, what is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import lane_rate
from topo.discovery.describe import larger_slot, part_of
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.catalogue.part import Slot
    from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine


_MUCH: Final = 4  # times slower than what hangs below: a placeholder, no link
_USUAL: Final = (1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600)
_FASTEST: Final = 1600e9
_VIRTUAL_FROM: Final = 4  # GPUs with links of their own and no switch at all


def lint(machine: Machine) -> tuple[Finding, ...]:
    """Return the findings about what was seen, in the order of the rules, none said already."""
    said = {finding.code for finding in machine.findings}
    found = (
        *_empty_links(machine),
        *_placeholders(machine),
        *_slow_links(machine),
        *_network_speeds(machine),
        *_off_fabric(machine),
        *_hidden_switches(machine),
        *_over_part(machine),
    )
    return tuple(finding for finding in found if finding.code not in said)


def _rate(link: DiscoveredLink | None) -> float | None:
    """Return a link's rate in Gb/s, `None` when a half of it is unknown."""
    if link is None or link.generation is None or link.lanes is None:
        return None
    return lane_rate(link.generation) * link.lanes * 8 / 1e9


def _shown(device: DiscoveredDevice) -> str:
    return device.pci[0] if device.pci else device.label or device.id


def _some(devices: list[DiscoveredDevice]) -> str:
    names = [_shown(device) for device in devices[:3]]
    more = f" and {len(devices) - 3} more" if len(devices) > 3 else ""  # noqa: PLR2004
    return ", ".join(names) + more


def _empty_links(machine: Machine) -> Iterator[Finding]:
    empty = [
        device
        for device in machine.devices
        if device.pci and device.link is not None and _rate(device.link) is None
    ]
    if empty:
        yield Finding(
            "empty-link",
            f"speed or width of {len(empty)} PCIe links is not told: {_some(empty)}",
            severity="note",
            help="they are `unknown` in the YAML, and never the limit until you fill them in",
        )


def _placeholders(machine: Machine) -> Iterator[Finding]:
    below: dict[str, float] = {}
    for device in machine.devices:
        below[device.parent] = max(below.get(device.parent, 0.0), _rate(device.link) or 0.0)
    slow = [
        device
        for device in machine.devices
        if (rate := _rate(device.link)) is not None
        and rate * _MUCH <= below.get(device.id, 0.0) + 1e-9
    ]
    if slow:
        yield Finding(
            "placeholder-link",
            f"{_some(slow)}: the link up is {slow[0].link.cable if slow[0].link else ''}, "
            f"{_MUCH} times slower than what hangs below, or worse",
            severity="warning",
            help="virtual switches write such speeds, and busses at rest; correct it in the YAML",
        )


def _slow_links(machine: Machine) -> Iterator[Finding]:
    """Yield one finding for links at rest, one for those below what their part can."""
    idle: list[DiscoveredDevice] = []
    narrow: list[DiscoveredDevice] = []
    for device in machine.devices:
        part, link = part_of(device, machine), device.link
        if link is None or device.kind == "pcie-switch":
            continue
        slot = part.slot if part else None
        can = slot.generation if slot else (3 if device.kind == "gpu" else 0)
        if link.generation == 1 and can > 1:
            idle.append(device)
        elif slot and _below(link, slot):
            narrow.append(device)
    if idle:
        yield Finding(
            "idle-link",
            f"{_some(idle)}: 2.5 GT/s, which is a link at rest, not its speed",
            severity="warning",
            help="read it under load, or take the maximum; correct it in the YAML",
        )
    if narrow:
        cable = narrow[0].link.cable if narrow[0].link else ""
        yield Finding(
            "narrow-link",
            f"{_some(narrow)}: {cable}, less than the part can",
            severity="note",
            help="the slot has less, a riser is in between, or the link trained down",
        )


def _below(link: DiscoveredLink, slot: Slot) -> bool:
    """Whether a link has fewer lanes or a lower generation than the part's own slot."""
    fewer = bool(link.lanes and slot.lanes and link.lanes < slot.lanes)
    return fewer or bool(link.generation and link.generation < slot.generation)


def _network_speeds(machine: Machine) -> Iterator[Finding]:
    odd: list[tuple[DiscoveredDevice, float]] = []
    over: list[DiscoveredDevice] = []
    for card in machine.of_kind("nic", "dpu"):
        speeds = [rate for rate in card.ports if rate]
        odd += [(card, rate) for rate in speeds if rate / 1e9 not in _USUAL]
        link = _rate(card.link)
        if link is not None and any(rate / 1e9 > link for rate in speeds):
            over.append(card)
    if odd:
        card, rate = odd[0]
        yield Finding(
            "impossible-nic-speed",
            f"{_shown(card)}: {rate / 1e9:g} Gb/s is no speed of a network port"
            + (f", and {len(odd) - 1} more" if len(odd) > 1 else ""),
            severity="warning" if rate > _FASTEST else "note",
            help="a driver's or a cloud's own number; the YAML has it as it was told",
        )
    if over:
        yield Finding(
            "nic-over-link",
            f"{_some(over)}: the port is faster than the PCIe link behind it",
            severity="note",
        )


def _off_fabric(machine: Machine) -> Iterator[Finding]:
    gpus = machine.of_kind("gpu")
    joined = {
        end for cable in machine.cables if "c2c" not in cable.cable for end in (cable.a, cable.b)
    }
    alone = [gpu for gpu in gpus if gpu.id not in joined]
    if alone and len(alone) < len(gpus):
        yield Finding(
            "gpu-off-fabric",
            f"{_some(alone)} has no link to other GPUs, and the others have",
            severity="warning",
            help="a broken link, a fabric manager that did not start, or another model",
        )


def _hidden_switches(machine: Machine) -> Iterator[Finding]:
    gpus = machine.of_kind("gpu")
    linked = {end for cable in machine.cables for end in (cable.a, cable.b)}
    many = [gpu for gpu in gpus if gpu.id in linked or "-sxm-" in gpu.part]
    if len(many) < _VIRTUAL_FROM or machine.of_kind("pcie-switch", "root-complex"):
        return
    if machine.of_kind("nic", "dpu"):
        yield Finding(
            "hidden-switches",
            f"{len(many)} GPUs with links of their own and no PCIe switch: a virtual machine "
            "that hides its switches?",
            severity="warning",
            help="near and far cards look alike here; compare with the host's own topology",
        )


def _over_part(machine: Machine) -> Iterator[Finding]:
    """Yield a finding for each kind of device whose link is faster than its part can be."""
    over: dict[tuple[str, str, str], list[DiscoveredDevice]] = {}
    for device in machine.devices:
        part, link = part_of(device, machine), device.link
        if part is not None and part.slot is not None and link is not None:
            lanes = f" x{part.slot.lanes}" if part.slot.lanes else ""
            if larger_slot(device, part):
                key = (part.name, f"PCIe {part.slot.generation}{lanes}", link.cable)
                over.setdefault(key, []).append(device)
    for (name, slot, cable), devices in over.items():
        yield Finding(
            "link-over-part",
            f"{len(devices)} x {name}: the file says `{cable}`, and the part has {slot}",
            severity="warning",
            help="what the file says was kept; a virtual machine often says more than there is",
        )
