"""What changes do to the time, ranked; what breaks a rule is said with the reason."""

from __future__ import annotations

import pytest

import topo
from tests.machines import ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.errors import NoRouteError, UnknownNameError
from topo.study.upgrade import KINDS, Candidate, candidates
from topo.views.sentences import upgrade_reason

CARD = "connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)"
SLOTS = 2 * 32e9 * 16 * 128 / 130 / 8  # both slots' PCIe 5 x16


def times(found):
    return {one.title: one.outcome.time for one in found.ranked}


@pytest.mark.parametrize("via", ["legacy", "direct"])
def test_the_load_of_a_dgx_h100(via):
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via=via)
    # Two cards of 50 GB/s bind. Chips of 100 leave the slots: 640 GB at 126.03 GB/s.
    assert found.now.time == pytest.approx(6.4)
    assert found.ranked[0].title == CARD
    assert found.ranked[0].outcome.time == pytest.approx(640e9 / SLOTS)
    assert upgrade_reason(found, found.ranked[0]) == "the cards' chips before, now the slots' PCIe"
    # Nothing else helps: neither RAM nor another data path binds.
    assert found.ranked[1].outcome.time == pytest.approx(6.4)


def test_load_and_checkpoint_of_a_dgx_h100_together():
    found = topo.upgrades(shipped("dgx-h100"), via="legacy", together=True)
    # RAM 563.2 GB/s at 4 bytes a byte: 140.8 for both, 70.4 each; 140 / 70.4 = 1.989, then the
    # load's last 500 GB at the cards' 100: 6.989.
    first = 140 / 70.4
    assert found.now.times == pytest.approx({"load": first + 5.0, "checkpoint": first})
    best = found.ranked[0]
    # Faster cards do not help while RAM binds; the last 500 GB go at the slots' 126.03.
    assert best.title == CARD
    assert best.outcome.times == pytest.approx({"load": first + 500e9 / SLOTS, "checkpoint": first})
    # By direct nothing is shared: each as alone.
    direct = next(one for one in found.ranked if one.via == "direct")
    assert direct.outcome.times == pytest.approx({"load": 6.4, "checkpoint": 1.4})


def test_combinations_only_where_they_are_worth_more():
    machine = shipped("dgx-h100")
    singles = times(topo.upgrades(machine, via="legacy", together=True))
    found = topo.upgrades(machine, via="legacy", together=True, combine=2)
    pairs = [one for one in found.ranked if len(one.parts) == 2]
    assert pairs
    for one in pairs:
        assert one.outcome.time < min(singles[part.title] for part in one.parts)
    # Faster cards and no RAM: 640 at the slots' rate, both at once.
    assert found.ranked[0].outcome.time == pytest.approx(640e9 / SLOTS)
    assert {part.kind for part in found.ranked[0].parts} == {"other-card", "data-path"}


def test_no_pair_where_one_does_it_all():
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="direct", combine=2)
    assert all(len(one.parts) == 1 for one in found.ranked)


def test_rejected_candidates_have_reasons():
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="legacy")
    why = {one.title: reason for one, reason in found.rejected}
    assert why["slot1 moved from cpu1 to cpu0"] == (
        "cpu0 has 80 PCIe lanes (xeon-8480c), and the links take 96"
    )
    assert why[f"{CARD} on PCIe 6"] == "cpu1 (xeon-8480c) is PCIe 5"
    assert "storage is not local to the server" in why["data path p2pdma"]
    assert sum(len(titles) for _, titles in found.obstacles) <= len(found.rejected)
    assert len({reason for reason, _ in found.obstacles}) == len(found.obstacles)


def test_what_comes_out_the_same_is_one_line():
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="legacy")
    assert sum(len(group) for _, group in found.rows) == len(found.ranked)
    for title, group in found.rows:
        assert len({f"{one.outcome.time:.9g}" for one in group}) == 1
        for one in group:
            assert all(part.thing in title for part in one.parts)
    assert any("data path compat, direct, mmap" in title for title, _ in found.rows)


def test_costs_are_for_each_thing():
    costs = {"other-card": 1800.0, "data-path": 0.0}
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="legacy", costs=costs)
    by_title = {one.title: one.cost for one in found.ranked}
    assert by_title[CARD] == 3600
    assert by_title["data path direct"] == 0
    assert by_title["one DIMM a channel"] is None


def test_what_costs_less_comes_first_among_equals():
    costs = {"faster-memory": 10.0, "data-path": 90.0}
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="legacy", costs=costs)
    same = [one for one in found.ranked if one.outcome.time == pytest.approx(6.4) and one.cost]
    by_count: dict[int, list[float]] = {}
    for one in same:
        by_count.setdefault(one.count, []).append(one.cost or 0.0)
    assert all(group == sorted(group) for group in by_count.values())


def test_starts_count():
    text = TWO_SOCKETS.replace("back: {", "back: {start: 10 s, ")
    found = topo.upgrades(built(text), via="legacy", together=True)
    # 50 GB at 50 GB/s, all alone by then.
    assert found.now.times["back"] >= 11
    assert found.now.time == found.now.times["back"]
    assert all(one.outcome.times["back"] > 10 for one in found.ranked)


def test_what_does_not_work_is_said():
    machine = built(TWO_SOCKETS, {"gpu0.p2p": "no"})
    with pytest.raises(NoRouteError, match="near cannot go by direct"):
        topo.upgrades(machine, via="direct")
    with pytest.raises(UnknownNameError, match="no workload lod"):
        topo.upgrades(machine, workload="lod")
    with pytest.raises(UnknownNameError, match="dirct"):
        topo.upgrades(machine, via="dirct")


# --- what could be changed ------------------------------------------------------------------------


def offered(machine, via="legacy"):
    found = topo.compare(machine, workload=machine.description.workloads[0].name, via=(via,))
    return candidates(machine, found.workloads[0].paths[0].routes, via)


def titles(machine, kind, via="legacy"):
    return [one.title for one in offered(machine, via) if one.kind == kind]


def test_every_kind_is_known():
    for name in ("dgx-h100", "dgx-a100", "gds-textbook"):
        assert {one.kind for one in offered(shipped(name))} <= set(KINDS)


def test_cards_with_a_faster_chip_and_enough_ports():
    found = titles(shipped("dgx-h100"), "other-card")
    assert found[0] == "connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)"
    assert all("connectx-7-dual-port (" in one for one in found)


def test_one_more_card_and_one_beside_each():
    found = titles(shipped("dgx-h100"), "another-card")
    assert found == [
        "a second connectx-7-dual-port beside each (slot3, slot4)",
        "another connectx-7-dual-port (slot3) beside slot1",
        "another connectx-7-dual-port (slot3) beside slot2",
    ]


def test_a_bus_quoted_as_a_whole_has_no_modules():
    assert titles(shipped("gds-textbook"), "faster-memory") == []
    assert "one DIMM a channel" in titles(shipped("dgx-h100"), "faster-memory")


def test_only_memory_that_the_cpu_takes_is_offered():
    # A Sapphire Rapids takes DDR5-4800; an Emerald Rapids 5600, with one DIMM a channel.
    assert titles(shipped("dgx-h100"), "faster-memory") == ["one DIMM a channel"]
    newer = shipped("dgx-h100").replace({"cpu.part": "xeon-8570"})
    assert "ddr5-5600 instead of ddr5-4800" in titles(newer, "faster-memory")
    assert not any("ddr5-6" in title for title in titles(newer, "faster-memory"))


def test_direct_leaves_memory_alone():
    assert titles(shipped("dgx-h100"), "faster-memory", via="direct") == []


def test_every_other_data_path_but_not_the_one_in_use():
    found = titles(shipped("dgx-h100"), "data-path")
    assert "data path direct" in found
    assert "data path legacy" not in found


def test_no_change_is_offered_twice():
    for name in ("dgx-h100", "dgx-a100", "l40s-two-switches"):
        found = [(tuple(sorted(one.changes.items())), one.via) for one in offered(shipped(name))]
        assert len(found) == len(set(found))


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "l40s-two-switches"])
def test_changes_are_what_set_takes(name):
    machine = shipped(name)
    for one in offered(machine):
        try:
            machine.replace(one.changes)
        except topo.TopoError as error:
            codes = {finding.code for finding in error.findings}
            assert not codes & {"unknown-name", "unknown-key", "bad-override"}, one.title


def test_a_machine_with_nothing_to_move_offers_little():
    kinds = {one.kind for one in offered(built(ONE_SOCKET))}
    assert "other-socket" not in kinds


def test_a_title_is_a_frame_with_a_thing():
    one = Candidate("data-path", "data path {}", "direct", via="direct")
    assert (one.title, one.framed("direct or mmap")) == (
        "data path direct",
        "data path direct or mmap",
    )
