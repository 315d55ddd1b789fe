"""Like things solved once: demands and resources that no solver can tell apart.

Colour refinement starts from what each demand and resource is by itself (its weight and limit, its
capacity) and splits classes until all members of a class see the same classes equally often: an
*equitable* partition. The fair rates, and an optimum of a linear program, are then the same for
all members of a class, and can be found on the classes alone, exactly [1]_.

References
----------
.. [1] M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension Reduction via Colour
   Refinement", ESA 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from topo.flows.demands import System
from topo.records import dataclass
from topo.solve.arrays import Arrays, Floats, Ints, Matrix, pointers
from topo.solve.certificates import certified
from topo.solve.maxmin import max_min_unchecked
from topo.solve.system import Allocation, check

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Classes:
    """A partition of things into numbered classes.

    Parameters
    ----------
    of
        Class of each thing; classes are numbered in the order of their first members.
    first
        First member of each class.
    sizes
        Number of members of each class.
    """

    of: Ints
    first: Ints
    sizes: Ints

    @classmethod
    def from_colours(cls, colours: NDArray[np.generic]) -> Classes:
        """Make a class of each colour, in the order in which they first appear."""
        _, first, of, sizes = np.unique(
            colours, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return cls(of=rank[of.reshape(-1)], first=first[order], sizes=sizes[order])

    @property
    def count(self) -> int:
        """Number of classes."""
        return self.first.size


@dataclass(frozen=True, slots=True)
class Folded:
    """A system with one demand and one resource for each class of like ones.

    Parameters
    ----------
    original
        The system that was folded.
    system
        The small one: rates are those of *one* member; a multiplicity is the sum over all members
        of the demand's class that use one member of the resource's class.
    demands, resources
        Which class each demand and each resource of the original is in.
    """

    original: System
    system: System
    demands: Classes
    resources: Classes

    def unfold(self, allocation: Allocation) -> Allocation:
        """Give every member what its class got."""
        starts = np.asarray(self.original.starts).tolist()
        columns = np.asarray(self.original.resources).tolist()
        kind = self.resources.of.tolist()
        classes = self.demands.of.tolist()
        stopping = [frozenset(stops) for stops in allocation.stops]
        return Allocation(
            rates=tuple(allocation.rates[c] for c in classes),
            loads=tuple(allocation.loads[k] for k in kind),
            stops=tuple(
                tuple(r for r in columns[starts[d] : starts[d + 1]] if kind[r] in stopping[c])
                for d, c in enumerate(classes)
            ),
            rule=allocation.rule,
        )


def fold(system: System) -> Folded:
    """Merge like demands, and like resources, into one of each.

    Parameters
    ----------
    system
        Any system, in which like servers may stand a thousand times.

    Returns
    -------
    Folded
        The small system, and the way back: ``folded.unfold(max_min(folded.system))`` equals
        ``max_min(system)`` but for rounding.

    Examples
    --------
    >>> from topo.flows.demands import System
    >>> from topo.solve.maxmin import max_min
    >>> cards = System.of([50.0, 50.0], [{0: 1.0}, {0: 1.0}, {1: 1.0}, {1: 1.0}])
    >>> folded = fold(cards)
    >>> folded.system.demand_count, folded.unfold(max_min(folded.system)).rates
    (1, (25.0, 25.0, 25.0, 25.0))
    """
    arrays = Arrays.of(system)
    own = pair_colours(arrays.weights, arrays.limits)
    demands, resources = partition(arrays.uses, own, arrays.capacities)
    small = quotient(arrays.uses, demands, resources)
    return Folded(
        original=system,
        system=System(
            capacities=_column(arrays.capacities[resources.first]),
            starts=tuple(small.starts.tolist()),
            resources=tuple(small.columns.tolist()),
            multiplicities=_column(small.values),
            weights=_column(arrays.weights[demands.first]),
            limits=_column(arrays.limits[demands.first]),
        ),
        demands=demands,
        resources=resources,
    )


def max_min_by_class(system: System) -> Allocation:
    """Share as `max_min` does, with like demands and like resources solved as one each.

    The answer is the same but for rounding; a thousand like servers cost as much as one.

    Parameters
    ----------
    system
        Any system that is too large for plain Python; folding a small one costs more than it saves.

    Raises
    ------
    SolverError, UnboundedError
        As `max_min`; indices are those of `system`.
    """
    check(system)
    folded = fold(system)
    return certified(system, folded.unfold(max_min_unchecked(folded.system)))


def partition(
    matrix: Matrix, row_colours: NDArray[np.generic], column_colours: NDArray[np.generic]
) -> tuple[Classes, Classes]:
    """Find the coarsest equitable partition of the rows and columns of a matrix.

    Parameters
    ----------
    matrix
        Entries are told apart by their values.
    row_colours, column_colours
        What each row and column is by itself; equal colours may end in one class.

    Returns
    -------
    tuple of Classes
        Those of the rows and those of the columns.
    """
    sides = _Sides(matrix)
    rows, columns = Classes.from_colours(row_colours), Classes.from_colours(column_colours)
    while True:
        before = rows.count + columns.count
        rows = sides.split_rows(rows, columns)
        columns = sides.split_columns(rows, columns)
        if rows.count + columns.count <= before:
            break
    if sides.is_equitable(rows, columns):
        return rows, columns
    # Two different neighbourhoods had the same 64-bit sum: give up merging rather than be wrong.
    return (
        Classes.from_colours(np.arange(matrix.height)),
        Classes.from_colours(np.arange(matrix.width)),
    )


def pair_colours(left: Floats, right: Floats) -> Ints:
    """Give equal pairs of two columns of numbers one number."""
    first = np.unique(left, return_inverse=True)[1].reshape(-1)
    second = np.unique(right, return_inverse=True)[1].reshape(-1)
    return first * (int(second.max(initial=0)) + 1) + second


def quotient(matrix: Matrix, rows: Classes, columns: Classes) -> Matrix:
    """Sum the entries of one member of each column class over the members of each row class."""
    turned = matrix.transpose()
    chosen = _entries(turned, columns.first)
    kind = np.repeat(np.arange(columns.count), np.diff(turned.starts)[columns.first])
    row = rows.of[turned.columns[chosen]]
    order = np.lexsort((kind, row))
    row, kind, values = row[order], kind[order], turned.values[chosen][order]
    new = np.ones(row.size, bool)
    new[1:] = (row[1:] != row[:-1]) | (kind[1:] != kind[:-1])
    heads = np.flatnonzero(new)
    return Matrix(
        starts=pointers(np.bincount(row[heads], minlength=rows.count)),
        columns=kind[heads],
        values=np.add.reduceat(values, heads) if heads.size else values,
        width=columns.count,
    )


class _Sides:
    """A matrix seen from its rows and from its columns, with its values numbered."""

    def __init__(self, matrix: Matrix) -> None:
        numbered = Matrix(
            starts=matrix.starts,
            columns=matrix.columns,
            values=np.unique(matrix.values, return_inverse=True)[1].reshape(-1).astype(float),
            width=matrix.width,
        )
        self.by_row = numbered
        self.by_column = numbered.transpose()

    def split_rows(self, rows: Classes, columns: Classes) -> Classes:
        return _split(rows, self.by_row, columns)

    def split_columns(self, rows: Classes, columns: Classes) -> Classes:
        return _split(columns, self.by_column, rows)

    def is_equitable(self, rows: Classes, columns: Classes) -> bool:
        return _is_like_first(self.by_row, rows, columns) and _is_like_first(
            self.by_column, columns, rows
        )


def _split(classes: Classes, matrix: Matrix, neighbours: Classes) -> Classes:
    """Split classes by the sums of well-mixed numbers of what their members are next to."""
    mixed = _mix(_keys(matrix, neighbours))
    sums = np.zeros(matrix.height, np.uint64)
    filled = np.flatnonzero(np.diff(matrix.starts))
    if filled.size:
        sums[filled] = np.add.reduceat(mixed, matrix.starts[filled])
    # Mixed again before the own class is added, or two that swap class and company look alike.
    return Classes.from_colours(_mix(_mix(sums) + classes.of.astype(np.uint64)))


def _keys(matrix: Matrix, neighbours: Classes) -> NDArray[np.uint64]:
    numbers = int(matrix.values.max(initial=0.0)) + 1
    keys = neighbours.of[matrix.columns] * numbers + matrix.values.astype(np.int64)
    return keys.astype(np.uint64)


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers over 64 bits (the finaliser of SplitMix64, by G. Steele et al., 2014)."""
    mixed = (keys + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _is_like_first(matrix: Matrix, classes: Classes, neighbours: Classes) -> bool:
    """Check exactly that each member is next to the same as the first of its class."""
    degrees = np.diff(matrix.starts)
    model = classes.first[classes.of]
    if (degrees != degrees[model]).any():
        return False
    keys, owners = _keys(matrix, neighbours), matrix.owners()
    ordered = keys[np.lexsort((keys, owners))]
    place = np.arange(keys.size) - matrix.starts[owners]
    return bool((ordered == ordered[matrix.starts[model[owners]] + place]).all())


def _entries(matrix: Matrix, rows: Ints) -> Ints:
    """List the positions of all entries of some rows."""
    counts = np.diff(matrix.starts)[rows]
    place = np.arange(int(counts.sum())) - np.repeat(pointers(counts)[:-1], counts)
    return np.repeat(matrix.starts[rows], counts) + place


def _column(values: Floats) -> Sequence[float]:
    return cast("Sequence[float]", tuple(values.tolist()))
