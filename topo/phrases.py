"""Names and counts as a sentence has them: lists, ranges, "and 3 more", "did you mean"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from math import prod

_NUMBER = re.compile(r"\d+")
# Between two devices: of a link, or of a peer-to-peer cap, `cpu0/p2p (nic0, gpu0)`.
_ENDS = re.compile(r" (?:->|--|<->) |(?<=/p2p) \(|, (?=\S+\))")
_JOINT = re.compile(r"--|\s")  # between two names; `/` and `.` stand within one
_BRIEF = 240  # characters of a value's line
_LISTED = 16  # names without a pattern; more of them are ranges with gaps
_WRITTEN_OUT = 2  # so many names are not yet a range
# What moves a terminal's cursor, turns the reading direction, has no width, or is no character.
_MARKS = (
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
)
_INVISIBLE = re.compile(f"[\x00-\x1f\x7f-\x9f{_MARKS}]")
_DIRECTIONS = re.compile(f"[{_MARKS}]")


def visible(text: str, *, controls: bool = True) -> str:
    r"""Return text with what cannot be seen as escapes.

    Parameters
    ----------
    text
        The text.
    controls
        Whether control characters are escaped as well, line breaks among them; else only marks of
        direction and halves of characters, as a page has line breaks and colours of its own.

    Examples
    --------
    >>> visible("a\x1b[31m\u202eb\n")
    'a\\x1b[31m\\u202eb\\x0a'
    """
    if text.isprintable():
        return text
    pattern = _INVISIBLE if controls else _DIRECTIONS
    return pattern.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004


def listed(names: Iterable[str], last: str = "and", *, most: int | None = None) -> str:
    """Return names as a sentence lists them, shortened past `most`.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed("abcde", most=3)
    ('a, b and c', 'a or b', 'a, b and 3 more')
    """
    items = list(names)
    if most is not None and len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1} more"]
    if len(items) < 2:  # noqa: PLR2004
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def and_more(names: Sequence[str], few: int = 3) -> str:
    """Return the first names and how many more there are.

    Examples
    --------
    >>> and_more(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return ", ".join(names[:few]) + (f" and {len(names) - few} more" if len(names) > few else "")


def brief(value: object, text: str) -> str:
    """Return what `repr` gives of a value in words of its own: its type, and a line of text.

    Examples
    --------
    >>> brief(1.5, "three halves")
    '<float three halves>'
    """
    text = visible(text)
    cut = text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3]}..."
    return f"<{type(value).__name__} {cut}>"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "port"), counted(2, "port")
    ('1 port', '2 ports')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def number_ranges(numbers: Iterable[int]) -> str:
    """Return rising numbers as a topology file and Linux write them.

    Examples
    --------
    >>> number_ranges([0, 3, 4, 5, 9])
    '0,3-5,9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


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


def unnumbered(name: str) -> str:
    """Return a name with its numbers taken out, the same for all that differ in them only."""
    return _NUMBER.sub("#", name)


def ranges(names: Iterable[str]) -> list[str]:
    """Return names with what repeats as ranges, as a list.

    What joins two devices of one machine, in several machines alike, names these once.

    Examples
    --------
    >>> ranges(f"node{node}.nic{nic} -> node{node}.cpu0" for node in range(4) for nic in range(3))
    ['nic[0-2] -> cpu0 of node[0-3]']
    >>> ranges(f"node{node}.cpu0/p2p (node{node}.nic0, node{node}.gpu0)" for node in range(4))
    ['cpu0/p2p (nic0, gpu0) of node[0-3]']
    """
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name, machines in _by_machines(dict.fromkeys(names)):
        group = groups.setdefault((machines, *_NUMBER.split(name)), [])
        group.append(tuple(_NUMBER.findall(name)))
    return [
        text + (f" of {machines}" if machines else "")
        for (machines, *words), numbers in groups.items()
        for text in _ranges(tuple(words), numbers)
    ]


def _by_machines(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name with no machines, or what is in machines alike once, with those."""
    of_name: dict[str, list[str]] = {}
    plain: dict[tuple[str, str], str] = {}  # by machine and what stands inside
    for name in names:
        machine = _machine_of(name)
        inside = name.replace(f"{machine}.", "") if machine else name
        plain[machine, inside] = name
        of_name.setdefault(inside, []).append(machine)
    texts: dict[tuple[str, ...], str] = {}
    for inside, machines in of_name.items():
        if len(machines) <= _WRITTEN_OUT or not all(machines):
            yield from ((plain[machine, inside], "") for machine in machines)
            continue
        key = tuple(machines)
        if key not in texts:
            texts[key] = listed(ranges(machines))
        yield inside, texts[key]


def _machine_of(name: str) -> str:
    """Return the machine that both ends of what joins two devices are in, empty for none."""
    if "." not in name or not _ENDS.search(name):
        return ""
    machines = [end.partition("/")[0].split(".")[:-1] for end in _ENDS.split(name)]
    common = takewhile(lambda words: len(set(words)) == 1, zip(*machines, strict=False))
    return ".".join(words[0] for words in common)


def _ranges(words: tuple[str, ...], numbers: list[tuple[str, ...]]) -> list[str]:
    """Return texts for names that differ in their numbers only, as few as ranges allow."""
    numbers = sorted(numbers, key=lambda digits: tuple(map(int, digits)))
    if len(numbers) <= _WRITTEN_OUT:
        return [_woven(words, digits) for digits in numbers]
    places = range(len(numbers[0]))
    spans = [_span([digits[place] for digits in numbers]) for place in places]
    if all(spans) and _stand_for(spans, words, numbers):
        return [_woven(words, tuple(spans))]
    splits = [_split(numbers, place) for place in places]
    if len(numbers) > _LISTED:
        splits += [_split_at_gaps(numbers, place) for place in places]
    parts = min(splits, key=lambda split: (len(split) == 1, len(split)), default=[numbers])
    if len(parts) in (1, len(numbers)):
        return [_woven(words, digits) for digits in numbers]
    return [text for part in parts for text in _ranges(words, part)]


def _span(values: list[str]) -> str:
    """Return ``[0-7]`` for consecutive numbers, the number itself for one, ``""`` for others."""
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return different[0]
    first = int(different[0])
    run = [str(first + step) for step in range(len(different))]
    return f"[{run[0]}-{run[-1]}]" if different == run else ""


def _stand_for(spans: list[str], words: tuple[str, ...], numbers: list[tuple[str, ...]]) -> bool:
    """Whether a topology file would read the spans as these names and no others.

    Within a name, ``slot[1-2]/p[1-2]``, it reads all combinations; between names whose counts are
    equal, ``gpu[0-2] -> nic[0-2]``, the first with the first, and so on.
    """
    counts: dict[int, int] = {}  # of what varies, by name
    varying: list[int] = []
    for place, name in enumerate(accumulate(bool(_JOINT.search(word)) for word in words[:-1])):
        if spans[place].startswith("["):
            varying.append(place)
            counts[name] = counts.get(name, 1) * len({digits[place] for digits in numbers})
    if len(set(counts.values())) == len(counts):
        return len(numbers) == prod(counts.values())
    alike = all(len({digits[place] for place in varying}) == 1 for digits in numbers)
    return alike and len(counts) == len(varying)


def _split(numbers: list[tuple[str, ...]], place: int) -> list[list[tuple[str, ...]]]:
    parts: dict[str, list[tuple[str, ...]]] = {}
    for digits in numbers:
        parts.setdefault(digits[place], []).append(digits)
    return list(parts.values())


def _split_at_gaps(numbers: list[tuple[str, ...]], place: int) -> list[list[tuple[str, ...]]]:
    """Return the names by runs of consecutive numbers at a place."""
    different = sorted({int(digits[place]) for digits in numbers})
    run_of = {number: number - rank for rank, number in enumerate(different)}
    parts: dict[int, list[tuple[str, ...]]] = {}
    for digits in numbers:
        parts.setdefault(run_of[int(digits[place])], []).append(digits)
    return list(parts.values())


def _woven(words: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    return "".join([words[0], *(n + word for n, word in zip(numbers, words[1:], strict=True))])


# --- near names: what somebody probably meant, said only when it is near -----------------------

_SHORTEST = 3  # letters that a part of a name must have before it counts as a hint
_MOST = 3  # names offered at once
_FEW = 5  # names listed where none is near
_CUTOFF = 0.72  # difflib's likeness
_SLIP = 0.9


def near_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that `name` may have been meant for, nearest first, or none.

    Examples
    --------
    >>> near_names("conectx-7", ["connectx-7", "bluefield-3"])
    ('connectx-7',)
    >>> near_names("h100", ["h100-sxm-80gb", "h100-pcie-80gb", "a100-sxm-40gb"])
    ('h100-sxm-80gb', 'h100-pcie-80gb')
    >>> near_names("x86_64", ["x86", "arm"])
    ('x86',)
    >>> near_names("xeon-8480+", ["xeon-8480c", "xeon-8480plus"])
    ('xeon-8480plus',)
    >>> near_names("connectx-7-dul-port", ["connectx-7", "connectx-7-dual-port"])
    ('connectx-7-dual-port',)
    >>> near_names("rma", ["rdma", "ram"])
    ('ram',)
    >>> near_names("banana", ["connectx-7"])
    ()
    """
    from difflib import get_close_matches

    plain = {_hyphenated(candidate): candidate for candidate in names}
    wanted = _hyphenated(name)
    if wanted in plain:
        return (plain[wanted],)
    swapped = (
        f"{wanted[:at]}{wanted[at + 1]}{wanted[at]}{wanted[at + 2 :]}"
        for at in range(len(wanted) - 1)
    )
    for candidate in swapped:  # the commonest slip, and of a short name the letters look far apart
        if candidate in plain:
            return (plain[candidate],)
    if len(wanted) >= _SHORTEST:
        starts = [
            key
            for key in plain
            if key.startswith(wanted) or (len(key) >= _SHORTEST and wanted.startswith(f"{key}-"))
        ]
        if starts and not any(key.startswith(wanted) for key in starts):
            # in a longer name a slip of the pen is likelier than an end that is too much
            starts = get_close_matches(wanted, plain, n=1, cutoff=_SLIP) or starts
        if starts:
            return tuple(plain[key] for key in starts[:_MOST])
    close = get_close_matches(wanted, plain, n=1, cutoff=_CUTOFF)
    return tuple(plain[key] for key in close)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return advice with the near names, empty when there are none.

    Examples
    --------
    >>> did_you_mean("bandwith", ["bandwidth", "lanes"])
    'did you mean `bandwidth`?'
    """
    near = [f"`{candidate}`" for candidate in near_names(name, names)]
    return f"did you mean {listed(near, 'or')}?" if near else ""


def nearest_names(name: str, names: Iterable[str]) -> str:
    """Return advice with the near names, or else the few that are least far: never a long list.

    Examples
    --------
    >>> nearest_names("legcy", ["legacy", "direct", "mmap"])
    'did you mean `legacy`?'
    >>> nearest_names("zzz", ["legacy", "direct", "mmap"])
    'there are legacy, direct and mmap'
    """
    from difflib import SequenceMatcher

    candidates = tuple(names)
    near = did_you_mean(name, candidates)
    if near:
        return near
    if len(candidates) <= _FEW:
        return f"there are {listed(candidates)}"
    nearest = sorted(
        candidates, key=lambda candidate: -SequenceMatcher(None, name, candidate).ratio()
    )[:_FEW]
    return f"the nearest of {len(candidates)} are {listed(nearest)}"


def terminal_width(text: str) -> int:
    r"""Return how many columns of a terminal a text takes: wide characters two, marks none.

    Examples
    --------
    >>> terminal_width("topo"), terminal_width("\u62d3\u6251"), terminal_width("e\u0301")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    from unicodedata import category, combining, east_asian_width

    return sum(
        2 if east_asian_width(character) in "WF" else 1
        for character in text
        if not combining(character) and category(character) not in ("Mn", "Me", "Cf")
    )


def _hyphenated(name: str) -> str:
    # "8480+" is a name on data sheets
    return name.strip().lower().replace("+", "plus").replace("_", "-").replace(" ", "-")
