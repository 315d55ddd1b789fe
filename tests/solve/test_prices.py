"""One more and one less of a resource, alone and together with what it is tied to."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.errors import SolverError
from topo.flows.demands import System
from topo.solve.linear_program import largest_total
from topo.solve.maxmin import max_min
from topo.solve.prices import Price, price
from topo.solve.system import Allocation


def total(system: System) -> Allocation:
    return largest_total(system).allocation


# Two cards of 50 GB/s with four demands each, behind slots of 63.
CARDS = System.of(
    [50.0, 50.0, 63.0, 63.0], [{index // 4: 1.0, 2 + index // 4: 1.0} for index in range(8)]
)
# A card of 50 with four demands that cross a memory bus of 200 four times.
TIED = System.of([50.0, 200.0], [{0: 1.0, 1: 4.0}] * 4)


@pytest.mark.parametrize("answer", [max_min, total])
def test_a_card_alone_is_worth_one_for_one_until_its_slot_binds(answer: object) -> None:
    found = price(CARDS, [0], answer=answer)  # type: ignore[arg-type]
    assert (found.gain, found.cost, found.next_bound) == (1.0, 1.0, (2,))
    assert found.range_up == pytest.approx(13.0)


@pytest.mark.parametrize("answer", [max_min, total])
def test_both_cards_together(answer: object) -> None:
    found = price(CARDS, [0, 1], answer=answer)  # type: ignore[arg-type]
    assert (found.gain, found.cost, found.next_bound) == (2.0, 2.0, (2, 3))
    assert found.range_up == pytest.approx(13.0)


def test_what_does_not_bind_is_worth_nothing() -> None:
    assert price(CARDS, [2]) == Price(gain=0.0, cost=0.0, range_up=math.inf)


@pytest.mark.parametrize("answer", [max_min, total])
def test_of_a_tie_neither_gains_alone_and_either_costs(answer: object) -> None:
    # card + 1: the bus holds at 50. card - 1: 49. bus + 1: the card holds. bus - 1: 199 / 4.
    card = price(TIED, [0], answer=answer)  # type: ignore[arg-type]
    bus = price(TIED, [1], answer=answer)  # type: ignore[arg-type]
    assert (card.gain, card.cost) == (0.0, 1.0)
    assert (bus.gain, bus.cost) == (0.0, 0.25)


def test_a_tie_raised_together_gains_what_its_dearest_gives() -> None:
    # both + 1: the bus allows 201 / 4; both - 1: the card allows 49.
    both = price(TIED, [0, 1])
    assert (both.gain, both.cost, both.range_up) == (0.25, 1.0, math.inf)
    # the bus four for one: they stay tied
    assert price(TIED, {0: 1.0, 1: 4.0}).gain == 1.0


def test_an_own_limit_ends_the_range_too() -> None:
    # a + b <= 10, a, b <= 8: from 16 on both are at their limits
    found = price(System.of([10.0], [{0: 1.0}, {0: 1.0}], limits=[8.0, 8.0]), [0])
    assert (found.gain, found.cost, found.next_bound, found.next_limits) == (1.0, 1.0, (), (0, 1))
    assert found.range_up == pytest.approx(6.0)


def test_more_of_a_resource_can_lower_the_fair_total() -> None:
    # a long demand on three resources: what it gains, two short ones lose.
    # r0: a <= 2 (a alone); r1: a + b <= 10; r2: a + c <= 10.  One more: a + 1, b - 1, c - 1.
    system = System.of([2.0, 10.0, 10.0], [{0: 1.0, 1: 1.0, 2: 1.0}, {1: 1.0}, {2: 1.0}])
    found = price(system, [0])
    assert (found.gain, found.cost) == (-1.0, -1.0)
    assert found.range_up == pytest.approx(3.0)


def test_bytes_a_second_give_the_same_price() -> None:
    uses = [{index // 4: 1.0, 2 + index // 4: 1.0} for index in range(8)]
    big = System.of([capacity * 1e9 for capacity in CARDS.capacities], uses)
    found = price(big, [0])
    assert (found.gain, found.cost) == (1.0, 1.0)
    assert found.range_up == pytest.approx(13e9)


def test_what_stopped_others_before_can_bind_next() -> None:
    # r0: a <= 2; r1: a + b <= 10. What a gains b loses: the total is always 10.
    system = System.of([2.0, 10.0], [{0: 1.0, 1: 1.0}, {1: 1.0}])
    found = price(system, [0])
    assert (found.gain, found.cost, found.next_bound) == (0.0, 0.0, ())
    # Twice through r1: what a gains b loses twice, until a too is stopped by r1.
    system = System.of([2.0, 12.0], [{0: 1.0, 1: 2.0}, {1: 1.0}])
    found = price(system, [0])
    assert (found.gain, found.cost, found.next_bound) == (-1.0, -1.0, (1,))
    assert found.range_up == pytest.approx(2.0)


def test_a_kink_a_hair_away_is_seen() -> None:
    # The other resource binds a ten-millionth above: a step of a millionth would hide it.
    near = System.of([1.0, 1.0 + 1e-7], [{0: 1.0, 1: 1.0}])
    found = price(near, [0])
    assert found.gain == pytest.approx(1.0)
    assert found.range_up == pytest.approx(1e-7, rel=1e-3)


def test_infinite_capacity_has_no_price() -> None:
    assert price(System.of([math.inf, 1.0], [{0: 1.0, 1: 1.0}]), [0]).gain == 0.0


@pytest.mark.parametrize("group", [[], [7], [-1], {0: 0.0}])
def test_groups_that_are_none(group: object) -> None:
    with pytest.raises(SolverError):
        price(TIED, group)  # type: ignore[arg-type]


@settings(max_examples=15)
@given(systems(most_demands=4, most_resources=3))
def test_the_dual_lies_between_the_two_prices(system: System) -> None:
    # Concave in each capacity: gain <= dual <= cost.
    answer = largest_total(System(*_unweighted(system)))
    for resource, dual in enumerate(answer.prices):
        found = price(System(*_unweighted(system)), [resource], answer=total)
        assert found.gain - 1e-6 <= dual <= found.cost + 1e-6


def _unweighted(system: System) -> tuple:
    ones = [1.0] * system.demand_count
    return (
        system.capacities,
        system.starts,
        system.resources,
        system.multiplicities,
        ones,
        system.limits,
    )


@given(systems(most_demands=6, most_resources=4), st.sampled_from([0.25, 0.5, 0.99]))
def test_the_gain_holds_for_the_whole_range(system: System, part: float) -> None:
    for resource in range(len(system.capacities)):
        found = price(system, [resource])
        if not 1e-6 < found.range_up < math.inf:
            continue
        more = part * found.range_up
        capacities = list(system.capacities)
        capacities[resource] += more
        raised = max_min(dataclasses.replace(system, capacities=capacities))
        change = math.fsum(raised.rates) - math.fsum(max_min(system).rates)
        assert change == pytest.approx(found.gain * more, rel=1e-6, abs=1e-6)
