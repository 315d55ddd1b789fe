"""Max-min rates of large systems in NumPy, where no compiler is at hand.

A resource's share never falls while others are frozen below it. So every resource whose share is no
larger than that of any other resource of any of its users, a *local* bottleneck, fills at exactly
that share, whatever happens elsewhere: all of them can be frozen in the same round. That takes some
dozens of rounds where one global bottleneck at a time would take thousands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from topo.solve.arrays import Matrix, pointers

if TYPE_CHECKING:
    from topo.solve.arrays import Arrays, Bools, Floats


_SLACK = 1e-13
"""Shares that are one but for rounding are frozen in one round."""


def fill(arrays: Arrays) -> Floats:
    """Give the max-min rate of each demand, in bytes/s."""
    rates = np.full(arrays.weights.size, -1.0)
    left = arrays.capacities.copy()
    floors = np.zeros(left.size)
    rising = np.arange(rates.size)
    rows = _kept(arrays.uses, np.isfinite(left)[arrays.uses.columns])
    while rising.size:
        weights, caps = arrays.weights[rising], arrays.limits[rising]
        shares = _shares(rows, weights, left, floors)
        reached, frozen = _frozen(rows, shares, caps / weights)
        stopped = np.minimum(weights * reached, caps)[frozen]
        # At its own limit a demand has exactly that, not its weight times limit over weight.
        at_limit = (caps / weights <= reached)[frozen]
        stopped[at_limit] = caps[frozen][at_limit]
        rates[rising[frozen]] = stopped
        entries = np.repeat(frozen, np.diff(rows.starts))
        columns = rows.columns[entries]
        counts = np.diff(rows.starts)[frozen]
        loads = rows.values[entries] * np.repeat(stopped, counts)
        left -= np.bincount(columns, weights=loads, minlength=left.size)
        np.maximum.at(floors, columns, np.repeat(reached[frozen], counts))
        rising = rising[~frozen]
        rows = _without(rows, frozen, entries)
    return rates


def _shares(rows: Matrix, weights: Floats, left: Floats, floors: Floats) -> Floats:
    """Give the level at which each resource is full; infinite without rising users."""
    pull = rows.transposed_times(weights)
    shares = np.full(left.size, math.inf)
    used = pull > 0.0
    # Never below a level at which a user was frozen: only rounding could say so.
    shares[used] = np.maximum(left[used] / pull[used], floors[used])
    return shares


def _frozen(rows: Matrix, shares: Floats, own: Floats) -> tuple[Floats, Bools]:
    """Give the level that stops each demand first, and who is stopped in this round."""
    reached, frozen = own.copy(), np.zeros(own.size, bool)
    filled = np.flatnonzero(np.diff(rows.starts))
    if filled.size:
        heads, offered = rows.starts[filled], shares[rows.columns]
        reached[filled] = np.minimum(np.minimum.reduceat(offered, heads), own[filled])
        # A resource with a user that something else stops earlier is no local bottleneck.
        later = offered > np.repeat(reached * (1.0 + _SLACK), np.diff(rows.starts))
        waits = np.zeros(shares.size, bool)
        waits[rows.columns[later]] = True
        frozen[filled] = np.logical_or.reduceat(~(later | waits[rows.columns]), heads)
    return reached, frozen | (own <= reached)


def _kept(rows: Matrix, entries: Bools) -> Matrix:
    owners = rows.owners()[entries]
    return Matrix(
        starts=pointers(np.bincount(owners, minlength=rows.height)),
        columns=rows.columns[entries],
        values=rows.values[entries],
        width=rows.width,
    )


def _without(rows: Matrix, gone: Bools, entries: Bools) -> Matrix:
    return Matrix(
        starts=pointers(np.diff(rows.starts)[~gone]),
        columns=rows.columns[~entries],
        values=rows.values[~entries],
        width=rows.width,
    )
