"""What result files tell: rates between two ends, and runs of collectives, as their programs count.

Damaged numbers are no numbers, and long or unprintable texts are cut, whatever a file holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from topo.discovery.foreign import read_lines
from topo.errors import ExchangeError, Finding
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.description.description import Collective

SMALL: Final = 128 * 2**10  # bytes: below, operations a second are measured, not bandwidth
BOTH_SUMMED: Final = "a sum of both directions"
OTHER_WAY_BUSY: Final = "measured while the other direction was busy"
DIAGONAL: Final = "the diagonal: one device's own memory, read and written, on no link"
CACHED: Final = "not O_DIRECT: the page cache may have answered"
SMALL_BLOCKS: Final = "transfers below 128 KiB: operations a second, not bandwidth"
POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}  # of 1024 in a size of blocks
_BLOCK: Final = re.compile(r"(\d{1,12})\s*([kmgt]?)i?b?", re.IGNORECASE)
_QUOTED: Final = re.compile(r"^[ \t]*(?:>[ \t]?){1,8}")
_MOST: Final = 1e15  # bytes/s: beyond, a number is damaged


@dataclass(frozen=True, slots=True)
class End:
    """One end of a transfer: the file's own number or name for it, if it has one."""

    kind: Literal["gpu", "ram", "storage", "card"]
    number: int = -1
    name: str = ""

    def __str__(self) -> str:
        return self.name or (f"{self.kind} {self.number}" if self.number >= 0 else self.kind)


RAM: Final = End("ram")
STORAGE: Final = End("storage")


def ram(node: int) -> End:
    """Return the RAM of a NUMA node, where a file numbers it."""
    return End("ram", node)


def gpu(number: int) -> End:
    """Return the GPU of a number."""
    return End("gpu", number)


@dataclass(frozen=True, slots=True)
class Result:
    """One rate of a file, in bytes/s from `source` to `target`.

    `test` is what was run; `both` says that the rate is a sum of both directions, `busy` that the
    other direction was in use as well; `unwritten` why the rate is not one of a link or pair.
    `rank` orders results for the same ends: the greatest is used. `workers` is how many cores made
    the copy, 0 where an engine did. RAM's number is that of its NUMA node.
    """

    test: str
    source: End
    target: End
    rate: float
    via: str = ""
    both: bool = False
    busy: bool = False
    unwritten: str = ""
    rank: int = 0
    workers: int = 0


@dataclass(frozen=True, slots=True)
class Concurrent:
    """The rate of several copies at once, all of them together, in bytes/s.

    `pairs` are the ends of each copy, in the direction of the data.
    """

    test: str
    pairs: tuple[tuple[End, End], ...]
    rate: float


@dataclass(frozen=True, slots=True)
class Rank:
    """A GPU that took part: its server's name, its number there, its PCI bus or address."""

    host: str
    device: int
    address: str


@dataclass(frozen=True, slots=True)
class CollectiveRun:
    """The fastest row of one table: what was run, bytes, and bytes/s as the program counts them.

    `kind` is empty where nothing tells it, and `count` 0; `unknown` says why in a sentence.
    """

    kind: Collective | str
    size: int
    algorithm_rate: float
    bus_rate: float
    ranks: tuple[Rank, ...] = ()
    count: int = 0
    root: int = -1
    unknown: str = ""

    @property
    def test(self) -> str:
        """What was run, in few words: ``all-reduce of 1073741824 B``."""
        return f"{self.kind or 'a collective'} of {self.size} B"

    @property
    def server_count(self) -> int:
        """How many servers took part; one where the ranks are not listed."""
        return len({rank.host for rank in self.ranks}) or 1


@dataclass(frozen=True, slots=True)
class Results:
    """A whole file: its rates, its GPUs' PCI addresses if it tells them, what is no rate of ours.

    `left_out` are sentences; `gpu_count` is how many GPUs the file speaks of, 0 if unknown.
    """

    kind: str
    results: tuple[Result, ...] = ()
    addresses: tuple[str, ...] = ()
    gpu_count: int = 0
    left_out: tuple[str, ...] = ()
    date: str = ""
    collectives: tuple[CollectiveRun, ...] = ()
    concurrent: tuple[Concurrent, ...] = ()


def of_whole_path(via: str) -> str:
    """Say why a rate of a data path of several copies is written nowhere."""
    return f"a rate of the whole path {via}, not of one pair"


# --- what a file holds, whatever is in it ---------------------------------------------------------


def read_pasted(data: bytes, name: str) -> list[str]:
    """Return the lines of a text as it was printed: without the marks of a quotation before them.

    Raises
    ------
    ExchangeError
        If it is too big, or no text.
    """
    return [_QUOTED.sub("", line) for line in read_lines(data, name)]


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object of a file; what a program printed above it does not matter.

    Raises
    ------
    ExchangeError
        If there is none, or it breaks off.
    """
    text = data.decode("utf-8-sig", "replace")
    start = text.find("{")
    try:
        root, _ = json.JSONDecoder().raw_decode(text, max(start, 0))
    except (ValueError, RecursionError):
        message = f"`{name}` is JSON that breaks off or contradicts itself"
        raise ExchangeError(Finding("broken-json", message)) from None
    return mapping(root)


def mapping(value: object) -> dict[str, Any]:
    """Return what should be an object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of what should be a list of them."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def number(value: object) -> float | None:
    """Return a finite, positive number from a JSON number or text, `None` for ``N/A``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if 0 < parsed < _MOST else None


def is_small(block: str) -> bool:
    """Whether a size of blocks as fio and elbencho write it, ``4k``, is below `SMALL`."""
    size = _BLOCK.fullmatch(block)
    return size is not None and int(size[1]) * 1024.0 ** POWERS[size[2].lower()] < SMALL


def small_text(value: object, *, most: int = 60) -> str:
    """Return a text of a file short enough for a message."""
    text = value if isinstance(value, str) else ""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
