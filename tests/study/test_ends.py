"""RAM as an end of data: GPUs draw from their own socket's memory, storage fills it."""

from __future__ import annotations

import pytest

from tests.machines import GRACE, LOCAL_DRIVES, ONE_SOCKET, TARGET, TWO_SOCKETS, built
from topo.datapaths.registry import count
from topo.errors import DescriptionError
from topo.routes.route import Policy
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare

GB = 1e9

# Two GPUs a socket, PCIe 4 x16 each, three xGMI links between the sockets.
PAIRS = """
topo: 1
devices:
  cpu[0-1]: epyc-9554
  ram[0-1]: {part: ddr5-4800, channels: 12}
  gpu[0-3]: l40s
links:
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 3x xgmi 32 GT/s
  - gpu -- cpu in blocks: pcie 4 x16
workloads:
  fetch: {read: 80 GB, from: ram, to: gpu}
  back: {write: 80 GB, from: gpu, to: ram}
  fetch-copied: {copy: 80 GB, from: ram, to: gpu}
  shift: {copy: 96 GB, from: ram0, to: ram1}
"""
PCIE4 = 16 * 16e9 * 128 / 130 / 8


@pytest.mark.parametrize("gpus", ["gpu[0-1]", "gpu[2-3]"])
def test_one_memory_fills_two_gpus_of_either_socket_at_their_pcie(gpus):
    answer = compare(built(PAIRS), source="ram0", target=gpus, via=["pinned"])["pinned"]
    assert answer.rate == pytest.approx(2 * PCIE4)
    assert {resource.kind for resource in answer.bound} == {"gpu-pcie"}
    over_xgmi = sum("cpu0 -> cpu1" in route.use for route in answer.routes)
    assert over_xgmi == (2 if gpus == "gpu[2-3]" else 0)


def test_a_gpu_draws_from_its_own_sockets_memory_unless_one_is_named():
    machine = built(PAIRS)
    nearest = compare(machine, workload="fetch", via=["pinned"])["pinned"]
    assert [[subflow.far for subflow in route.subflows] for route in nearest.routes] == [
        ["ram0"],
        ["ram0"],
        ["ram1"],
        ["ram1"],
    ]
    assert nearest.time == pytest.approx(80 * GB / (4 * PCIE4))


@pytest.mark.parametrize(
    ("name", "direction", "link"),
    [
        ("fetch", "read", "cpu0 -> gpu0"),
        ("fetch-copied", "read", "cpu0 -> gpu0"),
        ("back", "write", "gpu0 -> cpu0"),
    ],
)
def test_it_goes_either_way(name, direction, link):
    comparison = compare(built(PAIRS), workload=name)
    assert [path.name for path in comparison.workloads[0].paths] == ["pageable", "pinned"]
    pinned = comparison["pinned"]
    assert pinned.routes[0].direction == direction
    assert pinned.routes[0].use == {link: 1.0, "ram0/bus": 1.0, "gpu0/hbm": 1.0}
    assert (pinned.logical_hops, pinned.physical_links) == (2, 2)
    pageable = comparison["pageable"]
    assert pageable.routes[0].use["ram0/bus"] == 3.0
    assert (pageable.counts.ram_traversals, pinned.counts.ram_traversals) == (1, 0)


def test_ram_to_ram_by_a_core_crosses_the_socket_link():
    answer = compare(built(PAIRS), workload="shift")["memcpy"]
    assert answer.rate == pytest.approx(192 * GB)  # three links of 64
    assert answer.routes[0].use == {
        "cpu0 -> cpu1": 1.0,
        "ram0/bus": 1.0,
        "ram1/bus": 1.0,
        "cpu1/copy": 1.0,
    }


def test_inside_one_memory_a_copy_reads_and_writes_its_bus():
    machine = built(PAIRS)
    answer = compare(machine, source="ram0", target="ram0")["memcpy"]
    assert answer.routes[0].use == {"ram0/bus": 2.0, "cpu0/copy": 1.0}
    assert answer.cores is not None
    core = machine["cpu0"].part.figure("core-copy").value
    assert answer.cores.cores * core == pytest.approx(answer.rate)


@pytest.mark.parametrize(
    ("via", "bus"),
    [("odirect", 1.0), ("buffered", 3.0)],
)
def test_storage_fills_ram(via, bus):
    answer = compare(built(ONE_SOCKET), source="storage", target="ram0", via=[via])[via]
    assert answer.rate == pytest.approx(50 * GB)
    use = answer.routes[0].use
    assert (use["ram0/bus"], use["nic0/chip in"], use["storage/read"]) == (bus, 1.0, 1.0)


def test_ram_empties_into_storage():
    answer = compare(built(ONE_SOCKET), source="ram0", target="storage", via=["odirect"])["odirect"]
    assert answer.routes[0].use == {
        "storage/write": 1.0,
        "nic0/p1 out": 1.0,
        "nic0/chip out": 1.0,
        "cpu0 -> nic0": 1.0,
        "ram0/bus": 1.0,
    }


def test_each_memory_is_filled_by_its_nearest_card():
    answer = compare(built(TWO_SOCKETS), source="storage", target="ram", via=["odirect"])["odirect"]
    cards = [{subflow.card for subflow in route.subflows} for route in answer.routes]
    assert [route.endpoint for route in answer.routes] == ["ram0", "ram1"]
    assert all(cards)


def test_over_nvlink_c2c_nothing_is_staged():
    machine = built(GRACE)
    memory = next(device.name for device in machine.of_kind("memory"))
    comparison = compare(machine, source=memory, target="gpu0")
    (answer,) = comparison.workloads[0].paths
    assert (answer.name, answer.verdict) == ("c2c", "ok")
    assert answer.counts.dram_bytes == 1


def test_c2c_is_refused_where_no_such_link_leads():
    answer = compare(built(PAIRS), source="ram0", target="gpu0", via=["c2c"])["c2c"]
    assert answer.verdict == "refused"
    assert [reason.code for reason in answer.reasons] == ["needs-c2c"]


def test_a_data_path_of_another_sort_says_what_it_joins():
    answer = compare(built(PAIRS), source="ram0", target="gpu0", via=["legacy"])["legacy"]
    assert answer.verdict == "refused"
    (reason,) = answer.reasons
    assert reason.text == "legacy joins a GPU with storage, nvme or hba, not with ram0"


OWN = """
data-paths:
  three-accesses:
    title: staged, without a driver of ours
    moves:
      - ram -> bounce-buffer by core
      - bounce-buffer -> gpu by gpu
"""


def test_a_data_path_of_the_users_own_with_three_accesses_a_byte():
    machine = built(PAIRS + OWN)
    answer = compare(machine, source="ram0", target="gpu0", via=["three-accesses"])
    path = answer["three-accesses"]
    assert path.routes[0].use["ram0/bus"] == 3.0
    assert path.dram_bytes is None
    assert path.counts.dram_bytes == 3
    assert path.rate == pytest.approx(PCIE4)


# --- network cards as ends ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "chip"), [("nic0", "ram0", "in"), ("ram0", "nic0", "out")]
)
def test_a_network_card_fills_and_empties_ram(source, target, chip):
    machine = built(ONE_SOCKET)
    (answer,) = compare(machine, source=source, target=target).workloads[0].paths
    link = "nic0 -> cpu0" if chip == "in" else "cpu0 -> nic0"
    assert answer.name == "nic-host"
    assert answer.routes[0].use == {link: 1.0, "ram0/bus": 1.0, f"nic0/chip {chip}": 1.0}


def test_a_drive_feeds_a_card_through_ram_or_past_it():
    machine = built(
        LOCAL_DRIVES.replace("gpu0: accel", "gpu0: accel\n  nic0: card").replace(
            "links:", "links:\n  - nic0 -- cpu0: pcie 5 x16"
        )
    )
    comparison = compare(machine, source="nvme0", target="nic0")
    past, staged = comparison.workloads[0].paths
    assert (past.name, staged.name) == ("target-p2p", "target-staged")
    assert past.routes[0].use == {
        "nvme0/read": 1.0,
        "nvme0 -> cpu0": 1.0,
        "cpu0 -> nic0": 1.0,
        "nic0/chip out": 1.0,
        "cpu0/p2p non-posted": 1.0,  # the card reads
    }
    assert staged.routes[0].use["ram0/bus"] == 2.0
    assert staged.counts.ram_traversals == 1


def test_a_card_sends_nothing_to_itself():
    with pytest.raises(DescriptionError, match="copies from nic0 to itself"):
        compare(built(TWO_SOCKETS), source="nic", target="nic")


# --- drives of another host -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "rate", "binds"),
    [
        ({}, 50.0, "nic0/p1"),  # the server's own way
        ({"boxram.bus": "60 GB/s"}, 30.0, "boxram/bus"),  # written once and read once
        ({"nvme.read": "2 GB/s"}, 16.0, "nvme0/read"),
        ({"boxnic.chip": "100 Gb/s"}, 25.0, "boxnic0/chip"),
        ({"ram0.bus": "80 GB/s"}, 20.0, "ram0/bus"),
    ],
)
def test_a_drive_of_another_host_is_read_through_it(changes, rate, binds):
    answer = compare(built(TARGET, changes), workload="load", via=["legacy"])["legacy"]
    assert answer.verdict == "ok"
    assert answer.rate == pytest.approx(rate * GB)
    assert binds in {resource.name for resource in answer.bound}


def test_the_target_s_ram_is_counted_apart():
    answer = compare(built(TARGET), workload="load", via=["direct"])["direct"]
    use = answer.routes[0].use
    assert (use["boxram/bus"], use.get("ram0/bus")) == (2.0, None)
    assert answer.counts.ram_traversals == 0
    assert answer.target_path is not None
    assert count(answer.target_path).ram_traversals == 1
    assert answer.target_size == 80 * GB
    assert answer.route.waypoints == (
        *("nvme0", "target-buffer", "boxnic0", "nic0", "PCIe", "gpu0"),
    )


def test_past_the_target_s_ram_its_bus_is_not_used():
    answer = compare(built(TARGET, {"boxram.bus": "1 GB/s"}), workload="past", via=["direct"])
    path = answer["direct"]
    assert path.rate == pytest.approx(50 * GB)
    assert "boxram/bus" not in path.routes[0].use
    assert path.target_path is not None
    assert count(path.target_path).ram_traversals == 0


def test_a_write_goes_the_same_way_back():
    answer = compare(built(TARGET), workload="save", via=["direct"])["direct"]
    use = answer.routes[0].use
    assert {name: use[name] for name in ("nic0/chip out", "nvme0/write", "boxram/bus")} == {
        "nic0/chip out": 1.0,
        "nvme0/write": pytest.approx(1 / 8),
        "boxram/bus": 2.0,
    }
    assert use["boxnic0/chip in"] == pytest.approx(0.5)
    assert answer.route.waypoints[0] == "gpu0"
    assert answer.route.waypoints[-1] == "nvme0"


@pytest.mark.parametrize("nics", ["stripe", "best"])
def test_cards_of_both_hosts_may_be_chosen_otherwise(nics):
    answer = compare(built(TARGET), workload="load", via=["direct"], policy=Policy(nics=nics))
    assert answer["direct"].rate == pytest.approx(50 * GB)


def test_storage_of_another_host_fills_ram():
    machine = built(TARGET)
    answer = compare(machine, source="nvme", target="ram0", via=["odirect"])["odirect"]
    assert answer.rate == pytest.approx(50 * GB)
    assert (answer.routes[0].use["ram0/bus"], answer.routes[0].use["boxram/bus"]) == (1.0, 2.0)


def test_the_ladder_climbs_through_both_hosts():
    ladder = bottleneck(built(TARGET, {"boxram.bus": "60 GB/s"}), workload="load", via="direct")
    names = [
        [full.resource.name for _, group in rung.classes for full in group] for rung in ladder.rungs
    ]
    assert names[0] == ["boxram/bus"]
    assert "nic0/p1" in names[1]
