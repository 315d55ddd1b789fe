"""DLIO's ``summary.json`` (MLPerf Storage): what a training's accelerators read, and checkpoints.

The rate is of all accelerators together: samples a second times a record's bytes, and what is
called MB and GB there divides by 1024. Accelerators are made up, so data ends in RAM. At a high
use (``au``) it is what they asked for, and storage may give more.

References
----------
https://github.com/argonne-lcf/dlio_benchmark, ``dlio_benchmark/utils/statscounter.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from topo.measuring.results import RAM, STORAGE, Result, Results, mapping, number, read_json

PROGRAM: Final = "dlio"
MARK: Final = (
    rb'"(?:train|eval)_io_mean_MB_per_second"|"(?:save|load)_checkpoint_io_mean_GB_per_second"'
)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(?=T)")


def read(data: bytes, name: str) -> Results:
    """Read one summary."""
    root = read_json(data, name)
    hosts = number(root.get("num_hosts")) or 1.0
    results = tuple(_results(root, mapping(root.get("metric"))))
    several = f"a rate of {hosts:.0f} hosts together"
    start = root.get("start")
    day = _DAY.match(start) if isinstance(start, str) else None
    return Results(
        PROGRAM,
        () if hosts > 1 else results,
        left_out=tuple(f"{result.test}: {several}" for result in results if hosts > 1),
        date=day[0] if day else "",
    )


def _results(root: dict[str, Any], metric: dict[str, Any]) -> Iterator[Result]:
    count = number(root.get("num_accelerators"))
    of_all = f", {count:.0f} accelerators" if count else ""
    for phase in ("train", "eval"):
        rate = number(metric.get(f"{phase}_io_mean_MB_per_second"))
        if rate is None:
            continue
        use = number(metric.get(f"{phase}_au_mean_percentage"))
        of_each = f", {rate * 2.0**20 / count / 1e9:.3g} GB/s each" if count else ""
        busy = f" {use:.3g} % busy" if use else ""
        why = f"what accelerators{busy} asked for, not the most that storage gives"
        if root.get("potential_caching") is True:
            why = "less data than the host's memory: the page cache may have answered"
        yield Result(f"dlio {phase}{of_all}{of_each}", STORAGE, RAM, rate * 2.0**20, unwritten=why)
    for phase, ends in (("save", (RAM, STORAGE)), ("load", (STORAGE, RAM))):
        rate = number(metric.get(f"{phase}_checkpoint_io_mean_GB_per_second"))
        if rate is not None:
            why = "a checkpoint's mean, with what serializing it costs"
            yield Result(
                f"dlio {phase} of checkpoints{of_all}", *ends, rate * 2.0**30, unwritten=why
            )
