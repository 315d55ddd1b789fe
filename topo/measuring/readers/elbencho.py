"""elbencho: writes and reads between storage and RAM, or GPUs: its text, result file, CSV or JSON.

The column ``LAST DONE`` counts all bytes over the time until the last worker was done; the command
line, which the result file has, tells whether O_DIRECT and which GPUs were used.

References
----------
https://github.com/breuner/elbencho, ``source/Statistics.cpp`` and ``source/ProgArgs.h``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from topo.measuring.results import (
    CACHED,
    RAM,
    SMALL_BLOCKS,
    STORAGE,
    End,
    Result,
    Results,
    gpu,
    is_small,
    mapping,
    number,
    of_whole_path,
    read_json,
    read_pasted,
    small_text,
)

PROGRAM: Final = "elbencho"
_JSON_MARK: Final = rb'"phase_type"\s*:'
MARK: Final = (
    rb"\bOPERATION +RESULT TYPE +FIRST DONE +LAST DONE\b"
    rb"|\boperation,time ms \[first\],time ms \[last\],|" + _JSON_MARK
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


def read(data: bytes, name: str) -> Results:
    """Read the phases of a text that wrote or read data, or the one phase of a JSON document."""
    if re.search(_JSON_MARK, data):
        return _of_json(read_json(data, name))
    phases: list[Result | str] = []
    command, date, phase = "", "", ""
    columns: list[str] = []
    for line in read_pasted(data, name):
        cells = [cell.strip() for cell in line.split(",")]
        if "MiB/s [last]" in cells:
            columns = cells
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            date = row.get("ISO date", "")
            is_mixed = bool(number(row.get("rwmix read MiB/s [last]")))
            mebibytes = number(row["MiB/s [last]"]) or 0.0
            of_row = (row.get("operation", ""), mebibytes * _UNITS["MiB/s"], row.get("command", ""))
            phases.append(_result(*of_row, is_mixed=is_mixed))
        elif match := _HEADER.search(line):
            phase = ""
        elif match := _DAY.search(line):
            date = match[1]
        elif match := _COMMAND.fullmatch(line):
            command = match[1]
        elif _MIXED.fullmatch(line):
            phases.append(_result(phase, 0.0, command, is_mixed=True))
        elif match := _PHASE.fullmatch(line):
            phase = match[1]
        if match := _RATE.fullmatch(line):
            phase = match[1] or phase
            rate = (number(match[4]) or 0.0) * _UNITS[match[2]]
            phases.append(_result(phase, rate, command))
    return _results(phases, date)


def _of_json(root: dict[str, Any]) -> Results:
    """Return the phase that a document of the JSON file is; all of its values are texts."""
    done = mapping(root.get("last_done"))
    phase = _result(
        str(root.get("phase_type", "")),
        number(done.get("bytes/s")) or 0.0,
        str(mapping(root.get("config")).get("command", "")),
        is_mixed="rwmix_read" in done,
    )
    return _results([phase], str(root.get("iso_start_date", "")))


def _results(phases: Sequence[Result | str], date: str) -> Results:
    left_out = (phase for phase in phases if isinstance(phase, str))
    day = re.match(r"\d{4}-\d\d-\d\d(?!\d)", date)
    return Results(
        PROGRAM,
        tuple(phase for phase in phases if isinstance(phase, Result)),
        left_out=tuple(dict.fromkeys(left_out)),
        date=day[0] if day else "",
    )


def _result(phase: str, rate: float, command: str, *, is_mixed: bool = False) -> Result | str:
    """Return the rate of a phase in bytes/s by its command line, or why it has none."""
    way, command = small_text(phase.lower()), command.replace('"', " ")
    if is_mixed:
        return f"elbencho {way}: reads and writes at once"
    if not rate or way not in ("read", "write"):
        return f"elbencho {way or 'phase'}: no reads or writes of data"
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
    if size and is_small(size[1]):
        why = SMALL_BLOCKS
    ends = (STORAGE, memory) if way == "read" else (memory, STORAGE)
    return Result(f"elbencho {way}", *ends, rate, via=via, unwritten=why)
