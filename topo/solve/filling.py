"""Max-min rates of small systems, in plain Python: microseconds, and nothing to import."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from topo.solve.checks import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.flows.system import System


def fill(system: System) -> list[float]:
    """Give the max-min rate of each demand, in bytes/s.

    Fill progressively, with a lazy heap of the levels at which something would be full.

    A resource's share, what is left of it per weight of its unfrozen users, never falls while
    others are frozen below it. So a heap may hold outdated shares: they are too low, and are put
    right when they come up.
    """
    filling = _Filling(system)
    heap = filling.first_shares()
    level = 0.0
    while filling.waiting:
        _, index = heappop(heap)
        if index < 0:
            filling.freeze_at_limit(~index)
            continue
        if not filling.users_waiting[index]:
            continue
        share = filling.share(index)
        if heap and share > heap[0][0]:
            heappush(heap, (share, index))
            continue
        # The level never falls either; rounding must not say otherwise.
        level = max(level, filling.exact_share(index))
        filling.freeze_users(index, level)
    return filling.rates


class _Filling:
    """The state of one progressive filling, in plain lists."""

    def __init__(self, system: System) -> None:
        self.weights: Sequence[float] = plain(system.weights)
        self.limits: Sequence[float] = plain(system.limits)
        self.capacities: Sequence[float] = plain(system.capacities)
        self.rates = [-1.0] * len(self.weights)
        """Bytes/s, or -1 while the demand still rises."""
        self.waiting = len(self.weights)
        self.rows = self._finite_rows(system)
        self.users: list[list[tuple[int, float]]] = [[] for _ in self.capacities]
        self.users_waiting = [0] * len(self.capacities)
        self.left = list(self.capacities)
        self.pull = [0.0] * len(self.capacities)
        """Sum of multiplicity times weight over the users that still rise."""
        for demand, row in enumerate(self.rows):
            weight = self.weights[demand]
            for resource, multiplicity in row:
                self.users[resource].append((demand, multiplicity))
                self.users_waiting[resource] += 1
                self.pull[resource] += multiplicity * weight

    def _finite_rows(self, system: System) -> list[list[tuple[int, float]]]:
        starts, resources = plain(system.starts), plain(system.resources)
        multiplicities, capacities = plain(system.multiplicities), self.capacities
        return [
            [
                (resources[entry], multiplicities[entry])
                for entry in range(starts[demand], starts[demand + 1])
                if capacities[resources[entry]] != math.inf
            ]
            for demand in range(self.waiting)
        ]

    def first_shares(self) -> list[tuple[float, int]]:
        """Make the heap: resources by their index, a demand's own limit by ``~demand``."""
        heap = [
            (self.left[resource] / self.pull[resource], resource)
            for resource, users in enumerate(self.users)
            if users
        ]
        heap += [
            (limit / self.weights[demand], ~demand)
            for demand, limit in enumerate(self.limits)
            if limit != math.inf
        ]
        heapify(heap)
        return heap

    def share(self, resource: int) -> float:
        """Give the level at which the resource is full, from the running sums."""
        pull = self.pull[resource]
        return self.left[resource] / pull if pull > 0.0 else self.exact_share(resource)

    def exact_share(self, resource: int) -> float:
        """Give the same from the users themselves, without what the running sums have lost."""
        left, pull = self.capacities[resource], 0.0
        for demand, multiplicity in self.users[resource]:
            rate = self.rates[demand]
            if rate < 0.0:
                pull += multiplicity * self.weights[demand]
            else:
                left -= multiplicity * rate
        return left / pull

    def freeze_users(self, resource: int, level: float) -> None:
        """Freeze every rising user of a full resource at the level."""
        for demand, _ in self.users[resource]:
            if self.rates[demand] < 0.0:
                self._freeze(demand, min(self.weights[demand] * level, self.limits[demand]))

    def freeze_at_limit(self, demand: int) -> None:
        """Freeze a demand, if it still rises, at its own limit."""
        if self.rates[demand] < 0.0:
            self._freeze(demand, self.limits[demand])

    def _freeze(self, demand: int, rate: float) -> None:
        self.rates[demand] = rate
        self.waiting -= 1
        weight = self.weights[demand]
        for resource, multiplicity in self.rows[demand]:
            self.left[resource] -= multiplicity * rate
            self.pull[resource] -= multiplicity * weight
            self.users_waiting[resource] -= 1
