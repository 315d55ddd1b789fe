"""IOR: writes and reads between the RAM of one host or several and storage, by its text or JSON.

``Max Write`` and ``Max Read`` are the best of its repetitions, in MiB/s first. The command line
tells whether O_DIRECT was used.

References
----------
https://github.com/hpc/ior, ``src/ior-output.c``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from topo.measuring.results import (
    CACHED,
    RAM,
    SMALL,
    SMALL_BLOCKS,
    STORAGE,
    Result,
    Results,
    mapping,
    number,
    objects,
    read_json,
    read_pasted,
    small_text,
)

PROGRAM: Final = "ior"
MARK: Final = (
    rb"\bIOR-\d[\w.+-]*: MPI Coordinated|\bMax (Write|Read): +[\d.]+ MiB/sec"
    rb'|"(bwMaxMIB|bwMiB|writeMiB|readMiB)"\s*:'
)
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
    """Read the summary of each run of a text, or of JSON."""
    results: list[Result] = []
    left_out: list[str] = []

    def add(way: str, rate: float | None, options: dict[str, str]) -> None:
        nodes, tasks = (number(options.get(key)) or 1 for key in ("nodes", "tasks"))
        if rate is None:
            left_out.append(f"ior {way}: no rate")
        elif nodes > 1:
            left_out.append(f"ior {way}: a rate of {nodes:.0f} hosts together")
        else:
            ends = (STORAGE, RAM) if way == "read" else (RAM, STORAGE)
            test = f"ior {way}, {tasks:.0f} tasks"
            results.append(Result(test, *ends, rate * _MEBI, unwritten=_unwritten(options)))

    options: dict[str, str] = {}
    if re.search(rb'"(Command line|bwMaxMIB)"\s*:', data):
        for way, rate, options in _of_json(read_json(data, name)):
            add(way, rate, options)
        return Results(PROGRAM, tuple(results), left_out=tuple(left_out))
    for line in read_pasted(data, name):
        if _START.search(line):
            options = {}
        elif match := _OPTION.fullmatch(line):
            options[match[1].removesuffix(" used")] = match[2].strip()
        elif match := _CLIENTS.fullmatch(line):  # of IOR 2
            options |= {"tasks": match[1], "nodes": str(int(match[1]) // max(int(match[2]), 1))}
        elif match := _MOST.search(line):
            add(match[1].lower(), number(match[2]), options)
    return Results(PROGRAM, tuple(results), left_out=tuple(left_out))


def _of_json(root: dict[str, Any]) -> Iterator[tuple[str, float | None, dict[str, str]]]:
    """Yield way, best rate in MiB/s and options of each test.

    A test has its best rates by itself; where it has not, they are the best of its repetitions.
    Without tests the summary has them.
    """
    command = small_text(root.get("Command line"), most=1000)
    for test in objects(root.get("tests")):
        options = {key: str(value)[:60] for key, value in mapping(test.get("Options")).items()} | {
            "Command line": command
        }
        best = mapping(test.get("max"))
        runs = [*_runs(test.get("Results"))]
        for way in ("write", "read"):
            rates = [number(best.get(f"{way}MiB"))] if f"{way}MiB" in best else []
            rates = rates or [number(run.get("bwMiB")) for run in runs if run.get("access") == way]
            if rates:
                yield way, max((rate for rate in rates if rate), default=None), options

    for entry in objects(root.get("summary")) if not root.get("tests") else ():
        tasks, of_node = (number(entry.get(key)) or 1 for key in ("numTasks", "tasksPerNode"))
        options = {
            "Command line": command,
            "tasks": f"{tasks:.0f}",
            "nodes": f"{math.ceil(tasks / of_node)}",
            "xfersize": f"{number(entry.get('transferSize')) or SMALL:.0f} bytes",
        }
        if entry.get("operation") in ("write", "read"):
            yield entry["operation"], number(entry.get("bwMaxMIB")), options


def _runs(value: object) -> Iterator[dict[str, Any]]:
    """Yield the repetitions, which may stand in a list each."""
    for item in value if isinstance(value, list) else []:
        yield from objects(item if isinstance(item, list) else [item])


def _unwritten(options: dict[str, str]) -> str:
    size = _SIZE.fullmatch(options.get("xfersize", ""))
    if size is not None and (number(size[1]) or 0.0) * _SIZES[size[2]] < SMALL:
        return SMALL_BLOCKS
    if options.get("dataAccess") == "GPU" or options.get("GPUDirect") == "1":
        return "from or to the memory of a GPU, and which is not told"
    return "" if _DIRECT.search(options.get("Command line", "")) else CACHED
