"""The page of `topo measure`: predicted against measured, one line a rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.units import format_rate, format_ratio
from topo.views.sentences import class_words, limited_by, measured_ends
from topo.views.text.page import (
    Bullets,
    Cell,
    Heading,
    Text,
    grouped,
    right,
    table,
    title_of,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from topo.study.prediction import Judged, Reading
    from topo.topology.topology import Topology
    from topo.views.text.page import Block, Row, Tone


_MOST: Final = 16  # rates of one test that have rows of their own
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
        yield table(columns, _rows(of_test))
        if why:
            yield Text(f"Not written: {why}.", dim=True)
    if unmapped:
        yield Heading("Without a place on this machine")
        yield Bullets(tuple(unmapped))
    yield Text(written)


def _rows(readings: Sequence[Reading]) -> Iterator[Row]:
    """Yield one row a rate; where there are many, one for all of which the same was expected."""
    if len(readings) <= _MOST:
        yield from map(_row, readings)
        return
    for group in grouped(readings, _expected).values():
        row = _row(group[0])
        if len(group) > 1:
            by_rate = sorted(group, key=lambda reading: reading.sample.rate)
            limit = group[0].forecast.limit
            row = (
                f"{row[0]} and {len(group) - 1} more",
                *row[1:3],
                " to ".join(format_rate(reading.sample.rate) for reading in _ends(by_rate)),
                " to ".join(map(_ratio, _ends(by_rate))),
                class_words(limit.kind, len(group)) if limit else row[5],
            )
        yield row


def _expected(reading: Reading) -> tuple[Judged, float | None, float | None]:
    return reading.judged, reading.forecast.theoretical, reading.forecast.achievable


def _ends(readings: Sequence[Reading]) -> tuple[Reading, Reading]:
    return readings[0], readings[-1]


def _row(reading: Reading) -> Row:
    forecast = reading.forecast
    tone, ratio = _TONES.get(reading.judged), _ratio(reading)
    return (
        measured_ends(reading.sample),
        _rate(forecast.theoretical),
        _rate(forecast.achievable),
        format_rate(reading.sample.rate),
        Cell(ratio, tone) if tone else ratio,
        limited_by([forecast.limit]) if forecast.limit else forecast.refused,
    )


def _rate(value: float | None) -> str:
    return "unknown" if value is None else format_rate(value)


def _ratio(reading: Reading) -> str:
    return reading.judged if reading.ratio is None else format_ratio(reading.ratio)
