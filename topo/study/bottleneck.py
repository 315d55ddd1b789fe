"""What binds one workload by one data path, what would bind next, what no routing can exceed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from topo.datapaths.registry import is_buffer
from topo.description.description import Basis, DataPath, Device, Move, Workload
from topo.errors import Place, UnboundedError
from topo.flows.demands import UseMatrix
from topo.routes.search import passes_gpu_fabric, passes_host, passes_network
from topo.routes.usage import drives_behind
from topo.solve.mincut import min_cut
from topo.solve.system import TIE
from topo.study.answer import bottlenecks_of, own_limits_of, solved
from topo.study.answers import (
    Bottleneck,
    Comparison,
    Ladder,
    LadderEnd,
    PathAnswer,
    RoutingBound,
    Rung,
)
from topo.study.compare import compare, usable
from topo.study.insights import Refused
from topo.study.question import asked_workloads
from topo.topology.resources import Capacity, Resource
from topo.topology.topology import Layer, Step, Topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topo.catalogue.part import PeerCaps
    from topo.routes.route import Policy


# What comes with the GPU: no one can buy more of it for the same GPU.
NOT_FOR_SALE = frozenset({"gpu-pcie", "gpu-memory", "c2c"})


def bottleneck(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str = "",
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Ladder:
    """Return what binds a workload, and the ladder of what would bind next.

    Parameters
    ----------
    topology
        The machine.
    workload
        The workload or its name; the first of the file by default.
    via
        The data path: by default that of `topo.study.compare.usable`.
    source, target
        Device names or stems: ask about these instead of a workload of the file.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Ladder
        Without rungs when the path is refused; its `end` is why.

    Examples
    --------
    >>> import topo
    >>> ladder = topo.bottleneck(topo.load("gds-textbook"), via="legacy")
    >>> [round(rung.rate / 1e9, 2) for rung in ladder.rungs]
    [100.0, 126.03, 200.0, 504.12]
    """
    if not isinstance(workload, Workload):
        workload = asked_workloads(topology, workload, source, target)[0]
    topology = topology.telling_apart((workload,))
    comparisons: dict[str, Comparison] = {}

    def by(path: DataPath) -> PathAnswer:
        asked = compare(topology, workload=workload, via=(path.name,), at=at, policy=policy)
        comparisons[path.name] = asked
        return asked.workloads[0][path.name]

    path, notes = usable(topology, workload, by, stated=via)
    comparison = comparisons[path.name]
    rungs: tuple[Rung, ...] = ()
    end: LadderEnd | Refused
    if path.matrix is None:
        insights = comparison.workloads[0].insights
        end = next(fact for fact in insights if isinstance(fact, Refused))
    else:
        rungs, end = ladder_of(path.matrix, sized=workload.sized)
    # no range of times is shown, so a workload's own efficiency is no matter
    findings = [finding for finding in comparison.findings if finding.code != "efficiency-ignored"]
    findings += notes
    bound = None if path.matrix is None else routing_bound(topology, workload, path, at)
    return Ladder(topology, workload, path, rungs, end, at, tuple(findings), bound)


def ladder_of(matrix: UseMatrix, *, sized: bool) -> tuple[tuple[Rung, ...], LadderEnd]:
    """Return what binds, then what would bind next, and why it ends.

    Each step removes every full resource that stops a demand, of those that are done last, and can
    be bought, as one set. It ends where raising what can be bought would help none of them.

    Parameters
    ----------
    matrix
        The demands of one workload.
    sized
        Whether somebody said how many bytes there are, so that it is about time.
    """
    removed: frozenset[str] = frozenset()
    rungs: list[Rung] = []
    everything = matrix
    while True:
        matrix = everything.without(removed)
        try:
            run = solved(matrix, sized=sized)
        except UnboundedError:
            return tuple(rungs), LadderEnd("unlimited")
        whole = run.whole
        binding = bottlenecks_of(matrix, run.allocation, whole)
        if not binding:
            own_limits = own_limits_of(matrix, whole)
            return tuple(rungs), LadderEnd("own-limits", own_limits=own_limits)
        classes: dict[str, list[Bottleneck]] = {}
        for full in binding:
            classes.setdefault(full.resource.kind, []).append(full)
        groups = tuple((kind, tuple(group)) for kind, group in classes.items())
        unknowns = matrix.unknowns(run.peaks)
        rungs.append(Rung(whole.rate, whole.time, groups, bool(unknowns)))
        kept = tuple(full.resource for full in binding if full.resource.kind in NOT_FOR_SALE)
        kept_ids = {resource.id for resource in kept}
        raised = {full.resource.id for full in binding} - kept_ids
        fixed = {
            index for index, resource in enumerate(matrix.resources) if resource.id in kept_ids
        }
        # whoever is done last is always stopped by something that cannot be bought
        stuck = all(fixed & set(stops) for _, stops in whole.stops)
        if not raised or stuck:
            return tuple(rungs), LadderEnd("not-for-sale", kept)
        removed |= raised


# --- what no routing can exceed -------------------------------------------------------------------


def routing_bound(
    topology: Topology, workload: Workload, answer: PathAnswer, basis: Basis
) -> RoutingBound | None:
    """Return what no routing of a workload by a data path can exceed.

    Parameters
    ----------
    topology
        The machine.
    workload, answer
        The workload, and its answer by the data path; it must not be refused.
    basis
        Which figure of each capacity to use.

    Returns
    -------
    RoutingBound or None
        `None` where no known capacity bounds it, and for a copy among GPUs of which one both
        sends and receives, or with a network card: there the flows differ pair by pair. Nor of a
        folded topology.
    """
    assert answer.matrix is not None, "a refused path moves nothing"
    starts, ends = set(workload.sources), set(workload.targets)
    kinds = {topology[name].kind for name in (*starts, *ends)}
    if starts & ends or kinds & {"nic", "dpu"} or topology.folding is not None:
        return None
    backwards = answer.route.direction == "write"
    bounds = [*_in_any_case(topology, answer, basis)]
    demands = answer.matrix.demands
    own_limits = min(math.fsum(demand.limit for demand in demands), demands[0].limit_in_all)
    bounds.append(RoutingBound(own_limits, ()))
    # What may be before each move and after the last, in the order of travel.
    moves = answer.data_path.moves[:: -1 if backwards else 1]
    buffers = [move.source if backwards else move.target for move in moves[:-1]]
    stops = [starts, *(_devices_at(topology, buffer) for buffer in buffers), ends]
    for move, (before, after) in zip(moves, pairwise(stops), strict=True):
        if not before & after:
            bounds += _of_move(topology, move, before, after, basis)
    least = min(bounds, key=lambda bound: bound.rate)
    if least.rate == math.inf:
        return None
    return replace(least, reached=(answer.rate or 0.0) >= least.rate * (1 - TIE))


def _devices_at(topology: Topology, buffer: str) -> set[str]:
    """Return the devices that a buffer may be in, whatever the policy."""
    if is_buffer(buffer):
        return {device.name for device in topology.devices.values() if device.is_memory}
    return {device.name for device in topology.of_kind("gpu")}


def _in_any_case(topology: Topology, answer: PathAnswer, basis: Basis) -> Iterator[RoutingBound]:
    """Yield what the moves come to wherever they go: on all memories together, at a stage."""
    buses = tuple(r for r in topology.resources.values() if r.kind == "memory-bus")
    accesses = answer.counts.dram_bytes
    if accesses and len(buses) == sum(device.is_memory for device in topology.devices.values()):
        total = math.fsum(bus.capacity.rate(basis) for bus in buses)
        yield RoutingBound(total / accesses, buses)
    assert answer.matrix is not None
    for resource in answer.matrix.resources:
        if resource.kind == "stage":
            yield RoutingBound(resource.capacity.rate(basis), (resource,))


# --- a move as a flow -----------------------------------------------------------------------------


def _of_move(
    topology: Topology,
    move: Move,
    starts: set[str],
    ends: set[str],
    basis: Basis,
) -> Iterator[RoutingBound]:
    """Yield the smallest cut between all places where a move may start and may end."""
    network = _FlowNetwork(topology, move, starts, ends, basis)
    tails, heads, capacities = zip(*((a, b, c) for a, b, c, _ in network.arcs), strict=True)
    numbers = {node: number for number, node in enumerate(dict.fromkeys((*tails, *heads)))}
    try:
        cut = min_cut(
            [numbers[tail] for tail in tails],
            [numbers[head] for head in heads],
            capacities,
            sources=[numbers[_FlowNetwork.START]],
            sinks=[numbers[_FlowNetwork.END]],
        )
    except UnboundedError:
        return
    resources = (network.arcs[arc][3] for arc in cut.arcs)
    unique = {resource.id: resource for resource in resources if resource is not None}
    yield RoutingBound(cut.value, tuple(unique.values()))


class _FlowNetwork:
    """The arcs of one move: links by direction, and devices that cap what passes through them.

    A node is a device's name with a side: data enters by ``in``, leaves by ``out``; a card has its
    wire besides. Arcs are ``(tail, head, bytes/s, resource)``.
    """

    START, END = ("", "start"), ("", "end")

    def __init__(
        self,
        topology: Topology,
        move: Move,
        starts: set[str],
        ends: set[str],
        basis: Basis,
    ) -> None:
        self.topology, self.basis = topology, basis
        self.arcs: list[tuple[tuple[str, str], tuple[str, str], float, Resource | None]] = []
        kinds = {topology[name].kind for name in starts}, {topology[name].kind for name in ends}
        by_gpu_links = kinds == ({"gpu"}, {"gpu"}) and move.over in (None, "gpu-links")
        self.layers: tuple[Layer, ...] = ("gpu",) if by_gpu_links else ("host", "memory", "network")
        self.by_gpu_links = by_gpu_links
        device_moves = move.mover in ("nic", "drive") and "gpu" in kinds[0] | kinds[1]
        self.peer = device_moves or (kinds == ({"gpu"}, {"gpu"}) and not by_gpu_links)
        if move.over == "network":  # peer to peer at one end, perhaps, and not at the other
            self.peer = False
        self.posted = "gpu" in kinds[1]
        self.flows = len(starts) * len(ends) * max(1, len(topology.of_kind("nic", "dpu")))
        self.storage_side = "write" if any(topology[name].is_storage for name in ends) else "read"
        self.starts, self.ends = starts, ends
        for name in sorted({*starts, *ends, *filter(self._passes, topology.devices)}):
            self._add_device(topology[name])
            for step in topology.steps[name]:
                if step.link.layer in self.layers and self._may_walk(step):
                    self._add_step(step)

    def _passes(self, name: str) -> bool:
        device = self.topology[name]
        if self.by_gpu_links:
            return passes_gpu_fabric(device)
        return device.is_nic or passes_host(device) or passes_network(device)

    def _may_walk(self, step: Step) -> bool:
        leaves = step.source in self.starts or self._passes(step.source)
        return leaves and (step.target in self.ends or self._passes(step.target))

    def _add(
        self, tail: tuple[str, str], head: tuple[str, str], resources: Iterable[Resource | None]
    ) -> None:
        """Add an arc with the least of some capacities."""
        known = [resource for resource in resources if resource is not None]
        least = min(known, key=lambda r: r.capacity.rate(self.basis), default=None)
        rate = math.inf if least is None else least.capacity.rate(self.basis)
        self.arcs.append((tail, head, rate, least))

    def _drives_behind(self, device: Device, storage_side: str) -> Iterator[Resource]:
        """Yield the slowest drive of a RAID card, of which each has its even part, for all."""
        if device.kind != "hba":
            return
        names = drives_behind(self.topology, device.name)
        sides = [self.topology.resources.get(f"{name}/{storage_side}") for name in names]
        for side in filter(None, sides):
            figure = side.capacity.at(self.basis)
            if figure.value is not None:
                together = replace(figure, value=figure.value * len(names), range=None)
                yield replace(side, capacity=Capacity(together))

    def _add_device(self, device: Device) -> None:
        """Add what a device is to the flow: an end, a card with a chip, or something to pass."""
        name, resources = device.name, self.topology.resources
        caps = [self._cap(name, name, device.part.peer_caps, device.place)]
        if name in self.starts or name in self.ends:
            storage_side = "read" if name in self.starts else "write"
            sides = [resources.get(f"{name}/{side}") for side in (storage_side, "bus", "hbm")]
            sides += self._drives_behind(device, storage_side)
            if name in self.starts:
                self._add(self.START, (name, "out"), [*sides, *caps])
            else:
                self._add((name, "in"), self.END, [*sides, *caps])
        elif device.is_nic:
            self._add((name, "wire in"), (name, "out"), [resources.get(f"{name}/chip in"), *caps])
            self._add((name, "in"), (name, "wire out"), [resources.get(f"{name}/chip out"), *caps])
            if device.part.flag("bridge"):
                self._add((name, "in"), (name, "out"), caps)
        else:
            controller = resources.get(f"{name}/{self.storage_side}")
            self._add((name, "in"), (name, "out"), [controller, *caps])

    def _add_step(self, step: Step) -> None:
        on_wire = step.link.layer == "network"
        tail_is_card = on_wire and self.topology[step.source].is_nic
        head_is_card = on_wire and self.topology[step.target].is_nic
        cap = None
        if step.resource is not None and step.link.layer == "host":
            caps = step.link.cable.p2p
            cap = self._cap(step.resource.name, step.source, caps, step.link.place)
        self._add(
            (step.source, "wire out" if tail_is_card else "out"),
            (step.target, "wire in" if head_is_card else "in"),
            [step.resource, cap],
        )

    def _cap(self, name: str, device: str, caps: PeerCaps | None, place: Place) -> Resource | None:
        """Return the peer-to-peer cap of a place as a resource, where one is stated.

        A cap of each flow bounds all of them together only where there is no more than one.
        """
        cap = None
        if caps is not None and self.peer:
            cap = caps.posted if self.posted else caps.non_posted
        if cap is None or cap.rate.value is None:
            return None
        if cap.per_flow and self.flows > 1:
            return None
        return Resource(
            name=f"{name}/p2p",
            direction="posted" if self.posted else "non-posted",
            kind="peer-to-peer",
            capacity=Capacity(theoretical=cap.rate),
            device=device,
            limited_by="stated peer-to-peer cap",
            place=place,
        )
