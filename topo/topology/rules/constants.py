"""The numbers that other programs plan with, by release, read from the YAML beside this file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from topo.document import parse
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.errors import Finding, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from topo.catalogue.part import Cable
    from topo.description.description import Device
    from topo.document.nodes import Node
    from topo.topology.topology import Topology


NEWEST: Final = "current"
_NAMED: Final = re.compile(r"(intel|amd|zhaoxin|arm|power)-([0-9]+)-([0-9]+)")
_PER_LANE: Final = 80.0  # 100 Mbit/s a lane into GB/s, eight bits in a byte


@dataclass(frozen=True, slots=True)
class NcclNumbers:
    """What one release of NCCL takes links for, in GB/s."""

    release: str
    source: str
    lane: Table[str, float]
    lanes: int
    nvlink: Table[str, float]
    between: tuple[Table[str, str], ...]
    inside: float

    def pcie(self, cable: Cable) -> float:
        """Return what a PCIe link counts as."""
        key = str(cable.generation) if cable.generation else "unknown"
        each = self.lane.get(key, self.lane["unknown"])
        return (cable.lanes or self.lanes) * cable.count * each / _PER_LANE

    def links(self, cable: Cable) -> float:
        """Return what a bundle of NVLinks counts as."""
        return self.nvlink.get(cable.medium, self.nvlink["unknown"]) * cable.count

    def sockets(self, vendor: str, family: int, model: int) -> float:
        """Return what the way from one NUMA node to another counts as."""
        for row in self.between:
            fits = "family" not in row or (
                int(row["family"]) == family and model >= int(row["model"])
            )
            if row["vendor"] == vendor and fits:
                return float(row["rate"])
        return self.inside


@cache
def nccl_releases() -> tuple[str, ...]:
    """Return the releases that there are numbers of, the newest first."""
    return tuple(_read("nccl"))


@cache
def nccl_numbers(release: str = NEWEST) -> NcclNumbers:
    """Return the numbers of a release.

    Raises
    ------
    UnknownNameError
        If there are none.
    """
    table = _read("nccl")
    if release not in table:
        message = f"no numbers of NCCL's release `{release}`"
        help = f"there are {', '.join(table)}"
        raise UnknownNameError(Finding("unknown-name", message, help=help))
    own: dict[str, Any] = table[release]
    row = {**table.get(own.get("like", ""), {}), **own}
    return NcclNumbers(
        release=release,
        source=row["source"],
        lane={key: float(value) for key, value in row["pcie-lane"].items()},
        lanes=int(row["pcie-lanes"]),
        nvlink={key: float(value) for key, value in row["nvlink"].items()},
        between=tuple(row["between-cpus"]),
        inside=float(row["inside"]),
    )


def cpu_numbers(topology: Topology, device: Device) -> tuple[str, int, int]:
    """Return vendor, family and model of a CPU, ``("unknown", 0, 0)`` where nothing says it."""
    name: str | None = device.part.name
    table = _read("cpus")
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        found = _NAMED.fullmatch(name)
        if found:
            return found[1], int(found[2]), int(found[3])
        if name in table:
            vendor, family, model = table[name].split()
            return vendor, int(family), int(model)
        name = topology.description.likes.get(name)
    return ("arm" if device.part.facts.get("architecture") == "arm" else "unknown", 0, 0)


@cache
def _read(name: str) -> dict[str, Any]:
    file = files("topo.topology.rules") / f"{name}.yaml"
    found = _plain(parse(file.read_bytes(), name=f"{name}.yaml").root)
    assert isinstance(found, dict)
    return found


def _plain(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key.text: _plain(value) for key, value in node}
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.text
