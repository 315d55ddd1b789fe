"""Results of gdsio: between storage and a GPU or RAM, by the way that its ``-x`` names.

A line of results does not say which GPU was used; the command above it does. GiB are binary.

Reference: NVIDIA GPUDirect Storage Benchmarking and Configuration Guide
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.discovery.foreign import read_lines
from topo.measuring.results import (
    RAM,
    SMALL,
    STORAGE,
    End,
    Result,
    Results,
    gpu,
    number,
    small_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_LINE: Final = re.compile(
    r"IoType:\s*(\w+)\s+XferType:\s*(\w+)(.*?)(?=IoType:|gdsio\s|\Z)", re.DOTALL
)
_RATE: Final = re.compile(r"Throughput:\s*([\d.]+)\s*([KMG]i?B)/sec")
_SIZE: Final = re.compile(r"IOSize:\s*(\d{1,12})[\d-]*\s*\((KiB|MiB)\)")
_COMMAND: Final = re.compile(r"(?m)gdsio\s[^\n]*")
_GPU: Final = re.compile(r"\s-d\s*(\d{1,3})\b")
_UNITS: Final = {
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
}
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
    """Read what gdsio prints, with the commands above if they were pasted along.

    Raises
    ------
    ExchangeError
        If it is no text.
    """
    text = "\n".join(read_lines(data, name))
    results: list[Result] = []
    left: list[str] = []
    for found in _LINE.finditer(text):
        before = list(_COMMAND.finditer(text, 0, found.start()))
        result = _result(found, before[-1][0] if before else "")
        if isinstance(result, str):
            left.append(result)
        else:
            results.append(result)
    return Results("gdsio", tuple(_best(results)), left_out=tuple(left))


def _result(found: re.Match[str], command: str) -> Result | str:
    """Return one result, or why it is none."""
    kind, transfer, rest = found[1].upper(), found[2].upper(), found[3]
    what = f"gdsio {kind} {small_text(transfer)}"
    rate = _RATE.search(rest)
    value = number(rate[1]) if rate else None
    via = next((path for start, path in _PATHS if transfer.startswith(start)), None)
    if rate is None or value is None or via is None or not kind.endswith(("READ", "WRITE")):
        return f"{what}: {'no throughput' if value is None else 'not known to topo'}"
    gpus = _GPU.findall(command)
    memory = RAM if not via else gpu(int(gpus[0])) if gpus else End("gpu")
    ends = (STORAGE, memory) if kind.endswith("READ") else (memory, STORAGE)
    unit = _UNITS[rate[2]]
    return Result(what, *ends, value * unit, via=via, unwritten=_why_not(rest, via, gpus))


def _why_not(rest: str, via: str, gpus: list[str]) -> str:
    size = _SIZE.search(rest)
    if size is not None and int(size[1]) * _UNITS[size[2]] < SMALL:
        return "transfers below 128 KiB: operations a second, not bandwidth"
    if len(set(gpus)) > 1:
        return "several GPUs at once"
    if via not in ("", "direct"):
        return f"a rate of the whole path {via}, not of one pair"
    return ""


def _best(results: list[Result]) -> Iterator[Result]:
    """Yield of runs that are alike the best, in the order of the first."""
    groups: dict[tuple[object, ...], list[Result]] = {}
    for one in results:
        groups.setdefault((one.test, one.source, one.target, one.unwritten), []).append(one)
    for runs in groups.values():
        best = max(runs, key=lambda run: run.rate)
        if len(runs) == 1:
            yield best
        else:
            yield Result(
                f"{best.test}, best of {len(runs)}",
                best.source,
                best.target,
                best.rate,
                via=best.via,
                unwritten=best.unwritten,
            )
