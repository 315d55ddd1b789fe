"""Lay a data path on a topology: subflows, their transfers, what each payload byte uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import pairwise, product
from math import prod

from topo.datapaths.registry import data_path, halves, is_buffer
from topo.description.description import DataPath, Move, Target, Workload
from topo.description.names import ranged
from topo.limits import MOST_LINKS_OF_WAYS, MOST_SPLIT, MOST_WAYS, refuse_more
from topo.phrases import listed
from topo.records import dataclass
from topo.routes.route import (
    Direction,
    EqualCostPaths,
    Policy,
    Reason,
    Route,
    Subflow,
    Transfer,
    checked_policy,
    merged,
    waypoints,
)
from topo.routes.search import Placement, Search, passes_gpu_fabric, passes_host, passes_network
from topo.routes.usage import UseBuilder, total_use
from topo.routes.verdict import (
    KnownReasons,
    peer_reasons,
    routing_reason,
    stated_needs,
    verdict_of,
    wrong_ends,
)
from topo.topology.locality import socket_of
from topo.topology.topology import Step, Topology

End = tuple[tuple[str, ...], str, Direction]
"""Far ends, an endpoint, and its direction (`topo.flows.ends.Ends`)."""


@dataclass(frozen=True, slots=True)
class _Half:
    """A way of a far end's data inside its own host, to a card of that; nothing if it is here."""

    far: str
    share: float = 1.0
    card: str = ""
    places: dict[str, str] = field(default_factory=dict)
    transfers: tuple[Transfer, ...] = ()


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
        If the policy has a word that none has, or names a buffer or memory that is not there.
    """

    def __init__(self, topology: Topology, policy: Policy | None = None) -> None:
        self.policy = checked_policy(topology, policy or Policy())
        # Only even shares are the same for all that is alike.
        of_each = self.policy.pairing == "in-order"
        if self.policy.nics == "best" or self.policy.routes == "first" or of_each:
            topology = topology.written_out("a choice of cards or routes is made for")
        self.topology = topology
        spread = self.policy.routes == "spread"
        self._host = Search(topology, ("host", "memory"), passes_host, spread=spread)
        self._network = Search(topology, ("network",), passes_network, spread=spread)
        self._fabric = Search(topology, ("gpu",), passes_gpu_fabric, spread=spread)
        self._placement = Placement(
            topology, host=self._host, network=self._network, fabric=self._fabric
        )
        self._uses = UseBuilder(topology)
        self._asked = {True: 0, False: 0}  # by whether a linear program divides the bytes
        self._links = 0
        self._halves: dict[tuple[str, str, tuple[str, ...]], list[_Half]] = {}
        self._entering: dict[Hashable, tuple[Transfer, ...] | None] = {}
        self._peer_reasons: KnownReasons = {}

    def ways(self, pairs: Iterable[End]) -> int:
        """Return how many ways a question comes to, at least, without laying one."""
        return sum(
            max(len(self._cards(far, endpoint)), 1)
            for far_ends, endpoint, _ in pairs
            for far in far_ends
        )

    def routes(self, workload: Workload, path: DataPath, pairs: Sequence[End]) -> Iterator[Route]:
        """Yield the route of each pair of ends, unless they come to too much.

        Ways are counted before any is laid; their links as soon as one of each standing is: what
        has the same neighbours has as many.

        Raises
        ------
        DescriptionError
            If ways or links are too many with those that were laid before.
        """
        best = self.policy.nics == "best" and not workload.collective
        fewer = f"name fewer devices, {'leave out --nics best, ' * best}or ask about one path alone"
        if workload.collective:
            fewer = "ask about fewer GPUs: --over, or `over:` of the workload"
        self._asked[best] += self.ways(pairs)
        refuse_more(
            self._asked[best],
            MOST_SPLIT if best else MOST_WAYS,
            f"ways of data are asked for, with those of {workload.name} by {path.name}",
            fewer,
            place=workload.place,
        )

        def standing(end: End) -> Hashable:
            far, endpoint, _ = end
            return self._host.standing(endpoint), self._fabric.standing(endpoint), len(far)

        alike = Counter(map(standing, pairs))
        for end in pairs:
            far, endpoint, direction = end
            route = self.route(path, far, endpoint, direction, target=workload.target)
            links = sum(
                len(transfer.shares) for subflow in route.subflows for transfer in subflow.transfers
            )
            self._links += alike.pop(standing(end), 0) * links
            refuse_more(
                self._links,
                MOST_LINKS_OF_WAYS,
                f"links are on the ways of data that are asked for, with those of {workload.name} "
                f"by {path.name}",
                fewer,
                place=workload.place,
            )
            yield route

    def route(
        self,
        path: DataPath,
        far_ends: tuple[str, ...],
        endpoint: str,
        direction: Direction = "read",
        *,
        target: Target = "staged",
    ) -> Route:
        """Return `path` laid between `far_ends` and `endpoint`.

        Several far ends share the payload evenly, as a striped file does.

        Parameters
        ----------
        path
            The data path, as written for a read.
        far_ends, endpoint
            Names of devices: what is filled or emptied, and what it exchanges data with.
        direction
            ``read`` or ``write``; a write walks the same links the other way.
        target
            How drives of other hosts are reached inside those.

        Returns
        -------
        Route
            With the verdict ``refused`` and no subflows where something forbids it.
        """
        # Of what is in another host each half of the way is laid by moves of its own: those of the
        # data path up to the network, for a drive those of a storage server.
        apart = frozenset(name for name in far_ends if self.is_apart(name, endpoint))
        target_path, near_path = halves(path)
        elsewhere = {name for name in apart if target_path or self.topology[name].is_drive}
        remote = [
            name for name in far_ends if name in elsewhere or self.topology[name].kind == "storage"
        ]
        reasons = (
            *wrong_ends(self.topology, path, far_ends, endpoint),
            *stated_needs(self.topology, path, far_ends, remote, endpoint, direction),
        )
        if target_path is not None and verdict_of(reasons) != "refused":
            reasons = (*reasons, *self._not_between(far_ends, endpoint))
        elif target_path is None and elsewhere:
            target_path = data_path(self.topology.description, f"target-{target}")
            cut = [n for n in far_ends if n in elsewhere and not self._target_cards(n, endpoint)]
            if cut:
                reasons = (*reasons, _server_reason("other-server", cut, "another", endpoint))
        if verdict_of(reasons) != "refused":
            reasons = (*reasons, *self._diverted(path, far_ends, endpoint))
        if verdict_of(reasons) == "refused":
            return Route(path, direction, endpoint, "refused", reasons)
        subflows: list[Subflow] = []
        sizes = [self.topology.cell_size(far) for far in far_ends]
        for far, size in zip(far_ends, sizes, strict=True):
            ways = [_Half(far)]
            if target_path is not None and far in elsewhere:
                ways = self._target_halves(target_path, far, endpoint)
            if not ways:
                return Route(path, direction, endpoint, "refused", (*reasons, _no_memory(far)))
            of_far = self._subflows(near_path, ways, endpoint, direction)
            if isinstance(of_far, Reason) and far in apart and far not in elsewhere:
                leaving, of_far = self._from_other_server(path, far, endpoint, direction)
                target_path = leaving or target_path
            if isinstance(of_far, Reason):
                return Route(path, direction, endpoint, "refused", (*reasons, of_far))
            subflows.extend(
                replace(subflow, share=subflow.share * size / sum(sizes)) for subflow in of_far
            )
        # of what comes from another server, routes to the same endpoint have parts in common
        known = self._peer_reasons if apart and direction == "read" else None
        reasons = merged((*reasons, *peer_reasons(self.topology, subflows, known)))
        verdict = verdict_of(reasons)
        if verdict == "refused":
            return Route(path, direction, endpoint, "refused", reasons)
        used, extra = self._uses.counted(path, subflows, shared=direction == "read")
        return Route(
            data_path=path,
            direction=direction,
            endpoint=endpoint,
            verdict=verdict,
            reasons=reasons,
            subflows=used,
            use=total_use(used),
            extra=extra,
            waypoints=waypoints(self.topology, used[0]),
            target_path=target_path,
        )

    def reweighted(self, route: Route, shares: tuple[float, ...]) -> Route:
        """Return `route` with its subflows carrying other shares; a share of 0 drops one."""
        subflows = tuple(
            replace(subflow, share=share)
            for subflow, share in zip(route.subflows, shares, strict=True)
            if share > 0
        )
        return replace(
            route,
            subflows=subflows,
            use=total_use(subflows),
            waypoints=waypoints(self.topology, subflows[0]),
        )

    def nearest_shares(self, route: Route) -> tuple[float, ...]:
        """Return the shares of the subflows of `route` where the cards nearest to its GPU serve it.

        The far ends, and the memories of a card, keep their shares.
        """
        kept: list[float] = []
        for subflow in route.subflows:
            start = subflow.target_card or subflow.far
            nearest = self._placement.nearest_cards(start, route.endpoint)
            kept.append(subflow.share if not subflow.card or subflow.card in nearest else 0.0)
        of_storage: dict[str, float] = {}
        for subflow, share in zip(route.subflows, kept, strict=True):
            of_storage[subflow.far] = of_storage.get(subflow.far, 0.0) + share
        return tuple(
            share / of_storage[subflow.far] / len(of_storage)
            for subflow, share in zip(route.subflows, kept, strict=True)
        )

    def is_apart(self, far: str, endpoint: str) -> bool:
        """Whether two devices are in different servers: nothing but a network joins them."""
        return (
            self.topology[far].kind != "storage"
            and far not in self._host.distances(endpoint)
            and bool(socket_of(self.topology, far) and socket_of(self.topology, endpoint))
        )

    def nearest_cards(self, storage: str, endpoint: str) -> tuple[str, ...]:
        """Return the network cards nearest to a device that lead to a storage on the network."""
        return self._placement.nearest_cards(storage, endpoint)

    def nearest_cards_out(self, device: str, endpoint: str) -> tuple[str, ...]:
        """Return the network cards nearest to a device that lead to one of another server."""
        return self._placement.nearest_target_cards(device, endpoint)

    def nearest_memories(self, memories: tuple[str, ...], endpoint: str) -> tuple[str, ...]:
        """Return those of some memories that are nearest to a device: its own socket's if any."""
        start = socket_of(self.topology, endpoint) or endpoint
        distances = self._host.distances(endpoint if endpoint in memories else start)
        nearest = min((distances[name] for name in memories if name in distances), default=None)
        return tuple(name for name in memories if distances.get(name) == nearest) or memories

    def _not_between(self, far_ends: tuple[str, ...], endpoint: str) -> Iterator[Reason]:
        """Yield why some far ends do not reach an endpoint of another server over a network."""
        here = [name for name in far_ends if name in self._host.distances(endpoint)]
        if here:
            yield _server_reason("needs-other-server", here, "the same", endpoint)
        apart = [name for name in far_ends if self.is_apart(name, endpoint)]
        cut_off = [name for name in apart if not self._target_cards(name, endpoint)]
        if cut_off:
            fact = f"no network leads from the server of {listed(ranged(cut_off, 4))} to"
            yield Reason("other-server", "refused", fact, about=(endpoint,))
        lost = [name for name in far_ends if name not in (*here, *apart)]
        if lost:
            yield self._no_way(lost, endpoint)

    def _no_way(self, far_ends: Sequence[str], endpoint: str) -> Reason:
        """Return that nothing joins some far ends and an endpoint; drives may lack a CPU."""
        alone = all(
            self.topology[name].is_drive and not socket_of(self.topology, name) for name in far_ends
        )
        why = " (drives that hang on no CPU)" * alone
        fact = f"no permitted way joins {listed(ranged(far_ends, 4))}{why} and"
        return Reason("no-way", "refused", fact, about=(endpoint,))

    def _from_other_server(
        self, path: DataPath, far: str, endpoint: str, direction: Direction
    ) -> tuple[DataPath | None, tuple[Subflow, ...] | Reason]:
        """Return the way of what a data path, itself within a server, brings from another one.

        First the data path in that server.
        """
        if not path.to_other_servers:
            return None, _server_reason("other-server", [far], "another", endpoint)
        leaving, entering = halves(data_path(self.topology.description, path.to_other_servers))
        for reason in self._not_between((far,), endpoint):
            return None, reason
        if leaving is None or not (ways := self._target_halves(leaving, far, endpoint)):
            return None, _no_memory(far)
        return leaving, self._subflows(entering, ways, endpoint, direction)

    def _diverted(
        self, path: DataPath, far_ends: tuple[str, ...], endpoint: str
    ) -> tuple[Reason, ...]:
        """Return what cuFile's dynamic routing makes of a direct path from remote storage."""
        remote = [name for name in far_ends if self.topology[name].kind == "storage"]
        direct = "cufile" in path.needs and len(path.moves) == 1
        if not direct or not remote or not self.topology.settings_of(endpoint).dynamic_routing:
            return ()
        joined = set(self._fabric.distances(endpoint))
        reasons = (
            routing_reason(
                self.topology,
                self._placement.cards(storage, endpoint),
                self._cards(storage, endpoint),
                endpoint,
                joined,
            )
            for storage in remote
        )
        return merged(reason for reason in reasons if reason is not None)

    # --- subflows -------------------------------------------------------------------------------

    def _subflows(
        self, path: DataPath, ways: Sequence[_Half], endpoint: str, direction: Direction
    ) -> tuple[Subflow, ...] | Reason:
        """Return one subflow for each card and each choice of memories, or why there is none.

        `ways` are what goes before in the host of the far end; one without transfers if it is here.
        """
        far = ways[0].far
        subflows: list[Subflow] = []
        for half in ways:
            start = half.card or far
            cards = self._cards(start, endpoint, by_network=bool(half.card))
            if not cards:
                fact = f"no network card reaches both {far} and"
                return Reason("no-way", "refused", fact, about=(endpoint,))
            for card in cards:
                choices = self._places(path, card or far, endpoint)
                if not choices:
                    return _no_memory(endpoint)
                share = half.share / len(cards) / len(choices)
                for places in choices:
                    entering = self._entered(
                        path, start, endpoint, card, places, left=bool(half.card)
                    )
                    if entering is None:
                        return self._no_way([far], endpoint)
                    transfers = (*half.transfers, *entering)
                    if direction == "write":
                        transfers = tuple(_reversed(transfer) for transfer in reversed(transfers))
                    memories = tuple(
                        (end, name)
                        for end, name in (half.places | places).items()
                        if is_buffer(end)
                    )
                    subflows.append(Subflow(share, far, card, memories, transfers, half.card))
        return tuple(subflows)

    def _target_cards(self, drive: str, endpoint: str) -> tuple[str, ...]:
        """Return the cards by which the data of a far end leaves its host towards an endpoint."""
        if self.policy.nics == "nearest":
            return self._placement.nearest_target_cards(drive, endpoint)
        return self._placement.target_cards(drive, endpoint)

    def _target_halves(self, path: DataPath, drive: str, endpoint: str) -> list[_Half]:
        """Return the ways of a far end's data to the cards of its host, with their shares."""
        cards = self._target_cards(drive, endpoint)
        key = (path.name, drive, cards)
        if key not in self._halves:
            ways = []
            for card in cards:
                choices = self._places(path, drive, drive, elsewhere=True)
                for places in choices:
                    transfers = self._transfers(path, drive, card, "", places)
                    if transfers is not None:
                        share = 1.0 / len(cards) / len(choices)
                        ways.append(_Half(drive, share, card, places, transfers))
            self._halves[key] = ways
        return self._halves[key]

    def _cards(self, far: str, endpoint: str, *, by_network: bool = False) -> tuple[str, ...]:
        """Return the cards that carry the data; what is in the host needs none, and has ``""``.

        Data from a card of another host comes by the network, as that of a target does.
        """
        if self.topology[far].kind != "storage" and not by_network:
            return ("",)
        if self.policy.nics == "nearest":
            return self._placement.nearest_cards(far, endpoint)
        return self._placement.cards(far, endpoint)

    def _places(
        self, path: DataPath, near_storage: str, endpoint: str, *, elsewhere: bool = False
    ) -> list[dict[str, str]]:
        """Return every choice of a memory for each buffer and of a staging GPU, if one is used.

        Buffers that the policy puts in one place share a choice.
        """
        between = dict.fromkeys(move.target for move in path.moves[:-1])
        place_of = {
            end: self.policy.place_of(end, elsewhere=elsewhere) if is_buffer(end) else end
            for end in between
        }
        options: dict[str, tuple[str, ...]] = {}
        for place in place_of.values():  # equally good devices share the traffic
            if place == "near-gpu":
                options[place] = self._placement.memories_near(endpoint)
            elif place == "near-nic":
                options[place] = self._placement.memories_near(near_storage)
            elif place == "staging-gpu":
                gpus = self._placement.staging_gpus(near_storage, endpoint)
                options[place] = gpus if self.policy.routes == "spread" else gpus[:1]
            else:
                options[place] = (place,)
        choices = (dict(zip(options, chosen, strict=True)) for chosen in product(*options.values()))
        return [{end: chosen[place] for end, place in place_of.items()} for chosen in choices]

    # --- transfers ------------------------------------------------------------------------------

    def _entered(
        self,
        path: DataPath,
        start: str,
        endpoint: str,
        card: str,
        places: dict[str, str],
        *,
        left: bool,
    ) -> tuple[Transfer, ...] | None:
        """Return the moves as `_transfers`; what has `left` its host comes from a card of that.

        All that leaves a host by one card comes the same way from there, and is laid once.
        """
        if not left:
            return self._transfers(path, start, endpoint, card, places)
        key = (path.name, start, endpoint, card, *places.items())
        if key not in self._entering:
            transfers = self._transfers(path, start, endpoint, card, places)
            if transfers is not None:
                first, *others = transfers
                transfers = (replace(first, move=replace(first.move, source="card")), *others)
            self._entering[key] = transfers
        return self._entering[key]

    def _transfers(
        self, path: DataPath, far: str, endpoint: str, card: str, places: dict[str, str]
    ) -> tuple[Transfer, ...] | None:
        """Return the moves between the devices that their ends mean, `None` if one has no walk."""
        transfers: list[Transfer] = []
        stops = [far, *(places[move.target] for move in path.moves[:-1]), endpoint]
        for move, (source, target) in zip(path.moves, pairwise(stops), strict=True):
            if move.source == "staging-gpu" and source == target:
                continue  # no GPU is nearer: nothing is staged
            transfer = self._transfer(move, source, target, card, endpoint)
            if transfer is None:
                return None
            transfers.append(transfer)
            card = ""  # it has carried the data into the host
        return tuple(transfers)

    def _transfer(
        self, move: Move, source: str, target: str, card: str, endpoint: str
    ) -> Transfer | None:
        """Return one move between two devices, `None` when no walk joins them."""
        if source == target:
            engine = endpoint if move.mover == "gpu" else socket_of(self.topology, source)
            return Transfer(move, engine, source, target)
        hops: tuple[EqualCostPaths | None, ...]
        sent_up_by = ""
        gpus = [end for end in (source, target) if self.topology[end].kind == "gpu"]
        if move.mover in ("nic", "drive"):
            hops, sent_up_by = self._peer_hops(card or source, target)
            if card:  # over the wire to the card, then inside the host
                engine, hops = card, (self._network.paths(source, card), *hops)
            elif move.mover == "nic" and any(self.topology[end].is_nic for end in (source, target)):
                engine = next(end for end in (source, target) if self.topology[end].is_nic)
            else:  # a drive's data is moved by its controller card, if it has one
                drive = source if self.topology[source].is_storage else target
                passed = [step.target for hop in hops if hop for step in hop.example]
                controllers = (name for name in passed if self.topology[name].kind == "hba")
                engine = next(controllers, drive)
        elif gpus == [source, target]:
            engine = source  # it writes
            if move.over == "pcie":
                hops, sent_up_by = self._peer_hops(source, target)
            else:
                hops = (self._fabric.paths(source, target),)
        else:
            hops = (self._host.paths(source, target),)
            of_gpu = move.mover == "gpu"
            engine = next(iter(gpus), endpoint) if of_gpu else socket_of(self.topology, target)
        joined = [hop for hop in hops if hop is not None]
        if len(joined) < len(hops):
            return None
        return Transfer(
            move=move,
            engine=engine,
            source=source,
            target=target,
            walk=tuple(step for hop in joined for step in hop.example),
            shares=tuple(shared for hop in joined for shared in hop.shares),
            alternatives=prod(hop.count for hop in joined),
            sent_up_by=sent_up_by,
            idle=tuple(step for hop in joined for step in hop.idle),
        )

    def _peer_hops(self, engine: str, target: str) -> tuple[tuple[EqualCostPaths | None, ...], str]:
        """Return the hops from a DMA engine into RAM or a GPU, and what sends it by the root.

        Peer-to-peer traffic that would turn round at a switch with ACS redirect goes up to the
        root and back, over the uplink twice.
        """
        meeting = self.topology.tree.meeting(engine, target)
        attachment = self.topology.tree.attachment(engine)
        if meeting and attachment and self.topology[meeting].part.flag("acs"):
            up = self._host.paths(engine, attachment.root)
            return (up, self._host.paths(attachment.root, target)), meeting
        return (self._host.paths(engine, target),), ""


def _no_memory(endpoint: str) -> Reason:
    fact = "the file has no system RAM for the buffers within reach of"
    return Reason("no-memory", "refused", fact, about=(endpoint,))


def _server_reason(code: str, names: Sequence[str], whose: str, endpoint: str) -> Reason:
    """Return the reason that some devices are in the same server as an endpoint, or in another."""
    be = "is" if len(names) == 1 else "are"
    than = "as" if whose == "the same" else "than"
    fact = f"{listed(ranged(names, 4))} {be} in {whose} server {than}"
    return Reason(code, "refused", fact, about=(endpoint,))


def _reversed(transfer: Transfer) -> Transfer:
    """Return the transfer of a write: the same steps walked the other way."""

    def turned(step: Step) -> Step:
        return Step(step.link, step.target, step.source)

    return replace(
        transfer,
        move=replace(transfer.move, source=transfer.move.target, target=transfer.move.source),
        source=transfer.target,
        target=transfer.source,
        walk=tuple(turned(step) for step in reversed(transfer.walk)),
        shares=tuple((turned(step), share) for step, share in reversed(transfer.shares)),
    )
