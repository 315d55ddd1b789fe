r"""Bytes or text in, plain text out, and what is wrong with it that needs no parser to see.

What passes has ``\n`` as its only line break and no character that an editor does not show, so
that everyone (two YAML parsers, an editor, a person) counts the same lines and columns.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from topo.document.tokens import Token, TokenizedText, tokenize
from topo.errors import DocumentError, Finding, Place

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
QUOTE_IT: Final = "quote the text that contains it"


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
        advice = "`topo import` reads the XML of NCCL and hwloc"
        raise DocumentError(whole_text(name, "not-yaml", "this is XML, not YAML", advice))
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
    first = list(islice(findings, _SHOWN + 1))
    if len(first) <= _SHOWN:
        return first
    last = first[_SHOWN - 1]
    return [*first[: _SHOWN - 1], replace(last, notes=(*last.notes, "more of this kind follow"))]


def character(char: str) -> str:
    r"""Name a character that cannot be seen.

    >>> character("\u00a0"), character("\x00")
    ('U+00A0 NO-BREAK SPACE', 'U+0000')
    """
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def short(text: str, most: int = 60) -> str:
    """Return `text` short enough for a message, and on one line."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= most and line == text else f"{line[: most - 3]}..."


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
    line_start = data.rfind(b"\n", 0, start) + 1
    line = data.count(b"\n", 0, start) + 1
    column = len(data[line_start:start].decode("utf-8")) + 1
    source = data[line_start:].split(b"\n", 1)[0].decode("latin-1").rstrip("\r")
    if _STRANGE.search(data[start : start + 1024].decode("cp1252", "replace")):
        return _binary("a binary file", name)
    letter = bytes([data[start]]).decode("cp1252", "replace")
    return Finding(
        "encoding",
        f"the byte 0x{data[start]:02X} is not UTF-8; in Latin-1 it is `{letter}`",
        Place(name, line, column, column + 1),
        help="save the file as UTF-8",
        source_line=source if source.isprintable() else "",
    )


def whole_text(name: str, code: str, message: str, advice: str) -> Finding:
    """Make a finding about a text as a whole: it stands at the beginning."""
    return Finding(code, message, Place(name, 1, 1), help=advice)


def _encoding(encoding: str, name: str) -> Finding:
    return whole_text(name, "encoding", f"this is {encoding}", "save it as UTF-8")


def _binary(kind: str, name: str) -> Finding:
    advice = "give a text file that begins with `topo: 1`"
    return whole_text(name, "binary", f"this is {kind}, not YAML", advice)


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


# --- before any parser: what nobody sees, a second document, and what YAML parsers disagree on ----

# Blanks that are not the space, and characters of no width: invisible in an editor, and a
# different name to a program.
_ODD_BLANKS: Final = "\u00a0\u00ad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000"
_ODD_BLANK: Final = re.compile(f"[{_ODD_BLANKS}][ {_ODD_BLANKS}]*")
_WORD_BEHIND: Final = re.compile(rf"[^\s{_ODD_BLANKS}:,\]}}]*")
_SMART: Final = re.compile("[\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb]")
_HEADER_COMMENT: Final = re.compile(r"[|>][-+0-9]*#")
# Whether a text needs to be split into tokens before it is parsed. The first is quick and says yes
# to many an innocent comment; the second looks only in front of a line's comment.
_MAYBE_SUSPECT: Final = re.compile(
    rf"(?m)[\t!?{_ODD_BLANKS}\u2018-\u201f\u00ab\u00bb]|[|>][-+0-9]*#|^%|^(?:---|\.\.\.)(?:[ \t]|$)"
)
_SUSPECT: Final = re.compile(
    rf"(?m)^(?:[^#\n]|(?<=[^ \t\n])#)*?(?:{_MAYBE_SUSPECT.pattern.removeprefix('(?m)')})"
)


_COMPARISON: Final = re.compile(r"[<>]=?\s*[0-9]")
_MEANINGS: Final = {
    ">": "starts a block of text on the lines below",
    "|": "starts a block of text on the lines below",
    "&": "names an anchor",
    "%": "begins a YAML directive",
}


def before_parsing(text: str, name: str) -> list[Finding]:
    """Return what is wrong with `text` that needs no parser to see, by place."""
    if not (_MAYBE_SUSPECT.search(text) and _SUSPECT.search(text)):
        return []
    reading = Reading(tokenize(text), name)
    checks = (
        reading.directives,
        reading.second_document,
        reading.tabs,
        reading.odd_blanks,
        reading.smart_quotes,
        reading.questions,
        reading.tags_and_headers,
    )
    findings = [finding for check in checks for finding in capped(check())]
    return sorted(findings, key=lambda finding: finding.place or Place(name, 0, 0))


class Reading:
    """The tokens of a text, and what is wrong with them that needs no parser to see."""

    def __init__(self, source: TokenizedText, name: str) -> None:
        self.source = source
        self.tokens = source.tokens
        self.of = source.of
        self.name = name

    def find(
        self, code: str, message: str, at: Token | tuple[int, int], help: str, note: str = ""
    ) -> Finding:
        """Make a finding about a stretch of the text; it is marked on its first line."""
        start, end = (at.start, at.end) if isinstance(at, Token) else at
        line, column = self.source.place(start)
        last_line, end_column = self.source.place(end)
        source = self.source.line(line)
        if last_line != line:
            end_column = max(len(source), column) + 1
        return Finding(
            code,
            message,
            Place(self.name, line, column, end_column if end_column > column else 0),
            help=help,
            notes=(note,) if note else (),
            source_line=source,
        )

    def directives(self) -> Iterator[Finding]:
        """Find ``%YAML`` lines in front of the content."""
        for token in self.tokens:
            text = self.of(token)
            if token.kind == "sign" and text[0] == "%" and self.source.place(token.start)[1] == 1:
                message = f"`{short(text)}` is a YAML directive; topo reads none"
                yield self.find("directive", message, token, "remove the line")
            elif token.kind != "comment":
                break

    def second_document(self) -> Iterator[Finding]:
        """Find the line that ends the first document when there is more behind it."""
        content = False
        ended: Token | None = None
        for token in self.tokens:
            if token.kind == "comment" or (token.kind == "sign" and not content):
                continue  # a sign in front of all content is a directive, which has its own finding
            if ended is None and token.kind == "marker" and (content or self.of(token) == "..."):
                ended = token
                if self.of(token) == "...":
                    continue
            if ended is not None:
                message = (
                    f"`{self.of(ended)}` ends the document, and more follows; topo reads one "
                    "document a file"
                )
                advice = "put the second document into a file of its own"
                yield self.find("two-documents", message, ended, advice)
                break
            content = True

    def tabs(self) -> Iterator[Finding]:
        """Find tabs outside comments."""
        for start, end in self.outside(re.compile("\t+"), {"comment"}):
            line, column = self.source.place(start)
            message, advice = "a tab stands here", "write spaces"
            if not self.source.line(line)[: column - 1].strip(" "):
                message, advice = "a tab indents this line", "indent with spaces"
            yield self.find("tab", message, (start, end), advice)

    def odd_blanks(self) -> Iterator[Finding]:
        """Find blanks that are no spaces outside comments and quotes."""
        for start, end in self.outside(_ODD_BLANK, {"comment", "quoted", "block"}):
            char = self.source.text[start]
            word = _WORD_BEHIND.match(self.source.text, end)
            before = f"before `{short(word[0])}`" if word is not None and word[0] else "here"
            kind = "a no-break space" if char == "\u00a0" else "a blank that is no space"
            message = f"{kind} stands {before}: {character(char)}"
            advice = "write an ordinary space, or none"
            yield self.find("no-break-space", message, (start, end), advice)

    def outside(self, pattern: re.Pattern[str], kinds: set[str]) -> Iterator[tuple[int, int]]:
        """Yield where `pattern` matches outside tokens of these kinds, once a line."""
        position = 0
        while match := pattern.search(self.source.text, position, self.source.stop):
            index = self.source.last_before(match.start())
            token = self.tokens[index] if index >= 0 else None
            if token is not None and match.start() < token.end and token.kind in kinds:
                position = token.end
            else:
                position = self.source.line_end(match.end())
                yield match.span()

    def smart_quotes(self) -> Iterator[Finding]:
        """Find texts that begin with a typographic quote, as word processors write them."""
        for token in self.tokens:
            if token.kind == "plain" and _SMART.match(self.source.text, token.start):
                text = self.of(token)
                message = f"`{text[0]}` is a typographic quote, which quotes nothing in YAML"
                advice = f'write "{short(_SMART.sub("", text))}"'
                yield self.find("smart-quotes", message, token, advice)

    def questions(self) -> Iterator[Finding]:
        """Find ``? key`` and, inside brackets, any bare question mark."""
        for token in self.tokens:
            text = self.of(token)
            if token.kind == "question" and not token.depth:
                message = "`? ` begins a key of several parts; topo's keys are plain text"
                yield self.find("complex-key", message, token, "write `key: value`")
            elif token.kind == "question" or (
                token.kind == "plain" and token.depth and "?" in text
            ):
                message = "a `?` inside { } or [ ] needs quotes"
                advice = f'write "{short(text)}"' if token.kind == "plain" else QUOTE_IT
                yield self.find("question-mark", message, token, advice)

    def tags_and_headers(self) -> Iterator[Finding]:
        """Find ``!tag``, and ``|#``, where one parser sees a comment and another a mistake."""
        for token in self.tokens:
            if token.kind == "tag":
                message = f"`{short(self.of(token))}` is a YAML tag; topo reads none"
                yield self.find("tag", message, token, "quote it, or remove it")
            elif token.kind == "sign" and _HEADER_COMMENT.match(self.source.text, token.start):
                yield self.sign_finding(token)

    def sign_finding(self, token: Token) -> Finding:
        """Say what the sign that `token` begins with means to YAML."""
        word = self.of(token)
        if word[0] == "*":
            message = f"`{short(word)}` is an alias in YAML, not a wildcard"
            advice = (
                f"write the stem: `{word.strip('*.') or 'gpu'}` means every device of that stem"
            )
            return self.find("star", message, token, advice)
        meaning = _MEANINGS.get(word[0], "is kept by YAML for itself")
        end = token.end if token.depth else self.source.content_end(token.start)
        text = self.source.text[token.start : end]
        before = self.source.before_on_line(token)
        if _COMPARISON.match(text) and len(before) > 1 and before[-1].kind == "colon":
            # A whole sentence for ``load: >= 90 GB/s``.
            subject = self.of(before[-2])
            subject = subject if " via " in f" {subject} " else f"{subject} via direct"
            advice = f"write the expectation as one sentence: `- {subject} {text}`"
        else:
            advice = QUOTE_IT if token.depth else f'quote the value: "{short(text)}"'
        message = f"`{word[0]}` at the start of a value {meaning}"
        return self.find("sign-starts-value", message, (token.start, token.start + 1), advice)
