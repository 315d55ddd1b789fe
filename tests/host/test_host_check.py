"""How a host is set up: each thing that can be worse is found, priced, and nothing else is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.test_corpus import CORPUS, rows
from tests.host.made_up import ROOT, MadeUp, config, crowded_host, spoilt_host
from topo.discovery.importing import discover, import_machine
from topo.discovery.sources.file_tree import Archive, Folder
from topo.errors import TopoError
from topo.host.host_check import check_host
from topo.host.kernel_state import read_host_state
from topo.host.this_host import read_host
from topo.topology.build import build_topology


def checked(tree, tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    machine, state = read_host(str(tree.write(folder)))
    return check_host(build_topology(import_machine(machine).description), state)


def one(outcome, code):
    (finding,) = [finding for finding in outcome.findings if finding.code == code]
    return finding


@pytest.fixture
def host():
    return MadeUp()


def test_a_host_that_is_set_up_well(host, tmp_path):
    outcome = checked(host, tmp_path)
    assert (outcome.findings, outcome.is_well) == ((), True)
    assert [rule.subject for rule in outcome.checked if not rule.is_well] == []
    words = {rule.subject: rule.well for rule in outcome.checked}
    assert words["PCIe links"] == "9 links as fast as both ends can"
    assert words["ACS redirect"] == "off at sw0 and sw1"
    assert words["IOMMU"] == "passthrough"


def test_what_looks_wrong_and_is_not(tmp_path):
    outcome = checked(crowded_host(), tmp_path)
    assert [finding.message for finding in outcome.findings] == [
        "gpu3: 2.5 GT/s now, which is a GPU that saves power"
    ]


# --- links ----------------------------------------------------------------------------------------


def test_a_narrow_link_costs_half(host, tmp_path):
    # 32 GT/s x 16 x 128/130 / 8 = 63.02 GB/s, and half of it with 8 lanes
    host.runs_at(host.gpus[0], 5, 8)
    finding = one(checked(host, tmp_path), "link-below-both-ends")
    assert finding.severity == "warning"
    assert finding.message == "gpu0: PCIe 5 x8, and both ends can PCIe 5 x16"
    assert "gpu0 by pinned is at most 31.51 GB/s, without this at most 63.02" in finding.notes[0]


def test_a_slow_card_is_no_rest(host, tmp_path):
    # the card's chip takes 50 GB/s, its link of PCIe 4 31.51
    host.runs_at(host.cards[0], 4, 16)
    finding = one(checked(host, tmp_path), "link-below-both-ends")
    assert finding.message == "nic0: PCIe 4 x16, and both ends can PCIe 5 x16"
    assert "nic0 to gpu by nic-direct is" in finding.notes[0]
    assert "31.51 GB/s" in finding.notes[0]
    assert "50 GB/s" in finding.notes[0]


def test_a_gpu_at_rest_is_said_as_such(host, tmp_path):
    host.runs_at(host.gpus[1], 1, 16)
    outcome = checked(host, tmp_path)
    finding = one(outcome, "link-at-rest")
    assert (finding.severity, outcome.is_well) == ("note", True)
    assert finding.notes == ("cost: none: under load it is as fast as both ends can",)


def test_a_gpu_at_another_generation_may_rest_too(host, tmp_path):
    host.runs_at(host.gpus[1], 3, 16)
    outcome = checked(host, tmp_path)
    finding = one(outcome, "link-below-both-ends")
    assert (finding.severity, outcome.is_well) == ("note", True)
    assert finding.message == "gpu1: PCIe 3 x16, and both ends can PCIe 5 x16"


def test_a_gpu_at_rest_with_fewer_lanes_is_both(host, tmp_path):
    host.runs_at(host.gpus[1], 1, 4)
    outcome = checked(host, tmp_path)
    assert one(outcome, "link-at-rest")
    assert one(outcome, "link-below-both-ends").message.startswith("gpu1: PCIe 5 x4, and")


def test_a_card_at_2_5_is_no_gpu_at_rest(host, tmp_path):
    host.runs_at(host.cards[0], 1, 16)
    assert "PCIe 1 x16" in one(checked(host, tmp_path), "link-below-both-ends").message


def test_the_switch_in_a_gpu_of_amd_rests_with_it(host, tmp_path):
    root = "pci0000:d0/0000:d0:01.0"
    host.function(root, "060400", ROOT, node=1, link=(4, 16))
    up = host.function(f"{root}/0000:d1:00.0", "060400", ("1002", "1478"), node=1, link=(4, 16))
    down = f"{root}/0000:d1:00.0/0000:d2:00.0"
    host.function(down, "060400", ("1002", "1479"), node=1, link=(4, 16))
    host.function(f"{down}/0000:d3:00.0", "038000", ("1002", "738c"), node=1, link=(4, 16))
    host.runs_at(up, 1, 16)
    finding = one(checked(host, tmp_path), "link-at-rest")
    assert finding.message.startswith("sw2: 2.5 GT/s now")


def test_an_uplink_counts_and_alike_links_are_one_finding(host, tmp_path):
    for up in ("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:95/0000:95:01.0/0000:96:00.0"):
        host.runs_at(f"sys/devices/{up}", 3, 16)
    finding = one(checked(host, tmp_path), "link-below-both-ends")
    assert finding.message == "sw0 and sw1: PCIe 3 x16, and both ends can PCIe 5 x16"
    assert any(note.startswith("cost: ram to gpu by pinned") for note in finding.notes)


def test_a_slot_that_can_less_is_no_fault(host, tmp_path):
    # the port above the GPU has 8 lanes: the link is as fast as both ends can
    port = host.switch_ports[0]
    host.put(f"{port}/max_link_width", 8)
    host.put(f"{port}/current_link_width", 8)
    host.runs_at(host.gpus[0], 5, 8)
    assert checked(host, tmp_path).findings == ()


SLOT = """\
Handle 0x0041, DMI type 9, 17 bytes
System Slot Information
\tDesignation: PCIe Slot 3
\tType: {} PCI Express 5 x16
\tCurrent Usage: In Use
\tBus Address: 0000:18:00.0
"""


@pytest.mark.parametrize(("wired", "expected"), [("x8", []), ("x16", ["link-below-both-ends"])])
def test_a_slot_that_the_board_wires_narrower_is_no_fault(host, tmp_path, wired, expected):
    host.runs_at(host.gpus[0], 5, 8)
    host.put("texts/12+dmidecode+-t+slot+-t+memory.txt", SLOT.format(wired))
    assert [finding.code for finding in checked(host, tmp_path).findings] == expected


def test_links_that_nothing_tells_are_unknown(host, tmp_path):
    here = host.gpus[0]
    for word in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
        host.put(f"{here}/{word}", "Unknown")
    host.put(f"{here}/config", config()[:64])
    messages = [finding.message for finding in checked(host, tmp_path).findings]
    assert messages == [
        "PCIe links: speed or width of gpu0 is not told",
        "packets: the size of packets of gpu0 is not told",
    ]


# --- peer traffic ---------------------------------------------------------------------------------


def test_acs_costs_where_the_uplink_is_full(host, tmp_path):
    # Under sw0 a card (50 GB/s) feeds a GPU; over the uplink twice is 63.02 each way: enough.
    # With an uplink of 8 lanes it is not: 31.51.
    for port in host.switch_ports:
        host.put(f"{port}/config", config(acs=True))
    finding = one(checked(host, tmp_path), "acs-on")
    assert finding.message.startswith("sw0 and sw1: ACS redirects")
    assert finding.notes[0].startswith("cost: none: nic to gpu by nic-direct is")
    for up in ("pci0000:15/0000:15:01.0", "pci0000:95/0000:95:01.0"):
        for here in (f"sys/devices/{up}", f"sys/devices/{up}/0000:{up[5:7]}"):
            host.put(f"{here}/max_link_width", 8)
            host.put(f"{here}/current_link_width", 8)
    (tmp_path / "narrow").mkdir()
    finding = one(checked(host, tmp_path / "narrow"), "acs-on")
    assert finding.notes[0].startswith("cost: nic to gpu by nic-direct is")


def test_without_root_acs_and_packets_are_unknown(host, tmp_path):
    for path in [path for path in host.files if path.endswith("/config")]:
        host.put(path, host.files[path][:64])
    outcome = checked(host, tmp_path)
    assert [finding.message.partition(":")[0] for finding in outcome.findings] == [
        "ACS redirect",
        "packets",
    ]
    assert all("only root reads it" in finding.message for finding in outcome.findings)
    assert outcome.is_well  # as far as could be seen


def test_acs_of_a_switch_with_one_device_below_is_nobodys(host, tmp_path):
    for port in host.switch_ports:
        host.put(f"{port}/config", config(acs=True))
    gone = (*host.gpus[1:3], *host.cards)
    host.without(*gone, *(f"sys/bus/pci/devices/{here.rpartition('/')[2]}" for here in gone))
    outcome = checked(host, tmp_path)
    (rule,) = [rule for rule in outcome.checked if rule.subject == "ACS redirect"]
    assert (rule.problems, rule.unknown) == ((), "")


def test_an_iommu_of_nobody_is_no_fault(host, tmp_path):
    host.translates()
    gone = (*host.gpus, *host.cards[1:])
    host.without(*gone, *(f"sys/bus/pci/devices/{here.rpartition('/')[2]}" for here in gone))
    (rule,) = [rule for rule in checked(host, tmp_path).checked if rule.subject == "IOMMU"]
    assert (rule.problems, rule.well) == ((), "no GPU with a peer")


def test_a_translating_iommu_refuses_what_goes_through_the_root(host, tmp_path):
    host.translates()
    finding = one(checked(host, tmp_path), "iommu-translates")
    assert "iommu=pt" in finding.help
    assert "cost: load by direct is refused, without this" in "\n".join(finding.notes)


@pytest.mark.parametrize(("word", "said"), [("identity", "passthrough"), ("odd", "")])
def test_what_the_iommu_does(host, tmp_path, word, said):
    host.translates(word)
    outcome = checked(host, tmp_path)
    (rule,) = [rule for rule in outcome.checked if rule.subject == "IOMMU"]
    assert (rule.well if rule.is_well else "") == said


def test_no_groups_is_an_iommu_that_is_off(host, tmp_path):
    for path in [path for path in host.links if path.endswith("/iommu_group")]:
        del host.links[path]
    (rule,) = [rule for rule in checked(host, tmp_path).checked if rule.subject == "IOMMU"]
    assert (rule.well, rule.problems) == ("off", ())


@pytest.mark.parametrize(
    ("device", "word", "expected"),
    [
        ("0x2342", "identity", ["iommu-off-on-grace"]),
        ("0x2342", "DMA", []),
        ("0x2330", "identity", []),  # another Arm server: NVIDIA says nothing of those
        ("0x2330", "DMA", []),
    ],
)
def test_a_grace_needs_it_on(host, tmp_path, device, word, expected):
    host.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Neoverse-V2")
    for gpu in host.gpus:
        host.put(f"{gpu}/device", device)
    host.translates(word)
    (rule,) = [rule for rule in checked(host, tmp_path).checked if rule.subject == "IOMMU"]
    assert [problem.code for problem in rule.problems] == expected


# --- packets --------------------------------------------------------------------------------------


def test_a_small_payload_costs_its_heads(host, tmp_path):
    # 63.02 x 128 / 152 = 53.07, and 63.02 x 512 / 536 = 60.2
    host.put(f"{host.gpus[0]}/config", config(payload=128))
    finding = one(checked(host, tmp_path), "small-payload")
    assert finding.message.startswith("gpu0: MaxPayload is 128 bytes, and all below")
    assert "53.07 GB/s" in finding.notes[0]
    assert "60.19 GB/s" in finding.notes[0]


def test_a_port_on_the_way_that_takes_no_more_is_no_fault(host, tmp_path):
    # nor is it at the neighbours, whose packets may go there
    host.put(f"{host.switch_ports[0]}/config", config(payload=256, most=256))
    for here in (host.gpus[0], host.gpus[1], host.cards[0]):
        host.put(f"{here}/config", config(payload=256))
    assert checked(host, tmp_path).findings == ()


def test_the_usual_256_bytes_are_no_fault_to_exit_for(host, tmp_path):
    host.put(f"{host.gpus[0]}/config", config(payload=256))
    outcome = checked(host, tmp_path)
    assert (one(outcome, "small-payload").severity, outcome.is_well) == ("note", True)


def test_a_small_read_request_of_a_fast_card(host, tmp_path):
    host.put(f"{host.cards[0]}/config", config(read=512))
    host.put(f"{host.gpus[0]}/config", config(read=512))
    finding = one(checked(host, tmp_path), "small-read-request")
    assert finding.message.startswith("nic0: MaxReadReq is 512 bytes")
    assert finding.notes[0].startswith("cost: not known")


# --- GPUs, cards, drivers -------------------------------------------------------------------------


def test_a_small_window(host, tmp_path):
    host.window(host.gpus[2], 256 * 2**20)
    finding = one(checked(host, tmp_path), "small-bar1")
    assert finding.message == "gpu2: BAR1 is 268.44 MB, and the memory 80 GB"
    assert finding.notes[0].startswith("cost: not known")
    assert finding.severity == "note"  # nothing says that it could be more


def test_a_small_window_that_could_be_larger(host, tmp_path):
    host.window(host.gpus[2], 256 * 2**20)
    sizes = [2**exponent for exponent in range(6, 18)]  # in MiB: 64 MiB to 128 GiB
    host.put(f"{host.gpus[2]}/config", config(windows=sizes))
    finding = one(checked(host, tmp_path), "small-bar1")
    assert finding.severity == "warning"
    assert finding.message.endswith("the memory 80 GB; the GPU can have one of 137.44 GB")


def test_a_window_that_is_not_told_is_unknown(host, tmp_path):
    host.put(f"{host.gpus[2]}/resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000")
    assert "BAR1 or memory of gpu2" in one(checked(host, tmp_path), "host-not-told").message


def test_gpus_without_a_card_on_their_node(host, tmp_path):
    host.without(host.cards[1], "sys/bus/pci/devices/0000:9a:00.0")
    finding = one(checked(host, tmp_path), "card-on-other-node")
    assert finding.message.startswith("gpu2 and gpu3: the nearest card with RDMA, nic0,")
    assert "nic0 to gpu2 by nic-direct is" in finding.notes[0]


def test_a_card_that_is_no_way_into_gpus_is_near_to_none(host, tmp_path):
    # without RDMA at all, where the board's network card is does not matter
    host.without(host.cards[1], "sys/bus/pci/devices/0000:9a:00.0", f"{host.cards[0]}/infiniband")
    (rule,) = [rule for rule in checked(host, tmp_path).checked if rule.subject == "NUMA"]
    assert (rule.problems, rule.well) == ((), "no GPU with a network card that has RDMA")


def test_a_card_without_rdma_beside_one_with(host, tmp_path):
    host.without(f"{host.cards[1]}/infiniband")
    finding = one(checked(host, tmp_path), "card-without-rdma")
    assert finding.message.startswith("nic1: no RDMA device")
    assert "is 50 GB/s, without this" in finding.notes[0].replace("at most ", "")


def test_other_cards_without_rdma_are_no_news(host, tmp_path):
    host.put(f"{host.cards[1]}/device", "0x1563")
    host.without(f"{host.cards[1]}/infiniband")
    outcome = checked(host, tmp_path)
    assert "card-without-rdma" not in {finding.code for finding in outcome.findings}


@pytest.mark.parametrize(
    ("driver", "release", "expected"),
    [
        ("NVIDIA UNIX Open Kernel Module", "6.8.0-45", None),
        ("NVIDIA UNIX Open Kernel Module", "5.4.0", "no-gpudirect-rdma-driver"),
        # Red Hat brings newer RDMA into an old release
        ("NVIDIA UNIX Open Kernel Module", "4.18.0-553.el8_10.x86_64", "host-not-told"),
        ("NVIDIA UNIX x86_64 Kernel Module", "6.8.0", "no-gpudirect-rdma-driver"),
        ("", "6.8.0", "host-not-told"),
    ],
)
def test_without_peermem_the_driver_must_have_dmabuf(host, tmp_path, driver, release, expected):
    host.without("sys/module/nvidia_peermem")
    host.put("proc/driver/nvidia/version", driver)
    host.put("proc/sys/kernel/osrelease", release)
    outcome = checked(host, tmp_path)
    assert [finding.code for finding in outcome.findings] == ([expected] if expected else [])
    if expected == "no-gpudirect-rdma-driver":
        assert "refused, and" in outcome.findings[0].notes[0]
        assert "by nic-ram, without this" in outcome.findings[0].notes[0]


@pytest.mark.parametrize(
    ("module", "expected"), [("nvidia", ["host-not-told"]), ("efa_nv_peermem", [])]
)
def test_efa_has_ways_of_its_own(host, tmp_path, module, expected):
    host.without("sys/module/nvidia_peermem")
    host.put("proc/driver/nvidia/version", "NVIDIA UNIX x86_64 Kernel Module")
    host.put(f"sys/module/{module}/refcnt", 1)
    for card in host.cards:
        host.put(f"{card}/vendor", "0x1d0f")
        host.put(f"{card}/device", "0xefa2")
    assert [finding.code for finding in checked(host, tmp_path).findings] == expected


def test_without_nvidia_fs(host, tmp_path):
    host.without("sys/module/nvidia_fs")
    outcome = checked(host, tmp_path)
    assert one(outcome, "no-nvidia-fs").severity == "note"
    assert "load by compat is" in one(outcome, "no-nvidia-fs").notes[0]


def test_without_a_driver(host, tmp_path):
    host.without("sys/module/nvidia")
    host.put("sys/module/ib_core/refcnt", 1)
    assert one(checked(host, tmp_path), "no-gpu-driver").severity == "warning"


def test_the_governor(host, tmp_path):
    host.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave")
    finding = one(checked(host, tmp_path), "slow-governor")
    assert finding.message == "1 CPU: the governor is `powersave` (intel_pstate)"


def test_all_at_once_are_each_priced_alone(host, tmp_path):
    # with the driver missing all goes through RAM: the narrow link's cost is told all the same
    host.runs_at(host.cards[0], 4, 16)
    host.without("sys/module/nvidia_peermem")
    host.put("proc/driver/nvidia/version", "NVIDIA UNIX x86_64 Kernel Module")
    host.translates()
    finding = one(checked(host, tmp_path), "link-below-both-ends")
    assert finding.notes[0].startswith("cost: nic0 to gpu by nic-direct is")


def test_a_hostile_tree_is_read(host, tmp_path):
    here = host.gpus[0]
    host.put(f"{here}/resource", "0x" + "f" * 5000 + "\n0x0 0xz 0x1\n\x00\xff")
    host.put(f"{here}/config", b"\xff" * 4096)
    host.put(f"{here}/current_link_width", "9" * 1000)
    host.put("proc/sys/kernel/osrelease", "9" * 10000)
    host.put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "\x1b[31m" + "x" * 5000)
    state = read_host(str(host.write(tmp_path / "box")))[1]
    assert state.functions["0000:18:00.0"].window is None
    assert state.functions["0000:18:00.0"].payload is None
    assert state.release == ()


ODD = st.one_of(
    st.sampled_from([b"", b"-1", b"9" * 40, b"0x", b"Unknown", b"\xff" * 300, b"DMA", b"1", b"8"]),
    st.binary(max_size=64),
)


@given(st.data())
def test_a_damaged_copy_is_checked_or_refused(data):
    host = spoilt_host() if data.draw(st.booleans()) else MadeUp()
    paths = st.sampled_from(sorted(host.files))
    for path in data.draw(st.lists(paths, min_size=1, max_size=6)):
        host.files[path] = data.draw(ODD)
    packed = host.tar()
    try:
        machine = discover("sysfs", packed, "damaged")
        topology = build_topology(import_machine(machine).description)
    except TopoError:
        return
    outcome = check_host(topology, read_host_state(Archive(packed, "damaged")))
    assert all(finding.code and finding.message for finding in outcome.findings)


def test_state_of_an_empty_tree(tmp_path):
    state = read_host_state(Folder(tmp_path))
    assert (state.functions, state.modules, state.release) == ({}, None, ())


# --- virtual machines -----------------------------------------------------------------------------


def virtual(host):
    """Make it a virtual machine: a GPU on the root bus, and a card that the hypervisor makes up."""
    host.without("sys/devices/pci", "sys/bus/pci", "sys/kernel/iommu_groups/")
    host.put("sys/kernel/iommu_groups/.keep", "")
    host.put("proc/cpuinfo", "model name\t: Intel(R) Xeon(R)\nflags\t\t: fpu hypervisor lm")
    gpu = host.pci("pci0000:00/0000:00:06.0", "030200", "10de", "2335", link=("32.0 GT/s PCIe", 16))
    host.put(f"{gpu}/config", config())
    host.window(gpu, 256 * 2**30)
    card = host.pci("pci0000:00/0000:00:03.0", "020000", "1af4", "1041")
    for word in ("max", "current"):
        host.without(f"{card}/{word}_link")
    host.put(f"{card}/config", bytes(6) + b"\x10" + bytes(45) + b"\x40" + bytes(203))
    return gpu


def test_a_virtual_machine_is_said_and_its_made_up_devices_are_no_doubt(host, tmp_path):
    virtual(host)
    outcome = checked(host, tmp_path)
    assert [finding.code for finding in outcome.findings] == ["virtual-machine"]
    words = {rule.subject: rule.well for rule in outcome.checked}
    assert words["PCIe links"] == "1 link as fast as both ends can"
    assert words["IOMMU"] == "off"


def test_without_a_port_to_see_a_slow_link_is_unknown(host, tmp_path):
    gpu = virtual(host)
    host.runs_at(gpu, 4, 16)
    outcome = checked(host, tmp_path)
    assert "speed or width of gpu0" in one(outcome, "host-not-told").message
    (tmp_path / "rest").mkdir()
    host.runs_at(gpu, 1, 16)
    assert one(checked(host, tmp_path / "rest"), "link-at-rest")


def test_without_a_port_to_see_the_size_of_packets_is_unknown(host, tmp_path):
    gpu = virtual(host)
    host.put(f"{gpu}/config", config(payload=256))
    assert "the size of packets of gpu0" in one(checked(host, tmp_path), "host-not-told").message


# --- real hosts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("sysfs"))
def test_a_real_host_has_no_alarm(row):
    # none is known to be set up badly, and config space is cut in all of them
    machine, state = read_host(str(CORPUS / row["file"]))
    outcome = check_host(build_topology(import_machine(machine).description), state)
    assert (outcome.is_well, {found.code for found in outcome.findings}) == (
        True,
        {"host-not-told"},
    )
