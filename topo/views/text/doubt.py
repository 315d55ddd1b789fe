"""The page of `topo doubt`: the range of each answer, what makes it, and what to measure first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from topo.phrases import listed, ranges, shortened
from topo.study.doubt import DRAWS, LEVEL
from topo.units import format_duration, format_rate, format_ratio
from topo.views.bands import (
    band_ends,
    band_name,
    band_origin,
    between,
    measurement_of,
    rates_between,
    settles_words,
)
from topo.views.resources import classes_of
from topo.views.sentences import rate_words, time_words
from topo.views.text.answers import basis_note
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Table,
    Text,
    right,
    table,
    title_of,
    wide,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.study.doubt import Doubt, PathDoubt, Swing

_BAR: Final = 24  # characters of a tornado
_MOST: Final = 6  # names in a line


def doubt_page(doubt: Doubt) -> Iterator[Block]:
    """Yield each answer's range, a tornado of what makes it, and what to measure first."""
    yield Heading(title_of(doubt.topology))
    if not doubt.bands:
        if any(answer.rate_range for answer in doubt.answers):
            yield Text("Nothing here is a guess: no figure on the way of any answer is uncertain.")
        for answer in doubt.answers:
            if answer.unknown or answer.rate_range is None or answer.answer.time_range:
                yield Heading(f"{answer.workload.name} by {answer.answer.name}")
                yield from _answer(answer)
        yield basis_note(doubt.basis)
        return
    for answer in doubt.answers:
        sentence = workload_sentence(answer.workload)
        yield Heading(f"{answer.workload.name} by {answer.answer.name}: {sentence}")
        yield from _answer(answer)
    yield Heading("Where the bands come from")
    yield Bullets(
        tuple(f"{band_name(band)}, {band_ends(band)}: {band_origin(band)}." for band in doubt.bands)
    )
    yield basis_note(doubt.basis)
    yield Text(
        f"A range holds {format_ratio(LEVEL)} of {DRAWS} draws of all bands at once, or more. Half "
        "of the draws of a band lie below its figure and half above, evenly; the same figure of "
        "several parts is drawn once. What turns out better makes up for nothing at the lower end, "
        "and what turns out worse for nothing at the upper.",
        dim=True,
    )


def _answer(answer: PathDoubt) -> Iterator[Block]:
    path = answer.answer
    if answer.rate_range is None or answer.extremes is None:
        why = (reason.text for reason in path.reasons if reason.effect == "refused")
        yield Text(f"It is refused, however the guesses turn out: {listed(why, most=_MOST)}.")
        return
    nominal = ", ".join(filter(None, (rate_words(path), time_words(path))))
    if answer.certain:
        idle = listed(map(band_name, answer.idle), most=_MOST)
        changes = "changes" if len(answer.idle) == 1 else "change"
        sure = (
            f"however the guesses turn out: {idle} {changes} nothing" if idle else "without a guess"
        )
        yield Text(f"{nominal}, {sure}.")
    else:
        yield Text(f"At {format_ratio(LEVEL)}: {range_words(answer)}; as figures are, {nominal}.")
        yield _tornado(answer)
        yield from _advice(answer)
        if answer.idle:
            idle = listed(map(band_name, answer.idle), most=_MOST)
            yield Text(f"Nothing changes with {idle}, within the band.", dim=True)
    if path.time_range is not None and answer.workload.efficiency is not None:
        ratios = between(*map(format_ratio, answer.workload.efficiency))
        times = between(*map(format_duration, path.time_range))
        yield Text(f"The workload's own efficiency, {ratios}, is not among the bands: {times}.")
    yield from _unknown(answer)


def range_words(answer: PathDoubt) -> str:
    """Return the range of an answer: rates, and times where somebody said a size."""
    assert answer.rate_range is not None
    most = "at most " * answer.at_most
    words = most + rates_between(answer.rate_range)
    if answer.time_range is not None:
        least = "at least " * answer.at_most
        words += ", " + least + between(*map(format_duration, answer.time_range))
    return words


def _tornado(answer: PathDoubt) -> Table:
    nominal = answer.answer.rate
    assert nominal is not None
    rates = [rate for swing in answer.swings for rate in (swing.low_rate, swing.high_rate)]
    least, most = min(*rates, nominal), max(*rates, nominal)

    def place(rate: float) -> int:
        return round((rate - least) / (most - least) * _BAR) if most > least else 0

    def bar(swing: Swing) -> str:
        """Return less than the figure as `-`, more as `+`, from where the answer is."""
        middle = place(nominal)
        ends = (place(swing.low_rate), place(swing.high_rate), middle)
        low, high = min(ends), max(ends)
        return "." * low + "-" * (middle - low) + "|" + "+" * (high - middle) + "." * (_BAR - high)

    columns = (
        wide("not certain"),
        wide("its band"),
        right("rate with the least"),
        right("with the most"),
        "",
        right("settles"),
    )
    return table(
        columns,
        (
            (
                Cell(band_name(swing.band)),
                band_ends(swing.band),
                format_rate(swing.low_rate),
                format_rate(swing.high_rate),
                bar(swing),
                settles_words(swing),
            )
            for swing in answer.swings
        ),
    )


def _advice(answer: PathDoubt) -> Iterator[Block]:
    best = answer.best
    if best is None:
        return
    binding, how = best.binding, measurement_of(best, answer.answer.data_path)
    words = f"Measure first: {band_name(best.band)}"
    if binding:
        words += f", on {classes_of(binding)} ({shortened(r.name for r in binding[:_MOST])})"
    words += f". It is expected to settle {settles_words(best)} of the range."
    if how is not None:
        words += f" `{how.command}`; {how.then}."
    yield Text(words)


def _unknown(answer: PathDoubt) -> Iterator[Block]:
    if not answer.unknown:
        return
    names = listed(ranges(each.resource.name for each in answer.unknown), most=_MOST)
    loads = [unknown.load for unknown in answer.unknown]
    most = format_rate(max(loads))
    yield Text(
        f"Unknown, with no figure at all: how much passes {names}. The range is what is known at "
        f"most; below {most}{' each' if len(loads) > 1 else ''} it would be less, and nobody "
        "says how much.",
    )
