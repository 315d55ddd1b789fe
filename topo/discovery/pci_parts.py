"""Which part of the catalogue a PCI function is, and what the comment says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import (
    generic_gpu,
    identify,
    part_named,
    switch_of,
    vendor_name,
)
from topo.discovery.machine import printable

if TYPE_CHECKING:
    from topo.catalogue.kinds import Kind
    from topo.discovery.machine import DiscoveredLink
    from topo.discovery.pci import Function


_USUAL_LANES: Final = {"nvme": 4, "cxl-memory": 8, "hba": 8}
_MOST_LANES: Final = 16
_GENERATIONS: Final = {3: "pcie-switch-gen3", 4: "pcie-switch-gen4", 5: "pcie-switch-gen5"}
_CARDS: Final = ("nic", "dpu")


def usual_lanes(kind: str, part: str) -> int:
    """Return how many lanes such a device has: its part's, else those of its kind."""
    from topo.catalogue.load import catalogue

    known = catalogue().parts.get(part)
    own = known.slot.lanes if known is not None and known.slot is not None else None
    return own or _USUAL_LANES.get(kind, _MOST_LANES)


def part_of_function(kind: Kind, one: Function, ports: int) -> str:
    """Return the part by numbers, else by name, else one of which nothing is known.

    Parameters
    ----------
    kind
        What the class says it is; a part of another kind is none.
    one
        The card's first function.
    ports
        How many ports or functions the card has.
    """
    from topo.catalogue.load import catalogue

    found = identify(one.vendor or "0", one.device or "0", ports=ports)
    for part in (found, part_named(one.text, ports=ports)):
        if part:
            own = catalogue().parts[part].kind
            if own == kind or {own, kind} <= {*_CARDS}:
                return part
    return generic_gpu(one.vendor or "0") if kind == "gpu" else f"{kind}-unknown"


def switch_part(one: Function, link: DiscoveredLink) -> str:
    """Return the part of a switch by its upstream port: a generation, where that is known."""
    part = switch_of(one.vendor, one.device)
    if part:
        return part if (link.generation or 0) <= int(part[-1]) else "pcie-switch-unknown"
    return _GENERATIONS.get(one.most.generation or 0, "pcie-switch-unknown")


def seen_as(one: Function) -> str:
    """Return class, numbers and name of a function for the comment."""
    texts = [f"class {one.code[:4]}"] if one.code else []
    if one.vendor and one.device:
        texts.append(f"{vendor_name(one.vendor)} {one.device}")
    if one.text:
        texts.append(one.text)
    return printable(", ".join(texts))
