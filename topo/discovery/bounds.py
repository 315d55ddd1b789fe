"""One guess where nothing at all has an end: a question without any finite rate has no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.discovery.fit import part_of
from topo.discovery.machine import DiscoveredLink
from topo.errors import Finding

if TYPE_CHECKING:
    from topo.discovery.machine import DiscoveredDevice, Machine


_USUAL: Final = DiscoveredLink(3, 4, said="speed guessed: edit it")


def bounded(machine: Machine) -> Machine:
    """Return the machine with a link for its drives, if neither they nor the GPUs have a known one.

    Elsewhere an unknown link stays unknown: it never binds, and what is known does.
    """
    drives, gpus = machine.of_kind("nvme"), machine.of_kind("gpu")
    if not drives or not gpus or machine.of_kind("storage"):
        return machine
    if any(_has_end(device, machine) for device in (*drives, *gpus)):
        return machine
    devices = tuple(
        replace(device, link=_USUAL) if device.kind == "nvme" else device
        for device in machine.devices
    )
    finding = Finding(
        "guessed-speed",
        f"no link here has a known speed: {_USUAL.cable} for {len(drives)} drives is a guess",
        severity="note",
        help="write the speed of the drives' links in the YAML",
    )
    return replace(machine, devices=devices, findings=(*machine.findings, finding))


def _has_end(device: DiscoveredDevice, machine: Machine) -> bool:
    """Whether something finite is known of a device: its link's rate, or its part's slot."""
    link, part = device.link, part_of(device, machine)
    known = link is not None and link.generation is not None and link.lanes is not None
    return known or (part is not None and part.slot is not None)
