"""A data path laid on a topology between its far ends and one endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Final, Literal, get_args

from topo.catalogue.kinds import MEMORIES
from topo.datapaths.registry import buffers_of, data_paths, is_buffer
from topo.description.description import DataPath, Move, Pairing
from topo.description.names import ranged, stem_of
from topo.errors import Finding, Place, UnknownNameError
from topo.phrases import brief, did_you_mean, listed
from topo.records import dataclass
from topo.topology.resources import Resource
from topo.topology.topology import Step, Topology

Direction = Literal["read", "write"]
Verdict = Literal["ok", "ok-slower", "unknown", "refused"]
Effect = Literal["fine", "assumed", "slower", "unknown", "refused"]
EqualRoutes = Literal["spread", "first"]
Nics = Literal["nearest", "stripe", "best"]
# The words of a policy, by its fields.
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "routes": get_args(EqualRoutes),
    "nics": get_args(Nics),
    "pairing": (*get_args(Pairing), ""),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """How a choice among several routes is made.

    Parameters
    ----------
    routes
        ``spread``: equally good walks and parallel cables share evenly; ``first``: one, by name.
    nics
        ``nearest``: the network cards nearest to the GPU by locality, as the vendor advises;
        ``stripe``: fixed equal shares over every card that reaches both; ``best``: shares chosen
        by a linear program (routes are laid as for `stripe` and then reweighted).
    pairing
        Which far ends each endpoint exchanges data with, before what a workload says: its own
        ``nearest``, ``all``, or those ``in-order`` of their numbers; empty as the workload says.
    buffers
        ``(buffer, place)`` pairs: a buffer's name without ``-buffer`` (or ``all``) at
        ``near-gpu``, ``near-nic`` or a memory's name.
    """

    routes: EqualRoutes = "spread"
    nics: Nics = "nearest"
    buffers: tuple[tuple[str, str], ...] = ()
    pairing: Pairing | Literal[""] = ""

    def place_of(self, buffer: str, *, elsewhere: bool = False) -> str:
        """Return where `buffer` lies; what holds for all is not about those of another host."""
        chosen = dict(self.buffers)
        usual = "near-gpu" if elsewhere else chosen.get("all", "near-gpu")
        return chosen.get(buffer.removesuffix("-buffer"), usual)


def checked_policy(topology: Topology, policy: Policy) -> Policy:
    """Return a policy when it has words that there are, and names what the machine has.

    Raises
    ------
    UnknownNameError
        For a word that is none, a buffer that no data path has, or a place that is no memory: what
        is misspelt must not be ignored.
    """
    valid: dict[str, Iterable[str]] = {f"policy of {key}": words for key, words in CHOICES.items()}
    named = [(f"policy of {key}", getattr(policy, key)) for key in CHOICES]
    if policy.buffers:
        paths = data_paths(topology.description)
        buffers = [name.removesuffix("-buffer") for path in paths for name in buffers_of(path)]
        memories = [device.name for device in topology.of_kind(*MEMORIES)]
        valid |= {"RAM buffer": [*buffers, "all"], "memory": ["near-gpu", "near-nic", *memories]}
        named += [("RAM buffer", name) for name, _ in policy.buffers]
        named += [("memory", place) for _, place in policy.buffers]
    findings = []
    for what, name in named:
        if name not in valid[what]:
            names = dict.fromkeys(filter(None, valid[what]))
            advice = did_you_mean(name, names) or f"there are {', '.join(names)}"
            findings.append(Finding("unknown-name", f"no {what} `{name}`", help=advice))
    if findings:
        raise UnknownNameError(findings)
    return policy


@dataclass(frozen=True, slots=True)
class EqualCostPaths:
    """Every equally good walk between two devices, as shares of the traffic on each step.

    `example` is the first walk by name; `count` is how many there are; `width` is the least
    theoretical rate along each of them, in bytes/s. `idle` are steps of walks as short that carry
    nothing, since they are narrower.
    """

    shares: tuple[tuple[Step, float], ...]
    example: tuple[Step, ...]
    count: int
    width: float
    idle: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """One move, laid out: which engine moves from which device to which, along which steps.

    `walk` is one walk to show; `shares` are the steps of all equally good ones with the share of
    the transfer's bytes on each. `use` is bytes through each resource (by id) for a payload byte of
    this subflow. `sent_up_by` is the device whose ACS redirect sends the transfer by the root;
    `idle` are the steps that carry nothing beside wider ones.
    """

    move: Move
    engine: str
    source: str
    target: str
    walk: tuple[Step, ...] = ()
    shares: tuple[tuple[Step, float], ...] = ()
    alternatives: int = 1
    use: Mapping[str, float] = field(default_factory=dict)
    sent_up_by: str = ""
    idle: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Subflow:
    """One choice of far end, cards and memories, with the share of the traffic that takes it.

    `target_card` is the card by which the data leaves the host of a far end that is elsewhere.
    """

    share: float
    far: str
    card: str
    memories: tuple[tuple[str, str], ...]
    transfers: tuple[Transfer, ...]
    target_card: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact that a verdict rests on.

    Parameters
    ----------
    code, effect
        What it is by its code, and what it does to the verdict.
    fact
        A sentence; where devices are named in `about`, their names end it.
    place
        Where the file says so.
    about
        Devices that the fact holds for.
    instead
        The data path that is taken instead, where the fact says which.
    """

    code: str
    effect: Effect
    fact: str
    place: Place | None = None
    about: tuple[str, ...] = ()
    instead: str = ""

    @property
    def text(self) -> str:
        """The whole sentence, without a full stop."""
        return f"{self.fact} {listed(ranged(self.about, 4))}" if self.about else self.fact


def merged(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return every reason once; one that holds for several devices names them all."""
    by_fact: dict[tuple[str, str, str], tuple[Reason, dict[str, None]]] = {}
    for reason in reasons:
        key = (reason.code, reason.effect, reason.fact)
        by_fact.setdefault(key, (reason, {}))[1].update(dict.fromkeys(reason.about))
    return tuple(
        replace(reason, about=tuple(sorted(about, key=stem_of)))
        for reason, about in by_fact.values()
    )


@dataclass(frozen=True, slots=True)
class Route:
    """A data path between its far ends (storage, GPUs, cards) and its endpoint.

    Parameters
    ----------
    data_path
        The path's definition, as written for a read.
    direction
        ``read`` fills the endpoint, ``write`` empties it; transfers are in the order of travel.
    endpoint
        The name of the device that is filled or emptied: mostly a GPU.
    subflows
        What shares the traffic, shares adding up to 1; empty when `verdict` is ``refused``.
    use
        Bytes through each resource (by id) for a payload byte, over all subflows.
    target_path
        The data path inside the hosts of far ends that are elsewhere, up to their cards; `None`
        where there are none.
    extra
        Resources that exist only for routes: peer-to-peer caps of a flow, measured pairs, stages.
    waypoints
        The ends, NIC, RAM buffers and the medium at the GPU, in the order of travel.
    """

    data_path: DataPath
    direction: Direction
    endpoint: str
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    subflows: tuple[Subflow, ...] = ()
    use: Mapping[str, float] = field(default_factory=dict)
    extra: tuple[Resource, ...] = ()
    waypoints: tuple[str, ...] = ()
    target_path: DataPath | None = None

    def __repr__(self) -> str:
        way = " -> ".join(self.waypoints) or f"{self.endpoint} {self.verdict}"
        return brief(self, f"{self.data_path.name}: {way}")

    def resources(self, topology: Topology, ids: Iterable[str]) -> dict[str, Resource]:
        """Return resources by their ids, the topology's or the route's own."""
        extra = {resource.id: resource for resource in self.extra}
        return {name: topology.resources.get(name) or extra[name] for name in ids}

    def by_far_end_and_card(self) -> tuple[tuple[list[int], ...], ...]:
        """Return the places of the subflows, for each far end a list a card."""
        places: dict[str, dict[str, list[int]]] = {}
        for place, subflow in enumerate(self.subflows):
            by_card = places.setdefault(subflow.far, {})
            by_card.setdefault(subflow.card, []).append(place)
        return tuple(tuple(by_card.values()) for by_card in places.values())

    @property
    def logical_hops(self) -> int:
        """Waypoints less one."""
        return max(len(self.waypoints) - 1, 0)

    @property
    def physical_links(self) -> int:
        """Links walked by the first subflow; a move inside one memory walks none."""
        first = self.subflows[:1]
        return sum(len(transfer.walk) for subflow in first for transfer in subflow.transfers)


# --- waypoints ------------------------------------------------------------------------------------

_MEDIA: Final = {
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "nvlink-c2c": "NVLink-C2C",
    "xgmi": "xGMI",
    "gaudi-roce": "RoCE",
}


def waypoints(topology: Topology, subflow: Subflow) -> tuple[str, ...]:
    """Return the waypoints of one subflow in the order of travel: what people count as hops.

    They are the two ends, the card or controller that moves a storage's data, each RAM buffer, and
    the medium by which a move enters or leaves a GPU. Hops are one less.
    """
    first = subflow.transfers[0]
    names = [first.move.source if is_buffer(first.move.source) else first.source]
    for transfer in subflow.transfers:
        names += _waypoints_after(topology, transfer)
    return tuple(names)


def _waypoints_after(topology: Topology, transfer: Transfer) -> list[str]:
    """Return the waypoints of a transfer but the first, where the one before it ended."""
    ends = (transfer.source, transfer.target)
    by_card = transfer.move.mover in ("nic", "drive") and transfer.engine not in ends
    walk_ends = zip(ends, (transfer.walk[:1], transfer.walk[-1:]), strict=True)
    at_gpu = (steps[0] for name, steps in walk_ends if steps and topology[name].kind == "gpu")
    family = next((step.link.cable.family for step in at_gpu), "")
    between = [transfer.engine if by_card else "", _MEDIA.get(family, family)]
    if topology[transfer.source].kind == "gpu":
        between.reverse()
    end = transfer.move.target if is_buffer(transfer.move.target) else transfer.target
    return [*filter(None, between), end]


def hops_range(topology: Topology, routes: Iterable[Route]) -> tuple[int, int]:
    """Return the fewest and the most hops over all subflows of `routes`; zeros for none."""
    hops: dict[int, int] = {}  # by the transfer: those between servers are in many subflows

    def of(transfer: Transfer) -> int:
        if id(transfer) not in hops:
            hops[id(transfer)] = len(_waypoints_after(topology, transfer))
        return hops[id(transfer)]

    return _fewest_and_most(
        sum(map(of, subflow.transfers)) for route in routes for subflow in route.subflows
    )


def links_range(routes: Iterable[Route]) -> tuple[int, int]:
    """Return the fewest and the most links walked over all subflows of `routes`."""
    return _fewest_and_most(
        sum(len(transfer.walk) for transfer in subflow.transfers)
        for route in routes
        for subflow in route.subflows
    )


def _fewest_and_most(lengths: Iterable[int]) -> tuple[int, int]:
    different = set(lengths) or {0}
    return min(different), max(different)
