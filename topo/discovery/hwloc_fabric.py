"""Links between GPUs in an hwloc file: the matrices NVLinkBandwidth and XGMIBandwidth.

Values are MB/s in one direction. A switch's ports are its own rows, and no GPU has an entry for
another that it reaches through a switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.discovery.machine import DiscoveredCable
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.discovery.hwloc_read import Matrix
    from topo.discovery.machine import DiscoveredDevice


_MEDIA: Final = {
    "nvlink 1": 20_000.0,
    "nvlink 2": 25_000.0,
    "nvlink 3": 25_000.0,
    "nvlink 4": 25_000.0,
    "nvlink 5": 50_000.0,
}
_ONE_LINK: Final = 20_000.0
_MOST: Final = 1_000.0  # GB/s: more is the diagonal's mark, no link


@dataclass(frozen=True, slots=True)
class Fabric:
    """The cables, and what is odd about them."""

    cables: tuple[DiscoveredCable, ...]
    findings: tuple[Finding, ...]


def fabric_of(
    matrices: tuple[Matrix, ...],
    device_of: Mapping[str, str],
    devices: Mapping[str, DiscoveredDevice],
) -> Fabric:
    """Return what the matrices join.

    Parameters
    ----------
    matrices
        Those of a file.
    device_of
        A device's `id` by the name that matrices have for an object: ``PCIDev:12``.
    devices
        The devices by their `id`.
    """
    totals: dict[tuple[str, str], list[float]] = {}
    lost: list[str] = []
    for matrix in matrices:
        if matrix.name not in ("NVLinkBandwidth", "XGMIBandwidth"):
            continue
        kind = float(matrix.name == "XGMIBandwidth")
        lost += [name for name in matrix.objects if name not in device_of]
        for one, other, there, back in _pairs(matrix, device_of):
            key = (one, other)
            ways = totals.setdefault(key, [0.0, 0.0, kind])
            ways[0] += there
            ways[1] += back
    cables = []
    for (one, other), (there, back, xgmi) in totals.items():
        cable, said = _cable(max(there, back), devices[one], devices[other], xgmi=bool(xgmi))
        cables.append(DiscoveredCable(one, other, cable, said))
    return Fabric(tuple(cables), tuple(_findings(totals, lost)))


def _pairs(matrix: Matrix, device_of: Mapping[str, str]) -> Iterator[tuple[str, str, float, float]]:
    """Yield two devices and the MB/s there and back, for each pair of objects that has any."""
    ends = [device_of.get(name, "") for name in matrix.objects]
    for row, one in enumerate(ends):
        for column in range(row + 1, len(ends)):
            other = ends[column]
            there, back = matrix.rows[row][column], matrix.rows[column][row]
            if one and other and one != other and 0 < max(there, back) < _MOST * 1000:
                yield one, other, there, back


def _cable(
    rate: float, one: DiscoveredDevice, other: DiscoveredDevice, *, xgmi: bool
) -> tuple[str, str]:
    """Return a cable and what was seen of it: as many links of the GPU's kind as it needs."""
    said = f"{rate / 1000:g} GB/s each way"
    if xgmi:
        return f"xgmi {rate / 1000:g} GB/s", said
    medium = _medium(one) or _medium(other)
    if not medium:
        medium = "nvlink 1" if rate % 25_000 and not rate % _ONE_LINK else "nvlink 3"
        said += f"; {medium} is a guess"
    count = max(1, round(rate / _MEDIA.get(medium, 25_000.0)))
    return (f"{count}x {medium}" if count > 1 else medium), said


def _medium(device: DiscoveredDevice) -> str:
    from topo.catalogue.load import catalogue

    part = catalogue().parts.get(device.part)
    fabric = part.fabric if part is not None and device.kind == "gpu" else None
    return fabric.medium or "" if fabric is not None and fabric.medium in _MEDIA else ""


def _findings(totals: dict[tuple[str, str], list[float]], lost: list[str]) -> Iterator[Finding]:
    odd = [key for key, (there, back, _) in totals.items() if there != back]
    if odd:
        one, other = odd[0]
        yield Finding(
            "asymmetric-links",
            f"{one} to {other} is {totals[odd[0]][0]:g} MB/s, and back {totals[odd[0]][1]:g}",
            severity="warning",
            help="the larger number was taken",
        )
    if lost:
        yield Finding(
            "gpu-missing",
            f"a matrix of links names {lost[0]}, which the file does not have; left out",
            severity="warning",
        )
