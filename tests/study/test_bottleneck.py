"""What binds, what would bind next, and where it ends."""

from __future__ import annotations

import pytest

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.study.bottleneck import bottleneck
from topo.views.sentences import sentence

CHIPS = ["nic-chip"]
SLOTS = ["card-pcie"]
PORTS = ["network-port"]
RAM = ["memory-bus"]
END = ["gpu-pcie"]

LADDERS = [
    ("gds-textbook", "direct", [(100, CHIPS), (126.03, SLOTS), (200, PORTS), (504.12, END)]),
    (
        "gds-textbook",
        "legacy",
        [(100, [*RAM, *CHIPS]), (126.03, SLOTS), (200, PORTS), (504.12, END)],
    ),
    (
        "gds-textbook",
        "legacy-pageable",
        [(66.67, RAM), (100, CHIPS), (126.03, SLOTS), (200, PORTS), (504.12, END)],
    ),
    (
        "dgx-h100",
        "direct",
        [(100, CHIPS), (126.03, SLOTS), (200, PORTS), (504.12, ["uplink", *END])],
    ),
    (
        "dgx-h100",
        "legacy",
        [
            (100, CHIPS),
            (126.03, SLOTS),
            (140.8, RAM),
            (200, PORTS),
            (504.12, ["uplink", *END]),
        ],
    ),
    (
        "dgx-h100",
        "legacy-pageable",
        [(93.87, RAM), (100, CHIPS), (126.03, SLOTS), (200, PORTS), (504.12, ["uplink", *END])],
    ),
]


def climbed(machine, via, workload="load"):
    return bottleneck(machine, workload=workload, via=via)


@pytest.mark.parametrize(("name", "via", "rungs"), LADDERS)
def test_the_six_ladders(name, via, rungs):
    found = climbed(shipped(name), via)
    assert [
        (round(rung.rate / 1e9, 2), sorted(kind for kind, _ in rung.classes))
        for rung in found.rungs
    ] == [(rate, sorted(classes)) for rate, classes in rungs]
    assert sentence(found.end).endswith("cannot be bought apart from the GPU")


@pytest.mark.parametrize(("name", "via", "rungs"), LADDERS)
def test_a_rung_holds_all_equal_resources_of_its_class(name, via, rungs):
    for rung in climbed(shipped(name), via).rungs:
        for kind, group in rung.classes:
            expected = {"nic-chip": 2, "card-pcie": 2, "network-port": 4, "memory-bus": 2}
            assert len(group) == expected.get(kind, 8)
            assert {one.resource.kind for one in group} == {kind}


@pytest.mark.parametrize(("name", "via", "rungs"), LADDERS)
def test_a_checkpoint_climbs_the_same_ladder(name, via, rungs):
    load, save = (climbed(shipped(name), via, workload) for workload in ("load", "checkpoint"))
    assert [rung.rate for rung in save.rungs] == pytest.approx([rung.rate for rung in load.rungs])


# gpu0's own PCIe is narrow; gpu1 is held back by the socket link.
NARROW = TWO_SOCKETS.replace(
    "  - gpu -- cpu: pcie 5 x16", "  - gpu0 -- cpu0: pcie 3 x4\n  - gpu1 -- cpu1: pcie 5 x16"
).replace("workloads:", "workloads:\n  load: {read: 10 GB, from: storage, to: gpu}")


def test_what_cannot_be_bought_stays_while_the_rest_is_raised():
    found = bottleneck(built(NARROW), source="storage", target="gpu", via="direct")
    narrow = built(NARROW).resources["cpu0 -> gpu0"].capacity.rate("theoretical")
    first, *_, last = found.rungs
    assert "gpu-pcie" in [kind for kind, _ in first.classes]
    assert last.rate < narrow + 64e9  # gpu0 never gets more than its own link
    assert all(
        one.rate <= other.rate for one, other in zip(found.rungs, found.rungs[1:], strict=False)
    )


def test_with_bytes_given_it_ends_where_whoever_is_last_cannot_be_helped():
    # 5 GB at the 3.938 GB/s of gpu0's own PCIe 3 x4: gpu1 is done long before.
    (rung,) = climbed(built(NARROW), "direct").rungs
    assert [kind for kind, _ in rung.classes] == ["gpu-pcie"]
    assert rung.time == pytest.approx(5e9 / (8e9 * 4 * 128 / 130 / 8))
    assert rung.rate * rung.time == pytest.approx(10e9)


# The card's 50 GB/s for both GPUs, of which one is behind a cap of 5 GB/s: 80 GB each.
FINISH_APART = TWO_SOCKETS.replace(
    "cpu0 -- cpu1: upi 16 GT/s", "cpu0 -- cpu1: {medium: upi 16 GT/s, p2p: {posted: 5 GB/s}}"
).replace("workloads:", "workloads:\n  load: {read: 160 GB, from: storage, to: gpu}")


def test_where_gpus_finish_apart_the_ladder_is_about_the_time():
    found = climbed(built(FINISH_APART), "direct")
    assert [
        (round(rung.rate / 1e9, 2), round(rung.time, 3), sorted(kind for kind, _ in rung.classes))
        for rung in found.rungs[:2]
    ] == [
        (10.0, 16.0, ["peer-to-peer"]),
        (50.0, 3.2, ["network-port", "nic-chip"]),
    ]
    # 3.2 s is what the port needs for 160 GB, so another choice might be faster than 16 s.
    assert found.any_routing.rate == pytest.approx(50e9)
    assert not found.any_routing.reached
    assert not found.answer.tied


def test_a_tie_is_about_the_same_demands():
    at_first = bottleneck(built(FINISH_APART), source="storage", target="gpu", via="direct")
    kinds = {resource.kind for resource in at_first.answer.bound}
    assert kinds == {"network-port", "nic-chip", "peer-to-peer"}
    assert not at_first.answer.tied  # the cap stops gpu1, the others gpu0
    assert climbed(shipped("gds-textbook"), "legacy").answer.tied


def test_it_ends_at_the_demands_own_limits():
    text = ONE_SOCKET.replace("to: gpu0}", "to: gpu0, limit: 3 GB/s}", 1)
    found = climbed(built(text), "direct")
    assert found.rungs == ()
    assert sentence(found.end) == "the workload's own limit is all that is left"


def test_one_demand_at_its_limit_and_one_at_its_gpu_s_pcie_ends():
    own = "data-paths:\n  mine: {workers: 1, moves: [storage -> gpu by nic: 2 GB/s per worker]}\n"
    found = climbed(built(NARROW + own), "mine")
    assert found.rungs == ()


def test_it_ends_when_nothing_else_is_in_the_file():
    text = LOCAL_DRIVES.replace("hbm: 3000 GB/s, ", "").replace(
        "  - gpu0 -- cpu0: pcie 5 x16", "  - gpu0 -- cpu0: pcie unknown"
    )
    text = text.replace("gpu, pcie: 5 x16", "gpu")
    found = climbed(built(text), "direct")
    assert [kind for kind, _ in found.rungs[0].classes] == ["drive-read"]
    assert sentence(found.end) == "nothing else in the file limits"
