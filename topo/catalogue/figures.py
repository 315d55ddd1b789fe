"""Read one value: a figure with its source, a flag, a word."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast, get_args

from topo.catalogue.part import Figure, FigureKind
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.errors import UnitError
from topo.phrases import did_you_mean
from topo.units import (
    parse_count,
    parse_flag,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_transfer_rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.catalogue.keys import Quantity
    from topo.document.nodes import Node, Report


STATED_KINDS: Final = get_args(FigureKind)
_VALUE_KEYS: Final = ("value", "source", "kind")

_PARSERS: Final[dict[str, Callable[[str], float]]] = {
    "rate": parse_rate,
    "size": parse_size,
    "count": lambda text: parse_count(text, positive=False),
    "ratio": parse_ratio,
    "transfer-rate": parse_transfer_rate,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the figures of one mapping come from; an empty `source` is their own file and line."""

    source: str = ""
    kind: FigureKind = "quoted"

    def at(self, node: Node) -> str:
        """Return the source of a figure that stands at `node`."""
        return self.source or f"{node.place.file}:{node.place.line}"


HERE: Final = Origin()


@dataclass(frozen=True, slots=True)
class Word:
    """A value that is a flag or a word, with its source; `flag` is `None` for ``unknown``."""

    flag: bool | None
    text: str
    source: str


def read_figure(
    node: Node,
    quantity: Quantity,
    *,
    report: Report,
    origin: Origin = HERE,
    unlimited: bool = False,
    name: str = "it",
) -> Figure | None:
    """Read a number with its unit, ``unknown``, ``unlimited``, or ``{value, source, kind}``.

    Parameters
    ----------
    node
        The value.
    quantity
        What is expected: ``rate``, ``size``, ``count``, ``ratio`` or ``transfer-rate``.
    report
        Takes what is wrong.
    origin
        The source and the kind of a figure that says neither.
    unlimited
        Whether ``unlimited`` may stand here.
    name
        The key, for messages.

    Returns
    -------
    Figure or None
        `None` when it could not be read, which the report then says.
    """
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    try:
        value = _number(scalar.text.strip(), quantity, unlimited=unlimited, name=name)
    except UnitError as error:
        report.unit(scalar, error)
        return None
    return Figure(value, origin.kind, origin.at(scalar))


def _number(text: str, quantity: Quantity, *, unlimited: bool, name: str) -> float | None:
    if text == "unknown":
        return None
    if text == "unlimited":
        if unlimited:
            return math.inf
        raise UnitError(
            "not-unlimited",
            f"`{name}` cannot be unlimited: every machine has a limit there",
            "write the figure, or `unknown`",
        )
    value = float(_PARSERS[quantity](text))
    if value == 0:
        raise UnitError(
            "zero-capacity",
            f"`{name}` is zero, so nothing could ever use it",
            "leave the key out, or write `unknown`",
        )
    return value


def read_flag(node: Node, *, report: Report, origin: Origin = HERE) -> Word | None:
    """Read ``yes``, ``no`` or ``unknown``, plain or as ``{value, source}``."""
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    word = scalar.text.strip()
    try:
        flag = None if word == "unknown" else parse_flag(word)
    except UnitError as error:
        report.unit(scalar, error)
        return None
    return Word(flag, word, origin.at(scalar))


def read_text(
    node: Node, *, report: Report, origin: Origin = HERE, words: tuple[str, ...] = ()
) -> Word | None:
    """Read a word, one of `words` if they are given, plain or as ``{value, source}``."""
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    text = scalar.text.strip()
    if words and text not in words:
        report.add(
            scalar,
            "unknown-word",
            f"`{text}` is not one of {', '.join(words)}",
            help=did_you_mean(text, words),
        )
        return None
    return Word(None, text, origin.at(scalar))


def open_value(
    node: Node, *, report: Report, origin: Origin = HERE
) -> tuple[Scalar, Origin] | None:
    """Return the text of a value and its origin; ``{value, source, kind}`` says its own."""
    if isinstance(node, Mapping):
        node = rejoin(node, _VALUE_KEYS)
        refused = refuse_unknown_keys(node, _VALUE_KEYS, report=report, owner="a figure")
        value = node.get("value")
        if value is None:
            if not refused:  # else that key was meant for it
                report.add(
                    node, "missing-value", "a figure needs `value:`", help="write {value: 400 Gb/s}"
                )
            return None
        origin = origin_of(node, report=report, origin=origin, key="kind")
        node = value
    if not isinstance(node, Scalar):
        what = "a list" if isinstance(node, Sequence) else "a mapping"
        report.add(node, "wrong-shape", f"{what} stands where one value is expected")
        return None
    if not node.text.strip():
        report.add(
            node,
            "missing-value",
            "nothing stands where a value is expected",
            help="write the value, or `unknown`",
        )
        return None
    return node, origin


def origin_of(
    node: Mapping, *, report: Report, origin: Origin = HERE, key: str = "source-kind"
) -> Origin:
    """Return the origin that a mapping's ``source:`` and `key` say, else `origin`."""
    source, kind = origin.source, origin.kind
    said = node.get("source")
    if said is not None:
        word = _plain_text(said, report=report)
        source = word or source
    said = node.get(key)
    if said is not None:
        word = _plain_text(said, report=report)
        if word in STATED_KINDS:
            kind = cast("FigureKind", word)
        elif word:
            report.add(
                said,
                "unknown-word",
                f"`{word}` is no kind of figure: {', '.join(STATED_KINDS)}",
                help=did_you_mean(word, STATED_KINDS),
            )
    return Origin(source, kind)


def _plain_text(node: Node, *, report: Report) -> str:
    if isinstance(node, Scalar):
        return node.text.strip()
    report.add(node, "wrong-shape", "text is expected here")
    return ""


def refuse_unknown_keys(node: Mapping, keys: Iterable[str], *, report: Report, owner: str) -> bool:
    """Report every key that is not one of `keys`, and return whether there was one.

    ``x-`` keys are the user's own.
    """
    known = tuple(keys)
    unknown = [key for key, _ in node if key.text not in known and not key.text.startswith("x-")]
    for key in unknown:
        report.add(
            key,
            "unknown-key",
            f"`{key.text}` is no key of {owner}",
            help=did_you_mean(key.text, known) or f"it may have {', '.join(known)}",
        )
    return bool(unknown)


def rejoin(node: Mapping, known: Iterable[str]) -> Mapping:
    """Give a text that a comma cut in braces its end back.

    In ``{efficiency: 85 %, source: our lspci, MPS 128}`` YAML sees a third key without a value;
    after a `source` or a `title` it can only be the rest of that text.

    Parameters
    ----------
    node
        The mapping as parsed.
    known
        Keys that it may have, which are never taken for text.
    """
    keys = frozenset(known)
    entries: list[tuple[Scalar, Node]] = []
    for key, value in node:
        if entries and _is_rest(key, value, keys) and entries[-1][0].text in SENTENCES:
            name, begun = entries[-1]
            if isinstance(begun, Scalar):
                whole = Scalar(f"{begun.text}, {key.text}", begun.place, begun.quoted)
                entries[-1] = (name, whole)
                continue
        entries.append((key, value))
    return node if len(entries) == len(node.entries) else Mapping(tuple(entries), node.place)


SENTENCES: Final = ("source", "title")
"""Keys whose text is a sentence, in which people write commas."""


def _is_rest(key: Scalar, value: Node, known: frozenset[str]) -> bool:
    empty = isinstance(value, Scalar) and not value.text and not value.quoted
    return empty and key.text not in known
