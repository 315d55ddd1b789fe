"""Small pieces of text that several pages share: names in ranges, figures, verdicts."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from topo.units import (
    format_rate,
    format_ratio,
    format_size,
    format_transfer_rate,
)
from topo.views.text.page import Cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.catalogue.keys import Quantity
    from topo.catalogue.model import Figure
    from topo.routes.model import Verdict
    from topo.spec.model import Workload
    from topo.topology import Topology

__all__ = [
    "figure_text",
    "shortened",
    "sourced",
    "spanned",
    "title_of",
    "unnumbered",
    "verdict_cell",
    "workload_sentence",
]

_NUMBER = re.compile(r"\d+")
_RUN = 2  # so many names are still written out

_TONES = {"ok": "good", "ok-slower": "warn", "unknown": "warn", "refused": "bad"}


def title_of(topology: Topology) -> str:
    """Return a page's first line: the name, and the title if there is one."""
    name, title = topology.name, topology.title
    return f"{name}: {title}" if title != name else name


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a verdict in its colour."""
    return Cell(verdict, _TONES[verdict])  # type: ignore[arg-type]  # the tones are above


def figure_text(figure: Figure, quantity: Quantity = "rate") -> str:
    """Return a figure's value in its unit; unknown and unlimited are words."""
    value = figure.value
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "unlimited"
    if quantity == "rate":
        return format_rate(value)
    if quantity == "size":
        return format_size(value)
    if quantity == "ratio":
        return format_ratio(value)
    return format_transfer_rate(value) if quantity == "transfer-rate" else f"{value:g}"


def sourced(figure: Figure) -> str:
    """Return a figure's kind and source in one phrase."""
    return f"{figure.kind}: {figure.source}" if figure.source else figure.kind


def workload_sentence(workload: Workload) -> str:
    """Return what a workload is: ``read 640 GB, storage to gpu[0-7]``."""
    ends = (shortened(workload.sources), shortened(workload.targets))
    size = f" {format_size(workload.size)}" if workload.sized else ""
    rates = "" if workload.sized else "; rates only, since no size is said"
    return f"{workload.direction}{size}, {ends[0]} to {ends[1]}{rates}"


def unnumbered(name: str) -> str:
    """Return a name with its numbers taken out, the same for all that differ in them only."""
    return _NUMBER.sub("#", name)


def spanned(span: tuple[int, int]) -> str:
    """Return ``3`` or ``3 to 4``.

    Examples
    --------
    >>> spanned((3, 3)), spanned((3, 4))
    ('3', '3 to 4')
    """
    least, most = span
    return str(least) if least == most else f"{least} to {most}"


def shortened(names: Iterable[str]) -> str:
    """Return names with what repeats as ranges.

    Examples
    --------
    >>> shortened(["gpu0 -> nic0", "gpu1 -> nic1", "gpu2 -> nic2"])
    'gpu[0-2] -> nic[0-2]'
    >>> shortened(["nic0 -> cpu0", "nic1 -> cpu0", "nic2 -> cpu0", "nic3 -> cpu1", "slot1/chip"])
    'nic[0-2] -> cpu0, nic3 -> cpu1, slot1/chip'
    """
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(tuple(_NUMBER.split(name)), []).append(tuple(_NUMBER.findall(name)))
    return ", ".join(text for words, numbers in groups.items() for text in _ranges(words, numbers))


def _ranges(words: tuple[str, ...], numbers: list[tuple[str, ...]]) -> list[str]:
    """Return texts for names that differ in their numbers only, as few as ranges allow."""
    numbers = sorted(numbers, key=lambda one: tuple(map(int, one)))
    if len(numbers) <= _RUN:
        return [_woven(words, one) for one in numbers]
    spans = [_span([one[place] for one in numbers]) for place in range(len(numbers[0]))]
    if all(spans) and len(numbers) == _covered(numbers, spans):
        return [_woven(words, tuple(spans))]
    splits = (_split(numbers, place) for place in range(len(numbers[0])))
    parts = min(splits, key=lambda found: (len(found) == 1, len(found)), default=[numbers])
    if len(parts) in (1, len(numbers)):
        return [_woven(words, one) for one in numbers]
    return [text for part in parts for text in _ranges(words, part)]


def _span(values: list[str]) -> str:
    """Return ``[0-7]`` for consecutive numbers, the number itself for one, ``""`` for others."""
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return different[0]
    first = int(different[0])
    run = [str(first + step) for step in range(len(different))]
    return f"[{run[0]}-{run[-1]}]" if different == run else ""


def _covered(numbers: list[tuple[str, ...]], spans: list[str]) -> int:
    """Return how many names the spans stand for: all pairs of them, or side by side."""
    varying = [place for place, span in enumerate(spans) if span.startswith("[")]
    if all(one[place] == one[varying[0]] for one in numbers for place in varying):
        return len(numbers)
    product = 1
    for place in varying:
        product *= len({one[place] for one in numbers})
    return product


def _split(numbers: list[tuple[str, ...]], place: int) -> list[list[tuple[str, ...]]]:
    parts: dict[str, list[tuple[str, ...]]] = {}
    for one in numbers:
        parts.setdefault(one[place], []).append(one)
    return list(parts.values())


def _woven(words: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    pieces = [words[0]]
    for number, word in zip(numbers, words[1:], strict=True):
        pieces += (number, word)
    return "".join(pieces)
