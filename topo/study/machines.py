"""What a machine is, in a line: what it is made of, where a list has it, what to notice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.topology.topology import Topology

_CHIP_TO_CHIP: Final = "nvlink-c2c"
# The first point below "Notice:", up to the end of its first sentence.
_NOTICE: Final = re.compile(
    r"^Notice:\s*(?:- )?(.+?)(?:(?<=\.)\s+(?=[A-Z`])|\n- |\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class MachineSummary:
    """What a list says of a machine.

    `gpus` and `cards` are numbers of devices by part, `drives` those of its hosts, `appliances`
    storages that are in it; `outside` is whether some storage only stands for what it is cabled to.
    `notice` is the first sentence of what its file's comment says to notice.
    """

    name: str
    title: str
    group: str
    devices: int
    links: int
    gpus: Mapping[str, int]
    cards: Mapping[str, int]
    drives: int
    appliances: int
    outside: bool
    notice: str
    workloads: tuple[str, ...]


def machine_summary(topology: Topology) -> MachineSummary:
    """Return what a list of machines says of one."""
    description = topology.description
    notice = _NOTICE.search(description.comment)
    storages = topology.of_kind("storage")
    return MachineSummary(
        name=topology.name,
        title=topology.title,
        group=description.group or _group(topology),
        devices=len(topology.devices),
        links=len(topology.links),
        gpus=Counter(gpu.part.name for gpu in topology.of_kind("gpu")),
        cards=Counter(card.part.name for card in topology.devices.values() if card.is_nic),
        drives=len(topology.of_kind("nvme")),
        appliances=sum(not storage.outside for storage in storages),
        outside=any(storage.outside for storage in storages),
        notice=" ".join(notice.group(1).split()) if notice else "",
        workloads=tuple(workload.name for workload in description.workloads),
    )


def _group(topology: Topology) -> str:
    """Return where a machine belongs by what it is made of."""
    gpus = topology.of_kind("gpu")
    if len(topology.hosts) > 1:
        return "cluster"
    if not gpus:
        return "storage"
    if any(gpu.part.facts.get("maker") == "amd" for gpu in gpus):
        return "amd"
    chip_to_chip = any(link.cable.medium.startswith(_CHIP_TO_CHIP) for link in topology.links)
    return "nvidia" if topology.of_kind("nvswitch") or chip_to_chip else "pcie"
