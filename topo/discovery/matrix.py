"""The matrix of ``nvidia-smi topo -m`` as a value: names, codes, affinity."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.description.names import numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.errors import Finding


# Nearest first; what was called otherwise once.
RANKS = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
_OLD = {"SOC": "SYS", "PSB": "PIX"}
_LINKS = re.compile(r"NV(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Affinity:
    """What stands behind a row: lists as written, ``""`` where nothing stands."""

    cpus: str = ""
    numa: str = ""
    gpu_numa: str = ""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The NUMA nodes as numbers."""
        if not re.fullmatch(r"[0-9]{1,4}(?:[-,][0-9]{1,4})*", self.numa):
            return ()
        try:
            return numbers_in(self.numa)
        except Exception:  # noqa: BLE001  (no list after all: then nothing is known)
            return ()

    def __bool__(self) -> bool:
        return bool(self.cpus or self.nodes)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix.

    Parameters
    ----------
    names
        GPUs and cards in the order of the columns.
    codes
        Code by row and column, as written.
    affinity
        By row.
    legend
        The device that each ``NIC#`` stands for.
    """

    names: tuple[str, ...]
    codes: Mapping[tuple[str, str], str]
    affinity: Mapping[str, Affinity]
    legend: Mapping[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in order."""
        return tuple(name for name in self.names if name.startswith("GPU"))

    @property
    def cards(self) -> tuple[str, ...]:
        """The network cards' functions, in order."""
        return tuple(name for name in self.names if not name.startswith("GPU"))

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield every pair once, with the code of its first row that has one."""
        for at, one in enumerate(self.names):
            for other in self.names[at + 1 :]:
                code = self.codes.get((one, other)) or self.codes.get((other, one), "")
                yield one, other, code


def rank_of(code: str) -> int | None:
    """Return how far a PCIe code is, `None` for links between GPUs and what is unknown.

    Examples
    --------
    >>> rank_of("PIX"), rank_of("SOC"), rank_of("NV12")
    (1, 5, None)
    """
    code = _OLD.get(code, code)
    return RANKS.index(code) if code in RANKS else None


def links_in(code: str) -> int:
    """Return how many NVLinks a code says, 0 for other codes."""
    found = _LINKS.fullmatch(code)
    return int(found[1]) if found else 0
