"""What transfers share: resources, and where the figures of their capacities come from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from topo.catalogue.part import Cable, Figure, Ports, memory_bus_rate, memory_headline_rate
from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from topo.catalogue.kinds import Kind
    from topo.description.description import Basis, Device
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


# --- of devices -----------------------------------------------------------------------------------

_CHIP: Final[tuple[tuple[str, ResourceClass, str], ...]] = (
    ("chip", "nic-chip", "in"),
    ("chip", "nic-chip", "out"),
)
_BUS: Final[tuple[tuple[str, ResourceClass, str], ...]] = (("bus", "memory-bus", ""),)
_COPY: Final[tuple[tuple[str, ResourceClass, str], ...]] = (("copy", "cpu-copy", ""),)
# Side of the device, which is its figure's key as well, class and direction.
_OF_KIND: Final[Mapping[Kind, tuple[tuple[str, ResourceClass, str], ...]]] = {
    "storage": (("read", "storage-read", ""), ("write", "storage-write", "")),
    "nvme": (("read", "drive-read", ""), ("write", "drive-write", "")),
    "hba": (("read", "controller-read", ""), ("write", "controller-write", "")),
    "nic": _CHIP,
    "dpu": _CHIP,
    "memory": _BUS,
    "cxl-memory": _BUS,
    "cpu": _COPY,
    "root-complex": _COPY,
    "gpu": (("hbm", "gpu-memory", ""),),
}


def device_resources(device: Device) -> Iterator[Resource]:
    """Yield the resources that a device has by itself, without its links."""
    part = device.part
    for side, kind, direction in _OF_KIND.get(device.kind, ()):
        figure = memory_bus_rate(part) if side == "bus" else part.figure(side)
        if figure is None:
            continue
        achievable = _scaled(figure, part.figure("efficiency"))
        yield Resource(
            name=f"{device.name}/{side}",
            direction=direction,
            kind=kind,
            capacity=Capacity(theoretical=figure, achievable=achievable),
            device=device.name,
            limited_by=part.name,
            place=device.place,
        )


def _scaled(figure: Figure, efficiency: Figure | None) -> Figure | None:
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


# --- of cables ------------------------------------------------------------------------------------


def cable_capacity(cable: Cable, ends: Iterable[tuple[str, Ports | None]]) -> tuple[Capacity, str]:
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
        port_rate = ports.rate if ports is not None else None
        if port_rate is None or port_rate.value is None or rate.value is None:
            continue
        if port_rate.value < rate.value * (1 - 1e-12):
            rate, limited_by = port_rate, f"port of {device}"
    if cable.count > 1 and rate.value is not None and not math.isinf(rate.value):
        source = f"{cable.count} x ({rate.source})"
        rate = Figure(rate.value * cable.count, rate.kind, source)
    return Capacity(theoretical=rate, achievable=_scaled(rate, cable.efficiency)), limited_by


# --- of all memories together ---------------------------------------------------------------------


def ram_rate(topology: Topology, basis: Basis = "theoretical") -> float | None:
    """Return bytes/s of all memory buses together, `None` if one is unknown or there is none."""
    buses = (topology.resources.get(f"{ram.name}/bus") for ram in topology.of_kind("memory"))
    return _sum(bus.capacity.at(basis).value if bus else None for bus in buses)


def ram_headline(topology: Topology) -> float | None:
    """Return bytes/s of all memories with one DIMM a channel, whatever is populated."""
    return _sum(memory_headline_rate(ram.part).value for ram in topology.of_kind("memory"))


def _sum(rates: Iterable[float | None]) -> float | None:
    values = list(rates)
    finite = [rate for rate in values if rate is not None and math.isfinite(rate)]
    return math.fsum(finite) if finite and len(finite) == len(values) else None
