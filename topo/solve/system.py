"""What every solver gives for a `topo.flows.system.System`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.flows.system import System as System  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Sequence


TIE = 1e-9
"""Two levels are one, and a resource is full, within this relative difference."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each demand gets.

    Parameters
    ----------
    rates
        Bytes/s of each demand.
    loads
        Bytes/s carried by each resource.
    stops
        For each demand the full resources that stop it (ascending), empty when its own limit does.
        Ties within a relative 1e-9 are all listed.
    rule
        Which question was asked.
    """

    rates: Sequence[float]
    loads: Sequence[float]
    stops: tuple[tuple[int, ...], ...]
    rule: Literal["max-min", "largest-total"] = "max-min"
