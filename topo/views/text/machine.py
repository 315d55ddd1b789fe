"""Pages about a machine: show, matrix, paths and routes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from topo.description.keys import SETTINGS
from topo.description.settings import settings_value
from topo.phrases import shortened, unnumbered
from topo.study.lengths import hops_range, links_range
from topo.topology.resources import ram_headline, ram_rate
from topo.units import format_rate, format_ratio
from topo.views.sentences import cited
from topo.views.text.page import Cell, Column, Heading, Lines, Table, Text
from topo.views.text.parts import facts_table
from topo.views.text.words import (
    figure_text,
    sourced,
    spanned,
    title_of,
    verdict_cell,
    workload_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from topo.catalogue.part import Figure, Part
    from topo.description.description import Basis, Device
    from topo.routes.route import Route, Subflow, Transfer
    from topo.study import PathSurvey
    from topo.topology.resources import Resource
    from topo.topology.topology import Link, Topology
    from topo.views.text.page import Block


# --- show ---------------------------------------------------------------------------------------


def show_page(topology: Topology) -> Iterator[Block]:
    """Yield devices, links, parts and resources, every figure with its kind and source."""
    yield Heading(title_of(topology))
    yield _devices(topology)
    yield _links(topology)
    yield Text(f"Settings: {_settings(topology)}.")
    yield Heading("Resources: what transfers share")
    yield _resources(topology.resources.values())
    yield from _ram(topology)
    caps = tuple(_caps(topology))
    if caps:
        yield Heading("Peer-to-peer caps")
        yield Table(_CAP_COLUMNS, caps)
    if topology.description.measurements:
        yield Heading("Measured")
        yield _measured(topology)
    parts = _parts_of(topology)
    if any(part.figures or part.flags or part.slot for part in parts):
        yield Heading("Parts: what each is known for")
        yield facts_table(parts)
    if topology.description.workloads:
        yield Heading("Workloads")
        yield _workloads(topology)


def _devices(topology: Topology) -> Table:
    groups: dict[tuple[str, ...], list[Device]] = {}
    for device in topology.devices.values():
        key = (device.part.name, device.kind, device.part.title, _about(device))
        groups.setdefault(key, []).append(device)
    rows = tuple(
        (Cell(shortened(device.name for device in group)), kind, part, title, about)
        for (part, kind, title, about), group in groups.items()
    )
    columns = (
        Column("device", breaks=True),
        Column("kind"),
        Column("part"),
        Column("title", breaks=True),
        Column("", breaks=True),
    )
    return Table(columns, rows)


def _about(device: Device) -> str:
    words = [device.role, "outside" * device.outside]
    if device.numa:
        words.append("NUMA " + ", ".join(map(str, device.numa)))
    return ", ".join(word for word in words if word)


def _links(topology: Topology) -> Table:
    groups: dict[tuple[str, str], list[Link]] = {}
    for link in topology.links:
        groups.setdefault((_cable(link), link.layer), []).append(link)
    rows = tuple(
        (Cell(shortened(link.name for link in group)), cable, layer)
        for (cable, layer), group in groups.items()
    )
    return Table((Column("link", breaks=True), Column("cable"), Column("layer")), rows)


def _cable(link: Link) -> str:
    cable = link.cable
    count = f"{cable.count}x " if cable.count > 1 else ""
    lanes = f" x{cable.lanes}" if cable.lanes else ""
    return f"{count}{cable.medium}{lanes}"


def _resources(resources: Iterable[Resource]) -> Table:
    """Return resources with equal figures as one row a figure."""
    groups: dict[tuple[object, ...], list[Resource]] = {}
    for resource in resources:
        figures = tuple(_figures(resource))
        groups.setdefault((resource.kind, *figures), []).append(resource)
    rows: list[tuple[str | Cell, ...]] = []
    for group in groups.values():
        name = Cell(shortened(resource.id for resource in group))
        for place, (basis, figure) in enumerate(_figures(group[0])):
            rows.append(
                (
                    "" if place else name,
                    basis,
                    figure_text(figure),
                    sourced(figure),
                )
            )
    columns = (
        Column("resource", breaks=True),
        Column("figure"),
        Column("rate", right=True),
        Column("kind and source", breaks=True),
    )
    return Table(columns, tuple(rows))


def _figures(resource: Resource) -> Iterator[tuple[Basis, Figure]]:
    capacity = resource.capacity
    yield "theoretical", capacity.theoretical
    if capacity.achievable is not None:
        yield "achievable", capacity.achievable
    if capacity.measured is not None:
        yield "measured", capacity.measured


def _ram(topology: Topology) -> Iterator[Text]:
    """Yield what all memories carry together, and the datasheet's headline where it is more."""
    rate, headline = ram_rate(topology), ram_headline(topology)
    if rate is None or headline is None:
        return
    words = f"System RAM in all: {format_rate(rate)}"
    if headline > rate:
        words += f" as populated; {format_rate(headline)} is the headline, at one DIMM a channel"
    yield Text(f"{words}.")


def _settings(topology: Topology) -> str:
    facts = ((key, settings_value(topology.settings, key)) for key in SETTINGS)
    said = [
        f"{name} {' '.join(value) or 'none' if isinstance(value, list) else value}"
        for name, value in facts
        if value is not None
    ]
    return ", ".join(said) or "none stated"


_CAP_COLUMNS: Final = (
    Column("at"),
    Column("direction"),
    Column("rate"),
    Column("kind and source", breaks=True),
)


def _caps(topology: Topology) -> Iterator[tuple[str | Cell, ...]]:
    sites = [
        *((device.name, device.part.peer_caps) for device in topology.devices.values()),
        *((link.name, link.cable.p2p) for link in topology.links),
    ]
    for site, caps in sites:
        if caps is None:
            continue
        for direction, cap in (("posted", caps.posted), ("non-posted", caps.non_posted)):
            if cap is not None:
                rate = figure_text(cap.rate) + " a flow" * cap.per_flow
                yield Cell(site), direction, rate, sourced(cap.rate)


def _measured(topology: Topology) -> Table:
    rows = tuple(
        (
            Cell(f"{one.source} -> {one.target}"),
            figure_text(one.rate),
            one.date,
            sourced(one.rate),
        )
        for one in topology.description.measurements
    )
    columns = (
        Column("pair"),
        Column("rate", right=True),
        Column("date"),
        Column("kind and source", breaks=True),
    )
    return Table(columns, rows)


def _parts_of(topology: Topology) -> tuple[Part, ...]:
    """Return each different part once: a device's own figures make a part of their own."""
    found: list[Part] = []
    for device in topology.devices.values():
        if device.part not in found:
            found.append(device.part)
    return tuple(found)


def _workloads(topology: Topology) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for workload in topology.description.workloads:
        words = [workload_sentence(workload)]
        if workload.via:
            words.append(f"via {', '.join(workload.via)}")
        if workload.efficiency:
            low, high = (format_ratio(ratio) for ratio in workload.efficiency)
            words.append(f"at {low} to {high}")
        rows.append((Cell(workload.name), "; ".join(words)))
    return Table((Column(), Column(breaks=True)), tuple(rows))


# --- matrix -------------------------------------------------------------------------------------

_LEGEND: Final = """\
Legend:

  X    = Self
  SYS  = Across the link between NUMA nodes or sockets (UPI, xGMI)
  NODE = Across several PCIe host bridges of one NUMA node
  PHB  = Across one PCIe host bridge (a CPU's root complex)
  PXB  = Across several PCIe switches, no host bridge
  PIX  = Across at most one PCIe switch
  NV#  = Across a bonded set of # NVLinks"""


def matrix_page(
    topology: Topology,
    classes: Mapping[str, Mapping[str, str]],
    *,
    numa: Mapping[str, Sequence[int]],
) -> Iterator[Block]:
    """Yield the matrix in the layout of ``nvidia-smi topo -m``: tabs between aligned columns.

    Parameters
    ----------
    topology
        The machine.
    classes
        Class by row and column.
    numa
        OS numbers of the NUMA nodes that each row is attached to.
    """
    names = list(classes)
    affinity = any(numa[name] for name in names)
    grid = [["", *names, *(["NUMA Affinity"] if affinity else [])]]
    for name, row in classes.items():
        cells = [name, *(f" {row[other] or '-'} " for other in names)]
        grid.append([*cells, _nodes(numa[name])] if affinity else cells)
    yield Lines(_aligned(grid))
    yield Lines(_LEGEND)
    cards = [name for name in names if _is_card(topology, name)]
    if cards:
        yield Lines("\n".join(["NIC Legend:", "", *(_card(topology, name) for name in cards)]))


def _aligned(grid: list[list[str]]) -> str:
    widths = [max(len(row[place]) for row in grid) for place in range(len(grid[0]))]
    lines = (
        "\t".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(" ")
        for row in grid
    )
    return "\n".join(lines)


def _nodes(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "N/A"


def _is_card(topology: Topology, name: str) -> bool:
    return topology[name.partition("/")[0]].kind in ("nic", "dpu")


def _card(topology: Topology, name: str) -> str:
    """Return a card's line: its RDMA names, label and PCI addresses, one of each for a function."""
    device_name, _, function = name.partition("/f")
    device = topology[device_name]
    pick = slice(int(function), int(function) + 1) if function else slice(None)
    facts = (", ".join(device.rdma[pick]), device.label, ", ".join(device.pci[pick]))
    return f"  {name}: {'; '.join(fact for fact in facts if fact) or device.part.name}"


# --- paths --------------------------------------------------------------------------------------


def paths_page(topology: Topology, found: Sequence[PathSurvey]) -> Iterator[Block]:
    """Yield the data paths with their counts, their verdict for each workload, and their moves."""
    yield Heading(f"{topology.name}: data paths")
    workloads = [laid.workload.name for laid in found[0].laid]
    columns = (
        Column("data path"),
        *(Column(name) for name in workloads),
        Column("RAM traversals", right=True),
        Column("CPU memory copies", right=True),
        Column("copies by a core", right=True),
        Column("DRAM bytes per payload byte", right=True),
    )
    rows: tuple[tuple[str | Cell, ...], ...] = tuple(
        (
            Cell(one.data_path.name),
            *(verdict_cell(laid.verdict) for laid in one.laid),
            str(one.counts.ram_traversals),
            str(one.counts.cpu_memory_copies),
            str(one.counts.core_copies),
            str(one.counts.dram_bytes),
        )
        for one in found
    )
    yield Table(columns, rows)
    yield Heading("Moves")
    yield Table(
        (Column(), Column(breaks=True)),
        tuple((Cell(one.data_path.name), _moves(one)) for one in found),
    )
    against = tuple(_against(topology, found))
    if against:
        yield Heading("What stands against them")
        yield Table((Column(), Column(), Column(breaks=True)), against)


def _moves(one: PathSurvey) -> str:
    moves = (f"{move.source} -> {move.target} by {move.mover}" for move in one.data_path.moves)
    return "\n".join(filter(None, (one.data_path.title, ", ".join(moves))))


def _against(topology: Topology, found: Sequence[PathSurvey]) -> Iterator[tuple[str | Cell, ...]]:
    """Yield a row for what stands against each data path, and for which workloads."""
    for one in found:
        texts: dict[tuple[str, str], list[str]] = {}
        for laid in one.laid:
            for effect in ("refused", "unknown", "slower"):
                why = [
                    cited(topology, reason) for reason in laid.reasons if reason.effect == effect
                ]
                if why:
                    key = (effect, shortened(why))
                    texts.setdefault(key, []).append(laid.workload.name)
        for (effect, text), names in texts.items():
            whose = "" if len(names) == len(one.laid) else f"{', '.join(names)}: "
            yield Cell(one.data_path.name), effect, f"{whose}{text}"


def routes_page(
    topology: Topology, found: Sequence[PathSurvey], *, basis: Basis
) -> Iterator[Block]:
    """Yield every route: the links each move walks and what a payload byte uses."""
    yield Heading(f"{topology.name}: routes")
    for one in found:
        for laid in one.laid:
            for route in laid.routes:
                yield from _route(topology, route, basis)


def _route(topology: Topology, route: Route, basis: Basis) -> Iterator[Block]:
    way = "into" if route.direction == "read" else "out of"
    yield Heading(f"{route.data_path.name} {way} {route.gpu}: {route.verdict}")
    if route.waypoints:
        hops = spanned(hops_range(topology, [route]))
        links = spanned(links_range([route]))
        yield Text(
            f"{' -> '.join(route.waypoints)} ({hops} hops, {links} links walked)",
            hang=2,
        )
    if route.reasons:
        yield Table(
            (Column(), Column(breaks=True)),
            tuple((reason.effect, cited(topology, reason)) for reason in route.reasons),
        )
    for group in _alike(route.subflows):
        yield from _branches(group, alone=len(route.subflows) == 1)
    if route.use:
        yield _use(topology, route, basis)


def _alike(subflows: Iterable[Subflow]) -> list[list[Subflow]]:
    """Return the branches that differ in numbers only: same share, same moves, walks as long."""
    groups: dict[object, list[Subflow]] = {}
    for subflow in subflows:
        transfers = tuple(
            (transfer.move.source, transfer.move.target, unnumbered(_walk(transfer)))
            for transfer in subflow.transfers
        )
        groups.setdefault((f"{subflow.share:.9g}", transfers), []).append(subflow)
    return list(groups.values())


def _branches(group: Sequence[Subflow], *, alone: bool) -> Iterator[Block]:
    """Yield by what the branches of one group go, their share, and the links each move walks."""
    names = dict.fromkeys(subflow.card or subflow.storage for subflow in group)
    share = format_ratio(math.fsum(subflow.share for subflow in group) / len(names))
    each = " each" if len(names) > 1 else ""
    yield Text(f"by {shortened(names)}" if alone else f"by {shortened(names)}, {share}{each}:")
    columns = (Column("move"), Column("engine"), Column("links walked", breaks=True))
    yield Table(
        columns, tuple(map(_moved, zip(*(subflow.transfers for subflow in group), strict=True)))
    )


def _moved(transfers: tuple[Transfer, ...]) -> tuple[str, str, str]:
    """Return one row for the same move of several branches."""
    move, alternatives = transfers[0].move, transfers[0].alternatives
    others = f" (one of {alternatives} equal ways)" if alternatives > 1 else ""
    engines, walks = (shortened(map(find, transfers)) for find in (_engine, _walk))
    return f"{move.source} -> {move.target}", engines, walks + others


def _engine(transfer: Transfer) -> str:
    return transfer.engine


def _walk(transfer: Transfer) -> str:
    if not transfer.walk:
        return f"inside {transfer.source}"
    return " -> ".join([transfer.walk[0].source, *(step.target for step in transfer.walk)])


def _use(topology: Topology, route: Route, basis: Basis) -> Table:
    """Return what a payload byte uses, resources with equal figures on one row."""
    extra = {resource.id: resource for resource in route.extra}
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, weight in route.use.items():
        resource = topology.resources.get(name) or extra[name]
        figure = resource.capacity.at(basis)
        row = (
            f"{weight:.4g}",
            figure_text(figure),
            resource.capacity.used(basis),
            sourced(figure),
        )
        groups.setdefault((resource.kind, row), []).append(name)
    rows: list[tuple[str | Cell, ...]] = [
        (Cell(shortened(names)), *row) for (_, row), names in groups.items()
    ]
    columns = (
        Column("resource", breaks=True),
        Column("bytes per payload byte", right=True),
        Column("capacity", right=True),
        Column("figure"),
        Column("kind and source", breaks=True),
    )
    return Table(columns, tuple(rows))
