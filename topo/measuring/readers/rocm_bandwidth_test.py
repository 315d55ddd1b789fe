"""rocm-bandwidth-test: copies by DMA between system RAM and AMD GPUs, and between two of them.

A row is where data comes from. Devices are numbered together, CPUs (NUMA nodes) and GPUs: which is
which stands in the list above the matrices. A bidirectional matrix has the sum of both directions,
the diagonal what one memory reads and writes. GB are decimal.

References
----------
https://github.com/ROCm/rocm_bandwidth_test, ``rocm_bandwidth_test_report.cpp`` and
``rocm_bandwidth_test_trans.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    BOTH_SUMMED,
    DIAGONAL,
    RAM,
    SMALL,
    SMALL_BLOCKS,
    End,
    Result,
    Results,
    gpu,
    number,
    ram,
    read_pasted,
)
from topo.records import dataclass

PROGRAM: Final = "rocm-bandwidth-test"
MARK: Final = (
    rb"directional copy (?:peak|average) bandwidth GB/s[ \t]*\r?\n"
    rb"|directional Benchmark Result[ \t]+=+|\bRocmBandwidthTest Version"
)
_TITLE: Final = re.compile(
    r"\b(?P<ways>Uni|Bi|B)directional copy (?P<rate>peak|average) bandwidth GB/s\s*"
)
_OTHER_MATRIX: Final = re.compile(
    r"\s*(Inter-Device|Device (Access|Numa)|Data Path Validation)\b.*"
)
_DEVICE: Final = re.compile(r"\s*Device: (\d{1,3}),\s*(.*)")
_BDF: Final = re.compile(r",\s*((?:[0-9a-f]{1,8}:)?[0-9a-f]{1,2}:[0-9a-f]{1,2}\.[0-7])\s*$")
_HEADER: Final = re.compile(r"\s*D/D((?:\s+\d{1,3})+)\s*")
_ROW: Final = re.compile(r"\s*(\d{1,3})((?:\s+(?:[\d.]{1,14}|N/A))+)\s*")
_BANNER: Final = re.compile(r"\b(Uni|Bi)directional Benchmark Result\b")
_BANNER_END: Final = re.compile(
    r"\b(Src|Dst) Device Id: \d{1,4} (?:Src|Dst) Device Type: (\w{1,8})"
)
_SIZED: Final = re.compile(
    r"\s*(\d{1,12})\s*(Bytes|KB|MB)\s+[\d.]{1,16}\s+([\d.]{1,12})\s+[\d.]{1,16}\s+([\d.]{1,12})\s*"
)
_SIZES: Final = {"Bytes": 1.0, "KB": 2.0**10, "MB": 2.0**20}
_GIGA: Final = 1e9


@dataclass(frozen=True, slots=True)
class _Cell:
    """A rate of a matrix: its title's words, its row and column."""

    both: bool
    rate_of: str
    source: int
    target: int
    rate: float


def read(data: bytes, name: str) -> Results:
    """Read the matrices of ``-a`` and ``-A``, and the tables of ``-s -d`` and ``-b``."""
    ends: dict[int, End] = {}
    addresses: list[str] = []
    cells: list[_Cell] = []
    title: re.Match[str] | None = None
    columns: list[int] = []
    lines = read_pasted(data, name)
    for line in lines:
        if match := _TITLE.search(line):
            title, columns = match, []
        elif _OTHER_MATRIX.fullmatch(line):
            title = None
        elif (match := _DEVICE.fullmatch(line)) and int(match[1]) not in ends:
            address = _BDF.search(match[2])
            if address:
                ends[int(match[1])] = gpu(len(addresses))
                addresses.append(read_address(address[1]))
            else:
                cpus = sum(end.kind == "ram" for end in ends.values())
                ends[int(match[1])] = ram(cpus)
        elif match := _HEADER.fullmatch(line):
            columns = [int(word) for word in match[1].split()]
        elif title and columns and (match := _ROW.fullmatch(line)):
            cells += [
                _Cell(title["ways"] != "Uni", title["rate"], int(match[1]), column, rate * _GIGA)
                for column, text in zip(columns, match[2].split(), strict=False)
                if (rate := number(text)) is not None
            ]
    unlisted = any(cell.source not in ends or cell.target not in ends for cell in cells)
    return Results(
        PROGRAM,
        (*_results(cells, ends), *_tables(lines)),
        tuple(addresses) if all(addresses) else (),
        len(addresses),
        tuple(_left_out(cells, unlisted=unlisted)),
    )


def _results(cells: list[_Cell], ends: dict[int, End]) -> Iterator[Result]:
    """Yield the rates between two devices of which one is a GPU."""
    for cell in cells:
        source, target = ends.get(cell.source), ends.get(cell.target)
        if source is None or target is None or cell.source == cell.target:
            continue
        if source.kind == target.kind == "ram":
            continue
        yield Result(
            f"{PROGRAM} {'both ways' if cell.both else 'one way'}, {cell.rate_of}",
            source,
            target,
            cell.rate,
            both=cell.both,
            unwritten=BOTH_SUMMED if cell.both else "",
            rank=1,
        )


def _left_out(cells: list[_Cell], *, unlisted: bool) -> Iterator[str]:
    if unlisted:
        yield "which devices are GPUs stands in the list above the matrices, and is cut off"
    if any(cell.source == cell.target for cell in cells):
        yield DIAGONAL


def _tables(lines: list[str]) -> Iterator[Result]:
    """Yield the fastest large copy of each table of single copies.

    Their numbers are of memory pools, so which device it was is not told.
    """
    both: bool | None = None
    kinds: dict[str, str] = {}
    best: dict[tuple[bool, str, str], tuple[float, float]] = {}
    for line in lines:
        if match := _BANNER.search(line):
            both, kinds = match[1] == "Bi", {}
        if match := _BANNER_END.search(line):
            kinds[match[1]] = match[2].lower()
        elif both is not None and len(kinds) == len(("Src", "Dst")):
            match = _SIZED.fullmatch(line)
            rate = number(match[4]) if match else None
            if match is not None and rate is not None:
                row = (float(match[1]) * _SIZES[match[2]], rate * _GIGA)
                key = (both, kinds["Src"], kinds["Dst"])
                best[key] = max(best.get(key, (0.0, 0.0)), row)
    for (summed, source, target), (size, rate) in best.items():
        if "gpu" in (source, target) and {source, target} <= {"cpu", "gpu"}:
            why = SMALL_BLOCKS if size < SMALL else ""
            yield Result(
                f"{PROGRAM} {'both ways' if summed else 'one way'}, {size / 2**20:.4g} MiB a copy",
                End("gpu") if source == "gpu" else RAM,
                End("gpu") if target == "gpu" else RAM,
                rate,
                both=summed,
                unwritten=BOTH_SUMMED if summed else why,
            )
