"""Which device of one source is which of another: by address, by name, or by order."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from topo.discovery.describe import file_title
from topo.discovery.pci import address_key, card_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from topo.catalogue.kinds import Kind
    from topo.discovery.machine import DiscoveredDevice, Machine


Pair = tuple[str, str]
_CARDS: Final = ("nic", "dpu")
_PLAIN: Final[tuple[Kind, ...]] = ("nvme", "hba", "pcie-switch", "cxl-memory")
_RDMA_PARTS: Final = ("connectx", "bluefield", "efa")


@dataclass(slots=True)
class Matches:
    """Pairs of devices, the first source's `id` first, and sentences on how they were found.

    `strange` are the kinds whose addresses are told by both sources and agree nowhere.
    """

    pairs: list[Pair] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def mine(self, other: str) -> list[str]:
        """Return what a device of the second source is in the first."""
        return [one for one, its in self.pairs if its == other]

    def add(self, pairs: Iterable[Pair]) -> None:
        """Add pairs, each once."""
        self.pairs += [pair for pair in dict.fromkeys(pairs) if pair not in self.pairs]


def match(first: Machine, second: Machine) -> Matches:
    """Return the pairs of devices that are the same in both sources."""
    found = Matches()
    found.add(_cpus(first.of_kind("cpu"), second.of_kind("cpu")))
    found.add(_by_key(first.of_kind("gpu"), second.of_kind("gpu"), _addresses))
    _others(found, first, second, ("gpu",), "GPUs", lambda gpus: [gpus])
    found.add(_by_key(first.of_kind(*_CARDS), second.of_kind(*_CARDS), _places))
    _named_cards(found, first, second)
    _others(found, first, second, _CARDS, "Network cards", _candidates)
    for kind in _PLAIN:
        found.add(_by_key(first.of_kind(kind), second.of_kind(kind), _addresses))
    chips = (first.of_kind("nvswitch"), second.of_kind("nvswitch"))
    found.add((one.id, other.id) for one, other in zip(*chips, strict=False))
    found.add(_by_key(first.of_kind("memory"), second.of_kind("memory"), _nodes_of(first, second)))
    return found


def numa_of(device: DiscoveredDevice, machine: Machine) -> tuple[int, ...]:
    """Return the NUMA nodes that a device hangs on, as far as its place in the tree tells."""
    known = {one.id: one for one in machine.devices}
    here: DiscoveredDevice | None = device
    for _ in range(len(known)):
        if here is None or here.kind == "cpu":
            break
        if here.node is not None:
            return (here.node,)
        here = known.get(here.parent)
    return here.numa if here is not None and here.kind == "cpu" else ()


# --- by what they say -----------------------------------------------------------------------------


def _cpus(mine: Sequence[DiscoveredDevice], its: Sequence[DiscoveredDevice]) -> list[Pair]:
    pairs = [(a.id, b.id) for a in mine for b in its if {*a.numa} & {*b.numa}]
    told = any(one.numa for one in mine) and any(one.numa for one in its)
    if pairs or told or len(mine) != len(its):
        return pairs
    return [(a.id, b.id) for a, b in zip(mine, its, strict=True)]


def _by_key(
    mine: Sequence[DiscoveredDevice],
    its: Sequence[DiscoveredDevice],
    key: Callable[[DiscoveredDevice], Iterable[object]],
) -> list[Pair]:
    known: dict[object, str] = {}
    for one in mine:
        for text in key(one):
            known.setdefault(text, one.id)
    return [(known[text], one.id) for one in its for text in key(one) if text in known]


def _addresses(device: DiscoveredDevice) -> Iterable[object]:
    return device.pci


def _places(card: DiscoveredDevice) -> Iterable[object]:
    """Return a card's addresses without functions, of which sources tell different ones."""
    return {card_of(address): None for address in card.pci}


def _nodes_of(first: Machine, second: Machine) -> Callable[[DiscoveredDevice], Iterable[object]]:
    mine = {one.id for one in first.devices if one.kind == "memory"}

    def key(memory: DiscoveredDevice) -> Iterable[object]:
        return numa_of(memory, first if memory in first.devices and memory.id in mine else second)

    return key


def _named_cards(found: Matches, first: Machine, second: Machine) -> None:
    """Match the cards that are left by the names of their RDMA devices or interfaces."""
    mine, its = _left(found, first, second, _CARDS)
    found.add(_by_key(mine, its, lambda card: card.rdma))


# --- by order -------------------------------------------------------------------------------------


def _left(
    found: Matches, first: Machine, second: Machine, kinds: tuple[Kind, ...]
) -> tuple[list[DiscoveredDevice], list[DiscoveredDevice]]:
    taken = {one for pair in found.pairs for one in (("a", pair[0]), ("b", pair[1]))}
    return (
        [one for one in first.of_kind(*kinds) if ("a", one.id) not in taken],
        [one for one in second.of_kind(*kinds) if ("b", one.id) not in taken],
    )


def _others(
    found: Matches,
    first: Machine,
    second: Machine,
    kinds: tuple[Kind, ...],
    words: str,
    choices: Callable[[list[DiscoveredDevice]], list[list[DiscoveredDevice]]],
) -> None:
    """Match devices by their order where none of a kind could be matched before."""
    mine, its = _left(found, first, second, kinds)
    if not mine or not its:
        return
    told = all(one.pci for one in mine) and all(one.pci for one in its)
    if told and len(mine) < len(first.of_kind(*kinds)):
        return  # some have the same address: these are others
    if told and kinds != ("gpu",):
        return  # cards with addresses of their own are other cards
    for some, others in product(choices(mine), choices(its)):
        pairs = _in_order(some, others)
        if pairs:
            found.add(pairs)
            how = "addresses differ" if told else f"{_blind(first, second, kinds)} has no addresses"
            found.said.append(f"{words} were matched by their order: {how}.")
            if told:
                found.strange.append(words)
            return


def _blind(first: Machine, second: Machine, kinds: tuple[Kind, ...]) -> str:
    blind = second if any(one.pci for one in first.of_kind(*kinds)) else first
    return file_title(blind.file)


def _candidates(cards: list[DiscoveredDevice]) -> list[list[DiscoveredDevice]]:
    """Return all cards, and those that can do RDMA: `nvidia-smi` lists no others."""
    able = [
        card
        for card in cards
        if card.rdma or card.network == "infiniband" or card.part.startswith(_RDMA_PARTS)
    ]
    return [cards, able]


def _in_order(mine: list[DiscoveredDevice], its: list[DiscoveredDevice]) -> list[Pair]:
    """Return pairs where both have as many functions, or as many devices; else none."""
    mine, its = _sorted(mine), _sorted(its)
    each, other = _functions(mine), _functions(its)
    if len(each) == len(other):
        return list(zip(each, other, strict=True))
    if len(mine) == len(its):
        return [(one.id, two.id) for one, two in zip(mine, its, strict=True)]
    return []


def _sorted(devices: list[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return devices by address where all have one: the order that NVIDIA's tools number by."""
    if not all(one.pci for one in devices):
        return devices
    return sorted(devices, key=lambda one: address_key(one.pci[0]))


def _functions(devices: list[DiscoveredDevice]) -> list[str]:
    return [one.id for one in devices for _ in range(max(len(one.pci), len(one.rdma), 1))]
