"""Names, classes and figures of resources; ports dealt out; what a measurement is laid over."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.machines import (
    LOCAL_DRIVES,
    MI300X,
    NVLINKED,
    ONE_SOCKET,
    PARTS,
    TWO_SOCKETS,
    built,
    shipped,
)
from topo.catalogue.cables import parse_cable
from topo.catalogue.parts import catalogue
from topo.errors import UnknownNameError
from topo.host.link_rules import packet_share

PCIE_5_X16 = 32e9 * 16 * 128 / 130 / 8


def rate(machine, name, basis="theoretical"):
    return machine.resources[name].capacity.rate(basis)


def test_the_resources_of_the_textbook_machine():
    machine = shipped("gds-textbook")
    kinds: dict[str, list[str]] = {}
    for resource in machine.resources.values():
        kinds.setdefault(resource.kind, []).append(resource.id)
    assert kinds["storage-read"] == ["storage/read"]
    assert kinds["nic-chip"] == [f"slot{n}/chip {way}" for n in (1, 2) for way in ("in", "out")]
    assert sorted(kinds["network-port"]) == sorted(
        f"slot{n}/p{port} {way}" for n in (1, 2) for port in (1, 2) for way in ("in", "out")
    )
    assert kinds["memory-bus"] == ["ram0/bus", "ram1/bus"]
    assert "slot1 -> root0" in kinds["card-pcie"]
    assert "root1 -> gpu7" in kinds["gpu-pcie"]
    assert kinds["socket-link"] == ["root0 -> root1", "root1 -> root0"]
    assert len(kinds["gpu-memory"]) == 8
    assert not any("ram0 ->" in name for name in machine.resources)


def test_capacities_of_the_textbook_machine():
    machine = shipped("gds-textbook")
    assert rate(machine, "slot1/chip in") == 50e9
    assert rate(machine, "slot1/p2 in") == 50e9
    assert rate(machine, "slot1 -> root0") == pytest.approx(PCIE_5_X16)
    assert rate(machine, "ram0/bus") + rate(machine, "ram1/bus") == 400e9
    assert machine.resources["storage/read"].capacity.theoretical.value == math.inf
    assert machine.resources["root0 -> root1"].capacity.theoretical.value is None
    assert rate(machine, "root0 -> root1") == math.inf


def test_memory_of_dgx_h100_as_populated():
    machine = shipped("dgx-h100")
    assert rate(machine, "ram0/bus") + rate(machine, "ram1/bus") == pytest.approx(563.2e9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cpu0 -> nic0", "uplink"),  # the card's own switch carries a GPU
        ("nic0 -> gpu0", "gpu-pcie"),
        ("slot1 -> cpu1", "card-pcie"),
        ("cpu0 -> cpu1", "socket-link"),
        ("gpu0 -> nvswitch", "gpu-fabric"),
    ],
)
def test_classes_of_dgx_h100(name, kind):
    assert shipped("dgx-h100").resources[name].kind == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sw0 -> cpu0", "uplink"),
        ("nic0 -> sw0", "card-pcie"),
        ("sw0 -> gpu0", "gpu-pcie"),
        ("raid -> cpu1", "controller-pcie"),
        ("nvme0 -> raid", "drive-pcie"),
        ("raid/read", "controller-read"),
        ("raid/write", "controller-write"),
        ("nvme3/write", "drive-write"),
    ],
)
def test_classes_of_a_box_with_switches_and_drives(name, kind):
    assert shipped("l40s-two-switches").resources[name].kind == kind


def test_links_between_gpus_are_fabric_whatever_joins_sockets_too():
    machine = built(MI300X)
    assert machine.resources["gpu0 -> gpu1"].kind == "gpu-fabric"
    assert machine.resources["cpu0 -> cpu1"].kind == "socket-link"
    assert built(NVLINKED).resources["gpu0 -> gpu1"].kind == "gpu-fabric"


def test_a_root_complex_hangs_on_its_cpu_by_an_uplink():
    text = ONE_SOCKET.replace("  cpu0: socket", "  cpu0: socket\n  rc0: root-complex").replace(
        "  - nic0 -- cpu0:", "  - rc0 -- cpu0: pcie unknown\n  - nic0 -- rc0:"
    )
    machine = built(text)
    assert machine.resources["rc0 -> cpu0"].kind == "uplink"
    assert machine.resources["nic0 -> rc0"].kind == "card-pcie"


# --- ports ----------------------------------------------------------------------------------------

DUAL = (
    PARTS
    + """
devices:
  storage[0-1]: target
  nic0: {part: card, ports: 2x 400 Gb/s}
  cpu0: socket
  ram0: dram
  gpu0: accel
links:
  - %s
  - %s
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
"""
)


def test_each_cable_takes_the_next_free_port():
    machine = built(DUAL % ("storage0 -- nic0: infiniband ndr", "storage1 -- nic0: infiniband ndr"))
    assert [str(link.b) for link in machine.links[:2]] == ["nic0/p1", "nic0/p2"]


def test_a_named_port_is_not_dealt_to_another_cable():
    machine = built(
        DUAL % ("storage0 -- nic0: infiniband ndr", "storage1 -- nic0/p1: infiniband ndr")
    )
    assert [str(link.b) for link in machine.links[:2]] == ["nic0/p2", "nic0/p1"]


def test_a_bundle_becomes_one_link_a_port():
    text = (DUAL % ("storage0 -- nic0: 2x infiniband ndr", "x")).replace("  - x\n", "")
    machine = built(text.replace("storage[0-1]", "storage0"))
    assert [str(link.b) for link in machine.links[:2]] == ["nic0/p1", "nic0/p2"]
    assert all(link.cable.count == 1 for link in machine.links[:2])
    assert rate(machine, "nic0/p1 in") == rate(machine, "nic0/p2 out") == 50e9


def test_one_cable_written_the_other_way_round_has_the_same_resources():
    mine = built(ONE_SOCKET)
    other = built(ONE_SOCKET.replace("storage -- nic0", "nic0 -- storage"))
    assert sorted(mine.resources) == sorted(other.resources)


# --- which end limited ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cable", "expected", "limited_by"),
    [
        ("infiniband ndr", 50e9, "infiniband ndr"),
        ("infiniband xdr", 50e9, "port of nic0"),
        ("ethernet 200 Gb/s", 25e9, "ethernet"),
    ],
)
def test_a_link_is_as_fast_as_the_least_of_cable_and_ends(cable, expected, limited_by):
    resource = built(ONE_SOCKET.replace("infiniband ndr", cable)).resources["nic0/p1 in"]
    assert resource.capacity.rate("theoretical") == expected
    assert resource.limited_by == limited_by


LANES_16, LANES_4 = 32e9 * 16 * 128 / 130 / 8, 16e9 * 4 * 128 / 130 / 8


@pytest.mark.parametrize(
    ("old", "new", "resource", "expected"),
    [
        (
            "- storage -- nic0: infiniband ndr",
            "- storage -- nic0: ethernet unknown",
            "nic0/p1 in",
            50e9,
        ),
        ("nic0 -- cpu0: pcie 5 x16", "nic0 -- cpu0: pcie unknown", "nic0 -> cpu0", LANES_16),
        ("gpu0 -- cpu0: pcie 5 x16", "gpu0 -- cpu0: pcie unknown x8", "cpu0 -> gpu0", LANES_16 / 2),
        ("gpu0 -- cpu0: pcie 5 x16", "gpu0 -- cpu0: 2x pcie unknown", "cpu0 -> gpu0", LANES_16),
        ("pcie: 5, core", "pcie: 4, core", "", 0.0),
    ],
    ids=["port", "slot", "own-lanes", "bundle", "older-host"],
)
def test_a_cable_of_unknown_rate_carries_at_most_what_its_ends_take(old, new, resource, expected):
    text = ONE_SOCKET.replace(old, new)
    if not resource:  # the host is PCIe 4 and the GPU 5
        text = text.replace("cpu0: pcie 5 x16", "cpu0: pcie unknown")
        resource, expected = "cpu0 -> gpu0", LANES_16 / 2
    capacity = built(text).resources[resource].capacity
    assert capacity.rate("theoretical") == pytest.approx(expected)
    assert capacity.theoretical.at_most
    assert capacity.theoretical.unknown


def test_a_link_between_gpus_of_unknown_generation_carries_at_most_what_their_ports_do():
    text = ONE_SOCKET.replace("  gpu0: accel", "  gpu[0-1]: accel\n  nvs0: nvswitch-unknown")
    text = text.replace("  - gpu0 -- cpu0", "  - gpu -- nvs0: 18x nvlink unknown\n  - gpu -- cpu0")
    resource = built(text).resources["gpu0 -> nvs0"]
    assert resource.capacity.rate("theoretical") == 450e9
    assert resource.capacity.theoretical.at_most
    assert resource.capacity.achievable.at_most
    assert resource.limited_by == "port of gpu0"


def test_a_cable_of_which_no_end_says_a_generation_or_lanes_stays_unknown():
    text = ONE_SOCKET.replace("pcie: 5 x16, ports", "ports").replace(
        "nic0 -- cpu0: pcie 5 x16", "nic0 -- cpu0: pcie unknown"
    )
    assert built(text).resources["nic0 -> cpu0"].capacity.theoretical.value is None


def test_bundles_add_up():
    machine = built(TWO_SOCKETS.replace("upi 16 GT/s", "3x upi 16 GT/s"))
    resource = machine.resources["cpu0 -> cpu1"]
    assert resource.capacity.rate("theoretical") == 96e9
    assert resource.capacity.theoretical.source.startswith("3 x (")


# --- three figures --------------------------------------------------------------------------------


def test_efficiency_multiplies_what_is_computed_and_leaves_what_is_quoted():
    text = ONE_SOCKET.replace("  ram0: dram", "  ram0: {part: dram, efficiency: 50 %}").replace(
        "gpu0 -- cpu0: pcie 5 x16", "gpu0 -- cpu0: {medium: pcie 5 x16, efficiency: 80 %}"
    )
    machine = built(text)
    assert rate(machine, "cpu0 -> gpu0", "achievable") == pytest.approx(0.8 * PCIE_5_X16)
    assert rate(machine, "ram0/bus", "achievable") == 200e9  # `bus: 200 GB/s` is quoted
    assert machine.resources["ram0/bus"].capacity.used("achievable") == "theoretical"
    assert machine.resources["cpu0 -> gpu0"].capacity.used("measured") == "achievable"


def test_efficiency_of_a_computed_memory_bus_applies():
    text = ONE_SOCKET.replace(
        "  ram0: dram", "  ram0: {part: ddr5-4800, channels: 8, efficiency: 70 %}"
    )
    machine = built(text)
    assert rate(machine, "ram0/bus") == pytest.approx(307.2e9)
    assert rate(machine, "ram0/bus", "achievable") == pytest.approx(0.7 * 307.2e9)


MEASURED = """
measured:
  - %s
"""


def test_a_measured_rate_lies_over_its_link_in_that_direction():
    machine = built(ONE_SOCKET + MEASURED % "cpu0 -> gpu0: 55.6 GB/s")
    assert rate(machine, "cpu0 -> gpu0", "measured") == 55.6e9
    assert machine.resources["cpu0 -> gpu0"].capacity.used("measured") == "measured"
    assert rate(machine, "cpu0 -> gpu0") == pytest.approx(PCIE_5_X16)
    assert machine.resources["gpu0 -> cpu0"].capacity.measured is None


def test_cables_side_by_side_share_what_was_measured_of_the_pair():
    text = (DUAL % ("storage0 -- nic0: 2x infiniband ndr", "x")).replace("  - x\n", "")
    machine = built(
        text.replace("storage[0-1]", "storage0") + MEASURED % "storage0 -> nic0: 90 GB/s"
    )
    assert rate(machine, "nic0/p1 in", "measured") == 45e9
    assert rate(machine, "nic0/p2 in", "measured") == 45e9
    assert "1 of 2 cables" in machine.resources["nic0/p1 in"].capacity.measured.source


def test_a_measured_port_is_that_port_alone():
    text = (DUAL % ("storage0 -- nic0: 2x infiniband ndr", "x")).replace("  - x\n", "")
    machine = built(
        text.replace("storage[0-1]", "storage0") + MEASURED % "storage0 -> nic0/p2: 40 GB/s"
    )
    assert rate(machine, "nic0/p2 in", "measured") == 40e9
    assert machine.resources["nic0/p1 in"].capacity.measured is None


def test_a_measured_bundle_is_not_divided():
    machine = built(
        TWO_SOCKETS.replace("upi 16 GT/s", "3x upi 16 GT/s") + MEASURED % "cpu0 -> cpu1: 80 GB/s"
    )
    assert rate(machine, "cpu0 -> cpu1", "measured") == 80e9


def test_what_is_measured_of_a_memory_is_its_bus_and_the_lower_of_two_directions():
    machine = built(
        ONE_SOCKET + MEASURED % "ram0 -> cpu0: 160 GB/s" + "  - cpu0 -> ram0: 120 GB/s\n"
    )
    assert rate(machine, "ram0/bus", "measured") == 120e9
    assert rate(machine, "ram0/bus") == 200e9


# --- selecting ------------------------------------------------------------------------------------


def test_select_reads_names_stems_and_ranges():
    machine = shipped("dgx-h100")
    names = [device.name for device in machine.select("gpu[2-3]")]
    assert names == ["gpu2", "gpu3"]
    assert len(machine.select("gpu")) == 8
    assert [device.name for device in machine.select("storage")] == ["storage"]
    with pytest.raises(UnknownNameError, match="no device gpux"):
        machine.select("gpux")


def test_of_kind_keeps_the_order_of_the_file():
    machine = built(LOCAL_DRIVES)
    assert [device.name for device in machine.of_kind("gpu", "cpu")] == ["cpu0", "gpu0"]
    assert machine.of_kind("nic") == ()


def test_repr_is_one_honest_line():
    assert repr(built(ONE_SOCKET)) == "<Topology tiny: 5 devices, 4 links, 12 resources>"


# --- achievable rates of links between GPUs -------------------------------------------------------

GPU_PAIR = """
topo: 1
devices: {"gpu[0-1]": PART}
links:
  - gpu0 -- gpu1: CABLE
"""


@pytest.mark.parametrize(
    ("part", "cable", "low", "high"),
    [
        ("p100-sxm-16gb", "4x nvlink 1", 73e9, 73.1e9),
        ("v100-sxm-32gb", "6x nvlink 2", 143.7e9, 143.75e9),
        ("a100-sxm-80gb", "12x nvlink 3", 268e9, 276e9),
        ("h100-sxm-80gb", "18x nvlink 4", 371e9, 377e9),
        ("mi300x", "xgmi 32 GT/s", 48e9, 48.5e9),
        ("mi325x", "xgmi 32 GT/s", 48e9, 48.5e9),
    ],
)
def test_links_between_gpus_reach_what_is_published(part, cable, low, high):
    text = GPU_PAIR.replace("PART", part).replace("CABLE", cable)
    figure = built(text).resources["gpu0 -> gpu1"].capacity.achievable
    assert low <= figure.value <= high
    assert figure.kind == "measured"
    assert "https://" in figure.source


@pytest.mark.parametrize("medium", ["nvlink ga102", "nvlink 5"])
def test_what_nccl_plans_with_is_no_measurement(medium):
    efficiency = catalogue().media[medium].efficiency
    assert efficiency.kind == "guess"
    assert "NCCL's planning number" in efficiency.source


@pytest.mark.parametrize(
    ("medium", "low", "high"),
    # copies by a GPU, and what a RAID card or a drive moves of x16
    [("pcie 3", 12.15, 14), ("pcie 4", 25.6, 28.4), ("pcie 5", 55.6, 58)],
)
def test_pcie_lies_between_what_gpus_and_what_drives_reach(medium, low, high):
    cable: Any = parse_cable(f"{medium} x16", catalogue().media)
    assert low < cable.efficiency.value * cable.rate.value / 1e9 < high
    least, most = cable.efficiency.range
    assert least <= low * 1e9 / cable.rate.value
    assert most == pytest.approx(packet_share(256), abs=0.01)


@pytest.mark.parametrize(
    ("cable", "measured"),
    [("3x upi 11.2 GT/s", 55.7), ("2x upi 10.4 GT/s", 34.3), ("2x qpi 9.6 GT/s", 30.6)],
)
def test_links_between_sockets_reach_what_is_published(cable, measured):
    text = f"topo: 1\ndevices: {{'cpu[0-1]': xeon-8358}}\nlinks: [cpu0 -- cpu1: {cable}]\n"
    capacity: Any = built(text).resources["cpu0 -> cpu1"].capacity
    assert capacity.achievable.value / 1e9 == pytest.approx(measured, rel=0.02)


# --- hosts ----------------------------------------------------------------------------------------

TWO_SERVERS = """
topo: 1
devices:
  filer: nvme-of-target
  leaf: network-switch-unknown
  cpu[0-3]: xeon-8480c
  nic[0-1]: connectx-7
  ram[0-3]: {part: ddr5-4800, channels: 8}
  gpu[0-3]: h100-sxm-80gb
  nvsw: nvswitch-3
links:
  - filer -- leaf: ethernet 400 Gb/s
  - leaf -- nic: ethernet 400 Gb/s
  - nic0 -- cpu1: pcie 5 x16
  - nic1 -- cpu2: pcie 5 x16
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: upi unknown
  - cpu2 -- cpu3: upi unknown
  - gpu[0-3] -- cpu: pcie 5 x16
  - gpu -- nvsw: 18x nvlink 4
"""


def test_a_host_is_what_host_links_join():
    machine = built(TWO_SERVERS)
    assert [(host.name, host.devices) for host in machine.hosts] == [
        ("host0", ("cpu0", "cpu1", "nic0", "ram0", "ram1", "gpu0", "gpu1")),
        ("host1", ("cpu2", "cpu3", "nic1", "ram2", "ram3", "gpu2", "gpu3")),
    ]
    # neither a network nor links between GPUs make one server of two
    assert machine.host_of["gpu3"] is machine.host_of["nic1"]
    assert not {"filer", "leaf", "nvsw"} & set(machine.host_of)


def test_the_worked_machines_are_one_host_each():
    for name in ("dgx-h100", "dgx-a100", "gds-textbook", "l40s-two-switches", "workstation-4gpu"):
        (host,) = shipped(name).hosts
        assert {gpu.name for gpu in shipped(name).of_kind("gpu")} <= set(host.devices)
