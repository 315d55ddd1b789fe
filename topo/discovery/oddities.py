"""What is odd about a machine as its source tells it: links, speeds, what is hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import lane_rate
from topo.catalogue.kinds import CARDS
from topo.discovery.describe import larger_slot, part_of
from topo.discovery.machine import ancestors
from topo.errors import Finding, Severity
from topo.phrases import and_more, counted

if TYPE_CHECKING:
    from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine

_MUCH: Final = 4  # times slower than what hangs below: a placeholder, no link
_LAST_PLACEHOLDER: Final = 3  # PCIe generation; who says more has read it of a link
_USUAL_SPEEDS: Final = (1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600)  # Gb/s
_FASTEST: Final = max(_USUAL_SPEEDS)
_VIRTUAL_FROM: Final = 4  # GPUs with links of their own and no switch at all
_USUAL_OF_GPUS: Final = 3  # PCIe generation, at least, where the part is not known


def oddities(machine: Machine) -> tuple[Finding, ...]:
    """Return what is odd about a machine, in the order of the rules, none that it says already."""
    codes = {finding.code for finding in machine.findings}
    findings = (
        *_unknown_links(machine),
        *_placeholders(machine),
        *_slow_links(machine),
        *_network_speeds(machine),
        *_off_fabric(machine),
        *_hidden_switches(machine),
        *_links_over_parts(machine),
        *_unknown_places(machine),
    )
    return tuple(finding for finding in findings if finding.code not in codes)


def with_possible_speeds(machine: Machine) -> Machine:
    """Return the machine without the speeds that no network port has: nothing is computed by them.

    `oddities` says which they are.
    """
    devices = (
        replace(
            device,
            ports=tuple(None if rate and rate > _FASTEST * 1e9 else rate for rate in device.ports),
        )
        for device in machine.devices
    )
    return replace(machine, devices=tuple(devices))


def _rate(link: DiscoveredLink | None) -> float | None:
    """Return a link's rate in Gb/s, `None` when a half of it is unknown."""
    if link is None or link.generation is None or link.lanes is None:
        return None
    return lane_rate(link.generation) * link.lanes * 8 / 1e9


def _names(devices: Sequence[DiscoveredDevice]) -> str:
    return and_more([(*device.pci, device.label or device.id)[0] for device in devices])


def _cable(device: DiscoveredDevice) -> str:
    return device.link.cable if device.link else ""


def _unknown_links(machine: Machine) -> Iterator[Finding]:
    devices = [
        device
        for device in machine.devices
        if device.pci and device.link is not None and _rate(device.link) is None
    ]
    if devices:
        count = counted(len(devices), "PCIe link")
        message = f"speed or width of {count} is not told: {_names(devices)}"
        help = "they are `unknown` in the YAML, and never the limit until you fill them in"
        yield Finding("empty-link", message, severity="note", help=help)


def _placeholders(machine: Machine) -> Iterator[Finding]:
    fastest_below: dict[str, float] = {}
    for device in machine.devices:
        fastest = max(fastest_below.get(device.parent, 0.0), _rate(device.link) or 0.0)
        fastest_below[device.parent] = fastest
    slow = [
        device
        for device in machine.devices
        if (rate := _rate(device.link)) is not None
        and device.link is not None
        and not device.link.is_of_both_ends
        and (device.link.generation or 0) <= _LAST_PLACEHOLDER
        and rate * _MUCH <= fastest_below.get(device.id, 0.0) + 1e-9
    ]
    if slow:
        message = f"{_names(slow)}: the link up is {_cable(slow[0])}, "
        message += f"{_MUCH} times slower than what hangs below, or worse"
        help = "virtual switches write such speeds, and busses at rest; where no copy between RAM "
        help += "and a GPU is measured to be that slow, correct it in the YAML"
        yield Finding("placeholder-link", message, severity="warning", help=help)


def _slow_links(machine: Machine) -> Iterator[Finding]:
    """Yield one finding for links at rest, one for those below what their part can."""
    idle: list[DiscoveredDevice] = []
    narrow: list[DiscoveredDevice] = []
    for device in machine.devices:
        part, link = part_of(device, machine), device.link
        if link is None or device.kind == "pcie-switch":
            continue
        slot = part.slot if part else None
        usual = _USUAL_OF_GPUS if device.kind == "gpu" else 0
        if link.generation == 1 and (slot.generation if slot else usual) > 1:
            idle.append(device)
        elif slot is not None:
            fewer_lanes = link.lanes and slot.lanes and link.lanes < slot.lanes
            if fewer_lanes or (link.generation and link.generation < slot.generation):
                narrow.append(device)
    if idle:
        message = f"{_names(idle)}: 2.5 GT/s, which is a link at rest, not its speed"
        help = "read it under load, or take the maximum; correct it in the YAML"
        yield Finding("idle-link", message, severity="warning", help=help)
    if narrow:
        message = f"{_names(narrow)}: {_cable(narrow[0])}, less than the part can"
        help = "the slot has less, a riser is in between, or the link trained down"
        yield Finding("narrow-link", message, severity="note", help=help)


def _network_speeds(machine: Machine) -> Iterator[Finding]:
    odd: list[tuple[DiscoveredDevice, float]] = []
    over: list[DiscoveredDevice] = []
    for card in machine.of_kind(*CARDS):
        speeds = [rate / 1e9 for rate in card.ports if rate]
        odd += [(card, speed) for speed in speeds if speed not in _USUAL_SPEEDS]
        link_rate = _rate(card.link)
        if link_rate is not None and any(link_rate < speed <= _FASTEST for speed in speeds):
            over.append(card)
    if odd:
        card, speed = max(odd, key=lambda pair: pair[1] > _FASTEST)
        message = f"{_names([card])}: {speed:g} Gb/s is no speed of a network port"
        message += f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        help = "a driver's or a cloud's own number; the YAML has it as it was told"
        severity: Severity = "note"
        if any(speed > _FASTEST for _, speed in odd):
            severity = "warning"
            help = f"above {_FASTEST} Gb/s it is `unknown` in the YAML: write what the port has"
        yield Finding("impossible-nic-speed", message, severity=severity, help=help)
    if over:
        message = f"{_names(over)}: the port is faster than the PCIe link behind it"
        yield Finding("nic-over-link", message, severity="note")


def _off_fabric(machine: Machine) -> Iterator[Finding]:
    gpus = machine.of_kind("gpu")
    ends = {
        end for cable in machine.cables if "c2c" not in cable.cable for end in (cable.a, cable.b)
    }
    alone = [gpu for gpu in gpus if gpu.id not in ends]
    if alone and len(alone) < len(gpus):
        message = f"{_names(alone)} has no link to other GPUs, and the others have"
        help = "a broken link, a fabric manager that did not start, or another model"
        yield Finding("gpu-off-fabric", message, severity="warning", help=help)


def _hidden_switches(machine: Machine) -> Iterator[Finding]:
    fabric = (cable for cable in machine.cables if not cable.cable.startswith("pcie"))
    ends = {end for cable in fabric for end in (cable.a, cable.b)}
    linked = [gpu for gpu in machine.of_kind("gpu") if gpu.id in ends or "-sxm-" in gpu.part]
    switches = {device.id for device in machine.of_kind("pcie-switch", "root-complex")}
    shows_tree = any(device.parent for device in machine.devices if device.id in switches) or any(
        not switches.isdisjoint((cable.a, cable.b)) for cable in machine.cables
    )
    most_linked = max(Counter(gpu.host for gpu in linked).values(), default=0)
    by_id = machine.by_id()
    tops = [place for card in machine.of_kind(*CARDS) for place in ancestors(card, by_id)[-1:]]
    if machine.kind == "infragraph":  # a plan, which no hypervisor told
        return
    has_placed_cards = any(top.kind == "cpu" for top in tops)
    if most_linked >= _VIRTUAL_FROM and has_placed_cards and not shows_tree:
        message = f"{len(linked)} GPUs with links of their own and no PCIe switch: "
        message += "a virtual machine that hides its switches?"
        help = "near and far cards look alike here; compare with the host's own topology"
        yield Finding("hidden-switches", message, severity="warning", help=help)


def _unknown_places(machine: Machine) -> Iterator[Finding]:
    joined = {end for cable in machine.cables for end in (cable.a, cable.b)}
    places = {
        device.id
        for device in machine.of_kind("root-complex")
        if not device.parent and device.id not in joined
    }
    devices = [device for device in machine.devices if device.parent in places]
    if devices and len(machine.of_kind("cpu")) > 1:
        message = f"{_names(devices)}: which CPU is near is not told"
        help = "the YAML has unknown links to every CPU there: put it under the right one"
        yield Finding("numa-unknown", message, severity="warning", help=help)


def _links_over_parts(machine: Machine) -> Iterator[Finding]:
    """Yield a finding for each kind of device whose link is faster than its part can be."""
    over: dict[tuple[str, str, str], int] = {}
    for device in machine.devices:
        part = part_of(device, machine)
        if part is not None and part.slot is not None and larger_slot(device, part):
            lanes = f" x{part.slot.lanes}" if part.slot.lanes else ""
            key = (part.name, f"PCIe {part.slot.generation}{lanes}", _cable(device))
            over[key] = over.get(key, 0) + 1
    for (name, slot, cable), count in over.items():
        message = f"{count} x {name}: the file says `{cable}`, and the part has {slot}"
        help = "what the file says was kept; a virtual machine often says more than there is"
        yield Finding("link-over-part", message, severity="warning", help=help)
