"""The keys that a part may have: their quantity, the kinds they belong to, what they mean.

One table for the reader of parts, the reader of devices (a device may override any figure of its
part), the JSON Schema and the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Quantity = Literal[
    "rate", "size", "count", "ratio", "transfer-rate", "flag", "text", "slot", "ports", "caps"
]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a part: what it holds, which kinds may have it, one line of meaning.

    `words` are the only ones that a text may be; empty means any.
    """

    name: str
    quantity: Quantity
    kinds: tuple[str, ...]
    meaning: str
    unlimited: bool = False
    words: tuple[str, ...] = ()


_HOST = ("cpu", "root-complex")
_CARDS = ("nic", "dpu")
_DRIVES = ("nvme", "hba")
_ALL = (
    "storage",
    "nic",
    "nvme",
    "hba",
    "pcie-switch",
    "root-complex",
    "cpu",
    "memory",
    "gpu",
    "nvswitch",
    "network-switch",
    "dpu",
    "cxl-memory",
)
_PCIE = ("nic", "dpu", "nvme", "hba", "gpu", "pcie-switch", "cxl-memory", *_HOST)

KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("read", "rate", ("storage", *_DRIVES), "what it gives, bytes/s", unlimited=True),
        Key("write", "rate", ("storage", *_DRIVES), "what it takes, bytes/s", unlimited=True),
        Key(
            "ports",
            "ports",
            ("storage", *_CARDS, "network-switch", "pcie-switch"),
            "network ports: `2x 400 Gb/s`; downstream ports of a PCIe switch: `6`",
        ),
        Key("chip", "rate", _CARDS, "what its chip passes between wire and PCIe, each direction"),
        Key("functions", "count", _CARDS, "PCI functions it shows"),
        Key("bridge", "flag", _CARDS, "holds a PCIe switch whose downstream port carries a GPU"),
        Key("pcie", "slot", _PCIE, "PCIe generation and lanes: `5 x16`"),
        Key("pcie-lanes", "count", (*_HOST, "pcie-switch"), "lanes in all"),
        Key("chips", "count", ("pcie-switch", "nvswitch"), "switch chips inside"),
        Key("acs", "flag", ("pcie-switch", *_CARDS), "ACS redirect: peer traffic goes by the root"),
        Key("fabric", "ports", ("gpu", "nvswitch"), "GPU-to-GPU ports: `18x nvlink 4`"),
        Key("memory", "size", ("gpu",), "capacity of its memory"),
        Key("hbm", "rate", ("gpu",), "bandwidth of its memory"),
        Key("bar1", "size", ("gpu",), "window through which other devices reach its memory"),
        Key("p2p", "caps", ("gpu", "pcie-switch", *_CARDS, *_HOST), "`no`, or peer-to-peer caps"),
        Key("forwards-p2p", "flag", _HOST, "the host bridge forwards peer-to-peer traffic"),
        Key("cores", "count", _HOST, "cores of one CPU"),
        Key("core-copy", "rate", _HOST, "what one core copies, bytes/s"),
        Key("copy", "rate", _HOST, "what all cores together copy, bytes/s"),
        Key("architecture", "text", _HOST, "`x86` or `arm`", words=("x86", "arm")),
        Key("channels", "count", ("memory",), "memory channels in all"),
        Key("transfer-rate", "transfer-rate", ("memory",), "transfers/s at one DIMM a channel"),
        Key(
            "transfer-rate-2dpc", "transfer-rate", ("memory",), "transfers/s at two DIMMs a channel"
        ),
        Key("bytes-per-transfer", "count", ("memory",), "bytes a channel moves in one transfer"),
        Key("dimms-per-channel", "count", ("memory",), "DIMMs in each channel"),
        Key("bus", "rate", ("memory", "cxl-memory"), "reads and writes together", unlimited=True),
        Key("size", "size", ("memory", "cxl-memory", *_DRIVES), "capacity"),
        Key("efficiency", "ratio", _ALL, "share of the computed rate that is achievable"),
    )
}
FIGURE_KEYS = frozenset(
    key.name
    for key in KEYS.values()
    if key.quantity in ("rate", "size", "count", "ratio", "transfer-rate")
)
FLAG_KEYS = frozenset({key.name for key in KEYS.values() if key.quantity == "flag"} | {"p2p"})


# What a part may say besides its keys, and what a medium may say.
PART_WORDS: dict[str, str] = {
    "kind": "the device kind, where the part is like no other",
    "like": "the part that it starts from",
    "title": "what a person calls it",
    "source": "where its figures come from",
    "source-kind": "`datasheet`, `measured`, `quoted`, `formula` or `guess`",
}
MEDIUM_KEYS: dict[str, str] = {
    "like": "the medium that it starts from",
    "reach": "`host`, `memory`, `network` or `gpu`: what it joins",
    "rate": "bytes/s of one cable, one direction; left out where the cable has to say it",
    "per-lane": "the rate is of one lane, and a cable says how many: `x16`",
    "transfer-rate": "transfers/s of one lane, one bit each",
    "encoding": "payload bits over line bits: `128/130`",
    "bytes-per-transfer": "bytes one transfer moves, where a cable says GT/s",
    "efficiency": "share of the rate that is achievable",
    "title": "what a person calls it",
    "source": "where its figures come from",
    "source-kind": "`datasheet`, `measured`, `quoted`, `formula` or `guess`",
}


def keys_of(kind: str) -> tuple[str, ...]:
    """Return the keys that a part of `kind` may have, in the table's order.

    Examples
    --------
    >>> keys_of("nvswitch")
    ('chips', 'fabric', 'efficiency')
    """
    return tuple(key.name for key in KEYS.values() if kind in key.kinds)
