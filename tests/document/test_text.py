"""Bytes into text: encodings and other kinds of file are named."""

import gzip

import pytest

from topo.document.text import character, read_text
from topo.errors import DocumentError


def finding_of(data):
    with pytest.raises(DocumentError) as caught:
        read_text(data, "box.yaml")
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("a: é\n", id="text"),
        pytest.param("a: é\n".encode(), id="utf-8"),
        pytest.param("a: é\n".encode("utf-8-sig"), id="byte-order-mark"),
        pytest.param("\ufeffa: é\r\n", id="crlf"),
        pytest.param("a: é\r", id="cr"),
    ],
)
def test_utf8_with_any_line_breaks_is_read(data):
    assert read_text(data, "box.yaml") == "a: é\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_named_with_or_without_a_mark(encoding):
    finding = finding_of("topo: 1\nname: box\n".encode(encoding))
    assert (finding.code, finding.message) == ("encoding", "this is UTF-16")
    assert finding.help == "save it as UTF-8"


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf32_is_named_with_or_without_a_mark(encoding):
    assert finding_of("topo: 1\nname: box\n".encode(encoding)).message == "this is UTF-32"


def test_latin_1_is_shown_at_its_place():
    finding = finding_of("a: b\nü: cé\n".encode()[:-3] + b"\xe9 d\n")
    assert finding.message == "the byte 0xE9 is not UTF-8; in Latin-1 it is `é`"
    assert (finding.place.line, finding.place.column) == (2, 5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(gzip.compress(b"a: b"), "this is a gzip file, not YAML", id="gzip"),
        pytest.param(b"\x89PNG\r\n\x1a\n", "this is a PNG picture, not YAML", id="png"),
        pytest.param(b"\x7fELF\x02\x01", "this is an ELF program, not YAML", id="elf"),
        pytest.param(b"PK\x03\x04", "this is a zip file, not YAML", id="zip"),
        pytest.param(b"%PDF-1.7", "this is a PDF file, not YAML", id="pdf"),
        pytest.param(b"a: b\0\0\0c\x01\x02", "this is a binary file, not YAML", id="nulls"),
        pytest.param(b"\xfe\x01\x02\x03", "this is a binary file, not YAML", id="bytes"),
        pytest.param(b"<system version='1'>\n", "this is XML, not YAML", id="xml"),
    ],
)
def test_another_kind_of_file_is_named(data, message):
    assert finding_of(data).message == message


@pytest.mark.parametrize(
    "char", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\ud800", "\uffff"]
)
def test_a_character_that_cannot_be_seen_is_refused(char):
    finding = finding_of(f"a: b\nc: d{char}e\n")
    assert finding.code == "control-character"
    assert character(char) in finding.message
    assert (finding.place.line, finding.place.column) == (2, 5)
    assert finding.source_line == "c: d\ufffde"


def test_every_line_with_such_a_character_is_named():
    with pytest.raises(DocumentError) as caught:
        read_text("\x07a\x07\n\nb\n c\x07", "box.yaml")
    places = [(each.place.line, each.place.column) for each in caught.value.findings]
    assert places == [(1, 1), (4, 3)]
