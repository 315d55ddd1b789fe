"""Text of ``ethtool INTERFACE``: the speed of an interface, and whether it has a link.

References
----------
ethtool, ``netlink/settings.c`` and ``ethtool.c``: ``dump_link_settings``.
"""

from __future__ import annotations

import re
from typing import Final

from topo.discovery.foreign import nothing_there, read_lines
from topo.discovery.machine import DiscoveredDevice, Machine, printable
from topo.errors import Finding
from topo.phrases import and_more

_SETTINGS: Final = re.compile(r"\s*Settings for ([\w.@-]{1,64}):\s*")
_KEY: Final = re.compile(r"\s*(Speed|Link detected):\s*(\S.*?)\s*")
_SPEED: Final = re.compile(r"(\d{1,8})Mb/s")
_MOST: Final = 1024


def read(data: bytes, name: str) -> Machine:
    """Read the settings of interfaces.

    Raises an `ExchangeError` if none is in it.
    """
    told: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in read_lines(data, name):
        if match := _SETTINGS.fullmatch(line):
            values = told.setdefault(match[1], {}) if len(told) < _MOST else {}
        elif match := _KEY.fullmatch(line):
            values.setdefault(match[1], match[2])
    interfaces = {interface: values for interface, values in told.items() if values}
    if not interfaces:
        message = f"`{name}` has no settings of an interface"
        raise nothing_there(message, "run `ethtool eth0`")
    down = [
        interface
        for interface, values in interfaces.items()
        if values.get("Link detected", "").startswith("no")
    ]
    findings = []
    if down:
        message = f"{len(down)} of {len(interfaces)} interfaces have no link: {and_more(down)}"
        help = "a port that is down tells any rate: those of its part are taken"
        findings.append(Finding("port-down", message, severity="warning", help=help))
    return Machine(
        kind="ethtool",
        source="output of ethtool",
        file=name,
        devices=tuple(
            DiscoveredDevice(
                f"interface {interface}",
                "nic",
                "nic-unknown",
                label=printable(interface),
                ports=(None if interface in down else _bits_per_s(values.get("Speed", "")),),
                notices=(f"{printable(interface)} has no link",) if interface in down else (),
            )
            for interface, values in interfaces.items()
        ),
        findings=tuple(findings),
        tells_only="the speed of network interfaces",
    )


def _bits_per_s(text: str) -> float | None:
    match = _SPEED.match(text)
    return int(match[1]) * 1e6 or None if match else None
