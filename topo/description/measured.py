"""The `measured:` of a file: rates that somebody measured from one device to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.figures import HERE
from topo.catalogue.part import Figure
from topo.description.description import Measurement
from topo.description.keys import MEASURED
from topo.description.links import expand_line
from topo.description.shape import entries_of, text_of, value_of
from topo.document.nodes import Mapping
from topo.units import parse_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.links import Line
    from topo.description.names import Names
    from topo.document.nodes import Node
    from topo.document.report import Report


def read_measured(lines: Iterable[Line], report: Report) -> tuple[tuple[Line, Figure, str], ...]:
    """Read the rate, with its source, and the date of each line."""
    found = ((line, *_read(line.value, report)) for line in lines)
    return tuple((line, rate, date) for line, rate, date in found if rate is not None)


def _read(node: Node, report: Report) -> tuple[Figure | None, str]:
    source, date, text = "", "", node
    if isinstance(node, Mapping):
        entries = entries_of(node, MEASURED, "a measurement", report)
        if "rate" not in entries:
            return None, ""
        text = entries["rate"]
        source, date = (
            (text_of(entries[key], f"`{key}`", report) or "") if key in entries else ""
            for key in ("source", "date")
        )
    rate = value_of(text, "a measured rate", _rate, report)
    if rate is None:
        return None, ""
    return Figure(rate, "measured", source or HERE.at(text)), date


def _rate(text: str) -> float:
    return parse_rate(text, positive=True)


def resolve_measured(
    read: Iterable[tuple[Line, Figure, str]], names: Names, report: Report
) -> tuple[Measurement, ...]:
    """Return one measurement for each pair of ends."""
    return tuple(
        Measurement(str(a), str(b), rate, date, line.key.place)
        for line, rate, date in read
        for a, b in expand_line(line, names, report)
    )
