"""What GPUs do together: a collective as flows between pairs of them, laid as routes.

The bytes are those of ring algorithms, for `size` bytes as nccl-tests counts them [1]_ over `n`
GPUs: an all-reduce passes ``2 (n - 1) / n`` of the size over each hop of its rings, an all-gather
and a reduce-scatter half of that, a broadcast and a reduce all of it over each hop of a chain, and
of an all-to-all each GPU sends ``1 / n`` to each other one. All flows of a collective are paced
alike, since each GPU waits for the others: they are one demand, which uses a resource as much as
all of them together.

References
----------
.. [1] nccl-tests, ``doc/PERFORMANCE.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from topo.catalogue.part import Figure
from topo.datapaths.registry import data_path
from topo.description.description import ROOTED
from topo.flows.rings import Ring, pairs_of, rings_of
from topo.records import dataclass
from topo.routes.route import Reason, Route, merged
from topo.routes.search import passes_gpu_fabric
from topo.routes.usage import total_use
from topo.routes.verdict import verdict_of
from topo.topology.resources import Capacity, Resource
from topo.topology.rules import nccl_link

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.description.description import DataPath, Workload
    from topo.routes.router import End, Router
    from topo.topology.topology import Step, Topology


Pair: TypeAlias = tuple[str, str]
"""Who sends and who receives."""
_NO_LIMIT: Final = Figure(math.inf, "formula", "no limit of its own beyond its links")


@dataclass(frozen=True, slots=True)
class Hop:
    """Data from one GPU to another, and bytes of it for each byte of the collective's size.

    `apart` is whether the two are in different servers.
    """

    source: str
    target: str
    weight: float
    route: Route
    apart: bool = False

    @property
    def data_path(self) -> str:
        """The name of the data path that it takes."""
        path = self.route.data_path
        return (self.apart and path.to_other_servers) or path.name


@dataclass(frozen=True, slots=True)
class Laid:
    """A collective laid on a machine: its rings or chains, and every flow between two GPUs.

    Of an all-to-all there are no rings. `bus_factor` is how nccl-tests makes its bus bandwidth of
    its algorithm bandwidth; `flow` is what one flow passes for a byte of the size, a hop of one
    ring or a pair. `in_switch` is whether switches between the GPUs reduce.
    """

    name: str
    gpus: tuple[str, ...]
    rings: tuple[Ring, ...]
    hops: tuple[Hop, ...]
    bus_factor: float
    flow: float
    in_switch: bool = False


def bus_factor(collective: str, count: int) -> float:
    """Return bus bandwidth over algorithm bandwidth, of so many GPUs.

    Examples
    --------
    >>> bus_factor("all-reduce", 8), bus_factor("all-gather", 8), bus_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if collective in ROOTED:
        return 1.0
    return (2 if collective == "all-reduce" else 1) * (count - 1) / count


def lay_collective(router: Router, workload: Workload, path: DataPath) -> tuple[Laid, Route]:
    """Return a collective laid by a data path, and all its flows as one route.

    Where two GPUs cannot take the data path, they take what it falls back to. Where none can it is
    refused, and so it is where two GPUs have no way at all.
    """
    gpus = workload.sources
    rings: tuple[Ring, ...] = ()
    by_links = any(move.over == "gpu-links" for move in path.moves)
    switches = _reducing(router.topology, workload) if by_links else ()
    if workload.collective != "all-to-all" and len(gpus) > 1:
        rings = rings_of(router, gpus, by_links=by_links)
        if workload.root:
            into = workload.collective == "reduce"
            rings = tuple(ring.chain(workload.root, into=into) for ring in rings)
    weights: dict[Pair, float] = {}
    # What GPUs send to switches and get back is what a ring has on the same links.
    in_all = (
        _in_switch_factor(len(gpus)) if switches else bus_factor(workload.collective, len(gpus))
    )
    pairs = pairs_of(router.topology, gpus, by_links=by_links) if not rings else ()
    for source, target, weight in _flows(workload, rings, in_all, pairs):
        weights[source, target] = weights.get((source, target), 0.0) + weight
    apart = {pair: router.is_apart(*pair) for pair in weights}
    routes, refused = _routes(router, workload, path, apart)
    hops = tuple(Hop(*pair, weights[pair], routes[pair], apart[pair]) for pair in weights)
    factor = bus_factor(workload.collective, len(gpus))
    flow = rings[0].share * in_all if rings else 1 / len(gpus)
    laid = Laid(workload.collective, gpus, rings, hops, factor, flow, bool(switches))
    route = _as_one(path, laid, refused)
    if route.verdict == "refused":
        return laid, route
    use, extra = dict(route.use), list(route.extra)
    for resource, weight in _by_nccl(route):
        use[resource.id] = weight
        extra.append(resource)
    for resource in _reductions(router.topology, gpus) if switches else ():
        use[resource.id] = in_all
        extra.append(resource)
    return laid, replace(route, use=use, extra=tuple(extra))


def _flows(
    workload: Workload,
    rings: tuple[Ring, ...],
    in_all: float,
    pairs: Iterable[tuple[str, ...]],
) -> Iterator[tuple[str, str, float]]:
    """Yield who sends to whom, and bytes for each byte of the size; rings pass `in_all` a hop."""
    for pair in pairs:
        share = 1 / len(workload.sources)
        yield from ((source, target, share) for source, target in pairwise(pair))
    for ring in rings:
        weight = ring.share * in_all
        for hop in ring.hops:
            yield from ((source, target, weight) for source, target in pairwise(hop))


def _routes(
    router: Router, workload: Workload, path: DataPath, apart: Mapping[Pair, bool]
) -> tuple[dict[Pair, Route], tuple[Reason, ...]]:
    """Return the route that each hop takes, and why `path` refuses some.

    What is refused takes what its data path falls back to, and so on. Hops inside a server are laid
    before those that are `apart`: of either sort each takes about as many links as the next.
    """
    routes: dict[Pair, Route] = {}
    reasons: tuple[Reason, ...] = ()
    refused, tried = list(apart), set[str]()
    while refused and path.name not in tried:
        for between in (False, True):
            pairs = [pair for pair in refused if apart[pair] is between]
            ends: list[End] = [((source,), target, "read") for source, target in pairs]
            routes.update(zip(pairs, router.routes(workload, path, ends), strict=True))
        refused = [pair for pair in refused if routes[pair].verdict == "refused"]
        if not tried:
            reasons = merged(reason for pair in refused for reason in routes[pair].reasons)
        tried.add(path.name)
        if path.falls_back_to:
            path = data_path(router.topology.description, path.falls_back_to)
    return routes, reasons


def _as_one(path: DataPath, laid: Laid, refused: tuple[Reason, ...]) -> Route:
    """Return all flows of a collective as one route; `refused` is why some do not take `path`."""
    endpoint = laid.gpus[0]
    if not laid.hops:
        alone = Reason("no-way", "refused", "no other GPU is left beside", about=(endpoint,))
        return Route(path, "read", endpoint, "refused", (alone,))
    reasons = merged(reason for hop in laid.hops for reason in hop.route.reasons)
    inside = [hop for hop in laid.hops if not hop.apart] or laid.hops
    if verdict_of(reasons) == "refused" or all(
        hop.route.data_path.name != path.name for hop in inside
    ):
        return Route(path, "read", endpoint, "refused", refused)
    subflows = tuple(
        replace(subflow, share=subflow.share * hop.weight)
        for hop in laid.hops
        for subflow in hop.route.subflows
    )
    first = laid.hops[0].route
    return Route(
        data_path=path,
        direction="read",
        endpoint=endpoint,
        verdict=verdict_of(reasons),
        reasons=reasons,
        subflows=subflows,
        use=total_use(subflows),
        extra=tuple({r.id: r for hop in laid.hops for r in hop.route.extra}.values()),
        waypoints=first.waypoints,
        target_path=next((h.route.target_path for h in laid.hops if h.route.target_path), None),
    )


def _by_nccl(route: Route) -> Iterator[tuple[Resource, float]]:
    """Yield what NCCL takes the links between GPUs for where that is less than a copy's rate.

    Its kernels and flags take a part of them; with the bytes that pass each for one of the size.
    """
    links = {
        step.resource.id: (step.resource, step.link.cable)
        for subflow in route.subflows
        for transfer in subflow.transfers
        for step, _ in transfer.shares
        if step.resource is not None and step.resource.kind == "gpu-fabric"
    }
    for name, (resource, cable) in links.items():
        planned = nccl_link(cable)
        if planned is not None and (planned.value or 0.0) < resource.capacity.rate("achievable"):
            of_nccl = replace(
                resource,
                name=f"{resource.name}/nccl",
                kind="nccl-link",
                capacity=Capacity(_NO_LIMIT, planned),
                limited_by="what NCCL takes GPU links for",
            )
            yield of_nccl, route.use[name]


# --- switches that reduce -------------------------------------------------------------------------


def _in_switch_factor(count: int) -> float:
    """Return what passes a GPU's links each way for a byte that switches reduce for so many GPUs.

    Its own buffer and the sum's part that it hands to all; the sum, and that part of it before.
    """
    return (count + 1) / count


def _reducing(topology: Topology, workload: Workload) -> tuple[str, ...]:
    """Return the switches that reduce for all GPUs of an all-reduce, where the file says they do.

    None where a ring passes no more over the links.
    """
    gpus = workload.sources
    if workload.collective != "all-reduce":
        return ()
    if _in_switch_factor(len(gpus)) >= bus_factor("all-reduce", len(gpus)):
        return ()
    if not all(reduces_in_switches(topology, name) for name in gpus):
        return ()
    joined = {frozenset(step.target for step in _to_switches(topology, name)) for name in gpus}
    (switches, *others) = joined
    return () if others else tuple(sorted(switches))


def reduces_in_switches(topology: Topology, gpu: str) -> bool:
    """Whether a GPU's switches reduce: their part can, and the file says that they do."""
    switches = [topology[step.target] for step in _to_switches(topology, gpu)]
    is_on = topology.settings_of(gpu).nvlink_sharp == "on"
    return is_on and bool(switches) and all(switch.part.figure("sharp") for switch in switches)


def _to_switches(topology: Topology, gpu: str) -> list[Step]:
    """Return the links of a GPU to switches."""
    steps = topology.steps[gpu]
    return [
        step
        for step in steps
        if step.link.layer == "gpu" and passes_gpu_fabric(topology[step.target])
    ]


def _reductions(topology: Topology, gpus: Sequence[str]) -> Iterator[Resource]:
    """Yield what switches reduce for each GPU: in theory what its links carry."""
    for name in gpus:
        steps = _to_switches(topology, name)
        stated = filter(None, (topology[step.target].part.figure("sharp") for step in steps))
        share = min(stated, key=lambda share: -1.0 if share.value is None else share.value)
        rate = math.fsum(
            min(step.resource.capacity.rate("achievable"), _planned(step.link.cable))
            for step in steps
            if step.resource
        )
        planned = share
        if share.value is not None:
            low, high = share.range or (None, None)
            planned = replace(
                share,
                value=rate * share.value,
                range=None if low is None or high is None else (rate * low, rate * high),
            )
        yield Resource(
            name=f"{name}/nvlink-sharp",
            kind="in-switch",
            capacity=Capacity(_NO_LIMIT, planned),
            device=name,
            limited_by=f"{topology[steps[0].target].part.name}, of its links",
        )


def _planned(cable: Cable) -> float:
    """Return what NCCL takes a bundle of links for, no limit where it has no figure of them."""
    planned = nccl_link(cable)
    return math.inf if planned is None or planned.value is None else planned.value
