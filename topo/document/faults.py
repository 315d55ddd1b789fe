"""Why a text is not YAML, in the words of the person who wrote it.

`explain` is asked when the parser gave up: what the YAML library says of it (`_CAUSES`) and what
stands around that place tell the human cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from topo.document.text import QUOTE_IT, Reading, capped, short
from topo.document.tokens import Token, TokenizedText, tokenize
from topo.errors import Finding

_CLOSERS: Final = {"[": "]", "{": "}"}
_WINDOW: Final = 50_000  # characters on either side of a failure that are looked at for its cause
_TOP_LEVEL: Final = re.compile(r"\n(?=[A-Za-z])")
_LONGEST_KEY: Final = 1024  # YAML's own limit for a key on one line
_LONGEST_ESCAPE: Final = len("\\U0010FFFF")
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]*|u[0-9a-fA-F]*|U[0-9a-fA-F]*|.|\n)?")
_SIGNS: Final = frozenset({"sign", "alias", "anchor", "block"})
_RANGE: Final = re.compile(r"\[[-0-9, ]*\]")
_RANGE_END: Final = re.compile(r"[-A-Za-z0-9_./]*")


def explain(text: str, name: str, problem: str, *, at: int, key: int = -1) -> list[Finding]:
    """Name the cause of a parser's refusal.

    Parameters
    ----------
    text, name
        The whole text and what it is called.
    problem
        What the YAML library says: its context, else its problem.
    at
        The offset at which the parser gave up.
    key
        The offset of the text that should have been a key, when that is what it missed.
    """
    begin = 0
    if at > _WINDOW:
        # From a top-level key on: what is above it is closed.
        begin = at - _WINDOW
        top_level = _TOP_LEVEL.search(text, begin, at)
        begin = top_level.end() if top_level else begin
    failure = _Failure(tokenize(text, begin, at + _WINDOW), name, at, key)
    if begin == 0 or text[begin - 1] == "\n":  # otherwise the window opens amid one long line
        inside_brackets = (_Failure.comment_ate_text, _Failure.ranges)
        for cause in (*inside_brackets, *_CAUSES.get(problem, ()), *_ANY_CAUSE):
            findings = cause(failure)
            if findings:
                return findings if isinstance(findings, list) else [findings]
    line, _ = failure.source.place(at)
    source = failure.source.line(line).strip(" ")
    message = f"`{short(source)}` cannot be read" if source else "the text ends too early"
    advice = "quote texts that contain signs, and indent with spaces"
    return [failure.find("not-yaml", message, (at, at + 1), advice)]


class _Failure(Reading):
    """The place where a parser gave up, with what stands around it; each method is a cause."""

    def __init__(self, source: TokenizedText, name: str, at: int, key: int) -> None:
        super().__init__(source, name)
        self.at = at
        self.key = key
        index = source.last_before(at)
        token = self.tokens[index] if index >= 0 else None
        self.token = token if token is not None and at < token.end else None
        # What ends at or before the failure, last first, comments left out.
        self.before = [
            token
            for token in reversed(self.tokens[: index + 1])
            if token.end <= at and token.kind != "comment"
        ]
        self.openers = source.openers(at)

    # --- inside brackets ----------------------------------------------------------------------

    def comment_ate_text(self) -> Finding | None:
        """Find ``{label: Slot #1}``: a comment that hides the closing bracket."""
        if not self.openers:
            return None
        opener = self.openers[-1]
        closer = _CLOSERS[self.of(opener)]
        line = self.source.line_of(opener)
        for token in self.tokens:
            if token.start >= self.at:
                break
            if token.kind != "comment" or token.start < opener.start or not token.depth:
                continue
            comment = self.of(token)
            if closer not in comment or self.source.line_of(token) != line:
                continue
            before = self.source.before_on_line(token)
            front = self.of(before[-1]) if before and before[-1].kind == "plain" else ""
            back = re.split(rf"[,{re.escape(closer)}]", comment)[0]
            message = f"` #` starts a comment here and hides the `{closer}`"
            advice = f'quote the text: "{short(f"{front} {back}".strip())}"'
            return self.find("comment-ate-text", message, (token.start - 1, token.end), advice)
        return None

    def ranges(self) -> list[Finding]:
        """Find every ``gpu[0-7]`` inside brackets when the parser stumbled over one."""
        text = self.source.text
        ranges = [
            (token, bracket)
            for token, bracket in pairwise(self.tokens)
            if token.kind == "plain"
            and token.depth
            and bracket.kind == "open"
            and bracket.start == token.end
            and _RANGE.match(text, bracket.start)
            and text[token.end - 1].isalnum()
        ]
        if not any(bracket.start == self.at for _, bracket in ranges):
            return []
        findings = []
        for token, bracket in ranges:
            word = self.of(token).rsplit(" ", 1)[-1]
            start = token.end - len(word)
            closer = self.source.closers.get(bracket.start, bracket)
            tail = _RANGE_END.match(text, closer.end)
            end = tail.end() if tail else closer.end
            selection = short(text[start:end])
            message = f"the range `{selection}` inside {{ }} or [ ] needs quotes"
            stem = re.split(r"[\[.]", word)[0]
            advice = f'write "{selection}"; all of them is just `{stem}`'
            findings.append(self.find("range-in-braces", message, (start, end), advice))
        return capped(findings)

    def brackets(self) -> Finding | None:
        """Answer for brackets: never closed, closed by the other kind, or closing nothing."""
        token = self.token
        closes = token is not None and token.kind == "close"
        if not self.openers:
            if token is None or not closes:
                return None
            message, advice = f"`{self.of(token)}` closes nothing", f"remove it, or {QUOTE_IT}"
            return self.find("unopened", message, token, advice)
        opener = self.openers[-1]
        closer = _CLOSERS[self.of(opener)]
        if token is not None and closes and self.of(token) != closer:
            return self._open_bracket(opener, f"meets a `{self.of(token)}`")
        if opener.start not in self.source.closers:
            return self._open_bracket(opener, "is never closed")
        if token is None or closes or token.kind == "comma":
            return None
        return self._missing_comma(token, f"a comma or `{closer}`")

    def _open_bracket(self, opener: Token, what: str) -> Finding:
        line = self.source.place(self.at)[0]
        note = f"noticed on line {line}" if line != self.source.line_of(opener) else ""
        message = f"`{self.of(opener)}` opened here {what}"
        advice = f"close it with `{_CLOSERS[self.of(opener)]}`, or quote the text"
        return self.find("unclosed", message, opener, advice, note)

    def _missing_comma(self, token: Token, expected: str) -> Finding:
        message = f"{expected} is expected before `{short(self.of(token))}`"
        end = min(token.end, self.source.line_end(token.start))
        advice = "separate the entries with `, `"
        return self.find("missing-comma", message, (token.start, end), advice)

    # --- quotes and signs ---------------------------------------------------------------------

    def bad_escape(self) -> Finding | None:
        r"""Find ``"C:\data"``: a backslash in double quotes that begins no escape."""
        token = self.token
        if token is None or token.kind != "quoted" or self.of(token)[0] != '"':
            return None
        start = self.source.text.rfind("\\", token.start, self.at + 1)
        escape = _ESCAPE.match(self.source.text, start, token.end) if start >= 0 else None
        if escape is None or self.at - start > _LONGEST_ESCAPE:
            return None
        message = f"`{escape[0]}` is not an escape that YAML knows"
        advice = "write the text in single quotes, where a backslash is a backslash"
        return self.find("bad-escape", message, (start, escape.end()), advice)

    def text_after_quote(self) -> Finding | None:
        """Find text behind a closing quote, or the opening quote that swallowed some lines."""
        token, quoted = self.token, next(iter(self.before), None)
        if token is None or quoted is None or quoted.kind != "quoted":
            return None
        if token.kind not in {"plain", "quoted", "unclosed", "sign", "alias", "anchor"}:
            return None
        quote = self.of(quoted)[0]
        line = self.source.place(quoted.end)[0]
        if "\n" in self.of(quoted):
            message = f"the quote opened here ends only on line {line}"
            advice = f"close it with `{quote}`"
            return self.find("unclosed", message, quoted, advice)
        if line != self.source.line_of(token):
            return None
        advice = "quote the whole text"
        if quote == "'":
            advice += ", and double a `'` that belongs to it"
        message = f"the text goes on behind the closing `{quote}`"
        end = min(token.end, self.source.line_end(token.start))
        return self.find("text-after-quote", message, (token.start, end), advice)

    def unclosed_quote(self) -> Finding | None:
        """Find a quote that is open to the end of the text."""
        token = self.tokens[-1] if self.tokens else None
        if token is None or token.kind != "unclosed":
            return None
        quote = self.of(token)[0]
        message = f"the quote `{quote}` opened here is never closed"
        advice = f"close it with `{quote}`, or write the text without quotes"
        return self.find("unclosed", message, (token.start, token.start + 1), advice)

    def sign(self) -> Finding | None:
        """Find a value that begins with a sign which YAML keeps for itself."""
        token = self.token
        if token is None or token.kind not in _SIGNS:
            token = next(iter(self.before), None)
        if token is None or token.kind not in _SIGNS:
            return None
        if self.source.text[token.end : self.at].strip(" \n"):
            return None
        if self.of(token)[0] == "&" and self.of(token) != "&" and token.end <= self.at:
            return None
        return self.sign_finding(token)

    # --- keys and colons ----------------------------------------------------------------------

    def key_without_colon(self) -> Finding | None:
        """Answer when the parser itself missed a colon behind a key."""
        if self.key < 0:
            return None
        if self.source.line_end(self.key) - self.key > _LONGEST_KEY:
            return self.find("not-yaml", "this key is too long", (self.key, self.key + 1), "")
        index = self.source.last_before(self.key)
        token = self.tokens[index] if index >= 0 else None
        if token is None or token.start != self.key or token.kind not in {"quoted", "plain"}:
            return None
        return self._missing_colon(token)

    def _missing_colon(self, token: Token) -> Finding:
        text = self.of(token)
        closed_up = re.match(r"([^\s:]+):(\S.*)", text)
        first, _, value = text.partition(" ")
        if closed_up is not None:
            advice = f"put a space behind the colon: `{short(f'{closed_up[1]}: {closed_up[2]}')}`"
        else:
            advice = (
                f"write `{short(f'{first}: {value}')}`" if value else f"write `{short(text)}: ...`"
            )
        message = f"`{short(text)}` has no `: ` that makes it a key"
        return self.find("missing-colon", message, token, advice)

    def colon(self) -> Finding | None:
        """Answer for a second colon: inside a text, below a value, or behind a missing comma."""
        colon = self.token
        if colon is None or colon.kind != "colon":
            return None
        if colon.depth:
            return self._second_colon(colon)
        before = self.source.before_on_line(colon)
        if not before or before[-1].kind == "dash":
            return self._missing_key(colon)
        first = next((token for token in before if token.kind == "colon" and not token.depth), None)
        if first is None:
            return self._continued(colon, before)
        start = next((token.start for token in before if token.start > first.start), first.end)
        end = self.source.content_end(start)
        value = self.source.text[start:end]
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        message = f"`: ` stands inside the text `{short(value)}`"
        return self.find("colon-in-text", message, (start, end), f'quote it: "{short(quoted)}"')

    def _second_colon(self, colon: Token) -> Finding | None:
        """Answer for ``{title: DGX: storage}`` and ``{read: 640 GB from: storage}``."""
        entry: list[Token] = []
        for token in self.before:
            if token.depth < colon.depth or (token.depth == colon.depth and token.kind == "comma"):
                break
            entry.append(token)
        if not entry:
            return self._missing_key(colon)
        if not any(token.kind == "colon" and token.depth == colon.depth for token in entry):
            return None
        key = entry[0]
        if self.source.line_of(key) != self.source.line_of(entry[1]):
            opener = self.source.openers(key.start)[-1]
            if opener.start in self.source.closers:
                return self._missing_comma(key, "a comma")
            return self._open_bracket(opener, "is never closed")
        word = self.of(key).split(" ")[-1]
        message = f"a second `:` stands in one entry, behind `{short(word)}`"
        advice = f"put a comma before `{short(word)}`, or quote the text with the colon"
        return self.find("colon-in-text", message, (key.end - len(word), colon.end), advice)

    def _missing_key(self, colon: Token) -> Finding:
        message = "a key is missing before `:`"
        return self.find("missing-key", message, colon, "write `key: value`")

    def _continued(self, colon: Token, before: list[Token]) -> Finding | None:
        """Answer for a key that continues the line above it: too deep, or below a missing colon."""
        key = before[-1]
        above = next((token for token in self.before if token.end <= before[0].start), None)
        if above is None or not {key.kind, above.kind} <= {"plain", "quoted"}:
            return None
        if all(token.kind != "colon" for token in self.source.before_on_line(above)):
            return self._missing_colon(above)
        line = self.source.line_of(above)
        message = (
            f"`{short(self.of(key))}` is indented under line {line}, which already has the "
            f"value `{short(self.of(above))}`"
        )
        advice = f"indent it like line {line}, or move that value to a line of its own"
        return self.find("indentation", message, (key.start, colon.end), advice)

    # --- lines --------------------------------------------------------------------------------

    def list_beside_key(self) -> Finding | None:
        """Find ``links: - a -- b: pcie``: a list that starts on its key's line."""
        token = self.token
        if token is None or token.kind != "dash":
            return None
        before = self.source.before_on_line(token)
        if not before or before[-1].kind != "colon":
            return None
        message = "a list item cannot start on the line of its key"
        advice = "start the list on the next line, each item with `- `"
        return self.find("list-beside-key", message, token, advice)

    def indentation(self) -> Finding | None:
        """Answer when the first thing on a line is what the parser did not expect."""
        token = self.token
        if token is None or token.depth or self.source.before_on_line(token):
            return None
        line, column = self.source.place(token.start)
        word = short(self.of(token))
        indents: list[int] = []  # that are open above, the deepest first
        for number in range(line - 1, max(0, line - 10_000), -1):
            text = self.source.line(number)
            content = text.lstrip(" ")
            indent = len(text) - len(content)
            if content and content[0] != "#" and (not indents or indent < indents[-1]):
                indents.append(indent)
                if indent == 0:
                    break
        if not indents:
            return None
        if column - 1 not in indents:
            spaces = "1 space" if column == 2 else f"{column - 1} spaces"  # noqa: PLR2004
            levels = " or ".join(map(str, indents))
            message = f"`{word}` is indented by {spaces}; the lines above allow {levels}"
            advice = "line it up with its neighbours"
        elif token.kind == "dash":
            message = "a list item stands where a key is expected"
            advice = "indent the item below its key, or remove the `- `"
        else:
            message = f"`{word}` is not an item of the list above it"
            advice = "start it with `- `, or indent it less"
        return self.find("indentation", message, token, advice)


# What the YAML library says (its two parsers use the same words for a context) and the causes that
# only this comes from; then those of any refusal, the most telling first.
_CAUSES: Final[dict[str, tuple[Callable[[_Failure], Finding | None], ...]]] = {
    "while scanning a double-quoted scalar": (_Failure.bad_escape,),
    "while parsing a quoted scalar": (_Failure.bad_escape,),
    "while scanning a simple key": (
        _Failure.sign,
        _Failure.text_after_quote,
        _Failure.unclosed_quote,
        _Failure.key_without_colon,
    ),
}
_ANY_CAUSE: Final = (
    _Failure.sign,
    _Failure.text_after_quote,
    _Failure.unclosed_quote,
    _Failure.colon,
    _Failure.brackets,
    _Failure.list_beside_key,
    _Failure.indentation,
)
