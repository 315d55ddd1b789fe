"""Nodes by the tables of keys: which keys a mapping has, what each holds; Python values as nodes.

Each reader adds what is wrong to the report and returns `None` (or nothing) for what it could not
read, so that one mistake does not hide the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping as MappingOf
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from topo.catalogue.values import SENTENCES, rejoin
from topo.description.keys import ON_OFF
from topo.document.nodes import Document, Mapping, Scalar, Sequence
from topo.errors import DescriptionError, Finding, Place, UnitError
from topo.phrases import did_you_mean, listed, near_names
from topo.units import parse_count, parse_duration, parse_rate, parse_ratio_range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.keys import Keys, Row
    from topo.document.nodes import Node, Report


T = TypeVar("T")
Reader = Callable[["Node", "Row", str, "Report"], Any]
_ROOT: Final = "<dict>"  # the place of a document that no text stands for
_DEEPEST: Final = 64


def kind_of(node: Node) -> str:
    """Say what a node is, in words for a message."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if "\n" in node.text:
        return "a text of several lines"
    return f"`{node.text}`" if node.text else "nothing"


def a_kind(kind: str) -> str:
    """Write a device kind with its article: ``a nic``, ``an nvme``."""
    return f"an {kind}" if kind.startswith(("hba", "nv")) else f"a {kind}"


def is_extension(key: str) -> bool:
    """Whether a key is the writer's own (``x-anything``) and so not read."""
    return key.startswith("x-")


# --- one node -------------------------------------------------------------------------------------


def mapping_of(node: Node, what: str, report: Report, *, help: str = "") -> Mapping | None:
    """Return the node if it is a mapping."""
    if isinstance(node, Mapping):
        return node
    report.add(node, "wrong-shape", f"{what} is a mapping, not {kind_of(node)}", help=help)
    return None


def text_of(node: Node, what: str, report: Report, *, help: str = "") -> str | None:
    """Return the text of a scalar that is not empty."""
    if isinstance(node, Scalar):
        if node.text:
            return node.text
        report.add(node, "missing-value", f"{what} has no value", help=help)
    else:
        report.add(node, "wrong-shape", f"{what} is a text, not {kind_of(node)}", help=help)
    return None


def texts_of(node: Node, what: str, report: Report) -> tuple[Scalar, ...]:
    """Return the texts of a list, or a single text as a list of one."""
    items = node.items if isinstance(node, Sequence) else (node,)
    return tuple(
        item
        for item in items
        if text_of(item, what, report) is not None and isinstance(item, Scalar)
    )


def value_of(node: Node, what: str, parse: Callable[[str], T], report: Report) -> T | None:
    """Return what `parse` makes of the node's text."""
    text = text_of(node, what, report)
    if text is None:
        return None
    try:
        return parse(text)
    except UnitError as error:
        report.unit(node, error)
        return None


def choice_of(node: Node, what: str, words: Iterable[str], report: Report) -> str | None:
    """Return the node's text if it is one of `words`."""
    choices = list(words)
    text = text_of(node, what, report, help=f"one of {listed(choices, 'or')}")
    if text is None or text in choices:
        return text
    message = f"{what} is {listed([f'`{word}`' for word in choices], 'or')}, not `{text}`"
    report.add(node, "unknown-word", message, help=did_you_mean(text, choices))
    return None


# --- the entries of a mapping ---------------------------------------------------------------------


def entries_of(mapping: Mapping, keys: Keys, what: str, report: Report) -> dict[str, Node]:
    """Return the values by key; unknown keys and absent required ones are reported."""
    entries: dict[str, Node] = {}
    meant: set[str] = set()
    for key, value in rejoin(mapping, keys):
        if key.text in keys:
            entries[key.text] = value
        elif not is_extension(key.text):
            meant.update(near_names(key.text, keys))
            report.add(
                key,
                "unknown-key",
                f"`{key.text}` is not a key of {what}",
                help=did_you_mean(key.text, keys),
                notes=[f"known keys: {', '.join(keys)}"],
            )
    for row in keys.values():
        if row.required and row.name not in entries and row.name not in meant:
            report.add(
                mapping,
                "missing-key",
                f"{what} needs `{row.name}:` ({row.meaning})",
                help=f"add `{row.name}: {row.example}`" if row.example else "",
            )
    return entries


def values_of(
    entries: MappingOf[str, Node], keys: Keys, report: Report, *, of: str = ""
) -> dict[str, Any]:
    """Read each entry by what its row holds; what no reader is for, or could not be read, is out.

    Parameters
    ----------
    entries
        What `entries_of` gave.
    keys
        The table of these keys.
    report
        Gets what is wrong.
    of
        What the entries belong to, for messages.

    Returns
    -------
    dict
        The values by the names of dataclass fields: a key's hyphens are underscores.
    """
    values: dict[str, Any] = {}
    for key, node in entries.items():
        row = keys[key]
        if row.holds in READERS:
            what = f"`{key}` of {of}" if of else f"`{key}`"
            value = READERS[row.holds](node, row, what, report)
            if value is not None:
                values[key.replace("-", "_")] = value
    return values


def _text(node: Node, _row: Row, what: str, report: Report) -> str | None:
    return text_of(node, what, report)


def _texts(node: Node, _row: Row, what: str, report: Report) -> tuple[Scalar, ...]:
    return texts_of(node, what, report)


def _word(node: Node, row: Row, what: str, report: Report) -> str | None:
    if isinstance(node, Scalar) and node.text.lower() in row.spellings:
        node = Scalar(row.spellings[node.text.lower()], node.place, node.quoted)
    return choice_of(node, what, row.words, report)


def _words(node: Node, row: Row, what: str, report: Report) -> tuple[str, ...]:
    """Read words, each once; `none` is an empty list."""
    if isinstance(node, Scalar) and node.text.lower() == "none":
        return ()
    texts = texts_of(node, what, report)
    if not row.words:
        return tuple(dict.fromkeys(text.text for text in texts))
    words = [choice_of(text, what, row.words, report) for text in texts]
    return tuple(dict.fromkeys(word for word in words if word is not None))


def _routing(node: Node, row: Row, what: str, report: Report) -> tuple[str, ...]:
    """Read `off`, `on` (all words in their order) or an order."""
    if isinstance(node, Scalar):
        word = row.spellings.get(node.text.lower(), node.text.lower())
        if word in ON_OFF:
            return row.words if word == "on" else ()
    return _words(node, row, what, report)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < math.inf:
        raise UnitError("bad-number", f"`{text}` is not a weight", "write a number above 0: 2")
    return weight


def _parsed(parse: Callable[[str], object]) -> Reader:
    return lambda node, _row, what, report: value_of(node, what, parse, report)


READERS: Final[MappingOf[str, Reader]] = {
    "text": _text,
    "word": _word,
    "flag-word": _word,
    "word-list": _words,
    "routing": _routing,
    "selection": _texts,
    "name-list": _texts,
    "count": _parsed(parse_count),
    "duration": _parsed(parse_duration),
    "rate": _parsed(partial(parse_rate, positive=True)),
    "ratio-range": _parsed(partial(parse_ratio_range, positive=True)),
    "weight": _parsed(_weight),
}
"""What reads a value, by what its key holds."""


def check_commas(node: Node, report: Report) -> None:
    """Report commas that ended a text early: ``{source: our lspci, MPS 128}`` has two keys.

    A key without a value on the line of the value before it is never meant. After a `source` or a
    `title` it can only be the rest of that text, which the readers of mappings put together again
    (`rejoin`); that is said and goes on.
    """
    if isinstance(node, Sequence):
        for item in node.items:
            check_commas(item, report)
        return
    before: Node | None = None
    name = ""
    for key, value in node if isinstance(node, Mapping) else ():
        if isinstance(value, Scalar) and not value.text and not value.quoted:
            if isinstance(before, Scalar) and 0 < before.place.line == key.place.line:
                text = f"{before.text}, {key.text}"
                message = f"the comma ends the text `{before.text}`, and `{key.text}` is a new key"
                report.add(
                    key,
                    "comma-in-text",
                    message,
                    help=f'quote it: "{text}"',
                    severity="warning" if name in SENTENCES else "error",
                )
        else:
            check_commas(value, report)
            name = key.text
        before = value


# --- Python values as nodes -----------------------------------------------------------------------


def document_of(value: MappingOf[str, Any]) -> Document:
    """Return the document that a `dict` stands for; a node's place names the keys that lead to it.

    Raises
    ------
    DescriptionError
        If something in it is no mapping, list, text, number, boolean or `None`.
    """
    return Document(_ROOT, _node(value, lambda path: Place(".".join(path) or _ROOT, 0, 0)), ())


def node_of(value: object, place: Place) -> Node:
    """Return the node that a value stands for, all of it at one place."""
    return _node(value, lambda _: place)


def _node(
    value: object, place_at: Callable[[tuple[str, ...]], Place], path: tuple[str, ...] = ()
) -> Node:
    place = place_at(path)
    if len(path) > _DEEPEST:
        raise DescriptionError(
            Finding("too-deep", "this is nested too deep for a topology", place=place)
        )
    if isinstance(value, MappingOf):
        entries = (
            (Scalar(_yaml_text(key, place), place), _node(inner, place_at, (*path, str(key))))
            for key, inner in value.items()
        )
        return Mapping(tuple(entries), place)
    if isinstance(value, list | tuple):
        items = (_node(item, place_at, (*path, str(at))) for at, item in enumerate(value))
        return Sequence(tuple(items), place)
    return Scalar(_yaml_text(value, place), place)


def _yaml_text(value: object, place: Place) -> str:
    """Return how YAML would write a scalar; a boolean is yes or no, `None` is nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    message = f"a topology holds texts, numbers, lists and mappings, not {type(value).__name__}"
    raise DescriptionError(Finding("wrong-shape", message, place=place))
