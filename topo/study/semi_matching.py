"""Deal out equally good things so that each serves as equal a number as can be."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def dealt(wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return one of its candidates for everybody, the loads as equal as the candidates allow.

    One after the other takes the least loaded thing that it can get, where need be by letting
    others that are served already take another; so the loads are the most equal ones (no other
    dealing has a smaller sum of squares). The same question has the same answer: ties fall to the
    first in order.

    Parameters
    ----------
    wanted
        For each who asks, what would do, in order of preference among equals.

    References
    ----------
    Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs and load balancing, 2006.

    Examples
    --------
    >>> dealt({"gpu0": ["nic0", "nic1"], "gpu1": ["nic0"]})
    {'gpu0': 'nic1', 'gpu1': 'nic0'}
    """
    chosen: dict[str, str] = {}
    served: dict[str, list[str]] = {thing: [] for things in wanted.values() for thing in things}
    for who in wanted:
        came_by = _within_reach(who, wanted, served)
        thing = min(came_by, key=lambda one: len(served[one]))  # the first of the least loaded
        while True:
            taker = came_by[thing]
            before = chosen.get(taker)
            chosen[taker] = thing
            served[thing].append(taker)
            if before is None:
                break
            served[before].remove(taker)
            thing = before
    return chosen


def _within_reach(
    who: str, wanted: Mapping[str, Sequence[str]], served: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return everything that `who` could free or take, with the one who would take it."""
    came_by: dict[str, str] = {}
    front = deque([who])
    seen = {who}
    while front:
        taker = front.popleft()
        for thing in wanted[taker]:
            if thing in came_by:
                continue
            came_by[thing] = taker
            for other in served[thing]:
                if other not in seen:
                    seen.add(other)
                    front.append(other)
    return came_by
