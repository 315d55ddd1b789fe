"""The rate of a memory's bus: channels times transfers times bytes, reads and writes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.part import Figure

if TYPE_CHECKING:
    from topo.catalogue.part import Part


_TWO = 2


def memory_bus_rate(part: Part) -> Figure:
    """Return what a memory's bus carries as it is populated, in bytes/s.

    A stated ``bus:`` stands; otherwise it is computed, at the speed of two DIMMs a channel where
    the part has them and says that speed. Unknown when a factor is.
    """
    stated = part.figure("bus")
    if stated is not None:
        return stated
    per_channel = _known(part.figure("dimms-per-channel")) or 1
    if per_channel < _TWO:
        return _computed(part, part.figure("transfer-rate"), "")
    slower = part.figure("transfer-rate-2dpc")
    note = f" at {per_channel:g} DIMMs a channel"
    if slower is None:
        return _computed(part, part.figure("transfer-rate"), f"{note}, no slower speed stated")
    return _computed(part, slower, note)


def memory_headline_rate(part: Part) -> Figure:
    """Return what a datasheet says: the bus at one DIMM a channel, or the stated ``bus:``."""
    stated = part.figure("bus")
    if stated is not None:
        return stated
    return _computed(part, part.figure("transfer-rate"), " at 1 DIMM a channel")


def _computed(part: Part, transfer_rate: Figure | None, note: str) -> Figure:
    channels = _known(part.figure("channels"))
    transfers = _known(transfer_rate)
    each = _known(part.figure("bytes-per-transfer"))
    named = {"channels": channels, "transfer-rate": transfers, "bytes-per-transfer": each}
    missing = [name for name, value in named.items() if value is None]
    if channels is None or transfers is None or each is None:
        return Figure(None, "formula", f"{' and '.join(missing)} unknown")
    return Figure(
        channels * transfers * each,
        "formula",
        f"{channels:g} channels x {transfers / 1e6:.10g} MT/s x {each:g} B{note}",
    )


def _known(figure: Figure | None) -> float | None:
    return figure.value if figure is not None else None
