"""NVSwitches that the PCI bus shows, where no source tells which GPU has links to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.discovery.machine import DiscoveredCable, DiscoveredDevice
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


Joined = tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...], tuple[Finding, ...]]


def joined(devices: Sequence[DiscoveredDevice], cables: Sequence[DiscoveredCable] = ()) -> Joined:
    """Return devices and cables with each NVSwitch joined to the GPUs, or left out.

    Parameters
    ----------
    devices, cables
        What was seen. Where no cable leads to a switch, every GPU whose part has a fabric of its
        own gets all its links, which is how such machines are built, and which is said.
    """
    ends = {end for cable in cables for end in (cable.a, cable.b)}
    lost = [one for one in devices if one.kind == "nvswitch" and one.id not in ends]
    if not lost:
        return tuple(devices), tuple(cables), ()
    switch = lost[0]
    found = [
        DiscoveredCable(one.id, switch.id, cable, "a guess: all links of the part")
        for one in devices
        if one.kind == "gpu" and one.id not in ends and (cable := _fabric(one.part))
    ]
    if found:
        message = f"NVSwitches are there, and their links are not told: {found[0].cable} a GPU"
        help = "`nvidia-smi topo -m` counts the links; correct them in the YAML"
        finding = Finding("guessed-nvlinks", f"{message} is a guess", severity="note", help=help)
        return tuple(devices), (*cables, *found), (finding,)
    message = "NVSwitches are there, and which GPUs have links to them is not told: left out"
    finding = Finding("nvlinks-not-told", message, severity="warning")
    return tuple(one for one in devices if one not in lost), tuple(cables), (finding,)


def _fabric(part: str) -> str:
    """Return all links of a part as a cable, ``""`` when it has none or they are unknown."""
    from topo.catalogue.load import catalogue

    known = catalogue().parts.get(part)
    fabric = known.fabric if known is not None else None
    if fabric is None or not fabric.count or not fabric.medium:
        return ""
    return f"{fabric.count}x {fabric.medium}" if fabric.count > 1 else fabric.medium
