"""Read media: what cables are made of."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast, get_args

from topo.catalogue.fields import (
    MEDIUM_FIELDS,
    Origin,
    origin_of,
    read_figure,
    read_flag,
    read_text,
    refuse_unknown_keys,
    rejoin,
)
from topo.catalogue.part import Figure, Medium, Reach
from topo.document.nodes import Mapping, Scalar
from topo.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from topo.catalogue.part import FigureKind
    from topo.document.nodes import Node, Report


_NAME: Final = re.compile(r"[a-z][a-z0-9-]*( [a-z0-9-]+)?")


def read_medium(
    name: str,
    node: Node,
    *,
    media: Table[str, Medium],
    report: Report,
    kind: FigureKind = "quoted",
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
        report.add(
            node,
            "wrong-shape",
            f"`{name}` is no mapping",
            help=f"write {name}: {{efficiency: 85 %, source: ...}}",
        )
        return None
    node = rejoin(node, MEDIUM_FIELDS)
    refused = refuse_unknown_keys(node, MEDIUM_FIELDS, report=report, owner="a medium")
    base, found = _base(name, node, media, report)
    origin = origin_of(node, report=report, origin=Origin(kind=kind))
    reachless = base is None and node.get("reach") is None
    silent = not found or (refused and reachless)  # complained of already
    reach = None if silent else _reach(name, node, base, report)
    start = base or Medium(name, name, "host", None)
    figures = {
        field.name: read_figure(
            value, field.quantity, report=report, origin=origin, name=field.name
        )
        for field in MEDIUM_FIELDS.values()
        if field.quantity.unit and (value := node.get(field.name)) is not None
    }
    read = replace(
        start,
        name=name,
        family=name.partition(" ")[0],
        per_lane=_per_lane(node, start, report),
        encoding=_encoding(node, start, report),
        bytes_per_transfer=figures.get("bytes-per-transfer") or start.bytes_per_transfer,
        efficiency=figures.get("efficiency") or start.efficiency,
        title=_text(node, "title", report) or start.title,
        source=origin.source or start.source,
    )
    if "transfer-rate" in figures and not read.encoding and node.get("encoding") is None:
        report.add(
            node,
            "bad-encoding",
            f"`{name}` says transfers/s and not how many of the bits are payload",
            help="write `encoding: 128/130`, or `1/1` where all are",
        )
    return None if reach is None else replace(_rated(read, figures), reach=reach)


def _rated(medium: Medium, figures: Table[str, Figure | None]) -> Medium:
    """Give a medium its rate: the stated one, or what transfers and encoding make."""
    if (stated := figures.get("rate")) is not None:
        return replace(medium, rate=stated, transfer_rate=None, encoding="")
    transfer_rate = figures.get("transfer-rate") or medium.transfer_rate
    if transfer_rate is None or not medium.encoding:
        return medium
    rate = _lane_rate(transfer_rate, medium.encoding)
    return replace(medium, rate=rate, transfer_rate=transfer_rate, per_lane=True)


def read_media(
    node: Node | None, *, media: Table[str, Medium], report: Report
) -> dict[str, Medium]:
    """Read a file's `media:` and return them with the built-in ones, its own laid over."""
    if node is None:
        return dict(media)
    if not isinstance(node, Mapping):
        report.add(
            node,
            "wrong-shape",
            "`media:` is a mapping of names",
            help="write pcie 5: {efficiency: 85 %, source: ...}",
        )
        return dict(media)
    everything = dict(media)
    for key, value in node:
        if not _NAME.fullmatch(key.text):
            report.add(
                key,
                "bad-name",
                f"`{key.text}` is no name for a medium",
                help="one or two words in small letters: `pcie 5`, `slingshot`",
            )
            continue
        medium = read_medium(key.text, value, media=everything, report=report)
        if medium is not None:
            everything[key.text] = medium
    return everything


def _base(
    name: str, node: Mapping, media: Table[str, Medium], report: Report
) -> tuple[Medium | None, bool]:
    """Return the medium it starts from, and whether that one (if any was named) was found."""
    like = node.get("like")
    if like is None:
        return media.get(name), True
    text = like.text.strip() if isinstance(like, Scalar) else ""
    if text not in media:
        report.add(
            like,
            "unknown-medium",
            f"there is no medium `{text}`" if text else "`like:` names one medium",
            help=did_you_mean(text, media) if text else "",
        )
        return None, False
    return media[text], True


def _reach(name: str, node: Mapping, base: Medium | None, report: Report) -> Reach | None:
    words = get_args(Reach)
    said = node.get("reach")
    if said is not None:
        word = read_text(said, report=report, words=words)
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
    text = _text(node, "encoding", report)
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


def _per_lane(node: Mapping, base: Medium, report: Report) -> bool:
    said = node.get("per-lane")
    word = read_flag(said, report=report) if said is not None else None
    return bool(word.flag) if word else base.per_lane


def _lane_rate(transfer_rate: Figure, encoding: str) -> Figure:
    payload, _, line = encoding.partition("/")
    if transfer_rate.value is None:
        return Figure(None, "formula", f"unknown x {encoding} / 8")
    return Figure(
        transfer_rate.value * int(payload) / int(line) / 8,
        "formula",
        f"{transfer_rate.value / 1e9:.10g} GT/s x {encoding} / 8",
    )


def _text(node: Mapping, key: str, report: Report) -> str:
    said = node.get(key)
    word = read_text(said, report=report) if said is not None else None
    return word.text if word else ""
