"""The worked machines: each loads, says its sources, keeps its promises, and is what it claims."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

import topo
from topo.catalogue.part import memory_bus_rate, memory_headline_rate
from topo.discovery.importing import import_text
from topo.study.machines import machine_summary
from topo.topology.build import build_topology
from topo.views.sentences import sentence

FOLDER = Path(__file__).parents[1] / "topologies"
CORPUS = FOLDER.parents[1] / "shared" / "corpus"  # beside the checkout, if at all
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))

every_machine = pytest.mark.parametrize("name", NAMES)


def comment_of(name):
    """Return the comment that opens a file."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return text[: text.index("topo: 1")]


def test_the_six_machines_are_there():
    assert set(NAMES) >= {
        *("gds-textbook", "dgx-h100", "dgx-a100"),
        *("workstation-4gpu", "l40s-two-switches", "gds-loses"),
    }


@every_machine
def test_it_opens_with_what_it_is_its_sources_and_what_to_notice(name):
    comment = comment_of(name)
    assert all(line.startswith("#") for line in comment.splitlines())
    assert "Source" in comment
    assert "https://" in comment
    assert machine_summary(topo.load(name)).notice.endswith((".", ":"))


@every_machine
def test_it_loads_under_its_own_name_without_complaint(name):
    machine = topo.load(name)
    assert machine.name == name
    assert machine.title != name
    assert machine.description.findings == ()


@every_machine
def test_it_states_expectations_that_hold(name):
    judgements = topo.check(topo.load(name))
    assert len(judgements) >= 4
    assert [
        (one.expectation.text, sentence(one.outcome)) for one in judgements if not one.holds
    ] == []


@every_machine
def test_every_workload_can_be_compared(name):
    for workload in topo.compare(topo.load(name)).workloads:
        assert any(path.rate for path in workload.paths)


@every_machine
def test_lines_are_short_enough_to_read(name):
    lines = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 130


# --- the textbook ---------------------------------------------------------------------------------


def answer(name, workload, via):
    return topo.compare(topo.load(name), workload=workload, via=[via])[via]


@pytest.mark.parametrize(
    ("via", "hops", "links", "traversals", "copies", "by_cores"),
    [("legacy", 5, 5, 2, 2, 1), ("direct", 3, 3, 0, 0, 0)],
)
def test_the_textbook_counts(via, hops, links, traversals, copies, by_cores):
    found = answer("gds-textbook", "load", via)
    assert found.logical_hops == hops
    assert found.routes[0].physical_links == links
    assert found.counts.ram_traversals == traversals
    assert found.counts.cpu_memory_copies == copies
    assert found.counts.core_copies == by_cores


def test_the_textbook_times():
    legacy, direct = (answer("gds-textbook", "load", via) for via in ("legacy", "direct"))
    # 640 GB rest in RAM twice: 1.28 TB at 400 GB/s; each byte crosses the bus four times.
    assert legacy.ram_traffic == 1.28e12
    assert legacy.ram_floor == pytest.approx(3.2)
    assert legacy.dram_bytes == 2.56e12
    assert legacy.dram_floor == pytest.approx(6.4)
    assert (direct.ram_traffic, direct.dram_bytes) == (0, 0)
    # Two cards of 50 GB/s: 640 GB in 6.4 s either way.
    assert legacy.rate == direct.rate == pytest.approx(100e9)
    assert legacy.time_s == direct.time_s == pytest.approx(6.4)


def test_the_textbook_checkpoint_takes_what_practice_leaves():
    found = answer("gds-textbook", "checkpoint", "direct")
    assert found.time_s == pytest.approx(1.4)
    assert found.time_range == pytest.approx((1.75, 7 / 3))


def test_the_textbook_pageable_copy_is_limited_by_ram():
    found = answer("gds-textbook", "load", "legacy-pageable")
    assert found.dram_bytes == 3.84e12
    assert found.dram_floor == pytest.approx(9.6)
    assert found.rate == pytest.approx(66.67e9, rel=1e-3)


# --- DGX H100, against `nvidia-smi topo -m` -------------------------------------------------------

FIRST = ["gpu0", "gpu1", "gpu2", "gpu3"]  # on cpu0, with slot2
SECOND = ["gpu4", "gpu5", "gpu6", "gpu7"]  # on cpu1, with slot1


def expected_class(one, other):
    """Return what the published matrix shows for a pair of GPUs and cards."""

    def socket(name):
        if name.startswith("slot"):
            return {"slot1": 1, "slot2": 0}[name]
        return int(name[3:]) // 4

    if one == other:
        return "X"
    if one.startswith("gpu") and other.startswith("gpu"):
        return "NV18"
    if {one[:3], other[:3]} == {"gpu", "nic"} and one[3:] == other[3:]:
        return "PXB"
    return "NODE" if socket(one) == socket(other) else "SYS"


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-h200", "dgx-b200"])
def test_every_pair_of_a_dgx_of_eight_is_as_published(name):
    found = topo.matrix(topo.load(name))
    assert len(found) == 18
    wrong = {
        (one, other): (shown, expected_class(one, other))
        for one, row in found.items()
        for other, shown in row.items()
        if shown != expected_class(one, other)
    }
    assert wrong == {}


def test_each_gpu_of_the_dgx_h100_is_behind_exactly_one_card():
    found = topo.matrix(topo.load("dgx-h100"))
    for gpu in (*FIRST, *SECOND):
        assert [other for other, shown in found[gpu].items() if shown == "PXB"] == [f"nic{gpu[3:]}"]


def test_the_two_functions_of_a_storage_card_are_one_card():
    found = topo.matrix(topo.load("dgx-h100"), functions=True)
    assert found["slot2/f0"]["slot2/f1"] == "PIX"
    assert found["gpu0"]["slot2/f0"] == found["gpu0"]["slot2/f1"] == "NODE"


@pytest.mark.parametrize(("card", "gpus"), [("slot2", FIRST), ("slot1", SECOND)])
def test_each_storage_card_serves_its_own_socket_without_the_socket_link(card, gpus):
    found = answer("dgx-h100", "load", "direct")
    for route in found.routes:
        if route.endpoint in gpus:
            assert f"{card}/chip in" in route.use
            assert not any(resource in route.use for resource in ("cpu0 -> cpu1", "cpu1 -> cpu0"))


def test_the_memory_of_the_dgx_h100_is_slower_than_its_headline():
    parts = [device.part for device in topo.load("dgx-h100").of_kind("memory")]
    assert [memory_bus_rate(part).value for part in parts] == pytest.approx([281.6e9] * 2)
    assert [memory_headline_rate(part).value for part in parts] == pytest.approx([307.2e9] * 2)


def test_the_dgx_h100_reads_100_gb_a_second():
    assert answer("dgx-h100", "load", "direct").rate == pytest.approx(100e9)


@pytest.mark.parametrize(
    ("name", "kind", "first"),
    [("nic0", "rdma", "mlx5_0"), ("slot1", "rdma", "mlx5_7"), ("gpu7", "pci", "df:00.0")],
)
def test_the_names_of_the_dgx_h100_are_those_of_its_guide(name, kind, first):
    assert getattr(topo.load("dgx-h100")[name], kind)[0] == first


# --- real matrices --------------------------------------------------------------------------------


def real(file):
    """Return the path of a real file; the test is skipped where there is none."""
    path = CORPUS / file
    if not path.exists():
        pytest.skip(f"NO CORPUS at {CORPUS}")
    return path


def differences(name, file, devices, *, functions=True):
    """Return the pairs of which `nvidia-smi topo -m` says another class: here, and there."""
    text = real(f"nvidia-smi/{file}").read_text(encoding="utf-8")
    _, *lines = text.split("Legend")[0].splitlines()
    table = [line.split()[1 : len(devices) + 1] for line in lines if line.strip()]
    assert [len(row) for row in table] == [len(devices)] * len(devices)
    classes = topo.matrix(topo.load(name), functions=functions)
    return {
        (one, other): (classes[one][other], there)
        for one, row in zip(devices, table, strict=True)
        for other, there in zip(devices, row, strict=True)
        if classes[one][other] != there
    }


def test_every_pair_of_the_gh200_is_as_a_real_one_shows():
    devices = ["gpu0", "bf0/f0", "bf0/f1", "bf1/f0", "bf1/f1"]
    assert differences("gh200", "gh200-1gpu-4nic.txt", devices) == {}


def test_every_pair_of_the_dgx_b300_is_as_a_real_hgx_b300_shows():
    devices = [f"{stem}{number}" for stem in ("gpu", "nic") for number in range(8)]
    assert differences("dgx-b300", "hgx-8gpu-8bond-cx8.txt", devices, functions=False) == {}


def test_every_pair_of_the_shape_with_a_card_a_gpu_is_as_a_real_server_shows():
    cards = [f"nic{gpu}" for gpu in (2, 1, 7, 3, 0, 6, 4, 5)]  # in the order of their names there
    devices = [*(f"gpu{number}" for number in range(8)), *cards]
    file = "h200-8gpu-8nic-shuffled.txt"
    assert differences("hgx-h100-one-nic-a-gpu", file, devices, functions=False) == {}


def test_the_gpus_of_the_dgx_2_meet_where_those_of_a_real_one_do():
    def meetings(machine):
        gpus = machine.of_kind("gpu")
        found = {}
        for one, other in combinations(gpus, 2):
            place = machine.tree.meeting(one.name, other.name)
            found[one.pci, other.pci] = machine[place].pci if place else ()
        return found

    path = real("hwloc-xml/nvidia-dgx2-16xV100.xml")
    there = build_topology(import_text(None, path.read_bytes(), path.name).description)
    assert len(meetings(there)) == 120
    assert meetings(topo.load("dgx-2")) == meetings(there)


def test_nvidia_smi_calls_far_what_hangs_on_one_grace():
    halves = (
        ["gpu0", "gpu1", "nic0", "nic1", "bf0/f0", "bf0/f1"],
        ["gpu2", "gpu3", "nic2", "nic3", "bf1/f0", "bf1/f1"],
    )
    first, second = halves
    devices = [*first[:2], *second[:2], *first[2:], *second[2:]]
    found = differences("gb200-tray", "gb200-4gpu-8nic-gpunuma.txt", devices)
    one_card = ({"bf0/f0", "bf0/f1"}, {"bf1/f0", "bf1/f1"})
    of_one_grace = {
        (one, other)
        for half in halves
        for one in half
        for other in half
        if one != other and {one[:3], other[:3]} != {"gpu"} and {one, other} not in one_card
    }
    assert found == dict.fromkeys(of_one_grace, ("NODE", "SYS"))


# --- the tiers of a KV cache ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "via", "seconds", "kind"),
    [
        ("hbm", "peer-nvlink", 43 / 1800, "gpu-fabric"),
        ("dram", "pinned", 43 / (4 * 63.01538), "uplink"),
        ("drives", "p2pdma", 43 / (8 * 14.5), "drive-read"),
        ("remote", "compat", 43 / 42.9, "storage-read"),
    ],
)
def test_each_tier_alone(workload, via, seconds, kind):
    found = answer("kv-cache", workload, via)
    assert found.time_s == pytest.approx(seconds, rel=1e-5)
    assert {full.kind for full in found.bound} == {kind}


def test_together_the_tiers_cost_ram_what_the_filer_brings():
    together = topo.simulate(topo.load("kv-cache"))
    done = {run.workload.name: run.finish for run in together.runs}
    assert done["drives"] == pytest.approx(answer("kv-cache", "drives", "p2pdma").time_s)
    assert done["dram"] == pytest.approx(43 / (4 * 63.01538 - 42.9), rel=1e-5)


def test_each_gpu_has_the_drives_of_its_own_switch():
    machine = topo.load("kv-cache")
    for route in answer("kv-cache", "drives", "p2pdma").routes:
        drives = {subflow.far for subflow in route.subflows}
        assert len(drives) == 2
        assert all(machine.tree.meeting(drive, route.endpoint).startswith("sw") for drive in drives)


# --- the others -----------------------------------------------------------------------------------


def test_the_storage_cards_of_the_dgx_a100_are_far_from_every_gpu():
    found = topo.matrix(topo.load("dgx-a100"))
    for number in range(8):
        row = found[f"gpu{number}"]
        assert row["slot4"] == row["slot5"] == "SYS"
        near = [other for other, shown in row.items() if shown == "PXB"]
        assert near == [f"nic{number // 2 * 2}", f"nic{number // 2 * 2 + 1}"]


def test_direct_loses_where_the_socket_link_is_in_the_way():
    legacy, direct = (answer("gds-loses", "load", via) for via in ("legacy", "direct"))
    assert legacy.rate == pytest.approx(25e9)
    assert direct.rate == pytest.approx(6.9 * 2**30)
    assert [one.resource.kind for one in direct.bottlenecks] == ["peer-to-peer"]
    assert answer("gds-loses", "checkpoint", "direct").rate == pytest.approx(2.3 * 2**30)


def test_the_workstation_refuses_direct_and_says_why():
    found = answer("workstation-4gpu", "load", "direct")
    assert found.verdict == "refused"
    assert re.search("no PCIe peer-to-peer", " ".join(reason.text for reason in found.reasons))


def test_the_l40s_box_reads_under_its_switches():
    found = answer("l40s-two-switches", "load", "direct")
    used = {resource for route in found.routes for resource in route.use}
    assert "nic0 -> sw0" in used
    assert not any("cpu" in resource for resource in used)


def test_the_direct_route_of_the_dgx_h100_walks_four_links():
    walk = answer("dgx-h100", "load", "direct").routes[0].subflows[0].transfers[0].walk
    assert [walk[0].source, *(step.target for step in walk)] == [
        *("storage", "slot2", "cpu0", "nic0", "gpu0")
    ]


@pytest.mark.parametrize(
    ("name", "a_switch", "a_socket"), [("asus-esc8000a-e13p", 2, 4), ("wrx90-two-pm50100", 4, 8)]
)
def test_every_pair_of_a_server_of_rtx_pro_6000_is_as_its_owner_shows(name, a_switch, a_socket):
    def expected(left, right):
        if left == right:
            return "X"
        if left // a_switch == right // a_switch:
            return "PIX"
        return "NODE" if left // a_socket == right // a_socket else "SYS"

    classes = topo.matrix(topo.load(name))
    assert {
        (left, right): classes[f"gpu{left}"][f"gpu{right}"]
        for left in range(8)
        for right in range(8)
    } == {(left, right): expected(left, right) for left in range(8) for right in range(8)}
