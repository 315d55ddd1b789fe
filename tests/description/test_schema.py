"""The JSON Schema: valid itself, and true of every file that topo ships."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from tests.description.reading import EXAMPLES, SHARED, needs_examples
from tests.description.strategies import machines
from topo.catalogue.cables import CABLE_KEYS
from topo.catalogue.fields import FIELDS, MEDIUM_FIELDS, PART_WORDS
from topo.description import keys as tables
from topo.description.as_document import to_document
from topo.description.loading import build, describe, load
from topo.description.locating import builtin_names, builtin_text
from topo.description.python_values import document_of
from topo.description.schema import VALUES, WORDS, json_schema
from topo.document.nodes import Mapping, Report, Sequence
from topo.document.parse import parse

jsonschema = pytest.importorskip("jsonschema")
TABLES = [
    table
    for name, table in vars(tables).items()
    if name.isupper()
    and isinstance(table, dict)
    and all(isinstance(row, tables.Row) for row in table.values())
]


@pytest.fixture(scope="module")
def judge():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def as_editors_see(node):
    """Return a node as YAML 1.2 reads it: unquoted numbers and booleans are not texts."""
    if isinstance(node, Mapping):
        return {key.text: as_editors_see(value) for key, value in node}
    if isinstance(node, Sequence):
        return [as_editors_see(item) for item in node.items]
    if not node.quoted and re.fullmatch(r"[-+]?[0-9]+", node.text):
        return int(node.text)
    if not node.quoted and re.fullmatch(r"[-+]?[0-9]*\.[0-9]+", node.text):
        return float(node.text)
    if not node.quoted and node.text in {"true", "false"}:
        return node.text == "true"
    return node.text


def complaints(judge, document):
    return [f"{error.json_path}: {error.message[:200]}" for error in judge.iter_errors(document)]


@pytest.mark.parametrize("name", builtin_names())
def test_what_topo_ships_is_valid(judge, name):
    text = builtin_text(name)
    assert complaints(judge, as_editors_see(parse(text).root)) == []
    assert complaints(judge, to_document(load(name))) == []


@needs_examples
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "custom"])
def test_examples_are_valid(judge, name):
    # It has a comma in a sentence, which only topo reads on over.
    text = (SHARED / f"{name}.yaml").read_bytes()
    assert complaints(judge, as_editors_see(parse(text).root)) == []


@given(machines())
def test_what_loads_is_valid(document):
    judge = jsonschema.Draft202012Validator(json_schema())
    assert complaints(judge, document) == []
    found = document_of(document)
    assert complaints(judge, to_document(describe(found, Report(found)))) == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"topo": 2},
        {"topo": 1, "devics": {}},
        {"topo": 1, "devices": {"0gpu": "l40s"}},
        {"topo": 1, "devices": {"gpu0": {"lable": "x", "part": "l40s"}}},
        {"topo": 1, "devices": {"gpu0": {"label": "x"}}},
        {"topo": 1, "devices": {"gpu0": {"part": "l40s", "memory": "40"}}},
        {"topo": 1, "devices": {"gpu0": {"part": "l40s", "pci": "1b"}}},
        {"topo": 1, "links": {"a -- b": "pcie 5 x16"}},
        {"topo": 1, "links": [{"a - b": "pcie 5 x16"}]},
        {"topo": 1, "links": [{"a -- b": "pcie 5 x16", "c -- d": "pcie 5 x16"}]},
        {"topo": 1, "workloads": {"load": {"from": "a", "to": "b"}}},
        {"topo": 1, "workloads": {"load": {"read": "640", "from": "a", "to": "b"}}},
        {"topo": 1, "settings": {"iommu": "maybe"}},
        {"topo": 1, "data-paths": {"own": {"moves": ["storage to gpu"]}}},
        {"topo": 1, "expect": "fast"},
    ],
    ids=str,
)
def test_what_does_not_load_is_not_valid(judge, document):
    with pytest.raises(Exception, match="error"):
        build(document)
    assert complaints(judge, document)


def test_a_move_over_links_of_a_kind_is_valid(judge):
    moves = ["peer -> staging-gpu by nic", {"staging-gpu -> gpu by gpu over gpu-links": "9 GB/s"}]
    host = ["peer -> gpu by gpu over pcie"]
    document = {
        "topo": 1,
        "devices": {"gpu0": "l40s"},
        "data-paths": {
            "own": {"moves": moves},
            "host": {"moves": host},
        },
    }
    description = build(document)
    assert complaints(judge, document) == []
    assert complaints(judge, to_document(description)) == []
    assert build(to_document(description)).data_paths["host"].moves[0].over == "pcie"


def test_every_key_of_every_table_is_in_it():
    text = json.dumps(json_schema(), ensure_ascii=False)
    for meaning in (
        *(row.meaning for table in TABLES for row in table.values()),
        *(field.meaning for field in FIELDS.values()),
        *(field.meaning for field in MEDIUM_FIELDS.values()),
        *PART_WORDS.values(),
    ):
        assert json.dumps(meaning, ensure_ascii=False) in text


def test_a_workload_of_any_direction_is_valid(judge):
    for direction in ("read", "write", "copy"):
        workload = {direction: "1 GB", "from": "gpu0", "to": "gpu1"}
        machine = {
            "topo": 1,
            "devices": {"gpu[0-1]": "a100-sxm-40gb"},
            "workloads": {"w": workload},
        }
        assert complaints(judge, machine) == []
    both = {"read": "1 GB", "copy": "1 GB", "from": "gpu0", "to": "gpu1"}
    assert complaints(judge, {"topo": 1, "workloads": {"w": both}})


def test_every_row_holds_a_value_that_has_a_schema():
    for table in TABLES:
        for name, row in table.items():
            assert name == row.name
            assert (row.holds in VALUES) != (row.holds in WORDS)


def test_a_cable_has_the_keys_that_its_reader_takes():
    assert tuple(tables.CABLE) == CABLE_KEYS


def test_each_call_gives_a_schema_of_its_own():
    json_schema()["$defs"].clear()
    assert json_schema()["$defs"]
