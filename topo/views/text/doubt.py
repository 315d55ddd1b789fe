"""The page of `topo doubt`: the range of each answer, what makes it, and what to measure first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topo.phrases import listed
from topo.study.doubt import DRAWS, LEVEL
from topo.units import format_duration, format_rate, format_ratio
from topo.views.bands import (
    advice_words,
    band_ends,
    band_name,
    band_origin,
    between,
    equal_answers,
    idle_words,
    measurement_of,
    range_words,
    rates_between,
    settles_words,
    times_between,
    unknown_words,
)
from topo.views.sentences import rate_words, time_words
from topo.views.text.answers import basis_note
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Table,
    Text,
    capitalized,
    grouped,
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
    """Yield each answer's range, a tornado of what makes it, and what to measure first.

    Answers that say the same stand together.
    """
    yield Heading(title_of(doubt.topology))
    shown = doubt.answers
    if not doubt.bands:
        if any(answer.rate_range for answer in shown):
            yield Text("Nothing here is a guess: no figure on the way of any answer is uncertain.")
        shown = tuple(
            answer
            for answer in shown
            if answer.unknown or answer.rate_range is None or answer.answer.time_range
        )
    for group in equal_answers(shown):
        for workload, answers in grouped(group, lambda answer: answer.workload.name).items():
            names = listed(answer.answer.name for answer in answers)
            sentence = workload_sentence(answers[0].workload)
            yield Heading(f"{workload} by {names}: {sentence}")
        yield from _answer(group)
    if not doubt.bands:
        yield basis_note(doubt.basis)
        return
    yield Heading("Where the bands come from")
    yield Bullets(
        tuple(f"{band_name(band)}, {band_ends(band)}: {band_origin(band)}." for band in doubt.bands)
    )
    yield basis_note(doubt.basis)
    if not all(answer.certain or answer.rate_range is None for answer in doubt.answers):
        yield Text(
            f"A range holds {format_ratio(LEVEL)} of {DRAWS} draws of all bands at once, or more. "
            "Half of the draws of a band lie below its figure and half above, evenly; the same "
            "figure of several parts is drawn once. The lower end takes no figure better than "
            "stated, the upper end none worse.",
            dim=True,
        )


def _answer(group: Sequence[PathDoubt]) -> Iterator[Block]:
    answer = group[0]
    path = answer.answer
    if answer.rate_range is None:
        why = (reason.text for reason in path.reasons if reason.effect == "refused")
        yield Text(f"It is refused, whatever is uncertain: {listed(why, most=_MOST)}.")
        return
    idle = idle_words(group)
    if answer.certain:
        bands = {band for member in group for band in member.idle}
        changes = "changes" if len(bands) == 1 else "change"
        sure = (
            f"whatever is uncertain: {idle} {changes} nothing"
            if idle
            else "with nothing uncertain on its way"
        )
        yield Text(f"{capitalized(_nominal(group))}, {sure}.")
    else:
        yield Text(f"At {format_ratio(LEVEL)}: {_range(group)}.")
        yield _tornado(answer)
        yield from _advice(answer)
        if idle:
            yield Text(f"Nothing changes with {idle}, within the band.", dim=True)
    if path.time_range is not None and answer.workload.efficiency is not None:
        ratios = between(*map(format_ratio, answer.workload.efficiency))
        times = between(*map(format_duration, path.time_range))
        yield Text(f"The workload's own efficiency, {ratios}, is not among the bands: {times}.")
    if words := unknown_words(answer):
        yield Text(words)


def _of_workloads(group: Iterable[PathDoubt]) -> list[PathDoubt]:
    """Return one answer for each workload: by all data paths that stand together it is the same."""
    return list({answer.workload.name: answer for answer in group}.values())


def _nominal(group: Sequence[PathDoubt]) -> str:
    """Return the rate with all figures as they are, and how long each workload takes at it."""
    times = {doubt.workload.name: time_words(doubt.answer) for doubt in _of_workloads(group)}
    rate = rate_words(group[0].answer)
    if len(times) == 1:
        return ", ".join(filter(None, (rate, *times.values())))
    timed = [f"{name} {time}" for name, time in times.items() if time]
    return ", ".join((rate, *timed))


def _range(group: Sequence[PathDoubt]) -> str:
    """Return between what rate and times lie, and what they are as figures are."""
    if len({doubt.workload.name for doubt in group}) == 1:
        return f"{range_words(group[0])}; as figures are, {_nominal(group)}"
    rates = "at most " * group[0].at_most + rates_between(group[0].rate_range or (0.0, 0.0))
    timed = [
        f"{doubt.workload.name} {times}"
        for doubt in _of_workloads(group)
        if (times := times_between(doubt))
    ]
    return f"{', '.join((rates, *timed))}; as figures are, {_nominal(group)}"


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
        right("at its least"),
        right("at its most"),
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
    if best is not None:
        how = measurement_of(best, answer)
        yield Text(f"{advice_words(answer)}{f' `{how.command}`; {how.then}.' if how else ''}")
