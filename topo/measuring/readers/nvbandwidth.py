"""nvbandwidth: copies between host and GPUs, and between GPUs.

Which way the data goes is told by a test's name, not by the arrows of its description: some
releases have those the wrong way round. A matrix holds texts, or ``N/A`` where GPUs do not reach
each other. Units are decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    BOTH_SUMMED,
    RAM,
    Result,
    Results,
    gpu,
    number,
    objects,
    read_json,
    small_text,
)

_COPY: Final = re.compile(
    r"(?P<ends>host_to_device|device_to_host|device_to_device)(?P<both>_bidirectional)?"
    r"_memcpy(?:_(?P<way>read|write))?_(?P<engine>ce|sm)"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")
_COPY_UNITS: Final = {"(GB/s)": 1e9, "(GiB/s)": 2.0**30, "(MB/s)": 1e6}
_MOST_GPUS: Final = 256
_BLOCKS: Final = 3  # of a bidirectional test between GPUs: one way, the other, the sum


def read(data: bytes, name: str) -> Results:
    """Read what ``nvbandwidth --json`` writes."""
    root = read_json(data, name).get("nvbandwidth")
    root = root if isinstance(root, dict) else {}
    results: list[Result] = []
    left_out: list[str] = []
    for case in objects(root.get("testcases")):
        copies = list(_copies(case))
        results += copies
        if not copies:
            left_out.append(_no_copy(case))
    devices = root.get("GPU Device list")
    texts = [text for text in devices if isinstance(text, str)] if isinstance(devices, list) else []
    addresses = [match[0] for match in map(_ADDRESS.search, texts) if match]
    ends = [end for result in results for end in (result.source, result.target)]
    return Results(
        "nvbandwidth",
        tuple(results),
        tuple(map(read_address, addresses)) if len(addresses) == len(texts) else (),
        max((end.number + 1 for end in ends), default=0),
        tuple(left_out),
    )


def _copies(case: dict[str, Any]) -> Iterator[Result]:
    """Yield the rates of one test."""
    test = case.get("name")
    copy = _COPY.fullmatch(test) if isinstance(test, str) else None
    description = case.get("bandwidth_description")
    unit = 1e9 if description is None else None
    if isinstance(description, str) and "(" in description:
        unit = _COPY_UNITS.get(description[description.rindex("(") :].strip())
    rows = case.get("bandwidth_matrix")
    if copy is None or unit is None or not isinstance(rows, list):
        return
    grid = [row for row in rows if isinstance(row, list)][: _MOST_GPUS * _BLOCKS]
    count = max(map(len, grid), default=0)
    between = copy["ends"] == "device_to_device"
    summed = bool(between and copy["both"] and len(grid) == _BLOCKS * count)
    unwritten = "measured while the other direction was busy" if copy["both"] else ""
    for at, row in enumerate(grid[-count:] if summed else grid):
        for column, cell in enumerate(row[:_MOST_GPUS]):
            rate = number(cell)
            if rate is None or (between and at == column):
                continue
            # A reading GPU is the row, and so is a writing one.
            ends = (gpu(column), gpu(at)) if copy["way"] == "read" else (gpu(at), gpu(column))
            if not between:
                to_gpu = copy["ends"] == "host_to_device"
                ends = (RAM, gpu(column)) if to_gpu else (gpu(column), RAM)
            yield Result(
                f"nvbandwidth {copy[0]}",
                *ends,
                rate * unit,
                both=summed,
                busy=bool(copy["both"]) and not summed,
                unwritten=BOTH_SUMMED if summed else unwritten,
                rank=int(copy["engine"] == "ce"),
            )


def _no_copy(case: dict[str, Any]) -> str:
    """Return why a test gives no rate of a link or pair."""
    name, status = small_text(case.get("name")) or "a test", case.get("status")
    if status != "Passed" and isinstance(status, str):
        return f"{name}: {small_text(status).lower()}"
    if re.search(r"all_to|_to_all|to_one|one_to", name):
        return f"{name}: many GPUs at once, no rate of one pair"
    if _COPY.fullmatch(name):
        return f"{name}: no pair was measured"
    return f"{name}: no copy between two devices"
