"""`docs/language.md` and `topo explain` have the whole language: every key of the schema."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from docs.language import PAGE, with_every_key
from topo.catalogue.kinds import KINDS
from topo.cli.program import main
from topo.description.locating import builtin_names
from topo.description.reference import key_uses
from topo.description.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = TEXT.partition("## Every key")[0]


def schema_keys(schema: Any) -> Iterator[str]:
    """Yield every key that a schema names, at any depth."""
    if isinstance(schema, list):
        for item in schema:
            yield from schema_keys(item)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from schema_keys(value)


KEYS = sorted(set(schema_keys({**json_schema(), "$schema": ""})))


def test_the_tables_are_current():
    assert with_every_key(TEXT).rstrip() == TEXT.rstrip()


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_schema_is_in_the_tables(key):
    assert f"\n| `{key}` |" in TEXT


def test_no_key_is_made_up():
    assert {use.key for use in key_uses()} <= set(KEYS)


@pytest.mark.parametrize("word", sorted({*KEYS, *KINDS}))
def test_every_key_and_kind_is_explained(capsys, word):
    assert main(["explain", word]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{word}: ")
    for use in key_uses():
        if use.key == word:
            assert " ".join(use.meaning.split()) in " ".join(printed.split())


def test_machines_to_start_from_are_built_in():
    recipes = SHOWN.partition("## A recipe")[2]
    named = [
        re.findall(r"`([^`]+)`", line.split("|")[3])
        for line in recipes.split("\n")
        if "| `" in line
    ]
    assert set(chain.from_iterable(named)) <= set(builtin_names())
