"""Whether units that see the same of each other are alike: a proof by taking the cluster apart.

Colour refinement takes a ring of six for two rings of three, and a fabric in which two cables are
swapped for one that is cabled as planned. So the graph of units is made smaller by steps that lose
nothing of what tells its vertices apart:

* twins, of one colour and with the same cables to the same vertices, become one;
* what is alone of its colour is taken out: colours say already who is joined to it;
* where each of one colour has one partner of another, partners become one;
* what joins two vertices, and nothing else, becomes an edge between them.

A fabric of leaves, spines and cores comes down to nothing by these, and then its units are alike,
and its cables. A class that a step tells apart is made several, and all begins anew. What is left
of other graphs is compared vertex by vertex, all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topo.records import dataclass
from topo.topology.refinement import (
    MIX,
    hashes_of,
    mixed,
    refined,
    renumbered,
    seen,
    surroundings,
)

if TYPE_CHECKING:
    from topo.topology.units import Cables

    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

# What comparing the vertices that are left may cost: hashes of an edge, some seconds in all.
_MOST_COMPARED: Final = 2**28
_AT_ONCE: Final = 2**19
_MOST_SPLITS: Final = 32
_ENDS: Final = 2  # of an edge


class _ToldApartError(Exception):
    """A class whose members are not alike: with what is known of each unit beside its class."""

    def __init__(self, finer: Hashes) -> None:
        self.finer = finer


@dataclass(frozen=True, eq=False)
class _Graph:
    """Vertices with colours; edges, each as either end sees it, sorted by that end.

    `servers` says which vertices have servers in them, `place` in which vertex a unit is (-1 where
    it is taken out). A label says what an edge is, and its ends.
    """

    colours: Hashes
    servers: Bools
    place: Ints
    owner: Ints
    other: Ints
    labels: Hashes
    starts: Ints
    owners: Ints

    @property
    def size(self) -> int:
        return int(self.colours.size)

    def edge_classes(self) -> Hashes:
        """Return the class of each edge: its label, and the colours of its ends."""
        own, other = self.colours[self.owner], self.colours[self.other]
        return mixed(own * MIX[0] + other * MIX[1] + self.labels)


def alike(colours: Ints, cables: Cables, servers: Bools) -> Ints | None:
    """Return the coarsest classes found whose units are alike, and the cables of each class.

    Parameters
    ----------
    colours
        A class for each unit, as `refined` leaves them.
    cables
        What joins the units.
    servers
        The units from which the whole has to look alike.

    Returns
    -------
    Ints or None
        `None` where that is not certain of any classes.

    Notes
    -----
    Where vertices are left to compare, each that has servers in it is singled out in turn. What is
    seen from all of a class must be the same, and what all of a class see of an edge, in sum, the
    same for all edges of a class: what they load it with follows from that.
    """
    for _ in range(_MOST_SPLITS):
        graph = _Graph(
            colours=hashes_of(colours),
            servers=servers,
            place=np.arange(colours.size),
            owner=cables.owner,
            other=cables.other,
            labels=mixed(cables.labels),
            starts=cables.starts,
            owners=cables.owners,
        )
        try:
            _take_apart(graph, colours)
        except _ToldApartError as error:
            finer = mixed(hashes_of(colours) + error.finer * MIX[0])
            split = refined(renumbered(finer), cables)
            if split.max() == colours.max():  # it is cables that differ, or too many to compare
                return None
            colours = split
        else:
            return colours
    return None


def _take_apart(graph: _Graph, colours: Ints) -> None:
    """Make the graph smaller as far as that goes, and compare what is left.

    Raises
    ------
    _ToldApartError
        If that tells units apart that have the same of these colours.
    """
    while graph.size:
        smaller = graph
        for step in (_without_twins, _without_singles, _partners_as_one, _joints_as_edges):
            smaller = _refined(step(smaller), colours)
        if smaller.size == graph.size:
            _compare(graph)
            return
        graph = smaller


def _refined(graph: _Graph, colours: Ints) -> _Graph:
    """Return the graph with colours that see the same of each other."""
    hashes = _stable(graph)
    graph = replace(graph, colours=hashes)
    # A class of units is in vertices of one colour, or not alike.
    units = np.flatnonzero(graph.place >= 0)
    classes, first = np.unique(colours[units], return_index=True)
    of_class = np.zeros(int(colours.max(initial=0)) + 1, np.uint64)
    of_class[classes] = hashes[graph.place[units[first]]]
    if (of_class[colours[units]] != hashes[graph.place[units]]).any():
        raise _ToldApartError(_of_units(graph, hashes))
    return graph


def _stable(graph: _Graph) -> Hashes:
    """Return colours that see the same of each other."""
    hashes, count = graph.colours, np.unique(graph.colours).size
    while (finer_count := np.unique(finer := seen(hashes, graph)).size) > count:
        hashes, count = finer, finer_count
    return hashes


def _of_units(graph: _Graph, hashes: Hashes) -> Hashes:
    """Return a hash for each unit: that of the vertex it is in."""
    of_units = np.zeros(graph.place.size, np.uint64)
    placed = graph.place >= 0
    of_units[placed] = hashes[graph.place[placed]]
    return of_units


def _made(
    before: _Graph, into: Ints, colours: Hashes, edges: tuple[Ints, Ints, Hashes], was: Hashes
) -> _Graph:
    """Return a graph of new vertices, with one edge for all that join the same two.

    `into` says which vertex each of `before` is in (-1: none), `edges` are by the new vertices and
    `was` their classes before; a class of edges that parallels tell apart is not alike.
    """
    owner, other, labels = edges
    key = owner * (colours.size + 1) + other
    order = np.argsort(key, kind="stable")
    heads = np.flatnonzero(np.diff(key[order], prepend=-1))
    owner, other = owner[order][heads], other[order][heads]
    labels = mixed(labels[order])
    labels = np.add.reduceat(labels, heads) if heads.size else labels
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    placed = before.place >= 0
    place = np.full_like(before.place, -1)
    place[placed] = into[before.place[placed]]
    servers = np.zeros(colours.size, bool)
    servers[into[before.servers & (into >= 0)]] = True
    graph = _Graph(colours, servers, place, owner, other, labels, starts, owner[starts])
    if heads.size < key.size:
        row = np.empty(key.size, np.int64)
        row[order] = np.cumsum(np.isin(np.arange(key.size), heads)) - 1
        _check_classes(graph, was, graph.edge_classes()[row])
    return graph


def _check_classes(graph: _Graph, was: Hashes, now: Hashes) -> None:
    """Raise where what was of one class is of several now, with what the graph tells apart."""
    together = mixed(was * MIX[0] + now)
    if np.unique(together).size > np.unique(was).size:
        raise _ToldApartError(_of_units(graph, _stable(graph)))


def _without_twins(graph: _Graph) -> _Graph:
    """Return the graph with one of each set of twins, whose colour says how many they are."""
    identity = mixed(np.arange(graph.size, dtype=np.uint64))
    twins = mixed(graph.colours + MIX[0] * surroundings(identity, graph))
    _, first, into, counts = np.unique(
        twins, return_index=True, return_inverse=True, return_counts=True
    )
    colours = mixed(graph.colours[first] + MIX[3] * counts.astype(np.uint64))
    is_first = np.zeros(graph.size, bool)
    is_first[first] = True
    kept = is_first[graph.owner] & is_first[graph.other]
    edges = (into[graph.owner[kept]], into[graph.other[kept]], graph.labels[kept])
    return _made(graph, into, colours, edges, graph.edge_classes()[kept])


def _without_singles(graph: _Graph) -> _Graph:
    """Return the graph without the vertices that are alone of their colour."""
    _, first, counts = np.unique(graph.colours, return_index=True, return_counts=True)
    kept = np.ones(graph.size, bool)
    kept[first[counts == 1]] = False
    return _left(graph, kept) if not kept.all() else graph


def _left(graph: _Graph, kept: Bools) -> _Graph:
    """Return the graph with some of its vertices and what joins those."""
    into = np.where(kept, np.cumsum(kept) - 1, -1)
    rows = kept[graph.owner] & kept[graph.other]
    edges = (into[graph.owner[rows]], into[graph.other[rows]], graph.labels[rows])
    return _made(graph, into, graph.colours[kept], edges, graph.edge_classes()[rows])


def _partners_as_one(graph: _Graph) -> _Graph:
    """Return the graph with vertices of two colours made one where each has one of the other.

    Colours are joined as a forest, so that a new vertex has one of each.
    """
    colours, sizes = np.unique(graph.colours, return_counts=True)
    size_of = dict(zip(colours.tolist(), sizes.tolist(), strict=True))
    classes = graph.edge_classes()
    _, first, of_class, counts = np.unique(
        classes, return_index=True, return_inverse=True, return_counts=True
    )
    root = {colour: colour for colour in size_of}

    def root_of(colour: int) -> int:
        while root[colour] != colour:
            colour = root[colour]
        return colour

    chosen = np.zeros(first.size, bool)
    for number, (row, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        own, other = (int(graph.colours[ends[row]]) for ends in (graph.owner, graph.other))
        if count == size_of[own] == size_of[other] and root_of(own) != root_of(other):
            root[root_of(own)] = root_of(other)
            chosen[number] = True
    if not chosen.any():
        return graph
    into = np.arange(graph.size)
    joined = chosen[of_class]
    a, b = graph.owner[joined], graph.other[joined]
    while True:  # each takes the least number of what it is joined to
        least = into.copy()
        np.minimum.at(least, a, into[b])
        np.minimum.at(least, b, into[a])
        if (least == into).all():
            break
        into = least
    _, into = np.unique(into, return_inverse=True)
    within = into[graph.owner] == into[graph.other]
    new_colours = np.zeros(int(into.max()) + 1, np.uint64)
    np.add.at(new_colours, into, mixed(graph.colours))
    np.add.at(new_colours, into[graph.owner[within]], mixed(classes[within] + MIX[3]))
    between = ~within
    edges = (into[graph.owner[between]], into[graph.other[between]], classes[between])
    made = _made(graph, into, mixed(new_colours), edges, classes[between])
    _check_classes(made, classes, within.astype(np.uint64))
    return made


def _joints_as_edges(graph: _Graph) -> _Graph:
    """Return the graph with an edge in place of each vertex that joins two others, no servers."""
    degrees = np.bincount(graph.owner, minlength=graph.size)
    colours, first = np.unique(graph.colours, return_index=True)
    chosen: set[int] = set()
    first_edge = np.zeros(graph.size, np.int64)
    first_edge[graph.owners] = graph.starts
    with_servers = set(graph.colours[graph.servers].tolist())
    for colour, vertex in zip(colours.tolist(), first.tolist(), strict=True):
        if degrees[vertex] == _ENDS and colour not in with_servers:
            edge = int(first_edge[vertex])
            ends = {int(graph.colours[end]) for end in graph.other[edge : edge + _ENDS]}
            if not ends & (chosen | {colour}):
                chosen.add(colour)
    if not chosen:
        return graph
    joints = np.isin(graph.colours, np.array(sorted(chosen), np.uint64))
    at = first_edge[joints]
    one, two = graph.other[at], graph.other[at + 1]
    own, other = graph.labels[at], graph.labels[at + 1]
    colour = graph.colours[joints]
    labels = np.concatenate(
        [mixed(colour + near * MIX[0] + mixed(far)) for near, far in ((own, other), (other, own))]
    )
    classes = graph.edge_classes()
    kept = ~(joints[graph.owner] | joints[graph.other])
    into = np.where(joints, -1, np.cumsum(~joints) - 1)
    edges = (
        np.concatenate((into[graph.owner[kept]], into[one], into[two])),
        np.concatenate((into[graph.other[kept]], into[two], into[one])),
        np.concatenate((graph.labels[kept], labels)),
    )
    was = np.concatenate((classes[kept], classes[at], classes[at + 1]))
    return _made(graph, into, graph.colours[~joints], edges, was)


def _compare(graph: _Graph) -> None:
    """Raise if the whole does not look the same from each vertex of a class that has servers."""
    order = np.argsort(graph.colours, kind="stable")
    _, starts = np.unique(graph.colours[order], return_index=True)
    classes = [
        vertices
        for vertices in np.split(order, starts[1:])
        if vertices.size and graph.servers[vertices[0]]
    ]
    left = _MOST_COMPARED
    for vertices in classes:
        left = _compare_class(graph, vertices, left)


def _compare_class(graph: _Graph, vertices: Ints, left: int) -> int:
    """Compare what is seen from these vertices; return the cost that is left for others."""
    edge_classes = graph.edge_classes()
    first = graph.colours.copy()
    first[vertices[:1]] += MIX[2]
    rounds = distinct = 0
    while (now := np.unique(first).size) > distinct:
        distinct, first, rounds = now, seen(first, graph), rounds + 1
    each = graph.owner.size + graph.size
    left -= each * (rounds + 1) * vertices.size
    if left < 0:
        raise _ToldApartError(np.zeros_like(graph.place, np.uint64))
    pictures = np.zeros(graph.size, np.uint64)
    of_vertices = np.zeros(graph.size, np.uint64)
    of_edges = np.zeros(graph.owner.size, np.uint64)
    at_once = max(1, _AT_ONCE // each)
    for at in range(0, vertices.size, at_once):
        chunk = vertices[at : at + at_once]
        hashes = np.tile(graph.colours, (chunk.size, 1))
        hashes[np.arange(chunk.size), chunk] += MIX[2]
        for _ in range(rounds):
            hashes = seen(hashes, graph)
        pictures[chunk] = mixed(hashes).sum(axis=-1, dtype=np.uint64)
        of_vertices += mixed(hashes).sum(axis=0, dtype=np.uint64)
        ends = hashes[:, graph.owner] * MIX[0] + hashes[:, graph.other] * MIX[1]
        of_edges += mixed(ends + graph.labels).sum(axis=0, dtype=np.uint64)
    if np.unique(pictures[vertices]).size > 1:
        raise _ToldApartError(_of_units(graph, pictures))
    _check_classes(graph, graph.colours, of_vertices)
    _check_classes(graph, edge_classes, of_edges)
    return left
