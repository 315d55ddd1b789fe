"""bandwidthTest, a CUDA sample: copies between system RAM and a GPU, pinned or pageable.

``MB/s`` of the releases before CUDA 10.1 are MiB/s: those divide by 2**20, later ones print GB/s by
1e9. ``Device to Device`` is one GPU's own memory, read and written. Of several GPUs
(``--device=all``) the rates are added up, although they are measured one after the other.

References
----------
https://github.com/NVIDIA/cuda-samples, ``Samples/1_Utilities/bandwidthTest`` (until CUDA 12.8).
"""

from __future__ import annotations

import re
from typing import Final

from topo.measuring.results import (
    RAM,
    SMALL,
    SMALL_BLOCKS,
    End,
    Result,
    Results,
    gpu,
    number,
    of_whole_path,
    read_pasted,
)
from topo.records import dataclass

PROGRAM: Final = "bandwidthTest"
MARK: Final = (
    rb"(Host to Device|Device to Host|Device to Device) Bandwidth, \d{1,4} Device\(s\)"
    rb"|\bbandwidthTest-(H2D|D2H|D2D)[\w-]*, Bandwidth ="
)
_START: Final = re.compile(r"\[CUDA Bandwidth Test\]|\bRunning on\.\.\.")
_DEVICE: Final = re.compile(r"\s*Device (\d{1,3}): .*")
_SECTION: Final = re.compile(
    r"(?P<way>Host to Device|Device to Host|Device to Device) Bandwidth, (?P<count>\d{1,4}) Device"
)
_MEMORY: Final = re.compile(r"\b(PINNED|PAGEABLE) Memory Transfers")
_UNIT: Final = re.compile(r"Transfer Size \(Bytes\)\s+Bandwidth\((GB/s|MB/s)\)")
_ROW: Final = re.compile(r"\s*(\d{1,12})\s+([\d.]{1,12})\s*")
_CSV: Final = re.compile(
    r"\bbandwidthTest-(?P<way>H2D|D2H|D2D)(?:-(?P<memory>Pinned|Paged))?[\w-]*, "
    r"Bandwidth = (?P<rate>[\d.]{1,12}) (?P<unit>[GM]B/s),.*?Size = (?P<size>\d{1,12}) bytes"
    r"(?:, NumDevsUsed = (?P<count>\d{1,4}))?"
)
_WAYS: Final = {"H2D": "Host to Device", "D2H": "Device to Host", "D2D": "Device to Device"}
_UNITS: Final = {"GB/s": 1e9, "MB/s": 2.0**20}
_LARGE: Final = 16e6  # bytes: from here on a copy's start does not count


@dataclass(frozen=True, slots=True)
class _Copies:
    """What was run, as printed: one GPU of a number, or the sum of several."""

    device: int
    way: str
    pageable: bool
    count: int = 1


def read(data: bytes, name: str) -> Results:
    """Read what the program prints, as a table or with ``--csv``."""
    rows: dict[_Copies, list[tuple[float, float]]] = {}  # bytes, bytes/s
    runs: dict[_Copies, int] = {}  # in how many runs of the program
    device, way, count, pageable, unit = -1, "", 1, False, 0.0
    seen: set[_Copies] = set()  # in this run
    for line in read_pasted(data, name):
        if _START.search(line):
            seen, way = set(), ""
        elif match := _DEVICE.fullmatch(line):
            device = int(match[1])
        elif match := _SECTION.search(line):
            way, count, unit = match["way"], int(match["count"]), 0.0
        elif match := _MEMORY.search(line):
            pageable = match[1] == "PAGEABLE"
        if match := _UNIT.search(line):  # `--wc` puts it behind a sentence
            unit = _UNITS[match[1]]
            continue
        if match := _CSV.search(line):
            copies = _Copies(
                device, _WAYS[match["way"]], match["memory"] == "Paged", int(match["count"] or 1)
            )
            size, value, factor = float(match["size"]), match["rate"], _UNITS[match["unit"]]
        elif way and unit and (match := _ROW.fullmatch(line)):
            copies = _Copies(device, way, pageable, count)
            size, value, factor = float(match[1]), match[2], unit
        else:
            continue
        if (rate := number(value)) is not None:
            rows.setdefault(copies, []).append((size, rate * factor))
            runs[copies] = runs.get(copies, 0) + (copies not in seen)
            seen.add(copies)
    results = tuple(
        _result(copies, rates, repeated=runs[copies] > 1)
        for copies, rates in rows.items()
        if _copied(copies)
    )
    left_out = tuple(dict.fromkeys(_why_not(copies) for copies in rows if not _copied(copies)))
    return Results(PROGRAM, results, left_out=left_out)


def _copied(copies: _Copies) -> bool:
    return copies.count == 1 and copies.way != _WAYS["D2D"]


def _result(copies: _Copies, rates: list[tuple[float, float]], *, repeated: bool) -> Result:
    """Return the fastest of the large copies. Several runs of "device 0" may be of several GPUs."""
    size, rate = max(rates, key=lambda row: (row[0] >= _LARGE, row[1]))
    end = End("gpu") if repeated or copies.device < 0 else gpu(copies.device)
    memory = "pageable" if copies.pageable else "pinned"
    unwritten = of_whole_path("pageable") if copies.pageable else ""
    if size < SMALL:
        unwritten = SMALL_BLOCKS
    return Result(
        f"{PROGRAM} {copies.way.lower()}, {memory}, {size / 1e6:.4g} MB a copy",
        *((RAM, end) if copies.way == _WAYS["H2D"] else (end, RAM)),
        rate,
        via="pageable" if copies.pageable else "",
        unwritten=unwritten,
        rank=1,
    )


def _why_not(copies: _Copies) -> str:
    if copies.way == _WAYS["D2D"]:
        return "device to device: one GPU's own memory, read and written, on no link"
    return (
        f"{copies.way.lower()}: a sum over {copies.count} GPUs that were measured one after another"
    )
