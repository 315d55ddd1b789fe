"""How many switches a fabric of leaves, spines and cores takes, and how many cables run where.

A leaf gives its ports to cards below and to spines above. Each leaf of a *spine-leaf group* has
equally many cables to each spine of the group, so the spines divide its uplinks evenly; among the
numbers that do, the fabric takes the least for which the ports of a spine suffice. With three
levels the spines of one position in their groups share a *core group*, by the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from topo.records import dataclass

# What makes a quotient of rates a whole number: 32 x 50 GB/s / 50 GB/s is 32 uplinks, not 33.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Evenly:
    """How switches of one tier meet those above: `uplinks` of each, in bundles to each of `above`.

    Examples
    --------
    >>> Evenly(uplinks=32, above=16).bundle
    2
    """

    uplinks: int
    above: int

    @property
    def bundle(self) -> int:
        """Cables from one switch to one above it."""
        return self.uplinks // self.above


@dataclass(frozen=True, slots=True)
class Clos:
    """The counts of a fabric.

    Parameters
    ----------
    groups
        The leaves of each spine-leaf group, by number; with two levels one group has them all.
    up
        The uplinks of a leaf, and the spines of its group.
    core
        The uplinks of a spine, and the cores of its core group; `None` with two levels.
    """

    groups: tuple[tuple[int, ...], ...]
    up: Evenly
    core: Evenly | None = None

    @property
    def spines(self) -> int:
        """Spines in all."""
        return len(self.groups) * self.up.above

    @property
    def cores(self) -> int:
        """Cores in all: a core group for each position of a spine in its group."""
        return self.up.above * self.core.above if self.core else 0


def uplinks_for(downlinks: int, oversubscription: float, faster: float = 1.0) -> int:
    """Return the least uplinks for so many downlinks.

    Parameters
    ----------
    downlinks
        Cables to below.
    oversubscription
        Bandwidth below over bandwidth above, at most.
    faster
        How many times as fast an uplink is.

    Examples
    --------
    >>> uplinks_for(32, 1), uplinks_for(42, 2), uplinks_for(32, 1, faster=2)
    (32, 21, 16)
    """
    return max(1, math.ceil(downlinks / (oversubscription * faster) - _ROUNDING))


def most_downlinks(ports: int, oversubscription: float, faster: float = 1.0) -> int:
    """Return the most downlinks that leave a switch ports enough for their uplinks.

    Examples
    --------
    >>> most_downlinks(64, 1), most_downlinks(64, 2), most_downlinks(64, 1, faster=2)
    (32, 42, 42)
    """
    share = oversubscription * faster
    downlinks = math.floor(ports * share / (share + 1) + _ROUNDING)
    while downlinks and downlinks + uplinks_for(downlinks, oversubscription, faster) > ports:
        downlinks -= 1
    return downlinks


def evenly(below: int, uplinks: int, most: int, ports: int) -> Evenly | None:
    """Return the fewest switches above that take the uplinks of `below` equal switches.

    Parameters
    ----------
    below
        Switches below, each with as many cables to each above.
    uplinks, most
        The uplinks that each needs, and the ports that it has for them.
    ports
        Ports of a switch above, for what is below.

    Returns
    -------
    Evenly or None
        `None` where not even one cable from each below fits.

    Examples
    --------
    Three units of eight leaves: 768 cables fill 12 spines, but 12 do not divide 32.

    >>> evenly(24, 32, 32, 64)
    Evenly(uplinks=32, above=16)
    """
    if not 0 < below <= ports or uplinks > most:
        return None
    fewest = math.ceil(uplinks / (ports // below))
    above = next(count for count in range(fewest, uplinks + 1) if _rounded(uplinks, count) <= most)
    return Evenly(_rounded(uplinks, above), above)


def _rounded(uplinks: int, above: int) -> int:
    """Return the uplinks, and what makes them a multiple of the switches above."""
    return above * math.ceil(uplinks / above)


def two_levels(leaves: int, up: Evenly) -> Clos:
    """Return the fabric in which each of the leaves meets each spine."""
    return Clos((tuple(range(leaves)),), up)


def three_levels(
    rails: Sequence[Sequence[int]],
    *,
    uplinks: int,
    most: int,
    spine_ports: int,
    core_ports: int,
    oversubscription: float,
) -> Clos | None:
    """Return the fabric whose leaves form groups below core groups; `None` where it does not fit.

    Parameters
    ----------
    rails
        The leaves that belong together (one rail's), which make as few groups as may be.
    uplinks, most
        The uplinks that a leaf needs, and the ports that it has for them.
    spine_ports, core_ports
        Ports of a spine and of a core.
    oversubscription
        Of the spines.
    """
    most_leaves = most_downlinks(spine_ports, oversubscription)
    if not most_leaves:
        return None
    groups: list[tuple[int, ...]] = []
    for leaves in rails:
        size = math.ceil(len(leaves) / math.ceil(len(leaves) / most_leaves))
        groups += (tuple(leaves[at : at + size]) for at in range(0, len(leaves), size))
    up = evenly(max(map(len, groups)), uplinks, most, most_leaves)
    if up is None:
        return None
    downlinks = max(map(len, groups)) * up.bundle
    core = evenly(
        len(groups),
        uplinks_for(downlinks, oversubscription),
        spine_ports - downlinks,
        core_ports,
    )
    return Clos(tuple(groups), up, core) if core else None


def divisors_around(number: int, near: int) -> tuple[int, ...]:
    """Return the divisors of `number` next to `near`: at most one below and one above.

    Examples
    --------
    >>> divisors_around(32, 6), divisors_around(32, 40)
    ((4, 8), (32,))
    """
    below = next((count for count in range(min(near - 1, number), 0, -1) if number % count == 0), 0)
    above = next((count for count in range(near + 1, number + 1) if number % count == 0), 0)
    return tuple(filter(None, (below, above)))
