"""Text of lstopo: plain, with -v, of old releases."""

from __future__ import annotations

import random

import pytest

from tests.discovery.pasted import mutated, ragged, shape, survives_import
from tests.discovery.test_corpus import CORPUS
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality, numa_nodes

PLAIN = """\
Machine (504GB total)
  Package L#0
    NUMANode L#0 (P#0 252GB)
    L3 L#0 (40MB)
      L2 L#0 (1024KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0 + PU L#0 (P#0)
    HostBridge
      PCI 00:17.0 (SATA)
        Block(Disk) "sda"
    HostBridge
      PCIBridge
        PCIBridge
          PCIBridge
            PCI 19:00.0 (3D)
              CoProc(CUDA) "cuda0"
              GPU "nvml0"
          PCIBridge
            PCI 1a:00.0 (InfiniBand)
              Net "ib0"
              OpenFabrics "mlx5_0"
  Package L#1
    NUMANode L#1 (P#1 252GB)
    L3 L#1 (40MB)
      L2 L#1 (1024KB) + L1d L#1 (32KB) + L1i L#1 (32KB) + Core L#1 + PU L#1 (P#1)
    HostBridge
      PCIBridge
        PCI 99:00.0 (NVMExp)
          Block(Disk) "nvme0n1"
      PCIBridge
        PCI 9a:00.0 (Display)
          GPU "rsmi0"
"""
VERBOSE = """\
Machine (P#0 total=528482304KB DMIProductName="A Server" OSName=Linux)
  Package L#0 (P#0 total=264241152KB @CPU)
    NUMANode L#0 (P#0 local=264241152KB total=264241152KB)
    Core L#0 (P#0)
      PU L#0 (P#0)
    HostBridge L#0 (buses=0000:[17-1c])
      PCIBridge L#1 (busid=0000:17:01.0 @PORT @LINK buses=0000:[18-1c] PCISlot=3)
        PCIBridge L#2 (busid=0000:18:00.0 @SWITCH buses=0000:[19-1c])
          PCIBridge L#3 (busid=0000:19:00.0 @SWITCH buses=0000:[1a-1a])
            PCI L#0 (busid=0000:1a:00.0 id=10de:2330 class=0302(3D) link=63.02GB/s)
              Co-Processor(CUDA) L#0 (@H100) "cuda0"
          PCIBridge L#4 (busid=0000:19:01.0 @SWITCH buses=0000:[1b-1b])
            PCI L#1 (busid=0000:1b:00.0 id=15b3:1021 @IB PCISlot=7)
              Network L#1 (Address=00:00 Port=1) "ib0"
              OSDev[OpenFabrics,Network] L#2 (NodeGUID=0011:2233 Port1State=4) "mlx5_0"
            7 x { PCI L#2-8 (busid=1b:00.1-7 id=15b3:101e @IB) }
  Package L#1 (P#1 total=264241152KB @CPU)
    NUMANode L#1 (P#1 local=264241152KB total=264241152KB)
    HostBridge L#5 (buses=0000:[99-9a])
      PCIBridge L#6 (busid=0000:99:01.0 @PORT link=15.75GB/s buses=0000:[9a-9a])
        PCI L#9 (busid=0000:9a:00.0 id=144d:a80a class=0108(NVMExp) link=7.88GB/s)
          Block(Disk) L#3 (Size=1875374424 Model="A DRIVE") "nvme0n1"
depth 0:           1 Machine (type #0)
 depth 1:          2 Package (type #1)
Special depth -4:  7 Bridge (type #16)
"""
for _short, _long in {
    "@SWITCH": "id=1000:c030 class=0604(PCIBridge) @LINK",
    "@PORT": "id=8086:352a class=0604(PCIBridge)",
    "@CPU": 'CPUModel="Intel(R) Xeon(R) Platinum 8480C" CPUVendor=GenuineIntel',
    "@H100": 'Backend=CUDA GPUVendor="NVIDIA Corporation" GPUModel="NVIDIA H100 80GB HBM3"',
    "@IB": "class=0207(InfiniBand) @LINK",
    "@LINK": "link=63.02GB/s",
}.items():
    VERBOSE = VERBOSE.replace(_short, _long)
OLD = """\
Machine (64GB)
  NUMANode L#0 (P#0 32GB) + Socket L#0 + L3 L#0 (20MB)
    L2 L#0 (256KB) + L1 L#0 (32KB) + Core L#0 + PU L#0 (P#0)
    HostBridge L#0
      PCIBridge
        PCI 10de:1db1
          GPU L#0 "card0"
  NUMANode L#1 (P#1 32GB) + Socket L#1 + L3 L#1 (20MB)
    L2 L#1 (256KB) + L1 L#1 (32KB) + Core L#1 + PU L#1 (P#1)
    HostBridge L#2
      PCIBridge
        PCI 15b3:1017
          Net L#2 "hsi0"
          OpenFabrics L#3 "mlx5_0"
"""


def read(text):
    return import_text(None, text if isinstance(text, bytes) else text.encode(), "box.txt")


def codes(imported):
    return [finding.code for finding in imported.findings]


def test_the_plain_text_tells_the_tree_and_the_names():
    imported = read(PLAIN)
    topology = build_topology(imported.description)
    assert imported.kind == "lstopo"
    assert [gpu.pci for gpu in topology.of_kind("gpu")] == [("19:00.0",), ("9a:00.0",)]
    assert [gpu.part for gpu in imported.machine.of_kind("gpu")] == ["gpu-unknown", "amd-instinct"]
    assert topology["nic0"].rdma == ("mlx5_0",)
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu0", "nvme0") == "SYS"
    assert locality(topology, "gpu1", "nvme0") == "PHB"
    assert [numa_nodes(topology, name) for name in ("gpu0", "nvme0")] == [(0,), (1,)]
    sizes = [dict(memory.facts)["size"] for memory in imported.machine.of_kind("memory")]
    assert sizes == ["270.6 GB"] * 2
    assert imported.machine.of_kind("gpu")[0].link.cable == "pcie unknown"


def test_the_long_text_tells_parts_and_rates():
    imported = read(VERBOSE)
    topology = build_topology(imported.description)
    assert topology["gpu0"].part.name == "h100-sxm-80gb"
    assert topology["gpu0"].pci == ("1a:00.0",)
    assert topology["nic0"].part.name == "connectx-7"
    assert topology["nic0"].slot_name == "7"
    assert topology["sw0"].pci == ("18:00.0",)
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert imported.machine.of_kind("gpu")[0].link.cable == "pcie 5 x16"
    assert imported.machine.of_kind("nvme")[0].link.cable == "pcie 4 x4"
    assert dict(imported.machine.of_kind("nvme")[0].facts)["size"] == "1.92 TB"
    assert [part.title for part in imported.machine.parts] == ["Intel Xeon Platinum 8480C"] or (
        imported.machine.of_kind("cpu")[0].part == "xeon-8480c"
    )
    assert imported.machine.of_kind("cpu")[1].numa == (1,)


def test_releases_1_have_numbers_and_no_addresses():
    imported = read(OLD)
    topology = build_topology(imported.description)
    assert [numa_nodes(topology, name) for name in ("gpu0", "nic0")] == [(0,), (1,)]
    assert topology["nic0"].part.name == "connectx-5"
    assert topology["gpu0"].pci == ()


def test_nodes_of_one_package_are_one_cpu():
    text = """\
Machine (P#0 total=64GiB)
  Package L#0 (P#0)
    Group0 L#0
      NUMANode L#0 (P#0 local=32GiB total=32GiB)
      HostBridge L#0 (buses=0000:[00-01])
        PCI L#0 (busid=0000:01:00.0 id=10de:2330 class=0302(3D))
    Group0 L#1
      NUMANode L#1 (P#1 local=32GiB total=32GiB)
"""
    (cpu,) = read(text).machine.of_kind("cpu")
    assert cpu.numa == (0, 1)
    assert read(text).machine.of_kind("gpu")[0].node == 0


def test_physical_numbers_are_read_too():
    text = PLAIN.replace("NUMANode L#0 (P#0 252GB)", "NUMANode P#4 (252GB)")
    assert [cpu.numa for cpu in read(text).machine.of_kind("cpu")] == [(1,), (4,)]


def test_another_source_gives_what_it_lacks():
    lspci = "0000:19:00.0 3D controller: NVIDIA Corporation GA102GL [A10] (rev a1)\n"
    sources = [discover(None, text.encode(), "x") for text in (PLAIN, lspci)]
    assert import_together(sources).machine.of_kind("gpu")[0].part == "a10"


def test_a_text_without_a_machine_is_refused():
    with pytest.raises(ExchangeError, match="no machine of lstopo"):
        import_text("lstopo", b"Misc(MemoryModule)\n  PU L#0 (P#0)\n", "x")


# --- the same machine by its XML ----------------------------------------------------------------


def test_the_text_of_a_real_machine_says_what_its_xml_says():
    if not CORPUS.exists():
        pytest.skip(f"NO CORPUS at {CORPUS}")
    files = [
        CORPUS / "hwloc-xml" / name for name in ("manyVFs-lstopo.txt", "16intel64-manyVFs.xml")
    ]
    texts, xml = (import_text(None, file.read_bytes(), "same.x") for file in files)
    told = [
        [(device.kind, device.part, device.pci, device.label, device.rdma) for device in devices]
        for devices in (texts.machine.devices, xml.machine.devices)
    ]
    assert told[0] == told[1]
    assert texts.document["links"] == xml.document["links"]


# --- ragged and hostile -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ragged(PLAIN))
@pytest.mark.parametrize("text", [PLAIN, VERBOSE, OLD], ids=["plain", "long", "old"])
def test_however_it_was_pasted(text, how):
    assert shape(read(ragged(text)[how])) == shape(read(text))


def test_tabs_instead_of_spaces():
    assert shape(read(PLAIN.replace("  ", "\t"))) == shape(read(PLAIN))


def test_lost_indentation_is_said():
    imported = read("".join(f"{line.strip()}\n" for line in PLAIN.splitlines()))
    assert "no-tree" in codes(imported)
    topology = build_topology(imported.description)
    assert [numa_nodes(topology, name) for name in ("gpu0", "nvme0")] == [(0,), (1,)]
    assert topology["nic0"].rdma == ("mlx5_0",)


HOSTILE = {
    "deep": "".join(f"{' ' * at}Group L#{at}\n" for at in range(3000)),
    "merged": "Machine (1GB)\n" + " + ".join(["Group L#0"] * 9000),
    "many": "Machine (1GB)\n" + " PU L#1 (P#1)\n" * 250_000,
    "huge numbers": PLAIN.replace("P#0", "P#" + "9" * 400).replace("252GB", "9" * 400 + "GB"),
    "nodes": "Machine (1GB)\n" + "".join(f"  NUMANode L#1 (P#{at} 1GB)\n" for at in range(5000)),
    "columns": "Machine (1GB)\n" + " " * 90_000 + "HostBridge\n",
    "control characters": PLAIN.replace("mlx5_0", "m\x07\x1blx"),
    "facts": "Machine (" + "a=" * 40_000 + ")\n  Package L#0\n",
    "brackets": "Machine (1GB)\n  PCI L#0 (" + "(" * 50_000 + "\n",
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_texts(how):
    survives_import(HOSTILE[how].encode())


@pytest.mark.parametrize("seed", range(60))
def test_damaged_texts(seed):
    chance = random.Random(seed)
    survives_import(mutated(chance.choice([PLAIN, VERBOSE, OLD]).encode(), chance))
