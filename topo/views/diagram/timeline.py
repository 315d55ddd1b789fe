"""Timelines as a picture: a lane for each workload, its rate as height, what binds in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.errors import DrawError, Finding
from topo.units import format_duration, format_rate, format_size
from topo.views.diagram.canvas import Canvas
from topo.views.diagram.geometry import Rect
from topo.views.diagram.metrics import Line, wrapped
from topo.views.diagram.picture import Picture
from topo.views.diagram.spans import bars_of, notes_of, panel_title, round_up, ticks, used
from topo.views.diagram.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.study import Run, Simulation
    from topo.views.diagram.spans import Bar, Note
    from topo.views.diagram.themes import Theme


_WIDE = 960.0  # of the picture, in points: ten of them are 16 pixels of 1600
_MARGIN = 18.0
_LABEL, _SCALE, _AFTER = 138.0, 62.0, 66.0  # left of the bars, their scale, and right of them
_LANE, _GAP = 62.0, 14.0
_HEADER, _NUMBERS, _AXIS, _NOTE = 24.0, 24.0, 28.0, 17.0
_BETWEEN, _LEGEND, _TITLE = 26.0, 30.0, 34.0
_KINDS = ("nic", "gpu", "memory", "storage", "pcie-switch")  # whose colours the lanes take


def draw_timeline(found: Simulation, *, theme: str = "light") -> Picture:
    """Return a picture of one timeline.

    Parameters
    ----------
    found
        What `topo.simulate` found.
    theme
        ``light`` or ``dark``.

    Raises
    ------
    DrawError
        If there is no such theme.

    Examples
    --------
    >>> import topo
    >>> draw_timeline(topo.simulate(topo.load("gds-textbook"), via="legacy")).width
    960.0
    """
    return draw_timelines((found,), theme=theme)


def draw_timelines(found: Sequence[Simulation], *, theme: str = "light") -> Picture:
    """Return a picture of several timelines of the same machine, on the same scales.

    Parameters
    ----------
    found
        What `topo.together` found, one a data path.
    theme
        ``light`` or ``dark``.

    Raises
    ------
    DrawError
        If there is no such theme.
    """
    if theme not in THEMES:
        raise DrawError(
            Finding("unknown-theme", f"no theme {theme}", help=f"one of {', '.join(THEMES)}")
        )
    sheet = _Sheet(tuple(found), THEMES[theme])
    sheet.paint()
    return Picture(dot=sheet.canvas.text, width=_WIDE, height=sheet.height)


@dataclass(frozen=True, slots=True)
class _Panel:
    """One timeline with its notes broken into lines."""

    found: Simulation
    notes: tuple[Note, ...]
    lines: tuple[tuple[int, str, str], ...]  # number, when, what; 0 and "" continue

    @property
    def height(self) -> float:
        lanes = len(self.found.runs) * (_LANE + _GAP) - _GAP
        return _HEADER + _NUMBERS + lanes + _AXIS + _NOTE * len(self.lines)


def _panel(found: Simulation) -> _Panel:
    notes, more = notes_of(found)
    lines: list[tuple[int, str, str]] = []
    for note in notes:
        number, when = note.number, note.when
        for text in note.lines:
            for piece in wrapped(text, _WIDE - 2 * _MARGIN - _LABEL - 32, 10.0, lines=4):
                lines.append((number, when, piece))
                number, when = 0, ""
    if more:
        lines.append((0, "", f"and {more} shorter spans: topo simulate --json lists them"))
    return _Panel(found, notes, tuple(lines))


class _Sheet:
    """Paints panels one below the other; all share the scale of time and of rate."""

    def __init__(self, found: tuple[Simulation, ...], theme: Theme) -> None:
        self.panels = tuple(_panel(one) for one in found)
        title = f"{found[0].topology.name}: the workloads over time"
        (self.title,) = wrapped(title, _WIDE - 3 * _MARGIN, 17.5, lines=1)
        self.height = (
            _TITLE
            + _LEGEND
            + 2 * _MARGIN
            + sum(panel.height for panel in self.panels)
            + _BETWEEN * (len(self.panels) - 1)
        )
        self.theme = theme
        self.canvas = Canvas((_WIDE, self.height), theme, f"{found[0].topology.name} timeline")
        self.end = max((one.end for one in found), default=0.0) or 1.0
        self.most = round_up(used(found))
        self.left, self.right = _MARGIN + _LABEL + _SCALE, _WIDE - _MARGIN - _AFTER
        self._count = 0

    def paint(self) -> None:
        """Paint title, panels and legend from top to bottom."""
        page = Rect(0, 0, _WIDE, self.height)
        self.canvas.frame(page, fill=self.theme.paper, border=self.theme.paper)
        self._write((_MARGIN, _MARGIN + 8), Line(self.title, 16.0, bold=True))
        y = _MARGIN + _TITLE
        for panel in self.panels:
            self._panel(panel, y)
            y += panel.height + _BETWEEN
        self._legend(y - _BETWEEN + _LEGEND / 2 + 6)

    # --- a panel ----------------------------------------------------------------------------------

    def _panel(self, panel: _Panel, top: float) -> None:
        found = panel.found
        (title,) = wrapped(panel_title(found), _WIDE - 3 * _MARGIN, 14.0, lines=1)
        self._write((_MARGIN, top + 8), Line(title, 13.0, bold=True))
        first = top + _HEADER + _NUMBERS
        bottom = first + len(found.runs) * (_LANE + _GAP) - _GAP
        self._time(first, bottom)
        for number, run in enumerate(found.runs):
            self._lane(found, run, number, first + number * (_LANE + _GAP))
        self._numbers(panel, top + _HEADER + _NUMBERS / 2 - 3)
        self._notes(panel, bottom + _AXIS)

    def _time(self, first: float, bottom: float) -> None:
        """Paint the axis of time: fine lines over all lanes, and what second they are."""
        for second in ticks(self.end):
            x = self._x(second)
            self._rule(Rect(x - 0.3, first - 4, 0.6, bottom - first + 9), self.theme.frame)
            self._write((x, bottom + 14), Line(format_duration(second), tone="soft"), middle=True)
        self._rule(Rect(self.left, bottom, self.right - self.left, 1.0), self.theme.soft)

    def _lane(self, found: Simulation, run: Run, number: int, top: float) -> None:
        self._name(run, top)
        bottom = top + _LANE
        self._rule(Rect(self.left, bottom - 0.4, self.right - self.left, 0.8), self.theme.soft)
        for level, words in ((top, format_rate(self.most)), (bottom, "0")):
            self._rule(Rect(self.left - 5, level - 0.4, 5, 0.8), self.theme.soft)
            line = Line(words, tone="soft")
            self._write((self.left - 8 - line.width, level), line)
        bars = bars_of(found, run, self.end / (self.right - self.left))
        for bar in bars:
            self._bar(bar, number, bottom)
        for bar in bars:
            self._words(bar, bottom)
        self._ends(run, top)

    def _name(self, run: Run, top: float) -> None:
        workload = run.workload
        lines = [
            Line(text, 12.0, bold=True) for text in wrapped(workload.name, _LABEL, 13.0, lines=1)
        ]
        said = f"{workload.direction} {format_size(workload.size)} by {run.data_path}"
        lines += [Line(text, tone="soft") for text in wrapped(said, _LABEL, lines=2)]
        for place, line in enumerate(lines):
            self._write((_MARGIN, top + 14 + 15 * place), line)

    def _bar(self, bar: Bar, number: int, bottom: float) -> None:
        fill, border = self.theme.box(_KINDS[number % len(_KINDS)])
        high = max(bar.rate / self.most * _LANE, 1.0)
        x = self._x(bar.start)
        rect = Rect(x, bottom - high, max(self._x(bar.end) - x, 1.0), high)
        self._box(rect, fillcolor=fill, color=border, penwidth="1.4", style="filled")

    def _words(self, bar: Bar, bottom: float) -> None:
        """Write rate and reason into a bar, above a low one, or nowhere where they do not fit."""
        high = bar.rate / self.most * _LANE
        room = self._x(bar.end) - self._x(bar.start) - 8
        lines = (Line(format_rate(bar.rate), 11.0, bold=True), Line(bar.reason))
        shown = [line for line in lines if line.width <= room]
        if not shown or shown[0] is not lines[0]:
            return
        block = 14.0 * len(shown)
        inside = high >= block + 4
        top = bottom - high / 2 - block / 2 if inside else bottom - high - block - 2
        middle = (self._x(bar.start) + self._x(bar.end)) / 2
        if not inside:  # hide the axis' lines behind the text
            wide = max(line.width for line in shown)
            self._rule(Rect(middle - wide / 2, top, wide, block), self.theme.paper)
        for place, line in enumerate(shown):
            self._write((middle, top + 7 + 14 * place), line, middle=True)

    def _ends(self, run: Run, top: float) -> None:
        """Mark when a workload is done, and when it starts if that is later than the others."""
        x = self._x(run.finish)
        self._rule(Rect(x - 1.5, top - 3, 3.0, _LANE + 3), self.theme.ink)
        done = Line(format_duration(run.finish), 12.0, bold=True)
        self._rule(Rect(x + 5, top - 2, done.width, 16), self.theme.paper)
        self._write((x + 6, top + 6), done)
        if run.start > 0:
            start = self._x(run.start)
            self._rule(Rect(start - 0.7, top - 3, 1.4, _LANE + 3), self.theme.ink)
            line = Line(f"from {format_duration(run.start)}")
            if start - self.left > line.width + 8:
                self._write((start - 5 - line.width, top + 6), line)

    def _numbers(self, panel: _Panel, y: float) -> None:
        """Paint the number of each span above the lanes, where there is room for it."""
        for note in panel.notes:
            left, right = self._x(note.start), self._x(note.end)
            for x in (left, right):
                self._rule(Rect(x - 0.5, y - 8, 1.0, 16), self.theme.soft)
            if right - left >= 16:  # noqa: PLR2004  (a number's width)
                self._number((left + right) / 2, y, note.number)

    def _notes(self, panel: _Panel, top: float) -> None:
        for place, (number, when, text) in enumerate(panel.lines):
            y = top + _NOTE * place + _NOTE / 2
            if number:
                self._number(_MARGIN + 9, y, number)
                self._write((_MARGIN + 26, y), Line(when))
            self._write((_MARGIN + _LABEL + 24, y), Line(text))

    # --- the legend -------------------------------------------------------------------------------

    def _legend(self, y: float) -> None:
        fill, border = self.theme.box(_KINDS[0])
        x = _MARGIN
        self._box(Rect(x, y - 4, 15, 10), fillcolor=fill, color=border, style="filled")
        self._box(Rect(x + 15, y - 8, 15, 14), fillcolor=fill, color=border, style="filled")
        x = self._meaning(x + 36, y, f"height: rate, {format_rate(self.most)} fills a lane")
        self._rule(Rect(x, y - 8, 3, 16), self.theme.ink)
        x = self._meaning(x + 9, y, "done")
        self._number(x + 8, y, 1)
        self._meaning(x + 22, y, "a span: what binds in it stands below")

    def _meaning(self, x: float, y: float, text: str) -> float:
        line = Line(text, tone="soft")
        self._write((x, y), line)
        return x + line.width + 26

    # --- pieces -----------------------------------------------------------------------------------

    def _x(self, second: float) -> float:
        return self.left + second / self.end * (self.right - self.left)

    def _box(self, rect: Rect, **attributes: str) -> None:
        self._count += 1
        self.canvas.box(f"box {self._count}", rect, **attributes)

    def _rule(self, rect: Rect, colour: str) -> None:
        self._box(rect, fillcolor=colour, color=colour, style="filled", penwidth="0")

    def _number(self, x: float, y: float, number: int) -> None:
        line = Line(str(number), bold=True)
        wide = max(line.width + 7, 15.0)
        rect = Rect(x - wide / 2, y - 6.5, wide, 13)
        self._box(rect, fillcolor=self.theme.paper, color=self.theme.soft)
        self._write((x, y), line, middle=True)

    def _write(self, at: tuple[float, float], line: Line, *, middle: bool = False) -> None:
        self._count += 1
        self.canvas.words(f"words {self._count}", at, (line,), left=not middle)
