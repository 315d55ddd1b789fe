"""Pages that answer a question: compare, bottleneck, measure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.datapaths.registry import count
from topo.description.description import BASES, Basis
from topo.phrases import and_more, listed, ranges, shortened
from topo.study.insights import CoresBusy, NeedMet, ThroughRam
from topo.units import format_duration, format_rate, format_ratio, format_size
from topo.views.prices import price_sentences
from topo.views.resources import binds, class_words, limited_by, number_of
from topo.views.sentences import (
    ENDPOINT_WORDS,
    at_once_sentence,
    bus_rate_words,
    limit_words,
    measured_ends,
    rate_words,
    sentence,
    sentences,
    time_words,
)
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Row,
    Table,
    Text,
    Tone,
    capitalized,
    grouped,
    right,
    sourced,
    spanned,
    table,
    title_of,
    verdict_cell,
    wide,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.routes.route import Policy
    from topo.study.answers import (
        Bottleneck,
        Comparison,
        Ladder,
        PathAnswer,
        Rung,
        WorkloadAnswer,
    )
    from topo.study.prediction import Judged, Reading
    from topo.study.prices import Explanation, Use
    from topo.study.timeline import AtOnce, Run, Simulation
    from topo.study.upgrade import Outcome
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


_NONE: Final = "-"
_UNMEASURED: Final = "nothing measured"
_MOST_OVERRIDES: Final = 20  # in a command to copy
_MOST_NAMES: Final = 8  # ranges of what binds, of one class
_MOST_UNKNOWN: Final = 3  # names in a table before "and 2 more"
_ABREAST: Final = 4  # data paths side by side that 100 characters hold
_BASIS_NOTES: Final[Mapping[Basis, str]] = {
    "theoretical": "Rates are theoretical: formula or datasheet, encoding taken off, protocol "
    "overhead not. --at achievable and --at measured take the other figures.",
    "achievable": "Rates are achievable: theoretical figures times the efficiency of medium or "
    "part, which is what was seen of others: a machine can be a little above.",
    "measured": "Rates are measured where somebody measured, else achievable, else theoretical.",
}


def basis_note(basis: Basis) -> Text:
    """Return what the figures of a page are."""
    return Text(_BASIS_NOTES[basis], dim=True)


def bound_words(resources: Iterable[Resource]) -> str:
    """Return "the cards' chips: slot[1-2]/chip" for resources by class."""
    words = []
    for kind, group in grouped(resources, lambda resource: resource.kind).items():
        named = {resource.name: resource for resource in group}
        words.append(f"{class_words(kind, number_of(named.values()))}: {shortened(named)}")
    return "; ".join(words) or "their own limits"


def stopped_words(stopped_by: Sequence[Resource]) -> str:
    """Return what stops a demand: full resources by class, else itself."""
    return bound_words(stopped_by) if stopped_by else "its own limit"


def compare_command(
    topology: Topology,
    asked: Iterable[str],
    basis: Basis,
    policy: Policy,
    changes: Mapping[str, str],
) -> str:
    """Return the ``topo compare`` that asks the same of a changed machine; empty if it is too long.

    Parameters
    ----------
    topology
        The machine before `changes`, with overrides of its own and what is out of order.
    asked
        The options that say what is asked.
    basis, policy
        How it is asked.
    changes
        What ``--set`` changes besides.
    """
    stated = topology.description.overrides.items()
    overrides = {key: value for key, value in stated if isinstance(value, str)} | dict(changes)
    if len(overrides) > _MOST_OVERRIDES:
        return ""
    name, file = topology.name, topology.description.file
    built_in = file in ("", f"topologies/{name}.yaml")
    choices = (
        ("--at", basis, "theoretical"),
        ("--nics", policy.nics, "nearest"),
        ("--routes", policy.routes, "spread"),
        ("--pairing", policy.pairing, ""),
    )
    options = [
        *((option, choice) for option, choice, usual in choices if choice != usual),
        *(("--buffers", f"{buffer}={place}") for buffer, place in policy.buffers),
        *(("--set", f"{key}={value}") for key, value in overrides.items()),
        *(("--without", lost) for lost in topology.description.lost),
    ]
    words = chain.from_iterable(options)
    return shlex.join(["topo", "compare", name if built_in else file, *asked, *words])


# --- compare ------------------------------------------------------------------------------------


def comparison_page(comparison: Comparison, meeting: AtOnce | None = None) -> Iterator[Block]:
    """Yield a comparison: for each workload the paths side by side, their ways, what follows.

    `meeting` adds what happens when all workloads run at once.
    """
    yield Heading(title_of(comparison.topology))
    for answer in comparison.workloads:
        yield Heading(f"{answer.workload.name}: {workload_sentence(answer.workload)}")
        # As many tables as are needed, about as many paths in each; of what is refused there is
        # nothing to say but why.
        possible = [path for path in answer.paths if path.rate is not None] or answer.paths
        tables = max(-(-len(possible) // _ABREAST), 1)
        size = -(-len(possible) // tables)
        for start in range(0, len(possible), size):
            paths = possible[start : start + size]
            columns = [_column(path, answer, comparison.basis) for path in paths]
            rows: list[Row] = [("verdict", *(verdict_cell(path.verdict) for path in paths))]
            rate = "algbw" if answer.workload.collective else "rate"
            for label in columns[0]:  # a row of which nothing is known for any is left out
                texts = [column[label] or _NONE for column in columns]
                if label == "rate" or not set(texts) <= {_NONE, _UNMEASURED}:
                    strong = label in ("rate", "busbw", "time")
                    name = label.replace("rate", rate)
                    rows.append((name, *(map(Cell, texts) if strong else texts)))
            yield table(("", *(wide(path.name) for path in paths)), rows)
        yield table(("", wide()), ((path.name, _way(path)) for path in answer.paths))
        if words := tuple(_beside_table(answer)):
            yield Bullets(words)
    if meeting is not None:
        yield Text(at_once_sentence(meeting))
    yield basis_note(comparison.basis)
    if any(path.ram_traffic for answer in comparison.workloads for path in answer.paths):
        yield Text(
            "`through RAM buffers` counts each stay of the payload once, `on the memory buses` "
            "every write and read (no cache hits, streaming stores). Their times are the least "
            "that all memories together need, with nothing else to do.",
            dim=True,
        )


def _beside_table(answer: WorkloadAnswer) -> Iterator[str]:
    """Yield what follows from the paths of an answer, without what its table says already."""
    met = [fact.path for fact in answer.insights if isinstance(fact, NeedMet)]
    for fact in answer.insights:
        if isinstance(fact, NeedMet):
            from topo.views.needs import need_sentences  # most workloads move nothing for a model

            yield from need_sentences(met) if fact.path is met[0] else ()
        elif isinstance(fact, ThroughRam):
            yield from [sentence(fact)] if fact.path.ram_traffic is None else ()
        elif not isinstance(fact, CoresBusy):
            yield sentence(fact)


def _column(path: PathAnswer, answer: WorkloadAnswer, basis: Basis) -> dict[str, str]:
    """Return what is said of one path by row: empty where nothing is, as for a refused one."""
    refused, counts, cores = path.rate is None, path.counts, path.cores
    between_servers = path.between_servers
    workload, (endpoint, _) = answer.workload, _endpoint_words(answer.paths)
    column = {
        "stops": _stopped(path.stopped, path.stopped_count, near_end=path.data_path.near_end),
        "hops": "" if refused else spanned(path.hops_range),
        "links walked": "" if refused else spanned(path.links_range),
        "RAM traversals": "" if refused else str(counts.ram_traversals),
        "CPU memory copies": "" if refused else str(counts.cpu_memory_copies),
        "copies by a core": "" if refused else str(counts.core_copies),
        "RAM traversals, target": "" if between_servers else _in_target(path),
        "RAM traversals, other server": _in_target(path) if between_servers else "",
        "accesses of RAM": _accesses(path),
        "through RAM buffers": _traffic(path.ram_traffic, path.ram_floor),
        "on the memory buses": _traffic(path.dram_bytes, path.dram_floor),
        "rate": rate_words(path),
        "busbw": bus_rate_words(path),
        "rate while all run": "",
        f"each {endpoint}": "",
        "time": time_words(path),
    }
    if len(path.rates) > 1:
        slowest, fastest = (format_rate(find(path.rates.values())) for find in (min, max))
        each = slowest if slowest == fastest else f"{slowest} to {fastest}"
        column[f"each {endpoint}"] = "at most " * path.at_most + each
    if path.start_rate is not None and path.finish_apart:
        column["rate while all run"] = "at most " * path.at_most + format_rate(path.start_rate)
    if workload.need is not None:
        from topo.views.needs import need_rows

        column |= need_rows(path, workload.need)
    if workload.efficiency is not None:
        low, high = map(format_ratio, workload.efficiency)
        times = " to ".join(map(format_duration, path.time_range or ()))
        column[f"time at {low.removesuffix(' %')}-{high}"] = (
            times and "at least " * path.at_most + times
        )
    column["limited by"] = limits_text(path)
    column["not known"] = listed(ranges(path.unknowns), most=_MOST_UNKNOWN)
    column["cores busy copying"] = ""
    if cores is not None:
        kind = cores.source.partition(":")[0]
        per_core = format_rate(cores.rate_per_core)
        most = "at most " * path.at_most
        column["cores busy copying"] = f"{most}{cores.cores:.3g} ({kind}: {per_core} a core)"
    serial = path.serial_rate
    column[f"one worker a {endpoint}"] = (
        "" if serial is None else "at most " * path.at_most + format_rate(serial)
    )
    for other_basis in BASES:
        if other_basis != basis:
            rate = path.rate_at(other_basis)
            words = _UNMEASURED if rate is None else format_rate(rate)
            at_most = "at most " * (rate is not None and path.at_most_by_basis[other_basis])
            column[f"rate, {other_basis}"] = "" if refused else at_most + words
    return column


def _stopped(names: Sequence[str], count: int, *, near_end: str) -> str:
    """Return who has no way any more, and how many they are."""
    how_many = f" ({count} {ENDPOINT_WORDS[near_end][1]})" * (count > 1)
    return shortened(names) + how_many if names else ""


def _endpoint_words(paths: Sequence[PathAnswer]) -> tuple[str, str]:
    """Return the words for one and for several of what is filled or emptied."""
    path = next((path for path in paths if path.rate is not None), paths[0])
    return ENDPOINT_WORDS[path.data_path.near_end]


def _in_target(path: PathAnswer) -> str:
    """Return how often the RAM of the drives' own hosts is passed, and by how many bytes."""
    if path.rate is None or path.target_path is None:
        return ""
    traversals = count(path.target_path).ram_traversals
    size = (path.target_size or 0.0) * traversals
    return f"{traversals}, {format_size(size)}" if size else str(traversals)


def _accesses(path: PathAnswer) -> str:
    """Return how often a payload byte is read or written on the memory buses of either server."""
    if path.rate is None or path.target_path is None or not path.between_servers:
        return ""
    here, there = path.counts.dram_bytes, count(path.target_path).dram_bytes
    return f"{here} a byte, {there} in the other server"


def _traffic(size: float | None, floor: float | None) -> str:
    if not size:
        return ""
    return format_size(size) + (f", {format_duration(floor)} or more" if floor else "")


def limits_text(path: PathAnswer) -> str:
    """Return each class of full resources: names, what each has, what kind of figure it is."""
    lines = []
    classes = grouped(path.bottlenecks, lambda bottleneck: bottleneck.resource.kind)
    for kind, group in classes.items():
        rates = dict.fromkeys(map(_capacity, group))
        kinds = dict.fromkeys(bottleneck.figure.kind for bottleneck in group)
        names = and_more(ranges(each.resource.name for each in group), _MOST_NAMES)
        count = number_of(bottleneck.resource for bottleneck in group)
        each = " each" * (count > 1 and len(rates) == 1)
        words = class_words(kind, count)
        lines.append(f"{words}: {names}, {' and '.join(rates)}{each} ({', '.join(kinds)})")
    return "\n".join([*lines, *sentences(path.own_limits)])


def _capacity(bottleneck: Bottleneck) -> str:
    return "at most " * bottleneck.figure.at_most + format_rate(bottleneck.capacity)


def _way(path: PathAnswer) -> str:
    """Return a path's way as a line of arrows, RAM buffers marked."""
    if path.rate is None:
        why = (reason.text for reason in path.reasons if reason.effect == "refused")
        return f"refused: {shortened(why)}"
    buffers = path.counts.buffers
    if path.target_path is not None:
        buffers += count(path.target_path).buffers
    return " -> ".join(
        f"{waypoint} (RAM)" if waypoint in buffers else waypoint
        for waypoint in path.route.waypoints
    )


# --- bottleneck ---------------------------------------------------------------------------------


def bottleneck_page(ladder: Ladder, explained: Explanation | None = None) -> Iterator[Block]:
    """Yield what binds, by how much, who is stopped, the ladder, and what stands behind it."""
    path, workload = ladder.answer, ladder.workload
    yield Heading(title_of(ladder.topology))
    yield Heading(f"{workload.name} by {path.name}: {workload_sentence(workload)}")
    if path.rate is None:
        yield Text(sentence(ladder.end))
        return
    if path.stopped:
        stopped = _stopped(path.stopped, path.stopped_count, near_end=path.data_path.near_end)
        yield Text(f"There is no way any more for {stopped}. For the others:")
    outcome = ", ".join(filter(None, (f"{rate_words(path)} in all", time_words(path))))
    if path.start_rate is not None and path.finish_apart:
        at_most = "at most " * path.at_most
        outcome += f" ({at_most}{format_rate(path.start_rate)} while all run)"
    bound = path.bound
    if bound:
        together = " together (a tie)" if path.tied else ""
        if not path.tied and len({resource.kind for resource in bound}) > 1:
            together = f", each some of the time or some of the {_endpoint_words([path])[1]}"
        known = "of what is known, " * path.at_most
        yield Text(f"{capitalized(outcome)}: {known}{limit_words(path)} {binds(bound)}{together}.")
    else:
        yield Text(f"{capitalized(outcome)}: no capacity is full; it stops at {limit_words(path)}.")
    if path.bottlenecks:
        yield _full_resources(path)
    if path.met is not None:
        yield Text(sentence(NeedMet(path)))
    if ladder.any_routing:
        yield Text(sentence(ladder.any_routing))
    if ladder.rungs:
        yield Heading("The ladder: what binds, and what would bind next")
        yield _rungs(ladder)
    yield Text(f"It ends there: {sentence(ladder.end)}.")
    if explained is not None:
        yield from _explanation(explained, path)
    yield basis_note(ladder.basis)


def _full_resources(path: PathAnswer) -> Table:
    """Return the full resources, those that differ in nothing but their names on one row."""

    def figures(bottleneck: Bottleneck) -> tuple[str, ...]:
        return (
            bottleneck.resource.kind,
            format_rate(bottleneck.load),
            _capacity(bottleneck),
            shortened(demand.rpartition(" ")[2] for demand in bottleneck.stops),
            sourced(bottleneck.figure),
        )

    rows: list[Row] = []
    for (_, load, capacity, stops, source), group in grouped(path.bottlenecks, figures).items():
        each = " each" * (number_of(bottleneck.resource for bottleneck in group) > 1)
        names = shortened(bottleneck.resource.name for bottleneck in group)
        rows.append((Cell(names), load + each, capacity + each, stops, source))
    columns = (
        wide("full"),
        right("load"),
        right("capacity"),
        wide("stops"),
        wide("the capacity's source"),
    )
    return table(columns, rows)


def _rungs(ladder: Ladder) -> Table:
    timed = [right("time")] if ladder.answer.time is not None else []
    return table(
        (right("step"), right("rate"), *timed, "limited by", wide("namely")),
        (
            (
                "" if place else str(step),
                "" if place else Cell("at most " * rung.at_most + format_rate(rung.rate)),
                *("" if place else Cell(at_least(rung.time or 0.0, rung)) for _ in timed),
                class_words(kind, number_of(bottleneck.resource for bottleneck in group)),
                shortened(bottleneck.resource.name for bottleneck in group),
            )
            for step, rung in enumerate(ladder.rungs, start=1)
            for place, (kind, group) in enumerate(rung.classes)
        ),
    )


def _explanation(explained: Explanation, path: PathAnswer) -> Iterator[Block]:
    """Yield the table by demand, the table by resource, and the prices in words."""
    several = any(len(share.demands) > 1 for share in explained.shares)
    _, endpoints = _endpoint_words([path])
    running = " while all run" * explained.prices.finish_apart
    lines = " (equal demands on one line: --each lists them)" * several
    yield Heading(f"Who gets what{running}{lines}")
    yield table(
        (wide(endpoints), right("rate of each"), right("share of each"), wide("stopped by")),
        (
            (
                shortened(demand.names for demand in share.demands),
                Cell("at most " * share.at_most + format_rate(share.rate)),
                format_ratio(share.share),
                stopped_words(share.stopped_by),
            )
            for share in explained.shares
        ),
    )
    yield Heading(f"What is used{running}, the fullest first")
    yield table(
        (wide("resource"), right("load"), right("capacity"), right("used"), wide("by")),
        map(_used, explained.uses),
    )
    yield Heading("What one GB/s more is worth, and what one less costs")
    prices = explained.prices
    if prices.rule == "largest-total":
        most = "at most " * prices.at_most
        largest, fair = (f"{most}{format_rate(r)}" for r in (prices.total, prices.fair_total))
        same = math.isclose(prices.total, prices.fair_total, rel_tol=1e-6)
        reached = ": max-min fair rates reach it as well."
        yield Text(
            f"The largest total is {largest}"
            + (reached if same else f"; max-min fair rates add up to {fair}.")
        )
    yield Bullets(price_sentences(prices))


def _used(use: Use) -> Row:
    if use.capacity is None:
        capacity = "unknown"
    else:
        capacity = format_rate(use.capacity) if math.isfinite(use.capacity) else "unlimited"
        capacity = "at most " * use.at_most + capacity
    return (
        shortened(resource.name for resource in use.resources),
        format_rate(use.load),
        capacity + " each" * (number_of(use.resources) > 1),
        _NONE if use.utilisation is None else format_ratio(use.utilisation),
        shortened(demand.names for demand in use.users),
    )


def at_least(seconds: float, bound: Run | Rung | Simulation | Outcome | PathAnswer) -> str:
    """Return a time in words, "at least" where it is a bound."""
    return "at least " * bound.at_most + format_duration(seconds)


# --- measure --------------------------------------------------------------------------------------

_MOST_ROWS: Final = 16  # of one test; more of which the same was expected share a row
_TONES: Final[Mapping[Judged, Tone]] = {
    "fits": "good",
    "above": "bad",
    "below": "warn",
    "impossible": "bad",
}


def measured_page(
    topology: Topology, readings: Sequence[Reading], unmapped: Sequence[str], written: str
) -> Iterator[Block]:
    """Yield the rates test by test, then what was left out.

    Parameters
    ----------
    topology
        The machine.
    readings
        What was measured, beside what was expected.
    unmapped
        Sentences about results without a place.
    written
        The sentence that says what became of them.
    """
    yield Heading(title_of(topology))
    columns = (
        "from and to",
        right("theoretical"),
        right("achievable"),
        right("measured"),
        right("of achievable"),
        wide("limit"),
    )
    tests = grouped(readings, lambda reading: (reading.sample.test, reading.sample.unwritten))
    for (test, why), of_test in tests.items():
        yield Heading(test)
        yield table(columns, _readings(of_test))
        if why:
            yield Text(f"Not written: {why}.", dim=True)
    if unmapped:
        yield Heading("Without a place on this machine")
        yield Bullets(tuple(unmapped))
    yield Text(written)


def _readings(readings: Sequence[Reading]) -> Iterator[Row]:
    """Yield one row a rate; where there are many, one for all of which the same was expected."""
    if len(readings) <= _MOST_ROWS:
        yield from map(_reading, readings)
        return
    groups = grouped(
        readings,
        lambda reading: (reading.judged, reading.forecast.theoretical, reading.forecast.achievable),
    )
    for group in groups.values():
        row = _reading(group[0])
        if len(group) > 1:
            first, *_, last = sorted(group, key=lambda reading: reading.sample.rate)
            limit = group[0].forecast.limit
            row = (
                f"{row[0]} and {len(group) - 1} more",
                *row[1:3],
                f"{format_rate(first.sample.rate)} to {format_rate(last.sample.rate)}",
                f"{_ratio(first)} to {_ratio(last)}",
                class_words(limit.kind, len(group)) if limit else row[5],
            )
        yield row


def _reading(reading: Reading) -> Row:
    forecast = reading.forecast
    tone, ratio = _TONES.get(reading.judged), _ratio(reading)
    return (
        measured_ends(reading.sample),
        _rate_or_unknown(forecast.theoretical, at_most="theoretical" in forecast.at_most),
        _rate_or_unknown(forecast.achievable, at_most="achievable" in forecast.at_most),
        format_rate(reading.sample.rate),
        Cell(ratio, tone) if tone else ratio,
        limited_by([forecast.limit]) if forecast.limit else forecast.refused,
    )


def _rate_or_unknown(value: float | None, *, at_most: bool) -> str:
    return "unknown" if value is None else "at most " * at_most + format_rate(value)


def _ratio(reading: Reading) -> str:
    return reading.judged if reading.ratio is None else format_ratio(reading.ratio)
