"""What stands around a place in a text, and how a finding about it is made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.document.tokens import Token, TokenizedText


_COMMENT: Final = re.compile(r"[ \t]#")
QUOTE_IT: Final = "quote the text that contains it"


class Evidence:
    """A sketch with the place of the failure, and how a finding about it is made."""

    def __init__(self, drawn: TokenizedText, name: str, *, at: int = -1, key: int = -1) -> None:
        self.sketch = drawn
        self.name = name
        self.at = at
        self.key = key
        self.tokens = drawn.tokens
        self.index = drawn.last_before(at)

    def finding(self, code: str, message: str, start: int, end: int, **more: str) -> Finding:
        """Make a finding about a stretch of the text; it is marked on its first line."""
        line, column = self.sketch.place(start)
        last_line, last_column = self.sketch.place(end)
        source = self.sketch.line(line)
        if last_line != line:
            last_column = max(len(source), column) + 1
        note = more.get("note", "")
        return Finding(
            code,
            message,
            Place(self.name, line, column, last_column if last_column > column else 0),
            help=more.get("help", ""),
            notes=(note,) if note else (),
            source_line=source,
        )

    def of(self, token: Token) -> str:
        """Return a token's text."""
        return self.sketch.of(token)

    def line_of(self, token: Token) -> int:
        """Return the line on which a token starts."""
        return self.sketch.place(token.start)[0]

    def token_at(self) -> Token | None:
        """Return the token that covers the failure, or starts there."""
        if self.index < 0:
            return None
        token = self.tokens[self.index]
        return token if token.start <= self.at < token.end else None

    def before(self) -> Iterator[Token]:
        """Yield the tokens that end at or before the failure, last first, comments left out."""
        for token in reversed(self.tokens[: self.index + 1]):
            if token.end <= self.at and token.kind != "comment":
                yield token

    def on_line_before(self, token: Token) -> list[Token]:
        """Return the tokens in front of `token` on its line."""
        line = self.line_of(token)
        index = self.sketch.last_before(token.start)
        start = index
        while start > 0 and self.line_of(self.tokens[start - 1]) == line:
            start -= 1
        return self.tokens[start:index]


def line_end(evidence: Evidence, offset: int) -> int:
    """Return where the line that `offset` is on ends."""
    end = evidence.sketch.text.find("\n", offset)
    return len(evidence.sketch.text) if end < 0 else end


def content_end(evidence: Evidence, offset: int) -> int:
    """Return where the line ends without its comment and trailing blanks."""
    end = line_end(evidence, offset)
    comment = _COMMENT.search(evidence.sketch.text, offset, end)
    end = comment.start() if comment else end
    return offset + len(evidence.sketch.text[offset:end].rstrip(" \t"))


def short(text: str) -> str:
    """Return `text` short enough for a message, and on one line."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= 60 and line == text else f"{line[:57]}..."  # noqa: PLR2004
