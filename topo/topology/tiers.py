"""The tiers of a network: switches by their distance from the cards, and what meets at each.

Oversubscription is the bandwidth of the cables below a tier over that of the cables above it. It is
counted on the links of the topology, so it is the same for a network made by rule and one written
by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from topo.graph import breadth_first, components
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.topology.topology import Step, Topology


@dataclass(frozen=True, slots=True)
class Tier:
    """The switches at one distance from the cards.

    Parameters
    ----------
    switches
        Their names, in the order of the file.
    below, above
        Bytes/s of all cables to the cards or the tier below, and to the tier above, one direction;
        `None` where one of them is unknown.
    storage
        Bytes/s of the cables to storage that hangs here, above what is `below` and `above`.
    highest
        The highest oversubscription of a switch by itself: as high as the tier's where all are
        alike; `None` where that is.
    """

    switches: tuple[str, ...]
    below: float | None
    above: float | None
    storage: float | None
    highest: float | None

    @property
    def oversubscription(self) -> float | None:
        """Bandwidth below over bandwidth above; `None` at the top, or where one is unknown."""
        return _over(self.below, self.above)


@dataclass(frozen=True, slots=True)
class Network:
    """Switches that hang together, by tier from the cards up."""

    tiers: tuple[Tier, ...]


def networks(topology: Topology) -> tuple[Network, ...]:
    """Return every network of switches with its tiers; one that no card is in is left out."""
    switches = [device.name for device in topology.of_kind("network-switch")]
    if not switches:
        return ()
    among = frozenset(switches)
    cables = {
        name: tuple(step for step in topology.steps[name] if step.link.layer == "network")
        for name in switches
    }

    def neighbours(name: str) -> list[str]:
        return [step.target for step in cables[name] if step.target in among]

    def has_card(name: str) -> bool:
        return any(topology[step.target].is_nic for step in cables[name])

    levels = breadth_first(filter(has_card, switches), neighbours)
    return tuple(
        Network(
            tuple(
                _tier(topology, tier, levels, cables)
                for tier in _by_level([name for name in network if name in levels], levels)
            )
        )
        for network in components(switches, neighbours)
        if network[0] in levels
    )


def _by_level(network: Iterable[str], levels: dict[str, int]) -> list[list[str]]:
    tiers: dict[int, list[str]] = {}
    for name in network:
        tiers.setdefault(levels[name], []).append(name)
    return [tiers[level] for level in sorted(tiers)]


def _tier(
    topology: Topology,
    switches: list[str],
    levels: dict[str, int],
    cables: dict[str, tuple[Step, ...]],
) -> Tier:
    """Return the sums of a tier; what joins two switches of one tier is in none of them."""
    each: list[tuple[float | None, float | None]] = []
    in_all: list[tuple[float | None, float | None]] = []
    storage: list[float | None] = []
    for name in switches:
        size = topology.cell_size(name)
        below: list[float | None] = []
        above: list[float | None] = []
        for step in cables[name]:
            level = levels.get(step.target, -1)  # a card stands below every switch
            if topology[step.target].is_storage:
                storage.append(_times(size, _rate(step)))
            elif level != levels[name]:
                (above if level > levels[name] else below).append(_rate(step))
        each.append((_sum(below), _sum(above)))
        in_all.append((_times(size, each[-1][0]), _times(size, each[-1][1])))
    ratios = [_over(*both) for both in each]
    known = [ratio for ratio in ratios if ratio is not None]
    folding = topology.folding
    return Tier(
        tuple(
            name for first in switches for name in (folding.in_cell(first) if folding else [first])
        ),
        _sum(below for below, _ in in_all),
        _sum(above for _, above in in_all),
        _sum(storage),
        max(known, default=None),
    )


def _rate(step: Step) -> float | None:
    """Return bytes/s of a step, and of all that its source has like it."""
    rate = step.resource.capacity.theoretical.value if step.resource else None
    return _times(step.times[0], rate)


def _times(count: int, rate: float | None) -> float | None:
    return None if rate is None else count * rate


def _sum(rates: Iterable[float | None]) -> float | None:
    values = list(rates)
    return None if None in values else math.fsum(value for value in values if value is not None)


def _over(below: float | None, above: float | None) -> float | None:
    return below / above if below and above else None
