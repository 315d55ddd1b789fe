"""Words that a file may use where a few are allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topo.description.description import Mover


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
# The last where a tool cannot tell the two apart.
IOMMU: Final = ("off", "passthrough", "on", "passthrough-or-on")
ON_OFF: Final = ("off", "on")
COMPAT_MODES: Final = ("off", "allowed", "forced")
# cuFile's routing policies, in the order that it ships with.
ROUTING: Final = ("GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P")
# What the GDS driver may support, by gdscheck's rows.
GDS_SUPPORT: Final = (
    "nvme",
    "nvmeof",
    "p2pdma",
    "scsi",
    "scaleflux",
    "nvmesh",
    "lustre",
    "gpfs",
    "nfs",
    "beegfs",
    "scatefs",
    "virtiofs",
    "wekafs",
    "userspace-rdma",
)
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
    "cufile",
)
