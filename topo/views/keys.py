"""Numbers and keys of a JSON document.

Keys come from the attributes of a value: a word names one, and its unit follows. `a.b` is `b` of
what `a` holds, null where that is `None`; `a:key` writes it under another key, without a unit; `a?`
is null where it is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from topo.catalogue.fields import MEDIUM_FIELDS, NEED_FIELDS
from topo.catalogue.part import Figure

Document: TypeAlias = "dict[str, Any]"

_DIGITS: Final = 12  # beyond that, a float holds the order of additions rather than a figure
_EXACT: Final = 2**53
_FIELDS: Final = {**MEDIUM_FIELDS, **NEED_FIELDS}  # figures that are no rates have their units here

# The unit of a number by the last word of its attribute's name.
_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("rate", "capacity", "load", "total", "up"), "bytes_per_s"),
    **dict.fromkeys(("time", "times", "start", "end", "finish", "finishes", "floor"), "s"),
    "traffic": "bytes",
}


class Exact(float):
    """A number that is written with all of its digits: what others go on computing with."""


def number(value: float | None) -> float | int | None:
    """Return a number as JSON shows it: `None` for one that is unknown or without limit.

    Examples
    --------
    >>> number(1.4 / 0.8), number(1e11), number(float("inf"))
    (1.75, 100000000000, None)
    """
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Exact):
        return int(value) if value.is_integer() and abs(value) < _EXACT else float(value)
    rounded = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < _EXACT else rounded


class Word(NamedTuple):
    """A word: the attributes that lead to a value, and the key that it is written under.

    `beside` is the word's star: the keys of the value stand beside the others.
    """

    path: tuple[str, ...]
    key: str
    figure_unit: str
    beside: bool
    nullable: bool

    def item(self, value: Any) -> Any:
        """Return what the attributes of `value` lead to."""
        for name in self.path:
            value = None if value is None else getattr(value, name)
        return value

    def keys(self, value: Any) -> Document:
        """Return the key with its item, a figure with its kind and source."""
        item = self.item(value)
        if isinstance(item, Figure):
            return {self.key: figure_keys(item, self.figure_unit)}
        return {self.key: None if self.nullable and not item else item}


@cache
def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a text such as ``name rate *counts bound:bottlenecks``."""
    words = []
    for word in text.split():
        path, _, key = word.removeprefix("*").partition(":")
        names = tuple(path.removesuffix("?").split("."))
        unit = _UNITS.get(names[-1].rpartition("_")[2])
        key = key or (f"{names[-1]}_{unit}" if unit else names[-1])
        field = _FIELDS.get(key.replace("_", "-"))
        figure_unit = field.quantity.unit if field else "bytes_per_s"
        words.append(Word(names, key, figure_unit, word.startswith("*"), path.endswith("?")))
    return tuple(words)


def figure_keys(figure: Figure, unit: str = "bytes_per_s") -> Document:
    """Return a figure's value under its unit, with its kind and source."""
    document: Document = {unit: figure.value, "kind": figure.kind, "source": figure.source}
    if figure.value is not None and math.isinf(figure.value):
        document["unlimited"] = True
    if figure.at_most:
        document["at_most"] = True
    if figure.range is not None:
        document["range"] = figure.range
    return document
