"""What an importer saw of a machine, before it becomes a topology: devices, and what joins them.

A machine holds facts of the source and nothing else: what is not known is `None` or empty, and
stays unknown. `topo.discovery.describe` makes a topology file of it; devices get their names there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topo.catalogue.kinds import Kind
    from topo.errors import Finding


_LONGEST = 100


@dataclass(frozen=True, slots=True)
class DiscoveredLink:
    """A device's PCIe link to what it hangs on.

    Parameters
    ----------
    generation, lanes
        As seen; `None` is unknown.
    said
        The words of the source: ``link_speed "16 GT/s", link_width 16``.
    """

    generation: int | None = None
    lanes: int | None = None
    said: str = ""

    @property
    def cable(self) -> str:
        """As a topology file writes it: ``pcie 4 x16``, ``pcie unknown``."""
        lanes = f" x{self.lanes}" if self.lanes else ""
        if self.generation is None:
            return f"pcie unknown{lanes}"
        return f"pcie {self.generation}{lanes or ' unknown'}"


@dataclass(frozen=True, slots=True)
class DiscoveredDevice:
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
    said
        What was seen and in which attribute: it becomes a comment.
    remarks
        What must not be overlooked, each a comment on a line of its own above the device.
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
    said: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveredCable:
    """A link outside the PCIe tree: NVLink, xGMI, NVLink-C2C, between sockets.

    `cable` is as a topology file writes it: ``18x nvlink 4``.
    """

    a: str
    b: str
    cable: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveredPart:
    """A part that the file gets under `parts:`: what is known beyond the part it is like."""

    name: str
    like: str
    title: str
    facts: tuple[tuple[str, str], ...] = ()


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
    fabric_told
        Whether it is known which GPUs have links to each other, also where none has.
    together
        Further sources that were combined with this one: ``smi.txt (output of nvidia-smi)``.
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
    fabric_told: bool = False
    together: tuple[str, ...] = ()

    def title(self) -> str:
        """Return one line for headings: what the machine has."""
        counts = (
            (len(self.of_kind("gpu")), "GPU"),
            (len(self.of_kind("nic", "dpu")), "network card"),
            (len(self.of_kind("nvme")), "drive"),
            (len(self.of_kind("cpu")), "NUMA node"),
        )
        texts = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
        return ", ".join(texts) or "nothing"

    def of_kind(self, *kinds: Kind) -> tuple[DiscoveredDevice, ...]:
        """Return the devices of these kinds, in order."""
        return tuple(device for device in self.devices if device.kind in kinds)


def by_depth(devices: Iterable[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return devices with those nearest to the CPU first: upper switches before lower ones."""
    known = {device.id: device for device in devices}
    depths: dict[str, int] = {}

    def depth(one: str) -> int:
        if one not in known:
            return 0
        if one not in depths:
            depths[one] = 0  # against loops
            depths[one] = 1 + depth(known[one].parent)
        return depths[one]

    return sorted(known.values(), key=lambda device: depth(device.id))


def printable(text: str, longest: int = _LONGEST) -> str:
    """Return text of a foreign file fit for one line: printable, plain spaces, not endless."""
    flat = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 3]}..."


def some_of(names: Sequence[str], few: int = 3) -> str:
    """Return the first names and how many more there are.

    Examples
    --------
    >>> some_of(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return ", ".join(names[:few]) + (f" and {len(names) - few} more" if len(names) > few else "")
