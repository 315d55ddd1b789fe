"""Lay a data path on a topology: legs, branches, what each payload byte uses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from topo.datapaths.registry import is_ram
from topo.errors import Finding, UnknownNameError
from topo.routes.route import Policy, Reason, Route, Subflow, Transfer, merged, waypoints
from topo.routes.search import Chooser, Search, passes_gpu_fabric, passes_host, passes_network
from topo.routes.usage import UseBuilder, measured_pairs, total_use
from topo.routes.verdict import peer_reasons, routing_reason, stated_needs, verdict_of, wrong_ends
from topo.topology.locality import socket_of
from topo.topology.topology import Step

if TYPE_CHECKING:
    from topo.description.description import DataPath, Move
    from topo.routes.route import Direction, EqualCostPaths
    from topo.topology.topology import Topology


class Router:
    """Lays data paths on one topology under one policy, remembering every search.

    Parameters
    ----------
    topology
        The machine.
    policy
        How to choose among cards, memories and equal walks.

    Raises
    ------
    UnknownNameError
        If the policy places a buffer in what is no memory of the machine.
    """

    def __init__(self, topology: Topology, policy: Policy | None = None) -> None:
        self.topology = topology
        self.policy = policy or Policy()
        _check_places(topology, self.policy)
        spread = self.policy.routes == "spread"
        self._host = Search(topology, ("host", "memory"), passes_host, spread=spread)
        self._network = Search(topology, ("network",), passes_network, spread=spread)
        self._fabric = Search(topology, ("gpu",), passes_gpu_fabric, spread=spread)
        self._near = Chooser(topology, host=self._host, network=self._network, fabric=self._fabric)
        self._measured = measured_pairs(topology)

    def route(
        self, path: DataPath, storages: tuple[str, ...], gpu: str, direction: Direction = "read"
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
        reasons = (
            *wrong_ends(self.topology, path, storages),
            *stated_needs(self.topology, path, storages, gpu, direction),
        )
        if verdict_of(reasons) != "refused":
            reasons = (*reasons, *self._diverted(path, storages, gpu))
        if verdict_of(reasons) == "refused":
            return _refused(path, gpu, direction, reasons)
        subflows: list[Subflow] = []
        for storage in storages:
            found = self._branches(path, storage, gpu, direction)
            if isinstance(found, Reason):
                return _refused(path, gpu, direction, (*reasons, found))
            subflows.extend(replace(one, share=one.share / len(storages)) for one in found)
        return self._finish(path, gpu, direction, tuple(subflows), reasons)

    def _diverted(self, path: DataPath, storages: tuple[str, ...], gpu: str) -> tuple[Reason, ...]:
        """Return what cuFile's dynamic routing makes of a direct path from remote storage."""
        remote = [name for name in storages if self.topology[name].kind == "storage"]
        direct = "cufile" in path.needs and len(path.moves) == 1
        if not direct or not remote or not self.topology.settings.dynamic_routing:
            return ()
        joined = set(self._fabric.distances(gpu))
        found = (
            routing_reason(
                self.topology,
                self._near.cards(storage, gpu),
                self._cards(storage, gpu),
                gpu,
                joined,
            )
            for storage in remote
        )
        return merged(reason for reason in found if reason is not None)

    def reweighted(self, route: Route, shares: tuple[float, ...]) -> Route:
        """Return `route` with its branches carrying other shares; a share of 0 drops one."""
        kept = tuple(
            replace(subflow, share=share)
            for subflow, share in zip(route.subflows, shares, strict=True)
            if share > 0
        )
        return replace(
            route,
            subflows=kept,
            use=total_use(kept),
            waypoints=waypoints(self.topology, kept[0]),
        )

    def _finish(
        self,
        path: DataPath,
        gpu: str,
        direction: Direction,
        subflows: tuple[Subflow, ...],
        reasons: tuple[Reason, ...],
    ) -> Route:
        found = merged((*reasons, *peer_reasons(self.topology, subflows)))
        verdict = verdict_of(found)
        if verdict == "refused":
            return _refused(path, gpu, direction, found)
        builder = UseBuilder(self.topology, path, direction, self._measured)
        counted = tuple(builder.with_use(subflow) for subflow in subflows)
        return Route(
            data_path=path,
            direction=direction,
            gpu=gpu,
            verdict=verdict,
            reasons=found,
            subflows=counted,
            use=total_use(counted),
            extra=tuple(builder.extra.values()),
            waypoints=waypoints(self.topology, counted[0]),
        )

    # --- branches -------------------------------------------------------------------------------

    def _branches(
        self, path: DataPath, storage: str, gpu: str, direction: Direction
    ) -> tuple[Subflow, ...] | Reason:
        """Return one branch for each card and each choice of memories, or why there is none."""
        cards = self._cards(storage, gpu)
        if not cards:
            text = f"no network card reaches both {storage} and"
            return Reason("no-way", "refused", text, about=(gpu,))
        subflows: list[Subflow] = []
        for card in cards:
            places = self._places(path, card or storage, gpu)
            if not places:
                text = "the file has no system RAM for the buffers within reach of"
                return Reason("no-memory", "refused", text, about=(gpu,))
            share = 1.0 / len(cards) / len(places)
            for place in places:
                transfers = self._legs(path, card, {path.far_end: storage, "gpu": gpu, **place})
                if transfers is None:
                    text = f"no permitted way joins {storage} and"
                    return Reason("no-way", "refused", text, about=(gpu,))
                if direction == "write":
                    transfers = tuple(_backwards(transfer) for transfer in reversed(transfers))
                memories = tuple((end, name) for end, name in place.items() if is_ram(end))
                subflows.append(Subflow(share, storage, card, memories, transfers))
        return tuple(subflows)

    def _cards(self, storage: str, gpu: str) -> tuple[str, ...]:
        """Return the cards that carry the data; a local drive needs none, and has ``""``."""
        if self.topology[storage].kind != "storage":
            return ("",)
        if self.policy.nics == "nearest":
            return self._near.nearest_cards(storage, gpu)
        return self._near.cards(storage, gpu)

    def _places(self, path: DataPath, near_storage: str, gpu: str) -> list[dict[str, str]]:
        """Return every choice of a memory for each buffer and of a staging GPU, if one is used.

        Buffers that the policy puts in one place share a choice.
        """
        ends = dict.fromkeys(end for move in path.moves for end in (move.source, move.target))
        wanted = {
            end: self.policy.place_of(end) if is_ram(end) else end
            for end in ends
            if end not in ("storage", "peer", "gpu")
        }
        options = {
            place: self._options(place, near_storage, gpu)
            for place in dict.fromkeys(wanted.values())
        }
        choices = (dict(zip(options, chosen, strict=True)) for chosen in product(*options.values()))
        return [{end: chosen[place] for end, place in wanted.items()} for chosen in choices]

    def _options(self, place: str, near_storage: str, gpu: str) -> tuple[str, ...]:
        """Return the devices that a place means; equally good ones share the traffic."""
        if place == "near-gpu":
            return self._near.memories_near(gpu)
        if place == "near-nic":
            return self._near.memories_near(near_storage)
        if place == "staging-gpu":
            gpus = self._near.staging_gpus(near_storage, gpu)
            return gpus if self.policy.routes == "spread" else gpus[:1]
        return (place,)

    # --- legs -----------------------------------------------------------------------------------

    def _legs(
        self, path: DataPath, card: str, where: dict[str, str]
    ) -> tuple[Transfer, ...] | None:
        """Return the moves between the devices that `where` names for their ends."""
        gpu = where["gpu"]
        transfers: list[Transfer] = []
        for move in path.moves:
            source, target = where[move.source], where[move.target]
            if source == target == gpu:  # no GPU is nearer: nothing is staged
                continue
            transfer = self._leg(move, source, target, card, gpu)
            if transfer is None:
                return None
            transfers.append(transfer)
        return tuple(transfers)

    def _leg(self, move: Move, source: str, target: str, card: str, gpu: str) -> Transfer | None:
        """Return one move between two devices, `None` when no walk joins them."""
        if source == target:
            engine = gpu if move.mover == "gpu" else socket_of(self.topology, source)
            return Transfer(move, engine, source, target)
        if move.mover in ("nic", "drive"):
            return self._device_leg(move, source, target, card)
        if {self.topology[source].kind, self.topology[target].kind} == {"gpu"}:
            return self._gpu_leg(move, source, target)
        ways = self._host.ways(source, target)
        if ways is None:
            return None
        engine = self._gpu_of(source, target, gpu)
        if move.mover != "gpu":
            engine = socket_of(self.topology, target)
        return _leg(move, engine, source, target, (ways,))

    def _gpu_of(self, source: str, target: str, gpu: str) -> str:
        """Return the GPU whose copy engine moves: the one at an end of the move."""
        return next((end for end in (source, target) if self.topology[end].kind == "gpu"), gpu)

    def _gpu_leg(self, move: Move, source: str, target: str) -> Transfer | None:
        """Return a move between two GPUs, by GPU links or by PCIe; the source's engine writes."""
        if move.over == "pcie":
            inside, sent_up_by = self._peer_ways(source, target)
            return _leg(move, source, source, target, inside, sent_up_by) if inside else None
        ways = self._fabric.ways(source, target)
        return None if ways is None else _leg(move, source, source, target, (ways,))

    def _device_leg(self, move: Move, source: str, target: str, card: str) -> Transfer | None:
        """Return a move by the storage's side: over the wire to the card, then inside the host."""
        engine = card or source
        inside, sent_up_by = self._peer_ways(engine, target)
        if not inside:
            return None
        if not card:
            engine = _drive_engine(self.topology, inside, source)
            return _leg(move, engine, source, target, inside, sent_up_by)
        wire = self._network.ways(source, card)
        if wire is None:
            return None
        return _leg(move, card, source, target, (wire, *inside), sent_up_by)

    def _peer_ways(self, engine: str, target: str) -> tuple[tuple[EqualCostPaths, ...], str]:
        """Return the ways from a DMA engine into RAM or a GPU, and what sends it by the root.

        Peer-to-peer traffic that would turn round at a switch with ACS redirect goes up to the
        root and back, over the uplink twice.
        """
        ways = self._host.ways(engine, target)
        if ways is None:
            return (), ""
        meeting = self.topology.tree.meeting(engine, target)
        hangs_on = self.topology.tree.attachment(engine)
        if meeting and hangs_on and self.topology[meeting].part.flag("acs"):
            up = self._host.ways(engine, hangs_on.root)
            down = self._host.ways(hangs_on.root, target)
            assert up is not None, "the engine hangs on its root"
            assert down is not None, "so does what it meets below the root"
            return (up, down), meeting
        return (ways,), ""


def _check_places(topology: Topology, policy: Policy) -> None:
    for buffer, place in policy.buffers:
        if place in ("near-gpu", "near-nic") or topology[place].kind in ("memory", "cxl-memory"):
            continue
        message = f"{buffer} buffers lie near-gpu, near-nic or in a memory, and {place} is none"
        raise UnknownNameError(Finding("unknown-name", message))


def _refused(path: DataPath, gpu: str, direction: Direction, reasons: tuple[Reason, ...]) -> Route:
    return Route(path, direction, gpu, "refused", reasons)


def _drive_engine(topology: Topology, ways: tuple[EqualCostPaths, ...], drive: str) -> str:
    """Return the engine that moves a drive's data: its controller card's if it has one."""
    for way in ways:
        for step in way.example:
            if topology[step.target].kind == "hba":
                return step.target
    return drive


def _leg(
    move: Move,
    engine: str,
    source: str,
    target: str,
    ways: tuple[EqualCostPaths, ...],
    sent_up_by: str = "",
) -> Transfer:
    """Return a leg over consecutive ways."""
    return Transfer(
        move=move,
        engine=engine,
        source=source,
        target=target,
        walk=tuple(step for way in ways for step in way.example),
        shares=tuple(shared for way in ways for shared in way.shares),
        alternatives=prod(way.count for way in ways),
        sent_up_by=sent_up_by,
    )


def _backwards(transfer: Transfer) -> Transfer:
    """Return the leg of a write: the same steps walked the other way."""
    return replace(
        transfer,
        move=replace(transfer.move, source=transfer.move.target, target=transfer.move.source),
        source=transfer.target,
        target=transfer.source,
        walk=tuple(_turned(step) for step in reversed(transfer.walk)),
        shares=tuple((_turned(step), share) for step, share in reversed(transfer.shares)),
    )


def _turned(step: Step) -> Step:
    return Step(step.link, step.target, step.source)
