"""What no algorithm of a collective can exceed, by the links that lead out of parts of its GPUs.

GPUs are parted by PCIe switch, root, socket and server, and each by itself. What leaves a part of
`a` of `n` GPUs, or enters it, is the smallest cut around it. For a collective of `S` bytes (those
of nccl-tests) takes at least, whatever the algorithm:

* an all-reduce: S over the less of the two, since what a part gets depends on all that is outside,
  and the other way round; and over `k` parts that make up all GPUs ``2 (k - 1) S`` over what leaves
  all of them together: to combine takes `k - 1` messages, to tell the result `k - 1` more [1]_;
* an all-gather: ``(n - a) / n S`` over what enters; a reduce-scatter the same over what leaves;
* an all-to-all: ``a (n - a) / n S`` over the less of the two;
* a broadcast: S over what enters a part without the root; a reduce the same over what leaves it.

Switches that reduce need no `k - 1` messages: with NVLink SHARP the parts of a server do not count
together, and servers do.

References
----------
.. [1] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
   workstations", Journal of Parallel and Distributed Computing 69, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from topo.errors import UnboundedError
from topo.flows.collectives import reduces_in_switches
from topo.records import dataclass
from topo.routes.search import passes_gpu_fabric, passes_host
from topo.solve.mincut import min_cut
from topo.solve.system import TIE
from topo.study.answers import CollectiveBound
from topo.topology.hosts import host_numbers

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.flows.collectives import Laid
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology

_ELSEWHERE: Final = ("", "elsewhere")  # all other servers


@dataclass(frozen=True, slots=True)
class _Part:
    """GPUs, and what leaves and enters them: bytes/s, and the resources of the cut."""

    gpus: frozenset[str]
    leaving: float
    entering: float
    leaves_by: tuple[Resource, ...]
    enters_by: tuple[Resource, ...]


def collective_bound(
    topology: Topology, laid: Laid, basis: Basis, *, root: str = ""
) -> CollectiveBound | None:
    """Return what no algorithm of a collective can exceed; `None` where no capacity is known.

    Parameters
    ----------
    topology, laid
        The machine, and the collective on it.
    basis
        Which figure of each capacity to use.
    root
        Where a broadcast begins or a reduce ends.
    """
    cuts = _Cuts(topology, laid.gpus, basis)
    partings = [[cuts.part(gpus) for gpus in parts] for parts in _partings(topology, laid.gpus)]
    numbers = host_numbers(topology)
    servers = {numbers[name] for name in laid.gpus}
    in_switches = any(reduces_in_switches(topology, name) for name in laid.gpus)
    bounds: list[CollectiveBound] = []
    for parts in partings:
        if laid.name == "all-reduce" and (not in_switches or len(parts) == len(servers)):
            bounds += _together(parts)
        bounds += _one_by_one(laid, parts, root)
    least = min((bound.rate for bound in bounds), default=math.inf)
    if least == math.inf:
        return None
    full = [bound for bound in bounds if bound.rate <= least * (1 + TIE)]
    resources = {resource.id: resource for bound in full for resource in bound.resources}
    return CollectiveBound(least, least * laid.bus_factor, tuple(resources.values()))


def _together(parts: Sequence[_Part]) -> Iterator[CollectiveBound]:
    """Yield the bounds of an all-reduce by what leaves, and enters, all parts together."""
    if len(parts) == 1:
        return
    messages = 2 * (len(parts) - 1)
    for rates, cut in (
        ([part.leaving for part in parts], [part.leaves_by for part in parts]),
        ([part.entering for part in parts], [part.enters_by for part in parts]),
    ):
        resources = tuple(resource for of_part in cut for resource in of_part)
        yield CollectiveBound(math.fsum(rates) / messages, 0.0, resources)


def _one_by_one(laid: Laid, parts: Iterable[_Part], root: str) -> Iterator[CollectiveBound]:
    """Yield the bounds of a collective by what leaves or enters each part."""
    count = len(laid.gpus)
    for part in parts:
        inside = len(part.gpus)
        if inside == count:
            continue
        rest = (count - inside) / count
        # bytes that must enter, and leave, for each byte of the size
        enter, leave = {
            "all-reduce": (1.0, 1.0),
            "all-gather": (rest, inside / count),
            "reduce-scatter": (inside / count, rest),
            "all-to-all": (inside * rest, inside * rest),
            "broadcast": (0.0, 1.0) if root in part.gpus else (1.0, 0.0),
            "reduce": (1.0, 0.0) if root in part.gpus else (0.0, 1.0),
        }[laid.name]
        if enter:
            yield CollectiveBound(part.entering / enter, 0.0, part.enters_by)
        if leave:
            yield CollectiveBound(part.leaving / leave, 0.0, part.leaves_by)


def _partings(topology: Topology, gpus: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """Return the ways in which GPUs are parted: each alone, by switch, root, socket, server."""
    numbers = host_numbers(topology)

    def places(name: str) -> Iterator[tuple[str, ...]]:
        attachment = topology.tree.attachment(name)
        yield (name,)
        if attachment is not None:
            yield (attachment.bridges or (name,))[:1]
            yield (attachment.bridges or (name,))[-1:]
            yield (attachment.root, attachment.node)
            yield (attachment.socket,)
        yield (str(numbers[name]),)

    parted: dict[tuple[tuple[str, ...], ...], None] = {}
    levels = [list(places(name)) for name in gpus]
    for level in range(max(map(len, levels))):
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, of_gpu in zip(gpus, levels, strict=True):
            groups.setdefault(of_gpu[min(level, len(of_gpu) - 1)], []).append(name)
        parted[tuple(map(tuple, groups.values()))] = None
    return [list(parts) for parts in parted]


# --- cuts -----------------------------------------------------------------------------------------


class _Cuts:
    """The smallest cuts around some of a server's GPUs; all other servers are one place.

    Servers that are alike, device for device and link for link, are computed once.
    """

    def __init__(self, topology: Topology, gpus: Sequence[str], basis: Basis) -> None:
        self._topology, self._basis = topology, basis
        self._numbers = host_numbers(topology)
        self._gpus = frozenset(gpus)
        self._members: dict[int, list[str]] = {}
        for name, number in self._numbers.items():
            self._members.setdefault(number, []).append(name)
        self._arcs: dict[int, _Arcs] = {}
        self._known: dict[tuple[object, ...], tuple[float, tuple[int, ...]]] = {}

    def part(self, gpus: Sequence[str]) -> _Part:
        """Return what leaves and enters some GPUs, all of one server."""
        number = self._numbers[gpus[0]]
        if number not in self._arcs:
            members = self._members[number]
            self._arcs[number] = _arcs_of(self._topology, members, self._gpus, self._basis)
        arcs = self._arcs[number]
        inside = [arcs.nodes[name, ""] for name in gpus]
        others = [
            node
            for (name, side), node in arcs.nodes.items()
            if (name in self._gpus and not side and name not in gpus) or (name, side) == _ELSEWHERE
        ]
        out, leaves_by = self._cut(arcs, inside, others)
        into, enters_by = self._cut(arcs, others, inside)
        return _Part(frozenset(gpus), out, into, leaves_by, enters_by)

    def _cut(
        self, arcs: _Arcs, sources: Sequence[int], sinks: Sequence[int]
    ) -> tuple[float, tuple[Resource, ...]]:
        if not sources or not sinks:
            return math.inf, ()
        key = (arcs.tails, arcs.heads, arcs.rates, tuple(sources), tuple(sinks))
        if key not in self._known:
            try:
                cut = min_cut(arcs.tails, arcs.heads, arcs.rates, sources=sources, sinks=sinks)
                self._known[key] = (cut.value, cut.arcs)
            except UnboundedError:
                self._known[key] = (math.inf, ())
        value, crossing = self._known[key]
        return value, tuple(
            resource for arc in crossing if (resource := arcs.resources[arc]) is not None
        )


@dataclass(frozen=True, slots=True)
class _Arcs:
    """A server as a flow network: numbered nodes, and arcs with bytes/s and resources."""

    nodes: Mapping[tuple[str, str], int]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    rates: tuple[float, ...]
    resources: tuple[Resource | None, ...]


def _arcs_of(
    topology: Topology, members: Sequence[str], gpus: frozenset[str], basis: Basis
) -> _Arcs:
    """Return the flow network of a server, whatever medium its GPUs take."""
    inside = frozenset(members)
    nodes: dict[tuple[str, str], int] = {}
    arcs: list[tuple[int, int, Resource | None]] = []

    def node(name: str, side: str = "") -> int:
        return nodes.setdefault((name, side), len(nodes))

    def passes(name: str) -> bool:
        device = topology[name]
        return name in gpus or device.is_nic or passes_host(device) or passes_gpu_fabric(device)

    for name in filter(passes, members):
        node(name)
        for step in topology.steps[name]:
            if step.link.layer == "network":
                if not topology[name].is_nic or step.target in inside:
                    continue
                wire, elsewhere = node(name, "wire"), node(*_ELSEWHERE)
                backward = step.link.backward if step.source == step.link.a.device else None
                backward = backward or step.link.forward
                arcs.append((wire, elsewhere, step.resource))
                arcs.append((elsewhere, wire, backward))
            elif step.target in inside and passes(step.target):
                arcs.append((node(name), node(step.target), step.resource))
        if topology[name].is_nic:
            resources, wire = topology.resources, node(name, "wire")
            arcs.append((node(name), wire, resources.get(f"{name}/chip out")))
            arcs.append((wire, node(name), resources.get(f"{name}/chip in")))
    tails, heads, resources_of_arcs = zip(*arcs, strict=True) if arcs else ((), (), ())
    rates = (
        math.inf if resource is None else resource.capacity.rate(basis)
        for resource in resources_of_arcs
    )
    return _Arcs(nodes, tails, heads, tuple(rates), resources_of_arcs)
