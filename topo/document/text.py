r"""Bytes or text in, plain text out: encodings recognised, strange characters named.

What passes has ``\n`` as its only line break and no character that an editor does not show, so
that everyone (two YAML parsers, an editor, a person) counts the same lines and columns.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from topo.errors import DocumentError, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_KINDS: Final = (
    (b"\x1f\x8b", "a gzip file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"\x7fELF", "an ELF program"),
    (b"PK\x03\x04", "a zip file"),
    (b"%PDF-", "a PDF file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
)
# Not printable in YAML (C0, C1, surrogates, non-characters), or a line break that editors do not
# agree on (NEL, U+2028, U+2029), or a byte order mark in the middle.
_STRANGE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_XML: Final = re.compile(r"[ \t\n]*<[?!a-zA-Z][^\n]*>")
_SHOWN: Final = 20  # findings of one kind


def read_text(data: str | bytes, name: str) -> str:
    r"""Return `data` as text with ``\n`` line breaks and without a byte order mark.

    Raises
    ------
    DocumentError
        With the code `encoding`, `binary`, `not-yaml` (XML) or `control-character`.
    """
    text = data if isinstance(data, str) else _decoded(data, name)
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _XML.match(text):
        raise DocumentError(_xml(name))
    if _STRANGE.search(text):
        raise DocumentError(capped(_strange_characters(text, name)))
    return text


def capped(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the first findings of one kind, so that a mistake on every line is said twenty times.

    >>> from topo.errors import Finding
    >>> kept = capped(Finding("tab", "a tab") for _ in range(10**9))
    >>> len(kept), kept[-1].notes
    (20, ('more of this kind follow',))
    """
    kept = list(islice(findings, _SHOWN + 1))
    if len(kept) <= _SHOWN:
        return kept
    last = kept[_SHOWN - 1]
    return [*kept[: _SHOWN - 1], replace(last, notes=(*last.notes, "more of this kind follow"))]


def character(char: str) -> str:
    r"""Name a character that cannot be seen.

    >>> character("\u00a0"), character("\x00")
    ('U+00A0 NO-BREAK SPACE', 'U+0000')
    """
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def _decoded(data: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            raise DocumentError(_encoding(encoding, name))
    for magic, kind in _KINDS:
        if data.startswith(magic):
            raise DocumentError(_binary(kind, name))
    head = data[:4096]
    if b"\0" in head:
        raise DocumentError(_with_nulls(head, name))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(_not_utf8(data, error.start, name)) from None


def _with_nulls(head: bytes, name: str) -> Finding:
    """Tell UTF-16 or UTF-32 without a mark, where every other byte is zero, from binary."""
    for zeros, encoding in ((3, "UTF-32"), (1, "UTF-16")):
        step = zeros + 1
        units = max(1, len(head) // step)
        # Nearly all characters are ASCII: little-endian has the zeros last, big-endian first.
        most = max(head[1::step].count(0), head[0::step].count(0))
        both = zeros == 1 or (head[1::step].count(0) and head[2::step].count(0))
        if both and most >= 0.9 * units and head.count(0) <= zeros * units + step:
            return _encoding(encoding, name)
    return _binary("a binary file", name)


def _not_utf8(data: bytes, start: int, name: str) -> Finding:
    before = data[:start]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
    source = data[before.rfind(b"\n") + 1 :].split(b"\n", 1)[0].decode("latin-1").rstrip("\r")
    if _STRANGE.search(data[start : start + 1024].decode("cp1252", "replace")):
        return _binary("a binary file", name)
    read = bytes([data[start]]).decode("cp1252", "replace")
    return Finding(
        "encoding",
        f"the byte 0x{data[start]:02X} is not UTF-8; in Latin-1 it is `{read}`",
        Place(name, line, column, column + 1),
        help="save the file as UTF-8",
        source_line=source if source.isprintable() else "",
    )


def _encoding(encoding: str, name: str) -> Finding:
    return Finding("encoding", f"this is {encoding}", Place(name, 1, 1), help="save it as UTF-8")


def _binary(kind: str, name: str) -> Finding:
    return Finding(
        "binary",
        f"this is {kind}, not YAML",
        Place(name, 1, 1),
        help="give a text file that begins with `topo: 1`",
    )


def _xml(name: str) -> Finding:
    return Finding(
        "not-yaml",
        "this is XML, not YAML",
        Place(name, 1, 1),
        help="`topo import` reads the XML of NCCL and hwloc",
    )


def _strange_characters(text: str, name: str) -> Iterator[Finding]:
    line_end, number = -1, 1
    while match := _STRANGE.search(text, line_end + 1):  # one a line
        number += text.count("\n", line_end + 1, match.start()) + (line_end >= 0)
        line_start = text.rfind("\n", 0, match.start()) + 1
        line_end = text.find("\n", match.end())
        line_end = len(text) if line_end < 0 else line_end
        column = match.start() - line_start + 1
        yield Finding(
            "control-character",
            f"a character that cannot be seen stands here: {character(match[0])}",
            Place(name, number, column, column + 1),
            help="remove it",
            source_line=_STRANGE.sub("\ufffd", text[line_start:line_end]),
        )
