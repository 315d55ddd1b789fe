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

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_path
from topo.flows.rings import Ring, rings_of
from topo.records import dataclass
from topo.routes.route import Reason, Route, merged
from topo.routes.usage import total_use
from topo.routes.verdict import verdict_of

if TYPE_CHECKING:
    from topo.description.description import DataPath, Workload
    from topo.routes.router import Router


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
    its algorithm bandwidth.
    """

    name: str
    gpus: tuple[str, ...]
    rings: tuple[Ring, ...]
    hops: tuple[Hop, ...]
    bus_factor: float


def bus_factor(collective: str, count: int) -> float:
    """Return bus bandwidth over algorithm bandwidth, of so many GPUs.

    Examples
    --------
    >>> bus_factor("all-reduce", 8), bus_factor("all-gather", 8), bus_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if collective in ("broadcast", "reduce"):
        return 1.0
    return (2 if collective == "all-reduce" else 1) * (count - 1) / count


def lay_collective(router: Router, workload: Workload, path: DataPath) -> tuple[Laid, Route]:
    """Return a collective laid by a data path, and all its flows as one route.

    Where two GPUs cannot take the data path, they take what it falls back to. Where none can it is
    refused, and so it is where two GPUs have no way at all.
    """
    gpus = workload.sources
    rings: tuple[Ring, ...] = ()
    if workload.collective != "all-to-all" and len(gpus) > 1:
        by_links = any(move.over == "gpu-links" for move in path.moves)
        rings = rings_of(router, gpus, by_links=by_links)
        if workload.root:
            into = workload.collective == "reduce"
            rings = tuple(ring.chain(workload.root, into=into) for ring in rings)
    weights: dict[tuple[str, str], float] = {}
    for source, target, weight in _flows(workload, rings):
        weights[source, target] = weights.get((source, target), 0.0) + weight
    hops: list[Hop] = []
    refused: dict[str, tuple[Reason, ...]] = {}
    for (source, target), weight in weights.items():
        routes = list(_routes(router, path, source, target))
        if routes[0].verdict == "refused":
            refused[f"{source} {target}"] = routes[0].reasons
        apart = router.is_apart(source, target)
        hops.append(Hop(source, target, weight, routes[-1], apart))
    factor = bus_factor(workload.collective, len(gpus))
    laid = Laid(workload.collective, gpus, rings, tuple(hops), factor)
    return laid, _as_one(path, laid, refused)


def _flows(workload: Workload, rings: tuple[Ring, ...]) -> Iterator[tuple[str, str, float]]:
    """Yield who sends to whom, and bytes for each byte of the collective's size."""
    gpus = workload.sources
    for source in gpus if workload.collective == "all-to-all" else ():
        yield from ((source, target, 1 / len(gpus)) for target in gpus if target != source)
    for ring in rings:
        weight = ring.share * bus_factor(workload.collective, len(gpus))
        for hop in ring.hops:
            yield from ((source, target, weight) for source, target in pairwise(hop))


def _routes(router: Router, path: DataPath, source: str, target: str) -> Iterator[Route]:
    """Yield the routes that a hop is refused, by its data path and what that falls back to.

    The last is the one it takes.
    """
    tried: set[str] = set()
    while True:
        route = router.route(path, (source,), target)
        yield route
        tried.add(path.name)
        fallback = path.falls_back_to
        if route.verdict != "refused" or not fallback or fallback in tried:
            return
        path = data_path(router.topology.description, fallback)


def _as_one(path: DataPath, laid: Laid, refused: dict[str, tuple[Reason, ...]]) -> Route:
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
        reasons = merged(reason for of_hop in refused.values() for reason in of_hop)
        return Route(path, "read", endpoint, "refused", reasons)
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
