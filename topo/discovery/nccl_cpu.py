"""The CPU of an NCCL file: vendor, family and model become a part of the imported file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.identities import processor
from topo.discovery.machine import DiscoveredDevice, DiscoveredPart
from topo.discovery.nccl_read import number

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


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
    family, model = number(element, "familyid"), number(element, "modelid")
    if element.get("arch") == "arm64":
        facts = (("architecture", "arm"),)
        return DiscoveredPart("arm-cpu", "cpu-unknown", "an Arm CPU", facts), ""
    if family is None or model is None or min(family, model) < 0:
        family = model = None
    cpu = processor(element.get("vendor", "").strip(), family, model)
    if cpu is None or family is None:
        return None, cpu.cable if cpu else ""
    maker, generation = cpu.title
    title = f"{maker}, family {family} model {model}" + (f" ({generation})" if generation else "")
    return DiscoveredPart(f"{cpu.vendor}-{family}-{model}", cpu.like, title), cpu.cable


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
