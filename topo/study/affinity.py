"""Which card and which drive each GPU should use, why, and who shares it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from topo.catalogue.kinds import CARDS
from topo.description.description import Device
from topo.graph import breadth_first, components
from topo.records import dataclass
from topo.routes.search import Search, passes_host
from topo.topology.locality import linked_hosts, locality, numa_nodes, rank, socket_of
from topo.topology.rules import TYPES, gds_ranking, nccl_matrix
from topo.topology.topology import Topology

Purpose = Literal["compute", "storage", "any", "drive"]
PURPOSES: tuple[Purpose, ...] = ("compute", "storage", "any", "drive")
Rules = Literal["nvidia-smi", "nccl", "gds"]

_GIGA = 1e9


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


@dataclass(frozen=True, slots=True)
class Choice:
    """A card or drive for one GPU.

    Parameters
    ----------
    purpose
        ``storage``: a card that is cabled to storage; ``compute``: one whose role that is;
        ``any``: a card of which neither is said; ``drive``: a local drive.
    device, nearness
        What it is, and how near by the rules asked for.
    rdma
        Its RDMA names.
    shared_with
        Other GPUs that have it too.
    as_near
        Devices just as good that others have, or nobody.
    """

    purpose: Purpose
    device: str
    nearness: Nearness
    rdma: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()
    as_near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuAffinity:
    """A GPU: the CPU and NUMA nodes that it hangs on, and what it should use."""

    gpu: str
    cpu: str
    numa: tuple[int, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Affinities:
    """Every GPU with its cards and drives, and the other way round.

    `users` are the GPUs of each card and drive by purpose and name; nobody's are there as well.
    """

    topology: Topology
    rules: Rules
    gpus: tuple[GpuAffinity, ...]
    users: Mapping[Purpose, Mapping[str, tuple[str, ...]]]

    def would_do_for(self, purpose: Purpose, device: str) -> tuple[str, ...]:
        """Return the GPUs that a device would serve as well as the one that they have."""
        return tuple(
            gpu.gpu
            for gpu in self.gpus
            for choice in gpu.choices
            if choice.purpose == purpose and device in choice.as_near
        )


# How near a GPU and another device are, `None` when nothing joins them.
Measure: TypeAlias = "Callable[[str, str], Nearness | None]"


def affinities(topology: Topology, *, rules: Rules = "nvidia-smi") -> Affinities:
    """Return which card and which drive each GPU should use.

    The nearest; of those one with RDMA, where others have none; of those the fastest. Of several
    that are as good, the GPUs are dealt out so that each device serves as equal a number of them as
    the machine allows. How many links lead there does not count: sources of classes tell none.

    Parameters
    ----------
    topology
        The machine.
    rules
        Whose idea of near: ``nvidia-smi``'s classes, ``nccl``'s path types, the ``gds`` driver's
        distances. NCCL knows no drives: those go by nvidia-smi's classes.

    Examples
    --------
    >>> import topo
    >>> first, *_ = affinities(topo.load("dgx-h100")).gpus
    >>> [(choice.purpose, choice.device, choice.nearness.label) for choice in first.choices]
    [('compute', 'nic0', 'PXB'), ('storage', 'slot2', 'NODE')]
    """
    gpus = [device.name for device in topology.of_kind("gpu")]

    def inside(name: str) -> Iterator[str]:
        for step in topology.steps[name]:
            if step.link.layer in ("host", "memory"):
                yield step.target

    # the number of each device's server: what links inside hosts join
    servers = {
        name: number
        for number, names in enumerate(components(topology.devices, inside))
        for name in names
    }
    users: dict[Purpose, Mapping[str, tuple[str, ...]]] = {}
    choices: dict[str, list[Choice]] = {gpu: [] for gpu in gpus}
    for purpose, devices in _by_purpose(topology).items():
        # NCCL knows no drives
        by_class = purpose == "drive" and rules == "nccl"
        measure = nearness_by(topology, "nvidia-smi" if by_class else rules)
        nearest = _nearest(topology, gpus, devices, servers, measure)
        dealt = semi_matching({gpu: list(near) for gpu, near in nearest.items() if near})
        users[purpose] = {
            device: tuple(gpu for gpu in gpus if dealt.get(gpu) == device) for device in devices
        }
        for gpu, device in dealt.items():
            near, sharing = nearest[gpu], users[purpose][device]
            choices[gpu].append(
                Choice(
                    purpose=purpose,
                    device=device,
                    nearness=near[device],
                    rdma=topology[device].rdma,
                    shared_with=tuple(sharer for sharer in sharing if sharer != gpu),
                    as_near=tuple(name for name in near if name != device),
                )
            )
    affinity = (
        GpuAffinity(gpu, socket_of(topology, gpu), numa_nodes(topology, gpu), tuple(choices[gpu]))
        for gpu in gpus
    )
    return Affinities(topology, rules, tuple(affinity), users)


def _nearest(
    topology: Topology,
    gpus: Sequence[str],
    devices: Sequence[str],
    servers: Mapping[str, int],
    measure: Measure,
) -> dict[str, dict[str, Nearness]]:
    """Return for each GPU the devices of its server that none is better than."""

    def key(name: str, nearness: Nearness) -> tuple[float, bool, float]:
        device = topology[name]
        by_rdma = bool(device.rdma) and device.part.flag("gdr") is not False
        rates = (nearness.rate, _own_rate(device))
        rate = min((rate for rate in rates if rate is not None), default=0.0)
        return (nearness.order, not by_rdma, -rate)

    by_server: dict[int, list[str]] = {}
    for name in devices:
        by_server.setdefault(servers[name], []).append(name)
    nearest: dict[str, dict[str, Nearness]] = {}
    for gpu in gpus:
        joined = {
            name: nearness
            for name in by_server.get(servers[gpu], ())
            if (nearness := measure(gpu, name)) is not None
        }
        keys = {name: key(name, nearness) for name, nearness in joined.items()}
        best = min(keys.values(), default=None)
        nearest[gpu] = {name: near for name, near in joined.items() if keys[name] == best}
    return nearest


def _own_rate(device: Device) -> float | None:
    """Return what a card's ports and chip, or a drive itself, give at most; `None` is unknown."""
    figures = [device.part.figure(key) for key in ("chip", "read")]
    rates = [figure.value for figure in figures if figure is not None and figure.value]
    ports = device.part.ports
    if device.is_nic and ports is not None and ports.rate is not None and ports.rate.value:
        rates.append(ports.rate.value * (ports.count or 1))
    return min(rates, default=None)


def _by_purpose(topology: Topology) -> dict[Purpose, list[str]]:
    """Return the cards and drives of each purpose that the machine has, in the file's order.

    A card that is cabled to storage and has the role `compute` is for both.
    """

    def cabled(name: str) -> Iterator[str]:
        if topology[name].kind in ("storage", "network-switch"):
            for step in topology.steps[name]:
                if step.link.layer == "network":
                    yield step.target

    # what network cables join with storage, directly or through switches
    to_storage = breadth_first((device.name for device in topology.of_kind("storage")), cabled)
    devices: dict[Purpose, list[str]] = {purpose: [] for purpose in PURPOSES}
    for card in topology.of_kind(*CARDS):
        compute = "compute" in card.role.lower()
        storage = card.name in to_storage or "storage" in card.role.lower()
        if compute:
            devices["compute"].append(card.name)
        if storage:
            devices["storage"].append(card.name)
        if not compute and not storage:
            devices["any"].append(card.name)
    devices["drive"] = [device.name for device in topology.of_kind("nvme")]
    return {purpose: names for purpose, names in devices.items() if names}


# --- how near, by whose rules ---------------------------------------------------------------------


def nearness_by(topology: Topology, rules: Rules) -> Measure:
    """Return a function of a GPU and another device: how near, `None` when nothing joins them."""
    return {"nvidia-smi": _by_class, "nccl": _by_nccl, "gds": _by_gds}[rules](topology)


def _sockets_apart(topology: Topology, gpu: str, device: str) -> float:
    """Return what sockets between two devices add to the rank of their class, less than one class.

    NUMA nodes of one socket and of two are SYS alike (to NCCL as well, which knows no sockets).
    """
    of_gpu, of_device = socket_of(topology, gpu), socket_of(topology, device)
    if not of_gpu or not of_device:
        return 0.0
    hops = linked_hosts(topology, of_gpu).get(of_device, 0)
    return hops / (hops + 1)


def _by_class(topology: Topology) -> Measure:
    search = Search(topology, ("host", "memory"), passes_host)

    def measure(gpu: str, device: str) -> Nearness | None:
        label = locality(topology, gpu, device)
        walks = search.paths(device, gpu)
        if not label or walks is None:
            return None
        links, width = len(walks.example), walks.width
        rate = width if math.isfinite(width) else None
        resources = (step.resource for step, _ in walks.shares if step.resource is not None)
        at_most = any(resource.capacity.theoretical.unknown for resource in resources)
        order = rank(label) + _sockets_apart(topology, gpu, device)
        return Nearness(label, links, rate, order, at_most and rate is not None)

    return measure


def _by_nccl(topology: Topology) -> Measure:
    paths = nccl_matrix(topology)

    def measure(gpu: str, device: str) -> Nearness | None:
        path = paths.get(gpu, {}).get(device)
        if path is None:
            return None
        return Nearness(path.type, path.hops, path.bandwidth * _GIGA, TYPES.index(path.type))

    return measure


def _by_gds(topology: Topology) -> Measure:
    ranking = gds_ranking(topology)
    peers = {(gpu, peer.name): peer for gpu, ranked in ranking.items() for peer in ranked}

    def measure(gpu: str, device: str) -> Nearness | None:
        peer = peers.get((gpu, device))
        if peer is None:
            return None
        return Nearness(f"distance {peer.distance}", None, None, peer.distance)

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
    for asker in candidates:
        # everything that the asker could free or take, with the one who would take it
        takers: dict[str, str] = {}
        front, met = deque([asker]), {asker}
        while front:
            taker = front.popleft()
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
