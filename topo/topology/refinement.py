"""Colour refinement over arrays of cables: which units see the same of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from topo.topology.units import Cables

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]


MIX: Final = tuple(
    np.uint64(number)
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
)
"""Odd numbers of 64 bits whose multiples keep hashes of different things apart."""
_NARROW: Final = 2**16
_SPARSE: Final = 8


class Edges(Protocol):
    """Edges as arrays, each twice, sorted by the end (`owner`) that sees the `other` end.

    `starts` are the first of each owner that has any, `owners` those owners.
    """

    @property
    def owner(self) -> Ints: ...  # noqa: D102
    @property
    def other(self) -> Ints: ...  # noqa: D102
    @property
    def starts(self) -> Ints: ...  # noqa: D102
    @property
    def owners(self) -> Ints: ...  # noqa: D102
    @property
    def labels(self) -> Hashes: ...  # noqa: D102


def mixed(values: Hashes) -> Hashes:
    """Return 64-bit hashes (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * MIX[1]
    values = (values ^ (values >> np.uint64(27))) * MIX[2]
    return values ^ (values >> np.uint64(31))


def surroundings(hashes: Hashes, edges: Edges) -> Hashes:
    """Return what each vertex sees, as a hash; of several colourings, one a row, what in each."""
    views = mixed(hashes[..., edges.other] * MIX[0] + edges.labels)
    sums = np.zeros_like(hashes)
    if edges.owner.size:
        sums[..., edges.owners] = np.add.reduceat(views, edges.starts, axis=-1)
    return mixed(sums)


def seen(hashes: Hashes, edges: Edges) -> Hashes:
    """Return what each vertex is together with all that it sees, as a hash."""
    return mixed(hashes + MIX[0] * surroundings(hashes, edges))


def renumbered(colours: Ints | Hashes) -> Ints:
    """Return colours as numbers in the order in which they first appear."""
    _, first, inverse = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]


def hashes_of(colours: Ints) -> Hashes:
    """Return numbered colours as hashes."""
    return mixed(colours.astype(np.uint64) + MIX[1])


def refined(colours: Ints, cables: Cables) -> Ints:
    """Return the coarsest colouring finer than `colours` whose classes see the same of each other.

    Hashes find it, and `agree` checks it, which knows nothing of hashes.
    """
    count = int(colours.max(initial=-1)) + 1
    while True:
        finer = renumbered(seen(hashes_of(colours), cables))
        finer_count = int(finer.max(initial=-1)) + 1
        if finer_count == count:
            return colours
        colours, count = finer, finer_count


def agree(colours: Ints, cables: Cables) -> bool:
    """Whether all units of a class have equally many cables of each kind to each class."""
    classes = int(colours.max(initial=0)) + 1
    kind = cables.code * classes + colours[cables.other]  # below 2**63 with any units
    if _NARROW <= kind.max(initial=0) < _SPARSE * kind.size:  # few of these numbers are taken
        is_taken = np.zeros(int(kind.max()) + 1, bool)
        is_taken[kind] = True
        kind = (np.cumsum(is_taken) - 1)[kind]
    kind = _narrow(kind)
    order = np.argsort(kind, kind="stable")  # of each kind, the cables of one owner side by side
    kind, owner = kind[order], cables.owner[order]
    starts = _starts_of_runs(kind, owner)
    counts = np.diff(np.append(starts, owner.size))
    own, kind = _narrow(colours[owner[starts]]), kind[starts]
    order = np.argsort(own, kind="stable")
    own, kind, counts = own[order], kind[order], counts[order]
    starts = _starts_of_runs(own, kind)
    if not starts.size:
        return True
    members = np.diff(np.append(starts, own.size))
    sizes = np.bincount(colours, minlength=classes)
    least, most = np.minimum.reduceat(counts, starts), np.maximum.reduceat(counts, starts)
    return bool((least == most).all() and (members == sizes[own[starts]]).all())


def _narrow(values: Ints) -> Ints:
    """Return numbers in 16 bits where they fit, in which they are sorted without comparing."""
    return values.astype(np.uint16) if values.max(initial=0) < _NARROW else values


def _starts_of_runs(*columns: Ints) -> Ints:
    """Return the rows in which any column has another value than in the row before."""
    is_start = np.ones(columns[0].size, bool)
    is_start[1:] = False
    for column in columns:
        is_start[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_start)
