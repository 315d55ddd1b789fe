"""A system as NumPy arrays, for the solvers that read it whole, and its max-min rates from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from topo.flows.demands import System
from topo.records import dataclass

Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Shorts: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Matrix:
    """Entries in compressed rows: row `i` owns ``starts[i]:starts[i + 1]``."""

    starts: Ints
    columns: Ints
    values: Floats
    width: int
    """Number of columns."""

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.starts.size - 1

    def owners(self) -> Ints:
        """Give the row of each entry."""
        return np.repeat(np.arange(self.height), np.diff(self.starts))

    def transpose(self) -> Matrix:
        """Turn rows into columns; within a new row the old order of rows stays."""
        order = np.argsort(self.columns, kind="stable")
        return Matrix(
            starts=pointers(np.bincount(self.columns, minlength=self.width)),
            columns=self.owners()[order],
            values=self.values[order],
            width=self.height,
        )

    def times(self, vector: Floats) -> Floats:
        """Multiply the matrix with a column vector."""
        products = self.values * vector[self.columns]
        return floats(np.bincount(self.owners(), weights=products, minlength=self.height))

    def transposed_times(self, vector: Floats) -> Floats:
        """Multiply the transposed matrix with a column vector."""
        products = self.values * np.repeat(vector, np.diff(self.starts))
        return floats(np.bincount(self.columns, weights=products, minlength=self.width))


@dataclass(frozen=True, slots=True)
class Arrays:
    """The columns of a `System`, as arrays of doubles and 64-bit integers."""

    capacities: Floats
    uses: Matrix
    weights: Floats
    limits: Floats

    @classmethod
    def of(cls, system: System) -> Arrays:
        """Read a system; arrays that fit already are not copied."""
        capacities = floats(system.capacities)
        uses = Matrix(
            starts=ints(system.starts),
            columns=ints(system.resources),
            values=floats(system.multiplicities),
            width=capacities.size,
        )
        return cls(capacities, uses, floats(system.weights), floats(system.limits))


def floats(values: Sequence[Any] | np.ndarray[Any, Any]) -> Floats:
    """Give values as doubles."""
    return np.asarray(values, dtype=np.float64)


def ints(values: Sequence[Any] | np.ndarray[Any, Any]) -> Ints:
    """Give values as 64-bit integers."""
    return np.asarray(values, dtype=np.int64)


def pointers(counts: Ints) -> Ints:
    """Turn the number of entries of each row into a row pointer."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))


def has_compiler() -> bool:
    """Tell whether numba is installed, without importing it."""
    return find_spec("numba") is not None


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep the code on disk for the next time."""
    if not has_compiler():
        return function
    from numba import njit

    try:
        return cast("Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder that a cache can be written to: compiled anew each time
        return cast("Function", njit(nogil=True)(function))


# --- max-min rates, where no compiler is at hand --------------------------------------------------

_SLACK = 1e-13
"""Shares that are one but for rounding are frozen in one round."""


def fill_in_rounds(arrays: Arrays) -> Floats:
    """Give the max-min rate of each demand, in bytes/s.

    A resource's share never falls while others are frozen below it. So every resource whose share
    is no larger than that of any other resource of any of its users, a *local* bottleneck, fills
    at exactly that share, whatever happens elsewhere: all of them can be frozen in the same round.
    That takes some dozens of rounds where one global bottleneck at a time would take thousands.
    """
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
