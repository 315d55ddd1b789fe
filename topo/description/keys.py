"""The keys of each place in a file, and the readers of nodes that go by them.

One table says what a key holds, whether it must be there and what it means: for the readers
(unknown keys, near names, words), the JSON Schema and the documentation. Each reader adds what is
wrong to the report and returns `None` (or nothing) for what it could not read, so that one mistake
does not hide the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import field
from functools import partial
from typing import Any, Final, TypeVar, get_args

from topo.catalogue.values import SENTENCES, rejoin
from topo.description.description import (
    COLLECTIVES,
    FABRIC_KINDS,
    GROUPS,
    ROUTING,
    Pairing,
    Target,
)
from topo.description.needs import parse_accelerators, parse_tokens
from topo.document.nodes import Mapping, Node, Report, Scalar, Sequence
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed, near_names
from topo.records import dataclass
from topo.units import (
    parse_count,
    parse_duration,
    parse_rate,
    parse_ratio_range,
    parse_weight,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One key and what stands under it.

    Parameters
    ----------
    holds
        What kind of value: a key of `READERS` where one reader serves every such key, and of
        `schema.VALUES` where it has no `words`.
    meaning
        What it means, in one line.
    words
        The words that it may hold; empty where any text may stand.
    spellings
        Other spellings of its words: a Python or JSON document says `false` where YAML says `off`.
    required, example
        Whether it must be there, and what a message then offers.
    """

    name: str
    holds: str
    meaning: str
    required: bool = False
    example: str = ""
    words: tuple[str, ...] = ()
    spellings: MappingOf[str, str] = field(default_factory=dict)


Keys = dict[str, Row]
Reader = Callable[[Node, Row, str, Report], Any]


def _table(*rows: Row) -> Keys:
    return {row.name: row for row in rows}


ON_OFF: Final = ("off", "on")
# What the GDS driver may support, by gdscheck's rows.
GDS_SUPPORT: Final = (
    *("nvme", "nvmeof", "p2pdma", "scsi", "scaleflux", "nvmesh", "lustre", "gpfs", "nfs"),
    *("beegfs", "scatefs", "virtiofs", "wekafs", "userspace-rdma"),
)
_NEEDS: Final = (
    *("peer-to-peer", "filesystem", "rdma", "local-drive", "remote-storage", "c2c", "fabric"),
    *("cufile", "nvidia-gpu", "controller-memory"),
)
# The last where a tool cannot tell the two apart.
_IOMMU: Final = ("off", "passthrough", "on", "passthrough-or-on")
_FLAGS: Final = {"no": "off", "false": "off", "yes": "on", "true": "on"}
_COMPAT_FLAGS: Final = {**_FLAGS, "yes": "allowed", "true": "allowed", "on": "allowed"}

TOP: Final = _table(
    Row("topo", "version", "the version of this format, always 1", required=True, example="1"),
    Row("name", "text", "a short name for the machine"),
    Row("title", "text", "one line for headings and pictures"),
    Row(
        "group",
        "word",
        "where `topo parts --machines` lists it, where its devices do not tell",
        words=GROUPS,
    ),
    Row("settings", "settings", "facts of the host"),
    Row("parts", "parts", "parts of your own, or variants of built-in ones"),
    Row("media", "media", "kinds of cable of your own, or figures that vary built-in ones"),
    Row("data-paths", "data-paths", "named ways of moving data, of your own"),
    Row("needs", "needs", "what models of your own ask for, or variants of built-in ones"),
    Row("devices", "devices", "what the machine is made of, by name"),
    Row("fabrics", "fabrics", "networks by rule: their switches and cables are made from counts"),
    Row("links", "links", "what is cabled to what: `- a -- b: cable`"),
    Row("measured", "measured", "rates that somebody measured: `- a -> b: 55 GB/s`"),
    Row("workloads", "workloads", "how many bytes go from where to where"),
    Row("expect", "expect", "sentences that `topo check` judges"),
    Row("sweep", "sweep", "what `topo sweep` varies: the values of each key of `--set`"),
)

DEVICE: Final = _table(
    Row("part", "part-name", "the part it is, built-in or of `parts:`", required=True),
    Row("label", "text-list", "what people call it: `Slot1`"),
    Row("role", "text-list", "what it is for: `compute`, `storage`"),
    Row("slot", "text-list", "the slot it sits in"),
    Row("pci", "pci-list", "its PCI address, one a PCI function: `1b:00.0`"),
    Row("rdma", "text-list", "its RDMA name, one a PCI function: `mlx5_0`"),
    Row("numa", "numa-list", "the OS numbers of a CPU's NUMA nodes: `0-3`"),
    Row("outside", "flag", "a stand-in for what the machine is cabled to"),
)

FABRIC: Final = _table(
    Row(
        "kind",
        "word",
        "`rail-optimized` (a leaf for each rail of a unit), `fat-tree` or `leaf-spine`",
        required=True,
        example="rail-optimized",
        words=FABRIC_KINDS,
    ),
    Row(
        "of",
        "selection",
        "the network cards that it joins, or machines that are used",
        required=True,
        example="nic",
    ),
    Row("cards", "selection", "which cards of each of these machines, one a rail"),
    Row("rails", "count", "how many of them a node has, each on a rail; 1 when not said"),
    Row("switch", "part-name", "the part that its switches are", required=True),
    Row("spine-switch", "part-name", "the part that spines are, where it is another"),
    Row("core-switch", "part-name", "the part that cores are, where it is another"),
    Row("cable", "cable-text", "what joins a card with its leaf", required=True),
    Row("uplink", "cable-text", "what joins switches; one of `cable` when not said"),
    Row("levels", "count", "2 or 3; 3 when not said and 2 do not suffice"),
    Row("unit", "count", "nodes that a leaf serves; as many as its ports allow when not said"),
    Row(
        "oversubscription",
        "ratios",
        "bandwidth below a leaf over that above it, `2` or `4:3`; a list goes on with the spines",
    ),
    Row("leaves", "count", "leaves in all; as many as the cards need when not said"),
    Row("spines", "count", "spines in all; as few as the uplinks need when not said"),
    Row("uplinks", "count", "cables from a leaf to spines; by `oversubscription` when not said"),
)

USE: Final = _table(
    Row(
        "use",
        "text-list",
        "the machine that stands here: a built-in one, or a file beside this one",
        required=True,
    ),
    Row("set", "overrides", "what is changed in it: `{slot1.part: connectx-8-dual-port}`"),
)

SETTINGS: Final = _table(
    Row(
        "iommu",
        "flag-word",
        "`off`, `passthrough` or `on`",
        words=_IOMMU,
        spellings={**_FLAGS, "pt": "passthrough"},
    ),
    Row("filesystem", "text", "what the storage is mounted as: `lustre`, `ext4`, `nfs`"),
    Row(
        "transport", "word", "how remote storage is reached: `rdma` or `tcp`", words=("rdma", "tcp")
    ),
    Row(
        "compat-mode",
        "flag-word",
        "cuFile's fallback: `off`, `allowed` or `forced`",
        words=("off", "allowed", "forced"),
        spellings=_COMPAT_FLAGS,
    ),
    Row(
        "dynamic-routing",
        "routing",
        "cuFile's: `off`, `on`, or its order as a list",
        words=ROUTING,
        spellings=_FLAGS,
    ),
    Row(
        "direct-writes",
        "flag-word",
        "whether cuFile writes to remote storage directly",
        words=ON_OFF,
        spellings=_FLAGS,
    ),
    Row(
        "p2pdma",
        "flag-word",
        "whether cuFile reads local drives by the kernel's peer-to-peer DMA",
        words=ON_OFF,
        spellings=_FLAGS,
    ),
    Row(
        "nvlink-sharp",
        "flag-word",
        "whether NVSwitches reduce, as NCCL's NVLS has them do",
        words=ON_OFF,
        spellings=_FLAGS,
    ),
    Row(
        "gds-support",
        "word-list",
        "what the GDS driver supports here: `[nvme, lustre]`",
        words=GDS_SUPPORT,
    ),
    Row("gds-denied", "word-list", "drivers and filesystems that cuFile may not use directly"),
)

WORKLOAD: Final = _table(
    Row(
        "read",
        "work-size",
        "bytes towards GPUs: from storage, RAM or cards: `640 GB`, or `80 GB each`",
    ),
    Row("write", "work-size", "bytes away from GPUs: to storage, RAM or cards"),
    Row("copy", "work-size", "bytes from any of storage, RAM, network cards and GPUs to another"),
    Row("needs", "need-name", "a model whose data is read, as fast as its accelerators compute"),
    Row("checkpoint", "need-name", "a model whose checkpoint is written, or read back"),
    Row("kv-cache", "need-name", "a model whose KV cache of so many `tokens` is moved"),
    Row("tokens", "tokens", "how many tokens the KV cache holds: `128000`, `128Ki`, `1M`"),
    Row(
        "accelerators",
        "accelerators",
        "what computes, where the GPU's part does not tell: `h100`; `5x h100 each` where data goes "
        "to RAM; of a checkpoint how many may fail: `16384`",
    ),
    Row(
        "mttf",
        "positive-duration",
        "mean time to failure of one accelerator: MLCommons' 50000 h when not said",
    ),
    Row("from", "selection", "the devices the data comes from", required=True),
    Row("to", "selection", "the devices the data goes to", required=True),
    Row("via", "name-list", "data paths to compare; when not said the usual: legacy and direct"),
    Row("efficiency", "ratio-range", "end-to-end share of theory: `60-80 %`"),
    Row("weight", "weight", "its share when it competes with others; 1 when not said"),
    Row("limit", "rate", "the most it may take in all"),
    Row(
        "pairing",
        "word",
        "which of several each takes: all its `nearest` (of RAM when not said), `all`, `in-order`",
        words=get_args(Pairing),
    ),
    Row(
        "target",
        "word",
        "how another host's drive reaches its cards: `staged` in its RAM (when not said) or `p2p`",
        words=get_args(Target),
    ),
    Row("start", "duration", "when it starts; 0 s when not said"),
)

# A workload that is a collective: no transfer from here to there.
COLLECTIVE: Final = _table(
    *(Row(name, "work-size", f"bytes of it ({name}), by nccl-tests") for name in COLLECTIVES),
    Row("over", "selection", "the GPUs that take part", required=True, example="gpu"),
    Row("root", "selection", "the GPU at which a broadcast begins or a reduce ends: the first"),
    *(WORKLOAD[key] for key in ("via", "efficiency", "weight", "limit", "start")),
)

DATA_PATH: Final = _table(
    Row("title", "text", "one line that says how it moves data"),
    Row("moves", "moves", "in order: `storage -> kernel-buffer by nic`"),
    Row(
        "stages",
        "word",
        "`pipelined` (the slowest decides) or `serial` (times add)",
        words=("pipelined", "serial"),
    ),
    Row(
        "workers",
        "count",
        "workers for each GPU (or other end that is filled or emptied), for `serial`",
    ),
    Row("needs", "word-list", "facts it cannot do without: `peer-to-peer`", words=_NEEDS),
    Row("falls-back-to", "text", "the data path taken where this one is refused"),
    Row(
        "to-other-servers",
        "text",
        "of a copy between GPUs: the data path to those of other servers",
    ),
    Row("source", "text", "where this is described"),
)

MOVE: Final = _table(
    Row("rate", "worker-rate", "the stage's own rate: `3.91 GB/s`, or `... per worker`"),
    Row("source", "text", "where the rate comes from"),
)

CABLE: Final = _table(
    Row("medium", "cable-text", "the cable in its short form: `pcie 5 x16`", required=True),
    Row(
        "rate", "rate", "what one cable carries in one direction, whatever it and its ends could do"
    ),
    Row("efficiency", "figure", "share of its rate that is achievable: `83 %`"),
    Row("duplex", "figure", "what both directions carry at once, of twice one: `90 %`"),
    Row("p2p", "caps", "peer-to-peer caps of this link"),
    Row("source", "text", "where its own figures come from"),
)

MEASURED: Final = _table(
    Row("rate", "rate", "what was measured, in this direction", required=True),
    Row("source", "text", "by which program and test"),
    Row("date", "text", "when"),
)


# --- words for messages ---------------------------------------------------------------------------


def kind_of(node: Node) -> str:
    """Say what a node is, in words for a message."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if "\n" in node.text:
        return "a text of several lines"
    return f"`{node.text}`" if node.text else "nothing"


def a_kind(kind: str) -> str:
    """Write a device kind with its article: ``a nic``, ``an nvme``."""
    return f"an {kind}" if kind.startswith(("hba", "nv")) else f"a {kind}"


# The ends of data, in words.
AN_END: Final[MappingOf[str, str]] = {
    "storage": "storage",
    "card": "a network card",
    "ram": "RAM",
    "gpu": "a GPU",
}


def is_extension(key: str) -> bool:
    """Whether a key is the writer's own (``x-anything``) and so not read."""
    return key.startswith("x-")


# --- one node -------------------------------------------------------------------------------------


def mapping_of(node: Node | None, what: str, report: Report, *, help: str = "") -> Mapping | None:
    """Return the node if it is a mapping; where there is none, that is no mistake."""
    if isinstance(node, Mapping) or node is None:
        return node
    report.add(node, "wrong-shape", f"{what} is a mapping, not {kind_of(node)}", help=help)
    return None


def items_of(node: Node | None, is_list: str, report: Report, *, help: str) -> tuple[Node, ...]:
    """Return the items of a list; a key without a value has none, nor has an absent one."""
    if isinstance(node, Sequence):
        return node.items
    if node is not None and not (isinstance(node, Scalar) and not node.text):
        report.add(node, "wrong-shape", f"{is_list}, not {kind_of(node)}", help=help)
    return ()


def text_of(node: Node | None, what: str, report: Report, *, help: str = "") -> str | None:
    """Return the text of a scalar that is not empty; where there is no node, nothing."""
    if node is None:
        return None
    if isinstance(node, Scalar):
        if node.text:
            return node.text
        report.add(node, "missing-value", f"{what} has no value", help=help)
    else:
        report.add(node, "wrong-shape", f"{what} is a text, not {kind_of(node)}", help=help)
    return None


def texts_of(node: Node, what: str, report: Report) -> tuple[Scalar, ...]:
    """Return the texts of a list, or a single text as a list of one."""
    items = node.items if isinstance(node, Sequence) else (node,)
    return tuple(
        item
        for item in items
        if text_of(item, what, report) is not None and isinstance(item, Scalar)
    )


def value_of(node: Node | None, what: str, parse: Callable[[str], T], report: Report) -> T | None:
    """Return what `parse` makes of the node's text."""
    text = text_of(node, what, report)
    if text is None or node is None:
        return None
    try:
        return parse(text)
    except UnitError as error:
        report.unit(node, error)
        return None


def choice_of(node: Node, what: str, words: Iterable[str], report: Report) -> str | None:
    """Return the node's text if it is one of `words`."""
    choices = list(words)
    text = text_of(node, what, report, help=f"one of {listed(choices, 'or')}")
    if text is None or text in choices:
        return text
    message = f"{what} is {listed([f'`{word}`' for word in choices], 'or')}, not `{text}`"
    report.add(node, "unknown-word", message, help=did_you_mean(text, choices))
    return None


# --- the entries of a mapping ---------------------------------------------------------------------


def entries_of(mapping: Mapping, keys: Keys, what: str, report: Report) -> dict[str, Node]:
    """Return the values by key; unknown keys and absent required ones are reported."""
    entries: dict[str, Node] = {}
    meant: set[str] = set()
    notes = [f"known keys: {', '.join(keys)}"]
    for key, value in rejoin(mapping, keys):
        if key.text in keys:
            entries[key.text] = value
        elif not is_extension(key.text):
            meant.update(near_names(key.text, keys))
            report.add(
                key,
                "unknown-key",
                f"`{key.text}` is not a key of {what}",
                help=did_you_mean(key.text, keys),
                notes=notes,
            )
            notes = []  # said once
    for row in keys.values():
        if row.required and row.name not in entries and row.name not in meant:
            report.add(
                mapping,
                "missing-key",
                f"{what} needs `{row.name}:` ({row.meaning})",
                help=f"add `{row.name}: {row.example}`" if row.example else "",
            )
    return entries


def values_of(
    entries: MappingOf[str, Node], keys: Keys, report: Report, *, of: str = ""
) -> dict[str, Any]:
    """Read each entry by what its row holds; what no reader is for, or could not be read, is out.

    Parameters
    ----------
    entries
        What `entries_of` gave.
    keys
        The table of these keys.
    report
        Gets what is wrong.
    of
        What the entries belong to, for messages.

    Returns
    -------
    dict
        The values by the names of dataclass fields: a key's hyphens are underscores.
    """
    values: dict[str, Any] = {}
    for key, node in entries.items():
        row = keys[key]
        if row.holds in READERS:
            what = f"`{key}` of {of}" if of else f"`{key}`"
            value = READERS[row.holds](node, row, what, report)
            if value is not None:
                values[key.replace("-", "_")] = value
    return values


def _word(node: Node, row: Row, what: str, report: Report) -> str | None:
    if isinstance(node, Scalar) and node.text.lower() in row.spellings:
        node = Scalar(row.spellings[node.text.lower()], node.place, node.quoted)
    return choice_of(node, what, row.words, report)


def _words(node: Node, row: Row, what: str, report: Report) -> tuple[str, ...]:
    """Read words, each once; `none` is an empty list."""
    if isinstance(node, Scalar) and node.text.lower() == "none":
        return ()
    texts = texts_of(node, what, report)
    if not row.words:
        return tuple(dict.fromkeys(text.text for text in texts))
    words = [choice_of(text, what, row.words, report) for text in texts]
    return tuple(dict.fromkeys(word for word in words if word is not None))


def _routing(node: Node, row: Row, what: str, report: Report) -> tuple[str, ...]:
    """Read `off`, `on` (all words in their order) or an order."""
    if isinstance(node, Scalar):
        word = row.spellings.get(node.text.lower(), node.text.lower())
        if word in ON_OFF:
            return row.words if word == "on" else ()
    return _words(node, row, what, report)


def _ratios(node: Node, _row: Row, what: str, report: Report) -> tuple[float, ...] | None:
    """Read one ratio of two sides, ``2`` or ``4:3``, or a list of them."""
    texts = texts_of(node, what, report)
    ratios = [value_of(text, what, _sides, report) for text in texts]
    return None if not ratios or None in ratios else tuple(filter(None, ratios))


def _sides(text: str) -> float:
    below, colon, above = text.partition(":")
    return parse_weight(below) / (parse_weight(above) if colon else 1.0)


def _scalar_of(node: Node, what: str, report: Report) -> Scalar | None:
    stated = text_of(node, what, report) is not None
    return node if stated and isinstance(node, Scalar) else None


def _parsed(parse: Callable[[str], object]) -> Reader:
    return lambda node, _row, what, report: value_of(node, what, parse, report)


READERS: Final[MappingOf[str, Reader]] = {
    "text": lambda node, _row, what, report: text_of(node, what, report),
    "word": _word,
    "flag-word": _word,
    "word-list": _words,
    "routing": _routing,
    "selection": lambda node, _row, what, report: texts_of(node, what, report),
    "name-list": lambda node, _row, what, report: texts_of(node, what, report),
    "need-name": lambda node, _row, what, report: _scalar_of(node, what, report),
    "tokens": _parsed(parse_tokens),
    "accelerators": _parsed(parse_accelerators),
    "count": _parsed(parse_count),
    "positive-duration": _parsed(partial(parse_duration, positive=True)),
    "duration": _parsed(parse_duration),
    "rate": _parsed(partial(parse_rate, positive=True)),
    "ratio-range": _parsed(partial(parse_ratio_range, positive=True)),
    "weight": _parsed(parse_weight),
    "ratios": _ratios,
}
"""What reads a value, by what its key holds."""


def check_commas(node: Node, report: Report) -> None:
    """Report commas that ended a text early: ``{source: our lspci, MPS 128}`` has two keys.

    A key without a value on the line of the value before it is never meant. After a `source` or a
    `title` it can only be the rest of that text, which the readers of mappings put together again
    (`rejoin`); that is said and goes on.
    """
    if isinstance(node, Sequence):
        for item in node.items:
            check_commas(item, report)
        return
    before: Node | None = None
    name = ""
    for key, value in node if isinstance(node, Mapping) else ():
        if isinstance(value, Scalar) and not value.text and not value.quoted:
            if isinstance(before, Scalar) and 0 < before.place.line == key.place.line:
                text = f"{before.text}, {key.text}"
                message = f"the comma ends the text `{before.text}`, and `{key.text}` is a new key"
                report.add(
                    key,
                    "comma-in-text",
                    message,
                    help=f'quote it: "{text}"',
                    severity="warning" if name in SENTENCES else "error",
                )
        else:
            check_commas(value, report)
            name = key.text
        before = value
