"""What commands cost from a cold start, as multiples of ``python -c pass``, part by part.

Each is a whole process: interpreter, imports, work, output. Processor time is taken, not that of a
clock on the wall, and the commands are run in turn, round after round, so that a busy machine slows
all of them alike; the median of the rounds counts. Times depend on the machine, the ratio to an
interpreter that does nothing much less so. A copy of the package is run twice: with its bytecode
kept, and without any, as in a container that forbids writing it.

    python bench/cold_start.py [--rounds N] [--parts]

It reports and never fails: a number over its budget is for a person to judge.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Budget(NamedTuple):
    """How many times the empty interpreter a command should take, and may take at most."""

    wanted: float
    most: float


BUDGETS = {
    "--help": Budget(5, 8),
    "schema": Budget(5, 8),
    "check dgx-h100": Budget(10, 15),
    "compare dgx-h100": Budget(15, 25),
}
ROUNDS = 15
EMPTY = "python -c pass"
ROOT = Path(__file__).resolve().parents[1]
LEAST_SHOWN_MS = 0.5
# A process that loads and answers, says how long both took, and answers again with all loaded.
PHASES = """
import contextlib, os, sys, time
start = time.process_time()
from topo.cli.program import main
loaded = time.process_time()
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    with contextlib.redirect_stderr(nowhere):
        main(sys.argv[1:])
        first = time.process_time()
        main(sys.argv[1:])
        again = time.process_time()
print(loaded - start, first - loaded, again - first)
"""


class Place(NamedTuple):
    """Where a copy of the package lies, and what Python is told of bytecode there."""

    folder: Path
    options: tuple[str, ...] = ()

    def command(self, arguments: str) -> list[str]:
        """Return the words of ``topo ARGUMENTS``."""
        return [sys.executable, *self.options, "-m", "topo", *arguments.split()]

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command beside the copy, which is then what it imports."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, env=kept
        )

    def seconds(self, command: list[str]) -> tuple[float, int]:
        """Run a command and return its processor time and exit code."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = self.run(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent, done.returncode


def copied(folder: Path) -> Path:
    """Copy the package and its machines, without bytecode."""
    for name in ("topo", "topologies"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def table(place: Place, rounds: int) -> str:
    """Measure each command and lay the figures out, one command a line."""
    empty = [sys.executable, *place.options, "-c", "pass"]
    commands = {EMPTY: empty, **{name: place.command(name) for name in BUDGETS}}
    codes = {name: place.seconds(command)[1] for name, command in commands.items()}  # and warm up
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(place.seconds(command)[0])
    unit = median(times[EMPTY])
    lines = [f"{'command':<24}{'processor':>10}{'ratio':>8}{'budget':>8}"]
    lines.append(f"{EMPTY:<24}{unit * 1e3:>7.1f} ms{1:>8.1f}")
    for arguments, budget in BUDGETS.items():
        spent = median(times[arguments])
        ratio = spent / unit
        remark = "" if ratio <= budget.wanted else "  over" if ratio > budget.most else "  above"
        remark += f"  failed: exit {codes[arguments]}" if codes[arguments] else ""
        row = f"{f'topo {arguments}':<24}{spent * 1e3:>7.1f} ms{ratio:>8.1f}"
        lines.append(f"{row}{budget.wanted:>8.0f}{remark}")
    return "\n".join(lines)


def parts(place: Place, arguments: str, rounds: int) -> str:
    """Say what the parts of a command cost: loading by room and library, then the phases."""
    loading: dict[str, float] = {}
    phases: list[tuple[float, ...]] = []
    start = [sys.executable, *place.options]
    for _ in range(rounds):
        command = [*start, "-X", "importtime", *place.command(arguments)[len(start) :]]
        for name, spent in module_times(place.run(command).stderr):
            loading[name] = min(loading.get(name, spent), spent)
        answer = place.run([*start, "-c", PHASES, *arguments.split()]).stdout
        phases.append(tuple(float(word) for word in answer.split()))
    bare = {
        name for name, _ in module_times(place.run([*start, "-X", "importtime", "-c", ""]).stderr)
    }
    groups: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for name, spent in loading.items():
        first, *below = name.split(".")
        group = ".".join(["topo", *below[:1]]) if first == "topo" else first.lstrip("_")
        group = "standard library" if first in sys.stdlib_module_names else group
        group = "the interpreter's own" if name in bare else group
        groups[group] += spent
        counts[group] += 1
    lines = [f"topo {arguments}: loading, by room and library (clock; sums of the least of each)"]
    lines += [
        f"  {name:<26}{spent * 1e3:>7.1f} ms{counts[name]:>6} modules"
        for name, spent in sorted(groups.items(), key=lambda group: -group[1])
        if spent * 1e3 >= LEAST_SHOWN_MS
    ]
    load, first_answer, again = (min(column) for column in zip(*phases, strict=True))
    lines += [
        f"topo {arguments}: phases (processor)",
        f"  {'loading the program':<26}{load * 1e3:>7.1f} ms",
        f"  {'the answer, loading more':<26}{first_answer * 1e3:>7.1f} ms",
        f"  {'the answer again':<26}{again * 1e3:>7.1f} ms",
    ]
    return "\n".join(lines)


def module_times(text: str) -> list[tuple[str, float]]:
    """Return the modules of an ``-X importtime`` listing, each with its own seconds."""
    rows = (line.removeprefix("import time:").split("|") for line in text.splitlines())
    return [
        (name.strip(), int(own) * 1e-6)
        for own, _, name in (row for row in rows if len(row) == 3)  # noqa: PLR2004
        if own.strip().isdecimal()
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--parts", action="store_true", help="say what each part costs as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = Place(copied(Path(folder, "kept")))
        without = Place(copied(Path(folder, "without")), ("-B",))
        print("with bytecode kept", table(kept, options.rounds), "", sep="\n")
        print("without bytecode of topo", table(without, options.rounds), sep="\n")
        if options.parts:
            for arguments in ("check dgx-h100", "compare dgx-h100"):
                print("", parts(kept, arguments, max(3, options.rounds // 3)), sep="\n")


if __name__ == "__main__":
    main()
