"""A page of text as values: headings, paragraphs, bullets, tables.

Views return blocks; only `render` knows about widths and colours, so the same blocks give the same
bytes wherever they are not shown on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, get_args

from topo.catalogue.fields import RATE, Quantity
from topo.catalogue.part import FigureKind
from topo.phrases import listed, shortened, terminal_width, visible
from topo.records import dataclass
from topo.units import format_size

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.description.description import ModelNeed, Workload
    from topo.routes.route import Verdict
    from topo.topology.topology import Topology


Item = TypeVar("Item")
Key = TypeVar("Key", bound="Hashable")
Tone: TypeAlias = Literal["good", "warn", "bad", "strong", "faint", "plain"]
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

_LONGEST_SOURCE: Final = 50  # characters that stand in a table
_MOST_LOST: Final = 6  # names of what is out of order in a title
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


SOURCES: Final = wide("kind and source")  # of figures; `citing` numbers those that are long


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
    """Return a page's first line: the name, the title if there is one, what is out of order."""
    name, title = topology.name, topology.title
    return (f"{name}: {title}" if title != name else name) + without_words(topology)


def without_words(topology: Topology) -> str:
    """Return what is out of order, in brackets to stand behind a name; nothing where nothing is."""
    lost = topology.description.lost
    return f" (without {listed(lost, most=_MOST_LOST)})" if lost else ""


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a verdict in its colour."""
    return Cell(verdict, _VERDICT_TONES[verdict])


def figure_text(figure: Figure, quantity: Quantity = RATE) -> str:
    """Return a figure's value in its unit; unknown, unlimited and "at most" are words."""
    return "at most " * figure.at_most + quantity.text(figure.value)


def sourced(figure: Figure) -> str:
    """Return a figure's kind and source in one phrase."""
    return origin(figure.kind, figure.source)


def origin(kind: str, source: str) -> str:
    """Return where a number comes from: ``datasheet: NVIDIA``."""
    return f"{kind}: {source}" if source else kind


def citing(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield a page whose columns of kinds and sources have numbers for what is long, then those."""
    numbers: dict[str, int] = {}

    def cited(text: str | Cell) -> str | Cell:
        if isinstance(text, Cell):
            return text
        kind, _, source = text.partition(": ")
        if kind not in get_args(FigureKind):
            kind, source = "", text
        if len(source) <= _LONGEST_SOURCE:
            return text
        return f"{kind} [{numbers.setdefault(source, len(numbers) + 1)}]".lstrip()

    for block in blocks:
        places = {
            place
            for place, column in enumerate(block.columns if isinstance(block, Table) else ())
            if column.title == SOURCES.title
        }
        if not isinstance(block, Table) or not places:
            yield block
            continue
        rows = (
            tuple(cited(cell) if place in places else cell for place, cell in enumerate(row))
            for row in block.rows
        )
        yield Table(block.columns, tuple(rows))
    if numbers:
        yield Heading("Sources")
        yield Bullets(tuple(f"[{number}] {source}" for source, number in numbers.items()))


def workload_sentence(workload: Workload) -> str:
    """Return what a workload is: ``read 640 GB, storage to gpu[0-7]``, or a collective."""
    if workload.collective:
        where = "into" if workload.collective == "reduce" else "from"
        root = f", {where} {workload.root}" if workload.root else ""
        size = format_size(workload.size)
        return f"{workload.collective} of {size} over {shortened(workload.sources)}{root}"
    ends = (shortened(workload.sources), shortened(workload.targets))
    size = f" {format_size(workload.size)}" if workload.sized else ""
    rates = "" if workload.sized else "; rates only, since no size is said"
    if workload.need is not None:
        size, rates = f"{size} ({need_words(workload.need)})", ""
    return f"{workload.direction}{size}, {ends[0]} to {ends[1]}{rates}"


def need_words(need: ModelNeed) -> str:
    """Return what a workload moves for a model: ``a checkpoint of llama3-70b``."""
    name = need.model.name
    if need.asks == "needs":
        behind = f" of {need.accelerators} {called(need.accelerator)} each" * bool(
            need.accelerators
        )
        return f"what {name}{behind} computes on"
    if need.asks == "checkpoint":
        return f"a checkpoint of {name}"
    return f"the KV cache of {need.tokens:,} tokens of {name}"


def called(accelerator: str) -> str:
    """Return what an accelerator is called: ``H100``; "accelerators" where nobody says what."""
    return accelerator.upper() or "accelerators"


def capitalized(text: str) -> str:
    """Return a text with its first letter a capital, the others as they are."""
    return text[:1].upper() + text[1:]


def spanned(span: tuple[int, int]) -> str:
    """Return ``3`` or ``3 to 4``.

    Examples
    --------
    >>> spanned((3, 3)), spanned((3, 4))
    ('3', '3 to 4')
    """
    least, most = span
    return str(least) if least == most else f"{least} to {most}"


# --- blocks as text -------------------------------------------------------------------------------

# The space between a number and its unit, where no line ends.
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTP]?i?[Bb](?:/s)?|[GM]T/s|[mµn]?s|days|years|%)(?!\w))")
# The name of one direction of a link, `slot1 -> cpu1`, that is no part of a longer way, or of a cap
# between devices on it, `cpu0 -> cpu1/p2p (gpu0, gpu4)`.
_LINK = re.compile(r"(?<!-> )(?<!\S)\S++ <?-> \S++(?: \([^\s,]++, \S++)?+(?! ->)")
_WORD = re.compile(r"\s*\S+\s*", re.ASCII)  # to which the unbroken space belongs
_UNBROKEN: Final = "\u00a0"
_GAP: Final = 2  # between columns
_BREAKS_AT: Final = 12  # a column that breaks is at least as wide
# What a terminal is told: its "select graphic rendition" parameters.
_BOLD: Final = "1"
_DIM: Final = "2"
_STYLES: Final[Mapping[Tone, str]] = {
    "good": "32",
    "warn": "33",
    "bad": "1;31",
    "strong": _BOLD,
    "faint": _DIM,
    "plain": "",
}


def render(blocks: Iterable[Block], *, width: int = 100, color: bool = False) -> str:
    """Return the page as text that ends in a line break; no line ends in a space.

    Parameters
    ----------
    blocks
        What stands on it, top to bottom; an empty line comes between two blocks.
    width
        Characters a line.
    color
        Whether to use a terminal's colours.
    """
    text = "\n".join(_laid_out(block, width, color=color) for block in blocks)
    text = visible(text, controls=False)
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def _laid_out(block: Block, width: int, *, color: bool) -> str:
    """Return the lines of a block, each with its line break."""
    if isinstance(block, Heading):
        return f"{_painted(block.text, _BOLD, color=color)}\n"
    if isinstance(block, Text):
        text = _wrapped(block.text, width, hang=block.hang)
        return f"{_painted(text, _DIM if block.dim else '', color=color)}\n"
    if isinstance(block, Lines):
        return f"{block.text}\n"
    if isinstance(block, Bullets):
        items = (_wrapped(item, width - 2, hang=0) for item in block.items)
        return "".join("- " + item.replace("\n", "\n  ") + "\n" for item in items)
    return "".join(f"{line}\n" for line in _table_lines(block, width, color=color))


def _painted(text: str, style: str, *, color: bool) -> str:
    if not color or not style:
        return text
    return "\n".join(f"\x1b[{style}m{line}\x1b[0m" if line else "" for line in text.split("\n"))


def _wrapped(text: str, width: int, *, hang: int) -> str:
    from textwrap import fill

    filled = fill(
        _glued(text, width),
        width,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_UNBROKEN, " ")


def _glued(text: str, width: int) -> str:
    """Return text with unbroken spaces before units and in names of links that fit a line."""

    def glue(link: re.Match[str]) -> str:
        return link[0].replace(" ", _UNBROKEN) if len(link[0]) <= width else link[0]

    return _LINK.sub(glue, _UNIT.sub(_UNBROKEN, text))


# --- tables ---------------------------------------------------------------------------------------


def _table_lines(table: Table, width: int, *, color: bool) -> Iterator[str]:
    """Yield the lines of a table, which is wider than the page if it cannot be as narrow."""
    least = [_narrowest(table, place) for place in range(len(table.columns))]
    titles = tuple(
        Cell(column.title if column.breaks else _wrapped(column.title, narrow or 1, hang=0))
        for column, narrow in zip(table.columns, least, strict=True)
    )
    titled = any(column.title for column in table.columns)
    rows: list[Sequence[str | Cell]] = [*([titles] if titled else []), *table.rows]
    limit = max(width, sum(least) + _GAP * len(least))
    widths = _column_widths(table.columns, rows, least, limit)
    for row in rows:
        cells = [cell if isinstance(cell, Cell) else Cell(cell, "plain") for cell in row]
        lines = []
        for cell, column, wide in zip(cells, table.columns, widths, strict=True):
            pieces = cell.text.split("\n")
            if column.breaks:
                pieces = [piece for line in pieces for piece in _broken(line, wide)]
            lines.append([piece.rstrip() for piece in pieces])
        height = max(map(len, lines), default=0)
        if row is titles:  # which stand on what is below them
            lines = [[""] * (height - len(column)) + column for column in lines]
        for number in range(height):
            pieces = []
            for place, column in enumerate(table.columns):
                text = lines[place][number] if number < len(lines[place]) else ""
                space = " " * (widths[place] - terminal_width(text))
                text = _painted(text, _STYLES[cells[place].tone], color=color)
                pieces.append(f"{space}{text}" if column.right else f"{text}{space}")
            yield (" " * _GAP).join(pieces)


def _narrowest(table: Table, place: int) -> int:
    """Return how narrow a column may become: as its longest word, or line where none breaks."""
    column = table.columns[place]
    cells = (row[place] for row in table.rows)
    texts = (cell.text if isinstance(cell, Cell) else cell for cell in cells)
    if column.breaks:
        pieces = ["x" * _BREAKS_AT]
    else:
        pieces = [line for text in texts for line in text.splitlines()]
    return max(map(terminal_width, [*pieces, *column.title.split()]), default=0)


def _column_widths(
    columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]], least: list[int], limit: int
) -> list[int]:
    """Return how wide the columns are: as their text, or less where a line may break.

    The widest that may break become narrower first, together once they are equally wide.
    """
    natural = list(least)
    for row in rows:
        for place, cell in enumerate(row):
            text = cell.text if isinstance(cell, Cell) else cell
            natural[place] = max(natural[place], *map(terminal_width, text.split("\n")))
    gaps = [_GAP] * (len(columns) - 1) + [0]
    widths = [min(wide + gap, limit) for wide, gap in zip(natural, gaps, strict=True)]
    breaking = [place for place, column in enumerate(columns) if column.breaks]
    while breaking and (excess := sum(widths) - limit) > 0:
        widest = max(widths[place] for place in breaking)
        chosen = [place for place in breaking if widths[place] == widest]
        following = max((widths[place] for place in breaking if widths[place] < widest), default=0)
        if widest == following:
            break
        for number, place in enumerate(chosen):
            cut = min(widest - following, excess, round(excess / (len(chosen) - number)))
            widths[place] -= cut
            excess -= cut
    return [max(wide - gap, narrow) for wide, gap, narrow in zip(widths, gaps, least, strict=True)]


def _broken(line: str, width: int) -> list[str]:
    """Return a line in pieces of at most `width`: broken between words, or in longer ones."""
    line = _glued(line, width)
    starts = [0]
    used = 0
    for match in _WORD.finditer(line):
        word = match[0]
        length = terminal_width(word.rstrip())
        if used + length <= width:
            used += terminal_width(word)
            continue
        start = match.start()
        chopped = _chopped(word, width) if length > width else [word]
        for piece in chopped:
            starts.append(start)
            start += len(piece)
        used = terminal_width(chopped[-1])
    starts = list(dict.fromkeys(starts))
    ends = [*starts[1:], len(line)]
    pieces = (line[start:end] for start, end in zip(starts, ends, strict=True))
    return [piece.replace(_UNBROKEN, " ") for piece in pieces]


def _chopped(word: str, width: int) -> list[str]:
    """Return a word in pieces of at most `width`."""
    pieces = [""]
    for character in word:
        if terminal_width(pieces[-1] + character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces
