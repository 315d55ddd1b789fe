"""The keys of each place in a file: what they hold, whether they must be there, what they mean.

One table for the readers (unknown keys, near names, words), the JSON Schema and the documentation.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Row:
    """One key and what stands under it.

    Parameters
    ----------
    holds
        What kind of value: a key of `shape.READERS` where one reader serves every such key, and of
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
    spellings: Mapping[str, str] = field(default_factory=dict)


Keys = dict[str, Row]


def _table(*rows: Row) -> Keys:
    return {row.name: row for row in rows}


ON_OFF: Final = ("off", "on")
# cuFile's routing policies, in the order that it ships with.
ROUTING: Final = ("GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P")
# What the GDS driver may support, by gdscheck's rows.
GDS_SUPPORT: Final = (
    *("nvme", "nvmeof", "p2pdma", "scsi", "scaleflux", "nvmesh", "lustre", "gpfs", "nfs"),
    *("beegfs", "scatefs", "virtiofs", "wekafs", "userspace-rdma"),
)
_NEEDS: Final = (
    *("peer-to-peer", "filesystem", "rdma", "local-drive", "remote-storage", "c2c", "fabric"),
    "cufile",
)
# The last where a tool cannot tell the two apart.
_IOMMU: Final = ("off", "passthrough", "on", "passthrough-or-on")
_FLAGS: Final = {"no": "off", "false": "off", "yes": "on", "true": "on"}
_COMPAT_FLAGS: Final = {**_FLAGS, "yes": "allowed", "true": "allowed", "on": "allowed"}

TOP: Final = _table(
    Row("topo", "version", "the version of this format, always 1", required=True, example="1"),
    Row("name", "text", "a short name for the machine"),
    Row("title", "text", "one line for headings and pictures"),
    Row("settings", "settings", "facts of the host"),
    Row("parts", "parts", "parts of your own, or variants of built-in ones"),
    Row("media", "media", "kinds of cable of your own, or figures that vary built-in ones"),
    Row("data-paths", "data-paths", "named ways of moving data, of your own"),
    Row("devices", "devices", "what the machine is made of, by name"),
    Row("links", "links", "what is cabled to what: `- a -- b: cable`"),
    Row("measured", "measured", "rates that somebody measured: `- a -> b: 55 GB/s`"),
    Row("workloads", "workloads", "how many bytes go from where to where"),
    Row("expect", "expect", "sentences that `topo check` judges"),
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
        "transport",
        "word",
        "how remote storage is reached: `rdma` or `tcp`",
        words=("rdma", "tcp"),
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
        "gds-support",
        "word-list",
        "what the GDS driver supports here: `[nvme, lustre]`",
        words=GDS_SUPPORT,
    ),
    Row("gds-denied", "word-list", "drivers and filesystems that cuFile may not use directly"),
)

WORKLOAD: Final = _table(
    Row("read", "work-size", "bytes from storage to GPUs: `640 GB`, or `80 GB each`"),
    Row("write", "work-size", "bytes from GPUs to storage"),
    Row("copy", "work-size", "bytes between two GPUs, or a GPU and a network card"),
    Row("from", "selection", "the devices the data comes from", required=True),
    Row("to", "selection", "the devices the data goes to", required=True),
    Row("via", "name-list", "the data paths to compare; legacy and direct when not said"),
    Row("efficiency", "ratio-range", "end-to-end share of theory: `60-80 %`"),
    Row("weight", "weight", "its share when it competes with others; 1 when not said"),
    Row("limit", "rate", "the most it may take in all"),
    Row("start", "duration", "when it starts; 0 s when not said"),
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
    Row("workers", "count", "workers for each GPU, for `serial`"),
    Row("needs", "word-list", "facts it cannot do without: `peer-to-peer`", words=_NEEDS),
    Row("falls-back-to", "text", "the data path taken where this one is refused"),
    Row("code", "text", "the letter of its row in the documentation's table"),
    Row("source", "text", "where this is described"),
)

MOVE: Final = _table(
    Row("rate", "worker-rate", "the stage's own rate: `3.91 GB/s`, or `... per worker`"),
    Row("source", "text", "where the rate comes from"),
)

CABLE: Final = _table(
    Row("medium", "cable-text", "the cable in its short form: `pcie 5 x16`", required=True),
    Row("efficiency", "figure", "share of its rate that is achievable: `83 %`"),
    Row("p2p", "caps", "peer-to-peer caps of this link"),
    Row("source", "text", "where its own figures come from"),
)

MEASURED: Final = _table(
    Row("rate", "rate", "what was measured, in this direction", required=True),
    Row("source", "text", "by which program and test"),
    Row("date", "text", "when"),
)
