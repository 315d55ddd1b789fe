"""What `topo explain` prints: short pages on codes of findings, reasons, classes and words.

The Markdown files in ``pages`` hold them: a file's ``#`` line says what its pages are about, each
``##`` line names one. Data paths have no page there: theirs is made from their own definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import keys_of
from topo.catalogue.kinds import KINDS
from topo.description.keys import AN_END
from topo.description.reference import uses_of
from topo.phrases import counted, listed
from topo.records import dataclass
from topo.views.text.page import Block, Cell, Column, Heading, Lines, Table

if TYPE_CHECKING:
    from topo.datapaths.registry import Counts
    from topo.description.description import DataPath, Move


_FILES: Final = (
    "words",
    "kinds",
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
    "setup",
    "measuring",
    "sweeps",
    "settings",
)
_ENTRY: Final = re.compile(r"^## (.+)\n", re.MULTILINE)
_QUOTED: Final = re.compile("`[^`]*`")
_NVLINK_CLASS: Final = re.compile(r"nv[0-9]*")


@dataclass(frozen=True, slots=True)
class Page:
    """One explanation: the word, what sort of word it is, and the text."""

    word: str
    about: str
    text: str


@cache
def pages() -> Mapping[str, Page]:
    """Return every page by its word, in the order of the files."""
    by_word = {}
    for name in _FILES:
        text = (files("topo.views") / "pages" / f"{name}.md").read_text(encoding="utf-8")
        head, *entries = _ENTRY.split(text)
        about = head.partition("\n")[0].removeprefix("# ")
        about = about[0].lower() + about[1:]
        for word, body in zip(entries[::2], entries[1::2], strict=True):
            by_word[word] = Page(word, about, body.strip())
    return by_word


def page_of(word: str) -> Page | None:
    """Return the page of a word, however it is written: case, spaces and plural do not matter.

    Examples
    --------
    >>> page_of("RAM traversals").word, page_of("NV18").word
    ('ram-traversal', 'NV#')
    """
    spelled = word.strip().lower().replace(" ", "-").replace("_", "-")
    if _NVLINK_CLASS.fullmatch(spelled):
        spelled = "nv#"
    by_spelling = {name.lower(): page for name, page in pages().items()}
    for singular in (spelled, spelled.removesuffix("s"), spelled.removesuffix("es")):
        if singular in by_spelling:
            return by_spelling[singular]
    return None


def key_explained(word: str) -> Page | None:
    """Return the page of a key of topology files: where it may stand, what it means there.

    Examples
    --------
    >>> print(key_explained("bar1").text)  # doctest: +ELLIPSIS
    In a part, or a device that differs from its part (gpu): window through which other ...
    """
    uses = uses_of(word.strip().lower())
    if not uses:
        return None
    by_meaning: dict[str, list[str]] = {}
    for use in uses:
        kinds = f" ({listed(use.kinds)})" if use.kinds and set(use.kinds) != set(KINDS) else ""
        holds = f" It holds {use.holds}." if use.holds else ""
        by_meaning.setdefault(f"{use.meaning}.{holds}", []).append(f"{use.place}{kinds}")
    lines = [
        _filled(f"In {listed(places)}: {meaning}") + "\n" for meaning, places in by_meaning.items()
    ]
    if any(use.is_figure for use in uses):
        lines += ["A figure may be `unknown`, and may stand with its source: `topo explain value`."]
    return Page(uses[0].key, "a key of a topology file", "\n".join(lines).strip())


def with_key(page: Page) -> Page:
    """Return a page with the keys of a kind of device, and with what its word means as a key."""
    text = page.text
    if page.word in KINDS:
        keys = ", ".join(f"`{key}`" for key in keys_of(page.word))
        text += "\n\n" + _filled(f"Keys of such a part: {keys}.")
    if (key := key_explained(page.word)) is not None:
        text += f"\n\nAs a key of a topology file:\n\n{key.text}"
    return Page(page.word, page.about, text)


def _filled(text: str) -> str:
    """Fill lines of 100 columns; what stands in backquotes is not broken."""
    whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), text)
    return fill(whole, 100, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def data_path_explained(path: DataPath, counts: Counts, far: Counts | None = None) -> Page:
    """Return the page of a data path: its moves, and what they do to RAM.

    `far` are the counts in the far end's server, where that is another than the endpoint's.
    """
    moves = [f"    {number}. {move_words(move)}" for number, move in enumerate(path.moves, start=1)]
    title = path.title[:1].upper() + path.title[1:]
    lines = [f"{title}.", "", "Moves of a read (a write runs them backwards):", "", *moves, ""]
    if far is None:
        lines += _in_ram(counts)
    else:
        end = AN_END[path.near_end]
        lines += [f"In the server where {end} is filled or emptied:", *_in_ram(counts), ""]
        lines += ["In the other server, counted apart:", *_in_ram(far)]
    if path.needs:
        lines += ["", f"It needs: {', '.join(path.needs)}."]
    if path.falls_back_to:
        lines.append(f"Refused, it falls back to {path.falls_back_to}.")
    if path.to_other_servers:
        lines.append(f"What of a copy is between servers goes by {path.to_other_servers}.")
    if path.source:
        lines += ["", f"Source: {path.source}."]
    return Page(path.name, "a data path", "\n".join(lines))


def _in_ram(counts: Counts) -> Iterator[str]:
    """Yield what a data path does to the RAM of one server."""
    if not counts.dram_bytes:
        yield "It never rests in system RAM: no CPU memory copies, no copies by a core."
        return
    buffers = f" ({', '.join(counts.buffers)})" if counts.buffers else ""
    yield (
        f"RAM traversals {counts.ram_traversals}{buffers}, CPU memory "
        f"copies {counts.cpu_memory_copies}, copies by a core {counts.core_copies}."
    )
    yield (
        f"On the memory buses {counted(counts.dram_bytes, 'byte')} for each payload byte: "
        f"{counts.dram_writes} written, {counts.dram_reads} read."
    )


def move_words(move: Move) -> str:
    """Return a move as a file writes it, without its own rate."""
    over = " over network" if move.over == "network" else ""
    return f"{move.source} -> {move.target} by {move.mover}{over}"


def explain_page(page: Page) -> Iterator[Block]:
    """Yield one explanation."""
    yield Heading(f"{page.word}: {page.about}")
    yield Lines(page.text)


def listing_page(words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    """Yield every word that has a page, by what it is about."""
    rows = tuple((Cell(about), ", ".join(names)) for about, names in words.items())
    yield Table((Column(breaks=True), Column(breaks=True)), rows)
