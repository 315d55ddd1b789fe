"""dmidecode: memory modules and channels, slots, CPUs."""

from __future__ import annotations

import re

import pytest

from tests.discovery.test_combine import codes, nccl, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

HEAD = "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n"


def module(locator, bank="Not Specified", size="64 GB", sort="DDR5", speed=4800, configured=None):
    configured = speed if configured is None else configured
    return (
        "Handle 0x0040, DMI type 17, 92 bytes\nMemory Device\n\tArray Handle: 0x003F\n"
        f"\tTotal Width: 80 bits\n\tSize: {size}\n\tForm Factor: DIMM\n\tSet: None\n"
        f"\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: {sort}\n"
        f"\tSpeed: {speed} MT/s\n\tRank: 2\n\tConfigured Memory Speed: {configured} MT/s\n"
        "\tMemory Technology: DRAM\n\n"
    )


def empty(locator, bank="Not Specified"):
    return (
        "Handle 0x0041, DMI type 17, 92 bytes\nMemory Device\n\tSize: No Module Installed\n"
        f"\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: Unknown\n\tSpeed: Unknown\n\n"
    )


def slot(name, address, usage="In Use"):
    return (
        "Handle 0x0004, DMI type 9, 24 bytes\nSystem Slot Information\n"
        f"\tDesignation: {name}\n\tType: x16 PCI Express 5 x16\n\tCurrent Usage: {usage}\n"
        "\tLength: Long\n\tCharacteristics:\n\t\t3.3 V is provided\n\t\tPME signal is supported\n"
        f"\tBus Address: {address}\n\n"
    )


def cpu(model, status="Populated, Enabled"):
    return (
        "Handle 0x0060, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU1\n"
        f"\tVersion: {model}\n\tStatus: {status}\n\n"
    )


def two_sockets(locator, bank="Not Specified", *, channels=8, a_channel=1, **values):
    """Modules of two CPUs by the patterns of their names: {p} {letter} {channel} {dimm}."""
    text = HEAD
    for p in range(2):
        for channel in range(channels):
            for dimm in range(a_channel):
                words = {"p": p, "n": p + 1, "letter": "ABCDEFGHIJKL"[channel]}
                words |= {"channel": channel, "dimm": dimm, "number": dimm + 1}
                text += module(locator.format(**words), bank.format(**words), **values)
    return text


BOARDS = {
    "all of it": ("P{n}-DIMM{letter}{number}", "P{p}_Node0_Channel{channel}_Dimm{dimm}"),
    "letters alone": ("P{n}-DIMM{letter}{number}", "Not Specified"),
    "the CPU in the middle": ("DIMM_P{p}_{letter}{dimm}", "BANK {channel}"),
    "the CPU in front": ("CPU{p}_DIMM_{letter}{number}", "NODE {p}"),
    "the bank alone": ("DIMM {dimm}", "P{p} CHANNEL {letter}"),
    "a node for a socket": ("DIMM_{letter}{number}", "NODE {p}"),
    "short": ("DIMM {dimm}", "P{p}-CH {letter}"),
    "digits": ("CPU{p}_C{channel}D{dimm}", "NODE {p}"),
}  # fmt: skip
PLAIN = {
    "modules": two_sockets(*BOARDS["letters alone"], channels=4),
    "slots": HEAD + slot("SLOT1", "0000:12:00.0") + slot("SLOT2", "0000:ff:00.0", "Available"),
    "all": two_sockets(*BOARDS["the bank alone"], channels=2)
    + slot("SLOT1", "0000:12:00.0")
    + cpu("Intel(R) Xeon(R) Platinum 8480C") * 2,
}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "dmi.txt")


def memories(machine):
    return [(memory.part, dict(memory.facts)) for memory in machine.of_kind("memory")]


def beside(data, text, name="a.txt"):
    return import_together([discover(None, data, name), told(text)])


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "dmidecode"
    with pytest.raises(ExchangeError, match=r"tells its .* and not what machine"):
        import_text(None, text.encode(), "dmi.txt")


@pytest.mark.parametrize(("locator", "bank"), BOARDS.values(), ids=BOARDS)
@pytest.mark.parametrize("a_channel", [1, 2])
def test_channels_by_the_names_that_boards_have(locator, bank, a_channel):
    machine = told(two_sockets(locator, bank, a_channel=a_channel))
    size = f"{8 * a_channel * 64 * 2**30 / 1e9:.4g} GB"
    if a_channel == 2:
        size = f"{8 * a_channel * 64 * 2**30 / 1e12:.4g} TB"
    assert memories(machine) == [("ddr5-4800", {"channels": "8", "size": size})] * 2
    assert machine.of_kind("memory")[0].evidence.endswith("of DDR5 at 4800 MT/s in 8 channels")


@pytest.mark.parametrize(
    "locator", ["A{number}{channel}", "DIMM {channel}", "PROC {n} DIMM {channel}"]
)
def test_names_without_channels_leave_them_unknown(locator):
    machine = told(two_sockets(locator))
    assert {part for part, _ in memories(machine)} == {"memory-unknown"}
    assert all("channels" not in facts for _, facts in memories(machine))
    assert [finding.code for finding in machine.findings] == ["channels-not-told"]
    found = beside(smi(), two_sockets(locator))
    assert "which channels they are in is not told" in found.yaml
    assert re.search(r"ram\[0-1\]: {part: memory-unknown, size: 5[45]\S+ GB}", found.yaml)


def test_names_that_are_given_twice_are_no_channels():
    machine = told(HEAD + module("DIMM_A1") * 2 + module("DIMM_B1") * 2)
    assert "channels" not in memories(machine)[0][1]


def test_nodes_of_a_cpu_are_no_further_channels_of_the_same_name():
    """Two channels in each of four quadrants: EPYC 7002."""
    text = HEAD + "".join(
        module(f"P1-DIMM{'ABCDEFGH'[at]}1", f"P0_Node{at // 2}_Channel{at % 2}_Dimm0", sort="DDR4",
               speed=3200)
        for at in range(8)
    )  # fmt: skip
    assert memories(told(text)) == [("ddr4-3200", {"channels": "8", "size": "549.8 GB"})]


def test_empty_slots_and_memory_that_keeps_its_contents_do_not_count():
    persistent = module("P1-DIMMB2", size="126 GB").replace(
        "DRAM", "Intel Optane persistent memory"
    )
    text = HEAD + module("P1-DIMMA1") + empty("P1-DIMMA2") + module("P1-DIMMB1") + persistent
    assert memories(told(text)) == [("ddr5-4800", {"channels": "2", "size": "137.4 GB"})]


@pytest.mark.parametrize(
    ("sort", "rated", "configured", "part", "rate"),
    [
        ("DDR5", 5600, 4400, "ddr5-4400", None),
        ("DDR4", 2933, 2934, "ddr4-2933", None),
        ("DDR4", 3200, 1600, "ddr4-2133", "1600 MT/s"),  # as slow as DDR4 can be
        ("DDR4", 2666, 1333, "ddr4-2666", None),  # a clock
        ("DDR5", 8800, 8800, "mrdimm-8800", None),
        ("DDR5", 7200, 7200, "ddr5-6400", "7200 MT/s"),
        ("DRAM", 4800, 4800, "memory-unknown", None),
    ],
)
def test_speeds(sort, rated, configured, part, rate):
    machine = told(HEAD + module("P1-DIMMA1", sort=sort, speed=rated, configured=configured))
    ((name, facts),) = memories(machine)
    assert (name, facts.get("transfer-rate")) == (part, rate)


def test_the_slowest_module_is_the_speed_of_all():
    text = HEAD + module("P1-DIMMA1", configured=4400, speed=4800) + module("P1-DIMMB1")
    assert memories(told(text))[0][0] == "ddr5-4400"


def test_ram_stops_being_unknown():
    found = beside(smi(), two_sockets(*BOARDS["letters alone"]))
    assert "ram[0-1]: {part: ddr5-4800, channels: 8, size: 549.8 GB}" in found.yaml
    assert "part, channels, size from dmi.txt" in found.yaml


def test_a_size_that_the_system_does_not_have_is_said():
    text = two_sockets(*BOARDS["letters alone"])
    half = text.replace("64 GB", "32 GB")
    found = import_together([discover(None, smi(), "a.txt"), told(text), told(half)])
    assert "sources-disagree" in codes(found)


def test_slots_by_the_address_of_what_is_in_them():
    found = beside(nccl(), PLAIN["slots"])
    assert "slot: SLOT1" in found.yaml
    assert "SLOT2" not in found.yaml
    twice = HEAD + slot("SLOT1", "0000:12:00.0") + slot("SLOT9", "0000:12:00.0")
    with pytest.raises(ExchangeError, match="no memory module, no slot in use"):
        told(twice)


def test_cpus():
    found = beside(smi(), PLAIN["all"])
    assert "cpu[0-1]: {part: xeon-8480c, numa: [0, 1]}" in found.yaml
    empty_socket = HEAD + cpu("AMD EPYC 7763 64-Core Processor") + cpu("x", "Unpopulated")
    assert [one.part for one in told(empty_socket).of_kind("cpu")] == ["epyc-7763"]


def test_a_virtual_machine_with_a_socket_for_each_thread():
    machine = told(HEAD + cpu("pc-i440fx-6.2") * 192 + module("DIMM 0", sort="RAM", speed=0))
    assert len(machine.of_kind("cpu")) == 1
