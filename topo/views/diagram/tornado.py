"""How sure answers are, as a picture: for each a tornado of its bands, and its range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.phrases import listed
from topo.study.doubt import LEVEL
from topo.units import format_ratio
from topo.views.bands import (
    band_ends,
    band_name,
    equal_answers,
    idle_words,
    names_of_answers,
    rates_between,
    settles_words,
)
from topo.views.diagram.chart import Chart, ticks
from topo.views.diagram.geometry import Line, Rect, wrapped
from topo.views.diagram.picture import Picture, Theme, theme_named
from topo.views.sentences import rate_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.study.doubt import Doubt, PathDoubt, Swing

_WIDE: Final = 960.0  # of the picture, in points
_MARGIN: Final = 18.0
_LABEL, _AFTER = 250.0, 84.0  # left of the bars, and right of them
_ROW, _BAR = 30.0, 16.0
_TITLE, _HEADER, _RANGE, _AXIS = 34.0, 26.0, 34.0, 24.0
_BETWEEN, _LEGEND = 22.0, 26.0
_EDGE: Final = 0.08  # of the scale, free at either end
_WORSE, _BETTER = "storage", "gpu"  # whose colours the two sides take
_TICKS: Final = 6


def draw_tornado(doubt: Doubt, *, theme: str = "light") -> Picture:
    """Return a picture of how sure answers are: what each band does to the rate, and the range.

    Parameters
    ----------
    doubt
        What `topo.doubt` found.
    theme
        ``light`` or ``dark``.

    Raises
    ------
    DrawError
        If there is no such theme.

    Examples
    --------
    >>> import topo
    >>> draw_tornado(topo.doubt(topo.load("dgx-a100"), workload="load")).width
    960.0
    """
    sheet = _Sheet(doubt, theme_named(theme))
    sheet.paint()
    canvas = sheet.canvas
    return Picture(canvas.text, _WIDE, sheet.height, canvas.shapes)


def _without_doubt(group: Sequence[PathDoubt]) -> str:
    """Return why no guess makes a difference."""
    answer, idle = group[0], idle_words(group)
    if answer.rate_range is None:
        reasons = (each.text for each in answer.answer.reasons if each.effect == "refused")
        return f"Whatever is uncertain: {listed(reasons, most=4)}"
    return f"Nothing uncertain changes it: {idle}" if idle else "Nothing uncertain is on its way."


class _Scale:
    """Rates of one answer along the width of the picture."""

    def __init__(self, answer: PathDoubt) -> None:
        assert answer.extremes is not None
        assert answer.rate_range is not None
        low, high = answer.extremes
        room = (high - low or high) * _EDGE
        self.low, self.high = max(low - room, 0.0), high + room
        self.left, self.right = _MARGIN + _LABEL, _WIDE - _MARGIN - _AFTER

    def x(self, rate: float) -> float:
        """Return where a rate lies."""
        share = (rate - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)


class _Sheet(Chart):
    """Paints one panel for answers that say the same, below each other, each on its own scale."""

    def __init__(self, doubt: Doubt, theme: Theme) -> None:
        self.doubt, self.groups = doubt, equal_answers(doubt.answers, advised=False)
        heights = [self._height(group[0]) + _BETWEEN for group in self.groups]
        self.height = 2 * _MARGIN + _TITLE + sum(heights) + _LEGEND
        super().__init__((_WIDE, self.height), theme, f"{doubt.topology.name} doubt")

    def _height(self, answer: PathDoubt) -> float:
        if answer.rate_range is None or answer.certain:
            return _HEADER + _ROW
        return _HEADER + _RANGE + _ROW * len(answer.swings) + _AXIS

    def paint(self) -> None:
        """Paint title, panels and legend from top to bottom."""
        self.paper()
        title = f"{self.doubt.topology.name}: how sure the answers are ({self.doubt.basis})"
        (line,) = wrapped(title, _WIDE - 3 * _MARGIN, 17.5, lines=1)
        self.write((_MARGIN, _MARGIN + 8), Line(line, 16.0, bold=True))
        y = _MARGIN + _TITLE
        for group in self.groups:
            self._panel(group, y)
            y += self._height(group[0]) + _BETWEEN
        self._legend(y)

    def _panel(self, group: Sequence[PathDoubt], top: float) -> None:
        answer = group[0]
        words = rate_words(answer.answer)
        title = f"{names_of_answers(group)}: {f'{words} as figures are' if words else 'refused'}"
        (title,) = wrapped(title, _WIDE - 3 * _MARGIN, 13.0, lines=1)
        self.write((_MARGIN, top + 8), Line(title, 13.0, bold=True))
        if answer.rate_range is None or answer.certain:
            (words,) = wrapped(_without_doubt(group), _WIDE - 3 * _MARGIN, 11.0, lines=1)
            self.write((_MARGIN, top + _HEADER + 8), Line(words, tone="soft"))
            return
        scale = _Scale(answer)
        first = top + _HEADER + _RANGE
        bottom = first + _ROW * len(answer.swings)
        for rate in ticks(scale.high, _TICKS, start=scale.low):
            x = scale.x(rate)
            self.rule(
                Rect(x - 0.3, top + _HEADER, 0.6, bottom - top - _HEADER + 5), self.theme.frame
            )
            self.write((x, bottom + 13), Line(f"{rate / 1e9:g}", tone="soft"), middle=True)
        self.write((scale.right + 10, bottom + 13), Line("GB/s", tone="soft"))
        self._range(answer, scale, top + _HEADER)
        for place, swing in enumerate(answer.swings):
            self._swing(swing, answer, scale, first + place * _ROW)
        assert answer.answer.rate is not None
        x = scale.x(answer.answer.rate)
        self.rule(Rect(x - 1.0, top + _HEADER - 2, 2.0, bottom - top - _HEADER + 4), self.theme.ink)

    def _range(self, answer: PathDoubt, scale: _Scale, top: float) -> None:
        """Paint the range that holds most draws, and how far all of them go."""
        assert answer.rate_range is not None
        assert answer.extremes is not None
        middle = top + _BAR / 2 + 2
        words = f"{format_ratio(LEVEL)} of all draws"
        self.write((_MARGIN, middle - 6), Line(words, 11.0, bold=True))
        between = rates_between(answer.rate_range)
        self.write((_MARGIN, middle + 8), Line("at most " * answer.at_most + between, tone="soft"))
        left, right = map(scale.x, answer.extremes)
        self.rule(Rect(left, middle - 0.6, max(right - left, 1.0), 1.2), self.theme.soft)
        left, right = map(scale.x, answer.rate_range)
        fill, border = self.theme.box("nic")
        rect = Rect(left, middle - _BAR / 2, max(right - left, 2.0), _BAR)
        self.box(rect, fillcolor=fill, color=border, penwidth="1.4", style="filled")

    def _swing(self, swing: Swing, answer: PathDoubt, scale: _Scale, top: float) -> None:
        """Paint what one band does at its ends, and how much measuring it settles."""
        nominal = answer.answer.rate
        assert nominal is not None
        middle = top + _ROW / 2
        (name,) = wrapped(band_name(swing.band), _LABEL - 16, 11.0, lines=1)
        self.write((_MARGIN, middle - 6), Line(name, 11.0))
        self.write((_MARGIN, middle + 8), Line(band_ends(swing.band), tone="soft"))
        for rate, kind in ((swing.low_rate, _WORSE), (swing.high_rate, _BETTER)):
            left, right = sorted((scale.x(rate), scale.x(nominal)))
            if right - left < 0.1:  # noqa: PLR2004  (a tenth of a point is not seen)
                continue
            fill, border = self.theme.box(kind)
            rect = Rect(left, middle - _BAR / 2, right - left, _BAR)
            self.box(rect, fillcolor=fill, color=border, penwidth="1.4", style="filled")
            line = Line(f"{rate / 1e9:.4g}", tone="soft")
            x = left - 5 - line.width if rate < nominal else right + 5
            ground = Rect(x - 1, middle - 7, line.width + 2, 14)
            self.rule(ground, self.theme.paper)  # hides the scale's lines behind the number
            self.write((x, middle), line)
        words = f"settles {settles_words(swing)}"
        self.write((scale.right + 10, middle), Line(words, tone="soft"))

    def _legend(self, y: float) -> None:
        x = _MARGIN
        for kind, words in (
            (_WORSE, "with the least of a band, all else as it is"),
            (_BETTER, "with the most of it"),
            ("nic", f"{format_ratio(LEVEL)} of all draws; the line: all that was tried"),
        ):
            fill, border = self.theme.box(kind)
            self.box(Rect(x, y - 5, 20, 12), fillcolor=fill, color=border, style="filled")
            line = Line(words, tone="soft")
            self.write((x + 27, y), line)
            x += 27 + line.width + 24
        self.rule(Rect(x, y - 7, 2, 15), self.theme.ink)
        self.write((x + 9, y), Line("as figures are", tone="soft"))
