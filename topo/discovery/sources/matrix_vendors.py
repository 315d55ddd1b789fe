"""Whose matrix of GPUs it is: the tools that print what `nvidia-smi topo -m` does, each a row.

References
----------
Outputs pasted in trackers and manuals; the legends that the tools print. MetaX: vLLM-MetaX's quick
start. Huawei: ms-swift's and SGLang's pages on Ascend. Intel: the help of ``xpu-smi topology``.
Moore Threads: a published study of eight S5000, for MT# alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from topo.records import dataclass


@dataclass(frozen=True, slots=True)
class Vendor:
    """A tool whose matrix has the form of nvidia-smi's.

    Parameters
    ----------
    kind
        What `topo import` calls it.
    command
        What prints it.
    part
        The part that its accelerators are.
    names
        What its accelerators are called in it.
    links
        Its codes for links between accelerators, and what they are.
    switched
        Those of its codes that say that a switch is between.
    """

    kind: str
    command: str
    part: str
    names: re.Pattern[str]
    links: Mapping[re.Pattern[str], str]
    switched: frozenset[str] = frozenset()

    def link_words(self, codes: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield those of the codes that are its links, with what they are."""
        for code in codes:
            for pattern, words in self.links.items():
                if pattern.fullmatch(code):
                    yield code, words


NVIDIA: Final = Vendor(
    "nvidia-smi", "nvidia-smi topo -m", "gpu-unknown", re.compile(r"GPU\d{1,4}"), {}
)
_HUAWEI: Final = Vendor(
    "npu-smi",
    "npu-smi info -t topo",
    "ascend-unknown",
    re.compile(r"(?:NPU|Phy-ID)\d{1,4}"),
    {
        re.compile(r"HCCS"): "Huawei's links between NPUs",
        re.compile(r"HCCS_SW"): "the same by a switch",
        re.compile(r"SIO"): "two dies of one module",
        re.compile(r"UB"): "Huawei's unified bus",
    },
    frozenset({"HCCS_SW"}),
)
_INTEL: Final = Vendor(
    "xpu-smi",
    "xpu-smi topology -m",
    "intel-gpu-unknown",
    re.compile(r"GPU\d{1,4}/\d{1,2}"),
    {
        re.compile(r"XL\d{1,3}"): "lanes of Xe Link",
        re.compile(r"XL\*"): "Xe Link by way of the other tile",
        re.compile(r"MDF"): "two tiles of one card",
    },
)
_METAX: Final = Vendor(
    "mx-smi", "mx-smi topo -m", "metax-gpu-unknown", NVIDIA.names, {re.compile(r"MX"): "MetaXLink"}
)
_MOORE_THREADS: Final = Vendor(
    "mthreads-gmi",
    "mthreads-gmi topo -m",
    "mthreads-gpu-unknown",
    NVIDIA.names,
    {re.compile(r"MT\d{1,2}"): "MTLinks, as many as it says"},
)
_VENDORS: Final = (_HUAWEI, _INTEL, _METAX, _MOORE_THREADS)
# Their accelerators, also as Intel writes them: GPU 0/0.
ACCELERATOR: Final = re.compile(r"(?:GPU|NPU|Phy-ID)\d{1,4}(?:/\d{1,2})?")
_TILE: Final = re.compile(r"\bGPU (\d{1,4}/\d{1,2})\b")


def plain_line(line: str) -> str:
    """Return a line with Intel's names of GPUs as one word, and its S for itself as X.

    Examples
    --------
    >>> plain_line("GPU 0/0  S    XL24")
    'GPU0/0  X    XL24'
    """
    if not _TILE.search(line):
        return line
    return re.sub(r"(?<=\s)S(?=\s|$)", "X", _TILE.sub(r"GPU\1", line))


def vendor_of(names: Iterable[str], codes: Iterable[str]) -> Vendor:
    """Return whose matrix has these accelerators and these codes between them."""
    names, codes = tuple(names), tuple(codes)
    for vendor in _VENDORS:
        is_named = all(vendor.names.fullmatch(name) for name in names)
        if is_named and (vendor.names is not NVIDIA.names or any(vendor.link_words(codes))):
            return vendor
    return NVIDIA
