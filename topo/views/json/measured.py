"""The JSON document of `topo measure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.views.json.values import resource_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.description.measured_edit import MeasuredLine
    from topo.study.prediction import Reading
    from topo.topology.topology import Topology


def measured_document(
    topology: Topology,
    kind: str,
    readings: Sequence[Reading],
    lines: Sequence[MeasuredLine],
    unmapped: Sequence[str],
) -> dict[str, Any]:
    """Return ``topo.measure/1``: each rate beside what was expected, and what was written."""
    return {
        "schema": "topo.measure/1",
        "topology": topology.name,
        "kind": kind,
        "readings": [_reading(one) for one in readings],
        "measured": [_line(one) for one in lines],
        "not_mapped": list(unmapped),
    }


def _reading(reading: Reading) -> dict[str, Any]:
    sample, forecast = reading.sample, reading.forecast
    return {
        "test": sample.test,
        "from": list(sample.source),
        "to": list(sample.target),
        "both_directions": sample.both,
        "data_path": sample.via or None,
        "locality": forecast.locality or None,
        "theoretical_bytes_per_s": forecast.theoretical,
        "achievable_bytes_per_s": forecast.achievable,
        "measured_bytes_per_s": sample.rate,
        "ratio_to_achievable": reading.ratio,
        "judged": reading.judged,
        "limited_by": resource_document(forecast.limit) if forecast.limit else None,
        "refused": forecast.refused or None,
        "not_written_because": sample.unwritten or None,
    }


def _line(line: MeasuredLine) -> dict[str, Any]:
    return {
        "from": line.source,
        "to": line.target,
        "rate_bytes_per_s": line.rate,
        "source": line.origin,
        "date": line.date or None,
    }
