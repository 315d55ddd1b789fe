"""A design and what came of it as a row: the columns, and the same row from its text again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from topo.study.variants import Outcome

if TYPE_CHECKING:
    from topo.study.sweep import Sweep


FIRST: Final = ("sweep", "design")
# Fields of an outcome by their columns, units in the names.
_COLUMNS: Final[Mapping[str, str]] = {
    field.name: {"rate": "rate_bytes_per_s", "time": "time_s"}.get(field.name, field.name)
    for field in fields(Outcome)
}
_LAST: Final = tuple(_COLUMNS.values())


def columns_of(sweep: Sweep) -> tuple[str, ...]:
    """Return the columns of a sweep's rows: its axes stand before what came of each design."""
    axes = (axis.name for axis in sweep.axes if axis.name not in _LAST)
    return (*FIRST, *axes, *_LAST)


def row_of(sweep: Sweep, number: int, outcome: Outcome) -> dict[str, Any]:
    """Return a row by its columns."""
    labels = {
        axis.name: choice.label
        for axis, choice in zip(sweep.axes, sweep.design(number), strict=True)
    }
    values = {column: getattr(outcome, name) for name, column in _COLUMNS.items()}
    return {"sweep": sweep.fingerprint, "design": number, **labels, **values}


def outcome_in(row: Mapping[str, Any]) -> Outcome:
    """Return what came of the design of a row.

    Raises
    ------
    KeyError, TypeError
        If it is no such row.
    """
    return Outcome(**{name: row[column] for name, column in _COLUMNS.items()})
