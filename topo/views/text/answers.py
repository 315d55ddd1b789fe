"""Pages that answer a question: compare and bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.phrases import listed, shortened
from topo.units import format_duration, format_rate, format_ratio, format_size
from topo.views.sentences import at_once_sentence, binds, class_words, sentence, sentences
from topo.views.text.page import Bullets, Cell, Column, Heading, Table, Text
from topo.views.text.shares import explanation_blocks
from topo.views.text.words import sourced, spanned, title_of, verdict_cell, workload_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from topo.description.description import Basis
    from topo.study import (
        AtOnce,
        Bottleneck,
        Comparison,
        Explanation,
        Ladder,
        PathAnswer,
        WorkloadAnswer,
    )
    from topo.topology.topology import Topology
    from topo.views.text.page import Block


_NONE: Final = "-"
_MOST: Final = 4  # names in a list before "and 3 more"
_ABREAST: Final = 4  # data paths side by side that 100 characters hold
_BASES: Final[tuple[Basis, ...]] = ("theoretical", "achievable", "measured")


# --- compare ------------------------------------------------------------------------------------


def comparison_page(found: Comparison, meeting: AtOnce | None = None) -> Iterator[Block]:
    """Yield a comparison: for each workload the paths side by side, their ways, what follows.

    `meeting` adds what happens when all workloads run at once.
    """
    yield Heading(title_of(found.topology))
    for answer in found.workloads:
        yield Heading(f"{answer.workload.name}: {workload_sentence(answer.workload)}")
        for paths in _abreast(answer.paths):
            yield _table(answer, paths, found.basis)
        yield _ways(answer)
        if answer.insights:
            yield Bullets(sentences(answer.insights))
    if meeting is not None:
        yield Text(at_once_sentence(meeting))
    yield Text(basis_note(found.basis), dim=True)
    if any(path.ram_traffic for answer in found.workloads for path in answer.paths):
        yield Text(
            "`through RAM buffers` counts each stay of the payload once, `on the memory buses` "
            "every write and read (no cache hits, streaming stores). Their times are the least "
            "that all memories together need, with nothing else to do.",
            dim=True,
        )


def _abreast(paths: tuple[PathAnswer, ...]) -> Iterator[tuple[PathAnswer, ...]]:
    """Yield the paths of one table after another, about as many in each."""
    tables = -(-len(paths) // _ABREAST)
    size = -(-len(paths) // max(tables, 1))
    for start in range(0, len(paths), size):
        yield paths[start : start + size]


def basis_note(basis: Basis) -> str:
    """Say what the figures of a page are."""
    if basis == "theoretical":
        return (
            "Rates are theoretical: formula or datasheet, encoding taken off, protocol overhead "
            "not. --at achievable and --at measured take the other figures."
        )
    if basis == "achievable":
        return "Rates are achievable: theoretical figures times the efficiency of medium or part."
    return "Rates are measured where somebody measured, else achievable, else theoretical."


def _table(answer: WorkloadAnswer, paths: tuple[PathAnswer, ...], basis: Basis) -> Table:
    rows: list[tuple[str | Cell, ...]] = [
        ("verdict", *(verdict_cell(path.verdict) for path in paths))
    ]
    for label, cell in _ROWS:
        cells = tuple(cell(path, basis) for path in paths)
        if label == "rate" or any(text != _NONE for text in cells):
            strong = label in _STRONG
            rows.append((label, *(Cell(text) if strong else text for text in cells)))
    if answer.workload.efficiency and any(path.time_range for path in paths):
        rows.insert(_place_of(rows, "time") + 1, _range_row(answer, paths))
    rows += _basis_rows(paths, basis)
    columns = (Column(), *(Column(path.name, breaks=True) for path in paths))
    return Table(columns, tuple(row for row in rows if any(cell != _NONE for cell in row[1:])))


def _place_of(rows: list[tuple[str | Cell, ...]], label: str) -> int:
    return next(place for place, row in enumerate(rows) if row[0] == label)


def _range_row(answer: WorkloadAnswer, paths: tuple[PathAnswer, ...]) -> tuple[str, ...]:
    assert answer.workload.efficiency is not None
    low, high = answer.workload.efficiency
    label = f"time at {format_ratio(low).removesuffix(' %')}-{format_ratio(high)}"
    return (label, *(_time_range(path) for path in paths))


def _time_range(path: PathAnswer) -> str:
    if path.time_range is None:
        return _NONE
    fast, slow = path.time_range
    return "at least " * path.at_most + f"{format_duration(fast)} to {format_duration(slow)}"


def _basis_rows(paths: tuple[PathAnswer, ...], basis: Basis) -> Iterator[tuple[str, ...]]:
    for other in _BASES:
        if other != basis and any(path.rate is not None for path in paths):
            yield (f"rate, {other}", *(_rate_at(path, other) for path in paths))


def _rate_at(path: PathAnswer, basis: Basis) -> str:
    if path.rate is None:
        return _NONE
    rate = path.rate_at(basis)
    if rate is None:
        return "nothing measured"
    return "at most " * path.at_most_at(basis) + format_rate(rate)


def _hops(path: PathAnswer, _: Basis) -> str:
    return spanned(path.hops_range) if path.rate is not None else _NONE


def _links(path: PathAnswer, _: Basis) -> str:
    return spanned(path.links_range) if path.rate is not None else _NONE


def _counted(path: PathAnswer, count: int) -> str:
    return str(count) if path.rate is not None else _NONE


def _ram(path: PathAnswer, _: Basis) -> str:
    return _traffic(path.ram_traffic, path.ram_floor)


def _dram(path: PathAnswer, _: Basis) -> str:
    return _traffic(path.dram_bytes, path.dram_floor)


def _traffic(size: float | None, floor: float | None) -> str:
    if not size:
        return _NONE
    return format_size(size) + (f", {format_duration(floor)} or more" if floor else "")


def _rate(path: PathAnswer, _: Basis) -> str:
    if path.rate is None:
        return _NONE
    return "at most " * path.at_most + format_rate(path.rate)


def _each(path: PathAnswer, _: Basis) -> str:
    """Return what each GPU gets, or from the slowest to the fastest."""
    if len(path.rates) < 2:  # noqa: PLR2004  (one GPU has the rate above)
        return _NONE
    slowest, fastest = (format_rate(find(path.rates.values())) for find in (min, max))
    return slowest if slowest == fastest else f"{slowest} to {fastest}"


def _time(path: PathAnswer, _: Basis) -> str:
    if path.time is None:
        return _NONE
    return "at least " * path.at_most + format_duration(path.time)


def _limits(path: PathAnswer, basis: Basis) -> str:
    full = (_limit(kind, group, basis) for kind, group in _classes(path.bottlenecks))
    return "\n".join([*full, *sentences(path.own_limits)])


def _limit(kind: str, group: Sequence[Bottleneck], basis: Basis) -> str:
    """Return one class of full resources: names, what each has, what kind of figure it is."""
    rates = dict.fromkeys(format_rate(one.capacity) for one in group)
    kinds = dict.fromkeys(one.resource.capacity.at(basis).kind for one in group)
    each = " each" if len(group) > 1 and len(rates) == 1 else ""
    names = shortened(one.resource.name for one in group)
    return (
        f"{class_words(kind, len(group))}: {names}, {' and '.join(rates)}{each} "
        f"({', '.join(kinds)})"
    )


def _classes(bottlenecks: Sequence[Bottleneck]) -> list[tuple[str, list[Bottleneck]]]:
    groups: dict[str, list[Bottleneck]] = {}
    for one in bottlenecks:
        groups.setdefault(one.resource.kind, []).append(one)
    return list(groups.items())


def _limited(path: PathAnswer, basis: Basis) -> str:
    return _limits(path, basis) or _NONE


def _cores(path: PathAnswer, _: Basis) -> str:
    if path.cores is None:
        return _NONE
    kind = path.cores.source.partition(":")[0]
    return f"{path.cores.cores:.3g} ({kind}: {format_rate(path.cores.rate_per_core)} a core)"


def _serial(path: PathAnswer, _: Basis) -> str:
    return format_rate(path.serial_rate) if path.serial_rate is not None else _NONE


_ROWS: Final[tuple[tuple[str, Callable[[PathAnswer, Basis], str]], ...]] = (
    ("hops", _hops),
    ("links walked", _links),
    ("RAM traversals", lambda path, _: _counted(path, path.counts.ram_traversals)),
    ("CPU memory copies", lambda path, _: _counted(path, path.counts.cpu_memory_copies)),
    ("copies by a core", lambda path, _: _counted(path, path.counts.core_copies)),
    ("through RAM buffers", _ram),
    ("on the memory buses", _dram),
    ("rate", _rate),
    ("each GPU", _each),
    ("time", _time),
    ("limited by", _limited),
    ("cores busy copying", _cores),
    ("one worker a GPU", _serial),
)
_STRONG: Final = ("rate", "time")


def _ways(answer: WorkloadAnswer) -> Table:
    """Return the way of each path as a line of arrows, RAM buffers marked."""
    return Table(
        (Column(), Column(breaks=True)),
        tuple((path.name, _way(path)) for path in answer.paths),
    )


def _way(path: PathAnswer) -> str:
    if path.rate is None:
        why = (reason.text for reason in path.reasons if reason.effect == "refused")
        return f"refused: {shortened(why)}"
    waypoints = path.routes[0].waypoints
    return " -> ".join(f"{one} (RAM)" if one in path.counts.buffers else one for one in waypoints)


# --- bottleneck ---------------------------------------------------------------------------------


def bottleneck_page(
    topology: Topology, found: Ladder, explained: Explanation | None = None
) -> Iterator[Block]:
    """Yield what binds, by how much, who is stopped, the ladder, and what stands behind it."""
    path, workload = found.answer, found.workload
    yield Heading(title_of(topology))
    yield Heading(f"{workload.name} by {path.name}: {workload_sentence(workload)}")
    if path.rate is None:
        yield Text(sentence(found.end))
        return
    yield Text(_sentence(path))
    if path.bottlenecks:
        yield _binding(path, found.basis)
    if found.rungs:
        yield Heading("The ladder: what binds, and what would bind next")
        yield _ladder(found)
    yield Text(f"It ends there: {sentence(found.end)}.")
    if explained is not None:
        yield from explanation_blocks(explained)
    yield Text(basis_note(found.basis), dim=True)


def _sentence(found: PathAnswer) -> str:
    assert found.rate is not None
    start = "at most " * found.at_most + f"{format_rate(found.rate)} in all"
    if found.time is not None:
        start += ", " + "at least " * found.at_most + format_duration(found.time)
    if not found.bottlenecks:
        limits = listed(sentences(found.own_limits), most=_MOST)
        return f"{start}: no capacity is full; it stops at {limits}."
    words = [class_words(kind, len(group)) for kind, group in _classes(found.bottlenecks)]
    tie = " together (a tie)" if len(words) > 1 else ""
    bind = binds(one.resource for one in found.bottlenecks)
    return f"{start}: {listed(words, most=_MOST)} {bind}{tie}."


def _binding(found: PathAnswer, basis: Basis) -> Table:
    """Return the full resources, those that differ in nothing but their names on one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in found.bottlenecks:
        row = (
            format_rate(one.load),
            format_rate(one.capacity),
            shortened(name.rpartition(" ")[2] for name in one.stops),
            sourced(one.resource.capacity.at(basis)),
        )
        groups.setdefault((one.resource.kind, *row), []).append(one.resource.name)
    rows: list[tuple[str | Cell, ...]] = []
    for (_, load, capacity, stops, source), names in groups.items():
        each = " each" * (len(names) > 1)
        rows.append((Cell(shortened(names)), load + each, capacity + each, stops, source))
    columns = (
        Column("full", breaks=True),
        Column("load", right=True),
        Column("capacity", right=True),
        Column("stops", breaks=True),
        Column("the capacity's source", breaks=True),
    )
    return Table(columns, tuple(rows))


def _ladder(ladder: Ladder) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for number, rung in enumerate(ladder.rungs, start=1):
        for place, (kind, group) in enumerate(rung.classes):
            rows.append(
                (
                    "" if place else str(number),
                    "" if place else Cell(format_rate(rung.rate)),
                    class_words(kind, len(group)),
                    shortened(one.resource.name for one in group),
                )
            )
    columns = (
        Column("step", right=True),
        Column("rate", right=True),
        Column("limited by"),
        Column("namely", breaks=True),
    )
    return Table(columns, tuple(rows))
