"""Machines of other makers agree with what such a machine tells of itself, and with measurements.

The files lie beside the checkout and are no part of it: without them these tests are skipped.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import topo
from topo.discovery.importing import import_text
from topo.study.collective import collective
from topo.topology.build import build_topology
from topo.topology.locality import locality

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"


def corpus_file(name):
    if not (CORPUS / name).exists():
        pytest.skip(f"NO CORPUS at {CORPUS}")
    return CORPUS / name


def answer(name, workload, via):
    return topo.compare(topo.load(name), workload=workload, via=[via])[via]


# --- against what machines tell of themselves -----------------------------------------------------


def test_every_pair_of_the_esc8000a_e12_is_as_its_owner_shows():
    rows = [
        line.split()
        for line in corpus_file("nvidia-smi/asus-esc8000a-4xRTX6000Ada-CX7.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    columns = rows[0][:8]
    told = {
        (row[0], column): cell
        for row in rows[1:9]
        for column, cell in zip(columns, row[1:], strict=False)
    }
    functions = [f"nic{card}/f{function}" for card in range(2) for function in range(2)]
    ours = dict(zip(columns, [*(f"gpu{number}" for number in range(4)), *functions], strict=True))
    matrix = topo.matrix(topo.load("asus-esc8000a-e12"), functions=True)
    assert {pair: matrix[ours[pair[0]]][ours[pair[1]]] for pair in told} == told


def test_the_dies_of_the_mi250x_node_are_joined_and_near_as_rccls_file_has_it():
    file = corpus_file("nccl-xml/rccl-16p1h.xml")
    told = build_topology(import_text("nccl", file.read_bytes(), file.name).description)
    ours = topo.load("mi250x-node")
    at = {device.pci[0]: device.name for device in told.of_kind("gpu", "nic")}
    named = {device.name: at[device.pci[0]] for device in ours.of_kind("gpu", "nic")}
    assert len(named) == len(at)
    for one, other in combinations(named, 2):
        shown = locality(ours, one, other)
        # Bridges above dies are left out, halves of a switch are one: what is under it is PIX.
        expected = locality(told, named[one], named[other])
        assert shown == expected or (shown, expected) == ("PIX", "PXB")


# --- the answers that the files promise -----------------------------------------------------------


def test_a_storage_node_of_3fs_is_bound_by_its_cards_and_what_was_measured_is_below():
    found = answer("3fs-storage", "serve", "target-staged")
    assert found.rate == pytest.approx(50e9)
    assert {full.kind for full in found.bound} == {"nic-chip"}
    measured = 6.6 * 2**40 / 180  # the README's, a node
    assert 0.7 < measured / found.rate < 1


def test_the_bus_of_a_3fs_node_is_full_at_the_rate_of_two_cards_of_400_gb_s():
    machine = topo.load("3fs-storage").replace({"nic.part": "connectx-7"})
    (path,) = topo.compare(machine, workload="serve", via=["target-staged"]).workloads[0].paths
    assert path.rate == pytest.approx(2 * 31.508e9, rel=1e-3)  # its slots are PCIe 4


def test_ram_decides_what_geforce_without_peer_to_peer_reduces():
    paths = collective(topo.load("rtx5090-8"), "all-reduce").workloads[0].paths
    path = next(path for path in paths if path.rate)
    assert {full.kind for full in path.bound} == {"memory-bus"}


def test_north_south_cards_share_an_uplink_that_no_gpu_has():
    found = answer("gigabyte-g893", "load", "odirect-pinned")
    assert found.rate == pytest.approx(2 * 63.015e9, rel=1e-4)
    for route in found.routes:
        assert any(name.startswith("ns") for name in route.use)


def test_direct_stays_under_the_switches_beside_a_box_of_drives():
    found = answer("openflex-data24", "load", "direct")
    used = {name for route in found.routes for name in route.use}
    assert not any("cpu" in name for name in used)
    assert found.rate == pytest.approx(75e9)


def test_a_jbof_sends_what_its_dpus_pass_or_half_of_their_memory():
    assert answer("jbof-bluefield-3", "load", "legacy").rate == pytest.approx(83.2e9)
    assert answer("jbof-bluefield-3", "offload", "legacy").rate == pytest.approx(100e9)


def test_drives_that_hang_on_a_dpu_alone_are_said_to_lack_a_cpu():
    box = topo.load("jbof-bluefield-3").without("arm[0-1]")
    (path,) = topo.compare(box, workload="offload", via=["legacy"]).workloads[0].paths
    assert path.reasons[0].text == (
        "no permitted way joins nvme0 (drives that hang on no CPU) and gpu[0-3]"
    )


def test_all_ports_of_a_gaudi_reduce_at_once():
    (path,) = topo.compare(topo.load("gaudi-3-8"), workload="sum").workloads[0].paths
    assert path.rate == pytest.approx(21 * 25e9 / 2 / 7 * 8)  # algbw
