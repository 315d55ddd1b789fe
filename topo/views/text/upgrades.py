"""The page that ranks changes: what gains, what does not, what is not possible."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.phrases import counted, listed
from topo.study.needs import Checkpointing, Feeding
from topo.views.needs import long_words
from topo.views.sentences import upgrade_reason
from topo.views.text.answers import at_least, basis_note, bound_words, compare_command
from topo.views.text.page import (
    Block,
    Bullets,
    Column,
    Heading,
    Row,
    Text,
    right,
    table,
    title_of,
    wide,
)

if TYPE_CHECKING:
    from topo.study.upgrade import Outcome, Upgrade, Upgrades

_WHOLE: Final = 0.005  # of the time: below it a whole percent says nothing


def upgrades_page(upgrades: Upgrades, *, most: int) -> Iterator[Block]:
    """Yield what each change would make of the time, best first, and what was rejected."""
    names = ", ".join(workload.name for workload in upgrades.workloads)
    now = upgrades.now
    yield Heading(title_of(upgrades.topology))
    yield Text(
        f"{names} by {upgrades.via} now: {_as_it_is(now)}, limited by {bound_words(now.bound)}."
    )
    rows = upgrades.best_rows(most)
    if not any(len(upgrade.parts) == 1 for _, group in upgrades.rows for upgrade in group):
        two = "; two together do:" if rows else ", nor do two together."
        yield Text(f"No change alone gains anything{two}")
    priced = any(upgrade.cost is not None for upgrade in upgrades.ranked)
    columns: list[Column | str] = [right("")]
    columns += [right(name) for name in (now.times if len(now.times) > 1 else _measures(now))]
    columns += [right("change"), *([right("cost")] if priced else [])]
    if rows:
        yield table(
            (*columns, wide("what"), wide("limited by")),
            (
                _upgrade_row(number, title, group[0], upgrades, priced=priced)
                for number, (title, group) in enumerate(rows, start=1)
            ),
        )
    if isinstance(now.met, Feeding) and any(_beyond(group[0].outcome) for _, group in rows):
        here = f"{now.met.count} are here" if now.met.count > 1 else "one is here"
        yield Text(f"Feeds: how many like these have their share; {here}.", dim=True)
    number = len(upgrades.rows)
    if number > most:
        yield Text(f"And {number - most} more: --most {number} shows all.", dim=True)
    for useless, gains, gain in (
        (upgrades.without_gain, "alone gains nothing", "alone gain nothing"),
        (upgrades.slower, "alone takes longer", "alone take longer"),
    ):
        changes = sum(len(group) for _, group in useless)
        if useless:
            titles = "; ".join(title for title, _ in useless)
            these = f"{counted(changes, 'other change')} {gains if changes == 1 else gain}"
            yield Text(f"{these}: {titles}.", hang=2)
    if upgrades.unasked:
        are = "candidate was" if upgrades.unasked == 1 else "candidates were"
        yield Text(
            f"{upgrades.unasked} {are} not asked: alike to others by symmetry, or too many for a "
            "machine of this size.",
            dim=True,
        )
    best = upgrades.ranked[0] if upgrades.ranked else None
    if best is not None and best.outcome.time < now.time:
        yield Text(_to_see(upgrades, best), hang=2)
    if upgrades.rejected:
        yield Heading("Not possible")
        yield Bullets(tuple(f"{'; '.join(titles)}: {why}" for why, titles in upgrades.obstacles))
    yield basis_note(upgrades.basis)


def _to_see(upgrades: Upgrades, best: Upgrade) -> str:
    """Return the command that shows a change, or that it is too long to be copied."""
    first, *others = upgrades.workloads
    by_name = f"--{first.need.asks}" if first.need and first.place is None else "--workload"
    named = [by_name, first.name] if first.place or first.need else []
    ends = [(f"--{side}", name) for side, name in upgrades.ends.items() if name]
    asked = ["--together"] if others else [*named, *chain(*ends)]
    asked += ["--via", best.via or upgrades.via]
    command = compare_command(
        upgrades.topology, asked, upgrades.basis, upgrades.policy, best.changes
    )
    if not command:
        return f"The first has {len(best.changes)} overrides: --json names them."
    return f"To see the first for yourself: {command}"


def _upgrade_row(
    number: int, title: str, upgrade: Upgrade, upgrades: Upgrades, *, priced: bool
) -> Row:
    change = upgrade.outcome.time / upgrades.now.time - 1.0
    if upgrade.outcome.rate is not None:
        change = upgrades.now.time / upgrade.outcome.time - 1.0
    share = f"{change * 100:{'+.0f' if abs(change) >= _WHOLE else '+.2f'}} %"
    cost = "-" if upgrade.cost is None else f"{upgrade.cost:,.0f}"
    return (
        str(number),
        *_outcome(upgrade.outcome, upgrades.now),
        f"{share} at best" if upgrade.outcome.at_most and not upgrades.now.at_most else share,
        *((cost,) if priced else ()),
        title + f", with {listed(upgrade.cables)}" * bool(upgrade.cables),
        upgrade_reason(upgrades, upgrade),
    )


def _measures(now: Outcome) -> tuple[str, ...]:
    """Return what is said of one workload with each change, in a word each."""
    if isinstance(now.met, Checkpointing):
        return ("time", "lost a day")
    if now.rate is None:
        return ("time",)
    return ("rate",) if now.met is None else ("rate", "feeds")


def _as_it_is(now: Outcome) -> str:
    """Return the times as things are, or what all could get and whom that feeds."""
    if isinstance(now.met, Checkpointing):
        lost = "at least " * now.at_most + long_words(now.met.lost)
        return f"{now.words}, {lost} lost a day"
    if now.rate is not None and now.met is None:
        return now.words
    if now.met is not None and now.met.unknown == now.met.count:
        return f"{now.words} in all, and how many that feeds is unknown"
    if now.met is not None:
        count = now.met.count
        fed = f"{min(_feeds(now.met), count)} of {count} fed"
        enough = f", enough for {_feeds(now.met)}" * (_feeds(now.met) > count)
        return f"{fed}, {now.words} in all{enough}"
    if len(now.times) == 1:
        return at_least(now.time, now)
    return ", ".join(f"{name} {at_least(time, now)}" for name, time in now.times.items())


def _outcome(outcome: Outcome, now: Outcome) -> Iterator[str]:
    """Yield the times, or what all could get and how many accelerators that feeds, and more."""
    if outcome.rate is not None and outcome.met is None:
        yield outcome.words
        return
    if isinstance(outcome.met, Checkpointing):
        yield outcome.words
        yield "at least " * outcome.at_most + long_words(outcome.met.lost)
        return
    if outcome.met is None or not isinstance(now.met, Feeding):
        yield from (at_least(time, outcome) for time in outcome.times.values())
        return
    yield outcome.words
    if outcome.met.unknown == outcome.met.count:
        yield "unknown"
        return
    feeds = _feeds(outcome.met)
    yield f"{'at most ' * outcome.at_most}{feeds} ({feeds - _feeds(now.met):+})"


def _beyond(outcome: Outcome) -> bool:
    """Return whether more are fed than there are."""
    return isinstance(outcome.met, Feeding) and _feeds(outcome.met) > outcome.met.count


def _feeds(feeding: Feeding) -> int:
    """Return how many are fed; where all are, how many like them would be."""
    return feeding.fed if feeding.fed < feeding.count else max(feeding.fed, feeding.room or 0)
