"""Shares among several ways: first all alike, then the total, then the detour, then evenness."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.systems import CAPACITIES, MULTIPLICITIES
from topo.errors import SolverError, UnboundedError
from topo.flows.demands import System
from topo.solve.certificates import certify_split
from topo.solve.concurrent_flow import split
from topo.solve.maxmin import max_min


def test_two_like_cards_are_used_evenly() -> None:
    # eight GPUs, each on either of two cards of 50
    answer = split([50.0, 50.0], [[{0: 1.0}, {1: 1.0}]] * 8)
    assert answer.fraction == 12.5
    assert answer.shares == ((0.5, 0.5),) * 8
    assert answer.uses == ({0: 0.5, 1: 0.5},) * 8


def test_unlike_cards_are_used_in_proportion() -> None:
    # x <= 60, y <= 20: all of both                  =>  3/4, 1/4
    answer = split([60.0, 20.0], [[{0: 1.0}, {1: 1.0}]])
    assert answer.shares == ((0.75, 0.25),)
    assert answer.rates == (80.0,)


def test_who_has_no_choice_is_made_room_for() -> None:
    # a on either, b on the first only: b <= 50, a on the second: 50 each
    answer = split([50.0, 50.0], [[{0: 1.0}, {1: 1.0}], [{0: 1.0}]])
    assert answer.shares == ((0.0, 1.0), (1.0,))
    assert answer.fraction == 50.0


def test_wants_weigh() -> None:
    # a wants 3, b wants 1, either card of 20        =>  a 30, b 10
    answer = split([20.0, 20.0], [[{0: 1.0}, {1: 1.0}]] * 2, wanted=[3.0, 1.0])
    assert answer.fraction == pytest.approx(10.0)
    assert answer.rates == pytest.approx((30.0, 10.0))


def test_a_far_card_is_used_only_when_it_helps() -> None:
    # Two GPUs, near and far card alike: with a detour for the far one nobody goes there.
    choices = [[{0: 1.0}, {1: 1.0, 2: 1.0}], [{1: 1.0}, {0: 1.0, 2: 1.0}]]
    near = split([50.0, 50.0, 80.0], choices, detours=[[0.0, 1.0], [0.0, 1.0]])
    assert near.shares == ((1.0, 0.0), (1.0, 0.0))
    # Only one of them at work: the far card doubles it, and the detour is taken.
    alone = split([50.0, 50.0, 80.0], choices[:1], detours=[[0.0, 1.0]])
    assert alone.shares == ((0.5, 0.5),)
    assert alone.fraction == 100.0


def test_without_detours_a_far_card_is_as_good_as_a_near_one() -> None:
    # Four GPUs at each of two cards; the other card over a link of 80 that both sides share.
    near_first = [{0: 1.0}, {1: 1.0, 2: 1.0}]
    far_first = [{1: 1.0}, {0: 1.0, 2: 1.0}]
    answer = split([50.0, 50.0, 80.0], [near_first] * 4 + [far_first] * 4)
    assert answer.shares == ((0.5, 0.5),) * 8
    # A narrower link leaves 15 of each side's 50 for the far card.
    answer = split([50.0, 50.0, 30.0], [near_first] * 4 + [far_first] * 4)
    assert answer.shares == ((0.7, 0.3),) * 8
    assert answer.fraction == pytest.approx(12.5)


def test_the_total_comes_after_the_fraction() -> None:
    # a alone reaches both resources; b is stuck at 10. The fraction is 10, and a still gets 90.
    answer = split([100.0, 10.0], [[{0: 1.0}], [{0: 1.0, 1: 1.0}]])
    assert answer.fraction == pytest.approx(10.0)
    assert answer.rates == pytest.approx((90.0, 10.0))


def test_limits_hold() -> None:
    answer = split([50.0, 50.0], [[{0: 1.0}, {1: 1.0}]] * 2, limits=[20.0, math.inf])
    assert answer.fraction == pytest.approx(20.0)
    assert answer.rates == pytest.approx((20.0, 80.0))


def test_nobody_is_an_answer() -> None:
    assert split([1.0], []).shares == ()


def test_nonsense_is_refused() -> None:
    with pytest.raises(SolverError, match="at least one branch"):
        split([1.0], [[]])
    with pytest.raises(SolverError, match="weight of demand 0"):
        split([1.0], [[{0: 1.0}]], wanted=[0.0])
    with pytest.raises(UnboundedError, match="branch of demand 1"):
        split([1.0, math.inf], [[{0: 1.0}], [{0: 1.0}, {1: 1.0}]])


@st.composite
def choosing(draw: st.DrawFn) -> tuple[list[float], list[list[dict[int, float]]], list[float]]:
    count = draw(st.integers(1, 5))
    capacities = draw(st.lists(CAPACITIES, min_size=count, max_size=count))
    subflow = st.dictionaries(st.integers(0, count - 1), MULTIPLICITIES, min_size=1, max_size=3)
    choices = draw(st.lists(st.lists(subflow, min_size=1, max_size=3), min_size=1, max_size=5))
    wanted = [draw(st.sampled_from([1.0, 1.0, 2.0, 5.0])) for _ in choices]
    return capacities, choices, wanted


@given(choosing())
def test_every_split_has_its_certificate_and_fair_rates_reach_the_fraction(
    problem: tuple[list[float], list[list[dict[int, float]]], list[float]],
) -> None:
    capacities, choices, wanted = problem
    answer = split(capacities, choices, wanted=wanted)
    assert certify_split(capacities, choices, answer, wanted=wanted) == ()
    rates = max_min(System.of(capacities, answer.uses, weights=wanted)).rates
    for rate, want in zip(rates, wanted, strict=True):
        assert rate >= answer.fraction * want * (1.0 - 1e-7)
