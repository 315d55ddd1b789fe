"""The figures of a resource: what a cable and its two ends allow, what a part states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.catalogue.part import Figure
from topo.topology.topology import Capacity

if TYPE_CHECKING:
    from topo.catalogue.part import Cable, Part, Ports


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
