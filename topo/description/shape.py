"""Check the shape of nodes: which keys a mapping has, and what stands where a text is expected.

Each reader adds what it finds to the report and returns `None` (or nothing) for what it could not
read, so that one mistake does not hide the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingOf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from topo.catalogue.fields import SENTENCES, rejoin
from topo.document.nodes import Document, Mapping, Scalar, Sequence
from topo.errors import DescriptionError, Finding, Place, UnitError
from topo.phrases import did_you_mean, near_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.description.keys import Keys
    from topo.document.nodes import Node, Report


T = TypeVar("T")


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


def listed(words: Iterable[str], last: str = "and") -> str:
    """Write words as a sentence does: ``a, b and c``."""
    items = list(words)
    if len(items) < 2:  # noqa: PLR2004
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def is_extension(key: str) -> bool:
    """Whether a key is the writer's own (``x-anything``) and so not read."""
    return key.startswith("x-")


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


def value_of(node: Node, what: str, read: Callable[[str], T], report: Report) -> T | None:
    """Return what `read` makes of the node's text."""
    text = text_of(node, what, report)
    if text is None:
        return None
    try:
        return read(text)
    except UnitError as error:
        report.unit(node, error)
        return None


def choice_of(node: Node, what: str, choices: Iterable[str], report: Report) -> str | None:
    """Return the node's text if it is one of `choices`."""
    words = list(choices)
    text = text_of(node, what, report, help=f"one of {listed(words, 'or')}")
    if text is None or text in words:
        return text
    message = f"{what} is {listed([f'`{word}`' for word in words], 'or')}, not `{text}`"
    report.add(node, "unknown-word", message, help=did_you_mean(text, words))
    return None


def entries_of(mapping: Mapping, keys: Keys, what: str, report: Report) -> dict[str, Node]:
    """Return the values by key; unknown keys and absent required ones are reported."""
    found: dict[str, Node] = {}
    guessed: set[str] = set()
    for key, value in rejoin(mapping, keys):
        if key.text in keys:
            found[key.text] = value
        elif not is_extension(key.text):
            guessed.update(near_names(key.text, keys))
            report.add(
                key,
                "unknown-key",
                f"`{key.text}` is not a key of {what}",
                help=did_you_mean(key.text, keys),
                notes=[f"known keys: {', '.join(keys)}"],
            )
    for row in keys.values():
        if row.required and row.name not in found and row.name not in guessed:
            report.add(
                mapping,
                "missing-key",
                f"{what} needs `{row.name}:` ({row.meaning})",
                help=f"add `{row.name}: {row.example}`" if row.example else "",
            )
    return found


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


_ROOT: Final = "<dict>"
_DEEPEST: Final = 64


def document_of(value: MappingOf[str, Any]) -> Document:
    """Return the document that a `dict` stands for; a node's place names the way to it.

    Raises
    ------
    DescriptionError
        If something in it is no mapping, list, text, number, boolean or `None`.
    """
    return Document(_ROOT, _node(value, (), 0), ())


def _node(value: object, path: tuple[str, ...], depth: int) -> Node:
    place = Place(".".join(path) or _ROOT, 0, 0)
    if depth > _DEEPEST:
        raise DescriptionError(
            Finding("too-deep", "this is nested too deep for a topology", place=place)
        )
    if isinstance(value, MappingOf):
        return Mapping(
            tuple(
                (Scalar(_text(key, place), place), _node(inner, (*path, str(key)), depth + 1))
                for key, inner in value.items()
            ),
            place,
        )
    if isinstance(value, list | tuple):
        return Sequence(
            tuple(_node(item, (*path, str(at)), depth + 1) for at, item in enumerate(value)), place
        )
    return Scalar(_text(value, place), place)


def node_of(value: object, place: Place) -> Node:
    """Return the node that a value stands for, all of it at one place."""
    if isinstance(value, MappingOf):
        return Mapping(
            tuple((Scalar(str(key), place), node_of(inner, place)) for key, inner in value.items()),
            place,
        )
    if isinstance(value, list | tuple):
        return Sequence(tuple(node_of(item, place) for item in value), place)
    return Scalar(_text(value, place), place)


def _text(value: object, place: Place) -> str:
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
