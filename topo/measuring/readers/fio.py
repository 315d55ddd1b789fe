"""fio: reads and writes between storage and RAM, or a GPU by libcufile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from topo.measuring.results import (
    RAM,
    SMALL,
    End,
    Result,
    Results,
    gpu,
    number,
    objects,
    read_json,
    small_text,
)

_BLOCK: Final = re.compile(r"(\d{1,12})\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DRIVE: Final = re.compile(r"/dev/(nvme\d+)n\d+(?:p\d+)?")
_YEAR_9999: Final = 253e9  # seconds since 1970


def read(data: bytes, name: str) -> Results:
    """Read what ``fio --output-format=json`` writes."""
    root = read_json(data, name)
    shared = root.get("global options")
    shared = shared if isinstance(shared, dict) else {}
    results: list[Result] = []
    left_out: list[str] = []
    jobs = list(objects(root.get("jobs")))
    for job in jobs:
        options = job.get("job options")
        moved = list(_moved(job, {**shared, **(options if isinstance(options, dict) else {})}))
        results += moved
        if not moved:
            left_out.append(f"{small_text(job.get('jobname')) or 'a job'}: moved no data")
    if len(jobs) > 1:
        why = "one of several jobs, which may have run at once: use --group_reporting"
        results = [replace(result, unwritten=result.unwritten or why) for result in results]
    stamp = number(root.get("timestamp"))
    date = ""
    if stamp is not None and stamp <= _YEAR_9999:
        date = datetime.fromtimestamp(stamp, UTC).date().isoformat()
    return Results("fio", tuple(results), left_out=tuple(left_out), date=date)


def _moved(job: dict[str, Any], options: dict[str, Any]) -> Iterator[Result]:
    """Yield what a job read and what it wrote."""
    rates: dict[str, float] = {}
    for direction in ("read", "write"):
        side = job.get(direction)
        if isinstance(side, dict):
            older = number(side.get("bw")) or 0.0  # KiB/s
            rates[direction] = number(side.get("bw_bytes")) or older * 1024
    rates = {direction: rate for direction, rate in rates.items() if rate}
    names = (options.get("filename"), job.get("jobname"))
    name = next((text for text in names if isinstance(text, str) and text), "")
    match = _DRIVE.search(name)
    drive, memory, via = End("storage", name=match[1] if match else ""), RAM, ""
    if options.get("ioengine") == "libcufile":
        first = str(options.get("gpu_dev_ids", "0")).split(":")[0]
        memory = gpu(int(first) if re.fullmatch(r"\d{1,3}", first) else 0)
        via = "direct" if options.get("cuda_io", "cufile") == "cufile" else "odirect-pinned"
    why = "reads and writes at once" if len(rates) > 1 else _why_no_bandwidth(options)
    test = f"fio {small_text(job.get('jobname')) or 'job'}"
    for direction, rate in rates.items():
        ends = (drive, memory) if direction == "read" else (memory, drive)
        yield Result(f"{test}, {direction}", *ends, rate, via=via, unwritten=why)


def _why_no_bandwidth(options: dict[str, Any]) -> str:
    """Return why a job's rate is none of the storage: small blocks, several GPUs, the cache."""
    size = str(options.get("bs", options.get("blocksize", "4k"))).split(",")[0].strip()
    match = _BLOCK.fullmatch(size)
    # fio's k is 1024.
    if match and int(match[1]) * 1024.0 ** _POWERS[match[2].lower()] < SMALL:
        return "blocks below 128 KiB: operations a second, not bandwidth"
    if options.get("ioengine") == "libcufile":
        return "several GPUs at once" if ":" in str(options.get("gpu_dev_ids", "")) else ""
    cached = "not O_DIRECT: the page cache may have answered"
    return "" if str(options.get("direct", "0")) == "1" else cached
