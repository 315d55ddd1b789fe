"""What the accelerators behind an endpoint ask for: how many and what they are, their rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.description.description import ModelNeed, Workload
    from topo.topology.topology import Topology


def accelerators_at(need: ModelNeed) -> int:
    """Return how many accelerators stand behind each endpoint: one, where it is one itself."""
    return need.accelerators or 1


def accelerator_at(topology: Topology, need: ModelNeed, endpoint: str) -> str:
    """Return what they are; empty where neither the workload nor the GPU's part says it."""
    return need.accelerator or topology[endpoint].part.facts.get("accelerator", "")


def rate_of_one(topology: Topology, need: ModelNeed, endpoint: str) -> Figure:
    """Return the bytes/s that one accelerator behind an endpoint reads while it never waits."""
    return need.model.rate(accelerator_at(topology, need, endpoint))


def asked_rate(topology: Topology, workload: Workload, endpoint: str) -> float:
    """Return the most bytes/s that an endpoint takes; no limit where it is not known.

    Accelerators that have all that they compute on take no more.
    """
    need = workload.need
    if need is None or need.asks != "needs":
        return math.inf
    rate = rate_of_one(topology, need, endpoint).value
    return math.inf if rate is None else rate * accelerators_at(need)
