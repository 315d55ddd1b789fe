"""Settings of the host, and measurements."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, only, read
from topo.description.dump import to_document
from topo.description.keys import ROUTING
from topo.description.loading import build


@pytest.mark.parametrize(
    ("text", "iommu"),
    [("off", "off"), ("no", "off"), ("false", "off"), ("on", "on"), ("passthrough", "passthrough")],
)
def test_iommu(text, iommu):
    settings = read(f"{BOX}settings: {{iommu: {text}}}\n").settings
    assert (settings.iommu, settings.filesystem, settings.transport) == (iommu, None, None)
    assert settings.places["iommu"].line == 10


def test_the_others():
    settings = read(f"{BOX}settings: {{filesystem: lustre, transport: tcp, x-a: 1}}\n").settings
    assert (settings.filesystem, settings.transport) == ("lustre", "tcp")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("compat-mode: allowed", "compat_mode", "allowed"),
        ("compat-mode: yes", "compat_mode", "allowed"),
        ("compat-mode: no", "compat_mode", "off"),
        ("dynamic-routing: off", "dynamic_routing", ()),
        ("dynamic-routing: true", "dynamic_routing", ROUTING),
        ("dynamic-routing: [SYS_MEM, P2P]", "dynamic_routing", ("SYS_MEM", "P2P")),
        ("dynamic-routing: SYS_MEM", "dynamic_routing", ("SYS_MEM",)),
        ("direct-writes: false", "direct_writes", "off"),
        ("p2pdma: on", "p2pdma", "on"),
        ("gds-support: [nvme, lustre, nvme]", "gds_support", ("nvme", "lustre")),
        ("gds-support: none", "gds_support", ()),
        ("gds-support: []", "gds_support", ()),
        ("gds-denied: [zfs, nvme]", "gds_denied", ("zfs", "nvme")),
    ],
)
def test_what_cufile_is_told(text, name, value):
    description = read(f"{BOX}settings: {{{text}}}\n")
    assert getattr(description.settings, name) == value
    again = build(to_document(description))
    assert getattr(again.settings, name) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{compat-mode: sometimes}", "unknown-word"),
        ("{dynamic-routing: [SYS_MEM, WARP]}", "unknown-word"),
        ("{dynamic-routing: {a: b}}", "wrong-shape"),
        ("{direct-writes: maybe}", "unknown-word"),
        ("{gds-support: [zfs]}", "unknown-word"),
        ("{iommu: maybe}", "unknown-word"),
        ("{iommu: {a: b}}", "wrong-shape"),
        ("{transport: roce}", "unknown-word"),
        ("{iomu: on}", "unknown-key"),
        ("{filesystem:}", "missing-value"),
        ("off", "wrong-shape"),
    ],
)
def test_a_wrong_setting(text, code):
    assert only(f"{BOX}settings: {text}\n").code == code


def measured(*lines):
    text = BOX + "measured:\n" + "".join(f"  - {line}\n" for line in lines)
    return [(m.source, m.target, m.rate.value) for m in read(text).measurements]


def test_a_measurement_has_its_source():
    text = "measured:\n  - ram0 -> gpu0: {rate: 55.6 GB/s, source: nvbandwidth, date: 2026-11-02}\n"
    (found,) = read(BOX + text).measurements
    assert (found.source, found.target, found.date) == ("ram0", "gpu0", "2026-11-02")
    assert (found.rate.value, found.rate.kind, found.rate.source) == (
        55.6e9,
        "measured",
        "nvbandwidth",
    )


def test_a_measurement_without_one_is_its_line():
    (found,) = read(f"{BOX}measured:\n  - gpu0 -> slot1: 22 GB/s\n").measurements
    assert found.rate.source == "<text>:11"


def test_measurements_pair_and_fan_out():
    assert measured('"gpu[0-1] -> slot1": 22 GB/s', "ram -> cpu: 5 GB/s") == [
        ("gpu0", "slot1", 22e9),
        ("gpu1", "slot1", 22e9),
        ("ram0", "cpu0", 5e9),
        ("ram1", "cpu1", 5e9),
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("gpu0 -- slot1: 22 GB/s", "not-a-cable"),
        ("gpu0 -> slot1: 22", "bare-number"),
        ("gpu0 -> slot1: 0 GB/s", "bad-number"),
        ("gpu0 -> slot1: {source: x}", "missing-key"),
        ("gpu0 -> slot1: {rate: 5 GB/s, dat: x}", "unknown-key"),
        ("gpu -> slot: 5 GB/s", "unpaired"),
        ("gpu9 -> slot1: 5 GB/s", "unknown-name"),
        ("gpu0 -> slot1 5 GB/s", "link-without-colon"),
    ],
)
def test_a_wrong_measurement(line, code):
    assert only(f"{BOX}measured:\n  - {line}\n").code == code
