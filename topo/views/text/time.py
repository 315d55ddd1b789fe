"""Pages about time and change: the timeline of workloads together, and what to upgrade."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from topo.phrases import shortened
from topo.units import format_duration, format_rate
from topo.views.sentences import upgrade_reason
from topo.views.text.answers import basis_note
from topo.views.text.page import Bullets, Cell, Column, Heading, Table, Text
from topo.views.text.shares import bound_words
from topo.views.text.words import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.study import Moment, Simulation, Upgrade, Upgrades, WorkloadRate
    from topo.topology.topology import Topology
    from topo.views.text.page import Block


_BAR: Final = 40  # characters of the longest bar
_NONE: Final = "-"


def simulation_page(found: Simulation) -> Iterator[Block]:
    """Yield the timeline: when each workload is done, and what each gets in every span."""
    yield Heading(title_of(found.topology))
    yield _runs(found)
    yield Heading("Spans: what runs, what it gets, what stops it")
    yield Table(
        (
            Column("from", right=True),
            Column("to", right=True),
            Column("workload"),
            Column("rate", right=True),
            Column("GPUs"),
            Column("stopped by", breaks=True),
        ),
        tuple(row for moment in found.moments for row in _span_rows(moment)),
    )
    yield Text(basis_note(found.basis), dim=True)


def together_page(found: tuple[tuple[str, Simulation], ...]) -> Iterator[Block]:
    """Yield the workloads run together, once by each data path."""
    first = found[0][1]
    yield Heading(f"{title_of(first.topology)}: the workloads together")
    yield Table(
        (Column("workload"), *(Column(name, right=True) for name, _ in found)),
        (
            *(
                (
                    run.workload.name,
                    *(format_duration(one[run.workload.name].finish) for _, one in found),
                )
                for run in first.runs
            ),
            ("all done", *(Cell(format_duration(one.end)) for _, one in found)),
        ),
    )
    yield Bullets(tuple(_first_limit(name, one) for name, one in found))
    yield Text(basis_note(first.basis), dim=True)


def upgrades_page(found: Upgrades, *, most: int) -> Iterator[Block]:
    """Yield what each change would make of the time, best first, and what was rejected."""
    names = ", ".join(workload.name for workload in found.workloads)
    yield Heading(title_of(found.topology))
    yield Text(
        f"{names} by {found.via} now: {_times(found.now.times)}, limited by "
        f"{bound_words(found.now.bound)}."
    )
    rows = found.rows
    priced = any(one.cost is not None for one in found.ranked)
    yield Table(
        (
            Column("", right=True),
            *(Column(name, right=True) for name in _time_titles(found)),
            Column("change", right=True),
            *((Column("cost", right=True),) if priced else ()),
            Column("what", breaks=True),
            Column("limited by", breaks=True),
        ),
        tuple(
            _upgrade_row(number, title, group[0], found, priced=priced)
            for number, (title, group) in enumerate(rows[:most], start=1)
        ),
    )
    if len(rows) > most:
        yield Text(f"And {len(rows) - most} more: --most {len(rows)} shows all.", dim=True)
    best = found.ranked[0] if found.ranked else None
    if best is not None and best.outcome.time < found.now.time:
        yield Text(f"To see the first for yourself: {_command(best, found)}", hang=2)
    if found.rejected:
        yield Heading("Not possible")
        yield Bullets(tuple(f"{'; '.join(titles)}: {why}" for why, titles in found.obstacles))
    yield Text(basis_note(found.basis), dim=True)


# --- rows -----------------------------------------------------------------------------------------


def _runs(found: Simulation) -> Table:
    end = found.end or 1.0
    return Table(
        (
            Column("workload"),
            Column("by"),
            Column("start", right=True),
            Column("done", right=True),
            Column(f"0 to {format_duration(found.end)}"),
        ),
        tuple(
            (
                run.workload.name,
                run.data_path,
                format_duration(run.start),
                Cell(format_duration(run.finish)),
                _bar(run.start / end, run.finish / end),
            )
            for run in found.runs
        ),
    )


def _bar(start: float, finish: float) -> str:
    first, last = round(start * _BAR), max(round(finish * _BAR), round(start * _BAR) + 1)
    return " " * first + "#" * (last - first)


def _span_rows(moment: Moment) -> Iterator[tuple[str | Cell, ...]]:
    for number, one in enumerate(moment.rates):
        yield (
            format_duration(moment.start) if number == 0 else "",
            format_duration(moment.end) if number == 0 else "",
            one.workload,
            format_rate(one.rate),
            shortened(one.gpus),
            _stopped(one),
        )


def _stopped(one: WorkloadRate) -> str:
    return bound_words(one.stopped_by) if one.stopped_by else "its own limit"


def _first_limit(name: str, found: Simulation) -> str:
    opening = found.moments[0]
    resources = dict.fromkeys(one for rate in opening.rates for one in rate.stopped_by)
    rates = ", ".join(f"{one.workload} {format_rate(one.rate)}" for one in opening.rates)
    return f"{name}: at first {rates}; {bound_words(resources)}."


def _times(times: Mapping[str, float]) -> str:
    pairs = [(name, format_duration(value)) for name, value in times.items()]
    return pairs[0][1] if len(pairs) == 1 else ", ".join(f"{name} {time}" for name, time in pairs)


def _time_titles(found: Upgrades) -> tuple[str, ...]:
    names = tuple(found.now.times)
    return ("time",) if len(names) == 1 else names


def _upgrade_row(
    number: int, title: str, one: Upgrade, found: Upgrades, *, priced: bool
) -> tuple[str | Cell, ...]:
    change = one.outcome.time / found.now.time - 1.0
    shown = f"{change:+.0%}" if abs(change) >= 0.005 else "same"  # noqa: PLR2004
    return (
        str(number),
        *(format_duration(time) for time in one.outcome.times.values()),
        shown,
        *(((_NONE if one.cost is None else f"{one.cost:,.0f}"),) if priced else ()),
        title,
        upgrade_reason(found, one),
    )


def _command(one: Upgrade, found: Upgrades) -> str:
    words = ["topo", "compare", _file(found.topology)]
    if len(found.workloads) == 1:
        words += ["--workload", found.workloads[0].name]
    else:
        words += ["--together"]
    words += ["--via", one.via or found.via]
    for key, value in one.changes.items():
        words += ["--set", f"{key}={value}"]
    return shlex.join(words)


def _file(topology: Topology) -> str:
    """Return what to type for the machine: a built-in's name, or the file as it was given."""
    file = topology.description.file
    return topology.name if file in ("", f"topologies/{topology.name}.yaml") else file
