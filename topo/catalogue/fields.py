"""The keys of parts, media and needs, and what each holds.

One table says of each key which quantity it holds, and of each quantity how topo reads, writes,
shows and describes it: it drives the reader of parts, the reader of devices (a device may override
any figure of its part), YAML, JSON, pages and the JSON Schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from topo import units
from topo.catalogue.kinds import CARDS, DRIVES, HOSTS, KINDS, MEMORIES, STORAGE
from topo.errors import UnitError
from topo.records import dataclass

# --- quantities -------------------------------------------------------------------------------

NUMBER_PATTERN: Final = r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?"
RATE_PATTERN: Final = rf"{NUMBER_PATTERN} ?([kMGTP]i?B|B|[kMGTP]?(b|bit))/s"
SIZE_PATTERN: Final = rf"{NUMBER_PATTERN} ?[kMGTP]?i?B"
DURATION_PATTERN: Final = rf"{NUMBER_PATTERN} ?(s|ms|us|µs|ns|min|h)"
_DEAREST: Final = 1e15  # in any currency: sums of more say nothing


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """What a key may hold, and all that topo does with such a value.

    Parameters
    ----------
    name
        The word for it.
    schema
        The JSON Schema of its plain text or number.
    spell
        Writes a value exactly, as YAML has it.
    parse
        Reads a number or a flag from its text; `None` where reading takes more than the text.
    format
        Writes a number for people; `None` where they read what YAML has.
    unit
        The key of a number in JSON; empty for what is no number.
    """

    name: str
    schema: dict[str, Any]
    spell: Callable[[Any], Any]
    parse: Callable[[str], float] | None = None
    format: Callable[[float], str] | None = None
    unit: str = ""

    def spelled(self, value: Any) -> Any:
        """Return a value as YAML has it; unknown and unlimited are words.

        Examples
        --------
        >>> RATE.spelled(50e9), FLAG.spelled(None), COUNT.spelled(8.0)
        ('50 GB/s', 'unknown', 8)
        """
        return _word_for(value) or self.spell(value)

    def text(self, value: Any) -> str:
        """Return a value for people; unknown and unlimited are words.

        Examples
        --------
        >>> RATE.text(50e9 / 3), SIZE.text(float("inf"))
        ('16.67 GB/s', 'unlimited')
        """
        return _word_for(value) or str((self.format or self.spell)(value))


def _word_for(value: Any) -> str:
    if value is None:
        return "unknown"
    return "unlimited" if value == math.inf else ""


def _either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


def _pattern(pattern: str, *examples: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    return {**schema, "examples": list(examples)} if examples else schema


def _parse_amount(text: str) -> float:
    """Read what something costs, a plain number.

    All prices that are added up are of one currency, whichever: topo converts none.
    """
    stripped = text.strip(" ")
    if not re.fullmatch(NUMBER_PATTERN, stripped) or float(stripped) > _DEAREST:
        advice = "write a plain number up to 1e15, all of one currency: 1800"
        raise UnitError("bad-number", f"`{text}` is no price", advice)
    return float(stripped)


RATE: Final = Quantity(
    "rate",
    _pattern(f"^{RATE_PATTERN}$"),
    units.spell_rate,
    units.parse_rate,
    units.format_rate,
    "bytes_per_s",
)
SIZE: Final = Quantity(
    "size",
    _pattern(f"^{SIZE_PATTERN}$"),
    units.spell_size,
    units.parse_size,
    units.format_size,
    "bytes",
)
COUNT: Final = Quantity(
    "count",
    _either({"type": "integer", "minimum": 0}, _pattern("^[0-9]+$")),
    int,
    lambda text: units.parse_count(text, positive=False),
    "{:g}".format,
    "count",
)
RATIO: Final = Quantity(
    "ratio",
    _either(
        {"type": "number", "minimum": 0, "maximum": 1}, _pattern(rf"^{NUMBER_PATTERN} ?%?$", "85 %")
    ),
    units.spell_ratio,
    units.parse_ratio,
    units.format_ratio,
    "ratio",
)
DUPLEX: Final = Quantity(
    "duplex",
    _either(
        {"type": "number", "minimum": 0.5, "maximum": 1},
        _pattern(rf"^{NUMBER_PATTERN} ?%?$", "90 %"),
    ),
    units.spell_ratio,
    units.parse_duplex,
    units.format_ratio,
    "ratio",
)
TRANSFER_RATE: Final = Quantity(
    "transfer-rate",
    _pattern(rf"^{NUMBER_PATTERN} ?[MGT]?T/s$"),
    units.spell_transfer_rate,
    units.parse_transfer_rate,
    units.format_transfer_rate,
    "transfers_per_s",
)
DURATION: Final = Quantity(
    "duration",
    _pattern(rf"^{DURATION_PATTERN}$", "0.323 s"),
    units.spell_duration,
    units.parse_duration,
    units.format_duration,
    "s",
)
AMOUNT: Final = Quantity(
    "amount",
    _either({"type": "number", "minimum": 0}, _pattern(f"^{NUMBER_PATTERN}$")),
    lambda amount: int(amount) if float(amount).is_integer() else amount,
    _parse_amount,
    lambda amount: f"{amount:,.2f}".removesuffix(".00"),
    "amount",
)
FLAG: Final = Quantity(
    "flag",
    _either({"type": "boolean"}, {"enum": ["yes", "no", "on", "off", "true", "false"]}),
    lambda flag: "yes" if flag else "no",
    units.parse_flag,
)
TEXT: Final = Quantity("text", {"type": "string"}, str)
SLOT: Final = Quantity(
    "slot",
    _either(_pattern("^[1-9][0-9]?( x(1|2|4|8|16))?$", "5 x16"), {"type": "integer"}),
    lambda slot: str(slot.generation) + (f" x{slot.lanes}" if slot.lanes else ""),
)
PORTS: Final = Quantity(
    "ports",
    _either({"type": "integer", "minimum": 1}, {"type": "string", "examples": ["2x 400 Gb/s"]}),
    str,
)
# A flag, or caps by direction.
CAPS: Final = Quantity("caps", FLAG.schema, FLAG.spell, units.parse_flag)


# --- keys -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """One key: its quantity, one line of meaning, the kinds of parts that may have it.

    `words` are the only ones that a text may be; empty means any.
    """

    name: str
    quantity: Quantity
    meaning: str
    kinds: tuple[str, ...] = ()
    unlimited: bool = False
    words: tuple[str, ...] = ()


def _table(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


MODULES: Final = {"ddr4": "DDR4", "ddr5": "DDR5", "mrdimm": "MRDIMM", "lpddr5x": "LPDDR5X"}
"""The sorts of memory modules, by their words; a CPU has a key of that name for each it takes."""
_POPULATED: Final = (("", ", one DIMM a channel"), ("-2dpc", ", two DIMMs a channel"))
_PCIE: Final = (*CARDS, *DRIVES, "gpu", "pcie-switch", "cxl-memory", *HOSTS)

FIELDS: Final = _table(
    Field("read", RATE, "what it gives, bytes/s", STORAGE, unlimited=True),
    Field("write", RATE, "what it takes, bytes/s", STORAGE, unlimited=True),
    Field(
        "ports",
        PORTS,
        "network ports: `2x 400 Gb/s`; downstream ports of a PCIe switch: `6`",
        ("storage", *CARDS, "network-switch", "pcie-switch"),
    ),
    Field("chip", RATE, "what its chip passes between wire and PCIe, each direction", CARDS),
    Field("functions", COUNT, "PCI functions it shows", CARDS),
    Field("bridge", FLAG, "holds a PCIe switch whose downstream port carries a GPU", CARDS),
    Field("libfabric", FLAG, "`yes`: NCCL reaches it by libfabric's plugin alone", CARDS),
    Field("pcie", SLOT, "PCIe generation and lanes: `5 x16`", _PCIE),
    Field("pcie-lanes", COUNT, "lanes in all", (*HOSTS, "pcie-switch")),
    Field("chips", COUNT, "switch chips inside", ("pcie-switch", "nvswitch")),
    Field("virtual", FLAG, "a part of the Broadcom switch that it hangs on", ("pcie-switch",)),
    Field("acs", FLAG, "ACS redirect: peer traffic goes by the root", ("pcie-switch", *CARDS)),
    Field(
        "posted-to-roots",
        RATE,
        "posted writes of all devices behind it, where two or more write to GPUs behind two or "
        "more root ports",
        ("pcie-switch",),
    ),
    Field("fabric", PORTS, "GPU-to-GPU ports: `18x nvlink 4`", ("gpu", "nvswitch")),
    Field("fabric-efficiency", RATIO, "share of its GPU links' rate that is achievable", ("gpu",)),
    Field("memory", SIZE, "capacity of its memory", ("gpu",)),
    Field(
        "maker",
        TEXT,
        "`nvidia` or `amd`: whose drivers and libraries move its data",
        ("gpu",),
        words=("nvidia", "amd"),
    ),
    Field("hbm", RATE, "bandwidth of its memory", ("gpu",)),
    Field("bar1", SIZE, "window through which other devices reach its memory", ("gpu",)),
    Field("p2p", CAPS, "`no`, or peer-to-peer caps", ("gpu", "pcie-switch", *CARDS, *HOSTS)),
    Field(
        "accelerator",
        TEXT,
        "what it is to those who publish how long models compute: `h100`",
        ("gpu",),
    ),
    Field("gdr", FLAG, "`no`: without GPUDirect RDMA, a card and GPU memory", ("gpu", *CARDS)),
    Field(
        "controller-memory",
        FLAG,
        "`yes`: a buffer in the drive (CMB) that other devices read and write",
        ("nvme",),
    ),
    Field("on-network", FLAG, "`yes`: a volume of a cloud's network, seen as a drive", ("nvme",)),
    Field("forwards-p2p", FLAG, "the host bridge forwards peer-to-peer traffic", HOSTS),
    Field(
        "one-bridge-only",
        FLAG,
        "forwards peer-to-peer traffic below one host bridge, not from one to another",
        HOSTS,
    ),
    Field("cores", COUNT, "cores of one CPU", HOSTS),
    Field("core-copy", RATE, "what one core copies, bytes/s", HOSTS),
    Field("copy", RATE, "what all cores together copy, bytes/s", HOSTS),
    Field(
        "quadrant",
        RATE,
        "what all PCIe links of a quadrant pass to and from the rest of the CPU, each direction; a "
        "link says which: `cpu0/quadrant1`",
        ("cpu",),
    ),
    Field("architecture", TEXT, "`x86` or `arm`", HOSTS, words=("x86", "arm")),
    Field("socket-links", COUNT, "links that it has to other sockets", HOSTS),
    Field("memory-channels", COUNT, "memory channels of one CPU", HOSTS),
    *(
        Field(f"{module}{populated}", TRANSFER_RATE, f"the fastest {title} it takes{note}", HOSTS)
        for module, title in MODULES.items()
        for populated, note in _POPULATED
        if not populated or module.startswith("ddr")
    ),
    Field(
        "module",
        TEXT,
        "what the CPU has to take: `ddr4`, `ddr5`, `mrdimm` or `lpddr5x`",
        ("memory",),
        words=tuple(MODULES),
    ),
    Field("channels", COUNT, "memory channels in all", ("memory",)),
    Field("transfer-rate", TRANSFER_RATE, "transfers/s at one DIMM a channel", ("memory",)),
    Field("transfer-rate-2dpc", TRANSFER_RATE, "transfers/s at two DIMMs a channel", ("memory",)),
    Field("bytes-per-transfer", COUNT, "bytes a channel moves in one transfer", ("memory",)),
    Field("dimms-per-channel", COUNT, "DIMMs in each channel", ("memory",)),
    Field("bus", RATE, "reads and writes together", MEMORIES, unlimited=True),
    Field("size", SIZE, "capacity", (*MEMORIES, *DRIVES)),
    Field("efficiency", RATIO, "share of the computed rate that is achievable", KINDS),
    Field("duplex", DUPLEX, "what its PCIe link carries both ways at once, of twice one", _PCIE),
    Field(
        "sharp", RATIO, "share of its links' rate at which it reduces (NVLink SHARP)", ("nvswitch",)
    ),
    Field("price", AMOUNT, "what one costs, a plain number: all of one currency", KINDS),
)
FIGURE_KEYS: Final = frozenset(field.name for field in FIELDS.values() if field.quantity.unit)
FLAG_KEYS: Final = frozenset(
    field.name for field in FIELDS.values() if field.quantity in (FLAG, CAPS)
)

# What a part may say besides, and what a medium may say.
PART_WORDS: Final = {
    "kind": "the device kind, where the part is like no other",
    "like": "the part that it starts from",
    "title": "what a person calls it",
    "source": "where its figures come from",
    "source-kind": "`datasheet`, `measured`, `quoted`, `formula` or `guess`",
}
# What a figure may say beside its value, and what peer-to-peer caps may say.
FIGURE_WORDS: Final = {
    "value": "the figure itself, where it stands with its source",
    "source": "where it comes from",
    "kind": "`datasheet`, `measured`, `quoted` or `guess`",
    "range": "the least and the most that it may be, `60-75 %`: `topo doubt` asks what that does",
}
CAP_WORDS: Final = {
    "posted": "a device writes into a GPU: storage reads",
    "non-posted": "a device reads from a GPU: checkpoints",
    "source": "where the caps come from",
    "kind": FIGURE_WORDS["kind"],
}
MEDIUM_FIELDS: Final = _table(
    Field("like", TEXT, "the medium that it starts from"),
    Field("reach", TEXT, "`host`, `memory`, `network` or `gpu`: what it joins"),
    Field(
        "rate", RATE, "bytes/s of one cable, one direction; left out where the cable has to say it"
    ),
    Field("per-lane", FLAG, "the rate is of one lane, and a cable says how many: `x16`"),
    Field("transfer-rate", TRANSFER_RATE, "transfers/s of one lane, one bit each"),
    Field("encoding", TEXT, "payload bits over line bits: `128/130`"),
    Field("bytes-per-transfer", COUNT, "bytes one transfer moves, where a cable says GT/s"),
    Field("efficiency", RATIO, "share of the rate that is achievable"),
    Field("duplex", DUPLEX, "what both directions carry at once, of twice one: `90 %`"),
    Field("dma", RATIO, "share of the rate that devices get, not cores; all where it is not said"),
    *(Field(name, TEXT, PART_WORDS[name]) for name in ("title", "source", "source-kind")),
)
# What a model asks of storage, of a checkpoint's way and of its cache's.
NEED_FIELDS: Final = _table(
    Field("like", TEXT, "the need that it starts from"),
    Field("record", SIZE, "bytes of one record of its data"),
    Field("batch", COUNT, "records that an accelerator computes on at once"),
    Field(
        "step",
        DURATION,
        "how long an accelerator computes on a batch, by what it is: `{h100: 0.323 s}`",
    ),
    Field("rate", RATE, "what any accelerator reads, where that is said outright"),
    Field("utilisation", RATIO, "share of its time that it has to compute, to be fed"),
    Field("checkpoint", SIZE, "bytes of a checkpoint"),
    Field("layers", COUNT, "layers that keep keys and values of a token"),
    Field("kv-heads", COUNT, "heads of keys and values in a layer"),
    Field("head-dim", COUNT, "values of a head"),
    Field("kv-latent", COUNT, "values that a layer keeps instead of keys and values (MLA)"),
    Field("kv-value", SIZE, "bytes of one value in the KV cache"),
    Field("mttf", DURATION, "mean time to failure of one accelerator"),
    *(Field(name, TEXT, PART_WORDS[name]) for name in ("title", "source", "source-kind")),
)


def quantity_of(key: str) -> Quantity:
    """Return what a figure of a part, a medium or a cable is measured in, by its key.

    Examples
    --------
    >>> quantity_of("chip").unit, quantity_of("efficiency").unit
    ('bytes_per_s', 'ratio')
    """
    return (FIELDS.get(key) or MEDIUM_FIELDS.get(key) or NEED_FIELDS[key]).quantity


def keys_of(kind: str) -> tuple[str, ...]:
    """Return the keys that a part of `kind` may have, in the table's order.

    Examples
    --------
    >>> keys_of("nvswitch")
    ('chips', 'fabric', 'efficiency', 'sharp', 'price')
    """
    return tuple(field.name for field in FIELDS.values() if kind in field.kinds)
