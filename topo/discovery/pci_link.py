"""A PCIe link from what its two ends say: the less of both, at its best and as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import LANES, generations, lane_rate, transfer_rate
from topo.discovery.machine import DiscoveredLink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.discovery.pci import Function, Lanes


_FLIT_OF_HWLOC: Final = 7.5625  # GB/s of a lane of PCIe 6: hwloc counts 242 of 256 bytes as payload
_NEAR: Final = 0.01


@dataclass(frozen=True, slots=True)
class PciLink:
    """A link and what is odd about it: each is ``""`` or the words for it.

    `idle`: slower now than both ends can. `narrow`: fewer lanes now than both ends can. `uneven`:
    the device can more than the port above it. `odd`: a rate that no PCIe link has.
    """

    link: DiscoveredLink
    idle: str = ""
    narrow: str = ""
    uneven: str = ""
    odd: str = ""


def link_between(device: Function, port: Function | None, *, usual: int = 16) -> PciLink:
    """Return the link of a device to the port above it.

    Parameters
    ----------
    device, port
        The two ends; the port is `None` where the source does not show it.
    usual
        How many lanes such a device has, for sources that tell a rate alone.
    """
    if device.most or device.now:
        return _told(device, port)
    rates = [end.rate for end in (device, port) if end is not None and end.rate]
    if not rates:
        return PciLink(DiscoveredLink(said="speed not told"))
    return _guessed(min(rates), device, port, usual)


def _told(device: Function, port: Function | None) -> PciLink:
    ends = [end.most for end in (device, port) if end is not None and end.most]
    generation = _least(lanes.generation for lanes in ends)
    lanes = _least(lanes.lanes for lanes in ends)
    now = device.now
    idle = narrow = ""
    whole = port is not None and bool(port.most) and bool(device.most)
    who = "both ends can" if whole else "the device can"
    if now.generation and generation and now.generation < generation:
        rates = [transfer_rate(each) / 1e9 for each in (now.generation, generation)]
        idle = f"{rates[0]:g} GT/s now, and {who} {rates[1]:g} GT/s"
    if now.lanes and lanes and now.lanes < lanes:
        narrow = f"x{now.lanes} now, and {who} x{lanes}"
    link = DiscoveredLink(
        generation or now.generation,
        now.lanes if narrow else lanes or now.lanes,
        said="; ".join(text for text in (idle, narrow) if text) or _said(device, port),
    )
    return PciLink(link, idle, narrow, _uneven(device.most, port))


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _said(device: Function, port: Function | None) -> str:
    if port is not None and port.most and device.most:
        return ""
    return "of the device alone" if device.most else "as it is now"


def _uneven(most: Lanes, port: Function | None) -> str:
    if port is None or not port.most or not most:
        return ""
    pairs = ((most.generation, port.most.generation), (most.lanes, port.most.lanes))
    if all(mine is None or its is None or mine <= its for mine, its in pairs):
        return ""
    return f"the device can {_words(most)}, the port above it {_words(port.most)}"


def _words(lanes: Lanes) -> str:
    speed = f"PCIe {lanes.generation}" if lanes.generation else "PCIe"
    return f"{speed} x{lanes.lanes}" if lanes.lanes else speed


# --- a rate alone ---------------------------------------------------------------------------------


def _guessed(rate: float, device: Function, port: Function | None, usual: int) -> PciLink:
    found = guess(rate, usual)
    above = port.rate if port is not None else None
    uneven = ""
    if device.rate and above and device.rate - above > _NEAR * rate:
        uneven = f"the device says {device.rate:.4g} GB/s, the port above it {above:.4g}"
    if found is None:
        return PciLink(
            DiscoveredLink(said=f"{rate:.4g} GB/s, which no PCIe link has"),
            uneven=uneven,
            odd=f"{rate:.4g} GB/s",
        )
    said = f"{rate:.4g} GB/s seen; generation and width are a guess"
    return PciLink(DiscoveredLink(*found, said=said), uneven=uneven)


def guess(rate: float, usual: int) -> tuple[int, int] | None:
    """Return a generation and width with this rate in GB/s, `None` when there is none.

    Several have nearly the same: 15.75 is 3 x16, 4 x8 and 5 x4. The width nearest to the usual
    one is taken.

    Examples
    --------
    >>> guess(15.753846, 16), guess(15.753846, 4), guess(0.2, 16)
    ((3, 16), (5, 4), None)
    """
    widths = sorted(LANES, key=lambda width: (max(width, usual) / min(width, usual), -width))
    for width in widths:
        for generation in generations():
            lane = _FLIT_OF_HWLOC if generation == 6 else lane_rate(generation) / 1e9  # noqa: PLR2004
            if abs(lane * width - rate) <= _NEAR * rate:
                return generation, width
    return None
