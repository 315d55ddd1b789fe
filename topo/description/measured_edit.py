"""Write `measured:` lines into the text of a topology file, and leave the rest as it is.

A pair that the file has already gets its new rate where the old one stood; a line of several
pairs is split when only some of them are new. Comments stay. What comes out is read again, and
given back only if it says exactly what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json import dumps
from typing import Final

from topo.description.description import Description
from topo.description.format import comments_of, comparable
from topo.description.loading import loads
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.document.parse import parse
from topo.document.tokens import tokenize
from topo.errors import DescriptionError, Finding
from topo.records import dataclass
from topo.units import spell_rate

_AFTER: Final = ("workloads", "expect", "sweep")  # sections that stand below `measured:`
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
    def text(self) -> str:
        """The whole line, without indent."""
        date = f", date: {_quoted(self.date)}" if self.date else ""
        value = f"{{rate: {spell_rate(self.rate)}, source: {_quoted(self.origin)}{date}}}"
        return f"- {self.source} -> {self.target}: {value}"


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
    new_lines = {(line.source, line.target): line for line in lines}
    if not new_lines:
        return text
    description = loads(text, name=name)
    root = parse(text, name=name).root
    if not isinstance(root, Mapping) or root.entries[0][0].place.column != 1:
        raise _in_brackets(name, "the file")
    rows = text.rstrip("\n").split("\n")
    key, section = root.key("measured"), root.get("measured")
    if key is None:
        rows = _with_section(rows, root, new_lines)
    elif isinstance(section, Sequence) and section.items:
        rows = _replaced(rows, _items(rows, root, section, description, name), new_lines)
    else:
        at = key.place.line - 1
        tokens = tokenize(rows[at]).tokens
        comment = next((rows[at][token.start :] for token in tokens if token.kind == "comment"), "")
        colon = next(token.end for token in tokens if token.kind == "colon")
        # The empty list behind the key goes, its comment stays.
        head = rows[at][:colon] + (f"  {comment}" if comment else "")
        below = [_INDENT + line.text for line in new_lines.values()]
        rows = [*rows[:at], head, *below, *rows[at + 1 :]]
    edited = "\n".join(rows) + "\n"
    _check_edited(text, edited, description, new_lines, name)
    return edited


# --- a new section --------------------------------------------------------------------------------


def _with_section(rows: list[str], root: Mapping, new_lines: dict[Pair, MeasuredLine]) -> list[str]:
    """Return the rows with a section of its own, above workloads and expectations."""
    below = [key.place.line - 1 for key, _ in root if key.text in _AFTER]
    at = min(below, default=len(rows))
    while below and at and rows[at - 1].startswith("#"):
        at -= 1
    section = ["measured:", *(_INDENT + line.text for line in new_lines.values())]
    aired = any(not row.strip() for row in rows)
    if aired and at and rows[at - 1].strip():
        section.insert(0, "")
    if aired and at < len(rows):
        section.append("")
    return [*rows[:at], *section, *rows[at:]]


# --- a section that is there ----------------------------------------------------------------------


def _items(
    rows: list[str], root: Mapping, section: Sequence, description: Description, name: str
) -> tuple[_Item, ...]:
    """Return the items of the list with the rows that each of them covers."""
    keys = [item.entries[0][0] for item in section.items if isinstance(item, Mapping)]
    starts = [key.place.line - 1 for key in keys]
    in_dashes = all(rows[start].lstrip().startswith("- ") for start in starts)
    if len(set(starts)) < len(starts) or not in_dashes:
        raise _in_brackets(name, "`measured:`")
    after = [key.place.line - 1 for key, _ in root if key.place.line - 1 > starts[-1]]
    ends = [*starts[1:], min(after, default=len(rows))]
    pairs: dict[int, list[Pair]] = {}
    for measurement in description.measurements:
        if measurement.place is not None:
            pair = (measurement.source, measurement.target)
            pairs.setdefault(measurement.place.line - 1, []).append(pair)
    items = []
    for key, start, limit in zip(keys, starts, ends, strict=True):
        end = limit  # what follows the item's last row is air and comments of the next
        while end > start + 1 and (not rows[end - 1].strip() or rows[end - 1].lstrip()[0] == "#"):
            end -= 1
        items.append(_Item(key, start, end, tuple(pairs.get(start, ()))))
    return tuple(items)


def _replaced(
    rows: list[str], items: tuple[_Item, ...], new_lines: dict[Pair, MeasuredLine]
) -> list[str]:
    """Return the rows with measured pairs where they stood, and new ones behind the last item."""
    unplaced = dict(new_lines)
    edited = rows[: items[0].start]
    for number, item in enumerate(items):
        end = items[number + 1].start if number + 1 < len(items) else len(rows)
        old = rows[item.start : item.end]
        measured = [pair for pair in item.pairs if pair in new_lines]
        new = [unplaced.pop(pair) for pair in measured if pair in unplaced]
        edited += _renewed(old, item, new, set(measured)) if measured else old
        if number + 1 == len(items):
            indent = _indent(rows[items[0].start])
            edited += [indent + line.text for line in unplaced.values()]
        edited += rows[item.end : end]
    return edited


def _renewed(
    old: list[str], item: _Item, new: list[MeasuredLine], measured: set[Pair]
) -> list[str]:
    """Return one item's rows anew: its comments, what is left of it, and the new lines."""
    indent = _indent(old[0])
    new_rows = [indent + line.text for line in new]
    text = "\n".join(old)
    tokenized = tokenize(text)
    comment_tokens = [token for token in tokenized.tokens if token.kind == "comment"]
    remaining = [pair for pair in item.pairs if pair not in measured]
    if remaining:  # the item once for each, with its comments at the first
        bare = text
        for token in reversed(comment_tokens):
            bare = bare[: token.start].rstrip(" ") + bare[token.end :]
        without_comments = [row for row in bare.split("\n") if row.strip()]
        start, end = item.key.place.column - 1, item.key.place.end_column - 1
        rows: list[str] = []
        for source, target in remaining:
            first, *below = without_comments if rows else old
            rows += [f"{first[:start]}{source} -> {target}{first[end:]}", *below]
        return [*rows, *new_rows]
    comments = [tokenized.of(token) for token in comment_tokens]
    if len(old) == 1 and comments and new_rows:
        return [f"{new_rows[0]}  {comments[0]}", *new_rows[1:]]
    return [*(indent + comment for comment in comments), *new_rows]


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]


# --- safety ---------------------------------------------------------------------------------------


def _check_edited(
    before: str,
    after: str,
    description: Description,
    new_lines: dict[Pair, MeasuredLine],
    name: str,
) -> None:
    """Hold the new text to what was wanted: all else the same, no comment lost."""
    try:
        edited = loads(after, name=name)
    except DescriptionError:
        raise _in_brackets(name, "`measured:`") from None
    expected = _rates(description)
    expected |= {pair: float(f"{line.rate:.15g}") for pair, line in new_lines.items()}
    rates = _rates(edited)
    same = rates.keys() == expected.keys() and all(
        abs(rates[pair] - rate) <= 1e-9 * abs(rate or 1.0) for pair, rate in expected.items()
    )
    same = same and _other_sections(before) == _other_sections(after)
    if not same or comments_of(before) != comments_of(after):
        raise _in_brackets(name, "`measured:`")


def _rates(description: Description) -> dict[Pair, float]:
    return {
        (measurement.source, measurement.target): measurement.rate.value or 0.0
        for measurement in description.measurements
    }


def _other_sections(text: str) -> list[object]:
    """Return every section but `measured:`, as values that do not depend on places."""
    root = parse(text).root
    assert isinstance(root, Mapping)
    return [(key.text, comparable(node)) for key, node in root if key.text != "measured"]


def _in_brackets(name: str, what: str) -> DescriptionError:
    message = f"{what} in `{name}` is written so that no line can be added to it safely"
    help = "write `measured:` as a list, one `- a -> b: 22 GB/s` a line"
    return DescriptionError(Finding("cannot-add-lines", message, help=help))


def _quoted(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", plain):
        return plain
    return dumps(plain, ensure_ascii=False)
