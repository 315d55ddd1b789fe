"""Time completion times beside a SimGrid run, in one run.

    python -m bench.solve_completions [--simgrid-python /usr/bin/python3] [--sizes 1000,10000]

Processor seconds; all demands start at once. SimGrid's building of its platform is shown apart and
not counted, nor is starting its Python. No ratio is printed if the answers differ by more than a
relative 1e-9.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.solve_instances import FAMILIES
from topo.solve.arrays import Arrays
from topo.solve.fluid import complete

if TYPE_CHECKING:
    from topo.flows.demands import System

AGREE = 1e-9


def main() -> None:
    """Print one row for each family and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--simgrid-python", default="/usr/bin/python3")
    parser.add_argument("--sizes", default="1000,3000")
    parser.add_argument("--families", default="rand,fabric")
    options = parser.parse_args()
    complete(FAMILIES["rand"](200), [1.0] * 200)  # compile
    print("family   demands | complete s | SimGrid run s  (platform) | ratio  error")
    for family in options.families.split(","):
        for size in options.sizes.split(","):
            row(family, FAMILIES[family](int(size)), options.simgrid_python)


def row(family: str, system: System, python: str) -> None:
    """Print one row."""
    draw = np.random.default_rng(3)
    sizes = draw.integers(10**9, 10**11, system.demand_count).tolist()
    start = time.process_time()
    ours = complete(system, sizes).finishes
    seconds = time.process_time() - start
    try:
        theirs = simgrid(system, sizes, python)
    except (FileNotFoundError, subprocess.CalledProcessError):
        print(f"{family:7} {system.demand_count:8} | {seconds:10.4f} | no SimGrid for {python}")
        return
    error = float(np.max(np.abs(np.array(ours) / np.array(theirs["finishes"]) - 1.0)))
    ratio = f"{theirs['run_s'] / seconds:5.1f}" if error <= AGREE else "  -  "
    print(
        f"{family:7} {system.demand_count:8} | {seconds:10.4f} | {theirs['run_s']:13.3f} "
        f"{theirs['build_s']:11.3f} | {ratio}  {error:.1e}",
        flush=True,
    )


def simgrid(system: System, sizes: list[int], python: str) -> dict[str, Any]:
    """Ask SimGrid."""
    arrays = Arrays.of(system)
    uses = arrays.uses
    crossings = np.repeat(uses.columns, uses.values.astype(int)).tolist()
    ends = np.concatenate(([0], np.cumsum(uses.values.astype(int))))[uses.starts].tolist()
    question = {
        "capacities": arrays.capacities.tolist(),
        "rows": [crossings[ends[d] : ends[d + 1]] for d in range(uses.height)],
        "sizes": sizes,
        "arrivals": [0.0] * uses.height,
        "limits": [None] * uses.height,
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "question"), Path(folder, "answer")
        asked.write_text(json.dumps(question))
        script = Path(__file__).parent / "solve_simgrid.py"
        subprocess.run([python, script, asked, answered], check=True, capture_output=True)
        return dict(json.loads(answered.read_text()))


if __name__ == "__main__":
    main()
