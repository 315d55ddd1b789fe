"""The steps of formatting, each from text to text; `topo.description.format` guards what they do.

They work on lines and on the sketch of the text, so that comments, quotes and whatever else
stands in a file stay exactly as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from topo.description.keys import TOP
from topo.document.nodes import Mapping, Scalar
from topo.document.parse import parse
from topo.document.text import read_text
from topo.document.tokens import tokenize
from topo.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from topo.document.nodes import Node
    from topo.document.tokens import Token, TokenizedText


_ORDER: Final = (
    *("topo", "name", "title", "x-", "parts", "media", "data-paths", "settings"),
    *("devices", "links", "measured", "workloads", "expect"),
)
_SHORT: Final = ("topo", "name", "title")  # sections that need no empty line between them
_WIDEST: Final = 24  # characters of a name that others are lined up with
_KEY: Final = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s#&*!|>%@`"'{}\[\],-][^#]*?):(?=\s|$)""")
_NUMBER_UNIT: Final = re.compile(
    r"(?<![\w.])([0-9][0-9.]*)\s*"
    r"((?:[kMGTP]i?)?B/s|[kMGT]?b(?:it)?/s|[kMGTP]i?B|[MG]T/s|%|[mun]?s|min|h)"
    r"(?![\w/%])"
)
# Keys of which the values are texts for people.
_TEXTS: Final = {"name", "title", "label", "source", "date", "role", "rdma", "pci", "slot", "code"}


def spaced(text: str) -> str:
    """Return a text with one space between each number and its unit.

    >>> spaced("400Gb/s"), spaced("load via direct <= 7s"), spaced("60-80%")
    ('400 Gb/s', 'load via direct <= 7 s', '60-80 %')
    """
    return _NUMBER_UNIT.sub(r"\1 \2", text)


def trim_lines(text: str) -> str:
    """Remove blanks at line ends, empty lines at both ends and all but one in a row."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    kept = [line for before, line in pairwise(["", *lines]) if line or before]
    return "\n".join(kept).strip("\n") + "\n"


# --- sections -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Section:
    """One top-level key with its lines, and the comments above it."""

    key: str
    lines: list[str] = field(default_factory=list)


def order_sections(text: str) -> str:
    """Put the sections in their order, each with the comments above it."""
    head, sections = _sections(text)
    if not sections:
        return text
    ordered = sorted(sections, key=lambda section: _rank(section.key))
    return "\n".join([*head, *(line for section in ordered for line in section.lines)]) + "\n"


def set_blank_lines(text: str) -> str:
    """Put one empty line between sections, none among the short ones at the top."""
    head, sections = _sections(text)
    if not sections:
        return text
    lines = _without_blanks(head, inside=False)
    for number, section in enumerate(sections):
        after = sections[number - 1].key if number else ""
        close = section.key in _SHORT and after in ("", *_SHORT)
        commented = section.lines[0].startswith("#")
        if (number or lines) and (not close or (number and commented)):
            lines.append("")
        lines += _without_blanks(section.lines)
    return "\n".join(lines) + "\n"


def _without_blanks(lines: list[str], *, inside: bool = True) -> list[str]:
    """Return lines without empty ones at both ends and, if need be, right below the key."""
    kept = "\n".join(lines).strip("\n").split("\n") if lines else []
    at = next((at for at, line in enumerate(kept) if line and not line.startswith("#")), -1)
    if inside and at >= 0 and kept[at].endswith(":"):
        while at + 1 < len(kept) and not kept[at + 1]:
            del kept[at + 1]
    return [] if kept == [""] else kept


def _rank(key: str) -> int:
    if key.startswith("x-"):
        return _ORDER.index("x-")
    return _ORDER.index(key) if key in TOP else len(_ORDER)


def _sections(text: str) -> tuple[list[str], list[_Section]]:
    """Cut a text at its top-level keys; the head is what stands above the first of them."""
    lines = text.rstrip("\n").split("\n")
    starts = [at for at in _free_lines(text) if at < len(lines) and _KEY.match(lines[at])]
    if not starts:
        return lines, []
    tops = [starts[0], *(_top(lines, before, at) for before, at in pairwise(starts))]
    ends = [*tops[1:], len(lines)]
    sections = [
        _Section(_key_at(lines[at]), lines[top:end])
        for at, top, end in zip(starts, tops, ends, strict=True)
    ]
    return lines[: tops[0]], sections


def _key_at(line: str) -> str:
    found = _KEY.match(line)
    return found[0][:-1].strip("\"'") if found else ""


def _top(lines: list[str], before: int, at: int) -> int:
    """Return where the comments above a key begin: those that follow an empty line, or touch it."""
    top = at
    while top - 1 > before and (lines[top - 1].startswith("#") or not lines[top - 1]):
        top -= 1
    if top == at or not lines[top]:
        return top
    # A comment right below the section above, then an empty line: it belongs to that section.
    blank = next((n for n in range(top, at) if not lines[n]), at)
    return top if blank == at else blank


def _free_lines(text: str) -> Iterator[int]:
    """Yield the lines that begin at the margin and are not inside brackets, quotes or a block."""
    drawn = tokenize(text)
    for token in _first_tokens(drawn):
        line, column = drawn.place(token.start)
        if column == 1 and token.depth == 0 and token.kind in ("plain", "quoted"):
            yield line - 1


def _first_tokens(drawn: TokenizedText) -> Iterator[Token]:
    """Yield the first token of each line that has one."""
    seen = 0
    for token in drawn.tokens:
        line = drawn.place(token.start)[0]
        if line > seen:
            yield token
        seen = max(seen, drawn.place(max(token.start, token.end - 1))[0])


# --- indents --------------------------------------------------------------------------------------


def set_indents(text: str) -> str:
    """Indent by two spaces a level; what goes on over several lines moves as a whole."""
    lines = text.rstrip("\n").split("\n")
    drawn = tokenize(text)
    firsts = {drawn.place(token.start)[0] - 1: token for token in _first_tokens(drawn)}
    levels: list[tuple[int, int]] = []  # old and new columns of the keys and dashes around
    shift = 0
    for at, line in enumerate(lines):
        token = firsts.get(at)
        if token is None or token.depth or token.kind in ("close", "comment"):
            if line.strip() and (token is None or token.kind != "comment"):
                lines[at] = _shifted(line, shift)
            continue
        if not _begins_entry(line):
            lines[at] = _shifted(line, shift)
            continue
        old = len(line) - len(line.lstrip())
        new = _level(levels, old, dash=line.lstrip().startswith("- "))
        lines[at] = _reindented(line, old, new, levels)
        shift = new - old
    _place_comments(lines, text.rstrip("\n").split("\n"), firsts)
    return "\n".join(lines) + "\n"


def _begins_entry(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("- ") or bare == "-" or _KEY.match(bare) is not None


def _level(levels: list[tuple[int, int]], old: int, *, dash: bool) -> int:
    """Return the new column of an entry at an old one, and enter its level."""
    while levels and (levels[-1][0] > old):
        levels.pop()
    same = levels and levels[-1][0] == old
    if same and dash and not _is_dash(levels[-1]):
        new = levels[-1][1] + 2  # a list at its key's own column
        levels.append((old, -new - 1))
        return new
    if same and not dash and _is_dash(levels[-1]):
        levels.pop()  # a list at its key's own column ends
        return _level(levels, old, dash=dash)
    if same:
        return _column(levels[-1])
    new = _column(levels[-1]) + 2 if levels else 0
    levels.append((old, -new - 1 if dash else new))
    return new


def _is_dash(level: tuple[int, int]) -> bool:
    return level[1] < 0


def _column(level: tuple[int, int]) -> int:
    return -level[1] - 1 if level[1] < 0 else level[1]


def _reindented(line: str, old: int, new: int, levels: list[tuple[int, int]]) -> str:
    """Return the line at its new column; a dash has one space behind it."""
    bare = line.lstrip()
    if not bare.startswith("- "):
        return " " * new + bare
    inner = bare[1:].lstrip()
    if _begins_entry(inner):  # a mapping or list begins behind the dash
        levels.append((old + len(bare) - len(inner), new + 2))
    return f"{' ' * new}- {inner}"


def _shifted(line: str, shift: int) -> str:
    if shift >= 0:
        return " " * shift + line if line.strip() else line
    blank = len(line) - len(line.lstrip())
    return line[min(-shift, blank) :]


def _place_comments(lines: list[str], before: list[str], firsts: dict[int, Token]) -> None:
    """Move comments on lines of their own with the entry that they were in line with."""
    beside: dict[int, int] = {}  # the last entry at each old column
    waiting: list[int] = []
    for at, token in firsts.items():
        if token.kind == "comment":
            waiting.append(at)
            continue
        column = _indent(before[at])
        _settle(waiting, {**beside, column: at}, lines, before)
        beside[column] = at
        waiting.clear()
    _settle(waiting, beside, lines, before)


def _settle(
    waiting: list[int], beside: dict[int, int], lines: list[str], before: list[str]
) -> None:
    for at in waiting:
        entry = beside.get(_indent(before[at]))
        if entry is not None:
            lines[at] = " " * _indent(lines[entry]) + before[at].lstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- units ----------------------------------------------------------------------------------------


def space_units(text: str) -> str:
    """Put one space between numbers and their units, in values without quotes."""
    drawn = tokenize(text)
    pieces, end = [], 0
    key = ""
    for at, token in enumerate(drawn.tokens):
        follower = drawn.tokens[at + 1] if at + 1 < len(drawn.tokens) else None
        if follower is not None and follower.kind == "colon":
            key = drawn.of(token).strip("\"'")
        elif token.kind == "plain" and key not in _TEXTS and not key.startswith("x-"):
            pieces += [text[end : token.start], spaced(drawn.of(token))]
            end = token.end
    return "".join([*pieces, text[end:]])


# --- columns --------------------------------------------------------------------------------------


def align_values(text: str) -> str:
    """Line up the values of a section's one-line entries, and keep comments where they stand."""
    head, sections = _sections(text)
    whole = {at for at, _ in _entries(text)}
    at = len(head)
    lines = list(head)
    for section in sections:
        inner = [n for n in range(at, at + len(section.lines)) if n in whole]
        lines += _aligned(section.lines, {n - at for n in inner})
        at += len(section.lines)
    return "\n".join(lines) + "\n"


def _entries(text: str) -> Iterator[tuple[int, Token]]:
    """Yield the lines that are a key of a section with its whole value behind it."""
    drawn = tokenize(text)
    firsts = list(_first_tokens(drawn))
    for token, after in zip(firsts, [*firsts[1:], None], strict=True):
        line, column = drawn.place(token.start)
        goes_on = after is not None and (after.depth or after.kind == "close")
        if column == 3 and token.depth == 0 and not goes_on:  # noqa: PLR2004  (two spaces)
            yield line - 1, token


def _aligned(lines: list[str], entries: set[int]) -> list[str]:
    split = {at: parts for at in entries if (parts := _split(lines[at])) is not None}
    names = [len(name) for name, _, _ in split.values() if len(name) <= _WIDEST]
    width = max(names, default=0)
    return [
        _joined(line, *split[at], width) if at in split else line for at, line in enumerate(lines)
    ]


def _split(line: str) -> tuple[str, str, str] | None:
    """Return a line's key with its colon, its value and its comment; `None` without a value."""
    found = _KEY.match(line.lstrip())
    if found is None:
        return None
    rest = line.lstrip()[found.end() :]
    drawn = tokenize(rest)
    comment = next((token.start for token in drawn.tokens if token.kind == "comment"), len(rest))
    value = rest[:comment].strip()
    return (found[0], value, rest[comment:]) if value else None


def _joined(line: str, name: str, value: str, comment: str, width: int) -> str:
    content = f"  {name:<{width}} {value}"
    if not comment:
        return content
    column = len(line) - len(comment)
    return f"{content:<{column - 2}}  {comment}"


# In this order: later steps rely on where earlier ones have put things.
_STEPS: Final[tuple[Callable[[str], str], ...]] = (
    trim_lines,
    order_sections,
    set_indents,
    set_blank_lines,
    space_units,
    align_values,
)
_LONGEST: Final = 1_000_000  # characters; a longer file was written by a program
_ROUNDS: Final = 4


def format_text(text: str, *, name: str = "<text>") -> str:
    r"""Return a topology's text in topo's own layout.

    ``\n`` line breaks, two spaces of indent, sections in one order with an empty line between
    them, a space before each unit, values of a section's one-line entries in one column. Every
    comment stays, with what it stands above or behind.

    Parameters
    ----------
    text
        The text; it need not describe a sound machine, but it has to be YAML.
    name
        What messages call it.

    Returns
    -------
    str
        The same file laid out anew; formatting that once more changes nothing.

    Raises
    ------
    DocumentError
        If the text is not YAML that topo reads.

    Examples
    --------
    >>> print(format_text("topo: 1\ndevices:\n    gpu0:  l40s  # left\n    target: {read: 90GB/s}"))
    topo: 1
    <BLANKLINE>
    devices:
      gpu0:   l40s      # left
      target: {read: 90 GB/s}
    <BLANKLINE>
    """
    plain = read_text(text, name)
    parse(plain, name=name)
    if len(plain) > _LONGEST:
        return plain
    for _ in range(_ROUNDS):
        formatted = _round(plain)
        if formatted == plain:
            break
        plain = formatted
    return plain


def _round(text: str) -> str:
    """Take each step that changes nothing but the layout."""
    said = _meaning(text)
    for step in _STEPS:
        changed = step(text)
        if changed != text and _meaning(changed) == said:
            text = changed
    return text


def _meaning(text: str) -> tuple[Any, Counter[str]] | None:
    """Return what a text says whatever its layout: its document and its comments."""
    try:
        document = parse(text)
    except DocumentError:
        return None
    drawn = tokenize(text)
    comments = Counter(
        drawn.of(token).rstrip() for token in drawn.tokens if token.kind == "comment"
    )
    root = _plain(document.root)
    if isinstance(document.root, Mapping):
        root = sorted(root, key=lambda entry: entry[0])
    return root, comments


def _plain(node: Node) -> Any:
    """Return a node without its places, as values that compare; units in their usual spelling."""
    if isinstance(node, Scalar):
        return (spaced(node.text), node.quoted)
    if isinstance(node, Mapping):
        return [(key.text, key.quoted, _plain(value)) for key, value in node]
    return tuple(_plain(item) for item in node.items)
