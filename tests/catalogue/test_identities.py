"""The tables of numbers and names by which hardware says what it is."""

from __future__ import annotations

import re

import pytest

from topo.catalogue.identities import (
    compute_of,
    generation_of_transfer_rate,
    generations,
    kind_of_class,
    numbers_of,
    nvlink_of,
    pci_table,
    processor,
    processor_named,
    role_of,
    switch_of,
    transfer_rate,
    vendor_name,
    vendor_named,
)
from topo.catalogue.kinds import KINDS
from topo.catalogue.parts import catalogue


def test_every_number_and_name_is_a_part():
    parts = catalogue().parts
    for part in (*pci_table("numbers").values(), *pci_table("names").values()):
        assert part in parts
        assert parts[part].kind in ("gpu", "nic", "dpu", "nvme")


def test_numbers_are_hexadecimal_and_names_lower_case():
    for key in pci_table("numbers"):
        assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", key)
    for key in (*pci_table("vendors"), *pci_table("classes")):
        assert re.fullmatch(r"[0-9a-f]{2}|[0-9a-f]{4}", key)
    for key in (*pci_table("roles"), *pci_table("switches")):
        assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{0,4}", key)
    assert all(name == name.lower() for name in pci_table("names"))


def test_the_table_says_where_it_comes_from():
    assert pci_table("source").startswith("the PCI ID Repository")


def test_kinds_and_switches_are_ones_that_there_are():
    kinds = {row["kind"] for row in pci_table("classes").values() if "kind" in row}
    assert kinds <= {*KINDS}
    parts = catalogue().parts
    assert all(parts[part].kind == "pcie-switch" for part in pci_table("switches").values())


def test_the_first_number_of_a_part_is_the_one_written():
    assert numbers_of("mi300x") == ("1002", "74a1")
    assert numbers_of("connectx-7-dual-port") == ("15b3", "1021")
    assert numbers_of("no-such-part") is None


def test_the_longer_beginning_of_a_vendors_name_decides():
    assert vendor_named("Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran") == "1002"
    assert vendor_named("Advanced Micro Devices, Inc. [AMD] Starship") == "1022"


def test_a_vendor_by_number():
    assert vendor_name("0x10DE") == "NVIDIA"
    assert vendor_name("1234") == "vendor 1234"
    assert vendor_name("") == ""


@pytest.mark.parametrize(
    ("code", "kind"), [("0302", "gpu"), ("1280", "gpu"), ("010802", "nvme"), ("0300", None)]
)
def test_a_kind_by_class(code, kind):
    assert kind_of_class(code) == kind


def test_what_a_class_does_not_tell():
    assert role_of("1a03", "2000") == "console"
    assert role_of("8086", "2250") == "co-processor"
    assert role_of("8086", "1592") == ""
    assert switch_of("1000", "c030") == "pcie-switch-gen5"


def test_nvlinks_by_compute_capability():
    assert [nvlink_of(level) for level in (60, 86, 90, 100, 120)] == [
        "nvlink 1",
        "nvlink ga102",
        "nvlink 4",
        "nvlink 5",
        "nvlink 5",
    ]
    assert nvlink_of(75) == nvlink_of(None) == "nvlink unknown"
    assert compute_of("nvlink 2") == "70"


def test_every_row_of_a_processor_names_a_part_and_a_cable_of_the_catalogue():
    media = catalogue().media
    families = {name.partition(" ")[0] for name in media}
    for cpu in (processor("GenuineIntel", 6, 0x8F), processor("AuthenticAMD", 25, 1)):
        assert cpu is not None
        assert catalogue().parts[cpu.like].kind == "cpu"
        assert cpu.cable.partition(" ")[0] in families


def test_a_processor_by_cpuid():
    emerald = processor("GenuineIntel", 6, 207)
    haswell = processor("GenuineIntel", 6, 63)
    netburst = processor("GenuineIntel", 15, 207)
    assert emerald is not None
    assert emerald.title == ("Intel", "Emerald Rapids")
    assert haswell is not None
    assert (haswell.like, haswell.cable) == ("cpu-unknown", "qpi unknown")
    assert netburst is not None
    assert netburst.title == ("Intel", "")
    assert processor("Unheard", 6, 1) is None
    desktop = processor("GenuineIntel", 6, 183)  # between two Xeons by number
    assert desktop is not None
    assert (desktop.like, desktop.title) == ("cpu-unknown", ("Intel", ""))


def test_a_processor_by_name():
    assert processor_named("AMD EPYC 7763") == ("epyc", "xgmi unknown")
    assert processor_named("Intel Xeon (Sapphire Rapids)") == ("xeon-scalable", "upi unknown")
    assert processor_named("Intel Core (Skylake, IBRS)") == ("cpu-unknown", "")
    assert processor_named("AMD EPYC") == ("cpu-unknown", "xgmi unknown")
    assert processor_named("Intel Xeon CPU E5-2680 v4") == ("cpu-unknown", "qpi unknown")


def test_generations_and_transfer_rates_belong_together():
    for generation in generations():
        assert generation_of_transfer_rate(transfer_rate(generation)) == generation


@pytest.mark.parametrize("family", [26, 0xBF])
def test_zen_5_in_both_of_its_writings(family):
    cpu = processor("AuthenticAMD", family, 2)
    assert cpu is not None
    assert cpu.title == ("AMD", "Zen 5")
