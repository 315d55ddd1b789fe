"""The text that the system models: every number of it, and what follows from its numbers."""

from __future__ import annotations

import pytest

from tests.machines import shipped
from topo.datapaths.registry import data_path
from topo.flows.demands import demands_of, use_matrix
from topo.routes.router import Router
from topo.solve.fluid import complete
from topo.solve.maxmin import max_min
from topo.study.compare import compare

GB, TB = 1e9, 1e12


@pytest.fixture(scope="module")
def textbook():
    return shipped("gds-textbook")


@pytest.fixture(scope="module")
def load(textbook):
    via = ("legacy", "direct", "legacy-pageable")
    return compare(textbook, workload="load", via=via)


@pytest.fixture(scope="module")
def checkpoint(textbook):
    return compare(textbook, workload="checkpoint", via=("legacy", "direct"))


def stops(answer):
    return sorted(one.resource.name for one in answer.bottlenecks)


def test_five_hops_two_copies_two_traversals(load):
    legacy = load["legacy"]
    assert (legacy.logical_hops, legacy.physical_links) == (5, 5)
    assert legacy.counts.ram_traversals == 2
    assert legacy.counts.cpu_memory_copies == 2
    assert legacy.counts.core_copies == 1


def test_three_hops_and_nothing_in_ram(load):
    direct = load["direct"]
    assert (direct.logical_hops, direct.physical_links) == (3, 3)
    assert direct.counts.ram_traversals == direct.counts.cpu_memory_copies == 0
    assert (direct.ram_traffic, direct.dram_bytes) == (0, 0)
    assert (direct.ram_floor, direct.dram_floor) == (0, 0)


def test_the_hbm_of_eight_gpus_is_640_gb(textbook):
    sizes = [device.part.figure("memory").value for device in textbook.select("gpu")]
    assert sum(sizes) == 640 * GB == textbook.description.workloads[0].size


def test_640_gb_through_ram_twice_is_1_28_tb_and_3_2_seconds(load):
    legacy = load["legacy"]
    assert legacy.ram_traffic == pytest.approx(1.28 * TB, rel=1e-12)
    assert legacy.ram_floor == pytest.approx(3.2, rel=1e-12)


def test_on_the_memory_bus_it_is_twice_that(load):
    legacy, pageable = load["legacy"], load["legacy-pageable"]
    assert legacy.dram_bytes == 2.56 * TB
    assert legacy.dram_floor == pytest.approx(6.4, rel=1e-12)
    assert pageable.dram_bytes == pytest.approx(3.84 * TB, rel=1e-12)
    assert pageable.dram_floor == pytest.approx(9.6, rel=1e-12)


def test_the_cards_bind_either_path_at_800_gbit_and_the_ram_bus_ties(load):
    for via in ("legacy", "direct"):
        assert load[via].rate == pytest.approx(100 * GB, rel=1e-12)
        assert load[via].time == pytest.approx(6.4, rel=1e-12)
    assert stops(load["direct"]) == ["slot1/chip", "slot2/chip"]
    assert stops(load["legacy"]) == ["ram0/bus", "ram1/bus", "slot1/chip", "slot2/chip"]
    for bound in load["legacy"].bottlenecks:
        assert bound.load == pytest.approx(bound.capacity)


def test_pageable_memory_makes_ram_bind_and_direct_half_as_fast_again(load):
    pageable = load["legacy-pageable"]
    assert stops(pageable) == ["ram0/bus", "ram1/bus"]
    assert pageable.rate == pytest.approx(200 / 3 * GB)
    assert load["direct"].rate / pageable.rate == pytest.approx(1.5)


def test_a_checkpoint_of_140_gb_at_60_to_80_per_cent(checkpoint):
    direct = checkpoint["direct"]
    assert direct.time == pytest.approx(1.4, rel=1e-12)
    assert direct.time_range == (1.75, pytest.approx(7 / 3, rel=1e-12))
    assert direct.logical_hops == 3
    assert stops(direct) == ["slot1/chip", "slot2/chip"]
    assert checkpoint["legacy"].counts.cpu_memory_copies == 2


def test_an_efficiency_is_applied_to_theory_only(textbook):
    found = compare(textbook, workload="checkpoint", at="achievable")
    assert found["direct"].time_range is None
    assert [one.code for one in found.findings if one.code == "efficiency-ignored"] == [
        "efficiency-ignored"
    ]
    assert compare(textbook, workload="load")["direct"].time_range is None


def test_copying_keeps_ten_cores_busy_and_one_worker_a_gpu_is_slower(load):
    legacy = load["legacy"]
    assert legacy.cores.cores == pytest.approx(10)
    assert legacy.cores.rate_per_core == 10 * GB
    assert "guess" in legacy.cores.source
    assert load["legacy-pageable"].cores.cores == pytest.approx(2 * 6.6667, rel=1e-4)
    assert load["direct"].cores is None
    assert load["direct"].serial_rate is None
    assert legacy.serial_rate < load["direct"].rate


def together(machine, via):
    """Return seconds until the load and until the checkpoint are done, both at once."""
    router = Router(machine)
    path = data_path(machine.description, via)
    demands = [
        demand
        for workload in machine.description.workloads
        for demand in demands_of(router, workload, path)
    ]
    found = use_matrix(machine, demands)
    assert max_min(found.system).rates
    finishes = complete(found.system, [demand.size for demand in demands]).finishes
    return tuple(
        max(end for end, demand in zip(finishes, demands, strict=True) if demand.workload == name)
        for name in ("load", "checkpoint")
    )


def test_when_both_run_at_once_direct_wins(textbook):
    # Chips have two directions; the RAM's bus has one and is shared by reads and writes.
    assert together(textbook, "direct") == pytest.approx((6.4, 1.4))
    assert together(textbook, "legacy") == pytest.approx((7.8, 2.8))


def test_the_appliance_is_said_to_be_not_modelled(load):
    assert load["direct"].unlimited == ("storage/read",)
    assert not load["direct"].at_most
    assert load["direct"].unknowns == ()


def test_each_gpu_gets_the_same(load):
    for path in load.workloads[0].paths:
        assert set(path.rates) == {f"gpu{n}" for n in range(8)}
        assert list(path.rates.values()) == pytest.approx([path.rate / 8] * 8)


# --- the machine of the text, as it is built ------------------------------------------------------


def test_dgx_h100():
    found = compare(shipped("dgx-h100"), workload="load")
    legacy, direct = found["legacy"], found["direct"]
    assert legacy.rate == pytest.approx(100 * GB) == direct.rate
    assert (legacy.physical_links, direct.physical_links) == (6, 4)
    assert stops(legacy) == ["slot1/chip", "slot2/chip"]  # RAM of 563.2 GB/s is not yet full
    assert legacy.dram_floor == pytest.approx(2560 / 563.2)
    assert direct.verdict == "ok"


def test_gds_loses():
    found = compare(shipped("gds-loses"), workload="load")
    assert found["legacy"].rate == pytest.approx(25 * GB)
    assert found["direct"].rate == pytest.approx(6.9 * 2**30)
    assert found["direct"].rate == pytest.approx(7.4 * GB, rel=2e-3)
    assert stops(found["direct"]) == ["cpu0 -> cpu1/p2p"]
    back = compare(shipped("gds-loses"), workload="checkpoint")["direct"]
    assert back.rate == pytest.approx(2.3 * 2**30)
