"""Small pieces of text that several pages share: names in ranges, figures, verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.phrases import shortened
from topo.units import (
    format_rate,
    format_ratio,
    format_size,
    format_transfer_rate,
)
from topo.views.text.page import Cell

if TYPE_CHECKING:
    from topo.catalogue.keys import Quantity
    from topo.catalogue.part import Figure
    from topo.description.description import Workload
    from topo.routes.route import Verdict
    from topo.topology.topology import Topology


_TONES = {"ok": "good", "ok-slower": "warn", "unknown": "warn", "refused": "bad"}


def title_of(topology: Topology) -> str:
    """Return a page's first line: the name, and the title if there is one."""
    name, title = topology.name, topology.title
    return f"{name}: {title}" if title != name else name


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a verdict in its colour."""
    return Cell(verdict, _TONES[verdict])  # type: ignore[arg-type]  # the tones are above


def figure_text(figure: Figure, quantity: Quantity = "rate") -> str:
    """Return a figure's value in its unit; unknown and unlimited are words."""
    value = figure.value
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "unlimited"
    if quantity == "rate":
        return format_rate(value)
    if quantity == "size":
        return format_size(value)
    if quantity == "ratio":
        return format_ratio(value)
    return format_transfer_rate(value) if quantity == "transfer-rate" else f"{value:g}"


def sourced(figure: Figure) -> str:
    """Return a figure's kind and source in one phrase."""
    return f"{figure.kind}: {figure.source}" if figure.source else figure.kind


def workload_sentence(workload: Workload) -> str:
    """Return what a workload is: ``read 640 GB, storage to gpu[0-7]``."""
    ends = (shortened(workload.sources), shortened(workload.targets))
    size = f" {format_size(workload.size)}" if workload.sized else ""
    rates = "" if workload.sized else "; rates only, since no size is said"
    return f"{workload.direction}{size}, {ends[0]} to {ends[1]}{rates}"


def spanned(span: tuple[int, int]) -> str:
    """Return ``3`` or ``3 to 4``.

    Examples
    --------
    >>> spanned((3, 3)), spanned((3, 4))
    ('3', '3 to 4')
    """
    least, most = span
    return str(least) if least == most else f"{least} to {most}"
