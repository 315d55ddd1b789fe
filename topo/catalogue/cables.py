"""Read media, and the cables that are made of them: ``pcie 5 x16``, ``2x infiniband ndr``.

The rate of one cable is computed here, one direction, with the formula as its source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping as Table
from dataclasses import replace
from typing import Final, cast, get_args

from topo.catalogue import values
from topo.catalogue.fields import MEDIUM_FIELDS
from topo.catalogue.part import Cable, Figure, FigureKind, Medium, Reach
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean
from topo.units import parse_rate, parse_transfer_rate

_MEDIUM_NAME: Final = re.compile(r"[a-z][a-z0-9-]*( [a-z0-9-]+)?")
LANES: Final = (1, 2, 4, 8, 16)
_CABLE_FIGURES: Final = ("rate", "efficiency", "duplex")
CABLE_KEYS: Final = ("medium", *_CABLE_FIGURES, "p2p", "source")
# By what other formats say what a cable is.
_OTHER_KEYS: Final = ("type", "kind", "protocol", "gen", "generation", "version", "lanes", "width")
_EXAMPLES: Final = "`pcie 5 x16`, `2x infiniband ndr`, `4x upi 16 GT/s`, `ethernet 400 Gb/s`"


# --- cables ---------------------------------------------------------------------------------------


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
    if not isinstance(node, Mapping):
        return values.read_value(
            node,
            lambda scalar, origin: parse_cable(scalar.text, media, source=origin.at(scalar)),
            report=report,
        )
    node = values.rejoin(node, CABLE_KEYS)
    if node.get("medium") is None and (written := _in_keys(node)):
        message = "a cable is one text, or a mapping with that under `medium:`"
        advice = f"write `{_likely(written, media) or 'pcie 5 x16'}`"
        report.add(node, "not-a-cable", message, help=advice)
        return None
    refused = values.refuse_unknown_keys(node, CABLE_KEYS, report=report, owner="a cable")
    origin = values.origin_of(node, report=report)
    caps = None
    figures = {
        key: values.read_figure(
            stated, MEDIUM_FIELDS[key].quantity, report=report, origin=origin, name=key
        )
        for key in _CABLE_FIGURES
        if (stated := node.get(key)) is not None
    }
    if (stated := node.get("p2p")) is not None:
        caps = values.read_caps(stated, report=report, origin=origin)
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
    return replace(
        cable,
        efficiency=figures.get("efficiency") or cable.efficiency,
        duplex=figures.get("duplex") or cable.duplex,
        stated=figures.get("rate"),
        p2p=caps,
    )


def _in_keys(node: Mapping) -> str:
    """Return what a mapping says by keys that no cable has, as one text: ``pcie 5 x16``."""
    words = [
        f"x{value.text}" if key.text in ("lanes", "width") and value.text.isdigit() else value.text
        for key, value in node
        if key.text in _OTHER_KEYS and isinstance(value, Scalar)
    ]
    return " ".join(words)


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
        finding = error.findings[0]
        raise UnitError(finding.code, finding.message, f"write `{likely}`") from None


def _parse(text: str, media: Table[str, Medium], source: str, kind: FigureKind) -> Cable:
    words = text.split()
    if "?" in text:
        raise UnitError(
            "not-a-cable", "`?` says nothing here", "write `unknown`: `pcie unknown x16`"
        )
    if not words:
        raise UnitError("not-a-cable", "a cable is missing", f"write one: {_EXAMPLES}")
    count = 1
    if (times := re.fullmatch(r"([0-9]{1,9})x", words[0])) is not None:
        count, words = int(times[1]), words[1:]
    if count == 0:
        raise UnitError("zero-capacity", f"`{text.strip()}` is no cable at all", "leave it out")
    name, words = _take_medium(words, media)
    shorthand = " ".join(text.split())
    if name not in media:  # the family alone, then `unknown` and perhaps lanes
        if len(words) > 2:  # noqa: PLR2004  (`unknown x16`)
            raise _extra_words(words[2:], shorthand)
        lanes = _lanes(words[1], shorthand) if words[1:] else None
        reach = next(medium.reach for medium in media.values() if medium.family == name)
        rate = Figure(None, kind, source)
        return Cable(name, name, reach, rate, count, lanes, text=shorthand)
    medium = media[name]
    generation = name.rpartition(" ")[2]
    lanes, rate = _lanes_and_rate(medium, words, shorthand, source, kind)
    return Cable(
        medium=name,
        family=medium.family,
        reach=medium.reach,
        rate=rate,
        count=count,
        lanes=lanes,
        generation=int(generation) if re.fullmatch("[0-9]+", generation) else None,
        efficiency=medium.efficiency,
        duplex=medium.duplex,
        text=shorthand,
    )


def _take_medium(words: list[str], media: Table[str, Medium]) -> tuple[str, list[str]]:
    """Split a medium's name off; the family alone when its generation is ``unknown``."""
    lower = [word.lower() for word in words]
    for length in (2, 1):
        name = " ".join(lower[:length])
        # A family with generations has its own name for a stated rate: `infiniband 25 Gb/s`.
        has_rate = bool(words[1:]) and (words[1][0].isdigit() or lower[1] == "unknown")
        is_family = length == 1 and any(other.startswith(f"{name} ") for other in media)
        if len(words) >= length and name in media and (has_rate or not is_family):
            return name, words[length:]
    if not words:
        raise UnitError("not-a-cable", "a count without a cable", f"write one: {_EXAMPLES}")
    family = lower[0]
    families = tuple(dict.fromkeys(name.partition(" ")[0] for name in media))
    if family not in families:
        raise UnitError(
            "unknown-medium",
            f"`{words[0]}` is no medium of a cable",
            did_you_mean(words[0], families) or f"media are {', '.join(families)}",
        )
    if lower[1:2] == ["unknown"]:
        return family, words[1:]
    names = [name for name in media if name.startswith(f"{family} ")]
    generations = f"{family} has {', '.join(name.partition(' ')[2] for name in names)}"
    if not words[1:] or re.fullmatch("x[0-9]+", words[1]):
        usual = names[max(len(names) - 2, 0)]
        example = " ".join([usual, *words[1:2]])
        message = f"`{family}` without its generation"
        raise UnitError("not-a-cable", message, f"write `{example}`; {generations}")
    near = "" if words[1].isdigit() else did_you_mean(f"{family} {words[1]}", names)
    message = f"there is no `{family} {words[1]}`"
    raise UnitError("unknown-medium", message, near or generations)


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
        return _coded_rate(medium.transfer_rate, medium.encoding, lanes)
    lane_rate = _number(medium.rate.value / 1e9)
    kind: FigureKind = "formula" if medium.rate.scalable else medium.rate.kind
    return Figure(
        medium.rate.value * lanes, kind, f"{lanes} lanes x {lane_rate} GB/s ({medium.rate.source})"
    )


def _coded_rate(transfer_rate: Figure, encoding: str, lanes: int | None = None) -> Figure:
    """Return what so many lanes carry when the coding is taken off."""
    times = f" x {lanes}" if lanes else ""
    if transfer_rate.value is None:
        return Figure(None, "formula", f"unknown{times} x {encoding} / 8")
    payload, _, line = encoding.partition("/")
    return Figure(
        transfer_rate.value * (lanes or 1) * int(payload) / int(line) / 8,
        "formula",
        f"{_number(transfer_rate.value / 1e9)} GT/s{times} x {encoding} / 8",
    )


def _stated_rate(medium: Medium, text: str, source: str, kind: FigureKind) -> Figure:
    """Read the rate that a cable has to say itself: ``400 Gb/s``, ``16 GT/s``, ``unknown``."""
    if text == "unknown":
        return Figure(None, kind, source)
    if medium.bytes_per_transfer is not None and text.endswith("T/s"):
        transfers, transferred = parse_transfer_rate(text), medium.bytes_per_transfer.value
        if transferred is None:
            return Figure(None, "formula", f"{text} x unknown bytes")
        rate = Figure(transfers * transferred, "formula", f"{text} x {_number(transferred)} B")
    elif medium.reach == "network":
        rate = Figure(parse_rate(text), "formula", f"line rate {text}")
    else:
        rate = Figure(parse_rate(text), kind, source)
    if not rate.value:
        raise UnitError("zero-capacity", f"`{text}` lets nothing through", "write `unknown`")
    return rate


def _lanes(word: str, text: str) -> int:
    advice = "write x1, x2, x4, x8 or x16"
    number = re.fullmatch(r"x([0-9]{1,3})", word)
    if number is None:
        raise UnitError("not-a-cable", f"`{word}` is no lane count in `{text}`", advice)
    lanes = int(number[1])
    if lanes not in LANES:
        message = f"a link has 1, 2, 4, 8 or 16 lanes, not {lanes}"
        raise UnitError("not-a-cable", message, advice)
    return lanes


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
    (r"^(?:pcie )?(x\d+) (\d)(?:\.0)?$", r"pcie \2 \1"),
    (r"^(nvlink \d) x?(\d+)x?$", r"\2x \1"),
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


# --- media ----------------------------------------------------------------------------------------


def read_medium(
    name: str, node: Node, *, media: Table[str, Medium], report: Report, kind: FigureKind = "quoted"
) -> Medium | None:
    """Read one medium; under a built-in's name it changes what it says and keeps the rest.

    Parameters
    ----------
    name
        As it is written in a cable: one or two words.
    node
        A mapping of the medium's keys.
    media
        The media that it may start from.
    report
        Takes what is wrong.
    kind
        What sort of figures they are where the medium does not say.
    """
    if not isinstance(node, Mapping):
        advice = f"write {name}: {{efficiency: 85 %, source: ...}}"
        report.add(node, "wrong-shape", f"`{name}` is no mapping", help=advice)
        return None
    node = values.rejoin(node, MEDIUM_FIELDS)
    refused = values.refuse_unknown_keys(node, MEDIUM_FIELDS, report=report, owner="a medium")
    base, is_found = _base(name, node, media, report)
    origin = values.origin_of(node, report=report, origin=values.Origin(kind=kind))
    reachless = base is None and node.get("reach") is None
    silent = not is_found or (refused and reachless)  # complained of already
    reach = None if silent else _reach(name, node, base, report)
    start = base or Medium(name, name, "host", None)
    stated = node.get("per-lane")
    per_lane = values.read_flag(stated, report=report) if stated is not None else None
    figures = {
        field.name: values.read_figure(
            value, field.quantity, report=report, origin=origin, name=field.name
        )
        for field in MEDIUM_FIELDS.values()
        if field.quantity.unit and (value := node.get(field.name)) is not None
    }
    medium = replace(
        start,
        name=name,
        family=name.partition(" ")[0],
        per_lane=bool(per_lane.flag) if per_lane else start.per_lane,
        encoding=_encoding(node, start, report),
        bytes_per_transfer=figures.get("bytes-per-transfer") or start.bytes_per_transfer,
        efficiency=figures.get("efficiency") or start.efficiency,
        duplex=figures.get("duplex") or start.duplex,
        dma=figures.get("dma") or start.dma,
        title=values.text_at(node, "title", report) or start.title,
        source=origin.source or start.source,
    )
    if "transfer-rate" in figures and not medium.encoding and node.get("encoding") is None:
        report.add(
            node,
            "bad-encoding",
            f"`{name}` says transfers/s and not how many of the bits are payload",
            help="write `encoding: 128/130`, or `1/1` where all are",
        )
    if reach is None:
        return None
    medium = replace(medium, reach=reach)
    # Its rate is the stated one, or what transfers and encoding make.
    if (rate := figures.get("rate")) is not None:
        return replace(medium, rate=rate, transfer_rate=None, encoding="")
    transfer_rate = figures.get("transfer-rate") or medium.transfer_rate
    if transfer_rate is None or not medium.encoding:
        return medium
    rate = _coded_rate(transfer_rate, medium.encoding)
    return replace(medium, rate=rate, transfer_rate=transfer_rate, per_lane=True)


def read_media(
    node: Node | None, *, media: Table[str, Medium], report: Report
) -> dict[str, Medium]:
    """Read a file's `media:` and return them with the built-in ones, its own laid over."""
    everything = dict(media)
    if node is None:
        return everything
    if not isinstance(node, Mapping):
        advice = "write pcie 5: {efficiency: 85 %, source: ...}"
        report.add(node, "wrong-shape", "`media:` is a mapping of names", help=advice)
        return everything
    for key, value in node:
        if not _MEDIUM_NAME.fullmatch(key.text):
            report.add(
                key,
                "bad-name",
                f"`{key.text}` is no name for a medium",
                help="one or two words in small letters: `pcie 5`, `slingshot`",
            )
            continue
        medium = read_medium(key.text, value, media=everything, report=report)
        if medium is not None:
            everything[key.text] = replace(medium, place=key.place)
    return everything


def _base(
    name: str, node: Mapping, media: Table[str, Medium], report: Report
) -> tuple[Medium | None, bool]:
    """Return the medium it starts from, and whether that one (if any was named) was found."""
    base_name = node.get("like")
    if base_name is None:
        return media.get(name), True
    text = base_name.text.strip() if isinstance(base_name, Scalar) else ""
    if text not in media:
        report.add(
            base_name,
            "unknown-medium",
            f"there is no medium `{text}`" if text else "`like:` names one medium",
            help=did_you_mean(text, media) if text else "",
        )
        return None, False
    return media[text], True


def _reach(name: str, node: Mapping, base: Medium | None, report: Report) -> Reach | None:
    words = get_args(Reach)
    stated = node.get("reach")
    if stated is not None:
        word = values.read_text(stated, report=report, words=words)
        return cast("Reach", word.text) if word else None
    if base is not None:
        return base.reach
    report.add(
        node,
        "missing-reach",
        f"`{name}` is new here and does not say what it joins",
        help=f"write `reach:` and one of {', '.join(words)}, or `like:` and a medium",
    )
    return None


def _encoding(node: Mapping, base: Medium, report: Report) -> str:
    text = values.text_at(node, "encoding", report)
    if not text:
        return base.encoding
    bits = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", text)
    if bits is None or int(bits[1]) > int(bits[2]):
        report.add(
            cast("Scalar", node.get("encoding")),
            "bad-encoding",
            f"`{text}` is no share of payload bits in line bits",
            help="write it like 128/130",
        )
        return ""
    return text
