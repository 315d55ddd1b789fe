"""How values are written in JSON: numbers clean, unknown as null, no paths of this machine."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.catalogue.part import Figure
    from topo.errors import Place
    from topo.topology.resources import Capacity, Resource


_DIGITS = 12  # beyond that, a float holds the order of additions rather than a figure
_EXACT = 2**53


def encoded(document: Mapping[str, Any], *, folder: str = "") -> str:
    """Return a document as JSON text that ends in a line break.

    Numbers have at most twelve digits, or are exact where they are whole; infinite and undefined
    ones are null.

    Parameters
    ----------
    document
        Mappings, sequences, texts and numbers.
    folder
        A folder that is nobody's business: it is taken off every path.
    """
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    if folder:
        text = text.replace(json.dumps(f"{folder}/", ensure_ascii=False)[1:-1], "")
    return f"{text}\n"


def number(value: float | None) -> float | int | None:
    """Return a number as JSON shows it: `None` for one that is unknown or without limit.

    Examples
    --------
    >>> number(1.4 / 0.8), number(1e11), number(float("inf"))
    (1.75, 100000000000, None)
    """
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value
    rounded = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < _EXACT else rounded


def place_document(place: Place | None) -> dict[str, Any] | None:
    """Return where something stands: file, line, column."""
    if place is None:
        return None
    return {"file": place.file, "line": place.line, "column": place.column}


def figure_document(figure: Figure | None, key: str = "bytes_per_s") -> dict[str, Any] | None:
    """Return a figure with its kind and source; `key` names its unit."""
    if figure is None:
        return None
    found: dict[str, Any] = {
        key: number(figure.value),
        "kind": figure.kind,
        "source": figure.source,
    }
    if figure.value is not None and math.isinf(figure.value):
        found["unlimited"] = True
    return found


def capacity_document(capacity: Capacity) -> dict[str, Any]:
    """Return the three figures of a capacity; null for one that nobody stated."""
    return {
        "theoretical": figure_document(capacity.theoretical),
        "achievable": figure_document(capacity.achievable),
        "measured": figure_document(capacity.measured),
    }


def resource_document(resource: Resource) -> dict[str, Any]:
    """Return the names of a resource; figures are added where they are asked for."""
    return {
        "resource": resource.name,
        "direction": resource.direction or None,
        "class": resource.kind,
        "device": resource.device,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return number(value) if isinstance(value, float) else value
