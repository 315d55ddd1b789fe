"""What transfers share: resources, and the figures of their capacities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.catalogue.part import Figure, memory_headline_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.catalogue.part import Cable, Part, Ports
    from topo.description.description import Basis
    from topo.errors import Place
    from topo.topology.topology import Topology


ResourceClass = Literal[
    "storage-read",
    "storage-write",
    "network-port",
    "network-link",
    "nic-chip",
    "card-pcie",
    "drive-read",
    "drive-write",
    "drive-pcie",
    "controller-read",
    "controller-write",
    "controller-pcie",
    "uplink",
    "socket-link",
    "c2c",
    "memory-bus",
    "cpu-copy",
    "gpu-pcie",
    "gpu-memory",
    "gpu-fabric",
    "peer-to-peer",
    "measured-pair",
    "stage",
]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Up to three figures of one rate, in bytes/s.

    `theoretical` is always there (its value is `None` when unknown, `math.inf` when the user said
    `unlimited`); `achievable` is there when an efficiency is known; `measured` when somebody did.
    """

    theoretical: Figure
    achievable: Figure | None = None
    measured: Figure | None = None

    def at(self, basis: Basis) -> Figure:
        """Return the figure that `basis` uses: the nearest one stated, never a better one."""
        return self._pick(basis)[1]

    def used(self, basis: Basis) -> Basis:
        """Return which of the three `at` picks."""
        return self._pick(basis)[0]

    def rate(self, basis: Basis) -> float:
        """Return bytes/s for a solver: an unknown capacity does not bind (`math.inf`)."""
        value = self.at(basis).value
        return math.inf if value is None else value

    def _pick(self, basis: Basis) -> tuple[Basis, Figure]:
        if basis == "measured" and self.measured is not None:
            return "measured", self.measured
        if basis != "theoretical" and self.achievable is not None:
            return "achievable", self.achievable
        return "theoretical", self.theoretical


@dataclass(frozen=True, slots=True)
class Resource:
    """Anything with a finite rate that transfers share.

    Parameters
    ----------
    name
        As people write it: ``slot1/chip``, ``slot1 -> cpu1``, ``ram0/bus``.
    direction
        Which of two resources of that name it is: ``in`` (towards the device's host, or into the
        device), ``out``, ``posted``, ``non-posted``; empty when the name says it all.
    device
        The device that has it.
    limited_by
        What set the capacity: a medium, or the end of the link that allowed less.
    """

    name: str
    kind: ResourceClass
    capacity: Capacity
    device: str
    direction: str = ""
    limited_by: str = ""
    place: Place | None = None

    @property
    def id(self) -> str:
        """A name that no other resource of the topology has."""
        return f"{self.name} {self.direction}" if self.direction else self.name


def scaled(figure: Figure, efficiency: Figure | None) -> Figure | None:
    """Return the achievable figure: `figure` times `efficiency`.

    Only what topo computed or took from a datasheet is multiplied; a quoted or measured figure
    stands as it is in every basis. `None` when there is nothing to say beyond the theoretical.
    """
    if efficiency is None or efficiency.value is None or not figure.known or not figure.scalable:
        return None
    assert figure.value is not None
    return Figure(
        value=figure.value * efficiency.value,
        kind=efficiency.kind,
        source=f"{efficiency.value:.4g} of the theoretical: {efficiency.source}",
    )


def part_capacity(figure: Figure, part: Part) -> Capacity:
    """Return the capacity of a part's own figure, with the part's efficiency."""
    return Capacity(theoretical=figure, achievable=scaled(figure, part.figure("efficiency")))


def cable_capacity(
    cable: Cable, ends: tuple[tuple[str, Ports | None], ...]
) -> tuple[Capacity, str]:
    """Return the capacity of one direction of a link and what set it.

    Parameters
    ----------
    cable
        The bundle; its rate is of one cable.
    ends
        Each end's device name and the ports it is plugged into there (`None`: no limit stated).

    Returns
    -------
    capacity, limited_by
        The least of the medium and both ends, and the name of that one. A medium of unknown rate
        stays unknown, whatever its ends would allow.
    """
    rate, limited_by = cable.rate, cable.medium
    for device, ports in ends:
        if ports is not None and ports.rate is not None and _less(ports.rate, rate):
            rate, limited_by = ports.rate, f"port of {device}"
    total = _times(rate, cable.count)
    return Capacity(theoretical=total, achievable=scaled(total, cable.efficiency)), limited_by


def _less(one: Figure, other: Figure) -> bool:
    if one.value is None or other.value is None:
        return False
    return one.value < other.value * (1 - 1e-12)


def _times(rate: Figure, count: int) -> Figure:
    if count == 1 or rate.value is None or math.isinf(rate.value):
        return rate
    return Figure(rate.value * count, rate.kind, f"{count} x ({rate.source})")


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
