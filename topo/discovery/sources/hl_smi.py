"""Text of ``hl-smi topo -c -N``: the CPUs and NUMA nodes that Intel Gaudi accelerators are near.

References
----------
Tables in the pages of vLLM's fork for Gaudi; the program's source is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from topo.discovery.foreign import BEFORE, nothing_there, read_lines
from topo.discovery.machine import MOST_GPUS, DiscoveredDevice, Machine
from topo.discovery.numa import below_nodes, nodes_not_told

_HELP: Final = "run `hl-smi topo -c -N`"
_HEADER: Final = re.compile(rf"{BEFORE}modID\s+(?:CPU Affinity\s*)?(?:NUMA Affinity\s*)?")
_ROW: Final = re.compile(
    BEFORE
    + r"(\d{1,3})\s+(\d{1,4}(?:-\d{1,4})?(?:, ?\d{1,4}(?:-\d{1,4})?)*)(?:\s+(\d{1,3}|N/A))?\s*"
)


def read(data: bytes, name: str) -> Machine:
    """Read the table.

    Raises an `ExchangeError` if no accelerator is in it.
    """
    modules = _rows(read_lines(data, name))
    if not modules:
        message = f"`{name}` has no row of an accelerator"
        raise nothing_there(message, _HELP)
    gpus = [
        DiscoveredDevice(
            f"gpu {module}",
            "gpu",
            "gaudi-unknown",
            label=f"module {module}",
            evidence=f"CPU affinity {cpus}" if cpus else "",
        )
        for module, (_, cpus) in sorted(modules.items())
    ]
    node_of = {f"gpu {at}": node for at, (node, _) in modules.items() if node is not None}
    is_untold = not node_of and len(gpus) > 1
    return Machine(
        kind="hl-smi",
        source="output of hl-smi topo",
        file=name,
        devices=below_nodes(gpus, node_of),
        notes=("hl-smi tells no addresses, links, switches or cards here: fill them in.",),
        findings=(nodes_not_told("accelerators", _HELP),) if is_untold else (),
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
