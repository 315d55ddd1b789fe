"""The elements of an NCCL topology file as plain values: what each attribute says, if it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from topo.catalogue.identities import LANES, generation_of_transfer_rate
from topo.discovery.machine import DiscoveredLink

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


PciKind = Literal["switch", "gpu", "nic", "nvme", "hba", "nvswitch", "unknown"]

# NCCL matches classes by their beginnings, in this order.
_CLASSES: Final[tuple[tuple[str, PciKind], ...]] = (
    ("060400", "switch"),
    ("080100", "switch"),  # ConnectX-8 Data Direct
    ("068000", "nvswitch"),
    ("03", "gpu"),
    ("12", "gpu"),  # processing accelerators: AMD's GPUs
    ("02", "nic"),
    ("0108", "nvme"),
    ("01", "hba"),
)
_CONSOLES: Final = ("1a03", "102b")  # ASPEED and Matrox: the picture of the management port
_SPEED: Final = re.compile(r"([0-9.]{1,8})\s*GT/s")


def number(element: Element, name: str) -> int | None:
    """Return an attribute as a whole number, `None` when it is absent or none.

    Hexadecimal with ``0x``, as NCCL reads it.
    """
    text = element.get(name, "").strip()
    if not re.fullmatch(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})", text):
        return None
    return int(text, 16) if "x" in text.lower() else int(text)


def speed_of(text: str) -> int | None:
    """Return the PCIe generation of ``16.0 GT/s PCIe``, `None` where it says none.

    Examples
    --------
    >>> speed_of("2.5 GT/s"), speed_of("64.0 GT/s PCIe"), speed_of(""), speed_of("Unknown speed")
    (1, 6, None, None)
    """
    found = _SPEED.match(text.strip())
    try:
        return generation_of_transfer_rate(float(found[1]) * 1e9) if found else None
    except ValueError:
        return None


def link_of(element: Element) -> DiscoveredLink:
    """Return the link of a ``pci`` element to what is above it."""
    said = [
        f'{name} "{element.get(name)}"' if name == "link_speed" else f"{name} {element.get(name)}"
        for name in ("link_speed", "link_width")
        if element.get(name) is not None
    ]
    width = number(element, "link_width")
    return DiscoveredLink(
        generation=speed_of(element.get("link_speed", "")),
        lanes=width if width in LANES else None,
        said=", ".join(said) if said else "no link attributes",
    )


def kind_of(element: Element) -> PciKind:
    """Return what a ``pci`` element is: by its class, and where it has none by what is in it."""
    code = element.get("class", "").lower().removeprefix("0x")
    if code.startswith("068001"):
        return "unknown"  # an NVLink bridge inside a CPU
    for start, kind in _CLASSES:
        if code.startswith(start) and not _is_console(element, kind):
            return kind
    if element.find("gpu") is not None:
        return "gpu"
    if element.find("nic") is not None:
        return "nic"
    return "switch" if element.find("pci") is not None else "unknown"


def _is_console(element: Element, kind: PciKind) -> bool:
    vendor = element.get("vendor", "").lower().removeprefix("0x")
    return kind == "gpu" and vendor in _CONSOLES and element.find("gpu") is None


def is_virtual_part(upper: Element, lower: Element) -> bool:
    """Whether NCCL takes two switches for one: a Broadcom switch that is cut into virtual ones."""
    above, below = (
        ":".join(
            element.get(name, "").lower().removeprefix("0x")
            for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")
        )[:-3]  # the last three digits differ from machine to machine
        for element in (upper, lower)
    )
    return (above, below) in _VIRTUAL


# Upper and lower switch of Broadcom's PEX880xx (PCIe 4) and PEX890xx (PCIe 5).
_VIRTUAL: Final = (
    ("1000:c010:1000:a", "1000:c010:1000:a"),
    ("1000:c030:1000:0", "1000:c030:1000:1"),
)
