"""Names for what was seen: a stem by its kind, a number by its place in the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from topo.discovery.machine import DiscoveredDevice


STEMS: Final[Mapping[str, str]] = {
    "storage": "storage",
    "nic": "nic",
    "dpu": "nic",
    "nvme": "nvme",
    "hba": "hba",
    "pcie-switch": "sw",
    "root-complex": "rc",
    "cpu": "cpu",
    "memory": "ram",
    "cxl-memory": "cxl",
    "gpu": "gpu",
    "nvswitch": "nvswitch",
    "network-switch": "leaf",
}
_FEW: Final = 2
_ENDINGS: Final = re.compile(r"(?:\.tar)?\.(?!\d)\w{2,4}$|\.tar$", re.IGNORECASE)


def named(devices: Iterable[DiscoveredDevice]) -> dict[str, str]:
    """Return the name of each device by its `id`: ``gpu0``, ``nic3``, ``sw1``."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for device in devices:
        stem = STEMS[device.kind]
        names[device.id] = f"{stem}{counts.setdefault(stem, 0)}"
        counts[stem] += 1
    return names


def selection(names: list[str], everyone: Mapping[str, list[str]]) -> str:
    """Write names as a topology file selects them: ``gpu``, ``gpu[0-3]``, ``gpu[0,2]``.

    Parameters
    ----------
    names
        Names of one stem, in order.
    everyone
        All names of the file by stem, in order.
    """
    stem = stem_of(names[0])
    if len(names) == 1:
        return names[0]
    if names == everyone.get(stem):
        return stem
    numbers = [int(name.removeprefix(stem)) for name in names]
    return f"{stem}[{runs(numbers)}]"


def stem_of(name: str) -> str:
    """Return a name without its number."""
    return name.rstrip("0123456789")


def is_next(name: str, other: str) -> bool:
    """Whether `other` has the number after `name`'s: the two can stand in one range."""
    stem = stem_of(name)
    digits, next_digits = name.removeprefix(stem), other.removeprefix(stem)
    return stem_of(other) == stem and bool(digits) and int(next_digits) == int(digits) + 1


def runs(numbers: Sequence[int]) -> str:
    """Return rising numbers as a topology file writes them: ``0,3-9``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) >= _FEW else str(run[0]) for run in found)


def file_title(file: str) -> str:
    """Return the last part of a file's path."""
    return re.split(r"[/\\]", file)[-1]


def machine_name(file: str) -> str:
    """Return a name for the machine from its file's: ``node 7.xml`` is ``node-7``.

    Examples
    --------
    >>> machine_name("dumps/node 7.xml"), machine_name("<stdin>"), machine_name("8gpu.txt")
    ('node-7', 'stdin', 'host-8gpu')
    >>> machine_name("g5.48xl.tar.gz")
    'g5-48xl'
    """
    stem = _ENDINGS.sub("", file_title(file))
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", stem).strip("-_") or "imported"
    return plain if plain[0].isalpha() else f"host-{plain}"
