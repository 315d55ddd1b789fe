"""What a device, a cable and all memories together can carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.part import (
    Cable,
    Figure,
    Medium,
    Part,
    Ports,
    memory_bus_rate,
    memory_headline_rate,
)
from topo.topology.resources import Capacity, Resource, ResourceClass
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.catalogue.kinds import Kind
    from topo.description.description import Basis, Device

# --- resources of devices -------------------------------------------------------------------------

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
    "pcie-switch": (("posted-to-roots", "peer-to-peer", ""),),
}


def device_resources(device: Device) -> Iterator[Resource]:
    """Yield the resources that a device has by itself, without its links."""
    part = device.part
    for side, kind, direction in _OF_KIND.get(device.kind, ()):
        figure = memory_bus_rate(part) if side == "bus" else part.figure(side)
        if figure is None and side == "copy":
            figure = _copied_by_all_cores(part)
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


def _copied_by_all_cores(part: Part) -> Figure | None:
    """Return what all cores together copy: as many times what one does, where both are known."""
    cores, each = part.figure("cores"), part.figure("core-copy")
    if cores is None or each is None or cores.value is None or each.value is None:
        return None
    source = f"{cores.value:g} cores x ({each.source})"
    return Figure(cores.value * each.value, each.kind, source)


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
        at_most=figure.at_most,
    )


# --- resources of cables --------------------------------------------------------------------------


def cable_capacity(
    cable: Cable,
    ends: Iterable[tuple[str, Ports | None]],
    medium_of: Callable[[str], Medium | None],
) -> tuple[Capacity, str]:
    """Return the capacity of one direction of a link and what set it.

    Parameters
    ----------
    cable
        The bundle; its rate is of one cable.
    ends
        Each end's device name and the ports it is plugged into there (`None`: no limit stated).
    medium_of
        Finds a medium by name: for the efficiency of a port's, where the cable's is unknown.

    Returns
    -------
    capacity, limited_by
        The least of the medium and both ends, and the name of that one. A medium of unknown rate
        carries at most what its ends take, and is unknown where they do not say. A stated rate
        stands whatever they say.
    """
    rate, limited_by, efficiency = cable.stated or cable.rate, cable.medium, cable.efficiency
    unknown = rate.value is None
    for device, ports in () if cable.stated and not unknown else ends:
        port_rate = ports.rate if ports is not None else None
        if ports is None or port_rate is None or port_rate.value is None:
            continue
        if rate.value is None or port_rate.value < rate.value * (1 - 1e-12):
            rate, limited_by = replace(port_rate, at_most=unknown), f"port of {device}"
            medium = medium_of(ports.medium or "") if unknown else None
            efficiency = medium.efficiency if medium else cable.efficiency
    if cable.count > 1 and rate.value is not None and not math.isinf(rate.value):
        source = f"{cable.count} x ({rate.source})"
        rate = replace(rate, value=rate.value * cable.count, source=source, range=None)
    return Capacity(theoretical=rate, achievable=_scaled(rate, efficiency)), limited_by


# --- all memories together ------------------------------------------------------------------------


def ram_rate(topology: Topology, basis: Basis = "theoretical") -> float | None:
    """Return bytes/s of all memory buses together, `None` if one is unknown or there is none."""
    rates = []
    for ram in topology.of_kind("memory"):
        bus = topology.resources.get(f"{ram.name}/bus")
        rate = bus.capacity.at(basis).value if bus else None
        rates.append(None if rate is None else rate * topology.cell_size(ram.name))
    return _sum(rates)


def ram_headline(topology: Topology) -> float | None:
    """Return bytes/s of all memories with one DIMM a channel, whatever is populated."""
    rates = []
    for ram in topology.of_kind("memory"):
        rate = memory_headline_rate(ram.part).value
        rates.append(None if rate is None else rate * topology.cell_size(ram.name))
    return _sum(rates)


def _sum(rates: Iterable[float | None]) -> float | None:
    values = list(rates)
    finite = [rate for rate in values if rate is not None and math.isfinite(rate)]
    return math.fsum(finite) if finite and len(finite) == len(values) else None
