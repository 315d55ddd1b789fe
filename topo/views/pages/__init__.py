"""Short pages that `topo explain` prints: codes of findings, reasons, classes and words.

The Markdown files beside this one hold them: a file's ``#`` line says what its pages are about,
each ``##`` line names one. Data paths have no page here: theirs is made from their own definition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Page", "page_of", "pages"]

_FILES: Final = (
    "words",
    "localities",
    "resources",
    "reasons",
    "answers",
    "description",
    "figures",
    "physics",
    "yaml",
    "imports",
    "host",
    "measuring",
)
_ENTRY: Final = re.compile(r"^## (.+)\n", re.MULTILINE)
_LINKS: Final = re.compile(r"nv[0-9]*")


@dataclass(frozen=True, slots=True)
class Page:
    """One explanation: the word, what sort of word it is, and the text."""

    word: str
    about: str
    text: str


@cache
def pages() -> Mapping[str, Page]:
    """Return every page by its word, in the order of the files."""
    return {page.word: page for name in _FILES for page in _read(name)}


def page_of(word: str) -> Page | None:
    """Return the page of a word, however it is written: case, spaces and plural do not matter.

    Examples
    --------
    >>> page_of("RAM traversals").word, page_of("NV18").word
    ('ram-traversal', 'NV#')
    """
    plain = word.strip().lower().replace(" ", "-").replace("_", "-")
    if _LINKS.fullmatch(plain):
        plain = "nv#"
    by_plain = {name.lower(): page for name, page in pages().items()}
    for likely in (plain, plain.removesuffix("s"), plain.removesuffix("es")):
        if likely in by_plain:
            return by_plain[likely]
    return None


def _read(name: str) -> Iterator[Page]:
    text = (files("topo.views.pages") / f"{name}.md").read_text(encoding="utf-8")
    head, *rest = _ENTRY.split(text)
    about = head.partition("\n")[0].removeprefix("# ")
    for word, body in zip(rest[::2], rest[1::2], strict=True):
        yield Page(word, about[0].lower() + about[1:], body.strip())
