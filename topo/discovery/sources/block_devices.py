"""``lsblk``, its ``-J`` and its ``-P``: models and sizes of NVMe drives.

Sizes are rounded to a digit behind the point of a power of 1024, unless ``-b`` was given. Columns
are told apart by where the heading's words stand, since a model has spaces.

References
----------
util-linux, ``misc-utils/lsblk.c``; libsmartcols, which aligns columns and writes JSON and pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from topo.description.names import stem_of as numbered
from topo.discovery.foreign import json_in, nothing_there, read_lines
from topo.discovery.machine import Machine, printable
from topo.discovery.sources.nvme_list import Drive, drive_device

_DRIVE: Final = re.compile(r"(?:/dev/)?(nvme\d{1,4})(?:c\d{1,4})?(n\d{1,4})")
_HEADER: Final = re.compile(r"\s*(?:NAME|KNAME|PATH)\s+[A-Z].*")
_PAIR: Final = re.compile(r'\b([A-Z][A-Z:_-]{1,20})="([^"]{0,100})"')
_WORD: Final = re.compile(r"\S+")
_SIZE: Final = re.compile(r"(\d{1,19})(?:[.,](\d{1,3}))?([BKMGTP]?)i?B?")
_NAMES: Final = ("name", "kname", "path")
_POWERS: Final = "BKMGTP"
_OVER_A_NETWORK: Final = ("tcp", "rdma", "fc")
_MOST, _DEEPEST, _LARGEST = 4096, 8, 1e18

_Row = dict[str, str]


def read(data: bytes, name: str) -> Machine:
    """Read the NVMe drives of a table, of pairs or of JSON.

    Raises an `ExchangeError` if none is in it, or the JSON is broken.
    """
    lines = read_lines(data, name)
    root = json_in(lines, name, "lsblk -J -o NAME,MODEL,SIZE,TRAN")
    rows: Iterable[_Row]
    if isinstance(root, dict):
        rows = _flat(root.get("blockdevices"))
    else:
        pairs = ({key.lower(): text for key, text in _PAIR.findall(line)} for line in lines)
        rows = chain(pairs, _of_table(lines))
    drives: dict[str, Drive] = {}
    remote: dict[str, None] = {}
    for row in rows:
        path = next((row[key] for key in _NAMES if key in row), "")
        match = _DRIVE.fullmatch(path.strip())
        if match is not None and row.get("tran", "") in _OVER_A_NETWORK:
            remote[match[1]] = None
        elif match is not None and len(drives) < _MOST:
            drive = drives.setdefault(match[1], Drive())
            drive.model = drive.model or printable(row.get("model", ""))
            drive.sizes.setdefault(match[1] + match[2], _bytes(row.get("size", "")))
    if not drives:
        help = "run `lsblk -d -o NAME,MODEL,SIZE,TRAN`"
        raise nothing_there(f"`{name}` names no NVMe drive", help)
    return Machine(
        kind="lsblk",
        source="output of lsblk",
        file=name,
        devices=tuple(
            drive_device(key, drives[key], digits=2) for key in sorted(drives, key=numbered)
        ),
        left_out=tuple(remote),
        tells_only="its drives",
    )


def _bytes(text: str) -> float:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return 0.0
    size = float(f"{match[1]}.{match[2] or 0}") * 1024.0 ** _POWERS.index(match[3] or "B")
    return size if size < _LARGEST else 0.0


def _of_table(lines: Iterable[str]) -> Iterator[_Row]:
    """Yield the rows under each heading: a word is of the column whose edge it shares."""
    starts: dict[int, str] = {}
    ends: dict[int, str] = {}
    for line in lines:
        words = [(word.start(), word.end(), word[0]) for word in _WORD.finditer(line)]
        if _HEADER.fullmatch(line) and all(word.upper() == word for _, _, word in words):
            starts = {start: word.lower() for start, _, word in words}
            ends = {end: word.lower() for _, end, word in words}
            continue
        row: dict[str, list[str]] = {}
        column = next(iter(starts.values()), "")
        for start, end, word in words:
            column = starts.get(start) or ends.get(end) or column
            row.setdefault(column, []).append(word)
        if starts:
            yield {key: " ".join(texts) for key, texts in row.items()}


def _flat(devices: Any, depth: int = 0) -> Iterator[_Row]:
    """Yield the devices of JSON, and those inside them."""
    for device in devices if isinstance(devices, list) and depth < _DEEPEST else []:
        if isinstance(device, dict):
            yield {
                key: str(value)
                for key, value in device.items()
                if isinstance(value, str | int) and not isinstance(value, bool)
            }
            yield from _flat(device.get("children"), depth + 1)
