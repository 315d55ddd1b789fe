"""A page of text as values: headings, paragraphs, bullets, tables.

Views return blocks; only `layout` knows about widths and colours, so the same blocks give the same
bytes wherever they are not shown on a terminal. At the end stand the small pieces of text that
several pages share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from topo.catalogue.fields import RATE, Quantity
from topo.phrases import shortened
from topo.records import dataclass
from topo.units import format_size

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.description.description import Workload
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
