"""Changes worth asking about, from the catalogue: other cards, more cards, memory, sockets.

A candidate is a set of overrides, exactly what ``--set`` takes, so whatever topo says of it can be
asked again by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topo.catalogue.load import catalogue
from topo.datapaths.registry import data_path, data_paths
from topo.topology.locality import socket_of
from topo.units import format_bit_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from topo.catalogue.part import Part
    from topo.description.description import Device
    from topo.routes.route import Route
    from topo.topology.topology import Link, Topology


KINDS = (
    "other-card",
    "another-card",
    "faster-pcie",
    "faster-memory",
    "other-socket",
    "data-path",
)
"""What a candidate changes; costs are given by these."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to change.

    Parameters
    ----------
    kind
        One of `KINDS`.
    frame, thing
        What it is, in a few words: `frame` with `thing` in the place of ``{}``. Candidates of one
        frame differ in their thing only, and can share a line.
    changes
        Overrides, as ``--set`` takes them.
    via
        Another data path to ask by; empty keeps the one asked about.
    count
        How many things have to be bought or moved: costs are for each.
    """

    kind: str
    frame: str
    thing: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    via: str = ""
    count: int = 1

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.framed(self.thing)

    def framed(self, things: str) -> str:
        """Return the title with other things in it."""
        return self.frame.replace("{}", things)


def candidates(topology: Topology, routes: Iterable[Route], via: str) -> tuple[Candidate, ...]:
    """Return what could be changed on the way of `routes`, without asking whether it helps.

    Parameters
    ----------
    topology
        The machine.
    routes
        The routes in use: only cards and memories on them are changed.
    via
        The data path in use.
    """
    laid = [subflow for route in routes for subflow in route.subflows]
    cards = _in_file_order(topology, {subflow.card for subflow in laid if subflow.card})
    memories = _in_file_order(topology, {name for subflow in laid for _, name in subflow.memories})
    return (
        *_other_cards(topology, cards),
        *_another_card(topology, cards),
        *_pcie_generation(topology, cards),
        *_faster_memory(memories),
        *_other_socket(topology, cards),
        *(
            Candidate("data-path", "data path {}", name, via=name)
            for name in _paths_like(topology, via)
            if name != via
        ),
    )


def _paths_like(topology: Topology, via: str) -> Iterator[str]:
    """Yield the data paths that join the same sort of ends as `via`."""
    far_end = data_path(topology.description, via).far_end
    for path in data_paths(topology.description):
        if path.far_end == far_end:
            yield path.name


def _in_file_order(topology: Topology, names: set[str]) -> tuple[Device, ...]:
    return tuple(device for name, device in topology.devices.items() if name in names)


def _by_part(devices: tuple[Device, ...]) -> Iterator[tuple[Part, tuple[Device, ...]]]:
    for name in dict.fromkeys(device.part.name for device in devices):
        alike = tuple(device for device in devices if device.part.name == name)
        yield alike[0].part, alike


# --- cards ----------------------------------------------------------------------------------------


def _other_cards(topology: Topology, cards: tuple[Device, ...]) -> Iterator[Candidate]:
    """Yield the cards of the catalogue with a faster chip that have as many ports as are cabled."""
    for part, alike in _by_part(cards):
        if part.flag("bridge"):
            continue
        cabled = max(len(_network_links(topology, card)) for card in alike)
        for other in _faster_cards(part, cabled):
            changes = {f"{card.name}.part": other.name for card in alike}
            chip = _value(other, "chip")
            title = f"{other.name} instead of {part.name} ({format_bit_rate(chip)} a chip)"
            yield Candidate("other-card", title, changes=changes, count=len(alike))
            wider = _generation_changes(topology, alike, other.slot.generation if other.slot else 0)
            if wider:
                assert other.slot is not None
                yield Candidate(
                    "other-card",
                    f"{title} on PCIe {other.slot.generation}",
                    changes={**changes, **wider},
                    count=len(alike),
                )


def _faster_cards(part: Part, ports: int) -> Iterator[Part]:
    """Yield one card for each faster chip rate, slowest first: the first of that rate by name."""
    now = _value(part, "chip")
    found: dict[float, Part] = {}
    parts = catalogue().parts
    for name in sorted(parts):
        other = parts[name]
        enough = other.ports is not None and (other.ports.count or 0) >= ports
        fits = other.kind == part.kind and enough and not other.flag("bridge")
        if fits and _value(other, "chip") > now:
            found.setdefault(_value(other, "chip"), other)
    for rate in sorted(found):
        yield found[rate]


def _another_card(topology: Topology, cards: tuple[Device, ...]) -> Iterator[Candidate]:
    """Yield one more of each kind of card, and one more beside every one of them."""
    taken = set(topology.devices)
    for part, alike in _by_part(cards):
        if part.flag("bridge"):
            continue
        names = _free_names(alike[0].name, taken, len(alike))
        if len(alike) > 1:
            every = {name: card.name for name, card in zip(names, alike, strict=True)}
            title = f"a second {part.name} beside each ({', '.join(every)})"
            yield Candidate("another-card", title, changes=every, count=len(alike))
        for card in alike:
            yield Candidate(
                "another-card",
                f"another {part.name} ({names[0]}) beside {{}}",
                card.name,
                {names[0]: card.name},
            )


def _free_names(like: str, taken: set[str], count: int) -> list[str]:
    stem = re.sub(r"\d+$", "", like)
    numbers = [int(name[len(stem) :]) for name in taken if re.fullmatch(rf"{stem}\d+", name)]
    first = max(numbers, default=0) + 1
    return [f"{stem}{number}" for number in range(first, first + count)]


def _pcie_generation(topology: Topology, cards: tuple[Device, ...]) -> Iterator[Candidate]:
    """Yield the next PCIe generation for the cards' slots where the cards themselves have it."""
    for part, alike in _by_part(cards):
        generation = part.slot.generation if part.slot else 0
        changes = _generation_changes(topology, alike, generation)
        if changes:
            title = f"PCIe {generation} in the slots of {part.name}"
            yield Candidate("faster-pcie", title, changes=changes, count=len(changes))


def _generation_changes(
    topology: Topology, cards: tuple[Device, ...], generation: int
) -> dict[str, str]:
    """Return what puts the cards' own PCIe links at `generation`, where they are below it."""
    return {
        f"{card.name} -- {_far(link, card.name)}": f"pcie {generation} x{link.cable.lanes}"
        for card in cards
        for link in _pcie_links(topology, card)
        if (link.cable.generation or generation) < generation and link.cable.lanes
    }


def _other_socket(topology: Topology, cards: tuple[Device, ...]) -> Iterator[Candidate]:
    """Yield each card moved to each other socket."""
    hosts = topology.of_kind("cpu", "root-complex")
    for card in cards:
        here = socket_of(topology, card.name)
        links = [link for link in _pcie_links(topology, card) if _far(link, card.name) == here]
        for host in hosts:
            if host.name != here and len(links) == 1:
                yield Candidate(
                    "other-socket",
                    f"{{}} moved from {here} to {host.name}",
                    card.name,
                    {f"{card.name} -- {here}": f"{card.name} -- {host.name}"},
                )


def _network_links(topology: Topology, card: Device) -> list[Link]:
    return [step.link for step in topology.steps[card.name] if step.link.layer == "network"]


def _pcie_links(topology: Topology, card: Device) -> list[Link]:
    return [step.link for step in topology.steps[card.name] if step.link.cable.family == "pcie"]


def _far(link: Link, name: str) -> str:
    return link.b.device if link.a.device == name else link.a.device


# --- memory ---------------------------------------------------------------------------------------


def _faster_memory(memories: tuple[Device, ...]) -> Iterator[Candidate]:
    """Yield one DIMM a channel where there are two, and the faster modules of the catalogue.

    A memory whose bus is quoted as a whole has no channels to change.
    """
    for part, alike in _by_part(memories):
        if part.figure("bus") is not None or part.figure("channels") is None:
            continue
        if _value(part, "dimms-per-channel") > 1:
            changes = {f"{memory.name}.dimms-per-channel": "1" for memory in alike}
            yield Candidate(
                "faster-memory", "one DIMM a channel", changes=changes, count=len(alike)
            )
        yield from _faster_modules(part, alike)


def _faster_modules(part: Part, alike: tuple[Device, ...]) -> Iterator[Candidate]:
    now = _value(part, "transfer-rate")
    family = part.name.split("-")[0]
    for name, other in sorted(catalogue().parts.items()):
        if name.split("-")[0] == family and _value(other, "transfer-rate") > now:
            yield Candidate(
                "faster-memory",
                f"{{}} instead of {part.name}",
                name,
                {f"{memory.name}.part": name for memory in alike},
                count=len(alike),
            )


def _value(part: Part, key: str) -> float:
    figure = part.figure(key)
    return figure.value if figure is not None and figure.value is not None else 0.0
