"""Units that are alike, answered as one: a cluster's quotient by colour refinement.

A unit is a used topology (a server), or a device of the outer file (a network switch, an
appliance). Units are alike when colour refinement cannot tell them apart: the same template, or
part, with the same cables by the same ports to units that are alike. One of each class of servers
is the *representative*; refinement once more with the representatives singled out gives the
*cells*: all of a cell lie equally far from each representative, by equally many walks. A folded
topology has one unit a cell. Its links know how many of them each end has (`Link.times`), and what
a representative uses of a cell's resources is spread over the whole class (`Folding`).

Arrays carry the load: devices are made for one unit a cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topo.description.description import DescribedLink, Description, End
from topo.description.names import ranged
from topo.errors import Finding
from topo.phrases import brief, counted
from topo.records import dataclass
from topo.topology.refinement import agree, refined, renumbered
from topo.topology.symmetry import alike
from topo.topology.units import Cluster, Unit, cluster_of, unit_of

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.topology.resources import Resource
    from topo.topology.topology import Link, Topology

    Ints = np.ndarray[Any, np.dtype[np.int64]]


MOST_CLASSES: Final = 256
"""Classes of servers beyond which a file is answered written out: folding would save nothing."""
_SHOWN: Final = 6  # names and ranges of them that stand for all that are alike


@dataclass(frozen=True, eq=False)
class Folding:
    """What the units of a folded topology stand for.

    Parameters
    ----------
    cells
        The names of the units that a unit of the folded topology stands for in a representative's
        sight, itself first.
    classes
        The names of all units of its class.
    canonical
        For each unit of the folded topology the first of its class.
    cluster
        All units, coloured by class.
    """

    cells: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, tuple[str, ...]]
    canonical: Mapping[str, str]
    cluster: Cluster

    def __repr__(self) -> str:
        units = sum(map(len, self.cells.values()))
        return brief(self, f"of {counted(units, 'unit')} into {len(self.cells)}")

    @cached_property
    def _first_of(self) -> dict[str, str]:
        """The unit of the folded topology that stands for each unit."""
        return {name: first for first, names in self.cells.items() for name in names}

    def stands_in(self, device: str) -> str:
        """Return the device of the folded topology that stands for a device, ``""`` if none."""
        unit = unit_of(device, self._first_of)
        return self._first_of[unit] + device[len(unit) :] if unit else ""

    def by_unit(self, devices: Iterable[str]) -> dict[str, list[str]]:
        """Return devices by the unit of the whole cluster that they are in."""
        units: dict[str, list[str]] = {}
        for name in devices:
            units.setdefault(unit_of(name, self._first_of), []).append(name)
        return units

    def shown(self, device: str) -> str:
        """Return the names of all that are alike to a device as a range: ``node[0-31].gpu0``."""
        unit = self.unit(device)
        first = self.canonical.get(unit, unit)
        if first not in self._ranges:
            self._ranges[first] = _range_of(self.classes.get(first, (first,)))
        return self._ranges[first] + device[len(unit) :]

    def noted(
        self, findings: Iterable[Finding], known: Collection[Finding] = ()
    ) -> Iterator[Finding]:
        """Yield findings with a note of what the units that they name stand for.

        Those that were `known` before anything was folded stay as they are.
        """
        for finding in findings:
            if finding in known:
                yield finding
                continue
            words = dict.fromkeys(re.findall(r"[\w-]+(?:\.[\w-]+)*", finding.message))
            units = dict.fromkeys(self.unit(word) for word in words)
            notes = tuple(filter(None, map(self.standing, units)))
            yield replace(finding, notes=(*finding.notes, *notes))

    def standing(self, unit: str) -> str:
        """Return what a unit stands for in words, ``""`` where it stands for itself alone."""
        size = self.class_size(unit)
        return f"{unit} is one of {size} alike: {self.shown(unit)}" if unit and size > 1 else ""

    def stand_ins(self) -> Iterator[Finding]:
        """Yield a note for each server that answers for others: what it stands for."""
        servers = dict.fromkeys(
            first
            for unit, first in self.canonical.items()
            if any(name == first for use in self.cluster.description.uses for name in use.names)
        )
        for text in filter(None, map(self.standing, servers)):
            yield Finding("alike", text, severity="note")

    @cached_property
    def _ranges(self) -> dict[str, str]:
        """The names of all that are alike to a unit, for those that were asked for."""
        return {}

    def unit(self, device: str) -> str:
        """Return the unit that a device belongs to, ``""`` if none."""
        return unit_of(device, self.cells)

    def in_cell(self, unit: str) -> tuple[str, ...]:
        """Return the names of the units that one stands for in a representative's sight."""
        return self.cells.get(unit, (unit,))

    def cell_size(self, device: str) -> int:
        """Return how many devices a device stands for in a representative's sight."""
        return len(self.cells.get(self.unit(device), ("",)))

    def class_size(self, device: str) -> int:
        """Return how many devices are alike to this one."""
        return len(self.classes.get(self.unit(device), ("",)))

    def representative(self, device: str) -> str:
        """Return the first device of the folded topology that is alike to this one."""
        unit = self.unit(device)
        return self.canonical.get(unit, unit) + device[len(unit) :]

    def joined(self, link: Link) -> tuple[str, str]:
        """Return two devices that a cable joins which a link of the folded topology stands for.

        The first is that of the link, the second may be another of its cell.
        """
        unit, far_unit = self.unit(link.a.device), self.unit(link.b.device)
        if unit == far_unit:
            return link.a.device, link.b.device
        inner, cell = link.b.device[len(far_unit) :], set(self.in_cell(far_unit))
        cluster = self.cluster
        place, cables = cluster.places[unit], cluster.cables
        for row in range(*np.searchsorted(cables.owner, (place, place + 1))):
            far = cluster.units[cables.other[row]].name
            cable = cluster.links[cables.link[row]]
            if far in cell and {cable.a.device, cable.b.device} == {link.a.device, far + inner}:
                return link.a.device, far + inner
        return link.a.device, link.b.device

    def names(self, device: str) -> tuple[str, ...]:
        """Return the names of all devices that are alike to this one, in the order of the file."""
        unit = self.unit(device)
        return tuple(name + device[len(unit) :] for name in self.classes.get(unit, (unit,)))


@lru_cache(maxsize=128)
def _range_of(names: tuple[str, ...]) -> str:
    """Return names as ranges; what is left of a cluster has mostly the same classes each time."""
    return ", ".join(ranged(names, _SHOWN))


# --- the folded description -----------------------------------------------------------------------


class NotFolded(Exception):  # noqa: N818  (no error: the caller writes the units out)
    """Why a description is answered with its units written out."""


def folded(description: Description, whole: Cluster | None = None) -> tuple[Description, Folding]:
    """Return the description with one unit a cell, and what each of them stands for.

    Parameters
    ----------
    description
        With its used topologies not written out.
    whole
        The cluster of which it is left when something fails: what is known of that is not found
        anew.

    Raises
    ------
    NotFolded
        Where folding would save nothing, or units that see the same are not certain to be alike.
    """
    for workload in description.workloads:
        sources, targets = workload.sources, workload.targets
        if workload.collective:
            raise NotFolded(f"{workload.name} goes from GPU to GPU")
        in_pairs = len(sources) == len(targets) and not set(sources) & set(targets)
        if workload.pairing == "in-order" or (workload.direction == "copy" and in_pairs):
            raise NotFolded(f"{workload.name} pairs one by one")
    cluster = (whole.left(description) if whole else None) or cluster_of(description)
    coarse, fine = _partitions(cluster, whole)
    return _one_of_each(cluster, fine, coarse)


def _partitions(cluster: Cluster, whole: Cluster | None) -> tuple[Ints, Ints]:
    """Return the class of each unit, and its cell.

    What is cabled as the `whole` and told apart in the same way from the start, as it is whatever
    fails inside one server, has the same ones.
    """
    known = whole.partitions if whole and cluster.cables is whole.cables else {}
    colours = renumbered(cluster.colours)
    key = colours.tobytes()
    if key not in known:
        known[key] = _classes_and_cells(cluster, colours)
    return known[key]


def _classes_and_cells(cluster: Cluster, colours: Ints) -> tuple[Ints, Ints]:
    """Return the class and the cell of each unit by refining the colours that they start with."""
    units, cables = cluster.units, cluster.cables
    coarse = refined(colours, cables)
    first_of = _first_servers(units, coarse)
    is_server = np.array([unit.device is None for unit in units], bool)
    certain = alike(coarse, cables, is_server)
    if certain is None:
        raise NotFolded("servers see the same around them, and are not certain to be alike")
    if certain is not coarse:
        coarse, first_of = certain, _first_servers(units, certain)
    singled_out = coarse.copy()
    singled_out[first_of] = coarse.max() + 1 + np.arange(len(first_of))
    fine = refined(renumbered(singled_out), cables)
    if (fine[cables.owner] == fine[cables.other]).any():
        raise NotFolded("units that are alike are cabled to each other")
    if not (agree(coarse, cables) and agree(fine, cables)):
        raise NotFolded("hashes of different surroundings are equal")  # once in 2**64
    return coarse, fine


def _first_servers(units: Sequence[Unit], colours: Ints) -> list[int]:
    """Return the places of the first server of each class, if there are few classes."""
    servers = [place for place, unit in enumerate(units) if unit.device is None]
    first_of: dict[int, int] = {}
    for place in servers:
        first_of.setdefault(int(colours[place]), place)
    if len(first_of) > min(MOST_CLASSES, len(servers) / 2):
        raise NotFolded(f"{len(first_of)} of {len(servers)} servers differ")
    return list(first_of.values())


def _one_of_each(cluster: Cluster, fine: Ints, coarse: Ints) -> tuple[Description, Folding]:
    """Return the description of the first unit of each cell, and what those stand for."""
    units, links, cables = cluster.units, cluster.links, cluster.cables
    description = cluster.description
    _, first_places = np.unique(fine, return_index=True)
    sizes = np.bincount(fine)
    firsts = [units[place] for place in first_places]
    placed = list(zip(firsts, first_places, strict=True))

    names = [unit.name for unit in units]

    def members(colours: Ints) -> list[tuple[str, ...]]:
        in_order = [names[place] for place in np.argsort(colours, kind="stable").tolist()]
        ends = np.cumsum(np.bincount(colours)).tolist()
        return [tuple(in_order[at:end]) for at, end in zip([0, *ends[:-1]], ends, strict=True)]

    cells, classes = members(fine), members(coarse)
    colours = [(unit.name, int(fine[at]), int(coarse[at])) for unit, at in placed]
    folding = Folding(
        cells={name: cells[cell] for name, cell, _ in colours},
        classes={name: classes[class_] for name, _, class_ in colours},
        canonical={name: classes[class_][0] for name, _, class_ in colours},
        cluster=replace(cluster, colours=coarse),
    )
    # The cables of each kind from a chosen unit to a cell: how many, and the first of them.
    is_first = np.zeros(len(units), bool)
    is_first[first_places] = True
    counts: dict[tuple[int, int, int], list[int]] = {}
    for row in np.flatnonzero(is_first[cables.owner]).tolist():
        cell = int(fine[cables.other[row]])
        key = (int(cables.owner[row]), int(cables.code[row]), cell)
        counts.setdefault(key, [int(cables.link[row]), 0])[1] += 1
    kept: list[tuple[int, DescribedLink]] = []
    for (owner, code, cell), (number, times) in counts.items():
        if code % 2 == 0:  # and once more as its other end sees it
            ports = cables.ports[code // 2]
            a = End(units[owner].name + ports.a, ports.a_side)
            b = End(units[first_places[cell]].name + ports.b, ports.b_side)
            back = times * int(sizes[fine[owner]]) // int(sizes[cell])
            link = links[number]
            if (a, b) != (link.a, link.b) and link.cable.count > 1 and (a.side or b.side):
                link = replace(link, cable=replace(link.cable, count=1))
            kept.append((number, replace(link, a=a, b=b, times=(times, back))))
    kept.sort(key=lambda numbered_link: numbered_link[0])
    return (
        replace(
            description,
            devices=tuple(unit.device for unit in firsts if unit.device is not None),
            uses=tuple(
                replace(unit.use, names=(unit.name,)) for unit in firsts if unit.use is not None
            ),
            links=tuple(link for _, link in kept),
        ),
        folding,
    )


# --- resources that are alike ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlikeResources:
    """What a resource of a folded topology stands for.

    Parameters
    ----------
    resource
        The first that is alike, named for all of them.
    in_cell, size
        How many it stands for in a representative's sight, and how many are alike.
    """

    resource: Resource
    in_cell: int
    size: int


def alike_resources(topology: Topology) -> dict[str, AlikeResources]:
    """Return the class of each resource of a folded topology, by its id."""
    folding = topology.folding
    assert folding is not None, "only a folded topology has resources that stand for others"
    first_of: dict[tuple[object, ...], Resource] = {}
    sizes_of: Counter[tuple[object, ...]] = Counter()
    classes: dict[str, tuple[tuple[object, ...], int]] = {}  # the key, and how many are in the cell
    cables: dict[Cable, int] = {}
    number_of: dict[int, int] = {}  # by identity first: a cable is long to compare

    def cable_number(cable: Cable) -> int:
        number = number_of.get(id(cable))
        if number is None:
            number = number_of[id(cable)] = cables.setdefault(cable, len(cables))
        return number

    def add(resource: Resource, key: tuple[object, ...], in_cell: int) -> bool:
        """Add a resource to its class, and return whether it is the first there."""
        classes[resource.id] = (key, in_cell)
        sizes_of[key] += in_cell
        is_first = key not in first_of
        first_of.setdefault(key, resource)
        return is_first

    for link in topology.links:
        if link.forward is None or link.backward is None or link.forward.name == str(link.a):
            continue  # of the card's port: a resource of its own unit, as those below
        ends = [End(folding.representative(end.device), end.side) for end in (link.a, link.b)]
        cable = cable_number(link.cable)
        in_cell = link.times[0] * folding.cell_size(link.a.device)
        for resource in (link.forward, link.backward):
            number = resource.name.partition(" #")[2]
            key = (*ends, cable, number, resource is link.forward)
            if add(resource, key, in_cell):
                shown = [folding.shown(end.device) for end in (link.a, link.b)]
                source, target = shown if resource is link.forward else shown[::-1]
                name = f"{source} -> {target}{f' #{number}' if number else ''}"
                first_of[key] = replace(resource, name=name)
    for resource in topology.resources.values():
        if resource.id not in classes:
            side = resource.name[len(resource.device) :]
            key = (folding.representative(resource.device), side, resource.direction)
            if add(resource, key, folding.cell_size(resource.device)):
                first_of[key] = replace(resource, name=folding.shown(resource.device) + side)
    sizes: Counter[str] = Counter()
    for key, first in first_of.items():
        sizes[first.id] += sizes_of[key]
    firsts = {first.id: replace(first, count=round(sizes[first.id])) for first in first_of.values()}
    return {
        name: AlikeResources(firsts[first_of[key].id], in_cell, sizes[first_of[key].id])
        for name, (key, in_cell) in classes.items()
    }
