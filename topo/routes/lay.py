"""Lay a data path on a topology: legs, branches, what each payload byte uses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from topo.datapaths import is_ram
from topo.routes.choose import cards_for, memories_near, nearest_cards, staging_gpu
from topo.routes.model import Branch, Leg, Policy, Reason, Route
from topo.routes.search import Search, passes_gpu_fabric, passes_host, passes_network
from topo.routes.use import UseBuilder, total_use
from topo.routes.verdict import closed, peer_reasons, stated_needs, verdict_of
from topo.routes.waypoints import waypoints
from topo.topology import Step, socket_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.routes.model import Ways
    from topo.spec.model import DataPath, Move
    from topo.topology import Topology

__all__ = ["Router"]


class Router:
    """Lays data paths on one topology under one policy, remembering every search.

    Parameters
    ----------
    topology
        The machine.
    policy
        How to choose among cards, memories and equal walks.
    """

    def __init__(self, topology: Topology, policy: Policy | None = None) -> None:
        self.topology = topology
        self.policy = policy or Policy()
        spread = self.policy.ways == "spread"
        self._host = Search(topology, ("host", "memory"), passes_host, spread=spread)
        self._network = Search(topology, ("network",), passes_network, spread=spread)
        self._fabric = Search(topology, ("gpu",), passes_gpu_fabric, spread=spread)

    def route(
        self, path: DataPath, storages: tuple[str, ...], gpu: str, direction: str = "read"
    ) -> Route:
        """Return `path` laid between `storages` and `gpu`.

        Several storages share the payload evenly, as a striped file does.

        Parameters
        ----------
        path
            The data path, as written for a read.
        storages
            Names of storage devices.
        gpu
            The GPU's name.
        direction
            ``read`` or ``write``; a write walks the same links the other way.

        Returns
        -------
        Route
            With the verdict ``refused`` and no branches where something closes the way.
        """
        way: str = direction
        refused = stated_needs(self.topology, path, storages, gpu)
        if any(reason.effect == "refused" for reason in refused):
            return self._refused(path, gpu, way, refused)
        branches: list[Branch] = []
        for storage in storages:
            found = tuple(self._branches(path, storage, gpu, way))
            if not found:
                return self._refused(
                    path, gpu, way, (*refused, closed(self.topology, path, storage, gpu))
                )
            branches.extend(replace(one, share=one.share / len(storages)) for one in found)
        return self._finish(path, gpu, way, tuple(branches), refused)

    def reweighted(self, route: Route, shares: tuple[float, ...]) -> Route:
        """Return `route` with its branches carrying other shares."""
        branches = tuple(
            replace(branch, share=share)
            for branch, share in zip(route.branches, shares, strict=True)
        )
        kept = tuple(branch for branch in branches if branch.share > 0)
        return replace(route, branches=kept, use=total_use(kept))

    def _refused(
        self, path: DataPath, gpu: str, direction: str, reasons: tuple[Reason, ...]
    ) -> Route:
        return Route(
            data_path=path,
            direction="write" if direction == "write" else "read",
            gpu=gpu,
            verdict="refused",
            reasons=reasons,
        )

    def _finish(
        self,
        path: DataPath,
        gpu: str,
        direction: str,
        branches: tuple[Branch, ...],
        reasons: tuple[Reason, ...],
    ) -> Route:
        found = tuple(
            dict.fromkeys((*reasons, *peer_reasons(self.topology, branches, direction)))
        )
        verdict = verdict_of(found)
        if verdict == "refused":
            return self._refused(path, gpu, direction, found)
        builder = UseBuilder(self.topology, path, direction)
        measured = tuple(builder.with_use(branch) for branch in branches)
        return Route(
            data_path=path,
            direction="write" if direction == "write" else "read",
            gpu=gpu,
            verdict=verdict,
            reasons=found,
            branches=measured,
            use=total_use(measured),
            extra=tuple(builder.extra.values()),
            waypoints=waypoints(self.topology, measured[0]),
        )

    # --- branches -------------------------------------------------------------------------------

    def _branches(
        self, path: DataPath, storage: str, gpu: str, direction: str
    ) -> Iterator[Branch]:
        """Yield one branch for each card and each choice of memories, with even shares."""
        for card, share in self._cards(storage, gpu):
            choices = self._memory_choices(path, card or storage, gpu)
            for memories in choices:
                legs = self._legs(path, storage, card, gpu, dict(memories))
                if legs is None:
                    return
                if direction == "write":
                    legs = tuple(_backwards(leg) for leg in reversed(legs))
                yield Branch(share / len(choices), storage, card, memories, legs)

    def _cards(self, storage: str, gpu: str) -> tuple[tuple[str, float], ...]:
        if self.topology[storage].kind != "storage":
            return (("", 1.0),)
        cards = cards_for(
            self.topology, storage, gpu, network=self._network, host=self._host
        )
        if self.policy.cards == "nearest":
            cards = nearest_cards(self.topology, cards, gpu, host=self._host)
        return tuple((card, 1.0 / len(cards)) for card in cards)

    def _memory_choices(
        self, path: DataPath, near_storage: str, gpu: str
    ) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return every choice of a memory for each buffer; buffers of one place share a choice."""
        ends = (end for move in path.moves for end in (move.source, move.target))
        buffers = tuple(dict.fromkeys(end for end in ends if is_ram(end)))
        places = tuple(dict.fromkeys(self.policy.place_of(buffer) for buffer in buffers))
        memories = [self._memories(place, near_storage, gpu) for place in places]
        return tuple(
            tuple(
                (buffer, dict(zip(places, chosen, strict=True))[self.policy.place_of(buffer)])
                for buffer in buffers
            )
            for chosen in product(*memories)
        )

    def _memories(self, place: str, near_storage: str, gpu: str) -> tuple[str, ...]:
        if place == "near-gpu":
            return memories_near(self.topology, gpu, host=self._host)
        if place == "near-nic":
            return memories_near(self.topology, near_storage, host=self._host)
        return (self.topology[place].name,)

    # --- legs -----------------------------------------------------------------------------------

    def _legs(
        self, path: DataPath, storage: str, card: str, gpu: str, memories: dict[str, str]
    ) -> tuple[Leg, ...] | None:
        where = {"storage": storage, "gpu": gpu, **memories}
        if any("staging-gpu" in (move.source, move.target) for move in path.moves):
            staging = staging_gpu(
                self.topology, card or storage, gpu, host=self._host, fabric=self._fabric
            )
            where["staging-gpu"] = staging or gpu
        legs: list[Leg] = []
        for move in path.moves:
            source, target = where[move.source], where[move.target]
            leg = self._leg(move, source, target, card, gpu)
            if leg is None:
                return None
            legs.append(leg)
        return tuple(legs)

    def _leg(self, move: Move, source: str, target: str, card: str, gpu: str) -> Leg | None:
        """Return one move between two devices, `None` when no walk joins them."""
        if source == target:
            engine = gpu if move.mover == "gpu" else socket_of(self.topology, source)
            return Leg(move, engine, source, target)
        if move.mover in ("nic", "drive"):
            return self._device_leg(move, source, target, card)
        both_gpus = {self.topology[source].kind, self.topology[target].kind} == {"gpu"}
        ways = (self._fabric if both_gpus else self._host).ways(source, target)
        if ways is None:
            return None
        engine = gpu if move.mover == "gpu" else socket_of(self.topology, target)
        return _leg(move, engine, source, target, (ways,))

    def _device_leg(self, move: Move, source: str, target: str, card: str) -> Leg | None:
        """Return a move by the storage's side: over the wire to the card, then inside the host."""
        if not card:
            ways = self._peer_ways(source, target)
            return _leg(move, _drive_engine(self.topology, ways, source), source, target, ways)
        wire = self._network.ways(source, card)
        inside = self._peer_ways(card, target)
        if wire is None or not inside:
            return None
        return _leg(move, card, source, target, (wire, *inside))

    def _peer_ways(self, engine: str, target: str) -> tuple[Ways, ...]:
        """Return the ways from a DMA engine into RAM or a GPU.

        Peer-to-peer traffic that would turn round at a switch with ACS redirect goes up to the
        root and back, over the uplink twice.
        """
        ways = self._host.ways(engine, target)
        if ways is None:
            return ()
        socket = socket_of(self.topology, engine)
        if self.topology[target].kind == "gpu" and _redirected(self.topology, ways) and socket:
            up, down = self._host.ways(engine, socket), self._host.ways(socket, target)
            if up is not None and down is not None:
                return (up, down)
        return (ways,)


def _redirected(topology: Topology, ways: Ways) -> bool:
    """Whether the walk turns round below the root at a switch with ACS redirect on."""
    passed = [topology[step.target] for step in ways.example[:-1]]
    below_root = not any(device.kind in ("cpu", "root-complex") for device in passed)
    return below_root and any(device.part.flag("acs") for device in passed)


def _drive_engine(topology: Topology, ways: tuple[Ways, ...], drive: str) -> str:
    """Return the engine that moves a drive's data: its controller card's if it has one."""
    for way in ways:
        for step in way.example:
            if topology[step.target].kind == "hba":
                return step.target
    return drive


def _leg(move: Move, engine: str, source: str, target: str, ways: tuple[Ways, ...]) -> Leg | None:
    """Return a leg over consecutive ways, `None` without any."""
    if not ways:
        return None
    return Leg(
        move=move,
        engine=engine,
        source=source,
        target=target,
        walk=tuple(step for way in ways for step in way.example),
        shares=tuple(shared for way in ways for shared in way.shares),
        alternatives=prod(way.count for way in ways),
    )


def _backwards(leg: Leg) -> Leg:
    """Return the leg of a write: the same steps walked the other way."""
    return replace(
        leg,
        move=replace(leg.move, source=leg.move.target, target=leg.move.source),
        source=leg.target,
        target=leg.source,
        walk=tuple(_turned(step) for step in reversed(leg.walk)),
        shares=tuple((_turned(step), share) for step, share in reversed(leg.shares)),
    )


def _turned(step: Step) -> Step:
    return Step(step.link, step.target, step.source)
