"""``rocm-smi --showtopo``, text or JSON: which AMD GPUs are joined by xGMI, and their NUMA nodes.

References
----------
ROCm, ``rocm_smi.py``: ``showWeightTopology``, ``showHopsTopology``, ``showTypeTopology``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from topo.discovery.foreign import nothing_there, read_json, read_lines
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, Machine
from topo.discovery.numa import below_nodes, nodes_not_told
from topo.discovery.sources.amd_smi import Cells, xgmi_cables
from topo.errors import Finding

_TITLE: Final = re.compile(r"\s*=*\s*(Weight|Hops|Link Type|Numa Nodes)\b", re.IGNORECASE)
_HEADER: Final = re.compile(r"\s*(?:GPU\d{1,3}\s*)+")
_ROW: Final = re.compile(r"\s*GPU(\d{1,3})\s+(\S.*)")
_NODE: Final = re.compile(r"\s*GPU ?\[?(\d{1,3})\]?\s*:.*Numa Node:\s*(\d{1,4})", re.IGNORECASE)
_PAIR: Final = re.compile(
    r"\(Topology\) (Weight|Hops|Link Type) between DRM devices (\d{1,3}) and (\d{1,3})",
    re.IGNORECASE,
)
_CARD: Final = re.compile(r"card(\d{1,3})")


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
        root = read_json(lines[begin:end], name, "rocm-smi --showtopo --json > topology.json")
        cells, node_of = _of_json(root)
    rows = {int(gpu[4:]) for table in cells.values() for pair in table for gpu in pair}
    numbers = sorted({*rows, *node_of})[:MOST_GPUS]
    if not numbers:
        message = f"`{name}` has no table of links between GPUs"
        raise nothing_there(message, "run `rocm-smi --showtopo`")
    gpus = [f"gpu {number}" for number in numbers]
    findings = []
    if not node_of and len(gpus) > 1:
        findings.append(nodes_not_told("GPUs", "paste the whole output, with its Numa Nodes"))
    unequal = [
        (a, b)
        for table in cells.values()
        for (a, b), cell in table.items()
        if a < b and table.get((b, a), cell) != cell
    ]
    if unequal:
        a, b = unequal[0]
        message = f"{a} to {b} is told in two ways".replace("gpu ", "GPU")
        help = "the first was taken; was the text edited?"
        findings.append(Finding("asymmetric-matrix", message, severity="warning", help=help))
    return Machine(
        kind="rocm-smi",
        source="output of rocm-smi --showtopo",
        file=name,
        devices=below_nodes(
            (DiscoveredDevice(gpu, "gpu", "amd-instinct") for gpu in gpus),
            {f"gpu {number}": node for number, node in node_of.items()},
        ),
        cables=tuple(xgmi_cables(cells, gpus)),
        notes=("rocm-smi tells no addresses, switches, cards or speeds: fill them in.",),
        findings=tuple(findings),
    )


def _tables(lines: list[str]) -> tuple[Cells, dict[int, int]]:
    """Return the cells of each section, and the GPUs' NUMA nodes."""
    cells: Cells = {}
    node_of: dict[int, int] = {}
    section, columns = "", list[str]()
    for line in lines:
        if title := _TITLE.match(line):
            section, columns = title[1].lower(), []
        elif node := _NODE.match(line):
            node_of.setdefault(int(node[1]), int(node[2]))
        elif _HEADER.fullmatch(line):
            columns = [f"gpu {int(text)}" for text in re.findall(r"GPU(\d+)", line)][:MOST_GPUS]
        elif (row := _ROW.match(line)) and columns and section:
            table = cells.setdefault(section, {})
            for column, cell in zip(columns, row[2].split(), strict=False):
                table.setdefault((f"gpu {int(row[1])}", column), cell)
    return cells, node_of


def _of_json(root: Any) -> tuple[Cells, dict[int, int]]:
    """Return the cells of each section, and the GPUs' NUMA nodes."""
    cells: Cells = {}
    node_of: dict[int, int] = {}
    for name, values in root.items() if isinstance(root, dict) else ():
        if not isinstance(values, dict):
            continue
        for key, value in values.items():
            if pair := _PAIR.fullmatch(key):
                table = cells.setdefault(pair[1].lower(), {})
                gpus = (f"gpu {int(pair[2])}", f"gpu {int(pair[3])}")
                table.setdefault(gpus, str(value)[:20])
        node = str(values.get("(Topology) Numa Node", ""))
        if (card := _CARD.fullmatch(name)) and re.fullmatch(r"\d{1,4}", node):
            node_of[int(card[1])] = int(node)
    return cells, node_of
