"""Max-min rates: tiny systems stated as equations, laws on random ones, and bad input."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.systems import systems
from topo.errors import SolverError, UnboundedError
from topo.flows.demands import System
from topo.solve.arrays import compiled
from topo.solve.certificates import certify
from topo.solve.maxmin import max_min


def test_one_resource_is_shared_evenly() -> None:
    # a + b <= 10            =>  a = b = 5
    answer = max_min(System.of([10.0], [{0: 1.0}, {0: 1.0}]))
    assert answer.rates == (5.0, 5.0)
    assert answer.loads == (10.0,)
    assert answer.stops == ((0,), (0,))


def test_what_one_cannot_use_the_other_gets() -> None:
    # a <= 2, a + b <= 10    =>  a = 2, b = 8
    answer = max_min(System.of([2.0, 10.0], [{0: 1.0, 1: 1.0}, {1: 1.0}]))
    assert answer.rates == (2.0, 8.0)
    assert answer.stops == ((0,), (1,))


def test_multiplicity_loads_a_resource_more_but_earns_no_more() -> None:
    # 4a <= 400, a <= 50     =>  a = 50, the bus carries 200
    answer = max_min(System.of([400.0, 50.0], [{0: 4.0, 1: 1.0}]))
    assert answer.rates == (50.0,)
    assert answer.loads == (200.0, 50.0)


def test_weights_share_in_proportion() -> None:
    # a + b <= 9, a = 2 b    =>  a = 6, b = 3
    assert max_min(System.of([9.0], [{0: 1.0}, {0: 1.0}], weights=[2.0, 1.0])).rates == (6.0, 3.0)


def test_a_limit_of_its_own_is_no_resource() -> None:
    # a + b <= 10, a <= 1    =>  a = 1 (nothing full stops it), b = 9
    answer = max_min(System.of([10.0], [{0: 1.0}, {0: 1.0}], limits=[1.0, math.inf]))
    assert answer.rates == (1.0, 9.0)
    assert answer.stops == ((), (0,))


def test_a_limit_that_ties_with_a_resource_leaves_the_resource_in_the_reasons() -> None:
    # a + b <= 10, a <= 5    =>  a = b = 5, both stopped by the resource
    answer = max_min(System.of([10.0], [{0: 1.0}, {0: 1.0}], limits=[5.0, math.inf]))
    assert answer.stops == ((0,), (0,))


def test_two_cards_and_a_bus_full_at_the_same_level_are_a_tie() -> None:
    # 8 demands; chips: 4 each <= 50; bus: 4 x 8 each <= 400   =>  12.5, both full
    uses = [{index // 4: 1.0, 2: 4.0} for index in range(8)]
    answer = max_min(System.of([50.0, 50.0, 400.0], uses))
    assert answer.rates == (12.5,) * 8
    assert answer.stops == ((0, 2),) * 4 + ((1, 2),) * 4


def test_tie_in_which_floats_disagree_in_the_last_bit() -> None:
    # a + b + c <= 0.3, a <= 0.1: a third of 0.3 is not 0.1 in floats
    answer = max_min(System.of([0.3, 0.1], [{0: 1.0, 1: 1.0}, {0: 1.0}, {0: 1.0}]))
    assert answer.stops == ((0, 1), (0,), (0,))


def test_infinite_capacity_never_binds() -> None:
    answer = max_min(System.of([math.inf, 3.0], [{0: 1.0, 1: 1.0}]))
    assert (answer.rates, answer.loads, answer.stops) == ((3.0,), (3.0, 3.0), ((1,),))


def test_a_demand_on_nothing_gets_its_limit() -> None:
    answer = max_min(System.of([], [{}], limits=[7.0]))
    assert (answer.rates, answer.stops) == ((7.0,), ((),))


def test_no_demands_is_an_answer() -> None:
    answer = max_min(System.of([5.0], []))
    assert (answer.rates, answer.loads, answer.stops) == ((), (0.0,), ())


def test_a_demand_without_end_is_named() -> None:
    system = System.of([math.inf, 1.0], [{1: 1.0}, {0: 1.0}, {}])
    with pytest.raises(UnboundedError, match=r"demand 1 .*\n.*demand 2 "):
        max_min(system)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("field", ["capacities", "weights", "limits", "multiplicities"])
def test_nonsense_is_refused_by_name(field: str, wrong: float) -> None:
    fields = {
        "capacities": [1.0],
        "starts": [0, 1],
        "resources": [0],
        "multiplicities": [1.0],
        "weights": [1.0],
        "limits": [1.0],
        field: [wrong],
    }
    with pytest.raises(SolverError, match=r"expected a number greater than zero"):
        max_min(System(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["weights", "multiplicities"])
def test_infinite_weight_or_multiplicity_is_refused(field: str) -> None:
    fields = {"multiplicities": [1.0], "weights": [1.0], field: [math.inf]}
    with pytest.raises(SolverError, match="not infinite"):
        max_min(System([1.0], [0, 1], [0], limits=[1.0], **fields))


@pytest.mark.parametrize(
    ("starts", "resources"),
    [([0, 2], [0]), ([0], [0]), ([1, 1], [0]), ([0, 1], [1]), ([0, 1], [-1])],
)
def test_rows_that_do_not_fit_are_refused(starts: list[int], resources: list[int]) -> None:
    with pytest.raises(SolverError):
        max_min(System([1.0], starts, resources, [1.0] * len(resources), [1.0], [math.inf]))


def test_repeated_resource_in_a_row_is_refused() -> None:
    with pytest.raises(SolverError, match="without repeats"):
        max_min(System([1.0], [0, 2], [0, 0], [1.0, 1.0], [1.0], [math.inf]))


@given(systems())
def test_every_answer_has_its_certificate(system: System) -> None:
    assert certify(system, max_min(system)) == ()


@given(systems(), st.floats(1e-6, 1e12))
def test_scaling_every_capacity_scales_every_rate(system: System, scale: float) -> None:
    scaled = System(
        [capacity * scale for capacity in system.capacities],
        system.starts,
        system.resources,
        system.multiplicities,
        system.weights,
        [limit * scale for limit in system.limits],
    )
    expected = [rate * scale for rate in max_min(system).rates]
    assert max_min(scaled).rates == pytest.approx(expected, rel=1e-12)


@given(systems(), st.randoms(use_true_random=False))
def test_order_of_demands_and_names_of_resources_change_nothing(
    system: System, random: Random
) -> None:
    count = system.demand_count
    order, names = list(range(count)), list(range(len(system.capacities)))
    random.shuffle(order)
    random.shuffle(names)
    uses = [
        {
            names[system.resources[entry]]: system.multiplicities[entry]
            for entry in range(system.starts[demand], system.starts[demand + 1])
        }
        for demand in order
    ]
    capacities = [0.0] * len(names)
    for old, new in enumerate(names):
        capacities[new] = system.capacities[old]
    shuffled = System.of(
        capacities,
        uses,
        weights=[system.weights[demand] for demand in order],
        limits=[system.limits[demand] for demand in order],
    )
    before, after = max_min(system), max_min(shuffled)
    assert after.rates == pytest.approx([before.rates[demand] for demand in order], rel=1e-12)
    assert after.stops == tuple(
        tuple(sorted(names[resource] for resource in before.stops[demand])) for demand in order
    )


@given(systems(limits=False))
def test_splitting_a_demand_into_equal_halves_changes_no_total(system: System) -> None:
    # A demand of weight w is two of weight w / 2 on the same way.
    uses = [
        {
            system.resources[entry]: system.multiplicities[entry]
            for entry in range(system.starts[demand], system.starts[demand + 1])
        }
        for demand in range(system.demand_count)
    ]
    halves = System.of(
        system.capacities,
        [use for use in uses for _ in range(2)],
        weights=[weight / 2.0 for weight in system.weights for _ in range(2)],
    )
    rates = max_min(halves).rates
    joined = [a + b for a, b in zip(rates[::2], rates[1::2], strict=True)]
    assert joined == pytest.approx(max_min(system).rates, rel=1e-12)


def test_the_kernel_needs_no_cache(monkeypatch):
    caching = pytest.importorskip("numba.core.caching")
    for locator in caching.FunctionCache._impl_class._locator_classes:
        monkeypatch.setattr(locator, "from_function", lambda *_: None)
    assert compiled(lambda number: number + 1)(2) == 3
