"""p2pBandwidthLatencyTest, a CUDA sample: copies between GPUs, with and without peer access.

A row is a GPU that copies. It writes into the column's GPU, or reads from it where the title says
``(P2P Reads)``; releases before CUDA 10.1 read, and their titles say neither. Without peer access a
copy goes through system RAM. A bidirectional matrix has the sum of both directions, and the
diagonal what a GPU's memory reads and writes. GB are decimal.

References
----------
https://github.com/NVIDIA/cuda-samples, ``Samples/5_Domain_Specific/p2pBandwidthLatencyTest``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    BOTH_SUMMED,
    DIAGONAL,
    Result,
    Results,
    gpu,
    number,
    of_whole_path,
    read_pasted,
)
from topo.records import dataclass

MARK: Final = rb"P2P=(Enabled|Disabled) Bandwidth (\(P2P \w+\) )?Matrix"
_TITLE: Final = re.compile(
    r"(?P<ways>Uni|Bi)directional P2P=(?P<peer>Enabled|Disabled) Bandwidth "
    r"(?:\(P2P (?P<mover>Write|Read)s?\) )?Matrix"
)
_OTHER_MATRIX: Final = re.compile(r"Latency|Matrix")
_HEADER: Final = re.compile(r"\s*D\\D((?:\s+\d{1,3})+)\s*")
_ROW: Final = re.compile(r"\s*(\d{1,3})((?:\s+[\d.]{1,12})+)\s*")
_DEVICE: Final = re.compile(
    r"\bDevice: (\d{1,3}), .*pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2})"
    r", pciDomainID: ?([0-9a-f]{1,8})"
)
_ACCESS: Final = re.compile(r"\bDevice=(\d{1,3}) CAN(NOT)? Access Peer Device=(\d{1,3})")
_GIGA: Final = 1e9
_MOST_GPUS: Final = 256
PROGRAM: Final = "p2pBandwidthLatencyTest"
_ACCESS_UNKNOWN: Final = "whether the two reach each other stands above the matrix, and is cut off"


@dataclass(frozen=True, slots=True)
class _Matrix:
    """One matrix of a text: its title's words, and its rates by row and column."""

    both: bool
    peer: bool
    mover: str
    cells: dict[tuple[int, int], float]


def read(data: bytes, name: str) -> Results:
    """Read what the program prints, whole or in part."""
    lines = read_pasted(data, name)
    text = "\n".join(lines)
    access = {(int(match[1]), int(match[3])): match[2] is None for match in _ACCESS.finditer(text)}
    matrices: list[_Matrix] = []
    columns: list[int] = []
    reading = ""  # what the matrix below is of
    for line in lines:
        if title := _TITLE.search(line):
            reading, columns = "bandwidth", []
            both, peer = title["ways"] == "Bi", title["peer"] == "Enabled"
            matrices.append(_Matrix(both, peer, title["mover"] or "", {}))
        elif "P2P Connectivity Matrix" in line:
            reading, columns = "access", []
        elif _OTHER_MATRIX.search(line):
            reading = ""
        elif reading and (header := _HEADER.fullmatch(line)):
            columns = [int(word) for word in header[1].split()][:_MOST_GPUS]
        elif reading and columns and (row := _ROW.fullmatch(line)):
            cells = zip(columns, row[2].split(), strict=False)
            if reading == "access":
                access |= {(int(row[1]), column): cell == "1" for column, cell in cells}
            else:
                rates = ((column, number(cell)) for column, cell in cells)
                matrices[-1].cells.update(
                    {(int(row[1]), column): rate * _GIGA for column, rate in rates if rate}
                )
    results = tuple(_results(matrices, access, by_kernel="--sm_copy" in text))
    addresses = {
        int(match[1]): read_address(f"{match[4]}:{match[2]}:{match[3]}")
        for match in _DEVICE.finditer(text)
    }
    numbers = sorted({at for matrix in matrices for cell in matrix.cells for at in cell})
    all_listed = numbers == list(addresses) == list(range(len(addresses)))
    return Results(
        PROGRAM,
        results,
        tuple(addresses.values()) if all_listed else (),
        len(numbers) if numbers == list(range(len(numbers))) else 0,
        tuple(_left_out(matrices)),
    )


def _results(
    matrices: list[_Matrix], access: dict[tuple[int, int], bool], *, by_kernel: bool
) -> Iterator[Result]:
    """Yield the rates between two GPUs that have a direction, or both."""
    by_row = _by_row(matrices)
    for matrix in matrices:
        peer = "P2P" if matrix.peer else "no P2P"
        ways = "both ways" if matrix.both else "one way"
        for (row, column), rate in matrix.cells.items():
            if row == column or not (matrix.both or matrix.mover or by_row is not None):
                continue
            writes = matrix.mover == "Write" or (not matrix.mover and bool(by_row))
            ends = (gpu(row), gpu(column)) if writes else (gpu(column), gpu(row))
            reached = access.get((row, column)) if matrix.peer else False
            via = "peer-ram" if reached is False else ""
            unwritten = _ACCESS_UNKNOWN if reached is None else of_whole_path(via) if via else ""
            yield Result(
                f"{PROGRAM} {peer}, {ways}",
                *ends,
                rate,
                via=via,
                both=matrix.both,
                unwritten=BOTH_SUMMED if matrix.both else unwritten,
                rank=int(not by_kernel),
            )


def _by_row(matrices: list[_Matrix]) -> bool | None:
    """Return whether rows are the sources where a title does not say; `None` if nothing does.

    The release is told by the title of the matrix with peer access.
    """
    if any(matrix.mover for matrix in matrices):
        return True
    return False if any(matrix.peer and not matrix.both for matrix in matrices) else None


def _left_out(matrices: list[_Matrix]) -> Iterator[str]:
    if any(row == column for matrix in matrices for row, column in matrix.cells):
        yield DIAGONAL
    if _by_row(matrices) is None and any(not matrix.both for matrix in matrices):
        yield ("one way: which is told by the title of the P2P=Enabled matrix, and that is cut off")
    if not all(matrix.cells for matrix in matrices):
        yield "a matrix without a row of rates"
