"""Search: fewest links, then widest, how equal walks share, and what is nearest to what."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache

from topo.catalogue.kinds import CARDS, Kind
from topo.description.description import Device
from topo.graph import breadth_first
from topo.phrases import ranges
from topo.routes.route import EqualCostPaths
from topo.topology.locality import forwards, locality, rank, socket_of
from topo.topology.topology import Layer, Step, Topology

_TIE = 1e-9


def passes_host(device: Device) -> bool:
    """Whether traffic inside a host may go through `device`; never RAM, GPUs or drives."""
    return device.is_host or forwards(device)


def passes_network(device: Device) -> bool:
    """Whether traffic between hosts may go through `device`."""
    return device.kind == "network-switch"


def passes_gpu_fabric(device: Device) -> bool:
    """Whether traffic between GPUs may go through `device`."""
    return device.kind == "nvswitch"


@lru_cache(maxsize=16_384)
def by_name(name: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key that puts ``gpu10`` after ``gpu9``."""
    return tuple(
        (text, int(number or -1)) for text, number in re.findall(r"([^0-9]*)([0-9]*)", name)
    )


def shown_names(topology: Topology, names: Iterable[str]) -> list[str]:
    """Return the names of some devices, and of all that they stand for, as ranges."""
    folding = topology.folding
    return ranges(sorted(map(folding.shown, names) if folding else names, key=by_name))


# --- walks ----------------------------------------------------------------------------------------


class Search:
    """Walks on one topology within some layers, remembered per pair.

    Parameters
    ----------
    topology
        Where to walk.
    layers
        Link layers that may be walked.
    passes
        Which devices may be passed through; the two ends need not be.
    spread
        Share among equally good walks; otherwise take the first by name.
    """

    def __init__(
        self,
        topology: Topology,
        layers: tuple[Layer, ...],
        passes: Callable[[Device], bool],
        *,
        spread: bool = True,
    ) -> None:
        self._devices = topology.devices
        self._spread = spread
        # A network's switch sends nothing over a slower cable beside a faster one; hosts do.
        self._adds_up = "network" not in layers
        self._passing = {name for name, device in topology.devices.items() if passes(device)}
        self._steps: dict[str, tuple[Step, ...]] = {
            name: tuple(step for step in steps if step.link.layer in layers)
            for name, steps in topology.steps.items()
        }
        self._inward: dict[str, tuple[Step, ...]] = {}  # steps back to what can be passed
        self._outward: dict[str, dict[str, list[Step]]] = {}
        self._standing: dict[str, int] = {}
        self._sights: dict[Hashable, int] = {}
        self._cell_size = topology.cell_size
        self._distances: dict[str, Mapping[str, int]] = {}
        self._around: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._paths: dict[tuple[str, str], EqualCostPaths | None] = {}

    def distances(self, source: str) -> Mapping[str, int]:
        """Return the number of links from `source` to everything that can be reached."""
        if source not in self._distances:
            around = self._distances_around(self.neighbours(source))
            self._distances[source] = _Distances(source, around)
        return self._distances[source]

    def neighbours(self, source: str) -> tuple[str, ...]:
        """Return what is one link from `source`: of the same neighbours all else is as far."""
        return tuple(dict.fromkeys(step.target for step in self._steps[source]))

    def standing(self, name: str) -> int:
        """Return a number that devices share to which all others are as near, by as wide a way.

        What is passed, and a card, has its own: others lie behind it, or it is one of them.
        """
        if name not in self._standing:
            own = name in self._passing or self._devices[name].kind in CARDS
            sight = name if own else self._sight(name)
            self._standing[name] = self._sights.setdefault(sight, len(self._sights))
        return self._standing[name]

    def _sight(self, name: str) -> Hashable:
        """Return where a device's links lead, and how much goes either way."""
        return tuple(
            (
                step.target,
                step.entry_side,
                *(
                    resource.capacity.theoretical.value
                    for resource in (step.resource, Step(step.link, step.target, name).resource)
                    if resource is not None
                ),
            )
            for step in self._steps[name]
        )

    def _distances_around(self, neighbours: tuple[str, ...]) -> Mapping[str, int]:
        """Return the number of links to everything from a device with these neighbours.

        It is searched for once for all such devices: no shortest walk comes back to its source.
        """
        if neighbours not in self._around:

            def onward(name: str) -> list[str]:
                if name not in self._passing:
                    return []
                return [step.target for step in self._steps[name]]

            self._around[neighbours] = breadth_first(neighbours, onward)
        return self._around[neighbours]

    def paths(self, source: str, target: str) -> EqualCostPaths | None:
        """Return the best walks from `source` to `target`, `None` when there is none."""
        if (source, target) in self._paths:
            return self._paths[source, target]
        paths: EqualCostPaths | None = None
        distances = self.distances(source)
        if target in distances:
            steps = self._shortest(distances, source, target)
            widths = {source: math.inf}  # of the best bottleneck on the way to each device
            rates = [_rate(step) for step in steps]
            for step, rate in zip(steps, rates, strict=True):
                through = min(widths.get(step.source, 0.0), rate)
                widths[step.target] = max(widths.get(step.target, 0.0), through)
            width = widths[target]
            narrowest = width * (1 - _TIE)
            wide = [step for step, rate in zip(steps, rates, strict=True) if rate >= narrowest]
            shares, count = self._shares(wide, source, target)
            example = _first_by_name(shares, source, target)
            if self._adds_up:
                shares = _with_narrower_siblings(shares, steps)
            idle: tuple[Step, ...] = ()
            if self._spread:
                used = {step.resource.id for step, _ in shares if step.resource}
                unused = (step for step in steps if step.resource)
                idle = tuple(s for s in unused if s.resource and s.resource.id not in used)
            else:
                shares, count = tuple((step, 1.0) for step in example), 1
            paths = EqualCostPaths(shares, example, count, width, idle)
        self._paths[source, target] = paths
        return paths

    def _shortest(self, distances: Mapping[str, int], source: str, target: str) -> list[Step]:
        """Return every step of every shortest walk, nearest to the source first."""
        if source not in self._outward:
            self._outward[source] = {}
            for step in self._steps[source]:
                self._outward[source].setdefault(step.target, []).append(step)
        leading_out = self._outward[source]
        steps: list[Step] = []
        front = [target]
        while front:
            before: dict[str, None] = {}
            for name in front:
                if name in leading_out:
                    steps.extend(leading_out[name])
                    continue
                if name not in self._inward:
                    back_steps = self._steps[name]
                    self._inward[name] = tuple(s for s in back_steps if s.target in self._passing)
                for back in self._inward[name]:
                    nearer = back.target
                    if nearer in distances and distances[nearer] == distances[name] - 1:
                        before[nearer] = None
                        steps.append(Step(back.link, nearer, name))
            front = list(before)
        return steps[::-1]

    def _shares(
        self, steps: list[Step], source: str, target: str
    ) -> tuple[tuple[tuple[Step, float], ...], int]:
        """Return each step's share when every walk carries the same, and the number of walks.

        A step lies on ``walks to its start`` times ``walks from its end`` of all the walks, so
        nothing is enumerated. In a folded topology a step stands for several links; the share is of
        one of them, of what all that `source` stands for send.
        """
        walks_to = {source: 1}
        for step in steps:
            walks = walks_to.get(step.source, 0) * step.times[1]
            walks_to[step.target] = walks_to.get(step.target, 0) + walks
        walks_from = {target: 1}
        for step in reversed(steps):
            walks = walks_from.get(step.target, 0) * step.times[0]
            walks_from[step.source] = walks_from.get(step.source, 0) + walks
        count = walks_from[source]
        total = count * self._cell_size(source)
        return tuple(
            (step, walks / total)
            for step in steps
            if (walks := walks_to.get(step.source, 0) * walks_from.get(step.target, 0))
        ), count


class _Distances(Mapping[str, int]):
    """Links from a source to everything: none to itself, the rest as all with its neighbours."""

    def __init__(self, source: str, around: Mapping[str, int]) -> None:
        self._source, self._others = source, around

    def __getitem__(self, name: str) -> int:
        return 0 if name == self._source else self._others[name] + 1

    def __contains__(self, name: object) -> bool:
        return name == self._source or name in self._others

    def __iter__(self) -> Iterator[str]:
        yield self._source
        yield from (name for name in self._others if name != self._source)

    def __len__(self) -> int:
        return len(self._others) + (self._source not in self._others)


def _rate(step: Step) -> float:
    """Return the theoretical bytes/s of a step; unknown and unlimited do not narrow a walk."""
    if step.resource is None:
        return math.inf
    return step.resource.capacity.rate("theoretical")


def _with_narrower_siblings(
    shares: tuple[tuple[Step, float], ...], steps: list[Step]
) -> tuple[tuple[Step, float], ...]:
    """Return the shares with links between the same two devices taking theirs by their rates.

    Such links add up, whatever the width of each: a narrower one beside the widest carries as well.
    """
    parallel: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        parallel.setdefault((step.source, step.target), []).append(step)
    if len(parallel) == len(steps):
        return shares
    bundles: dict[tuple[str, str], float] = {}
    for step, share in shares:
        ends = (step.source, step.target)
        bundles[ends] = bundles.get(ends, 0.0) + share
    spread: list[tuple[Step, float]] = []
    for step, share in shares:
        ends = (step.source, step.target)
        rates = [_rate(sibling) for sibling in parallel[ends]]
        if max(rates) == math.inf or min(rates) >= max(rates) * (1 - _TIE):
            spread.append((step, share))
        elif ends in bundles:  # once for all of them
            whole = bundles.pop(ends)
            spread += (
                (sibling, whole * rate / math.fsum(rates))
                for sibling, rate in zip(parallel[ends], rates, strict=True)
            )
    return tuple(spread)


def _first_by_name(
    shares: Iterable[tuple[Step, float]], source: str, target: str
) -> tuple[Step, ...]:
    following: dict[str, list[Step]] = {}
    for step, _ in shares:
        following.setdefault(step.source, []).append(step)
    walk: list[Step] = []
    current = source
    while current != target:
        steps = following[current]
        if len(steps) > 1:
            first = min(by_name(step.target) for step in steps)
            steps = [step for step in steps if by_name(step.target) == first]
        walk.append(min(steps, key=lambda step: by_name(step.link.name)) if steps[1:] else steps[0])
        current = walk[-1].target
    return tuple(walk)


# --- placement ------------------------------------------------------------------------------------


class Placement:
    """Which network card, memory or staging GPU is near what, each question answered once.

    Parameters
    ----------
    topology
        The machine.
    host, network, fabric
        Searches inside hosts, over networks and over links between GPUs.
    """

    def __init__(
        self, topology: Topology, *, host: Search, network: Search, fabric: Search
    ) -> None:
        self._topology = topology
        self._host, self._network, self._fabric = host, network, fabric
        self._in_host: dict[str, tuple[str, ...]] = {}
        self._cards: dict[tuple[tuple[str, ...], str, tuple[str, ...]], tuple[str, ...]] = {}
        self._leading: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
        self._nearest: dict[tuple[tuple[str, ...], int], tuple[str, ...]] = {}
        self._memories: dict[str, tuple[str, ...]] = {}
        self._card_order = self._order(*CARDS)
        self._memory_order = self._order("memory")

    def _order(self, *kinds: Kind) -> dict[str, int]:
        names = sorted((device.name for device in self._topology.of_kind(*kinds)), key=by_name)
        return {name: index for index, name in enumerate(names)}

    def cards(self, storage: str, gpu: str) -> tuple[str, ...]:
        """Return the cards that both the storage and the GPU reach, in the order of their names."""
        # Neighbours tell devices apart, and a card from the others beside it.
        own = storage if storage in self._card_order else ""
        key = (self._network.neighbours(storage), own, self._beside(gpu))
        if key not in self._cards:
            on_network = self._network.distances(storage)
            self._cards[key] = tuple(name for name in self._beside(gpu) if name in on_network)
        return self._cards[key]

    def _beside(self, device: str) -> tuple[str, ...]:
        """Return the cards that a device reaches in its host, in the order of their names."""
        if device not in self._in_host:
            cards = (name for name in self._host.distances(device) if name in self._card_order)
            self._in_host[device] = tuple(sorted(cards, key=self._card_order.__getitem__))
        return self._in_host[device]

    def nearest_cards(self, storage: str, gpu: str) -> tuple[str, ...]:
        """Return the cards nearest to `gpu`: by locality class, then fewest links, then widest.

        Equally near cards are all returned and share the traffic.
        """
        return self._nearest_of(self.cards(storage, gpu), gpu)

    def target_cards(self, drive: str, endpoint: str) -> tuple[str, ...]:
        """Return the cards in the host of a drive from which a network leads to an endpoint's."""
        key = (self._beside(drive), self._beside(endpoint))
        if key not in self._leading:
            joined = (card for card in self._beside(drive) if self.cards(card, endpoint))
            self._leading[key] = tuple(joined)
        return self._leading[key]

    def nearest_target_cards(self, drive: str, endpoint: str) -> tuple[str, ...]:
        """Return those of the `target_cards` that are nearest to the drive."""
        return self._nearest_of(self.target_cards(drive, endpoint), drive)

    def _nearest_of(self, cards: tuple[str, ...], device: str) -> tuple[str, ...]:
        key = (cards, self._host.standing(device))
        if key not in self._nearest:
            distances: dict[str, tuple[int, int, float]] = {}
            for card in cards:
                paths = self._host.paths(card, device)
                assert paths is not None, "the device reaches the card"
                locality_rank = rank(locality(self._topology, card, device))
                distances[card] = (locality_rank, len(paths.example), -paths.width)
            nearest = min(distances.values(), default=None)
            self._nearest[key] = tuple(c for c in cards if distances[c] == nearest)
        return self._nearest[key]

    def memories_near(self, device: str) -> tuple[str, ...]:
        """Return the memories on the socket of `device`; without one there, on the nearest socket.

        All of that socket's memories are returned and share the traffic.
        """
        start = socket_of(self._topology, device) or device
        if start not in self._memories:
            distances = self._host.distances(start)
            memories = sorted(
                (name for name in distances if name in self._memory_order),
                key=self._memory_order.__getitem__,
            )
            nearest = min((distances[name] for name in memories), default=None)
            self._memories[start] = tuple(n for n in memories if distances[n] == nearest)
        return self._memories[start]

    def staging_gpus(self, card: str, gpu: str) -> tuple[str, ...]:
        """Return the GPUs nearest to `card` that reach `gpu` over GPU links, by name.

        `gpu` itself counts: when no other is nearer, nothing needs staging and it is the answer.
        Of equally near GPUs those that the fewest links join to `gpu` share the traffic.
        """
        links = self._fabric.distances(gpu)
        distances = {
            name: (rank(locality(self._topology, card, name)), links[name])
            for name in sorted(links, key=by_name)
            if self._topology[name].kind == "gpu" and self._host.paths(card, name) is not None
        }
        nearest = min(distances.values(), default=(0, 0))
        if distances.get(gpu, nearest)[0] == nearest[0]:
            return (gpu,)
        return tuple(name for name, distance in distances.items() if distance == nearest)
