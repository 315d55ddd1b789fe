"""Three solvers that share no code must agree, on small random systems and on large ones."""

from __future__ import annotations

import importlib
import math
import sys
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topo.solve
from bench.solve_instances import FAMILIES
from tests.solve.systems import systems
from topo.errors import SolverError, UnboundedError
from topo.flows.demands import System
from topo.solve.arrays import Arrays, floats
from topo.solve.certificates import certify
from topo.solve.fluid import complete
from topo.solve.maxmin import Method, max_min
from topo.solve.system import check

METHODS = [
    "rounds",
    pytest.param(
        "kernel",
        marks=pytest.mark.skipif(
            find_spec("numba") is None, reason="numba (the extra `scale`) is not installed"
        ),
    ),
]


@pytest.mark.parametrize("method", METHODS)
@given(system=systems(most_demands=12, most_resources=8))
def test_small_systems_to_twelve_digits(method: Method, system: System) -> None:
    plain = max_min(system, method="plain")
    other = max_min(system, method=method)
    assert other.rates == pytest.approx(plain.rates, rel=1e-12)
    assert other.loads == pytest.approx(plain.loads, rel=1e-12)
    assert other.stops == plain.stops


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_large_systems_to_twelve_digits(family: str, method: Method) -> None:
    system = FAMILIES[family](3_000)
    answer = max_min(system, method=method)
    assert certify(system, answer) == ()
    plain = max_min(system, method="plain")
    assert answer.rates == pytest.approx(plain.rates, rel=1e-12)
    assert answer.stops == plain.stops


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_differ_a_millionfold_lose_no_digits(method: Method) -> None:
    # One demand of weight 1 beside a thousand of weight 1e6 that stop earlier, elsewhere.
    # r0: sum <= 2e6, r1: the heavy ones <= 1e6   =>  the light one has the other 1e6
    uses = [{0: 1.0, 1: 1.0}] * 1000 + [{0: 1.0}]
    answer = max_min(System.of([2e6, 1e6], uses, weights=[1e6] * 1000 + [1.0]), method=method)
    assert answer.rates[-1] == pytest.approx(1e6, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(
    count=st.integers(2, 40),
    capacity=st.floats(1.0, 1e12),
    multiplicity=st.sampled_from([1.0, 2.0, 4.0, 3.0]),
)
def test_ties_are_found_by_all(
    method: Method, count: int, capacity: float, multiplicity: float
) -> None:
    # One resource, and another that all cross more often and that is as much wider.
    uses = [{0: 1.0, 1: multiplicity}] * count
    answer = max_min(System.of([capacity, capacity * multiplicity], uses), method=method)
    assert answer.stops == ((0, 1),) * count


@pytest.mark.parametrize("method", METHODS)
def test_own_limits_and_nobody(method: Method) -> None:
    assert max_min(System.of([1.0], []), method=method).rates == ()
    free = System.of([math.inf, 5.0], [{0: 2.0}, {}, {0: 1.0, 1: 1.0}], limits=[3.0, 7.0, 9.0])
    assert max_min(free, method=method).rates == (3.0, 7.0, 5.0)


def test_large_nonsense_is_found_and_named() -> None:
    good = FAMILIES["rand"](2_000)
    check(good)
    for field, wrong in [("capacities", 0.0), ("weights", math.inf), ("limits", math.nan)]:
        values = list(getattr(good, field))
        values[77] = wrong
        columns = {name: getattr(good, name) for name in good.__slots__}
        with pytest.raises(SolverError, match=r" 77 is "):
            check(System(**{**columns, field: values}))
    columns = {name: getattr(good, name) for name in good.__slots__}
    short = System(**{**columns, "limits": [1.0]})
    with pytest.raises(SolverError, match="differ in length"):
        check(short)
    words = System(good.capacities, good.starts, good.resources, ["x"] * 12_000, (), ())  # type: ignore[list-item]
    with pytest.raises(TypeError):
        check(words)
    endless = [math.inf] * len(good.capacities)
    with pytest.raises(UnboundedError, match="demand 1999 "):
        check(System(endless, *(getattr(good, name) for name in good.__slots__[1:])))


def test_the_kernel_says_when_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topo.solve.arrays.has_compiler", lambda: False)
    with pytest.raises(SolverError, match=r"pip install 'gpu-topo\[scale\]'"):
        max_min(System.of([1.0], [{0: 1.0}]), method="kernel")
    assert max_min(FAMILIES["rand"](20_000)).rates[0] > 0.0


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch):
    """Load the compiled modules anew as they are without numba, and put the others back after."""
    names = ["kernel", "events"]
    for name in names:
        # Kept, since numba's cache knows their types by identity.
        compiled = importlib.import_module(f"topo.solve.{name}")
        monkeypatch.setattr(topo.solve, name, compiled)
        monkeypatch.delitem(sys.modules, f"topo.solve.{name}")
    monkeypatch.setattr("topo.solve.arrays.has_compiler", lambda: False)
    return [importlib.import_module(f"topo.solve.{name}") for name in names]


@given(system=systems(most_demands=10, most_resources=6), data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_code_runs_without_a_compiler(
    uncompiled, system: System, data: st.DataObject
) -> None:
    kernel, events = uncompiled
    arrays = Arrays.of(system)
    assert kernel.fill(arrays).tolist() == pytest.approx(max_min(system).rates, rel=1e-12)
    count = system.demand_count
    sizes = data.draw(st.lists(st.integers(0, 9).map(float), min_size=count, max_size=count))
    arrivals = data.draw(st.lists(st.integers(0, 4).map(float), min_size=count, max_size=count))
    found = events.finishes(arrays, floats(sizes), floats(arrivals))
    assert found.tolist() == pytest.approx(complete(system, sizes, arrivals).finishes, rel=1e-11)


def test_rising_users_of_tiny_weight_are_summed_anew(uncompiled) -> None:
    # Nearly all of r0 goes to heavy demands that r1 stops; one light demand has what is left.
    kernel, _ = uncompiled
    uses = [{0: 1.0, 1: 1.0}] * 50 + [{0: 1.0}]
    system = System.of([1000.1, 1000.0], uses, weights=[1e6] * 50 + [1.0])
    assert kernel.fill(Arrays.of(system))[-1] == pytest.approx(0.1, rel=1e-9)
