"""What a program's settings are worth: bytes/s of all GPUs of a server at once, with and without.

What a program does by itself is its own documented choice, laid on this machine. Where that leaves
something open, the worst and the best of it are both answered.

References
----------
NVIDIA/nccl 5067397, ``src/graph/topo.cc`` (`ncclTopoGetLocal`, `ncclTopoGetLocalNetType`: the
widest path first, then the best type; cards dealt by the GPU's number) and ``src/graph/paths.cc``
(`ncclTopoCheckGdr`: GPUDirect RDMA up to PXB, or P2C where C2C joins GPU and CPU;
`ncclTopoCheckP2p`: peer-to-peer up to PXB). openucx/ucx 026cde8, ``docs/source/faq.md``: the two
best devices by speed, PCI bandwidth and NUMA locality. kvcache-ai/Mooncake 3b5a594,
``mooncake-transfer-engine/src/topology.cpp``: one of the preferred cards at random; those are the
nearest by PCI path, and in earlier releases (00cf90e) only one at distance 0, which no card is, so
that any card was taken. Kubernetes, dynamic resource allocation: without a constraint any device
that matches. SchedMD/slurm 284c3b9, ``gres.conf(5)``: without Cores any core. Linux: memory is
given where a process runs when it first writes there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, get_args

from topo.datapaths.registry import data_path
from topo.flows.demands import Demand, use_matrix, worker_limit
from topo.records import dataclass
from topo.routes.route import Route
from topo.routes.router import Router
from topo.solve.system import TIE
from topo.study.answer import shared
from topo.topology.locality import locality as class_of
from topo.topology.locality import numa_nodes, rank, socket_of
from topo.topology.resources import Resource
from topo.topology.rules import TYPES, Path, farthest_peers, nccl_matrix
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.study.processes import Process, Server

Tool = Literal[
    "nccl",
    "ucx",
    "nixl",
    "mooncake",
    "slurm",
    "slurm-topology",
    "slurm-topology-yaml",
    "dra",
    "numactl",
]
TOOLS: Final[tuple[Tool, ...]] = get_args(Tool)
ATTRIBUTES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("PIX", "PXB", "PHB"), "pcieRoot"),
    "NODE": "numaNode",
}
"""What Kubernetes can match of two devices, by their class; none across NUMA nodes."""
_DIRECT: Final = ("nic-direct", "nic-ram")  # the second where the first is refused
_BY_RAM: Final = ("nic-ram",)
_OF_RAM: Final = ("pinned", "c2c")
_RAILS: Final = 2  # devices that UCX splits a large message over by itself
_FARTHEST_GDR: Final = "P2C"  # NCCL's GPUDirect RDMA by itself; PXB without C2C, where P2C is none


@dataclass(frozen=True, slots=True)
class Throughput:
    """Bytes/s of all GPUs together by some data path; at most where something is unknown.

    `bound` are the full resources that stop them.
    """

    rate: float
    at_most: bool = False
    bound: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Worth:
    """What settings are worth on one kind of server.

    Parameters
    ----------
    via
        Data paths, each once, with the settings.
    settings
        What all GPUs have with them.
    slowest, fastest
        What they have without: equal where the program's own choice is known.
    """

    via: tuple[str, ...]
    settings: Throughput
    slowest: Throughput
    fastest: Throughput

    @property
    def is_same(self) -> bool:
        """Whether nothing is gained, whatever the program would choose."""
        low, with_settings = self.slowest.rate, self.settings.rate
        return abs(with_settings - low) <= TIE * with_settings and self.is_known

    @property
    def is_known(self) -> bool:
        """Whether the program's own choice is known, or makes no difference."""
        return abs(self.fastest.rate - self.slowest.rate) <= TIE * self.fastest.rate


@dataclass(frozen=True, slots=True)
class Level:
    """How far NCCL should go by peer-to-peer, a word of its own; empty where its own is best.

    `is_sure` is whether what passes there is known.
    """

    word: str = ""
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Advice:
    """What a tool should be told beside who uses what.

    Parameters
    ----------
    worth
        What all of it is worth; `None` where it decides nothing that has a rate.
    gdr, p2p
        How far NCCL should go to cards, and from GPU to GPU.
    whole_cpu
        Whether memory of all NUMA nodes of a GPU's CPU gives more than that of its own alone.
    by_ram
        Whether the way through RAM is faster than GPUDirect RDMA, and known to be.
    """

    worth: Worth | None
    gdr: Level = Level()
    p2p: Level = Level()
    whole_cpu: bool = False
    by_ram: bool = False


def advice(server: Server, tool: Tool) -> Advice:
    """Return what a tool should be told on a kind of server, and what that is worth."""
    machine = _Machine(server)
    if tool == "slurm" and not server.cores:
        return Advice(None)  # a line without Cores binds nothing
    if tool in ("slurm", "numactl"):
        whole = tool == "slurm" or machine.binds_whole_cpu()
        return Advice(machine.of_memory(whole_cpu=whole), whole_cpu=whole)
    own = {process.gpu: process.cards for process in server.processes if process.cards}
    if tool == "nccl":
        gdr, p2p = machine.gdr_level(), machine.p2p_level()
        return Advice(machine.of_nccl(gdr) if own else None, gdr, p2p)
    if tool in ("slurm-topology", "slurm-topology-yaml") or not own:
        return Advice(None)
    if tool in ("ucx", "nixl"):
        others = (machine.first_cards(own), machine.two_rails(own))
        by_ram = tool == "ucx" and machine.goes_by_ram(own)
        return Advice(machine.compared(own, (*others, own), by_ram=by_ram), by_ram=by_ram)
    if tool == "mooncake":
        return Advice(machine.compared(own, (machine.spread(own), own)))
    # Any card that matches may be given.
    return Advice(
        machine.compared(machine.farthest(own, matched=True), (machine.farthest(own), own))
    )


class _Machine:
    """Lays what GPUs of one server do at once, and solves it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._router = Router(server.topology)
        self._topology: Topology = self._router.topology

    # --- one arrangement --------------------------------------------------------------------------

    def _route(self, gpu: str, far: Sequence[str], names: Sequence[str]) -> Route | None:
        """Return the first of some data paths that is not refused."""
        for name in names:
            path = data_path(self._topology.description, name)
            route = self._router.route(path, tuple(far), gpu)
            if route.verdict != "refused":
                return route
        return None

    def _together(self, routes: Sequence[Route | None]) -> tuple[Throughput, tuple[str, ...]]:
        """Return what all routes carry at once, and by which data paths."""
        laid = [route for route in routes if route is not None]
        if not laid:
            return Throughput(0.0), ()
        demands = [
            Demand(
                workload="settings",
                endpoint=route.endpoint,
                route=route,
                size=1.0,
                weight=1.0,
                limit=worker_limit(self._topology, route, "theoretical"),
                start=0.0,
                count=self._topology.class_size(route.endpoint),
            )
            for route in laid
        ]
        matrix = use_matrix(self._topology, demands)
        allocation = shared(matrix.system)
        unknown = bool(matrix.unknowns(allocation.loads))
        via = tuple(dict.fromkeys(route.data_path.name for route in laid))
        full = sorted({stop for stops in allocation.stops for stop in stops})
        bound = tuple(matrix.resources[place] for place in full)
        return Throughput(sum(allocation.rates), unknown, bound), via

    def by_cards(
        self, cards: Mapping[str, Sequence[str]], names: Sequence[str] = _DIRECT
    ) -> tuple[Throughput, tuple[str, ...]]:
        """Return what GPUs have of some cards each, which share its bytes evenly."""
        return self._together([self._route(gpu, far, names) for gpu, far in cards.items() if far])

    def by_memory(
        self, memories: Mapping[str, Sequence[str]]
    ) -> tuple[Throughput, tuple[str, ...]] | None:
        """Return what GPUs have of pinned memory, `None` where one has none."""
        routes = [self._route(gpu, far, _OF_RAM) for gpu, far in memories.items() if far]
        if len(routes) < len(memories) or None in routes:
            return None
        return self._together(routes)

    # --- by cards ---------------------------------------------------------------------------------

    def compared(
        self,
        own: Mapping[str, Sequence[str]],
        others: Sequence[Mapping[str, Sequence[str]]],
        *,
        by_ram: bool = False,
    ) -> Worth:
        """Return what each GPU's own cards are worth against arrangements that may come about."""
        settings, via = self.by_cards(own, _BY_RAM if by_ram else _DIRECT)
        rates = [self.by_cards(cards)[0] for cards in others]
        return Worth(via, settings, *_ends(rates))

    def goes_by_ram(self, own: Mapping[str, Sequence[str]]) -> bool:
        """Whether the cards reach the GPUs faster through RAM, and that is known."""
        direct, via = self.by_cards(own)
        bounced, _ = self.by_cards(own, _BY_RAM)
        return (
            via[:1] == _DIRECT[:1]
            and not bounced.at_most
            and bounced.rate > direct.rate * (1 + TIE)
        )

    def first_cards(self, own: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """Return the same two cards of its CPU for every GPU: what nearness by NUMA node allows."""
        return {gpu: self._of_cpu(gpu)[:_RAILS] for gpu in own}

    def two_rails(self, own: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """Return its own card and the next one of its CPU for every GPU: the best to come about."""
        chosen = {}
        for gpu, cards in own.items():
            beside = self._of_cpu(gpu)
            place = beside.index(cards[0]) if cards[0] in beside else -1
            rails = (cards[0], *beside[place + 1 :], *beside[: max(place, 0)])
            chosen[gpu] = rails[:_RAILS]
        return chosen

    def spread(self, own: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """Return all cards of the server for every GPU."""
        return dict.fromkeys(own, tuple(self._server.cards))

    def _of_cpu(self, gpu: str) -> tuple[str, ...]:
        """Return the cards of a GPU's NUMA node, else of its CPU, else all."""
        nodes, cpu = set(numa_nodes(self._topology, gpu)), socket_of(self._topology, gpu)
        every = tuple(self._server.cards)
        of_node = [card for card in every if nodes & set(numa_nodes(self._topology, card))]
        of_cpu = [card for card in every if socket_of(self._topology, card) == cpu]
        return tuple(of_node or of_cpu) or every

    def farthest(
        self, own: Mapping[str, Sequence[str]], *, matched: bool = False
    ) -> dict[str, tuple[str, ...]]:
        """Return for each GPU as many cards as its own, the farthest that are left.

        Of those that are `matched` where only what an attribute of its own card allows is.
        """
        left = list(self._server.cards)
        chosen: dict[str, tuple[str, ...]] = {}
        for gpu, cards in own.items():
            distance = {card: rank(class_of(self._topology, gpu, card)) for card in left}
            bound = _bound_of(class_of(self._topology, gpu, cards[0])) if matched else math.inf
            allowed = [card for card in left if distance[card] <= bound]
            taken = tuple(sorted(allowed, key=lambda card: -distance[card])[: len(cards)])
            taken = taken or tuple(cards)
            chosen[gpu] = taken
            left = [card for card in left if card not in taken]
        return chosen

    # --- NCCL -------------------------------------------------------------------------------------

    @cached_property
    def _nccl_paths(self) -> Mapping[str, Mapping[str, Path | None]]:
        return nccl_matrix(self._topology)

    def _nccl_cards(self, cards: Sequence[str]) -> dict[str, tuple[tuple[str, ...], str]]:
        """Return NCCL's own choice among cards for each GPU, and the type of the way there."""
        paths = self._nccl_paths
        gpus = [process.gpu for process in self._server.processes]
        local = {gpu: _widest(paths.get(gpu, {}), cards) for gpu in gpus}
        chosen: dict[str, tuple[tuple[str, ...], str]] = {}
        for process in self._server.processes:
            near, kind = local[process.gpu]
            if not near:
                continue
            sharing = _widest({gpu: paths.get(gpu, {}).get(near[0]) for gpu in gpus}, gpus)[0]
            each = -(-len(near) // max(len(sharing), 1))
            first = process.number % max(len(sharing), 1)
            if len(near) & (len(near) - 1) == 0:
                first = _mirrored(first, len(near))
            of_gpu = dict.fromkeys(near[(first + step) % len(near)] for step in range(each))
            chosen[process.gpu] = (tuple(of_gpu), kind)
        return chosen

    def _by_nccl(
        self, chosen: Mapping[str, tuple[tuple[str, ...], str]], level: str
    ) -> tuple[Throughput, tuple[str, ...]]:
        routes = []
        for gpu, (cards, kind) in chosen.items():
            near = TYPES.index(kind) <= TYPES.index(level or _FARTHEST_GDR)
            names = _DIRECT if near else _BY_RAM
            routes.append(self._route(gpu, cards, names))
        return self._together(routes)

    def of_nccl(self, gdr: Level) -> Worth:
        """Return what naming the cards, and going as far as is best, is worth to NCCL."""
        named = dict.fromkeys(card for process in self._server.processes for card in process.cards)
        level = gdr.word if gdr.is_sure else ""
        settings, via = self._by_nccl(self._nccl_cards(tuple(named)), level)
        default, _ = self._by_nccl(self._nccl_cards(self._seen_by_nccl()), "")
        return Worth(via, settings, default, default)

    def _seen_by_nccl(self) -> tuple[str, ...]:
        """Return the cards that NCCL sees, whatever they are for: those with RDMA where stated."""
        host = self._topology.host_of.get(self._server.processes[0].gpu)
        devices = [self._topology[name] for name in (host.devices if host is not None else ())]
        cards = [device for device in devices if device.is_nic]
        by_rdma = [device for device in cards if device.rdma]
        return tuple(device.name for device in by_rdma or cards)

    def gdr_level(self) -> Level:
        """Return the farthest type at which GPUDirect RDMA is faster, and whether that is sure."""
        named = dict.fromkeys(card for process in self._server.processes for card in process.cards)
        chosen = self._nccl_cards(tuple(named))
        own = TYPES.index(_FARTHEST_GDR)
        far = [kind for _, kind in chosen.values() if TYPES.index(kind) > own]
        if not far:
            return Level()
        level = max(far, key=TYPES.index)
        through_ram, _ = self._by_nccl(chosen, "")
        direct, via = self._by_nccl(chosen, level)
        if "nic-direct" not in via or direct.rate <= through_ram.rate * (1 + TIE):
            return Level()
        return Level(level, not direct.at_most and self._are_allowed(chosen))

    def _are_allowed(self, chosen: Mapping[str, tuple[tuple[str, ...], str]]) -> bool:
        path = data_path(self._topology.description, "nic-direct")
        return all(
            self._router.route(path, cards, gpu).verdict in ("ok", "ok-slower")
            for gpu, (cards, _) in chosen.items()
        )

    def p2p_level(self) -> Level:
        """Return the farthest type at which GPUs copy faster to each other than through RAM."""
        gpus = [process.gpu for process in self._server.processes]
        paths = self._nccl_paths
        ring = list(zip(gpus, (*gpus[1:], *gpus[:1]), strict=True)) if len(gpus) > 1 else []
        farther = TYPES[TYPES.index(farthest_peers(self._topology, gpus[0])) + 1 :]
        far: dict[tuple[str, str], str] = {}
        for pair in ring:
            way = paths.get(pair[0], {}).get(pair[1])
            if way is not None and way.type in farther:
                far[pair] = way.type
        if not far:
            return Level()
        level = max(far.values(), key=TYPES.index)
        if level not in ("PHB", "SYS"):
            return Level()
        through_ram = [self._route(b, (a,), ("peer-ram",)) for a, b in far]
        direct = [self._route(b, (a,), ("peer-pcie",)) for a, b in far]
        if None in direct:
            return Level()
        bounced, _ = self._together(through_ram)
        peer, _ = self._together(direct)
        if peer.rate <= bounced.rate * (1 + TIE):
            return Level()
        allowed = all(
            route is not None and route.verdict in ("ok", "ok-slower") for route in direct
        )
        return Level(level, allowed and not peer.at_most)

    # --- by memory --------------------------------------------------------------------------------

    def binds_whole_cpu(self) -> bool:
        """Whether memory of all NUMA nodes of a GPU's CPU gives more than that of its own alone."""
        processes = self._server.processes
        own = self.by_memory({process.gpu: process.memories for process in processes})
        whole = self.by_memory({process.gpu: process.of_cpu_memories for process in processes})
        return bool(own and whole and whole[0].rate > own[0].rate * (1 + TIE))

    def of_memory(self, *, whole_cpu: bool) -> Worth | None:
        """Return what memory of a GPU's own node or CPU is worth against memory of any one."""
        processes = self._server.processes
        nearest = {process.gpu: _memories_of(process, whole_cpu=whole_cpu) for process in processes}
        settings = self.by_memory(nearest)
        places = dict.fromkeys(
            _memories_of(process, whole_cpu=whole_cpu) for process in self._all_memories()
        )
        rates = [self.by_memory({process.gpu: place for process in processes}) for place in places]
        if settings is None:
            return None
        known = [laid_memory[0] for laid_memory in (settings, *rates) if laid_memory is not None]
        return Worth(settings[1], settings[0], *_ends(known))

    def _all_memories(self) -> list[Process]:
        """Return a process for each memory of the server, as one that runs beside it would be."""
        host = self._topology.host_of.get(self._server.processes[0].gpu)
        inside = host.devices if host is not None else ()
        memories = [name for name in inside if self._topology[name].is_memory]
        beside = []
        for memory in memories:
            cpu = socket_of(self._topology, memory)
            of_cpu = tuple(name for name in memories if socket_of(self._topology, name) == cpu)
            first = self._server.processes[0]
            beside.append(replace(first, memories=(memory,), of_cpu_memories=of_cpu))
        return beside


def _bound_of(nearness: str) -> float:
    """Return the rank of the farthest card that shares what a GPU and its own card share."""
    of_attribute = ATTRIBUTES.get(nearness)
    shared_by = [
        nearness_class for nearness_class, name in ATTRIBUTES.items() if name == of_attribute
    ]
    return max(map(rank, shared_by), default=math.inf)


def _memories_of(process: Process, *, whole_cpu: bool) -> tuple[str, ...]:
    return process.of_cpu_memories if whole_cpu else process.memories


def _widest(paths: Mapping[str, Path | None], names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return what is reached by the widest way, of these by the best type; and that type."""
    reached = [(name, path) for name in names if (path := paths.get(name)) is not None]
    if not reached:
        return (), ""
    best = max((path.bandwidth, -TYPES.index(path.type)) for _, path in reached)
    near = tuple(
        name for name, path in reached if (path.bandwidth, -TYPES.index(path.type)) == best
    )
    return near, TYPES[-best[1]]


def _mirrored(value: int, size: int) -> int:
    """Return a number below a power of two with its bits in the other order."""
    bits = size.bit_length() - 1
    return int(f"{value % size:0{bits}b}"[::-1] or "0", 2) if bits else 0


def _ends(rates: Sequence[Throughput]) -> tuple[Throughput, Throughput]:
    """Return the slowest and the fastest; of equal ones the first."""
    return min(rates, key=attrgetter("rate")), max(rates, key=attrgetter("rate"))
