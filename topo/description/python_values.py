"""Python's own values as the nodes of a document: what `topo.build` and `--set` are given."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping as MappingOf
from typing import Any, Final

from topo.document.nodes import Document, Mapping, Node, Scalar, Sequence
from topo.errors import DescriptionError, Finding, Place

_ROOT: Final = "<dict>"  # the place of a document that no text stands for
_DEEPEST: Final = 64


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
