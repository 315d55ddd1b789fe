"""What RDMA tools say of network cards: ibstat, ibstatus, ibdev2netdev, ibv_devinfo, rdma link.

Each names RDMA devices and their ports: rate, state, link layer, interface. None tells where the
card is in the machine; ``ibdev2netdev -v`` has its PCI address.

References
----------
rdma-core, ``infiniband-diags/ibstat.c``, ``infiniband-diags/scripts/ibstatus`` and
``libibverbs/examples/devinfo.c``; mlnx-tools, ``ofed_scripts/ibdev2netdev``; iproute2,
``rdma/link.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from topo.catalogue.identities import MELLANOX, identify
from topo.description.names import stem_of as numbered
from topo.discovery.foreign import BEFORE, nothing_there, read_lines
from topo.discovery.machine import DiscoveredDevice, Machine, printable
from topo.discovery.pci import read_address
from topo.errors import Finding
from topo.phrases import and_more
from topo.records import dataclass

_NAME: Final = r"([A-Za-z][\w.-]{0,62})"
_DEVICE: Final = re.compile(
    rf"{BEFORE}(?:(?:CA|Switch|Router|iWARP RNIC|\?\?\?):? '{_NAME}'\s*|hca_id:\s*{_NAME}\s*)"
)
_STATUS: Final = re.compile(
    rf"{BEFORE}Infiniband device '{_NAME}' port (\d{{1,3}}) status:", re.IGNORECASE
)
_PORT: Final = re.compile(rf"{BEFORE}port:?\s*(\d{{1,3}}):?\s*", re.IGNORECASE)
_KEY: Final = re.compile(rf"{BEFORE}([A-Za-z][A-Za-z_ ]{{1,30}}?)\s*:\s*(\S.*)")
_TO_INTERFACE: Final = re.compile(
    rf"{BEFORE}(?:([0-9a-fA-F:]{{7,13}}\.[0-7])\s+)?{_NAME}\s+(?:\(MT(\d{{1,6}}) - .{{0,200}}?\s)?"
    r"port\s+(\d{1,3})\s+(?:\(\s*(\w{1,20})\s*\)\s*)?<?=+>\s*([\w.@-]{1,64})\s*\((\w{1,20})\s*\)"
)
_RDMA_LINK: Final = re.compile(
    rf"{BEFORE}(?:link|\d{{1,4}}/\d{{1,4}}:)\s+{_NAME}/(\d{{1,3}}):?\s+.*\bstate (\w{{1,20}})"
    r"(?:\s+physical_state (\w{1,20}))?(?:.*\bnetdev ([\w.-]{1,64}))?"
)
_MT: Final = re.compile(r"MT(\d{1,6})\b")
_RATE: Final = re.compile(r"(\d{1,7}(?:\.\d{1,4})?)\b")
_WIDTH: Final = re.compile(r"(\d{1,2})X")
_VIRTUAL: Final = range(4116, 4127, 2)  # of Mellanox, by the PCI ID Repository
_MOST: Final = 1024
_UP, _ACTIVE, _INITIALIZING = "linkup", "active", ("init", "initializing", "armed", "initialize")


@dataclass(slots=True)
class _Port:
    rate: float | None = None  # in Gb/s
    width: int | None = None
    speed: float | None = None  # of a lane
    state: str = ""
    physical: str = ""
    layer: str = ""
    interface: str = ""

    @property
    def is_down(self) -> bool:
        """Whether its rate says nothing: it has no link."""
        if self.physical:
            return self.physical != _UP
        return bool(self.state) and self.state not in (_ACTIVE, *_INITIALIZING)

    @property
    def bits_per_s(self) -> float | None:
        """The line rate, where it is told of a port that is up."""
        rate = self.rate
        if rate is None and self.width and self.speed:
            rate = self.width * self.speed
        return rate * 1e9 if rate and not self.is_down else None


@dataclass(slots=True)
class _Card:
    address: str = ""
    number: int | None = None  # of the PCI device
    vendor: str = MELLANOX
    ports: dict[int, _Port] = field(default_factory=dict)


def read(data: bytes, name: str) -> Machine:
    """Read the RDMA devices of any of these tools, or of several one after the other.

    Raises an `ExchangeError` if none is named.
    """
    cards, repeated = _cards(read_lines(data, name))
    physical = {
        rdma: card
        for rdma, card in cards.items()
        if card.number not in _VIRTUAL or card.vendor != MELLANOX
    }
    if not cards:
        help = "paste what `ibstat` or `ibdev2netdev -v` writes"
        message = f"`{name}` names no RDMA device"
        raise nothing_there(message, help)
    devices = tuple(_device(rdma, physical[rdma]) for rdma in sorted(physical, key=numbered))
    return Machine(
        kind="ibstat",
        source="what RDMA tools tell of ports",
        file=name,
        devices=devices,
        left_out=tuple(rdma for rdma in cards if rdma not in physical),
        findings=tuple(_findings(physical, repeated)),
        tells_only="the ports of network cards",
    )


def _cards(lines: Sequence[str]) -> tuple[dict[str, _Card], list[str]]:
    """Return the RDMA devices by name, and those that are told twice in unlike ways."""
    cards: dict[str, _Card] = {}
    repeated: dict[str, None] = {}
    card, port = _Card(), _Port()

    def card_named(rdma: str) -> _Card:
        return cards.setdefault(rdma, _Card()) if len(cards) < _MOST else _Card()

    def told(holder: _Card | _Port, key: str, value: object) -> None:
        before = getattr(holder, key)
        if before in (None, ""):
            setattr(holder, key, value)
        elif before != value and key in ("address", "number", "rate", "layer"):
            repeated.update((rdma, None) for rdma, named in cards.items() if named is card)

    for line in lines:
        if match := _DEVICE.fullmatch(line):
            card, port = card_named(match[1] or match[2]), _Port()
        elif match := _STATUS.match(line):
            card = card_named(match[1])
            port = card.ports.setdefault(int(match[2]), _Port())
        elif match := _TO_INTERFACE.match(line):
            card = card_named(match[2])
            port = card.ports.setdefault(int(match[4]), _Port())
            told(card, "address", read_address(match[1] or ""))
            if match[3]:
                told(card, "number", int(match[3]))
            told(port, "state", (match[5] or "").lower())
            told(port, "interface", match[6])
        elif match := _RDMA_LINK.match(line):
            card = card_named(match[1])
            port = card.ports.setdefault(int(match[2]), _Port())
            told(port, "state", match[3].lower())
            told(port, "physical", (match[4] or "").lower().replace("_", ""))
            told(port, "interface", match[5] or "")
        elif match := _PORT.fullmatch(line):
            port = card.ports.setdefault(int(match[1]), _Port())
        elif match := _KEY.match(line):
            for holder, key, value in _told_by(match[1].lower(), match[2].strip(), card, port):
                told(holder, key, value)
    return cards, list(repeated)


def _told_by(
    key: str, text: str, card: _Card, port: _Port
) -> Iterator[tuple[_Card | _Port, str, object]]:
    """Yield what a line `key: text` tells of a card or a port of it."""
    word = re.sub(r"\s*\(\d+\)|^\d+: *|^PORT_", "", text).strip().lower()
    number = _RATE.match(text)
    if key.endswith(" type") and (match := _MT.match(text)):
        yield card, "number", int(match[1])
    elif key == "vendor_part_id" and text.isdecimal() and len(text) <= 6:  # noqa: PLR2004
        yield card, "number", int(text)
    elif key == "vendor_id" and text.lower() != "0x02c9":
        card.vendor = ""  # the number is of another maker
    elif key == "state":
        yield port, "state", word
    elif key in ("physical state", "phys state", "phys_state"):
        yield port, "physical", word.replace("_", "")
    elif key == "rate" and number:
        yield port, "rate", float(number[1])
    elif key == "active_width" and (match := _WIDTH.match(text)):
        yield port, "width", int(match[1])
    elif key == "active_speed" and number:
        yield port, "speed", float(number[1])
    elif key in ("link layer", "link_layer") and word in ("infiniband", "ethernet", "ib"):
        yield port, "layer", "infiniband" if word == "ib" else word


def _device(rdma: str, card: _Card) -> DiscoveredDevice:
    ports = [port for _, port in sorted(card.ports.items())]
    part = ""
    if card.number is not None and card.vendor:
        part = identify(card.vendor, f"{card.number:04x}", ports=len(ports))
    layers = {port.layer for port in ports}
    return DiscoveredDevice(
        f"rdma {rdma}",
        "dpu" if part.startswith("bluefield") else "nic",
        part or "nic-unknown",
        pci=(card.address,) if card.address else (),
        rdma=(printable(rdma),),
        label=", ".join(dict.fromkeys(port.interface for port in ports if port.interface)),
        ports=tuple(port.bits_per_s for port in ports),
        network=next((layer for layer in ("infiniband", "ethernet") if layer in layers), ""),
        notices=tuple(
            f"port {number} of {rdma} is {state}"
            for number, port in sorted(card.ports.items())
            if (state := _trouble(port))
        ),
    )


def _trouble(port: _Port) -> str:
    """Return what is wrong with a port in words, ``""`` if nothing is."""
    if port.is_down:
        why = printable(port.physical if port.physical not in ("", "down") else port.state)
        return "down" if why == "down" else f"down ({why})"
    if port.state in _INITIALIZING:
        return "up and not active: no subnet manager has made it so"
    return ""


def _findings(cards: dict[str, _Card], repeated: list[str]) -> Iterator[Finding]:
    ports = [
        (f"{rdma} port {number}" if len(card.ports) > 1 else rdma, port)
        for rdma, card in sorted(cards.items(), key=lambda item: numbered(item[0]))
        for number, port in sorted(card.ports.items())
    ]
    down = [name for name, port in ports if port.is_down]
    if down:
        message = f"{len(down)} of {len(ports)} ports are down: {and_more(down)}"
        help = "a port that is down tells any rate: those of its part are taken"
        yield Finding("port-down", message, severity="warning", help=help)
    if repeated:
        message = f"{and_more(repeated)}: told twice, and not the same"
        help = "the first was taken; is this of two hosts? import each by itself"
        yield Finding("told-twice", message, severity="warning", help=help)
