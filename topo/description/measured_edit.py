"""Write `measured:` lines into the text of a topology file, and leave the rest as it is.

A pair that the file has already gets its new rate where the old one stood; a line of several
pairs is split when only some of them are new. Comments stay. What comes out is read again, and
given back only if it says exactly what was wanted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.description.loading import loads
from topo.document.nodes import Mapping, Sequence
from topo.document.parse import parse
from topo.document.tokens import tokenize
from topo.errors import DescriptionError, Finding
from topo.units import spell_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.description import Description
    from topo.document.nodes import Scalar


_AFTER: Final = ("workloads", "expect")  # sections that stand below `measured:`
_INDENT: Final = "  "
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """One line of `measured:`: two ends, bytes/s, and where the rate comes from."""

    source: str
    target: str
    rate: float
    origin: str
    date: str = ""

    @property
    def value(self) -> str:
        """What stands behind the colon."""
        date = f", date: {_quoted(self.date)}" if self.date else ""
        return f"{{rate: {spell_rate(self.rate)}, source: {_quoted(self.origin)}{date}}}"

    @property
    def text(self) -> str:
        """The whole line, without indent."""
        return f"- {self.source} -> {self.target}: {self.value}"


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of the list in the text: its key, the lines it covers, the pairs it means."""

    key: Scalar
    start: int
    end: int
    pairs: tuple[Pair, ...]


def with_measured(text: str, lines: Iterable[MeasuredLine], *, name: str = "<text>") -> str:
    r"""Return a topology's text with measured rates in it.

    Parameters
    ----------
    text
        The text of a sound topology file, with ``\n`` line breaks.
    lines
        What to add or to replace; every pair of ends once.
    name
        What messages call the file.

    Raises
    ------
    DescriptionError
        If the file keeps its measurements, or everything, in brackets.

    Examples
    --------
    >>> line = MeasuredLine("cpu0", "gpu0", 55.6e9, "nvbandwidth")
    >>> before = "topo: 1\ndevices: {cpu0: epyc-7742, gpu0: l40s}\n"
    >>> print(with_measured(before, [line]).splitlines()[-1])
      - cpu0 -> gpu0: {rate: 55.6 GB/s, source: "nvbandwidth"}
    """
    wanted = {(line.source, line.target): line for line in lines}
    if not wanted:
        return text
    description = loads(text, name=name)
    root = parse(text, name=name).root
    if not isinstance(root, Mapping) or root.entries[0][0].place.column != 1:
        raise _in_brackets(name, "the file")
    edited = _edited(text, root, description, wanted, name)
    _guard(text, edited, description, wanted, name)
    return edited


def _edited(
    text: str, root: Mapping, description: Description, wanted: dict[Pair, MeasuredLine], name: str
) -> str:
    rows = text.rstrip("\n").split("\n")
    key, value = root.key("measured"), root.get("measured")
    if key is None:
        return "\n".join(_appended(rows, root, wanted)) + "\n"
    if isinstance(value, Sequence) and value.items:
        items = _items(rows, root, value, description, name)
        return "\n".join(_replaced(rows, items, wanted)) + "\n"
    at = key.place.line - 1
    head, comment = _without_value(rows[at])
    rows[at] = f"{head}{comment}"
    rows[at + 1 : at + 1] = [_INDENT + line.text for line in wanted.values()]
    return "\n".join(rows) + "\n"


# --- a new section --------------------------------------------------------------------------------


def _appended(rows: list[str], root: Mapping, wanted: dict[Pair, MeasuredLine]) -> list[str]:
    """Return the rows with a section of its own, above workloads and expectations."""
    below = [key.place.line - 1 for key, _ in root if key.text in _AFTER]
    at = min(below, default=len(rows))
    while below and at and rows[at - 1].startswith("#"):
        at -= 1
    section = ["measured:", *(_INDENT + line.text for line in wanted.values())]
    aired = any(not row.strip() for row in rows)
    if aired and at and rows[at - 1].strip():
        section.insert(0, "")
    if aired and at < len(rows):
        section.append("")
    return [*rows[:at], *section, *rows[at:]]


def _without_value(row: str) -> tuple[str, str]:
    """Return ``measured:`` without the empty list behind it, and its comment."""
    drawn = tokenize(row)
    comment = next((token.start for token in drawn.tokens if token.kind == "comment"), len(row))
    colon = next(token.end for token in drawn.tokens if token.kind == "colon")
    return row[:colon], f"  {row[comment:]}" if row[comment:] else ""


# --- a section that is there ----------------------------------------------------------------------


def _items(
    rows: list[str], root: Mapping, section: Sequence, description: Description, name: str
) -> tuple[_Item, ...]:
    """Return the items of the list with the rows that each of them covers."""
    keys = [item.entries[0][0] for item in section.items if isinstance(item, Mapping)]
    starts = [key.place.line - 1 for key in keys]
    if len(set(starts)) < len(starts) or not all(_begins(rows[at], "- ") for at in starts):
        raise _in_brackets(name, "`measured:`")
    after = [key.place.line - 1 for key, _ in root if key.place.line - 1 > starts[-1]]
    ends = [*starts[1:], min(after, default=len(rows))]
    pairs: dict[int, list[Pair]] = {}
    for seen in description.measurements:
        if seen.place is not None:
            pairs.setdefault(seen.place.line - 1, []).append((seen.source, seen.target))
    return tuple(
        _Item(key, start, _last(rows, start, end), tuple(pairs.get(start, ())))
        for key, start, end in zip(keys, starts, ends, strict=True)
    )


def _begins(row: str, sign: str) -> bool:
    return row.lstrip().startswith(sign)


def _last(rows: list[str], start: int, end: int) -> int:
    """Return the row after the item's last one: what follows is air and others' comments."""
    while end > start + 1 and (not rows[end - 1].strip() or _begins(rows[end - 1], "#")):
        end -= 1
    return end


def _replaced(
    rows: list[str], items: tuple[_Item, ...], wanted: dict[Pair, MeasuredLine]
) -> list[str]:
    """Return the rows with wanted pairs where they stood, and new ones behind the last item."""
    left = dict(wanted)
    out: list[str] = list(rows[: items[0].start])
    for number, item in enumerate(items):
        end = items[number + 1].start if number + 1 < len(items) else len(rows)
        old = rows[item.start : item.end]
        hit = [pair for pair in item.pairs if pair in wanted]
        new = [left.pop(pair) for pair in hit if pair in left]
        out += _renewed(old, item, new, set(hit)) if hit else old
        if number + 1 == len(items):
            indent = _indent(rows[items[0].start])
            out += [indent + line.text for line in left.values()]
        out += rows[item.end : end]
    return out


def _renewed(old: list[str], item: _Item, new: list[MeasuredLine], gone: set[Pair]) -> list[str]:
    """Return one item's rows anew: its comments, what is left of it, and the new lines."""
    indent = _indent(old[0])
    drawn = tokenize("\n".join(old))
    comments = [drawn.of(token) for token in drawn.tokens if token.kind == "comment"]
    fresh = [indent + line.text for line in new]
    stay = _rest(old, item, gone)
    if stay:
        return [*stay, *fresh]
    if len(old) == 1 and comments and fresh:
        return [f"{fresh[0]}  {comments[0]}", *fresh[1:]]
    return [*(indent + comment for comment in comments), *fresh]


def _rest(old: list[str], item: _Item, gone: set[Pair]) -> list[str]:
    """Return the item once for each of its pairs that nobody measured anew."""
    rest = [pair for pair in item.pairs if pair not in gone]
    start = item.key.place.column - 1
    end = item.key.place.end_column - 1
    found: list[str] = []
    for number, (source, target) in enumerate(rest):
        head = f"{old[0][:start]}{source} -> {target}{old[0][end:]}"
        whole = [head, *old[1:]]
        found += whole if number == 0 else _bare(whole)
    return found


def _bare(rows: list[str]) -> list[str]:
    """Return rows without their comments, which stay with the first copy."""
    text = "\n".join(rows)
    drawn = tokenize(text)
    for token in reversed([token for token in drawn.tokens if token.kind == "comment"]):
        text = text[: token.start].rstrip(" ") + text[token.end :]
    return [row for row in text.split("\n") if row.strip()]


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]


# --- safety ---------------------------------------------------------------------------------------


def _guard(
    before: str, after: str, description: Description, wanted: dict[Pair, MeasuredLine], name: str
) -> None:
    """Hold the new text to what was wanted: all else the same, no comment lost."""
    try:
        again = loads(after, name=name)
    except DescriptionError:
        raise _in_brackets(name, "`measured:`") from None
    rates = {(one.source, one.target): one.rate.value for one in description.measurements}
    rates |= {pair: float(f"{line.rate:.15g}") for pair, line in wanted.items()}
    found = {(one.source, one.target): one.rate.value for one in again.measurements}
    same = found.keys() == rates.keys() and all(
        abs((found[pair] or 0.0) - (rate or 0.0)) <= 1e-9 * abs(rate or 1.0)
        for pair, rate in rates.items()
    )
    if not same or _rest_of(before) != _rest_of(after) or _comments(before) != _comments(after):
        raise _in_brackets(name, "`measured:`")


def _rest_of(text: str) -> list[tuple[str, str]]:
    """Return every section but `measured:`, as text that does not depend on places."""
    root = parse(text).root
    assert isinstance(root, Mapping)
    return [(key.text, _flat(value)) for key, value in root if key.text != "measured"]


def _flat(node: object) -> str:
    return re.sub(r"Place\([^)]*\)", "", repr(node))


def _comments(text: str) -> Counter[str]:
    drawn = tokenize(text)
    return Counter(drawn.of(token).rstrip() for token in drawn.tokens if token.kind == "comment")


def _in_brackets(name: str, what: str) -> DescriptionError:
    message = f"{what} in `{name}` is written so that no line can be added to it safely"
    help = "write `measured:` as a list, one `- a -> b: 22 GB/s` a line"
    return DescriptionError(Finding("cannot-add-lines", message, help=help))


def _quoted(text: str) -> str:
    from json import dumps

    plain = "".join(char if char.isprintable() else " " for char in text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", plain):
        return plain
    return dumps(plain, ensure_ascii=False)
