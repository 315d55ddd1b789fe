"""Python values into document nodes, so that a `dict` meets the same rules as a file."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingOf
from typing import TYPE_CHECKING, Any, Final

from topo.document.nodes import Document, Mapping, Scalar, Sequence
from topo.errors import DescriptionError, Finding, Place

if TYPE_CHECKING:
    from topo.document.nodes import Node


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
