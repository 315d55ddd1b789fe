"""Mistakes inside { } and [ ]: ranges, commas, comments, brackets that do not meet."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topo.document.evidence import line_end, short
from topo.document.text import capped
from topo.errors import Finding, Place

if TYPE_CHECKING:
    from topo.document.evidence import Evidence
    from topo.document.nodes import Scalar
    from topo.document.tokens import Token


_CLOSERS: Final = {"[": "]", "{": "}"}
_RANGE: Final = re.compile(r"\[[-0-9, ]*\]")
_TAIL: Final = re.compile(r"[-A-Za-z0-9_./]*")
_DIGITS_END: Final = re.compile(r"[0-9]\Z")
_DECIMALS: Final = re.compile(r"([0-9]+)(.*)\Z", re.DOTALL)


def decimal_comma(previous: Scalar, key: Scalar, line: str) -> Finding | None:
    """Return the finding for ``{read: 1,5 TB}``: a key of digits right behind a number's comma."""
    start, end = previous.place, key.place
    touching = start.line == end.line and start.end_column + 1 == end.column
    decimals = _DECIMALS.match(key.text)
    if not touching or previous.quoted or key.quoted or decimals is None:
        return None
    if not _DIGITS_END.search(previous.text):
        return None
    number = f"{previous.text}.{key.text}"
    thousands = f"{previous.text}{key.text}"
    advice = f"write {number}"
    if len(decimals[1]) == 3:  # noqa: PLR2004  (three digits: as likely a thousands separator)
        advice = f"write {thousands}, or {number}, as meant"
    return Finding(
        "decimal-comma",
        f"the comma ends the value `{short(previous.text)}`, and `{short(key.text)}` is read as "
        "another key",
        Place(start.file, start.line, start.column, end.end_column),
        help=advice,
        source_line=line,
    )


def comment_ate_text(evidence: Evidence) -> list[Finding]:
    """Find ``{label: Slot #1}``: a comment that hides the closing bracket."""
    openers = evidence.sketch.openers(evidence.at)
    for token in evidence.tokens:
        if not openers or token.start >= evidence.at:
            break
        opener = openers[-1]
        closer = _CLOSERS[evidence.of(opener)]
        if token.kind == "comment" and token.start > opener.start and token.depth:
            text = evidence.of(token)
            if closer not in text or evidence.line_of(token) != evidence.line_of(opener):
                continue
            whole = _text_around(evidence, token, closer)
            return [
                evidence.finding(
                    "comment-ate-text",
                    f"` #` starts a comment here and hides the `{closer}`",
                    token.start - 1,
                    token.end,
                    help=f'quote the text: "{short(whole)}"',
                )
            ]
    return []


def _text_around(evidence: Evidence, comment: Token, closer: str) -> str:
    """Return what was meant as one text: the plain text before `comment` and its beginning."""
    before = evidence.on_line_before(comment)
    front = evidence.of(before[-1]) if before and before[-1].kind == "plain" else ""
    back = re.split(rf"[,{re.escape(closer)}]", evidence.of(comment))[0]
    return f"{front} {back}".strip()


def ranges_in_brackets(evidence: Evidence) -> list[Finding]:
    """Find every ``gpu[0-7]`` inside brackets when the parser stumbled over one."""
    spans = [
        (token, bracket)
        for token, bracket in pairwise(evidence.tokens)
        if token.kind == "plain" and token.depth and _begins_range(evidence, token, bracket)
    ]
    if not any(bracket.start == evidence.at for _, bracket in spans):
        return []
    return capped(_quoteless_range(evidence, token, bracket) for token, bracket in spans)


def _quoteless_range(evidence: Evidence, token: Token, bracket: Token) -> Finding:
    word = evidence.of(token).rsplit(" ", 1)[-1]
    start = token.end - len(word)
    closer = evidence.sketch.closers.get(bracket.start, bracket)
    tail = _TAIL.match(evidence.sketch.text, closer.end)
    whole = evidence.sketch.text[start : tail.end() if tail else closer.end]
    stem = re.split(r"[\[.]", word)[0]
    return evidence.finding(
        "range-in-braces",
        f"the range `{short(whole)}` inside {{ }} or [ ] needs quotes",
        start,
        start + len(whole),
        help=f'write "{short(whole)}"; all of them is just `{stem}`',
    )


def _begins_range(evidence: Evidence, token: Token, bracket: Token) -> bool:
    return (
        bracket.kind == "open"
        and bracket.start == token.end
        and _RANGE.match(evidence.sketch.text, bracket.start) is not None
        and evidence.sketch.text[token.end - 1].isalnum()
    )


def second_colon(evidence: Evidence, colon: Token) -> list[Finding]:
    """Answer for ``{title: DGX: storage}`` and ``{read: 640 GB from: storage}``."""
    entry: list[Token] = []
    for token in evidence.before():
        if token.depth < colon.depth or (token.depth == colon.depth and token.kind == "comma"):
            break
        entry.append(token)
    if not entry:
        return [missing_key(evidence, colon)]
    if not any(each.kind == "colon" and each.depth == colon.depth for each in entry):
        return []
    key = entry[0]
    if evidence.line_of(key) != evidence.line_of(entry[1]):
        opener = evidence.sketch.openers(key.start)[-1]
        if opener.start in evidence.sketch.closers:
            return [_missing_comma(evidence, key, "a comma")]
        message = f"`{evidence.of(opener)}` opened here is never closed"
        return [_open_bracket(evidence, opener, message)]
    last = evidence.of(key).split(" ")[-1]
    return [
        evidence.finding(
            "colon-in-text",
            f"a second `:` stands in one entry, behind `{short(last)}`",
            key.end - len(last),
            colon.end,
            help=f"put a comma before `{short(last)}`, or quote the text with the colon",
        )
    ]


def missing_key(evidence: Evidence, colon: Token) -> Finding:
    """Say that a colon has no key in front of it."""
    message = "a key is missing before `:`"
    return evidence.finding(
        "missing-key", message, colon.start, colon.end, help="write `key: value`"
    )


def _missing_comma(evidence: Evidence, token: Token, expected: str) -> Finding:
    return evidence.finding(
        "missing-comma",
        f"{expected} is expected before `{short(evidence.of(token))}`",
        token.start,
        min(token.end, line_end(evidence, token.start)),
        help="separate the entries with `, `",
    )


def bracket(evidence: Evidence) -> list[Finding]:
    """Answer for brackets: never closed, closed by the other kind, or closing nothing."""
    token = evidence.token_at()
    openers = evidence.sketch.openers(evidence.at)
    if not openers:
        if token is not None and token.kind == "close":
            sign = evidence.of(token)
            message = f"`{sign}` closes nothing"
            advice = "remove it, or quote the text that contains it"
            return [evidence.finding("unopened", message, token.start, token.end, help=advice)]
        return []
    opener = openers[-1]
    closer = _CLOSERS[evidence.of(opener)]
    if token is not None and token.kind == "close" and evidence.of(token) != closer:
        message = f"`{evidence.of(opener)}` opened here meets a `{evidence.of(token)}`"
        return [_open_bracket(evidence, opener, message)]
    if opener.start not in evidence.sketch.closers:
        return [
            _open_bracket(evidence, opener, f"`{evidence.of(opener)}` opened here is never closed")
        ]
    if token is None or token.kind in {"comma", "close"}:
        return []
    return [_missing_comma(evidence, token, f"a comma or `{closer}`")]


def _open_bracket(evidence: Evidence, opener: Token, message: str) -> Finding:
    line = evidence.sketch.place(evidence.at)[0]
    note = f"noticed on line {line}" if line != evidence.line_of(opener) else ""
    advice = f"close it with `{_CLOSERS[evidence.of(opener)]}`, or quote the text"
    return evidence.finding("unclosed", message, opener.start, opener.end, help=advice, note=note)
