"""Words that a file may use where a few are allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topo.spec.model import Mover

__all__ = ["BUILT_IN", "IOMMU", "MOVERS", "NEEDS", "STAGES", "TRANSPORTS"]

# The data paths that ship with topo: `topo.datapaths` holds one file for each.
BUILT_IN: Final = (
    "legacy",
    "legacy-pageable",
    "odirect-pinned",
    "odirect-pageable",
    "mmap",
    "direct",
    "compat",
    "routed-sysmem",
    "routed-nvlink",
    "p2pdma",
    "nvme-tcp",
    "c2c-direct",
    "peer-nvlink",
    "peer-pcie",
    "peer-ram",
    "nic-direct",
    "nic-ram",
)
IOMMU: Final = ("off", "passthrough", "on")
TRANSPORTS: Final = ("rdma", "tcp")
STAGES: Final = ("pipelined", "serial")
MOVERS: Final[dict[str, Mover]] = {"nic": "nic", "drive": "drive", "core": "core", "gpu": "gpu"}
NEEDS: Final = (
    "peer-to-peer",
    "filesystem",
    "rdma",
    "local-drive",
    "remote-storage",
    "c2c",
    "fabric",
)
