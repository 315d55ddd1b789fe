"""Pages about the catalogue: the list, one part or medium in full, the built-in machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.fields import FIELDS, FLAG, MEDIUM_FIELDS, SLOT
from topo.views.text.page import (
    Cell,
    Heading,
    Text,
    figure_text,
    grouped,
    origin,
    right,
    sourced,
    table,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from topo.catalogue.part import Medium, Part, Ports
    from topo.topology.topology import Topology
    from topo.views.text.page import Block, Row, Table


def catalogue_page(parts: Iterable[Part], media: Iterable[Medium]) -> Iterator[Block]:
    """Yield parts by kind, then media: names to write in a file."""
    for kind, of_kind in grouped(parts, lambda part: part.kind).items():
        yield Heading(kind)
        yield table(("", wide()), ((Cell(part.name), part.title) for part in of_kind))
    families = grouped(media, lambda medium: medium.family)
    if families:
        yield Heading("media")
        yield table(
            ("", wide()),
            (
                (Cell(family), ", ".join(medium.name for medium in of_family))
                for family, of_family in families.items()
            ),
        )


def part_page(part: Part) -> Iterator[Block]:
    """Yield a part in full, each figure with its kind and source, and what the keys mean."""
    yield Heading(f"{part.name}: {part.title}" if part.title else part.name)
    yield Text(f"A part of kind {part.kind}." + f" Source: {part.source}." * bool(part.source))
    yield table(
        ("key", "value", wide("kind and source"), wide("meaning")),
        (
            (Cell(key), value, source, FIELDS[key].meaning if key in FIELDS else "")
            for key, value, source in _facts(part)
        ),
    )


def medium_page(medium: Medium) -> Iterator[Block]:
    """Yield a medium in full, each figure with its kind and source."""
    yield Heading(f"{medium.name}: {medium.title}" if medium.title else medium.name)
    yield Text(
        f"A medium of the family {medium.family}, reach {medium.reach}."
        + f" Source: {medium.source}." * bool(medium.source)
    )
    yield table(("key", "value", wide("kind and source")), _medium_facts(medium))


def machines_page(machines: Sequence[Topology]) -> Iterator[Block]:
    """Yield the machines that topo ships: names to type instead of a file."""
    yield table(
        ("machine", right("GPUs"), "workloads", wide()),
        (
            (
                Cell(machine.name),
                str(len(machine.of_kind("gpu"))),
                ", ".join(workload.name for workload in machine.description.workloads),
                machine.title,
            )
            for machine in machines
        ),
    )


def facts_table(parts: Iterable[Part]) -> Table:
    """Return what several parts are known for, one fact a row, each with kind and source."""
    return table(
        ("part", "key", "value", wide("kind and source")),
        (
            ("" if place else Cell(part.name), *fact)
            for part in parts
            for place, fact in enumerate(_facts(part))
        ),
    )


def _facts(part: Part) -> Iterator[tuple[str, str, str]]:
    """Yield key, value, and kind and source of everything that is known of a part."""
    if part.slot is not None:
        yield "pcie", SLOT.text(part.slot), origin(part.slot.kind, part.slot.source)
    for key, ports in (("ports", part.ports), ("fabric", part.fabric)):
        if ports is not None:
            yield key, *_ports(ports)
    for key, figure in part.figures.items():
        yield key, figure_text(figure, FIELDS[key].quantity), sourced(figure)
    for key, flag in part.flags.items():
        yield key, FLAG.text(flag), part.sources.get(key, part.source)
    for key, fact in part.facts.items():
        yield key, fact, part.sources.get(key, part.source)
    if part.peer_caps is not None:
        caps = (("posted", part.peer_caps.posted), ("non-posted", part.peer_caps.non_posted))
        for direction, cap in caps:
            if cap is not None:
                rate = figure_text(cap.rate) + " a flow" * cap.per_flow
                yield f"p2p {direction}", rate, sourced(cap.rate)


def _ports(ports: Ports) -> tuple[str, str]:
    """Return how many of what, and where the count and the rate come from."""
    count = "unknown" if ports.count is None else str(ports.count)
    source = origin(ports.kind, ports.source)
    if ports.rate is None:
        return f"{count}x {ports.medium}" if ports.medium else count, source
    rate = figure_text(ports.rate)
    if sourced(ports.rate) != source:
        source = f"{source}; {rate} each: {sourced(ports.rate)}"
    return f"{count}x {ports.medium or rate}", source


def _medium_facts(medium: Medium) -> Iterator[Row]:
    each = "of a lane" if medium.per_lane else "of a cable"
    if medium.rate is not None:
        yield Cell("rate"), f"{figure_text(medium.rate)} {each}", sourced(medium.rate)
    for name, figure in (
        ("transfer-rate", medium.transfer_rate),
        ("encoding", None),
        ("bytes-per-transfer", medium.bytes_per_transfer),
        ("efficiency", medium.efficiency),
    ):
        if figure is not None:
            quantity = MEDIUM_FIELDS[name].quantity
            yield Cell(name), figure_text(figure, quantity), sourced(figure)
        elif name == "encoding" and medium.encoding:
            yield Cell(name), medium.encoding, medium.source
