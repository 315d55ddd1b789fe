"""cuFile's configuration: ``/etc/cufile.json``.

References
----------
NVIDIA GPUDirect Storage configuration guide, parameters of cufile.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.errors import Finding
from topo.host.commented_json import parse_json
from topo.host.facts import SaidFact, flattened

if TYPE_CHECKING:
    from collections.abc import Mapping


# Names that older or newer releases use for the same.
OLD_NAMES: Final = {
    "properties.use_compat_mode": "properties.allow_compat_mode",
    "properties.rdma_peer_affinity_policy": "properties.rdma_load_balancing_policy",
    "blacklist.drivers": "denylist.drivers",
    "blacklist.devices": "denylist.devices",
    "blacklist.mounts": "denylist.mounts",
    "blacklist.filesystems": "denylist.filesystems",
}
_FILESYSTEMS: Final = "lustre|nfs|gpfs|beegfs|weka|scatefs|virtiofs|generic"
_KNOWN: Final = re.compile(
    r"""
    logging\.(dir|level|.*log.*)
  | profile\.(nvtx|cufile_stats|.*)
  | execution\.(max_io_queue_depth|max_io_threads|parallel_io|min_io_threshold_size_kb
      |max_request_parallelism|batch_.*)
  | properties\.(force_compat_mode|allow_compat_mode|force_odirect_mode|prefer_iouring
      |use_poll_mode|poll_mode_max_size_kb|use_pci_p2pdma|gds_rdma_write_support
      |max_(direct_io_size|device_cache_size|device_pinned_mem_size)_kb
      |max_batch_io_(size|timeout_msecs)|io_batchsize|io_priority|per_buffer_cache_size_kb
      |posix_pool_slab_(size_kb|count)|gpu_bounce_buffer_slab_(config|size_kb|count)(\..*)?
      |rdma_(dev_addr_list|load_balancing_policy|dc_key|access_mask|topN_ranks
        |dynamic_routing|dynamic_routing_order))
  | fs\.(FILESYSTEMS)(\.(posix_unaligned_writes|posix_gds_min_kb|rdma_dev_addr_list
      |mount_table(\..*)?|rdma_write_support|gds_write_support|gds_async_support
      |use_pci_p2pdma))?
  | block\.(nvme|nvmeof|raid)(\.use_pci_p2pdma)?
  | denylist\.(drivers|devices|mounts|filesystems)
  | miscellaneous\.(api_check_aggressive|enable_static_routing|static_routing_filepath|.*)
    """.replace("FILESYSTEMS", _FILESYSTEMS),
    re.VERBOSE,
)
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class CufileConfig:
    """What a cufile.json says.

    Parameters
    ----------
    facts
        By dotted key in today's names: ``properties.allow_compat_mode``.
    findings
        Keys that topo does not know.
    """

    name: str
    facts: Mapping[str, SaidFact]
    findings: tuple[Finding, ...] = ()


def read_cufile(data: bytes, name: str) -> CufileConfig:
    """Read a cufile.json; comments and trailing commas are allowed.

    Raises
    ------
    ExchangeError
        If it is no such text.
    """
    facts: dict[str, SaidFact] = {}
    for fact in flattened(parse_json(data, name)):
        key = OLD_NAMES.get(fact.key, fact.key)
        if key == fact.key or key not in facts:  # today's name counts
            facts[key] = SaidFact(key, fact.words, fact.place)
    sections = ("logging", "profile", "execution", "properties", "fs", "block", "denylist")
    unknown = [
        fact
        for key, fact in facts.items()
        if not _KNOWN.fullmatch(key) and key not in (*sections, "miscellaneous", "blacklist")
    ]
    return CufileConfig(name, facts, tuple(_unknown(unknown)))


def _unknown(facts: list[SaidFact]) -> list[Finding]:
    """Return one finding for the keys that topo does not know."""
    if not facts:
        return []
    names = [f"`{fact.key}`" for fact in facts[:_SHOWN]]
    more = f" and {len(facts) - _SHOWN} more" if len(facts) > _SHOWN else ""
    message = f"keys that topo does not know, and does not use: {', '.join(names)}{more}"
    return [Finding("cufile-key", message, place=facts[0].place, severity="note")]
