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

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topo.description.description import DescribedLink, Description, End
from topo.description.names import ranged
from topo.phrases import brief, counted
from topo.records import dataclass
from topo.topology.units import Cables, Cluster, cluster_of, unit_of

if TYPE_CHECKING:
    from topo.topology.topology import Resource, Topology

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]


MOST_CLASSES: Final = 256
"""Classes of servers beyond which a file is answered written out: folding would save nothing."""
# Cables of a class that are compared by all distances: at least so many, and as many as there is
# time for. Those of twins count once, so in a fabric of two levels that is all of them.
_COMPARED: Final = 8
_MOST_CABLES_SEEN: Final = 2**22
_SHOWN: Final = 6  # names and ranges of them that stand for all that are alike
_OUTER: Final = ("network-switch", "storage")  # what the outer file may have beside its servers


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

    def shown(self, device: str) -> str:
        """Return the names of all that are alike to a device as a range: ``node[0-31].gpu0``."""
        unit = self.unit(device)
        first = self.canonical.get(unit, unit)
        if first not in self._ranges:
            self._ranges[first] = ", ".join(ranged(self.classes.get(first, (first,)), _SHOWN))
        return self._ranges[first] + device[len(unit) :]

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

    def names(self, device: str) -> tuple[str, ...]:
        """Return the names of all devices that are alike to this one, in the order of the file."""
        unit = self.unit(device)
        return tuple(name + device[len(unit) :] for name in self.classes.get(unit, (unit,)))


# --- colour refinement ----------------------------------------------------------------------------

_MIX: Final = tuple(
    np.uint64(number)
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
)


def _mixed(values: Hashes) -> Hashes:
    """Return 64-bit hashes (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[1]
    values = (values ^ (values >> np.uint64(27))) * _MIX[2]
    return values ^ (values >> np.uint64(31))


def _surroundings(hashes: Hashes, cables: Cables) -> Hashes:
    """Return what each unit sees, as a hash; of several colourings, one a row, what in each."""
    views = _mixed(hashes[..., cables.other] * _MIX[0] + cables.code.astype(np.uint64) * _MIX[3])
    sums = np.zeros_like(hashes)
    if cables.owner.size:
        sums[..., cables.owners] = np.add.reduceat(views, cables.starts, axis=-1)
    return _mixed(sums)


def _seen(hashes: Hashes, cables: Cables) -> Hashes:
    """Return what each unit is together with all that it sees, as a hash."""
    return _mixed(hashes + _MIX[0] * _surroundings(hashes, cables))


def _renumbered(colours: Ints | Hashes) -> Ints:
    """Return colours as numbers in the order in which they first appear."""
    _, first, inverse = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]


def refined(colours: Ints, cables: Cables) -> Ints:
    """Return the coarsest colouring finer than `colours` whose classes see the same of each other.

    Hashes find it, and `_agree` checks it, which knows nothing of hashes.
    """
    count = int(colours.max(initial=-1)) + 1
    while True:
        finer = _renumbered(_seen(_mixed(colours.astype(np.uint64) + _MIX[1]), cables))
        finer_count = int(finer.max(initial=-1)) + 1
        if finer_count == count:
            return colours
        colours, count = finer, finer_count


def _agree(colours: Ints, cables: Cables) -> bool:
    """Whether all units of a class have equally many cables of each kind to each class."""
    classes = int(colours.max(initial=0)) + 1
    kinds = (cables.code * classes + colours[cables.other]).astype(np.int64)
    order = np.lexsort((kinds, cables.owner))
    owner, kind = cables.owner[order], kinds[order]
    first = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(kind, prepend=-1) != 0))
    counts = np.diff(np.append(first, owner.size))
    own, seen = colours[owner[first]], kind[first]
    order = np.lexsort((seen, own))
    own, seen, counts = own[order], seen[order], counts[order]
    heads = np.flatnonzero((np.diff(own, prepend=-1) != 0) | (np.diff(seen, prepend=-1) != 0))
    if not heads.size:
        return True
    members = np.diff(np.append(heads, own.size))
    sizes = np.bincount(colours, minlength=classes)
    least, most = np.minimum.reduceat(counts, heads), np.maximum.reduceat(counts, heads)
    return bool((least == most).all() and (members == sizes[own[heads]]).all())


def _without_twins(colours: Ints, cables: Cables) -> tuple[Ints, Ints, Cables, Ints]:
    """Return the first of each set of twins, a colour for each set, and the cables between sets.

    Their codes say how many they are too; the codes without that are what is returned last.

    Twins are of one colour and have the same cables to the same units: exchanged they leave all as
    it is, so the sets tell as much as the units. A set's colour says how many they are too.
    """
    identity = _mixed(np.arange(colours.size, dtype=np.uint64))
    twins = _renumbered(
        _mixed(_mixed(colours.astype(np.uint64)) + _MIX[0] * _surroundings(identity, cables))
    )
    firsts = np.unique(twins, return_index=True)[1]
    sizes = np.bincount(twins, minlength=firsts.size)
    of_first = np.flatnonzero(firsts[twins[cables.owner]] == cables.owner)
    owner, other = twins[cables.owner[of_first]], twins[cables.other[of_first]]
    code = cables.code[of_first]
    order = np.lexsort((code, other, owner))
    owner, other, code = owner[order], other[order], code[order]
    new = [np.diff(column, prepend=-1) != 0 for column in (owner, other, code)]
    heads = np.flatnonzero(np.logical_or.reduce(new))
    counts = np.diff(np.append(heads, owner.size))
    owner = owner[heads]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    between = replace(
        cables,
        owner=owner,
        other=other[heads],
        code=_renumbered(code[heads] * (counts.max(initial=0) + 1) + counts),
        link=cables.link[of_first][order][heads],
        starts=starts,
        owners=owner[starts],
    )
    of_sets = _renumbered(colours[firsts] * (sizes.max(initial=0) + 1) + sizes)
    return firsts, of_sets, between, code[heads]


def _look_alike(colours: Ints, cables: Cables, rows: Ints) -> bool:
    """Whether the whole looks the same from each of these cables of one class.

    The two ends of each are singled out in turn, and what all units then see of each other,
    distances to them among that, is compared. Colour refinement alone takes a ring of six for two
    rings of three, and the rungs of a ladder for its rails.
    """
    base = _mixed(colours.astype(np.uint64) + _MIX[1])
    at_once = max(1, _MOST_CABLES_SEEN // 8 // (cables.owner.size + 1))
    picture: Hashes | None = None
    rounds = 0
    for at in range(0, rows.size, at_once):
        chunk = rows[at : at + at_once]
        hashes, each = np.tile(base, (chunk.size, 1)), np.arange(chunk.size)
        hashes[each, cables.owner[chunk]] += _MIX[2]
        hashes[each, cables.other[chunk]] += _MIX[3]
        if picture is None:  # as many rounds as tell apart what is seen from the first
            first, distinct = hashes[:1], 0
            while (now := np.unique(first).size) > distinct:
                distinct, first, rounds = now, _seen(first, cables), rounds + 1
            picture = np.sort(first[0])
        for _ in range(rounds):
            hashes = _seen(hashes, cables)
        if (np.sort(hashes, axis=-1) != picture).any():
            return False
    return True


def _unlike(colours: Ints, cables: Cables, *, certain: bool) -> int | None:
    """Return a unit with a cable from which the whole looks otherwise than from one of its class.

    Cables of a class are the same and join units of the same two classes. Where it is `certain` of
    the whole that this is left of, two of each are compared.
    """
    firsts, of_sets, between, codes = _without_twins(colours, cables)
    own, seen = colours[firsts[between.owner]], colours[firsts[between.other]]
    order = np.lexsort((codes, seen, own))
    changes = [np.diff(column[order], prepend=-1) != 0 for column in (codes, seen, own)]
    starts = np.flatnonzero(np.logical_or.reduce(changes))
    # Each cable stands twice, once as either end sees it: the end of the lower colour is enough.
    classes = [
        rows
        for rows in np.split(order, starts[1:])
        if rows.size > 1 and own[rows[0]] <= seen[rows[0]]
    ]
    most = _MOST_CABLES_SEEN // (between.owner.size + 1) // max(len(classes), 1)
    for rows in classes:
        count = 2 if certain else min(max(most, _COMPARED), rows.size)
        chosen = rows[np.linspace(0, rows.size - 1, count).astype(np.int64)]
        if not _look_alike(of_sets, between, chosen):
            return int(firsts[between.owner[rows[0]]])
    return None


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
        in_pairs = len(sources) == len(targets) and not set(sources) & set(targets)
        if workload.pairing in ("nearest", "in-order") or (
            workload.direction == "copy" and in_pairs
        ):
            raise NotFolded(f"{workload.name} pairs one by one")
    cluster = (whole.left(description) if whole else None) or cluster_of(description)
    units, cables = cluster.units, cluster.cables
    coarse = refined(_renumbered(cluster.colours), cables)
    servers = [place for place, unit in enumerate(units) if unit.device is None]
    first_of: dict[int, int] = {}
    for place in servers:
        first_of.setdefault(int(coarse[place]), place)
    if len(first_of) > min(MOST_CLASSES, len(servers) / 2):
        raise NotFolded(f"{len(first_of)} of {len(servers)} servers differ")
    singled_out = coarse.copy()
    singled_out[list(first_of.values())] = coarse.max() + 1 + np.arange(len(first_of))
    fine = refined(_renumbered(singled_out), cables)
    if (fine[cables.owner] == fine[cables.other]).any():
        raise NotFolded("units that are alike are cabled to each other")
    if not (_agree(coarse, cables) and _agree(fine, cables)):
        raise NotFolded("hashes of different surroundings are equal")  # once in 2**64
    if (unlike := _unlike(coarse, cables, certain=cluster.certain)) is not None:
        raise NotFolded(f"{units[unlike].name} and others see each other differently")
    return _one_of_each(cluster, fine, coarse)


def _one_of_each(cluster: Cluster, fine: Ints, coarse: Ints) -> tuple[Description, Folding]:
    """Return the description of the first unit of each cell, and what those stand for."""
    units, links, cables = cluster.units, cluster.links, cluster.cables
    description = cluster.description
    _, first_places = np.unique(fine, return_index=True)
    sizes = np.bincount(fine)
    firsts = [units[place] for place in first_places]
    placed = list(zip(firsts, first_places, strict=True))

    def members(colours: Ints) -> dict[int, tuple[str, ...]]:
        names: dict[int, list[str]] = {}
        for unit, colour in zip(units, colours.tolist(), strict=True):
            names.setdefault(colour, []).append(unit.name)
        return {colour: tuple(of_colour) for colour, of_colour in names.items()}

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
    sizes: Counter[str] = Counter()
    classes: dict[str, tuple[str, int]] = {}  # the first one's id, and how many are in the cell

    def add(resource: Resource, key: tuple[object, ...], name: str, in_cell: int) -> None:
        first = first_of.setdefault(key, replace(resource, name=name))
        sizes[first.id] += in_cell
        classes[resource.id] = (first.id, in_cell)

    for link in topology.links:
        if link.forward is None or link.backward is None or link.forward.name == str(link.a):
            continue  # of the card's port: a resource of its own unit, as those below
        shown = [folding.shown(end.device) for end in (link.a, link.b)]
        ends = [End(folding.representative(end.device), end.side) for end in (link.a, link.b)]
        in_cell = link.times[0] * folding.cell_size(link.a.device)
        for resource, (source, target) in ((link.forward, shown), (link.backward, shown[::-1])):
            number = resource.name.partition(" #")[2]
            name = f"{source} -> {target}{f' #{number}' if number else ''}"
            add(resource, (*ends, link.cable, number, resource is link.forward), name, in_cell)
    for resource in topology.resources.values():
        if resource.id not in classes:
            side = resource.name[len(resource.device) :]
            key = (folding.representative(resource.device), side, resource.direction)
            name = folding.shown(resource.device) + side
            add(resource, key, name, folding.cell_size(resource.device))
    firsts = {first.id: replace(first, count=round(sizes[first.id])) for first in first_of.values()}
    return {
        name: AlikeResources(firsts[first], in_cell, sizes[first])
        for name, (first, in_cell) in classes.items()
    }
