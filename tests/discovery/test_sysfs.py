"""Linux's /sys: archives, folders, this machine, and that nothing is read from outside."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.discovery.trees import Sysfs, sysfs_box, with_target
from topo.discovery.importing import (
    discover,
    discover_folder,
    import_machine,
    import_text,
    import_together,
)
from topo.discovery.sources.config_space import config_links
from topo.discovery.sources.file_tree import Archive, Folder
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality


def read(tree):
    return import_text(None, tree.tar(), "box.tar.gz")


def codes(found):
    return [one.code for one in found.findings]


# --- what is read -------------------------------------------------------------------------------


def test_a_machine():
    found = read(sysfs_box())
    topology = build_topology(found.description)
    assert topology["gpu0"].part.name == "a100-sxm-80gb"
    assert topology["nic0"].rdma == ("mlx5_0",)
    assert topology["nvme0"].slot_name == "12"
    assert topology["cpu0"].part.name == "epyc-7763"
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu0", "nvme0") == "SYS"
    assert found.machine.of_kind("nic")[0].ports == (200e9,)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("top", ["", "box/", "./"])
def test_every_archive_is_one_machine(mode, top):
    found = import_text(None, sysfs_box().tar(mode, top), "box.tar")
    assert found.document == {**read(sysfs_box()).document}


def test_a_folder_is_the_same_machine(tmp_path):
    folder = sysfs_box().write(tmp_path / "box")
    found = import_machine(discover_folder("sysfs", folder, "box"))
    assert found.document == {**read(sysfs_box()).document}
    assert import_machine(discover_folder(None, folder / "sys", "box")).document == found.document
    assert import_machine(discover_folder(None, tmp_path, "box")).document == found.document


# A container can hide both, and then there is nothing to import.
SHOWN = any(Path("/sys", inner).exists() for inner in ("bus/pci/devices", "devices/system/node"))


@pytest.mark.skipif(not SHOWN, reason="this machine shows neither PCI devices nor NUMA nodes")
def test_this_machine():
    found = import_machine(discover_folder("sysfs", Path("/"), "/"))
    assert build_topology(found.description).of_kind("cpu")
    assert found.description.name == "this-machine"


def test_a_link_at_rest_takes_its_best():
    found = read(sysfs_box())
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie 4 x16"
    assert "link-at-rest" in codes(found)


@pytest.mark.parametrize("speed", ["Unknown", "Unknown speed", ""])
def test_speeds_that_are_not_told(speed):
    tree = Sysfs()
    tree.node(0, "0-3")
    tree.pci("pci0000:00/0000:00:05.0", "030200", "10de", "2330", link=(speed, 255))
    assert read(tree).machine.of_kind("gpu")[0].link.cable == "pcie unknown"


def test_links_from_the_config_space():
    config = bytearray(256)
    config[0x06], config[0x34] = 0x10, 0x40
    config[0x40:0x42] = b"\x01\x60"  # power management, then
    config[0x60:0x62] = b"\x10\x00"  # PCI Express
    config[0x6C:0x70] = (4 | 16 << 4).to_bytes(4, "little")
    config[0x72:0x74] = (1 | 8 << 4).to_bytes(2, "little")
    now, most = config_links(bytes(config))
    assert (most.generation, most.lanes) == (4, 16)
    assert (now.generation, now.lanes) == (1, 8)
    assert config_links(bytes(config[:64])) == config_links(b"")
    looped = bytearray(config)
    looped[0x41] = 0x40
    looped[0x40] = 0x01
    assert not config_links(bytes(looped))[1]


def test_virtual_functions_are_the_cards():
    tree = sysfs_box()
    chain = "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:04.0/0000:44:00.1"
    here = tree.pci(chain, "020700", "15b3", "101c", numa=1)
    tree.link(f"{here}/physfn", "../0000:44:00.0")
    found = read(tree)
    assert len(found.machine.of_kind("nic")) == 1
    assert "virtual-functions" in codes(found)


def test_the_node_by_its_cpus_where_numa_node_is_missing():
    tree = Sysfs()
    tree.node(0, "0-3")
    tree.node(8, "4-7")
    here = tree.pci("pci0001:00/0001:00:00.0", "030200", "10de", "2330")
    del tree.files[f"{here}/numa_node"]
    tree.put(f"{here}/local_cpus", "000000f0")
    found = read(tree)
    assert "gpu0 -- cpu1: pcie" in found.yaml
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,), (8,)]


def test_a_name_without_a_number_gets_the_generation():
    tree = sysfs_box()
    names = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC"
    tree.put("proc/cpuinfo", f"processor\t: 0\n{names}\nflags\t: fpu")
    found = read(tree)
    assert 'title: "AMD EPYC (Zen 3, Zen 4)"' in found.yaml
    assert "cpu0 -- cpu1: xgmi unknown" in found.yaml


def test_memory_of_gpus_is_none_of_the_host():
    tree = sysfs_box()
    tree.node(255, "")
    tree.node(3, "")
    tree.put("proc/driver/nvidia/gpus/0000:43:00.0/numa_status", "Node:      255\nStatus: online")
    found = read(tree)
    assert len(build_topology(found.description).of_kind("memory")) == 2
    assert {"gpu-memory-nodes", "memory-only-nodes"} <= set(codes(found))


# --- storage over a network ---------------------------------------------------------------------


def test_a_node_that_tells_less_than_the_host_is_not_believed():
    # a virtual machine whose memory is set up as it is used: its node knows of the first part
    tree = Sysfs()
    tree.node(0, "0-3", 4_549_632)
    tree.put("proc/meminfo", "MemTotal:       131981020 kB\nMemFree: 1 kB")
    machine = discover("sysfs", tree.tar(), "x.tar.gz")
    (memory,) = machine.of_kind("memory")
    assert dict(memory.facts)["size"] == "135.1 GB"
    assert memory.evidence == "the host tells its size, and its NUMA nodes 4.659 GB"
    numactl = b"available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 4571 MB\n"
    both = import_together([machine, discover(None, numactl, "numactl -H")])
    assert [found.code for found in both.findings if found.code == "sources-disagree"] == []
    tree.node(1, "4-7", 4_549_632)  # which of two has how much is not told
    machine = discover("sysfs", tree.tar(), "x.tar.gz")
    assert [memory.facts for memory in machine.of_kind("memory")] == [(), ()]


def test_memory_of_others_in_the_hosts_is_no_doubt():
    # Grace: what the host has in all is with its GPUs' memory
    tree = Sysfs()
    tree.node(0, "0-3", 500_000_000)
    tree.put("sys/devices/system/node/node1/cpulist", "")
    tree.put("proc/meminfo", "MemTotal:       600000000 kB")
    (memory,) = discover("sysfs", tree.tar(), "x.tar.gz").of_kind("memory")
    assert (dict(memory.facts)["size"], memory.evidence) == ("512 GB", "")


@pytest.mark.parametrize(
    "address",
    [
        "traddr=10.0.0.9,trsvcid=4420,src_addr=10.0.0.1",
        "traddr=10.0.0.9,trsvcid=4420,host_traddr=10.0.0.1",
        "traddr=10.0.0.9,trsvcid=4420,host_iface=ib0",
    ],
)
def test_a_target_hangs_on_the_card_that_leads_to_it(address):
    found = read(with_target(sysfs_box(), address))
    assert "storage0 -- nic0: infiniband hdr" in found.yaml
    assert "guessed-storage" not in codes(found)


def test_a_target_by_the_route():
    tree = with_target(sysfs_box(), "traddr=10.0.0.9,trsvcid=4420")
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT"
    route = "ib0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"
    tree.put("proc/net/route", f"{head}\n{route}")
    assert "guessed-storage" not in codes(read(tree))


def test_a_target_by_a_guess():
    found = read(with_target(sysfs_box(), "traddr=192.168.7.7,trsvcid=4420"))
    assert "storage0 -- nic0" in found.yaml
    assert "guessed-storage" in codes(found)


def test_a_target_without_any_card():
    tree = with_target(Sysfs())
    tree.node(0, "0-3")
    tree.pci("pci0000:00/0000:00:05.0", "030200", "10de", "2330")
    found = read(tree)
    assert not found.machine.of_kind("storage")
    assert "target-without-card" in codes(found)


# --- NVSwitches ---------------------------------------------------------------------------------


def test_switches_of_the_fabric_are_joined_and_it_is_said():
    tree = Sysfs()
    tree.node(0, "0-3")
    for at in range(2):
        tree.pci(f"pci0000:0{at}/0000:0{at}:05.0", "030200", "10de", "2330")
        tree.pci(f"pci0000:8{at}/0000:8{at}:00.0", "068000", "10de", "22a3")
    found = read(tree)
    assert {one.cable for one in found.machine.cables} == {"18x nvlink 4"}
    assert "guessed-nvlinks" in codes(found)


# --- nothing from outside -----------------------------------------------------------------------


def test_links_of_a_copy_stay_inside(tmp_path):
    (tmp_path / "secret").write_text("0x030200\n", encoding="ascii")
    folder = tmp_path / "box"
    (folder / "sys").mkdir(parents=True)
    for name, target in (
        ("up", "../../secret"),
        ("absolute", str(tmp_path / "secret")),
        ("loop", "loop"),
    ):
        (folder / "sys" / name).symlink_to(target)
    tree = Folder(folder)
    assert tree.text("/sys/up") == tree.text("/sys/absolute") == tree.text("/sys/loop") == ""
    assert tree.text("/sys/../../secret") == ""
    (folder / "secret").write_text("inside\n", encoding="ascii")
    assert Folder(folder).text("/sys/up") == "inside"


def test_members_that_climb_out_are_not_there():
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in ("../evil", "sys/../../evil", "/sys/fine", "sys/device"):
            info = tarfile.TarInfo(name)
            info.size = 4
            if name == "sys/device":
                info.type, info.size = tarfile.CHRTYPE, 0
            archive.addfile(info, io.BytesIO(b"data"))
    tree = Archive(raw.getvalue(), "x")
    assert tree.names("/") == ["sys"]
    assert tree.names("/sys") == ["fine"]


def test_a_bomb_is_refused():
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=1) as archive:
        info = tarfile.TarInfo("sys/zeros")
        info.size = 300 * 2**20
        archive.addfile(info, _Zeros())
    with pytest.raises(ExchangeError) as caught:
        discover("sysfs", raw.getvalue(), "bomb.tar.gz")
    assert [one.code for one in caught.value.findings] == ["import-too-big"]


class _Zeros(io.RawIOBase):
    def read(self, size=-1):
        return bytes(max(size, 0))


def test_an_archive_that_breaks_off_gives_what_came_before():
    whole = sysfs_box().tar("w")
    found = import_text("sysfs", whole[: len(whole) * 9 // 10], "box.tar")
    assert "broken-archive" in codes(found) or found.machine.devices


def another():
    tree = Sysfs()
    tree.put("README", "of something else")
    return tree.tar()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x1f\x8b\x08\x00broken", "broken-archive"),
        (b"BZh91AY&SY", "broken-archive"),
        (b"no archive at all, but long enough" * 40, "broken-archive"),
        (another(), "nothing-there"),
    ],
)
def test_archives_that_are_none(data, code):
    with pytest.raises(ExchangeError) as caught:
        discover("sysfs", data, "x.tar")
    assert [one.code for one in caught.value.findings] == [code]


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ExchangeError, match="no sys/bus/pci"):
        import_machine(discover_folder("sysfs", tmp_path, "empty"))
    with pytest.raises(ExchangeError, match="is a folder"):
        import_machine(discover_folder("nccl", tmp_path, "empty"))


def test_a_machine_without_any_speed_gets_one_guess():
    tree = Sysfs()
    tree.node(0, "0-3")
    unknown = ("Unknown", 255)
    tree.pci("pci0000:00/0000:00:05.0", "030200", "10de", "ffff", link=unknown)
    tree.pci("pci0000:00/0000:00:06.0", "010802", "144d", "ffff", link=unknown)
    found = read(tree)
    assert "nvme0 -- rc0: pcie 3 x4" in found.yaml
    assert "guessed-speed" in codes(found)


def flat(count):
    tree = Sysfs()
    tree.node(0, "0-3")
    for at in range(count):
        tree.pci(f"pci0000:00/0000:00:{at + 2:02x}.0", "030200", "10de", "20b2")
    return tree


def test_devices_without_ports_are_a_virtual_machines():
    assert "hidden-switches" in codes(read(flat(4)))
    assert "hidden-switches" not in codes(read(flat(3)))


def test_functions_that_lost_their_place():
    tree = flat(4)
    for path, data in list(tree.files.items()):
        if path.startswith("sys/devices/pci"):
            name = path.split("/")[-2]
            tree.files[f"sys/bus/pci/devices/{name}/{path.rpartition('/')[2]}"] = data
            del tree.files[path]
    tree.links.clear()
    found = read(tree)
    assert len(found.machine.of_kind("gpu")) == 4
    assert "no-tree" in codes(found)
    assert "hidden-switches" not in codes(found)
