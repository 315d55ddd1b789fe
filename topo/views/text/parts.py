"""Pages about the catalogue: the list, one part or medium in full, the built-in machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.keys import KEYS
from topo.views.text.page import Cell, Column, Heading, Table, Text
from topo.views.text.words import figure_text, sourced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from topo.catalogue.part import Medium, Part, PeerCap, Ports
    from topo.topology.topology import Topology
    from topo.views.text.page import Block


_Fact = tuple[str, str, str]


def catalogue_page(parts: Iterable[Part], media: Iterable[Medium]) -> Iterator[Block]:
    """Yield parts by kind, then media: names to write in a file."""
    kinds: dict[str, list[Part]] = {}
    for part in parts:
        kinds.setdefault(part.kind, []).append(part)
    for kind, found in kinds.items():
        yield Heading(kind)
        rows = tuple((Cell(part.name), part.title) for part in found)
        yield Table((Column(), Column(breaks=True)), rows)
    families: dict[str, list[str]] = {}
    for medium in media:
        families.setdefault(medium.family, []).append(medium.name)
    if families:
        yield Heading("media")
        rows = tuple((Cell(family), ", ".join(names)) for family, names in families.items())
        yield Table((Column(), Column(breaks=True)), rows)


def part_page(part: Part) -> Iterator[Block]:
    """Yield a part in full, each figure with its kind and source, and what the keys mean."""
    yield Heading(f"{part.name}: {part.title}" if part.title else part.name)
    yield Text(f"A part of kind {part.kind}." + f" Source: {part.source}." * bool(part.source))
    rows = tuple(
        (Cell(key), value, source, KEYS[key].meaning if key in KEYS else "")
        for key, value, source in _facts(part)
    )
    columns = (
        Column("key"),
        Column("value"),
        Column("kind and source", breaks=True),
        Column("meaning", breaks=True),
    )
    yield Table(columns, rows)


def medium_page(medium: Medium) -> Iterator[Block]:
    """Yield a medium in full, each figure with its kind and source."""
    yield Heading(f"{medium.name}: {medium.title}" if medium.title else medium.name)
    yield Text(
        f"A medium of the family {medium.family}, reach {medium.reach}."
        + f" Source: {medium.source}." * bool(medium.source)
    )
    columns = (Column("key"), Column("value"), Column("kind and source", breaks=True))
    yield Table(columns, tuple(_medium_facts(medium)))


def machines_page(machines: Sequence[Topology]) -> Iterator[Block]:
    """Yield the machines that topo ships: names to type instead of a file."""
    rows = tuple(
        (
            Cell(machine.name),
            str(len(machine.of_kind("gpu"))),
            ", ".join(workload.name for workload in machine.description.workloads),
            machine.title,
        )
        for machine in machines
    )
    columns = (
        Column("machine"),
        Column("GPUs", right=True),
        Column("workloads"),
        Column("", breaks=True),
    )
    yield Table(columns, rows)


def facts_table(parts: Iterable[Part]) -> Table:
    """Return what several parts are known for, one fact a row, each with kind and source."""
    rows: list[tuple[str | Cell, ...]] = []
    for part in parts:
        for place, (key, value, source) in enumerate(_facts(part)):
            rows.append(("" if place else Cell(part.name), key, value, source))
    columns = (
        Column("part"),
        Column("key"),
        Column("value"),
        Column("kind and source", breaks=True),
    )
    return Table(columns, tuple(rows))


# --- facts --------------------------------------------------------------------------------------


def _facts(part: Part) -> Iterator[_Fact]:
    """Yield key, value, and kind and source of everything that is known of a part."""
    if part.slot is not None:
        lanes = f" x{part.slot.lanes}" if part.slot.lanes else ""
        source = _origin(part.slot.kind, part.slot.source)
        yield "pcie", f"{part.slot.generation}{lanes}", source
    for key, ports in (("ports", part.ports), ("fabric", part.fabric)):
        if ports is not None:
            yield key, _ports(ports), _ports_source(ports)
    for key, figure in part.figures.items():
        yield key, figure_text(figure, KEYS[key].quantity), sourced(figure)
    for key, flag in part.flags.items():
        value = "unknown" if flag is None else "yes" if flag else "no"
        yield key, value, part.sources.get(key, part.source)
    for key, fact in part.facts.items():
        yield key, fact, part.sources.get(key, part.source)
    if part.peer_caps is not None:
        for name, cap in (
            ("p2p posted", part.peer_caps.posted),
            ("p2p non-posted", part.peer_caps.non_posted),
        ):
            if cap is not None:
                yield name, _cap(cap), sourced(cap.rate)


def _ports(ports: Ports) -> str:
    count = "unknown" if ports.count is None else str(ports.count)
    each = ports.medium or (figure_text(ports.rate) if ports.rate is not None else "")
    return f"{count}x {each}" if each else count


def _ports_source(ports: Ports) -> str:
    count = _origin(ports.kind, ports.source)
    if ports.rate is None or sourced(ports.rate) == count:
        return count
    return f"{count}; {figure_text(ports.rate)} each: {sourced(ports.rate)}"


def _cap(cap: PeerCap) -> str:
    return figure_text(cap.rate) + " a flow" * cap.per_flow


def _origin(kind: str, source: str) -> str:
    return f"{kind}: {source}" if source else kind


def _medium_facts(medium: Medium) -> Iterator[tuple[str | Cell, ...]]:
    each = "of a lane" if medium.per_lane else "of a cable"
    if medium.rate is not None:
        yield Cell("rate"), f"{figure_text(medium.rate)} {each}", sourced(medium.rate)
    if medium.transfer_rate is not None:
        value = figure_text(medium.transfer_rate, "transfer-rate")
        yield Cell("transfer-rate"), value, sourced(medium.transfer_rate)
    if medium.encoding:
        yield Cell("encoding"), medium.encoding, medium.source
    if medium.bytes_per_transfer is not None:
        value = figure_text(medium.bytes_per_transfer, "count")
        yield Cell("bytes-per-transfer"), value, sourced(medium.bytes_per_transfer)
    if medium.efficiency is not None:
        yield (
            Cell("efficiency"),
            figure_text(medium.efficiency, "ratio"),
            sourced(medium.efficiency),
        )
