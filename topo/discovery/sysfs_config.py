"""PCIe links from a function's config space, for systems that have no files for them.

References
----------
PCI Express Base Specification, 7.5.3: Link Capabilities and Link Status.
"""

from __future__ import annotations

from typing import Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import generations
from topo.discovery.pci import LinkSpeed

_STATUS, _POINTER, _HEADER = 0x06, 0x34, 64
_EXPRESS: Final = 0x10
_CAPABILITIES, _LINK_STATUS = 0x0C, 0x12
_MOST: Final = 48  # capabilities in 192 bytes, 4 each


def links_of(config: bytes) -> tuple[LinkSpeed, LinkSpeed]:
    """Return the link as it is and the most it can; both unknown where the space is cut.

    Only root reads more than 64 bytes, and the capabilities lie behind those.
    """
    if len(config) <= _HEADER or not config[_STATUS] & 0x10:
        return LinkSpeed(), LinkSpeed()
    at = config[_POINTER] & ~3
    for _ in range(_MOST):
        if at < _HEADER or at + _LINK_STATUS + 2 > len(config):
            break
        if config[at] == _EXPRESS:
            most = int.from_bytes(config[at + _CAPABILITIES : at + _CAPABILITIES + 4], "little")
            now = int.from_bytes(config[at + _LINK_STATUS : at + _LINK_STATUS + 2], "little")
            return _lanes(now), _lanes(most)
        at = config[at + 1] & ~3
    return LinkSpeed(), LinkSpeed()


def _lanes(word: int) -> LinkSpeed:
    """Return speed (bits 0 to 3) and width (bits 4 to 9)."""
    speed, width = word & 0xF, word >> 4 & 0x3F
    return LinkSpeed(speed if speed in generations() else None, width if width in LANES else None)
