"""The NVLinks that a locality matrix tells: between pairs, or through switches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from topo.discovery.machine import DiscoveredCable
from topo.discovery.matrix import links_in

if TYPE_CHECKING:
    from topo.discovery.matrix import Matrix


SWITCH: Final = "nvswitch"
_MOST_LINKS: Final = 18  # of one GPU: more in sum means that a switch is between


def by_switch(matrix: Matrix) -> bool:
    """Whether one GPU would need more links than it has, were they all direct."""
    sums: Counter[str] = Counter()
    for (one, other), count in _links(matrix).items():
        sums[one] += count
        sums[other] += count
    return max(sums.values(), default=0) > _MOST_LINKS


def nvlinks(matrix: Matrix) -> tuple[DiscoveredCable, ...]:
    """Return the cables: between pairs, or from each GPU to a switch."""
    links = _links(matrix)
    if not by_switch(matrix):
        return tuple(
            DiscoveredCable(one, other, _cable(count), f"NV{count}")
            for (one, other), count in links.items()
        )
    most: dict[str, int] = {}
    for pair, count in links.items():
        for name in pair:
            most[name] = max(most.get(name, 0), count)
    return tuple(
        DiscoveredCable(name, SWITCH, _cable(most[name]), f"NV{most[name]}")
        for name in matrix.gpus
        if name in most
    )


def _links(matrix: Matrix) -> dict[tuple[str, str], int]:
    gpus = set(matrix.gpus)
    return {
        (one, other): count
        for one, other, code in matrix.pairs()
        if (count := links_in(code)) > 0 and {one, other} <= gpus
    }


def _cable(count: int) -> str:
    return f"{count}x nvlink unknown" if count > 1 else "nvlink unknown"
