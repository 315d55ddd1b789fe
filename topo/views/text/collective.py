"""The page of collectives: algbw and busbw, the rings and their hops, what nothing exceeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from topo.description.description import ROOTED
from topo.description.names import stem_of
from topo.phrases import and_more, counted, ranges, shortened
from topo.study.insights import FallenBack, NoAlgorithm, NoRdmaByNccl, NotByNccl, OkSlower
from topo.topology.locality import locality
from topo.units import format_rate, format_ratio, format_size
from topo.views.sentences import (
    bus_rate_words,
    limit_words,
    rate_words,
    sentences,
    time_words,
)
from topo.views.text.answers import basis_note
from topo.views.text.page import (
    Block,
    Bullets,
    Cell,
    Heading,
    Row,
    Text,
    grouped,
    right,
    table,
    title_of,
    verdict_cell,
    wide,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.flows.collectives import Hop
    from topo.flows.rings import Ring
    from topo.study.answers import Comparison, PathAnswer, WorkloadAnswer
    from topo.study.insights import Insight
    from topo.topology.topology import Topology


_FIGURES: Final = (right("algbw"), right("busbw"), right("time"))
_OF_HOPS: Final = (FallenBack, NotByNccl, OkSlower)
_MOST_RINGS: Final = 8
_MOST_HOPS: Final = 6  # ranges of them, of one class
_IN_ROW: Final = 2  # GPUs that are no range yet
_MOST_RUNS: Final = 16  # of GPUs in a row, of a ring that is written out


def collective_page(comparison: Comparison) -> Iterator[Block]:
    """Yield one collective at length, or all of them in a table."""
    yield Heading(title_of(comparison.topology))
    if len(comparison.workloads) == 1:
        yield from _at_length(comparison)
    else:
        yield from _all_of_them(comparison)
    yield basis_note(comparison.basis)


def _is_about(fact: Insight, path: PathAnswer) -> bool:
    """Whether a fact is how data goes by a path, or what nothing exceeds."""
    if isinstance(fact, NoRdmaByNccl):
        return any(path is named for named in fact.paths)
    about = getattr(fact, "path", None)
    return isinstance(fact, NoAlgorithm) or (isinstance(fact, _OF_HOPS) and about is path)


def _best(answer: WorkloadAnswer) -> PathAnswer | None:
    """Return the fastest answer; what is known goes before what is "at most"."""
    solved = [path for path in answer.paths if path.rate is not None]
    return max(solved, key=lambda path: (path.rate or 0.0, not path.at_most), default=None)


def _figures(path: PathAnswer) -> Row:
    """Return algbw, busbw and time; "at most" stands on a line of its own, to be narrow."""
    rate, bus_rate, time = (
        re.sub("^(at most|at least) ", r"\1\n", words)
        for words in (rate_words(path), bus_rate_words(path), time_words(path))
    )
    return rate, Cell(bus_rate), time


# --- all collectives ------------------------------------------------------------------------------


def _all_of_them(comparison: Comparison) -> Iterator[Block]:
    first = comparison.workloads[0].workload
    gpus = counted(len(first.sources), "GPU")
    best = [_best(answer) for answer in comparison.workloads]
    names = {path and path.name for path in best}
    by_path = "" if None in names or len(names) > 1 else f", by {names.pop()}"
    yield Text(f"{format_size(first.size)} over {gpus}, {shortened(first.sources)}{by_path}:")
    rows: list[Row] = []
    for answer, path in zip(comparison.workloads, best, strict=True):
        name = answer.workload.name
        if path is None:
            refused = "; ".join(dict.fromkeys(sentences(answer.insights)))
            rows.append((name, verdict_cell("refused"), "", "", "", "", refused))
            continue
        rows.append(
            (
                name,
                *(() if by_path else (path.name,)),
                *_figures(path),
                format_rate(answer.bound.bus_rate) if answer.bound else "",
                limit_words(path),
            )
        )
    yield table(
        (
            "",
            *(() if by_path else ("data path",)),
            *_FIGURES,
            right("bound of busbw"),
            wide("limited by"),
        ),
        rows,
    )
    if (path := best[0]) is not None:
        yield from _rings(comparison.topology, path)
        insights = comparison.workloads[0].insights
        yield Bullets(sentences(fact for fact in insights if _is_about(fact, path)))


# --- one collective -------------------------------------------------------------------------------


def _at_length(comparison: Comparison) -> Iterator[Block]:
    (answer,) = comparison.workloads
    yield Heading(workload_sentence(answer.workload))
    rows: list[Row] = []
    for path in answer.paths:
        limits = "" if path.rate is None else limit_words(path)
        rows.append((path.name, verdict_cell(path.verdict), *_figures(path), limits))
    yield table(("data path", "verdict", *_FIGURES, wide("limited by")), rows)
    if (best := _best(answer)) is not None:
        yield from _rings(comparison.topology, best)
    if answer.insights:
        yield Bullets(sentences(answer.insights))


def _rings(topology: Topology, path: PathAnswer) -> Iterator[Block]:
    """Yield the rings of an answer, and how data goes from GPU to GPU."""
    laid = path.collective
    assert laid is not None
    if laid.in_switch:
        words = "each GPU sends to them, and gets the sum"
        yield Text(f"By {path.name} the switches reduce (NVLink SHARP): {words}.")
    elif laid.rings:
        what = "chain" if laid.name in ROOTED else "ring"
        yield Heading(f"{counted(len(laid.rings), what)} by {path.name}")
        shown = laid.rings[:_MOST_RINGS]
        yield table(
            (wide("GPUs in order"), right("share")),
            ((_order(ring), format_ratio(ring.share)) for ring in shown),
        )
        if len(laid.rings) > len(shown):
            yield Text(f"and {len(laid.rings) - len(shown)} more like these")
    if not laid.in_switch:
        yield _hops(topology, laid.hops)


def _order(ring: Ring) -> str:
    """Return the GPUs of a ring in order up to where it began, or the last; runs as ranges."""
    runs: list[list[str]] = []
    for name in (*ring.order, ring.hops[-1][-1]):
        stem, number = stem_of(name)
        if runs and stem_of(runs[-1][-1]) == (stem, number - 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    words = [shortened(run) if len(run) > _IN_ROW else " -> ".join(run) for run in runs]
    if len(words) > _MOST_RUNS:
        words = [*words[: _MOST_RUNS // 2], "...", *words[-_MOST_RUNS // 2 :]]
    return " -> ".join(words)


def _hops(topology: Topology, hops: tuple[Hop, ...]) -> Block:
    """Return the hops by class and way."""

    def way(hop: Hop) -> tuple[str, str]:
        label = "other server" if hop.apart else locality(topology, hop.source, hop.target)
        return label, hop.data_path

    rows: list[Row] = []
    for (label, name), group in grouped(hops, way).items():
        pairs = ranges(f"{hop.source} -> {hop.target}" for hop in group)
        rows.append((label, name, str(len(group)), and_more(pairs, _MOST_HOPS)))
    return table(("class", "data path", right("hops"), wide("from GPU to GPU")), rows)
