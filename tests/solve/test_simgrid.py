"""SimGrid as an oracle: an independent simulator must see the same rates and the same ends.

Debian's python3-simgrid serves Debian's own Python only, so it is asked as a program. Many systems
are asked about at once, side by side: they share nothing.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from topo.flows.demands import System
from topo.solve.fluid import complete
from topo.solve.maxmin import max_min

ORACLE = Path(__file__).parents[2] / "bench" / "solve_simgrid.py"


def has_simgrid(python: str) -> bool:
    command = [python, "-c", "import simgrid"]
    return not subprocess.run(command, capture_output=True, check=False).returncode


CANDIDATES = map(shutil.which, ["/usr/bin/python3", "/usr/bin/python3.11"])
PYTHON = next(filter(has_simgrid, filter(None, CANDIDATES)), "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="SimGrid is not installed (Debian: apt-get install python3-simgrid)"
)


def random_system(draw: random.Random) -> System:
    """Make a system as SimGrid can have it: whole multiplicities, no weights."""
    resources = draw.randint(1, 8)
    uses = [
        {
            resource: float(draw.choice([1, 1, 1, 2, 4]))
            for resource in draw.sample(range(resources), draw.randint(1, min(4, resources)))
        }
        for _ in range(draw.randint(1, 12))
    ]
    return System.of(
        [draw.uniform(1.0, 100.0) for _ in range(resources)],
        uses,
        limits=[draw.choice([math.inf, math.inf, draw.uniform(1.0, 30.0)]) for _ in uses],
    )


SYSTEMS = [random_system(random.Random(seed)) for seed in range(150)]


def ask(folder: Path, sizes: list[int] | None, arrivals: list[float]) -> dict:
    firsts = list(itertools.accumulate((len(s.capacities) for s in SYSTEMS), initial=0))
    rows = [
        [
            first + system.resources[entry]
            for entry in range(system.starts[demand], system.starts[demand + 1])
            for _ in range(int(system.multiplicities[entry]))
        ]
        for first, system in zip(firsts, SYSTEMS, strict=False)
        for demand in range(system.demand_count)
    ]
    question = {
        "capacities": [c for system in SYSTEMS for c in system.capacities],
        "rows": rows,
        "sizes": sizes,
        "arrivals": arrivals,
        "limits": [
            None if limit == math.inf else limit for system in SYSTEMS for limit in system.limits
        ],
    }
    (folder / "question").write_text(json.dumps(question))
    subprocess.run(
        [PYTHON, ORACLE, folder / "question", folder / "answer"], check=True, capture_output=True
    )
    return json.loads((folder / "answer").read_text())


COUNT = sum(system.demand_count for system in SYSTEMS)


def test_rates(tmp_path: Path) -> None:
    theirs = ask(tmp_path, None, [0.0] * COUNT)["rates"]
    ours = [rate for system in SYSTEMS for rate in max_min(system).rates]
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("all_at_once", [True, False])
def test_completion_times(tmp_path: Path, *, all_at_once: bool) -> None:
    draw = random.Random(7)
    sizes = [draw.randint(1, 10_000) for _ in range(COUNT)]
    arrivals = [0.0 if all_at_once else draw.uniform(0.0, 300.0) for _ in range(COUNT)]
    theirs = ask(tmp_path, sizes, arrivals)["finishes"]
    ours: list[float] = []
    for system in SYSTEMS:
        mine = slice(len(ours), len(ours) + system.demand_count)
        ours += complete(system, sizes[mine], arrivals[mine]).finishes
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_completion_times_of_many_at_once(tmp_path: Path) -> None:
    # All systems as one: large enough for the solver that takes only those who are touched.
    draw = random.Random(11)
    sizes = [draw.randint(1, 10_000) for _ in range(COUNT)]
    firsts = itertools.accumulate((len(s.capacities) for s in SYSTEMS), initial=0)
    uses = [
        {
            first + system.resources[entry]: system.multiplicities[entry]
            for entry in range(system.starts[demand], system.starts[demand + 1])
        }
        for first, system in zip(firsts, SYSTEMS, strict=False)
        for demand in range(system.demand_count)
    ]
    whole = System.of(
        [c for system in SYSTEMS for c in system.capacities],
        uses,
        limits=[limit for system in SYSTEMS for limit in system.limits],
    )
    theirs = ask(tmp_path, sizes, [0.0] * COUNT)["finishes"]
    assert complete(whole, sizes).finishes == pytest.approx(theirs, rel=1e-9)
