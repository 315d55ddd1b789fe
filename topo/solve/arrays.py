"""A system as NumPy arrays, for the solvers that read it whole."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from topo.flows.system import System

    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
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


def floats(values: Sequence[Any] | NDArray[Any]) -> Floats:
    """Give values as doubles."""
    return np.asarray(values, dtype=np.float64)


def ints(values: Sequence[Any] | NDArray[Any]) -> Ints:
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

    return cast("Function", njit(cache=True, nogil=True)(function))
