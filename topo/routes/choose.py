"""Which network card, which memory, which staging GPU a route uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.routes.search import by_name
from topo.topology import locality, rank, socket_of

if TYPE_CHECKING:
    from topo.routes.search import Search
    from topo.topology import Topology

__all__ = ["cards_for", "memories_near", "nearest_cards", "staging_gpu"]


def cards_for(
    topology: Topology, storage: str, gpu: str, *, network: Search, host: Search
) -> tuple[str, ...]:
    """Return the cards that both the storage and the GPU reach, in the order of the file."""
    on_network, in_host = network.distances(storage), host.distances(gpu)
    return tuple(
        device.name
        for device in topology.of_kind("nic", "dpu")
        if device.name in on_network and device.name in in_host
    )


def nearest_cards(
    topology: Topology, cards: tuple[str, ...], gpu: str, *, host: Search
) -> tuple[str, ...]:
    """Return the cards nearest to `gpu`: by locality class, then fewest links, then widest.

    Equally near cards are all returned and share the traffic.
    """

    def distance(card: str) -> tuple[int, int, float]:
        ways = host.ways(card, gpu)
        assert ways is not None
        return (rank(_tree_class(topology, card, gpu)), len(ways.example), -ways.width)

    nearest = min((distance(card) for card in cards), default=None)
    return tuple(card for card in cards if distance(card) == nearest)


def _tree_class(topology: Topology, card: str, gpu: str) -> str:
    return locality(topology, card, gpu)


def memories_near(topology: Topology, device: str, *, host: Search) -> tuple[str, ...]:
    """Return the memories on the socket of `device`; without one there, on the nearest socket.

    All of that socket's memories are returned and share the traffic.
    """
    socket = socket_of(topology, device)
    distances = host.distances(socket or device)
    memories = [memory.name for memory in topology.of_kind("memory") if memory.name in distances]
    nearest = min((distances[name] for name in memories), default=None)
    return tuple(name for name in memories if distances[name] == nearest)


def staging_gpu(topology: Topology, card: str, gpu: str, *, host: Search, fabric: Search) -> str:
    """Return the GPU nearest to `card` that reaches `gpu` over GPU links, ``""`` if none does.

    The GPU itself counts: when no other is nearer, nothing needs staging and the answer is
    ``gpu``.
    """
    reached = fabric.distances(gpu)
    near = [
        other.name
        for other in topology.of_kind("gpu")
        if other.name in reached and host.ways(card, other.name) is not None
    ]
    return min(
        near,
        key=lambda name: (rank(_tree_class(topology, card, name)), name != gpu, by_name(name)),
        default="",
    )
