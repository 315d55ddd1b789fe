"""Pages that explain: one word, a data path from its own definition, the list of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.views.pages import Page
from topo.views.text.page import Cell, Column, Heading, Lines, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from topo.datapaths.registry import Counts
    from topo.description.description import DataPath
    from topo.views.text.page import Block


def explain_page(page: Page) -> Iterator[Block]:
    """Yield one explanation."""
    yield Heading(f"{page.word}: {page.about}")
    yield Lines(page.text)


def listing_page(words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    """Yield every word that has a page, by what it is about."""
    rows = tuple((Cell(about), ", ".join(found)) for about, found in words.items())
    yield Table((Column(breaks=True), Column(breaks=True)), rows)


def data_path_explained(path: DataPath, counts: Counts) -> Page:
    """Return the page of a data path: its moves, and what they do to RAM."""
    moves = [
        f"    {number}. {move.source} -> {move.target} by {move.mover}"
        for number, move in enumerate(path.moves, start=1)
    ]
    title = path.title[:1].upper() + path.title[1:]
    lines = [f"{title}.", "", "Moves of a read (a write runs them backwards):", "", *moves, ""]
    if counts.ram_traversals:
        lines.append(
            f"RAM traversals {counts.ram_traversals} ({', '.join(counts.buffers)}), CPU memory "
            f"copies {counts.cpu_memory_copies}, copies by a core {counts.core_copies}."
        )
        lines.append(
            f"On the memory buses {counts.dram_bytes} bytes for each payload byte: "
            f"{counts.dram_writes} written, {counts.dram_reads} read."
        )
    else:
        lines.append("It never rests in system RAM: no CPU memory copies, no copies by a core.")
    if path.needs:
        lines += ["", f"It needs: {', '.join(path.needs)}."]
    if path.falls_back_to:
        lines.append(f"Refused, it falls back to {path.falls_back_to}.")
    if path.source:
        lines += ["", f"Source: {path.source}."]
    return Page(path.name, "a data path", "\n".join(lines))
