"""Pages about time: workloads that run together, once or by each of several data paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topo.phrases import shortened
from topo.units import format_duration, format_rate
from topo.views.sentences import ENDPOINT_WORDS
from topo.views.text.answers import at_least, basis_note, bound_words, stopped_words
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Row,
    Text,
    right,
    table,
    title_of,
    wide,
)

if TYPE_CHECKING:
    from topo.study.timeline import Run, Simulation

_NONE: Final = "-"
_BAR: Final = 40  # characters of the longest bar of a timeline
_LONG: Final = 30  # names in a cell, which break from there on


def simulation_page(simulation: Simulation) -> Iterator[Block]:
    """Yield the timeline: when each workload is done, and what each gets in every span."""
    yield Heading(title_of(simulation.topology))
    yield from _cut_off([simulation])
    if not simulation.runs:
        return
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
                Cell(finish_words(run)),
                _bar(run.start / end, run.finish / end),
            )
            for run in simulation.runs
        ),
    )
    near_ends = {rate.near_end for moment in simulation.moments for rate in moment.rates}
    endpoints = ENDPOINT_WORDS[near_ends.pop()][1] if len(near_ends) == 1 else "ends"
    named = (shortened(rate.endpoints) for moment in simulation.moments for rate in moment.rates)
    ends = wide(endpoints) if any(len(names) > _LONG for names in named) else endpoints
    yield Heading("Spans: what runs, what it gets, what stops it")
    yield table(
        (right("from"), right("to"), "workload", right("rate"), ends, wide("stopped by")),
        (
            (
                "" if place else format_duration(moment.start),
                "" if place else format_duration(moment.end),
                rate.workload,
                "at most " * rate.at_most + format_rate(rate.rate),
                shortened(rate.endpoints),
                stopped_words(rate.stopped_by),
            )
            for moment in simulation.moments
            for place, rate in enumerate(moment.rates)
        ),
    )
    yield basis_note(simulation.basis)


def _cut_off(simulations: Iterable[Simulation]) -> Iterator[Block]:
    """Yield a sentence for each workload of which some endpoints do not run."""
    of_all = (cut_off for simulation in simulations for cut_off in simulation.cut_off)
    for cut_off in dict.fromkeys(of_all):
        name = f"{cut_off.workload} by {cut_off.data_path}"
        if cut_off.whole:
            yield Text(f"{name} does not run: it has no way any more.")
        else:
            number = f" ({cut_off.count} in all)" * (cut_off.count > 1)
            yield Text(f"{name}: no way any more for {shortened(cut_off.endpoints)}{number}.")


def finish_words(run: Run) -> str:
    """Return when a run is done, in words."""
    return "goes on" if run.goes_on else at_least(run.finish, run)


def _bar(start: float, end: float) -> str:
    """Return a run's bar, from and to its parts of the whole time."""
    first, last = round(start * _BAR), round(end * _BAR)
    return " " * first + "#" * max(last - first, 1)


def together_page(simulations: Sequence[tuple[str, Simulation]]) -> Iterator[Block]:
    """Yield the workloads run together, once by each data path."""
    first = simulations[0][1]
    yield Heading(f"{title_of(first.topology)}: the workloads together")
    yield from _cut_off(simulation for _, simulation in simulations)
    simulations = [(name, simulation) for name, simulation in simulations if simulation.runs]
    if not simulations:
        return
    names = dict.fromkeys(run.workload.name for _, each in simulations for run in each.runs)
    runs = [{run.workload.name: run for run in simulation.runs} for _, simulation in simulations]
    rows: list[Row] = [
        (
            name,
            *(finish_words(of[name]) if name in of else _NONE for of in runs),
        )
        for name in names
    ]
    ends = (Cell(at_least(simulation.end, simulation)) for _, simulation in simulations)
    yield table(
        ("workload", *(right(name) for name, _ in simulations)), [*rows, ("all done", *ends)]
    )
    sentences = []
    for name, simulation in simulations:
        opening = simulation.moments[0].rates
        rates = ", ".join(
            f"{rate.workload} {'at most ' * rate.at_most}{format_rate(rate.rate)}"
            for rate in opening
        )
        resources = dict.fromkeys(resource for rate in opening for resource in rate.stopped_by)
        sentences.append(f"{name}: at first {rates}; {bound_words(resources)}.")
    yield Bullets(tuple(sentences))
    yield basis_note(first.basis)
