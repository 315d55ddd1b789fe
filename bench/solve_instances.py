"""Systems of three families, from a size and a seed, for the benchmarks of the solvers.

`rand` has as many different levels as it can (the worst case of progressive filling), `fabric` is a
leaf-spine network of GPU servers under permutation traffic, `dense` the same fabric with a hundred
demands from each GPU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from topo.flows.demands import System

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["FAMILIES", "dense", "fabric", "rand"]

GPUS = 8
"""GPUs, and NICs, of a server; half of them on each of its two sockets."""
SERVERS_PER_LEAF = 4
DEGRADED = 0.05
"""Part of all resources that have lost some of their rate."""


def rand(count: int, seed: int = 1) -> System:
    """Make `count` demands on six random resources each, of `count` / 4 with random capacities."""
    draw = np.random.default_rng(seed)
    resources = max(count // 4, 8)
    rows = draw.integers(0, resources, (count, 6))
    while (repeats := _rows_with_repeats(rows)).any():
        rows[repeats] = draw.integers(0, resources, (int(repeats.sum()), 6))
    return _system(draw.uniform(1e9, 100e9, resources), np.sort(rows, axis=1), np.ones((count, 6)))


def fabric(count: int, seed: int = 1) -> System:
    """Make one demand from each of `count` GPUs to another, each GPU receiving one."""
    draw = np.random.default_rng(seed)
    count = _whole_leaves(count)
    source = np.arange(count)
    return _on_fabric(count, source, draw.permutation(count), draw)


def dense(count: int, seed: int = 1) -> System:
    """Make a hundred demands from each of `count` / 100 GPUs to random others."""
    draw = np.random.default_rng(seed)
    gpus = _whole_leaves(count // 100)
    source = np.repeat(np.arange(gpus), 100)
    return _on_fabric(gpus, source, draw.integers(0, gpus, source.size), draw)


FAMILIES: dict[str, Callable[[int], System]] = {"rand": rand, "fabric": fabric, "dense": dense}


def _whole_leaves(gpus: int) -> int:
    step = GPUS * SERVERS_PER_LEAF
    return max(-(-gpus // step), 2) * step


def _rows_with_repeats(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    ordered = np.sort(rows, axis=1)
    return np.asarray((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))


def _on_fabric(
    gpus: int,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    draw: np.random.Generator,
) -> System:
    """Lay the demands on GPUs' PCIe, NICs, uplinks by hash, and the sockets' memory."""
    leaves = gpus // (GPUS * SERVERS_PER_LEAF)
    spines = 16
    sockets = gpus // (GPUS // 2)
    sizes = [gpus, gpus, gpus, gpus, leaves * spines, leaves * spines, sockets, sockets]
    rates = [63e9, 63e9, 50e9, 50e9, 100e9, 100e9, 300e9, 200e9]
    first = np.concatenate(([0], np.cumsum(sizes)))
    capacities = np.repeat(rates, sizes)
    degraded = draw.random(capacities.size) < DEGRADED
    capacities[degraded] *= draw.uniform(0.3, 0.9, int(degraded.sum()))

    spine = draw.integers(0, spines, source.size)
    leaf_from = source // (GPUS * SERVERS_PER_LEAF)
    leaf_to = target // (GPUS * SERVERS_PER_LEAF)
    socket_from, socket_to = source // (GPUS // 2), target // (GPUS // 2)
    away = source // GPUS != target // GPUS
    far = leaf_from != leaf_to
    same_socket = socket_from == socket_to
    always = np.ones(source.size, bool)
    once, twice = np.ones(source.size), np.full(source.size, 2.0)
    columns = [
        (first[0] + source, once, always),
        (first[1] + target, once, always),
        (first[2] + source, once, away),
        (first[3] + target, once, away),
        (first[4] + leaf_from * spines + spine, once, far),
        (first[5] + leaf_to * spines + spine, once, far),
        (first[6] + socket_from, np.where(same_socket, 2.0 * twice, twice), always),
        (first[6] + socket_to, twice, ~same_socket),
        (first[7] + socket_from, once, always),
    ]
    rows = np.full((source.size, len(columns)), -1)
    multiplicities = np.zeros(rows.shape)
    for place, (resource, multiplicity, where) in enumerate(columns):
        rows[where, place] = resource[where]
        multiplicities[where, place] = multiplicity[where]
    order = np.argsort(rows, axis=1, kind="stable")
    return _system(
        capacities,
        np.take_along_axis(rows, order, axis=1),
        np.take_along_axis(multiplicities, order, axis=1),
    )


def _system(
    capacities: NDArray[np.float64],
    rows: NDArray[np.int64],
    multiplicities: NDArray[np.float64],
) -> System:
    """Compress rows in which -1 stands for no entry."""
    there = rows >= 0
    count = rows.shape[0]

    def column(values: object) -> Sequence[float]:
        return cast("Sequence[float]", values)

    return System(
        capacities=column(capacities),
        starts=cast("Sequence[int]", np.concatenate(([0], np.cumsum(there.sum(axis=1))))),
        resources=cast("Sequence[int]", rows[there]),
        multiplicities=column(multiplicities[there]),
        weights=column(np.ones(count)),
        limits=column(np.full(count, math.inf)),
    )
