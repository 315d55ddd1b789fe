"""Max-min fair rates: who gets what when all run at once.

Every demand's rate is its weight times a common, rising level, and a resource is loaded by the
multiplicity times the rate of each of its users. A demand is frozen when its own limit is reached
or a resource that it uses is full; the others rise on. The rates found are the only ones at
which nobody can get more without somebody getting less who has no more per weight [1]_.

References
----------
.. [1] D. Bertsekas, R. Gallager, *Data Networks*, 2nd ed., 1992, section 6.5.2 (progressive
   filling).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.errors import Finding, SolverError
from topo.solve.certificates import certified
from topo.solve.system import TIE, Allocation, check, plain

if TYPE_CHECKING:
    from topo.flows.demands import System
    from topo.solve.arrays import Arrays, Floats


Method: TypeAlias = Literal["plain", "rounds", "kernel"]


_PLAIN_ENTRIES = 5_000
"""Up to here plain Python is done before NumPy is imported."""
_ROUNDS_ENTRIES = 100_000
"""Up to here NumPy is done before the compiled kernel is loaded."""


def max_min(system: System, *, method: Method | None = None) -> Allocation:
    """Share the resources max-min fairly among all demands at once.

    Parameters
    ----------
    system
        Capacities and limits in bytes/s, weights and multiplicities without a unit.
    method
        `plain` Python, `rounds` of NumPy, or the compiled `kernel` (the extra ``scale``); chosen by
        size, and by what is installed, when not given. All agree to a relative 1e-12.

    Returns
    -------
    Allocation
        Rates and loads in bytes/s. `stops` lists for each demand *every* full resource on which
        nobody has a higher rate per weight (relative 1e-9): several are a tie. It is empty for a
        demand that only its own limit stops.

    Raises
    ------
    SolverError
        The system has a zero, a negative number or a NaN in it; or the kernel is asked for and
        numba is not installed.
    UnboundedError
        A demand meets no finite resource and has no limit of its own; the message names it.
    CertificateError
        The answer did not pass its check: a fault of topo.

    Examples
    --------
    Two demands share 100; the second may not take more than 30:

    >>> from topo.flows.demands import System
    >>> from topo.solve.maxmin import max_min
    >>> answer = max_min(System.of([100.0], [{0: 1.0}, {0: 1.0}], limits=[float("inf"), 30.0]))
    >>> answer.rates, answer.stops
    ((70.0, 30.0), ((0,), ()))
    """
    check(system)
    return certified(system, max_min_unchecked(system, method=method))


def max_min_unchecked(system: System, *, method: Method | None = None) -> Allocation:
    """Answer as `max_min` does, of a system that was checked before; the answer is not."""
    chosen = method or _method(len(system.resources))
    if chosen == "plain":
        return _described(system, fill(system))
    from topo.solve.arrays import Arrays

    arrays = Arrays.of(system)
    return _described_arrays(arrays, rates_of(arrays, chosen))


def rates_of(arrays: Arrays, method: Literal["rounds", "kernel"] | None = None) -> Floats:
    """Find the rates alone, of a system that was checked before."""
    chosen = method or _method(max(arrays.uses.values.size, _PLAIN_ENTRIES + 1))
    if chosen == "kernel":
        from topo.solve.arrays import has_compiler

        if not has_compiler():
            raise SolverError(
                Finding(
                    code="not-installed",
                    message="the compiled kernel needs numba, which is not installed",
                    help="pip install 'gpu-topo[scale]'",
                )
            )
        from topo.solve import kernel

        return kernel.fill(arrays)
    from topo.solve.arrays import fill_in_rounds

    return fill_in_rounds(arrays)


def _method(entries: int) -> Method:
    if entries <= _PLAIN_ENTRIES:
        return "plain"
    if entries <= _ROUNDS_ENTRIES:
        return "rounds"
    from topo.solve.arrays import has_compiler

    return "kernel" if has_compiler() else "rounds"


def _described(system: System, rates: Sequence[float]) -> Allocation:
    """Say what rates mean: the loads they make, and which full resources stop whom."""
    starts, resources = plain(system.starts), plain(system.resources)
    multiplicities, weights = plain(system.multiplicities), plain(system.weights)
    loads = [0.0] * len(system.capacities)
    tops = [0.0] * len(loads)
    for demand, rate in enumerate(rates):
        level = rate / weights[demand]
        for entry in range(starts[demand], starts[demand + 1]):
            resource = resources[entry]
            loads[resource] += multiplicities[entry] * rate
            if level > tops[resource]:  # noqa: PLR1730 - max() takes three times as long
                tops[resource] = level
    # A resource stops those of its users whose level is its highest; none if it is not full.
    bars = [
        top * (1.0 - TIE) if load >= capacity * (1.0 - TIE) else math.inf
        for top, load, capacity in zip(tops, loads, plain(system.capacities), strict=True)
    ]
    stops = tuple(
        tuple(
            resource
            for resource in resources[starts[demand] : starts[demand + 1]]
            if rate / weights[demand] >= bars[resource]
        )
        for demand, rate in enumerate(rates)
    )
    return Allocation(rates=tuple(rates), loads=tuple(loads), stops=stops)


def _described_arrays(arrays: Arrays, rates: Floats) -> Allocation:
    """Say the same of arrays."""
    import numpy as np

    uses = arrays.uses
    levels = np.repeat(rates / arrays.weights, np.diff(uses.starts))
    loads = uses.transposed_times(rates)
    tops = np.zeros(loads.size)
    np.maximum.at(tops, uses.columns, levels)
    full = loads >= arrays.capacities * (1.0 - TIE)
    bars = np.where(full, tops * (1.0 - TIE), math.inf)
    stopping = levels >= bars[uses.columns]
    stoppers = uses.columns[stopping].tolist()
    # How many stops come before each row's end.
    ends = np.concatenate(([0], np.cumsum(stopping)))[uses.starts].tolist()
    return Allocation(
        rates=tuple(rates.tolist()),
        loads=tuple(loads.tolist()),
        stops=tuple(tuple(stoppers[first:end]) for first, end in itertools.pairwise(ends)),
    )


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
