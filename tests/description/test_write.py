"""A description written as a document, and that as YAML, is the same; laid out as by `topo fmt`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.description.reading import BOX, CABLED, EXAMPLES, SHARED, needs_examples, plain, read
from tests.description.strategies import machines
from topo.description.as_document import to_document
from topo.description.format import format_text
from topo.description.loading import describe, load, loads
from topo.description.locating import builtin_names
from topo.description.python_values import document_of
from topo.description.write import Comments, to_yaml
from topo.document.nodes import Report
from topo.document.parse import parse

# --- descriptions as documents --------------------------------------------------------------------


def again(document):
    found = document_of(document)
    return describe(found, Report(found))


def assert_document_comes_back(description):
    document = to_document(description)
    assert json.loads(json.dumps(document)) == document
    back = again(document)
    assert plain(back) == plain(description)
    assert to_document(back) == document


@given(machines())
def test_a_machine_comes_back(document):
    assert_document_comes_back(again(document))


@pytest.mark.parametrize("name", builtin_names())
def test_what_topo_ships_comes_back(name):
    assert_document_comes_back(load(name))


@needs_examples
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_come_back(name):
    assert_document_comes_back(load(SHARED / f"{name}.yaml"))


@given(st.floats(1, 1e3), st.floats(0, 1), st.floats(0, 1))
def test_ranges_come_back(value, below, above):
    """Of parts, media and devices: what a figure may be at least and at most."""
    low, high = value * (1 - below / 2), value * (1 + above)
    ranged = {"value": f"{value!r} GB/s", "range": f"{low!r}-{high!r} GB/s", "kind": "guess"}
    ratio = {"value": "80 %", "range": "75-85 %", "source": "us"}
    description = again(
        {
            "topo": 1,
            "parts": {"drive": {"like": "nvme-gen4-3.84tb", "read": ranged}},
            "media": {"pcie 4": {"like": "pcie 4", "efficiency": ratio}},
            "devices": {
                "a": "drive",
                "b": {"part": "drive", "write": {**ranged, "source": "us"}},
                "c": {"part": "xeon-8480c", "p2p": {"posted": ranged, "non-posted": "1 GB/s"}},
            },
        }
    )
    assert description.devices[0].part.figures["read"].range == pytest.approx(
        (low * 1e9, high * 1e9)
    )
    caps = description.devices[2].part.peer_caps
    assert caps.posted.rate.range == description.devices[0].part.figures["read"].range
    assert description.devices[1].part.figures["write"].range is not None
    assert_document_comes_back(description)


def test_every_device_has_a_key_of_its_own():
    document = to_document(read(BOX + CABLED))
    assert document["devices"]["gpu3"] == "h100-sxm-80gb"
    assert document["devices"]["ram1"] == {"part": "ddr5-4800", "channels": 8}
    assert document["devices"]["cpu0"] == {"part": "xeon-8480c", "numa": [0, 1, 2, 3]}
    assert {"gpu7 -- cpu1": "pcie 5 x16"} in document["links"]


def test_sources_that_somebody_gave_stay():
    text = BOX + "parts: {acme: {like: nvme-of-target, read: 90 GB/s, source: a sheet}}\n"
    description = read(text, overrides={"storage.part": "acme", "storage.write": "5 GB/s"})
    document = to_document(description)
    assert document["parts"]["acme"] == {
        "like": "nvme-of-target",
        "read": "90 GB/s",
        "source": "a sheet",
    }
    assert document["devices"]["storage"]["write"] == {"value": "5 GB/s", "source": "--set"}
    assert again(document).parts["acme"].figure("read") == description.parts["acme"].figure("read")


def test_what_was_changed_in_a_built_in_data_path_stays():
    description = read(BOX, overrides={"legacy.workers": "3"})
    assert to_document(description)["data-paths"] == {"legacy": {"workers": "3"}}
    description = read(BOX, overrides={"direct.needs": ["rdma"]})
    assert to_document(description)["data-paths"] == {"direct": {"needs": ["rdma"]}}


# --- documents as YAML ----------------------------------------------------------------------------


def assert_comes_back(description):
    document = to_document(description)
    text = to_yaml(document)
    assert format_text(text) == text
    parsed = parse(text, name="topology")
    back = to_document(describe(parsed, Report(parsed)))
    links = document.pop("links", []), back.pop("links", [])
    assert back == document
    assert sorted(map(str, links[1])) == sorted(map(str, links[0]))  # lines that are alike join


@pytest.mark.parametrize("name", builtin_names())
def test_what_topo_ships_is_written_and_read(name):
    assert_comes_back(load(name))


@given(machines())
def test_any_machine_is_written_and_read(document):
    found = document_of(document)
    assert_comes_back(describe(found, Report(found)))


@needs_examples
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_written_and_read(name):
    assert_comes_back(load(SHARED / f"{name}.yaml"))


def test_comments_stand_beside_what_they_are_about():
    document = {
        "topo": 1,
        "name": "box",
        "devices": {"gpu0": "l40s", "gpu1": "l40s", "cpu0": "epyc"},
        "links": [{"gpu0 -- cpu0": "pcie 4 x16"}, {"gpu1 -- cpu0": "pcie 4 x16"}],
    }
    comments = Comments(
        head=("A box.",),
        above={"gpu1": ("its slot is not told",)},
        devices={"gpu0": "class 0302", "gpu1": "class 0302", "cpu0": "EPYC"},
        links=("x16", "x16 and more"),
    )
    assert (
        to_yaml(document, comments)
        == """\
# A box.
topo: 1
name: box

devices:
  # gpu1: its slot is not told
  gpu[0-1]: l40s  # class 0302
  cpu0:     epyc  # EPYC

links:
  - gpu -- cpu0: pcie 4 x16  # x16 and others
"""
    )


def test_switches_that_all_meet_are_one_line():
    devices = {f"{stem}{at}": "quantum-2" for stem in ("leaf", "spine") for at in range(3)}
    links = [{f"leaf{a} -- spine{b}": "infiniband ndr"} for a in range(3) for b in range(3)]
    text = to_yaml({"topo": 1, "devices": devices, "links": links})
    assert "- leaf -- spine all to all: infiniband ndr" in text
    assert len(loads(text).links) == 9


def test_links_of_alike_hosts_are_one_line():
    text = to_yaml(to_document(load("pod-32")))
    assert "  node[0-31]:     {use: dgx-h100}" in text
    assert "  - node.slot1 -- leaf[0,2] in blocks: infiniband ndr" in text
    uses = {f"node{at:02d}": {"use": "dgx-h100"} for at in range(1, 13)}
    devices = {**uses, **{f"tor{at}": "quantum-2" for at in range(12)}}
    links = [{f"node{at + 1:02d}.slot1 -- tor{at}": "infiniband ndr"} for at in range(12)]
    text = to_yaml({"topo": 1, "devices": devices, "links": links})
    assert "  node[01-12]: {use: dgx-h100}" in text
    assert "  - node.slot1 -- tor: infiniband ndr" in text
    assert [(link.a.device, link.b.device) for link in loads(text).links] == [
        (f"node{at + 1:02d}.slot1", f"tor{at}") for at in range(12)
    ]


def test_a_line_is_never_longer_than_yaml_takes_a_key():
    """Every second of 2,000 cards on a switch of its own."""
    devices = {f"nic{at}": "connectx-7" for at in range(4000)}
    devices |= {f"leaf{at}": "quantum-2" for at in range(4000)}
    links = [{f"nic{at} -- leaf{at}": "infiniband ndr"} for at in range(0, 4000, 2)]
    text = to_yaml({"topo": 1, "devices": devices, "links": links})
    assert max(map(len, text.splitlines())) < 1024
    assert [(link.a.device, link.b.device) for link in loads(text).links] == [
        (f"nic{at}", f"leaf{at}") for at in range(0, 4000, 2)
    ]
