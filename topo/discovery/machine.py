"""A machine as its sources tell it, before it becomes a topology: devices, and what joins them.

A machine holds facts of the source and nothing else: what is not known is `None` or empty, and
stays unknown. `topo.discovery.describe` makes a topology file of it; devices get their names there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from topo.catalogue.kinds import HasKind, Kind
from topo.errors import Finding
from topo.phrases import counted
from topo.records import dataclass

NUMA_LINK: Final = "numa-link"  # whatever joins NUMA nodes, in a medium of the file's own
GPU_LINK: Final = "gpu-link"  # links between GPUs that the catalogue does not know
NVSWITCH: Final = "nvswitch"  # the `id` of all NVSwitch chips of a host, as one device
MOST_GPUS: Final = 256  # that are read of one source
_LONGEST: Final = 100
_TERABYTE: Final = 1e12  # bytes, from which sizes are told in it
_NOUNS: Final = {"ascend": "NPU", "gaudi": "accelerator"}  # what others call a GPU, by their part


@dataclass(frozen=True, slots=True)
class DiscoveredLink:
    """A device's PCIe link to what it hangs on.

    Parameters
    ----------
    generation, lanes
        `None` is unknown.
    evidence
        The words of the source: ``link_speed "16 GT/s", link_width 16``.
    is_of_both_ends
        Whether both ends tell what they can, so that nothing of it is a placeholder.
    """

    generation: int | None = None
    lanes: int | None = None
    evidence: str = ""
    is_of_both_ends: bool = False

    @property
    def cable(self) -> str:
        """As a topology file writes it: ``pcie 4 x16``, ``pcie unknown``."""
        lanes = f" x{self.lanes}" if self.lanes else ""
        if self.generation is None:
            return f"pcie unknown{lanes}"
        return f"pcie {self.generation}{lanes or ' unknown'}"


@dataclass(frozen=True, slots=True)
class DiscoveredDevice(HasKind):
    """One device that the source names or that must be there.

    Parameters
    ----------
    id
        Anything that no other device of the machine has; it does not reach the file.
    kind
        Its kind; drives, switches and so on get their names from it.
    part
        A part of the catalogue or of `Machine.parts`, ``gpu-unknown`` and the like when nothing
        is known.
    parent, link
        What it hangs on in the PCIe tree (an `id`), and how. Empty for a CPU, and for what hangs
        on `Machine.cables` alone. A memory's parent is its CPU.
    pci
        The addresses of its functions, with domain: ``0000:1b:00.0``.
    rdma, label, slot
        As people call it.
    numa
        A CPU's NUMA nodes, as the operating system numbers them.
    node
        The NUMA node of the parent that it hangs on, where that is a CPU with several.
    ports
        The line rate of each network port in bits/s; `None` where a port's rate is unknown.
    network
        ``infiniband`` or ``ethernet`` where the source tells.
    facts
        Further keys of the device with their values: ``(("chips", "4"), ("acs", "off"))``.
    evidence
        What the source says and in which attribute: it becomes a comment.
    notices
        What must not be overlooked, each a comment on a line of its own above the device.
    name
        What a topology file called it that this source was exported from.
    host
        Which of several hosts it is in; empty where the source is of one.
    index
        The number that its vendor's tools give a GPU, where the source tells no address.
    is_host_size
        Whether a memory's size is what the host says that it has, and its NUMA nodes say less.
    """

    id: str
    kind: Kind
    part: str
    parent: str = ""
    link: DiscoveredLink | None = None
    pci: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    label: str = ""
    slot: str = ""
    numa: tuple[int, ...] = ()
    node: int | None = None
    ports: tuple[float | None, ...] = ()
    network: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    evidence: str = ""
    notices: tuple[str, ...] = ()
    name: str = ""
    host: str = ""
    index: int | None = None
    is_host_size: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveredCable:
    """A link outside the PCIe tree: NVLink, xGMI, NVLink-C2C, between sockets.

    `cable` is as a topology file writes it: ``18x nvlink 4``.
    """

    a: str
    b: str
    cable: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveredPart:
    """A part that the file gets under `parts:`: what is known beyond the part it is like."""

    name: str
    like: str
    title: str
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """The NVLinks of a GPU that are up, by a source that does not know what they lead to.

    Parameters
    ----------
    gpu
        The GPU's `id`.
    active
        How many are up.
    medium
        Which they are by their rate, ``""`` where that is not told.
    ends
        The PCI addresses that they lead to, each with the number of links.
    """

    gpu: str
    active: int
    medium: str = ""
    ends: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """One source's view of one machine.

    Parameters
    ----------
    kind
        The kind of source: ``nccl``, ``nvidia-smi``.
    source
        The same in words: ``an NCCL topology file``.
    file
        What the user calls it.
    devices
        In the order in which they get their numbers.
    socket_cable
        What joins the CPUs with one another where `cables` do not say: ``upi unknown``.
    notes
        Sentences for the head of the file: what the source could not tell.
    left_out
        What the source names and the topology does not get: virtual interfaces and the like.
    places
        PCI addresses that the source names without saying what stands there, each with the `id`
        of what it hangs on. Another source may know the device.
    fabric_known
        Whether it is known which GPUs have links to each other, also where none has.
    together
        Further sources that were combined with this one: ``smi.txt (output of nvidia-smi)``.
    tells_only
        What it tells, where that is facts of devices and not where they are: ``the ports of network
        cards``. Such a source is laid beside another one, and adds no device to it.
    slots
        What the board calls the slots at PCI addresses: ``("0000:17:00.0", "SLOT3")``.
    gpu_links
        NVLinks of GPUs, where the source tells them and not which devices they join.
    further
        Other sources of the same text, where all of them tell facts only.
    """

    kind: str
    source: str
    file: str
    devices: tuple[DiscoveredDevice, ...]
    cables: tuple[DiscoveredCable, ...] = ()
    parts: tuple[DiscoveredPart, ...] = ()
    socket_cable: str = ""
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    fabric_known: bool = False
    together: tuple[str, ...] = ()
    tells_only: str = ""
    slots: tuple[tuple[str, str], ...] = ()
    gpu_links: tuple[GpuLinks, ...] = ()
    further: tuple[Machine, ...] = ()

    def title(self) -> str:
        """Return one line for headings: what the machine has."""
        gpus = self.of_kind("gpu")
        nouns = {_NOUNS.get(gpu.part.partition("-")[0], "GPU") for gpu in gpus}
        counts = (
            (len(gpus), nouns.pop() if len(nouns) == 1 else "GPU"),
            (len(self.of_kind("nic", "dpu")), "network card"),
            (len(self.of_kind("nvme")), "drive"),
            (len(self.of_kind("memory")) or len(self.of_kind("cpu")), "NUMA node"),
        )
        return ", ".join(counted(*count) for count in counts if count[0]) or "nothing"

    def of_kind(self, *kinds: Kind) -> tuple[DiscoveredDevice, ...]:
        """Return the devices of these kinds, in order."""
        return tuple(device for device in self.devices if device.kind in kinds)

    def by_id(self) -> dict[str, DiscoveredDevice]:
        """Return the devices by their `id`."""
        return {device.id: device for device in self.devices}


def ancestors(
    device: DiscoveredDevice, by_id: Mapping[str, DiscoveredDevice]
) -> list[DiscoveredDevice]:
    """Return what a device hangs on in the PCIe tree, the nearest first."""
    chain: dict[str, DiscoveredDevice] = {}
    above = by_id.get(device.parent)
    while above is not None and above.id not in chain:
        chain[above.id] = above
        above = by_id.get(above.parent)
    return list(chain.values())


def numa_of(device: DiscoveredDevice, by_id: Mapping[str, DiscoveredDevice]) -> tuple[int, ...]:
    """Return the NUMA nodes that a device hangs on, as far as its place in the tree tells."""
    for place in (device, *ancestors(device, by_id)):
        if place.kind == "cpu":
            return place.numa
        if place.node is not None:
            return (place.node,)
    return ()


def unknown_place(
    id_: str, evidence: str = "its place is not told", numa: tuple[int, ...] = ()
) -> DiscoveredDevice:
    """Return a root complex that is in no CPU known: the file joins it to each that it can be in.

    What hangs on it shares a host bridge, and is SYS to all else. `numa` are the nodes that it is
    near, where they are told and are of several CPUs.
    """
    return DiscoveredDevice(id_, "root-complex", "root-complex", numa=numa, evidence=evidence)


def first_node(cpu: DiscoveredDevice) -> float:
    """Return what CPUs are sorted by: their first NUMA node, those without one last."""
    return min(cpu.numa, default=math.inf)


def by_depth(devices: Iterable[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return devices with those nearest to the CPU first: upper switches before lower ones."""
    by_id = {device.id: device for device in devices}
    return sorted(by_id.values(), key=lambda device: len(ancestors(device, by_id)))


def bundle(count: int, cable: str) -> str:
    """Return so many cables of one sort as a topology file writes them: ``18x nvlink 4``."""
    return f"{count}x {cable}" if count > 1 else cable


def size_fact(size: float, digits: int = 4) -> tuple[tuple[str, str], ...]:
    """Return so many bytes as the fact ``size`` of a device; nothing where they are not known.

    Examples
    --------
    >>> size_fact(3_840_755_982_336), size_fact(4e11, 2), size_fact(0)
    ((('size', '3.841 TB'),), (('size', '400 GB'),), ())
    """
    scale, unit = (1e12, "TB") if size >= _TERABYTE else (1e9, "GB")
    return (("size", f"{float(f'{size / scale:.{digits}g}'):g} {unit}"),) if size else ()


def printable(text: str, longest: int = _LONGEST) -> str:
    """Return text of a foreign file fit for one line: printable, plain spaces, not endless."""
    spaced = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(spaced.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
