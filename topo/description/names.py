"""Names: what they may look like, ranges of them, and which devices a text selects.

A name is a letter followed by letters, digits, ``_`` and ``-``, without ``--`` (which joins the
ends of a link). ``gpu[0-7]`` names eight devices. In a selection a bare stem, ``gpu``, means every
device of that stem. ``.`` enters a machine that is used: ``node3.gpu5``, ``node.gpu``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from topo.description.description import End
from topo.document.nodes import Report, Scalar
from topo.document.text import character, short
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed, ranges

MOST = 100_000
_LONG = 40  # characters of a text that a message shows
RESERVED = ("from", "to", "via", "each", "in", "all", "is", "at", "by")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RANGE = re.compile(r"(?P<stem>[^\[\]]*)\[(?P<items>[^\[\]]*)\]")
_ITEM = re.compile(r"\s*([0-9]{1,12})\s*(?:-\s*([0-9]{1,12})\s*)?")
_BETWEEN = re.compile(r"\s*([0-9]{1,12})\s*(?:\.{2,3}|:|\u2013|to)\s*([0-9]{1,12})\s*")  # habits
_SIDE = re.compile(r"(p|numa|quadrant)[0-9]{1,6}")


def stem_of(name: str) -> tuple[str, int]:
    """Split ``gpu12`` into ``gpu`` and 12; a name without a number has -1."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem, int(digits) if digits else -1


def parted(text: str) -> tuple[str, str, str]:
    """Split a text where it enters a used machine: ``node[0-3].gpu`` at its first ``.``."""
    host, dot, inside = text.partition(".")
    if host.count("[") != host.count("]"):  # `gpu[0..7]` is a range, if a wrong one
        return text, "", ""
    return host, dot, inside


def expand(key: Scalar, report: Report) -> tuple[str, ...]:
    """Return the names that a key like ``gpu[0-7]`` defines; none when it is not a name."""
    names = _expanded(key.text, key, report)
    if not names:
        return ()
    name = names[0]
    if "--" in name or not _NAME.fullmatch(name):
        advice = "a name is a letter, then letters, digits, `_` and `-`"
        if strange := re.search(r"[^\x00-\x7f]", key.text):
            advice = f"`{strange[0]}` is {character(strange[0])}: {advice}"
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
    head, dot, inside = parted(text)
    if dot:
        heads, names = _expand(head), _expand(inside)
        if len(heads) * len(names) > MOST:
            message = f"`{text}` names more than {MOST} of them"
            raise UnitError("huge-range", message, "write smaller ranges")
        return tuple(f"{head}.{name}" for head in heads for name in names)
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
        if between := _BETWEEN.fullmatch(item):
            least, most_of_range = sorted(map(int, between.groups()))
            raise UnitError(
                "bad-range",
                f"`{item}` in `{short(text, _LONG)}` is not a range of numbers",
                f"write {least}-{most_of_range}, both included",
            )
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(last) < int(first):
            raise UnitError(
                "bad-range",
                f"`{text}` is not a range of numbers, the smaller one first",
                "write it like `gpu[0-7]` or `gpu[0-3,6]`",
            )
        if int(last) - int(first) + len(numbers) >= most:
            message = f"`{short(text, _LONG)}` names more than {most} of them"
            raise UnitError("huge-range", message, "write a smaller range")
        width = len(first)
        numbers |= {f"{number:0{width}d}": None for number in range(int(first), int(last) + 1)}
    return list(numbers)


def ranged(names: Iterable[str], most: int = 12) -> list[str]:
    """Write names shortly: runs of three and more become ranges, the rest after `most` dots."""
    names = list(names)
    if any("." in name for name in names):  # of several machines
        texts = ranges(names)
        return texts[:most] + (["..."] if len(texts) > most else [])
    runs: list[list[str]] = []
    expected, width = "", 0
    for name in names:
        stem, number = stem_of(name)
        if runs and name == expected:
            runs[-1].append(name)
        else:
            runs.append([name])
            width = len(name) - len(stem)
        expected = f"{stem}{number + 1:0{width}d}" if number >= 0 else ""
    texts = []
    for run in runs:
        if len(run) > 2:  # noqa: PLR2004
            stem = stem_of(run[0])[0]
            texts.append(f"{stem}[{run[0].removeprefix(stem)}-{run[-1].removeprefix(stem)}]")
        else:
            texts += run
    return texts[:most] + (["..."] if len(texts) > most else [])


class Names:
    """The devices of a topology by name and by stem, and what a text selects of them.

    Parameters
    ----------
    names
        The devices.
    numa
        The NUMA nodes of those that have some.
    used
        The devices of each machine that is used, by its name here.
    """

    def __init__(
        self,
        names: Iterable[str],
        numa: Mapping[str, Sequence[int]],
        used: Mapping[str, Names] | None = None,
    ) -> None:
        self._names = tuple(names)
        self._known = frozenset(self._names)
        self._numa = numa
        self._used = used or {}
        self._stems = _by_stem(self._names)
        self._used_stems = _by_stem(self._used)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def matching(self, text: str) -> tuple[str, ...]:
        """Return the devices that `text` names, in natural order; none when it names no device.

        A stem of used machines means those that have such a device.
        """
        if text in self._known:
            return (text,)
        if text in self._stems:
            return self._stems[text]
        host, dot, inside = parted(text)
        if dot and self._used:
            return self._matching_inside(host, inside)
        try:
            names = _expand(text)
        except UnitError:
            return ()
        return names if self._known.issuperset(names) else ()

    def _matching_inside(self, text: str, inside: str) -> tuple[str, ...]:
        hosts = self.machines(text)
        matching = {id(names): names for names in map(self._used.__getitem__, hosts)}
        of_machine = {key: names.matching(inside) for key, names in matching.items()}
        if text not in self._used_stems and not all(of_machine.values()):
            return ()
        return tuple(
            f"{host}.{name}" for host in hosts for name in of_machine[id(self._used[host])]
        )

    def inside(self, machine: str) -> Names:
        """Return the devices of a used machine."""
        return self._used[machine]

    def in_machines(self, text: str) -> Iterator[str]:
        """Yield the full names of all devices in the used machines that `text` names.

        ``rack1.node2`` is one inside another; devices of machines inside are in it too.
        """
        head, dot, inside = parted(text)
        for machine in self.machines(head if dot else text):
            names = self._used[machine]
            devices = names.in_machines(inside) if dot else names.in_all()
            yield from (f"{machine}.{name}" for name in devices)

    def in_all(self) -> Iterator[str]:
        """Yield the full names of all devices, those in used machines first."""
        for machine in self._used:
            yield from self.in_machines(machine)
        yield from self._names

    def machines(self, text: str) -> tuple[str, ...]:
        """Return the used machines that `text` names; none when one of them is not there."""
        if text in self._used:
            return (text,)
        if text in self._used_stems:
            return self._used_stems[text]
        try:
            hosts = _expand(text)
        except UnitError:
            return ()
        return hosts if all(host in self._used for host in hosts) else ()

    def select(self, text: str, at: Scalar, report: Report) -> tuple[str, ...]:
        """Return what `matching` returns, and report a name that no device has."""
        devices = self.matching(text)
        if not devices and (names := _expanded(text, at, report)):
            unknown = [name for name in names if name not in self._known]
            message, advice = self.absent([text] if parted(text)[1] else unknown)
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
            if number == end.side:
                continue
            stated, owner = self.numa(end.device, int(number))
            if int(number) in stated:
                continue
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

    def numa(self, device: str, number: int) -> tuple[Sequence[int], str]:
        """Return the NUMA nodes that a device states, and who has `number` in that machine."""
        host, dot, inside = device.partition(".")
        if dot and host in self._used:
            stated, owner = self._used[host].numa(inside, number)
            return stated, owner and f"{host}.{owner}"
        owner = next((name for name, nodes in self._numa.items() if number in nodes), "")
        return self._numa.get(device, ()), owner

    def absent(self, unknown: Sequence[str]) -> tuple[str, str]:
        """Return message and advice for devices that are not there."""
        message = f"no device {listed(ranged(unknown))}"
        name = unknown[0]
        host, dot, inside = parted(name)
        if dot and not self._used:
            return message, "`.` enters a used topology, and none is used here"
        if dot:
            return self._absent_inside(host, inside)
        if self.machines(name):
            message = f"{name} is a whole machine (`use:`), not a device"
            device = next(iter(self._used[self.machines(name)[0]]), "")
            return message, f"name a device in it: `{name}.{device}`"
        stem = stem_of(name)[0]
        family = self._stems.get(stem) or self._used_stems.get(stem, ())
        if family:
            return f"{message}; {listed(ranged(family))} exist{'s' * (len(family) == 1)}", ""
        advice = did_you_mean(name, [*self._names, *self._stems])
        return message, advice or f"devices are {listed(ranged(islice(self._names, 200)))}"

    def _absent_inside(self, text: str, inside: str) -> tuple[str, str]:
        """Return message and advice for devices that a used machine, or no machine, has."""
        hosts = self.machines(text)
        if not hosts:
            if self.matching(text):
                message = f"{text} is a device, and `.` enters a machine that is used"
                return message, f"machines are {listed(ranged(islice(self._used, 200)))}"
            family = self._used_stems.get(stem_of(text.partition("[")[0])[0], ())
            message = f"no machine {text} is used here"
            if family:
                return f"{message}; {listed(ranged(family))} exist{'s' * (len(family) == 1)}", ""
            advice = did_you_mean(text, [*self._used, *self._used_stems])
            return message, advice or f"machines are {listed(ranged(islice(self._used, 200)))}"
        lacking = next(host for host in hosts if not self._used[host].matching(inside))
        names = self._used[lacking]
        if "." in inside:
            message, advice = names.absent([inside])
            return f"in {lacking}: {message}", advice
        missing = [name for name in _expand(inside) if not names.matching(name)]
        message, advice = names.absent(missing or [inside])
        return message.replace("no device", f"{lacking} has no", 1), advice


def _by_stem(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names that end in a number by what stands before it, in natural order."""
    stems: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        stem, number = stem_of(name)
        if number >= 0:
            stems.setdefault(stem, []).append((number, name))
    return {stem: tuple(name for _, name in sorted(members)) for stem, members in stems.items()}
