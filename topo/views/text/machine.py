"""Pages about a machine and its parts: what they are, and how data may travel through it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import FIELDS, FLAG, MEDIUM_FIELDS, SLOT, Quantity
from topo.description.keys import SETTINGS
from topo.phrases import shortened, unnumbered
from topo.topology.capacities import ram_headline, ram_rate
from topo.topology.resources import Resource
from topo.topology.tiers import Network, Tier, networks
from topo.units import format_rate, format_ratio
from topo.views.explain import move_words
from topo.views.text.page import (
    SOURCES,
    Cell,
    Heading,
    Text,
    citing,
    figure_text,
    grouped,
    origin,
    right,
    sourced,
    spanned,
    table,
    title_of,
    verdict_cell,
    wide,
    without_words,
    workload_sentence,
)

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.catalogue.part import Figure, Medium, Part, PeerCaps, Ports
    from topo.description.description import Basis, Device, Fabric, Settings, Workload
    from topo.routes.route import Route, Subflow, Transfer
    from topo.study.answers import PathRoutes, RoutedPath
    from topo.topology.topology import Link, Topology
    from topo.views.text.page import Block, Row, Table


_COUNTS: Final = (
    "RAM traversals",
    "CPU memory copies",
    "copies by a core",
    "DRAM bytes per payload byte",
)
_BESIDE_COUNTS: Final = 4  # workloads whose verdicts fit a line with the counts
_A_TABLE: Final = 6  # workloads whose verdicts fit a line alone
_ALIKE: Final = 1e-9  # ratios of one tier that differ by less are one

# --- show ---------------------------------------------------------------------------------------


def show_page(topology: Topology) -> Iterator[Block]:
    """Yield devices, links, parts and resources, every figure with its kind and source."""
    return citing(_shown(topology))


def _shown(topology: Topology) -> Iterator[Block]:
    yield Heading(title_of(topology))
    yield _devices(topology)
    links = grouped(topology.links, lambda link: (_cable(link), link.layer))
    yield table(
        (wide("link"), "cable", "layer"),
        ((Cell(shortened(_link_names(topology, group))), *cells) for cells, group in links.items()),
    )
    if topology.description.fabrics:
        yield Heading("Fabrics: what was made by rule")
        yield _fabrics(topology.description.fabrics)
    tiered = [network for network in networks(topology) if len(network.tiers) > 1]
    if tiered:
        yield Heading("Networks: what meets at each tier, from the cards up")
        yield _tiers(tiered)
    folding = topology.folding
    for stated, hosts in grouped(topology.settings_by_host.items(), _settings).items():
        names = dict.fromkeys(folding.shown(host) if folding else host for host, _ in hosts)
        of = f" of {shortened(names)}" if hosts[0][0] else ""
        yield Text(f"Settings{of}: {stated or 'none stated'}.")
    yield Heading("Resources: what transfers share")
    yield _resources(_each_class(topology))
    rate, headline = ram_rate(topology), ram_headline(topology)
    if rate is not None and headline is not None:
        words = f"System RAM in all: {format_rate(rate)}"
        if headline > rate:
            words += (
                f" as populated; {format_rate(headline)} is the headline, at one DIMM a channel"
            )
        yield Text(f"{words}.")
    sites = [
        *((device.name, device.part.peer_caps) for device in topology.devices.values()),
        *((link.name, link.cable.p2p) for link in topology.links),
    ]
    caps = [(Cell(site), *cap) for site, stated in sites for cap in _peer_caps(stated)]
    if caps:
        yield Heading("Peer-to-peer caps")
        yield table(("at", "direction", "rate", SOURCES), caps)
    if topology.description.measurements:
        yield Heading("Measured")
        yield table(
            ("pair", right("rate"), "date", SOURCES),
            (
                (
                    Cell(f"{measurement.source} -> {measurement.target}"),
                    figure_text(measurement.rate),
                    measurement.date,
                    sourced(measurement.rate),
                )
                for measurement in topology.description.measurements
            ),
        )
    # Each different part once: a device's own figures make a part of their own.
    parts: list[Part] = []
    for device in topology.devices.values():
        if device.part not in parts:
            parts.append(device.part)
    if any(part.figures or part.flags or part.slot for part in parts):
        yield Heading("Parts: what each is known for")
        yield table(
            ("part", "key", "value", SOURCES),
            (
                ("" if place else Cell(part.name), *fact)
                for part in parts
                for place, fact in enumerate(_facts(part))
            ),
        )
    if topology.description.workloads:
        yield Heading("Workloads")
        yield table(("", wide()), map(_workload, topology.description.workloads))


def _settings(of_host: tuple[str, Settings]) -> str:
    """Return what the settings of a host say."""
    return ", ".join(
        f"{key} {' '.join(value) or 'none' if isinstance(value, list) else value}"
        for key in SETTINGS
        if (value := of_host[1].stated(key)) is not None
    )


def _devices(topology: Topology) -> Table:
    def about(device: Device) -> str:
        numa = "NUMA " + ", ".join(map(str, device.numa)) if device.numa else ""
        return ", ".join(filter(None, (device.role, "outside" * device.outside, numa)))

    groups = grouped(
        topology.devices.values(),
        lambda device: (device.kind, device.part.name, device.part.title, about(device)),
    )
    return table(
        (wide("device"), "kind", "part", wide("title"), wide()),
        ((Cell(_names_of(topology, group)), *cells) for cells, group in groups.items()),
    )


def _names_of(topology: Topology, devices: Iterable[Device]) -> str:
    """Return the names of devices, and of all that they stand for in a folded topology."""
    folding = topology.folding
    if folding is None:
        return shortened(device.name for device in devices)
    names = dict.fromkeys(folding.shown(device.name) for device in devices)
    count = sum(topology.cell_size(device.name) for device in devices)
    return f"{shortened(names)} ({count})"


def _link_names(topology: Topology, links: Iterable[Link]) -> dict[str, None]:
    """Return the names of links, of what is alike in a folded topology once for all."""
    folding = topology.folding
    if folding is None:
        return dict.fromkeys(link.name for link in links)
    return dict.fromkeys(
        " -- ".join(
            folding.shown(end.device) + (f"/{end.side}" if end.side else "")
            for end in (link.a, link.b)
        )
        for link in links
    )


def _fabrics(fabrics: Iterable[Fabric]) -> Table:
    """Return the tiers of each fabric: its switches, and the cables that lead up to them."""
    rows: list[Row] = []
    for fabric in fabrics:
        rows += [
            (
                "" if place else Cell(fabric.name),
                "" if place else fabric.kind,
                tier.role,
                str(len(tier.switches)),
                shortened(tier.switches),
                str(tier.cables),
            )
            for place, tier in enumerate(fabric.tiers)
        ]
    columns = ("fabric", "kind", "tier", right("switches"), wide(), right("cables below"))
    return table(columns, rows)


def _tiers(tiered: Iterable[Network]) -> Table:
    """Return the tiers of networks: bandwidth of the cables below and above, and their ratio."""
    rows: list[Row] = [
        (
            Cell(str(number)),
            shortened(tier.switches),
            _bandwidth(tier.below),
            _bandwidth(tier.above),
            _bandwidth(tier.storage),
            Cell(_oversubscription(tier)),
        )
        for network in tiered
        for number, tier in enumerate(network.tiers, start=1)
    ]
    return table(
        (
            right("tier"),
            wide("switches"),
            right("below"),
            right("above"),
            right("to storage"),
            "oversubscription",
        ),
        rows,
    )


def _bandwidth(rate: float | None) -> str:
    if rate is None:
        return "unknown"
    return format_rate(rate) if rate else "-"


def _oversubscription(tier: Tier) -> str:
    """Return the ratio of a tier as people write it, ``2:1``, and that of its worst switch."""
    ratio = tier.oversubscription
    if ratio is None:
        return "unknown" if None in (tier.below, tier.above) else "-"
    worst = tier.highest or ratio
    return f"{ratio:.3g}:1" + f", up to {worst:.3g}:1" * (worst > ratio * (1 + _ALIKE))


def _cable(link: Link) -> str:
    cable = link.cable
    count = f"{cable.count}x " if cable.count > 1 else ""
    lanes = f" x{cable.lanes}" if cable.lanes else ""
    return f"{count}{cable.medium}{lanes}"


def _resources(resources: Iterable[Resource]) -> Table:
    """Return resources with equal figures as one row a figure."""

    def figures(resource: Resource) -> tuple[tuple[str, Figure], ...]:
        capacity = resource.capacity
        by_basis = {"achievable": capacity.achievable, "measured": capacity.measured}
        stated = ((basis, figure) for basis, figure in by_basis.items() if figure is not None)
        return ("theoretical", capacity.theoretical), *stated

    groups = grouped(resources, lambda resource: (resource.kind, figures(resource)))
    rows: list[Row] = []
    for (_, stated), group in groups.items():
        names = Cell(shortened(resource.id for resource in group))
        rows += [
            ("" if place else names, basis, figure_text(figure), sourced(figure))
            for place, (basis, figure) in enumerate(stated)
        ]
    return table((wide("resource"), "figure", right("rate"), SOURCES), rows)


def _each_class(topology: Topology) -> Iterable[Resource]:
    """Return the resources, of a folded topology those that are alike as one."""
    if topology.folding is None:
        return topology.all_resources
    alike = topology.alike_resources
    return dict.fromkeys(
        alike[resource.id].resource if resource.id in alike else resource
        for resource in topology.resources.values()
    )


def _peer_caps(caps: PeerCaps | None) -> Iterator[tuple[str, str, str]]:
    """Yield direction, rate, and kind and source of the caps that are stated."""
    directions = {"posted": caps.posted, "non-posted": caps.non_posted} if caps else {}
    for direction, cap in directions.items():
        if cap is not None:
            rate = figure_text(cap.rate) + " a flow" * cap.per_flow
            yield direction, rate, sourced(cap.rate)


def _workload(workload: Workload) -> Row:
    words = [workload_sentence(workload)]
    if workload.via:
        words.append(f"via {', '.join(workload.via)}")
    if workload.efficiency:
        words.append("at " + " to ".join(map(format_ratio, workload.efficiency)))
    return Cell(workload.name), "; ".join(words)


# --- paths and routes -----------------------------------------------------------------------------


def paths_page(topology: Topology, surveys: Sequence[PathRoutes]) -> Iterator[Block]:
    """Yield the data paths with their counts, their verdict for each workload, and their moves."""
    yield Heading(f"{topology.name}{without_words(topology)}: data paths")
    count = len(surveys[0].workloads)
    parts = [(0, count, True)]  # from and to which workload, and whether the counts stand beside
    if count > _BESIDE_COUNTS:
        starts = range(0, count, _A_TABLE)
        parts = [*((start, start + _A_TABLE, False) for start in starts), (count, count, True)]
    for start, stop, is_counted in parts:
        yield table(
            (
                "data path",
                *(routed.workload.name for routed in surveys[0].workloads[start:stop]),
                *(map(right, _COUNTS) if is_counted else ()),
            ),
            (
                (
                    Cell(survey.data_path.name),
                    *map(_cell, survey.workloads[start:stop]),
                    *(_counts(survey) if is_counted else ()),
                )
                for survey in surveys
            ),
        )
    yield Heading("Moves")
    rows: list[Row] = []
    for survey in surveys:
        path = survey.data_path
        moves = ", ".join(map(move_words, path.moves))
        rows.append((Cell(path.name), "\n".join(filter(None, (path.title, moves)))))
    yield table(("", wide()), rows)
    reasons = [row for survey in surveys for row in _reasons(topology, survey)]
    if reasons:
        yield Heading("What stands against them")
        yield table(("", "", wide()), reasons)


def _cell(routed: RoutedPath) -> Cell | str:
    return "-" if _misfit(routed) else verdict_cell(routed.verdict)


def _misfit(routed: RoutedPath) -> bool:
    """Whether a data path joins other sorts of ends than a workload has."""
    return any(reason.code == "wrong-ends" for reason in routed.reasons)


def _counts(survey: PathRoutes) -> tuple[str, ...]:
    counts = survey.counts
    numbers = (counts.ram_traversals, counts.cpu_memory_copies, counts.core_copies)
    return tuple(map(str, (*numbers, counts.dram_bytes)))


def _reasons(topology: Topology, survey: PathRoutes) -> Iterator[Row]:
    """Yield a row for what stands against a data path, and for which workloads."""
    from topo.views.sentences import cited  # imports the study, which a part's page does without

    workloads: dict[tuple[str, str], list[str]] = {}
    fitting = [routed for routed in survey.workloads if not _misfit(routed)]
    for routed in fitting or survey.workloads:
        if routed.stopped:
            fact = f"no way any more for {shortened(routed.stopped)}"
            workloads.setdefault(("cut off", fact), []).append(routed.workload.name)
        by_effect = grouped(routed.reasons, lambda reason: reason.effect)
        for effect in ("refused", "unknown", "slower"):
            if effect in by_effect:
                text = shortened(cited(topology, reason) for reason in by_effect[effect])
                workloads.setdefault((effect, text), []).append(routed.workload.name)
    for (effect, text), names in workloads.items():
        whose = "" if len(names) == len(fitting or survey.workloads) else f"{', '.join(names)}: "
        yield Cell(survey.data_path.name), effect, f"{whose}{text}"


def routes_page(
    topology: Topology, surveys: Sequence[PathRoutes], *, basis: Basis
) -> Iterator[Block]:
    """Yield every route: the links each move walks and what a payload byte uses."""
    yield Heading(f"{topology.name}{without_words(topology)}: routes")
    routes = (r for survey in surveys for routed in survey.workloads for r in routed.routes)
    yield from citing(chain.from_iterable(_route(topology, route, basis) for route in routes))


def _route(topology: Topology, route: Route, basis: Basis) -> Iterator[Block]:
    from topo.routes.route import hops_range, links_range
    from topo.views.sentences import cited

    into = "into" if route.direction == "read" else "out of"
    yield Heading(f"{route.data_path.name} {into} {route.endpoint}: {route.verdict}")
    if route.waypoints:
        hops = spanned(hops_range(topology, [route]))
        links = spanned(links_range([route]))
        yield Text(f"{' -> '.join(route.waypoints)} ({hops} hops, {links} links walked)", hang=2)
    if route.reasons:
        yield table(
            ("", wide()), ((reason.effect, cited(topology, reason)) for reason in route.reasons)
        )
    # Branches that differ in numbers only stand together: same share, same moves, walks as long.
    for group in grouped(route.subflows, _pattern).values():
        yield from _branches(group, alone=len(route.subflows) == 1)
    if route.use:
        yield _use(topology, route, basis)


def _pattern(subflow: Subflow) -> tuple[object, ...]:
    moves = (
        (transfer.move.source, transfer.move.target, unnumbered(_walk(transfer)))
        for transfer in subflow.transfers
    )
    return (f"{subflow.share:.9g}", *moves)


def _branches(group: Sequence[Subflow], *, alone: bool) -> Iterator[Block]:
    """Yield by what the branches of one group go, their share, and the links each move walks."""
    names = dict.fromkeys(subflow.card or subflow.far for subflow in group)
    share = format_ratio(math.fsum(subflow.share for subflow in group) / len(names))
    each = " each" if len(names) > 1 else ""
    yield Text(f"by {shortened(names)}" if alone else f"by {shortened(names)}, {share}{each}:")
    moves = zip(*(subflow.transfers for subflow in group), strict=True)
    rows: list[Row] = []
    for transfers in moves:  # the same move of several branches
        move, alternatives = transfers[0].move, transfers[0].alternatives
        engines = shortened(transfer.engine for transfer in transfers)
        walks = shortened(map(_walk, transfers))
        if alternatives > 1:
            walks += f" (one of {alternatives} equal ways)"
        rows.append((f"{move.source} -> {move.target}", engines, walks))
    yield table(("move", "engine", wide("links walked")), rows)


def _walk(transfer: Transfer) -> str:
    if not transfer.walk:
        return f"inside {transfer.source}"
    return " -> ".join([transfer.walk[0].source, *(step.target for step in transfer.walk)])


def _use(topology: Topology, route: Route, basis: Basis) -> Table:
    """Return what a payload byte uses, resources with equal figures on one row."""
    extra = {resource.id: resource for resource in route.extra}

    def figures(name: str) -> tuple[str, ...]:
        resource = topology.resources.get(name) or extra[name]
        figure = resource.capacity.at(basis)
        return (
            resource.kind,
            f"{route.use[name]:.4g}",
            figure_text(figure),
            resource.capacity.used(basis),
            sourced(figure),
        )

    return table(
        (
            wide("resource"),
            right("bytes per payload byte"),
            right("capacity"),
            "figure",
            SOURCES,
        ),
        (
            (Cell(shortened(names)), *cells)
            for (_, *cells), names in grouped(route.use, figures).items()
        ),
    )


# --- the catalogue --------------------------------------------------------------------------------


def catalogue_page(
    parts: Iterable[Part], media: Iterable[Medium], needs: Iterable[Need] = ()
) -> Iterator[Block]:
    """Yield parts by kind, then media and what models need: names to write in a file."""
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
    named = [(Cell(need.name), need.title) for need in needs]
    if named:
        yield Heading("needs")
        yield table(("", wide()), named)


def part_page(part: Part) -> Iterator[Block]:
    """Yield a part in full, each figure with its kind and source, and what the keys mean."""
    yield Heading(f"{part.name}: {part.title}" if part.title else part.name)
    yield Text(f"A part of kind {part.kind}." + f" Source: {part.source}." * bool(part.source))
    facts = table(
        ("key", "value", SOURCES, wide("meaning")),
        (
            (Cell(key), value, source, FIELDS[key].meaning if key in FIELDS else "")
            for key, value, source in _facts(part)
        ),
    )
    yield from citing([facts])


def medium_page(medium: Medium) -> Iterator[Block]:
    """Yield a medium in full, each figure with its kind and source."""
    yield Heading(f"{medium.name}: {medium.title}" if medium.title else medium.name)
    yield Text(
        f"A medium of the family {medium.family}, reach {medium.reach}."
        + f" Source: {medium.source}." * bool(medium.source)
    )
    yield from citing([table(("key", "value", SOURCES), _medium_facts(medium))])


def _facts(part: Part) -> Iterator[tuple[str, str, str]]:
    """Yield key, value, and kind and source of everything that is known of a part."""
    if part.slot is not None:
        yield "pcie", SLOT.text(part.slot), origin(part.slot.kind, part.slot.source)
    for key, ports in (("ports", part.ports), ("fabric", part.fabric)):
        if ports is not None:
            yield key, *ports_text(ports)
    for key, figure in part.figures.items():
        yield key, figure_and_range(figure, FIELDS[key].quantity), sourced(figure)
    for key, flag in part.flags.items():
        yield key, FLAG.text(flag), part.sources.get(key, part.source)
    for key, fact in part.facts.items():
        yield key, fact, part.sources.get(key, part.source)
    for direction, rate, source in _peer_caps(part.peer_caps):
        yield f"p2p {direction}", rate, source


def figure_and_range(figure: Figure, quantity: Quantity) -> str:
    """Return a figure, and between what it may lie where its source says that."""
    text = figure_text(figure, quantity)
    if figure.range is None:
        return text
    low, high = map(quantity.text, figure.range)
    return f"{text} ({low} to {high})"


def ports_text(ports: Ports) -> tuple[str, str]:
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
        ("duplex", medium.duplex),
        ("dma", medium.dma),
    ):
        if figure is not None:
            quantity = MEDIUM_FIELDS[name].quantity
            yield Cell(name), figure_and_range(figure, quantity), sourced(figure)
        elif name == "encoding" and medium.encoding:
            yield Cell(name), medium.encoding, medium.source
