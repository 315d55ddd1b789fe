"""A light reading of YAML that never fails: which characters are quotes, comments, brackets.

The parser says *that* a text is wrong and roughly where; the tokens say what stood around that
place, so that the cause can be named. It is also how topo sees, before parsing, the few things on
which YAML parsers disagree.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "alias",  # *name
    "anchor",  # &name
    "block",  # | or > with the text below it
    "close",  # ] }
    "colon",  # the sign between key and value
    "comma",  # between entries inside brackets
    "comment",  # from # to the end of the line
    "dash",  # the sign before a list item
    "marker",  # --- or ...
    "open",  # [ {
    "plain",  # text without quotes, on one line
    "question",  # ? before a key
    "quoted",  # '...' or "...", over any number of lines
    "sign",  # a character that no value can start with
    "tag",  # !name
    "unclosed",  # a quote that is never closed, to the end of the text
]


MAX_TOKENS: Final = 150_000
"""Most tokens that are read: more than the pure parser's longest text can have, half a second."""


class Token(NamedTuple):
    """A stretch of the text, as offsets; `depth` counts the brackets around it."""

    kind: Kind
    start: int
    end: int
    depth: int


class TokenizedText:
    r"""The tokens of a text, in order, with what is asked of them.

    Attributes
    ----------
    text
        The whole text, with ``\n`` line breaks.
    stop
        The offset up to which it was read.
    tokens
        All tokens up to there; what lies between two of them is blank.
    closers
        For each opening bracket's offset, its closing bracket's token (absent: never closed).
    """

    def __init__(self, text: str, begin: int, end: int) -> None:
        self.text = text
        self.stop = min(end, len(text))
        self.tokens: list[Token] = []
        self.closers: dict[int, Token] = {}
        start = text.rfind("\n", 0, begin) + 1
        self._begin = begin
        self._first_line = text.count("\n", 0, start) + 1
        breaks = re.compile("\n").finditer(text, start, self.stop)
        self._lines = [start, *(match.end() for match in breaks)]
        self._openers: list[int] = []
        self._indent = -1

    def place(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of `offset`."""
        index = bisect_right(self._lines, offset) - 1
        return index + self._first_line, offset - self._lines[index] + 1

    def line(self, number: int) -> str:
        """Return the text of a 1-based line, empty outside the part that was read."""
        index = number - self._first_line
        if not 0 <= index < len(self._lines):
            return ""
        end = self.text.find("\n", self._lines[index])
        return self.text[self._lines[index] : None if end < 0 else end]

    def of(self, token: Token) -> str:
        """Return the text that `token` covers."""
        return self.text[token.start : token.end]

    def line_of(self, token: Token) -> int:
        """Return the line on which a token starts."""
        return self.place(token.start)[0]

    def line_end(self, offset: int) -> int:
        """Return where the line that `offset` is on ends."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def content_end(self, offset: int) -> int:
        """Return where the line ends without its comment and trailing blanks."""
        end = self.line_end(offset)
        comment = _COMMENT.search(self.text, offset, end)
        content = self.text[offset : comment.start() if comment else end]
        return offset + len(content.rstrip(" \t"))

    def before_on_line(self, token: Token) -> list[Token]:
        """Return the tokens in front of `token` on its line."""
        line = self.line_of(token)
        index = start = self.last_before(token.start)
        while start > 0 and self.line_of(self.tokens[start - 1]) == line:
            start -= 1
        return self.tokens[start:index]

    def last_before(self, offset: int) -> int:
        """Return the index of the last token that starts at or before `offset`, or -1."""
        return bisect_right(self.tokens, offset, key=lambda token: token.start) - 1

    def openers(self, offset: int) -> list[Token]:
        """Return the brackets that are open at `offset`, outermost first."""
        return [
            token
            for token in self.tokens
            if token.kind == "open"
            and token.start < offset
            and (token.start not in self.closers or self.closers[token.start].start >= offset)
        ]

    def read(self) -> None:
        """Cut the text into tokens."""
        position = _blank_end(self.text, self._begin)
        while position < self.stop and len(self.tokens) < MAX_TOKENS:
            kind, end = self._classify(position)
            depth = len(self._openers)
            token = Token(kind, position, end, depth)
            if kind == "open":
                self._openers.append(position)
            elif kind == "close" and self._openers:
                self.closers[self._openers.pop()] = token
                token = token._replace(depth=depth - 1)
            # The column that a block of text must be deeper than: its key's or dash's.
            elif kind == "dash" and depth == 0:
                self._indent = self.place(position)[1] - 1
            elif kind == "colon" and depth == 0 and self.tokens:
                self._indent = self.place(self.tokens[-1].start)[1] - 1
            elif kind == "marker" and depth == 0:
                self._indent = -1
            self.tokens.append(token)
            position = _blank_end(self.text, end)
        self.stop = min(self.stop, position)

    def _classify(self, start: int) -> tuple[Kind, int]:
        """Say what begins at `start` and where it ends."""
        text, char = self.text, self.text[start]
        at_line_start = start == 0 or text[start - 1] == "\n"
        if char in "-." and at_line_start and (marker := _MARKER.match(text, start)):
            return "marker", marker.end()
        if char == "#":
            return "comment", self.line_end(start)
        inside = bool(self._openers)
        kind: Kind = "plain"
        if not self._continues(start, inside=inside):
            if char in _BRACKETS:
                return _BRACKETS[char], start + 1
            if char in _QUOTED:
                match = _QUOTED[char].match(text, start)
                return ("quoted", match.end()) if match else ("unclosed", len(text))
            if char in _INDICATORS and self._indicates(start, inside=inside):
                return _INDICATORS[char], start + 1
            if char in "|>" and not inside and (header := _HEADER.match(text, start)):
                # Up to the last line below that is deeper than the block's key.
                deeper = re.compile(
                    rf"\n(?:[ ]{{{max(self._indent + 1, 1)},}}[^\n]*|[ ]*(?=\n|\Z))"
                )
                end = header.end()
                while match := deeper.match(text, end):
                    end = match.end()
                return "block", end
            if char in _NAMED:
                return _NAMED[char], _WORD.match(text, start + 1).end()  # type: ignore[union-attr]
            if char in _SIGNS:
                kind = "sign"
        match = (_FLOW_END if inside else _BLOCK_END).search(text, start + 1)
        end = match.start() if match else len(text)
        while text[end - 1] in " \t" and end > start + 1:
            end -= 1
        return kind, end

    def _continues(self, start: int, *, inside: bool) -> bool:
        """Whether unquoted text of the line above goes on here, where any sign is just text."""
        previous = self.tokens[-1] if self.tokens else None
        if previous is None or previous.kind != "plain" or previous.depth != len(self._openers):
            return False
        char = self.text[start]
        if char == ":" and self._indicates(start, inside=inside):
            return False
        if inside:
            return char not in ",?[]{}"
        return self.place(start)[1] - 1 > self._indent

    def _indicates(self, start: int, *, inside: bool) -> bool:
        """Whether a comma, dash, question mark or colon is a sign here rather than text."""
        char, follower = self.text[start], self.text[start + 1 : start + 2]
        if char == ",":
            return inside
        if follower in {"", " ", "\t", "\n"}:
            return True
        if not inside or char not in "?:":
            return False
        if char == "?" or follower in ",[]{}":
            return True
        # A colon that touches what follows still ends a key that cannot go on, as in `{"a":1}`.
        previous = self.tokens[-1] if self.tokens else None
        return (
            previous is not None and previous.kind in {"quoted", "close"} and previous.end == start
        )


def tokenize(text: str, begin: int = 0, end: int = sys.maxsize) -> TokenizedText:
    r"""Return the tokens of `text`, whose line breaks are ``\n``, or of a part of it."""
    tokenized = TokenizedText(text, begin, end)
    tokenized.read()
    return tokenized


def _blank_end(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


_BLANK: Final = re.compile(r"[ \t\n]*")
_COMMENT: Final = re.compile(r"[ \t]#")
_MARKER: Final = re.compile(r"(?:---|\.\.\.)(?=[ \t\n]|\Z)")
_HEADER: Final = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#[^\n]*|[ \t]*)(?=\n|\Z)")
_WORD: Final = re.compile(r"[^ \t\n,\[\]{}]*")
_QUOTED: Final = {
    '"': re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^']++|'')*+'"),
}
_BLOCK_END: Final = re.compile(r"\n|:(?=[ \t\n]|\Z)|(?<=[ \t])#")
_FLOW_END: Final = re.compile(r"\n|:(?=[ \t\n,\[\]{}]|\Z)|(?<=[ \t])#|[,\[\]{}]")
_NAMED: Final[dict[str, Kind]] = {"&": "anchor", "*": "alias", "!": "tag"}
_SIGNS: Final = frozenset("|>%@`")
_BRACKETS: Final[dict[str, Kind]] = {"[": "open", "{": "open", "]": "close", "}": "close"}
_INDICATORS: Final[dict[str, Kind]] = {",": "comma", "-": "dash", "?": "question", ":": "colon"}
