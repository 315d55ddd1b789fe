"""lspci: trees, blocks, plain lists."""

from __future__ import annotations

import random

import pytest

from tests.discovery.pasted import mutated, ragged, shape, survives_import
from tests.discovery.trees import GPU_HEAD, TREE, block, endpoint, port, verbose
from topo.discovery.importing import discover, import_text, import_together
from topo.discovery.sources.lspci import read_blocks, read_tree
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality, numa_nodes


def read(text):
    return import_text(None, text.encode(), "box.txt")


def codes(found):
    return [one.code for one in found.findings]


# --- -tv ----------------------------------------------------------------------------------------


def test_a_tree_has_its_switch_and_its_kinds():
    found = read(TREE)
    topology = build_topology(found.description)
    assert topology["gpu0"].part.name == "a100-sxm-80gb"
    assert topology["nic0"].part.name == "connectx-7-dual-port"
    assert topology["nic0"].pci == ("04:00.0", "04:00.1")
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert [one.pci for one in topology.of_kind("nvme")] == [("81:00.0",)]
    assert "numa-unknown" in codes(found)


def test_a_tree_knows_what_hangs_where():
    functions = {one.address: one for one in read_tree(TREE.splitlines()).functions}
    above = {one.id: one for one in functions.values()}
    chain, one = [], functions["0000:03:00.0"]
    while one.parent in above:
        one = above[one.parent]
        chain.append(one.address)
    assert chain == ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    assert one.parent == "0000:00"
    assert functions["0000:00:1f.0"].parent == "0000:00"
    assert functions["0000:81:00.0"].address


def test_a_tree_of_one_root():
    listing = read_tree(["-[0000:00]-+-00.0  A", "           \\-01.0-[01]----00.0  NVIDIA [A10]"])
    assert listing.roots == ("0000:00",)
    assert [one.address for one in listing.functions] == [
        "0000:00:00.0",
        "0000:00:01.0",
        "0000:01:00.0",
    ]


def test_a_tree_with_a_large_domain():
    found = read("-[10000:e0]-+-06.0-[e1]----00.0  Samsung NVMe SSD Controller\n")
    assert found.machine.of_kind("nvme")[0].pci == ("10000:e1:00.0",)


def test_a_tree_with_numbers():
    text = TREE.replace("[A100 SXM4 80GB]", "[10de:20b2]").replace("[ConnectX-7]", "[15b3:1021]")
    topology = build_topology(read(text).description)
    assert topology["gpu0"].part.name == "a100-sxm-80gb"
    assert topology["nic0"].part.name == "connectx-7-dual-port"


def test_lines_that_were_cut_by_hand_are_said():
    found = read(TREE + " ... (the same again)\n")
    assert "abridged" in codes(found)


def test_comments_behind_names_fall_away():
    found = read(TREE.replace("[A100 SXM4 80GB]", "[A100 SXM4 80GB]   # GPU0"))
    assert "# GPU0" not in found.yaml


# --- -vvv ---------------------------------------------------------------------------------------


def test_blocks_make_a_tree_by_their_buses():
    found = read(verbose())
    topology = build_topology(found.description)
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(1,)]
    assert topology["gpu0"].slot_name == "7"


def test_a_link_at_rest_takes_its_best():
    found = read(verbose())
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie 4 x16"
    assert "link-at-rest" in codes(found)


def test_a_link_that_trained_down_stays_as_it_is():
    found = read(verbose())
    assert found.machine.of_kind("nic")[0].link.cable == "pcie 4 x8"
    assert "trained-down" in codes(found)


def test_the_slot_above_can_be_the_slower_end():
    text = verbose().replace(
        port("02:00.0", "Downstream Port (Slot+)", "03", acs="-"),
        port("02:00.0", "Downstream Port (Slot+)", "03", "Speed 8GT/s, Width x8", acs="-"),
    )
    found = read(text)
    assert found.machine.of_kind("gpu")[0].link.cable == "pcie 3 x8"
    assert "port-below-device" in codes(found)


@pytest.mark.parametrize(("sign", "word"), [("+", "on"), ("-", "off")])
def test_acs_of_the_ports_is_the_switches(sign, word):
    (switch,) = read(verbose(acs=sign)).machine.of_kind("pcie-switch")
    assert ("acs", word) in switch.facts


def test_second_links_are_not_the_link():
    text = endpoint("01:00.0", GPU_HEAD, "Speed 16GT/s, Width x16", "Speed 8GT/s, Width x4")
    (block_,) = read_blocks(text.split("\n")).functions
    assert (block_.most.generation, block_.most.lanes) == (4, 16)
    assert (block_.current.generation, block_.current.lanes) == (3, 4)


@pytest.mark.parametrize("domain", ["", "0000:", "0001:"])
def test_domains(domain):
    found = read(f"{domain}01:00.0 {GPU_HEAD}\n")
    assert found.machine.of_kind("gpu")[0].pci == (f"{domain or '0000:'}01:00.0",)


def test_prompts_between_blocks():
    text = "$ sudo lspci -vvv -s 01:00.0\n" + endpoint(
        "01:00.0", GPU_HEAD, "Speed 16GT/s, Width x16", "Speed 16GT/s, Width x16"
    )
    assert len(read(text).machine.of_kind("gpu")) == 1


def test_without_root_there_are_no_speeds():
    found = read(block("01:00.0", GPU_HEAD, "Capabilities: <access denied>"))
    assert "access-denied" in codes(found)


def test_a_bus_without_a_host_bridge_goes_by_its_numa_node():
    """The root ports of one socket's buses stand there without a host bridge of their own."""
    speed = "Speed 8GT/s, Width x16"
    text = block("00:00.0", "Host bridge: Intel Corporation Sky Lake-E DMI3", "NUMA node: 0")
    for bus, below, node in (("3a", "3b", 0), ("ae", "af", 1)):
        text += port(f"{bus}:00.0", "Root Port (Slot+)", below, speed)
        text += endpoint(f"{below}:00.0", GPU_HEAD, speed, speed, numa=node)
    topology = build_topology(read(text).description)
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(0,), (1,)]
    assert [numa_nodes(topology, name) for name in ("gpu0", "gpu1")] == [(0,), (1,)]
    assert locality(topology, "gpu0", "gpu1") == "SYS"


def test_a_numa_node_that_is_not_told_is_not_the_first():
    text = verbose() + block("80:00.0", "Host bridge: Advanced Micro Devices", "NUMA node: 0")
    text += block("c0:00.0", "Host bridge: Advanced Micro Devices")
    found = read(text + block("c1:00.0", GPU_HEAD))
    topology = build_topology(found.description)
    assert numa_nodes(topology, "gpu1") == ()
    assert locality(topology, "gpu0", "gpu1") == "SYS"
    assert "numa-unknown" in codes(found)


def test_a_slot_of_one_lane_that_both_ends_tell_is_no_placeholder():
    text = port("00:01.0", "Root Port (Slot+)", "01", "Speed 8GT/s, Width x1")
    text += port("01:00.0", "Upstream Port", "02")
    text += port("02:00.0", "Downstream Port (Slot-)", "03")
    speed = "Speed 16GT/s, Width x16"
    found = read(text + endpoint("03:00.0", GPU_HEAD, speed, speed))
    assert found.machine.of_kind("pcie-switch")[0].link.cable == "pcie 3 x1"
    assert "placeholder-link" not in codes(found)


# --- names --------------------------------------------------------------------------------------

_HEADS = {
    "number for a name": ("3D controller", "NVIDIA Corporation Device 2331 (rev a1)"),
    "vendor without a list": ("Display controller", "Biren Technology Co., Ltd. Device 0106"),
    "vendor of consoles": ("VGA compatible controller", "ASPEED Technology, Inc. ASPEED Graphics"),
    "virtual machine's": ("Display controller", "Red Hat, Inc. Virtio GPU"),
    "Radeon by class": (
        "VGA compatible controller",
        "Advanced Micro Devices, Inc. [AMD/ATI] Device 7590",
    ),
    "Radeon by name": (
        "Display controller",
        "Advanced Micro Devices, Inc. [AMD/ATI] Navi 32 [Radeon PRO W7700]",
    ),
    "Instinct": ("Processing accelerators", "Advanced Micro Devices, Inc. [AMD/ATI] Device 75a0"),
}


@pytest.mark.parametrize(
    ("case", "part"),
    [
        ("number for a name", "h100-pcie-80gb"),
        ("vendor without a list", "gpu-unknown"),
        ("vendor of consoles", ""),
        ("virtual machine's", ""),
        ("Radeon by class", "gpu-unknown"),
        ("Radeon by name", "gpu-unknown"),
        ("Instinct", "amd-instinct"),
    ],
)
def test_gpus_by_class_and_name(case, part):
    class_, name = _HEADS[case]
    found = read(f"21:00.0 {class_}: {name}\n")
    assert [gpu.part for gpu in found.machine.of_kind("gpu")] == [part] * bool(part)


def test_a_screen_of_an_unknown_maker_is_said_to_be_left_out():
    found = read("21:00.0 VGA compatible controller: Moore Threads Technology Co.,Ltd MTT S80\n")
    assert not found.machine.of_kind("gpu")
    assert "unclassified-device" in codes(found)


NAMES = """\
-[0000:00]-+-00.0  Intel Corporation Device 0044
           +-01.0-[01]----00.0  NVIDIA Corporation AD104GL [L4]
           +-02.0-[02]----00.0  Mellanox Technologies MT27800 Family [ConnectX-5]
           +-03.0-[03]----00.0  Intel Corporation I350 Gigabit Network Connection Ethernet
           +-04.0-[04]----00.0  KIOXIA Corporation SSD CM7
           \\-05.0-[05]----00.0  Micron Technology Inc Device 51c3
"""


def test_storage_is_guessed_at_infiniband_of_unknown_rate_before_a_slow_port():
    plain = '{0} "Class" "Mellanox" "Device {1}" -r00\n'
    text = plain.format("01:00.0", "9999").replace("Class", "Infiniband controller")
    text += (
        plain.format("02:00.0", "9998")
        .replace("Class", "Ethernet controller")
        .replace("Device 9998", "Gigabit card")
    )
    gpu = '03:00.0 "3D controller" "NVIDIA Corporation" "AD104GL [L4]" -r00\n'
    assert "storage -- nic0: ethernet 100 Gb/s" in read(text + gpu).yaml


def test_names_tell_drives_and_the_speed_of_ports():
    found = read(NAMES.replace(" SSD CM7", " Ethernet card") + "")
    assert [card.ports for card in found.machine.of_kind("nic")][1] == (1e9,)
    ends = {cable.partition(":")[0].strip(" -") for cable in found.yaml.splitlines()}
    assert "storage -- nic0" in ends
    assert "storage -- nic1" not in ends
    assert [drive.pci for drive in read(NAMES).machine.of_kind("nvme")] == [("0000:04:00.0",)]


def test_what_has_no_name_is_said_to_be_left_out():
    (finding,) = [one for one in read(NAMES).findings if one.code == "unclassified-device"]
    assert "0000:05:00.0" in finding.message
    assert "0000:00:00.0" not in finding.message


PLACES = """\
-[0000:80]-+-00.0
           +-01.0-[81-84]----00.0-[82-84]--+-00.0-[83]----00.0
           |                               \\-01.0-[84]----00.0
           \\-02.0-[85]----00.0
"""
WHAT = """\
0000:83:00.0 3D controller: NVIDIA Corporation AD104GL [L4] (rev a1)
0000:84:00.0 Ethernet controller: Mellanox Technologies MT27800 Family [ConnectX-5]
0000:85:00.0 3D controller: NVIDIA Corporation AD104GL [L4] (rev a1)
"""


def test_a_tree_without_names_is_no_machine_alone():
    with pytest.raises(ExchangeError, match="where PCI devices are") as caught:
        read(PLACES)
    (finding,) = caught.value.findings
    assert "lspci -tv" in finding.help


@pytest.mark.parametrize("texts", [(PLACES, WHAT), (WHAT, PLACES)], ids=["tree", "names"])
def test_a_tree_without_names_places_what_another_source_names(texts):
    sources = [discover(None, text.encode(), "x.txt") for text in texts]
    topology = build_topology(import_together(sources).description)
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu1", "nic0") == "NODE"


@pytest.mark.parametrize("how", ragged(PLACES))
def test_a_tree_without_names_however_it_was_pasted(how):
    def placed(text):
        texts = (text if isinstance(text, bytes) else text.encode(), WHAT.encode())
        return shape(import_together([discover(None, text, "x.txt") for text in texts]))

    assert placed(ragged(PLACES)[how]) == placed(PLACES)


@pytest.mark.parametrize("how", ragged(TREE))
def test_a_tree_however_it_was_pasted(how):
    text = ragged(TREE)[how]
    data = text if isinstance(text, bytes) else text.encode()
    assert shape(import_text(None, data, "box.txt")) == shape(read(TREE))


def test_a_tree_of_an_old_release_has_no_domain():
    text = "-[00]-+-00.0  Intel Corporation Host Bridge\n"
    text += "      +-01.0--\n      \\-02.0-[01]----00.0  NVIDIA Corporation GA102GL [A10]\n"
    (gpu,) = read(text).machine.of_kind("gpu")
    assert (gpu.pci, gpu.part) == (("0000:01:00.0",), "a10")


# --- records ------------------------------------------------------------------------------------

RECORDS = """\
Slot:\t0000:00:00.0
Class:\tHost bridge
Vendor:\tIntel Corporation
Device:\tDevice 09a2
NUMANode:\t0

Slot:\t0000:17:00.0
Class:\t3D controller
Vendor:\tNVIDIA Corporation
Device:\tGA102GL [A10]
SVendor:\tNVIDIA Corporation
SDevice:\tDevice 1482
PhySlot:\t3
Rev:\ta1
Driver:\tnvidia
Module:\tnouveau
NUMANode:\t0
IOMMUGroup:\t40

Slot:\t0000:80:00.0
Class:\tHost bridge
Vendor:\tIntel Corporation
Device:\tDevice 09a2
NUMANode:\t1

Slot:\t0000:81:00.0
Class:\tEthernet controller
Vendor:\tMellanox Technologies
Device:\tMT2910 Family [ConnectX-7]
NUMANode:\t1
"""
NUMBERED = (
    RECORDS.replace("3D controller", "3D controller [0302]")
    .replace("NVIDIA Corporation\nDevice:\tGA102GL [A10]", "NVIDIA [10de]\nDevice:\tGA102GL [2236]")
    .replace("Device 09a2", "Device [09a2]")
)
NUMBERS = """\
Slot:\t17:00.0
Class:\t0302
Vendor:\t10de
Device:\t2236

Slot:\t81:00.0
Class:\t0207
Vendor:\t15b3
Device:\t1021
"""
LINES = """\
00:00.0 "Host bridge" "Intel Corporation" "Device 09a2" -r04 "Dell" "Device 0000"
17:00.0 "3D controller" "NVIDIA Corporation" "GA102GL \\"A10\\" [A10]" -ra1 "NVIDIA" ""
81:00.0 "Ethernet controller [0200]" "Mellanox [15b3]" "MT2910 Family [ConnectX-7] [1021]"
"""


@pytest.mark.parametrize(
    "text",
    [
        RECORDS,
        NUMBERED,
        NUMBERS,
        LINES,
        RECORDS.replace("Slot:", "Device:"),
        *ragged(RECORDS).values(),
    ],
)
def test_records_tell_parts_and_addresses(text):
    data = text if isinstance(text, bytes) else text.encode()
    machine = import_text(None, data, "box.txt").machine
    assert machine.source == "output of lspci -vmm"
    (gpu,), (card,) = machine.of_kind("gpu"), machine.of_kind("nic")
    assert (gpu.part, gpu.pci) == ("a10", ("0000:17:00.0",))
    assert (card.part, card.pci) == ("connectx-7", ("0000:81:00.0",))


def test_records_tell_numa_nodes_and_slots():
    imported = read(RECORDS.replace("\t", "  "))
    topology = build_topology(imported.description)
    assert [numa_nodes(topology, name) for name in ("gpu0", "nic0")] == [(0,), (1,)]
    assert topology["gpu0"].slot_name == "3"
    assert imported.machine.of_kind("gpu")[0].link.cable == "pcie unknown"


def test_records_with_bridges_tell_no_tree():
    text = RECORDS + "\nSlot:\t0000:16:00.0\nClass:\tPCI bridge\nVendor:\tBroadcom / LSI\n"
    assert "no-tree" in codes(read(text))


@pytest.mark.parametrize(
    "text",
    [
        RECORDS.replace("NUMANode:\t1", "NUMANode:\t" + "9" * 5000),
        RECORDS.replace("GA102GL", "GA\x07\x1b[31m" + "x" * 50_000),
        LINES.replace('"NVIDIA', '"' * 20_001 + "NVIDIA"),
        "Slot:\t00:00.0\n" * 20_000,
        "Slot:\t00:00.0\n" + "Class:\t[" * 9000,
    ],
    ids=["node", "name", "quotes", "slots", "brackets"],
)
def test_hostile_records(text):
    survives_import(text.encode())


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records_and_trees(seed):
    chance = random.Random(seed)
    survives_import(
        mutated(chance.choice([RECORDS, NUMBERED, LINES, PLACES, TREE]).encode(), chance)
    )


# --- lists --------------------------------------------------------------------------------------


def test_a_list_of_endpoints_tells_no_tree():
    assert "no-tree" in codes(read(WHAT))
    domains = WHAT.replace("0000:83", "0001:00").replace("0000:84", "0002:00")
    domains = domains.replace("0000:85", "0003:00")  # bus 00 is a root's
    assert "no-tree" not in codes(read(domains))


LIST = """\
00:00.0 Host bridge: Intel Corporation Device 09a2
00:01.0 PCI bridge: Intel Corporation Device 352a
01:00.0 3D controller: NVIDIA Corporation GA102GL [A10] (rev a1)
40:00.0 Host bridge: Intel Corporation Device 09a2
40:01.0 PCI bridge: Intel Corporation Device 352a
41:00.0 Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
41:00.1 Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
42:00.0 Non-Volatile memory controller: Samsung Electronics Co Ltd NVMe
43:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family
"""


def test_a_list_has_devices_and_no_tree():
    found = read(LIST)
    assert {one.kind for one in found.machine.devices if one.pci} == {"nic", "gpu", "nvme"}
    assert "no-tree" in codes(found)
    topology = build_topology(found.description)
    assert locality(topology, "nic0", "nvme0") == "PHB"  # one host bridge: bus 40
    assert topology["gpu0"].part.name == "a10"


def test_virtual_functions_beside_their_card_are_left_out():
    text = LIST + "41:00.2 Ethernet controller: Mellanox Technologies ConnectX Virtual Function\n"
    found = read(text)
    assert "0000:41:00.2" in found.machine.left_out
    alone = read("05:00.0 Ethernet controller: Mellanox Technologies ConnectX Virtual Function\n")
    assert len(alone.machine.of_kind("nic")) == 1


def test_a_text_without_functions():
    with pytest.raises(ExchangeError) as caught:
        discover("lspci", b"nothing here\n", "x")
    assert [one.code for one in caught.value.findings] == ["nothing-there"]
