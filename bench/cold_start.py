"""How long commands take from a cold start, as multiples of ``python -c pass``.

Each is a whole process: interpreter, imports, work, output. The commands are run in turn, round
after round, so that a busy machine slows all of them alike; the median of the rounds counts. Times
depend on the machine, the ratio to an interpreter that does nothing much less so.

    python bench/cold_start.py [--rounds N]

It reports and never fails: a number over its budget is for a person to judge.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

# What is run, and how many times the empty interpreter it may take.
BUDGETS: dict[str, float] = {
    "--help": 8,
    "schema": 8,
    "check dgx-h100": 15,
    "compare dgx-h100": 25,
}
ROUNDS = 15
EMPTY = "python -c pass"


def command_of(arguments: str) -> list[str]:
    """Return the words of ``topo ARGUMENTS``, the installed script where there is one."""
    script = Path(sys.executable).with_name("topo")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "topo"]
    return [*start, *arguments.split()]


def seconds(command: list[str]) -> tuple[float, int]:
    """Run a command, throw its output away, and return its wall time and exit code."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - start, done.returncode


def measure(commands: dict[str, list[str]], rounds: int) -> tuple[dict[str, float], dict[str, int]]:
    """Return the median time and the exit code of each command."""
    codes = {name: seconds(command)[1] for name, command in commands.items()}  # and warm the caches
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(command)[0])
    return {name: median(taken) for name, taken in times.items()}, codes


def table(medians: dict[str, float], codes: dict[str, int]) -> str:
    """Lay the figures out, one command a line."""
    unit = medians[EMPTY]
    lines = [f"{'command':<24}{'time':>10}{'ratio':>8}{'budget':>8}"]
    lines.append(f"{EMPTY:<24}{unit * 1e3:>7.1f} ms{1:>8.1f}")
    for arguments, budget in BUDGETS.items():
        taken = medians[arguments]
        said = "" if taken / unit <= budget else "  over"
        said += f"  failed: exit {codes[arguments]}" if codes[arguments] else ""
        name = f"topo {arguments}"
        lines.append(f"{name:<24}{taken * 1e3:>7.1f} ms{taken / unit:>8.1f}{budget:>8.0f}{said}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    rounds: int = parser.parse_args().rounds
    commands = {arguments: command_of(arguments) for arguments in BUDGETS}
    print(table(*measure({EMPTY: [sys.executable, "-c", "pass"], **commands}, rounds)))


if __name__ == "__main__":
    main()
