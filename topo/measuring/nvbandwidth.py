"""Results of nvbandwidth: copies between host and GPUs, and between GPUs.

Which way the data goes is told by a test's name, not by the arrows of its description: some
releases have those the wrong way round. A matrix holds texts, or ``N/A`` where GPUs do not reach
each other. Units are decimal.

Reference: https://github.com/NVIDIA/nvbandwidth
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    RAM,
    Result,
    Results,
    gpu,
    number,
    objects,
    read_json,
    small_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.measuring.results import End


_TEST: Final = re.compile(
    r"(?P<ends>host_to_device|device_to_host|device_to_device)(?P<both>_bidirectional)?"
    r"_memcpy(?:_(?P<way>read|write))?_(?P<engine>ce|sm)"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")
_UNITS: Final = {"(GB/s)": 1e9, "(GiB/s)": 2.0**30, "(MB/s)": 1e6}
_MOST_GPUS: Final = 256
_BLOCKS: Final = 3  # of a bidirectional test between GPUs: one way, the other, the sum
_WHILE_BUSY: Final = "measured while the other direction was busy"
_SUM: Final = "a sum of both directions"


def read(data: bytes, name: str) -> Results:
    """Read nvbandwidth's JSON.

    Raises
    ------
    ExchangeError
        If it is no JSON.
    """
    root = read_json(data, name).get("nvbandwidth")
    root = root if isinstance(root, dict) else {}
    results: list[Result] = []
    left: list[str] = []
    for case in objects(root.get("testcases")):
        found = list(_results(case))
        results += found
        if not found:
            left.append(_why_not(case))
    listed = root.get("GPU Device list")
    texts = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    addresses = [seen[0] for text in texts if (seen := _ADDRESS.search(text))]
    return Results(
        "nvbandwidth",
        tuple(results),
        tuple(read_address(one) for one in addresses) if len(addresses) == len(texts) else (),
        max((one.number + 1 for each in results for one in (each.source, each.target)), default=0),
        tuple(left),
    )


def _results(case: dict[str, Any]) -> Iterator[Result]:
    """Yield the rates of one test."""
    test = case.get("name")
    found = _TEST.fullmatch(test) if isinstance(test, str) else None
    unit = _unit(case)
    rows = case.get("bandwidth_matrix")
    if found is None or unit is None or not isinstance(rows, list):
        return
    grid = [row for row in rows if isinstance(row, list)][: _MOST_GPUS * _BLOCKS]
    count = max(map(len, grid), default=0)
    between = found["ends"] == "device_to_device"
    three = bool(between and found["both"] and len(grid) == _BLOCKS * count)
    for at, row in enumerate(grid[-count:] if three else grid):
        for column, cell in enumerate(row[:_MOST_GPUS]):
            rate = number(cell)
            if rate is not None and not (between and at == column):
                ends = _ends(found, at, column)
                yield _result(found, ends, rate * unit, summed=three)


def _result(found: re.Match[str], ends: tuple[End, End], rate: float, *, summed: bool) -> Result:
    unwritten = ""
    if found["both"]:
        unwritten = _SUM if summed else _WHILE_BUSY
    return Result(
        test=f"nvbandwidth {found[0]}",
        source=ends[0],
        target=ends[1],
        rate=rate,
        both=summed,
        busy=bool(found["both"]) and not summed,
        unwritten=unwritten,
        rank=int(found["engine"] == "ce"),
    )


def _ends(found: re.Match[str], row: int, column: int) -> tuple[End, End]:
    """Return where the data starts and goes: a reading GPU is the row, a writing one as well."""
    if found["ends"] == "host_to_device":
        return RAM, gpu(column)
    if found["ends"] == "device_to_host":
        return gpu(column), RAM
    return (gpu(column), gpu(row)) if found["way"] == "read" else (gpu(row), gpu(column))


def _unit(case: dict[str, Any]) -> float | None:
    said = case.get("bandwidth_description")
    if not isinstance(said, str) or "(" not in said:
        return 1e9 if said is None else None
    return _UNITS.get(said[said.rindex("(") :].strip())


def _why_not(case: dict[str, Any]) -> str:
    """Return why a test gives no rate of a link or pair."""
    name, status = small_text(case.get("name")) or "a test", case.get("status")
    if status != "Passed" and isinstance(status, str):
        return f"{name}: {small_text(status).lower()}"
    if re.search(r"all_to|_to_all|to_one|one_to", name):
        return f"{name}: many GPUs at once, no rate of one pair"
    if _TEST.fullmatch(name):
        return f"{name}: no pair was measured"
    return f"{name}: no copy between two devices"
