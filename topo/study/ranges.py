"""Many names said shortly: what repeats becomes ranges, ``gpu[0-7]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ranges", "shortened", "unnumbered"]

_NUMBER = re.compile(r"\d+")
_RUN = 2  # so many names are still written out


def shortened(names: Iterable[str]) -> str:
    """Return names with what repeats as ranges.

    Examples
    --------
    >>> shortened(["gpu0 -> nic0", "gpu1 -> nic1", "gpu2 -> nic2"])
    'gpu[0-2] -> nic[0-2]'
    >>> shortened(["nic0 -> cpu0", "nic1 -> cpu0", "nic2 -> cpu0", "nic3 -> cpu1", "slot1/chip"])
    'nic[0-2] -> cpu0, nic3 -> cpu1, slot1/chip'
    """
    return ", ".join(ranges(names))


def ranges(names: Iterable[str]) -> list[str]:
    """Return names with what repeats as ranges, as a list."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(tuple(_NUMBER.split(name)), []).append(tuple(_NUMBER.findall(name)))
    return [text for words, numbers in groups.items() for text in _ranges(words, numbers)]


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


def unnumbered(name: str) -> str:
    """Return a name with its numbers taken out, the same for all that differ in them only."""
    return _NUMBER.sub("#", name)
