"""Text of ``hl-smi topo -c -N``: the CPUs and NUMA nodes that Intel Gaudi accelerators are near.

References
----------
Tables in the pages of vLLM's fork for Gaudi; the program's source is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from topo.discovery.foreign import read_lines
from topo.discovery.machine import (
    MOST_GPUS,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    unknown_place,
)
from topo.discovery.numa import hosts_of
from topo.errors import ExchangeError, Finding

_HEADER: Final = re.compile(r"[\s>|]*modID\s+(?:CPU Affinity\s*)?(?:NUMA Affinity\s*)?")
_ROW: Final = re.compile(
    r"[\s>|]*(\d{1,3})\s+(\d{1,4}(?:-\d{1,4})?(?:, ?\d{1,4}(?:-\d{1,4})?)*)(?:\s+(\d{1,3}|N/A))?\s*"
)


def read(data: bytes, name: str) -> Machine:
    """Read the table.

    Raises an `ExchangeError` if no accelerator is in it.
    """
    modules = _rows(read_lines(data, name))
    if not modules:
        message = f"`{name}` has no row of an accelerator"
        raise ExchangeError(Finding("nothing-there", message, help="run `hl-smi topo -c -N`"))
    nodes = {node for node, _ in modules.values() if node is not None}
    hosts = hosts_of(dict.fromkeys(sorted(nodes)))
    gpus, places = list[DiscoveredDevice](), list[DiscoveredDevice]()
    for module, (node, cpus) in sorted(modules.items()):
        cpu, near = hosts.place([node] if node is not None else [])
        if not cpu:
            cpu = f"place {module}"
            places.append(unknown_place(cpu))
        gpus.append(
            DiscoveredDevice(
                f"gpu {module}",
                "gpu",
                "gaudi-unknown",
                parent=cpu,
                node=near,
                link=DiscoveredLink(),
                label=f"module {module}",
                evidence=f"CPU affinity {cpus}" if cpus else "",
            )
        )
    findings = []
    if not nodes and len(gpus) > 1:
        message = "the NUMA nodes of the accelerators are not told: all were put under one CPU"
        findings.append(
            Finding("numa-unknown", message, severity="warning", help="run `hl-smi topo -c -N`")
        )
    return Machine(
        kind="hl-smi",
        source="output of hl-smi topo",
        file=name,
        devices=(*hosts.devices, *places, *gpus),
        notes=("hl-smi tells no addresses, links, switches or cards here: fill them in.",),
        findings=tuple(findings),
    )


def _rows(lines: Iterable[str]) -> dict[int, tuple[int | None, str]]:
    """Return by module its NUMA node and its CPUs, the first of each."""
    modules: dict[int, tuple[int | None, str]] = {}
    is_table, has_cpus = False, False
    for line in lines:
        if _HEADER.fullmatch(line):
            is_table, has_cpus = True, "CPU" in line
        elif is_table and len(modules) < MOST_GPUS and (match := _ROW.fullmatch(line)):
            cpus, node = (match[2] or "", match[3]) if has_cpus else ("", match[2] or match[3])
            number = int(node) if node and node.isdecimal() else None
            modules.setdefault(int(match[1]), (number, cpus.strip()))
    return modules
