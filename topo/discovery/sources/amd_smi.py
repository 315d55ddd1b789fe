"""Output of ``amd-smi topology``, text or JSON: addresses of AMD GPUs, and which xGMI joins.

References
----------
ROCm/amdsmi, ``amdsmi_cli/amdsmi_commands.py``, ``topology``.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any, Final

from topo.discovery.foreign import read_json, read_lines
from topo.discovery.machine import (
    MOST_GPUS,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    unknown_place,
)
from topo.discovery.pci import read_address
from topo.errors import ExchangeError, Finding

_TITLE: Final = re.compile(r"\s*(WEIGHT|HOPS|LINK TYPE|ACCESS|[A-Z][A-Z -]{2,30}) TABLE\s*:")
_HEADER: Final = re.compile(r"\s*(?:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s*)+")
_PLACE: Final = "place"

# The cells of each table by pair of addresses: `hops`, `link type`.
_Cells = dict[str, dict[tuple[str, str], str]]


def read(data: bytes, name: str) -> Machine:
    """Read the tables of ``amd-smi topology``, or its JSON.

    Raises an `ExchangeError` if there is no table of GPUs in it.
    """
    is_json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")
    cells = _of_json(data, name) if is_json else _of_text(read_lines(data, name))
    addresses = list(dict.fromkeys(row for table in cells.values() for row, _ in table))[:MOST_GPUS]
    if not addresses:
        message = f"`{name}` has no table of links between GPUs"
        raise ExchangeError(Finding("nothing-there", message, help="run `amd-smi topology`"))

    def cell(table: str, a: str, b: str) -> str:
        pairs = cells.get(table, {})
        return pairs.get((a, b)) or pairs.get((b, a), "")

    gpus = [
        DiscoveredDevice(
            address, "gpu", "amd-instinct", parent=_PLACE, pci=(address,), link=DiscoveredLink()
        )
        for address in addresses
    ]
    findings = []
    if len(gpus) > 1:
        message = "the NUMA nodes of the GPUs are not told: all were put under one CPU"
        help = "lay `lspci -vvv` or `rocm-smi --showtoponuma` beside it: --and FILE"
        findings.append(Finding("numa-unknown", message, severity="warning", help=help))
    return Machine(
        kind="amd-smi",
        source="output of amd-smi topology",
        file=name,
        devices=(unknown_place(_PLACE), *gpus),
        cables=tuple(  # of each pair that is one hop apart
            DiscoveredCable(a, b, "xgmi unknown", "XGMI, one hop")
            for a, b in combinations(addresses, 2)
            if cell("link type", a, b).upper() == "XGMI" and cell("hops", a, b) in ("", "1")
        ),
        notes=("amd-smi tells no switches, cards or NUMA nodes here: fill them in.",),
        findings=tuple(findings),
        fabric_known=bool(cells.get("link type")),
    )


def _of_text(lines: list[str]) -> _Cells:
    cells: _Cells = {}
    table, columns = "", list[str]()
    for line in lines:
        if title := _TITLE.match(line):
            table, columns = title[1].lower(), []
            continue
        words = line.split()
        if table and _HEADER.fullmatch(line) and not columns:
            columns = [read_address(word) for word in words][:MOST_GPUS]
        elif columns and (row := read_address(words[0]) if words else ""):
            pairs = cells.setdefault(table, {})
            for column, text in zip(columns, words[1:], strict=False):
                pairs.setdefault((row, column), text)
    return cells


def _of_json(data: bytes, name: str) -> _Cells:
    root = read_json(read_lines(data, name), name, "amd-smi topology --json > topology.json")
    cells: _Cells = {"link type": {}, "hops": {}}
    for gpu in _objects(root):
        row = _address(gpu)
        for link in _objects(gpu.get("links")):
            column = _address(link)
            if row and column:
                cells["link type"].setdefault((row, column), str(link.get("link_type", ""))[:20])
                cells["hops"].setdefault((row, column), str(link.get("num_hops", ""))[:4])
    return cells


def _address(value: dict[str, Any]) -> str:
    text = value.get("bdf")
    return read_address(text) if isinstance(text, str) else ""


def _objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list, or of the only list in an object."""
    if isinstance(value, dict):
        value = next((each for each in value.values() if isinstance(each, list)), [])
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
