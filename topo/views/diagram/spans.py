"""What a timeline shows, at which place: bars of rate, ticks of time, notes of what binds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.phrases import shortened
from topo.units import format_duration, format_rate
from topo.views.sentences import classes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.study import Moment, Run, Simulation, WorkloadRate
    from topo.topology.resources import Resource


MOST_NOTES = 12
_SAME = 1e-9


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


def bars_of(found: Simulation, run: Run, least: float) -> tuple[Bar, ...]:
    """Return a workload's bars, one for all spans in which it gets the same.

    Parameters
    ----------
    found
        The timeline.
    run
        Whose bars.
    least
        Seconds below which a bar would not be seen: it joins its neighbour at their mean rate.
    """
    bars: list[Bar] = []
    for moment in found.moments:
        for one in moment.rates:
            if one.workload == run.workload.name:
                _add(bars, Bar(moment.start, moment.end, one.rate, one.stopped_by), least)
    return tuple(bars)


def _add(bars: list[Bar], bar: Bar, least: float) -> None:
    before = bars[-1] if bars else None
    if before is None or not math.isclose(before.end, bar.start, rel_tol=_SAME, abs_tol=least / 10):
        bars.append(bar)
        return
    same = math.isclose(before.rate, bar.rate, rel_tol=_SAME) and before.reason == bar.reason
    if not same and min(before.end - before.start, bar.end - bar.start) >= least:
        bars.append(bar)
        return
    sent = before.rate * (before.end - before.start) + bar.rate * (bar.end - bar.start)
    bars[-1] = Bar(
        start=before.start,
        end=bar.end,
        rate=bar.rate if same else sent / (bar.end - before.start),
        stopped_by=tuple(dict.fromkeys((*before.stopped_by, *bar.stopped_by))),
    )


def notes_of(found: Simulation) -> tuple[tuple[Note, ...], int]:
    """Return the spans in words, the longest where there are many, and how many are left out."""
    moments = list(enumerate(found.moments, start=1))
    longest = sorted(moments, key=lambda one: (one[1].start - one[1].end, one[0]))[:MOST_NOTES]
    gpus = {run.workload.name: len(_gpus(found, run)) for run in found.runs}
    notes = tuple(
        Note(number, moment.start, moment.end, tuple(_lines(moment, gpus)))
        for number, moment in sorted(longest, key=lambda one: one[0])
    )
    return notes, len(moments) - len(notes)


def _gpus(found: Simulation, run: Run) -> set[str]:
    return {
        gpu
        for moment in found.moments
        for one in moment.rates
        if one.workload == run.workload.name
        for gpu in one.gpus
    }


def _lines(moment: Moment, gpus: dict[str, int]) -> Iterator[str]:
    """Yield who gets what and what stops them; a name that has two directions says which."""
    by_name: dict[str, set[str]] = {}
    for resource in (resource for one in moment.rates for resource in one.stopped_by):
        by_name.setdefault(resource.name, set()).add(resource.id)
    groups: dict[str, list[WorkloadRate]] = {}
    for one in moment.rates:
        names = (
            resource.id if len(by_name[resource.name]) > 1 else resource.name
            for resource in one.stopped_by
        )
        binds = f"{classes_of(one.stopped_by)} ({shortened(names)})"
        groups.setdefault(binds if one.stopped_by else "own limit", []).append(one)
    for binds, rates in groups.items():
        yield f"{', '.join(_rate(one, gpus[one.workload]) for one in rates)}: {binds}"


def _rate(one: WorkloadRate, count: int) -> str:
    some = f" ({shortened(one.gpus)})" if len(one.gpus) < count else ""
    return f"{one.workload}{some} {format_rate(one.rate)}"


def panel_title(found: Simulation) -> str:
    """Return what stands above a timeline: by which data path, and when all are done."""
    paths = list(dict.fromkeys(run.data_path for run in found.runs))
    by = (
        paths[0]
        if len(paths) == 1
        else ", ".join(f"{run.workload.name} by {run.data_path}" for run in found.runs)
    )
    return f"{by}: all done at {format_duration(found.end)}"


def round_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.

    Examples
    --------
    >>> round_up(97e9), round_up(126.03e9), round_up(0.0)
    (100000000000.0, 150000000000.0, 1.0)
    """
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(step * unit for step in steps if step * unit >= value * (1 - _SAME))


def ticks(end: float, most: int = 10) -> tuple[float, ...]:
    """Return round times from 0 to at most `end`, no more than `most` and one.

    Examples
    --------
    >>> ticks(7.8)
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    """
    rough = end / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= rough * (1 - _SAME))
    return tuple(
        float(f"{number * step:.12g}") for number in range(int(end / step * (1 + _SAME)) + 1)
    )


def used(found: Sequence[Simulation]) -> float:
    """Return the highest rate of any workload in any of the timelines."""
    rates = [one.rate for each in found for moment in each.moments for one in moment.rates]
    return max(rates, default=0.0)
