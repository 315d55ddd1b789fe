"""Like things are merged, and solving the classes is solving the whole."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.flows.demands import System
from topo.solve.certificates import certify
from topo.solve.equivalence import fold
from topo.solve.maxmin import max_min


def server(first: int) -> list[dict[int, float]]:
    """Eight demands on two cards, a bus, and a link each."""
    return [{first + i // 4: 1.0, first + 2: 4.0, first + 3 + i: 1.0} for i in range(8)]


CAPACITIES = [50.0, 50.0, 400.0] + [63.0] * 8


def test_a_thousand_like_servers_are_one_class() -> None:
    system = System.of(CAPACITIES * 1000, [use for n in range(1000) for use in server(11 * n)])
    folded = fold(system)
    assert folded.system.demand_count == 1
    assert len(folded.system.capacities) == 3
    assert folded.demands.sizes.tolist() == [8000]
    answer = folded.unfold(max_min(folded.system))
    assert answer.rates == (12.5,) * 8000
    assert answer.stops[4:6] == ((1, 2), (1, 2))
    assert certify(system, answer) == ()


def test_one_slower_card_splits_only_what_it_touches() -> None:
    slow = [40.0, *CAPACITIES[1:]]
    system = System.of(slow + CAPACITIES * 9, [use for n in range(10) for use in server(11 * n)])
    folded = fold(system)
    # the slow card's four, the other four of its server, and everybody else
    assert folded.demands.sizes.tolist() == [4, 4, 72]


@pytest.mark.parametrize(
    "system",
    [
        System.of([10.0, 20.0], [{0: 1.0}, {1: 1.0}]),
        System.of([10.0, 10.0], [{0: 1.0}, {1: 2.0}]),
        System.of([10.0, 10.0], [{0: 1.0}, {1: 1.0}], weights=[1.0, 2.0]),
        System.of([10.0, 10.0], [{0: 1.0}, {1: 1.0}], limits=[1.0, math.inf]),
        System.of([10.0, 10.0], [{0: 1.0}, {0: 1.0}, {1: 1.0}]),
    ],
    ids=["capacity", "multiplicity", "weight", "limit", "company"],
)
def test_what_differs_stays_apart(system: System) -> None:
    assert fold(system).demands.count >= 2


@st.composite
def copies(draw: st.DrawFn) -> System:
    """Draw a system that stands several times side by side, on some resources of all."""
    one = draw(systems(most_demands=4, most_resources=4))
    times = draw(st.integers(2, 4))
    width = len(one.capacities)
    # What is shared must be the same for all copies: those of the first are.
    shared = draw(st.sets(st.integers(0, width - 1)))
    uses = [
        {
            (r if r in shared else r + n * width): one.multiplicities[entry]
            for entry in range(one.starts[d], one.starts[d + 1])
            for r in (one.resources[entry],)
        }
        for n in range(times)
        for d in range(one.demand_count)
    ]
    return System.of(
        list(one.capacities) * times,
        uses,
        weights=list(one.weights) * times,
        limits=list(one.limits) * times,
    )


@given(copies())
def test_folding_changes_no_rate_and_no_reason(system: System) -> None:
    folded = fold(system)
    assert folded.demands.count < system.demand_count
    answer = folded.unfold(max_min(folded.system))
    whole = max_min(system)
    assert answer.rates == pytest.approx(whole.rates, rel=1e-12)
    assert answer.loads == pytest.approx(whole.loads, rel=1e-12)
    assert answer.stops == whole.stops


def test_sums_that_collide_merge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two demands of one kind each, were it not for what they use; all sums made equal.
    system = System.of([10.0, 20.0], [{0: 1.0}, {1: 1.0}, {0: 1.0}])
    monkeypatch.setattr("topo.solve.equivalence._mix", lambda keys: keys * 0)
    assert fold(system).demands.count == 3


@given(systems())
def test_any_system_survives_folding(system: System) -> None:
    folded = fold(system)
    assert certify(system, folded.unfold(max_min(folded.system))) == ()
