"""One value of a part, medium or cable: a figure, a flag, a word, caps, each with its source.

A value stands plainly or as ``{value, source, kind}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeVar, cast, get_args

from topo.catalogue.fields import RATE, Quantity
from topo.catalogue.part import Figure, FigureKind, PeerCap, PeerCaps
from topo.document.nodes import Mapping, Node, Report, Scalar, Sequence
from topo.errors import UnitError
from topo.phrases import did_you_mean
from topo.records import dataclass
from topo.units import parse_flag

T = TypeVar("T")
_KINDS: Final = get_args(FigureKind)
_RANGE: Final = re.compile(
    r"\s*([0-9.]+)\s*([A-Za-z%][^-]*?)?\s*(?:-|\u2013|\bto\b)\s*([0-9.]+)\s*([A-Za-z%].*?)?\s*"
)
_VALUE_KEYS: Final = ("value", "source", "kind")
_FIGURE_KEYS: Final = (*_VALUE_KEYS, "range")
SENTENCES: Final = ("source", "title")
"""Keys whose text is a sentence, in which people write commas."""


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


def read_value(
    node: Node,
    parse: Callable[[Scalar, Origin], T],
    *,
    report: Report,
    origin: Origin = HERE,
    keys: tuple[str, ...] = _VALUE_KEYS,
) -> T | None:
    """Read a value, plain or as ``{value, source, kind}``, by what its text and origin become.

    Parameters
    ----------
    node
        The value.
    parse
        Returns what the text means, or raises `UnitError`, which is then reported.
    report
        Takes what is wrong.
    origin
        The source and the kind of a value that says neither.
    keys
        What a mapping may have.

    Returns
    -------
    T or None
        `None` when it could not be read, which the report then says.
    """
    if isinstance(node, Mapping):
        node = rejoin(node, keys)
        refused = refuse_unknown_keys(node, keys, report=report, owner="a figure")
        value = node.get("value")
        if value is None:
            if not refused:  # else that key was meant for it
                advice = "write {value: 400 Gb/s}"
                report.add(node, "missing-value", "a figure needs `value:`", help=advice)
            return None
        origin = origin_of(node, report=report, origin=origin, key="kind")
        node = value
    if not isinstance(node, Scalar):
        what = "a list" if isinstance(node, Sequence) else "a mapping"
        report.add(node, "wrong-shape", f"{what} stands where one value is expected")
        return None
    if not node.text.strip():
        message = "nothing stands where a value is expected"
        report.add(node, "missing-value", message, help="write the value, or `unknown`")
        return None
    try:
        return parse(node, origin)
    except UnitError as error:
        report.unit(node, error)
        return None


def read_figure(
    node: Node,
    quantity: Quantity,
    *,
    report: Report,
    origin: Origin = HERE,
    unlimited: bool = False,
    name: str = "it",
) -> Figure | None:
    """Read a number of a quantity with its unit, ``unknown``, or ``unlimited`` where that may be.

    `name` is the key, for messages.
    """
    figure = read_value(
        node,
        lambda scalar, origin: _figure(
            scalar.text, quantity, origin.kind, origin.at(scalar), unlimited=unlimited, name=name
        ),
        report=report,
        origin=origin,
        keys=_FIGURE_KEYS,
    )
    return figure and _with_range(node, figure, quantity, report)


def _with_range(node: Node, figure: Figure, quantity: Quantity, report: Report) -> Figure:
    """Return a figure with the range that stands beside it, if one does."""
    stated = node.get("range") if isinstance(node, Mapping) else None
    if stated is None:
        return figure
    least_and_most = read_value(
        stated, lambda scalar, _: _range(scalar.text, quantity, figure), report=report
    )
    return replace(figure, range=least_and_most)


def _range(text: str, quantity: Quantity, figure: Figure) -> tuple[float, float]:
    """Read the least and the most that a figure may be: ``60-75 %``, ``8 GB/s - 15 GB/s``."""
    assert quantity.parse is not None
    match = _RANGE.fullmatch(text)
    if match is None:
        advice = "write the least and the most: `60-75 %`, `8-15 GB/s`"
        raise UnitError("bad-number", f"`{text}` is no range", advice)
    first, unit_of_first, second, unit = match.groups()
    low = quantity.parse(f"{first} {unit_of_first or unit or ''}".strip())
    high = quantity.parse(f"{second} {unit or ''}".strip())
    if not 0 < low <= high:
        message = f"the range `{text.strip()}` " + ("runs backwards" if low else "begins at zero")
        raise UnitError("bad-number", message, "write the least first, above zero")
    if figure.known and not low <= (figure.value or 0.0) <= high:
        raise UnitError(
            "range-beside-value",
            f"the range `{text.strip()}` does not hold {quantity.text(figure.value)}, the value",
            "a range is the least and the most that the value may be",
        )
    return low, high


def _figure(
    text: str, quantity: Quantity, kind: FigureKind, source: str, *, unlimited: bool, name: str
) -> Figure:
    word = text.strip()
    if word == "unknown":
        return Figure(None, kind, source)
    if word == "unlimited":
        if unlimited:
            return Figure(math.inf, kind, source)
        raise UnitError(
            "not-unlimited",
            f"`{name}` cannot be unlimited: every machine has a limit there",
            "write the figure, or `unknown`",
        )
    assert quantity.parse is not None
    value = quantity.parse(word)
    if value == 0:
        raise UnitError(
            "zero-capacity",
            f"`{name}` is zero, so nothing could ever use it",
            "leave the key out, or write `unknown`",
        )
    return Figure(value, kind, source)


def read_flag(node: Node, *, report: Report, origin: Origin = HERE) -> Word | None:
    """Read ``yes``, ``no`` or ``unknown``."""

    def parse(scalar: Scalar, origin: Origin) -> Word:
        word = scalar.text.strip()
        return Word(None if word == "unknown" else parse_flag(word), word, origin.at(scalar))

    return read_value(node, parse, report=report, origin=origin)


def read_text(
    node: Node, *, report: Report, origin: Origin = HERE, words: tuple[str, ...] = ()
) -> Word | None:
    """Read a word, one of `words` if they are given."""

    def parse(scalar: Scalar, origin: Origin) -> Word:
        text = scalar.text.strip()
        if words and text not in words:
            message = f"`{text}` is not one of {', '.join(words)}"
            raise UnitError("unknown-word", message, did_you_mean(text, words))
        return Word(None, text, origin.at(scalar))

    return read_value(node, parse, report=report, origin=origin)


def text_at(node: Mapping, key: str, report: Report) -> str:
    """Return the text under a key, ``""`` where there is none."""
    stated = node.get(key)
    word = read_text(stated, report=report) if stated is not None else None
    return word.text if word else ""


def origin_of(
    node: Mapping, *, report: Report, origin: Origin = HERE, key: str = "source-kind"
) -> Origin:
    """Return the origin that a mapping's ``source:`` and `key` say, else `origin`."""
    source, kind = origin.source, origin.kind
    stated = node.get("source")
    if stated is not None:
        source = _text(stated, report) or source
    stated = node.get(key)
    if stated is not None:
        word = _text(stated, report)
        if word in _KINDS:
            kind = cast("FigureKind", word)
        elif word:
            report.add(
                stated,
                "unknown-word",
                f"`{word}` is no kind of figure: {', '.join(_KINDS)}",
                help=did_you_mean(word, _KINDS),
            )
    return Origin(source, kind)


def _text(node: Node, report: Report) -> str:
    if isinstance(node, Scalar):
        return node.text.strip()
    report.add(node, "wrong-shape", "text is expected here")
    return ""


def refuse_unknown_keys(node: Mapping, keys: Iterable[str], *, report: Report, owner: str) -> bool:
    """Report every key that is not one of `keys`, and return whether there was one.

    ``x-`` keys are the user's own.
    """
    names = tuple(keys)
    unknown = [key for key, _ in node if key.text not in names and not key.text.startswith("x-")]
    for key in unknown:
        report.add(
            key,
            "unknown-key",
            f"`{key.text}` is no key of {owner}",
            help=did_you_mean(key.text, names) or f"it may have {', '.join(names)}",
        )
    return bool(unknown)


def rejoin(node: Mapping, names: Iterable[str]) -> Mapping:
    """Give a text that a comma cut in braces its end back.

    In ``{efficiency: 85 %, source: our lspci, MPS 128}`` YAML sees a third key without a value;
    after a `source` or a `title` it can only be the rest of that text.

    Parameters
    ----------
    node
        The mapping as parsed.
    names
        Keys that it may have, which are never taken for text.
    """
    keys = frozenset(names)
    entries: list[tuple[Scalar, Node]] = []
    for key, value in node:
        empty = isinstance(value, Scalar) and not value.text and not value.quoted
        if entries and empty and key.text not in keys and entries[-1][0].text in SENTENCES:
            name, begun = entries[-1]
            if isinstance(begun, Scalar):
                text = Scalar(f"{begun.text}, {key.text}", begun.place, begun.quoted)
                entries[-1] = (name, text)
                continue
        entries.append((key, value))
    return node if len(entries) == len(node.entries) else Mapping(tuple(entries), node.place)


# --- peer-to-peer caps: behaviour that somebody stated, by PCIe's words -----------------------

_DIRECTIONS: Final = ("posted", "non-posted")
_CAPS_KEYS: Final = (*_DIRECTIONS, "source", "kind")


def read_caps(node: Node, *, report: Report, origin: Origin = HERE) -> PeerCaps | None:
    """Read ``{posted: 22 GB/s, non-posted: 10 GB/s per flow}``."""
    if not isinstance(node, Mapping):
        advice = "write {posted: 22 GB/s, non-posted: 10 GB/s per flow}"
        report.add(node, "wrong-shape", "peer-to-peer caps are a mapping", help=advice)
        return None
    node = rejoin(node, _CAPS_KEYS)
    refuse_unknown_keys(node, _CAPS_KEYS, report=report, owner="peer-to-peer caps")
    origin = origin_of(node, report=report, origin=origin, key="kind")

    def cap(name: str) -> PeerCap | None:
        def parse(scalar: Scalar, origin: Origin) -> PeerCap:
            text, per_flow = re.subn(r"\s+per\s+flow\s*$", "", scalar.text)
            source = origin.at(scalar)
            rate = _figure(text, RATE, origin.kind, source, unlimited=False, name=name)
            return PeerCap(rate, bool(per_flow))

        stated = node.get(name)
        if stated is None:
            return None
        cap = read_value(stated, parse, report=report, origin=origin, keys=_FIGURE_KEYS)
        return cap and replace(cap, rate=_with_range(stated, cap.rate, RATE, report))

    return PeerCaps(*map(cap, _DIRECTIONS))
