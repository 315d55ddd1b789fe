"""What a machine makes of what models ask for: accelerators fed, checkpoints, caches brought back.

An accelerator is fed where it computes for the share of its time that the model's `utilisation`
says, so where it gets that share of what it reads when it never waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from topo.catalogue.part import Figure
from topo.flows.demands import worker_limit
from topo.flows.needs import accelerator_at, accelerators_at, rate_of_one
from topo.records import dataclass
from topo.solve.system import TIE

if TYPE_CHECKING:
    from topo.description.description import ModelNeed
    from topo.flows.demands import Demand, System, UseMatrix
    from topo.solve.system import Allocation
    from topo.study.answers import PathAnswer
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology

DAY: Final = 86_400.0
RULE: Final = (
    "Young 1974 (doi:10.1145/361147.361115), Daly 2006 (doi:10.1016/j.future.2004.11.016): "
    "sqrt(2 x write time x mean time between failures)"
)
"""Where the best interval between checkpoints comes from."""
_ALWAYS: Final = Figure(1.0, "quoted", "no share is said: what it reads, in full")


@dataclass(frozen=True, slots=True)
class Kind:
    """Accelerators that ask for the same.

    Parameters
    ----------
    accelerator
        What they are; empty where nobody says it.
    count
        How many.
    rate
        Bytes/s that one reads while it never waits; unknown where its computation time is.
    rates
        The least and the most bytes/s that one gets while all run.
    """

    accelerator: str
    count: int
    rate: Figure
    rates: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Feeding:
    """How many accelerators a data path feeds.

    Parameters
    ----------
    model, utilisation
        The model, and the share of its time in which an accelerator has to compute.
    kinds
        The accelerators, by what they ask for.
    fed
        How many can be fed at once, the others standing still; those of which it is not known what
        they ask for are not among them.
    supply, bound, unknowns
        Bytes/s of all, were there no end to what they ask for, the full resources then, and the
        unknown capacities on the way of so much.
    room
        How many of them `supply` would feed; `None` where they ask for different rates.
    """

    model: str
    utilisation: Figure
    kinds: tuple[Kind, ...]
    fed: int
    supply: float
    bound: tuple[Resource, ...]
    room: int | None
    unknowns: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many accelerators there are."""
        return sum(kind.count for kind in self.kinds)

    @property
    def supply_at_most(self) -> bool:
        """Whether `supply` is an upper bound."""
        return bool(self.unknowns)

    @property
    def unknown(self) -> int:
        """Of how many it is not known what they ask for."""
        return sum(kind.count for kind in self.kinds if not kind.rate.known)


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What checkpoints cost where they are written as often as is best.

    The accelerators stand still while one is written, and what was computed since the last is done
    again when one of them fails; to start again takes longer still, which is not counted.

    Parameters
    ----------
    model
        The model.
    accelerators
        How many may fail.
    mttf
        Mean time to failure of one, in seconds.
    write
        Seconds to write one.
    """

    model: str
    accelerators: int
    mttf: Figure
    write: float

    @property
    def mtbf(self) -> float:
        """Mean seconds between failures of all."""
        return (self.mttf.value or math.inf) / self.accelerators

    @property
    def interval(self) -> float:
        """The best seconds from one checkpoint to the next: not more than between failures."""
        return min(math.sqrt(2.0 * self.write * self.mtbf), self.mtbf)

    @property
    def rule_holds(self) -> bool:
        """Whether a write is short against the time between failures, as the rule assumes."""
        return self.write < self.mtbf / 2.0

    @property
    def writing(self) -> float:
        """Seconds a day in which they write."""
        return min(DAY * self.write / self.interval, DAY)

    @property
    def repeating(self) -> float:
        """Seconds a day that are computed again: half an interval at each failure."""
        return min(DAY * self.interval / 2.0 / self.mtbf, DAY)

    @property
    def lost(self) -> float:
        """Seconds lost a day."""
        return min(self.writing + self.repeating, DAY)


@dataclass(frozen=True, slots=True)
class Moved:
    """A checkpoint that is read back, or a KV cache: its bytes, and seconds.

    `tokens` and what the cache holds of one, `token`, are of a KV cache.
    """

    model: str
    size: float
    time: float
    tokens: int = 0
    token: Figure | None = None


Met: TypeAlias = Feeding | Checkpointing | Moved


def met(
    topology: Topology,
    need: ModelNeed,
    path: PathAnswer,
    solve: Callable[[System], Allocation],
) -> Met | None:
    """Return what comes of what a model asks for; `None` where the path is refused.

    Parameters
    ----------
    topology
        The machine.
    need
        What the workload moves for a model.
    path
        The workload by a data path, solved.
    solve
        What gives max-min fair rates.
    """
    if path.matrix is None:
        return None
    if need.asks == "needs":
        return feeding(topology, need, path.matrix, path.rates.values(), solve)
    if path.time is None or path.size is None:
        return None
    leaves = path.routes[0].direction == "write"
    if need.asks == "checkpoint" and leaves and need.mttf is not None:
        count = need.accelerators or sum(demand.count for demand in path.matrix.demands)
        return Checkpointing(need.model.name, count, need.mttf, path.time)
    return Moved(need.model.name, path.size, path.time, need.tokens, need.model.token)


def feeding(
    topology: Topology,
    need: ModelNeed,
    matrix: UseMatrix,
    rates: Iterable[float],
    solve: Callable[[System], Allocation],
) -> Feeding:
    """Return how many accelerators are fed; `rates` are those of the demands while all run."""
    utilisation = need.model.figures.get("utilisation", _ALWAYS)
    share = utilisation.value or 1.0
    behind = accelerators_at(need)
    asked = [rate_of_one(topology, need, demand.endpoint) for demand in matrix.demands]
    limits = [worker_limit(topology, demand.route, matrix.basis) for demand in matrix.demands]
    allocation = solve(replace(matrix.system, limits=tuple(limits)))
    supply = matrix.total(allocation.rates)
    full = dict.fromkeys(stop for stops in allocation.stops for stop in stops)
    return Feeding(
        model=need.model.name,
        utilisation=utilisation,
        kinds=tuple(_kinds(topology, need, matrix.demands, rates)),
        fed=_fed(matrix, [(figure.value or 0.0) * share for figure in asked], behind, limits),
        supply=supply,
        bound=tuple(matrix.resources[place] for place in full),
        unknowns=matrix.unknowns(allocation.loads),
        room=fed_by(supply, need_of_one(topology, need, matrix.demands)),
    )


def need_of_one(topology: Topology, need: ModelNeed, demands: Iterable[Demand]) -> float | None:
    """Return bytes/s that feed one accelerator; `None` where not each is known to ask the same."""
    utilisation = need.model.figures.get("utilisation", _ALWAYS)
    rates = {rate_of_one(topology, need, demand.endpoint).value for demand in demands}
    rate = rates.pop() if len(rates) == 1 else None
    return None if rate is None else rate * (utilisation.value or 1.0)


def fed_by(supply: float, of_one: float | None) -> int | None:
    """Return how many accelerators are fed that need so much each; `None` where that is unknown."""
    return None if of_one is None else math.floor(supply / of_one * (1 + TIE))


def _kinds(
    topology: Topology, need: ModelNeed, demands: Iterable[Demand], rates: Iterable[float]
) -> Iterable[Kind]:
    """Yield the accelerators by what they are."""
    behind = accelerators_at(need)
    groups: dict[str, list[tuple[Demand, float]]] = {}
    for demand, rate in zip(demands, rates, strict=True):
        name = accelerator_at(topology, need, demand.endpoint)
        groups.setdefault(name, []).append((demand, rate / behind))
    for name, group in groups.items():
        of_one = [rate for _, rate in group]
        count = sum(demand.count for demand, _ in group) * behind
        figure = rate_of_one(topology, need, group[0][0].endpoint)
        yield Kind(name, count, figure, (min(of_one), max(of_one)))


def _fed(matrix: UseMatrix, rates: Iterable[float], behind: int, limits: Iterable[float]) -> int:
    """Return how many accelerators can have their rates at once, taking one after another.

    Where a row stands for several demands, the whole of what they share divides among them.
    """
    system = matrix.system
    left = list(system.capacities)
    fed = 0
    for place, (demand, rate, limit) in enumerate(zip(matrix.demands, rates, limits, strict=True)):
        if not rate:
            continue
        row = range(system.starts[place], system.starts[place + 1])
        most = min(behind, math.floor(limit / rate * (1 + TIE))) if limit < math.inf else behind
        of_row = most * demand.count
        uses = [
            (system.resources[entry], system.multiplicities[entry] * rate / demand.count)
            for entry in row
        ]
        fits = [left[resource] / use * (1 + TIE) for resource, use in uses]
        fits = [number for number in fits if number < math.inf]
        count = min(of_row, math.floor(min(fits, default=math.inf)) if fits else of_row)
        for resource, use in uses:
            left[resource] = max(left[resource] - count * use, 0.0)
        fed += count
    return fed
