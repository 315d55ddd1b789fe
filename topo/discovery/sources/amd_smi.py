"""Output of ``amd-smi topology``, text or JSON: addresses of AMD GPUs, and which xGMI joins.

References
----------
ROCm/amdsmi, ``amdsmi_cli/amdsmi_commands.py``, ``topology``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, Final

from topo.discovery.foreign import json_in, nothing_there, read_lines
from topo.discovery.machine import (
    MOST_GPUS,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    unknown_place,
)
from topo.discovery.numa import nodes_not_told
from topo.discovery.pci import read_address

_TITLE: Final = re.compile(r"\s*(WEIGHT|HOPS|LINK TYPE|ACCESS|[A-Z][A-Z -]{2,30}) TABLE\s*:")
_HEADER: Final = re.compile(r"\s*(?:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s*)+")
_PLACE: Final = "place"

_WEIGHT_OF_HOP: Final = 15  # Linux drivers/gpu/drm/amd/amdkfd/kfd_crat.h, KFD_CRAT_XGMI_WEIGHT
# The cells of each table by pair of GPUs: `weight`, `hops`, `link type`.
Cells = dict[str, dict[tuple[str, str], str]]


def read(data: bytes, name: str) -> Machine:
    """Read the tables of ``amd-smi topology``, or its JSON.

    Raises an `ExchangeError` if there is no table of GPUs in it.
    """
    lines = read_lines(data, name)
    root = json_in(lines, name, "amd-smi topology --json > topology.json")
    cells = _of_text(lines) if root is None else _of_json(root)
    addresses = list(dict.fromkeys(row for table in cells.values() for row, _ in table))[:MOST_GPUS]
    if not addresses:
        message = f"`{name}` has no table of links between GPUs"
        raise nothing_there(message, "run `amd-smi topology`")
    gpus = [
        DiscoveredDevice(
            address, "gpu", "amd-instinct", parent=_PLACE, pci=(address,), link=DiscoveredLink()
        )
        for address in addresses
    ]
    help = "lay `lspci -vvv` or `rocm-smi --showtoponuma` beside it: --and FILE"
    return Machine(
        kind="amd-smi",
        source="output of amd-smi topology",
        file=name,
        devices=(unknown_place(_PLACE), *gpus),
        cables=tuple(xgmi_cables(cells, addresses)),
        notes=("amd-smi tells no switches, cards or NUMA nodes here: fill them in.",),
        findings=(nodes_not_told("GPUs", help),) if len(gpus) > 1 else (),
        fabric_known=bool(cells.get("link type")),
    )


def xgmi_cables(cells: Cells, gpus: Iterable[str]) -> Iterator[DiscoveredCable]:
    """Yield a cable for each pair of GPUs that is one hop of xGMI apart.

    Both tools tell one hop of any pair that xGMI reaches; the weight tells more of them.
    """

    def cell(table: str, a: str, b: str) -> str:
        pairs = cells.get(table, {})
        return pairs.get((a, b)) or pairs.get((b, a), "")

    for a, b in combinations(gpus, 2):
        weight = cell("weight", a, b)
        is_near = not weight.isdecimal() or int(weight) <= _WEIGHT_OF_HOP
        is_one_hop = is_near and cell("hops", a, b) in ("", "1")
        if is_one_hop and cell("link type", a, b).upper() == "XGMI":
            yield DiscoveredCable(a, b, "xgmi unknown", "XGMI, one hop")


def _of_text(lines: list[str]) -> Cells:
    cells: Cells = {}
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


def _of_json(root: Any) -> Cells:
    cells: Cells = {"link type": {}, "hops": {}, "weight": {}}
    for gpu in _objects(root):
        row = _address(gpu)
        for link in _objects(gpu.get("links")):
            column = _address(link)
            if row and column:
                cells["link type"].setdefault((row, column), str(link.get("link_type", ""))[:20])
                cells["hops"].setdefault((row, column), str(link.get("num_hops", ""))[:4])
                cells["weight"].setdefault((row, column), str(link.get("weight", ""))[:4])
    return cells


def _address(value: dict[str, Any]) -> str:
    text = value.get("bdf")
    return read_address(text) if isinstance(text, str) else ""


def _objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list, or of the only list in an object."""
    if isinstance(value, dict):
        value = next((inner for inner in value.values() if isinstance(inner, list)), [])
    members = value if isinstance(value, list) else []
    return [member for member in members if isinstance(member, dict)]
