"""The largest total, with its proof; the largest common fraction."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.errors import SolverError, UnboundedError
from topo.flows.demands import System
from topo.solve.certificates import certify, certify_total
from topo.solve.linear_program import largest_total
from topo.solve.maxmin import max_min


def test_a_long_demand_starves_for_two_short_ones() -> None:
    # maximise a + b + c: a + b <= 10, a + c <= 10   =>  0, 10, 10; each resource is worth 1
    answer = largest_total(System.of([10.0, 10.0], [{0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0}]))
    assert answer.allocation.rates == (0.0, 10.0, 10.0)
    assert answer.allocation.loads == (10.0, 10.0)
    assert answer.allocation.stops == ((0, 1), (0,), (1,))
    assert answer.allocation.rule == "largest-total"
    assert (answer.total, answer.prices, answer.bound) == (20.0, (1.0, 1.0), 20.0)


def test_worths_turn_the_answer() -> None:
    # the same, a being worth 3 of b or c           =>  10, 0, 0
    system = System.of([10.0, 10.0], [{0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0}])
    answer = largest_total(system, worths=[3.0, 1.0, 1.0])
    assert answer.allocation.rates == (10.0, 0.0, 0.0)
    assert answer.total == 30.0


def test_a_limit_has_a_price_too() -> None:
    # maximise a + b: a + 2 b <= 10, a <= 4         =>  4, 3; the resource 1/2, the limit 1/2
    answer = largest_total(System.of([10.0], [{0: 1.0}, {0: 2.0}], limits=[4.0, math.inf]))
    assert answer.allocation.rates == pytest.approx((4.0, 3.0))
    assert answer.prices == pytest.approx((0.5,))
    assert answer.limit_prices == pytest.approx((0.5, 0.0))


def test_demands_that_cannot_be_told_apart_get_equal_rates_and_prices() -> None:
    # A vertex would give one of four demands everything.
    answer = largest_total(System.of([50.0, 50.0], [{i // 4: 1.0} for i in range(8)]))
    assert answer.allocation.rates == (12.5,) * 8
    assert answer.prices == (1.0, 1.0)


def test_one_resource_of_one_demand_carries_the_price() -> None:
    # a <= 10 / 2                                    =>  5; 1/2
    answer = largest_total(System.of([10.0, 20.0, math.inf], [{0: 2.0, 1: 1.0, 2: 1.0}]))
    assert answer.prices == (0.5, 0.0, 0.0)


def test_bytes_a_second_are_no_matter_of_tolerance() -> None:
    # 3 a + b <= 63.015e9, a = b in no answer: b = 63.015e9
    answer = largest_total(System.of([63.015384615e9], [{0: 3.0}, {0: 1.0}]))
    assert answer.allocation.rates == pytest.approx((0.0, 63.015384615e9), abs=1e-3)


@pytest.mark.parametrize("method", ["simplex", "ipm", "pdlp"])
def test_every_method_gives_the_same_total(method: str) -> None:
    uses = [{i % 5: 1.0, 5 + i % 3: 2.0, 8 + i % 2: 1.0} for i in range(30)]
    system = System.of([float(7 + i) for i in range(10)], uses)
    answer = largest_total(system, method=method)  # type: ignore[arg-type]
    assert answer.method == method
    assert certify_total(system, answer) == ()
    assert answer.total == pytest.approx(largest_total(system).total, rel=1e-7)


def test_without_end_or_with_nonsense() -> None:
    with pytest.raises(UnboundedError, match="demand 0"):
        largest_total(System.of([math.inf], [{0: 1.0}]))
    with pytest.raises(SolverError):
        largest_total(System.of([-1.0], [{0: 1.0}]))


def test_no_time_is_said() -> None:
    uses = [{(i * 7 + j * j) % 90: 1.0 for j in range(8)} for i in range(300)]
    system = System.of([10.0 + (i * 37) % 61 for i in range(90)], uses)
    with pytest.raises(SolverError, match=r"was not solved in 0 s"):
        largest_total(system, time_limit=0.0)


def test_nothing_is_written_to_standard_output() -> None:
    code = (
        "from topo.flows.demands import System;"
        "from topo.solve.linear_program import largest_total;"
        "largest_total(System.of([1.0], [{0: 1.0}, {0: 2.0}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@given(systems())
def test_every_total_has_its_proof_and_is_at_least_that_of_fair_rates(system: System) -> None:
    answer = largest_total(system)
    assert certify_total(system, answer) == ()
    assert certify(system, answer.allocation) == ()
    fair = math.fsum(w * r for w, r in zip(system.weights, max_min(system).rates, strict=True))
    assert answer.total >= fair * (1.0 - 1e-9)


@given(systems(), st.integers(0, 5), st.floats(1.0, 3.0))
def test_more_capacity_never_lowers_the_largest_total(
    system: System, which: int, factor: float
) -> None:
    which %= len(system.capacities)
    more = [c * factor if r == which else c for r, c in enumerate(system.capacities)]
    raised = System(
        more,
        system.starts,
        system.resources,
        system.multiplicities,
        system.weights,
        system.limits,
    )
    assert largest_total(raised).total >= largest_total(system).total * (1.0 - 1e-9)
