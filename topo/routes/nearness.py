"""How near devices are, which are nearest, and how those that are as near are dealt out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from topo.description.description import Device
from topo.graph import numbered
from topo.records import dataclass
from topo.routes.search import Search, passes_host
from topo.topology.hosts import host_numbers
from topo.topology.locality import locality, rank, socket_of
from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near two devices are.

    Parameters
    ----------
    label
        In the rules' own words: ``PXB``, ``PHB``, ``distance 3``.
    links
        Links between the two, NCCL's hops; `None` where the distance says it.
    rate
        Bytes/s at the narrowest of them as the rules see it; `None` where they do not say.
    order
        The rules' own rank of the label, smaller is nearer.
    at_most
        Whether the rate of some link is unknown, so that the rate is an upper bound.
    """

    label: str
    links: int | None
    rate: float | None
    order: float
    at_most: bool = False


# How near an endpoint and another device are, `None` when nothing joins them.
Measure: TypeAlias = "Callable[[str, str], Nearness | None]"


def nearest_devices(
    topology: Topology,
    endpoints: Sequence[str],
    devices: Sequence[str],
    measure: Measure,
) -> dict[str, dict[str, Nearness]]:
    """Return for each endpoint the devices of its server, or targets, that none is better than.

    The nearest; of those the ones with RDMA, where others have none; of those the fastest.
    """
    servers = host_numbers(topology)

    by_itself = {  # whether it has RDMA, and its own rate
        name: (bool(device.rdma) and device.part.flag("gdr") is not False, _own_rate(device))
        for name, device in ((name, topology[name]) for name in devices)
    }

    def key(name: str, nearness: Nearness) -> tuple[float, bool, float]:
        by_rdma, own_rate = by_itself[name]
        rates = (nearness.rate, own_rate)
        rate = min((rate for rate in rates if rate is not None), default=0.0)
        return (nearness.order, not by_rdma, -rate)

    remote = [name for name in devices if topology[name].kind == "storage"]
    by_server: dict[int, list[str]] = {}
    for name in devices:
        if topology[name].kind != "storage":
            by_server.setdefault(servers[name], []).append(name)
    nearest: dict[str, dict[str, Nearness]] = {}
    for endpoint in endpoints:
        joined = {
            name: nearness
            for name in (*by_server.get(servers[endpoint], ()), *remote)
            if (nearness := measure(endpoint, name)) is not None
        }
        keys = {name: key(name, nearness) for name, nearness in joined.items()}
        best = min(keys.values(), default=None)
        nearest[endpoint] = {name: near for name, near in joined.items() if keys[name] == best}
    return nearest


def _own_rate(device: Device) -> float | None:
    """Return what a card's ports and chip, or a drive itself, give at most; `None` is unknown."""
    figures = [device.part.figure(key) for key in ("chip", "read")]
    rates = [figure.value for figure in figures if figure is not None and figure.value]
    ports = device.part.ports
    if device.is_nic and ports is not None and ports.rate is not None and ports.rate.value:
        rates.append(ports.rate.value * (ports.count or 1))
    return min(rates, default=None)


def _sockets_apart(topology: Topology, endpoint: str, device: str) -> float:
    """Return what sockets between two devices add to the rank of their class, less than one class.

    NUMA nodes of one socket and of two are SYS alike (to NCCL as well, which knows no sockets).
    """
    of_endpoint, of_device = socket_of(topology, endpoint), socket_of(topology, device)
    if not of_endpoint or not of_device:
        return 0.0
    hops = topology.tree.linked_hosts(of_endpoint).get(of_device, 0)
    return hops / (hops + 1)


def by_class(topology: Topology) -> Measure:
    """Return how near two devices are by nvidia-smi's classes, those of other sockets apart."""
    search = Search(topology, ("host", "memory"), passes_host)
    known: dict[tuple[int, int], Nearness | None] = {}

    def measure(endpoint: str, device: str) -> Nearness | None:
        gpu_links = topology.tree.gpu_links
        if endpoint == device or (endpoint in gpu_links and device in gpu_links):
            return between(endpoint, device)
        key = (search.standing(endpoint), search.standing(device))
        if key not in known:
            known[key] = between(endpoint, device)
        return known[key]

    def between(endpoint: str, device: str) -> Nearness | None:
        label = locality(topology, endpoint, device)
        walks = search.paths(device, endpoint)
        if not label or walks is None:
            return None
        links, width = len(walks.example), walks.width
        rate = width if math.isfinite(width) else None
        resources = (step.resource for step, _ in walks.shares if step.resource is not None)
        at_most = any(resource.capacity.theoretical.unknown for resource in resources)
        order = rank(label) + _sockets_apart(topology, endpoint, device)
        return Nearness(label, links, rate, order, at_most and rate is not None)

    return measure


# --- dealing out ----------------------------------------------------------------------------------


def semi_matching(candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return one of its candidates for everybody, the loads as equal as the candidates allow.

    One after the other takes the least loaded thing that it can get, where need be by letting
    others that are served already take another; so the loads are the most equal ones (no other
    dealing has a smaller sum of squares). The same question has the same answer: ties fall to the
    first in order.

    Parameters
    ----------
    candidates
        For each who asks, what would do, in order of preference among equals.

    References
    ----------
    Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs and load balancing, 2006.

    Examples
    --------
    >>> semi_matching({"gpu0": ["nic0", "nic1"], "gpu1": ["nic0"]})
    {'gpu0': 'nic1', 'gpu1': 'nic0'}
    """
    dealt: dict[str, str] = {}
    users: dict[str, list[str]] = {name: [] for names in candidates.values() for name in names}
    wishes = dict(zip(candidates, numbered(list(map(tuple, candidates.values()))), strict=True))
    for asker in candidates:
        # everything that the asker could free or take, with the one who would take it
        takers: dict[str, str] = {}
        front, met = deque([asker]), {asker}
        looked_through: set[int] = set()
        while front:
            taker = front.popleft()
            if wishes[taker] in looked_through:  # as one before: nothing in it is new
                continue
            looked_through.add(wishes[taker])
            for device in candidates[taker]:
                if device in takers:
                    continue
                takers[device] = taker
                front.extend(user for user in users[device] if user not in met)
                met.update(users[device])
        device = min(takers, key=lambda name: len(users[name]))  # the first of the least loaded
        while True:
            taker = takers[device]
            before = dealt.get(taker)
            dealt[taker] = device
            users[device].append(taker)
            if before is None:
                break
            users[before].remove(taker)
            device = before
    return dealt
