"""What each failure leaves."""

from __future__ import annotations

import pytest

import topo
from topo.routes.route import Policy
from topo.study.failures import Failures, answer_after, failures, parts_of
from topo.study.question import ask, ask_collective
from topo.topology.build import build_topology

_POD = """
topo: 1
devices:
  node[0-3]: {use: gds-textbook}
  leaf[0-1]: quantum-2
  filer[0-1]: {part: nvme-of-target, ports: 4, read: 40 GB/s, write: 40 GB/s}
links:
  - node.slot1 -- leaf0: 2x infiniband ndr
  - node.slot2 -- leaf1: 2x infiniband ndr
  - filer -- leaf all to all: 2x infiniband ndr
workloads:
  load: {read: 320 GB, from: filer, to: node.gpu}
"""


def _left(result: Failures) -> dict[str, tuple[float, int]]:
    """Return the rate in GB/s and how many stop, by what fails."""
    return {
        loss.parts[0].names: (round(loss.rate / 1e9, 6), loss.stopped_count)
        for loss in result.losses
    }


def test_a_card_halves_the_textbook_and_its_storage_stops_it() -> None:
    left = _left(failures(topo.load("gds-textbook"), workload="load", via="direct"))
    assert left["storage"] == (0.0, 8)
    assert left["slot1, slot2"] == (50.0, 0)
    assert left["gpu[0-7] -- root0, root1"] == (87.5, 1)


def test_the_worst_comes_first() -> None:
    result = failures(topo.load("gds-textbook"), workload="load", via="direct")
    order = [(-loss.stopped_count, loss.rate) for loss in result.losses]
    assert order == sorted(order)
    assert (result.losses[0].stopped, result.losses[0].stopped_count) == (("gpu[0-7]",), 8)


def test_at_most_is_where_the_answer_says_so() -> None:
    """Peer-to-peer has no stated cap in a DGX H100, and no flow comes near to the published one."""
    machine = topo.load("dgx-h100")
    result = failures(machine, workload="load", via="direct")
    for loss in result.losses:
        left = topo.compare(machine.without(loss.parts[0].first), workload="load", via=["direct"])
        assert loss.at_most == left["direct"].at_most
        assert loss.rate == pytest.approx(left["direct"].rate or 0.0)
    assert not any(loss.at_most for loss in result.losses)
    sockets = failures(topo.load("gds-textbook"), workload="load", via="direct")
    assert next(loss.parts[0].names for loss in sockets.losses if loss.at_most) == "slot1, slot2"


def test_what_is_alike_fails_once_and_as_the_others_do() -> None:
    """Each outcome is that of the same machine written out, for every member of the class."""
    machine = topo.loads(_POD)
    result = failures(machine, via="direct")
    counts = {loss.parts[0].names: loss.parts[0].count for loss in result.losses}
    assert counts["leaf0, leaf1"] == 2
    assert counts["filer0, filer1"] == 2
    left = _left(result)
    for leaf in ("leaf0", "leaf1"):
        answer = topo.compare(machine.without(leaf), workload="load")["direct"]
        assert answer.rate == pytest.approx(left["leaf0, leaf1"][0] * 1e9)
    for filer in ("filer0", "filer1"):
        answer = topo.compare(machine.without(filer), workload="load")["direct"]
        assert answer.rate == pytest.approx(left["filer0, filer1"][0] * 1e9) == pytest.approx(40e9)


def test_two_at_a_time_are_told_apart_by_where_they_are() -> None:
    """Both cards of one server, or one each of two: the same parts, another outcome."""
    result = failures(topo.loads(_POD), via="direct", pairs=True)
    cards = [
        loss
        for loss in result.losses
        if all(part.kind == "nic" for part in loss.parts) and len(loss.parts) == 2
    ]
    assert {loss.stopped_count for loss in cards} == {0, 8}


def test_a_refused_path_fails_by_itself() -> None:
    machine = topo.load("gds-textbook", overrides={"gpu.p2p": "no"})
    result = failures(machine, workload="load", via="direct")
    assert result.answer.verdict == "refused"
    assert result.losses == ()


def test_parts_are_devices_that_carry_data_and_the_links_between() -> None:
    kinds = {part.kind for part in parts_of(topo.load("dgx-h100"))}
    assert kinds == {"storage", "nic", "nvswitch", "link"}


_RAILS = """
topo: 1
devices:
  node[0-7]: {use: dgx-h100}
  leaf[0-3]: quantum-2
  spine[0-1]: quantum-2
  filer[0-1]: {part: nvme-of-target, ports: 4, read: 400 GB/s, write: 60 GB/s}
links:
  - node[0-3].slot1 -- leaf0: 2x infiniband ndr
  - node[0-3].slot2 -- leaf1: 2x infiniband ndr
  - node[4-7].slot1 -- leaf2: 2x infiniband ndr
  - node[4-7].slot2 -- leaf3: 2x infiniband ndr
  - leaf -- spine all to all: 3x infiniband hdr
  - filer -- spine all to all: 2x infiniband ndr
workloads:
  load: {read: 8 GB each, from: filer, to: node.gpu}
"""


def test_what_is_kept_of_the_whole_answers_as_what_is_read_anew() -> None:
    """Cables of a bundle, ports of a card, switches, parts inside a server: each fails once."""
    machine = topo.loads(_RAILS)
    result = failures(machine, via="direct")
    assert result.topology.folding is not None
    outcomes = set()
    for loss in result.losses:
        anew = machine.without(*(part.first for part in loss.parts))
        assert anew.folding is None
        answer = topo.compare(anew, workload="load", via=["direct"])["direct"]
        assert loss.rate == pytest.approx(answer.rate or 0.0, rel=1e-9), loss
        assert loss.stopped_count == answer.stopped_count
        assert loss.at_most == answer.at_most
        outcomes.add(round(loss.rate))
    assert len(outcomes) > 2


_SPINE_OF_ITS_OWN = """
topo: 1
devices:
  node[0-2]: {use: gds-textbook}
  leaf[0-2]: quantum-2
  spine[0-2]: quantum-2
  filer: {part: nvme-of-target, ports: 4, read: 400 GB/s, write: 60 GB/s}
links:
  - node.slot1 -- leaf: 2x infiniband ndr
  - leaf1 -- spine1: infiniband ndr
  - leaf2 -- spine0: infiniband ndr
  - leaf0 -- spine2: infiniband ndr
  - filer -- spine all to all: infiniband ndr
workloads:
  load: {read: 8 GB each, from: filer, to: node.gpu}
"""


def test_a_cable_fails_that_is_there_and_not_one_to_what_stands_for_its_end() -> None:
    """Of the spines that node0 sees alike the first stands for all, and is not node1's."""
    described = topo.loads(_SPINE_OF_ITS_OWN).description
    machine = build_topology(described.folded or described, fold_from=2)
    assert machine.folding is not None
    result = failures(machine, via="direct")
    cables = [loss for loss in result.losses if "leaf" in loss.parts[0].first.partition(" -- ")[0]]
    assert {loss.stopped_count for loss in cables if "spine" in loss.parts[0].first} == {8}


def test_ends_that_no_workload_has_are_told_apart_all_the_same() -> None:
    """Of a folded machine one GPU is asked about, that others are alike to."""
    described = topo.loads(_RAILS).description
    machine = build_topology(described.folded or described, fold_from=2)
    result = failures(machine, workload=ask(machine, "filer", "node5.gpu2"), via="direct")
    stopping = [loss for loss in result.losses if loss.stopped == ("node5.gpu2",)]
    assert {loss.parts[0].first for loss in stopping} >= {"node5.nic2", "node5.nic2 -- node5.cpu0"}


def test_what_is_left_answers_as_the_loss_says():
    machine = topo.load("dgx-a100")
    result = failures(machine, via="direct", policy=Policy(nics="stripe"))
    for loss in result.losses[:6]:
        left, answer = answer_after(result, loss)
        assert left.description.lost == tuple(part.first for part in loss.parts)
        path = answer["direct"]
        assert (path.rate or 0.0) == pytest.approx(loss.rate)
        assert path.stopped_count == (loss.stopped_count if path.rate else 0)


def test_the_only_cable_of_a_drive_is_lost_with_the_drive():
    lost = failures(topo.load("tinybox"), workload="load", via="direct").losses
    names = [loss.parts[0].names for loss in lost]
    assert "nvme[0-3]" in names
    assert not any("nvme" in name and "--" in name for name in names)


@pytest.mark.parametrize(
    ("cable", "device"),
    [("nvme0 -- sw0", "nvme0"), ("sw0 -- cpu0", "sw0"), ("gpu0 -- sw0", "gpu0")],
)
@pytest.mark.parametrize("pairing", ["all", "nearest"])
@pytest.mark.parametrize("via", ["legacy", "direct"])
def test_what_no_cpu_leads_to_is_gone_whichever_part_of_the_way_fails(cable, device, pairing, via):
    """A switch whose uplink is down takes what hangs on it along, peer-to-peer below it too."""
    machine = topo.load("dell-xe9680")
    cut, gone = (
        topo.compare(
            machine.without(text), workload="local", via=[via], policy=Policy(pairing=pairing)
        )[via]
        for text in (cable, device)
    )
    assert cut.rate == pytest.approx(gone.rate)
    assert cut.time == pytest.approx(gone.time)
    assert cut.stopped_count - gone.stopped_count == (device == "gpu0")


def test_gpus_below_a_dead_switch_have_no_nvlink_either() -> None:
    machine = topo.load("dell-xe9680").without("sw0 -- cpu0")
    reduce = ask_collective(machine, "all-reduce")
    assert topo.compare(machine, workload=reduce, via=["peer-nvlink"])["peer-nvlink"].rate is None


def test_storage_behind_a_switch_that_fails_is_lost_as_if_it_failed() -> None:
    text = (
        _POD.replace("filer -- leaf all to all", "filer -- leaf")
        .replace("node.slot1 -- leaf0: 2x", "node.slot -- leaf0:")
        .replace("node.slot2 -- leaf1: 2x", "node.slot -- leaf1:")
    )
    machine = topo.loads(text)
    rates = [
        topo.compare(machine.without(*lost), workload="load", via=["direct"])["direct"].rate
        for lost in (["leaf0"], ["filer0"], ["filer0 -- leaf0"] * 2)
    ]
    assert rates == [pytest.approx(40e9)] * 3
