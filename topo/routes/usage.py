"""What a payload byte uses: bytes through every resource, transfer by transfer.

Everything is counted here and nowhere else: link directions, card chips, storage sides, memory
buses, GPU memories, copying, stated peer-to-peer caps, measured pairs and shared stages.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from topo.catalogue.kinds import Kind
from topo.catalogue.part import Figure
from topo.description.description import Basis, DataPath, Device, Measurement
from topo.routes.route import Route, Subflow, Transfer
from topo.topology.joint import quadrant_of
from topo.topology.locality import socket_of
from topo.topology.resources import Capacity, Resource
from topo.topology.topology import Step, Topology

# The resource of its own that data meets where it rests; storage has one for each direction.
_SIDES: Final[Mapping[Kind, str]] = {
    "memory": "bus",
    "cxl-memory": "bus",
    "gpu": "hbm",
    "storage": "",
    "nvme": "",
    "hba": "",
}
_POSTED: Final = "posted-to-roots"
_WHOLE: Final = 1 - 1e-9  # shares that add up to so much are all
_NO_LIMIT: Final = Figure(math.inf, "formula", "no limit of its own beyond its links")


def total_use(subflows: Iterable[Subflow]) -> dict[str, float]:
    """Return bytes through each resource for a payload byte, over subflows with their shares."""
    use: dict[str, float] = {}
    for subflow in subflows:
        for transfer in subflow.transfers:
            for resource, weight in transfer.use.items():
                use[resource] = use.get(resource, 0.0) + subflow.share * weight
    return use


def alone(subflows: Sequence[Subflow]) -> list[Subflow]:
    """Return some subflows as if they carried everything."""
    whole = math.fsum(subflow.share for subflow in subflows)
    return [replace(subflow, share=subflow.share / whole) for subflow in subflows]


def measured_pairs(topology: Topology) -> dict[tuple[str, str], Measurement]:
    """Return the measured rates between devices that no link joins."""
    return {
        (rate.source, rate.target): rate
        for rate in topology.description.measurements
        if rate.source in topology
        and all(step.target != rate.target for step in topology.steps[rate.source])
    }


def drives_behind(topology: Topology, card: str) -> dict[str, tuple[str, ...]]:
    """Return the drives behind a RAID card, each with the devices from it up to the card."""
    drives: dict[str, tuple[str, ...]] = {}
    for drive in topology.of_kind("nvme"):
        attachment = topology.tree.attachment(drive.name)
        if attachment is not None and card in attachment.bridges:
            above = attachment.bridges.index(card) + 1
            drives[drive.name] = attachment.bridges[:above]
    return drives


# --- peer to peer ---------------------------------------------------------------------------------


def is_peer(topology: Topology, transfer: Transfer) -> bool:
    """Whether a transfer is device-to-device: a DMA engine at what is neither its own nor RAM."""
    ends = [topology[transfer.source], topology[transfer.target]]
    if transfer.move.mover in ("nic", "drive"):
        return not any(device.is_memory for device in ends)
    kinds = {device.kind for device in ends}
    return kinds == {"gpu"} and any(step.link.layer == "host" for step, _ in transfer.shares)


def is_posted(topology: Topology, transfer: Transfer) -> bool:
    """Whether a peer transfer's engine writes into a device, to PCIe posted, or reads from it."""
    kinds = [topology[end].kind for end in (transfer.source, transfer.target)]
    if "gpu" in kinds:
        return kinds[-1] == "gpu"
    return transfer.target != transfer.engine


def stated_caps(topology: Topology, transfer: Transfer) -> Iterator[tuple[Resource, float]]:
    """Yield the caps that places on a peer transfer state, with their shares of its bytes.

    In its direction, of both ends and of what is between: to PCIe, what goes into a GPU is posted,
    what comes out of one non-posted.
    """
    posted = is_posted(topology, transfer)
    gpu = transfer.target if posted else transfer.source

    in_host = [(step, share) for step, share in transfer.shares if step.link.layer == "host"]
    passed: dict[str, float] = {}
    for step, share in in_host:
        passed[step.target] = passed.get(step.target, 0.0) + share
    for end in (transfer.engine, transfer.source, transfer.target):
        elsewhere = topology[end].is_nic and end != transfer.engine
        if topology[end].kind not in ("storage", "memory") and not elsewhere:
            passed.setdefault(end, 1.0)
    caps_by_place = [
        (name, topology[name].part.peer_caps, name, topology[name].place, share)
        for name, share in passed.items()
    ]
    caps_by_place += [
        (step.resource.name, step.link.cable.p2p, step.source, step.link.place, share)
        for step, share in in_host
        if step.resource is not None
    ]
    for name, caps, device, place, share in caps_by_place:
        if caps is None:
            continue
        cap = caps.posted if posted else caps.non_posted
        if cap is None:
            continue
        flow = f" ({transfer.engine}, {gpu})" if cap.per_flow else ""
        capped = Resource(
            name=f"{name}/p2p{flow}",
            direction="posted" if posted else "non-posted",
            kind="peer-to-peer",
            capacity=Capacity(theoretical=cap.rate),
            device=device,
            limited_by="stated peer-to-peer cap",
            place=place,
        )
        yield capped, share


def over_pcie(topology: Topology, transfer: Transfer) -> bool:
    """Whether a peer transfer meets its GPUs by PCIe; chip-to-chip links are the CPU's own."""
    ends = ((transfer.source, transfer.walk[:1]), (transfer.target, transfer.walk[-1:]))
    at_gpus = (step for name, steps in ends for step in steps if topology[name].kind == "gpu")
    return all(step.link.cable.family == "pcie" for step in at_gpus)


def hosts_between(topology: Topology, transfer: Transfer) -> tuple[str, ...]:
    """Return the hosts by which a transfer goes from one root complex to another, or nothing.

    Each PCIe link of a CPU is a root complex of its own, where no `root-complex` says otherwise.
    """
    steps = list(transfer.walk)
    if len(transfer.shares) != len(steps):  # several walks
        steps += [step for step, _ in transfer.shares]
    passed = (name for step in steps for name in (step.source, step.target))
    hosts = tuple(dict.fromkeys(name for name in passed if topology[name].is_host))
    if len(hosts) == 1:
        (host,) = hosts
        links = {id(step.link) for step in steps if host in (step.source, step.target)}
        if topology[host].kind == "root-complex" or len(links) == 1:
            return ()
    return hosts


def dma_limits_of(topology: Topology, transfer: Transfer) -> Iterator[tuple[Step, float, Resource]]:
    """Yield steps of a transfer, with their shares, and what devices get of these links.

    Cores get all of them, and caps that the whole transfer states say what passes.
    """
    if not topology.dma_limits or transfer.move.mover == "core":
        return
    caps = stated_caps(topology, transfer) if is_peer(topology, transfer) else ()
    if math.fsum(share for _, share in caps) > _WHOLE:
        return
    for step, share in transfer.shares:
        limit = topology.dma_limits.get(step.resource.id) if step.resource is not None else None
        if limit is not None:
            yield step, share, limit


def unstated_cap(
    topology: Topology, transfer: Transfer, stated: float, measured: Figure | None = None
) -> Resource | None:
    """Return the cap of a flow between root complexes that no place on its way states, if any.

    Its rate is unknown, and `achievable` what the CPU's generation is taken for where somebody
    published that. A flow is one DMA engine and one GPU, not the engine's own. `stated` is how much
    of the transfer meets caps that are stated.
    """
    hosts = hosts_between(topology, transfer) if stated <= _WHOLE else ()
    if not hosts or not over_pcie(topology, transfer):
        return None
    from topo.topology.rules import peer_flow  # few machines need it

    sockets = dict.fromkeys(socket_of(topology, host) for host in hosts)
    posted = is_posted(topology, transfer)
    published = peer_flow(topology, sockets)
    if published is not None and not posted and len(sockets) > 1:
        # A read crosses the socket link twice and waits; of writes no answer is waited for.
        source = f"no more than what a write gets, {published.source}"
        published = replace(published, at_most=True, source=source)
    gpu, far = (transfer.target, transfer.source)[:: 1 if posted else -1]
    way = hosts[0] if len(hosts) == 1 else f"{hosts[0]} -> {hosts[-1]}"
    return Resource(
        name=f"{way}/p2p ({transfer.engine}, {far if gpu == transfer.engine else gpu})",
        direction="posted" if posted else "non-posted",
        kind="peer-to-peer",
        capacity=Capacity(
            theoretical=Figure(None, "quoted", "no peer-to-peer cap is stated"),
            achievable=published,
            measured=measured,
        ),
        device=hosts[0],
        limited_by="peer-to-peer traffic between root complexes",
    )


# --- quadrants of a CPU ---------------------------------------------------------------------------


def _quadrant_use(topology: Topology, transfer: Transfer) -> dict[str, float]:
    """Return what a transfer passes between a quadrant's PCIe links and the rest of the CPU.

    Of what enters by a quadrant the part that leaves by it stays inside.
    """
    passing: dict[str, dict[str, dict[str, float]]] = {}  # by CPU, direction and quadrant
    for step, share in transfer.shares:
        sides = ((step.target, "in", step.entry_side), (step.source, "out", step.exit_side))
        for name, direction, side in sides:
            cpu = topology[name]
            if cpu.part.kind == "cpu" and cpu.part.figure("quadrant"):
                quadrant = quadrant_of(cpu, side) if step.link.cable.family == "pcie" else ""
                shares = passing.setdefault(name, {"in": {}, "out": {}})[direction]
                shares[quadrant] = shares.get(quadrant, 0.0) + share
    use: dict[str, float] = {}
    for name, shares_by_direction in passing.items():
        for direction, back in (("in", "out"), ("out", "in")):
            returning = shares_by_direction[back]
            whole = math.fsum(returning.values())
            for quadrant, share in shares_by_direction[direction].items():
                stays = returning.get(quadrant, 0.0) / whole if whole else 0.0
                if quadrant and stays < 1:
                    use[f"{name}/{quadrant} {direction}"] = share * (1 - stays)
    return use


# --- what several transfers fill together ---------------------------------------------------------


def joint_resources(
    topology: Topology, routes: Sequence[Route], basis: Basis
) -> dict[str, Resource]:
    """Return by their ids the resources that limit only what several transfers do at once.

    A link both ways, beyond theory, where data goes either way. A switch's posted writes to root
    ports, where two or more devices behind it write to GPUs behind two or more: one device alone
    was measured to be as fast as its link. Quadrants of a CPU that links do not name, where
    together they pass more than one does.
    """
    joint: dict[str, Resource] = {}
    of_directions = [topology.both_ways] if basis != "theoretical" else []
    for shared in filter(None, (*of_directions, topology.unplaced)):
        used = dict.fromkeys(name for route in routes for name in route.use)
        rates: dict[str, list[float]] = {}
        for name in used:
            if name in shared:
                rate = topology.resources[name].capacity.rate(basis)
                rates.setdefault(shared[name].id, []).append(rate)
        joint |= {
            resource.id: resource
            for resource in dict.fromkeys(shared[name] for name in used if name in shared)
            if len(rates[resource.id]) > 1
            and math.fsum(rates[resource.id]) > _least_of(topology, resource, basis)
        }
    if any(switch.part.figure(_POSTED) for switch in topology.of_kind("pcie-switch")):
        ports: dict[str, set[str]] = {}
        writers: dict[str, set[str]] = {}
        for route in routes:
            for subflow in route.subflows:
                for transfer in subflow.transfers:
                    for cap, port in _posted_to_root(topology, transfer):
                        ports.setdefault(cap, set()).add(port)
                        writers.setdefault(cap, set()).add(transfer.source)
        joint |= {
            cap: topology.resources[cap]
            for cap, to in ports.items()
            if len(to) > 1 and len(writers[cap]) > 1
        }
    return joint


def joint_use(
    topology: Topology,
    joint: Container[str],
    use: Mapping[str, float],
    subflows: Iterable[Subflow],
) -> dict[str, float]:
    """Return bytes through each of the `joint` resources for a payload byte.

    `use` is that of `subflows` with their shares.
    """
    weights: dict[str, float] = {}
    for shared in filter(None, (topology.both_ways, topology.unplaced)):
        for name, weight in use.items():
            resource = shared.get(name)
            if resource is not None and resource.id in joint:
                weights[resource.id] = weights.get(resource.id, 0.0) + weight
    for subflow in subflows:
        for transfer in subflow.transfers:
            for cap, _ in _posted_to_root(topology, transfer):
                if cap in joint:
                    weights[cap] = weights.get(cap, 0.0) + subflow.share
    return weights


def _least_of(topology: Topology, resource: Resource, basis: Basis) -> float:
    """Return what a joint resource passes at the least: where it is unknown, one quadrant."""
    figure = topology[resource.device].part.figure("quadrant")
    if resource.kind != "quadrant" or figure is None or figure.value is None:
        return resource.capacity.rate(basis)
    return figure.value


def _posted_to_root(topology: Topology, transfer: Transfer) -> Iterator[tuple[str, str]]:
    """Yield the caps of the switches by which a peer writes to another root port, and that port."""
    if topology[transfer.target].kind != "gpu" or not is_peer(topology, transfer):
        return
    in_host = [topology[step.source].is_host for step in transfer.walk]
    if not any(in_host):
        return
    down = len(in_host) - 1 - in_host[::-1].index(True)  # the last step out of a host
    up = in_host.index(True) - 1
    if transfer.walk[up].link is transfer.walk[down].link:  # sent up by ACS, and back
        return
    for step in transfer.walk[: up + 1]:
        cap = f"{step.source}/{_POSTED}"
        if cap in topology.resources:
            yield cap, transfer.walk[down].link.name


# --- the use of one route -------------------------------------------------------------------------


class UseBuilder:
    """Counts the use of routes' transfers and gathers the resources that only routes have.

    Parameters
    ----------
    topology
        The machine.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._pairs = measured_pairs(topology)
        self._extra: dict[str, Resource] = {}
        self._of_halves: dict[tuple[int, str], tuple[Transfer, Transfer, dict[str, Resource]]] = {}
        self._drives: dict[str, dict[str, tuple[str, ...]]] = {}
        cpus = topology.of_kind("cpu")
        self._by_quadrants = any(cpu.part.figure("quadrant") for cpu in cpus)

    def counted(
        self, path: DataPath, subflows: Iterable[Subflow], *, shared: bool = False
    ) -> tuple[tuple[Subflow, ...], tuple[Resource, ...]]:
        """Return the subflows of a route with their use, and the resources that only it has.

        `shared` is whether other routes have the transfers of another server's data in common.
        """
        self._path, self._extra, self._shared = path, {}, shared
        used = tuple(map(self._with_use, subflows))
        return used, tuple(self._extra.values())

    def _with_use(self, subflow: Subflow) -> Subflow:
        """Return `subflow` with the use of each of its transfers filled in."""
        used = self._known_or_used if self._shared and subflow.target_card else self._used
        transfers = [used(transfer) for transfer in subflow.transfers]
        if subflow.target_card and not subflow.memories:  # it rests nowhere between the two ends
            measured = self._pairs.get((transfers[0].source, transfers[-1].target))
            if measured is not None:
                use = {**transfers[-1].use, self._add(_measured_pair(measured)): 1.0}
                transfers[-1] = replace(transfers[-1], use=use)
        return replace(subflow, transfers=tuple(transfers))

    def _known_or_used(self, transfer: Transfer) -> Transfer:
        """Return a transfer with its use, counted once for all routes that have it in common."""
        key = (id(transfer), self._path.name)
        if key not in self._of_halves:
            others, self._extra = self._extra, {}
            # the transfer is kept, so that no other takes its identity
            self._of_halves[key] = (transfer, self._used(transfer), self._extra)
            self._extra = others
        _, used, extra = self._of_halves[key]
        self._extra |= {name: each for name, each in extra.items() if name not in self._extra}
        return used

    def _used(self, transfer: Transfer) -> Transfer:
        """Return a transfer with its use."""
        use: dict[str, float] = {}
        for step, share in transfer.shares:
            if step.resource is not None:  # a memory's link has none of its own
                use[step.resource.id] = use.get(step.resource.id, 0.0) + share
        if self._by_quadrants:
            use |= _quadrant_use(self._topology, transfer)
        for resource, weight in self._weights(transfer):
            known = self._topology.resources.get(resource) or self._extra.get(resource)
            if known is not None:  # where the device stands for several, one of them
                each = weight / self._topology.cell_size(known.device)
                use[resource] = use.get(resource, 0.0) + each
        return replace(transfer, use=use)

    def _weights(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield what a transfer may use besides its links' directions, by name."""
        # The sides of storage, the memory buses and the GPU memories at both ends.
        source, target = self._topology[transfer.source], self._topology[transfer.target]
        for device, direction in ((source, "read"), (target, "write")):
            side = _SIDES.get(device.kind)
            if side is not None:
                yield f"{device.name}/{side or direction}", 1.0
            yield from self._behind(device, direction)
        engine, move = self._topology[transfer.engine], transfer.move
        from_storage = source.is_storage or source.is_nic
        if engine.is_nic:
            inward = from_storage and target.name != engine.name
            yield f"{engine.name}/chip {'in' if inward else 'out'}", 1.0
        elif engine.kind == "hba" and engine.name not in (transfer.source, transfer.target):
            yield f"{engine.name}/{'read' if from_storage else 'write'}", 1.0
        elif move.mover == "core":
            yield f"{engine.name}/copy", 1.0
        if move.mover != "core":
            yield from self._device_caps(transfer)
        if self._pairs:
            yield from self._measured(transfer)
        # The stage's own rate where the data path states one that all workers share.
        if move.rate is not None and not move.per_worker:
            stage = Resource(
                name=f"{self._path.name}/{move.source} -> {move.target}",
                kind="stage",
                capacity=Capacity(theoretical=move.rate),
                device="",
                limited_by=f"data path {self._path.name}",
                place=self._path.place,
            )
            yield self._add(stage), 1.0

    def _device_caps(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield the caps on what a device's engine moves: peer to peer, and over socket links."""
        measured = next((pair.rate for pair in self._measurements(transfer)), None)
        stated = 0.0
        if is_peer(self._topology, transfer):
            for cap, share in stated_caps(self._topology, transfer):
                stated += share
                yield self._add(cap), share
            unstated = unstated_cap(self._topology, transfer, stated, measured)
            if unstated is not None:
                yield self._add(unstated), 1.0
        for _, share, limit in dma_limits_of(self._topology, transfer):
            if measured is None:
                yield self._add(limit), share
                continue
            name = f"{limit.name} ({transfer.source}, {transfer.target})"  # of these two ends alone
            capacity = replace(limit.capacity, measured=measured)
            yield self._add(replace(limit, name=name, capacity=capacity)), share

    def _behind(self, device: Device, direction: str) -> Iterator[tuple[str, float]]:
        """Yield what data of a RAID card meets behind it: it lies evenly on the card's drives."""
        if device.kind != "hba":
            return
        if device.name not in self._drives:
            self._drives[device.name] = drives_behind(self._topology, device.name)
        drives = self._drives[device.name]
        for drive, bridges in drives.items():
            yield f"{drive}/{direction}", 1.0 / len(drives)
            for below, above in pairwise((drive, *bridges)):
                steps = [step for step in self._topology.steps[below] if step.target == above]
                if direction == "write":
                    steps = [Step(step.link, above, below) for step in steps]
                for step in steps:
                    if step.resource is not None:
                        yield step.resource.id, 1.0 / len(drives) / len(steps)

    def _measurements(self, transfer: Transfer) -> Iterator[Measurement]:
        """Yield the rates that were measured between the ends of a transfer, or its engine."""
        ends = {
            (source, target): None
            for source in (transfer.source, transfer.engine)
            for target in (transfer.target, transfer.engine)
        }
        return (self._pairs[pair] for pair in ends if pair in self._pairs)

    def _measured(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yield the pairs with a measured rate that no single link stands for."""
        for measured in self._measurements(transfer):
            yield self._add(_measured_pair(measured)), 1.0

    def _add(self, resource: Resource) -> str:
        self._extra.setdefault(resource.id, resource)
        return resource.id


def _measured_pair(measured: Measurement) -> Resource:
    return Resource(
        name=f"{measured.source} -> {measured.target}",
        direction="measured",
        kind="measured-pair",
        capacity=Capacity(theoretical=_NO_LIMIT, measured=measured.rate),
        device=measured.source,
        limited_by="measured",
        place=measured.place,
    )
