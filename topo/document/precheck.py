"""What is wrong with a text that needs no parser to see.

Characters that no one sees, a second document, and the constructions on which YAML parsers disagree
(see `topo.document.parse`): refused beforehand, so that no parser's opinion matters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.document.evidence import QUOTE_IT, Evidence, line_end, short
from topo.document.signs import sign_finding
from topo.document.text import capped, character
from topo.document.tokens import tokenize
from topo.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from topo.document.tokens import Token


# Blanks that are not the space, and characters of no width: invisible in an editor, and a
# different name to a program.
_ODD_BLANKS: Final = "\u00a0\u00ad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000"
_ODD_BLANK: Final = re.compile(f"[{_ODD_BLANKS}][ {_ODD_BLANKS}]*")
_WORD_BEHIND: Final = re.compile(rf"[^\s{_ODD_BLANKS}:,\]}}]*")
_SMART: Final = re.compile("[\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb]")
_HEADER_COMMENT: Final = re.compile(r"[|>][-+0-9]*#")
# Whether a text needs to be sketched before it is parsed. The first is quick and says yes to many
# an innocent comment; the second looks only in front of a line's comment.
_MAYBE_SUSPECT: Final = re.compile(
    rf"(?m)[\t!?{_ODD_BLANKS}\u2018-\u201f\u00ab\u00bb]|[|>][-+0-9]*#|^%|^(?:---|\.\.\.)(?:[ \t]|$)"
)
_SUSPECT: Final = re.compile(
    rf"(?m)^(?:[^#\n]|(?<=[^ \t\n])#)*?(?:{_MAYBE_SUSPECT.pattern.removeprefix('(?m)')})"
)


def before_parsing(text: str, name: str) -> list[Finding]:
    """Return what is wrong with `text` that needs no parser to see, by place.

    These are also the constructions on which YAML parsers disagree; see `topo.document.parse`.
    """
    if not (_MAYBE_SUSPECT.search(text) and _SUSPECT.search(text)):
        return []
    evidence = Evidence(tokenize(text), name)
    found = [finding for look in _LOOKS for finding in capped(look(evidence))]
    return sorted(found, key=lambda finding: finding.place or Place(name, 0, 0))


def _directives(evidence: Evidence) -> list[Finding]:
    """Find ``%YAML`` lines in front of the content."""
    found = []
    for token in evidence.tokens:
        if token.kind == "sign" and evidence.of(token)[0] == "%" and _starts_line(evidence, token):
            message = f"`{short(evidence.of(token))}` is a YAML directive; topo reads none"
            found.append(
                evidence.finding(
                    "directive", message, token.start, token.end, help="remove the line"
                )
            )
        elif token.kind != "comment":
            break
    return found


def _second_documents(evidence: Evidence) -> list[Finding]:
    """Find the line that ends the first document when there is more behind it."""
    content = False
    ended: Token | None = None
    for token in evidence.tokens:
        if token.kind == "comment" or (token.kind == "sign" and not content):
            continue  # a sign in front of all content is a directive, which has its own finding
        if ended is not None:
            return [_two_documents(evidence, ended)]
        if token.kind == "marker" and (content or evidence.of(token) == "..."):
            ended = token
            if evidence.of(token) == "---":
                return [_two_documents(evidence, token)]
        content = True
    return []


def _two_documents(evidence: Evidence, marker: Token) -> Finding:
    return evidence.finding(
        "two-documents",
        f"`{evidence.of(marker)}` ends the document, and more follows; topo reads one document "
        "a file",
        marker.start,
        marker.end,
        help="put the second document into a file of its own",
    )


def _tabs(evidence: Evidence) -> Iterator[Finding]:
    for start, end in _outside(evidence, re.compile("\t+"), {"comment"}):
        line, column = evidence.sketch.place(start)
        indent = not evidence.sketch.line(line)[: column - 1].strip(" ")
        message = "a tab indents this line" if indent else "a tab stands here"
        advice = "indent with spaces" if indent else "write spaces"
        yield evidence.finding("tab", message, start, end, help=advice)


def _odd_blanks(evidence: Evidence) -> Iterator[Finding]:
    for start, end in _outside(evidence, _ODD_BLANK, {"comment", "quoted", "block"}):
        char = evidence.sketch.text[start]
        word = _WORD_BEHIND.match(evidence.sketch.text, end)
        before = f"before `{short(word[0])}`" if word is not None and word[0] else "here"
        kind = "a no-break space" if char == "\u00a0" else "a blank that is no space"
        yield evidence.finding(
            "no-break-space",
            f"{kind} stands {before}: {character(char)}",
            start,
            end,
            help="write an ordinary space, or none",
        )


def _smart_quotes(evidence: Evidence) -> Iterator[Finding]:
    """Find texts that begin with a typographic quote, as word processors write them."""
    for token in evidence.tokens:
        if token.kind == "plain" and _SMART.match(evidence.sketch.text, token.start):
            text = evidence.of(token)
            yield evidence.finding(
                "smart-quotes",
                f"`{text[0]}` is a typographic quote, which quotes nothing in YAML",
                token.start,
                token.end,
                help=f'write "{short(_SMART.sub("", text))}"',
            )


def _questions(evidence: Evidence) -> Iterator[Finding]:
    """Find ``? key`` and, inside brackets, any bare question mark."""
    for token in evidence.tokens:
        if token.kind == "question" and not token.depth:
            message = "`? ` begins a key of several parts; topo's keys are plain text"
            advice = "write `key: value`"
            yield evidence.finding("complex-key", message, token.start, token.end, help=advice)
        elif token.kind == "question" or (
            token.kind == "plain" and token.depth and "?" in evidence.of(token)
        ):
            message = "a `?` inside { } or [ ] needs quotes"
            text = evidence.of(token)
            advice = f'write "{short(text)}"' if token.kind == "plain" else QUOTE_IT
            yield evidence.finding("question-mark", message, token.start, token.end, help=advice)


def _tags(evidence: Evidence) -> Iterator[Finding]:
    for token in evidence.tokens:
        if token.kind == "tag":
            message = f"`{short(evidence.of(token))}` is a YAML tag; topo reads none"
            advice = "quote it, or remove it"
            yield evidence.finding("tag", message, token.start, token.end, help=advice)


def _block_headers(evidence: Evidence) -> Iterator[Finding]:
    """Find ``|#``, where one YAML parser sees a comment and another a mistake."""
    for token in evidence.tokens:
        if token.kind == "sign" and _HEADER_COMMENT.match(evidence.sketch.text, token.start):
            yield sign_finding(evidence, token)


def _outside(
    evidence: Evidence, pattern: re.Pattern[str], kinds: set[str]
) -> Iterator[tuple[int, int]]:
    """Yield where `pattern` matches outside tokens of these kinds, once a line."""
    text, position = evidence.sketch.text, 0
    while match := pattern.search(text, position, evidence.sketch.stop):
        index = evidence.sketch.last_before(match.start())
        token = evidence.tokens[index] if index >= 0 else None
        if token is not None and match.start() < token.end and token.kind in kinds:
            position = token.end
        else:
            position = line_end(evidence, match.end())
            yield match.span()


def _starts_line(evidence: Evidence, token: Token) -> bool:
    return evidence.sketch.place(token.start)[1] == 1


_LOOKS: Final[tuple[Callable[[Evidence], Iterable[Finding]], ...]] = (
    _directives,
    _second_documents,
    _tabs,
    _odd_blanks,
    _smart_quotes,
    _questions,
    _tags,
    _block_headers,
)
