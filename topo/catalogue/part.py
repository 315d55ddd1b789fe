"""What the catalogue knows: figures with their source, media, cables and parts.

The same types serve the shipped catalogue and a user's own `parts:` and `media:`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from topo.catalogue.fields import FIGURE_KEYS, FLAG_KEYS, MODULES
from topo.catalogue.kinds import HasKind, Kind
from topo.errors import Place
from topo.records import dataclass

FigureKind = Literal["formula", "datasheet", "measured", "quoted", "guess"]
Reach = Literal["host", "memory", "network", "gpu"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with where it comes from.

    Parameters
    ----------
    value
        In topo's one unit (bytes/s, bytes, transfers/s, a ratio, a count); `math.inf` is the
        user's `unlimited`, `None` is `unknown`.
    kind
        What sort of number it is; a figure in a user's file is `quoted`.
    source
        Document, page or ``file:line``; for a formula the formula with its numbers.
    at_most
        Whether it is only what cannot be exceeded, and the number itself is unknown.
    range
        The least and the most that it may be, as its source says; `None` where it does not.
    """

    value: float | None
    kind: FigureKind
    source: str
    at_most: bool = False
    range: tuple[float, float] | None = None

    @property
    def unknown(self) -> bool:
        """Whether the number is not known, though perhaps what it cannot exceed."""
        return self.value is None or self.at_most

    @property
    def known(self) -> bool:
        """Whether it is a finite number."""
        return self.value is not None and math.isfinite(self.value)

    @property
    def scalable(self) -> bool:
        """Whether an efficiency may multiply it: only what topo computed, never what was quoted."""
        return self.kind in ("formula", "datasheet")


@dataclass(frozen=True, slots=True)
class PeerCap:
    """A limit on device-to-device traffic, as behaviour that somebody stated or measured.

    `per_flow` says that each pair of one DMA engine and one GPU has it for itself; otherwise it
    is a total per direction.
    """

    rate: Figure
    per_flow: bool = False


@dataclass(frozen=True, slots=True)
class PeerCaps:
    """Peer-to-peer caps by PCIe's words.

    `posted`: a device writes into a GPU (storage reads); `non_posted`: a device reads from a GPU
    (checkpoints).
    """

    posted: PeerCap | None = None
    non_posted: PeerCap | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A PCIe generation and width, ``5 x16``; `lanes` is `None` where it is the cable's to say."""

    generation: int
    lanes: int | None
    source: str = ""
    kind: FigureKind = "quoted"


@dataclass(frozen=True, slots=True)
class Ports:
    """Places to plug cables in, ``2x 400 Gb/s`` or ``18x nvlink 4``.

    `count` is `None` when unknown, and of one chip where a part has several (an NVSwitch); of a
    PCIe switch it counts the downstream ports. `rate` is of one port and one direction, `None` when
    the part does not limit it; `medium` is a medium's name, `None` when several fit. `source` and
    `kind` are of the count.
    """

    count: int | None
    rate: Figure | None = None
    medium: str | None = None
    source: str = ""
    kind: FigureKind = "quoted"


@dataclass(frozen=True, slots=True)
class Medium:
    """What a cable is made of.

    Parameters
    ----------
    name
        As written in a cable: ``pcie 5``, ``infiniband ndr``, ``nvlink 4``, ``upi``.
    family
        The first word: ``pcie``, ``infiniband``, ``ethernet``, ``nvlink``, ``memory-bus`` ...
    reach
        What it joins: the inside of a host (PCIe, sockets, chip to chip), memory to its
        controller, hosts and storage over a network, or GPUs among themselves.
    rate
        Bytes/s of one lane (`per_lane`) or of one cable, one direction; `None` where the cable
        has to say it (``ethernet 400 Gb/s``).
    transfer_rate, encoding
        Of a lane, where `rate` is computed from them: ``32 GT/s`` and ``128/130``.
    bytes_per_transfer
        For media written with GT/s (``upi 16 GT/s``): bytes of one transfer, one direction.
    efficiency
        What protocol overhead leaves, as a ratio.
    duplex
        What both directions at once carry, as a ratio of twice one; `None` where it is twice.
    dma
        What devices get of one direction, as a ratio of the rate; `None` where it is all. Its value
        is unknown where it is known to be little and nobody can say how little.
    place
        Where a topology file says it; `None` for the catalogue's.
    """

    name: str
    family: str
    reach: Reach
    rate: Figure | None
    per_lane: bool = False
    transfer_rate: Figure | None = None
    encoding: str = ""
    bytes_per_transfer: Figure | None = None
    efficiency: Figure | None = None
    duplex: Figure | None = None
    dma: Figure | None = None
    title: str = ""
    source: str = ""
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cable:
    """One link's cabling: `count` equal cables of a medium side by side.

    `rate` is of one cable and one direction, already computed (lanes times lane rate, or as
    stated); its value is `None` when unknown, and infinite for a memory bus, whose memory is the
    limit. `efficiency` and `duplex` are the cable's own or its medium's. `medium` is the family
    alone where the generation is unknown (``pcie unknown``). `stated` is what somebody says that
    one cable carries in one direction, whatever medium and ends could do.
    """

    medium: str
    family: str
    reach: Reach
    rate: Figure
    count: int = 1
    lanes: int | None = None
    generation: int | None = None
    efficiency: Figure | None = None
    duplex: Figure | None = None
    p2p: PeerCaps | None = None
    text: str = ""
    stated: Figure | None = None


@dataclass(frozen=True, slots=True)
class Part(HasKind):
    """A catalogue entry, or a device's own variant of one.

    Parameters
    ----------
    name
        Its name in the catalogue or in `parts:`.
    kind
        The device kind.
    figures
        Numbers by key (`read`, `write`, `chip`, `bus`, `memory`, `hbm`, `copy`, `cores`,
        `channels`, `transfer-rate`, `dimms-per-channel`, `efficiency`, `chips`, `functions` ...);
        a key that is not there was not stated. The keys and their quantities are in
        `topo.catalogue.fields`.
    flags
        Facts that are yes, no or unknown (`None`): `p2p`, `acs`, `bridge`, `forwards-p2p`.
    facts
        Facts that are words.
    sources
        Where flags and facts come from, by key; figures, slots and ports carry their own.
    slot
        The PCIe side, for cards, drives, GPUs, switches and CPUs.
    ports
        Network ports.
    fabric
        GPU-to-GPU ports (NVLink, xGMI), or an NVSwitch's.
    peer_caps
        Stated peer-to-peer caps of traffic that this part forwards.
    place
        Where a user's file defines it; `None` for a part that topo ships.
    """

    name: str
    kind: Kind
    title: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    flags: Mapping[str, bool | None] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    slot: Slot | None = None
    ports: Ports | None = None
    fabric: Ports | None = None
    peer_caps: PeerCaps | None = None
    source: str = ""
    place: Place | None = None

    def figure(self, key: str) -> Figure | None:
        """Return the figure under `key`, `None` when it was not stated.

        Raises
        ------
        KeyError
            If no part can have such a key: a misspelt key must not read as "not stated".
        """
        if key not in FIGURE_KEYS:
            raise KeyError(key)
        return self.figures.get(key)

    def flag(self, key: str) -> bool | None:
        """Return a yes/no fact, `None` when unknown or not stated.

        Raises
        ------
        KeyError
            If no part can have such a key.
        """
        if key not in FLAG_KEYS:
            raise KeyError(key)
        return self.flags.get(key)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Parts and media by name, each decoded when it is first asked for, in file order."""

    parts: Mapping[str, Part]
    media: Mapping[str, Medium]


# --- a memory's bus: channels x transfers x bytes, reads and writes together -------------------


def memory_bus_rate(part: Part) -> Figure:
    """Return what a memory's bus carries as it is populated, in bytes/s.

    A stated ``bus:`` stands; otherwise it is computed, at the speed of two DIMMs a channel where
    the part has them and says that speed. Unknown when a factor is.
    """
    per_channel = _value(part.figure("dimms-per-channel")) or 1
    note = ""
    if per_channel > 1:
        note = f" at {per_channel:g} DIMMs a channel"
        note += ", no slower speed stated" if part.figure("transfer-rate-2dpc") is None else ""
    return part.figure("bus") or _computed(part, memory_transfer_rate(part), note)


def memory_transfer_rate(part: Part) -> Figure | None:
    """Return transfers/s of a memory as it is populated, `None` where nobody states them."""
    several = (_value(part.figure("dimms-per-channel")) or 1) > 1
    slower = part.figure("transfer-rate-2dpc") if several else None
    return slower or part.figure("transfer-rate")


def module_limit(cpu: Part, module: str, dimms_per_channel: float = 1.0) -> Figure | None:
    """Return the most transfers/s that a CPU takes of a sort of module (`MODULES`).

    Two DIMMs a channel are never faster than one. `None` where the CPU does not say.
    """
    keys = [module, f"{module}-2dpc"] if dimms_per_channel > 1 else [module]
    figures = (cpu.figures.get(key) for key in keys)
    known = [figure for figure in figures if figure is not None and figure.value is not None]
    return min(known, key=lambda figure: figure.value or 0.0, default=None)


def modules_taken(cpu: Part) -> tuple[str, ...]:
    """Return the sorts of memory module that a CPU says it takes; none where it says nothing."""
    return tuple(module for module in MODULES if module in cpu.figures)


def memory_headline_rate(part: Part) -> Figure:
    """Return what a datasheet says: the bus at one DIMM a channel, or the stated ``bus:``."""
    at_one = _computed(part, part.figure("transfer-rate"), " at 1 DIMM a channel")
    return part.figure("bus") or at_one


def _computed(part: Part, transfer_rate: Figure | None, note: str) -> Figure:
    channels = _value(part.figure("channels"))
    transfers = _value(transfer_rate)
    transferred = _value(part.figure("bytes-per-transfer"))
    named = {"channels": channels, "transfer-rate": transfers, "bytes-per-transfer": transferred}
    missing = [name for name, value in named.items() if value is None]
    if channels is None or transfers is None or transferred is None:
        return Figure(None, "formula", f"{' and '.join(missing)} unknown")
    return Figure(
        channels * transfers * transferred,
        "formula",
        f"{channels:g} channels x {transfers / 1e6:.10g} MT/s x {transferred:g} B{note}",
    )


def _value(figure: Figure | None) -> float | None:
    return figure.value if figure is not None else None
