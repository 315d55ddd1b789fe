"""nvbandwidth: copies between host and GPUs, and between GPUs, as JSON or as text.

Which way the data goes is told by a test's name, not by the arrows of its description: some
releases have those the wrong way round. A matrix holds texts, or ``N/A`` where GPUs do not reach
each other. Units are decimal. In a text a test's name stands above its matrices (``Running NAME.``)
and below each (``SUM NAME``), where a suffix tells which of three matrices it is.

References
----------
https://github.com/NVIDIA/nvbandwidth, ``json_output.cpp``, ``output.cpp`` and ``inline_common.h``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from topo.discovery.pci import read_address
from topo.measuring.results import (
    BOTH_SUMMED,
    OTHER_WAY_BUSY,
    RAM,
    Result,
    Results,
    gpu,
    mapping,
    number,
    objects,
    read_json,
    read_pasted,
    small_text,
)

_COPY: Final = re.compile(
    r"(?P<ends>host_to_device|device_to_host|device_to_device)(?P<both>_bidirectional)?"
    r"_memcpy(?:_(?P<way>read|write))?_(?P<engine>ce|sm)"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")
_COPY_UNITS: Final = {"(GB/s)": 1e9, "(GiB/s)": 2.0**30, "(MB/s)": 1e6}
JSON_MARK: Final = rb'"nvbandwidth"\s*:\s*\{'
MARK: Final = JSON_MARK + rb"|\bmemcpy (?:CE|SM) [CG]PU\(row\) [^\n]*bandwidth \("
_RUNNING: Final = re.compile(r"\bRunning (\w{1,80})\.")
_SUM: Final = re.compile(r"\s*SUM (\w{1,80})\s+[\d.]+\s*")
_BLOCK_NAME: Final = re.compile(r"_(?:read1|read2|write1|write2|total)$")
_MATRIX: Final = re.compile(r"\s*((?:memcpy|memory) .*\([\w/]+\))\s*")
_MATRIX_ROW: Final = re.compile(r"\s*\d{1,3}((?:\s+(?:[\d.]{1,12}|N/A))+)\s*")
_COLUMNS: Final = re.compile(r"(?:\s+\d{1,3})+\s*")
_DEVICE: Final = re.compile(r"\s*(?:\[[^\]]*\] )?Device \d{1,3}: (.*)")
_STATUS: Final = re.compile(r"\s*(Waived|WAIVED|ERROR|Error|FAILED)\b")
_MOST_GPUS: Final = 256
_BLOCKS: Final = 3  # of a bidirectional test between GPUs: one way, the other, the sum


def read(data: bytes, name: str) -> Results:
    """Read what ``nvbandwidth`` writes, with ``--json`` or without."""
    if re.search(JSON_MARK, data):
        root = mapping(read_json(data, name).get("nvbandwidth"))
    else:
        root = _from_text(read_pasted(data, name))
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


def _from_text(lines: Iterable[str]) -> dict[str, Any]:
    """Return what the program prints in the shape of its JSON."""
    cases: list[dict[str, Any]] = []
    rows: list[list[str]] | None = None
    named = columns = False
    devices: list[str] = []
    for line in lines:
        if match := _RUNNING.search(line):
            cases.append({"name": match[1], "status": "Passed", "bandwidth_matrix": []})
            rows, named = None, True
        elif match := _MATRIX.fullmatch(line):
            if not named:  # its first line is cut off: the one below its matrix names it
                cases.append({"name": "", "status": "Passed", "bandwidth_matrix": []})
            cases[-1]["bandwidth_description"] = match[1]
            rows, columns = cases[-1]["bandwidth_matrix"], False
        elif match := _SUM.fullmatch(line):
            if cases and not cases[-1]["name"]:
                cases[-1]["name"] = _BLOCK_NAME.sub("", match[1])
            rows = None
        elif rows is not None and not columns and _COLUMNS.fullmatch(line):
            columns = True
        elif rows is not None and columns and (match := _MATRIX_ROW.fullmatch(line)):
            rows.append(match[1].split())
        elif cases and named and _STATUS.match(line):
            cases[-1]["status"] = line.split(":")[0].strip()
        elif match := _DEVICE.fullmatch(line):
            devices.append(match[1])
    return {"testcases": cases, "GPU Device list": devices}


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
    unwritten = OTHER_WAY_BUSY if copy["both"] else ""
    # Of a text that breaks off between its blocks the first one is a direction by itself.
    for at, row in enumerate(grid[-count:] if summed else grid[:count]):
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
    if case.get("name") == "":
        return "a matrix: its test's name stands above it or below, and both are cut off"
    if status != "Passed" and isinstance(status, str):
        return f"{name}: {small_text(status).lower()}"
    if re.search(r"all_to|_to_all|to_one|one_to", name):
        return f"{name}: many GPUs at once, no rate of one pair"
    if _COPY.fullmatch(name):
        return f"{name}: no pair was measured"
    return f"{name}: no copy between two devices"
