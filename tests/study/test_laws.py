"""Laws that hold on any machine: names and order are nothing, nobody exceeds a capacity, ..."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import built
from tests.random_machines import Sketch, sketches
from topo.datapaths.registry import count, data_path
from topo.flows.demands import demands_of, use_matrix
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.solve.certificates import certify
from topo.solve.fluid import complete
from topo.solve.maxmin import max_min
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare
from topo.study.insights import (
    Faster,
    NoFaster,
    SerialWorker,
    Slower,
)
from topo.study.prices import explain
from topo.topology.locality import matrix
from topo.topology.topology import Topology

PATHS = ("legacy", "direct", "legacy-pageable", "odirect-pinned", "compat")
POLICIES = [
    Policy(),
    Policy(nics="stripe"),
    Policy(buffers=(("kernel", "near-nic"),)),
    Policy(nics="stripe", buffers=(("all", "near-nic"),)),
]
vias, policies = st.sampled_from(PATHS), st.sampled_from(POLICIES)
workloads = st.sampled_from(["load", "save"])


def solved(machine: Topology, workload: str, via: str, policy: Policy):
    (asked,) = [one for one in machine.description.workloads if one.name == workload]
    demands = demands_of(Router(machine, policy), asked, data_path(machine.description, via))
    assert all(demand.route.verdict != "refused" for demand in demands)
    found = use_matrix(machine, demands)
    return found, max_min(found.system)


@st.composite
def disguises(draw: st.DrawFn, sketch: Sketch) -> tuple[str, dict[str, str]]:
    """Write a sketch with other names, in another order, every link the other way round."""
    names = list(sketch.devices)
    others = draw(st.permutations([f"dev{n}x" for n in range(len(names))]))
    called = dict(zip(names, others, strict=True))
    order = draw(st.permutations(names))
    links = draw(st.permutations(range(len(sketch.links))))
    text = sketch.text(called=called, devices=order, links=links, turned=draw(st.booleans()))
    return text, called


@given(st.data(), sketches(), workloads, vias, policies)
def test_renaming_and_reordering_change_no_number(data, sketch, workload, via, policy):
    text, called = data.draw(disguises(sketch))
    plain, plain_rates = solved(built(sketch.text()), workload, via, policy)
    other, other_rates = solved(built(text), workload, via, policy)
    mine = {
        called[demand.endpoint]: rate
        for demand, rate in zip(plain.demands, plain_rates.rates, strict=True)
    }
    theirs = {
        demand.endpoint: rate for demand, rate in zip(other.demands, other_rates.rates, strict=True)
    }
    assert theirs == pytest.approx(mine)
    assert sorted(other_rates.loads) == pytest.approx(sorted(plain_rates.loads))
    verdicts = {called[demand.endpoint]: demand.route.verdict for demand in plain.demands}
    assert {demand.endpoint: demand.route.verdict for demand in other.demands} == verdicts


@given(st.data(), sketches())
def test_renaming_and_reordering_change_no_class(data, sketch):
    text, called = data.draw(disguises(sketch))
    mine, theirs = matrix(built(sketch.text())), matrix(built(text))
    assert {
        (called[one], called[other]): found
        for one, row in mine.items()
        for other, found in row.items()
    } == {(one, other): found for one, row in theirs.items() for other, found in row.items()}


@given(sketches(), workloads, vias, policies)
def test_answers_are_certified_and_nothing_is_overloaded(sketch, workload, via, policy):
    found, allocation = solved(built(sketch.text()), workload, via, policy)
    assert certify(found.system, allocation) == ()
    for resource, load in zip(found.resources, allocation.loads, strict=True):
        assert load <= resource.capacity.rate("theoretical") * (1 + 1e-9)
    assert all(allocation.stops)


@given(sketches(), workloads, vias, policies)
def test_a_route_s_use_is_consistent(sketch, workload, via, policy):
    machine = built(sketch.text())
    (asked,) = [one for one in machine.description.workloads if one.name == workload]
    path = data_path(machine.description, via)
    for demand in demands_of(Router(machine, policy), asked, path):
        use, subflows = demand.route.use, demand.route.subflows
        assert math.fsum(subflow.share for subflow in subflows) == pytest.approx(1.0)
        buses = math.fsum(weight for name, weight in use.items() if name.endswith("/bus"))
        assert buses == pytest.approx(count(path).dram_bytes)
        sides = [w for name, w in use.items() if name.startswith("storage") and "->" not in name]
        assert math.fsum(sides) == pytest.approx(1.0)
        assert math.fsum(w for name, w in use.items() if "/chip" in name) == pytest.approx(1.0)
        assert use[f"{demand.endpoint}/hbm"] == pytest.approx(1.0)
        for subflow in subflows:
            for transfer in subflow.transfers:
                assert all(one.target == two.source for one, two in pairwise(transfer.walk))
                into = math.fsum(
                    share for step, share in transfer.shares if step.target == transfer.target
                )
                assert into == pytest.approx(1.0 if transfer.walk else 0.0)


@given(sketches(even=True), vias, policies)
def test_a_write_is_as_fast_as_a_read_where_storage_is(sketch, via, policy):
    machine = built(sketch.text())
    _, read = solved(machine, "load", via, policy)
    _, write = solved(machine, "save", via, policy)
    assert write.rates == pytest.approx(read.rates)


@given(sketches(), workloads)
def test_more_buffers_are_never_faster(sketch, workload):
    # The same walks, and more on the RAM's bus for each payload byte.
    machine = built(sketch.text())
    slowest = [
        min(solved(machine, workload, via, Policy())[1].rates)
        for via in ("odirect-pinned", "legacy", "legacy-pageable")
    ]
    assert slowest[0] * (1 + 1e-9) >= slowest[1]
    assert slowest[1] * (1 + 1e-9) >= slowest[2]


@given(sketches(), workloads, vias)
def test_the_best_split_is_no_worse_than_stripes_for_the_slowest(sketch, workload, via):

    machine = built(sketch.text())
    best = compare(machine, workload=workload, via=[via], policy=Policy(nics="best"))[via]
    _, stripe = solved(machine, workload, via, Policy(nics="stripe"))
    assert min(best.rates.values()) >= min(stripe.rates) * (1 - 1e-6)


# --- what is said is about the time ---------------------------------------------------------------


def asked(sketch, workload):
    (answer,) = compare(built(sketch.text()), workload=workload, via=PATHS).workloads
    return answer


def time(path):
    return path.time


def climbed(sketch, workload, via):
    return bottleneck(built(sketch.text()), workload=workload, via=via)


@given(sketches(capped=True), workloads)
def test_whatever_is_called_faster_has_the_lesser_time(sketch, workload):
    answer = asked(sketch, workload)
    for fact in answer.insights:
        if isinstance(fact, SerialWorker):
            assert fact.ratio == pytest.approx(answer.workload.size / fact.rate / time(fact.direct))
            assert fact.ratio > 1
        elif isinstance(fact, Faster | Slower | NoFaster):
            ratio = time(fact.rival) / time(fact.path)
            if isinstance(fact, NoFaster):
                assert ratio == pytest.approx(1, rel=1e-5)
            else:
                assert (ratio > 1) is isinstance(fact, Faster)
            if isinstance(fact, Faster):
                assert fact.ratio == pytest.approx(ratio)


@given(sketches(capped=True), workloads)
def test_rate_times_time_is_the_bytes(sketch, workload):
    answer = asked(sketch, workload)
    for path in answer.paths:
        assert path.rate * path.time == pytest.approx(answer.workload.size)
        assert path.start_rate == pytest.approx(math.fsum(path.rates.values()))
        assert path.start_rate >= path.rate * (1 - 1e-9)
    for rung in climbed(sketch, workload, "direct").rungs:
        assert rung.rate * rung.time == pytest.approx(answer.workload.size)


@given(sketches(capped=True), workloads, vias)
def test_a_price_is_what_one_gigabyte_more_and_less_does(sketch, workload, via):
    matrix = climbed(sketch, workload, via).answer.matrix
    sizes = [demand.size for demand in matrix.demands]
    prices = explain(matrix, sized=True).prices

    def changed(resources, more):
        capacities = list(matrix.system.capacities)
        for resource in resources:
            capacities[matrix.resources.index(resource)] += more
        return replace(matrix.system, capacities=tuple(capacities))

    def end(resources, more):
        return complete(changed(resources, more), sizes).end

    def total(resources, more):
        return math.fsum(max_min(changed(resources, more)).rates)

    now = end((), 0)
    assert prices.time == pytest.approx(now)
    for price in prices.classes:
        pairs = [
            (price.resources[:1], price.single, price.single_time),
            (price.resources, price.together, price.together_time),
        ]
        for resources, rate, seconds in pairs:
            assert now - seconds.saved == pytest.approx(end(resources, 1e9))
            if seconds.lost is None:
                assert price.resources[0].capacity.rate("theoretical") <= 1e9
            else:
                assert now + seconds.lost == pytest.approx(end(resources, -1e9))
            step = min(1e9, rate.range_up)
            assert total(resources, step) == pytest.approx(prices.total + rate.gain * step)
            assert total(resources, -1e3) == pytest.approx(prices.total - rate.cost * 1e3, abs=1)
