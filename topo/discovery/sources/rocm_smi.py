"""``rocm-smi --showtopo``, text or JSON: which AMD GPUs are joined by xGMI, and their NUMA nodes.

References
----------
ROCm, ``rocm_smi.py``: ``showWeightTopology``, ``showHopsTopology``, ``showTypeTopology``.
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
from topo.discovery.numa import hosts_of
from topo.errors import ExchangeError, Finding

_TITLE: Final = re.compile(r"\s*=*\s*(Weight|Hops|Link Type|Numa Nodes)\b", re.IGNORECASE)
_HEADER: Final = re.compile(r"\s*(?:GPU\d{1,3}\s*)+")
_ROW: Final = re.compile(r"\s*GPU(\d{1,3})\s+(\S.*)")
_NODE: Final = re.compile(r"\s*GPU ?\[?(\d{1,3})\]?\s*:.*Numa Node:\s*(\d{1,4})", re.IGNORECASE)
_PAIR: Final = re.compile(
    r"\(Topology\) (Weight|Hops|Link Type) between DRM devices (\d{1,3}) and (\d{1,3})",
    re.IGNORECASE,
)
_CARD: Final = re.compile(r"card(\d{1,3})")
_WEIGHT_OF_HOP: Final = 15  # Linux drivers/gpu/drm/amd/amdkfd/kfd_crat.h, KFD_CRAT_XGMI_WEIGHT


# The cells of each section by pair of GPUs.
_Cells = dict[str, dict[tuple[int, int], str]]


def read(data: bytes, name: str) -> Machine:
    """Read the tables of ``rocm-smi --showtopo``.

    Raises an `ExchangeError` if there is no table of GPUs in it.
    """
    lines = read_lines(data, name)
    begin = next((at for at, line in enumerate(lines) if line.lstrip().startswith("{")), None)
    if begin is None:
        cells, node_of = _tables(lines)
    else:  # what the program warns of stands above, a prompt below
        end = max(at for at, line in enumerate(lines, 1) if "}" in line or at == begin + 1)
        whole = read_json(lines[begin:end], name, "rocm-smi --showtopo --json > topology.json")
        cells, node_of = _of_json(whole)
    rows = {number for table in cells.values() for pair in table for number in pair}
    numbers = sorted({*rows, *node_of})[:MOST_GPUS]
    if not numbers:
        message = f"`{name}` has no table of links between GPUs"
        raise ExchangeError(Finding("nothing-there", message, help="run `rocm-smi --showtopo`"))
    hosts = hosts_of(dict.fromkeys(node_of.values()))
    gpus: list[DiscoveredDevice] = []
    places: list[DiscoveredDevice] = []
    for number in numbers:
        node = node_of.get(number)
        cpu, near = hosts.place([node] if node is not None else [])
        if not cpu:
            cpu = f"place {number}"
            places.append(unknown_place(cpu))
        gpu = DiscoveredDevice(
            f"gpu {number}", "gpu", "amd-instinct", parent=cpu, node=near, link=DiscoveredLink()
        )
        gpus.append(gpu)

    def cell(section: str, a: int, b: int) -> str:
        table = cells.get(section, {})
        return table.get((a, b)) or table.get((b, a), "")

    def is_direct(a: int, b: int) -> bool:
        weight = cell("weight", a, b)
        near = not weight.isdecimal() or int(weight) <= _WEIGHT_OF_HOP
        return (
            cell("link type", a, b).upper() == "XGMI" and near and cell("hops", a, b) in ("", "1")
        )

    findings = []
    if not node_of and len(gpus) > 1:
        message = "the NUMA nodes of the GPUs are not told: all were put under one CPU"
        help = "paste the whole output, with its Numa Nodes"
        findings.append(Finding("numa-unknown", message, severity="warning", help=help))
    unequal = [
        (a, b)
        for table in cells.values()
        for (a, b), cell in table.items()
        if a < b and table.get((b, a), cell) != cell
    ]
    if unequal:
        a, b = unequal[0]
        message = f"GPU{a} to GPU{b} is told in two ways"
        help = "the first was taken; was the text edited?"
        findings.append(Finding("asymmetric-matrix", message, severity="warning", help=help))
    return Machine(
        kind="rocm-smi",
        source="output of rocm-smi --showtopo",
        file=name,
        devices=(*hosts.devices, *places, *gpus),
        cables=tuple(  # of each pair that is one hop apart
            DiscoveredCable(f"gpu {a}", f"gpu {b}", "xgmi unknown", "XGMI, one hop")
            for a, b in combinations(numbers, 2)
            if is_direct(a, b)
        ),
        notes=("rocm-smi tells no addresses, switches, cards or speeds: fill them in.",),
        findings=tuple(findings),
    )


def _tables(lines: list[str]) -> tuple[_Cells, dict[int, int]]:
    """Return the cells of each section, and the GPUs' NUMA nodes."""
    cells: _Cells = {}
    node_of: dict[int, int] = {}
    section, columns = "", list[int]()
    for line in lines:
        if title := _TITLE.match(line):
            section, columns = title[1].lower(), []
        elif node := _NODE.match(line):
            node_of.setdefault(int(node[1]), int(node[2]))
        elif _HEADER.fullmatch(line):
            columns = [int(text) for text in re.findall(r"GPU(\d+)", line)][:MOST_GPUS]
        elif (row := _ROW.match(line)) and columns and section:
            table = cells.setdefault(section, {})
            for column, cell in zip(columns, row[2].split(), strict=False):
                table.setdefault((int(row[1]), column), cell)
    return cells, node_of


def _of_json(root: Any) -> tuple[_Cells, dict[int, int]]:
    """Return the cells of each section, and the GPUs' NUMA nodes."""
    cells: _Cells = {}
    node_of: dict[int, int] = {}
    for name, values in root.items() if isinstance(root, dict) else ():
        if not isinstance(values, dict):
            continue
        for key, value in values.items():
            if pair := _PAIR.fullmatch(key):
                table = cells.setdefault(pair[1].lower(), {})
                table.setdefault((int(pair[2]), int(pair[3])), str(value)[:20])
        node = str(values.get("(Topology) Numa Node", ""))
        if (card := _CARD.fullmatch(name)) and re.fullmatch(r"\d{1,4}", node):
            node_of[int(card[1])] = int(node)
    return cells, node_of
