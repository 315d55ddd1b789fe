"""A machine's PCI functions as a source tells them, before they become devices.

hwloc, lspci and sysfs tell the same tree in three ways; each reader fills these types, and
`topo.discovery.pci_tree` makes devices of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


Port = str  # root, upstream, downstream; "" where not told
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class Lanes:
    """A PCIe speed: generation and lanes, `None` where unknown."""

    generation: int | None = None
    lanes: int | None = None

    def __bool__(self) -> bool:
        return self.generation is not None or self.lanes is not None


@dataclass(frozen=True, slots=True)
class HostBridge:
    """The root of a PCI tree.

    Parameters
    ----------
    id
        What functions name as their parent.
    cpu
        The `id` of the CPU it belongs to.
    node
        The NUMA node, where that CPU has several.
    """

    id: str
    cpu: str
    node: int | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """One PCI function.

    Parameters
    ----------
    id, parent
        Its own, and that of the bridge or host bridge above it.
    address
        In full, ``""`` when unknown.
    code
        The class, four to six hexadecimal digits.
    vendor, device
        Hexadecimal, without ``0x``.
    text
        What the source calls it in words.
    port
        ``root``, ``upstream`` or ``downstream`` where the source tells what a bridge is.
    now, most
        The link as it is, and the most that this end of it can.
    rate
        The link in GB/s, where generation and width are not told.
    node
        The NUMA node it says it is near.
    nets, rdma, ports, network
        Of a network card: interfaces, RDMA devices, line rates in bits/s, the sort of network.
    drives, size
        Of a drive: its names, its bytes.
    virtual
        Whether it is a virtual function of another that is here.
    redirects
        Whether a port redirects peer traffic (ACS), where told.
    """

    id: str
    parent: str = ""
    address: str = ""
    code: str = ""
    vendor: str = ""
    device: str = ""
    text: str = ""
    port: Port = ""
    now: Lanes = field(default_factory=Lanes)
    most: Lanes = field(default_factory=Lanes)
    rate: float | None = None
    node: int | None = None
    slot: str = ""
    nets: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    ports: tuple[float | None, ...] = ()
    network: str = ""
    drives: tuple[str, ...] = ()
    size: int | None = None
    virtual: bool = False
    redirects: bool | None = None


def address_key(address: str) -> tuple[int, ...]:
    """Return what addresses are sorted by: domain, bus, device, function as numbers."""
    domain, _, rest = address.partition(":")
    bus, _, slot = rest.partition(":")
    device, _, function = slot.partition(".")
    try:
        return tuple(int(text, 16) for text in (domain, bus, device, function or "0"))
    except ValueError:
        return (1 << 40,)


def chain_of(function: Function, bridges: dict[str, Function]) -> list[Function]:
    """Return the bridges above a function, the nearest first."""
    chain: list[Function] = []
    above = bridges.get(function.parent)
    while above is not None and above not in chain and len(chain) < _DEEPEST:
        chain.append(above)
        above = bridges.get(above.parent)
    return chain


def ports_of(bridges: Iterable[Function]) -> dict[str, Port]:
    """Return what each bridge is: as told, else by its place.

    Below a host bridge are root ports; below those and below downstream ports, a switch's
    upstream port; below that its downstream ports.
    """
    known = {bridge.id: bridge for bridge in bridges}
    found: dict[str, Port] = {}
    for bridge in known.values():
        line = [*reversed(chain_of(bridge, known)), bridge]
        above = ""
        for one in line:
            if one.id not in found:
                place = "downstream" if above == "upstream" else "upstream" if above else "root"
                found[one.id] = one.port or place
            above = found[one.id]
    return found
