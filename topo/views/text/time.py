"""Pages about time and change: the timeline of workloads together, and what to upgrade."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topo.phrases import shortened
from topo.units import format_duration, format_rate
from topo.views.sentences import upgrade_reason
from topo.views.text.answers import basis_note, bound_words, stopped_words
from topo.views.text.page import Bullets, Cell, Column, Heading, Text, right, table, title_of, wide

if TYPE_CHECKING:
    from topo.study.timeline import Simulation
    from topo.study.upgrade import Upgrade, Upgrades
    from topo.views.text.page import Block, Row


_BAR: Final = 40  # characters of the longest bar
_NONE: Final = "-"
_CHANGED: Final = 0.005  # of the time: less is the same


def simulation_page(simulation: Simulation) -> Iterator[Block]:
    """Yield the timeline: when each workload is done, and what each gets in every span."""
    yield Heading(title_of(simulation.topology))
    end = simulation.end or 1.0
    yield table(
        (
            "workload",
            "by",
            right("start"),
            right("done"),
            f"0 to {format_duration(simulation.end)}",
        ),
        (
            (
                run.workload.name,
                run.data_path,
                format_duration(run.start),
                Cell(format_duration(run.finish)),
                _bar(run.start / end, run.finish / end),
            )
            for run in simulation.runs
        ),
    )
    yield Heading("Spans: what runs, what it gets, what stops it")
    yield table(
        (right("from"), right("to"), "workload", right("rate"), "GPUs", wide("stopped by")),
        (
            (
                "" if place else format_duration(moment.start),
                "" if place else format_duration(moment.end),
                rate.workload,
                format_rate(rate.rate),
                shortened(rate.gpus),
                stopped_words(rate.stopped_by),
            )
            for moment in simulation.moments
            for place, rate in enumerate(moment.rates)
        ),
    )
    yield basis_note(simulation.basis)


def _bar(start: float, end: float) -> str:
    """Return a run's bar, from and to its parts of the whole time."""
    first, last = round(start * _BAR), round(end * _BAR)
    return " " * first + "#" * max(last - first, 1)


def together_page(simulations: Sequence[tuple[str, Simulation]]) -> Iterator[Block]:
    """Yield the workloads run together, once by each data path."""
    first = simulations[0][1]
    yield Heading(f"{title_of(first.topology)}: the workloads together")
    rows: list[Row] = [
        (
            run.workload.name,
            *(
                format_duration(simulation[run.workload.name].finish)
                for _, simulation in simulations
            ),
        )
        for run in first.runs
    ]
    ends = (Cell(format_duration(simulation.end)) for _, simulation in simulations)
    yield table(
        ("workload", *(right(name) for name, _ in simulations)), [*rows, ("all done", *ends)]
    )
    sentences = []
    for name, simulation in simulations:
        opening = simulation.moments[0].rates
        rates = ", ".join(f"{rate.workload} {format_rate(rate.rate)}" for rate in opening)
        resources = dict.fromkeys(resource for rate in opening for resource in rate.stopped_by)
        sentences.append(f"{name}: at first {rates}; {bound_words(resources)}.")
    yield Bullets(tuple(sentences))
    yield basis_note(first.basis)


def upgrades_page(upgrades: Upgrades, *, most: int) -> Iterator[Block]:
    """Yield what each change would make of the time, best first, and what was rejected."""
    names = ", ".join(workload.name for workload in upgrades.workloads)
    now = upgrades.now
    yield Heading(title_of(upgrades.topology))
    times = ", ".join(f"{name} {format_duration(time)}" for name, time in now.times.items())
    if len(now.times) == 1:
        times = format_duration(now.time)
    yield Text(f"{names} by {upgrades.via} now: {times}, limited by {bound_words(now.bound)}.")
    rows = upgrades.rows
    priced = any(upgrade.cost is not None for upgrade in upgrades.ranked)
    columns: list[Column | str] = [right("")]
    columns += [right(name) for name in (now.times if len(now.times) > 1 else ("time",))]
    columns += [right("change"), *([right("cost")] if priced else [])]
    yield table(
        (*columns, wide("what"), wide("limited by")),
        (
            _upgrade_row(number, title, group[0], upgrades, priced=priced)
            for number, (title, group) in enumerate(rows[:most], start=1)
        ),
    )
    if len(rows) > most:
        yield Text(f"And {len(rows) - most} more: --most {len(rows)} shows all.", dim=True)
    best = upgrades.ranked[0] if upgrades.ranked else None
    if best is not None and best.outcome.time < now.time:
        # for a built-in its name, else the file as given
        name, file = upgrades.topology.name, upgrades.topology.description.file
        words = ["topo", "compare", name if file in ("", f"topologies/{name}.yaml") else file]
        several = len(upgrades.workloads) > 1
        words += ["--together"] if several else ["--workload", upgrades.workloads[0].name]
        words += ["--via", best.via or upgrades.via]
        words += [word for item in best.changes.items() for word in ("--set", "=".join(item))]
        yield Text(f"To see the first for yourself: {shlex.join(words)}", hang=2)
    if upgrades.rejected:
        yield Heading("Not possible")
        yield Bullets(tuple(f"{'; '.join(titles)}: {why}" for why, titles in upgrades.obstacles))
    yield basis_note(upgrades.basis)


def _upgrade_row(
    number: int, title: str, upgrade: Upgrade, upgrades: Upgrades, *, priced: bool
) -> Row:
    change = upgrade.outcome.time / upgrades.now.time - 1.0
    cost = _NONE if upgrade.cost is None else f"{upgrade.cost:,.0f}"
    return (
        str(number),
        *map(format_duration, upgrade.outcome.times.values()),
        f"{change:+.0%}" if abs(change) >= _CHANGED else "same",
        *((cost,) if priced else ()),
        title,
        upgrade_reason(upgrades, upgrade),
    )
