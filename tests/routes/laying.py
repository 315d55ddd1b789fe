"""Lay one data path on a machine in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from topo.datapaths.registry import data_path
from topo.routes.route import Policy, Route
from topo.routes.router import Router

if TYPE_CHECKING:
    from topo.topology.topology import Topology


def laid(
    machine: Topology,
    via: str,
    gpu: str = "gpu0",
    *,
    storage: str = "storage",
    direction: Literal["read", "write"] = "read",
    policy: Policy | None = None,
) -> Route:
    router = Router(machine, policy)
    storages = tuple(device.name for device in machine.select(storage))
    return router.route(data_path(machine.description, via), storages, gpu, direction)


def walks(route: Route) -> list[list[str]]:
    """Return the devices of each leg of the first branch, in the order of travel."""
    return [
        [transfer.walk[0].source, *(step.target for step in transfer.walk)]
        if transfer.walk
        else [transfer.source]
        for transfer in route.subflows[0].transfers
    ]


def codes(route: Route, *effects: str) -> list[str]:
    return [reason.code for reason in route.reasons if not effects or reason.effect in effects]
