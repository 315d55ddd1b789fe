"""JSON as people keep it in configuration files: with comments and commas too many.

Every value knows its line and column, as in a topology file. Written here because the standard
library's reader takes neither comments nor commas and forgets where things stood.
"""

from __future__ import annotations

import re
from typing import Final

from topo.document.nodes import Mapping, Node, Scalar, Sequence
from topo.errors import ExchangeError, Finding, Place

_LARGEST: Final = 2**20
_DEEPEST: Final = 32
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\ufeff]+ | //[^\n]* | \#[^\n]* | /\*.*?\*/)
      | (?P<text>"(?:[^"\\\n]|\\.)*")
      | (?P<word>[A-Za-z0-9_.+-]+)
      | (?P<sign>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSES: Final = {"{": "}", "[": "]"}


def parse_json(data: bytes, name: str) -> Mapping:
    r"""Return the object that a text holds; of a key that stands twice the last counts.

    Parameters
    ----------
    data, name
        The text in UTF-8, and its name.

    Raises
    ------
    ExchangeError
        If it is too big or too deep, or not such a text: the message has line and column.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2,], // two\n}', "x.json").get("a").place.column
    7
    """
    if len(data) > _LARGEST:
        message = f"`{name}` has {len(data) >> 10} KiB, more than {_LARGEST >> 10}"
        raise ExchangeError(Finding("import-too-big", message))
    return _Reader(data.decode("utf-8-sig", "replace"), name).document()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._at = self._line = self._start = 0
        self._kind = self._piece = ""
        self._place = Place(name, 1, 1)
        self._next()

    def document(self) -> Mapping:
        """Return the whole text's object."""
        if self._piece != "{":
            raise self._wrong("an object, which begins with `{`")
        root = self._value(0)
        if self._kind:
            raise self._wrong("nothing after the object")
        assert isinstance(root, Mapping), "it begins with a brace"
        return root

    def _next(self) -> None:
        """Step to the next token; at the end there is none."""
        self._kind = "space"
        while self._kind == "space":
            found = _TOKEN.match(self._text, self._at)
            self._place = Place(self._name, self._line + 1, self._at - self._start + 1)
            if found is None:
                self._kind, self._piece = "", self._text[self._at : self._at + 1]
                if self._piece:
                    raise self._wrong("JSON")
                return
            self._kind, self._piece = found.lastgroup or "", found[0]
            self._at = found.end()
            breaks = self._piece.count("\n")
            if breaks:
                self._line += breaks
                self._start = found.start() + self._piece.rindex("\n") + 1

    def _value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            message = f"`{self._name}` is nested more than {_DEEPEST} deep"
            raise ExchangeError(Finding("import-too-big", message, place=self._place))
        piece, place = self._piece, self._place
        if self._kind in ("text", "word"):
            text, quoted = self._text_of(), self._kind == "text"
            self._next()
            return Scalar(text, place, quoted)
        if piece not in _CLOSES:
            raise self._wrong("a value")
        self._next()
        node = self._object(place, depth) if piece == "{" else self._list(place, depth)
        self._next()
        return node

    def _object(self, place: Place, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        while self._piece != "}":
            if self._kind != "text":
                raise self._wrong('a key, like `"properties"`, or `}`')
            key = Scalar(self._text_of(), self._place, quoted=True)
            self._next()
            if self._piece != ":":
                raise self._wrong("`:` after the key")
            self._next()
            entries[key.text] = (key, self._value(depth + 1))
            self._comma("}")
        return Mapping(tuple(entries.values()), place)

    def _list(self, place: Place, depth: int) -> Sequence:
        items: list[Node] = []
        while self._piece != "]":
            items.append(self._value(depth + 1))
            self._comma("]")
        return Sequence(tuple(items), place)

    def _comma(self, end: str) -> None:
        if self._piece == ",":
            self._next()
        elif self._piece != end:
            raise self._wrong(f"`,` or `{end}`")

    def _text_of(self) -> str:
        if self._kind != "text":
            return self._piece
        return _ESCAPE.sub(_unescaped, self._piece[1:-1])

    def _wrong(self, wanted: str) -> ExchangeError:
        stood = f"`{self._piece[:40]}`" if self._piece else "the end"
        message = f"here stands {stood}, and {wanted} was expected"
        return ExchangeError(Finding("json-syntax", message, place=self._place))


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return _ESCAPES.get(found[2], found[2])
