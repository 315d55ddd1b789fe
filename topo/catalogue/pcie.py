"""PCIe generations: what the media say of them, asked by number or by transfer rate."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topo.catalogue.part import Medium


LANES: Final = (1, 2, 4, 8, 16)


@cache
def _generations() -> dict[int, Medium]:
    from topo.catalogue.load import catalogue

    media = catalogue().media
    names = [name for name in media if name.startswith("pcie ")]
    return {int(name.removeprefix("pcie ")): media[name] for name in names}


def generations() -> tuple[int, ...]:
    """Return the PCIe generations that there are, the oldest first."""
    return tuple(_generations())


def transfer_rate(generation: int) -> float:
    """Return the transfers/s of a lane.

    Examples
    --------
    >>> transfer_rate(5) / 1e9
    32.0
    """
    rate = _generations()[generation].transfer_rate
    assert rate is not None
    assert rate.value is not None
    return rate.value


def lane_rate(generation: int) -> float:
    """Return the bytes/s of a lane in one direction, coding taken off.

    Examples
    --------
    >>> [round(lane_rate(generation) / 1e9, 3) for generation in (3, 4, 5, 6)]
    [0.985, 1.969, 3.938, 7.375]
    """
    rate = _generations()[generation].rate
    assert rate is not None
    assert rate.value is not None
    return rate.value


def generation_of_transfer_rate(transfers_per_s: float) -> int | None:
    """Return the generation whose lanes move so many transfers/s, `None` when none does.

    Examples
    --------
    >>> generation_of_transfer_rate(16e9), generation_of_transfer_rate(3e9)
    (4, None)
    """
    rates = {transfer_rate(generation): generation for generation in generations()}
    return rates.get(transfers_per_s)
