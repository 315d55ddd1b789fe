"""Read a cable: ``pcie 5 x16``, ``2x infiniband ndr``, ``4x upi 16 GT/s``.

The rate of one cable is computed here, one direction, with the formula as its source.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import (
    RATIO,
    open_value,
    origin_of,
    read_caps,
    read_figure,
    refuse_unknown_keys,
    rejoin,
)
from topo.catalogue.part import Cable, Figure, FigureKind
from topo.document.nodes import Mapping, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean
from topo.units import parse_rate, parse_transfer_rate

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from topo.catalogue.part import Medium
    from topo.document.nodes import Node, Report


LANES: Final = (1, 2, 4, 8, 16)
_CABLE_KEYS: Final = ("medium", "efficiency", "p2p", "source")
_EXAMPLES: Final = "`pcie 5 x16`, `2x infiniband ndr`, `4x upi 16 GT/s`, `ethernet 400 Gb/s`"


def read_cable(node: Node, *, media: Table[str, Medium], report: Report) -> Cable | None:
    """Read a cable's shorthand, or a mapping with ``medium:`` in that same shorthand.

    Parameters
    ----------
    node
        The value under ``a -- b``.
    media
        The media that there are, by name.
    report
        Takes what is wrong.

    Returns
    -------
    Cable or None
        `None` when there is no cable to be read, which the report then says.
    """
    if isinstance(node, Mapping):
        return _read_mapping(node, media=media, report=report)
    opened = open_value(node, report=report)
    if opened is None:
        return None
    try:
        return parse_cable(opened[0].text, media, source=opened[1].at(opened[0]))
    except UnitError as error:
        report.unit(opened[0], error)
        return None


def _read_mapping(node: Mapping, *, media: Table[str, Medium], report: Report) -> Cable | None:
    node = rejoin(node, _CABLE_KEYS)
    refused = refuse_unknown_keys(node, _CABLE_KEYS, report=report, owner="a cable")
    origin = origin_of(node, report=report)
    efficiency = caps = None
    if (said := node.get("efficiency")) is not None:
        efficiency = read_figure(said, RATIO, report=report, origin=origin, name="efficiency")
    if (said := node.get("p2p")) is not None:
        caps = read_caps(said, report=report, origin=origin)
    medium = node.get("medium")
    if medium is None:
        if refused:  # that key was meant for it
            return None
        report.add(
            node, "not-a-cable", "a cable needs `medium:`", help="write {medium: pcie 5 x16, ...}"
        )
        return None
    if not isinstance(medium, Scalar):
        report.add(medium, "wrong-shape", "a medium is a text", help=f"like {_EXAMPLES}")
        return None
    cable = read_cable(medium, media=media, report=report)
    if cable is None:
        return None
    return replace(cable, efficiency=efficiency or cable.efficiency, p2p=caps)


def parse_cable(
    text: str, media: Table[str, Medium], *, source: str = "", kind: FigureKind = "quoted"
) -> Cable:
    """Read a cable's shorthand.

    Parameters
    ----------
    text
        ``[N x] medium [xL] [rate]``; a rate or a generation may be ``unknown``.
    media
        The media that there are, by name.
    source, kind
        Of a rate that the text states and that is no network's line rate.

    Raises
    ------
    UnitError
        With the code `not-a-cable`, `unknown-medium`, `zero-capacity` or one of a rate's.
    """
    try:
        return _parse(text, media, source or text.strip(), kind)
    except UnitError as error:
        likely = _likely(text, media)
        if not likely:
            raise
        found = error.findings[0]
        raise UnitError(found.code, found.message, f"write `{likely}`") from None


def _parse(text: str, media: Table[str, Medium], source: str, kind: FigureKind) -> Cable:
    words = text.split()
    if "?" in text:
        raise UnitError(
            "not-a-cable", "`?` says nothing here", "write `unknown`: `pcie unknown x16`"
        )
    count, words = _take_count(words, text)
    name, words = _take_medium(words, media)
    shown = " ".join(text.split())
    if name not in media:  # the family alone, its generation unknown
        lanes = _unknown_generation(words, shown)
        reach = next(medium.reach for medium in media.values() if medium.family == name)
        rate = Figure(None, kind, source)
        return Cable(name, name, reach, rate, count, lanes, text=shown)
    medium = media[name]
    generation = name.rpartition(" ")[2]
    lanes, rate = _lanes_and_rate(medium, words, shown, source, kind)
    return Cable(
        medium=name,
        family=medium.family,
        reach=medium.reach,
        rate=rate,
        count=count,
        lanes=lanes,
        generation=int(generation) if re.fullmatch("[0-9]+", generation) else None,
        efficiency=medium.efficiency,
        text=shown,
    )


def _take_count(words: list[str], text: str) -> tuple[int, list[str]]:
    if not words:
        raise UnitError("not-a-cable", "a cable is missing", f"write one: {_EXAMPLES}")
    times = re.fullmatch(r"([0-9]{1,9})x", words[0])
    if times is None:
        return 1, words
    if int(times[1]) == 0:
        raise UnitError("zero-capacity", f"`{text.strip()}` is no cable at all", "leave it out")
    return int(times[1]), words[1:]


def _take_medium(words: list[str], media: Table[str, Medium]) -> tuple[str, list[str]]:
    """Split a medium's name off; the family alone when its generation is ``unknown``."""
    lower = [word.lower() for word in words]
    for length in (2, 1):
        name = " ".join(lower[:length])
        if len(words) >= length and name in media:
            return name, words[length:]
    families = tuple(dict.fromkeys(name.partition(" ")[0] for name in media))
    if not words or lower[0] not in families:
        if not words:
            raise UnitError("not-a-cable", "a count without a cable", f"write one: {_EXAMPLES}")
        raise UnitError(
            "unknown-medium",
            f"`{words[0]}` is no medium of a cable",
            did_you_mean(words[0], families) or f"media are {', '.join(families)}",
        )
    if lower[1:2] == ["unknown"]:
        return lower[0], words[1:]
    raise _no_such_generation(lower[0], words[1:], media)


def _no_such_generation(family: str, rest: list[str], media: Table[str, Medium]) -> UnitError:
    names = [name for name in media if name.startswith(f"{family} ")]
    known = [name.partition(" ")[2] for name in names]
    says = f"{family} has {', '.join(known)}"
    if not rest or re.fullmatch("x[0-9]+", rest[0]):
        usual = names[max(len(names) - 2, 0)]
        example = f"{usual} {rest[0]}" if rest else usual
        return UnitError(
            "not-a-cable", f"`{family}` without its generation", f"write `{example}`; {says}"
        )
    near = "" if rest[0].isdigit() else did_you_mean(f"{family} {rest[0]}", names)
    return UnitError("unknown-medium", f"there is no `{family} {rest[0]}`", near or says)


def _unknown_generation(words: list[str], text: str) -> int | None:
    """Read what follows a family: ``unknown`` and perhaps lanes."""
    if len(words) == 1:
        return None
    if len(words) == 2:  # noqa: PLR2004  (`unknown x16`)
        return _lanes(words[1], text)
    raise _extra_words(words[2:], text)


def _lanes_and_rate(
    medium: Medium, words: list[str], text: str, source: str, kind: FigureKind
) -> tuple[int | None, Figure]:
    if medium.per_lane:
        if not words:
            raise UnitError(
                "not-a-cable",
                f"`{text}` does not say how many lanes",
                f"write `{text} x16`, or `{text} unknown`",
            )
        if len(words) > 1:
            raise _extra_words(words[1:], text)
        if words[0] == "unknown":
            return None, Figure(None, kind, source)
        lanes = _lanes(words[0], text)
        return lanes, cable_rate(medium, lanes)
    if medium.reach == "memory" or medium.rate is not None:
        if words:
            raise _extra_words(words, text)
        return None, cable_rate(medium)
    if not words:
        unit = "16 GT/s" if medium.bytes_per_transfer is not None else "400 Gb/s"
        raise UnitError(
            "not-a-cable",
            f"`{text}` does not say how fast it is",
            f"write `{text} {unit}`, or `{text} unknown`",
        )
    return None, _stated_rate(medium, " ".join(words), source, kind)


def cable_rate(medium: Medium, lanes: int | None = None) -> Figure:
    """Return the rate of one cable, one direction, as the medium computes or states it."""
    if medium.reach == "memory":
        return Figure(math.inf, "formula", "no limit of its own: the memory's bus is the limit")
    if medium.rate is None or medium.rate.value is None:
        return Figure(None, "formula", f"{medium.name}: rate unknown")
    if lanes is None:
        return medium.rate
    if medium.transfer_rate is not None and medium.transfer_rate.value and medium.encoding:
        payload, _, line = medium.encoding.partition("/")
        transfers = medium.transfer_rate.value
        return Figure(
            transfers * lanes * int(payload) / int(line) / 8,
            "formula",
            f"{_number(transfers / 1e9)} GT/s x {lanes} x {medium.encoding} / 8",
        )
    each = _number(medium.rate.value / 1e9)
    kind: FigureKind = "formula" if medium.rate.scalable else medium.rate.kind
    return Figure(
        medium.rate.value * lanes, kind, f"{lanes} lanes x {each} GB/s ({medium.rate.source})"
    )


def _stated_rate(medium: Medium, text: str, source: str, kind: FigureKind) -> Figure:
    """Read the rate that a cable has to say itself: ``400 Gb/s``, ``16 GT/s``, ``unknown``."""
    if text == "unknown":
        return Figure(None, kind, source)
    if medium.bytes_per_transfer is not None and text.endswith("T/s"):
        transfers, each = parse_transfer_rate(text), medium.bytes_per_transfer.value
        if each is None:
            return Figure(None, "formula", f"{text} x unknown bytes")
        rate = Figure(transfers * each, "formula", f"{text} x {_number(each)} B")
    elif medium.reach == "network":
        rate = Figure(parse_rate(text), "formula", f"line rate {text}")
    else:
        rate = Figure(parse_rate(text), kind, source)
    if not rate.value:
        raise UnitError("zero-capacity", f"`{text}` lets nothing through", "write `unknown`")
    return rate


def _lanes(word: str, text: str) -> int:
    number = re.fullmatch(r"x([0-9]{1,3})", word)
    if number is None:
        raise UnitError(
            "not-a-cable", f"`{word}` is no lane count in `{text}`", "write x1, x2, x4, x8 or x16"
        )
    if int(number[1]) not in LANES:
        raise UnitError(
            "not-a-cable",
            f"a link has 1, 2, 4, 8 or 16 lanes, not {int(number[1])}",
            "write x1, x2, x4, x8 or x16",
        )
    return int(number[1])


def _extra_words(words: list[str], text: str) -> UnitError:
    extra = " ".join(words)
    return UnitError(
        "not-a-cable",
        f"`{extra}` is too much in `{text}`",
        "a link's own figures stand in a mapping: {medium: pcie 5 x16, efficiency: 83 %}"
        if "%" in extra
        else f"leave `{extra}` out",
    )


def _number(value: float) -> str:
    return f"{value:.10g}"


# Habits of writing a cable, each with what topo writes for it; applied in this order.
_HABITS: Final = (
    (r"[\u00d7*]", "x"),
    (r"^(\d+)\s+x\s+", r"\1x "),
    (r"\bpci[- ]?e?(?:xpress)?[- ]?(?:gen|v)?[- ]?(\d)(?:\.0)?(?=\b|x)", r"pcie \1 "),
    (r"^gen[- ]?(\d)\b", r"pcie \1"),
    (r"\bgen[- ]?(\d)\b", r"\1"),
    (r"^pcie (x\d+) (\d)(?:\.0)?$", r"pcie \2 \1"),
    (r"\b(\d+) lanes?\b", r"x\1"),
    (r"(?<=pcie \d) +(\d+)x\b", r" x\1"),
    (r"\bx +(\d+)\b", r"x\1"),
    (r"\bnvlink[- ]?v?(\d)(?:\.0)?\b", r"nvlink \1"),
    (r"\b(?:nvlink[- ])?c2c\b", "nvlink-c2c"),
    (r"\b(?:ib|infiniband)[- ]([nhex]dr|fdr)(?:400|100)?\b", r"infiniband \1"),
    (r"^(\d+x )?(?:4x )?([nhex]dr(?:200)?|fdr)$", r"\1infiniband \2"),
    (r"\b(?:roce(?:v2)?|eth)\b", "ethernet"),
    (r"^((?:\d+x )?)(\d+) ?gbe$", r"\1ethernet \2 Gb/s"),
    (r"\bethernet (\d+)(?: ?g(?:be?)?)?$", r"ethernet \1 Gb/s"),
    (r"\binfinity[- ]fabric\b", "xgmi"),
    (r"\b(?:memory|mem)[ _]bus\b|\bddr\d?\b", "memory-bus"),
    (r"\b((?:upi|qpi|xgmi) [\d.]+)$", r"\1 GT/s"),
)
_LONGEST: Final = 80  # characters of a text that are looked at for habits


def _likely(text: str, media: Table[str, Medium]) -> str:
    """Return the shorthand that `text` was probably meant for, or nothing."""
    if len(text) > _LONGEST:
        return ""
    written = " ".join(text.split())
    for habit, replacement in _HABITS:
        written = re.sub(habit, replacement, written, flags=re.IGNORECASE)
        written = " ".join(written.split())
    try:
        _parse(written, media, "", "quoted")
    except UnitError:
        return ""
    return written if written != text.strip() else ""
