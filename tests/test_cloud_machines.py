"""The machines of clouds agree with what such an instance tells of itself.

The files lie beside the checkout and are no part of it: without them these tests are skipped.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import topo
from topo.discovery.importing import import_text
from topo.topology.build import build_topology
from topo.topology.locality import locality, numa_nodes

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
LEAVES = {"hwloc": ("gpu", "nic", "nvme"), "nccl": ("gpu", "nic")}  # NCCL tells no drives

# What a machine leaves out, as its opening comment says: ENA functions, the root volume, functions
# that manage NVLink.
LEFT_OUT = {
    "aws-p6-b200": {"nic-unknown", "ebs-volume", "connectx-7"},
}
# What is told otherwise elsewhere: 8 GT/s stands at all of it, and hwloc shows 16 at such a GPU.
SLOWER_TOLD = {"aws-p4d": "gpu"}
SOURCES = {
    "aws-p4d": ("nccl", "nccl-xml/aws-p4de-a100-80.xml"),
    "aws-p6-b200": ("hwloc", "hwloc-xml/aws-p6-b200.xml"),
    "azure-nd-a100-v4": ("nccl", "nccl-xml/azure-ndv4-a100.xml"),
    "azure-nd-h100-v5": ("nccl", "nccl-xml/azure-ndv5-superbench-variant.xml"),
    "oci-h100": ("nccl", "nccl-xml/oci-h100-k8s.xml"),
}


@pytest.fixture(params=SOURCES, scope="module")
def pair(request):
    """Return a machine and the topology of the file that it is made after, each with its leaves."""
    kind, file = SOURCES[request.param]
    if not (CORPUS / file).exists():
        pytest.skip(f"NO CORPUS at {CORPUS}")
    found = import_text(kind, (CORPUS / file).read_bytes(), Path(file).name)
    ours, told = topo.load(request.param), build_topology(found.description)
    return ours, by_address(ours, LEAVES[kind]), told, by_address(told, LEAVES[kind])


def by_address(topology, kinds):
    """Return the names of devices by PCI address."""
    return {
        address.removeprefix("0000:"): device.name
        for device in topology.of_kind(*kinds)
        for address in device.pci[:1]
    }


def rates_up(topology, name):
    """Return the rate of each link from a device up to its CPU, bytes/s."""
    rates = []
    for above in (*topology.tree.attachment(name).bridges, topology.tree.attachment(name).root):
        (link,) = (step.link for step in topology.steps[name] if step.target == above)
        rates.append(link.cable.rate.value)
        name = above
    return rates


def test_all_devices_are_there_but_those_that_the_machine_leaves_out(pair):
    ours, names, told, told_names = pair
    assert names.keys() <= told_names.keys()
    missing = {told[told_names[address]].part.name for address in told_names.keys() - names.keys()}
    assert missing <= LEFT_OUT.get(ours.name, set())


def test_every_pair_has_the_class_that_is_told(pair):
    ours, names, told, told_names = pair
    classes = {
        (a, b): locality(ours, names[a], names[b])
        for a, b in combinations(sorted(names), 2)
        if {names[a][:3], names[b][:3]} != {"gpu"}  # NVLink between them is not told by all
    }
    assert classes == {(a, b): locality(told, told_names[a], told_names[b]) for a, b in classes}


def test_every_device_has_its_numa_node_and_links_as_fast_as_told(pair):
    ours, names, told, told_names = pair
    for address, name in names.items():
        assert numa_nodes(ours, name) == numa_nodes(told, told_names[address])
        if ours[name].kind != SLOWER_TOLD.get(ours.name):
            assert rates_up(ours, name) == pytest.approx(rates_up(told, told_names[address]))
