"""Which card and drive each GPU should use: the nearest, dealt out fairly."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.study.affinity import affinities, semi_matching


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
