"""What stands behind a rate, as tables: who gets what, what is used by whom, what more is worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from topo.phrases import shortened
from topo.units import format_rate, format_ratio
from topo.views.sentences import class_words, price_sentences
from topo.views.text.page import Bullets, Cell, Column, Heading, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topo.study import Explanation, Prices, Share, Use
    from topo.topology.resources import Resource
    from topo.views.text.page import Block


_NONE: Final = "-"


def explanation_blocks(found: Explanation) -> Iterator[Block]:
    """Yield the table by demand, the table by resource, and the prices in words."""
    yield Heading(f"Who gets what{_alike(found)}")
    yield _demands(found)
    yield Heading("What is used, the fullest first")
    yield _resources(found)
    yield Heading("What one GB/s more is worth, and what one less costs")
    if found.prices.rule == "largest-total":
        yield Text(_largest(found.prices))
    yield Bullets(price_sentences(found.prices))


def bound_words(resources: Iterable[Resource]) -> str:
    """Return "the cards' chips: slot[1-2]/chip" for resources by class."""
    groups: dict[str, list[str]] = {}
    for resource in resources:
        groups.setdefault(resource.kind, []).append(resource.name)
    words = [
        f"{class_words(kind, len(set(names)))}: {shortened(dict.fromkeys(names))}"
        for kind, names in groups.items()
    ]
    return "; ".join(words) or "nothing that the file states"


def _alike(found: Explanation) -> str:
    """Say that one line stands for several demands."""
    folded = [one for one in found.shares if len(one.demands) > 1]
    return " (equal demands on one line: --each lists them)" if folded else ""


def _demands(found: Explanation) -> Table:
    return Table(
        (
            Column("GPUs", breaks=True),
            Column("rate of each", right=True),
            Column("share of each", right=True),
            Column("stopped by", breaks=True),
        ),
        tuple(
            (
                shortened(demand.gpu for demand in one.demands),
                Cell(format_rate(one.rate)),
                format_ratio(one.share),
                _stopped(one),
            )
            for one in found.shares
        ),
    )


def _stopped(one: Share) -> str:
    return bound_words(one.stopped_by) if one.stopped_by else "its own limit"


def _resources(found: Explanation) -> Table:
    return Table(
        (
            Column("resource", breaks=True),
            Column("load", right=True),
            Column("capacity", right=True),
            Column("used", right=True),
            Column("by", breaks=True),
        ),
        tuple(_resource(one) for one in found.uses),
    )


def _resource(one: Use) -> tuple[str | Cell, ...]:
    if one.capacity is None:
        capacity = "unknown"
    else:
        capacity = format_rate(one.capacity) if math.isfinite(one.capacity) else "unlimited"
    each = " each" if len(one.resources) > 1 else ""
    return (
        shortened(resource.name for resource in one.resources),
        format_rate(one.load),
        capacity + each,
        _NONE if one.utilisation is None else format_ratio(one.utilisation),
        shortened(demand.gpu for demand in one.users),
    )


def _largest(found: Prices) -> str:
    largest, fair = format_rate(found.total), format_rate(found.fair_total)
    if math.isclose(found.total, found.fair_total, rel_tol=1e-6):
        return f"The largest total is {largest}: max-min fair rates reach it as well."
    return f"The largest total is {largest}; max-min fair rates add up to {fair}."
