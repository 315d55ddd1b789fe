"""Findings as text.

::

    box.yaml:4:16: error[unknown-part]: no part `conectx-7`
      |
    4 |   nic0: {part: conectx-7, pci: aa:00.0}
      |                ^^^^^^^^^
      = help: did you mean `connectx-7`?

    1 error; nothing was analysed
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topo.phrases import counted, terminal_width, visible

if TYPE_CHECKING:
    from topo.errors import Finding, Place, Severity
    from topo.topology.topology import Topology


_WIDTH: Final = 100  # columns of source that are shown; a longer line is cut around the mark
_BEFORE: Final = 30  # columns in front of the mark that a cut line keeps
_CUT: Final = "..."
_TAB: Final = 4
_SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
# Unicode's categories of marks and invisible characters.
# Colours are those that rustc and ruff taught people to read.
_STYLES: Final[dict[str, str]] = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "place": "1",
    "gutter": "34",
    "help": "36",
}


def render_findings(
    findings: Iterable[Finding], *, color: bool = False, analysed: bool = True
) -> str:
    """Return findings as text, one after another with a count at the end.

    Parameters
    ----------
    findings
        In the order in which they are to be read.
    color
        Whether to colour with terminal escapes.
    analysed
        Whether there is a result beside the findings; otherwise the last line says that there is
        none.

    Returns
    -------
    str
        Lines with a final line break; empty when there is nothing to say.

    Examples
    --------
    >>> from topo.errors import Finding, Place
    >>> finding = Finding("tab", "a tab stands here", Place("box.yaml", 2, 3), help="write spaces")
    >>> print(render_findings([finding], analysed=False), end="")
    box.yaml:2:3: error[tab]: a tab stands here
      = help: write spaces
    <BLANKLINE>
    1 error; nothing was analysed
    """
    findings = tuple(findings)
    if not findings:
        return ""
    blocks = ["\n".join(_block(finding, color=color)) for finding in findings]
    # A one-line finding needs no air around it; one with its source does.
    text = blocks[0]
    for before, block in pairwise(blocks):
        text += ("\n\n" if "\n" in before or "\n" in block else "\n") + block
    severities = [finding.severity for finding in findings]
    counts = {severity: severities.count(severity) for severity in _SEVERITIES}
    words = ", ".join(counted(count, severity) for severity, count in counts.items() if count)
    ending = "; nothing was analysed" * bool(counts["error"] and not analysed)
    return f"{text}\n\n{words}{ending}\n"


def all_holds(topology: Topology, *, file: str = "") -> str:
    """Return the line about a file without mistakes, whose expectations all hold.

    `file` is its name, where there are several.
    """
    count = len(topology.description.expectations)
    expectations = f"{counted(count, 'expectation')} hold" + "s" * (count == 1)
    return f"{file or topology.name}: {expectations if count else 'nothing expected'}\n"


def _block(finding: Finding, *, color: bool) -> list[str]:
    """Return the lines of one finding."""

    def paint(style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color else text

    place = finding.place
    start = paint("place", f"{visible(str(place))}: ") if place else ""
    head = paint(finding.severity, f"{finding.severity}[{finding.code}]")
    lines = [f"{start}{head}: {_printable(finding.message)}"]
    margin = " " * (len(str(place.line)) if place and finding.source_line else 1)
    if place and finding.source_line:
        source, indent, mark = _marked(finding.source_line, place)
        bar = paint("gutter", f"{margin} |")
        number = paint("gutter", f"{place.line} |")
        lines += [bar, f"{number} {source}", f"{bar} {indent}{paint(finding.severity, mark)}"]
    equals = paint("gutter", f"{margin} =")
    if finding.help:
        lines.append(f"{equals} {paint('help', 'help')}: {_printable(finding.help)}")
    return lines + [f"{equals} note: {_printable(note)}" for note in finding.notes]


def _marked(line: str, place: Place) -> tuple[str, str, str]:
    """Return the source line as shown, and the indent and carets that go below it."""
    start = min(place.column - 1, len(line))
    end = max(place.end_column - 1, start + 1)
    first = 0 if start <= _WIDTH - _BEFORE else start - _BEFORE
    text, columns = ("", 0) if first == 0 else (_CUT, len(_CUT))
    indent, marks = columns, 0
    for position in range(first, len(line)):
        piece = _glyph(line[position], columns)
        width = terminal_width(piece)
        if columns + width > _WIDTH:
            text += _CUT
            break
        indent += width if position < start else 0
        marks += width if start <= position < end else 0
        text += piece
        columns += width
    return text.rstrip(), " " * indent, "^" * max(marks, 1)


def _glyph(char: str, column: int) -> str:
    """Return a character as a terminal shows it: tabs as spaces, the invisible as a box."""
    if char == "\t":
        return " " * (_TAB - column % _TAB)
    if unicodedata.category(char) in {"Cc", "Cs", "Co", "Cn"} or visible(char) != char:
        return "\ufffd"
    return char


def _printable(text: str) -> str:
    """Return one line of text with nothing in it that could move a terminal's cursor."""
    if text.isprintable():
        return text
    return visible(text.replace("\n", " "))
