"""Fewest links, then widest, shared evenly: against brute force on small graphs."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import PARTS, TWO_SOCKETS, built, shipped
from tests.random_machines import sketches
from topo.graph import breadth_first
from topo.routes.nearness import by_class
from topo.routes.router import Router
from topo.routes.search import Search, by_name, passes_host, passes_network
from topo.study.compare import compare
from topo.topology.locality import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.description.description import Device
    from topo.topology.topology import Layer


def network(edges: list[tuple[int, int, int]], switches: int) -> str:
    """Return a storage and a card among network switches; an edge is two nodes and a rate."""
    names = ["storage", "nic0", *(f"sw{n}" for n in range(switches))]
    lines = [
        PARTS,
        "devices:",
        "  storage: target",
        "  nic0: {part: card, ports: 40x 800 Gb/s}",
        "  cpu0: socket",
        "  ram0: dram",
        "  gpu0: accel",
        "  lonely: target",
        "  nic1: card",
        f"  sw[0-{switches - 1}]: spectrum-4",
        "links:",
        "  - nic0 -- cpu0: pcie 5 x16",
        "  - nic1 -- cpu0: pcie 5 x16",
        "  - lonely -- nic1: infiniband ndr",
        "  - ram0 -- cpu0: memory-bus",
        "  - gpu0 -- cpu0: pcie 5 x16",
        "  - storage -- sw0: ethernet 400 Gb/s",
        "  - nic0 -- sw0: ethernet 400 Gb/s",
        *(f"  - sw0 -- sw{n}: ethernet 400 Gb/s" for n in range(1, switches)),
        *(f"  - {names[a]} -- {names[b]}: ethernet {rate} Gb/s" for a, b, rate in edges),
    ]
    return "\n".join(lines) + "\n"


@st.composite
def networks(draw: st.DrawFn) -> str:
    switches = draw(st.integers(1, 4))
    nodes = st.integers(0, switches + 1)
    edge = st.tuples(nodes, nodes, st.sampled_from([100, 200, 400])).filter(
        lambda one: one[0] != one[1] and set(one[:2]) != {0, 1}
    )
    return network(draw(st.lists(edge, max_size=8)), switches)


def simple_walks(machine, source, target):
    """Every walk without repeats that passes through network switches only, link by link."""

    def onward(walk, seen):
        here = walk[-1].target if walk else source
        if here == target:
            yield tuple(walk)
            return
        if here != source and machine[here].kind != "network-switch":
            return
        for step in machine.steps[here]:
            if step.link.layer == "network" and step.target not in seen:
                yield from onward([*walk, step], {*seen, step.target})

    return list(onward([], {source}))


def width(walk):
    return min(step.resource.capacity.rate("theoretical") for step in walk)


@given(networks())
def test_the_walks_found_are_the_shortest_and_of_those_the_widest_evenly(text):
    machine = built(text)
    every = simple_walks(machine, "storage", "nic0")
    shortest = min(map(len, every))
    widest = max(width(walk) for walk in every if len(walk) == shortest)
    best = [walk for walk in every if len(walk) == shortest and width(walk) == widest]
    expected: dict[str, float] = defaultdict(float)
    for walk in best:
        for step in walk:
            expected[step.resource.id] += 1 / len(best)
    found = Search(machine, ("network",), passes_network).paths("storage", "nic0")
    assert found.count == len(best)
    assert found.width == widest
    assert found.example in best
    shares: dict[str, float] = defaultdict(float)
    for step, share in found.shares:
        shares[step.resource.id] += share
    assert shares == pytest.approx(expected)


@given(networks())
def test_back_is_there_turned_round(text):
    search = Search(built(text), ("network",), passes_network)
    there, back = search.paths("storage", "nic0"), search.paths("nic0", "storage")
    assert there.count == back.count
    forward = sorted((step.link.name, share) for step, share in there.shares)
    backward = sorted((step.link.name, share) for step, share in back.shares)
    assert [name for name, _ in forward] == [name for name, _ in backward]
    assert [share for _, share in forward] == pytest.approx([share for _, share in backward])


@given(networks())
def test_first_takes_one_of_the_best_walks_whole(text):
    machine = built(text)
    spread = Search(machine, ("network",), passes_network)
    first = Search(machine, ("network",), passes_network, spread=False)
    one = first.paths("storage", "nic0")
    assert one.count == 1
    assert [step for step, _ in one.shares] == list(one.example)
    assert {share for _, share in one.shares} == {1.0}
    assert one.example == spread.paths("storage", "nic0").example


def test_nothing_goes_through_memory_a_gpu_or_storage():
    machine = built(TWO_SOCKETS)
    search = Search(machine, ("host", "memory"), passes_host)
    for end in ("gpu0", "ram0", "nic0"):
        assert search.paths(end, "gpu1").example[0].target == "cpu0"
    assert not any(passes_host(machine[name]) for name in ("ram0", "gpu0", "nic0", "storage"))
    assert passes_host(shipped("dgx-h100")["nic0"])


def test_no_way_is_none():
    machine = built(TWO_SOCKETS)
    assert Search(machine, ("host",), passes_host).paths("storage", "gpu0") is None
    assert Search(machine, ("gpu",), passes_host).paths("gpu0", "gpu1") is None


def test_an_unknown_rate_does_not_narrow_a_walk():
    machine = shipped("gds-textbook")
    ways = Search(machine, ("host",), passes_host).paths("root0", "root1")
    assert ways.width == math.inf


def test_names_sort_as_people_count():
    assert sorted(["gpu10", "gpu9", "cpu2"], key=by_name) == ["cpu2", "gpu9", "gpu10"]


# --- links side by side ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rates", "total"), [((8, 8), 32), ((8, 16), 48), ((16, 8, 4), 56)])
@pytest.mark.parametrize("via", ["legacy", "direct"])
def test_links_between_two_sockets_add_up_whatever_the_width_of_each(rates, total, via):
    # 2 GB/s for each GT/s of an xgmi link; the card and its slot pass 63 GB/s.
    links = "\n".join(f"  - cpu0 -- cpu1: xgmi {rate} GT/s" for rate in rates)
    text = TWO_SOCKETS.replace("  - cpu0 -- cpu1: upi 16 GT/s", links)
    text = text.replace("1x 400 Gb/s, chip: 400 Gb/s", "1x 800 Gb/s, chip: 800 Gb/s").replace(
        "infiniband ndr", "infiniband xdr"
    )
    text = text.replace("bus: 200 GB/s", "bus: 900 GB/s")
    machine = built(text)
    paths = Search(machine, ("host", "memory"), passes_host).paths("cpu0", "cpu1")
    shares = sorted(share for _, share in paths.shares)
    assert shares == sorted(rate / sum(rates) for rate in rates)
    found = compare(machine, workload="far", via=[via])[via]
    assert found.rate == pytest.approx(total * 1e9)
    assert (
        found.hops_range == compare(built(TWO_SOCKETS), workload="far", via=[via])[via].hops_range
    )


def test_one_walk_taken_whole_is_one_of_the_widest():
    links = "  - cpu0 -- cpu1: xgmi 8 GT/s\n  - cpu0 -- cpu1: xgmi 16 GT/s"
    machine = built(TWO_SOCKETS.replace("  - cpu0 -- cpu1: upi 16 GT/s", links))
    paths = Search(machine, ("host", "memory"), passes_host, spread=False).paths("cpu0", "cpu1")
    ((step, share),) = paths.shares
    assert (step.resource.capacity.rate("theoretical"), share) == (32e9, 1.0)


# --- what devices share ---------------------------------------------------------------------------


@given(sketches())
def test_what_is_searched_for_once_is_what_each_device_would_find(sketch):
    machine = built(sketch.text())
    kinds: list[tuple[tuple[Layer, ...], Callable[[Device], bool]]] = [
        (("host", "memory"), passes_host),
        (("network",), passes_network),
    ]
    for layers, passes in kinds:
        search = Search(machine, layers, passes)
        for name in machine.devices:

            def neighbours(at, *, start=name, layers=layers, passes=passes):
                steps = machine.steps[at] if at == start or passes(machine[at]) else ()
                return [step.target for step in steps if step.link.layer in layers]

            found = search.distances(name)
            assert list(found.items()) == list(breadth_first([name], neighbours).items())
            assert len(found) == len(list(found))


@given(sketches())
def test_the_first_to_ask_has_the_same_answer(sketch):
    """The way up to the root, and the nearest cards, depend on nobody who asked before."""
    machine = built(sketch.text())
    together, storages = Router(machine), [device.name for device in machine.of_kind("storage")]
    measure = by_class(machine)
    for gpu in (device.name for device in machine.of_kind("gpu")):
        assert machine.tree.attachments(gpu) == Tree(machine).attachments(gpu)
        alone = Router(machine)
        for storage in storages:
            nearest = together.nearest_cards(storage, gpu)
            assert nearest == alone.nearest_cards(storage, gpu)
        for card in (device.name for device in machine.of_kind("nic", "gpu")):
            assert measure(gpu, card) == by_class(machine)(gpu, card)
