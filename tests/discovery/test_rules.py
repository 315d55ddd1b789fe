"""NCCL's and the GDS driver's view: published numbers, exactly."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.discovery.nccl_model import pairs_of
from tests.discovery.twins import AMD, INTEL_SKX, card, cpu, eight_switches, pci, switch, system
from topo.discovery.importing import import_text
from topo.errors import UnknownNameError
from topo.exports.formats import export_text
from topo.topology.build import build_topology, load, loads
from topo.topology.locality import locality
from topo.topology.rules import (
    Graph,
    Path,
    gds_ranking,
    nccl_graph,
    nccl_matrix,
    nccl_numbers,
    nccl_releases,
    paths_from,
)


def machine(data):
    return build_topology(import_text("nccl", data, "twin.xml").description)


def counts(topology, stem, **kwargs):
    """Ordered pairs of a GPU and another device: (type, bandwidth) to how many."""
    paths = nccl_matrix(topology, **kwargs)
    return Counter(
        (path.type, path.bandwidth)
        for row, columns in paths.items()
        for column, path in columns.items()
        if row.startswith("gpu") and column.startswith(stem) and row != column
    )


# --- twins of published machines, the types before NCCL's later steps ---------------------------


def bare_gpu(busid, **link):
    return pci(busid, "0x030200", **link)


def four_by_two():
    """Four NUMA nodes, each a switch with two GPUs and two cards, PCIe 4."""
    link: dict[str, Any] = {"speed": "16 GT/s"}

    def node(at):
        gpus = [bare_gpu(f"00{at}{n}:00:00.0", **link) for n in (1, 2)]
        cards = [card(f"01{at}{n}:00:00.0", **link) for n in (1, 2)]
        return cpu(at, switch(f"ffff:ff:0{at}.0", *gpus, *cards, **link), who=AMD)

    return system(*(node(at) for at in range(4)))


def no_switch():
    """Two NUMA nodes, four GPUs each, a card on the first, PCIe 4."""
    link: dict[str, Any] = {"speed": "16 GT/s"}
    nodes = [[bare_gpu(f"0{at}0{n}:00:00.0", **link) for n in range(4)] for at in (1, 2)]
    return system(
        cpu(0, *nodes[0], card("0501:00:00.0", **link), who=INTEL_SKX),
        cpu(1, *nodes[1], who=INTEL_SKX),
    )


def unknown_speeds():
    """Four NUMA nodes, a GPU each, neither speed nor width told."""
    link = {"speed": "", "width": 0}
    return system(*(cpu(at, bare_gpu(f"000{at + 1}:00:00.0", **link), who="") for at in range(4)))


def two_switches_a_node():
    """Two NUMA nodes, two switches each, two GPUs and a card on each, PCIe 3."""
    link: dict[str, Any] = {"speed": "8 GT/s"}

    def one(bus):
        gpus = [bare_gpu(f"0000:{bus}:1{n}.0", **link) for n in (0, 1)]
        cards = card(f"0000:{bus}:1b.0", **link)
        return switch(f"0000:{bus}:01.0", *gpus, cards, **link)

    return system(
        cpu(0, one("10"), one("20"), who=INTEL_SKX), cpu(1, one("90"), one("a0"), who=INTEL_SKX)
    )


@pytest.mark.parametrize(
    ("data", "cards", "gpus"),
    [
        (
            eight_switches(),
            {("PIX", 48): 8, ("PHB", 48): 24, ("SYS", 22): 32},
            {("PHB", 48): 24, ("SYS", 22): 32},
        ),
        (
            four_by_two(),
            {("PIX", 24): 16, ("SYS", 16): 48},
            {("PIX", 24): 8, ("SYS", 16): 48},
        ),
        (
            no_switch(),
            {("PHB", 24): 4, ("SYS", 10): 4},
            {("PHB", 24): 24, ("SYS", 10): 32},
        ),
        (unknown_speeds(), {}, {("SYS", 12): 12}),
        (
            two_switches_a_node(),
            {("PIX", 12): 8, ("PHB", 12): 8, ("SYS", 10): 16},
            {("PIX", 12): 8, ("PHB", 12): 16, ("SYS", 10): 32},
        ),
    ],
    ids=["8-switches", "4x2", "no-switch", "unknown-speeds", "2-switches-a-node"],
)
def test_published_types_and_bandwidths(data, cards, gpus):
    topology = machine(data)
    assert counts(topology, "nic") == cards
    assert counts(topology, "gpu") == gpus


def test_an_older_release_has_its_own_numbers():
    topology = machine(eight_switches())
    old = counts(topology, "gpu", release="before-sapphire-rapids")
    assert old == {("PHB", 48): 24, ("SYS", 10): 32}
    assert nccl_releases() == ("current", "before-sapphire-rapids")
    assert all(nccl_numbers(release).source for release in nccl_releases())
    with pytest.raises(UnknownNameError, match="no numbers of NCCL's release `1999`"):
        nccl_numbers("1999")


def test_a_known_machine():
    paths = nccl_matrix(load("dgx-h100"))
    assert paths["gpu0"]["gpu7"] == Path("NVL", 370.8, 2)
    assert (paths["gpu0"]["nic0"].type, paths["gpu0"]["nic0"].bandwidth) == ("PXB", 48)
    assert paths["gpu0"]["slot1"].type == "SYS"


def test_numa_nodes_of_one_socket_are_nodes_of_their_own():
    paths = nccl_matrix(load("dgx-a100"))
    assert paths["gpu0"]["slot4"].type == "SYS"
    assert paths["gpu0"]["slot4"].bandwidth == 16


@pytest.mark.parametrize(
    ("text", "generation", "bandwidth"),
    [("2.5 GT/s", 1, 0.1875), ("5 GT/s", 2, 6), ("64.0 GT/s PCIe", 6, 96), ("", None, 12)],
)
def test_lanes_count_as_less_than_the_line(text, generation, bandwidth):
    width = 1 if generation == 1 else 16
    link = {"speed": text, "width": width}
    topology = machine(
        system(cpu(0, bare_gpu("0000:01:00.0", **link), card("0000:02:00.0", **link)))
    )
    assert nccl_matrix(topology)["gpu0"]["nic0"].bandwidth == bandwidth


# --- what NCCL joins ----------------------------------------------------------------------------


def broadcom(busid, device, subsystem, *inside):
    numbers = f'vendor="0x1000" device="{device}" subsystem_vendor="0x1000"'
    text = switch(busid, *inside)
    return text.replace("<pci ", f'<pci {numbers} subsystem_device="{subsystem}" ', 1)


@pytest.mark.parametrize(
    ("device", "upper", "lower", "kind"),
    [
        ("0xc010", "0xa096", "0xa032", "PIX"),
        ("0xc030", "0x0072", "0x1003", "PIX"),
        ("0xc030", "0x1072", "0x1003", "PXB"),
        ("0xc030", "0x0072", "0x0003", "PXB"),
        ("0xc010", "0x1d25", "0xa032", "PXB"),
    ],
)
def test_a_broadcom_switch_is_one_with_its_virtual_ones(device, upper, lower, kind):
    below = broadcom("0000:02:00.0", device, lower, bare_gpu("0000:03:00.0"))
    data = system(
        cpu(0, broadcom("0000:01:00.0", device, upper, below, card("0000:04:00.0", "mlx5_0")))
    )
    topology = machine(data)
    path = nccl_matrix(topology)["gpu0"]["nic0"]
    assert (path.type, path.bandwidth) == (kind, 48)
    assert pairs_of(data) == {("0000:03:00.0", "0000:04:00"): (kind, 48)}
    written = export_text("nccl", topology).text
    assert pairs_of(written) == pairs_of(data)
    assert locality(topology, "gpu0", "nic0") == "PXB"  # nvidia-smi counts the bridges


def test_two_levels_of_switches_become_one_and_a_third_stays():
    data = bare_gpu("0000:09:00.0")
    for bus in (3, 2, 1):
        data = broadcom(f"0000:0{bus}:00.0", "0xc010", "0xa096", data)
    data = system(cpu(0, data, card("0000:08:00.0", "mlx5_0")))
    topology = machine(data)
    assert {"sw0", "sw2"} < set(nccl_graph(topology).kinds)
    assert "sw1" not in nccl_graph(topology).kinds
    path = nccl_matrix(topology)["gpu0"]["nic0"]
    assert pairs_of(data)["0000:09:00.0", "0000:08:00"] == (path.type, path.bandwidth)


def test_an_interface_without_a_device_has_no_pcie_limit():
    nets = '<nic><net name="eth0" dev="0" speed="100000"/></nic>'
    data = system(cpu(0, bare_gpu("0000:01:00.0"), nets))
    path = nccl_matrix(machine(data))["gpu0"]["nic0"]
    assert (path.type, path.bandwidth) == ("PHB", 48)
    assert pairs_of(data) == {("0000:01:00.0", ("net", "eth0")): ("PHB", 48)}


def test_a_card_by_hand_with_a_link_has_its_limit():
    text = """\
topo: 1
devices:
  cpu0: epyc
  gpu0: {part: l40s, pci: 01:00.0}
  nic0: {part: nic-unknown, label: eno1}
links: [gpu0 -- cpu0: pcie 4 x16, nic0 -- cpu0: pcie 3 x4]
"""
    assert nccl_matrix(loads(text))["gpu0"]["nic0"].bandwidth == 3


# --- three logs, retyped ------------------------------------------------------------------------


def graph(nodes, edges):
    made = Graph()
    for name in nodes.split():
        made.add_node(name, name.rstrip("0123456789abcdef").upper() or name)
    for one, other, kind, bandwidth in edges:
        made.join(one, other, kind, bandwidth)
    return made


def test_log_a_amd_old_release():
    made = graph(
        "cpu0 cpu1 gpu0 nic0 nic1 net0 net1",
        [
            ("cpu0", "cpu1", "SYS", 5000),
            ("gpu0", "cpu1", "PCI", 24),
            ("nic1", "cpu1", "PCI", 24),
            ("nic1", "net1", "NET", 25),
            ("nic0", "cpu0", "PCI", 6),
            ("nic0", "net0", "NET", 3.125),
        ],
    )
    paths = paths_from(made, "gpu0")
    assert paths["cpu1"] == Path("PHB", 24, 1)
    assert paths["cpu0"] == Path("SYS", 24, 2)
    assert paths["net1"] == Path("PHB", 24, 3)
    assert paths["net0"] == Path("SYS", 3.125, 4)
    assert paths_from(made, "net1")["net0"] == Path("SYS", 3.125, 5)


def test_log_b_rccl():
    made = graph(
        "cpu0 gpu3 gpud pci1 pci2 pci3 pci4",
        [
            ("gpu3", "pci1", "PCI", 24),
            ("pci1", "cpu0", "PCI", 24),
            ("gpud", "pci2", "PCI", 24),
            ("pci2", "pci3", "PCI", 6),
            ("pci3", "pci4", "PCI", 6),
            ("pci4", "cpu0", "PCI", 6),
        ],
    )
    assert paths_from(made, "gpu3")["gpud"] == Path("PHB", 6, 6)
    assert paths_from(made, "gpud")["cpu0"] == Path("PHB", 6, 4)


def test_log_c_two_a100():
    made = graph(
        "cpu0 cpu1 gpu0 gpu1 pci0 pci1",
        [
            ("gpu0", "gpu1", "NVL", 240),
            ("gpu0", "pci0", "PCI", 24),
            ("pci0", "cpu0", "PCI", 24),
            ("gpu1", "pci1", "PCI", 24),
            ("pci1", "cpu1", "PCI", 24),
            ("cpu0", "cpu1", "SYS", 10),
        ],
    )
    paths = paths_from(made, "gpu0")
    assert paths["gpu1"] == Path("NVL", 240, 1)
    assert paths["cpu0"] == Path("PHB", 24, 2)
    assert paths["cpu1"] == Path("SYS", 10, 3)


def test_through_a_gpu_only_by_nvlink_and_once():
    made = graph(
        "gpu0 gpu1 gpu2 gpu3 pci0",
        [
            ("gpu0", "gpu1", "NVL", 20),
            ("gpu1", "gpu2", "NVL", 20),
            ("gpu2", "gpu3", "NVL", 20),
            ("gpu1", "pci0", "PCI", 24),
        ],
    )
    paths = paths_from(made, "gpu0")
    assert paths["gpu2"] == Path("NVB", 20, 2)
    assert set(paths) == {"gpu0", "gpu1", "gpu2"}


def test_equal_links_add_up():
    made = graph("gpu0 gpu1", [("gpu0", "gpu1", "NVL", 20), ("gpu0", "gpu1", "NVL", 20)])
    assert paths_from(made, "gpu0")["gpu1"].bandwidth == 40


# --- the GDS driver -----------------------------------------------------------------------------


def ranks(topology, gpu="gpu0"):
    return {peer.name: peer.distance for peer in gds_ranking(topology)[gpu]}


def test_distances():
    found = ranks(machine(two_switches_a_node()))
    # One switch: 3. Another switch of the node: 127 + 3 + 3 + 1. Of the other node: 254 + 7.
    assert found == {"nic0": 3, "nic1": 134, "nic2": 261, "nic3": 261}


def test_without_switches():
    topology = machine(no_switch())
    assert ranks(topology) == {"nic0": 127 + 1 + 1 + 1}
    assert ranks(topology, "gpu4") == {"nic0": 254 + 1 + 1 + 1}


def test_access_control_sends_traffic_over_the_root_port():
    text = import_text("nccl", two_switches_a_node(), "x").yaml
    assert ranks(loads(text, overrides={"sw0.acs": "on"}))["nic0"] == 4
    assert ranks(loads(text, overrides={"sw0.acs": "off"}))["nic0"] == 3


def test_bandwidth_breaks_ties():
    inside = [card("0000:02:00.0", width=8), card("0000:03:00.0"), bare_gpu("0000:04:00.0")]
    topology = machine(system(cpu(0, switch("0000:01:00.0", *inside))))
    peers = gds_ranking(topology)["gpu0"]
    assert [(peer.name, peer.bandwidth) for peer in peers] == [("nic1", 80), ("nic0", 40)]
    assert peers[0].rank == 3 << 16 | (160 - 80)
    assert not peers[0].crosses
