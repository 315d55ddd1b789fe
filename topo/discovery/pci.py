"""A machine's PCI functions as a source tells them, before they become devices.

Every importer that sees PCI fills these types, each in its way, and `topo.discovery.pci_tree` makes
devices of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final, Literal

from topo.catalogue import identities
from topo.catalogue.cables import LANES
from topo.catalogue.kinds import Kind
from topo.catalogue.parts import catalogue
from topo.discovery.machine import DiscoveredLink
from topo.records import dataclass

Port = Literal["root", "upstream", "downstream", ""]

# The PCI domain of the addresses that topo itself makes up where a format needs one.
MADE_UP: Final = "fffe"
NAME_ATTRIBUTE: Final = "topo"  # holds a card's name in an export; others do not read it
_ADDRESS: Final = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})"
    r"(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_MOST_DEVICES: Final = 32  # on a bus
_DEEPEST: Final = 64
_SPEED: Final = re.compile(r"([0-9.]{1,8})\s*GT/s")
# Words in a name without a class (`lspci -tv`), in order: the first that is there decides.
_WORDS: Final[tuple[tuple[str, Kind | None], ...]] = (
    (r"audio|usb|ucsi|serial bus|smbus|aspeed|matrox|cirrus|virtio gpu", None),
    (r"nvswitch", "nvswitch"),
    (r"raid controller|megaraid|\bsas\b|tri-mode", "hba"),
    (r"nvme|non-volatile|\bssd\b|optane", "nvme"),
    (r"connectx|infiniband|ethernet|bluefield|\bnic\b|elastic fabric|omni-path|mlx5gen", "nic"),
    (r"^nvidia|instinct|aldebaran|\bmi\d{3}\b|gaudi", "gpu"),
)
# What has a screen's class and only draws one, where lspci gives names.
_CONSOLE: Final = re.compile(
    r"aspeed|matrox|cirrus|virtio|qxl|vmware|hyper-v|bochs|silicon motion|\bes1000\b|rage xl"
)
_PORT_RATE: Final = re.compile(
    r"(?:\b(\d{1,3})[ -]?)?Gigabit\b|\b(\d{1,3}) ?(?:GbE|GBASE|GigE|Gb(?:it)?(?:/s)?)(?![a-z])"
)
_FLIT_OF_HWLOC: Final = 7.5625  # GB/s of a lane of PCIe 6: hwloc counts 242 of 256 bytes as payload
_CLOSE: Final = 0.01  # relative difference of rates that are the same


# --- addresses ------------------------------------------------------------------------------------


def read_address(text: str) -> str:
    """Return an address in full, ``""`` when it is none.

    Examples
    --------
    >>> read_address("1B:00"), read_address("10000:01:00.1"), read_address("fffffff:ffff:ff")
    ('0000:1b:00.0', '10000:01:00.1', '')
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["device"], 16) >= _MOST_DEVICES:
        return ""
    domain, bus, device = (int(match[name] or "0", 16) for name in ("domain", "bus", "device"))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{match['function'] or 0}"


def card_of(address: str) -> str:
    """Return the address without its function: what the functions of one card share."""
    return address.rpartition(".")[0]


def short_address(address: str) -> str:
    """Return an address without the domain that is everybody's.

    Examples
    --------
    >>> short_address("0000:1b:00.0"), short_address("0001:00:00.0")
    ('1b:00.0', '0001:00:00.0')
    """
    return address.removeprefix("0000:")


def address_key(address: str) -> tuple[int, ...]:
    """Return what addresses are sorted by: domain, bus, device, function as numbers."""
    domain, _, place = address.partition(":")
    bus, _, slot = place.partition(":")
    device, _, function = slot.partition(".")
    try:
        return tuple(int(text, 16) for text in (domain, bus, device, function or "0"))
    except ValueError:
        return (1 << 40,)


# --- functions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """PCIe generation and lanes of one end of a link, `None` where unknown."""

    generation: int | None = None
    lanes: int | None = None

    def __bool__(self) -> bool:
        return self.generation is not None or self.lanes is not None

    def __str__(self) -> str:
        generation = f"PCIe {self.generation}" if self.generation else "PCIe"
        return f"{generation} x{self.lanes}" if self.lanes else generation


@dataclass(frozen=True, slots=True)
class HostBridge:
    """The root of a PCI tree.

    Parameters
    ----------
    id
        What functions name as their parent.
    cpu
        The `id` of the CPU it belongs to, ``""`` where that is not known.
    node
        The NUMA node, where that CPU has several.
    nodes
        The NUMA nodes that it is near, where the CPU is not known.
    is_told
        Whether the source tells host bridges; else all of a CPU's devices are under this one,
        which says nothing of which of them share one.
    """

    id: str
    cpu: str
    node: int | None = None
    evidence: str = ""
    is_told: bool = True
    nodes: tuple[int, ...] = ()


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
    kind
        What the source says that it is, where that needs no guess by class and words.
    port
        ``root``, ``upstream`` or ``downstream`` where the source tells what a bridge is. One that
        stands for a whole switch is ``upstream``.
    current, most
        The link as it is, and the most that this end of it can.
    rate
        The link in GB/s, where generation and width are not told.
    link
        The link where the source tells it as one thing, not as two ends.
    node
        The NUMA node it says it is near.
    nets, rdma, ports, network
        Of a network card: interfaces, RDMA devices, line rates in bits/s, the sort of network.
    drives, size
        Of a drive: its names, its bytes.
    virtual
        Whether it is a virtual function of another that is here; `None` is to be guessed.
    redirects
        Whether a port redirects peer traffic (ACS), where told.
    evidence
        Class, numbers and name for a comment, where they are not as in the fields.
    """

    id: str
    parent: str = ""
    address: str = ""
    code: str = ""
    vendor: str = ""
    device: str = ""
    text: str = ""
    kind: Kind | None = None
    port: Port = ""
    current: LinkSpeed = field(default_factory=LinkSpeed)
    most: LinkSpeed = field(default_factory=LinkSpeed)
    rate: float | None = None
    link: DiscoveredLink | None = None
    node: int | None = None
    slot: str = ""
    nets: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    ports: tuple[float | None, ...] = ()
    network: str = ""
    drives: tuple[str, ...] = ()
    size: int | None = None
    virtual: bool | None = None
    redirects: bool | None = None
    evidence: str = ""

    @property
    def name(self) -> str:
        """What messages call it: its address, if it has one."""
        return self.address or self.id

    @property
    def is_bridge(self) -> bool:
        """Whether it is a PCI-to-PCI bridge: a port, of a switch or a root."""
        return bool(self.port) or self.code[:4] in ("0604", "0609")


def chain_of(function: Function, bridges: dict[str, Function]) -> list[Function]:
    """Return the bridges above a function, the nearest first."""
    chain: dict[str, Function] = {}
    above = bridges.get(function.parent)
    while above is not None and above.id not in chain and len(chain) < _DEEPEST:
        chain[above.id] = above
        above = bridges.get(above.parent)
    return list(chain.values())


def ports_of(bridges: Iterable[Function]) -> dict[str, Port]:
    """Return what each bridge is: as told, else by its place.

    Below a host bridge are root ports; below those and below downstream ports, a switch's
    upstream port; below that its downstream ports.
    """
    by_id = {bridge.id: bridge for bridge in bridges}
    ports: dict[str, Port] = {}
    for bridge in by_id.values():
        above: Port = ""
        for port in (*reversed(chain_of(bridge, by_id)), bridge):
            if port.id not in ports:
                below: Port = "downstream" if above == "upstream" else "upstream"
                ports[port.id] = port.port or (below if above else "root")
            above = ports[port.id]
    return ports


def kind_of(function: Function) -> Kind | None:
    """Return the kind of device a function is part of, `None` when topo does not model it.

    By class and vendor, else by numbers, else by the words that lspci has for it. Classes and
    vendors are those of the PCI ID Repository, https://pci-ids.ucw.cz.
    """
    code, vendor, device = function.code.lower(), function.vendor.lower(), function.device
    if function.kind is not None:
        return function.kind
    if "nvswitch" in function.text.lower() or (
        code.startswith("0680") and vendor == identities.NVIDIA
    ):
        return "nvswitch"
    if not code.strip("0"):
        part = identities.identify(vendor or "0", device or "0")
        if part:
            return catalogue().parts[part].kind
        words = function.text.lower()
        return next((kind for pattern, kind in _WORDS if re.search(pattern, words)), None)
    if code.startswith(("0300", "0380")):  # a screen's: is it a GPU to compute on?
        makers = (identities.INTEL, identities.NVIDIA, identities.AMD)
        computes = vendor in makers or code.startswith("0380")
        return "gpu" if computes and not is_console(function) else None
    if code.startswith("0b40"):
        return "gpu" if identities.role_of(vendor, device) == "co-processor" else None
    if code.startswith("0280"):
        return "nic" if vendor == identities.MELLANOX or function.rdma else None
    fpga = code.startswith("12") and identities.role_of(vendor, device) == "fpga"
    return None if fpga else identities.kind_of_class(code)


def is_console(function: Function) -> bool:
    """Whether what has a screen's class only draws one: a management port, a virtual machine's."""
    built_in = function.address.endswith(":00:02.0")  # of Intel's CPUs, on the root bus
    return (
        (function.vendor == identities.INTEL and built_in)
        or identities.role_of(function.vendor, function.device) == "console"
        or _CONSOLE.search(function.text.lower()) is not None
    )


def port_rate_named(text: str) -> float | None:
    """Return the line rate of a network card's ports in bits/s by its name, `None` without one.

    Examples
    --------
    >>> port_rate_named("I210 Gigabit Network Connection"), port_rate_named("X550 10GBASE-T")
    (1000000000.0, 10000000000.0)
    >>> port_rate_named("BCM57414 10Gb/25Gb RDMA Ethernet"), port_rate_named("MT2910 Family")
    (25000000000.0, None)
    """
    rates = [float(match[1] or match[2] or 1) for match in _PORT_RATE.finditer(text)]
    return max(rates) * 1e9 if rates else None


# --- links ----------------------------------------------------------------------------------------


def generation_of(text: str) -> int | None:
    """Return the PCIe generation of ``16.0 GT/s PCIe``, `None` where it says none.

    Examples
    --------
    >>> generation_of("2.5 GT/s"), generation_of("64.0 GT/s PCIe"), generation_of("Unknown speed")
    (1, 6, None)
    """
    match = _SPEED.match(text.strip())
    try:
        return identities.generation_of_transfer_rate(float(match[1]) * 1e9) if match else None
    except ValueError:
        return None


def link_between(
    device: Function, port: Function | None, *, usual_lanes: int = 16
) -> tuple[DiscoveredLink, dict[str, str]]:
    """Return the link of a device to the port above it, and what is odd about it.

    It is the less of what both ends can, not what it is at the moment: at rest it is slower. Fewer
    lanes than both ends can is no rest, and stays.

    Parameters
    ----------
    device, port
        The two ends; the port is `None` where the source does not show it.
    usual_lanes
        How many lanes such a device has, for sources that tell a rate alone.

    Returns
    -------
    tuple
        The link, and words by the code of the finding that they belong to: ``idle-link``,
        ``trained-down``, ``port-below-device``, ``odd-link-speed``.
    """
    if device.link is not None:
        return device.link, {}
    if device.most or device.current:
        return _link_of_ends(device, port)
    rates = [end.rate for end in (device, port) if end is not None and end.rate]
    if not rates:
        return DiscoveredLink(evidence="speed not told"), {}
    rate = min(rates)
    oddities: dict[str, str] = {}
    above = port.rate if port is not None else None
    if device.rate and above and device.rate - above > _CLOSE * rate:
        words = f"the device says {device.rate:.4g} GB/s, the port above it {above:.4g}"
        oddities["port-below-device"] = words
    split = split_rate(rate, usual_lanes)
    if split is None:
        oddities["odd-link-speed"] = f"{rate:.4g} GB/s"
        return DiscoveredLink(evidence=f"{rate:.4g} GB/s, which no PCIe link has"), oddities
    evidence = f"{rate:.4g} GB/s seen; generation and width are a guess"
    return DiscoveredLink(*split, evidence), oddities


def _link_of_ends(device: Function, port: Function | None) -> tuple[DiscoveredLink, dict[str, str]]:
    """Return the link where the ends tell generation and lanes."""
    current, most = device.current, device.most
    above = port.most if port is not None else LinkSpeed()
    generation = min((end.generation for end in (most, above) if end.generation), default=None)
    lanes = min((end.lanes for end in (most, above) if end.lanes), default=None)
    oddities: dict[str, str] = {}
    who = "both ends can" if above and most else "the device can"
    if current.generation and generation and current.generation < generation:
        now, best = (
            identities.transfer_rate(number) / 1e9 for number in (current.generation, generation)
        )
        oddities["idle-link"] = f"{now:g} GT/s now, and {who} {best:g} GT/s"
    if current.lanes and lanes and current.lanes < lanes:
        oddities["trained-down"] = f"x{current.lanes} now, and {who} x{lanes}"
        lanes = current.lanes
    evidence = "; ".join(oddities.values())
    if not evidence and not (above and most):
        evidence = "of the device alone" if most else "as it is now"
    if above and most:
        pairs = ((most.generation, above.generation), (most.lanes, above.lanes))
        if any(mine and port_can and mine > port_can for mine, port_can in pairs):
            oddities["port-below-device"] = f"the device can {most}, the port above it {above}"
    link = DiscoveredLink(
        generation or current.generation,
        lanes or current.lanes,
        evidence,
        is_of_both_ends=bool(above and most),
    )
    return link, oddities


def split_rate(rate: float, usual_lanes: int) -> tuple[int, int] | None:
    """Return a generation and width with this rate in GB/s, `None` when there is none.

    Several have nearly the same: 15.75 is 3 x16, 4 x8 and 5 x4. The width nearest to the usual
    one is taken.

    Examples
    --------
    >>> split_rate(15.753846, 16), split_rate(15.753846, 4), split_rate(0.2, 16)
    ((3, 16), (5, 4), None)
    """

    def distance(lanes: int) -> tuple[float, int]:
        return max(lanes, usual_lanes) / min(lanes, usual_lanes), -lanes

    for lanes in sorted(LANES, key=distance):
        for generation in identities.generations():
            lane = identities.lane_rate(generation) / 1e9 if generation < 6 else _FLIT_OF_HWLOC  # noqa: PLR2004
            if abs(lane * lanes - rate) <= _CLOSE * rate:
                return generation, lanes
    return None
