"""What each key of a topology file means, and where it may stand: one list, for people.

It is made from the tables that the readers use. `topo explain KEY` and `docs/language.md` show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from topo.catalogue import fields
from topo.catalogue.kinds import KINDS
from topo.description.keys import (
    CABLE,
    COLLECTIVE,
    DATA_PATH,
    DEVICE,
    FABRIC,
    MEASURED,
    MOVE,
    SETTINGS,
    TOP,
    USE,
    WORKLOAD,
    Keys,
)
from topo.phrases import listed
from topo.records import dataclass


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A key in one place of a file.

    Parameters
    ----------
    key
        The key, as it is written.
    place
        Where it stands: "a workload".
    meaning
        What it means, in one line.
    holds
        What is written after it: "a rate: `50 GB/s`, `400 Gb/s`"; empty for plain text.
    kinds
        The kinds of devices that have it; empty where that does not matter.
    is_figure
        Whether it is a figure, which may be unknown and may stand with its source.
    """

    key: str
    place: str
    meaning: str
    holds: str
    kinds: tuple[str, ...] = ()
    is_figure: bool = False


# What is written after a key: by the name of a quantity, or by what a row holds.
_HOLDS: Final[Mapping[str, str]] = {
    "version": "`1`",
    "text": "",
    "text-list": "a text, or a list of one for each device",
    "name-list": "a name, or a list of names",
    "selection": "devices: `storage`, `gpu`, `gpu[0-3]`, or a list",
    "flag": "`yes` or `no`",
    "weight": "a number: `2`",
    "count": "a whole number",
    "ratio": "a share: `85 %`, `0.85`",
    "figure": "a share: `85 %`, `0.85`",
    "duplex": "a share from a half to one: `90 %`",
    "ratios": "a ratio: `2`, `4:3`, or a list of them",
    "rate": "a rate: `50 GB/s`, `400 Gb/s`",
    "worker-rate": "a rate: `3.91 GB/s`, `3.91 GB/s per worker`",
    "size": "a size: `96 GB`, `80 GiB`",
    "transfer-rate": "a transfer rate: `4800 MT/s`, `32 GT/s`",
    "duration": "a duration: `2 s`, `3 min`",
    "positive-duration": "a duration: `50000 h`",
    "amount": "a number: `1800`",
    "slot": "generation and lanes: `5 x16`",
    "ports": "a count, or counts of rates: `2x 400 Gb/s`, `18x nvlink 4`",
    "caps": "`yes`, `no`, or caps: `{posted: 22 GB/s, non-posted: 10 GB/s per flow}`",
    "cap": "a rate: `22 GB/s`, `10 GB/s per flow`",
    "range": "two values: `60-75 %`, `8-15 GB/s`",
    "tokens": "a count: `128000`, `128Ki`, `1M`",
    "accelerators": "a count, or what they are: `16384`, `h100`, `5x h100 each`",
    "work-size": "a size: `640 GB`, `80 GB each`",
    "ratio-range": "a share, or two: `70 %`, `60-80 %`",
    "pci-list": "an address, `1b:00.0`, or a list",
    "numa-list": "numbers: `0-3`, or a list of one for each device",
    "part-name": "the name of a part, or a list of one for each device",
    "cable-text": "a cable: `pcie 5 x16`, `2x infiniband ndr`, `4x upi 16 GT/s`",
    "overrides": "a mapping, or a list of one for each machine",
    "moves": "a list of moves",
    "settings": "a mapping",
    **dict.fromkeys(("parts", "media", "data-paths", "needs", "devices"), "entries by name"),
    **dict.fromkeys(("fabrics", "workloads"), "entries by name"),
    **dict.fromkeys(("links", "measured", "expect"), "a list"),
    "sweep": "axes by name, each with its values",
}
_OF_MODELS: Final = {"needs": "unet3d", "checkpoint": "llama3-405b", "kv-cache": "llama3-70b"}
_ALSO: Final = {"word-list": ", or a list", "routing": ", or a list in order"}
_STEP: Final = "durations by accelerator: `{h100: 0.323 s}`"


def _of_rows(place: str, keys: Keys) -> Iterator[KeyUse]:
    for row in keys.values():
        holds = _words(row.words, row.meaning) or _HOLDS.get(row.holds, "a name")
        if row.holds == "need-name":
            holds = f"the name of a need: `{_OF_MODELS[row.name]}`"
        yield KeyUse(row.name, place, row.meaning, holds + _ALSO.get(row.holds, ""))


def _of_fields(place: str, table: Mapping[str, fields.Field]) -> Iterator[KeyUse]:
    for field in table.values():
        holds = _words(field.words, field.meaning) or _HOLDS[field.quantity.name]
        holds = _STEP if field is fields.NEED_FIELDS["step"] else holds
        also = ", or `unlimited`" if field.unlimited else ""
        figure = bool(field.quantity.unit) and table is not fields.MEDIUM_FIELDS
        yield KeyUse(field.name, place, field.meaning, holds + also, field.kinds, figure)


def _words(words: Sequence[str], meaning: str) -> str:
    """Name the words that a key may hold, where its meaning does not."""
    spelled = [f"`{word}`" for word in words]
    if spelled and all(word in meaning for word in spelled):
        return "a word of these"
    return listed(spelled, "or")


def _of_words(place: str, words: Mapping[str, str], holds: Mapping[str, str]) -> Iterator[KeyUse]:
    for word, meaning in words.items():
        yield KeyUse(word, place, meaning, holds.get(word, ""))


@cache
def key_uses() -> tuple[KeyUse, ...]:
    """Return every key with each place where it may stand, in the order of a file.

    Examples
    --------
    >>> [use.place for use in key_uses() if use.key == "needs"]
    ['the file', 'a workload', 'a data path of your own']
    """
    value = {"value": "what the figure holds", "range": _HOLDS["range"]}
    cap = dict.fromkeys(("posted", "non-posted"), _HOLDS["cap"])
    return (
        *_of_rows("the file", TOP),
        *_of_rows("`settings:`", SETTINGS),
        *_of_rows("a device", DEVICE),
        *_of_fields("a part, or a device that differs from its part", fields.FIELDS),
        *_of_words("a part", fields.PART_WORDS, {"kind": _words(KINDS, "")}),
        *_of_words("a figure with its source", fields.FIGURE_WORDS, value),
        *_of_words("peer-to-peer caps", fields.CAP_WORDS, cap),
        *_of_rows("a machine inside a machine", USE),
        *_of_rows("a fabric", FABRIC),
        *_of_rows("a link", CABLE),
        *_of_fields("a medium", fields.MEDIUM_FIELDS),
        *_of_rows("a measured rate", MEASURED),
        *_of_rows("a workload", WORKLOAD),
        *_of_rows("a collective", COLLECTIVE),
        *_of_fields("a need", fields.NEED_FIELDS),
        *_of_rows("a data path of your own", DATA_PATH),
        *_of_rows("a move", MOVE),
    )


def uses_of(key: str) -> tuple[KeyUse, ...]:
    """Return the places of one key, where it is written so; none where it is no key.

    Examples
    --------
    >>> [use.place for use in uses_of("tokens")]
    ['a workload']
    """
    return tuple(use for use in key_uses() if use.key == key)
