"""The tree that a YAML text becomes: every scalar is still text, every node knows its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.errors import Place


@dataclass(frozen=True, slots=True)
class Scalar:
    """A piece of text. `quoted` tells ``"no"`` from ``no``; an empty value is the text ``""``."""

    text: str
    place: Place
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """An ordered list of nodes."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values in the order written; keys are unique."""

    entries: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        """Return the value under `key`, or `None`."""
        return next((value for name, value in self.entries if name.text == key), None)

    def key(self, key: str) -> Scalar | None:
        """Return the key's own node (its place), or `None`."""
        return next((name for name, _ in self.entries if name.text == key), None)

    def __iter__(self) -> Iterator[tuple[Scalar, Node]]:
        return iter(self.entries)


Node = Scalar | Sequence | Mapping


def plain(node: Node) -> Any:
    """Return a tree without its places: dicts, lists and texts.

    Examples
    --------
    >>> from topo.document.parse import parse
    >>> plain(parse("{a: [1, no]}").root)
    {'a': ['1', 'no']}
    """
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return node.text


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed text: its name as the user gave it, its root, and its lines for carets."""

    name: str
    root: Node
    lines: tuple[str, ...]

    def line(self, number: int) -> str:
        """Return the text of line `number` (1-based), or ``""`` past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""
