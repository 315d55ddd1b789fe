"""The room's front door: every public name, in any order, and nothing heavy for nothing."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import topo.solve
from topo.solve import __all__ as names


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout


def test_every_name_resolves_and_none_is_a_module() -> None:
    assert list(names) == sorted(names, key=lambda name: (name.upper() != name, name))
    for name in names:
        assert not isinstance(getattr(topo.solve, name), ModuleType), name
    assert set(names) <= set(dir(topo.solve))


@pytest.mark.parametrize("order", ["names", "names[::-1]"])
def test_order_of_first_use_does_not_matter(order: str) -> None:
    # A module named like a function would take its place once something else loads it.
    code = (
        "import topo.solve as s; names = list(s.__all__);"
        f"print([n for n in {order} if type(getattr(s, n)).__name__ == 'module'])"
    )
    assert python(code) == "[]\n"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        topo.solve.nonsense  # noqa: B018


def test_small_questions_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from topo.solve import System, certify, complete, max_min, price\n"
        "system = System.of([10.0], [{0: 1.0}, {0: 1.0}])\n"
        "assert certify(system, max_min(system)) == ()\n"
        "price(system, [0]); complete(system, [1.0, 2.0])\n"
        "print(sorted({'numpy', 'numba', 'highspy', 'scipy', 'networkx'} & set(sys.modules)))"
    )
    assert python(code) == "[]\n"
