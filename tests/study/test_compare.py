"""Compare: what is asked, at which basis, what is found on the way, what follows in words."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.machines import (
    GRACE,
    LOCAL_DRIVES,
    ONE_SOCKET,
    SWITCHED,
    TWO_SOCKETS,
    built,
    cluster,
    shipped,
    uncapped,
)
from topo.description.loading import loads
from topo.description.without import without
from topo.errors import DescriptionError, UnboundedError, UnknownNameError
from topo.routes.route import Policy, links_range
from topo.study.compare import compare, paths
from topo.study.insights import (
    IdleLinks,
    SlowerCards,
)
from topo.study.question import ask
from topo.topology.build import build_topology
from topo.views.sentences import sentences
from topo.views.text.answers import comparison_page
from topo.views.text.page import Table

GB = 1e9


def codes(found):
    return [finding.code for finding in found.findings]


# --- what is asked --------------------------------------------------------------------------------


def test_all_workloads_by_legacy_and_direct_by_default():
    found = compare(built(ONE_SOCKET))
    assert [one.workload.name for one in found.workloads] == ["load", "save"]
    assert [[path.name for path in one.paths] for one in found.workloads] == [
        ["legacy", "direct"]
    ] * 2
    assert [(one, list(found[one])) for one in found] == [
        ("load", ["legacy", "direct"]),
        ("save", ["legacy", "direct"]),
    ]
    with pytest.raises(KeyError):
        found["direct"]


def test_one_data_path_is_named_alone():
    machine = built(ONE_SOCKET)
    alone, listed = (compare(machine, via=via) for via in ("direct", ["direct"]))
    assert alone.to_dict() == listed.to_dict()
    (path,) = paths(machine, via="direct")
    assert path.data_path.name == "direct"


@pytest.mark.parametrize(
    "how",
    [
        {"at": "best"},
        {"policy": Policy(nics="fastest")},  # type: ignore[arg-type]
        {"policy": Policy(routes="shortest")},  # type: ignore[arg-type]
        {"policy": Policy(buffers=(("kernel", "gpu0"),))},
    ],
)
def test_a_word_that_is_none_is_not_taken_for_the_usual(how):
    with pytest.raises(UnknownNameError, match="there are"):
        compare(built(ONE_SOCKET), workload="load", **how)


def test_a_workload_s_own_via_and_the_caller_s_before_it():
    text = ONE_SOCKET.replace("to: gpu0}", "to: gpu0, via: [compat, direct]}", 1)
    machine = built(text)
    assert [path.name for path in compare(machine, workload="load").workloads[0].paths] == [
        "compat",
        "direct",
    ]
    asked = compare(machine, workload="load", via=["mmap", "direct", "mmap"])
    assert [path.name for path in asked.workloads[0].paths] == ["mmap", "direct"]


def test_two_ends_instead_of_a_workload():
    machine = shipped("dgx-h100")
    read = compare(machine, source="storage", target="gpu3")["direct"]
    assert read.rates == {"gpu3": pytest.approx(50 * GB)}
    write = compare(machine, source="gpu[0-3]", target="storage")["direct"]
    assert write.rate == pytest.approx(50 * GB)
    assert write.routes[0].direction == "write"


@pytest.mark.parametrize(
    ("source", "target", "direction", "ends"),
    [
        ("storage", "", "read", (1, 8)),
        ("", "gpu0", "read", (1, 1)),
        ("gpu0", "", "write", (1, 1)),
        ("", "storage", "write", (8, 1)),
        ("nvme", "gpu", "read", (4, 8)),
        ("raid", "gpu", "read", (1, 8)),
    ],
)
def test_an_end_not_named_is_all_gpus_or_the_storage_on_the_network(
    source, target, direction, ends
):
    workload = ask(shipped("l40s-two-switches"), source, target)
    assert workload.direction == direction
    assert (len(workload.sources), len(workload.targets)) == ends


def test_without_network_storage_the_drives_are_meant():
    assert ask(built(LOCAL_DRIVES), "", "gpu0").sources == ("nvme0", "nvme1")


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("cpu0", "gpu0", "between storage, RAM, GPUs and network cards"),
        ("nic0", "nic0", "copies from nic0 to itself"),
    ],
)
def test_data_goes_between_things_that_it_rests_in(source, target, said):
    with pytest.raises(DescriptionError, match=said):
        compare(built(TWO_SOCKETS), source=source, target=target)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"workload": "lod"}, "no workload lod"),
        ({"via": ["dirct"]}, "no data path `dirct`.*did you mean `direct`"),
        ({"source": "storge", "target": "gpu"}, "no device storge"),
    ],
)
def test_names_that_are_not_there(keywords, message):
    with pytest.raises(UnknownNameError, match=message):
        compare(built(ONE_SOCKET), **keywords)


def test_nothing_to_compare():
    text = ONE_SOCKET[: ONE_SOCKET.index("workloads:")]
    with pytest.raises(DescriptionError, match="has no workloads"):
        compare(built(text))
    assert compare(built(text), source="storage")["direct"].rate == pytest.approx(50 * GB)


# --- bases, unknown, unlimited --------------------------------------------------------------------


def test_three_bases_side_by_side():
    text = ONE_SOCKET + "measured:\n  - cpu0 -> gpu0: 40 GB/s\n"
    by_basis = compare(built(text), workload="load")["direct"].by_basis
    assert by_basis["theoretical"] == pytest.approx(50 * GB)
    assert by_basis["achievable"] == pytest.approx(4096 / (4096 + 26) * 50 * GB, rel=1e-4)
    assert by_basis["measured"] == pytest.approx(40 * GB)


@pytest.mark.parametrize("basis", ["theoretical", "achievable", "measured"])
def test_the_basis_asked_for_decides_the_rate(basis):
    machine = built(ONE_SOCKET + "measured:\n  - cpu0 -> gpu0: 40 GB/s\n")
    found = compare(machine, workload="load", at=basis)["direct"]
    assert found.rate == pytest.approx(found.by_basis[basis])
    plain = compare(machine, workload="load")["direct"].by_basis
    assert found.by_basis == pytest.approx(plain)


SERIAL = """
data-paths:
  mine: {stages: serial, moves: [storage -> a-buffer by nic, a-buffer -> gpu by gpu]}
"""


def test_a_serial_path_has_its_own_rate_in_each_basis():
    machine = built(ONE_SOCKET + SERIAL)
    theory = compare(machine, workload="load", via=["mine"])["mine"].by_basis
    achievable = compare(machine, workload="load", via=["mine"], at="achievable")["mine"].by_basis
    assert theory == pytest.approx(achievable)
    assert theory["achievable"] < theory["theoretical"]


UNKNOWN = ONE_SOCKET.replace("bus: 200 GB/s", "bus: unknown")


def test_an_unknown_capacity_makes_it_at_most():
    found = compare(built(UNKNOWN), workload="load")
    assert found["legacy"].at_most
    assert found["legacy"].unknowns == ("ram0/bus",)
    assert not found["direct"].at_most
    assert found["legacy"].ram_floor is None
    assert found["direct"].ram_floor == 0.0
    assert codes(found).count("unknown-capacity") == 1
    assert "ram0/bus" in next(f.message for f in found.findings if f.code == "unknown-capacity")


def test_a_link_of_unknown_rate_counts_with_what_its_ends_take():
    text = ONE_SOCKET.replace("gpu0 -- cpu0: pcie 5 x16", "gpu0 -- cpu0: pcie unknown x4")
    found = compare(built(text), workload="load")["direct"]
    assert found.rate == pytest.approx(15.754 * GB, rel=1e-4)
    assert found.at_most
    assert found.unknowns == ("cpu0 -> gpu0",)
    assert found.at_most_by_basis == dict.fromkeys(("theoretical", "achievable", "measured"), True)


def test_a_ranking_past_an_unknown_capacity_says_what_it_rests_on():
    text = ONE_SOCKET.replace("nic0: card", "nic0: {part: card, chip: unknown}")
    found = compare(built(text), workload="load").workloads[0]
    assert sentences(found.insights)[0].startswith(
        "By the known capacities alone, direct is no faster"
    )


def test_a_ranking_that_the_measurements_turn_round_says_so():
    # 50 GB/s by either path in theory; the card reaches the GPU at 11 GB/s, RAM at 20
    text = f"""{ONE_SOCKET}
measured:
  - nic0 -> gpu0: {{rate: 11 GB/s, source: perftest}}
  - nic0 -> cpu0: {{rate: 20 GB/s, source: perftest}}
"""
    told = sentences(compare(built(text), workload="load").workloads[0].insights)
    turned = "direct loses to legacy: 11 GB/s against 20 GB/s (--at measured)."
    assert told[0].startswith("direct is no faster than legacy here")
    assert told[1] == f"By what was measured, {turned}"
    measured = sentences(compare(built(text), workload="load", at="measured").workloads[0].insights)
    assert measured[0].startswith("direct loses to legacy, 11 GB/s against 20 GB/s")
    assert not any("By what was measured" in sentence for sentence in measured)


WORKERS = """
data-paths:
  one: {stages: serial, moves: &moves [storage -> user-buffer by nic: 3.91 GB/s per worker,
                                       user-buffer -> gpu by gpu: 7.98 GB/s per worker]}
  eight: {stages: serial, workers: 8, moves: *moves}
  two: {workers: 2, moves: *moves}
  many: {workers: 80, moves: *moves}
"""


@pytest.mark.parametrize(
    ("via", "limits"),
    [
        ("one", ("its one worker a GPU, one stage after the other",)),
        ("eight", ("its 8 workers a GPU, one stage after the other",)),
        ("two", ("its 2 workers a GPU",)),
        ("many", ()),  # the card's chip is full before
    ],
)
def test_workers_are_named_where_nothing_else_stops_a_path(via, limits):
    found = compare(built(ONE_SOCKET + WORKERS), workload="load", via=(via,))[via]
    assert sentences(found.own_limits) == limits
    assert bool(found.bottlenecks) is not bool(limits)


def test_a_workloads_own_limit_is_named():
    text = ONE_SOCKET.replace("to: gpu0}", "to: gpu0, limit: 10 GB/s}", 1)
    found = compare(built(text), workload="load")
    assert sentences(found["direct"].own_limits) == ("the workload's own limit",)
    found = compare(built(ONE_SOCKET + WORKERS), workload="load", via=("one", "eight"))
    assert sentences(found.workloads[0].insights)[0].endswith(
        "it stops at its one worker a GPU, one stage after the other."
    )


def test_a_measurement_ends_what_was_unknown_at_that_basis():
    machine = built(UNKNOWN + "measured:\n  - ram0 -> cpu0: 160 GB/s\n")
    assert compare(machine, workload="load")["legacy"].at_most
    found = compare(machine, workload="load", at="measured")
    assert not found["legacy"].at_most
    assert "unknown-capacity" not in codes(found)
    assert found["legacy"].rate == pytest.approx(40 * GB)


def test_unlimited_is_neither_unknown_nor_at_most():
    text = ONE_SOCKET.replace("bus: 200 GB/s", "bus: unlimited").replace(
        "read: 100 GB/s", "read: unlimited"
    )
    legacy = compare(built(text), workload="load")["legacy"]
    assert legacy.unlimited == ("storage/read", "ram0/bus")
    assert not legacy.at_most


def test_a_measured_pair_is_not_unlimited_in_theory():
    machine = built(ONE_SOCKET + "measured:\n  - ram0 -> gpu0: 30 GB/s\n")
    assert compare(machine, workload="load")["legacy"].unlimited == ()
    found = compare(machine, workload="load", at="measured")["legacy"]
    assert found.rate == pytest.approx(30 * GB)
    assert [one.resource.kind for one in found.bottlenecks] == ["measured-pair"]


def test_a_machine_in_which_nothing_limits_says_so():
    text = uncapped(LOCAL_DRIVES).replace("hbm: 3000 GB/s, ", "")
    text = text.replace("read: 7 GB/s", "read: unlimited")
    text = text.replace("pcie: 4 x4, ", "").replace("gpu, pcie: 5 x16", "gpu")
    text = text.replace("pcie 4 x4\n", "pcie unknown\n").replace("pcie 5 x16\n", "pcie unknown\n")
    with pytest.raises(UnboundedError):
        compare(built(text), workload="load", via=["direct"])


# --- times ----------------------------------------------------------------------------------------


def test_when_gpus_end_at_different_times_the_rest_speeds_up():
    # 10 GB/s between the sockets: gpu1 has 10, gpu0 the other 40 of the card's 50.
    text = TWO_SOCKETS.replace("upi 16 GT/s", "upi 5 GT/s")
    text = text.replace("workloads:", "workloads:\n  load: {read: 50 GB, from: storage, to: gpu}")
    found = compare(built(text), workload="load")["direct"]
    assert found.rates == pytest.approx({"gpu0": 40 * GB, "gpu1": 10 * GB})
    assert found.time == pytest.approx(2.5)
    # 50 GB in 2.5 s; while both run it is more, and that says nothing about the time
    assert (found.rate, found.start_rate) == pytest.approx((20 * GB, 50 * GB))
    assert found.by_basis["theoretical"] == found.rate


def faster_by_time():
    # 25 GB a GPU, of which gpu1 is behind a cap of 5 GB/s: 5 s. By RAM at 32 GB/s between the
    # sockets both have 25 GB/s: 1 s.
    capped = "cpu0 -- cpu1: {medium: upi 16 GT/s, p2p: {posted: 5 GB/s}}"
    text = TWO_SOCKETS.replace("cpu0 -- cpu1: upi 16 GT/s", capped)
    return text.replace("workloads:", "workloads:\n  load: {read: 50 GB, from: storage, to: gpu}")


def test_faster_is_about_the_time():
    found = compare(built(faster_by_time()), workload="load")
    legacy, direct = found["legacy"], found["direct"]
    assert (legacy.time, direct.time) == pytest.approx((1.0, 5.0))
    assert (legacy.rate, direct.rate) == pytest.approx((50 * GB, 10 * GB))
    assert direct.start_rate == pytest.approx(50 * GB)
    assert {one.resource.name for one in direct.bottlenecks} == {"cpu0 -> cpu1/p2p"}
    assert sentences(found.workloads[0].insights)[0] == (
        "direct loses to legacy, 5 s against 1 s: it stops at the peer-to-peer cap "
        "(cpu0 -> cpu1/p2p)."
    )


# One GPU, two cards that are equally near it: 50 GB/s and, by its cable, 12.5 GB/s.
UNEVEN_CARDS = (
    ONE_SOCKET.replace("nic0: card", "nic[0-1]: card")
    .replace(
        "storage -- nic0: infiniband ndr",
        "storage -- nic0: infiniband ndr\n  - storage -- nic1: infiniband edr",
    )
    .replace("nic0 -- cpu0: pcie 5 x16", "nic -- cpu0: pcie 5 x16")
)


def test_a_slower_card_that_holds_the_others_back_is_named():
    machine = built(UNEVEN_CARDS)
    found = compare(machine, workload="load", via=["direct"])
    assert found["direct"].rate == pytest.approx(25 * GB)  # twice 12.5: each carries the same
    assert sentences(found.workloads[0].insights)[0] == (
        "nic1 slows direct down to 25 GB/s, since every card of a GPU carries the same: without it "
        "there are 50 GB/s, by --nics best 62.5 GB/s."
    )
    best = compare(machine, workload="load", via=["direct"], policy=Policy(nics="best"))
    assert best["direct"].rate == pytest.approx(62.5 * GB)
    for answers in (best, compare(shipped("dgx-h100"))):
        assert not [
            fact
            for answer in answers.workloads
            for fact in answer.insights
            if isinstance(fact, SlowerCards)
        ]


def test_a_slower_card_is_not_named_where_it_holds_nobody_back():
    # a drawer of 20 GB/s binds before either card
    slow_storage = built(UNEVEN_CARDS, {"storage.read": "20 GB/s"})
    told = sentences(compare(slow_storage, workload="load").workloads[0].insights)
    assert not [text for text in told if "slow" in text]


def test_ok_slower_says_why():
    found = compare(built(TWO_SOCKETS), workload="far", via=["direct"])
    assert found["direct"].verdict == "ok-slower"
    assert sentences(found.workloads[0].insights)[0] == (
        "direct works, but is slower than it could be: peer-to-peer between sockets, over cpu0 and "
        "cpu1."
    )


def test_how_many_times_as_fast_is_about_the_time():
    # gpu0 shares a PCIe 1 x1 of 0.25 GB/s with the card: by RAM every byte passes it, directly
    # gpu1's half only, and gpu0's is done much before.
    text = SWITCHED.replace("sw0 -- cpu0: pcie 5 x16", "sw0 -- cpu0: pcie 1 x1").replace(
        "gpu -- sw0: pcie 5 x16", "gpu0 -- sw0: pcie 5 x16\n  - gpu1 -- cpu0: pcie 5 x16"
    )
    found = compare(built(text), workload="load")
    assert (found["legacy"].time, found["direct"].time) == pytest.approx((400.0, 200.0))
    told = sentences(found.workloads[0].insights)
    assert told[0].startswith("direct is 2.00 times as fast as legacy, which stops at the uplink")


# --- refused --------------------------------------------------------------------------------------


def test_a_refused_path_has_a_reason_and_no_numbers():
    found = compare(shipped("workstation-4gpu"), workload="load")
    direct = found["direct"]
    assert (direct.verdict, direct.rate, direct.time, direct.rates) == ("refused", None, None, {})
    assert direct.logical_hops == 0
    assert sentences(found.workloads[0].insights)[0] == (
        "direct is refused: rtx-4090 has no PCIe peer-to-peer; it falls back to compat."
    )
    assert found["legacy"].rate == pytest.approx(28 * GB)


def test_a_refused_path_falls_back_to_one_that_is_not_refused_as_well():
    text = TWO_SOCKETS.replace("near:", "pair: {copy: 1 GB, from: gpu0, to: gpu1}\n  near:")
    for changes, fallback in (({}, "peer-pcie"), ({"gpu.p2p": "no"}, "peer-ram")):
        answer = compare(built(text, changes), workload="pair").workloads[0]
        (words,) = [each for each in sentences(answer.insights) if "peer-nvlink" in each]
        assert words.endswith(f"no GPU links lead to gpu1; it falls back to {fallback}.")


def test_a_refused_path_has_no_column_and_says_why_below():
    page = comparison_page(compare(built(TWO_SOCKETS, {"gpu0.p2p": "no"}), workload="near"))
    answers, ways = [block for block in page if isinstance(block, Table)]
    assert [column.title for column in answers.columns] == ["", "legacy"]
    assert ("direct", "refused: no PCIe peer-to-peer, by `p2p: no` of gpu0") in ways.rows


def test_one_gpu_that_cannot_refuses_the_whole():
    text = SWITCHED.replace("gpu[0-1]: accel", "gpu0: accel\n  gpu1: {part: accel, p2p: no}")
    found = compare(built(text), workload="load")["direct"]
    assert found.verdict == "refused"
    assert [route.verdict for route in found.routes] == ["ok", "refused"]


CARDS: tuple[Literal["nearest", "stripe", "best"], ...] = ("nearest", "stripe", "best")

# --- cards ----------------------------------------------------------------------------------------


def test_best_uses_an_idle_far_card_where_the_near_one_is_full():
    machine = shipped("gds-textbook")
    near, stripe, best = (
        compare(machine, source="storage", target="gpu[0-3]", policy=Policy(nics=cards))["direct"]
        for cards in CARDS
    )
    assert near.rate == pytest.approx(50 * GB)
    assert stripe.rate == pytest.approx(100 * GB)
    assert best.rate == pytest.approx(100 * GB)


def test_best_avoids_a_narrow_detour_that_stripes_do_not():
    # nic1 sits behind 10 GB/s: a stripe sends half that way, the best split a sixth.
    text = (
        TWO_SOCKETS.replace("nic0: card", "nic[0-1]: card")
        .replace("storage -- nic0", "storage -- nic")
        .replace("  - nic0 -- cpu0: pcie 5 x16", "  - nic -- cpu: pcie 5 x16")
        .replace("upi 16 GT/s", "upi 5 GT/s")
    )
    machine = built(text)
    near, stripe, best = (
        compare(machine, workload="near", via=["direct"], policy=Policy(nics=cards))["direct"]
        for cards in CARDS
    )
    assert near.rate == pytest.approx(50 * GB)
    assert stripe.rate == pytest.approx(20 * GB)
    assert best.rate == pytest.approx(60 * GB)


# --- findings and words ---------------------------------------------------------------------------


def test_a_finding_is_said_once_for_all_gpus_and_workloads():
    found = compare(shipped("dgx-h100"))
    assert sorted(codes(found)) == ["iommu-not-said", "peer-rate-unknown"]
    (rate,) = [one for one in found.findings if one.code == "peer-rate-unknown"]
    assert rate.message.endswith("no cap is stated for cpu0 and cpu1")


def test_a_finding_names_what_it_holds_for_in_any_workload():
    found = compare(built(uncapped(TWO_SOCKETS)), via=["direct"])
    assert [one.message for one in found.findings] == [
        (
            "rates by direct are at most: the capacity of cpu0/p2p (nic0, gpu0) posted, cpu0 -> "
            "cpu1/p2p (nic0, gpu1) posted and cpu1 -> cpu0/p2p (nic0, gpu1) non-posted is unknown"
        ),
        "direct: peer-to-peer rate unknown here: no cap is stated for cpu0 and cpu1",
        (
            "direct: reads of a GPU of another socket wait for answers, how fast is not published "
            "(state what you measure, `p2p: {non-posted: ...}`): cpu0 and cpu1"
        ),
    ]


def test_paths_that_rest_on_the_same_share_a_finding():
    text = uncapped(UNKNOWN).replace("settings: {iommu: off}\n", "")
    found = compare(built(text), via=["legacy", "direct", "compat", "p2pdma"])
    assert [one.message for one in found.findings] == [
        "rates by legacy and compat are at most: the capacity of ram0/bus is unknown",
        (
            "rates by direct are at most: the capacity of "
            "cpu0/p2p (nic0, gpu0) posted and cpu0/p2p (nic0, gpu0) non-posted is unknown"
        ),
        "direct: assumes the IOMMU off or in passthrough",
        "direct: peer-to-peer rate unknown here: no cap is stated for cpu0",
    ]


def test_a_cluster_says_no_more_than_a_server():
    found = compare(built(cluster(8)))
    assert sorted(codes(found)) == ["iommu-not-said", "peer-rate-unknown"]
    assert max(len(one.message) for one in found.findings) < 120


INSIGHTS = [
    (
        "gds-textbook",
        "load",
        ["legacy", "direct"],
        (
            "direct is no faster than legacy here: both stop at the cards' chips "
            "(slot1/chip and slot2/chip), 100 GB/s; on legacy the RAM buses "
            "(ram0/bus and ram1/bus) are full as well."
        ),
    ),
    (
        "gds-textbook",
        "load",
        ["legacy-pageable", "direct"],
        (
            "direct is 1.50 times as fast as legacy-pageable, which stops at the RAM buses "
            "(ram0/bus and ram1/bus)."
        ),
    ),
    (
        "gds-loses",
        "load",
        ["legacy", "direct"],
        (
            "direct loses to legacy, 7.41 GB/s against 25 GB/s: it stops at the peer-to-peer cap "
            "(cpu0 -> cpu1/p2p)."
        ),
    ),
    (
        "gds-textbook",
        "load",
        ["legacy", "direct"],
        (
            "legacy takes every byte through RAM twice: 1.28 TB through buffers (at least 3.2 s), "
            "2.56 TB on the memory buses (at least 6.4 s)."
        ),
    ),
    (
        "gds-textbook",
        "checkpoint",
        ["legacy", "direct"],
        (
            "With one worker a GPU that does one stage after the other, legacy reaches 58.88 GB/s; "
            "direct is 1.7 times as fast."
        ),
    ),
    (
        "gds-textbook",
        "load",
        ["direct"],
        "storage is not modelled: its own rate is taken as unlimited.",
    ),
]


@pytest.mark.parametrize(("name", "workload", "via", "sentence"), INSIGHTS)
def test_what_follows_in_words(name, workload, via, sentence):
    found = compare(shipped(name), workload=workload, via=via)
    assert sentence in sentences(found.workloads[0].insights)


def test_one_core_and_several_appliances():
    text = ONE_SOCKET.replace("to: gpu0}", "to: gpu0, limit: 10 GB/s}", 1)
    (line,) = [
        one
        for one in sentences(compare(built(text), workload="load").workloads[0].insights)
        if "busy copying" in one
    ]
    assert line.startswith("legacy keeps about 1 core busy copying (10 GB/s a core, ")
    two = ONE_SOCKET.replace("  storage: target", "  storage[0-1]: nvme-of-target").replace(
        "nic0: card", "nic0: {part: card, ports: 2x 400 Gb/s}"
    )
    assert (
        "storage0 and storage1 are not modelled: their own rates are taken as unlimited."
        in sentences(compare(built(two), workload="load").workloads[0].insights)
    )


def test_a_verdict_of_unknown_is_said_in_words():
    text = ONE_SOCKET.replace("forwards-p2p: yes", "forwards-p2p: unknown")
    found = compare(built(text), workload="load")
    assert found["direct"].verdict == "unknown"
    assert (
        "Whether direct works here is not known: socket is not known to forward peer-to-peer "
        "traffic: cpu0." in sentences(found.workloads[0].insights)
    )


def test_grace_direct_leaves_its_memory_alone():
    direct = compare(built(GRACE), workload="load", via=["direct"])["direct"]
    assert direct.rate == pytest.approx(100 * GB)
    assert not any(name.startswith("ram") for route in direct.routes for name in route.use)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_gpus_are_answered():
    found = compare(built(cluster(125)), via=["direct"])
    assert len(found["direct"].rates) == 1000
    assert found["direct"].rate == pytest.approx(180 * GB)
    assert {one.resource.name for one in found["direct"].bottlenecks} == {
        "appliance0/read",
        "appliance1/read",
    }


def test_a_controller_that_stops_its_drives_is_called_what_it_is():
    machine = shipped("l40s-two-switches", {"raid.read": "20 GB/s"})
    found = compare(machine, workload="local").workloads[0]
    assert [one.resource.kind for one in found["legacy"].bottlenecks] == ["controller-read"]
    assert (
        "both stop at the storage controller's reads (raid/read), 20 GB/s"
        in sentences(found.insights)[0]
    )


def test_sentences_name_many_alike_as_a_range_and_a_guess_as_one():
    said = sentences(compare(shipped("dgx-a100"), workload="local").workloads[0].insights)
    assert "both stop at the drives' reads (nvme[0-7]/read), 54.4 GB/s" in said[0]
    (copying,) = (sentence for sentence in said if "cores busy copying" in sentence)
    assert copying.endswith("(17.1 GB/s a core, measured).")
    said = sentences(compare(shipped("dgx-h100"), workload="load").workloads[0].insights)
    assert "legacy keeps about 10 cores busy copying (10 GB/s a core, a guess)." in said


def test_what_a_refused_path_would_assume_is_no_finding():
    machine = built(SWITCHED.replace(", acs: off", ""), {"gpu.gdr": "no"})
    found = compare(machine, workload="load", via=("direct",))
    assert found["direct"].verdict == "refused"
    assert "acs-not-said" not in codes(found)


# --- cables that stay idle ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cables", "rate", "idle"),
    [
        (("storage -- nic0: infiniband hdr", "storage -- nic0: infiniband edr"), 25, ("nic0/p2",)),
        (("storage -- nic0: infiniband hdr", "storage -- nic0: infiniband hdr"), 50, ()),
        (
            (
                "storage -- leaf0: infiniband ndr",
                "storage -- leaf1: infiniband ndr",
                "leaf0 -- nic0: infiniband edr",
                "leaf1 -- nic0: infiniband hdr",
            ),
            25,
            ("storage -- leaf0", "nic0/p1"),
        ),
    ],
    ids=["card and target", "equal", "two switches"],
)
def test_a_slower_cable_that_carries_nothing_is_said(cables, rate, idle):
    text = ONE_SOCKET.replace("ports: 1x", "ports: 2x").replace(
        "  - storage -- nic0: infiniband ndr\n", "".join(f"  - {cable}\n" for cable in cables)
    )
    text = text.replace(
        "devices:\n", "devices:\n  leaf[0-1]: quantum-2\n" if "leaf" in text else "devices:\n", 1
    )
    answered = compare(built(text), via=("direct",)).workloads[0]
    assert answered.paths[0].rate == pytest.approx(rate * 1e9)
    facts = [fact for fact in answered.insights if isinstance(fact, IdleLinks)]
    assert len(facts) == bool(idle)
    for fact in facts:
        assert len(fact.links) == len(idle)
        assert all(part in name for part, name in zip(idle, fact.links, strict=True))
        assert "nothing" in sentences([fact])[0]


def test_paths_keep_the_routes_that_are_asked_for():
    topology = shipped("dgx-h100")
    for whole, brief in zip(paths(topology), paths(topology, routes=False), strict=True):
        for routed, shortened in zip(whole.workloads, brief.workloads, strict=True):
            assert len(routed.routes) == 8
            assert shortened.routes == routed.routes[:1]
            assert shortened.links == routed.links == links_range(routed.routes)


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ((), "each of 4 hosts has 45 GB/s by direct; one alone has 100 GB/s (2.22:1)"),
        (
            ("gpu0",),
            "the slowest of 4 hosts has 40.65 GB/s by direct; alone it has 100 GB/s (2.46:1)",
        ),
    ],
)
def test_hosts_that_differ_are_not_said_to_have_as_much_each(lost, text):
    machine = build_topology(without(loads(cluster(4)), lost))
    answer = compare(machine, via=["direct"])["direct"]
    told = sentences(compare(machine, via=["direct"]).workloads[0].insights)
    assert answer.rate == pytest.approx(180 * GB)
    assert f"All at once, {text}." in told
