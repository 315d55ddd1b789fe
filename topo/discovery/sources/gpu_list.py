"""What GPUs are, by number: ``nvidia-smi``'s table, ``-L`` and ``--query-gpu``, `collect_env`.

The table and some queries have PCI addresses too. The table cuts long names off: such a name is
that of the only part that it can be, else none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from topo.catalogue.identities import gpu_named
from topo.discovery.foreign import nothing_there, read_lines
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, Machine, printable
from topo.discovery.pci import read_address
from topo.errors import Finding
from topo.phrases import and_more

_NAMED: Final = re.compile(
    r"\s*(?:GPU models and configuration\s*:\s*)?GPU (\d{1,3}(?:,\d{1,3}){0,255}): +"
    r"([A-Za-z].{0,80}?)\s*(?:\(UUID: .*)?"
)
_ROW: Final = re.compile(
    r"\s*\|\s+(\d{1,3})\s+([A-Z][\w .()/-]{1,60}?)\s+(?:On|Off|N/A)\s*\|\s+([0-9A-Fa-f:.]{7,16})\s"
)
_NUMBER: Final = re.compile(r"\d{1,3}")

_Models = dict[int, tuple[str, str]]  # name and address by number


def read(data: bytes, name: str) -> Machine:
    """Read the names of GPUs.

    Raises an `ExchangeError` if none is in it.
    """
    lines = read_lines(data, name)
    models = dict(sorted((_named(lines) | _queried(lines)).items())[:MOST_GPUS])
    if not models:
        message = f"`{name}` names no GPU"
        raise nothing_there(message, "run `nvidia-smi -L`")
    unlisted = dict.fromkeys(model for model, _ in models.values() if not gpu_named(model))
    findings = []
    if unlisted:
        message = f"topo has no part for {and_more(list(unlisted))}"
        help = "write `part:` of these GPUs in the YAML: `topo parts gpu` lists them"
        findings.append(Finding("unknown-gpu", message, severity="note", help=help))
    return Machine(
        kind="gpus",
        source="a list of GPUs",
        file=name,
        devices=tuple(
            DiscoveredDevice(
                f"gpu {number}",
                "gpu",
                gpu_named(model) or "gpu-unknown",
                pci=(address,) if address else (),
                evidence=model,
                index=number,
            )
            for number, (model, address) in models.items()
        ),
        findings=tuple(findings),
        tells_only="what its GPUs are",
    )


def _named(lines: Iterable[str]) -> _Models:
    """Return what ``GPU 0: NAME`` and rows of the table tell; the first of each number."""
    models: _Models = {}
    for line in lines:
        if match := _NAMED.fullmatch(line):
            for number in match[1].split(","):
                models.setdefault(int(number), (printable(match[2]), ""))
        elif match := _ROW.match(line):
            models.setdefault(int(match[1]), (printable(match[2]), read_address(match[3])))
    return models


def _queried(lines: Iterable[str]) -> _Models:
    """Return what rows of ``--query-gpu=index,name,pci.bus_id --format=csv`` tell."""
    models: _Models = {}
    columns: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if "name" in cells and len(cells) > 1:
            columns = cells
            continue
        if len(cells) != len(columns):
            columns = [] if line.strip() else columns
            continue
        row = dict(zip(columns, cells, strict=True))
        number = row.get("index", str(len(models)))
        if _NUMBER.fullmatch(number) and row["name"]:
            address = row.get("pci.bus_id", row.get("gpu_bus_id", ""))
            models.setdefault(int(number), (printable(row["name"]), read_address(address)))
    return models
