"""Where a topology comes from: files, built-ins, standard input, texts and dicts."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from tests.description.reading import BOX, only, read
from topo.description.as_document import to_document
from topo.description.description import ROUTING
from topo.description.loading import build, describe, load, loads
from topo.description.locating import builtin_names
from topo.document.nodes import Report
from topo.document.parse import parse
from topo.errors import DescriptionError, DocumentError, TopoError

TEXT = "topo: 1\ndevices: {gpu0: rtx-4090}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.yaml").write_text("# My box.\n#  Notice: nothing.\n\n# no\n" + TEXT)
    return tmp_path


def read_with_findings(text):
    document = parse(text)
    report = Report(document)
    describe(document, report)
    return report.findings


def refused(argument):
    with pytest.raises(TopoError) as raised:
        load(argument)
    (finding,) = raised.value.findings
    return finding


@pytest.mark.parametrize("argument", ["box.yaml", "./box.yaml", Path("box.yaml")])
def test_a_file_by_its_path(folder, argument):
    description = load(argument)
    assert (description.name, description.file) == ("box", str(argument))
    assert description.comment == "My box.\n Notice: nothing."
    assert description.devices[0].place.file == str(argument)


def test_a_file_without_a_suffix_needs_a_slash(folder):
    (folder / "plain").write_text(TEXT)
    assert load("./plain").name == "plain"
    finding = refused("plain")
    assert finding.help == "a file or folder is meant with a slash: `./plain`"


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert load("-").file == "<stdin>"


def test_built_ins_come_by_name():
    assert builtin_names() == tuple(sorted(builtin_names()))
    for name in builtin_names():
        description = load(name)
        assert description.file == f"topologies/{name}.yaml"


@pytest.mark.parametrize(
    ("argument", "code", "says", "advice"),
    [
        ("bx.yaml", "no-file", "there is no file `bx.yaml`", "did you mean `box.yaml`?"),
        ("nowhere/box.yaml", "no-file", "there is no folder `nowhere`", ""),
        ("./", "unreadable-file", "`./` is a folder", "name a file in it"),
        ("a\0.yaml", "unreadable-file", "cannot be read", ""),
        ("box", "unknown-name", "no topology `box`", "the file beside you is `box.yaml`"),
        ("zzzz", "unknown-name", "no topology `zzzz`", "a file's name ends in .yaml"),
    ],
)
def test_what_is_not_there(folder, argument, code, says, advice):
    finding = refused(argument)
    assert finding.code == code
    assert says in finding.message
    assert advice in finding.help
    assert str(folder) not in f"{finding.message}{finding.help}{finding.notes}"


def test_an_unknown_built_in_names_the_near_one_or_lists_those_that_are(monkeypatch, folder):
    monkeypatch.setattr(sys.modules["topo.description.locating"], "_FOLDERS", (folder,))
    near, far = refused("boxx"), refused("crate")
    assert (near.help, near.notes) == ("did you mean `box`?", ())
    assert (far.help, far.notes) == ("a file's name ends in .yaml", ("built in: box",))
    assert load("box").name == "box"
    assert refused("./topology/box.yaml").code == "no-file"
    (folder / "deep").mkdir()
    assert refused("deep/box.yaml").help == "the built-in is `box`, without a folder or .yaml"


def test_a_file_that_may_not_be_read(folder, monkeypatch):
    def refuse(path, flags):
        raise PermissionError

    monkeypatch.setattr(os, "open", refuse)
    assert refused("box.yaml").message == "`box.yaml` may not be read"
    assert refused("./").message == "`./` is a folder"


def test_texts_and_bytes():
    assert loads(TEXT).name == "topology"
    assert loads(TEXT.encode(), name="here").file == "here"


def test_a_dict_meets_the_same_rules():
    description = build(
        {
            "topo": 1,
            "devices": {
                "cpu[0-1]": {"part": "epyc-7742", "numa": ["0-3", "4-7"]},
                "sw0": {"part": "pcie-switch-gen4", "acs": False},
                "ram[0-1]": {"part": "ddr4-3200", "channels": 8.0, "efficiency": 0.7},
            },
            "links": [
                {"ram -- cpu": "memory-bus"},
                {"cpu0 -- cpu1": "3x xgmi 16 GT/s"},
                {"sw0 -- cpu0": "pcie 4 x16"},
            ],
            "settings": {"iommu": False},
        }
    )
    devices = {device.name: device for device in description.devices}
    assert devices["sw0"].part.flag("acs") is False
    assert devices["ram0"].part.figure("channels").value == 8
    assert devices["ram0"].part.figure("efficiency").value == 0.7
    assert description.settings.iommu == "off"


@pytest.mark.parametrize(
    ("document", "code", "file"),
    [
        ({"topo": 1, "devices": {"gpu0": {"part": "l40z"}}}, "unknown-part", "devices.gpu0.part"),
        ({"topo": 1, "links": [1]}, "not-a-cable", "links.0"),
        ({"topo": 1, "devices": {"gpu0": object()}}, "wrong-shape", "devices.gpu0"),
        ({"topo": 1, "devices": {"gpu0": None}}, "missing-value", "devices.gpu0"),
        ({"topo": 1, "name": float("nan")}, "wrong-shape", "name"),
        ({"topo": 2}, "version", "topo"),
        ({}, "version", "<dict>"),
        ([], "wrong-shape", "<dict>"),
    ],
)
def test_a_mistake_in_a_dict_names_the_way_to_it(document, code, file):
    with pytest.raises(DescriptionError) as raised:
        build(document)
    (finding,) = raised.value.findings
    assert (finding.code, finding.place.file) == (code, file)


def test_a_dict_that_contains_itself():
    document: dict[str, object] = {"topo": 1}
    document["parts"] = document
    with pytest.raises(DescriptionError) as raised:
        build(document)
    assert raised.value.findings[0].code == "too-deep"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("name: x", "version", "the first line of a topology is `topo: 1`"),
        ("topo: 2", "version", "here stands 2"),
        ("topo: 1.0", "version", "here stands 1.0"),
        ("topo: [1]", "version", "here stands a list"),
        ("services: {a: b}", "version", "a Compose file"),
        ("apiVersion: v1\nkind: Pod", "version", "a Kubernetes manifest"),
        ("- a", "wrong-shape", "a list"),
        ("hello", "wrong-shape", "`hello`"),
        ("topo: 1\ndevics: {}", "unknown-key", "`devics`"),
        ("topo: 1\ndevices: [a]", "wrong-shape", "`devices:` is a mapping, not a list"),
        ("topo: 1\nname: [a]", "wrong-shape", "`name:` is a text"),
        ("topo: 1\nmedia: [a]", "wrong-shape", "`media:` is a mapping"),
        ("topo: 1\nparts: x", "wrong-shape", "`parts:` is a mapping"),
        ("topo: 1\ndata-paths: x", "wrong-shape", "`data-paths:` is a mapping"),
        ("topo: 1\nmedia: {pcie 5: {rate: 1 GB/s, b c}}", "comma-in-text", "the comma ends"),
        ("topo: 1\ndevices: {gpu0: {label: a, b, part: l4}}", "comma-in-text", "`a`, and `b`"),
        ("topo: 1\nlinks:\n  - [{a: b, c}]", "comma-in-text", "`b`"),
    ],
)
def test_a_text_that_is_no_topology(text, code, says):
    finding = only(text)
    assert finding.code == code
    assert says in finding.message


def test_an_empty_text():
    with pytest.raises(DocumentError):
        loads("")


@pytest.mark.parametrize(
    "text",
    [
        "topo: 1\ndevices: {s: {part: nvme-of-target, source: a, b, outside: yes}}",
        "topo: 1\ndevices: {s: l40s, t: l40s}\nmeasured: [{s -> t: {rate: 1 GB/s, source: a, b}}]",
        "{topo: 1, title: a, b}",
        "topo: 1\ndata-paths: {own: {title: a, b, moves: [storage -> gpu by nic]}}",
    ],
)
def test_a_comma_in_a_sentence_is_said_and_read_on(text):
    found = read_with_findings(text)
    assert [(finding.code, finding.severity) for finding in found] == [("comma-in-text", "warning")]


# --- settings of the host -------------------------------------------------------------------------


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
