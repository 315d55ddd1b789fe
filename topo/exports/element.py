"""XML elements as NCCL's own small parser takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


_LONGEST: Final = 254


@dataclass(slots=True)
class Element:
    """One element: its attributes in order, and what is in it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the element's lines, indented by spaces."""
        words = [self.tag, *(f'{key}="{_plain(text)}"' for key, text in self.attributes.items())]
        lead = "  " * depth
        if not self.children:
            yield f"{lead}<{' '.join(words)}/>"
            return
        yield f"{lead}<{' '.join(words)}>"
        for child in self.children:
            yield from child.lines(depth + 1)
        yield f"{lead}</{self.tag}>"


def _plain(text: str) -> str:
    """Return a value without what NCCL's parser stumbles over."""
    return re.sub(r"[\"'<>&\t\n\r]", " ", text)[:_LONGEST]
