"""Results of fio: reads and writes between storage and RAM, or a GPU by libcufile.

Reference: https://fio.readthedocs.io/en/latest/fio_doc.html
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
    from collections.abc import Iterator


_SIZE: Final = re.compile(r"(\d{1,12})\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_FIRST_DRIVE: Final = re.compile(r"/dev/(nvme\d+)n\d+(?:p\d+)?")
_CACHED: Final = "not O_DIRECT: the page cache may have answered"
_MIXED: Final = "reads and writes at once"
_SMALL: Final = "blocks below 128 KiB: operations a second, not bandwidth"


def read(data: bytes, name: str) -> Results:
    """Read fio's JSON.

    Raises
    ------
    ExchangeError
        If it is no JSON.
    """
    root = read_json(data, name)
    shared = root.get("global options")
    shared = shared if isinstance(shared, dict) else {}
    results: list[Result] = []
    left: list[str] = []
    for job in objects(root.get("jobs")):
        own = job.get("job options")
        options = {**shared, **(own if isinstance(own, dict) else {})}
        found = list(_results(job, options))
        results += found
        if not found:
            left.append(f"{small_text(job.get('jobname')) or 'a job'}: moved no data")
    if len(list(objects(root.get("jobs")))) > 1:
        results = [_at_once(result) for result in results]
    return Results("fio", tuple(results), left_out=tuple(left), date=_date(root))


def _at_once(result: Result) -> Result:
    from dataclasses import replace

    why = "one of several jobs, which may have run at once: use --group_reporting"
    return replace(result, unwritten=result.unwritten or why)


def _results(job: dict[str, Any], options: dict[str, Any]) -> Iterator[Result]:
    rates = {way: _rate(job.get(way)) for way in ("read", "write")}
    both = all(rates.values())
    job_name = small_text(job.get("jobname")) or "job"
    for way, rate in rates.items():
        if rate is None:
            continue
        drive, memory, via = _ends(job, options)
        source, target = (drive, memory) if way == "read" else (memory, drive)
        why = _MIXED if both else _why_not(options)
        yield Result(f"fio {job_name}, {way}", source, target, rate, via=via, unwritten=why)


def _rate(side: object) -> float | None:
    """Return bytes/s of one direction: `bw_bytes`, or the older `bw` in KiB/s."""
    if not isinstance(side, dict):
        return None
    exact = number(side.get("bw_bytes"))
    old = number(side.get("bw"))
    return exact or (old * 1024 if old else None)


def _ends(job: dict[str, Any], options: dict[str, Any]) -> tuple[End, End, str]:
    """Return the storage, the memory, and the data path where that is a GPU's."""
    said = next(
        (
            value
            for value in (options.get("filename"), job.get("jobname"))
            if isinstance(value, str) and value
        ),
        "",
    )
    found = _FIRST_DRIVE.search(said)
    drive = End("storage", name=found[1] if found else "")
    if options.get("ioengine") != "libcufile":
        return drive, RAM, ""
    gpus = str(options.get("gpu_dev_ids", "0")).split(":")
    first = int(gpus[0]) if gpus[0].isdecimal() and len(gpus[0]) < 4 else 0  # noqa: PLR2004
    via = "direct" if options.get("cuda_io", "cufile") == "cufile" else "odirect-pinned"
    return drive, gpu(first), via


def _why_not(options: dict[str, Any]) -> str:
    size = _bytes(options.get("bs", options.get("blocksize", "4k")))
    if size is not None and size < SMALL:
        return _SMALL
    if options.get("ioengine") == "libcufile":
        several = ":" in str(options.get("gpu_dev_ids", ""))
        return "several GPUs at once" if several else ""
    return "" if str(options.get("direct", "0")) == "1" else _CACHED


def _bytes(value: object) -> float | None:
    """Return the size of a block: fio's k is 1024."""
    found = _SIZE.fullmatch(str(value).split(",")[0].strip())
    return int(found[1]) * 1024.0 ** _POWERS[found[2].lower()] if found else None


def _date(root: dict[str, Any]) -> str:
    """Return the day of the run in UTC, ``""`` if the file does not tell."""
    stamp = number(root.get("timestamp"))
    if stamp is None or stamp > 253e9:  # noqa: PLR2004  (the year 9999)
        return ""
    return datetime.fromtimestamp(stamp, UTC).date().isoformat()
