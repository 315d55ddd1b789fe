"""TransferBench: the matrices of its preset `p2p`, and transfers that a file or command line names.

Data goes from the row to the column, or as the arrows of a transfer say (``G0 -> D000:001 -> G1``:
source, executor, target). A CPU is a NUMA node. What CPU cores copy, or several transfers at once,
is no rate of one link. GB are decimal.

References
----------
https://github.com/ROCm/TransferBench, ``src/TransferBench.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    BOTH_SUMMED,
    DIAGONAL,
    OTHER_WAY_BUSY,
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
    small_text,
)

PROGRAM: Final = "TransferBench"
MARK: Final = (
    rb"directional copy peak bandwidth GB/s \[\w+ read / \w+ write\]"
    rb"|\bTransfer \d{1,4} *(?:\||,|\xe2\x94\x82)? *[\d.]+ GB/s|\bTransferBench v\d"
)
_TITLE: Final = re.compile(
    r"\b(?P<ways>Uni|Bi)directional copy peak bandwidth GB/s "
    r"\[(?P<read>Local|Remote) read / \w+ write\]"
    r"(?: \(GPU-Executor: (?P<engine>\w{1,8})\))?"
)
_OTHER_TABLE: Final = re.compile(
    r"copy peak bandwidth|\bAverages \(|\bSummary\b|All-To-All", re.IGNORECASE
)
_DEVICE: Final = re.compile(r"\b([CG])PU (\d{1,3})\b")
_HEADER: Final = re.compile(r"\s*SRC\S*DST\b.*")
_ROW: Final = re.compile(r"\s*([CG])PU (\d{1,3})\s*(->|<->|<-)((?:\s+(?:[\d.]{1,14}|N/A))+)\s*")
_LISTED: Final = re.compile(
    r"\s*GPU (\d{1,3})\b.*?((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b.*"
)
_TEST: Final = re.compile(r"\s*(?:-+ )?Test (\d{1,6})\b.*")
_TRANSFER: Final = re.compile(
    r"\bTransfer (\d{1,6})\b[\s|]*([\d.]{1,12})\s*GB/s[\s|]*[\d.]{1,14}\s*ms[\s|]*"
    r"(\d{1,16})\s*bytes[\s|]*\(?([A-Z][A-Z0-9]{0,40})\s*->\s*([A-Z][\d:.]{1,20})\s*->\s*([A-Z][A-Z0-9]{0,40})"
)
_MEMORY: Final = re.compile(r"([A-Z])(\d{1,3})")
# Memories by their letters; releases that write single digits have further ones. P is pinned RAM
# near the GPU of its number, H pageable RAM.
_RAM: Final = "CBUH"
_NEWER_RAM: Final = "CBDHP"
_NEAR_A_GPU: Final = "P"
_GPU: Final = "GF"
_PAGEABLE: Final = "UH"
_GIGA: Final = 1e9
_BY_CORES: Final = "copies by CPU cores: what these reach is no rate of a link"
_SEVERAL: Final = "one of several transfers at once"


def read(data: bytes, name: str) -> Results:
    """Read what the program prints, as text or with ``OUTPUT_TO_CSV=1``."""
    lines = [line.replace(",", " ").replace("│", "|") for line in read_pasted(data, name)]
    listed = {
        int(match[1]): read_address(match[2])
        for match in (_LISTED.fullmatch(line) for line in lines)
        if match is not None
    }
    addresses = [listed[at] for at in sorted(listed)]
    left_out: dict[str, None] = {}
    results = (*_of_matrices(lines, left_out), *_of_transfers(lines, left_out))
    numbers = [
        end.number
        for result in results
        for end in (result.source, result.target)
        if end.kind == "gpu"
    ]
    are_all = sorted(listed) == list(range(len(listed)))
    return Results(
        PROGRAM,
        results,
        tuple(addresses) if are_all else (),
        len(listed) if are_all and listed else max(numbers, default=-1) + 1,
        tuple(left_out),
    )


def _of_matrices(lines: list[str], left_out: dict[str, None]) -> Iterator[Result]:
    title: re.Match[str] | None = None
    columns: list[End] = []
    for line in lines:
        if match := _TITLE.search(line):
            title, columns = match, []
        elif _OTHER_TABLE.search(line):
            title = None
        elif title and _HEADER.fullmatch(line):
            columns = [_end(kind, at) for kind, at in _DEVICE.findall(line)]
        elif title and columns and (match := _ROW.fullmatch(line)):
            row = _end(match[1], match[2])
            for column, text in zip(columns, match[4].split(), strict=False):
                rate = number(text)
                if rate is None:
                    continue
                if row == column:
                    left_out[DIAGONAL] = None
                if row == column or row.kind == column.kind == "ram":
                    continue
                cell = _cell(title, match[3], row, column, rate * _GIGA)
                if cell is None:
                    left_out[_BY_CORES] = None
                else:
                    yield cell


def _end(kind: str, at: str) -> End:
    return gpu(int(at)) if kind == "G" else ram(int(at))


def _cell(title: re.Match[str], arrow: str, row: End, column: End, rate: float) -> Result | None:
    """Return one rate of a matrix: a way alone, beside the other way, or the sum of both.

    Cores move it where they are the executor, which is at the source unless reads are remote.
    """
    source, target = (column, row) if arrow == "<-" else (row, column)
    two_ways, both = title["ways"] == "Bi", arrow == "<->"
    mover = target if title["read"] == "Remote" else source
    if mover.kind == "ram" or (both and "ram" in (row.kind, column.kind)):
        return None
    return Result(
        f"{PROGRAM} p2p {'both ways' if two_ways else 'one way'}, by {title['engine'] or 'GPU'}",
        source,
        target,
        rate,
        both=both,
        busy=two_ways and not both,
        unwritten=BOTH_SUMMED if both else OTHER_WAY_BUSY if two_ways else "",
        rank=int(title["engine"] == "DMA"),
    )


def _of_transfers(lines: list[str], left_out: dict[str, None]) -> Iterator[Result]:
    """Yield the transfers that tests name; those of one test run at once."""
    tests: list[list[re.Match[str]]] = [[]]
    for line in lines:
        if _TEST.fullmatch(line):
            tests.append([])
        elif match := _TRANSFER.search(line):
            tests[-1].append(match)
    for transfers in tests:
        for match in transfers:
            result = _transfer(match, several=len(transfers) > 1)
            if isinstance(result, str):
                left_out[result] = None
            else:
                yield result


def _transfer(match: re.Match[str], *, several: bool) -> Result | str:
    rate, (source, mover, target) = number(match[2]), match.group(4, 5, 6)
    rams = _NEWER_RAM if len(match[1]) == 1 else _RAM
    ends: list[End] = []
    for text in (source, target):
        memory = _MEMORY.fullmatch(text)
        if memory and memory[1] in _GPU:
            ends.append(gpu(int(memory[2])))
        elif memory and memory[1] in rams:
            ends.append(RAM if memory[1] == _NEAR_A_GPU else ram(int(memory[2])))
    words = small_text(f"{source} -> {mover} -> {target}")
    if rate is None or len(ends) < len(("source", "target")):
        return f"transfer {words}: no copy between one memory and another"
    if ends[0] == ends[1] or all(end.kind == "ram" for end in ends):
        return f"transfer {words}: no link of a GPU"
    if mover.startswith("C"):
        return _BY_CORES
    why = SMALL_BLOCKS if int(match[3]) < SMALL else ""
    if several:
        why = _SEVERAL
    elif any(end.kind == "ram" for end in ends) and {source[0], target[0]} & {*_PAGEABLE}:
        why = "memory that is not pinned"
    return Result(
        f"{PROGRAM} {words}",
        ends[0],
        ends[1],
        rate * _GIGA,
        unwritten=why,
        rank=int(mover.startswith("D")),
    )
