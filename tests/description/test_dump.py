"""A description written back is the same description."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.description.reading import BOX, CABLED, EXAMPLES, SHARED, needs_examples, plain, read
from tests.description.strategies import machines
from topo.description.dump import to_document
from topo.description.keys import document_of
from topo.description.loading import builtin_names, describe, load
from topo.document.nodes import Report


def again(document):
    found = document_of(document)
    return describe(found, Report(found))


def assert_comes_back(description):
    document = to_document(description)
    assert json.loads(json.dumps(document)) == document
    back = again(document)
    assert plain(back) == plain(description)
    assert to_document(back) == document


@given(machines())
def test_a_machine_comes_back(document):
    assert_comes_back(again(document))


@pytest.mark.parametrize("name", builtin_names())
def test_what_topo_ships_comes_back(name):
    assert_comes_back(load(name))


@needs_examples
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "pod"])  # `use:`
def test_examples_come_back(name):
    assert_comes_back(load(SHARED / f"{name}.yaml"))


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
