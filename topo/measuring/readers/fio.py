"""fio: reads and writes between storage and RAM, or a GPU by libcufile, as JSON or as text.

A text has a line for each group of jobs, in IEC units first (in fio 2, ``KB`` is 1024 bytes). It
tells block size and engine, but neither file nor O_DIRECT: these stand in the command, if kept.

References
----------
https://github.com/axboe/fio, ``stat.c``, ``lib/num2str.c`` and ``init.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from topo.measuring.results import (
    CACHED,
    POWERS,
    RAM,
    End,
    Result,
    Results,
    gpu,
    is_small,
    mapping,
    number,
    objects,
    read_json,
    read_pasted,
    small_text,
)

_DRIVE: Final = re.compile(r"/dev/(nvme\d+)n\d+(?:p\d+)?")
JSON_MARK: Final = rb'"fio version"\s*:'
MARK: Final = JSON_MARK + rb"|(?m:^[ \t>]*(?:READ|WRITE): (?:bw=|io=\S+, aggrb=))"
_GROUP: Final = re.compile(r"\s*Run status group (\d{1,6})\b.*")
_HEAD: Final = re.compile(
    r"\s*(\S.{0,200}?): \(g=(\d{1,6})\): rw=(\w{1,12}), bs=(.*?), ioengine=(\w{1,20}).*"
)
_MOVED: Final = re.compile(
    r"\s*(READ|WRITE): (?:io=\S+, )?(?:bw|aggrb)=([\d.]{1,16})\s?([KkMGT]?)(i?)(B|bit)/s\b.*"
)
_COMMAND: Final = re.compile(r"(?:.*[\s/$#])?fio\s(.*--.*)")
_OPTION: Final = re.compile(r"--(\w{1,40})[= ](\S{1,200})")
_DAY: Final = re.compile(r"\bpid=\d+: \w{3} (\w{3}) +(\d{1,2}) [\d:]{8} (\d{4})\b")
# English whatever the locale is, which `calendar` goes by.
_MONTHS: Final = tuple(re.findall("...", "JanFebMarAprMayJunJulAugSepOctNovDec"))
_UNTOLD: Final = "untold"
_MOST_JOBS: Final = 10_000
_YEAR_9999: Final = 253e9  # seconds since 1970


def read(data: bytes, name: str) -> Results:
    """Read what ``fio`` writes, with ``--output-format=json`` or without."""
    is_json = re.search(JSON_MARK, data) is not None
    root = read_json(data, name) if is_json else _from_text(read_pasted(data, name))
    shared = mapping(root.get("global options"))
    results: list[Result] = []
    left_out: list[str] = []
    jobs = list(objects(root.get("jobs")))
    for job in jobs:
        moved = list(_moved(job, {**shared, **mapping(job.get("job options"))}))
        results += moved
        if not moved:
            left_out.append(f"{small_text(job.get('jobname')) or 'a job'}: moved no data")
    if len(jobs) > 1:
        why = "one of several jobs, which may have run at once: use --group_reporting"
        results = [replace(result, unwritten=result.unwritten or why) for result in results]
    stamp = number(root.get("timestamp"))
    date = str(root.get("date", "")) if not is_json else ""
    if stamp is not None and stamp <= _YEAR_9999:
        date = datetime.fromtimestamp(stamp, UTC).date().isoformat()
    return Results("fio", tuple(results), left_out=tuple(left_out), date=date)


def _from_text(lines: list[str]) -> dict[str, Any]:
    """Return what a text tells in the shape of the JSON: one job for each group of jobs."""
    given: dict[str, Any] = {"direct": _UNTOLD}
    heads: dict[str, dict[str, Any]] = {}  # by group, what the first of its jobs says
    jobs: dict[str, dict[str, Any]] = {}
    group, binary, date = "", False, ""
    for line in lines:
        binary = binary or line.startswith("fio-2.")
        if match := _HEAD.fullmatch(line):
            options = {
                "bs": match[4].split("-")[0].removeprefix("(R)").strip(),
                "ioengine": match[5],
            }
            heads.setdefault(match[2], {"jobname": match[1], "job options": options})
        elif match := _GROUP.fullmatch(line):
            group = match[1]
            if len(jobs) < _MOST_JOBS:
                head = heads.get(group, {"jobname": f"group {group}"})
                jobs[group] = {**head, "job options": {**given, **head.get("job options", {})}}
        elif (match := _MOVED.fullmatch(line)) and group in jobs:
            base = 1024.0 if match[4] or binary else 1000.0
            rate = number(match[2]) or 0.0
            rate *= base ** POWERS[match[3].lower()] / (8 if match[5] == "bit" else 1)
            jobs[group][match[1].lower()] = {"bw_bytes": rate}
        elif match := _DAY.search(line):
            month = _MONTHS.index(match[1]) + 1 if match[1] in _MONTHS else 0
            date = f"{match[3]}-{month:02}-{int(match[2]):02}" if month else ""
        elif match := _COMMAND.fullmatch(line):
            given |= dict(_OPTION.findall(match[1]))
            if given["direct"] == _UNTOLD and "--filename" in match[1]:
                given["direct"] = "0"  # all is said on the command's line, and this is not
    return {"jobs": list(jobs.values()), "date": date}


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
    if is_small(str(options.get("bs", options.get("blocksize", "4k"))).split(",")[0].strip()):
        return "blocks below 128 KiB: operations a second, not bandwidth"
    if options.get("ioengine") == "libcufile":
        return "several GPUs at once" if ":" in str(options.get("gpu_dev_ids", "")) else ""
    if options.get("direct") == _UNTOLD:
        return "whether O_DIRECT was used is not told: keep the command, or --output-format=json"
    return "" if str(options.get("direct", "0")) == "1" else CACHED
