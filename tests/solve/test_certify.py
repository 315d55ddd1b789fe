"""The checker must catch what is wrong: each complaint has an answer that earns it."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.solve import Allocation, System, certify, max_min

# a + b <= 10, b <= 3  =>  a = 7, b = 3
SYSTEM = System.of([10.0, 3.0], [{0: 1.0}, {0: 1.0, 1: 1.0}])
RIGHT = Allocation(rates=(7.0, 3.0), loads=(10.0, 3.0), stops=((0,), (1,)))


def test_the_right_answer_passes() -> None:
    assert certify(SYSTEM, RIGHT) == ()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"rates": (8.0, 3.0), "loads": (11.0, 3.0)}, "resource 0 carries 11.0 of 10.0 B/s"),
        ({"rates": (-1.0, 3.0), "loads": (2.0, 3.0)}, "demand 0 gets -1.0 B/s"),
        ({"loads": (9.0, 3.0)}, "resource 0 is said to carry 9.0, not 10.0 B/s"),
        ({"loads": (10.0,)}, "1 loads are given for 2 resources"),
        ({"rates": (6.0, 3.0), "loads": (9.0, 3.0)}, "demand 0 could get more than 6.0 B/s"),
        ({"rates": (8.0, 2.0), "loads": (10.0, 2.0)}, "demand 1 could get more than 2.0 B/s"),
        ({"stops": ((0,), (0, 1))}, "resource 0 does not stop demand 1, as is said"),
        ({"stops": ((), (1,))}, "resource 0 stops demand 0, which is not said"),
    ],
)
def test_each_lie_is_caught(change: dict[str, object], complaint: str) -> None:
    lie = dataclasses.replace(RIGHT, **change)  # type: ignore[arg-type]
    assert any(said.startswith(complaint) for said in certify(SYSTEM, lie))


def test_more_than_its_own_limit_is_caught() -> None:
    system = System.of([10.0], [{0: 1.0}], limits=[4.0])
    lie = Allocation(rates=(5.0,), loads=(5.0,), stops=((),))
    assert certify(system, lie) == ("demand 0 gets 5.0 B/s, its limit being 4.0",)


def test_nan_and_infinity_are_no_answers() -> None:
    system = System.of([math.inf], [{0: 1.0}])
    for rate in (math.nan, math.inf):
        assert certify(system, Allocation(rates=(rate,), loads=(rate,), stops=((),))) != ()


@given(systems(), st.data())
def test_any_other_rates_fail(system: System, data: st.DataObject) -> None:
    answer = max_min(system)
    victim = data.draw(st.integers(0, system.demand_count - 1))
    factor = data.draw(st.sampled_from([0.0, 0.5, 0.999, 1.001, 2.0]))
    rates = [rate * factor if d == victim else rate for d, rate in enumerate(answer.rates)]
    loads = [0.0] * len(system.capacities)
    for demand, rate in enumerate(rates):
        for entry in range(system.starts[demand], system.starts[demand + 1]):
            loads[system.resources[entry]] += system.multiplicities[entry] * rate
    assume(rates != list(answer.rates))
    assert certify(system, dataclasses.replace(answer, rates=rates, loads=loads)) != ()
