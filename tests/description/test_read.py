"""Settings of the host."""

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
