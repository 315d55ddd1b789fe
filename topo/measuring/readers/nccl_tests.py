"""nccl-tests and rccl-tests, their table or the JSON of ``-J``: which collective, its GPUs, rates.

A table does not say of which program it is: that is told by a command line above it, where somebody
kept it, else by how the bus bandwidth follows from the algorithm bandwidth, by `redop` and `root`.

References
----------
https://github.com/NVIDIA/nccl-tests, ``src/common.cu`` and ``doc/PERFORMANCE.md``;
https://github.com/ROCm/rccl-tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from topo.description.description import ROOTED, Collective
from topo.measuring.results import (
    CollectiveRun,
    Rank,
    Results,
    mapping,
    number,
    objects,
    read_json,
    small_text,
)
from topo.records import dataclass

_PROGRAMS: Final[Mapping[str, Collective]] = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_OTHERS: Final = ("sendrecv", "gather", "scatter", "hypercube", "alltoallv")  # programs beside them
_PROGRAM: Final = re.compile(rf"\b({'|'.join((*_PROGRAMS, *_OTHERS))})_perf")
_HEADER: Final = re.compile(r"\bsize\s+count\s+type\b.*\balgbw\s+busbw\b.*")
_RANK: Final = re.compile(
    r"\bRank\s+(?P<rank>\d{1,6})\b.*?\bon\s+(?P<host>\S+)\s+device\s+(?P<device>\d{1,4})\s+"
    r"\[(?P<address>[0-9a-fA-Fx:.]{1,16})\]"
)
_LARGE: Final = 1 << 20  # bytes: below, latency is measured
_MOST: Final = 1e6  # GB/s: beyond, a number is damaged
_MOST_ROWS: Final = 100_000
_MOST_GPUS: Final = 4096
_GIGA: Final = 1e9
_FEWER: Final = 1.25  # times the ranks that are listed, from where the rates tell of more
_NEAR: Final = 0.03  # of a ratio of two rates that are written with two digits
MARK: Final = rb'\bsize[ \t]+count[ \t]+type\b[^\n]*\balgbw[ \t]+busbw\b|"bus_bw"\s*:'


def read(data: bytes, name: str) -> Results:
    """Read the tables of a text, or one run of JSON."""
    text = data.decode("utf-8-sig", "replace")
    runs = read_runs(text)
    if not runs and '"bus_bw"' in text:
        runs = _runs_of_json(read_json(data, name))
    return Results("nccl-tests", collectives=runs)


def read_runs(text: str) -> tuple[CollectiveRun, ...]:
    """Return the fastest row of each table of a text; tables without a row give none.

    Examples
    --------
    >>> (run,) = read_runs('''# all_gather_perf -g 4
    ... #  size  count  type  redop  root  time  algbw  busbw  #wrong
    ... 1048576 262144 float none -1 10.5 100.0 75.0 0
    ... ''')
    >>> run.kind, run.bus_rate, run.count
    ('all-gather', 75000000000.0, 4)
    """
    runs: list[CollectiveRun] = []
    program, ranks, columns = "", dict[int, Rank](), list[str]()
    rows: list[_Row] = []

    def finish() -> None:
        if rows:
            runs.append(_run(program, tuple(ranks[at] for at in sorted(ranks)), rows))
        rows.clear()

    for line in text.splitlines():
        if match := _PROGRAM.search(line):
            finish()
            program, columns = match[1], []
        elif match := _RANK.search(line):
            if columns:  # of the next run, without its command
                finish()
                program, columns = "", []
                ranks = {}
            ranks[int(match["rank"])] = Rank(match["host"], int(match["device"]), match["address"])
        elif match := _HEADER.search(line):
            finish()
            columns = match[0].split()
        elif columns and len(rows) < _MOST_ROWS and (row := _row(columns, line)) is not None:
            rows.append(row)
    finish()
    return tuple(runs)


def _runs_of_json(root: dict[str, Any]) -> tuple[CollectiveRun, ...]:
    """Return the run of a JSON document, none where it has no row.

    Of each process it lists the first GPU alone; those after it have the numbers that follow.
    """
    config = mapping(root.get("config"))
    threads, gpus = (
        int(min(number(config.get(key)) or 1, _MOST_GPUS)) for key in ("nthreads", "ngpus")
    )
    ranks = tuple(
        Rank(
            small_text(device.get("hostname")),
            first + at,
            small_text(device.get("device_hex"), most=16) if at == 0 else "",
        )
        for device in objects(config.get("devices"))
        if isinstance(first := device.get("device"), int) and 0 <= first < _MOST_GPUS
        for at in range(min(threads * gpus, _MOST_GPUS))
    )[:_MOST_GPUS]
    rows = [row for result in objects(root.get("results")) if (row := _row_of_json(result))]
    arguments = root.get("args")
    first_argument = arguments[0] if isinstance(arguments, list) and arguments else ""
    program = _PROGRAM.search(small_text(first_argument, most=400))
    return (_run(program[1] if program else "", ranks, rows),) if rows else ()


def _row_of_json(result: dict[str, Any]) -> _Row | None:
    sides = [result.get(key) for key in ("out_of_place", "in_place")]
    pairs = [
        (rate, bus)
        for side in sides
        if isinstance(side, dict)
        if (rate := _in_range(side.get("alg_bw"))) and (bus := _in_range(side.get("bus_bw")))
    ]
    size = number(result.get("size"))
    if not pairs or not size:
        return None
    root = str(result.get("root", "")).strip()
    return _Row(
        int(size),
        small_text(result.get("redop")).strip(),
        int(root) if re.fullmatch(r"-?\d{1,6}", root) else -1,
        *max(pairs, key=lambda pair: pair[1]),
    )


def _in_range(value: object) -> float:
    rate = number(value) or 0.0
    return rate if rate < _MOST else 0.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One row: in place or out of place, whichever is faster, in GB/s."""

    size: int
    operation: str
    root: int
    algorithm_rate: float
    bus_rate: float


def _row(columns: list[str], line: str) -> _Row | None:
    """Return a row of a table; `None` for a line that is none, or breaks off."""
    words = line.split()[-len(columns) :]
    if len(words) < len(columns) or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    pairs = [
        (rate, bus)
        for at, column in enumerate(columns[:-1])
        if (column, columns[at + 1]) == ("algbw", "busbw")
        if (rate := _number(words[at])) is not None and (bus := _number(words[at + 1])) is not None
    ]
    if not pairs or len(words[0]) > len(str(1 << 62)):
        return None
    named = dict(zip(columns, words, strict=True))
    root = named.get("root", "-1")
    algorithm_rate, bus_rate = max(pairs, key=lambda pair: pair[1])
    root_rank = int(root) if re.fullmatch(r"-?\d{1,6}", root) else -1
    return _Row(int(words[0]), named.get("redop", ""), root_rank, algorithm_rate, bus_rate)


def _number(text: str) -> float | None:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        return None
    value = float(text)
    return value if 0 < value < _MOST else None


def _run(program: str, ranks: tuple[Rank, ...], rows: list[_Row]) -> CollectiveRun:
    large = [row for row in rows if row.size >= _LARGE]
    best = max(large or rows, key=lambda row: (row.bus_rate, row.size))
    ratio = best.bus_rate / best.algorithm_rate
    kind = _PROGRAMS.get(program, "") or ("" if program else _kind(best, ratio, len(ranks)))
    count = _count(kind, ratio)
    if len(ranks) * _FEWER >= count:
        count = len(ranks)
    else:  # somebody cut the list short
        ranks = ()
    unknown = ""
    if program in _OTHERS:
        unknown = f"{program}_perf, which is none of the collectives that topo computes"
    elif not kind:
        unknown = "which collective it was is not said: keep the command's line above the table"
    elif not large:
        unknown = "all sizes are below 1 MiB: latency is measured, not bandwidth"
    elif count == 1:
        unknown = "one GPU alone"
    return CollectiveRun(
        kind,
        best.size,
        best.algorithm_rate * _GIGA,
        best.bus_rate * _GIGA,
        ranks,
        count,
        best.root,
        unknown,
    )


def _kind(row: _Row, ratio: float, count: int) -> str:
    """Return the collective by the ratio of its rates, ``""`` where several have that."""

    def near(expected: float) -> bool:
        return abs(ratio - expected) <= _NEAR * expected

    if row.root >= 0 and near(1.0):
        return "broadcast" if row.operation == "none" else "reduce"
    if count > 1 and near(2 * (count - 1) / count):
        return "all-reduce"
    adds = row.operation not in ("", "none")
    return "reduce-scatter" if adds and count > 1 and near((count - 1) / count) else ""


def _count(kind: str, ratio: float) -> int:
    """Return of how many GPUs the ratio of its rates tells, 0 where it does not."""
    share = 1 - (ratio / 2 if kind == "all-reduce" else ratio)
    tells = kind not in ("", *ROOTED) and _NEAR < share < 1
    return round(1 / share) if tells else 0
