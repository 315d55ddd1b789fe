"""Who exchanges data with whom: pairs, and what copies cost on which links."""

from __future__ import annotations

import math

import pytest

import topo
from tests.machines import PARTS, built
from topo.description.description import Workload
from topo.errors import DescriptionError
from topo.flows.ends import Ends, ends_of, paired_ends
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.study.affinity import affinities
from topo.study.timeline import simulate

# Two GPUs under one CPU with a NIC each side; NVLink between them; 4-channel DDR5 (153.6 GB/s).
PAIR = """
topo: 1
name: pair
settings: {iommu: off}
devices:
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 4}
  nic[0-1]: connectx-7
  gpu[0-1]: h100-sxm-80gb
links:
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
  - nic -- cpu0: pcie 5 x16
  - gpu0 -- gpu1: 18x nvlink 4
workloads:
  halo: {copy: 63 GB, from: gpu0, to: gpu1}
  send: {copy: 100 GB, from: gpu, to: nic}
  mixed: {copy: 10 GB, from: gpu, to: gpu}
"""


def copy(sources, targets):
    return Workload("w", "copy", 1e9, tuple(sources), tuple(targets))


def test_equal_counts_pair():
    machine = built(PAIR)
    assert ends_of(machine, machine.description.workloads[1]) == (
        Ends("gpu0", ("nic0",), "write"),
        Ends("gpu1", ("nic1",), "write"),
    )


def test_who_has_the_bytes_already_needs_none():
    machine = built(PAIR)
    assert ends_of(machine, copy(["gpu0"], ["gpu0", "gpu1"])) == (Ends("gpu1", ("gpu0",), "read"),)


def test_a_copy_from_a_device_to_itself_is_refused():
    with pytest.raises(DescriptionError, match="w copies from gpu0 to itself"):
        ends_of(built(PAIR), copy(["gpu0"], ["gpu0"]))


def test_a_set_with_itself_is_all_to_all():
    assert ends_of(built(PAIR), copy(["gpu0", "gpu1"], ["gpu0", "gpu1"])) == (
        Ends("gpu0", ("gpu1",), "read"),
        Ends("gpu1", ("gpu0",), "read"),
    )


def test_a_card_fills_every_gpu():
    assert ends_of(built(PAIR), copy(["nic0"], ["gpu0", "gpu1"])) == (
        Ends("gpu0", ("nic0",), "read"),
        Ends("gpu1", ("nic0",), "read"),
    )


def test_the_three_ways_between_two_gpus():
    # RAM: the bus is crossed twice, 153.6 / 2 = 76.8, so the GPUs' PCIe binds at 63.015.
    # PCIe peer-to-peer: the same 63.015. NVLink 4: 18 x 25 = 450 GB/s.
    found = topo.compare(built(PAIR), workload="halo")
    pcie = 32e9 * 16 * 128 / 130 / 8
    assert {path.name: path.rate for path in found.workloads[0].paths} == {
        "peer-ram": pytest.approx(pcie),
        "peer-pcie": pytest.approx(pcie),
        "peer-nvlink": pytest.approx(450e9),
    }
    assert found["peer-ram"].counts.dram_bytes == 2
    assert [path.logical_hops for path in found.workloads[0].paths] == [4, 2, 2]


def test_gpus_and_cards():
    # Directly each card's chip binds at 50; by RAM 2 x 50 would put 200 on a bus of 153.6.
    found = topo.compare(built(PAIR), workload="send")
    assert found["nic-direct"].rate == pytest.approx(100e9)
    assert found["nic-ram"].rate == pytest.approx(153.6e9 / 2)


def test_a_storage_path_does_not_join_gpus():
    path = topo.compare(built(PAIR), workload="halo", via=["direct"])["direct"]
    assert path.verdict == "refused"
    assert "not with gpu0" in path.reasons[0].text


def test_copies_run_beside_each_other():
    # halo over NVLink (63 / 450 = 0.14 s) shares nothing with send over PCIe (100 / 100 = 1 s).
    found = simulate(built(PAIR), workloads=built(PAIR).description.workloads[:2])
    assert found["halo"].finish == pytest.approx(0.14)
    assert found["send"].finish == pytest.approx(1.0)
    assert math.isclose(found.end, 1.0)


# --- pairing --------------------------------------------------------------------------------------

DEALT = (
    PARTS
    + """
devices:
  cpu[0-1]: socket
  ram[0-1]: dram
  nvme[0-3]: drive
  gpu[0-3]: accel
links:
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: upi 16 GT/s
  - nvme -- cpu in blocks: pcie 4 x4
  - gpu -- cpu in blocks: pcie 5 x16
workloads:
  plain: {read: 8 GB, from: nvme, to: gpu}
  near: {read: 8 GB, from: nvme, to: gpu, pairing: nearest}
  peers: {copy: 8 GB, from: gpu, to: gpu, pairing: nearest}
  turn: {read: 8 GB, from: nvme, to: gpu, pairing: in-order}
  few: {read: 8 GB, from: 'nvme[0-1]', to: gpu, pairing: in-order}
  wide: {read: 8 GB, from: nvme, to: 'gpu[0-1]', pairing: in-order}
  odd: {read: 8 GB, from: 'nvme[0-2]', to: gpu, pairing: in-order}
  fill: {read: 8 GB, from: ram, to: gpu}
  striped: {read: 8 GB, from: ram, to: gpu, pairing: all}
  one: {read: 8 GB, from: ram0, to: gpu}
"""
)
ALL = ("nvme0", "nvme1", "nvme2", "nvme3")


@pytest.mark.parametrize(
    ("name", "far"),
    [
        ("plain", [ALL] * 4),
        ("near", [("nvme0", "nvme1")] * 2 + [("nvme2", "nvme3")] * 2),
        ("peers", [("gpu1",), ("gpu0",), ("gpu3",), ("gpu2",)]),
        ("turn", [("nvme0",), ("nvme1",), ("nvme2",), ("nvme3",)]),
        ("few", [("nvme0",), ("nvme0",), ("nvme1",), ("nvme1",)]),
        ("wide", [("nvme0", "nvme1"), ("nvme2", "nvme3")]),
        ("fill", [("ram0",), ("ram0",), ("ram1",), ("ram1",)]),
        ("striped", [("ram0", "ram1")] * 4),
        ("one", [("ram0",)] * 4),
    ],
)
def test_each_endpoint_is_paired_as_the_workload_says(name, far):
    machine = built(DEALT)
    (asked,) = [one for one in machine.description.workloads if one.name == name]
    assert [ends.far for ends in paired_ends(Router(machine), asked)] == far


def test_the_policy_s_pairing_goes_first():
    machine = built(DEALT)
    near = machine.description.workloads[1]
    ends = paired_ends(Router(machine, Policy(pairing="all")), near)
    assert [each.far for each in ends] == [ALL] * 4


def test_the_nearest_drives_are_those_that_affinity_names():
    machine = built(DEALT)
    ends = paired_ends(Router(machine), machine.description.workloads[1])
    nearest = {each.endpoint: set(each.far) for each in ends}
    for gpu in affinities(machine).gpus:
        (choice,) = [choice for choice in gpu.choices if choice.purpose == "drive"]
        assert nearest[gpu.gpu] == {*choice.devices, *choice.as_near}


def test_in_order_the_numbers_come_out_even():
    machine = built(DEALT)
    (odd,) = [one for one in machine.description.workloads if one.name == "odd"]
    with pytest.raises(DescriptionError, match="3 and 4 devices in order"):
        paired_ends(Router(machine), odd)


def test_targets_on_the_network_are_as_near_as_the_cards_that_lead_to_them():
    machine = built(
        DEALT.replace(
            "  gpu[0-3]: accel\n", "  gpu[0-3]: accel\n  nic[0-1]: card\n  far[0-1]: target\n"
        )
        .replace(
            "workloads:", "  - nic -- cpu: pcie 5 x16\n  - far -- nic: infiniband ndr\nworkloads:"
        )
        .replace("from: nvme, to: gpu, pairing: nearest", "from: far, to: gpu, pairing: nearest")
    )
    ends = paired_ends(Router(machine), machine.description.workloads[1])
    assert [each.far for each in ends] == [("far0",), ("far0",), ("far1",), ("far1",)]
