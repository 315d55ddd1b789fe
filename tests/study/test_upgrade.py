"""What changes do to the time, ranked; what breaks a rule is said with the reason."""

from __future__ import annotations

import pytest

import topo
from tests.machines import ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.errors import NoRouteError, UnknownNameError
from topo.study.candidates import KINDS, Candidate, candidates
from topo.study.upgrade import best_of_each_kind
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
    assert why["another connectx-7-dual-port (slot3) beside slot2"] == (
        "cpu0 has 80 PCIe lanes (xeon-8480c), and the links take 96"
    )
    assert f"{CARD} on PCIe 6" not in why  # a host of PCIe 5 is not offered it
    assert "storage is not local to the server" in why["data path p2pdma"]
    assert sum(len(titles) for _, titles in found.obstacles) <= len(found.rejected)
    assert len({reason for reason, _ in found.obstacles}) == len(found.obstacles)


def test_what_comes_out_the_same_is_one_line():
    found = topo.upgrades(shipped("dgx-h100"), workload="load", via="legacy")
    rows = (*found.rows, *found.without_gain, *found.slower)
    assert sum(len(group) for _, group in rows) == len(found.ranked)
    for title, group in rows:
        assert len({f"{one.outcome.time:.9g}" for one in group}) == 1
        for one in group:
            assert all(part.thing in title for part in one.parts)
    assert "data path direct, routed-nvlink, compat" in found.without_gain[0][0]


def test_costs_are_for_each_thing():
    costs = {"other-card": 1800.0, "data-path": 0.0}
    found = topo.upgrades(shipped("dgx-h100"), via="legacy", together=True, costs=costs)
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
    workload = machine.description.workloads[0]
    found = topo.compare(machine, workload=workload.name, via=(via,)).workloads[0].paths[0]
    return candidates(machine, [one.resource for one in found.bottlenecks], via, [workload])


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
        "a second connectx-7-dual-port beside each (slot3 and slot4)",
        "another connectx-7-dual-port (slot3) beside slot1",
        "another connectx-7-dual-port (slot3) beside slot2",
    ]


def test_a_bus_quoted_as_a_whole_has_no_modules():
    assert titles(shipped("gds-textbook"), "faster-memory") == []
    assert "one DIMM a channel" in titles(shipped("dgx-h100"), "faster-memory", "legacy-pageable")


def test_only_memory_that_the_cpu_takes_is_offered():
    def memory(changes):
        machine = shipped("dgx-h100").replace(changes)
        return titles(machine, "faster-memory", "legacy-pageable")

    # A Sapphire Rapids takes DDR5-4800; an Emerald Rapids 5600, with one DIMM a channel.
    assert memory({}) == ["one DIMM a channel"]
    newer = memory({"cpu.part": "xeon-8570", "ram.part": "ddr5-4400", "ram.channels": "6"})
    assert newer[1:] == [
        "ddr5-4800 instead of ddr5-4400",
        "ddr5-5200 instead of ddr5-4400",
        "ddr5-5600 instead of ddr5-4400",
        "modules in all 8 channels instead of 6",
    ]
    # what a CPU takes that nobody knows is not known
    assert memory({"cpu.part": "cpu-unknown", "cpu.pcie": "5"}) == ["one DIMM a channel"]


def test_modules_faster_than_the_cpu_are_offered_at_its_speed():
    machine = shipped("dgx-h100").replace({"ram.part": "ddr5-5600"})
    offers = offered(machine, "legacy-pageable")
    (single,) = (offer for offer in offers if offer.title == "one DIMM a channel")
    assert dict(single.changes) == {
        f"{name}.{key}": value
        for key, value in (("dimms-per-channel", "1"), ("transfer-rate", "4800 MT/s"))
        for name in ("ram0", "ram1")
    }


def test_a_gain_that_is_known_goes_before_one_that_may_be_less():
    # no cap of an EPYC is known for direct, which crosses its root complexes
    machine = shipped("dgx-h100").replace({"cpu.part": "epyc-9654"})
    upgrades = topo.upgrades(machine, workload="load", via="legacy-pageable")
    words = [upgrade.outcome.words for upgrade in upgrades.ranked]
    assert words == sorted(words, key=("6.4 s", "at least 6.4 s", "6.818 s").index)
    assert "data path direct" in {
        upgrade.title for upgrade in upgrades.ranked if upgrade.outcome.at_most
    }
    for _, group in upgrades.rows:  # on one line is only what is known alike
        assert len({upgrade.outcome.words for upgrade in group}) == 1


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


# --- from what binds ------------------------------------------------------------------------------

HALF_CABLED = """
topo: 1
devices:
  store: nvme-of-target
  nic0: connectx-7-dual-port
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-sxm-80gb
links:
  - store -- nic0: ethernet 200 Gb/s
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 100 GB, from: store, to: gpu}
"""


def test_a_slow_cable_that_binds():
    found = times(topo.upgrades(built(HALF_CABLED), via="direct"))
    # 100 GB at 25 GB/s; the port and the chip take 50, so do two cables, and two cards.
    assert found["ethernet 400 Gb/s instead of ethernet 200 Gb/s at nic0"] == pytest.approx(2)
    assert found["one more ethernet 200 Gb/s at nic0"] == pytest.approx(2)
    assert found["another connectx-7-dual-port (nic1) beside nic0"] == pytest.approx(2)
    assert not any("connectx-8" in title for title in found)  # the port is not what binds


def test_no_cable_where_no_port_is_free_or_faster():
    full = HALF_CABLED.replace("ethernet 200 Gb/s", "2x ethernet 400 Gb/s")
    kinds = {one.kind for one in offered(built(full), "direct")}
    assert not kinds & {"faster-cable", "another-cable"}
    on_switch = HALF_CABLED.replace("store -- nic0: ethernet 200", "store -- nic0/p1: ethernet 200")
    titles_of = titles(built(on_switch), "another-cable", "direct")
    assert titles_of == []  # a named port takes one


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"nic0 -- cpu0": "pcie 3 x16"}, "pcie 5 x16 instead of pcie 3 x16 at nic0"),
        ({"nic0 -- cpu0": "pcie 4 x8"}, "pcie 5 x16 instead of pcie 4 x8 at nic0"),
        ({"gpu -- cpu0": "pcie 3 x4"}, "pcie 5 x16 instead of pcie 3 x4 at gpu0 and gpu1"),
    ],
)
def test_a_slow_slot_that_binds(changes, title):
    machine = built(HALF_CABLED.replace("ethernet 200 Gb/s", "2x ethernet 400 Gb/s"), changes)
    found = topo.upgrades(machine, via="direct")
    assert min(found.ranked, key=lambda upgrade: upgrade.outcome.time).title == title


DRIVES = """
topo: 1
devices:
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  disk[0-1]: nvme-gen4-3.84tb
  gpu0: h100-sxm-80gb
links:
  - disk -- cpu0: pcie 4 x4
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 13.6 GB, from: STORES, to: gpu0}
"""


@pytest.mark.parametrize("stores", ["disk", "[disk0, disk1]"])
def test_drives_that_bind(stores):
    found = topo.upgrades(built(DRIVES.replace("STORES", stores)), via="direct")
    by_title = {one.title: one for one in found.ranked}
    # 2 x 6.8 GB/s; four of them; three of them; drives of 14 GB/s, and their links with them.
    assert found.now.time == pytest.approx(1)
    second = by_title["a second nvme-gen4-3.84tb beside each (disk2 and disk3)"]
    assert second.outcome.time == pytest.approx(0.5)
    another = by_title["another nvme-gen4-3.84tb (disk2) beside disk0"]
    assert another.outcome.time == pytest.approx(2 / 3)
    faster = by_title["nvme-gen5-4tb instead of nvme-gen4-3.84tb (14 GB/s each)"]
    assert faster.outcome.time == pytest.approx(13.6 / 28)
    assert faster.cables == ("pcie 5 x4",)


def test_a_filer_that_binds():
    machine = built(TWO_SOCKETS, {"nic0.ports": "2x 400 Gb/s", "storage.read": "20 GB/s"})
    found = topo.upgrades(machine, workload="near", via="legacy")
    another = next(one for one in found.ranked if one.parts[0].kind == "another-storage")
    # the workload names one storage, and has both then
    assert another.changes["near.from"] == "[storage, storage1]"
    assert another.outcome.time < found.now.time


def test_a_link_between_sockets_that_binds():
    text = TWO_SOCKETS.replace("cpu[0-1]: socket", "cpu[0-1]: {part: socket, socket-links: 2}")
    found = topo.upgrades(built(text), workload="far", via="direct")
    title = "2x upi 16 GT/s instead of upi 16 GT/s between cpu0 and cpu1"
    assert times(found)[title] < found.now.time
    assert times(found)["nic0 moved from cpu0 to cpu1"] < found.now.time
    unknown = topo.upgrades(built(TWO_SOCKETS), workload="far", via="direct")
    assert title not in times(unknown)


def test_nothing_moves_from_one_server_to_another():
    second = TWO_SOCKETS.partition("links:")[2].partition("workloads:")[0]
    for name in ("nic0", "cpu0", "cpu1", "gpu0", "gpu1", "ram -- cpu", "gpu -- cpu"):
        second = second.replace(name, name.translate(str.maketrans("01", "23")))
    second = second.replace("ram -- cpu", "ram[2-3] -- cpu[2-3]")
    second = second.replace("gpu -- cpu", "gpu[2-3] -- cpu[2-3]").replace("nic2", "nic1")
    text = TWO_SOCKETS.replace("ram -- cpu", "ram[0-1] -- cpu[0-1]")
    text = text.replace("gpu -- cpu", "gpu[0-1] -- cpu[0-1]").replace("links:", "links:" + second)
    text = text.replace("[0-1]: socket", "[0-3]: socket").replace("[0-1]: dram", "[0-3]: dram")
    text = text.replace("[0-1]: accel", "[0-3]: accel").replace("nic0: card", "nic[0-1]: card")
    machine = built(text)
    assert len(machine.hosts) == 2
    moves = titles(machine.replace({"near.to": "gpu1"}), "other-socket", "direct")
    assert moves == ["nic0 moved from cpu0 to cpu1", "nic1 moved from cpu2 to cpu3"]


# --- pairs ----------------------------------------------------------------------------------------


def test_where_nothing_helps_alone_a_pair_is_found():
    found = topo.upgrades(shipped("gds-textbook"), workload="load", via="legacy")
    assert found.now.time == pytest.approx(6.4)
    best = found.ranked[0]
    assert [part.title for part in best.parts] == [
        "a second connectx-7-dual-port beside each (slot3 and slot4)",
        "data path direct",
    ]
    assert best.outcome.time == pytest.approx(3.2)
    assert all(len(one.parts) == 2 for _, group in found.rows for one in group)
    assert found.without_gain


def test_pairs_are_no_business_of_a_machine_that_one_change_helps():
    for name in ("dgx-h100", "workstation-4gpu"):
        found = topo.upgrades(shipped(name))
        assert all(len(one.parts) == 1 for one in found.ranked)


def test_the_cut_keeps_the_best_of_each_kind():
    kept = best_of_each_kind(["a1", "a2", "a3", "a4", "b1", "c1"], lambda item: item[0], 3)
    assert kept == ["a1", "b1", "c1"]
    found = topo.upgrades(shipped("gds-textbook"), via="legacy", combine=2)
    assert times(found)[
        "a second connectx-7-dual-port beside each (slot3 and slot4) + data path direct"
    ] == pytest.approx(3.2)
    assert len(found.best_rows(1)) == 1
    assert found.best_rows(99) == found.rows


# --- many servers ---------------------------------------------------------------------------------

ALIKE = """
topo: 1
devices:
  store: nvme-of-target
  cpu[0-11]: xeon-8480c
  ram[0-11]: {part: ddr5-4800, channels: 8}
  nic[0-11]: connectx-6
  gpu[0-11]: h100-sxm-80gb
links:
  - store -- nic: ethernet 200 Gb/s
  - nic -- cpu: pcie 4 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 10 GB each, from: store, to: gpu}
"""


def test_of_those_alike_one_is_asked():
    told: list[tuple[int, int]] = []
    found = topo.upgrades(
        built(ALIKE), via="direct", progress=lambda done, total: told.append((done, total))
    )
    singles = [one for one in found.ranked if "(nic12) beside" in one.title]
    assert [one.title for one in singles] == ["another connectx-6 (nic12) beside nic0"]
    assert found.unasked == 11
    assert told[-1][0] == told[-1][1] == len(told)
    # what is set for all of them is one word
    card = next(one for one in found.ranked if one.parts[0].kind == "other-card")
    assert list(card.changes) == ["nic[0-11].part"]
    # one that differs is asked about by itself
    mixed = topo.upgrades(built(ALIKE, {"ram5.channels": "4"}), via="direct")
    singles = [one for one in mixed.ranked if "(nic12) beside" in one.title]
    assert {one.parts[0].thing for one in singles} == {"nic0", "nic5"}
    assert mixed.unasked == 10


# --- what is printed can be followed --------------------------------------------------------------


@pytest.mark.parametrize("via", ["legacy", "direct", "legacy-pageable"])
@pytest.mark.parametrize(
    "name",
    ["dgx-h100", "dgx-a100", "gds-textbook", "gds-loses", "l40s-two-switches", "workstation-4gpu"],
)
def test_every_change_can_be_made_and_does_what_it_says(name, via):
    machine = shipped(name)
    if name == "workstation-4gpu" and via == "direct":
        via = "compat"
    found = topo.upgrades(machine, via=via, combine=2)
    (workload,) = found.workloads
    for one in found.ranked:
        changed = machine.replace(one.changes)
        assert not [finding for finding in changed.findings if finding.severity == "error"]
        path = one.via or found.via
        again = topo.compare(changed, workload=workload.name, via=(path,))[path]
        assert again.time == pytest.approx(one.outcome.time, rel=1e-12), one.title


def test_of_a_cloud_s_instance_data_paths_alone_are_asked():
    rented = topo.upgrades(shipped("gcp-a3-mega"))
    assert {part.kind for upgrade in rented.ranked for part in upgrade.parts} == {"data-path"}
    assert "cloud-instance" in {finding.code for finding in rented.findings}


def test_a_part_that_nobody_knows_is_named_by_its_devices():
    card = "{part: nic-unknown, ports: 1x infiniband edr, chip: 100 Gb/s}"
    unknown = topo.upgrades(built(TWO_SOCKETS.replace("nic0: card", f"nic0: {card}")))
    titles = [upgrade.title for upgrade in unknown.ranked]
    assert "another nic0 (nic1) beside nic0" in titles
    assert not [title for title in titles if "unknown" in title]
