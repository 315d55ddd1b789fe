"""Resources in words: what those of a class are called, and which of them limit something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from topo.phrases import listed, ranges

if TYPE_CHECKING:
    from topo.topology.resources import Resource

CLASS_WORDS: Final[dict[str, tuple[str, str, str]]] = {
    "storage-read": ("storage target's reads", "storage targets' reads", "target"),
    "storage-write": ("storage target's writes", "storage targets' writes", "target"),
    "network-port": ("network port", "network ports", "port"),
    "network-link": ("network link", "network links", "link"),
    "nic-chip": ("card's chip", "cards' chips", "card"),
    "card-pcie": ("slot's PCIe", "slots' PCIe", "slot"),
    "drive-read": ("drive's reads", "drives' reads", "drive"),
    "drive-write": ("drive's writes", "drives' writes", "drive"),
    "drive-pcie": ("drive's PCIe", "drives' PCIe", "drive"),
    "controller-read": ("storage controller's reads", "storage controllers' reads", "controller"),
    "controller-write": (
        "storage controller's writes",
        "storage controllers' writes",
        "controller",
    ),
    "controller-pcie": ("storage controller's PCIe", "storage controllers' PCIe", "controller"),
    "uplink": ("uplink", "uplinks", "uplink"),
    "socket-link": ("socket link", "socket links", "link"),
    "c2c": ("chip-to-chip link", "chip-to-chip links", ""),
    "memory-bus": ("RAM bus", "RAM buses", "bus"),
    "cpu-copy": ("CPU's copying", "CPUs' copying", "CPU"),
    "quadrant": ("CPU's quadrant", "CPUs' quadrants", "quadrant"),
    "gpu-pcie": ("GPU's PCIe", "GPUs' PCIe", "GPU"),
    "gpu-memory": ("GPU's memory", "GPUs' memory", "GPU"),
    "gpu-fabric": ("GPU link", "GPU links", "link"),
    "peer-to-peer": ("peer-to-peer cap", "peer-to-peer caps", ""),
    "measured-pair": ("measured rate of the pair", "measured rates of the pairs", ""),
    "stage": ("stage", "stages", ""),
    "nccl-link": ("GPU link as NCCL drives it", "GPU links as NCCL drives them", ""),
    "in-switch": ("switch's reduction", "switches' reduction", ""),
    "workload-limit": ("workload's limit", "workloads' limits", ""),
}
"""What one resource of a class is called, what several are, and one of several: ``a card``."""

_MOST: Final = 4  # names in a list before "and 3 more"


def class_words(kind: str, count: int) -> str:
    """Return the words for `count` resources of one class."""
    return f"the {CLASS_WORDS[kind][count != 1]}"


def binds(resources: Iterable[Resource]) -> str:
    """Return "bind" or "binds": the slots' PCIe binds, the drive's reads bind."""
    return "bind" if plural(resources) else "binds"


def plural(resources: Iterable[Resource]) -> bool:
    """Whether the verb after resources is a plural's: their classes have words of their own."""
    resources = tuple({resource.id: resource for resource in resources}.values())
    kinds = {resource.id: resource.kind for resource in resources}
    if len(set(kinds.values())) != 1:
        return True
    count = number_of(resources)
    words = class_words(next(iter(kinds.values())), count)
    if words.endswith(("PCIe", "memory", "copying")):
        return False
    return count > 1 or words.endswith(("reads", "writes"))


def number_of(resources: Iterable[Resource]) -> int:
    """Return how many they are, where one is named for all that are alike."""
    return sum(resource.count for resource in resources)


def limited_by(resources: Iterable[Resource]) -> str:
    """Return "the cards' chips (slot1/chip and slot2/chip)" for resources grouped by class.

    More than two that differ in their numbers only are a range: ``nvme[0-7]/read``.
    """
    return listed(
        f"{class_words(kind, number_of(names.values()))} ({listed(ranges(names), most=_MOST)})"
        for kind, names in _by_class(resources).items()
    )


def classes_of(resources: Iterable[Resource]) -> str:
    """Return "the RAM buses and the cards' chips": the classes alone, each once."""
    return listed(
        class_words(kind, number_of(named.values())) for kind, named in _by_class(resources).items()
    )


def _by_class(resources: Iterable[Resource]) -> dict[str, dict[str, Resource]]:
    named: dict[str, dict[str, Resource]] = {}
    for resource in resources:
        named.setdefault(resource.kind, {})[resource.name] = resource
    return named
