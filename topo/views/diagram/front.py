"""A sweep as a picture: every design by what it takes and gives, and the best for each taking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import AMOUNT, FIELDS
from topo.errors import DrawError, Finding
from topo.phrases import counted
from topo.study.front import COST
from topo.units import format_duration, format_rate
from topo.views.diagram.chart import Chart, round_up, ticks
from topo.views.diagram.geometry import Line, Rect, wrapped
from topo.views.diagram.picture import Picture, Theme, theme_named
from topo.views.text.sweep import design_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.study.front import Placed, Swept


_WIDE, _HIGH = 960.0, 430.0  # of the picture without the list below it, in points
_MARGIN, _LEFT, _TOP, _BELOW = 18.0, 92.0, 66.0, 58.0
_CELL = 5.0  # points: designs as near as this are one spot
_DOT = 4.0
_ROOM = 16.0  # that a number takes
_MOST = 12  # designs of the front in the list
_LINE = 17.0
_NEAR = 0.2  # of the greatest: a spread of less is shown alone
_BESIDE = 0.08  # of a spread that is shown alone, before and behind it


def draw_front(swept: Swept, *, theme: str = "light") -> Picture:
    """Return a picture of a sweep that has something to hold the designs against.

    Parameters
    ----------
    swept
        What was found.
    theme
        ``light`` or ``dark``.

    Raises
    ------
    DrawError
        If there is nothing to hold them against, or no such theme.
    """
    if not swept.front:
        raise no_front()
    sheet = _Sheet(swept, theme_named(theme))
    sheet.paint()
    return Picture(sheet.canvas.text, _WIDE, sheet.height, sheet.canvas.shapes)


def no_front() -> DrawError:
    """Return the error for a picture of nothing."""
    message = "there is no front to draw: no design has both a rate and a cost"
    advice = "state prices, or name an axis of numbers: --against ram.channels"
    return DrawError(Finding("no-front", message, help=advice))


class _Sheet(Chart):
    """Paints the axes, a spot for each design, the front as steps, and its designs in words."""

    def __init__(self, swept: Swept, theme: Theme) -> None:
        self.swept = swept
        self.placed = [each for each in swept.placed if each.taken is not None]
        self.listed = _spread(swept.front, _MOST)
        self.lines: list[tuple[int, str]] = []
        for number, each in enumerate(self.listed, start=1):
            pieces = wrapped(self._sentence(each), _WIDE - 2 * _MARGIN - 30, 10.0, lines=2)
            self.lines += [(number if at == 0 else 0, text) for at, text in enumerate(pieces)]
        if (left := len(swept.front) - len(self.listed)) > 0:
            self.lines.append((0, f"and {counted(left, 'design')} more between them"))
        self.height = _HIGH + _LINE * len(self.lines) + _MARGIN
        super().__init__((_WIDE, self.height), theme, f"{swept.sweep.topology.name} sweep")
        self.right, self.bottom = _WIDE - _MARGIN - 14, _HIGH - _BELOW
        self.least_taken, self.most_taken = _span([each.taken or 0.0 for each in self.placed])
        self.most = round_up(max(each.value for each in self.placed))

    def paint(self) -> None:
        """Paint everything, what lies behind first."""
        swept, theme = self.swept, self.theme
        self.paper()
        sweep = swept.sweep
        title = f"{sweep.topology.name}: {len(self.placed):,} of {sweep.count:,} designs"
        (title,) = wrapped(title, _WIDE - 3 * _MARGIN, 17.5, lines=1)
        self.write((_MARGIN, _MARGIN + 8), Line(title, 16.0, bold=True))
        what = "time until the last byte" if swept.aim == "time" else "rate of the whole"
        across = f"across: {swept.against}"
        if self.least_taken:
            across += ", not from 0: what differs is a small part"
        self.write((_MARGIN, _MARGIN + 30), Line(f"up: {what}; {across}", tone="soft"))
        for value in ticks(self.most):
            y = self._y(value)
            self.rule(Rect(_LEFT, y - 0.3, self.right - _LEFT, 0.6), theme.frame)
            line = Line(self._value(value), tone="soft")
            self.write((_LEFT - 8 - line.width, y), line)
        for value in ticks(self.most_taken, start=self.least_taken):
            x = self._x(value)
            self.rule(Rect(x - 0.3, _TOP, 0.6, self.bottom - _TOP + 5), theme.frame)
            self.write((x, self.bottom + 14), Line(self._taken(value), tone="soft"), middle=True)
        self._spots()
        self._steps()
        for place, (number, text) in enumerate(self.lines):
            y = _HIGH - 10 + _LINE * place
            if number:
                self.number(_MARGIN + 9, y, number)
            self.write((_MARGIN + 26, y), Line(text))

    def _spots(self) -> None:
        """Paint a spot for each place where there are designs."""
        fill, border = self.theme.box("pcie-switch")
        spots: dict[tuple[int, int], tuple[float, float]] = {}
        for each in self.placed:
            x, y = self._x(each.taken or 0.0), self._y(each.value)
            spots.setdefault((round(x / _CELL), round(y / _CELL)), (x, y))
        for x, y in spots.values():
            rect = Rect(x - _DOT / 2, y - _DOT / 2, _DOT, _DOT)
            self.box(rect, fillcolor=fill, color=border, style="filled", penwidth="0.8")

    def _steps(self) -> None:
        """Paint the front: what is the best up to each taking, and its designs."""
        front, colour = self.swept.front, self.theme.routes[1].colour
        for each, after in zip(front, (*front[1:], None), strict=True):
            x, y = self._x(each.taken or 0.0), self._y(each.value)
            end = self.right if after is None else self._x(after.taken or 0.0)
            self.rule(Rect(x, y - 1, end - x, 2), colour)
            if after is not None:
                low, high = sorted((y, self._y(after.value)))
                self.rule(Rect(end - 1, low - 1, 2, high - low + 2), colour)
        for each in front:
            x, y = self._x(each.taken or 0.0), self._y(each.value)
            self.rule(Rect(x - 3.5, y - 3.5, 7, 7), colour)
        # Beside a design of the front, where there is less taken and more given, there is no other.
        up = -12 if self.swept.aim == "rate" else 12
        taken: list[tuple[float, float]] = []
        for number, each in enumerate(self.listed, start=1):
            x, y = self._x(each.taken or 0.0), self._y(each.value)
            for place in ((x - 12, y + up), (x, y + 1.3 * up), (x + 12, y - up)):
                if all(_apart(place, before) for before in taken):
                    self.number(*place, number)
                    taken.append(place)
                    break

    # --- pieces -----------------------------------------------------------------------------------

    def _sentence(self, each: Placed) -> str:
        swept, outcome = self.swept, each.outcome
        bound = "at least " if swept.aim == "time" else "at most "
        value = f"{bound * outcome.at_most}{self._value(each.value)}"
        words = f"{self._taken(each.taken or 0.0)}: {value}, "
        words += design_words(swept.sweep, each.number)
        return words + (f"; limited by {outcome.limited_by}" if outcome.limited_by else "")

    def _value(self, value: float) -> str:
        if not value:
            return "0"
        return format_duration(value) if self.swept.aim == "time" else format_rate(value)

    def _taken(self, value: float) -> str:
        key = self.swept.against.rpartition(".")[2]
        field = FIELDS.get(key) if self.swept.against != COST else None
        return (field.quantity if field and field.quantity.unit else AMOUNT).text(value)

    def _x(self, taken: float) -> float:
        share = (taken - self.least_taken) / (self.most_taken - self.least_taken)
        return _LEFT + share * (self.right - _LEFT)

    def _y(self, value: float) -> float:
        return self.bottom - value / self.most * (self.bottom - _TOP)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return where an axis begins and ends: at 0, but for values all in one spot there."""
    low, high = min(values), max(values)
    spread = high - low
    if 0 < spread < _NEAR * high:
        return low - _BESIDE * spread, high + _BESIDE * spread
    return 0.0, round_up(high)


def _apart(place: tuple[float, float], before: tuple[float, float]) -> bool:
    return any(abs(a - b) >= _ROOM for a, b in zip(place, before, strict=True))


def _spread(front: tuple[Placed, ...], most: int) -> tuple[Placed, ...]:
    """Return so many of a front, the first and the last among them."""
    if len(front) <= most:
        return front
    step: Final = (len(front) - 1) / (most - 1)
    return tuple(front[round(place * step)] for place in range(most))
