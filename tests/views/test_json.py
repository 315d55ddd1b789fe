"""Values in JSON: clean numbers, null for what is unknown, no folders."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.catalogue.part import Figure
from topo.errors import Place
from topo.views.json import encoded, keys_of, plain
from topo.views.keys import number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.4 / 0.8, 1.75),
        (1e11, 100000000000),
        (99999999999.99998, 100000000000),
        (1099511627776.0, 1099511627776),
        (63015384615.384613, 63015384615.4),
        (0.1 + 0.2, 0.3),
        (0.0, 0),
        (7, 7),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (None, None),
        (1e300, 1e300),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown
    assert type(number(value)) is type(shown)


@given(st.floats())
def test_a_number_is_close_or_null(value):
    shown = number(value)
    if math.isfinite(value):
        assert shown == pytest.approx(value, rel=1e-11, abs=0)
    else:
        assert shown is None


documents = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), documents))
def test_every_document_is_json(document):
    def refuse(name):
        raise AssertionError(name)

    text = encoded(document)
    assert text.endswith("\n")
    assert set(json.loads(text, parse_constant=refuse)) == set(document)


def test_a_flag_stays_a_flag():
    assert json.loads(encoded({"a": True, "b": (1, 2.0)})) == {"a": True, "b": [1, 2]}
    assert "true" in encoded({"a": True})


def test_a_folder_is_not_told():
    text = encoded({"source": "/home/me/box.yaml:3", "other": "/home/you/x"}, folder="/home/me")
    assert json.loads(text) == {"source": "box.yaml:3", "other": "/home/you/x"}


def test_unlimited_is_null_and_said():
    shown = plain(Figure(math.inf, "quoted", "here"))
    assert shown == {"bytes_per_s": None, "kind": "quoted", "source": "here", "unlimited": True}


def test_places():
    assert plain(Place("box.yaml", 3, 5, 9)) == {
        "file": "box.yaml",
        "line": 3,
        "column": 5,
    }


@dataclass(frozen=True)
class Stay:
    """A value that no table knows."""

    memory: str
    rate: float | None
    finish: float
    note: str = ""
    before: Stay | None = None


SHORT = Stay("ram0", 1e11, math.inf)
LONG = Stay("ram1", None, 2.5, before=SHORT)


def test_a_value_is_its_fields_in_order_with_units():
    shown = plain(LONG)
    assert list(shown) == ["memory", "rate_bytes_per_s", "finish_s", "note", "before"]
    assert shown["rate_bytes_per_s"] is None
    assert shown["before"]["rate_bytes_per_s"] == 100000000000
    assert shown["before"]["finish_s"] is None


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("memory:ram", {"ram": "ram1"}),
        ("rate:rate", {"rate": None}),
        ("note", {"note": ""}),
        ("note?", {"note": None}),
        ("before.memory", {"memory": "ram0"}),
        ("before.before.memory:first", {"first": None}),
        (
            "finish before.rate *before",
            {
                "finish_s": math.inf,
                "rate_bytes_per_s": 1e11,
                "memory": "ram0",
                "note": "",
                "before": None,
            },
        ),
    ],
)
def test_a_shape_says_what_is_shown(words, keys):
    assert keys_of(LONG, *words.split()) == keys
