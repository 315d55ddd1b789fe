"""Devices: ranges, lists dealt out, figures of their own."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, findings_of, only, read
from topo.description.loading import loads


def devices(*lines):
    text = "topo: 1\ndevices:\n" + "".join(f"  {line}\n" for line in lines)
    return {device.name: device for device in read(text).devices}


def wrong(*lines):
    return only("topo: 1\ndevices:\n" + "".join(f"  {line}\n" for line in lines))


def test_a_device_is_its_part_or_a_mapping():
    found = devices("gpu0: l40s", "gpu1: {part: l40s, label: left, role: compute, slot: PCIE1}")
    assert found["gpu0"].part is found["gpu1"].part
    assert (found["gpu1"].label, found["gpu1"].role, found["gpu1"].slot_name) == (
        "left",
        "compute",
        "PCIE1",
    )


def test_devices_keep_the_order_of_the_file():
    assert list(devices("nic0: connectx-7", "gpu[0-1]: l40s", "cpu0: epyc-9554")) == [
        "nic0",
        "gpu0",
        "gpu1",
        "cpu0",
    ]


def test_what_a_range_says_holds_for_each():
    found = devices("gpu[0-1]: {part: l40s, memory: 40 GB, role: x}")
    assert found["gpu0"].part is found["gpu1"].part
    assert found["gpu0"].part.figure("memory").value == 40e9
    assert found["gpu0"].part.figure("memory").source == "<text>:3"
    assert found["gpu1"].role == "x"


def test_a_list_on_a_range_deals_out_one_each():
    found = devices(
        "nic[0-1]: {part: [connectx-6, connectx-7], label: [PCIE3, PCIE7], rdma: [a, b]}"
    )
    assert [device.part.name for device in found.values()] == ["connectx-6", "connectx-7"]
    assert [device.label for device in found.values()] == ["PCIE3", "PCIE7"]
    assert [device.rdma for device in found.values()] == [("a",), ("b",)]


def test_figures_are_dealt_out_too():
    found = devices("s[0-1]: {part: nvme-of-target, read: [10 GB/s, 20 GB/s]}")
    assert [device.part.figure("read").value for device in found.values()] == [10e9, 20e9]


def test_a_list_of_parts_is_dealt_out():
    found = devices("gpu[0-1]: [l40s, h100-sxm-80gb]")
    assert [device.part.name for device in found.values()] == ["l40s", "h100-sxm-80gb"]


def test_a_list_on_one_device_is_one_entry_a_function():
    found = devices("nic0: {part: connectx-7-dual-port, pci: [AA:00.0, aa:00.1], rdma: [a, b]}")
    assert found["nic0"].pci == ("aa:00.0", "aa:00.1")
    assert found["nic0"].rdma == ("a", "b")


def test_lists_of_functions_are_dealt_out_to_a_range():
    found = devices("nic[0-1]: {part: connectx-7, pci: [[1a:00.0, 1a:00.1], 1b:00.0]}")
    assert [device.pci for device in found.values()] == [("1a:00.0", "1a:00.1"), ("1b:00.0",)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3", (0, 1, 2, 3)), ("2", (2,)), ("[0, 2-3]", (0, 2, 3)), ('"0,2"', (0, 2))],
)
def test_numa_nodes_of_one_cpu(text, numbers):
    assert devices(f"cpu0: {{part: epyc-7742, numa: {text}}}")["cpu0"].numa == numbers


def test_numa_nodes_are_dealt_over_cpus():
    found = devices("cpu[0-1]: {part: epyc-7742, numa: [0-3, 4-7]}")
    assert [device.numa for device in found.values()] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_an_address_keeps_its_domain():
    assert devices("gpu0: {part: l40s, pci: '0002:03:00.0'}")["gpu0"].pci == ("0002:03:00.0",)


def test_a_stand_in_is_outside():
    assert devices("s: {part: nvme-of-target, outside: yes}")["s"].outside


def test_own_keys_are_not_read():
    assert list(devices("x-note: {a: 1}", "gpu0: {part: l40s, x-rack: 7}")) == ["gpu0"]


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (
            ["slot[1-3]: {part: connectx-7, pci: [aa:00.0, 29:00.0]}"],
            "list-length",
            "2 addresses for 3 devices; slot3 has none",
        ),
        (
            ["slot[1-4]: {part: connectx-7, label: [a]}"],
            "list-length",
            "1 label for 4 devices; slot[2-4] have none",
        ),
        (
            ["slot[1-2]: {part: connectx-7, role: [a, b, c]}"],
            "list-length",
            "3 values for 2 devices; the last 1 belongs to none",
        ),
        (["gpu[0-1]: []"], "list-length", "0 values for 2 devices; gpu0 and gpu1 have none"),
        (["gpu0: [l40s]"], "wrong-shape", "gpu0 is a part or a mapping, not a list"),
        (["gpu0: {part: {a: b}}"], "wrong-shape", "the part of gpu0 is a text, not a mapping"),
        (["gpu0:"], "missing-value", "the part of gpu0 has no value"),
        (["gpu[0-7]: {label: x}"], "missing-key", "gpu0 does not say its part"),
        (["gpu[0-7]: {model: l40s}"], "unknown-key", "`model` is not a key of a device"),
        (["gpu[0-7]: {part: l40s, lable: x}"], "unknown-key", "`lable` is not a key of a device"),
        (["gpu[0-7]: l40z"], "unknown-part", "there is no part `l40z`"),
        (["gpu[0-7]: {part: l40s, pci: 1b}"], "bad-address", "`1b` is not a PCI address"),
        (["gpu[0-7]: {part: l40s, memory: 40}"], "bare-number", "a size needs a unit: 40 GB?"),
        (
            ["gpu[0-7]: {part: l40s, outside: perhaps}"],
            "bad-flag",
            "`perhaps` is neither yes nor no",
        ),
        (["cpu0: {part: epyc-7742, numa: x}"], "bad-range", "`x` is not a range of numbers"),
        (["cpu0: {part: epyc-7742, numa: {a: b}}"], "wrong-shape", "`numa` is a text"),
        (["gpu[0-5]: l40s", "gpu[4-7]: l40s"], "defined-twice", "gpu4 and gpu5 are defined twice"),
        (["gpu[0-5]: l40s", "gpu3: l40s"], "defined-twice", "gpu3 is defined twice"),
        (["gpu0: l40s", "GPU0: l40s"], "case-clash", "GPU0 and gpu0 differ only in case"),
        (["storage: nvme-of-target", "storage1: nvme-of-target"], "name-clash", "`storage` is"),
        (
            ["gpu[0-1]: {part: l40s, pci: 1b:00.0}"],
            "duplicate-address",
            "1b:00.0 is given twice: to gpu0 and to gpu1",
        ),
        (
            ["a: {part: l40s, pci: 1b:00.0}", "b: {part: l40s, pci: '00000000:1B:00.0'}"],
            "duplicate-address",
            "to a and to b",
        ),
        (["cpu[0-1]: {part: epyc-7742, numa: 0-3}"], "defined-twice", "both have NUMA node 0"),
        (["gpu0: {part: l40s, numa: 0}"], "misplaced-key", "NUMA nodes belong to a CPU"),
    ],
)
def test_a_mistake_is_said_once(lines, code, message):
    finding = wrong(*lines)
    assert finding.code == code
    assert message in finding.message


def test_a_repeated_device_knows_where_it_was_first():
    finding = wrong("gpu[0-7]: l40s", "gpu[6-9]: l40s")
    assert finding.place.line == 4
    assert finding.notes == ("first defined on line 3",)


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["ram0: ddr5-4800"], "`channels:`"),
        (["raid: raid-card-gen4"], "`read:` and `write:`"),
        (["raid: {part: raid-card-gen4, read: 28 GB/s}"], "`write:`"),
    ],
)
def test_a_missing_figure_is_neither_unknown_nor_unlimited(lines, keys):
    finding = wrong(*lines)
    assert finding.code == "missing-figure"
    assert f"does not say its {keys}" in finding.message
    assert "`unknown`" in finding.help


def test_a_missing_figure_of_a_shipped_part_is_shown_written():
    finding = wrong("raid: raid-card-gen4")
    assert finding.help.endswith("`raid: {part: raid-card-gen4, read: unknown, write: unknown}`")


def test_a_part_of_ones_own_must_state_its_figures_once():
    text = "topo: 1\nparts:\n  acme: {kind: storage, write: 9 GB/s}\ndevices: {a: acme, b: acme}\n"
    finding = only(text)
    assert finding.code == "missing-figure"
    assert finding.message == "`acme` does not say its `read:`, and a and b need it"
    assert "`unlimited`" in finding.help
    assert finding.place.line == 3


@pytest.mark.parametrize("word", ["unknown", "unlimited"])
def test_unknown_and_unlimited_are_figures(word):
    found = devices(f"s: {{part: nvme-of-target, read: {word}, write: 9 GB/s}}")
    assert not found["s"].part.figure("read").known


def test_no_devices_is_a_warning():
    (finding,) = loads("topo: 1").findings
    assert (finding.code, finding.severity) == ("no-devices", "warning")


def test_a_part_of_ones_own_is_used_like_a_built_in():
    text = BOX.replace("storage: nvme-of-target", "storage: acme").replace(
        "devices:", "parts:\n  acme: {like: nvme-of-target, read: 90 GB/s, source: sheet}\ndevices:"
    )
    description = read(text)
    assert description.parts["acme"] is description.devices[0].part
    assert description.parts["acme"].figure("read").source == "sheet"
    assert description.likes == {"acme": "nvme-of-target"}


def test_both_mistakes_of_two_devices_come_out_at_once():
    codes = [
        finding.code
        for finding in findings_of("topo: 1\ndevices: {gpu0: l40z, gpu1: {part: l40s, pci: 7}}")
    ]
    assert codes == ["unknown-part", "bad-address"]
