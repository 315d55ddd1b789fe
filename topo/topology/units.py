"""The units of a cluster, and the cables between them as arrays.

A unit is a used topology (a server), or a device of the outer file (a network switch, an
appliance).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from topo.description.description import DescribedLink, Description, Device, End, Use
from topo.description.flat import DeviceIndex, without_nesting
from topo.description.links import FreePorts
from topo.graph import numbered
from topo.records import dataclass
from topo.topology.refinement import MIX

if TYPE_CHECKING:
    from topo.catalogue.part import Cable

    Hashes = np.ndarray[Any, np.dtype[np.uint64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

_OUTER: Final = ("network-switch", "storage")  # what the outer file may have beside its servers


@dataclass(frozen=True, slots=True)
class Unit:
    """A used topology, or a device of the outer file, by the name it stands under.

    Units of one `kind` are the same, without what they are cabled to. A device by itself is of no
    `use`.
    """

    name: str
    kind: int
    use: Use | None
    device: Device | None


def units_of(description: Description) -> list[Unit]:
    """Return the units of a description that uses no machines inside machines."""
    kinds: dict[object, int] = {}

    def kind(key: object) -> int:
        return kinds.setdefault(key, len(kinds))

    def kind_of(device: Device) -> int:
        part, rdma = id(device.part), bool(device.rdma)
        return kind((part, device.role, device.outside, device.numa, rdma))

    devices = [Unit(each.name, kind_of(each), None, each) for each in description.devices]
    servers = [
        Unit(name, kind(id(use.template)), use, None)
        for use in description.uses
        for name in use.names
    ]
    return devices + servers


def unit_of(device: str, units: Container[str]) -> str:
    """Return the unit that a device is in, the longest beginning of its name that is one.

    ``""`` where none is.
    """
    unit = device
    while unit and unit not in units:
        unit = unit.rpartition(".")[0]
    return unit


class Ports(NamedTuple):
    """The two ends of a cable within their units, as it is written, and which cable it is.

    Devices are named without their unit's name, which for a device by itself is all of it.
    """

    a: str
    a_side: str
    b: str
    b_side: str
    cable: int


@dataclass(frozen=True, slots=True)
class Cables:
    """The cables between units as arrays, each twice: as either end sees it, sorted by that end.

    `owner` sees `other` through a cable whose `code` is twice its index in `ports`, and one more at
    the end that is written second; `link` is the number of the link that it is of. `starts` are the
    first of each owner that has any, `owners` those owners.
    """

    owner: Ints
    other: Ints
    code: Ints
    link: Ints
    starts: Ints
    owners: Ints
    ports: Sequence[Ports]

    @property
    def labels(self) -> Hashes:
        """What each cable is as its owner sees it, as a hash."""
        return self.code.astype(np.uint64) * MIX[3]


def cables_of(
    units: Sequence[Unit], links: Sequence[DescribedLink], is_card: Callable[[str], bool]
) -> Cables:
    """Return the cables of links, each network cable in a port of its card."""
    places = {unit.name: place for place, unit in enumerate(units)}
    located: dict[str, tuple[int, str, bool]] = {}  # a device's unit, its name there, is it a card

    def locate(device: str) -> tuple[int, str, bool]:
        unit = unit_of(device, places)
        located[device] = place = (places[unit], device[len(unit) :], is_card(device))
        return place

    cable_numbers: dict[Cable, int] = {}
    number_of: dict[int, int] = {}  # by identity first: links of one line share their cable
    ports: dict[Ports, int] = {}
    rows: list[tuple[int, int, int, int]] = []
    free = FreePorts(end for link in links for end in (link.a, link.b))
    for number, link in enumerate(links):
        a, b, cable = link.a, link.b, link.cable
        a_place, a_inner, a_is_card = located.get(a.device) or locate(a.device)
        b_place, b_inner, b_is_card = located.get(b.device) or locate(b.device)
        cable_number = number_of.get(id(cable), -1)
        if cable_number < 0:
            cable_number = cable_numbers.setdefault(cable, len(cable_numbers))
            number_of[id(cable)] = cable_number
        in_ports = cable.reach == "network" and (a_is_card or b_is_card)
        a_side, b_side = a.side, b.side
        for _ in range(cable.count if in_ports else 1):
            if in_ports and a_is_card:
                a_side = a.side or free.next_of(a.device)
            if in_ports and b_is_card:
                b_side = b.side or free.next_of(b.device)
            both = Ports(a_inner, a_side, b_inner, b_side, cable_number)
            rows.append((a_place, b_place, ports.setdefault(both, len(ports)), number))
    columns = np.array(rows, np.int64).reshape(-1, 4)
    first, second, port, link_number = columns.T
    owner = np.concatenate((first, second))
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return Cables(
        owner=owner,
        other=np.concatenate((second, first))[order],
        code=np.concatenate((2 * port, 2 * port + 1))[order],
        link=np.concatenate((link_number, link_number))[order],
        starts=starts,
        owners=owner[starts],
        ports=tuple(ports),
    )


# --- a cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cluster:
    """The units of a description, the links they are cabled by, and a colour for each unit.

    Units of different colours are told apart from the start.
    """

    description: Description
    units: Sequence[Unit]
    links: Sequence[DescribedLink]
    cables: Cables
    colours: Ints

    def left(self, description: Description) -> Cluster | None:
        """Return the cluster of what is left of its description when something fails in it.

        Arrays and colours are kept, but for what is gone and for what has changed. `None` where
        that takes reading it anew.
        """
        before = self.description
        if any(use.template.uses for use in description.uses):
            return None  # the links of templates are named anew in each reading
        if {work.name for work in description.workloads} - {work.name for work in before.workloads}:
            return None  # its ends are not told apart
        links, cables = self.links, self.cables
        if description.links is not before.links:
            links, cables = self._cables_left(description)
        templates = {id(use.template) for use in before.uses}
        changed = [use for use in description.uses if id(use.template) not in templates]
        different = dict.fromkeys(id(use.template) for use in changed)
        numbers = {template: number for number, template in enumerate(different)}
        new_kind = max(unit.kind for unit in self.units) + 1
        units, colours, most = list(self.units), self.colours.copy(), int(self.colours.max())
        left = {device.name for device in description.devices}
        left.update(*(use.names for use in description.uses))
        alive = np.ones(len(units), bool)
        alive[[place for name, place in self.places.items() if name not in left]] = False
        for use in changed:
            number = numbers[id(use.template)]
            for name in use.names:
                place = self.places[name]
                colours[place] = most + 1 + number
                units[place] = replace(units[place], kind=new_kind + number, use=use)
        if not alive.all():
            units = [units[place] for place in np.flatnonzero(alive).tolist()]
        return Cluster(
            description,
            units,
            links,
            cables if alive.all() else _renumbered_owners(cables, alive),
            colours[alive],
        )

    def _cables_left(self, description: Description) -> tuple[list[DescribedLink], Cables]:
        """Return the links, those of which a cable is left anew, and the cables that are left."""
        number_of = self._number_of
        left = np.fromiter(map(id, description.links), np.int64, len(description.links))
        known, numbers = self._identities
        at = np.minimum(np.searchsorted(known, left), known.size - 1)
        is_gone = np.ones(len(self.links), bool)
        is_gone[numbers[at[known[at] == left]]] = False
        gone = np.flatnonzero(is_gone).tolist()
        anew = left.size > len(self.links) - len(gone)
        by_ends: dict[tuple[End, End], list[int]] = {}
        for number in gone:
            by_ends.setdefault((self.links[number].a, self.links[number].b), []).append(number)
        links, cables = list(self.links), self.cables
        ports = list(cables.ports)
        code, kept = cables.code.copy(), ~is_gone[cables.link]
        for link in description.links if anew else ():
            if id(link) in number_of:
                continue
            number = by_ends[link.a, link.b].pop(0)  # of a bundle one cable less
            links[number] = link
            rows = np.flatnonzero(cables.link == number)
            of_cable = code[rows] // 2
            different = sorted(set(of_cable.tolist()))
            if len(different) > 1:  # each in a port of its own
                kept[rows] = np.isin(of_cable, different[: link.cable.count])
                continue
            ports.append(ports[int(of_cable[0])]._replace(cable=-1 - number))
            code[rows] = 2 * (len(ports) - 1) + code[rows] % 2
            kept[rows] = True
        owner = cables.owner[kept]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        left_over = Cables(
            owner=owner,
            other=cables.other[kept],
            code=code[kept],
            link=cables.link[kept],
            starts=starts,
            owners=owner[starts],
            ports=tuple(ports),
        )
        return links, left_over

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each unit, by its name."""
        return {unit.name: place for place, unit in enumerate(self.units)}

    @cached_property
    def partitions(self) -> dict[bytes, tuple[Ints, Ints]]:
        """What is known of classes and cells when units start with other colours, by those."""
        return {}

    @cached_property
    def _identities(self) -> tuple[Ints, Ints]:
        """The identities of the links in ascending order, and the number of each."""
        identities = np.fromiter(map(id, self.links), np.int64, len(self.links))
        order = np.argsort(identities)
        return identities[order], order

    @cached_property
    def _number_of(self) -> dict[int, int]:
        """The number of each link, by its identity."""
        return {id(link): number for number, link in enumerate(self.links)}


def _renumbered_owners(cables: Cables, alive: np.ndarray[Any, np.dtype[np.bool_]]) -> Cables:
    """Return cables between the units that are alive, by the places that those have then."""
    place = np.cumsum(alive) - 1
    owner = place[cables.owner]
    return replace(cables, owner=owner, other=place[cables.other], owners=owner[cables.starts])


def cluster_of(description: Description) -> Cluster:
    """Return the cluster that a description describes, told apart by what units are by themselves.

    What is in a workload's ends is told from what is not, and what was measured from all else.
    """
    index = DeviceIndex(description)
    description = without_nesting(description)
    groups = [ends for work in description.workloads for ends in (work.sources, work.targets)]
    for rate in description.measurements:  # between those two, whatever else is alike
        groups += ((end.partition("/")[0],) for end in (rate.source, rate.target))
    units, links = units_of(description), description.links
    cables = cables_of(units, links, lambda device: index[device].is_nic)
    return Cluster(description, units, links, cables, _first_colours(units, groups))


def _first_colours(units: Sequence[Unit], groups: Iterable[Sequence[str]]) -> Ints:
    """Return a colour for each unit: what it is, and which of its devices are in which group."""
    places = {unit.name: place for place, unit in enumerate(units)}
    colours: list[list[object]] = [[unit.kind] for unit in units]
    for number, group in enumerate(groups):
        for name in group:
            unit = unit_of(name, places)
            colours[places[unit]] += (number, name[len(unit) :])
    for colour, each in zip(colours, units, strict=True):
        if each.device is not None and each.device.kind not in _OUTER:
            colour.append(each.name)  # a server written out beside used ones is not folded
    return np.array(numbered([tuple(colour) for colour in colours]), np.int64)
