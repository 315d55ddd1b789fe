"""How long the ways of a data path are: hops and links, which may differ from branch to branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.routes.route import waypoints

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.routes.route import Route
    from topo.topology.topology import Topology


def hops_range(topology: Topology, routes: Iterable[Route]) -> tuple[int, int]:
    """Return the fewest and the most hops over all branches of `routes`; zeros for none."""
    return _range(
        len(waypoints(topology, subflow)) - 1 for route in routes for subflow in route.subflows
    )


def links_range(routes: Iterable[Route]) -> tuple[int, int]:
    """Return the fewest and the most links walked over all branches of `routes`."""
    return _range(
        sum(len(transfer.walk) for transfer in subflow.transfers)
        for route in routes
        for subflow in route.subflows
    )


def _range(lengths: Iterable[int]) -> tuple[int, int]:
    found = sorted(set(lengths)) or [0]
    return found[0], found[-1]
