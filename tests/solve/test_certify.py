"""The checker must catch what is wrong: each complaint has an answer that earns it."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.errors import CertificateError
from topo.flows.demands import System
from topo.solve.certificates import certify, certify_split, certify_total
from topo.solve.concurrent_flow import split
from topo.solve.equivalence import max_min_by_class
from topo.solve.fluid import complete
from topo.solve.linear_program import largest_total
from topo.solve.maxmin import max_min
from topo.solve.system import Allocation

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


# maximise a + b: a + 2 b <= 10, a <= 4   =>  4, 3; the resource 1/2, the limit 1/2
LIMITED = System.of([10.0], [{0: 1.0}, {0: 2.0}], limits=[4.0, math.inf])
LARGEST = largest_total(LIMITED)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prices": (0.4,)}, "demand 1 is worth 1.0 and costs only 0.8"),
        ({"limit_prices": (0.25, 0.0)}, "demand 0 is worth 1.0 and costs only 0.75"),
        ({"prices": (0.6,)}, "the prices prove 8.0 to be the most, and 7.0 is reached"),
        ({"limit_prices": (-0.5, 0.0)}, "a price is negative"),
        ({"total": 8.0}, "the total is said to be 8.0, not 7.0 B/s"),
    ],
)
def test_each_lie_about_a_largest_total_is_caught(change: dict, complaint: str) -> None:
    assert certify_total(LIMITED, LARGEST) == ()
    said = certify_total(LIMITED, dataclasses.replace(LARGEST, **change))
    assert any(sentence.startswith(complaint) for sentence in said), said


def test_worths_are_part_of_the_question() -> None:
    answer = largest_total(LIMITED, worths=[1.0, 3.0])
    assert certify_total(LIMITED, answer, worths=[1.0, 3.0]) == ()
    assert certify_total(LIMITED, answer) != ()


WANTED = [4.0, 16.0]
# a on either card of 60 and 20 wants 3, b on the second wants 1
CARDS, CHOICES = [60.0, 20.0], [[{0: 1.0}, {1: 1.0}], [{1: 1.0}]]
SHARED_OUT = split(CARDS, CHOICES, wanted=[3.0, 1.0])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"shares": ((0.5, 0.4), (1.0,))}, "the shares of demand 0 do not sum to 1"),
        ({"shares": ((1.5, -0.5), (1.0,))}, "the shares of demand 0 do not sum to 1"),
        ({"shares": ((0.5, 0.5), (1.0,))}, "resource 1 carries more than its capacity"),
        ({"fraction": 19.0}, "the prices do not prove that 19.0 is the most"),
        ({"prices": (0.5, 0.0)}, "the prices do not prove that 20.0"),
    ],
)
def test_each_lie_about_a_split_is_caught(change: dict, complaint: str) -> None:
    # 3 t <= 60, t <= 20                     =>  t = 20
    assert certify_split(CARDS, CHOICES, SHARED_OUT, wanted=[3.0, 1.0]) == ()
    lie = dataclasses.replace(SHARED_OUT, **change)
    said = certify_split(CARDS, CHOICES, lie, wanted=[3.0, 1.0])
    assert any(sentence.startswith(complaint) for sentence in said), said


def test_a_split_over_a_limit_is_caught() -> None:
    said = certify_split(CARDS, CHOICES, SHARED_OUT, wanted=[3.0, 1.0], limits=[50.0, math.inf])
    assert any(sentence.startswith("demand 0 has 60.0, its limit being 50.0") for sentence in said)


# --- solvers have their answers checked -----------------------------------------------------------


def test_a_solver_with_a_fault_says_so_instead_of_answering(monkeypatch) -> None:
    # a + b <= 10 and both are given 7
    monkeypatch.setattr("topo.solve.maxmin.fill", lambda system: [7.0] * system.demand_count)
    with pytest.raises(CertificateError, match=r"carries 14\.0 of 10\.0") as caught:
        max_min(System.of([10.0], [{0: 1.0}, {0: 1.0}]))
    (finding,) = caught.value.findings
    assert finding.code == "not-certified"
    assert "report" in finding.help


def test_answers_say_that_they_are_certified() -> None:
    system = System.of([10.0], [{0: 1.0}, {0: 1.0}])
    assert max_min(system).certified
    assert max_min_by_class(system).certified
    assert complete(system, [1.0, 2.0]).certified
    assert largest_total(system).allocation.certified


LARGE = System.of(
    [100.0 + resource for resource in range(3_000)],
    [{demand % 2_999: 1.0, (demand * 7 + 1) % 3_000: 2.0} for demand in range(6_000)],
)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda answer: {"rates": (*answer.rates[:-1], answer.rates[-1] * 1.001)},
        lambda answer: {"rates": (*answer.rates[:-1], answer.rates[-1] * 0.999)},
        lambda answer: {"rates": (*answer.rates[:-1], float("nan"))},
        lambda answer: {"loads": (*answer.loads[:-1], answer.loads[-1] * 1.001)},
        lambda answer: {"loads": answer.loads[:-1]},
        lambda answer: {"stops": ((), *answer.stops[1:])},
        lambda answer: {"stops": ((2_998, 2_999), *answer.stops[1:])},
    ],
)
def test_a_large_system_is_checked_as_closely_as_a_small_one(spoil) -> None:
    answer = max_min(LARGE)
    assert certify(LARGE, answer) == ()
    assert certify(LARGE, dataclasses.replace(answer, **spoil(answer)))
