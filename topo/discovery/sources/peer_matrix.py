"""Text of ``nvidia-smi topo -p2p``: between which GPUs the driver allows peer-to-peer.

The text does not say whether reads, writes, NVLinks, atomics or PCIe were asked for. A pair that is
OK may be so by NVLinks alone, and NS is said of pairs without NVLinks too: neither is a fact.

References
----------
The legend that nvidia-smi prints; NVIDIA, NVML reference, ``nvmlGpuP2PStatus_t``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from topo.discovery.foreign import BEFORE, nothing_there, read_lines
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, Machine
from topo.errors import Finding
from topo.phrases import counted, listed, number_ranges

_HEADER: Final = re.compile(BEFORE + r"(?:GPU\d{1,3}\s*)+")
_ROW: Final = re.compile(BEFORE + r"GPU(\d{1,3})\s+((?:(?:X|OK|CNS|GNS|TNS|NS|DR|U|N/A)\s*)+)")
_REASONS: Final = {
    "CNS": "the chipset is not supported",
    "GNS": "the GPU is not supported",
    "TNS": "the way between them is not supported",
    "DR": "the driver's registry key disables it",
}
_MOST_NAMES: Final = 4  # pairs in a sentence
_Codes = dict[tuple[int, int], str]


def read(data: bytes, name: str) -> Machine:
    """Read the matrix.

    Raises an `ExchangeError` if there is none.
    """
    lines = list(read_lines(data, name))
    codes = _codes(lines)
    rows = [int(match[1]) for line in lines if (match := _ROW.fullmatch(line))]
    numbers = sorted({*rows, *(number for pair in codes for number in pair)})
    if not numbers:
        message = f"`{name}` has no matrix of GPUs"
        raise nothing_there(message, "run `nvidia-smi topo -p2p r`")
    unable = [
        number
        for number in numbers
        if {code for pair, code in codes.items() if number in pair} == {"GNS"}
    ]
    return Machine(
        kind="p2p",
        source="output of nvidia-smi topo -p2p",
        file=name,
        devices=tuple(
            DiscoveredDevice(
                f"gpu {number}",
                "gpu",
                "gpu-unknown",
                index=number,
                facts=(("p2p", "no"),) if number in unable else (),
            )
            for number in numbers
        ),
        findings=tuple(_findings(codes)),
        tells_only="which GPUs may reach each other",
    )


def _codes(lines: Iterable[str]) -> _Codes:
    """Return the codes of pairs, the first of each."""
    codes: _Codes = {}
    columns: list[int] = []
    for line in lines:
        if _HEADER.fullmatch(line):
            columns = [int(text) for text in re.findall(r"GPU(\d+)", line)][:MOST_GPUS]
        elif columns and (match := _ROW.fullmatch(line)):
            row = int(match[1])
            for column, code in zip(columns, match[2].split(), strict=False):
                if column != row and code != "X":
                    codes.setdefault((row, column), code)
    return codes


def _findings(codes: Mapping[tuple[int, int], str]) -> Iterator[Finding]:
    """Yield what is not allowed, by its reason."""
    for code, reason in _REASONS.items():
        pairs = sorted({tuple(sorted(pair)) for pair in codes if codes[pair] == code})
        if not pairs:
            continue
        numbers = sorted({number for pair in pairs for number in pair})
        are_all = len(pairs) == len(numbers) * (len(numbers) - 1) // 2
        words = f"GPU {number_ranges(numbers)} among each other"
        if not are_all:
            names = listed([f"{a} and {b}" for a, b in pairs], most=_MOST_NAMES)
            words = f"{counted(len(pairs), 'pair')} of GPUs ({names})"
        message = f"no peer-to-peer for {words}: {reason} ({code})"
        help = "between them data goes by the host's RAM: `topo compare` with `peer-ram`"
        yield Finding("peers-refused", message, severity="warning", help=help)
