"""Physics: what could not be built is said once, at the line to blame, with the right advice.

The wording stands in `tests/golden`; here is what each rule lets pass, where it points, and that
mistakes do not echo.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.description import loading
from topo.errors import DescriptionError
from topo.topology.build import build_topology

PARTS = {
    "storage": "nvme-of-target",
    "nic": "connectx-7",
    "dpu": "bluefield-3",
    "nvme": "nvme-gen5-4tb",
    "hba": "{part: raid-card-gen5, read: unknown, write: unknown}",
    "sw": "pcie-switch-gen5",
    "root": "root-complex",
    "cpu": "xeon-8480c",
    "ram": "{part: ddr5-4800, channels: 8}",
    "gpu": "h100-sxm-80gb",
    "nvswitch": "nvswitch-3",
    "leaf": "quantum-2",
    "cxl": "cxl-memory-unknown",
}


def findings(text):
    """Return what physics says of a text that is otherwise sound."""
    description = loading.loads(text)
    assert description.findings == ()
    try:
        return build_topology(description).findings
    except DescriptionError as error:
        return error.findings


def machine(links, *, parts="", rest=""):
    """Return a text with these links and a device for each name in them; `parts` overrides."""
    ends = " ".join(line.partition(":")[0] for line in links.splitlines())
    named = [stem for stem in PARTS if re.search(rf"(?<![a-z/]){stem}(?![a-z])", ends)]
    devices = "".join(
        f"  {stem}[0-3]: {PARTS[stem]}\n" for stem in named if f" {stem}" not in parts
    )
    lines = "".join(f"  - {line.strip()}\n" for line in links.strip().splitlines())
    return f"topo: 1\ndevices:\n{parts}{devices}links:\n{lines}{rest}"


def said(links, **more):
    """Return the codes of what is said, but for devices that these links leave alone."""
    found = findings(machine(links, **more))
    return [one.code for one in found if one.code not in ("unreached", "memory-without-bus")]


# --- media ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "links",
    [
        "storage0 -- nic0: infiniband ndr",
        "storage0 -- dpu0: ethernet 400 Gb/s",
        "storage0 -- leaf0: infiniband ndr",
        "nic0 -- nic1: infiniband ndr",
        "nic0 -- cpu0: pcie 5 x16",
        "nvme0 -- root0: pcie 5 x4",
        "nvme0 -- hba0: pcie 5 x4\nhba0 -- cpu0: pcie 5 x8",
        "nvme0 -- dpu0: pcie 5 x4",
        "sw0 -- sw1: pcie 5 x16",
        "cxl0 -- cpu0: pcie 5 x8",
        "root0 -- cpu0: pcie 5 x16",
        "cpu0 -- cpu1: 4x upi 16 GT/s",
        "cpu0 -- root1: upi unknown",
        "cpu0 -- cpu1: nvlink-c2c unknown",
        "gpu0 -- cpu0: nvlink-c2c 225 GB/s",
        "gpu0 -- cpu0: nvlink 4",
        "gpu0 -- nvswitch0: 18x nvlink 4",
        "gpu0 -- gpu1: 4x nvlink 4",
        "gpu0 -- gpu1: nvlink unknown",
        "ram0 -- cpu0: memory-bus",
        "ram0 -- root0: memory-bus",
        "cxl0 -- cpu0: memory-bus",
        "nic0 -- cpu0: pcie unknown x16",
    ],
)
def test_media_that_join_what_they_are_for(links):
    assert said(links) == []


@pytest.mark.parametrize(
    "links",
    [
        "storage0 -- gpu0: infiniband ndr",
        "storage0 -- cpu0: ethernet 100 Gb/s",
        "storage0 -- nic0: pcie 5 x16",
        "storage0 -- nic0: nvlink 4",
        "nic0 -- gpu0: nvlink 4",
        "nvswitch0 -- cpu0: pcie 5 x16",
        "leaf0 -- cpu0: pcie 5 x16",
        "cpu0 -- cpu1: pcie 5 x16",
        "cpu0 -- cpu1: memory-bus",
        "ram0 -- ram1: memory-bus",
        "ram0 -- cpu0: pcie 5 x16",
        "ram0 -- gpu0: memory-bus",
        "gpu0 -- gpu1: memory-bus",
        "gpu0 -- gpu1: pcie 5 x16",
        "gpu0 -- nic0: pcie 5 x16",
        "nic0 -- nvme0: pcie 5 x4",
        "gpu0 -- cpu0: upi 16 GT/s",
        "nic0 -- cpu0: xgmi 32 GT/s",
        "nvme0 -- storage0: nvlink-c2c 100 GB/s",
    ],
)
def test_media_that_do_not(links):
    assert said(links) == ["wrong-medium"]


def test_a_medium_of_ones_own_goes_by_its_reach():
    media = "media:\n  slingshot: {reach: network, rate: 200 Gb/s}\n"
    assert said("storage0 -- nic0: slingshot", rest=media) == []
    assert said("storage0 -- gpu0: slingshot", rest=media) == ["wrong-medium"]


def test_one_line_of_many_wrong_links_is_said_once():
    found = findings(
        machine(
            "storage0 -- nic0: infiniband ndr\nnic -- gpu: 2x nvlink 4\ngpu0 -- cpu0: pcie 5 x16"
        )
    )
    assert [one.place.line for one in found if one.code == "wrong-medium"] == [9]


def test_a_wrong_medium_is_not_said_twice_as_another_mistake():
    # Not also: a memory without a bus, a port too few, a link too wide.
    found = findings(
        "topo: 1\ndevices:\n  cpu0: xeon-8480c\n  ram0: {part: ddr5-4800, channels: 8}\n"
        "links:\n  - ram0 -- cpu0: 99x pcie 6 x16\n"
    )
    assert [one.code for one in found] == ["wrong-medium"]


@pytest.mark.parametrize(
    ("part", "codes"),
    [
        ("connectx-7-bridge", []),
        ("{part: connectx-7, bridge: yes}", []),
        ("{part: connectx-7, bridge: unknown}", []),
        ("{part: connectx-7, bridge: no}", ["wrong-medium"]),
    ],
)
def test_a_gpu_behind_a_card_needs_a_switch_in_the_card(part, codes):
    links = "nic0 -- cpu0: pcie 5 x16\ngpu0 -- nic0: pcie 5 x16"
    assert said(links, parts=f"  nic0: {part}\n") == codes


# --- ports ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "codes"),
    [
        ("storage0 -- nic0: infiniband ndr", []),
        ("storage0 -- nic0: 2x infiniband ndr", ["ports-used-up"]),
        ("storage0 -- nic0: infiniband ndr\nstorage1 -- nic0: infiniband ndr", ["ports-used-up"]),
        ("storage0 -- nic0/p1: infiniband ndr", []),
        ("storage0 -- nic0/p2: infiniband ndr", ["no-port"]),
        ("storage0 -- leaf0: 64x infiniband ndr", []),
        ("storage0 -- leaf0: 65x infiniband ndr", ["ports-used-up"]),
        ("storage0/p9 -- nic0: infiniband ndr", []),
        ("gpu0 -- nvswitch0: 18x nvlink 4", []),
        ("gpu0 -- nvswitch0: 19x nvlink 4", ["ports-used-up"]),
        ("gpu0 -- gpu1: 10x nvlink 4\ngpu0 -- gpu2: 9x nvlink 4", ["ports-used-up"]),
        ("gpu0 -- gpu1: nvlink 5", ["wrong-medium"]),
        ("gpu0/p18 -- gpu1: nvlink 4", []),
        ("gpu0/p19 -- gpu1: nvlink 4", ["no-port"]),
        ("nic0/p1 -- cpu0: pcie 5 x16", ["no-port"]),
        ("nic0 -- cpu0/p1: pcie 5 x16", ["no-port"]),
        ("nic0 -- sw0/p3: pcie 5 x16\nsw0 -- cpu0: pcie 5 x16", []),
        ("leaf0 -- nic0: ethernet 400 Gb/s", ["wrong-medium"]),
    ],
)
def test_ports(links, codes):
    assert said(links) == codes


def test_unknown_ports_are_never_used_up():
    parts = "  nic0: {part: connectx-7, ports: unknown}\n"
    assert said("storage0 -- nic0: 9x infiniband ndr", parts=parts) == []


def test_the_chips_of_a_switch_add_their_ports():
    links = "\n".join(f"gpu{n} -- nvswitch0: 18x nvlink 4" for n in range(4))
    few = "  nvswitch0: {part: nvswitch-3, chips: 1}\n"
    assert said(links, parts=few) == ["ports-used-up"]
    assert said(links, parts=few.replace("1}", "unknown}")) == []
    assert said(links) == []


def test_downstream_ports_of_a_switch_leave_its_uplink_aside():
    links = "sw0 -- cpu0: pcie 5 x16\nnvme0 -- sw0: pcie 5 x4\nnvme1 -- sw0: pcie 5 x4"
    assert said(links, parts="  sw0: {part: pcie-switch-gen5, ports: 2}\n") == []
    assert said(links, parts="  sw0: {part: pcie-switch-gen5, ports: 1}\n") == ["ports-used-up"]


def test_a_port_has_one_cable():
    links = "storage0 -- dpu0/p1: infiniband ndr\nstorage1 -- dpu0/p1: infiniband ndr"
    assert "port-taken" in said(links)
    assert "port-taken" in said("storage0 -- dpu0/p1: 2x infiniband ndr")


def test_what_is_full_is_said_where_it_overflows_with_the_lines_that_fill_it():
    (found,) = findings(
        "topo: 1\ndevices:\n  storage: nvme-of-target\n  slot1: connectx-7-dual-port\nlinks:\n"
        "  - storage -- slot1: infiniband ndr\n  - storage -- slot1: infiniband ndr\n"
        "  - storage -- slot1: infiniband ndr\n"
    )
    assert found.place.line == 8
    assert found.message == "slot1 has 2 ports; lines 6 and 7 use them"


# --- PCIe -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "codes"),
    [
        ("nvme0 -- cpu0: pcie 5 x4", []),
        ("nvme0 -- cpu0: pcie 5 x8", ["lanes-over-slot"]),
        ("nvme0 -- cpu0: pcie 4 x2", []),
        ("gpu0 -- cpu0: pcie 6 x16", ["pcie-generation"]),
        ("gpu0 -- cpu0: pcie unknown x16", []),
        ("gpu0 -- cpu0: pcie 5 unknown", []),
        ("gpu0 -- cpu0: 2x pcie 5 x16", ["lanes-over-slot"]),
        ("gpu0 -- cpu0: 2x pcie 5 x8", []),
        ("nic0 -- cpu0: pcie 5 x8\nnic0 -- cpu1: pcie 5 x8", []),
        ("nic0 -- cpu0: pcie 5 x16\nnic0 -- cpu1: pcie 5 x8", ["lanes-over-slot"]),
        ("hba0 -- cpu0: pcie 5 x16\nnvme -- hba0: pcie 5 x4", []),
        ("sw0 -- cpu0: pcie 5 x16\nnvme0 -- sw0: pcie 5 x4", []),
        ("gpu -- cpu0: pcie 5 x16\nnic0 -- cpu0: pcie 5 x16", []),
        ("gpu -- cpu0: pcie 5 x16\nnic[0-1] -- cpu0: pcie 5 x16", ["lanes-used-up"]),
    ],
)
def test_lanes_and_generations(links, codes):
    assert said(links) == codes


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "said_of_it"),
    [
        ("{part: ddr5-4800, channels: 8}", ""),
        ("{part: ddr5-4800, channels: 8, dimms-per-channel: 2}", ""),
        ("{part: ddr5-5600, channels: 8, dimms-per-channel: 2}", ""),  # runs at 4400 there
        ("{part: ddr5-6400, channels: 8, transfer-rate: 4800 MT/s}", ""),
        ("{part: memory-unknown}", ""),
        ("{part: ddr4-3200, channels: 8}", "plugged in: xeon-8480c takes DDR5, no DDR4"),
        ("{part: mrdimm-8800, channels: 8}", "xeon-8480c takes DDR5, no MRDIMM"),
        ("{part: lpddr5x-grace}", "xeon-8480c takes DDR5, no LPDDR5X"),
        ("{part: ddr5-4800, channels: 12}", "cpu0 has 8 memory channels (xeon-8480c) for 12"),
    ],
)
def test_a_memory_is_what_its_cpu_takes(memory, said_of_it):
    found = findings(machine("ram0 -- cpu0: memory-bus", parts=f"  ram0: {memory}\n"))
    found = [one for one in found if one.code == "memory-not-taken"]
    assert len(found) == bool(said_of_it)
    assert all(said_of_it in one.message and one.help and one.notes for one in found)


@pytest.mark.parametrize(
    ("cpu", "memory", "excess"),
    [
        ("xeon-8480c", "{part: ddr5-4800, channels: 8}", ""),
        ("xeon-8480c", "{part: ddr5-6400, channels: 8, transfer-rate: 4800 MT/s}", ""),
        (
            "xeon-8480c",
            "{part: ddr5-6400, channels: 8}",
            "6400 MT/s for ram0 (ddr5-6400) is more than xeon-8480c is rated for: DDR5 of 4800",
        ),
        (
            "xeon-8480c",
            "{part: ddr5-4800, channels: 8, dimms-per-channel: 2, transfer-rate: 4800 MT/s}",
            "xeon-8480c is rated for: DDR5 of 4400 MT/s with two DIMMs a channel",
        ),
        (
            "threadripper-pro-7995wx",
            "{part: ddr5-5600, channels: 8}",
            "threadripper-pro-7995wx is rated for: DDR5 of 5200 MT/s",
        ),
        ("cpu-unknown", "{part: ddr5-6400, channels: 8}", ""),
    ],
)
def test_a_memory_faster_than_its_cpu_is_a_warning(cpu, memory, excess):
    parts = f"  cpu0: {cpu}\n  ram0: {memory}\n"
    found = findings(machine("ram0 -- cpu0: memory-bus", parts=parts))
    codes = {"memory-not-taken", "memory-over-speed"}
    said = [(f.code, f.severity, f.message) for f in found if f.code in codes]
    assert len(said) == bool(excess)
    for code, severity, message in said:
        assert (code, severity) == ("memory-over-speed", "warning")
        assert excess in message
    assert all("transfer-rate: " in f.help and f.notes for f in found if f.code in codes)


@pytest.mark.parametrize(
    ("cpu", "memory", "taken"),
    [
        ("xeon-6960p", "{part: mrdimm-8800, channels: 12}", True),
        ("xeon-6960p", "{part: ddr4-3200, channels: 8}", False),
        ("epyc-7742", "{part: ddr4-3200, channels: 8, dimms-per-channel: 2}", True),
        ("epyc-7742", "{part: ddr5-4800, channels: 8}", False),
        ("epyc-9554", "{part: ddr5-4800, channels: 12}", True),
        ("grace", "{part: lpddr5x-grace}", True),
        ("grace", "{part: ddr5-4800, channels: 8}", False),
        ("xeon-e5-2670", "{part: ddr4-2133, channels: 4}", True),  # its memory is not known here
        ("cpu-unknown", "{part: ddr5-6400, channels: 99}", True),
        ("{part: xeon-8480c, ddr5: 6400 MT/s}", "{part: ddr5-6400, channels: 8}", True),
    ],
)
def test_what_a_cpu_takes_is_in_its_part(cpu, memory, taken):
    parts = f"  cpu0: {cpu}\n  ram0: {memory}\n"
    found = findings(machine("ram0 -- cpu0: memory-bus", parts=parts))
    assert ("memory-not-taken" in [one.code for one in found]) is not taken


def test_the_memories_of_one_cpu_share_its_channels():
    parts = "  cpu0: xeon-8480c\n  ram[0-1]: {part: ddr5-4800, channels: 6}\n"
    (found,) = findings(machine("ram[0-1] -- cpu0: memory-bus", parts=parts))
    assert found.message == "cpu0 has 8 memory channels (xeon-8480c) for 12 channels of memory"


def test_one_link_that_neither_end_can_have_is_said_once():
    (found,) = findings(
        "topo: 1\ndevices:\n  cpu0: epyc-7742\n  gpu0: v100-pcie-32gb\nlinks:\n"
        "  - gpu0 -- cpu0: pcie 5 x16\n"
    )
    assert found.code == "pcie-generation"
    assert found.help == "write `pcie 3 x16`"


def test_advice_puts_right_all_that_is_wrong_with_a_link():
    found = findings(
        "topo: 1\ndevices:\n  cpu0: epyc-9554\n  nvme0: nvme-gen4-3.84tb\nlinks:\n"
        "  - nvme0 -- cpu0: pcie 5 x8\n"
    )
    assert [one.code for one in found] == ["pcie-generation", "lanes-over-slot"]
    assert {one.help for one in found} == {"write `pcie 4 x4`"}


# --- loops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "codes"),
    [
        ("sw0 -- cpu0: pcie 5 x16\nsw1 -- cpu0: pcie 5 x16", []),
        ("sw0 -- cpu0: pcie 5 x16\nsw0 -- cpu0: pcie 5 x16", []),
        ("sw0 -- cpu0: pcie 5 x16\nsw1 -- cpu1: pcie 5 x16\ncpu0 -- cpu1: upi 16 GT/s", []),
        ("sw0 -- cpu0: pcie 5 x16\nsw1 -- cpu0: pcie 5 x16\nsw0 -- sw1: pcie 5 x16", ["pcie-loop"]),
        ("gpu0 -- sw0: pcie 5 x8\ngpu0 -- sw1: pcie 5 x8\nsw0 -- sw1: pcie 5 x16", ["pcie-loop"]),
        ("sw -- sw all to all: pcie 5 x16\nsw0 -- cpu0: pcie 5 x16", ["pcie-loop"]),
    ],
)
def test_loops(links, codes):
    assert said(links) == codes


def test_a_loop_is_shown_whole_with_its_lines():
    text = machine("sw0 -- cpu0: pcie 5 x16\nsw1 -- cpu0: pcie 5 x16\nsw0 -- sw1: pcie 5 x16")
    found = next(one for one in findings(text) if one.code == "pcie-loop")
    assert found.message.endswith("sw0 - sw1 - cpu0 - sw0")
    assert found.notes == ("sw1 -- cpu0 is on line 7", "sw0 -- cpu0 is on line 6")


@pytest.mark.parametrize(("switches", "codes"), [(127, []), (128, ["pcie-too-deep"])])
def test_pcie_numbers_256_buses(switches, codes):
    """Each link is a bus, and so is the inside of each switch; bus 0 is the root's."""
    chain = "\n".join(f"sw{n} -- sw{n + 1}: pcie 5 x16" for n in range(switches - 1))
    links = f"sw0 -- cpu0: pcie 5 x16\n{chain}\ngpu0 -- sw{switches - 1}: pcie 5 x16"
    text = machine(links).replace("sw[0-3]", f"sw[0-{switches - 1}]")
    found = [one for one in findings(text) if one.code != "unreached"]
    assert [one.code for one in found] == codes
    assert all(one.message.startswith("gpu0 hangs below 128 PCIe links") for one in found)


# --- ways -----------------------------------------------------------------------------------------

LOAD = "workloads:\n  load: {read: 1 TB, from: storage0, to: gpu0}\n"
WHOLE = """storage0 -- nic0: infiniband ndr
nic0 -- cpu0: pcie 5 x16
gpu0 -- sw0: pcie 5 x16
sw0 -- cpu0: pcie 5 x16"""


def test_a_whole_way_is_no_mistake():
    assert said(WHOLE, rest=LOAD) == []


@pytest.mark.parametrize(
    ("cut", "culprit", "words"),
    [
        ("storage0 -- nic0", "storage", "storage0 has no link"),
        ("nic0 -- cpu0", "nic", "hangs only on nic0, which has no link to a CPU"),
        ("gpu0 -- sw0", "gpu", "gpu0 has no link"),
        ("sw0 -- cpu0", "sw", "gpu0 hangs only on sw0, which has no uplink"),
    ],
)
def test_a_broken_way_is_said_where_it_breaks(cut, culprit, words):
    text = machine(WHOLE, rest=LOAD)
    text = re.sub(rf".*{cut}.*\n", "", text)
    (found,) = [one for one in findings(text) if one.code == "no-way"]
    assert words in found.message
    assert found.source_line.strip().startswith(f"{culprit}[0-3]:")
    assert found.help.startswith("add `- ")


def test_the_same_gap_is_said_once_for_all_workloads():
    rest = LOAD + "  save: {write: 1 TB, from: gpu0, to: storage0}\n"
    assert said(WHOLE.replace("sw0 -- cpu0", "sw1 -- cpu0"), rest=rest) == ["no-way"]


def test_nvlink_is_no_way_to_storage():
    links = WHOLE.replace("gpu0 -- sw0: pcie 5 x16", "gpu1 -- sw0: pcie 5 x16")
    links += "\ngpu0 -- gpu1: 18x nvlink 4"
    (found,) = [one for one in findings(machine(links, rest=LOAD)) if one.code == "no-way"]
    assert "gpu0 hangs only on GPUs" in found.message


@pytest.mark.parametrize("links", ["gpu0 -- gpu1: nvlink 4", "gpu[0-1] -- nvswitch0: nvlink 4"])
def test_nvlink_is_a_way_between_gpus(links):
    copy = "workloads:\n  copy: {copy: 1 GB, from: gpu0, to: gpu1}\n"
    assert said(links, rest=copy) == []
    assert said(links, rest=copy.replace("gpu1", "gpu2")) == ["no-way"]


def test_a_file_without_links_is_a_beginning():
    (found,) = findings(f"topo: 1\ndevices:\n  storage0: nvme-of-target\n  gpu0: l40s\n{LOAD}")
    assert (found.code, found.severity) == ("no-way", "warning")
    assert findings("topo: 1\ndevices:\n  gpu0: l40s\n") == ()


def test_what_no_link_names_is_said_in_one_message():
    found = findings(
        "topo: 1\ndevices:\n  cpu0: epyc-9554\n  gpu0: l40s\n  nic0: connectx-7\n"
        "  nvme[0-1]: nvme-gen5-4tb\nlinks:\n  - gpu0 -- cpu0: pcie 4 x16\n"
    )
    assert [(one.code, one.place.line) for one in found] == [("unreached", 5)]
    assert "nic0, nvme0 and nvme1" in found[0].message


def test_what_hangs_together_and_on_no_cpu_is_said_in_one_message():
    found = findings(
        "topo: 1\ndevices:\n  cpu0: epyc-9554\n  gpu[0-1]: l40s\n  sw0: pcie-switch-gen5\n"
        "  nic0: connectx-7\nlinks:\n  - gpu0 -- cpu0: pcie 4 x16\n  - gpu1 -- sw0: pcie 4 x16\n"
        "  - nic0 -- sw0: pcie 5 x16\n"
    )
    assert [(one.code, one.place.line) for one in found] == [("unreached", 5)]


def test_memories_have_a_bus():
    text = (
        "topo: 1\ndevices:\n  cpu[0-1]: epyc-9554\n  ram[0-1]: {part: ddr5-4800, channels: 12}\n"
        "links:\n  - cpu0 -- cpu1: 3x xgmi 32 GT/s\n  - ram0 -- cpu0: memory-bus\n"
    )
    (found,) = findings(text)
    assert found.message == "ram1 has no bus: nothing joins it with a CPU"
    assert found.help == "add `- ram1 -- cpu1: memory-bus` to `links:`"


# --- networks -------------------------------------------------------------------------------------

SERVERS = """
topo: 1
devices:
  node[0-3]: {use: dgx-h100}
  leaf[0-1]: LEAF
  store: {part: nvme-of-target, read: 90 GB/s, write: 60 GB/s}
links:
LINKS
workloads:
  load: {read: 8 GB each, from: store, to: node.gpu}
"""


@pytest.mark.parametrize(
    ("leaf", "links", "gap", "cable"),
    [
        (
            "quantum-2",
            ["store -- leaf0: infiniband ndr", "node[0-1].slot1 -- leaf0: infiniband ndr"],
            "node[2-3].gpu[0-7]: no network link joins leaf0 with node2 and node3",
            "node2.slot1 -- leaf0: infiniband ndr",
        ),
        (
            "spectrum-4",
            ["store -- leaf0: ethernet 400 Gb/s", "node[0-2].slot2 -- leaf0: ethernet 400 Gb/s"],
            "node3.gpu[0-7]: no network link joins leaf0 with node3",
            "node3.slot2 -- leaf0: ethernet 400 Gb/s",
        ),
        (
            "quantum-2",
            ["store -- leaf0: infiniband ndr", "node.slot1 -- leaf1: infiniband ndr"],
            "node[0-3].gpu[0-7]: no network link joins leaf0 with leaf1",
            "leaf1 -- leaf0: infiniband ndr",
        ),
        (
            "quantum-2",
            ["store -- node0.slot1: infiniband ndr"],
            "node[1-3].gpu[0-7]: no network link joins node0 with node[1-3]",
            "node1.slot1 -- node0.slot1: infiniband ndr",
        ),
    ],
)
def test_servers_lack_a_network_not_a_socket_link(leaf, links, gap, cable):
    text = SERVERS.replace("LEAF", leaf)
    text = text.replace("LINKS", "".join(f"  - {link}\n" for link in links).rstrip())
    (finding,) = (told for told in findings(text) if told.code != "unreached")  # leaf1
    assert (finding.code, finding.message) == ("no-way", f"nothing joins store to {gap}")
    assert finding.help == f"add `- {cable}`"
    assert finding.place.file != "topologies/dgx-h100.yaml"
    more = "".join(f"  - {line}\n" for line in [finding.help[7:-1]])
    after = findings(text.replace("links:\n", f"links:\n{more}"))
    assert gap not in {told.message.partition(" to ")[2] for told in after}


def test_a_network_switch_is_led_to_a_card_never_to_a_cpu():
    (finding,) = findings(
        machine(
            "storage -- leaf0: infiniband ndr\nnic0 -- cpu0: pcie 5 x16\ngpu0 -- cpu0: pcie 5 x16",
            parts="  leaf0: quantum-2\n  nic0: connectx-7\n"
            "  cpu0: xeon-8480c\n  gpu0: h100-sxm-80gb\n  storage: nvme-of-target\n",
            rest="workloads:\n  load: {read: 1 GB, from: storage, to: gpu0}\n",
        )
    )
    assert finding.help == "add `- nic0 -- leaf0: infiniband ndr`"


# --- all together ---------------------------------------------------------------------------------

ENDS = [f"{stem}{number}" for stem in PARTS for number in range(2)]
CABLES = [
    *("pcie 5 x16", "pcie 4 x4", "pcie unknown x16", "infiniband ndr", "2x ethernet 400 Gb/s"),
    *("18x nvlink 4", "upi 16 GT/s", "xgmi 64 GB/s", "nvlink-c2c unknown", "memory-bus"),
]


@given(
    st.lists(
        st.tuples(st.sampled_from(ENDS), st.sampled_from(ENDS), st.sampled_from(CABLES)),
        max_size=12,
    )
)
def test_any_wiring_is_judged_and_each_mistake_said_once(links):
    lines = "".join(f"  - {a} -- {b}: {cable}\n" for a, b, cable in links if a != b)
    devices = "".join(f"  {stem}[0-1]: {part}\n" for stem, part in PARTS.items())
    text = f"topo: 1\ndevices:\n{devices}links:\n{lines or '  []'}\n{LOAD}"
    found = findings(text)
    assert found == findings(text)
    assert len({(one.code, one.place, one.message) for one in found}) == len(found)
    assert all(one.place.line > 0 and one.help for one in found)


def test_one_rdma_name_of_two_cards_is_told_by_server():
    ends = "slot0 -- cpu0: pcie 5 x16\nslot1 -- cpu{}: pcie 5 x16"
    parts = "  slot[0-1]: {part: connectx-7, rdma: mlx5_0}\n  cpu[0-1]: xeon-8480c\n"

    def said(cpu):
        text = machine(ends.format(cpu), parts=parts)
        return [one for one in findings(text) if one.code == "duplicate-rdma-name"]

    (finding,) = said(0)
    assert finding.severity == "warning"
    assert "slot0 and slot1 both have the RDMA name mlx5_0" in finding.message
    assert said(1) == []  # two servers, as nothing joins the CPUs
