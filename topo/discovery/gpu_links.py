"""Where NVLinks lead of which a source knows the number, and at most an address at the far end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.discovery.machine import (
    DiscoveredCable,
    DiscoveredDevice,
    GpuLinks,
    Machine,
    bundle,
)
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
    told = [links for links in source.gpu_links if links.gpu in first_of]
    active = [links for links in told if links.active]
    if not active or len(told) < len(machine.of_kind("gpu")):
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
