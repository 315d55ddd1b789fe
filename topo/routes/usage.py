"""What a payload byte uses: bytes through every resource, leg by leg.

Everything is counted here and nowhere else: link directions, card chips, storage sides, memory
buses, GPU memories, copying, stated peer-to-peer caps, measured pairs and shared stages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from topo.catalogue.part import Figure
from topo.topology.resources import Capacity, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from topo.catalogue.part import PeerCap, PeerCaps
    from topo.description.description import DataPath, Measurement
    from topo.errors import Place
    from topo.routes.route import Direction, Subflow, Transfer
    from topo.topology.topology import Topology


_CARDS = ("nic", "dpu")
# The resource of its own that data meets where it rests; storage has one for each direction.
_SIDES = {
    "memory": "bus",
    "cxl-memory": "bus",
    "gpu": "hbm",
    "storage": "",
    "nvme": "",
    "hba": "",
}


def total_use(subflows: Iterable[Subflow]) -> dict[str, float]:
    """Return bytes through each resource for a payload byte, over branches with their shares."""
    use: dict[str, float] = {}
    for subflow in subflows:
        for transfer in subflow.transfers:
            for resource, weight in transfer.use.items():
                use[resource] = use.get(resource, 0.0) + subflow.share * weight
    return use


def is_peer(topology: Topology, transfer: Transfer) -> bool:
    """Whether a leg is device-to-device: a DMA engine at the memory of a GPU not its own."""
    ends = {topology[transfer.source].kind, topology[transfer.target].kind}
    if transfer.move.mover in ("nic", "drive"):
        return "gpu" in ends
    return ends == {"gpu"} and any(step.link.layer == "host" for step, _ in transfer.shares)


@dataclass(frozen=True, slots=True)
class PeerSite:
    """A place on a peer-to-peer leg that states caps, and its share of the leg's bytes."""

    name: str
    caps: PeerCaps
    share: float
    device: str
    place: Place

    def cap(self, way: Literal["posted", "non-posted"]) -> PeerCap | None:
        """Return the cap of one direction of DMA, `None` when none is stated."""
        return self.caps.posted if way == "posted" else self.caps.non_posted


def dma_way(topology: Topology, transfer: Transfer) -> Literal["posted", "non-posted"]:
    """Return PCIe's word for a peer-to-peer leg: into a GPU is posted, out of one non-posted."""
    return "posted" if topology[transfer.target].kind == "gpu" else "non-posted"


def peer_sites(topology: Topology, transfer: Transfer) -> Iterator[PeerSite]:
    """Yield each place on a peer-to-peer leg that states caps: both ends and what is between."""
    inside = [(step, share) for step, share in transfer.shares if step.link.layer == "host"]
    passed: dict[str, float] = {}
    for step, share in inside:
        passed[step.target] = passed.get(step.target, 0.0) + share
    for end in (transfer.engine, transfer.source, transfer.target):
        if topology[end].kind not in ("storage", "memory"):
            passed.setdefault(end, 1.0)
    for name, share in passed.items():
        caps = topology[name].part.peer_caps
        if caps is not None:
            yield PeerSite(name, caps, share, name, topology[name].place)
    for step, share in inside:
        caps, way = step.link.cable.p2p, step.resource
        if caps is not None and way is not None:
            yield PeerSite(way.name, caps, share, step.source, step.link.place)


def measured_pairs(topology: Topology) -> dict[tuple[str, str], Measurement]:
    """Return the measured rates between devices that no link joins."""
    return {
        (seen.source, seen.target): seen
        for seen in topology.description.measurements
        if seen.source in topology
        and all(step.target != seen.target for step in topology.steps[seen.source])
    }


class UseBuilder:
    """Counts the use of one route's legs and gathers the resources that exist only for routes.

    Parameters
    ----------
    topology
        The machine.
    path, direction
        What is laid.
    pairs
        What `measured_pairs` gives.
    """

    def __init__(
        self,
        topology: Topology,
        path: DataPath,
        direction: Direction,
        pairs: Mapping[tuple[str, str], Measurement],
    ) -> None:
        self._topology = topology
        self._path = path
        self._direction = direction
        self._pairs = pairs
        self.extra: dict[str, Resource] = {}

    def with_use(self, subflow: Subflow) -> Subflow:
        """Return `branch` with the use of each of its legs filled in."""
        transfers = tuple(
            replace(transfer, use=self._use(transfer, subflow)) for transfer in subflow.transfers
        )
        return replace(subflow, transfers=transfers)

    def _use(self, transfer: Transfer, subflow: Subflow) -> dict[str, float]:
        use = self._steps(transfer)
        own = chain(
            self._ends(transfer),
            self._engine(transfer, subflow),
            self._peer(transfer),
            self._measured(transfer) if self._pairs else (),
            self._stage(transfer),
        )
        for resource, weight in own:
            if resource in self._topology.resources or resource in self.extra:
                use[resource] = use.get(resource, 0.0) + weight
        return use

    def _steps(self, transfer: Transfer) -> dict[str, float]:
        """Return the use of link directions; a memory's link has none of its own."""
        use: dict[str, float] = {}
        for step, share in transfer.shares:
            way = step.resource
            if way is not None:
                use[way.id] = use.get(way.id, 0.0) + share
        return use

    def _ends(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield the sides of storage, the memory buses and the GPU memories at a leg's ends."""
        for name in (transfer.source, transfer.target):
            side = _SIDES.get(self._topology.devices[name].part.kind)
            if side is not None:
                yield f"{name}/{side or self._direction}", 1.0

    def _engine(self, transfer: Transfer, subflow: Subflow) -> Iterator[tuple[str, float]]:
        kind = self._topology[transfer.engine].kind
        if kind in _CARDS:
            yield f"{transfer.engine}/chip {'in' if self._direction == 'read' else 'out'}", 1.0
        elif kind == "hba" and transfer.engine != subflow.storage:
            yield f"{transfer.engine}/{self._direction}", 1.0
        elif transfer.move.mover == "core":
            yield f"{transfer.engine}/copy", 1.0

    def _peer(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        if not is_peer(self._topology, transfer):
            return
        way = dma_way(self._topology, transfer)
        for site in peer_sites(self._topology, transfer):
            cap = site.cap(way)
            if cap is not None:
                yield self._cap(transfer, site, cap, way), site.share

    def _cap(
        self, transfer: Transfer, site: PeerSite, cap: PeerCap, way: Literal["posted", "non-posted"]
    ) -> str:
        gpu = transfer.target if way == "posted" else transfer.source
        flow = f" ({transfer.engine}, {gpu})" if cap.per_flow else ""
        return self._add(
            Resource(
                name=f"{site.name}/p2p{flow}",
                direction=way,
                kind="peer-to-peer",
                capacity=Capacity(theoretical=cap.rate),
                device=site.device,
                limited_by="stated peer-to-peer cap",
                place=site.place,
            )
        )

    def _measured(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield the pairs with a measured rate that no single link stands for."""
        ends = {
            (source, target): None
            for source in (transfer.source, transfer.engine)
            for target in (transfer.target, transfer.engine)
        }
        for seen in (self._pairs[pair] for pair in ends if pair in self._pairs):
            yield (
                self._add(
                    Resource(
                        name=f"{seen.source} -> {seen.target}",
                        direction="measured",
                        kind="measured-pair",
                        capacity=Capacity(theoretical=_NO_LIMIT, measured=seen.rate),
                        device=seen.source,
                        limited_by="measured",
                        place=seen.place,
                    )
                ),
                1.0,
            )

    def _stage(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield the stage's own rate where the data path states one that all workers share."""
        move = transfer.move
        if move.rate is None or move.per_worker:
            return
        yield (
            self._add(
                Resource(
                    name=f"{self._path.name}/{move.source} -> {move.target}",
                    kind="stage",
                    capacity=Capacity(theoretical=move.rate),
                    device="",
                    limited_by=f"data path {self._path.name}",
                    place=self._path.place,
                )
            ),
            1.0,
        )

    def _add(self, resource: Resource) -> str:
        self.extra.setdefault(resource.id, resource)
        return resource.id


_NO_LIMIT = Figure(math.inf, "formula", "no limit of its own beyond its links")
