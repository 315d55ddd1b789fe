"""Which network card, which memory, which staging GPU a route uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.routes.search import by_name
from topo.topology import locality, rank, socket_of

if TYPE_CHECKING:
    from topo.routes.search import Search
    from topo.topology import Device, Topology


class Chooser:
    """Answers what is near what on one topology, each question once.

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
        self._card_order = _order(topology.of_kind("nic", "dpu"))
        self._memory_order = _order(topology.of_kind("memory"))
        self._nearest: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}
        self._memories: dict[str, tuple[str, ...]] = {}

    def cards(self, storage: str, gpu: str) -> tuple[str, ...]:
        """Return the cards that both the storage and the GPU reach, in the order of the file."""
        on_network, in_host = self._network.distances(storage), self._host.distances(gpu)
        found = (name for name in in_host if name in self._card_order and name in on_network)
        return tuple(sorted(found, key=self._card_order.__getitem__))

    def nearest_cards(self, storage: str, gpu: str) -> tuple[str, ...]:
        """Return the cards nearest to `gpu`: by locality class, then fewest links, then widest.

        Equally near cards are all returned and share the traffic.
        """
        cards = self.cards(storage, gpu)
        if (cards, gpu) not in self._nearest:
            distances = {card: self._distance(card, gpu) for card in cards}
            nearest = min(distances.values(), default=None)
            self._nearest[cards, gpu] = tuple(card for card in cards if distances[card] == nearest)
        return self._nearest[cards, gpu]

    def memories_near(self, device: str) -> tuple[str, ...]:
        """Return the memories on the socket of `device`; without one there, on the nearest socket.

        All of that socket's memories are returned and share the traffic.
        """
        start = socket_of(self._topology, device) or device
        if start not in self._memories:
            distances = self._host.distances(start)
            found = sorted(
                (name for name in distances if name in self._memory_order),
                key=self._memory_order.__getitem__,
            )
            nearest = min((distances[name] for name in found), default=None)
            self._memories[start] = tuple(name for name in found if distances[name] == nearest)
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
            if self._topology[name].kind == "gpu" and self._host.ways(card, name) is not None
        }
        nearest = min(distances.values(), default=(0, 0))
        if distances.get(gpu, nearest)[0] == nearest[0]:
            return (gpu,)
        return tuple(name for name, distance in distances.items() if distance == nearest)

    def _distance(self, card: str, gpu: str) -> tuple[int, int, float]:
        ways = self._host.ways(card, gpu)
        assert ways is not None, "the GPU reaches the card"
        return (rank(locality(self._topology, card, gpu)), len(ways.example), -ways.width)


def _order(devices: tuple[Device, ...]) -> dict[str, int]:
    return {device.name: place for place, device in enumerate(devices)}
