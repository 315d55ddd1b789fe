"""Which demands and which resources of an answer are alike, so that one line stands for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from topo.flows.system import UseMatrix
    from topo.solve.system import Allocation


_Groups = tuple[tuple[int, ...], ...]


def alike(matrix: UseMatrix, allocation: Allocation) -> tuple[_Groups, _Groups]:
    """Return the classes of demands and of resources that no figure tells apart.

    Two demands are alike when weight, limit, size and rate are the same and they use alike
    resources equally often; two resources, when class, capacity and load are the same and alike
    demands use them (colour refinement, as in `topo.solve.fold`, on names of classes as well).

    Parameters
    ----------
    matrix
        Demands and resources.
    allocation
        What the demands get.

    Returns
    -------
    tuple
        Classes of demand indices and of resource indices, in the order of their first members.
    """
    rows = _rows(matrix)
    users: list[list[tuple[int, float]]] = [[] for _ in matrix.resources]
    for demand, row in enumerate(rows):
        for resource, weight in row:
            users[resource].append((demand, weight))
    demands = _numbered(
        [
            (one.workload, one.weight, _near(one.limit), one.size, one.start, _near(rate))
            for one, rate in zip(matrix.demands, allocation.rates, strict=True)
        ]
    )
    resources = _numbered(
        [
            (one.kind, _near(capacity), _near(load))
            for one, capacity, load in zip(
                matrix.resources, matrix.system.capacities, allocation.loads, strict=True
            )
        ]
    )
    while True:
        finer = _numbered(_seen(demands, rows, resources))
        other = _numbered(_seen(resources, users, finer))
        if max(finer, default=0) + max(other, default=0) == max(demands, default=0) + max(
            resources, default=0
        ):
            return _classes(finer), _classes(other)
        demands, resources = finer, other


def _rows(matrix: UseMatrix) -> list[list[tuple[int, float]]]:
    system = matrix.system
    return [
        list(
            zip(
                system.resources[system.starts[row] : system.starts[row + 1]],
                system.multiplicities[system.starts[row] : system.starts[row + 1]],
                strict=True,
            )
        )
        for row in range(len(matrix.demands))
    ]


def _seen(
    own: Sequence[int], neighbours: Sequence[Sequence[tuple[int, float]]], theirs: Sequence[int]
) -> list[Hashable]:
    """Return what each sees: its own class, and how often it meets each class of the others."""
    return [
        (mine, tuple(sorted((theirs[other], weight) for other, weight in met)))
        for mine, met in zip(own, neighbours, strict=True)
    ]


def _numbered(colours: Sequence[Hashable]) -> list[int]:
    order: dict[Hashable, int] = {}
    return [order.setdefault(colour, len(order)) for colour in colours]


def _classes(numbers: Sequence[int]) -> _Groups:
    found: dict[int, list[int]] = {}
    for index, number in enumerate(numbers):
        found.setdefault(number, []).append(index)
    return tuple(tuple(members) for members in found.values())


def _near(value: float) -> str:
    """Return nine digits of a number: what ties to a relative 1e-9 is the same."""
    return f"{value:.9g}"
