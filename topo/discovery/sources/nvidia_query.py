"""Text and XML of ``nvidia-smi -q``: what GPUs are, their addresses, PCIe links and BAR1.

References
----------
NVIDIA, manual of nvidia-smi, "GPU Attributes": Max is what the GPU and the system can together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import generations, gpu_named, identify
from topo.discovery.foreign import nothing_there, read_lines, read_xml
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, DiscoveredLink, Machine, printable
from topo.discovery.pci import read_address
from topo.errors import Finding
from topo.phrases import and_more

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_XML: Final = re.compile(r"\s*<(?:\?xml|!DOCTYPE|nvidia_smi_log)\b")
_GPU: Final = re.compile(
    r"\s*GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])[\s\\]*"
)
_VALUE: Final = re.compile(r"\s*(\S[^:]{0,60}?)\s*:\s+(\S.{0,100}?)[\s\\]*")
_SECTION: Final = re.compile(r"\s*([A-Z][\w -]{1,60}?)[\s\\]*")
_NUMBERS: Final = re.compile(r"(?:0x)?([0-9A-Fa-f]{4})10DE", re.IGNORECASE)
_SIZE: Final = re.compile(r"(\d{1,9}) MiB")
_GIB: Final = 1024  # MiB

# What a value is called here, by its section and key in the text, and by its path in the XML.
_KEYS: Final = {
    ("", "Product Name"): "name",
    ("", "Device Id"): "numbers",
    ("PCIe Generation", "Max"): "generation",
    ("PCIe Generation", "Device Max"): "device generation",
    ("PCIe Generation", "Host Max"): "host generation",
    ("Link Width", "Max"): "lanes",
    ("Link Width", "Current"): "lanes now",
    ("BAR1 Memory Usage", "Total"): "bar1",
}
_PATHS: Final = {
    "product_name": "name",
    "pci/pci_device_id": "numbers",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "generation",
    "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen": "device generation",
    "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen": "host generation",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "lanes",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "lanes now",
    "bar1_memory_usage/total": "bar1",
}
_Values = dict[str, str]


def read(data: bytes, name: str) -> Machine:
    """Read what is told of each GPU.

    Raises an `ExchangeError` if there is none, or the XML is broken.
    """
    lines = read_lines(data, name)
    at = next((at for at, line in enumerate(lines) if _XML.match(line)), None)
    if at is None:
        values_of = _of_text(lines)
    else:
        values_of = dict(_of_xml(read_xml("\n".join(lines[at:]).encode(), name, doctype=True)))
    if not values_of:
        message = f"`{name}` tells of no GPU"
        raise nothing_there(message, "run `nvidia-smi -q`")
    gpus = [_gpu(address, values) for address, values in list(values_of.items())[:MOST_GPUS]]
    narrow = [gpu.pci[0] for gpu in gpus if gpu.link is not None and "now" in gpu.link.evidence]
    findings = []
    if narrow:
        message = f"{and_more(narrow)}: fewer lanes than GPU and slot have together"
        help = "a link at rest keeps its lanes: is the card seated, is a riser between?"
        findings.append(Finding("trained-down", message, severity="warning", help=help))
    return Machine(
        kind="nvidia-smi-q",
        source="output of nvidia-smi -q",
        file=name,
        devices=tuple(gpus),
        findings=tuple(findings),
        tells_only="what its GPUs are, and their PCIe links",
    )


def _of_text(lines: Iterable[str]) -> dict[str, _Values]:
    """Return by address the values of each GPU, the first of each; indentation does not matter."""
    values_of: dict[str, _Values] = {}
    values: _Values = {}
    section = ""
    for line in lines:
        if match := _GPU.fullmatch(line):
            values, section = values_of.setdefault(read_address(match[1]), {}), ""
        elif match := _VALUE.fullmatch(line):
            key = _KEYS.get((section, match[1])) or _KEYS.get(("", match[1]))
            if key:
                values.setdefault(key, match[2])
        elif match := _SECTION.fullmatch(line):
            section = match[1]
    return values_of


def _of_xml(root: Element) -> Iterator[tuple[str, _Values]]:
    for gpu in root.iter("gpu"):
        address = read_address(gpu.get("id", ""))
        if address:
            texts = {key: (gpu.findtext(path) or "").strip() for path, key in _PATHS.items()}
            yield address, {key: text for key, text in texts.items() if text}


def _gpu(address: str, values: _Values) -> DiscoveredDevice:
    name = printable(values.get("name", ""))
    numbers = _NUMBERS.fullmatch(values.get("numbers", ""))
    part = (identify("10de", numbers[1]) if numbers else "") or gpu_named(name)
    size = _SIZE.fullmatch(values.get("bar1", ""))
    bar1 = int(size[1]) if size else 0
    words = f"{bar1 / _GIB:g} GiB" if bar1 % _GIB == 0 else f"{bar1} MiB"
    return DiscoveredDevice(
        f"gpu {address}",
        "gpu",
        part or "gpu-unknown",
        pci=(address,),
        link=_link(values),
        facts=(("bar1", words),) if bar1 else (),
        evidence=name,
    )


def _link(values: _Values) -> DiscoveredLink:
    """Return the link that GPU and system can have together, with the lanes that it has."""
    ends = (_number(values.get(f"{end} generation", "")) for end in ("device", "host"))
    generation = _number(values.get("generation", "")) or min(filter(None, ends), default=0)
    lanes, now = (_number(values.get(key, "").rstrip("xX")) for key in ("lanes", "lanes now"))
    lanes, now = (count if count in LANES else 0 for count in (lanes, now))
    fewer = 0 < now < lanes
    return DiscoveredLink(
        generation if generation in generations() else None,
        (now if fewer else lanes or now) or None,
        f"x{now} now, and x{lanes} at most" if fewer else "by the driver",
        is_of_both_ends=bool(generation and lanes),
    )


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,3}", text) else 0
