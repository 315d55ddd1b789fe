"""The page of `topo failures`: what each failure leaves, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from topo.phrases import listed
from topo.study.needs import Feeding
from topo.units import format_duration, format_rate, format_ratio
from topo.views.needs import fed_words
from topo.views.resources import classes_of
from topo.views.sentences import ENDPOINT_WORDS, sentences
from topo.views.text.answers import at_least, basis_note
from topo.views.text.page import (
    Block,
    Cell,
    Heading,
    Row,
    Text,
    right,
    table,
    title_of,
    wide,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.study.answers import PathAnswer
    from topo.study.failures import Failures, Loss

_NONE = "-"


def failures_page(failures: Failures, most: int) -> Iterator[Block]:
    """Yield a table of what each failure leaves, at most so many rows.

    Parameters
    ----------
    failures
        The answer.
    most
        Rows to show; the others are counted.
    """
    answer = failures.answer
    yield Heading(title_of(failures.topology))
    asked = f"{failures.workload.name} by {answer.name}: {workload_sentence(failures.workload)}"
    yield Heading(asked)
    if answer.rate is None:
        why = (reason.text for reason in answer.reasons if reason.effect == "refused")
        yield Text(f"It is refused with nothing failed: {listed(why, most=4)}.")
        return
    time = "" if answer.time is None else f", {at_least(answer.time, answer)}"
    bound = "at most " * answer.at_most
    fed = f", {fed_words(answer)} fed" if isinstance(answer.met, Feeding) else ""
    yield Text(f"With nothing failed: {bound}{format_rate(answer.rate)}{time}{fed}.")
    losses = failures.losses
    harmless = [
        loss for loss in losses if not loss.stopped_count and loss.rate >= answer.rate * (1 - 1e-9)
    ]
    harmful = losses[: len(losses) - len(harmless)]
    rows = [_row(loss, answer) for loss in harmful[:most]]
    if rows:
        columns = (
            wide("fails"),
            right("of"),
            right("rate left"),
            right("of it"),
            *([right("fed")] if isinstance(answer.met, Feeding) else []),
            *([right("time")] if answer.time is not None else []),
            wide("stops"),
            wide("limited by"),
        )
        yield table(columns, rows)
    if len(harmful) > most:
        yield Text(f"{len(harmful) - most} more lose something: --top shows more.")
    if harmless:
        names = (_failing(loss) for loss in harmless)
        yield Text(f"Nothing is lost with {listed(names, 'or', most=8)} out of order.")
    yield basis_note(failures.basis)


def _failing(loss: Loss) -> str:
    """Return what fails: one of some that are alike, or a cable of a link."""
    return " and ".join(
        f"{'a cable of ' * (part.kind == 'link')}{part.names if part.count == 1 else part.first}"
        for part in loss.parts
    )


def _row(loss: Loss, answer: PathAnswer) -> Row:
    assert answer.rate is not None
    assert answer.matrix is not None
    names = "\nand ".join(
        f"{'cable of ' * (part.kind == 'link')}{part.names}" for part in loss.parts
    )
    counts = "\n".join(str(part.count) for part in loss.parts)
    singular, plural = ENDPOINT_WORDS[answer.data_path.near_end]
    stops = ", ".join(loss.stopped) or _NONE
    if loss.stopped_count == sum(demand.count for demand in answer.matrix.demands):
        stops = (
            f"all {loss.stopped_count} {plural}" if loss.stopped_count > 1 else f"the {singular}"
        )
    elif loss.stopped_count > 1:
        stops += f" ({loss.stopped_count})"
    return (
        Cell(names),
        counts,
        Cell("at most " * loss.at_most + format_rate(loss.rate)),
        format_ratio(loss.rate / answer.rate),
        *([_fed(loss, answer.met)] if isinstance(answer.met, Feeding) else []),
        *([] if answer.time is None else [_time(loss)]),
        stops,
        classes_of(loss.bound) or listed(sentences(loss.own_limits)) or _NONE,
    )


def _fed(loss: Loss, feeding: Feeding) -> str:
    if feeding.unknown == feeding.count:
        return f"unknown of {feeding.count}"
    return f"{'at most ' * loss.at_most}{loss.fed} of {feeding.count}"


def _time(loss: Loss) -> str:
    if loss.time is None:
        return _NONE
    return "at least " * loss.at_most + format_duration(loss.time)
