"""The page of a sweep: how many designs, what each price buys, the best, what limits, why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import AMOUNT
from topo.phrases import counted, listed
from topo.study.front import COST
from topo.study.variants import prices_of
from topo.units import format_duration, format_rate
from topo.views.text.answers import basis_note, compare_command
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
    from topo.study.front import Placed, Swept
    from topo.study.sweep import Sweep
    from topo.study.variants import Outcome


_MOST_REASONS: Final = 8


def sweep_page(swept: Swept, *, most: int) -> Iterator[Block]:
    """Yield what a sweep found, `most` rows of each table."""
    sweep = swept.sweep
    yield Heading(title_of(sweep.topology))
    sizes = " x ".join(f"{len(axis.choices)} {axis.name}" for axis in sweep.axes)
    verdicts = listed(f"{count:,} {verdict}" for verdict, count in swept.verdicts.items())
    yield Text(f"{_designs(len(swept.outcomes))}: {sizes}; {verdicts}.", hang=2)
    if swept.front:
        yield Heading(f"{_BEST[swept.aim]} for each {swept.against}")
        yield _table(swept, swept.front[:most])
        if len(swept.front) > most:
            yield _more(len(swept.front), most)
        if swept.against == COST:
            yield Text(_priced_words(swept), dim=True, hang=2)
    if swept.best:
        yield Heading(_BEST[swept.aim])
        yield _table(swept, swept.best[:most])
        if len(swept.best) > most:
            yield _more(len(swept.best), most)
        yield from _command(sweep, swept.best[0])
        yield Heading("What limits")
        yield table(
            (right("designs"), wide("limited by")),
            ((f"{count:,}", names or "-") for names, count in _first(swept.limits, most)),
        )
    if swept.reasons:
        yield Heading("Not possible")
        reasons = _first(swept.reasons, _MOST_REASONS)
        bullets = [f"{_designs(count)}: {reason}" for reason, count in reasons]
        if (left := len(swept.reasons) - len(bullets)) > 0:
            bullets.append(f"and {counted(left, 'reason')} more: the rows have them all")
        yield Bullets(tuple(bullets))
    if swept.without_effect:
        yield Text(
            f"Without effect on verdict, rate and limits here: {listed(swept.without_effect)}.",
            hang=2,
        )
    if any("at" in axis.keys for axis in sweep.axes):
        yield Text("Which figures a rate is made of is what `at` says in each design.", dim=True)
    elif swept.placed:
        yield basis_note(sweep.question.at)


_BEST: Final[Mapping[str, str]] = {"time": "Least time", "rate": "Highest rate"}


def _first(counts: Mapping[str, int], most: int) -> list[tuple[str, int]]:
    return list(counts.items())[:most]


def _designs(count: int) -> str:
    return f"{count:,} design{'s' * (count != 1)}"


def _more(count: int, most: int) -> Text:
    return Text(f"And {count - most} more: --top {count} shows all.", dim=True)


def _table(swept: Swept, rows: Iterable[Placed]) -> Block:
    """Return designs under columns: what each takes, what it gives, what it is."""
    taken = [right(swept.against)] if swept.against == COST else []
    feeds = [right("would feed")] if _feeds(swept) else []
    columns = (*taken, right("time"), right("rate"), *feeds, right("design"), wide("with"))
    return table(
        (*columns, wide("limited by"), right("alike")),
        (_row(swept, placed) for placed in rows),
    )


def _row(swept: Swept, placed: Placed) -> Row:
    outcome = placed.outcome
    time = "-" if outcome.time is None else format_duration(outcome.time)
    rate = "-" if outcome.rate is None else format_rate(outcome.rate)
    cost = "-" if placed.taken is None else AMOUNT.text(placed.taken)
    return (
        *([cost] if swept.against == COST else []),
        Cell(f"{'at least ' * outcome.at_most}{time}"),
        f"{'at most ' * outcome.at_most}{rate}",
        *((_fed(outcome),) if _feeds(swept) else ()),
        str(placed.number),
        design_words(swept.sweep, placed.number),
        outcome.limited_by or "-",
        f"{placed.alike:,}" if placed.alike else "",
    )


def _feeds(swept: Swept) -> bool:
    """Whether it is known of some design how many accelerators it would feed."""
    return any(outcome.would_feed is not None for outcome in swept.outcomes.values())


def _fed(outcome: Outcome) -> str:
    if outcome.would_feed is None:
        return "-"
    return f"{'at most ' * outcome.at_most}{outcome.would_feed}"


def design_words(sweep: Sweep, number: int) -> str:
    """Return what a design takes of each axis: ``ram.channels 12, via direct``."""
    pairs = zip(sweep.axes, sweep.design(number), strict=True)
    return ", ".join(f"{axis.name} {choice.label}" for axis, choice in pairs)


def _priced_words(swept: Swept) -> str:
    topology = swept.topology
    counts = {name: topology.cell_size(name) for name in topology.devices}
    priced = sum(counts[name] for name, price in prices_of(topology).items() if price is not None)
    words = (
        "The cost is the sum of the prices that the file states, in its currency; before anything "
        f"is varied {priced:,} of {sum(counts.values()):,} devices have one."
    )
    if open_cost := sum(placed.taken is None for placed in swept.placed):
        have = "has" if open_cost == 1 else "have"
        words += f" {_designs(open_cost)} {have} no cost: a part that is put in has no price."
    return words


def _command(sweep: Sweep, best: Placed) -> Iterator[Block]:
    """Yield the command that shows the best design for itself."""
    question = sweep.asked_of(sweep.design(best.number))
    of_question = {
        "--needs": question.needs,
        "--checkpoint": question.checkpoint,
        "--from": question.source,
        "--to": question.target,
    }
    named = [(option, word) for option, word in of_question.items() if word]
    named = named or [("--workload", best.outcome.workload)]
    asked = chain(*named, ("--via", best.outcome.via))
    changes = sweep.changes_of(sweep.design(best.number))
    command = compare_command(sweep.topology, asked, question.at, question.policy, changes)
    if command:
        yield Text(f"To see the first for yourself: {command}", hang=2)
