"""Why a text is not YAML, in the words of the person who wrote it.

`diagnose` is called with the place where the parser gave up and looks for the human cause around
it: the causes are tried in the order of `_CAUSES`, most telling first, and the last one always
answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.document.brackets import (
    bracket,
    comment_ate_text,
    missing_key,
    ranges_in_brackets,
    second_colon,
)
from topo.document.evidence import Evidence, content_end, line_end, short
from topo.document.signs import sign_at_start
from topo.document.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.document.tokens import Token
    from topo.errors import Finding


_WINDOW: Final = 50_000  # characters on either side of a failure that are looked at for its cause
_TOP_LEVEL: Final = re.compile(r"\n(?=[A-Za-z])")
_LONGEST_KEY: Final = 1024  # YAML's own limit for a key on one line
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]*|u[0-9a-fA-F]*|U[0-9a-fA-F]*|.|\n)?")


def diagnose(text: str, name: str, *, at: int, key: int = -1) -> list[Finding]:
    """Name the cause of a parser's refusal.

    Parameters
    ----------
    text, name
        The whole text and what it is called.
    at
        The offset at which the parser gave up.
    key
        The offset of the text that should have been a key, when that is what it missed.
    """
    begin = _top_level_before(text, at - _WINDOW)
    evidence = Evidence(tokenize(text, begin, at + _WINDOW), name, at=at, key=key)
    whole = begin == 0 or text[begin - 1] == "\n"  # otherwise the window opens amid one long line
    for cause in _CAUSES if whole else ():
        found = cause(evidence)
        if found:
            return found
    return [_not_yaml(evidence)]


def _top_level_before(text: str, offset: int) -> int:
    """Return where a top-level key begins at or behind `offset`: what is above it is closed."""
    if offset <= 0:
        return 0
    match = _TOP_LEVEL.search(text, offset, offset + _WINDOW)
    return match.end() if match else offset


def _bad_escape(evidence: Evidence) -> list[Finding]:
    r"""Find ``"C:\data"``: a backslash in double quotes that begins no escape."""
    token = evidence.token_at()
    if token is None or token.kind != "quoted" or evidence.of(token)[0] != '"':
        return []
    start = evidence.sketch.text.rfind("\\", token.start, evidence.at + 1)
    if start < 0 or evidence.at - start > len("\\U0010FFFF"):
        return []
    end = _ESCAPE.match(evidence.sketch.text, start, token.end).end()  # type: ignore[union-attr]
    return [
        evidence.finding(
            "bad-escape",
            f"`{evidence.sketch.text[start:end]}` is not an escape that YAML knows",
            start,
            end,
            help="write the text in single quotes, where a backslash is a backslash",
        )
    ]


def _after_quote(evidence: Evidence) -> list[Finding]:
    """Find text behind a closing quote, or the opening quote that swallowed some lines."""
    token = evidence.token_at()
    previous = next(evidence.before(), None)
    if token is None or previous is None or previous.kind != "quoted":
        return []
    if token.kind not in {"plain", "quoted", "unclosed", "sign", "alias", "anchor"}:
        return []
    quote = evidence.of(previous)[0]
    if "\n" in evidence.of(previous):
        line = evidence.sketch.place(previous.end)[0]
        message = f"the quote opened here ends only on line {line}"
        advice = f"close it with `{quote}`"
        return [evidence.finding("unclosed", message, previous.start, previous.end, help=advice)]
    if evidence.sketch.place(previous.end)[0] != evidence.sketch.place(token.start)[0]:
        return []
    advice = "quote the whole text"
    if quote == "'":
        advice += ", and double a `'` that belongs to it"
    return [
        evidence.finding(
            "text-after-quote",
            f"the text goes on behind the closing `{quote}`",
            token.start,
            min(token.end, line_end(evidence, token.start)),
            help=advice,
        )
    ]


def _unclosed_quote(evidence: Evidence) -> list[Finding]:
    token = evidence.tokens[-1] if evidence.tokens else None
    if token is None or token.kind != "unclosed":
        return []
    quote = evidence.of(token)[0]
    return [
        evidence.finding(
            "unclosed",
            f"the quote `{quote}` opened here is never closed",
            token.start,
            token.start + 1,
            help=f"close it with `{quote}`, or write the text without quotes",
        )
    ]


def _key_without_colon(evidence: Evidence) -> list[Finding]:
    """Answer when the parser itself missed a colon behind a key."""
    if evidence.key < 0:
        return []
    end = line_end(evidence, evidence.key)
    if end - evidence.key > _LONGEST_KEY:
        return [
            evidence.finding("not-yaml", "this key is too long", evidence.key, evidence.key + 1)
        ]
    index = evidence.sketch.last_before(evidence.key)
    token = evidence.tokens[index] if index >= 0 else None
    if token is not None and token.kind in {"quoted", "plain"} and token.start == evidence.key:
        return [_missing_colon(evidence, token)]
    return []


def _missing_colon(evidence: Evidence, token: Token) -> Finding:
    text = evidence.of(token)
    closed_up = re.match(r"([^\s:]+):(\S.*)", text)
    if closed_up is not None:
        advice = f"put a space behind the colon: `{short(f'{closed_up[1]}: {closed_up[2]}')}`"
    else:
        first, _, rest = text.partition(" ")
        advice = f"write `{short(f'{first}: {rest}')}`" if rest else f"write `{short(text)}: ...`"
    return evidence.finding(
        "missing-colon",
        f"`{short(text)}` has no `: ` that makes it a key",
        token.start,
        token.end,
        help=advice,
    )


def _colon_in_text(evidence: Evidence) -> list[Finding]:
    """Answer for a second colon: inside a text, below a value, or behind a missing comma."""
    token = evidence.token_at()
    if token is None or token.kind != "colon":
        return []
    before = evidence.on_line_before(token)
    if token.depth:
        return second_colon(evidence, token)
    if not before or before[-1].kind == "dash":
        return [missing_key(evidence, token)]
    colons = [earlier for earlier in before if earlier.kind == "colon" and not earlier.depth]
    if colons:
        return [_text_with_colon(evidence, colons[0], before)]
    return _continued(evidence, token, before)


def _text_with_colon(evidence: Evidence, colon: Token, before: list[Token]) -> Finding:
    start = next((each.start for each in before if each.start > colon.start), colon.end)
    end = content_end(evidence, start)
    value = evidence.sketch.text[start:end]
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return evidence.finding(
        "colon-in-text",
        f"`: ` stands inside the text `{short(value)}`",
        start,
        end,
        help=f'quote it: "{short(quoted)}"',
    )


def _continued(evidence: Evidence, colon: Token, before: list[Token]) -> list[Finding]:
    """Answer for a key that continues the line above it: too deep, or below a missing colon."""
    key = before[-1]
    if key.kind not in {"plain", "quoted"}:
        return []
    earlier = [token for token in evidence.tokens[: evidence.index] if token.end <= before[0].start]
    earlier = [token for token in earlier if token.kind != "comment"]
    if not earlier or earlier[-1].kind not in {"plain", "quoted"}:
        return []
    above = earlier[-1]
    owner = [each for each in evidence.on_line_before(above) if each.kind == "colon"]
    if not owner:
        return [_missing_colon(evidence, above)]
    line = evidence.line_of(above)
    return [
        evidence.finding(
            "indentation",
            f"`{short(evidence.of(key))}` is indented under line {line}, which already has the "
            f"value `{short(evidence.of(above))}`",
            key.start,
            colon.end,
            help=f"indent it like line {line}, or move that value to a line of its own",
        )
    ]


def _list_beside_key(evidence: Evidence) -> list[Finding]:
    """Find ``links: - a -- b: pcie``: a list that starts on its key's line."""
    token = evidence.token_at()
    if token is None or token.kind != "dash":
        return []
    before = evidence.on_line_before(token)
    if not before or before[-1].kind != "colon":
        return []
    return [
        evidence.finding(
            "list-beside-key",
            "a list item cannot start on the line of its key",
            token.start,
            token.end,
            help="start the list on the next line, each item with `- `",
        )
    ]


def _indentation(evidence: Evidence) -> list[Finding]:
    """Answer when the first thing on a line is what the parser did not expect."""
    token = evidence.token_at()
    if token is None or token.depth or evidence.on_line_before(token):
        return []
    line, column = evidence.sketch.place(token.start)
    columns = _columns_above(evidence, line)
    shown = short(evidence.of(token))
    if not columns:
        return []
    if column - 1 not in columns:
        levels = " or ".join(str(each) for each in sorted(columns, reverse=True))
        spaces = "1 space" if column == 2 else f"{column - 1} spaces"  # noqa: PLR2004
        message = f"`{shown}` is indented by {spaces}; the lines above allow {levels}"
        advice = "line it up with its neighbours"
    elif token.kind == "dash":
        message = "a list item stands where a key is expected"
        advice = "indent the item below its key, or remove the `- `"
    else:
        message = f"`{shown}` is not an item of the list above it"
        advice = "start it with `- `, or indent it less"
    return [evidence.finding("indentation", message, token.start, token.end, help=advice)]


def _columns_above(evidence: Evidence, line: int) -> dict[int, int]:
    """Return the indents that are open above `line`, each with the line that set it."""
    columns: dict[int, int] = {}
    lowest = 1 << 30
    for number in range(line - 1, max(0, line - 10_000), -1):
        text = evidence.sketch.line(number)
        stripped = text.lstrip(" ")
        indent = len(text) - len(stripped)
        if stripped and not stripped.startswith("#") and indent < lowest:
            columns[indent] = number
            lowest = indent
        if lowest == 0:
            break
    return columns


def _not_yaml(evidence: Evidence) -> Finding:
    """Say at least which line cannot be read."""
    line, _ = evidence.sketch.place(evidence.at)
    source = evidence.sketch.line(line).strip(" ")
    shown = f"`{short(source)}` cannot be read" if source else "the text ends too early"
    return evidence.finding(
        "not-yaml",
        shown,
        evidence.at,
        evidence.at + 1,
        help="quote texts that contain signs, and indent with spaces",
    )


_CAUSES: Final[tuple[Callable[[Evidence], list[Finding]], ...]] = (
    _bad_escape,
    comment_ate_text,
    ranges_in_brackets,
    sign_at_start,
    _after_quote,
    _unclosed_quote,
    _key_without_colon,
    _colon_in_text,
    bracket,
    _list_beside_key,
    _indentation,
)
