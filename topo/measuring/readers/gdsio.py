"""gdsio: between storage and a GPU or RAM, by the path that its ``-x`` names.

A line of results does not say which GPU was used; the command above it does. GiB are binary.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from topo.discovery.foreign import read_lines
from topo.measuring.results import (
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
    small_text,
)

_TRANSFER: Final = re.compile(
    r"IoType:\s*(\w+)\s+XferType:\s*(\w+)(.*?)(?=IoType:|gdsio\s|\Z)", re.DOTALL
)
_THROUGHPUT: Final = re.compile(r"Throughput:\s*([\d.]+)\s*([KMG]i?B)/sec")
_IO_SIZE: Final = re.compile(r"IOSize:\s*(\d{1,12})[\d-]*\s*\((KiB|MiB)\)")
_COMMAND: Final = re.compile(r"(?m)gdsio\s[^\n]*")
_BYTES: Final = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}
# By the word behind XferType; what it begins with decides.
_PATHS: Final = (
    ("GPUD", "direct"),
    ("GPU_DIRECT", "direct"),
    ("GPU_BATCH", "direct"),
    ("GPU_STREAM", "direct"),
    ("CPU_CACHED_GPU", "legacy"),
    ("CPU_GPU", "odirect-pinned"),
    ("CPU_ASYNC_GPU", "odirect-pinned"),
    ("CPUONLY", ""),
    ("CPU_ONLY", ""),
)


def read(data: bytes, name: str) -> Results:
    """Read what gdsio prints, with the commands above if they were pasted along."""
    text = "\n".join(read_lines(data, name))
    runs: dict[tuple[object, ...], list[Result]] = {}  # those that are alike
    left_out: list[str] = []
    for match in _TRANSFER.finditer(text):
        commands = list(_COMMAND.finditer(text, 0, match.start()))
        run = _transfer(match, commands[-1][0] if commands else "")
        if isinstance(run, str):
            left_out.append(run)
        else:
            runs.setdefault((run.test, run.source, run.target, run.unwritten), []).append(run)
    results: list[Result] = []
    for repeated in runs.values():
        best = max(repeated, key=lambda run: run.rate)
        test = best.test if len(repeated) == 1 else f"{best.test}, best of {len(repeated)}"
        results.append(replace(best, test=test))
    return Results("gdsio", tuple(results), left_out=tuple(left_out))


def _transfer(match: re.Match[str], command: str) -> Result | str:
    """Return one result, or why it is none."""
    kind, transfer, text = match[1].upper(), match[2].upper(), match[3]
    test = f"gdsio {kind} {small_text(transfer)}"
    rate = _THROUGHPUT.search(text)
    value = number(rate[1]) if rate else None
    via = next((path for start, path in _PATHS if transfer.startswith(start)), None)
    if rate is None or value is None or via is None or not kind.endswith(("READ", "WRITE")):
        return f"{test}: {'no throughput' if value is None else 'not known to topo'}"
    gpus = re.findall(r"\s-d\s*(\d{1,3})\b", command)
    memory = RAM if not via else gpu(int(gpus[0])) if gpus else End("gpu")
    ends = (STORAGE, memory) if kind.endswith("READ") else (memory, STORAGE)
    size = _IO_SIZE.search(text)
    unwritten = "" if via in ("", "direct") else of_whole_path(via)
    if size is not None and int(size[1]) * _BYTES[size[2]] < SMALL:
        unwritten = SMALL_BLOCKS
    elif len(set(gpus)) > 1:
        unwritten = "several GPUs at once"
    return Result(test, *ends, value * _BYTES[rate[2]], via=via, unwritten=unwritten)
