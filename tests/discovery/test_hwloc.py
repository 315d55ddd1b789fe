"""hwloc's XML: versions, switches, links between GPUs, what a filter leaves out."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.discovery.trees import Hwloc, cxl, matrix, two_level
from topo.discovery.importing import discover, import_text
from topo.discovery.pci import split_rate
from topo.discovery.sources.hwloc import read_file
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality, numa_nodes


def read(data):
    return import_text("hwloc", data, "box.xml")


def codes(found):
    return [one.code for one in found.findings]


def small(*inside, version="3.0", tail=""):
    file = Hwloc(version)
    return file.file(file.package(0, file.host(*inside)), tail=tail)


def a_gpu(file=None, address="0000:01:00.0", ids="10de:20b2", **more):
    return (file or Hwloc()).device(address, "0302", ids, **more)


# --- the tree -----------------------------------------------------------------------------------


def test_two_levels_of_switches_and_links_between_all():
    topology = build_topology(read(two_level()).description)
    assert len(topology.of_kind("gpu")) == 8
    assert len(topology.of_kind("pcie-switch")) == 6
    assert locality(topology, "gpu0", "gpu1") == "NV1"
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu0", "nic1") == "PXB"
    assert locality(topology, "gpu0", "nic2") == "SYS"


def test_a_second_and_a_third_version_are_one_topology():
    second, third = read(cxl("2.0")), read(cxl("3.0"))
    assert second.document == third.document
    kinds = Counter(one.kind for one in second.machine.devices)
    assert (kinds["cxl-memory"], kinds["nvme"], kinds["nic"]) == (1, 1, 1)


def test_number_4_is_dma_in_one_version_and_a_gpu_in_the_other():
    sorts = {}
    for version in ("2.0", "3.0"):
        inner = '<object type="OSDev" name="x" osdev_type="4"/>'
        body = f'<object type="Machine">{inner}</object>'
        file = read_file(f'<topology version="{version}">{body}</topology>'.encode(), "x")
        sorts[version] = file.sorts(file.objects("OSDev")[0])
    assert sorts == {"2.0": {"dma"}, "3.0": {"gpu"}}


def test_several_things_below_one_host_bridge_share_a_root():
    file = Hwloc()
    leaves = [
        file.bridge(f"0000:00:0{at}.0", a_gpu(file, f"0000:0{at}:00.0"), ids="8086:2030")
        for at in (1, 2)
    ]
    topology = build_topology(read(file.file(file.package(0, file.host(*leaves)))).description)
    assert len(topology.of_kind("root-complex")) == 1
    assert locality(topology, "gpu0", "gpu1") == "PHB"


@pytest.mark.parametrize(
    ("ids", "drives"),
    [
        (("1d0f:8061", "1d0f:cd01", "1d0f:cd01"), [1, 2]),
        (("1d0f:cd01", "1d0f:8061", "144d:a80a"), [0, 2]),
        (("1d0f:8061", "1d0f:cd01"), [1]),
        (("1d0f:cd01", "144d:a80a"), [0, 1]),
        (("1d0f:8061", "1d0f:8061"), [0, 1]),
        (("1d0f:8061",), [0]),
    ],
    ids=["root-volume", "between", "one-drive", "no-volume", "volumes-alone", "one-volume"],
)
def test_a_volume_of_the_cloud_is_read_only_where_there_is_no_drive(ids, drives):
    file = Hwloc()
    leaves = [file.device(f"0000:0{at}:00.0", "0108", one) for at, one in enumerate(ids, start=1)]
    found = read(file.file(file.package(0, file.host(a_gpu(file, "0000:09:00.0"), *leaves))))
    assert found.document["workloads"]["load"]["from"] == [f"nvme{number}" for number in drives]


def test_one_package_with_several_nodes_is_one_cpu():
    file = Hwloc()
    host = file.host(a_gpu(file))
    group = file.thing("Group", host, nodeset="0x00000002")
    found = read(file.file(file.package(0, group, nodes=[0, 1])))
    topology = build_topology(found.description)
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(0, 1)]
    assert "gpu0 -- cpu0/numa1: pcie" in found.yaml
    assert "ram -- cpu0/numa[0-1]: memory-bus" in found.yaml


def test_a_group_of_packages_is_near_all_of_them_and_in_none():
    file = Hwloc()
    groups = []
    for first in (0, 1):
        packages = [file.package(number, nodes=[number]) for number in (first, first + 2)]
        gpu = file.host(a_gpu(file, f"0000:{first}1:00.0"))
        mask = f"0x0000000{5 << first:x}"
        groups.append(file.thing("Group", *packages, gpu, nodeset=mask))
    found = read(file.file(*groups))
    topology = build_topology(found.description)
    assert [numa_nodes(topology, name) for name in ("gpu0", "gpu1")] == [(0, 2), (1, 3)]
    assert locality(topology, "gpu0", "gpu1") == "SYS"
    assert "numa-unknown" in codes(found)


def test_a_host_bridge_under_the_machine_is_in_no_numa_node_known():
    file = Hwloc()
    host = file.host(a_gpu(file), a_gpu(file, "0000:02:00.0"))
    found = read(file.file(file.package(0), file.package(1), host))
    topology = build_topology(found.description)
    assert numa_nodes(topology, "gpu0") == ()
    assert locality(topology, "gpu0", "gpu1") == "PHB"
    assert "numa-unknown" in codes(found)


def test_packages_that_share_a_node_are_one_cpu():
    file = Hwloc()
    sockets = [file.thing("Package", nodeset="0x00000001") for _ in range(3)]
    found = read(file.file(file.thing("NUMANode", os_index=0, nodeset="0x00000001"), *sockets))
    assert len(found.machine.of_kind("cpu")) == 1
    assert "3 packages share" in found.yaml


def test_memory_of_a_gpu_is_none_of_the_host():
    file = Hwloc()
    node = file.thing("NUMANode", os_index=255, nodeset="0x0", subtype="GPUMemory")
    found = read(file.file(file.package(0, file.host(a_gpu(file))), node))
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,)]


def test_memory_of_a_gpu_tells_where_the_gpu_is():
    file = Hwloc()
    infos = {"PCIBusID": "0009:01:00.0"}
    node = file.thing("NUMANode", os_index=254, nodeset="0x0", subtype="GPUMemory", infos=infos)
    unread = file.device("0009:01:00.0", "0300", "0000:0000", rate=0.0)
    found = read(file.file(file.package(0, file.host(unread)), node))
    (gpu,) = found.machine.of_kind("gpu")
    assert (gpu.part, gpu.pci) == ("gpu-unknown", ("0009:01:00.0",))
    assert found.machine.title() == "1 GPU, 1 NUMA node"


def test_numa_nodes_of_one_package_are_counted():
    file = Hwloc()
    nodes = [file.thing("NUMANode", os_index=at, nodeset=f"0x{1 << at:x}") for at in range(2)]
    package = file.thing("Package", *nodes, nodeset="0x3")
    assert read(file.file(package)).machine.title() == "2 NUMA nodes"


def test_two_functions_are_one_card_and_virtual_ones_none():
    file = Hwloc()
    functions = [
        file.device(f"0000:03:00.{at}", "0200", "15b3:101d", file.os(f"eth{at}", "network"))
        for at in range(2)
    ]
    virtual = [file.device(f"0000:03:00.{at}", "0200", "15b3:101e") for at in range(2, 6)]
    found = read(file.file(file.package(0, file.host(*functions, *virtual))))
    (card,) = found.machine.of_kind("nic")
    assert card.pci == ("0000:03:00.0", "0000:03:00.1")
    assert card.part == "connectx-6-dx-dual-port"
    assert len(found.machine.left_out) == 4
    assert "virtual-functions" in codes(found)


def test_an_address_that_stands_twice():
    file = Hwloc()
    inside = (a_gpu(file), file.device("0000:01:00.0", "0207", "15b3:1013"))
    found = read(file.file(file.package(0, file.host(*inside))))
    assert "address-again" in codes(found)
    assert [one.pci for one in found.machine.of_kind("nic")] == [()]


def test_consoles_and_disks_are_no_devices():
    file = Hwloc()
    things = (
        file.device("0000:01:00.0", "0300", "1a03:2000"),
        file.device("0000:01:01.0", "0300", "1002:515e"),
        file.device("0000:00:1f.2", "0106", "8086:2922"),
        a_gpu(file, "0000:02:00.0"),
    )
    found = read(file.file(file.package(0, file.host(*things))))
    assert [one.kind for one in found.machine.devices if one.pci] == ["gpu"]


# --- speeds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "usual", "expected"),
    [
        (15.753846, 16, (3, 16)),
        (31.507692, 16, (4, 16)),
        (63.015385, 16, (5, 16)),
        (7.876923, 4, (4, 4)),
        (31.507692, 4, (5, 8)),
        (4.0, 16, (1, 16)),
        (0.25, 16, (1, 1)),
        (121.0, 16, (6, 16)),
        (0.2, 16, None),
    ],
)
def test_a_rate_is_a_generation_and_a_width(rate, usual, expected):
    assert split_rate(rate, usual) == expected


def test_the_slower_end_is_the_link_and_it_is_said():
    file = Hwloc()
    leaf = file.bridge("0000:00:01.0", a_gpu(file, rate=31.507692), rate=15.753846)
    found = read(file.file(file.package(0, file.host(leaf))))
    (gpu,) = found.machine.of_kind("gpu")
    assert gpu.link.cable == "pcie 3 x16"
    assert "a guess" in gpu.link.evidence
    assert "port-below-device" in codes(found)


def test_zero_is_unknown():
    found = read(small(a_gpu(rate=0.0)))
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie unknown"
    assert "empty-link" in codes(found)


def test_a_rate_that_no_link_has_stays_unknown():
    found = read(small(a_gpu(rate=0.2)))
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie unknown"
    assert "odd-link-speed" in codes(found)


def test_a_link_at_rest():
    found = read(small(a_gpu(rate=4.0)))
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie 4 x16"
    assert "link-at-rest" in codes(found)


@pytest.mark.parametrize(
    ("ids", "switch", "cable"),
    [
        ("10de:20b5", "1000:c010", "pcie 4 x16"),
        ("10de:20b5", "10b5:9797", "pcie 3 x16"),
        ("10de:ffff", "10b5:9797", "pcie 3 x16"),
    ],
)
def test_a_link_at_rest_is_what_its_parts_can(ids, switch, cable):
    file = Hwloc()
    gpu = a_gpu(file, "0000:03:00.0", ids, rate=4.0)
    port = file.bridge("0000:02:00.0", gpu, rate=4.0, ids=switch)
    found = read(file.file(file.package(0, file.host(port))))
    assert found.machine.of_kind("gpu")[0].link.cable == cable
    assert "link-at-rest" in codes(found)


def test_a_link_at_rest_of_unknown_parts_warns():
    file = Hwloc()
    gpu = a_gpu(file, "0000:03:00.0", "10de:ffff", rate=4.0)
    port = file.bridge("0000:02:00.0", gpu, rate=4.0, ids="8086:2030")
    found = read(file.file(file.package(0, file.host(port))))
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie unknown x16"
    assert "idle-link" in codes(found)


# --- links between GPUs -------------------------------------------------------------------------


def joined(name, value, *, ids="10de:20b2", back=None):
    file = Hwloc()
    gpus = [a_gpu(file, f"0000:0{at}:00.0", ids, gp=100 + at) for at in (1, 2)]
    rows = [[0, value], [value if back is None else back, 0]]
    tail = matrix(name, ["PCIDev:101", "PCIDev:102"], rows)
    return read(file.file(file.package(0, file.host(*gpus)), tail=tail))


def test_links_are_counted_by_the_parts_own_rate():
    assert [one.cable for one in joined("NVLinkBandwidth", 300_000).machine.cables] == [
        "12x nvlink 3"
    ]


def test_older_releases_count_both_ways_of_a_link():
    (cable,) = joined("NVLinkBandwidth", 600_000).machine.cables
    assert (cable.cable, cable.evidence) == ("12x nvlink 3", "300 GB/s each way")


def test_links_of_an_unknown_part_are_a_split_rate():
    (cable,) = joined("NVLinkBandwidth", 40_000, ids="10de:ffff").machine.cables
    assert cable.cable == "2x nvlink 1"
    assert "a guess" in cable.evidence


def test_xgmi():
    found = joined("XGMIBandwidth", 100_000, ids="1002:74a1")
    assert [one.cable for one in found.machine.cables] == ["xgmi 100 GB/s"]


def test_ends_that_disagree():
    found = joined("NVLinkBandwidth", 50_000, back=25_000)
    assert [one.cable for one in found.machine.cables] == ["2x nvlink 3"]
    assert "asymmetric-links" in codes(found)


def test_a_link_to_nothing():
    tail = matrix("NVLinkBandwidth", ["PCIDev:7777", "PCIDev:7778"], [[0, 25000], [25000, 0]])
    found = read(small(a_gpu(), tail=tail))
    assert not found.machine.cables
    assert "gpu-missing" in codes(found)


@pytest.mark.parametrize("subtype", ["NVSwitch", ""])
def test_switches_without_a_matrix(subtype):
    file = Hwloc()
    gpus = [a_gpu(file, f"0000:0{at}:00.0") for at in (1, 2)]
    more = {"subtype": subtype} if subtype else {}
    chips = [file.device(f"0000:0{at}:00.0", "0680", "10de:1af1", **more) for at in (5, 6)]
    found = read(file.file(file.package(0, file.host(*gpus, *chips))))
    assert {one.cable for one in found.machine.cables} == {"12x nvlink 3"}
    assert "guessed-nvlinks" in codes(found)
    assert "chips: 2" in found.yaml


def test_switches_and_unknown_gpus():
    file = Hwloc()
    things = (a_gpu(file, ids="10de:ffff"), file.device("0000:05:00.0", "0680", "10de:1af1"))
    found = read(file.file(file.package(0, file.host(*things))))
    assert not found.machine.of_kind("nvswitch")
    assert "nvlinks-not-told" in codes(found)


# --- files --------------------------------------------------------------------------------------


def test_the_first_version_is_read_and_warned_of():
    file = Hwloc("1")
    gpu = file.device("0000:01:00.0", "0302", "10de:20b2")
    found = read(file.file(file.package(0, file.host(gpu))))
    assert len(found.machine.of_kind("gpu")) == 1
    assert found.findings[0].code == "hwloc-version"


def test_the_first_version_has_nodes_above_sockets():
    file = Hwloc("1")
    nodes = []
    for at in range(2):
        gpu = file.device(f"0000:{at}1:00.0", "0302", "10de:20b2")
        socket = file.thing("Socket", os_index=at, nodeset=f"0x{1 << at:08x}")
        mask = f"0x{1 << at:08x}"
        nodes.append(file.thing("NUMANode", socket, file.host(gpu), os_index=at, nodeset=mask))
    topology = build_topology(read(file.file(*nodes)).description)
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(0,), (1,)]
    assert locality(topology, "gpu0", "gpu1") == "SYS"


def test_without_devices():
    file = Hwloc()
    found = read(file.file(file.package(0), file.package(1)))
    assert len(found.machine.of_kind("cpu")) == 2
    assert codes(found) == ["no-io"]


def test_without_bridges():
    file = Hwloc()
    found = read(file.file(file.package(0, a_gpu(file), a_gpu(file, "0000:41:00.0"))))
    assert len(found.machine.of_kind("gpu")) == 2
    assert "no-bridges" in codes(found)


def test_devices_without_a_class():
    found = read(small(Hwloc().thing("PCIDev")))
    assert "unclassified-device" in codes(found)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"<topology version='3.0'/>", "nothing-there"),
        (b"<system version='1'/>", "wrong-kind"),
        (b"<topology version='3.0'><object", "broken-xml"),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><topology>&a;</topology>', "refused-xml"),
    ],
)
def test_files_that_are_none(data, code):
    with pytest.raises(ExchangeError) as caught:
        discover("hwloc", data, "x.xml")
    assert [one.code for one in caught.value.findings] == [code]


@pytest.mark.parametrize(
    ("model", "known"),
    [("AMD EPYC 7763 64-Core Processor", True), ("Somebody's CPU", None)],
)
def test_a_host_bridge_forwards_as_its_cpu_does(model, known):
    file = Hwloc()
    gpus = [a_gpu(file, f"0000:0{at}:00.0") for at in (1, 2)]
    found = read(file.file(file.package(0, file.host(*gpus), model=model)))
    (root,) = build_topology(found.description).of_kind("root-complex")
    assert root.part.flag("forwards-p2p") is known


def test_gpus_on_a_root_bus_are_a_virtual_machines():
    file = Hwloc()
    gpus = [a_gpu(file, f"0000:10:{at:02x}.0") for at in range(4)]
    found = read(file.file(file.package(0, file.host(*gpus, buses="0000:[10-10]"))))
    assert "hidden-switches" in codes(found)


def test_numbers_of_another_kind_are_no_part():
    found = read(small(a_gpu(ids="15b3:1021")))
    assert [one.part for one in found.machine.of_kind("gpu")] == ["gpu-unknown"]
