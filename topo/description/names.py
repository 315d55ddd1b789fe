"""Names: what they may look like, ranges of them, and which devices a text selects.

A name is a letter followed by letters, digits, ``_`` and ``-``, without ``--`` (which joins the
ends of a link). ``gpu[0-7]`` names eight devices. In a selection a bare stem, ``gpu``, means every
device of that stem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from topo.description.description import End
from topo.document.nodes import Report, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed

MOST = 100_000
_LONG = 40  # characters of a text that a message shows
RESERVED = ("from", "to", "via", "each", "in", "all", "is", "at", "by")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RANGE = re.compile(r"(?P<stem>[^\[\]]*)\[(?P<items>[^\[\]]*)\]")
_ITEM = re.compile(r"\s*([0-9]{1,12})\s*(?:-\s*([0-9]{1,12})\s*)?")
_NUMBERED = re.compile(r"(.*?)([0-9]*)")
_SIDE = re.compile(r"(p|numa|quadrant)[0-9]{1,6}")


def stem_of(name: str) -> tuple[str, int]:
    """Split ``gpu12`` into ``gpu`` and 12; a name without a number has -1."""
    match = _NUMBERED.fullmatch(name)
    stem, digits = match.groups() if match else (name, "")
    return stem, int(digits) if digits else -1


def expand(key: Scalar, report: Report) -> tuple[str, ...]:
    """Return the names that a key like ``gpu[0-7]`` defines; none when it is not a name."""
    names = _expanded(key.text, key, report)
    if not names:
        return ()
    name = names[0]
    if "--" in name or not _NAME.fullmatch(name):
        advice = "a name is a letter, then letters, digits, `_` and `-`"
        if "\u00a0" in key.text:
            advice = "a no-break space stands in it; use a plain one, or none"
        elif "." in key.text:
            advice = "`.` enters a used topology; a device's own name has none"
        elif "--" in key.text:
            advice = "`--` joins the ends of a link; use one hyphen"
        report.add(key, "bad-name", f"`{key.text}` is not a name", help=advice)
        return ()
    if name in RESERVED:
        message = f"`{name}` is a word of topo's own sentences and cannot be a name"
        report.add(key, "reserved-name", message, help=f"write `{name}0`, or another name")
        return ()
    return names


def is_name(key: Scalar, report: Report) -> bool:
    """Whether a key is one name, as workloads and data paths have; if not, that is reported."""
    if "[" in key.text:
        message = f"`{key.text}` is not a name: only devices have ranges"
        report.add(key, "bad-name", message, help="write one entry for each")
        return False
    return bool(expand(key, report))


def numbers_in(text: str, most: int = MOST) -> tuple[int, ...]:
    """Return the numbers that ``0-3,6`` stands for.

    Raises
    ------
    UnitError
        If it is not numbers and ranges of them, or more than `most`.
    """
    return tuple(int(number) for number in _numbers(text, text, most))


def _expanded(text: str, at: Scalar, report: Report) -> tuple[str, ...]:
    try:
        return _expand(text)
    except UnitError as error:
        report.unit(at, error)
        return ()


def _expand(text: str) -> tuple[str, ...]:
    if "[" not in text and "]" not in text:
        return (text,)
    match = _RANGE.fullmatch(text)
    if not match:
        raise UnitError(
            "bad-range",
            f"`{text}` is not a range: brackets stand once, at the end of a name",
            "write it like `gpu[0-7]`",
        )
    return tuple(f"{match['stem']}{number}" for number in _numbers(match["items"], text))


def _numbers(items: str, text: str, most: int = MOST) -> list[str]:
    """Return the numbers of ``0-3,6`` as they are written: ``00-03`` keeps its zeros."""
    numbers: dict[str, None] = {}
    for item in items.split(","):
        match = _ITEM.fullmatch(item)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(last) < int(first):
            raise UnitError(
                "bad-range",
                f"`{text}` is not a range of numbers, the smaller one first",
                "write it like `gpu[0-7]` or `gpu[0-3,6]`",
            )
        if int(last) - int(first) + len(numbers) >= most:
            shortened = text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
            message = f"`{shortened}` names more than {most} of them"
            raise UnitError("huge-range", message, "write a smaller range")
        width = len(first)
        numbers |= {f"{number:0{width}d}": None for number in range(int(first), int(last) + 1)}
    return list(numbers)


def ranged(names: Iterable[str], most: int = 12) -> list[str]:
    """Write names shortly: runs of three and more become ranges, the rest after `most` dots."""
    runs: list[list[str]] = []
    for name in names:
        stem, number = stem_of(name)
        if runs and number >= 0 and stem_of(runs[-1][-1]) == (stem, number - 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    texts: list[str] = []
    for run in runs:
        if len(run) > 2:  # noqa: PLR2004
            stem, first = stem_of(run[0])
            texts.append(f"{stem}[{first}-{stem_of(run[-1])[1]}]")
        else:
            texts += run
    return texts[:most] + (["..."] if len(texts) > most else [])


class Names:
    """The devices of a topology by name and by stem, and what a text selects of them."""

    def __init__(self, names: Iterable[str], numa: Mapping[str, Sequence[int]]) -> None:
        self._names = tuple(names)
        self._known = frozenset(self._names)
        self._numa = numa
        stems: dict[str, list[tuple[int, str]]] = {}
        for name in self._names:
            stem, number = stem_of(name)
            if number >= 0:
                stems.setdefault(stem, []).append((number, name))
        self._stems = {
            stem: tuple(name for _, name in sorted(members)) for stem, members in stems.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def matching(self, text: str) -> tuple[str, ...]:
        """Return the devices that `text` names, in natural order; none when it names no device."""
        if text in self._known:
            return (text,)
        if text in self._stems:
            return self._stems[text]
        try:
            names = _expand(text)
        except UnitError:
            return ()
        return names if self._known.issuperset(names) else ()

    def select(self, text: str, at: Scalar, report: Report) -> tuple[str, ...]:
        """Return what `matching` returns, and report a name that no device has."""
        devices = self.matching(text)
        if not devices and (names := _expanded(text, at, report)):
            message, advice = self.absent([name for name in names if name not in self._known])
            report.add(at, "unknown-name", message, help=advice)
        return devices

    def ends(self, text: str, at: Scalar, report: Report) -> tuple[End, ...]:
        """Return the link ends that a text like ``slot[1-2]/p1`` names."""
        device, slash, side = text.partition("/")
        names = self.select(device.strip(), at, report)
        if not slash:
            return tuple(End(name) for name in names)
        sides = _expanded(side.strip(), at, report)
        if any(not _SIDE.fullmatch(side) for side in sides):
            message = f"`{text}` names no side of a device"
            advice = "a side is a port, `/p2`, a NUMA node, `/numa3`, or a quadrant, `/quadrant1`"
            report.add(at, "bad-name", message, help=advice)
            return ()
        ends = tuple(End(name, side) for name in names for side in sides)
        for end in ends:
            number = end.side.removeprefix("numa")
            stated = self._numa.get(end.device, ())
            if number == end.side or int(number) in stated:
                continue
            owner = next((name for name, nodes in self._numa.items() if int(number) in nodes), "")
            has = f"it has {listed(map(str, stated))}" if stated else "it states none"
            report.add(
                at,
                "unknown-name",
                f"{end.device} has no NUMA node {number}; {has}",
                help=f"write `{owner}/{end.side}`"
                if owner
                else "NUMA nodes are a CPU's, and it says which: `cpu0: {part: ..., numa: 0-3}`",
            )
            return ()
        return ends

    def absent(self, unknown: Sequence[str]) -> tuple[str, str]:
        """Return message and advice for devices that are not there."""
        message = f"no device {listed(ranged(unknown))}"
        family = self._stems.get(stem_of(unknown[0])[0], ())
        if "." in unknown[0]:
            return message, "`.` enters a used topology, and none is used here"
        if family:
            return f"{message}; {listed(ranged(family))} exist{'s' * (len(family) == 1)}", ""
        advice = did_you_mean(unknown[0], [*self._names, *self._stems])
        return message, advice or f"devices are {listed(ranged(islice(self._names, 200)))}"
