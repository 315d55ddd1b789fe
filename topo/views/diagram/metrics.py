"""How wide a text is, so that boxes can be made to fit: nothing asks an engine for it.

The widths are those of Arial and its metric twins (Helvetica, Liberation Sans, Arimo), which every
engine has one of; what the table does not know is taken to be wide.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Literal

Tone = Literal["ink", "soft", "alarm"]

_LEADING = 1.22  # line height over font size
_BOLD = 1.08
_ALARM = 12.0  # what the ground of an alarm adds, above and below and at the sides
_WIDE, _OTHER = 1.0, 0.72
_WIDTHS = {
    **dict.fromkeys("ijl'", 0.222),
    **dict.fromkeys(" !/,.:;I[]\\ft·", 0.278),
    **dict.fromkeys("()-r`|{}", 0.334),
    **dict.fromkeys('*"^', 0.43),
    **dict.fromkeys("Jckvsxyz", 0.5),
    **dict.fromkeys("#$?_0123456789abdeghnopquL", 0.556),
    **dict.fromkeys("+<=>~FTZ", 0.611),
    **dict.fromkeys("&ABEKPSVXY", 0.667),
    **dict.fromkeys("CDHNRUw", 0.722),
    **dict.fromkeys("GOQ", 0.778),
    **dict.fromkeys("Mm", 0.833),
    **dict.fromkeys("%@W→←…", 1.0),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a label: text, size in points, weight, and what it is for the theme."""

    text: str
    size: float = 10.0
    bold: bool = False
    tone: Tone = "ink"

    @property
    def width(self) -> float:
        """Points that it takes."""
        return width(self.text, self.size, bold=self.bold) + (
            _ALARM if self.tone == "alarm" else 0.0
        )


@cache
def _em(character: str) -> float:
    known = _WIDTHS.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER


def width(text: str, size: float = 10.0, *, bold: bool = False) -> float:
    """Return the points that `text` takes, a little more rather than less.

    Examples
    --------
    >>> round(width("PCIe 5 x16"))
    51
    """
    return 1.03 * size * (_BOLD if bold else 1.0) * sum(_em(character) for character in text)


def height(lines: tuple[Line, ...]) -> float:
    """Return the points that the lines take, one below the other."""
    alarms = any(line.tone == "alarm" for line in lines)
    return sum(line.size * _LEADING for line in lines) + (_ALARM if alarms else 0.0)


def shortened(text: str, limit: int) -> str:
    """Return `text` with at most `limit` characters, the last an ellipsis where some went.

    Examples
    --------
    >>> shortened("ConnectX-7", 6)
    'Conne…'
    """
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def wrapped(text: str, points: float, size: float = 10.0, *, lines: int = 3) -> tuple[str, ...]:
    """Return `text` in at most `lines` lines of at most `points` each, broken at spaces.

    What does not fit in the last line ends with an ellipsis.
    """
    found: list[str] = []
    words = text.split()
    while words and len(found) < lines:
        line = words.pop(0)
        while words and width(f"{line} {words[0]}", size) <= points:
            line = f"{line} {words.pop(0)}"
        found.append(line)
    if words:
        found[-1] += " …"
    return tuple(_cut(line, points, size) for line in found)


def _cut(line: str, points: float, size: float) -> str:
    while len(line) > 1 and width(line, size) > points:
        line = line.removesuffix("…")[:-1].rstrip() + "…"
        if line == "…":
            break
    return line


def escaped(text: str) -> str:
    r"""Return `text` for a place between the tags of an HTML-like label.

    Backslashes are doubled, since Graphviz reads ``\N`` in a label as the node's name. Control
    characters, which XML forbids, and lone surrogates, which no file can hold, become a
    replacement character.

    Examples
    --------
    >>> escaped('"<b>&')
    '&quot;&lt;b&gt;&amp;'
    """
    plain = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one) in ("Cc", "Cs", "Cn") else one
        for one in text
    )
    plain = plain.replace("\\", "\\\\")
    for raw, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        plain = plain.replace(raw, entity)
    return plain
