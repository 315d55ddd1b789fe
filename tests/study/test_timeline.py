"""Workloads at once over time: when each is done, what each gets, what stops it."""

from __future__ import annotations

import pytest

import topo
from tests.machines import ONE_SOCKET, PARTS, TWO_SOCKETS, built, shipped, uncapped
from topo.errors import DescriptionError, NoRouteError, UnboundedError, UnknownNameError
from topo.study.timeline import at_once, simulate_each
from topo.views.sentences import at_once_sentence

# Two reads through one card of 50 GB/s, by direct nothing else binds.
READS = ONE_SOCKET.split("workloads:")[0] + "workloads:\n"


def reads(*lines):
    return built(READS + "\n".join(f"  {line}" for line in lines) + "\n")


def finishes(found):
    return {run.workload.name: run.finish for run in found.runs}


@pytest.mark.parametrize(
    ("path", "load", "checkpoint"),
    [
        # Cards have two directions: 2 x 50 GB/s each way. 640 / 100 and 140 / 100.
        ("direct", 6.4, 1.4),
        # A byte crosses a RAM bus 4 times: 400 / 4 = 100 GB/s for both, 50 each. The checkpoint's
        # 140 GB take 2.8 s; the load has 500 GB left, at 100 GB/s: 2.8 + 5.0.
        ("legacy", 7.8, 2.8),
        # 6 times: 66.7 GB/s for both, 33.3 each: 140 / 33.3 = 4.2; 500 / 66.7 = 7.5 more.
        ("legacy-pageable", 11.7, 4.2),
    ],
)
def test_the_textbooks_load_and_checkpoint_together(path, load, checkpoint):
    found = topo.simulate(shipped("gds-textbook"), via=path)
    assert finishes(found) == {
        "load": pytest.approx(load, rel=1e-12),
        "checkpoint": pytest.approx(checkpoint, rel=1e-12),
    }
    assert found.end == pytest.approx(load, rel=1e-12)


def test_what_each_gets_and_what_stops_it():
    first, second = topo.simulate(shipped("gds-textbook"), via="legacy").moments
    assert {one.workload: one.rate for one in first.rates} == pytest.approx(
        {"load": 5e10, "checkpoint": 5e10}
    )
    assert {one.kind for rate in first.rates for one in rate.stopped_by} == {"memory-bus"}
    assert [one.workload for one in second.rates] == ["load"]
    assert {one.kind for one in second.rates[0].stopped_by} == {"memory-bus", "nic-chip"}
    assert (first.start, first.end, second.end) == pytest.approx((0, 2.8, 7.8))


def test_a_later_start():
    # a alone for 1 s: 50 of its 100 GB. Then 25 GB/s each, and 50 GB left of both: 2 s more.
    machine = reads(
        "a: {read: 100 GB, from: storage, to: gpu0}",
        "b: {read: 50 GB, from: storage, to: gpu0, start: 1 s}",
    )
    found = topo.simulate(machine, via="direct")
    assert finishes(found) == pytest.approx({"a": 3.0, "b": 3.0})
    assert found["b"].duration == pytest.approx(2.0)


def test_a_start_after_all_the_others_are_done():
    machine = reads(
        "a: {read: 50 GB, from: storage, to: gpu0}",
        "b: {read: 50 GB, from: storage, to: gpu0, start: 5 s}",
    )
    found = topo.simulate(machine, via="direct")
    assert finishes(found) == pytest.approx({"a": 1.0, "b": 6.0})
    assert [(one.start, one.end) for one in found.moments] == [(0, 1), (5, 6)]


def test_a_limit():
    # b has its 10 GB/s from 1 s on: 5 s. a has 50 GB after 1 s, then 40 GB/s: 1 + 50 / 40.
    machine = reads(
        "a: {read: 100 GB, from: storage, to: gpu0}",
        "b: {read: 50 GB, from: storage, to: gpu0, start: 1 s, limit: 10 GB/s}",
    )
    found = topo.simulate(machine, via="direct")
    assert finishes(found) == pytest.approx({"a": 2.25, "b": 6.0})
    assert found.moments[-1].rates[0].stopped_by == ()


def test_a_weight():
    # 3 to 1: 37.5 and 12.5 GB/s. a: 100 / 37.5 = 8/3 s; b has 100/3 GB then, the rest at 50.
    machine = reads(
        "a: {read: 100 GB, from: storage, to: gpu0, weight: 3}",
        "b: {read: 50 GB, from: storage, to: gpu0}",
    )
    found = topo.simulate(machine, via="direct")
    assert finishes(found) == pytest.approx({"a": 8 / 3, "b": 3.0})


def test_each_by_its_own_data_path():
    # The cards' outward side for the checkpoint, RAM for the load alone: neither meets the other.
    found = topo.simulate(shipped("gds-textbook"), via={"load": "legacy", "checkpoint": "direct"})
    assert finishes(found) == pytest.approx({"load": 6.4, "checkpoint": 1.4})
    assert [run.data_path for run in found.runs] == ["legacy", "direct"]


def test_all_bytes_are_moved():
    for name in ("gds-textbook", "dgx-h100", "l40s-two-switches", "gds-loses"):
        found = topo.simulate(shipped(name))
        for run in found.runs:
            moved = sum(
                one.rate * (moment.end - moment.start)
                for moment in found.moments
                for one in moment.rates
                if one.workload == run.workload.name
            )
            assert moved == pytest.approx(run.workload.size)


def test_what_does_not_work_is_said():
    machine = built(TWO_SOCKETS, {"gpu0.p2p": "no"})
    with pytest.raises(NoRouteError, match=r"near cannot go by direct: .*no PCIe peer-to-peer"):
        topo.simulate(machine, via="direct")
    with pytest.raises(UnknownNameError, match=r"no workload lod.*known: near, far, back"):
        topo.simulate(machine, via={"lod": "direct"})
    with pytest.raises(UnknownNameError, match="dirct"):
        topo.simulate(machine, via="dirct")
    with pytest.raises(DescriptionError, match="no workloads"):
        topo.simulate(built(ONE_SOCKET.split("workloads:")[0]))


FAR = TWO_SOCKETS.replace("upi 16 GT/s", "upi unknown")


def test_at_most_is_carried_to_every_run_that_meets_the_unknown():
    found = topo.simulate(built(FAR), via="direct")
    assert {run.workload.name: run.at_most for run in found.runs} == {
        "near": False,
        "far": True,
        "back": True,
    }
    assert found.at_most
    assert {(rate.workload, rate.at_most) for rate in found.moments[0].rates} == {
        ("near", False),
        ("far", True),
        ("back", True),
    }
    (finding,) = found.findings
    assert finding.code == "unknown-capacity"
    assert "rates of far and back are at most" in finding.message
    assert "cpu0 -> cpu1" in finding.message


def test_at_once_knows_which_paths_meet_an_unknown():
    assert at_once(topo.compare(built(FAR))).at_most == ("legacy", "direct")


def test_a_demand_that_nothing_stops():
    unknown = {"nic0.chip": "unknown", "gpu0.hbm": "unknown", "storage.read": "unlimited"}
    links = {"storage -- nic0": "infiniband unknown", "nic0 -- cpu0": "pcie unknown"}
    unsaid = (
        uncapped(ONE_SOCKET)
        .replace("pcie: 5 x16, ", "")
        .replace("ports: 1x 400 Gb/s, ", "ports: 1, ")
    )
    machine = built(unsaid, {**unknown, **links, "gpu0 -- cpu0": "pcie unknown"})
    with pytest.raises(UnboundedError, match="load gpu0"):
        topo.simulate(machine, workloads=machine.description.workloads[:1], via="direct")


# --- beside a comparison --------------------------------------------------------------------------


def test_a_comparison_says_what_happens_at_once():
    meeting = at_once(topo.compare(shipped("gds-textbook")))
    assert {name: finishes(run) for name, run in meeting.runs} == {
        "legacy": pytest.approx({"load": 7.8, "checkpoint": 2.8}),
        "direct": pytest.approx({"load": 6.4, "checkpoint": 1.4}),
    }
    assert meeting is not None
    assert at_once_sentence(meeting) == (
        "Run together, direct wins: load is done at 6.4 s and checkpoint at 1.4 s; by legacy, "
        "load is done at 7.8 s and checkpoint at 2.8 s, sharing the RAM buses."
    )


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "gds-loses", "l40s-two-switches"])
def test_what_a_comparison_says_is_what_together_finds(name):
    machine = shipped(name)
    meeting = at_once(topo.compare(machine, via=("legacy", "direct")))
    for path, run in meeting.runs:
        ((_, alone),) = simulate_each(machine, via=(path,))
        assert finishes(run) == pytest.approx(finishes(alone), rel=1e-12)


def test_refused_paths_are_left_out():
    machine = built(TWO_SOCKETS, {"gpu0.p2p": "no"})
    meeting = at_once(topo.compare(machine))
    assert [name for name, _ in meeting.runs] == ["legacy"]
    assert meeting is not None
    assert at_once_sentence(meeting).startswith("Run together by legacy, near is done at ")


def test_one_workload_meets_nobody():
    assert at_once(topo.compare(shipped("gds-textbook"), workload="load")) is None
    assert at_once(topo.compare(built(ONE_SOCKET), source="storage", target="gpu0")) is None


APART = (
    PARTS
    + """
devices:
  left: target
  right: target
  nic[0-1]: card
  cpu[0-1]: socket
  ram[0-1]: dram
  gpu[0-1]: accel
links:
  - left -- nic0: infiniband ndr
  - right -- nic1: infiniband ndr
  - nic -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
workloads:
  one: {read: 50 GB, from: left, to: gpu0}
  other: {read: 50 GB, from: right, to: gpu1}
"""
)


def test_what_is_shared_is_used_by_several_workloads():
    ((_, apart),) = simulate_each(built(APART), via=["legacy"])
    assert "nic-chip" in {resource.kind for resource in apart.bound}
    assert apart.shared == ()
    ((_, textbook),) = simulate_each(shipped("gds-textbook"), via=["legacy"])
    assert {resource.kind for resource in textbook.shared} == {"memory-bus"}


def test_what_limits_each_alone_is_not_shared():
    machine = built(
        APART.replace("read: 50 GB, from: right", "read: 50 GB, start: 1 ms, from: right")
    )
    slow = topo.compare(machine, via=["odirect-pageable", "legacy-pageable", "direct"])
    meeting = at_once(slow)
    assert meeting is not None
    assert "sharing" not in at_once_sentence(meeting)


def test_data_paths_that_come_out_alike_are_named_once():
    comparison = topo.compare(shipped("gds-textbook"), via=["legacy", "direct", "odirect-pinned"])
    meeting = at_once(comparison)
    assert meeting is not None
    assert [names for names, _ in meeting.alike] == [("direct", "odirect-pinned"), ("legacy",)]
    words = at_once_sentence(meeting)
    assert words.startswith("Run together, by direct or odirect-pinned, load is done at 6.4 s")
    assert words.endswith("checkpoint at 2.8 s, sharing the RAM buses.")


def test_each_workload_says_its_data_path_where_they_differ():
    """What reads from RAM has data paths of its own, which do not run beside those of storage."""
    text = TWO_SOCKETS.replace("near:", "feed: {read: 50 GB, from: ram, to: gpu}\n  near:")
    meeting = at_once(topo.compare(built(text)))
    assert meeting is not None
    words = at_once_sentence(meeting)
    assert "feed (by pinned)" in words
    assert "near (by direct)" in words
    assert " wins" not in words
