"""YAML text into a tree of nodes; the only file that imports the YAML library.

The tree is built from the library's *events*: nothing is resolved, so ``17:00.0`` and ``no`` stay
text, every node has its place, and a doubled key is seen. There are two parsers, libyaml's and a
pure Python one twenty times slower; the verdict, its words and its place must not depend on which
of them runs. So libyaml may only say yes: what it refuses is read again by the pure parser, whose
opinion stands, and the few things that only libyaml accepts are refused before either sees them
(`before_parsing`). Texts above `MAX_CHARACTERS_PURE` are the exception: the
pure parser refuses them for their size.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from topo.document.nodes import Document, Mapping, Node, Scalar, Sequence
from topo.document.text import before_parsing, capped, character, read_text, short, whole_text
from topo.errors import DocumentError, Finding, Place

MAX_CHARACTERS: Final = 4_000_000
"""Longest text read: 100,000 lines, in a second; what is larger is written with ranges."""

MAX_CHARACTERS_PURE: Final = 131_072
"""Longest text for the pure parser, which needs up to 6 us a character: 0.8 s at worst."""

MAX_DEPTH: Final = 40
"""Deepest nesting, aliases followed. topo's own files have 6; readers may recurse over the tree."""

MAX_NODES: Final = 250_000
"""Most nodes, each alias counting as all that it stands for, so that no alias bomb goes off."""

_ENOUGH: Final = 100  # findings after which reading ends; only the first are shown
_LONG: Final = 100_000  # characters from which pausing the collector pays

_SAY_IT_ONCE: Final = "say what repeats with ranges: `gpu[0-7]`"
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)


def parse(text: str | bytes, *, name: str = "<text>", pure: bool = False) -> Document:
    """Read YAML into a tree in which every scalar is text and every node knows its place.

    Parameters
    ----------
    text
        The YAML; bytes are UTF-8.
    name
        What the text is called in messages: the file's name as the user gave it.
    pure
        Whether to use the pure Python parser even where libyaml is there.

    Raises
    ------
    DocumentError
        With all mistakes found, each with its place.

    Examples
    --------
    >>> document = parse("slot1: {pci: 17:00.0}")
    >>> document.root.get("slot1").get("pci").text
    '17:00.0'
    """
    if len(text) > MAX_CHARACTERS:
        raise _too_large(len(text), MAX_CHARACTERS, name)
    source = read_text(text, name)
    findings = before_parsing(source, name)
    if findings:
        raise DocumentError(findings)
    fast = None if pure else _fast_parser()
    if fast is None:
        return _read_pure(source, name)
    try:
        return _Tree(source, name).read(fast)
    except _Refused as refused:
        if len(source) > MAX_CHARACTERS_PURE:
            raise refused.error from None
    return _read_pure(source, name)


def _read_pure(source: str, name: str) -> Document:
    if len(source) > MAX_CHARACTERS_PURE:
        raise _too_large(len(source), MAX_CHARACTERS_PURE, name)
    try:
        return _Tree(source, name).read(_pure_parser())
    except _Refused as refused:
        raise refused.error from None


def _too_large(size: int, limit: int, name: str) -> DocumentError:
    message = f"the text has {size:,} characters; at most {limit:,} are read"
    return DocumentError(whole_text(name, "too-large", message, _SAY_IT_ONCE))


@cache
def _fast_parser() -> Callable[[str], Any] | None:
    """Return libyaml's parser where the installed YAML library has it."""
    try:
        from yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:
        return None
    return CParser


@cache
def _pure_parser() -> Callable[[str], Any]:
    """Return the pure parser: the library's three lower layers, without composing."""
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class PureParser(Reader, Scanner, Parser):
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    return PureParser


class _Refused(Exception):  # noqa: N818  (never leaves this file)
    """One parser's refusal; the other may have the last word."""

    def __init__(self, findings: Finding | list[Finding]) -> None:
        super().__init__()
        self.error = DocumentError(findings)


class _Anchored(NamedTuple):
    """A node with a name, and what an alias to it adds; no node while it is still open."""

    node: Node | None
    size: int
    height: int
    place: Place


class _Frame:
    """A mapping or sequence that is being read."""

    __slots__ = ("anchor", "entries", "flow", "height", "items", "key", "mark", "places", "size")

    def __init__(self, event: Any, places: dict[str, Place] | None) -> None:
        self.anchor: str | None = event.anchor
        self.flow: bool = bool(event.flow_style)
        self.mark = event.start_mark
        self.places = places  # of the keys so far; None for a sequence
        self.entries: list[tuple[Scalar, Node]] = []
        self.items: list[Node] = []
        self.key: Scalar | None = None
        self.size = 1
        self.height = 0


class _Tree:
    """Builds one document from events, without recursion, and collects what is wrong with it."""

    def __init__(self, source: str, name: str) -> None:
        self._source = source
        self._lines = source.split("\n")
        self._name = name
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._findings: list[Finding] = []
        self._size = 0
        self._root: Node | None = None

    def read(self, parser: Callable[[str], Any]) -> Document:
        """Drain `parser` over the source; raise `_Refused` or `DocumentError`."""
        # Over a long text the garbage collector would find nothing, in a third of the time.
        pause = len(self._source) >= _LONG and gc.isenabled()
        if pause:
            gc.disable()
        try:
            self._drain(parser)
        finally:
            if pause:
                gc.enable()
        if self._findings:
            raise DocumentError(capped(self._findings))
        if self._root is None or self._root == Scalar("", self._root.place):
            advice = "begin with `topo: 1`; `topo new` writes a first file"
            message = "there is nothing in this text"
            raise DocumentError(whole_text(self._name, "empty", message, advice))
        return Document(self._name, self._root, tuple(self._lines))

    def _drain(self, parser: Callable[[str], Any]) -> None:
        """Handle every event, turning the library's failures into topo's own words."""
        from yaml import YAMLError, events

        handlers: dict[type, Callable[[Any], None]] = {
            events.ScalarEvent: self._scalar,
            events.AliasEvent: self._alias,
            events.MappingStartEvent: lambda event: self._push(_Frame(event, {})),
            events.SequenceStartEvent: lambda event: self._push(_Frame(event, None)),
            events.MappingEndEvent: self._end,
            events.SequenceEndEvent: self._end,
        }
        reader: Any = None
        try:
            reader = parser(self._source)
            while (event := reader.get_event()) is not None:
                handler = handlers.get(type(event))
                if handler is not None:
                    handler(event)
        except (YAMLError, ValueError, OverflowError) as error:
            # The last two: the pure parser lets chr() complain about an escape like "\UFFFFFFFF".
            from topo.document.faults import explain  # good texts do not pay for it

            begun = getattr(error, "context_mark", None)
            mark = getattr(error, "problem_mark", None) or begun or reader.get_mark()
            # Without a context it is the pure parser's chr(), which did not like an escape.
            problem = getattr(error, "problem", "while scanning a double-quoted scalar")
            problem = getattr(error, "context", None) or problem or ""
            key = begun.index if begun and problem == "while scanning a simple key" else -1
            findings = explain(self._source, self._name, problem, at=mark.index, key=key)
            raise _Refused(findings) from None

    # --- events ---------------------------------------------------------------------------------

    def _scalar(self, event: Any) -> None:
        start, end = event.start_mark, event.end_mark
        text: str = event.value
        line = start.line + 1
        if start.line == end.line:
            place = Place(self._name, line, start.column + 1, end.column + 1)
        else:
            place = Place(self._name, line, start.column + 1, len(self._lines[line - 1]) + 1)
        if event.style == '"' and (unseen := _UNSEEN.search(text)):
            message = f"an escape gives {character(unseen[0])}, which cannot be seen"
            self._find("bad-escape", message, place, "leave it out")
        node = Scalar(text, place, bool(event.style))
        if event.anchor is not None:
            if not node.quoted and start.line == end.line:
                # Plain text on one line is verbatim, so it begins its own length before its end.
                column = place.end_column - len(text)
                node = Scalar(text, Place(self._name, line, column, place.end_column))
            self._open_anchor(event.anchor, place)
            self._anchors[event.anchor] = _Anchored(node, 1, 0, place)
        self._grow(1, place)
        self._attach(node, 1, 0)

    def _alias(self, event: Any) -> None:
        place = self._place(event.start_mark, event.end_mark)
        anchored = self._anchors.get(event.anchor)
        if anchored is not None and anchored.node is not None:
            if len(self._stack) + anchored.height >= MAX_DEPTH:
                raise _Refused(self._too_deep(place))
            self._grow(anchored.size, place)
            self._attach(anchored.node, anchored.size, anchored.height, alias=place)
            return
        if anchored is None:
            self._find(
                "star",
                f"`*{event.anchor}` is an alias, and nothing is anchored as `&{event.anchor}`",
                place,
                f"for every device of a stem write the stem: `{event.anchor}`",
            )
        else:
            self._find("alias-in-itself", f"`*{event.anchor}` stands inside itself", place)
        self._attach(Scalar(f"*{event.anchor}", place, quoted=True), 1, 0)

    def _push(self, frame: _Frame) -> None:
        place = self._place(frame.mark, frame.mark)
        if len(self._stack) >= MAX_DEPTH:
            raise _Refused(self._too_deep(place))
        self._grow(1, place)
        if frame.anchor is not None:
            self._open_anchor(frame.anchor, place)
        self._stack.append(frame)

    def _end(self, event: Any) -> None:
        frame = self._stack.pop()
        flow_end = event.end_mark if frame.flow else frame.mark
        place = self._place(frame.mark, flow_end)
        node: Node
        if frame.places is None:
            node = Sequence(tuple(frame.items), place)
        else:
            node = Mapping(tuple(frame.entries), place)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(node, frame.size, frame.height, place)
        self._attach(node, frame.size, frame.height)

    # --- the tree -------------------------------------------------------------------------------

    def _attach(self, node: Node, size: int, height: int, *, alias: Place | None = None) -> None:
        """Put a finished node where it belongs: an item, a key, a value or the root."""
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        frame.size += size
        if height >= frame.height:
            frame.height = height + 1
        if frame.places is None:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._key(node, frame.places, alias)
        else:
            if type(node) is Scalar and not node.text and not node.quoted:
                # An empty value stands behind its key's colon; the parsers have two opinions.
                at = frame.key.place
                column = self._line(at).find(":", at.end_column - 1) + 2
                column = column if column > 1 else at.end_column
                node = Scalar("", Place(self._name, at.line, column, column))
                if frame.flow and frame.entries:
                    self._check_comma(frame.entries[-1][1], frame.key)
            frame.entries.append((frame.key, node))
            frame.key = None

    def _key(self, node: Node, places: dict[str, Place], alias: Place | None) -> Scalar:
        """Accept a key, or say why it is none."""
        if alias is not None or not isinstance(node, Scalar):
            what = "an alias" if alias else "a list" if isinstance(node, Sequence) else "a mapping"
            place = alias or node.place
            self._find("complex-key", f"{what} stands where a key is expected", place, _PLAIN_KEY)
            return Scalar("", place)
        if not node.text and not node.quoted:
            self._find("missing-key", "a key is missing before `:`", node.place, _PLAIN_KEY)
            return node
        first = places.setdefault(node.text, node.place)
        if first is not node.place:
            message = f"`{short(node.text, 40)}` is defined twice"
            self._find("defined-twice", message, node.place, note=f"first on line {first.line}")
        if node.text == "<<" and not node.quoted:
            message = "`<<` merges mappings in other YAML; topo has no merge keys"
            self._find("merge-key", message, node.place, "start a part from another with `like:`")
        return node

    def _check_comma(self, previous: Node, key: Scalar) -> None:
        """Refuse ``{read: 1,5 TB}``, which YAML reads as two entries."""
        start, end = previous.place, key.place
        touching = start.line == end.line and start.end_column + 1 == end.column
        decimals = re.match("[0-9]+", key.text)
        if not touching or not isinstance(previous, Scalar) or previous.quoted or key.quoted:
            return
        if decimals is None or not re.search(r"[0-9]\Z", previous.text):
            return
        number, thousands = f"{previous.text}.{key.text}", f"{previous.text}{key.text}"
        advice = f"write {number}"
        if len(decimals[0]) == 3:  # noqa: PLR2004  (as likely a thousands separator)
            advice = f"write {thousands}, or {number}, as meant"
        message = (
            f"the comma ends the value `{short(previous.text)}`, and `{short(key.text)}` is read "
            "as another key"
        )
        place = Place(start.file, start.line, start.column, end.end_column)
        self._find("decimal-comma", message, place, advice)

    def _open_anchor(self, anchor: str, place: Place) -> None:
        first = self._anchors.get(anchor)
        if first is not None:
            message = f"the anchor `&{anchor}` is defined twice"
            self._find("defined-twice", message, place, note=f"first on line {first.place.line}")
        self._anchors[anchor] = _Anchored(None, 0, 0, place)

    # --- findings -------------------------------------------------------------------------------

    def _place(self, start: Any, end: Any) -> Place:
        """Return a place; its end is known when both marks are on one line and differ."""
        same = start.line == end.line and start.column != end.column
        return Place(self._name, start.line + 1, start.column + 1, end.column + 1 if same else 0)

    def _line(self, place: Place) -> str:
        return self._lines[place.line - 1]

    def _find(self, code: str, message: str, place: Place, help: str = "", note: str = "") -> None:
        if len(self._findings) > _ENOUGH:
            raise _Refused(capped(self._findings))
        notes = (note,) if note else ()
        source = self._line(place)
        self._findings.append(
            Finding(code, message, place, help=help, notes=notes, source_line=source)
        )

    def _too_deep(self, place: Place) -> Finding:
        message = f"nested deeper than {MAX_DEPTH} levels"
        return Finding("too-deep", message, place, source_line=self._line(place))

    def _grow(self, size: int, place: Place) -> None:
        """Count nodes, and refuse a text with too many."""
        self._size += size
        if self._size > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, aliases counted as what they stand for"
            source = self._line(place)
            raise _Refused(
                Finding("too-large", message, place, help=_SAY_IT_ONCE, source_line=source)
            )


_PLAIN_KEY: Final = "a key is one plain text: `gpu0: h100-sxm-80gb`"
