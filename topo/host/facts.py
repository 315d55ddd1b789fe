"""Facts as a host's tools say them: dotted keys with their values and places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.document.nodes import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.document.nodes import Node
    from topo.errors import Place


_YES: Final = ("true", "1", "yes", "on", "enabled")
_NO: Final = ("false", "0", "no", "off", "disabled")


@dataclass(frozen=True, slots=True)
class SaidFact:
    """One fact: ``properties.use_poll_mode``, its words, and where they stand."""

    key: str
    words: tuple[str, ...]
    place: Place

    @property
    def text(self) -> str:
        """The words as one text."""
        return " ".join(self.words)

    @property
    def flag(self) -> bool | None:
        """Whether it says yes or no; `None` for anything else."""
        text = self.text.strip().lower()
        return True if text in _YES else False if text in _NO else None


def flattened(node: Node, key: str = "") -> Iterator[SaidFact]:
    """Yield the leaves of a document by dotted key; lists of texts are one leaf."""
    if isinstance(node, Mapping):
        for name, value in node:
            yield from flattened(value, f"{key}.{name.text}" if key else name.text)
        if not node.entries:
            yield SaidFact(key, (), node.place)
    elif isinstance(node, Sequence):
        words = tuple(item.text for item in node.items if isinstance(item, Scalar))
        yield SaidFact(key, words, node.place)
    else:
        yield SaidFact(key, (node.text,), node.place)
