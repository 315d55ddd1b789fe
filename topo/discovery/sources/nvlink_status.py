"""Text of ``nvidia-smi nvlink``: how many NVLinks of each GPU are up, their rate, where they lead.

``-s`` tells rates, ``-R`` and ``-p`` the PCI address at the far end of each link. What a link could
do (``-c``) and its counters (``-e``) are passed over.

References
----------
The program's help and outputs pasted in trackers; its source is closed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from topo.catalogue.identities import gpu_named, nvlink_of_rate
from topo.discovery.foreign import BEFORE, nothing_there, read_lines
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, GpuLinks, Machine, printable
from topo.discovery.pci import read_address
from topo.errors import Finding
from topo.phrases import counted, number_ranges
from topo.records import dataclass

_GPU: Final = re.compile(rf"{BEFORE}GPU (\d{{1,3}}):(?: +([A-Za-z].{{0,80}}?))?\s*(?:\(UUID: .*)?")
_RATE: Final = re.compile(
    rf"{BEFORE}Link (\d{{1,2}}): *(?:(\d{{1,4}}(?:\.\d{{1,6}})?) GB/s|<?in)", re.IGNORECASE
)
_END: Final = re.compile(
    rf"{BEFORE}Link (\d{{1,2}}): *(?:Remote Device *)?"
    r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])",
    re.IGNORECASE,
)
_ALL_INACTIVE: Final = re.compile(rf"{BEFORE}.{{0,80}}\ball links are inactive", re.IGNORECASE)


@dataclass(slots=True)
class _Gpu:
    """What is told of a GPU: of each link its rate in GB/s, `None` if it is down, and its end."""

    name: str = ""
    rates: dict[int, float | None] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    all_inactive: bool = False


def read(data: bytes, name: str) -> Machine:
    """Read which NVLinks are up.

    Raises an `ExchangeError` if no link of a GPU is told.
    """
    gpus = {
        number: gpu
        for number, gpu in sorted(_read(read_lines(data, name)).items())
        if gpu.rates or gpu.ends or gpu.all_inactive
    }
    if not gpus:
        message = f"`{name}` does not tell which NVLinks are up"
        raise nothing_there(message, "run `nvidia-smi nvlink -s`")
    links = tuple(_links(number, gpu) for number, gpu in gpus.items())
    return Machine(
        kind="nvlink",
        source="output of nvidia-smi nvlink",
        file=name,
        devices=tuple(
            DiscoveredDevice(
                f"gpu {number}",
                "gpu",
                gpu_named(gpu.name) or "gpu-unknown",
                evidence=gpu.name,
                index=number,
            )
            for number, gpu in gpus.items()
        ),
        gpu_links=links,
        findings=tuple(_findings(dict(zip(gpus, links, strict=True)))),
        tells_only="the NVLinks of its GPUs",
    )


def _read(lines: Iterable[str]) -> dict[int, _Gpu]:
    gpus: dict[int, _Gpu] = {}
    gpu = _Gpu()
    for line in lines:
        if match := _GPU.fullmatch(line):
            number = int(match[1])
            gpu = gpus.setdefault(number, _Gpu()) if len(gpus) < MOST_GPUS else _Gpu()
            gpu.name = gpu.name or printable(match[2] or "")
        elif match := _END.match(line):
            gpu.ends.setdefault(int(match[1]), read_address(match[2]))
        elif match := _RATE.match(line):
            rate = float(match[2]) if match[2] else 0.0
            gpu.rates.setdefault(int(match[1]), rate or None)
        elif _ALL_INACTIVE.match(line):
            gpu.all_inactive = True
    return gpus


def _links(number: int, gpu: _Gpu) -> GpuLinks:
    """Return what is told of a GPU's links; a rate is that of most of them."""
    up = [rate for rate in gpu.rates.values() if rate is not None]
    active = len(up) if gpu.rates else len(gpu.ends)
    ends = {link: end for link, end in gpu.ends.items() if gpu.rates.get(link, 1.0) is not None}
    medium = nvlink_of_rate(Counter(up).most_common(1)[0][0] * 1e9) if up else ""
    counts = Counter(end for end in ends.values() if end)
    return GpuLinks(f"gpu {number}", active, medium, tuple(sorted(counts.items())))


def _findings(links_of: Mapping[int, GpuLinks]) -> Iterator[Finding]:
    """Yield that GPUs have fewer links up than others."""
    most = max(links.active for links in links_of.values())
    fewer: dict[int, list[int]] = {}
    for number, links in links_of.items():
        if links.active < most:
            fewer.setdefault(links.active, []).append(number)
    for active, numbers in sorted(fewer.items()):
        message = (
            f"{counted(active, 'NVLink')} of GPU {number_ranges(numbers)} up, {most} of others"
        )
        help = "links are down, or the GPUs are of two models: `nvidia-smi nvlink -e`"
        yield Finding("nvlinks-down", message, severity="warning", help=help)
