"""Timelines as a picture: a lane for each workload, its rate as height, what binds in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from topo.phrases import shortened
from topo.records import dataclass
from topo.units import format_duration, format_rate, format_size
from topo.views.diagram.chart import Chart, round_up, ticks
from topo.views.diagram.geometry import Line, Rect, wrapped
from topo.views.diagram.picture import Picture, Theme, theme_named
from topo.views.resources import classes_of
from topo.views.sentences import done_words

if TYPE_CHECKING:
    from topo.study.timeline import Moment, Run, Simulation
    from topo.topology.resources import Resource


_WIDE = 960.0  # of the picture, in points
_MARGIN = 18.0
_LABEL, _SCALE, _AFTER = 138.0, 62.0, 66.0  # left of the bars, their scale, and right of them
_LANE, _GAP = 62.0, 14.0
_HEADER, _NUMBERS, _AXIS, _NOTE = 24.0, 24.0, 28.0, 17.0
_BETWEEN, _LEGEND, _TITLE = 26.0, 30.0, 34.0
_MOST_NOTES = 12
_SAME = 1e-9  # rates and times as near as this are one
_KINDS = ("nic", "gpu", "memory", "storage", "pcie-switch")  # whose colours the lanes take


def draw_timeline(*simulations: Simulation, theme: str = "light") -> Picture:
    """Return a picture of timelines of one machine, one below the other, on the same scales.

    Parameters
    ----------
    simulations
        What `topo.simulate` found, one a data path.
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
    sheet = _Sheet(simulations, theme_named(theme))
    sheet.paint()
    canvas = sheet.canvas
    return Picture(canvas.text, _WIDE, sheet.height, canvas.shapes)


# --- what is shown --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    """A workload's rate over a time in which it does not change, and what stops it there."""

    start: float
    end: float
    rate: float
    stopped_by: tuple[Resource, ...]

    @property
    def reason(self) -> str:
        """What stops it, by class."""
        return classes_of(self.stopped_by) or "its own limit"


@dataclass(frozen=True, slots=True)
class Note:
    """One numbered span: when, and a line for those that the same things stop."""

    number: int
    start: float
    end: float
    lines: tuple[str, ...]

    @property
    def when(self) -> str:
        """From when to when."""
        return f"{format_duration(self.start)} to {format_duration(self.end)}"


def bars_of(simulation: Simulation, run: Run, least: float) -> tuple[Bar, ...]:
    """Return a workload's bars, one for all spans in which it gets the same.

    Parameters
    ----------
    simulation
        The timeline.
    run
        Whose bars.
    least
        Seconds below which a bar would not be seen: it joins its neighbour at their mean rate.
    """
    bars: list[Bar] = []
    for moment in simulation.moments:
        for rate in moment.rates:
            if rate.workload != run.workload.name:
                continue
            bar = Bar(moment.start, moment.end, rate.rate, rate.stopped_by)
            before = bars[-1] if bars else None
            if before and math.isclose(before.end, bar.start, rel_tol=_SAME, abs_tol=least / 10):
                same = math.isclose(before.rate, bar.rate, rel_tol=_SAME)
                same = same and before.reason == bar.reason
                if same or min(before.end - before.start, bar.end - bar.start) < least:
                    sent = before.rate * (before.end - before.start)
                    sent += bar.rate * (bar.end - bar.start)
                    mean = bar.rate if same else sent / (bar.end - before.start)
                    stopped_by = tuple(dict.fromkeys((*before.stopped_by, *bar.stopped_by)))
                    bars[-1] = Bar(before.start, bar.end, mean, stopped_by)
                    continue
            bars.append(bar)
    return tuple(bars)


def notes_of(simulation: Simulation) -> tuple[tuple[Note, ...], int]:
    """Return the spans in words, the longest where there are many, and how many are left out."""
    moments = list(enumerate(simulation.moments, start=1))
    longest = sorted(moments, key=lambda pair: (pair[1].start - pair[1].end, pair[0]))
    endpoints: dict[str, set[str]] = {run.workload.name: set() for run in simulation.runs}
    for moment in simulation.moments:
        for rate in moment.rates:
            endpoints[rate.workload].update(rate.endpoints)
    notes = tuple(
        Note(number, moment.start, moment.end, tuple(_sentences(moment, endpoints)))
        for number, moment in sorted(longest[:_MOST_NOTES], key=lambda pair: pair[0])
    )
    return notes, len(moments) - len(notes)


def _sentences(moment: Moment, endpoints: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield who gets what and what stops them; a name that has two directions says which."""
    by_name: dict[str, set[str]] = {}
    for resource in (resource for rate in moment.rates for resource in rate.stopped_by):
        by_name.setdefault(resource.name, set()).add(resource.id)
    groups: dict[str, list[str]] = {}
    for rate in moment.rates:
        names = (
            resource.id if len(by_name[resource.name]) > 1 else resource.name
            for resource in rate.stopped_by
        )
        binds = f"{classes_of(rate.stopped_by)} ({shortened(names)})"
        some = (
            f" ({shortened(rate.endpoints)})"
            if len(rate.endpoints) < len(endpoints[rate.workload])
            else ""
        )
        groups.setdefault(binds if rate.stopped_by else "own limit", []).append(
            f"{rate.workload}{some} {'at most ' * rate.at_most}{format_rate(rate.rate)}"
        )
    for binds, rates in groups.items():
        yield f"{', '.join(rates)}: {binds}"


def panel_title(simulation: Simulation) -> str:
    """Return what stands above a timeline: by which data path, and when all are done."""
    paths = list(dict.fromkeys(run.data_path for run in simulation.runs))
    runs = [f"{run.workload.name} by {run.data_path}" for run in simulation.runs]
    by = paths[0] if len(paths) == 1 else ", ".join(runs)
    return f"{by}: all done {done_words(simulation.end, at_most=simulation.at_most)}"


# --- how it is painted ----------------------------------------------------------------------------


class _Panel:
    """One timeline with its notes broken into lines."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.notes, more = notes_of(simulation)
        self.lines: list[tuple[int, str, str]] = []  # number, when, what; 0 and "" continue
        for note in self.notes:
            number, when = note.number, note.when
            for text in note.lines:
                for piece in wrapped(text, _WIDE - 2 * _MARGIN - _LABEL - 32, 10.0, lines=4):
                    self.lines.append((number, when, piece))
                    number, when = 0, ""
        if more:
            text = f"and {more} shorter spans: topo simulate --json lists them"
            self.lines.append((0, "", text))
        lanes = len(simulation.runs) * (_LANE + _GAP) - _GAP
        self.height = _HEADER + _NUMBERS + lanes + _AXIS + _NOTE * len(self.lines)


class _Sheet(Chart):
    """Paints panels one below the other; all share the scale of time and of rate."""

    def __init__(self, simulations: tuple[Simulation, ...], theme: Theme) -> None:
        self.panels = tuple(_Panel(simulation) for simulation in simulations)
        name = simulations[0].topology.name
        title = f"{name}: the workloads over time"
        (self.title,) = wrapped(title, _WIDE - 3 * _MARGIN, 17.5, lines=1)
        panels = sum(panel.height + _BETWEEN for panel in self.panels) - _BETWEEN
        self.height = _TITLE + _LEGEND + 2 * _MARGIN + panels
        super().__init__((_WIDE, self.height), theme, f"{name} timeline")
        self.end = max(simulation.end for simulation in simulations) or 1.0
        moments = [moment for simulation in simulations for moment in simulation.moments]
        rates = [rate.rate for moment in moments for rate in moment.rates]
        self.most = round_up(max(rates, default=0.0))
        self.left, self.right = _MARGIN + _LABEL + _SCALE, _WIDE - _MARGIN - _AFTER

    def paint(self) -> None:
        """Paint title, panels and legend from top to bottom."""
        self.paper()
        self.write((_MARGIN, _MARGIN + 8), Line(self.title, 16.0, bold=True))
        y = _MARGIN + _TITLE
        for panel in self.panels:
            self._paint_panel(panel, y)
            y += panel.height + _BETWEEN
        x, y = _MARGIN, y - _BETWEEN + _LEGEND / 2 + 6
        fill, border = self.theme.box(_KINDS[0])
        self.box(Rect(x, y - 4, 15, 10), fillcolor=fill, color=border, style="filled")
        self.box(Rect(x + 15, y - 8, 15, 14), fillcolor=fill, color=border, style="filled")
        x = self._meaning(x + 36, y, f"height: rate, {format_rate(self.most)} fills a lane")
        self.rule(Rect(x, y - 8, 3, 16), self.theme.ink)
        x = self._meaning(x + 9, y, "done")
        self.number(x + 8, y, 1)
        self._meaning(x + 22, y, "a span: what binds in it stands below")

    def _meaning(self, x: float, y: float, text: str) -> float:
        line = Line(text, tone="soft")
        self.write((x, y), line)
        return x + line.width + 26

    # --- a panel ----------------------------------------------------------------------------------

    def _paint_panel(self, panel: _Panel, top: float) -> None:
        simulation, theme = panel.simulation, self.theme
        (title,) = wrapped(panel_title(simulation), _WIDE - 3 * _MARGIN, 14.0, lines=1)
        self.write((_MARGIN, top + 8), Line(title, 13.0, bold=True))
        first = top + _HEADER + _NUMBERS
        bottom = first + len(simulation.runs) * (_LANE + _GAP) - _GAP
        for second in ticks(self.end):  # the axis of time: fine lines over all lanes
            x = self._x(second)
            self.rule(Rect(x - 0.3, first - 4, 0.6, bottom - first + 9), theme.frame)
            self.write((x, bottom + 14), Line(format_duration(second), tone="soft"), middle=True)
        self.rule(Rect(self.left, bottom, self.right - self.left, 1.0), theme.soft)
        for number, run in enumerate(simulation.runs):
            colours = theme.box(_KINDS[number % len(_KINDS)])
            self._lane(simulation, run, colours, first + number * (_LANE + _GAP))
        level = top + _HEADER + _NUMBERS / 2 - 3
        for note in panel.notes:  # the number of each span, where there is room for it
            left, right = self._x(note.start), self._x(note.end)
            for x in (left, right):
                self.rule(Rect(x - 0.5, level - 8, 1.0, 16), theme.soft)
            if right - left >= 16:  # noqa: PLR2004  (a number's width)
                self.number((left + right) / 2, level, note.number)
        for place, (number, when, text) in enumerate(panel.lines):
            y = bottom + _AXIS + _NOTE * place + _NOTE / 2
            if number:
                self.number(_MARGIN + 9, y, number)
                self.write((_MARGIN + 26, y), Line(when))
            self.write((_MARGIN + _LABEL + 24, y), Line(text))

    def _lane(self, simulation: Simulation, run: Run, colours: tuple[str, str], top: float) -> None:
        """Paint a workload's lane: its name, the scale of its rate, its bars, its end."""
        workload, bottom = run.workload, top + _LANE
        size = f" {format_size(workload.size)}" if workload.sized else ""
        summary = f"{workload.direction}{size} by {run.data_path}"
        names = wrapped(workload.name, _LABEL, 13.0, lines=1)
        lines = [Line(text, 12.0, bold=True) for text in names]
        lines += [Line(text, tone="soft") for text in wrapped(summary, _LABEL, lines=2)]
        for place, line in enumerate(lines):
            self.write((_MARGIN, top + 14 + 15 * place), line)
        self.rule(Rect(self.left, bottom - 0.4, self.right - self.left, 0.8), self.theme.soft)
        for level, words in ((top, format_rate(self.most)), (bottom, "0")):
            self.rule(Rect(self.left - 5, level - 0.4, 5, 0.8), self.theme.soft)
            line = Line(words, tone="soft")
            self.write((self.left - 8 - line.width, level), line)
        bars = bars_of(simulation, run, self.end / (self.right - self.left))
        for bar in bars:
            x, high = self._x(bar.start), max(bar.rate / self.most * _LANE, 1.0)
            rect = Rect(x, bottom - high, max(self._x(bar.end) - x, 1.0), high)
            fill, border = colours
            self.box(rect, fillcolor=fill, color=border, penwidth="1.4", style="filled")
        for bar in bars:
            self._words(bar, bottom)
        # when it is done, and when it starts if that is later than the others
        x = self._x(run.finish)
        self.rule(Rect(x - 1.5, top - 3, 3.0, _LANE + 3), self.theme.ink)
        done = Line("goes on" if run.goes_on else format_duration(run.finish), 12.0, bold=True)
        self.rule(Rect(x + 5, top - 2, done.width, 16), self.theme.paper)
        self.write((x + 6, top + 6), done)
        if run.at_most:
            line = Line("at least", tone="soft")
            self.rule(Rect(x + 5, top + 14, line.width, 14), self.theme.paper)
            self.write((x + 6, top + 21), line)
        if run.start > 0:
            start = self._x(run.start)
            self.rule(Rect(start - 0.7, top - 3, 1.4, _LANE + 3), self.theme.ink)
            line = Line(f"from {format_duration(run.start)}")
            if start - self.left > line.width + 8:
                self.write((start - 5 - line.width, top + 6), line)

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
            self.rule(Rect(middle - wide / 2, top, wide, block), self.theme.paper)
        for place, line in enumerate(shown):
            self.write((middle, top + 7 + 14 * place), line, middle=True)

    # --- pieces -----------------------------------------------------------------------------------

    def _x(self, second: float) -> float:
        return self.left + second / self.end * (self.right - self.left)
