"""Findings as people read them, and as programs do."""

import pytest

from topo.errors import Finding, Place
from topo.views.documents import findings_document
from topo.views.findings import render_findings
from topo.views.json import plain

TYPO = Finding(
    "unknown-part",
    "no part `conectx-7`",
    Place("box.yaml", 14, 16, 25),
    help="did you mean `connectx-7`?",
    notes=("parts of kind nic: connectx-6, connectx-7",),
    source_line="  nic0: {part: conectx-7}",
)
NO_WAY = Finding("no-way", "nothing joins storage to gpu3")


def carets(source, column, end_column, message="m"):
    """Return the source line and the caret line of a finding on line 1."""
    finding = Finding("code", message, Place("f", 1, column, end_column), source_line=source)
    lines = render_findings([finding]).split("\n")
    return lines[2].removeprefix("1 | "), lines[3].removeprefix("  | ")


def test_a_finding_shows_its_line_with_carets_help_and_notes():
    assert render_findings([TYPO], analysed=False) == (
        "box.yaml:14:16: error[unknown-part]: no part `conectx-7`\n"
        "   |\n"
        "14 |   nic0: {part: conectx-7}\n"
        "   |                ^^^^^^^^^\n"
        "   = help: did you mean `connectx-7`?\n"
        "   = note: parts of kind nic: connectx-6, connectx-7\n"
        "\n"
        "1 error; nothing was analysed\n"
    )


def test_a_finding_without_a_place_is_one_line():
    warning = Finding("stale", "the figure is old", severity="warning")
    assert render_findings([NO_WAY, warning]) == (
        "error[no-way]: nothing joins storage to gpu3\n"
        "warning[stale]: the figure is old\n"
        "\n"
        "1 error, 1 warning\n"
    )


def test_findings_with_a_source_stand_apart():
    assert render_findings([NO_WAY, TYPO, NO_WAY]).count("\n\n") == 3


def test_no_findings_are_no_text():
    assert render_findings([]) == ""


@pytest.mark.parametrize(
    ("severities", "analysed", "last"),
    [
        (["error", "error"], False, "2 errors; nothing was analysed"),
        (["error"], True, "1 error"),
        (["warning", "note", "note"], False, "1 warning, 2 notes"),
    ],
)
def test_the_last_line_counts(severities, analysed, last):
    findings = [Finding("code", "message", severity=severity) for severity in severities]
    assert render_findings(findings, analysed=analysed).split("\n")[-2] == last


@pytest.mark.parametrize(
    ("source", "column", "end_column", "shown", "marked"),
    [
        pytest.param("abc", 2, 0, "abc", " ^", id="start-only"),
        pytest.param("abc", 4, 4, "abc", "   ^", id="behind-the-end"),
        pytest.param("abc", 9, 12, "abc", "   ^", id="past-the-end"),
        pytest.param("漢字: 漢x", 5, 7, "漢字: 漢x", "      ^^^", id="wide"),
        pytest.param("e\u0301: x", 5, 6, "e\u0301: x", "   ^", id="combining"),
        pytest.param("a:\tb", 4, 5, "a:  b", "    ^", id="tab"),
        pytest.param("\tb", 1, 2, "    b", "^^^^", id="the-tab"),
        pytest.param("a\x1bb", 3, 4, "a\ufffdb", "  ^", id="escape"),
    ],
)
def test_carets_stand_under_the_span(source, column, end_column, shown, marked):
    assert carets(source, column, end_column) == (shown, marked)


def test_a_long_line_is_cut_around_its_span():
    source = "x" * 500 + "HERE" + "y" * 500
    shown, marked = carets(source, 501, 505)
    assert shown.startswith("...x")
    assert shown.endswith("y...")
    assert len(shown) <= 106
    assert shown[marked.index("^") : len(marked)] == "HERE"


def test_a_long_span_is_marked_as_far_as_it_is_shown():
    shown, marked = carets("a: " + "x" * 500, 4, 504)
    assert (len(shown), len(marked)) == (103, 100)


def test_a_message_cannot_move_the_cursor():
    text = render_findings([Finding("code", "a\x1b[2Jb\nc", help="d\re")])
    assert "\x1b" not in text
    assert "\r" not in text
    assert text.count("\n") == 4


def test_colour_changes_nothing_but_escapes():
    import re

    coloured = render_findings([TYPO, NO_WAY], color=True)
    assert "\x1b[1;31merror[unknown-part]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_findings([TYPO, NO_WAY])


def test_the_document_names_every_field():
    assert plain(findings_document([TYPO, NO_WAY])) == {
        "schema": "topo.findings/1",
        "findings": [
            {
                "code": "unknown-part",
                "severity": "error",
                "message": "no part `conectx-7`",
                "help": "did you mean `connectx-7`?",
                "notes": ["parts of kind nic: connectx-6, connectx-7"],
                "file": "box.yaml",
                "line": 14,
                "column": 16,
                "end_column": 25,
            },
            {
                "code": "no-way",
                "severity": "error",
                "message": "nothing joins storage to gpu3",
                "help": None,
                "notes": [],
                "file": None,
                "line": None,
                "column": None,
                "end_column": None,
            },
        ],
    }
