"""From a workload and a data path to demands, and from demands to what a solver reads."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.part import Figure
from topo.flows.ends import paired_ends
from topo.flows.needs import asked_rate
from topo.phrases import shortened
from topo.records import dataclass
from topo.routes.usage import joint_resources, joint_use
from topo.topology.resources import Capacity, Resource

if TYPE_CHECKING:
    from topo.description.description import Basis, DataPath, Workload
    from topo.flows.collectives import Laid
    from topo.routes.route import Route, Transfer
    from topo.routes.router import End, Router
    from topo.topology.topology import Topology


GUESSED_CORE_COPY: Final = Figure(
    10e9,
    "guess",
    "single-threaded copies reach 8 to 15 GB/s on current servers",
    range=(8e9, 15e9),
)
"""What one core copies when neither the file nor its part says."""


@dataclass(frozen=True, slots=True)
class Demand:
    """This many bytes for one endpoint, by one route.

    Parameters
    ----------
    workload
        The workload it is part of.
    endpoint
        The device that is filled or emptied.
    route
        How the bytes travel.
    size
        Bytes.
    weight, limit, start
        Fair-share weight; rate limit in bytes/s (`math.inf` for none); start in seconds.
    limit_in_all
        What the workload states for all of its demands together, where there are several: a
        resource that they share; `math.inf` for none. The limit of one demand alone is in `limit`.
    own_limit
        The part of `limit` that the workload states, without what its workers can move.
    model
        The model whose need is that limit, if it is one's.
    count, endpoints
        How many endpoints it stands for, each with such a demand, and their names as a range: one,
        and none, but in a folded topology. All GPUs of a collective are one.
    collective
        What several GPUs do together, as it is laid; `None` for a transfer from here to there.
    """

    workload: str
    endpoint: str
    route: Route
    size: float
    weight: float
    limit: float
    start: float
    own_limit: float = math.inf
    limit_in_all: float = math.inf
    count: int = 1
    endpoints: str = ""
    collective: Laid | None = None
    model: str = ""

    @property
    def names(self) -> str:
        """The endpoint, or all that it stands for as a range."""
        return self.endpoints or self.endpoint

    @property
    def name(self) -> str:
        """Workload and endpoint, or all of them: ``load gpu0``."""
        return f"{self.workload} {self.names}"


def demands_of(
    router: Router, workload: Workload, path: DataPath, *, basis: Basis = "theoretical"
) -> tuple[Demand, ...]:
    """Return one demand for each endpoint of `workload`, all by `path`.

    The size is shared equally over the endpoints; a limit they share as a resource. A refused route
    gives a demand as well; the caller looks at its verdict before solving.
    """
    topology = router.topology
    if workload.collective:
        return (_collective_demand(router, workload, path, basis),)
    pairs = pairs_of(router, workload)
    total = sum(topology.class_size(endpoint) for _, endpoint, _ in pairs)
    stated = math.inf if workload.limit is None else workload.limit
    own_limit, in_all = (stated, math.inf) if total == 1 else (math.inf, stated)
    routes = tuple(router.routes(workload, path, pairs))
    asked = [asked_rate(topology, workload, route.endpoint) for route in routes]
    return tuple(
        Demand(
            workload=workload.name,
            endpoint=route.endpoint,
            route=route,
            size=workload.size / total,
            weight=workload.weight,
            limit=min(own_limit, rate, worker_limit(topology, route, basis)),
            start=workload.start,
            own_limit=min(own_limit, rate),
            limit_in_all=in_all,
            count=topology.class_size(route.endpoint),
            endpoints=topology.folding.shown(route.endpoint) if topology.folding else "",
            model=workload.need.model.name if workload.need and rate < own_limit else "",
        )
        for route, rate in zip(routes, asked, strict=True)
    )


def _collective_demand(router: Router, workload: Workload, path: DataPath, basis: Basis) -> Demand:
    """Return what GPUs do together as one demand, whose rate is size over time.

    Beside others each of its flows has the share that any other flow has.
    """
    from topo.flows.collectives import lay_collective  # most files have none

    laid, route = lay_collective(router, workload, path)
    own_limit = math.inf if workload.limit is None else workload.limit
    demand = Demand(
        workload=workload.name,
        endpoint=route.endpoint,
        route=route,
        size=workload.size,
        weight=workload.weight / laid.flow,
        limit=own_limit,
        start=workload.start,
        own_limit=own_limit,
        endpoints=shortened(workload.sources),
        collective=laid,
    )
    return at_basis(router.topology, demand, basis)


def ways_of(router: Router, workload: Workload) -> int:
    """Return how many ways `workload` comes to, at least, by any one data path; none is laid.

    What GPUs do together is one demand, whose ways are not counted here.
    """
    return 0 if workload.collective else router.ways(pairs_of(router, workload))


def pairs_of(router: Router, workload: Workload) -> list[End]:
    """Return the ends of each demand; in a folded topology one for all that are alike."""
    topology = router.topology
    if topology.folding is not None:
        sources, targets = map(topology.standing_for, (workload.sources, workload.targets))
        workload = replace(workload, sources=sources, targets=targets)
    return [
        (ends.far, ends.endpoint, ends.direction)
        for ends in paired_ends(router, workload)
        if topology.is_representative(ends.endpoint)
    ]


def limit_resource(demand: Demand) -> Resource | None:
    """Return the limit that the demands of a workload share, `None` where they have none."""
    if demand.limit_in_all == math.inf:
        return None
    return Resource(
        name=f"{demand.workload}/limit",
        kind="workload-limit",
        capacity=Capacity(Figure(demand.limit_in_all, "quoted", "the workload's limit")),
        device="",
        limited_by="the workload's limit",
    )


# --- what workers can move ------------------------------------------------------------------------


def at_basis(topology: Topology, demand: Demand, basis: Basis) -> Demand:
    """Return `demand` with the limit that its workers have at `basis`."""
    return replace(demand, limit=min(demand.own_limit, _workers_limit(topology, demand, basis)))


def _workers_limit(topology: Topology, demand: Demand, basis: Basis) -> float:
    """Return what the workers of an endpoint can move; of a collective's GPUs the slowest ones."""
    if demand.collective is None:
        return worker_limit(topology, demand.route, basis)
    seconds_per_byte: dict[str, float] = {}
    for hop in demand.collective.hops:
        seconds = hop.weight / worker_limit(topology, hop.route, basis)
        seconds_per_byte[hop.target] = seconds_per_byte.get(hop.target, 0.0) + seconds
    slowest = max(seconds_per_byte.values(), default=0.0)
    return 1 / slowest if slowest else math.inf


def worker_limit(topology: Topology, route: Route, basis: Basis) -> float:
    """Return what the workers of one GPU can move at most, in bytes/s.

    Serial stages of one worker follow each other, so a payload byte takes the sum of the stages'
    times: `n` workers reach ``n / sum(1 / s_i)``. Pipelined stages overlap, and only a stage with
    a stated rate of one worker limits: ``n * min(s_i)``. What stages share is left to the solver.
    """
    path = route.data_path
    if not route.subflows:
        return math.inf
    if path.stages == "pipelined":
        stated = [
            move.rate.value
            for move in path.moves
            if move.per_worker and move.rate is not None and move.rate.value is not None
        ]
        return path.workers * min(stated, default=math.inf)
    seconds_per_byte = sum(
        subflow.share / _stage_rate(topology, route, transfer, basis)
        for subflow in route.subflows
        for transfer in subflow.transfers
    )
    return path.workers / seconds_per_byte if seconds_per_byte > 0 else math.inf


def core_copy_rate(topology: Topology, host: str) -> float:
    """Return bytes/s that one core of `host` copies: its part's figure, or a guess of 10 GB/s."""
    figure = topology[host].part.figure("core-copy") if host in topology else None
    stated = figure.value if figure is not None else None
    return stated or GUESSED_CORE_COPY.value or 0.0


def _stage_rate(topology: Topology, route: Route, transfer: Transfer, basis: Basis) -> float:
    """Return what one worker's stage reaches alone: its stated rate and everything it uses."""
    rates = [
        resource.capacity.rate(basis) / transfer.use[name]
        for name, resource in route.resources(topology, transfer.use).items()
    ]
    return min(*rates, stage_limit(topology, transfer), math.inf)


def stage_limit(topology: Topology, transfer: Transfer) -> float:
    """Return what one worker does of a stage whatever it uses: a stated rate, a core's copying."""
    if transfer.move.rate is not None and transfer.move.rate.value is not None:
        return transfer.move.rate.value
    return core_copy_rate(topology, transfer.engine) if transfer.move.mover == "core" else math.inf


# --- the use matrix: what demands take of resources -----------------------------------------------


@dataclass(frozen=True, slots=True)
class System:
    """A use matrix in compressed rows, one row a demand.

    Parameters
    ----------
    capacities
        Bytes/s of each resource, greater than zero; `math.inf` for one that never binds.
    starts
        Row pointer: demand `d` owns entries ``starts[d]:starts[d + 1]``.
    resources
        Resource index of each entry, ascending within a row, no repeats.
    multiplicities
        Bytes through that resource per payload byte, greater than zero.
    weights
        Fair-share weight of each demand, greater than zero.
    limits
        Own rate limit of each demand in bytes/s; `math.inf` for none.

    Notes
    -----
    Each field is a tuple or a one-dimensional NumPy array; solvers for small systems read either.
    """

    capacities: Sequence[float]
    starts: Sequence[int]
    resources: Sequence[int]
    multiplicities: Sequence[float]
    weights: Sequence[float]
    limits: Sequence[float]

    @classmethod
    def of(
        cls,
        capacities: Sequence[float],
        uses: Sequence[dict[int, float]],
        *,
        weights: Sequence[float] | None = None,
        limits: Sequence[float] | None = None,
    ) -> System:
        """Build a system from one ``{resource: multiplicity}`` a demand."""
        starts = [0]
        resources: list[int] = []
        multiplicities: list[float] = []
        for use in uses:
            for resource in sorted(use):
                resources.append(resource)
                multiplicities.append(use[resource])
            starts.append(len(resources))
        return cls(
            capacities=tuple(capacities),
            starts=tuple(starts),
            resources=tuple(resources),
            multiplicities=tuple(multiplicities),
            weights=tuple(weights) if weights is not None else (1.0,) * len(uses),
            limits=tuple(limits) if limits is not None else (math.inf,) * len(uses),
        )

    @property
    def demand_count(self) -> int:
        """How many demands there are."""
        return len(self.weights)


@dataclass(frozen=True, slots=True)
class UseMatrix:
    """Demands and resources: row `d` of `system` is ``demands[d]``, column `r` ``resources[r]``.

    `basis` is what the capacities were taken at; an unknown capacity does not bind. In a folded
    topology a row stands for all demands that are alike, and a column for a class of resources:
    entries are what all of them together put on each of those.
    """

    demands: tuple[Demand, ...]
    resources: tuple[Resource, ...]
    basis: Basis
    system: System

    def without(self, ids: Container[str]) -> UseMatrix:
        """Return the same with some resources unlimited."""
        return self.with_capacities(
            math.inf if resource.id in ids else capacity
            for resource, capacity in zip(self.resources, self.system.capacities, strict=True)
        )

    def with_capacities(self, capacities: Iterable[float]) -> UseMatrix:
        """Return the same with other capacities, a column after the other."""
        return replace(self, system=replace(self.system, capacities=tuple(capacities)))

    def unknowns(self, loads: Iterable[float]) -> tuple[str, ...]:
        """Return the ids of what nobody knows to let these bytes/s pass."""
        return tuple(
            resource.id
            for resource, load in zip(self.resources, loads, strict=True)
            if resource.capacity.unknown(self.basis, load)
        )

    def total(self, of_demands: Iterable[float]) -> float:
        """Return the sum of a figure of each row over all demands that the rows stand for."""
        figures = zip(of_demands, self.demands, strict=True)
        return math.fsum(figure * demand.count for figure, demand in figures)


def _of_classes(
    topology: Topology, demand: Demand, use: Mapping[str, float], joint: Mapping[str, Resource]
) -> dict[str, tuple[Resource, float]]:
    """Return what all demands that `demand` stands for put together on each of alike resources.

    `use` is that of one demand. What goes through all that a resource stands for in its sight, by
    all demands, is spread over all that are alike.
    """
    folding = topology.folding
    assert folding is not None, "elsewhere each resource is for itself"
    own = {resource.id: resource for resource in demand.route.extra}
    classes: dict[str, tuple[Resource, float]] = {}
    for name, weight in use.items():
        if name in own or name in joint:  # within a unit, or without a device what all share
            first = own.get(name) or joint[name]
            in_cell = size = 1
            if first.device in topology:
                in_cell, size = topology.cell_size(first.device), topology.class_size(first.device)
                unit = folding.unit(first.device)
                alike = f"{folding.representative(unit)}."
                first = replace(first, name=first.name.replace(f"{unit}.", alike))
        else:
            of_class = topology.alike_resources[name]
            first, in_cell, size = of_class.resource, of_class.in_cell, of_class.size
        _, before = classes.get(first.id, (first, 0.0))
        classes[first.id] = (first, before + weight * in_cell * demand.count / size)
    return classes


def use_matrix(
    topology: Topology,
    demands: Sequence[Demand],
    *,
    basis: Basis = "theoretical",
) -> UseMatrix:
    """Return the use matrix of `demands` with capacities at `basis`.

    Parameters
    ----------
    topology
        Where the resources come from.
    demands
        Demands with routes that are not refused.
    basis
        Which figure of each capacity to use.
    """
    joint = joint_resources(topology, [demand.route for demand in demands], basis)
    used: dict[str, Resource] = {}
    uses: list[Mapping[str, float]] = []
    for demand in demands:
        route = demand.route
        use: Mapping[str, float] = route.use
        if joint:
            use = {**use, **joint_use(topology, joint, use, route.subflows)}
        if topology.folding is None:
            unmet = (name for name in route.use if name not in used)
            used |= route.resources(topology, unmet)
        else:
            of_classes = _of_classes(topology, demand, use, joint)
            used |= {name: resource for name, (resource, _) in of_classes.items()}
            use = {name: weight for name, (_, weight) in of_classes.items()}
        uses.append(use)
    if topology.folding is None:
        used |= joint
    shared_limits = {demand.workload: limit_resource(demand) for demand in demands}
    used |= {limit.id: limit for limit in shared_limits.values() if limit is not None}
    columns = {name: index for index, name in enumerate(used)}
    system = System.of(
        [resource.capacity.rate(basis) for resource in used.values()],
        [
            {columns[name]: weight for name, weight in use.items()}
            | (
                {columns[limit.id]: float(demand.count)}
                if (limit := shared_limits[demand.workload])
                else {}
            )
            for demand, use in zip(demands, uses, strict=True)
        ],
        weights=[demand.weight for demand in demands],
        limits=[demand.limit for demand in demands],
    )
    return UseMatrix(tuple(demands), tuple(used.values()), basis, system)
