"""A plain document into YAML as a person would write it.

Devices and links that follow one another become ranges, values stand in one column, comments beside
what they are about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from json import dumps
from typing import Any, Final, NamedTuple

from topo.description.format import SECTION_ORDER, WIDEST_KEY
from topo.description.names import MOST
from topo.phrases import number_ranges
from topo.records import dataclass

Plain = dict[str, Any]

_WIDTH: Final = 96  # characters of an entry on one line
_LONGEST_KEY: Final = 900  # characters of a link's ends: YAML takes keys of 1024
_PART_WIDTH: Final = 200  # the same of a part, which stays on its line with its title
_PLAIN_TEXT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 _./()+%-]*")
_ADDRESS: Final = re.compile(r"[0-9a-fA-F:]+\.[0-7]")


@dataclass(frozen=True, slots=True)
class Comments:
    """What stands beside the entries of a document in its YAML, each without its ``#``.

    Parameters
    ----------
    head
        Lines above everything.
    above
        By device, what stands on lines of its own above it, with the devices that it is about.
    devices, workloads
        By name, what stands behind an entry.
    links
        The same for each link of the document, in its order; empty for none at all.
    """

    head: tuple[str, ...] = ()
    above: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    workloads: Mapping[str, str] = field(default_factory=dict)
    links: tuple[str, ...] = ()


class _Entry(NamedTuple):
    """A key of a section with its value; `above` are comments on lines of their own."""

    key: str
    value: Any
    comment: str = ""
    above: tuple[str, ...] = ()


class _Link(NamedTuple):
    """One line of `links:`: two ends or selections of them, the cable, a comment."""

    a: str
    b: str
    cable: Any
    comment: str = ""


def to_yaml(document: Mapping[str, Any], comments: Comments | None = None) -> str:
    """Return a document as the text of a topology file in topo's own layout.

    Parameters
    ----------
    document
        As `to_document` gives it: every range expanded, one device a key, one link an item.
    comments
        What stands beside the entries.

    Examples
    --------
    >>> devices = {"gpu0": "l40s", "gpu1": "l40s", "cpu0": "epyc"}
    >>> links = [{f"gpu{at} -- cpu0": "pcie 4 x16"} for at in range(2)]
    >>> print(to_yaml({"topo": 1, "name": "box", "devices": devices, "links": links}))
    topo: 1
    name: box
    <BLANKLINE>
    devices:
      gpu[0-1]: l40s
      cpu0:     epyc
    <BLANKLINE>
    links:
      - gpu -- cpu0: pcie 4 x16
    <BLANKLINE>
    """
    comments = comments or Comments()
    lines = [f"# {line}" for line in comments.head]
    for section in sorted(document, key=SECTION_ORDER.index):
        value = document[section]
        if isinstance(value, str | int):
            lines.append(f"{section}: {_scalar(str(value))}")
            continue
        lines += ["", f"{section}:"]
        if section == "devices":
            lines += _entry_lines(list(_device_entries(value, comments)))
        elif section == "links":
            lines += _link_lines(value, document["devices"], comments.links)
        elif isinstance(value, list):  # of texts, or of one key with its value
            for item in value:
                text = _flow(item)
                lines.append(f"  - {text[1:-1] if isinstance(item, dict) else text}")
        else:
            behind = comments.workloads if section == "workloads" else {}
            entries = [_Entry(name, item, behind.get(name, "")) for name, item in value.items()]
            lines += _entry_lines(entries, _PART_WIDTH if section == "parts" else _WIDTH)
    return "\n".join(lines) + "\n"


def _entry_lines(entries: Sequence[_Entry], most: int = _WIDTH) -> Iterator[str]:
    """Yield the lines of a section, the values of its one-line entries in one column."""
    short = {
        entry.key
        for entry in entries
        if not isinstance(entry.value, dict) or len(f"  {entry.key}: {_flow(entry.value)}") <= most
    }
    widths = [len(key) + 1 for key in short if len(key) < WIDEST_KEY]
    width = max(widths, default=0)
    for entry in entries:
        yield from (f"  # {line}" for line in entry.above)
        name = f"{entry.key}:"
        if entry.key in short:
            yield _commented(f"  {name:<{width}} {_flow(entry.value)}", entry.comment)
            continue
        yield _commented(f"  {name}", entry.comment)
        for key, value in entry.value.items():
            lead = f"    {key}: "
            if not isinstance(value, list):
                yield lead + _flow(value)
                continue
            indent, line = " " * (len(lead) + 1), f"{lead}["
            for at, item in enumerate(value):  # a long list goes over several lines
                text = _flow(item) + ("]" if at == len(value) - 1 else ", ")
                if len(line) + len(text) > _WIDTH and line.strip():
                    yield line.rstrip()
                    line = indent
                line += text
            yield line


def _flow(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return _scalar(str(value))


def _scalar(text: str) -> str:
    """Return text as YAML takes it for text anywhere, in quotes where it needs them."""
    if _ADDRESS.fullmatch(text) or (_PLAIN_TEXT.fullmatch(text) and not text.endswith(" ")):
        return text
    return dumps(text, ensure_ascii=not text.isprintable())


def _commented(line: str, comment: str) -> str:
    return f"{line}  # {comment}" if comment else line


# --- devices in ranges ----------------------------------------------------------------------------


def stem_of(name: str) -> str:
    """Return a name without its number, which inside a used machine is that machine's.

    Examples
    --------
    >>> stem_of("gpu12"), stem_of("node3.slot1")
    ('gpu', 'node.slot1')
    """
    before, _, inside = _numbered(name)
    return before + inside


def _numbered(name: str) -> tuple[str, str, str]:
    """Split a name round its number: ``node3.slot1`` at 3, ``gpu12`` at 12."""
    host, dot, inside = name.partition(".")
    stem = host.rstrip("0123456789")
    return stem, host.removeprefix(stem), dot + inside


def _number_after(digits: str) -> str:
    """Return the number after one, with as many zeros in front: 10 after ``09``."""
    return str(int(digits) + 1).zfill(len(digits))


def selection(names: Sequence[str], all_names: Mapping[str, list[str]]) -> str:
    """Write names as a topology file selects them: ``gpu``, ``gpu[0-3]``, ``gpu[0,2]``.

    Parameters
    ----------
    names
        Names of one stem, in order.
    all_names
        All names of the file by stem, in order.
    """
    if len(names) == 1:
        return names[0]
    before, _, inside = _numbered(names[0])
    if list(names) == [f"{name}{inside}" for name in all_names.get(before, ())]:
        return before + inside
    numbers = [_numbered(name)[1] for name in names]
    text = number_ranges(map(int, numbers))
    if any(digits.startswith("0") and digits != "0" for digits in numbers):
        text = ",".join(numbers)  # with their zeros
    return f"{before}[{text}]{inside}"


def _device_entries(devices: Mapping[str, Any], comments: Comments) -> Iterator[_Entry]:
    """Yield one entry for each run of devices that it can define."""
    runs: list[dict[str, Plain]] = []
    for name, value in devices.items():
        entries = value if isinstance(value, dict) else {"part": value}
        if runs and _continues(runs[-1], name, entries):
            runs[-1][name] = entries
        else:
            runs.append({name: entries})
    for run in runs:
        names = list(run)
        key, stem = names[0], stem_of(names[0])
        shared = run[key]
        if len(names) > 1:  # one value for all where they agree, else a list with one for each
            key = f"{stem}[{key.removeprefix(stem)}-{names[-1].removeprefix(stem)}]"
            shared = {}
            for name, first in run[names[0]].items():
                column = [entries[name] for entries in run.values()]
                agree = not isinstance(first, list) and all(value == first for value in column)
                shared[name] = first if agree else column
        texts = list(dict.fromkeys(text for name in names if (text := comments.devices.get(name))))
        comment = texts[0] if len(texts) == 1 else f"{texts[0]}; others differ" if texts else ""
        about: dict[str, list[str]] = {}
        for name in names:
            for text in comments.above.get(name, ()):
                about.setdefault(text, []).append(name)
        above = tuple(f"{selection(among, {})}: {text}" for text, among in about.items())
        yield _Entry(key, shared["part"] if [*shared] == ["part"] else shared, comment, above)


def _continues(run: dict[str, Plain], name: str, entries: Plain) -> bool:
    """Whether a device has the number after the last of a run, and the same keys and part."""
    last, last_entries = next(reversed(run.items()))
    _, last_digits, _ = _numbered(last)
    return (
        stem_of(last) == stem_of(name)
        and bool(last_digits)
        and _numbered(name)[1] == _number_after(last_digits)
        and list(last_entries) == list(entries)
        and all(last_entries.get(key) == entries.get(key) for key in ("part", "use"))
        and not any(
            isinstance(value, dict) and value != last_entries[key] for key, value in entries.items()
        )
    )


# --- links in lines -------------------------------------------------------------------------------


def _link_lines(
    links: list[Plain], devices: Mapping[str, Any], comments: tuple[str, ...]
) -> Iterator[str]:
    """Yield the lines of `links:`; a comment that the line before has goes without saying."""
    all_names: dict[str, list[str]] = {}
    for name in devices:
        all_names.setdefault(stem_of(name), []).append(name)
    groups: dict[tuple[object, ...], list[_Link]] = {}
    for at, item in enumerate(links):
        ((ends, cable),) = item.items()
        a, _, b = ends.partition(" -- ")
        stems = ((stem_of(end), bool(_numbered(end)[1])) for end in (a, b))
        key = (*stems, _flow(cable))
        groups.setdefault(key, []).append(_Link(a, b, cable, comments[at] if comments else ""))
    comment_before = ""
    for group in groups.values():
        for a, b, cable, comment in _lines_of(group, all_names):
            new_comment = "" if comment == comment_before else comment
            text = cable if isinstance(cable, str) else _flow(cable)
            yield _commented(f"  - {a} -- {b}: {text}", new_comment)
            comment_before = comment


def _lines_of(group: list[_Link], all_names: Mapping[str, list[str]]) -> Iterator[_Link]:
    """Yield the lines that make exactly these links, as few as their keys may be long."""
    line = _one_line(group, all_names)
    lines = [] if line is None else [line]
    by_parent = sorted(group, key=lambda link: (by_number(link.b), by_number(link.a)))
    if line is None:  # one for each device at the far end
        for parent, children in groupby(by_parent, key=lambda link: link.b):
            run = list(children)
            names = selection([link.a for link in run], all_names)
            lines.append(_Link(names, parent, group[0].cable, _said(run)))
    for written in lines:
        if len(written.a) + len(written.b) <= _LONGEST_KEY:
            yield written
            continue
        links = by_parent if line else [link for link in by_parent if link.b == written.b]
        half = len(links) // 2
        yield from _lines_of(links[:half], all_names)
        yield from _lines_of(links[half:], all_names)


def _one_line(group: list[_Link], all_names: Mapping[str, list[str]]) -> _Link | None:
    """Return the one line that makes exactly these links, `None` when there is none."""
    children = sorted({link.a for link in group}, key=by_number)
    parents = sorted({link.b for link in group}, key=by_number)
    cable, comment = group[0].cable, _said(group)
    if stem_of(children[0]) == stem_of(parents[0]):
        mesh = sorted({*children, *parents}, key=by_number)
        joined = {frozenset((link.a, link.b)) for link in group}
        if len(mesh) > 2 and len(joined) == len(group) == math.comb(len(mesh), 2):  # noqa: PLR2004
            names = selection(mesh, all_names)
            return _Link(names, f"{names} all to all", cable, comment)
        if len(group) == 1:
            return group[0]
        if set(children) & set(parents):
            return None
    if len(parents) == 1 and len(children) == len(group):
        return _Link(selection(children, all_names), parents[0], cable, comment)
    if len(children) == 1 and len(parents) == len(group):
        return _Link(children[0], selection(parents, all_names), cable, comment)
    mode = _mode(group, children, parents)
    if mode is None:
        return None
    ends = selection(children, all_names), f"{selection(parents, all_names)}{mode}"
    return _Link(*ends, cable, comment)


def _mode(group: list[_Link], children: list[str], parents: list[str]) -> str | None:
    """Return the words by which two selections make exactly these links, `None` without any."""
    pairs = {(link.a, link.b) for link in group}
    count = len(children) * len(parents)
    if min(len(children), len(parents)) > 2 and len(pairs) == len(group) == count <= MOST:  # noqa: PLR2004
        return " all to all"  # of two, lines of their own read better
    if len(children) != len(group) or len(group) % len(parents):
        return None
    size = len(group) // len(parents)
    in_blocks = [name for name in parents for _ in range(size)]
    if [link.b for link in sorted(group, key=lambda link: by_number(link.a))] != in_blocks:
        return None
    return " in blocks" if size > 1 else ""


def by_number(name: str) -> tuple[str, int, str]:
    """Return a key that sorts names of a stem by their numbers: ``gpu2`` before ``gpu10``."""
    return stem_of(name), int(_numbered(name)[1] or 0), name


def _said(links: Iterable[_Link]) -> str:
    """Return the comment of links in one line: the first, and whether there are others."""
    texts = list(dict.fromkeys(link.comment for link in links if link.comment))
    return texts[0] if len(texts) == 1 else f"{texts[0]} and others" if texts else ""
