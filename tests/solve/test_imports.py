"""A small question imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout


def test_small_questions_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from topo.flows.demands import System\n"
        "from topo.solve.certificates import certify\n"
        "from topo.solve.fluid import complete\n"
        "from topo.solve.maxmin import max_min\n"
        "from topo.solve.prices import price\n"
        "system = System.of([10.0], [{0: 1.0}, {0: 1.0}])\n"
        "assert certify(system, max_min(system)) == ()\n"
        "price(system, [0]); complete(system, [1.0, 2.0])\n"
        "print(sorted({'numpy', 'numba', 'highspy', 'scipy', 'networkx'} & set(sys.modules)))"
    )
    assert python(code) == "[]\n"
