"""The devices and links of a description as the rules look at them, and words for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from topo.description.names import ranged
from topo.description.shape import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from topo.catalogue.kinds import Kind
    from topo.description.description import DescribedLink, Description, Device


HOSTS: Final = ("cpu", "root-complex")
_GPU_SIDE: Final = ("gpu", "nvswitch")
_WORDS: Final[dict[str, tuple[str, str]]] = {
    "storage": ("a storage target", "storage targets"),
    "nic": ("a NIC", "NICs"),
    "nvme": ("a drive", "drives"),
    "hba": ("a storage controller", "storage controllers"),
    "pcie-switch": ("a PCIe switch", "PCIe switches"),
    "root-complex": ("a root complex", "root complexes"),
    "cpu": ("a CPU", "CPUs"),
    "memory": ("a memory", "memories"),
    "gpu": ("a GPU", "GPUs"),
    "nvswitch": ("an NVSwitch", "NVSwitches"),
    "network-switch": ("a network switch", "network switches"),
    "dpu": ("a DPU", "DPUs"),
    "cxl-memory": ("a CXL memory", "CXL memories"),
}

K = TypeVar("K")


@dataclass(frozen=True)
class Wiring:
    """A description's devices by name and its links, `left_out` ones aside."""

    description: Description
    left_out: frozenset[int] = frozenset()

    def without(self, links: Collection[DescribedLink]) -> Wiring:
        """Return the wiring without some of its links."""
        if not links:
            return self
        return replace(self, left_out=self.left_out | {id(link) for link in links})

    @cached_property
    def devices(self) -> Mapping[str, Device]:
        """The devices by name, in the order of the file."""
        return {device.name: device for device in self.description.devices}

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        return {device.name: device.part.kind for device in self.description.devices}

    @cached_property
    def links(self) -> tuple[DescribedLink, ...]:
        """The links, in the order of the file."""
        return tuple(link for link in self.description.links if id(link) not in self.left_out)

    @cached_property
    def at(self) -> Mapping[str, tuple[DescribedLink, ...]]:
        """The links of each device, in the order of the file."""
        found: dict[str, list[DescribedLink]] = {name: [] for name in self.devices}
        for link in self.links:
            found[link.a.device].append(link)
            found[link.b.device].append(link)
        return {name: tuple(links) for name, links in found.items()}

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How many PCIe links away from its host each device is; what has no host is not there."""
        depths = {name: 0 for name in self.devices if self.kind(name) in HOSTS}
        front = deque(depths)
        while front:
            name = front.popleft()
            for link in self.at[name]:
                near = other_end(link, name)
                if link.cable.family == "pcie" and near not in depths:
                    depths[near] = depths[name] + 1
                    front.append(near)
        return depths

    def kind(self, name: str) -> Kind:
        """Return the kind of a device."""
        return self._kinds[name]

    def of_kind(self, *kinds: str) -> tuple[str, ...]:
        """Return the names of the devices of these kinds, in the order of the file."""
        return tuple(name for name in self.devices if self.kind(name) in kinds)

    def is_fabric(self, link: DescribedLink) -> bool:
        """Whether a link joins GPUs among themselves or with their switches."""
        if link.cable.reach in ("memory", "network"):
            return False
        kinds = self._kinds
        return kinds[link.a.device] in _GPU_SIDE and kinds[link.b.device] in _GPU_SIDE

    def leads_up(self, link: DescribedLink, name: str) -> bool:
        """Whether a PCIe link of a device leads towards the host."""
        far = len(self.devices)
        other = other_end(link, name)
        return self.depths.get(other, far) < self.depths.get(name, far)


def other_end(link: DescribedLink, name: str) -> str:
    """Return the device at the other end of one of `name`'s links."""
    return link.b.device if link.a.device == name else link.a.device


def forwards(device: Device) -> bool:
    """Whether something may hang below a device on PCIe."""
    if device.part.kind in (*HOSTS, "pcie-switch", "hba", "dpu"):
        return True
    return device.part.flags.get("bridge", False) is not False


def grouped(pairs: Iterable[tuple[K, str]]) -> dict[K, list[str]]:
    """Collect the names that share a cause, in the order they come, each once."""
    found: dict[K, dict[str, None]] = {}
    for key, name in pairs:
        found.setdefault(key, {})[name] = None
    return {key: list(names) for key, names in found.items()}


# --- words ----------------------------------------------------------------------------------------


def names_of(names: Iterable[str]) -> str:
    """Write device names as a sentence does: ``slot1 and gpu[0-7]``."""
    return listed(ranged(names))


def has(names: Collection[str], verb: str = "has", plural: str = "have") -> str:
    """Write device names with their verb: ``slot1 has``, ``gpu[0-7] have``."""
    return f"{names_of(names)} {verb if len(names) == 1 else plural}"


def worded(kind: str, count: int = 1) -> str:
    """Name devices of a kind in words: ``a NIC``, or ``NICs`` where there are several."""
    one, several = _WORDS[kind]
    return one if count == 1 else several


def lines_of(links: Iterable[DescribedLink], verb: str = "", plural: str = "") -> str:
    """Write where links stand, with a verb: ``line 12 uses``, ``lines 12 and 14 use``."""
    lines = list(dict.fromkeys(link.place.line for link in links))
    noun, word = ("line", verb) if len(lines) == 1 else ("lines", plural)
    return f"{noun} {listed(map(str, lines))} {word}".rstrip()
