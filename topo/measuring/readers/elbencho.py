"""elbencho: writes and reads between storage and RAM, or GPUs: its text, result file or CSV.

The column ``LAST DONE`` counts all bytes over the time until the last worker was done; the command
line, which the result file has, tells whether O_DIRECT and which GPUs were used.

References
----------
https://github.com/breuner/elbencho, ``source/Statistics.cpp`` and ``source/ProgArgs.h``.
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
    End,
    Result,
    Results,
    gpu,
    number,
    of_whole_path,
    read_pasted,
    small_text,
)

PROGRAM: Final = "elbencho"
MARK: Final = (
    rb"\bOPERATION +RESULT TYPE +FIRST DONE +LAST DONE\b"
    rb"|\boperation,time ms \[first\],time ms \[last\],"
)
_HEADER: Final = re.compile(r"\bOPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE\b")
_COMMAND: Final = re.compile(r"(?:.*\bCOMMAND LINE:|.*?(?:^|[\s/$#\"])elbencho)\s(.*-\w.*)")
_DAY: Final = re.compile(r"\bISO DATE(?: start)?\s*: (\d{4}-\d\d-\d\d)T")
_PHASE: Final = re.compile(r"\s*([A-Z][A-Z_]{2,14})\s+(?:Elapsed|Entries|Files|Objects|IOPS)\b.*")
_RATE: Final = re.compile(
    r"\s*(?:([A-Z_]{3,15})\s+)?Throughput (Mi?B/s)\s*:\s*(\d{1,12})\s+(\d{1,12})\s*"
)
_MIXED: Final = re.compile(r"\s*Mi?B/s (?:read|write)\s*:\s*\d+.*")
_UNITS: Final = {"MiB/s": 2.0**20, "MB/s": 1e6}
_SIZE: Final = re.compile(r"(\d{1,12})([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def read(data: bytes, name: str) -> Results:
    """Read the phases of a text that wrote or read data."""
    results: list[Result] = []
    left_out: dict[str, None] = {}
    command, date, phase = "", "", ""
    columns: list[str] = []
    for line in read_pasted(data, name):
        cells = [cell.strip() for cell in line.split(",")]
        if "MiB/s [last]" in cells:
            columns = cells
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            way, rate = row.get("operation", "").lower(), number(row["MiB/s [last]"])
            date = row.get("ISO date", "").partition("T")[0]
            if rate is None or way not in ("read", "write"):
                left_out[f"elbencho {small_text(way) or 'phase'}: no reads or writes of data"] = (
                    None
                )
            elif number(row.get("rwmix read MiB/s [last]")):
                left_out[f"elbencho {way}: reads and writes at once"] = None
            else:
                of_row = row.get("command", "").replace('"', " ")
                results.append(_result(way, rate * _UNITS["MiB/s"], of_row))
        elif match := _HEADER.search(line):
            phase = ""
        elif match := _DAY.search(line):
            date = match[1]
        elif match := _COMMAND.fullmatch(line):
            command = match[1].replace('"', " ")
        elif _MIXED.fullmatch(line):
            left_out[f"elbencho {phase.lower()}: reads and writes at once"] = None
        elif match := _PHASE.fullmatch(line):
            phase = match[1]
        if match := _RATE.fullmatch(line):
            phase = match[1] or phase
            rate = number(match[4])
            if rate is None or phase not in ("READ", "WRITE"):
                left_out[f"elbencho {phase.lower() or 'phase'}: no reads or writes of data"] = None
            else:
                results.append(_result(phase.lower(), rate * _UNITS[match[2]], command))
    return Results(
        PROGRAM,
        tuple(results),
        left_out=tuple(left_out),
        date=date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "",
    )


def _result(way: str, rate: float, command: str) -> Result:
    gpus = re.findall(r"--gpuids[= ]+([\d,]{1,200}|all)", command)
    memory, via, why = RAM, "", ""
    if gpus:
        direct = re.search(r"--(?:cufile|gds)\b", command)
        single = gpus[-1].isdecimal() and len(gpus[-1]) <= len("999")
        memory = gpu(int(gpus[-1])) if single else End("gpu")
        via = "direct" if direct else "odirect-pinned"
        why = "" if direct else of_whole_path(via)
        why = why if single else "several GPUs at once"
    if re.search(r"--(?:hosts|hostsfile)\b", command):
        why = "a rate of several hosts together"
    elif not re.search(r"--(?:direct|cufile|gds)\b", command):
        why = CACHED
    size = re.search(r"(?:--block|-b)[= ]*(\w{1,16})", command)
    block = _SIZE.fullmatch(size[1]) if size else None
    if block and int(block[1]) * 1024.0 ** _POWERS[block[2].lower()] < SMALL:
        why = SMALL_BLOCKS
    ends = (STORAGE, memory) if way == "read" else (memory, STORAGE)
    return Result(f"elbencho {way}", *ends, rate, via=via, unwritten=why)
