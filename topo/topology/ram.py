"""What all system memories carry together: as populated, and as a datasheet's headline says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.catalogue.memory import memory_headline_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.description import Basis
    from topo.topology.topology import Topology


def ram_rate(topology: Topology, basis: Basis = "theoretical") -> float | None:
    """Return bytes/s of all memory buses together, `None` if one is unknown or there is none."""
    buses = (topology.resources.get(f"{one.name}/bus") for one in topology.of_kind("memory"))
    return _sum(bus.capacity.at(basis).value if bus else None for bus in buses)


def ram_headline(topology: Topology) -> float | None:
    """Return bytes/s of all memories with one DIMM a channel, whatever is populated."""
    return _sum(memory_headline_rate(one.part).value for one in topology.of_kind("memory"))


def _sum(rates: Iterable[float | None]) -> float | None:
    known = list(rates)
    finite = [rate for rate in known if rate is not None and math.isfinite(rate)]
    return math.fsum(finite) if finite and len(finite) == len(known) else None
