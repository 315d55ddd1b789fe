"""What a host's own tools say: a cufile.json and the text of gdscheck, small and complete."""

from __future__ import annotations

CUFILE = b"""\
{
    // comments as the shipped file has them
    "logging": {"level": "ERROR"}, /* and these */
    "profile": {"nvtx": false, "cufile_stats": 0},
    "properties": {
        "allow_compat_mode": true,
        "use_poll_mode": false,
        "use_pci_p2pdma": false,
        "gds_rdma_write_support": true,
        "rdma_dev_addr_list": ["192.168.0.12", "192.168.1.12"],
        "rdma_dynamic_routing": false,
        "rdma_dynamic_routing_order": ["GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"],
    },
    "fs": {
        "generic": {"posix_unaligned_writes": false},
        "lustre": {"posix_gds_min_kb": 0, "mount_table": {}},
        "weka": {"rdma_write_support": false},
        "nfs": {"mount_table": {"/mnt/a": {"rdma_dev_addr_list": ["10.0.0.1"]}}},
    },
    "denylist": {"drivers": [], "devices": [], "mounts": [], "filesystems": []},
    "miscellaneous": {"api_check_aggressive": false},
}
"""
ROUTED = CUFILE.replace(b'"rdma_dynamic_routing": false', b'"rdma_dynamic_routing": true')

_ROWS = (
    ("NVMe P2PDMA", "Unsupported"),
    ("NVMe", "Supported"),
    ("NVMeOF", "Supported"),
    ("SCSI", "Unsupported"),
    ("DDN EXAScaler", "Unsupported"),
    ("IBM Spectrum Scale", "Unsupported"),
    ("NFS", "Supported"),
    ("WekaFS", "Unsupported"),
    ("Userspace RDMA", "Unsupported"),
    ("--rdma library", "Not Loaded (libcufile_rdma.so)"),
    ("--rdma_device_status", "Up: 0 Down: 0"),
)


def gdscheck(gpus=8, *, iommu="disabled", supports="supports GDS", extra="", **rows):
    """Return the text of ``gdscheck -p``; `rows` change the driver configuration."""
    named = {name.replace(" ", "_"): said for name, said in _ROWS} | rows
    drivers = "\n".join(f" {name.replace('_', ' ')} : {said}" for name, said in named.items())
    state = iommu.title().replace(" Or ", " or ")
    cards = "\n".join(
        f" GPU index {n} NVIDIA H100 80GB HBM3 bar:1 bar size (MiB):131072 {supports}, "
        f"IOMMU State: {state}"
        for n in range(gpus)
    )
    text = f"""\
warn: error opening log file: Permission denied, logging will be disabled
 GDS release version: 1.13.0.11
 nvidia_fs version:  2.17 libcufile version: 2.12
 Platform: x86_64
 =====================
 DRIVER CONFIGURATION:
 =====================
{drivers}
 =====================
 CUFILE CONFIGURATION:
 =====================
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
 properties.force_compat_mode : false
 properties.gds_rdma_write_support : true
 properties.use_poll_mode : false
 properties.rdma_dynamic_routing : 0
 fs.lustre.posix_gds_min_kb: 0
 =========
 GPU INFO:
 =========
{cards}
 ==============
 PLATFORM INFO:
 ==============
{extra} IOMMU: {iommu}
 Nvidia Driver Info Status: Supported(Nvidia Open Driver Installed)
 Cuda Driver Version Installed:  12080
 Platform: BOX-1, Arch: x86_64(Linux 5.15.0-105-generic)
 Platform verification succeeded
"""
    return text.encode()
