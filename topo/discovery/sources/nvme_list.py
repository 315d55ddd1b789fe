"""``nvme list``, its ``-v`` and its JSON: models and sizes of drives.

``-v`` and newer JSON tell the PCI address of a controller; the plain table has names alone.

References
----------
nvme-cli, ``nvme-print-stdout.c``: ``stdout_simple_list``, ``stdout_detailed_list``;
``nvme-print-json.c``: ``json_simple_list``, ``json_detailed_list``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, Final

from topo.catalogue.identities import drive_named
from topo.description.names import stem_of as numbered
from topo.discovery.foreign import BEFORE, json_in, nothing_there, read_lines
from topo.discovery.machine import DiscoveredDevice, Machine, printable, size_fact
from topo.discovery.pci import read_address
from topo.records import dataclass

_SPACE: Final = r"(?:/dev/)?(nvme\d{1,4}n\d{1,4})"
_ROW: Final = re.compile(
    rf"{BEFORE}{_SPACE}\s+(?:/dev/ng\d{{1,4}}n\d{{1,4}}\s+)?(?:(\S{{1,60}})\s+(\S.{{0,80}}?)\s+)?"
    r"(?:0x[0-9a-fA-F]{1,8}|\d{1,8})\s+[\d.]{1,12}\s+[kMGTP]?B\s*/\s*([\d.]{1,12})\s+([kMGTP]?)B\b"
)
_CONTROLLER: Final = re.compile(
    rf"{BEFORE}(nvme\d{{1,4}})\s+(?:\d{{1,5}}\s+)?(\S{{1,60}})\s+(\S.{{0,80}}?)\s+\S{{1,20}}\s+"
    r"(pcie|tcp|rdma|fc|loop)\s+(\S{1,300})\s(.{0,8000})"
)
_NAMED_SPACE: Final = re.compile(r"\bnvme\d{1,4}n\d{1,4}\b")
_DRIVE: Final = re.compile(r"(?:/dev/)?(nvme\d{1,4})(?:n\d{1,4})?")
_UNITS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_DEEPEST, _MOST, _LARGEST = 12, 4096, 1e18


@dataclass(slots=True)
class Drive:
    """What is told of a drive, by the name of its controller or of its namespaces' beginning."""

    model: str = ""
    address: str = ""
    is_remote: bool = False
    sizes: dict[str, float] = field(default_factory=dict)  # bytes by namespace


def read(data: bytes, name: str) -> Machine:
    """Read the drives of a table or of JSON.

    Raises an `ExchangeError` if none is in it, or the JSON is broken.
    """
    drives: dict[str, Drive] = {}
    lines = read_lines(data, name)
    root = json_in(lines, name, "nvme list -o json > drives.json")
    if root is not None:
        _add_json(root, drives)
    else:
        _read_tables(lines, drives)
    local = {key: drive for key, drive in drives.items() if not drive.is_remote}
    if not local:
        help = "run it as root: `sudo nvme list`"
        raise nothing_there(f"`{name}` names no drive of this machine", help)
    return Machine(
        kind="nvme",
        source="output of nvme list",
        file=name,
        devices=tuple(drive_device(key, local[key]) for key in sorted(local, key=numbered)),
        left_out=tuple(key for key in drives if key not in local),
        tells_only="its drives",
    )


def _read_tables(lines: Iterable[str], drives: dict[str, Drive]) -> None:
    for line in lines:
        if match := _ROW.match(line):
            drive = _drive_of(match[1], drives)
            drive.model = drive.model or printable(match[3] or "")
            _add_size(drive, match[1], _bytes(match[4]) * _UNITS[match[5]])
        elif match := _CONTROLLER.match(line):
            drive = _drive_of(match[1], drives)
            drive.model = drive.model or printable(match[3])
            drive.is_remote = drive.is_remote or match[4] != "pcie"
            drive.address = drive.address or read_address(match[5])
            for space in _NAMED_SPACE.findall(match[6]):
                drive.sizes.setdefault(space, 0.0)


def _drive_of(name: str, drives: dict[str, Drive]) -> Drive:
    key = name.partition("/dev/")[2] or name
    match = _DRIVE.match(key)
    key = match[1] if match else key
    return drives.setdefault(key, Drive()) if len(drives) < _MOST else Drive()


def _bytes(text: str) -> float:
    return float(text) if re.fullmatch(r"\d+(\.\d*)?", text) else 0.0


def _add_size(drive: Drive, space: str, size: float) -> None:
    if not drive.sizes.get(space):
        drive.sizes[space] = size if 0 < size < _LARGEST else 0.0


# --- JSON -----------------------------------------------------------------------------------------


def _add_json(root: Any, drives: dict[str, Drive]) -> None:
    for table in list(_tables(root))[:_MOST]:
        device = _text(table, "DevicePath") or _text(table, "Controller")
        match = _DRIVE.fullmatch(device)
        if match is None:
            continue
        drive = _drive_of(match[1], drives)
        drive.model = drive.model or printable(_text(table, "ModelNumber"))
        drive.address = drive.address or read_address(_text(table, "Address"))
        drive.is_remote = drive.is_remote or _text(table, "Transport") not in ("", "pcie")
        spaces = [space for space in _rows(table.get("Namespaces")) if isinstance(space, dict)]
        for space in (table, *spaces):
            size = space.get("PhysicalSize", 0)
            path = _text(space, "DevicePath") or _text(space, "NameSpace")
            if isinstance(size, int | float) and (match := _NAMED_SPACE.search(path)):
                _add_size(drive, match[0], float(min(size, _LARGEST)))


def _tables(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield each table that has a model, wherever it stands."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if "ModelNumber" in value:
            yield value
        for inner in value.values():
            yield from _tables(inner, depth + 1)
    for inner in _rows(value):
        yield from _tables(inner, depth + 1)


def _rows(value: Any) -> list[Any]:
    return value[:_MOST] if isinstance(value, list) else []


def _text(table: dict[str, Any], key: str) -> str:
    value = table.get(key, "")
    return value if isinstance(value, str) else ""


# --- drives ---------------------------------------------------------------------------------------


def drive_device(key: str, drive: Drive, *, digits: int = 4) -> DiscoveredDevice:
    """Return the device of a drive, called by its key where its namespaces have no names.

    Its size is told in so many digits.
    """
    size = sum(drive.sizes.values())
    return DiscoveredDevice(
        f"drive {key}",
        "nvme",
        drive_named(drive.model, size) or "nvme-unknown",
        pci=(drive.address,) if drive.address else (),
        label=", ".join(sorted(drive.sizes, key=numbered)) or key,
        facts=size_fact(size, digits),
        evidence=drive.model,
    )
