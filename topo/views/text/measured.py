"""The page of `topo measure`: predicted against measured, one line a rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.units import format_rate, format_ratio
from topo.views.sentences import class_words, limited_by, measured_ends
from topo.views.text.page import Bullets, Cell, Column, Heading, Table, Text
from topo.views.text.words import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.study.prediction import Reading
    from topo.topology.topology import Topology
    from topo.views.text.page import Block


_MOST: Final = 16  # rates of one test that have rows of their own
_TONES: Final = {"fits": "good", "above": "bad", "below": "warn", "impossible": "bad"}
_COLUMNS: Final = (
    Column("from and to"),
    Column("theoretical", right=True),
    Column("achievable", right=True),
    Column("measured", right=True),
    Column("of achievable", right=True),
    Column("limit", breaks=True),
)


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
    tests: dict[tuple[str, str], list[Reading]] = {}
    for one in readings:
        tests.setdefault((one.sample.test, one.sample.unwritten), []).append(one)
    for (test, why), found in tests.items():
        yield Heading(test)
        yield Table(_COLUMNS, tuple(_rows(found)))
        if why:
            yield Text(f"Not written: {why}.", dim=True)
    if unmapped:
        yield Heading("Without a place on this machine")
        yield Bullets(tuple(unmapped))
    yield Text(written)


def _rows(readings: Sequence[Reading]) -> Iterator[tuple[str | Cell, ...]]:
    """Yield one row a rate; where there are many, one for all of which the same was expected."""
    groups: dict[tuple[object, ...], list[Reading]] = {}
    for at, one in enumerate(readings):
        alike = (one.judged, one.forecast.theoretical, one.forecast.achievable)
        groups.setdefault(alike if len(readings) > _MOST else (at,), []).append(one)
    for found in groups.values():
        row = _row(found[0])
        if len(found) > 1:
            least, most = min(found, key=_measured), max(found, key=_measured)
            limit = found[0].forecast.limit
            row = (
                f"{row[0]} and {len(found) - 1} more",
                *row[1:3],
                f"{format_rate(least.sample.rate)} to {format_rate(most.sample.rate)}",
                f"{_ratio(least)} to {_ratio(most)}",
                class_words(limit.kind, len(found)) if limit else row[5],
            )
        yield row


def _measured(reading: Reading) -> float:
    return reading.sample.rate


def _ratio(reading: Reading) -> str:
    return reading.judged if reading.ratio is None else format_ratio(reading.ratio)


def _row(reading: Reading) -> tuple[str | Cell, ...]:
    forecast = reading.forecast
    tone = _TONES.get(reading.judged)
    shown = _ratio(reading)
    return (
        measured_ends(reading.sample),
        _rate(forecast.theoretical),
        _rate(forecast.achievable),
        format_rate(reading.sample.rate),
        Cell(shown, tone) if tone else shown,  # type: ignore[arg-type]
        limited_by([forecast.limit]) if forecast.limit else forecast.refused,
    )


def _rate(value: float | None) -> str:
    return "unknown" if value is None else format_rate(value)
