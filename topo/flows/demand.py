"""Who wants what: demands on routes, and the use matrix that they make together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.flows.system import System
    from topo.routes.route import Route
    from topo.topology import Resource


@dataclass(frozen=True, slots=True)
class Demand:
    """This many bytes for one GPU, by one route.

    Parameters
    ----------
    workload
        The workload it is part of.
    gpu
        The GPU that is filled or emptied.
    route
        How the bytes travel.
    size
        Bytes.
    weight, limit, start
        Fair-share weight; rate limit in bytes/s (`math.inf` for none); start in seconds.
    own_limit
        The part of `limit` that the workload states, without what its workers can move.
    """

    workload: str
    gpu: str
    route: Route
    size: float
    weight: float
    limit: float
    start: float
    own_limit: float = math.inf

    @property
    def name(self) -> str:
        """Workload and GPU: ``load gpu0``."""
        return f"{self.workload} {self.gpu}"


@dataclass(frozen=True, slots=True)
class UseMatrix:
    """Demands and resources: row `d` of `system` is ``demands[d]``, column `r` ``resources[r]``.

    `basis` is what the capacities were taken at; an unknown capacity does not bind.
    """

    demands: tuple[Demand, ...]
    resources: tuple[Resource, ...]
    basis: Basis
    system: System
