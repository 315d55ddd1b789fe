"""The largest flow equals the smallest cut, and NetworkX agrees."""

from __future__ import annotations

import dataclasses
import math

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.errors import SolverError, UnboundedError
from topo.solve.certificates import certify_cut
from topo.solve.mincut import Cut, min_cut

# Two ways, of 10 and 4, into an arc of 12.
TAILS, HEADS, CAPACITIES = [0, 0, 1, 2], [1, 2, 2, 3], [4.0, 10.0, 4.0, 12.0]


def test_the_last_arc_binds() -> None:
    cut = min_cut(TAILS, HEADS, CAPACITIES, sources=[0], sinks=[3])
    assert (cut.value, cut.arcs, cut.near) == (12.0, (3,), (0, 1, 2))
    assert cut.flows[3] == 12.0


def test_of_two_smallest_cuts_the_nearest_to_the_source() -> None:
    cut = min_cut([0, 1], [1, 2], [5.0, 5.0], sources=[0], sinks=[2])
    assert (cut.arcs, cut.near) == ((0,), (0,))


def test_sets_of_sources_and_sinks() -> None:
    # 0 -> 2 of 3, 1 -> 2 of 4, 2 -> 3 of 5, 2 -> 4 of 6
    cut = min_cut([0, 1, 2, 2], [2, 2, 3, 4], [3.0, 4.0, 5.0, 6.0], sources={0, 1}, sinks={3, 4})
    assert (cut.value, cut.arcs) == (7.0, (0, 1))


def test_flow_that_must_be_taken_back() -> None:
    # The first way found uses the arc across; the largest flow does not.
    tails, heads = [0, 0, 1, 1, 2], [1, 2, 2, 3, 3]
    cut = min_cut(tails, heads, [1.0, 1.0, 1.0, 1.0, 1.0], sources=[0], sinks=[3])
    assert (cut.value, cut.flows) == (2.0, (1.0, 1.0, 0.0, 1.0, 1.0))


def test_no_way_is_no_flow() -> None:
    cut = min_cut([1], [0], [1.0], sources=[0], sinks=[1])
    assert (cut.value, cut.arcs) == (0.0, ())
    assert min_cut([0], [1], [0.0], sources=[0], sinks=[1]).value == 0.0
    assert min_cut([], [], [], sources=[0], sinks=[1]).value == 0.0


def test_without_end() -> None:
    with pytest.raises(UnboundedError):
        min_cut([0, 1], [1, 2], [math.inf, math.inf], sources=[0], sinks=[2])
    assert min_cut([0, 1], [1, 2], [math.inf, 3.0], sources=[0], sinks=[2]).flows == (3.0, 3.0)


@pytest.mark.parametrize(
    ("tails", "heads", "capacities", "sources", "sinks"),
    [
        ([0], [1, 2], [1.0], [0], [1]),
        ([0], [1], [-1.0], [0], [1]),
        ([0], [1], [math.nan], [0], [1]),
        ([0], [-1], [1.0], [0], [1]),
        ([0], [1], [1.0], [], [1]),
        ([0], [1], [1.0], [0], []),
        ([0], [1], [1.0], [0, 1], [1]),
    ],
)
def test_nonsense_is_refused(tails, heads, capacities, sources, sinks) -> None:
    with pytest.raises(SolverError):
        min_cut(tails, heads, capacities, sources=sources, sinks=sinks)


RIGHT = min_cut(TAILS, HEADS, CAPACITIES, sources=[0], sinks=[3])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"flows": (4.0, 8.0, 4.0, 13.0)}, "arc 3 carries 13.0 of 12.0"),
        ({"flows": (4.0, 8.0, 4.0, 11.0)}, "node 2 gets"),
        ({"value": 11.0}, "the flow out of the sources is"),
        ({"arcs": (0,)}, "a way around the cut"),
        ({"arcs": (0, 1)}, "the cut's arcs sum to 14.0"),
    ],
)
def test_each_lie_is_caught(change: dict, complaint: str) -> None:
    lie = dataclasses.replace(RIGHT, **change)
    said = certify_cut(TAILS, HEADS, CAPACITIES, lie, sources=[0], sinks=[3])
    assert any(sentence.startswith(complaint) for sentence in said), said
    assert certify_cut(TAILS, HEADS, CAPACITIES, RIGHT, sources=[0], sinks=[3]) == ()


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[int], list[float], set[int], set[int]]:
    nodes = draw(st.integers(2, 9))
    node = st.integers(0, nodes - 1)
    capacity = st.one_of(st.integers(0, 9).map(float), st.floats(0.01, 100.0))
    arcs = draw(st.lists(st.tuples(node, node, capacity), max_size=25))
    roles = draw(st.lists(st.sampled_from("st-"), min_size=nodes - 2, max_size=nodes - 2))
    sources = {0} | {n + 2 for n, role in enumerate(roles) if role == "s"}
    sinks = {1} | {n + 2 for n, role in enumerate(roles) if role == "t"}
    return [a for a, _, _ in arcs], [b for _, b, _ in arcs], [c for *_, c in arcs], sources, sinks


@given(graphs())
def test_every_cut_proves_its_flow_and_networkx_agrees(graph) -> None:
    tails, heads, capacities, sources, sinks = graph
    cut = min_cut(tails, heads, capacities, sources=sources, sinks=sinks)
    assert certify_cut(tails, heads, capacities, cut, sources=sources, sinks=sinks) == ()
    assert cut.value == pytest.approx(_by_networkx(*graph), rel=1e-9, abs=1e-12)


def _by_networkx(tails, heads, capacities, sources, sinks) -> float:
    graph: networkx.DiGraph = networkx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for tail, head, capacity in zip(tails, heads, capacities, strict=True):
        before = graph.get_edge_data(tail, head, {"capacity": 0.0})["capacity"]
        graph.add_edge(tail, head, capacity=before + capacity)
    graph.add_edges_from(("source", node) for node in sources)
    graph.add_edges_from((node, "sink") for node in sinks)
    return networkx.maximum_flow_value(graph, "source", "sink")


def test_many_arcs_give_the_same_as_few() -> None:
    # A grid of 60 x 60 with odd capacities, cut up by hand into 22,000 arcs: two and a bit each.
    side = 60
    tails, heads, capacities = [], [], []
    for row in range(side):
        for column in range(side):
            here = row * side + column
            for there in (here + 1 if column + 1 < side else None, here + side):
                if there is not None and there < side * side:
                    for part in range(3):
                        tails.append(here)
                        heads.append(there)
                        capacities.append(1.0 + (here * 7 + there * 13 + part) % 17 / 3.0)
    ends = {"sources": range(side), "sinks": range(side * side - side, side * side)}
    many = min_cut(tails, heads, capacities, **ends)
    assert len(tails) > 20_000
    assert isinstance(many, Cut)
    assert certify_cut(tails, heads, capacities, many, **ends) == ()
