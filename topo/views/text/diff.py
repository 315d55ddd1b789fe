"""The page of `topo diff`: what differs in two machines, then their answers side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import FLAG, SLOT, quantity_of
from topo.catalogue.part import Figure, PeerCap, Ports, Slot
from topo.phrases import counted, listed, shortened, unnumbered
from topo.routes.search import by_name
from topo.views.sentences import pair_sentence, rate_words, time_words
from topo.views.text.answers import basis_note, limits_text
from topo.views.text.machine import figure_and_range, ports_text
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Row,
    Table,
    Text,
    Tone,
    figure_text,
    grouped,
    origin,
    right,
    sourced,
    table,
    title_of,
    wide,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.description.description import ModelNeed
    from topo.study.answers import PathAnswer
    from topo.study.diff import AnswerPair, Change, Diff, FieldChange
    from topo.study.inventory import Fact

_NONE: Final = "-"
_MOST_NAMES: Final = 8  # in a cell
_COMMA: Final = re.compile(r", (?![^\[]*\])")  # between names, not within a range
_WHAT_IT_IS: Final = ("part", "use", "cable")  # of what is added or gone the page says this alone
_TONES: Final[dict[str, Tone]] = {"faster": "good", "slower": "bad", "refused": "bad"}


def nothing_differs(diff: Diff) -> str:
    """Return the line for two machines that are alike."""
    answers = f", nor any of {counted(len(diff.answers), 'answer')}" * bool(diff.answers)
    return (
        f"{diff.before.name} and {diff.after.name} are the same: no device, link or figure differs"
        f"{answers}.\n"
    )


def diff_page(diff: Diff) -> Iterator[Block]:
    """Yield what differs, section by section, then each workload's answers before and after."""
    changes = diff.after.description.overrides
    changed = (f"{key}={value}" for key, value in changes.items() if isinstance(value, str))
    set_here = listed(changed, most=6)
    yield table(
        ("", wide()),
        (
            ("before", Cell(title_of(diff.before))),
            ("after", Cell(title_of(diff.after) + (f"; {set_here}" if set_here else ""))),
        ),
    )
    if not diff.changes:
        yield Text("Devices, links and figures are the same.")
    sources: dict[str, int] = {}  # each once, by a number that stands beside the figure
    for section, group in grouped(diff.changes, lambda change: change.section).items():
        yield Heading(section.capitalize())
        yield _changes(group, sources)
    if sources:
        yield Text("Where the figures come from:", dim=True)
        yield Bullets(tuple(f"[{number}] {source}" for source, number in sources.items()))
    for first, second in diff.workloads:
        workload = second or first
        assert workload is not None
        yield Heading(f"{workload.name}: {workload_sentence(workload)}")
        if first is None or second is None:
            side = (diff.after if first is None else diff.before).name
            only = "after" if first is None else "before"
            yield Text(f"Only {side}, {only}, has this workload.")
        elif workload_sentence(first) != workload_sentence(second):
            yield Text(f"Before it was {workload_sentence(first)}.")
        pairs = diff.pairs_of(workload)
        yield _answers(pairs, workload.need)
        yield Bullets(tuple(pair_sentence(pair) for pair in pairs if pair.before and pair.after))
    if diff.answers:
        yield basis_note(diff.basis)


def _changes(changes: list[Change], sources: dict[str, int]) -> Table:
    """Return the changes of one section; the sources of their figures are added to `sources`."""

    def cell(key: str, fact: Fact | None) -> str:
        """Return a value with the number of its source."""
        if fact is None:
            return _NONE
        text, source = fact_words(key, fact)
        if not source or key in _WHAT_IT_IS:
            return text
        return f"{text} [{sources.setdefault(source, len(sources) + 1)}]"

    rows: list[tuple[str, ...]] = []
    for before, after in _renamings(changes):
        count = f" ({len(before)})" * (len(before) > 1)
        cells = [shortened(names) for names in (before, after)]
        rows.append((sort_words("renamed"), f"{cells[0]}{count}", "name", *cells))
    for change in changes:
        if change.sort == "renamed":
            continue
        names = _bounded(change.names) + f" ({change.count})" * (change.count > 1)
        fields = change.fields
        another = change.sort == "changed" and any(field.key == "part" for field in fields)
        if change.sort in ("added", "gone"):
            fields = tuple(field for field in fields if field.key in _WHAT_IT_IS) or fields
        begin = [sort_words(change.sort), names]
        for field in fields:
            if another and _texts(field)[0] == _texts(field)[1]:
                continue  # another part has it from elsewhere
            values = (cell(field.key, fact) for fact in (field.before, field.after))
            rows.append((begin[0], begin[1], field.key, *values))
            begin = ["", ""]
        if not fields:
            rows.append((begin[0], begin[1], "", "", ""))
    columns = ("", wide("which"), "what", wide("before"), wide("after"))
    filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return table(
        [columns[place] for place in filled],
        (tuple(Cell(row[at]) if at == 1 else row[at] for at in filled) for row in rows),
    )


def _renamings(changes: Iterable[Change]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield old and new names, those together that only have another stem, in the same order."""
    by_stems: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for change in changes:
        if change.sort == "renamed":
            (name,) = change.fields
            pair = (change.names, "" if name.after is None else fact_words("name", name.after)[0])
            by_stems.setdefault((unnumbered(pair[0]), unnumbered(pair[1])), []).append(pair)
    for pairs in by_stems.values():
        olds, news = ([pair[side] for pair in pairs] for side in (0, 1))
        by_old = sorted(pairs, key=lambda pair: by_name(pair[0]))
        if sorted(news, key=by_name) == [new for _, new in by_old]:
            yield sorted(olds, key=by_name), sorted(news, key=by_name)
        else:
            yield from (([old], [new]) for old, new in pairs)


def _bounded(names: str) -> str:
    """Return names, the first of them where they are many."""
    texts = _COMMA.split(names)
    return listed(texts, most=_MOST_NAMES) if len(texts) > _MOST_NAMES else names


def sort_words(sort: str) -> str:
    """Return what became of something; that it was renamed nobody states."""
    return "probably renamed" if sort == "renamed" else sort


def _texts(field: FieldChange) -> list[str]:
    return [
        "" if fact is None else fact_words(field.key, fact)[0]
        for fact in (field.before, field.after)
    ]


def fact_words(key: str, fact: Fact) -> tuple[str, str]:
    """Return the value of a fact for people, and its kind and source."""
    if isinstance(fact, Figure):
        return figure_and_range(fact, quantity_of(key)), sourced(fact)
    if isinstance(fact, Slot):
        return SLOT.text(fact), origin(fact.kind, fact.source)
    if isinstance(fact, Ports):
        return ports_text(fact)
    if isinstance(fact, PeerCap):
        return figure_text(fact.rate) + " a flow" * fact.per_flow, sourced(fact.rate)
    return fact.text or str(FLAG.text(fact.flag)), fact.source


# --- answers --------------------------------------------------------------------------------------


def _answers(pairs: Iterable[AnswerPair], need: ModelNeed | None) -> Table:
    rows: list[Row] = []
    for pair in pairs:
        sides = [_column(path, need) for path in (pair.before, pair.after)]
        labels = [
            label
            for label in dict.fromkeys(chain(*sides))
            if any(side.get(label) for side in sides)
        ]
        for place, label in enumerate(labels):
            before, after = (side.get(label) or _NONE for side in sides)
            change = ""
            if label == "rate" and pair.times_as_fast is not None:
                change = "same" if pair.outcome == "same" else f"x {pair.times_as_fast:.3g}"
            tone = _TONES.get(pair.outcome, "plain")
            strong = label in ("rate", "time")
            rows.append(
                (
                    Cell(pair.data_path) if place == 0 else "",
                    label,
                    Cell(before) if strong else before,
                    Cell(after) if strong else after,
                    Cell(change, tone),
                )
            )
    return table(("by", "", wide("before"), wide("after"), right("")), rows)


def _column(path: PathAnswer | None, need: ModelNeed | None) -> dict[str, str]:
    if path is None:
        return {}
    refused = path.rate is None
    of_need: dict[str, str] = {}
    if need is not None:
        from topo.views.needs import need_rows  # most workloads move nothing for a model

        of_need = need_rows(path, need)
    return {
        "verdict": path.verdict,
        "rate": rate_words(path),
        "time": time_words(path),
        **of_need,
        "RAM traversals": "" if refused else str(path.counts.ram_traversals),
        "limited by": "" if refused else limits_text(path),
    }
