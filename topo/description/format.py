"""A topology file in topo's own layout: the same words and comments, laid out one way.

The text is changed in small steps, each a function from text to text, and each step is taken only
if the file still says the same: the document read from it is equal but for places, spaces before
units and the order of its sections, and no comment is lost. So the worst that can happen to an
odd file is that it stays as it is. The steps work on lines and on tokens, so that comments, quotes
and whatever else stands in a file stay exactly as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

from topo.description.keys import TOP
from topo.document.nodes import Mapping, Node, Scalar
from topo.document.parse import parse
from topo.document.text import read_text
from topo.document.tokens import Token, TokenizedText, tokenize
from topo.errors import DocumentError

# The sections of a file; `x-` stands for all that are the writer's own.
SECTION_ORDER: Final = (
    *("topo", "name", "title", "group", "x-", "parts", "media", "data-paths", "needs"),
    *("settings", "devices", "fabrics", "links", "measured", "workloads", "expect", "sweep"),
)
_SHORT: Final = ("topo", "name", "title", "group")  # sections that need no empty line between them
WIDEST_KEY: Final = 24  # characters of a key, with its colon, that others are lined up with
_KEY: Final = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s#&*!|>%@`"'{}\[\],-][^#]*?):(?=\s|$)""")
_NUMBER_UNIT: Final = re.compile(
    r"(?<![\w.])(?<!\w-)((?:[0-9.]+-)?[0-9][0-9.]*)\s*"  # not the end of a name: `node-8h`
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
    aired = [line for before, line in pairwise(["", *lines]) if line or before]
    return "\n".join(aired).strip("\n") + "\n"


# --- sections -------------------------------------------------------------------------------------


class _Section(NamedTuple):
    """One top-level key with its lines, and the comments above it."""

    key: str
    lines: list[str]


def order_sections(text: str) -> str:
    """Put the sections in their order, each with the comments above it."""
    head, sections = _sections(text)
    if not sections:
        return text

    def rank(section: _Section) -> int:
        if section.key.startswith("x-"):
            return SECTION_ORDER.index("x-")
        return SECTION_ORDER.index(section.key) if section.key in TOP else len(SECTION_ORDER)

    lines = [line for section in sorted(sections, key=rank) for line in section.lines]
    return "\n".join([*head, *lines]) + "\n"


def set_blank_lines(text: str) -> str:
    """Put one empty line between sections, none among the short ones at the top."""
    head, sections = _sections(text)
    if not sections:
        return text
    lines = _trimmed(head)
    for number, section in enumerate(sections):
        before = sections[number - 1].key if number else ""
        close = section.key in _SHORT and before in ("", *_SHORT)
        commented = section.lines[0].startswith("#")
        if (number or lines) and (not close or (number and commented)):
            lines.append("")
        section_lines = _trimmed(section.lines)
        key = next(at for at, line in enumerate(section_lines) if line and line[0] != "#")
        if section_lines[key].endswith(":"):
            while key + 1 < len(section_lines) and not section_lines[key + 1]:
                del section_lines[key + 1]
        lines += section_lines
    return "\n".join(lines) + "\n"


def _trimmed(lines: list[str]) -> list[str]:
    """Return lines without empty ones at both ends."""
    text = "\n".join(lines).strip("\n")
    return text.split("\n") if text else []


def _sections(text: str) -> tuple[list[str], list[_Section]]:
    """Cut a text at its top-level keys; the head is what stands above the first of them."""
    lines = text.rstrip("\n").split("\n")
    tokenized = tokenize(text)
    keys: dict[int, str] = {}
    for row, token in _first_tokens(tokenized).items():
        # At the margin, and not inside brackets, quotes or a block.
        free = token.depth == 0 and token.kind in ("plain", "quoted")
        free = free and tokenized.place(token.start)[1] == 1 and row < len(lines)
        if free and (match := _KEY.match(lines[row])):
            keys[row] = match[0][:-1].strip("\"'")
    if not keys:
        return lines, []
    rows = list(keys)
    tops = [rows[0], *(_top(lines, before, row) for before, row in pairwise(rows))]
    ends = [*tops[1:], len(lines)]
    sections = [
        _Section(key, lines[top:end])
        for key, top, end in zip(keys.values(), tops, ends, strict=True)
    ]
    return lines[: tops[0]], sections


def _top(lines: list[str], before: int, row: int) -> int:
    """Return where the comments above a key begin: those that follow an empty line, or touch it."""
    top = row
    while top - 1 > before and (lines[top - 1].startswith("#") or not lines[top - 1]):
        top -= 1
    if top == row or not lines[top]:
        return top
    # A comment right below the section above, then an empty line: it belongs to that section.
    blank = next((at for at in range(top, row) if not lines[at]), row)
    return top if blank == row else blank


def _first_tokens(tokenized: TokenizedText) -> dict[int, Token]:
    """Return the first token of each row that one begins in, by the row's index."""
    tokens: dict[int, Token] = {}
    last = 0
    for token in tokenized.tokens:
        line = tokenized.place(token.start)[0]
        if line > last:
            tokens[line - 1] = token
        last = max(last, tokenized.place(max(token.start, token.end - 1))[0])
    return tokens


# --- indents --------------------------------------------------------------------------------------


class _Level(NamedTuple):
    """The old and the new column of the keys, or of the dashes, at one depth."""

    old: int
    new: int
    dash: bool = False


def set_indents(text: str) -> str:
    """Indent by two spaces a level; what goes on over several lines moves as a whole."""
    lines = text.rstrip("\n").split("\n")
    tokens = _first_tokens(tokenize(text))
    levels: list[_Level] = []  # those around, the innermost last
    shift = 0
    for row, line in enumerate(lines):
        token = tokens.get(row)
        if token is not None and token.kind == "comment":
            continue
        if token is None or token.depth or token.kind == "close" or not _begins_entry(line):
            if line.strip():
                lines[row] = " " * shift + line[min(max(-shift, 0), _indent(line)) :]
            continue
        old, bare = _indent(line), line.lstrip()
        new = _new_column(levels, old, dash=bare.startswith("- "))
        shift = new - old
        if bare.startswith("- "):  # a dash has one space behind it
            inner = bare[1:].lstrip()
            if _begins_entry(inner):  # a mapping or list begins behind the dash
                levels.append(_Level(old + len(bare) - len(inner), new + 2))
            bare = f"- {inner}"
        lines[row] = " " * new + bare
    _place_comments(lines, text.rstrip("\n").split("\n"), tokens)
    return "\n".join(lines) + "\n"


def _begins_entry(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("- ") or bare == "-" or _KEY.match(bare) is not None


def _new_column(levels: list[_Level], old: int, *, dash: bool) -> int:
    """Return the new column of an entry at an old one, and enter its level."""
    while levels and levels[-1].old > old:
        levels.pop()
    if levels and levels[-1].old == old and levels[-1].dash and not dash:
        levels.pop()  # a list at its key's own column ends
        return _new_column(levels, old, dash=dash)
    if levels and levels[-1].old == old and levels[-1].dash == dash:
        return levels[-1].new
    new = levels[-1].new + 2 if levels else 0  # also for a list at its key's own column
    levels.append(_Level(old, new, dash))
    return new


def _place_comments(lines: list[str], before: list[str], tokens: dict[int, Token]) -> None:
    """Move comments on lines of their own with the entry that they were in line with."""
    beside: dict[int, int] = {}  # the last entry at each old column
    waiting: list[int] = []
    last = len(lines)
    for row in (*tokens, last):
        if row != last and tokens[row].kind == "comment":
            waiting.append(row)
            continue
        if row != last:
            beside[_indent(before[row])] = row
        for comment in waiting:
            entry = beside.get(_indent(before[comment]))
            if entry is not None:
                lines[comment] = " " * _indent(lines[entry]) + before[comment].lstrip()
        waiting.clear()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- units ----------------------------------------------------------------------------------------


def space_units(text: str) -> str:
    """Put one space between numbers and their units, in values without quotes."""
    tokenized = tokenize(text)
    pieces, end = [], 0
    key = ""
    for token, follower in zip(tokenized.tokens, [*tokenized.tokens[1:], None], strict=True):
        if follower is not None and follower.kind == "colon":
            key = tokenized.of(token).strip("\"'")
        elif token.kind == "plain" and key not in _TEXTS and not key.startswith("x-"):
            pieces += [text[end : token.start], spaced(tokenized.of(token))]
            end = token.end
    return "".join([*pieces, text[end:]])


# --- columns --------------------------------------------------------------------------------------


def align_values(text: str) -> str:
    """Line up the values of a section's one-line entries, and keep comments where they stand."""
    lines, sections = _sections(text)
    rows = _one_line_entries(text)
    for section in sections:
        entries = {
            at: entry
            for at, line in enumerate(section.lines)
            if len(lines) + at in rows and (entry := _entry(line)) is not None
        }
        names = [len(name) for name, _, _ in entries.values() if len(name) <= WIDEST_KEY]
        width = max(names, default=0)
        for at, line in enumerate(section.lines):
            if at not in entries:
                lines.append(line)
                continue
            name, value, comment = entries[at]
            content = f"  {name:<{width}} {value}"
            column = len(line) - len(comment)
            lines.append(f"{content:<{column - 2}}  {comment}" if comment else content)
    return "\n".join(lines) + "\n"


def _one_line_entries(text: str) -> set[int]:
    """Return the rows that are a key of a section with its whole value behind it."""
    tokenized = tokenize(text)
    tokens = _first_tokens(tokenized)
    followers = [*list(tokens.values())[1:], None]
    return {
        row
        for (row, token), after in zip(tokens.items(), followers, strict=True)
        if token.depth == 0
        and tokenized.place(token.start)[1] == len("  ") + 1
        and not (after is not None and (after.depth or after.kind == "close"))
    }


def _entry(line: str) -> tuple[str, str, str] | None:
    """Return a line's key with its colon, its value and its comment; `None` without a value."""
    match = _KEY.match(line.lstrip())
    if match is None:
        return None
    behind = line.lstrip()[match.end() :]
    tokens = tokenize(behind).tokens
    comment = next((token.start for token in tokens if token.kind == "comment"), len(behind))
    value = behind[:comment].strip()
    return (match[0], value, behind[comment:]) if value else None


# --- all steps ------------------------------------------------------------------------------------

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
        before, meaning = plain, _meaning(plain)
        for step in _STEPS:
            changed = step(plain)
            if changed != plain and _meaning(changed) == meaning:
                plain = changed
        if plain == before:
            break
    return plain


def _meaning(text: str) -> tuple[Any, Counter[str]] | None:
    """Return what a text says whatever its layout: its document and its comments."""
    try:
        document = parse(text)
    except DocumentError:
        return None
    root = comparable(document.root)
    if isinstance(document.root, Mapping):
        root = sorted(root, key=lambda entry: entry[0])
    return root, comments_of(text)


def comparable(node: Node) -> Any:
    """Return a node without its places, as values that compare; units in their usual spelling."""
    if isinstance(node, Scalar):
        return (spaced(node.text), node.quoted)
    if isinstance(node, Mapping):
        return [(key.text, key.quoted, comparable(value)) for key, value in node]
    return tuple(comparable(item) for item in node.items)


def comments_of(text: str) -> Counter[str]:
    """Return the comments of a text, without the blanks behind them."""
    tokenized = tokenize(text)
    return Counter(
        tokenized.of(token).rstrip() for token in tokenized.tokens if token.kind == "comment"
    )
