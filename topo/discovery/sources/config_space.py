"""A PCI function's config space: its link, its payload sizes, what it does with peer traffic.

Only root reads more than the header; what lies behind is unknown to others.

References
----------
PCI Express Base Specification, 7.5.3 (Device Control, Link Capabilities and Link Status), 7.7.11
(Access Control Services) and 7.8.6 (Resizable BAR).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import generations
from topo.discovery.pci import LinkSpeed
from topo.records import dataclass

HEADER_SIZE: Final = 64
_BASIC_SIZE: Final = 256
_STATUS, _POINTER = 0x06, 0x34
_HAS_CAPABILITIES: Final = 0x10
_EXPRESS, _EXPRESS_SIZE = 0x10, 0x14  # as much of it as is read
_DEVICE_CAPABILITIES, _DEVICE_CONTROL, _LINK_CAPABILITIES, _LINK_STATUS = 0x04, 0x08, 0x0C, 0x12
_ACS, _ACS_CONTROL, _ACS_SIZE = 0x000D, 6, 8
_REQUEST_REDIRECT: Final = 0x04
_RESIZABLE, _RESIZABLE_SIZE, _MOST_RESIZABLE = 0x0015, 8, 6  # registers of each region
_SMALLEST_WINDOW: Final = 2**20  # bytes; each bit is twice the one before
_MOST_CAPABILITIES: Final = 48  # in 192 bytes, 4 each
_MOST_EXTENDED: Final = 480  # in 3840 bytes, 8 each
_SMALLEST_PAYLOAD: Final = 128  # bytes; each step doubles it
_STEPS: Final = 6  # more are reserved


@dataclass(frozen=True, slots=True)
class Payload:
    """What a function puts into one packet, in bytes.

    Parameters
    ----------
    most
        The largest that it can (MaxPayload supported).
    now
        The largest that it may (MaxPayload).
    read
        The most that one read request asks for (MaxReadReq).
    """

    most: int
    now: int
    read: int


def config_links(config: bytes) -> tuple[LinkSpeed, LinkSpeed]:
    """Return the link as it is and the most it can; unknown where the space is cut."""
    at = _express(config, _LINK_STATUS + 2)
    if at is None:
        return LinkSpeed(), LinkSpeed()

    def speed_at(offset: int, size: int) -> LinkSpeed:
        word = int.from_bytes(config[offset : offset + size], "little")
        generation, lanes = word & 0xF, word >> 4 & 0x3F  # bits 0 to 3, and 4 to 9
        return LinkSpeed(
            generation if generation in generations() else None, lanes if lanes in LANES else None
        )

    return speed_at(at + _LINK_STATUS, 2), speed_at(at + _LINK_CAPABILITIES, 4)


def config_payload(config: bytes) -> Payload | None:
    """Return the sizes of packets; `None` where the space is cut, or says what is reserved."""
    at = _express(config, _DEVICE_CONTROL + 2)
    if at is None:
        return None
    most = config[at + _DEVICE_CAPABILITIES] & 0x7  # bits 0 to 2
    control = int.from_bytes(config[at + _DEVICE_CONTROL : at + _DEVICE_CONTROL + 2], "little")
    steps = (most, control >> 5 & 0x7, control >> 12 & 0x7)
    if max(steps) >= _STEPS:
        return None
    return Payload(*(_SMALLEST_PAYLOAD << step for step in steps))


def config_is_express(config: bytes) -> bool | None:
    """Return whether a function has a PCI Express link; `None` where the space is cut."""
    if len(config) < _BASIC_SIZE:
        return None
    return any(capability == _EXPRESS for _, capability in _basic(config))


def config_redirects(config: bytes) -> bool | None:
    """Return whether a port redirects peer requests (ACS); `None` where the space is cut."""
    if len(config) <= _BASIC_SIZE:
        return None
    for at, capability in _extended(config):
        if capability == _ACS and at + _ACS_SIZE <= len(config):
            return bool(config[at + _ACS_CONTROL] & _REQUEST_REDIRECT)
    return False


def config_largest_window(config: bytes) -> int | None:
    """Return the largest size that a region can have; `None` where none is told to be resizable."""
    sizes = [
        int.from_bytes(config[start : start + 4], "little") >> 4  # bit 4 is the smallest
        for at, capability in _extended(config)
        if capability == _RESIZABLE
        for start in _resizable(config, at)
    ]
    bits = max(sizes, default=0).bit_length()
    return _SMALLEST_WINDOW << bits - 1 if bits else None


def _resizable(config: bytes, at: int) -> range:
    """Return where the capability's registers of each region begin."""
    count = int.from_bytes(config[at + 8 : at + 12], "little") >> 5 & 0x7
    end = at + 4 + _RESIZABLE_SIZE * min(count, _MOST_RESIZABLE)
    return range(at + 4, end, _RESIZABLE_SIZE) if end <= len(config) else range(0)


def without_identity(config: bytes) -> bytes:
    """Return a space with nothing in it but what is read here: no serial numbers.

    The header stays, and which capabilities there are; of them the sizes, the link and ACS, and
    how large regions can be.
    """
    kept = bytearray(len(config))
    kept[:HEADER_SIZE] = config[:HEADER_SIZE]
    for at, capability in _basic(config):
        size = _EXPRESS_SIZE if capability == _EXPRESS else 2
        kept[at : at + size] = config[at : at + size]
    for at, capability in _extended(config):
        size = _ACS_SIZE if capability == _ACS else 4
        if capability == _RESIZABLE:
            size = len(_resizable(config, at)) * _RESIZABLE_SIZE + 4
        kept[at : at + size] = config[at : at + size]
    return bytes(kept[: len(config)])


def _express(config: bytes, needed: int) -> int | None:
    """Return where the PCI Express capability begins, if so many bytes of it are there."""
    for at, capability in _basic(config):
        if capability == _EXPRESS:
            return at if at + needed <= len(config) else None
    return None


def _basic(config: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each capability of the first 256 bytes begins, and its number."""
    if len(config) <= HEADER_SIZE or not config[_STATUS] & _HAS_CAPABILITIES:
        return
    at = config[_POINTER] & ~3
    for _ in range(_MOST_CAPABILITIES):
        if at < HEADER_SIZE or at + 2 > len(config):
            return
        yield at, config[at]
        at = config[at + 1] & ~3


def _extended(config: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each capability beyond the first 256 bytes begins, and its number."""
    at = _BASIC_SIZE
    for _ in range(_MOST_EXTENDED):
        if at < _BASIC_SIZE or at + 4 > len(config):
            return
        header = int.from_bytes(config[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return
        yield at, header & 0xFFFF
        at = header >> 20 & ~3
