"""The keys of parts and media, what each holds, and how one value is read.

One table says of each key which quantity it holds, and of each quantity how topo reads, writes,
shows and describes it: it drives the reader of parts, the reader of devices (a device may override
any figure of its part), YAML, JSON, pages and the JSON Schema.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from topo.catalogue.kinds import CARDS, DRIVES, HOSTS, KINDS, MEMORIES, STORAGE
from topo.catalogue.part import Figure, FigureKind, PeerCap, PeerCaps, Slot
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.errors import UnitError
from topo.phrases import did_you_mean
from topo.records import dataclass
from topo.units import (
    format_rate,
    format_ratio,
    format_size,
    format_transfer_rate,
    parse_count,
    parse_flag,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_transfer_rate,
    spell_rate,
    spell_ratio,
    spell_size,
    spell_transfer_rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.document.nodes import Node, Report


# --- quantities -------------------------------------------------------------------------------

NUMBER_PATTERN: Final = r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?"
RATE_PATTERN: Final = rf"{NUMBER_PATTERN} ?([kMGTP]i?B|B|[kMGTP]?(b|bit))/s"
SIZE_PATTERN: Final = rf"{NUMBER_PATTERN} ?[kMGTP]?i?B"


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """What a key may hold, and all that topo does with such a value.

    Parameters
    ----------
    name
        The word for it.
    schema
        The JSON Schema of its plain text or number.
    spell
        Writes a value exactly, as YAML has it.
    parse
        Reads a number or a flag from its text; `None` where reading takes more than the text.
    format
        Writes a number for people; `None` where they read what YAML has.
    unit
        The key of a number in JSON; empty for what is no number.
    """

    name: str
    schema: dict[str, Any]
    spell: Callable[[Any], Any]
    parse: Callable[[str], float] | None = None
    format: Callable[[float], str] | None = None
    unit: str = ""

    def spelled(self, value: Any) -> Any:
        """Return a value as YAML has it; unknown and unlimited are words.

        Examples
        --------
        >>> RATE.spelled(50e9), FLAG.spelled(None), COUNT.spelled(8.0)
        ('50 GB/s', 'unknown', 8)
        """
        return _word_for(value) or self.spell(value)

    def text(self, value: Any) -> str:
        """Return a value for people; unknown and unlimited are words.

        Examples
        --------
        >>> RATE.text(50e9 / 3), SIZE.text(float("inf"))
        ('16.67 GB/s', 'unlimited')
        """
        return _word_for(value) or str((self.format or self.spell)(value))


def _word_for(value: Any) -> str:
    if value is None:
        return "unknown"
    return "unlimited" if value == math.inf else ""


def _spell_slot(slot: Slot) -> str:
    return str(slot.generation) + (f" x{slot.lanes}" if slot.lanes else "")


def _either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


def _pattern(pattern: str, *examples: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    return {**schema, "examples": list(examples)} if examples else schema


RATE: Final = Quantity(
    "rate", _pattern(f"^{RATE_PATTERN}$"), spell_rate, parse_rate, format_rate, "bytes_per_s"
)
SIZE: Final = Quantity(
    "size", _pattern(f"^{SIZE_PATTERN}$"), spell_size, parse_size, format_size, "bytes"
)
COUNT: Final = Quantity(
    "count",
    _either({"type": "integer", "minimum": 0}, _pattern("^[0-9]+$")),
    int,
    lambda text: parse_count(text, positive=False),
    "{:g}".format,
    "count",
)
RATIO: Final = Quantity(
    "ratio",
    _either(
        {"type": "number", "minimum": 0, "maximum": 1},
        _pattern(rf"^{NUMBER_PATTERN} ?%?$", "85 %"),
    ),
    spell_ratio,
    parse_ratio,
    format_ratio,
    "ratio",
)
TRANSFER_RATE: Final = Quantity(
    "transfer-rate",
    _pattern(rf"^{NUMBER_PATTERN} ?[MGT]?T/s$"),
    spell_transfer_rate,
    parse_transfer_rate,
    format_transfer_rate,
    "transfers_per_s",
)
FLAG: Final = Quantity(
    "flag",
    _either({"type": "boolean"}, {"enum": ["yes", "no", "on", "off", "true", "false"]}),
    lambda flag: "yes" if flag else "no",
    parse_flag,
)
TEXT: Final = Quantity("text", {"type": "string"}, str)
SLOT: Final = Quantity(
    "slot",
    _either(_pattern("^[1-9][0-9]?( x(1|2|4|8|16))?$", "5 x16"), {"type": "integer"}),
    _spell_slot,
)
PORTS: Final = Quantity(
    "ports",
    _either({"type": "integer", "minimum": 1}, {"type": "string", "examples": ["2x 400 Gb/s"]}),
    str,
)
# A flag, or caps by direction.
CAPS: Final = Quantity("caps", FLAG.schema, FLAG.spell, parse_flag)


# --- keys -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """One key: its quantity, one line of meaning, the kinds of parts that may have it.

    `words` are the only ones that a text may be; empty means any.
    """

    name: str
    quantity: Quantity
    meaning: str
    kinds: tuple[str, ...] = ()
    unlimited: bool = False
    words: tuple[str, ...] = ()


def _table(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


_PCIE: Final = (*CARDS, *DRIVES, "gpu", "pcie-switch", "cxl-memory", *HOSTS)

FIELDS: Final = _table(
    Field("read", RATE, "what it gives, bytes/s", STORAGE, unlimited=True),
    Field("write", RATE, "what it takes, bytes/s", STORAGE, unlimited=True),
    Field(
        "ports",
        PORTS,
        "network ports: `2x 400 Gb/s`; downstream ports of a PCIe switch: `6`",
        ("storage", *CARDS, "network-switch", "pcie-switch"),
    ),
    Field("chip", RATE, "what its chip passes between wire and PCIe, each direction", CARDS),
    Field("functions", COUNT, "PCI functions it shows", CARDS),
    Field("bridge", FLAG, "holds a PCIe switch whose downstream port carries a GPU", CARDS),
    Field("pcie", SLOT, "PCIe generation and lanes: `5 x16`", _PCIE),
    Field("pcie-lanes", COUNT, "lanes in all", (*HOSTS, "pcie-switch")),
    Field("chips", COUNT, "switch chips inside", ("pcie-switch", "nvswitch")),
    Field("acs", FLAG, "ACS redirect: peer traffic goes by the root", ("pcie-switch", *CARDS)),
    Field("fabric", PORTS, "GPU-to-GPU ports: `18x nvlink 4`", ("gpu", "nvswitch")),
    Field("memory", SIZE, "capacity of its memory", ("gpu",)),
    Field("hbm", RATE, "bandwidth of its memory", ("gpu",)),
    Field("bar1", SIZE, "window through which other devices reach its memory", ("gpu",)),
    Field("p2p", CAPS, "`no`, or peer-to-peer caps", ("gpu", "pcie-switch", *CARDS, *HOSTS)),
    Field("forwards-p2p", FLAG, "the host bridge forwards peer-to-peer traffic", HOSTS),
    Field("cores", COUNT, "cores of one CPU", HOSTS),
    Field("core-copy", RATE, "what one core copies, bytes/s", HOSTS),
    Field("copy", RATE, "what all cores together copy, bytes/s", HOSTS),
    Field("architecture", TEXT, "`x86` or `arm`", HOSTS, words=("x86", "arm")),
    Field("channels", COUNT, "memory channels in all", ("memory",)),
    Field("transfer-rate", TRANSFER_RATE, "transfers/s at one DIMM a channel", ("memory",)),
    Field("transfer-rate-2dpc", TRANSFER_RATE, "transfers/s at two DIMMs a channel", ("memory",)),
    Field("bytes-per-transfer", COUNT, "bytes a channel moves in one transfer", ("memory",)),
    Field("dimms-per-channel", COUNT, "DIMMs in each channel", ("memory",)),
    Field("bus", RATE, "reads and writes together", MEMORIES, unlimited=True),
    Field("size", SIZE, "capacity", (*MEMORIES, *DRIVES)),
    Field("efficiency", RATIO, "share of the computed rate that is achievable", KINDS),
)
FIGURE_KEYS: Final = frozenset(field.name for field in FIELDS.values() if field.quantity.unit)
FLAG_KEYS: Final = frozenset(
    field.name for field in FIELDS.values() if field.quantity in (FLAG, CAPS)
)

# What a part may say besides, and what a medium may say.
PART_WORDS: Final = {
    "kind": "the device kind, where the part is like no other",
    "like": "the part that it starts from",
    "title": "what a person calls it",
    "source": "where its figures come from",
    "source-kind": "`datasheet`, `measured`, `quoted`, `formula` or `guess`",
}
MEDIUM_FIELDS: Final = _table(
    Field("like", TEXT, "the medium that it starts from"),
    Field("reach", TEXT, "`host`, `memory`, `network` or `gpu`: what it joins"),
    Field(
        "rate", RATE, "bytes/s of one cable, one direction; left out where the cable has to say it"
    ),
    Field("per-lane", FLAG, "the rate is of one lane, and a cable says how many: `x16`"),
    Field("transfer-rate", TRANSFER_RATE, "transfers/s of one lane, one bit each"),
    Field("encoding", TEXT, "payload bits over line bits: `128/130`"),
    Field("bytes-per-transfer", COUNT, "bytes one transfer moves, where a cable says GT/s"),
    Field("efficiency", RATIO, "share of the rate that is achievable"),
    *(Field(name, TEXT, PART_WORDS[name]) for name in ("title", "source", "source-kind")),
)


def keys_of(kind: str) -> tuple[str, ...]:
    """Return the keys that a part of `kind` may have, in the table's order.

    Examples
    --------
    >>> keys_of("nvswitch")
    ('chips', 'fabric', 'efficiency')
    """
    return tuple(field.name for field in FIELDS.values() if kind in field.kinds)


# --- one value --------------------------------------------------------------------------------

STATED_KINDS: Final = get_args(FigureKind)
_VALUE_KEYS: Final = ("value", "source", "kind")


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
        What number is expected.
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
    assert quantity.parse is not None
    value = quantity.parse(text)
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
    stated = node.get("source")
    if stated is not None:
        source = _plain_text(stated, report=report) or source
    stated = node.get(key)
    if stated is not None:
        word = _plain_text(stated, report=report)
        if word in STATED_KINDS:
            kind = cast("FigureKind", word)
        elif word:
            report.add(
                stated,
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


SENTENCES: Final = ("source", "title")
"""Keys whose text is a sentence, in which people write commas."""


# --- peer-to-peer caps: behaviour that somebody stated, by PCIe's words -----------------------

_DIRECTIONS: Final = ("posted", "non-posted")
_CAPS_KEYS: Final = (*_DIRECTIONS, "source", "kind")


def read_caps(node: Node, *, report: Report, origin: Origin = HERE) -> PeerCaps | None:
    """Read ``{posted: 22 GB/s, non-posted: 10 GB/s per flow}``."""
    if not isinstance(node, Mapping):
        report.add(
            node,
            "wrong-shape",
            "peer-to-peer caps are a mapping",
            help="write {posted: 22 GB/s, non-posted: 10 GB/s per flow}",
        )
        return None
    node = rejoin(node, _CAPS_KEYS)
    refuse_unknown_keys(node, _CAPS_KEYS, report=report, owner="peer-to-peer caps")
    origin = origin_of(node, report=report, origin=origin, key="kind")
    caps = {
        name: _cap(stated, name, report=report, origin=origin)
        for name in _DIRECTIONS
        if (stated := node.get(name)) is not None
    }
    return PeerCaps(caps.get("posted"), caps.get("non-posted"))


def _cap(node: Node, name: str, *, report: Report, origin: Origin) -> PeerCap | None:
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    text, per_flow = re.subn(r"\s+per\s+flow\s*$", "", scalar.text)
    scalar = Scalar(text, scalar.place, scalar.quoted)
    rate = read_figure(scalar, RATE, report=report, origin=origin, name=name)
    return None if rate is None else PeerCap(rate, bool(per_flow))
