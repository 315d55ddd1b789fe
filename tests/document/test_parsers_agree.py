"""Any bytes are read or refused, and which of the two YAML parsers runs makes no difference."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topo.document.nodes import Document
from topo.document.parse import _fast_parser, parse
from topo.errors import DocumentError

both_parsers = pytest.mark.skipif(
    _fast_parser() is None, reason="PyYAML was built without libyaml: there is nothing to compare"
)

# Pieces of YAML, right and wrong, that meet in every order.
PIECES = [
    *" \n:-,[]{}#'\"?!&*|>%@`\\~a1.\t\u00a0\u201c<=é漢",
    *("a: ", "- ", "? ", ": ", ", ", "\n  ", "\n- ", "\n a", "\n  a: b", "\n\n", "- - "),
    *("{a: ", "[a, ", '"a":b', "a:b", "a?", "a b", "key: value\n", "gpu[0-7]", "1,5 TB", "<<"),
    *("---", "...", "\n---\n", "%YAML", "&a ", "*a", "!a ", "| ", "|\n ", ">\n  ", "|2\n", "|-\n"),
    *('"a"', "'a'", '"\\n"', "\\\n", "\\x41", "''", "#c", " #c\n"),
]
yamlish = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def outcome(data, *, pure):
    """Return everything that a caller can see of reading `data`."""
    try:
        return parse(data, name="box.yaml", pure=pure)
    except DocumentError as error:
        return error.findings


@both_parsers
@given(yamlish)
@example("{medium: pcie ? x16}")  # libyaml reads it, the pure parser does not
@example("a: |#")  # the same
@example("b\n]#\t")  # a tab behind what only looks like a comment
@example("{a: }")  # two opinions on where nothing stands
@example('a: "\\UFFFFFFFF"')  # the pure parser raises ValueError
@example('a: "\\uD800"')  # the pure parser reads half a character
@example('b\n"\n---\n?')
def test_both_parsers_give_the_same_tree_or_the_same_findings(text):
    assert outcome(text, pure=False) == outcome(text, pure=True)


@given(st.one_of(st.binary(max_size=60), yamlish.map(str.encode), st.text(max_size=40)))
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf")
@example("\ud800")
def test_any_bytes_are_a_document_or_findings_with_places(data):
    result = outcome(data, pure=False)
    if not isinstance(result, Document):
        assert result
        assert all(each.message and each.place.line >= 1 <= each.place.column for each in result)


@given(yamlish)
def test_no_finding_quotes_the_yaml_library(text):
    result = outcome(text, pure=True)
    if not isinstance(result, Document):
        words = " ".join(f"{each.message} {each.help}" for each in result)
        assert "<block" not in words
        assert "while scanning" not in words
        assert "expected <" not in words


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(max_size=12)))
def test_a_place_points_at_its_key(entries):
    lines = [f"{key}: '{_printable(value)}'" for key, value in entries.items()]
    result = outcome("{" + ",\n ".join(lines) + "}", pure=False)
    assert isinstance(result, Document)
    for key, value in result.root:
        line = result.line(key.place.line)
        assert line[key.place.column - 1 : key.place.end_column - 1] == key.text
        assert line[value.place.column - 1] == "'"
        assert value.text == _printable(entries[key.text])


def _printable(text):
    kept = "".join(char for char in text if char.isprintable() and char not in "'\ufeff")
    return kept.strip()
