"""What a sweep costs a design: in full, solved anew, and looked up; and what more workers bring.

    python -m bench.sweep [--machine NAME] [--workers 1,2,4] [--full N]

Processor time of this process for the first table, as multiples of one compare in full, since times
depend on the machine; a clock on the wall for the second, of designs that are all answered in full,
as multiples of this process alone. The second says something only where as many cores are idle.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from unittest.mock import patch

import topo
from topo.study.compare import compare
from topo.study.designs import Designs
from topo.study.solutions import Solutions
from topo.study.sweep import Sweep, axis_of, planned
from topo.study.variants import Outcome, Question
from topo.sweeps import engines

SAMPLE = 300
# 34,560 designs, whose four axes change rates only
RATES = {
    "ram.bus": [f"{100 + 25 * n} GB/s" for n in range(12)],
    "slot1.chip": [f"{30 + 3 * n} GB/s" for n in range(12)],
    "slot2.chip": [f"{30 + 3 * n} GB/s" for n in range(12)],
    "storage.read": [f"{80 + 2 * n} GB/s" for n in range(20)],
}


def rates_of_links(machine: str) -> dict[str, list[str]]:
    """Return axes of 34,560 designs as well: of the first links of a machine, and of its memories.

    Their values meet those of other links, and each other, in some hundred orders.
    """
    links = (link.name for link in topo.load(machine).links if link.layer == "host")
    first, second, third = islice(links, 3)
    return {
        "ram.bus": RATES["ram.bus"],
        f"{first}.rate": [f"{20 + 4 * n} GB/s" for n in range(12)],
        f"{second}.rate": [f"{20 + 4 * n} GB/s" for n in range(12)],
        f"{third}.rate": [f"{16 + 6 * n} GB/s" for n in range(20)],
    }


def swept(vary: Mapping[str, Sequence[str]], machine: str) -> Sweep:
    """Return the sweep of some axes over a built-in machine, by the legacy path."""
    axes = [axis_of(name, values) for name, values in vary.items()]
    return planned(topo.load(machine), axes, Question(via="legacy"))


def seconds_a_design(designs: Designs, numbers: Iterable[int]) -> float:
    """Return the processor time of one design."""
    count = 0
    start = time.process_time()
    for batch in designs.batches(numbers):
        count += len(designs.outcomes(batch))
    return (time.process_time() - start) / count


class Forgetful(Solutions):
    """Solutions that are never kept: each design is solved."""

    def keep(self, *_: object) -> None:
        """Forget it."""


def a_design(machine: str, vary: Mapping[str, Sequence[str]], of: str) -> None:
    """Print what a design costs, each way; `of` says what is varied."""
    sweep = swept(vary, machine)
    spread = range(0, sweep.count, sweep.count // SAMPLE)
    path = sweep.question.via
    variant = sweep.topology.replace(sweep.changes_of(sweep.design(0)))
    start = time.process_time()
    for _ in range(20):
        compare(variant, workload="load", via=(path,))
    whole = (time.process_time() - start) / 20
    in_full = seconds_a_design(Designs(sweep, quick=False), spread)
    with patch("topo.study.designs.Solutions", Forgetful):
        solved = seconds_a_design(Designs(sweep), range(4_000))
    looked_up = seconds_a_design(Designs(sweep), range(sweep.count))
    print(f"{machine}: {sweep.count:,} designs, {of}")
    for name, seconds in (
        ("compare, of a machine that is there", whole),
        ("a design in full", in_full),
        ("solved anew", solved),
        ("looked up where it is known", looked_up),
    ):
        times = f"1/{whole / seconds:.1f}" if seconds < whole else f"{seconds / whole:.2f}"
        print(f"  {name:38} {seconds * 1e6:9.1f} us   {times:>8} compare")


def by_workers(machine: str, counts: Iterable[int], full: int) -> None:
    """Print how long so many designs take that are answered in full, by workers."""
    per_axis = max(2, round(full ** (1 / 3)))
    parts = {
        # an axis of cables makes each design one of its own
        "settings.filesystem": [f"fs{n}" for n in range(per_axis)],
        "slot1.label": [f"a{n}" for n in range(per_axis)],
        "slot2.label": [f"b{n}" for n in range(per_axis)],
    }
    sweep = swept(parts, machine)
    print(f"{machine}: {sweep.count:,} designs in full, {os.cpu_count()} cores")
    alone: float | None = None
    rows: dict[int, Outcome] | None = None
    for count in (0, *counts):
        engine = engines.processes(count) if count else engines.here
        start = time.perf_counter()
        answers = engines.answer_all(sweep, range(sweep.count), engine)
        outcomes = dict(sorted(pair for answered in answers for pair in answered))
        wall = time.perf_counter() - start
        alone, rows = alone or wall, rows or outcomes
        assert outcomes == rows, "whoever answers, it is the same"
        name = f"{count} workers" if count else "this process"
        print(f"  {name:38} {wall:9.2f} s    {alone / wall:8.2f} x")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="gds-textbook")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--full", type=int, default=1_000)
    arguments = parser.parse_args()
    a_design(arguments.machine, RATES, "figures of devices")
    a_design(arguments.machine, rates_of_links(arguments.machine), "rates of links")
    by_workers(arguments.machine, map(int, arguments.workers.split(",")), arguments.full)


if __name__ == "__main__":
    main()
