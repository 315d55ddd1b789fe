"""Which card and drive each GPU should use: the nearest, dealt out fairly."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.discovery.importing import import_text
from topo.routes.nearness import semi_matching
from topo.study.affinity import affinities
from topo.topology.build import build_topology


def uses(found, purpose):
    return {
        one.gpu: choice.device
        for one in found.gpus
        for choice in one.choices
        if choice.purpose == purpose
    }


# --- dealing out ----------------------------------------------------------------------------------


@st.composite
def wishes(draw):
    things = [f"nic{n}" for n in range(draw(st.integers(1, 4)))]
    some = st.lists(st.sampled_from(things), min_size=1, unique=True)
    return {f"gpu{n}": draw(some) for n in range(draw(st.integers(1, 5)))}


def squares(choice):
    return sum(count**2 for count in Counter(choice).values())


@given(wanted=wishes())
def test_no_other_dealing_is_more_equal(wanted):
    chosen = semi_matching(wanted)
    assert all(chosen[who] in wanted[who] for who in wanted)
    best = min(map(squares, product(*wanted.values())))
    assert squares(chosen.values()) == best
    assert semi_matching(wanted) == chosen


def test_somebody_moves_over_for_one_who_has_no_choice():
    assert semi_matching({"a": ["x", "y"], "b": ["y", "z"], "c": ["x"], "d": ["y"]}) == {
        "a": "y",
        "b": "z",
        "c": "x",
        "d": "y",
    }


def test_equal_things_are_taken_in_order():
    all_of_them = ["nic0", "nic1"]
    chosen = semi_matching({f"gpu{n}": all_of_them for n in range(4)})
    assert list(chosen.values()) == ["nic0", "nic1", "nic0", "nic1"]


# --- machines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["nvidia-smi", "nccl", "gds"])
def test_a_dgx_h100_has_a_compute_card_for_each_and_a_storage_card_a_socket(rules):
    found = affinities(shipped("dgx-h100"), rules=rules)
    assert uses(found, "compute") == {f"gpu{n}": f"nic{n}" for n in range(8)}
    assert uses(found, "storage") == {f"gpu{n}": "slot2" if n < 4 else "slot1" for n in range(8)}
    assert found.users["storage"]["slot1"] == ("gpu4", "gpu5", "gpu6", "gpu7")
    shared = found.gpus[0].choices[1]
    assert shared.shared_with == ("gpu1", "gpu2", "gpu3")


def test_the_reason_is_class_links_and_width():
    near = affinities(shipped("dgx-h100")).gpus[0].choices[0].nearness
    assert (near.label, near.links) == ("PXB", 1)
    assert near.rate == pytest.approx(63.015e9, rel=1e-4)
    by_nccl = affinities(shipped("dgx-h100"), rules="nccl").gpus[0].choices[1].nearness
    assert (by_nccl.label, by_nccl.rate) == ("PHB", 48e9)
    by_gds = affinities(shipped("dgx-h100"), rules="gds").gpus[0].choices[0].nearness
    assert (by_gds.label, by_gds.links, by_gds.rate) == ("distance 3", None, None)


@pytest.mark.parametrize("rules", ["nvidia-smi", "nccl", "gds"])
def test_ties_are_dealt_out_and_said(rules):
    found = affinities(shipped("dgx-a100"), rules=rules)
    assert sorted(uses(found, "compute").values()) == [f"nic{n}" for n in range(8)]
    assert sorted(uses(found, "drive").values()) == [f"nvme{n}" for n in range(8)]
    assert found.gpus[0].choices[0].as_near == ("nic1",)
    assert found.gpus[0].numa == (3,)


def test_more_cards_than_gpus_are_all_used():
    found = affinities(shipped("aws-p5"))
    for number, affinity in enumerate(found.gpus):
        compute = affinity.choices[0]
        assert compute.devices == tuple(f"nic{4 * number + card}" for card in range(4))
        assert compute.as_near == ()
    assert found.users["compute"]["nic5"] == ("gpu1",)
    assert found.would_do_for("compute", "nic5") == ()


@pytest.mark.parametrize("rules", ["nvidia-smi", "nccl", "gds"])
def test_cards_left_over_go_to_gpus_evenly(rules):
    text = UNEQUAL.replace("gpu0:", "gpu[0-1]:").replace("gpu0 --", "gpu --")
    text = text.replace("nic1:", "nic[1,3-5]:").replace("rdma: mlx5_0}", "rdma: mlx5_9}")
    first, second = affinities(built(text), rules=rules).gpus
    assert first.choices[0].devices == ("nic1", "nic4", "nic2")
    assert second.choices[0].devices == ("nic3", "nic5")
    assert second.choices[0].as_near == ("nic1", "nic4", "nic2")


def test_more_gpus_than_drives_share_as_evenly_as_can_be():
    found = affinities(shipped("workstation-4gpu"))
    assert found.users["drive"] == {"nvme0": ("gpu0", "gpu2"), "nvme1": ("gpu1", "gpu3")}


SECOND_CARD = TWO_SOCKETS.replace("  nic0: card", "  nic[0-1]: card").replace(
    "  - nic0 -- cpu0: pcie 5 x16", "  - nic -- cpu: pcie 5 x16"
)


def test_a_cable_to_storage_makes_a_storage_card():
    found = affinities(built(SECOND_CARD))
    assert uses(found, "storage") == {"gpu0": "nic0", "gpu1": "nic0"}
    assert found.users["any"] == {"nic1": ("gpu0", "gpu1")}


def test_a_card_that_is_nearest_to_nobody_is_listed():
    both = affinities(
        built(SECOND_CARD.replace("gpu -- cpu:", "gpu -- cpu1:"), {"nic.role": "compute"})
    )
    assert both.users["compute"] == {"nic0": (), "nic1": ("gpu0", "gpu1")}


def test_another_server_s_cards_are_not_offered():
    workloads = SECOND_CARD.index("workloads:")
    text = SECOND_CARD[:workloads].replace("  - cpu0 -- cpu1: upi 16 GT/s\n", "")
    text = text.replace("storage -- nic0", "storage -- nic")
    found = affinities(
        built(text.replace("storage: target", "storage: {part: target, ports: 2x 400 Gb/s}"))
    )
    assert uses(found, "storage") == {"gpu0": "nic0", "gpu1": "nic1"}


def test_a_role_makes_a_compute_card():
    found = affinities(built(SECOND_CARD, {"nic0.role": "compute", "nic1.role": "compute"}))
    assert uses(found, "compute") == {"gpu0": "nic0", "gpu1": "nic1"}


def test_a_role_decides_where_no_cable_does():
    text = ONE_SOCKET.replace("nic0: card", "nic0: {part: card, role: compute}")
    found = affinities(built(text))
    assert uses(found, "compute") == uses(found, "storage") == {"gpu0": "nic0"}
    assert uses(affinities(built(LOCAL_DRIVES)), "drive")


# --- nearness, then RDMA, then rate ---------------------------------------------------------------


UNEQUAL = """\
topo: 1
devices:
  cpu0: epyc-7742
  ram0: {part: ddr4-3200, channels: 8}
  sw0: {part: pcie-switch-gen4, acs: off}
  gpu0: a100-pcie-80gb
  nic0: {part: nic-unknown, ports: 1x 10 Gb/s, label: eno1}
  nic1: {part: connectx-6, rdma: mlx5_0}
  nic2: {part: connectx-6, rdma: mlx5_1}
links:
  - ram0 -- cpu0: memory-bus
  - sw0 -- cpu0: pcie 4 x16
  - gpu0 -- sw0: pcie 4 x16
  - nic -- sw0: pcie 4 x16
"""


@pytest.mark.parametrize("rules", ["nvidia-smi", "nccl", "gds"])
@pytest.mark.parametrize(
    ("changes", "best", "as_good"),
    [
        ({}, "nic1", ("nic2",)),
        ({"nic1.gdr": "no"}, "nic2", ()),
        ({"nic1.ports": "1x 100 Gb/s"}, "nic2", ()),
        ({"nic0.rdma": "mlx5_9"}, "nic1", ("nic2",)),
        ({"nic0.rdma": "mlx5_9", "nic0.ports": "1x 200 Gb/s"}, "nic0", ("nic1", "nic2")),
    ],
)
def test_of_cards_as_near_rdma_goes_first_then_the_rate(rules, changes, best, as_good):
    found = affinities(built(UNEQUAL, changes), rules=rules)
    (choice,) = found.gpus[0].choices
    assert (choice.device, choice.also, choice.as_near) == (best, as_good, ())
    assert choice.rdma == found.topology[best].rdma
    for name in (best, *as_good):
        assert found.users["any"][name] == ("gpu0",)
        assert not found.would_do_for("any", name)


def test_a_nearer_card_goes_before_rdma():
    near = UNEQUAL.replace("nic -- sw0:", "nic0 -- sw0:") + "  - nic[1-2] -- cpu0: pcie 4 x16\n"
    assert uses(affinities(built(near)), "any") == {"gpu0": "nic0"}


def test_another_numa_node_of_the_socket_is_nearer_than_another_socket():
    found = affinities(shipped("dgx-a100"))
    assert uses(found, "storage") == {f"gpu{n}": "slot4" if n < 4 else "slot5" for n in range(8)}


def test_links_that_an_import_made_up_break_no_tie():
    """Three cards share a switch and one hangs on the CPU: all are NODE to the GPU."""
    data = (
        b"\tGPU0\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\n"
        b"GPU0\t X \tNODE\tNODE\tNODE\tNODE\t0-7\t0\n"
        b"NIC0\tNODE\t X \tNODE\tNODE\tNODE\t\t\n"
        b"NIC1\tNODE\tNODE\t X \tPIX\tPIX\t\t\n"
        b"NIC2\tNODE\tNODE\tPIX\t X \tPIX\t\t\n"
        b"NIC3\tNODE\tNODE\tPIX\tPIX\t X \t\t\n"
    )
    topology = build_topology(import_text("nvidia-smi", data, "smi.txt").description)
    (choice,) = affinities(topology).gpus[0].choices
    assert choice.devices == ("nic0", "nic1", "nic2", "nic3")
