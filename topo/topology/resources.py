"""Resources: what transfers share, and how fast each is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from topo.catalogue.fields import RATE
from topo.description.description import BASES
from topo.errors import Finding, UnknownNameError
from topo.phrases import brief, listed
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.description.description import Basis
    from topo.errors import Place

_BELOW: Final = 1 - 1e-9  # what is so near is not below

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
    "quadrant",
    "gpu-pcie",
    "gpu-memory",
    "gpu-fabric",
    "nccl-link",
    "in-switch",
    "peer-to-peer",
    "measured-pair",
    "stage",
    "workload-limit",
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

    def unknown(self, basis: Basis, load: float = math.inf) -> bool:
        """Whether it is not known if `load` bytes/s pass it.

        What nobody knows passes what stays below a guess that stands for it (`achievable`).
        """
        guess = self.achievable
        passes = guess is not None and not guess.unknown and load < (guess.value or 0.0) * _BELOW
        return self.at(basis).unknown and not passes

    def rate(self, basis: Basis) -> float:
        """Return bytes/s for a solver: an unknown capacity does not bind (`math.inf`)."""
        value = self.at(basis).value
        return math.inf if value is None else value

    def _pick(self, basis: Basis) -> tuple[Basis, Figure]:
        if basis == "theoretical":
            return "theoretical", self.theoretical
        if basis not in BASES:
            message, advice = f"no basis `{basis}`", f"there are {listed(BASES)}"
            raise UnknownNameError(Finding("unknown-name", message, help=advice))
        if basis == "measured" and self.measured is not None:
            return "measured", self.measured
        if self.achievable is not None:
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
    count
        How many alike resources it is named for: one, but in answers about a folded topology.
    """

    name: str
    kind: ResourceClass
    capacity: Capacity
    device: str
    direction: str = ""
    limited_by: str = ""
    place: Place | None = None
    count: int = 1

    def __repr__(self) -> str:
        return brief(self, f"{self.id}: {RATE.text(self.capacity.theoretical.value)}")

    @property
    def id(self) -> str:
        """A name that no other resource of the topology has."""
        return f"{self.name} {self.direction}" if self.direction else self.name
