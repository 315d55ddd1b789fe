"""IOR: writes and reads between the RAM of one host or several and storage, by its text.

``Max Write`` and ``Max Read`` are the best of its repetitions, in MiB/s first. The command line
tells whether O_DIRECT was used.

References
----------
https://github.com/hpc/ior, ``src/ior-output.c``.
"""

from __future__ import annotations

import re
from typing import Final

from topo.measuring.results import (
    CACHED,
    RAM,
    SMALL,
    SMALL_BLOCKS,
    STORAGE,
    Result,
    Results,
    number,
    read_pasted,
)

PROGRAM: Final = "ior"
MARK: Final = rb"\bIOR-\d[\w.+-]*: MPI Coordinated|\bMax (Write|Read): +[\d.]+ MiB/sec"
MDTEST_MARK: Final = rb"\bmdtest-\d[\w.+-]* was launched"
_START: Final = re.compile(r"\bIOR-\d[\w.+-]*: MPI Coordinated")
_MOST: Final = re.compile(r"\bMax (Write|Read):\s+([\d.]{1,20}) MiB/sec\b")
_OPTION: Final = re.compile(
    r"\s*(Command line(?: used)?|nodes|tasks|xfersize|GPUDirect|dataAccess)\s*[:=]\s*(.*)"
)
_CLIENTS: Final = re.compile(r"\s*clients\s*=\s*(\d{1,9}) \((\d{1,9}) per node\)\s*")
_SIZE: Final = re.compile(r"([\d.]{1,12})\s*(bytes|[KMGT]iB)")
_SIZES: Final = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_DIRECT: Final = re.compile(r"--posix\.odirect\b|\buseO_DIRECT=1\b|(?<=\s)-\w*B\b")
_MEBI: Final = 2.0**20


def read(data: bytes, name: str) -> Results:
    """Read the summary of each run of a text."""
    results: list[Result] = []
    left_out: list[str] = []
    options: dict[str, str] = {}
    for line in read_pasted(data, name):
        if _START.search(line):
            options = {}
        elif match := _OPTION.fullmatch(line):
            options[match[1].removesuffix(" used")] = match[2].strip()
        elif match := _CLIENTS.fullmatch(line):  # of IOR 2
            options |= {"tasks": match[1], "nodes": str(int(match[1]) // max(int(match[2]), 1))}
        elif match := _MOST.search(line):
            rate, way = number(match[2]), match[1].lower()
            nodes, tasks = (number(options.get(key)) or 1 for key in ("nodes", "tasks"))
            if rate is None:
                left_out.append(f"ior {way}: no rate")
            elif nodes > 1:
                left_out.append(f"ior {way}: a rate of {nodes:.0f} hosts together")
            else:
                results.append(
                    Result(
                        f"ior {way}, {tasks:.0f} tasks",
                        *((STORAGE, RAM) if way == "read" else (RAM, STORAGE)),
                        rate * _MEBI,
                        unwritten=_unwritten(options),
                    )
                )
    if not results and not left_out and b'"bwMaxMIB"' in data:
        left_out.append("the summary is JSON: run ior without summaryFormat=JSON")
    return Results(PROGRAM, tuple(results), left_out=tuple(left_out))


def _unwritten(options: dict[str, str]) -> str:
    size = _SIZE.fullmatch(options.get("xfersize", ""))
    if size is not None and (number(size[1]) or 0.0) * _SIZES[size[2]] < SMALL:
        return SMALL_BLOCKS
    if options.get("dataAccess") == "GPU" or options.get("GPUDirect") == "1":
        return "from or to the memory of a GPU, and which is not told"
    return "" if _DIRECT.search(options.get("Command line", "")) else CACHED
