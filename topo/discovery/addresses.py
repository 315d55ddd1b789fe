"""PCI addresses as the various tools write them."""

from __future__ import annotations

import re

# The PCI domain of the addresses that topo itself makes up where a format needs one.
MADE_UP = "fffe"
_ADDRESS = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})"
    r"(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_MOST_DEVICES = 32


def read_address(text: str) -> str:
    """Return an address in full, ``""`` when it is none.

    Examples
    --------
    >>> read_address("1B:00"), read_address("10000:01:00.1"), read_address("fffffff:ffff:ff")
    ('0000:1b:00.0', '10000:01:00.1', '')
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["device"], 16) >= _MOST_DEVICES:
        return ""
    domain, bus, device = (int(found[name] or "0", 16) for name in ("domain", "bus", "device"))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{found['function'] or 0}"


def card_of(address: str) -> str:
    """Return the address without its function: what the functions of one card share."""
    return address.rpartition(".")[0]


def short_address(address: str) -> str:
    """Return an address without the domain that is everybody's.

    Examples
    --------
    >>> short_address("0000:1b:00.0"), short_address("0001:00:00.0")
    ('1b:00.0', '0001:00:00.0')
    """
    return address.removeprefix("0000:")
