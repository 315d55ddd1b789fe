"""The CPU of an NCCL file: vendor, family and model become a part of the imported file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.discovery.machine import DiscoveredDevice, DiscoveredPart
from topo.discovery.nccl_read import number

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_VENDORS: Final = {
    "GenuineIntel": ("intel", "Intel", "xeon-scalable", "upi unknown"),
    "AuthenticAMD": ("amd", "AMD", "epyc", "xgmi unknown"),
    "CentaurHauls": ("zhaoxin", "Zhaoxin", "cpu-unknown", ""),
    "Shanghai": ("zhaoxin", "Zhaoxin", "cpu-unknown", ""),
}
_SKYLAKE: Final = 0x55
_INTEL: Final = (
    (0xCF, "Emerald Rapids or newer"),
    (0x8F, "Sapphire Rapids"),
    (0x6A, "Ice Lake"),
    (0x55, "Skylake or Cascade Lake"),
    (0x4F, "Broadwell"),
    (0x3F, "Haswell"),
)
# NCCL writes AMD's families in two ways: 23, and 0x8f for the same.
_AMD: Final = {23: "Zen, Zen 2", 143: "Zen, Zen 2", 25: "Zen 3, Zen 4", 175: "Zen 3, Zen 4"}


def cpu_of(element: Element, here: str) -> tuple[DiscoveredDevice, DiscoveredPart | None, str]:
    """Return a ``cpu`` element's device, the part it needs in the file, and the link to others."""
    node = number(element, "numaid")
    part, cable = _part(element)
    device = DiscoveredDevice(
        id=here,
        kind="cpu",
        part=part.name if part else "cpu-unknown",
        numa=(node,) if node is not None and node >= 0 else (),
        said=_said(element),
    )
    return device, part, cable


def _part(element: Element) -> tuple[DiscoveredPart | None, str]:
    vendor = element.get("vendor", "").strip()
    family, model = number(element, "familyid"), number(element, "modelid")
    if element.get("arch") == "arm64":
        facts = (("architecture", "arm"),)
        return DiscoveredPart("arm-cpu", "cpu-unknown", "an Arm CPU", facts), ""
    if vendor not in _VENDORS or family is None or model is None or min(family, model) < 0:
        return None, _VENDORS[vendor][3] if vendor in _VENDORS else ""
    short, title, like, cable = _VENDORS[vendor]
    if short == "intel" and (family, model >= _SKYLAKE) != (6, True):
        like, cable = "cpu-unknown", "qpi unknown"
    guess = _generation(short, family, model)
    text = f"{title}, family {family} model {model}" + (f" ({guess})" if guess else "")
    return DiscoveredPart(f"{short}-{family}-{model}", like, text), cable


def _generation(vendor: str, family: int, model: int) -> str:
    if vendor == "amd":
        return _AMD.get(family, "")
    if vendor == "intel" and family == 6:  # noqa: PLR2004  (the family of all of them)
        return next((name for start, name in _INTEL if model >= start), "")
    return ""


def _said(element: Element) -> str:
    cpus = _count(element.get("affinity", ""))
    return f"affinity: {cpus} logical CPUs" if cpus else ""


def _count(mask: str) -> int:
    """Return how many bits a mask like ``00000000,0000ffff`` has."""
    digits = mask.replace(",", "").strip()
    try:
        return int(digits, 16).bit_count() if digits else 0
    except ValueError:
        return 0
