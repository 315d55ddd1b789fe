"""The field's words for classes of resources, and rates in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.phrases import ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.routes.route import Reason
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


CLASS_WORDS: dict[str, tuple[str, str]] = {
    "storage-read": ("the storage's reads", "the storages' reads"),
    "storage-write": ("the storage's writes", "the storages' writes"),
    "network-port": ("the network port", "the network ports"),
    "network-link": ("the network link", "the network links"),
    "nic-chip": ("the card's chip", "the cards' chips"),
    "card-pcie": ("the slot's PCIe", "the slots' PCIe"),
    "drive-read": ("the drive's reads", "the drives' reads"),
    "drive-write": ("the drive's writes", "the drives' writes"),
    "drive-pcie": ("the drive's PCIe", "the drives' PCIe"),
    "controller-read": ("the storage controller's reads", "the storage controllers' reads"),
    "controller-write": ("the storage controller's writes", "the storage controllers' writes"),
    "controller-pcie": ("the storage controller's PCIe", "the storage controllers' PCIe"),
    "uplink": ("the uplink", "the uplinks"),
    "socket-link": ("the socket link", "the socket links"),
    "c2c": ("the chip-to-chip link", "the chip-to-chip links"),
    "memory-bus": ("the RAM bus", "the RAM buses"),
    "cpu-copy": ("the CPU's copying", "the CPUs' copying"),
    "gpu-pcie": ("the GPU's PCIe", "the GPUs' PCIe"),
    "gpu-memory": ("the GPU's memory", "the GPUs' memory"),
    "gpu-fabric": ("the GPU link", "the GPU links"),
    "peer-to-peer": ("the peer-to-peer cap", "the peer-to-peer caps"),
    "measured-pair": ("the measured rate of the pair", "the measured rates of the pairs"),
    "stage": ("the stage", "the stages"),
}

NOT_FOR_SALE = frozenset({"gpu-pcie", "gpu-memory", "c2c"})
"""Classes that come with the GPU: no one can buy more of them for the same GPU."""


def class_words(kind: str, count: int) -> str:
    """Return the words for `count` resources of one class."""
    return CLASS_WORDS[kind][count != 1]


def is_plural(resources: Iterable[Resource]) -> bool:
    """Whether they take a plural verb: the slots' PCIe binds, the drive's reads bind."""
    found = {resource.id: resource.kind for resource in resources}
    if len(set(found.values())) != 1:
        return True
    words = class_words(next(iter(found.values())), len(found))
    if words.endswith(("PCIe", "memory", "copying")):
        return False
    return len(found) > 1 or words.endswith(("reads", "writes"))


def listed(names: Iterable[str], *, most: int = 4) -> str:
    """Return names as a sentence lists them, shortened past `most`."""
    found = list(names)
    if len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1} more"]
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)


def cited(topology: Topology, reason: Reason) -> str:
    """Return a reason's sentence, with file and line where another file than the machine's says it.

    cufile.json and gdscheck's text say things of the host; what the machine's own file says, its
    reader has before him.
    """
    place, document = reason.place, topology.description.document
    own = (document.name if document else "", "--set")
    yaml = (".yaml", ".yml")
    if place is None or not place.line or place.file in own or place.file.endswith(yaml):
        return reason.text
    return f"{reason.text} ({place.file}:{place.line})"


def limited_by(resources: Iterable[Resource]) -> str:
    """Return "the cards' chips (slot1/chip and slot2/chip)" for resources grouped by class.

    More than two that differ in their numbers only are a range: ``nvme[0-7]/read``.
    """
    groups: dict[str, list[str]] = {}
    for resource in resources:
        names = groups.setdefault(resource.kind, [])
        if resource.name not in names:
            names.append(resource.name)
    words = [
        f"{class_words(kind, len(names))} ({listed(ranges(names))})"
        for kind, names in groups.items()
    ]
    return listed(words, most=len(words))


def classes_of(resources: Iterable[Resource]) -> str:
    """Return "the RAM buses and the cards' chips": the classes alone, each once."""
    groups: dict[str, set[str]] = {}
    for resource in resources:
        groups.setdefault(resource.kind, set()).add(resource.name)
    return listed((class_words(kind, len(names)) for kind, names in groups.items()), most=20)
