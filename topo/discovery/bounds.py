"""One guess where nothing at all has an end: a question without any finite rate has no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.discovery.fit import part_of
from topo.discovery.sighting import SeenLink
from topo.errors import Finding

if TYPE_CHECKING:
    from topo.discovery.sighting import SeenDevice, Sighting

__all__ = ["bounded"]

_USUAL: Final = SeenLink(3, 4, said="speed guessed: edit it")


def bounded(sighting: Sighting) -> Sighting:
    """Return a sighting whose drives have a link, if neither they nor the GPUs have any known.

    Elsewhere an unknown link stays unknown: it never binds, and what is known does.
    """
    drives, gpus = sighting.of_kind("nvme"), sighting.of_kind("gpu")
    if not drives or not gpus or sighting.of_kind("storage"):
        return sighting
    if any(_has_end(device, sighting) for device in (*drives, *gpus)):
        return sighting
    devices = tuple(
        replace(device, link=_USUAL) if device.kind == "nvme" else device
        for device in sighting.devices
    )
    finding = Finding(
        "guessed-speed",
        f"no link here has a known speed: {_USUAL.cable} for {len(drives)} drives is a guess",
        severity="note",
        help="write the speed of the drives' links in the YAML",
    )
    return replace(sighting, devices=devices, findings=(*sighting.findings, finding))


def _has_end(device: SeenDevice, sighting: Sighting) -> bool:
    """Whether something finite is known of a device: its link's rate, or its part's slot."""
    link, part = device.link, part_of(device, sighting)
    known = link is not None and link.generation is not None and link.lanes is not None
    return known or (part is not None and part.slot is not None)
