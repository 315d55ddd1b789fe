"""Time max-min rates beside SimGrid's solver, and the linear program beside SciPy's, in one run.

    python -m bench.solve_families [--simgrid-source DIR] [--sizes 1000,100000] [--linear]

`DIR` is the source tree of the installed libsimgrid (``apt-get install libsimgrid-dev g++``, then
``apt-get source simgrid``); without it only topo's times are printed. Times are processor time, the
least of five runs; SimGrid's building of its system is shown apart and not counted. No ratio is
printed if the answers differ by more than a relative 1e-9.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bench.solve_instances import FAMILIES
from topo.solve.arrays import Arrays
from topo.solve.certificates import certify
from topo.solve.linear_program import largest_total
from topo.solve.maxmin import max_min, rates_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from topo.flows.demands import System

T = TypeVar("T")
RUNS = 5
AGREE = 1e-9


def main() -> None:
    """Print one row for each family and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--simgrid-source", type=Path)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--linear", action="store_true")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        simgrid = Simgrid(options.simgrid_source, Path(folder)) if options.simgrid_source else None
        print(
            "family   demands  entries | max_min  kernel   numpy ms | SimGrid solve  (build) ms | "
            "ratio  error    certificate"
        )
        for family, make in FAMILIES.items():
            for size in sizes:
                row(family, make(size), simgrid)
    if options.linear:
        for family, make in FAMILIES.items():
            for size in sizes:
                linear_row(family, make(size))


class Simgrid:
    """SimGrid's solver, in a small program around its library."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        (folder / "src").mkdir()
        # The build's configuration header is not in the source tree, and not needed here.
        (folder / "src" / "internal_config.h").touch()
        harness = Path(__file__).with_suffix("").parent / "solve_simgrid.cpp"
        includes = [f"-I{place}" for place in (folder, source, source / "include")]
        self.program = folder / "lmm"
        subprocess.run(
            ["g++", "-std=c++17", "-O2", *includes, harness, "-lsimgrid", "-o", self.program],  # noqa: S607
            check=True,
        )

    def solve(self, system: System) -> tuple[float, float, NDArray[np.float64]]:
        """Give seconds to build, seconds to solve, and the rates."""
        arrays = Arrays.of(system)
        uses = arrays.uses
        question, answer = self.folder / "question", self.folder / "answer"
        sizes = np.array([arrays.capacities.size, uses.height, uses.values.size])
        columns = [sizes, arrays.capacities, uses.starts, uses.columns, uses.values]
        question.write_bytes(b"".join(column.tobytes() for column in [*columns, arrays.weights]))
        times = []
        for _ in range(3):
            subprocess.run([self.program, question, answer], check=True)
            found = np.fromfile(answer)
            times.append(found[:2])
        build, solve = np.min(times, axis=0)
        return float(build), float(solve), found[2:]


def row(family: str, system: System, simgrid: Simgrid | None) -> None:
    """Print one row."""
    arrays = Arrays.of(system)
    whole, answer = timed(lambda: max_min(system))
    kernel, rates = timed(lambda: rates_of(arrays, "kernel"))
    numpy, others = timed(lambda: rates_of(arrays, "rounds"))
    error = difference(others, rates)
    text = (
        f"{family:7} {arrays.uses.height:8} {arrays.uses.values.size:8} |"
        f"{whole * 1e3:8.1f} {kernel * 1e3:7.2f} {numpy * 1e3:7.1f}    |"
    )
    if simgrid:
        build, solve, theirs = simgrid.solve(system)
        error = max(error, difference(theirs, rates))
        ratio = f"{solve / kernel:5.1f}" if error <= AGREE else "  -  "
        text += f" {solve * 1e3:13.2f} {build * 1e3:8.1f}    | {ratio}"
    held = "holds" if not certify(system, answer) else "BROKEN"
    print(f"{text}  {error:.1e}  {held}", flush=True)


def linear_row(family: str, system: System) -> None:
    """Print the linear program's time beside that of SciPy's interface to the same library."""
    import scipy.optimize
    import scipy.sparse

    seconds, answer = timed(lambda: largest_total(system, time_limit=600.0), runs=1)
    arrays = Arrays.of(system)
    uses = arrays.uses
    matrix: Any = scipy.sparse.csc_array(
        (uses.values, uses.columns, uses.starts), shape=(uses.width, uses.height)
    )
    theirs, result = timed(
        lambda: scipy.optimize.linprog(
            -arrays.weights, A_ub=matrix, b_ub=arrays.capacities, bounds=(0.0, None)
        ),
        runs=1,
    )
    print(
        f"{family:7} {uses.height:8} {uses.values.size:8} | linear {answer.method:7} "
        f"{seconds:8.3f} s, gap {answer.gap:.1e} | SciPy {theirs:8.3f} s, "
        f"difference {abs(-float(result.fun or 0.0) / answer.total - 1.0):.1e}",
        flush=True,
    )


def timed(work: Callable[[], T], runs: int = RUNS) -> tuple[float, T]:
    """Give the least processor time of some runs, after one to warm up if there are several."""
    if runs > 1:
        work()
    least = float("inf")
    for _ in range(runs):
        start = time.process_time()
        answer = work()
        least = min(least, time.process_time() - start)
    return least, answer


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Give the largest relative difference."""
    return float(np.max(np.abs(one / other - 1.0)))


if __name__ == "__main__":
    main()
