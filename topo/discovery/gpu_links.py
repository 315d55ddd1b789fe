"""Where NVLinks lead: of a source that knows their number alone, or an NVSwitch without any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.parts import catalogue
from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, GpuLinks, Machine, bundle
from topo.errors import Finding
from topo.phrases import counted

if TYPE_CHECKING:
    from topo.discovery.matching import Pair

_UNKNOWN: Final = "nvlink unknown"
_PAIR: Final = 2


def with_ends_of_links(
    source: Machine, machine: Machine, pairs: Sequence[Pair]
) -> tuple[Machine, tuple[Pair, ...]]:
    """Return a source of `gpu_links` with cables to what they lead to in the machine.

    An address that is no GPU's is an NVSwitch's. Where no address is told, links lead to the
    NVSwitch that the machine shows, or, of two GPUs alone with as many links, to each other;
    otherwise that stays open, and no cable comes of it. Nor does one where the source leaves a GPU
    of the machine out.

    Parameters
    ----------
    source, machine
        The source, and the machine that it is laid beside.
    pairs
        Which GPU is which.

    Returns
    -------
    tuple
        The source, and the pair of NVSwitches where both have one.
    """
    first_of = {second: first for first, second in reversed(pairs)}
    matched = [links for links in source.gpu_links if links.gpu in first_of]
    active = [links for links in matched if links.active]
    if not active or len(matched) < len(machine.of_kind("gpu")):
        return source, ()
    address_of = {gpu.id: gpu.pci for gpu in machine.of_kind("gpu")}
    gpu_at = {
        address: links.gpu
        for links in source.gpu_links
        for address in address_of.get(first_of.get(links.gpu, ""), ())
    }
    switch = DiscoveredDevice(
        "far end of NVLinks", "nvswitch", "nvswitch-unknown", evidence="NVLinks lead there"
    )
    shown = machine.of_kind("nvswitch")
    if any(links.ends for links in active):
        cables = [*_by_address(active, gpu_at, switch.id)]
    elif shown:
        cables = [_cable(links, switch.id, links.active) for links in active]
    elif (
        len(active) == _PAIR == len(machine.of_kind("gpu")) and active[0].active == active[1].active
    ):
        cables = [_cable(active[0], active[1].gpu, active[0].active)]
    else:
        return source, ()
    has_switch = any(cable.b == switch.id for cable in cables)
    devices = (*source.devices, switch) if has_switch else source.devices
    with_cables = replace(source, devices=devices, cables=tuple(cables), fabric_known=True)
    return with_cables, ((shown[0].id, switch.id),) if shown else ()


def _by_address(
    active: list[GpuLinks], gpu_at: Mapping[str, str], switch: str
) -> Iterator[DiscoveredCable]:
    """Yield the cables of each GPU to each it leads to, a pair once, and to switches."""
    counts: dict[frozenset[str], int] = {}
    for links in active:
        to_switches: Counter[str] = Counter()
        for address, count in links.ends:
            end = gpu_at.get(address, switch)
            if end == switch:
                to_switches[switch] += count
            elif end != links.gpu:
                pair = frozenset((links.gpu, end))
                if pair not in counts:
                    yield _cable(links, end, count)
                counts[pair] = count
        if to_switches:
            yield _cable(links, switch, to_switches[switch])


def _cable(links: GpuLinks, end: str, count: int) -> DiscoveredCable:
    return DiscoveredCable(
        links.gpu, end, bundle(count, links.medium or _UNKNOWN), f"{counted(count, 'NVLink')} up"
    )


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
