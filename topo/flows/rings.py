"""The rings in which GPUs pass data on, in the order that NCCL's own search comes to.

NCCL searches a graph of the machine for rings [1]_; topo goes by rules that give what the search
gives on machines that are regular:

* GPUs that NVSwitches join: one ring over all of them. A GPU's links to the switches carry every
  hop, so more rings at once share the same links evenly.
* GPUs that are linked directly, each with each: the rings that use every link alike. Otherwise as
  many disjoint rings as a search of limited depth finds, both ways round.
* Over PCIe: one ring in the order of the PCIe tree, so that it enters and leaves each switch once.
* Over several servers: a ring for each GPU that is the nearest to a network card. It goes through
  the servers one by one, enters each at that GPU, and leaves by the same card: from a GPU as near
  to it, else, where GPU links lead there, by way of the first one (PXN) [2]_.

References
----------
.. [1] NCCL, ``src/graph/search.cc``.
.. [2] Doubling all2all performance with NVIDIA Collective Communication Library 2.12, NVIDIA
   developer blog: PXN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topo.records import dataclass
from topo.routes.nearness import semi_matching
from topo.topology.hosts import host_numbers
from topo.topology.locality import locality, rank

if TYPE_CHECKING:
    from topo.routes.router import Router
    from topo.topology.topology import Topology

_PAIR: Final = 2  # GPUs, of which there is one ring
_MOST_STEPS: Final = 1 << 14  # of a search for rings, as in NCCL


@dataclass(frozen=True, slots=True)
class Ring:
    """A cycle over GPUs, and the share of the bytes that goes round it.

    `hops` are the GPUs that data passes from one GPU of the ring to the next: both, with another
    between them where that one has the network card.
    """

    hops: tuple[tuple[str, ...], ...]
    share: float

    @property
    def order(self) -> tuple[str, ...]:
        """The GPUs in the order in which data passes them."""
        return tuple(hop[0] for hop in self.hops)

    def chain(self, root: str, *, into: bool = False) -> Ring:
        """Return the ring cut open: from `root` to the last GPU, or from the first `into` it."""
        at = self.order.index(root)
        turned = (*self.hops[at:], *self.hops[:at])  # the last hop leads to the root
        return Ring(turned[1:] if into else turned[:-1], self.share)


def rings_of(router: Router, gpus: Sequence[str], *, by_links: bool) -> tuple[Ring, ...]:
    """Return the rings over some GPUs, with equal shares.

    Parameters
    ----------
    router
        Knows the machine, and which network cards are near.
    gpus
        At least two.
    by_links
        Whether links between GPUs are used.
    """
    topology = router.topology
    hosts = list(_by_host(gpus, host_numbers(topology)).values())
    orders = [_orders(topology, of_host, by_links=by_links) for of_host in hosts]
    if len(hosts) == 1:
        cycles = [tuple(pairwise((*order, order[0]))) for order in orders[0]]
        return tuple(Ring(cycle, 1 / len(cycles)) for cycle in cycles)
    cards = [_cards(router, of_host, hosts[at - 1][0]) for at, of_host in enumerate(hosts)]
    firsts = [
        _firsts(topology, of_host, order[0]) for of_host, order in zip(cards, orders, strict=True)
    ]
    count = max(map(len, firsts))
    rings = []
    for number in range(count):
        ways = [
            _through(topology, order[number % len(order)], first[number % len(first)], of_host)
            for order, first, of_host in zip(orders, firsts, cards, strict=True)
        ]
        hops: list[tuple[str, ...]] = []
        for at, (order, sender) in enumerate(ways):
            last, following = order[-1], ways[(at + 1) % len(ways)][0][0]
            hops += pairwise(order)
            hops.append((last, following) if sender == last else (last, sender, following))
        rings.append(Ring(tuple(hops), 1 / count))
    return tuple(rings)


def pairs_of(
    topology: Topology, gpus: Sequence[str], *, by_links: bool
) -> Iterator[tuple[str, ...]]:
    """Yield the GPUs that data of an all-to-all passes, from each to each other one.

    To another server it goes, where GPU links lead there, by way of the GPU that has the place in
    its own server that the far one has in that: the two are on one rail (PXN).
    """
    numbers = host_numbers(topology)
    by_host = _by_host(gpus, numbers)
    places = {name: at for of_host in by_host.values() for at, name in enumerate(of_host)}
    for source in gpus:
        beside = by_host[numbers[source]]
        for target in gpus:
            if numbers[source] != numbers[target] and by_links and places[target] < len(beside):
                sender = beside[places[target]]
                if sender != source and rank(locality(topology, source, sender)) == rank("NV"):
                    yield source, sender, target
                    continue
            if source != target:
                yield source, target


def _by_host(gpus: Iterable[str], numbers: Mapping[str, int]) -> dict[int, list[str]]:
    """Return GPUs by the numbers of their hosts."""
    by_host: dict[int, list[str]] = {}
    for name in gpus:
        by_host.setdefault(numbers[name], []).append(name)
    return by_host


# --- over several servers -------------------------------------------------------------------------


def _cards(router: Router, gpus: Sequence[str], elsewhere: str) -> dict[str, tuple[str, ...]]:
    """Return the network cards nearest to each GPU that lead to another server."""
    return {name: router.nearest_cards_out(name, elsewhere) for name in gpus}


def _firsts(
    topology: Topology, cards: Mapping[str, tuple[str, ...]], order: Sequence[str]
) -> tuple[str, ...]:
    """Return for each network card a GPU nearest to it, each once; the first GPU without cards."""
    candidates: dict[str, list[str]] = {}
    for name in order:
        for card in cards[name]:
            candidates.setdefault(card, []).append(name)
    nearest: dict[str, list[str]] = {}
    for card, names in candidates.items():
        ranks = {name: rank(locality(topology, card, name)) for name in names}
        nearest[card] = [name for name in names if ranks[name] == min(ranks.values())]
    dealt = set(semi_matching(nearest).values())
    return tuple(name for name in order if name in dealt) or (order[0],)


def _through(
    topology: Topology, order: Sequence[str], first: str, cards: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], str]:
    """Return a server's GPUs in the order of a ring that enters at `first`, and which one sends."""
    at = order.index(first)
    _, *others = turned = [*order[at:], *order[:at]]
    if not others:
        return (first,), first
    if rank(locality(topology, others[-1], first)) == rank("NV"):
        return tuple(turned), _sender(topology, others[-1], first, cards)
    beside = [name for name in others if not set(cards[name]).isdisjoint(cards[first])]
    last = beside[-1] if beside else others[-1]
    return (first, *(name for name in others if name != last), last), last


def _sender(topology: Topology, last: str, first: str, cards: Mapping[str, tuple[str, ...]]) -> str:
    """Return which of two linked GPUs sends by the card of a ring that enters at `first`.

    The last one itself where that card is one of its nearest and the first one is no nearer, or
    where no switch joins the first one with it: then NCCL makes no way through that.
    """
    shared = [card for card in cards[last] if card in cards[first]]
    if not shared:
        return first
    by_last, by_first = (
        min(rank(locality(topology, card, name)) for card in shared) for name in (last, first)
    )
    return last if by_last <= by_first or by_first > rank("PXB") else first


# --- in one server --------------------------------------------------------------------------------


def _orders(topology: Topology, gpus: Sequence[str], *, by_links: bool) -> list[tuple[str, ...]]:
    """Return the cycles over the GPUs of one server; one at least."""
    order = _tree_order(topology, gpus)
    if not by_links or len(order) <= _PAIR:
        return [order]
    cables = _direct_cables(topology, order)
    if cables is None or not cables:
        return [_linked_together(topology, order)]
    counts = set(cables.values())
    if len(cables) == math.comb(len(order), 2) and len(counts) == 1:
        cycles = list(_zigzags(order))
    else:
        cycles = _disjoint_cycles(order, cables)
    turned = [(first, *reversed(others)) for first, *others in cycles]
    return [*cycles, *turned] or [_linked_together(topology, order)]


def _tree_order(topology: Topology, gpus: Sequence[str]) -> tuple[str, ...]:
    """Return GPUs with those below the same socket, root and switch next to each other."""
    paths: dict[str, list[tuple[str, ...]]] = {}
    first_below: dict[tuple[str, ...], int] = {}
    for at, name in enumerate(gpus):
        attachment = topology.tree.attachment(name)
        above: tuple[str, ...] = ()
        if attachment is not None:
            above = (attachment.socket, attachment.node, attachment.root)
            above += attachment.bridges[::-1]
        paths[name] = [above[:end] for end in range(1, len(above) + 1)] + [(*above, name)]
        for prefix in paths[name]:
            first_below.setdefault(prefix, at)
    return tuple(sorted(gpus, key=lambda name: [first_below[prefix] for prefix in paths[name]]))


def _linked_together(topology: Topology, order: Sequence[str]) -> tuple[str, ...]:
    """Return the order with GPUs that links join next to each other."""
    ordered: dict[str, None] = {}
    for name in order:
        if name not in ordered:
            ordered[name] = None
            linked = (n for n in order if rank(locality(topology, name, n)) == rank("NV"))
            ordered |= dict.fromkeys(linked)
    return tuple(ordered)


def _direct_cables(topology: Topology, gpus: Sequence[str]) -> dict[tuple[str, str], int] | None:
    """Return how many links join each two GPUs directly; `None` where a switch joins them."""
    places = {name: at for at, name in enumerate(gpus)}
    cables: dict[tuple[str, str], int] = {}
    for name in gpus:
        for step in topology.steps[name]:
            if step.link.layer != "gpu":
                continue
            if topology[step.target].kind != "gpu":
                return None
            if places.get(step.target, -1) > places[name]:
                pair = (name, step.target)
                cables[pair] = cables.get(pair, 0) + step.link.cable.count
    return cables


def _zigzags(gpus: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield cycles over GPUs that are joined each with each; two of them take each link.

    One GPU stays, the others stand in a circle; a cycle zigzags from one end of a diameter to the
    other, and each turn of the circle is a cycle (Walecki's construction).
    """
    middle, *circle = gpus
    size = len(circle)
    zigzag = [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(size)]
    for turn in range(size):
        yield (middle, *(circle[(turn + offset) % size] for offset in zigzag))


def _disjoint_cycles(
    gpus: Sequence[str], cables: Mapping[tuple[str, str], int]
) -> list[tuple[str, ...]]:
    """Return as many cycles over all GPUs as a search finds that share no link."""
    joined: dict[str, dict[str, int]] = {name: {} for name in gpus}
    for (a, b), count in cables.items():
        joined[a][b] = joined[b][a] = count
    most = min(sum(counts.values()) // 2 for counts in joined.values())
    for count in range(most, 0, -1):
        cycles = _cycles(joined, gpus[0], count)
        if cycles:
            return cycles
    return []


def _cycles(
    joined: Mapping[str, Mapping[str, int]], start: str, count: int
) -> list[tuple[str, ...]]:
    """Return so many cycles through all GPUs by links of their own; none where none are found."""
    size = len(joined)
    left = {name: dict(counts) for name, counts in joined.items()}
    walk = [start]  # cycle after cycle, each from the start

    def onward() -> Iterator[str]:
        """Yield where the walk may go on, the most links first: several rings must use them up."""
        here, passed = walk[-1], set(walk[(len(walk) - 1) // size * size :])
        following = [start] if len(walk) % size == 0 else [n for n in left[here] if n not in passed]
        yield from sorted(following, key=lambda name: -left[here].get(name, 0))

    untried = [onward()]
    for _ in range(_MOST_STEPS):
        while (name := next((n for n in untried[-1] if left[walk[-1]].get(n)), None)) is None:
            untried.pop()
            if not untried:
                return []
            back = walk.pop()
            left[walk[-1]][back] += 1
            left[back][walk[-1]] += 1
        left[walk[-1]][name] -= 1
        left[name][walk[-1]] -= 1
        walk.append(name)
        if len(walk) > size * count:
            return [tuple(walk[at : at + size]) for at in range(0, size * count, size)]
        untried.append(onward())
    return []
