"""A document written as YAML says the same, and is laid out as `topo fmt` lays it out."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.description.reading import EXAMPLES, SHARED, needs_examples
from tests.description.strategies import machines
from topo.description.dump import to_document
from topo.description.format import format_text
from topo.description.keys import document_of
from topo.description.loading import builtin_names, describe, load
from topo.description.write import Comments, to_yaml
from topo.document.nodes import Report
from topo.document.parse import parse


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
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "pod"])  # `use:`
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
