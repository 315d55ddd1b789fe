"""A page of text as values: headings, paragraphs, bullets, tables; laid out by rich at the end.

Views return blocks; only `render` knows about widths and colours, so the same blocks give the same
bytes wherever they are not shown on a terminal. At the end stand the small pieces of text that
several pages share.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from topo.catalogue.fields import RATE
from topo.phrases import shortened
from topo.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from rich.console import Console, RenderableType

    from topo.catalogue.fields import Quantity
    from topo.catalogue.part import Figure
    from topo.description.description import Workload
    from topo.routes.route import Verdict
    from topo.topology.topology import Topology


Item = TypeVar("Item")
Key = TypeVar("Key", bound="Hashable")
Tone: TypeAlias = Literal["good", "warn", "bad", "strong", "faint"]
Row: TypeAlias = "tuple[str | Cell, ...]"


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that stands out, with an empty one before it unless it opens the page."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, wrapped; later lines are indented by `hang`. `dim` is for what is beside it."""

    text: str
    hang: int = 0
    dim: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Text whose lines stay as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one a bullet."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell that stands out: `tone` is what it means, not how it looks."""

    text: str
    tone: Tone = "strong"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its side, and whether its text may be broken into lines."""

    title: str = ""
    right: bool = False
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns, without lines between them."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


Block: TypeAlias = "Heading | Text | Lines | Bullets | Table"

# The space between a number and its unit, where no line ends.
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTP]?i?[Bb](?:/s)?|[GM]T/s|[mµn]?s|days|years|%)(?!\w))")
_UNBROKEN: Final = "\u00a0"
_GAP: Final = 2  # between columns
_BREAKS_AT: Final = 12  # a column that breaks is at least as wide
_STYLES: Final[Mapping[Tone, str]] = {
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "strong": "bold",
    "faint": "dim",
}
_VERDICT_TONES: Final[Mapping[Verdict, Tone]] = {
    "ok": "good",
    "ok-slower": "warn",
    "unknown": "warn",
    "refused": "bad",
}


def right(title: str) -> Column:
    """Return a column of numbers, which stand at its right side."""
    return Column(title, right=True)


def wide(title: str = "") -> Column:
    """Return a column whose text may be broken into lines."""
    return Column(title, breaks=True)


def table(columns: Iterable[Column | str], rows: Iterable[Row]) -> Table:
    """Return a table; a text among the columns is the title of a plain one."""
    return Table(
        tuple(Column(column) if isinstance(column, str) else column for column in columns),
        tuple(rows),
    )


def render(blocks: Iterable[Block], *, width: int = 100, color: bool = False) -> str:
    """Return the page as text that ends in a line break.

    Parameters
    ----------
    blocks
        What stands on it, top to bottom; an empty line comes between two blocks.
    width
        Characters a line.
    color
        Whether to use a terminal's colours; without them no line ends in a space.
    """
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for number, block in enumerate(blocks):
        if number:
            console.line()
        _print(console, block, width)
    text = stream.getvalue()
    if color:
        return text
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def _print(console: Console, block: Block, width: int) -> None:
    if isinstance(block, Heading):
        console.print(block.text, style="bold", soft_wrap=True)
    elif isinstance(block, Text):
        text = _wrapped(block.text, width, hang=block.hang)
        console.print(text, style="dim" * block.dim or None, soft_wrap=True)
    elif isinstance(block, Lines):
        console.file.write(f"{block.text}\n")  # as it is, tabs and all
    elif isinstance(block, Bullets):
        for item in block.items:
            text = _wrapped(item, width - 2, hang=0).replace("\n", "\n  ")
            console.print(f"- {text}", soft_wrap=True)
    else:
        # Never cut: a table that cannot be as narrow as the page is wider than the page.
        least = sum(_narrowest(block)) + _GAP * len(block.columns)
        console.width = max(width, least)
        console.print(_table(block))
        console.width = width


def _wrapped(text: str, width: int, *, hang: int) -> str:
    from textwrap import fill

    filled = fill(
        _UNIT.sub(_UNBROKEN, text),
        width,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_UNBROKEN, " ")


def _table(block: Table) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    titled = any(column.title for column in block.columns)
    grid = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=titled)
    for column, width in zip(block.columns, _narrowest(block), strict=True):
        title = column.title if column.breaks else _wrapped(column.title, width or 1, hang=0)
        grid.add_column(
            RichText(title),
            justify="right" if column.right else "left",
            min_width=width,
            no_wrap=not column.breaks,
            overflow="fold",
            header_style="bold",
        )
    for row in block.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _cell(cell: str | Cell) -> RenderableType:
    from rich.text import Text as RichText

    return RichText(cell.text, _STYLES[cell.tone]) if isinstance(cell, Cell) else RichText(cell)


def _narrowest(block: Table) -> list[int]:
    """Return how narrow each column may become: as its longest word, or line where none breaks."""
    from rich.cells import cell_len

    widths = []
    for place, column in enumerate(block.columns):
        cells = (row[place] for row in block.rows)
        texts = [cell.text if isinstance(cell, Cell) else cell for cell in cells]
        if column.breaks:
            pieces = ["x" * _BREAKS_AT]
        else:
            pieces = [line for text in texts for line in text.splitlines()]
        pieces += column.title.split()
        widths.append(max(map(cell_len, pieces), default=0))
    return widths


# --- what several pages say -----------------------------------------------------------------------


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by what is equal of them, to be told on one row, in the order of the first.

    Examples
    --------
    >>> grouped(["gpu0", "nic0", "gpu1"], lambda name: name[:3])
    {'gpu': ['gpu0', 'gpu1'], 'nic': ['nic0']}
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def title_of(topology: Topology) -> str:
    """Return a page's first line: the name, and the title if there is one."""
    name, title = topology.name, topology.title
    return f"{name}: {title}" if title != name else name


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a verdict in its colour."""
    return Cell(verdict, _VERDICT_TONES[verdict])


def figure_text(figure: Figure, quantity: Quantity = RATE) -> str:
    """Return a figure's value in its unit; unknown and unlimited are words."""
    return quantity.text(figure.value)


def sourced(figure: Figure) -> str:
    """Return a figure's kind and source in one phrase."""
    return origin(figure.kind, figure.source)


def origin(kind: str, source: str) -> str:
    """Return where a number comes from: ``datasheet: NVIDIA``."""
    return f"{kind}: {source}" if source else kind


def workload_sentence(workload: Workload) -> str:
    """Return what a workload is: ``read 640 GB, storage to gpu[0-7]``."""
    ends = (shortened(workload.sources), shortened(workload.targets))
    size = f" {format_size(workload.size)}" if workload.sized else ""
    rates = "" if workload.sized else "; rates only, since no size is said"
    return f"{workload.direction}{size}, {ends[0]} to {ends[1]}{rates}"


def spanned(span: tuple[int, int]) -> str:
    """Return ``3`` or ``3 to 4``.

    Examples
    --------
    >>> spanned((3, 3)), spanned((3, 4))
    ('3', '3 to 4')
    """
    least, most = span
    return str(least) if least == most else f"{least} to {most}"
