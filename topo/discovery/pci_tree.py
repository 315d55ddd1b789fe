"""PCI functions become devices: cards of several functions, switches of several ports.

A switch is one upstream port and the downstream ports below it. A host bridge becomes a root
complex where several things hang on it, which is what makes a pair PHB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from topo.catalogue.identities import (
    AMD_CPU,
    INTEL,
    generic_gpu,
    identify,
    part_named,
    switch_of,
    transfer_rate,
    vendor_name,
)
from topo.catalogue.kinds import CARDS, Kind
from topo.catalogue.parts import catalogue
from topo.discovery import pci
from topo.discovery.machine import (
    NVSWITCH,
    DiscoveredDevice,
    DiscoveredLink,
    printable,
    size_fact,
    unknown_place,
)
from topo.errors import Finding, Severity
from topo.phrases import and_more, counted
from topo.records import dataclass

_USUAL_LANES: Final = {"nvme": 4, "cxl-memory": 8, "hba": 8}
_MOST_LANES: Final = 16
_SWITCHES: Final = {3: "pcie-switch-gen3", 4: "pcie-switch-gen4", 5: "pcie-switch-gen5"}
_RADEON: Final = re.compile(r"radeon|firepro|\bnavi\b", re.IGNORECASE)  # AMD's that are no Instinct
_NUMBER_FOR_NAME: Final = re.compile(r"\bDevice [0-9a-f]{4}$")
_VIRTUAL_FUNCTION: Final = "virtual function"
_HIDDEN_FROM: Final = 4  # GPUs without any port above them
# What can be odd about links: code, severity, help.
_LINK_ODDITIES: Final[tuple[tuple[str, Severity, str], ...]] = (
    ("link-at-rest", "note", "the better was taken: a GPU that saves power slows its link down"),
    ("idle-link", "warning", "the better was taken where known: is it at rest, or trained down?"),
    (
        "trained-down",
        "warning",
        "the smaller was taken: look at the riser, the seating and the slot",
    ),
    ("port-below-device", "note", "the smaller was taken"),
    ("odd-link-speed", "note", "it is `unknown` in the YAML"),
)

_Card = tuple[Kind, list[pci.Function]]


@dataclass(frozen=True, slots=True)
class PciDevices:
    """The devices of a PCI tree, which device each function is in, and what is odd."""

    devices: tuple[DiscoveredDevice, ...]
    device_of: dict[str, str]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]


def devices_of(
    functions: Iterable[pci.Function],
    hosts: Sequence[pci.HostBridge],
    forwards: Mapping[str, bool] | None = None,
    *,
    keep_switches: bool = False,
) -> PciDevices:
    """Make devices of PCI functions.

    Parameters
    ----------
    functions
        All that the source tells, in the order in which devices get their numbers.
    hosts
        The roots they hang on; at least one.
    forwards
        Whether a CPU forwards peer-to-peer traffic, by its `id`, where that is known: its host
        bridges do as it does.
    keep_switches
        Whether a switch is one also where no device is below it.
    """
    return _Tree(list(functions), hosts, forwards or {}, keep_switches=keep_switches).result()


def by_address(functions: Iterable[pci.Function]) -> list[pci.Function]:
    """Return functions in the order of their addresses."""
    return sorted(functions, key=lambda function: pci.address_key(function.address))


class _Tree:
    """The functions by what they are, and what is odd about them."""

    def __init__(
        self,
        functions: list[pci.Function],
        hosts: Sequence[pci.HostBridge],
        forwards: Mapping[str, bool],
        *,
        keep_switches: bool,
    ) -> None:
        self.hosts = {host.id: host for host in hosts}
        self.forwards = forwards
        self.keep_switches = keep_switches
        self.bridges = {function.id: function for function in functions if function.is_bridge}
        self.ports = pci.ports_of(self.bridges.values())
        self.device_of: dict[str, str] = {}
        self.classless: list[pci.Function] = []
        self.nameless: list[pci.Function] = []
        self.virtual: list[pci.Function] = []
        self.repeated: list[pci.Function] = []
        self.left_out: list[str] = []
        self.odd_links: dict[str, list[tuple[str, str]]] = {}
        leaves: list[tuple[Kind, pci.Function]] = []
        for function in functions:
            if function.id in self.bridges:
                continue
            kind = pci.kind_of(function)
            if kind is not None:
                leaves.append((kind, function))
            elif not function.code and not function.text:
                self.classless.append(function)
                self.left_out.append(function.name)
            elif self._is_nameless(function):
                self.nameless.append(function)
                self.left_out.append(function.name)
        self.cards = self._cards(leaves)

    def _is_nameless(self, function: pci.Function) -> bool:
        """Whether nothing tells what an endpoint is: a number for a name, or an unknown maker's."""
        if function.code:
            return function.code.startswith("0300") and not pci.is_console(function)
        numbered = _NUMBER_FOR_NAME.search(function.text) is not None
        of_the_cpu = function.vendor in (INTEL, AMD_CPU)
        return numbered and function.parent in self.bridges and not of_the_cpu

    def _cards(self, leaves: list[tuple[Kind, pci.Function]]) -> list[_Card]:
        """Return what belongs together: a network card's functions, all else one by one."""
        cards: dict[tuple[str, ...], _Card] = {}
        addresses: set[str] = set()
        buses: dict[str, list[pci.Function]] = {}
        for kind, function in leaves:
            if kind == "nic":
                buses.setdefault(_bus(function), []).append(function)
        for kind, function in leaves:
            if kind == "nic" and _is_virtual(function, buses[_bus(function)]):
                self.left_out.append(function.address)
                self.virtual.append(function)
                continue
            if function.address and function.address in addresses:
                self.repeated.append(function)
            addresses.add(function.address)
            key: tuple[str, ...] = (function.id,)
            if kind == "nic" and function.address:
                card = pci.card_of(function.address)
                key = (function.parent, card, function.vendor, function.device)
            cards.setdefault(key, (kind, []))[1].append(function)
        return list(cards.values())

    # --- places ---------------------------------------------------------------------------------

    def _switch_above(self, function: pci.Function) -> str:
        """Return the `id` of the upstream port of the nearest switch above, ``""`` if none."""
        chain = pci.chain_of(function, self.bridges)
        return next((bridge.id for bridge in chain if self.ports[bridge.id] == "upstream"), "")

    def _host_above(self, function: pci.Function) -> pci.HostBridge:
        top = [function, *pci.chain_of(function, self.bridges)][-1]
        return self.hosts.get(top.parent) or next(iter(self.hosts.values()))

    def result(self) -> PciDevices:
        """Return the devices: root complexes, switches, what hangs on them, NVSwitches."""
        cards = [card for card in self.cards if card[0] != NVSWITCH]
        leaves = [functions[0] for _, functions in cards]
        # The upstream ports of the switches that are devices, by their addresses.
        above = list(self.bridges.values())
        if not self.keep_switches:
            above = [bridge for leaf in leaves for bridge in pci.chain_of(leaf, self.bridges)]
        upstream = {bridge.id: bridge for bridge in above if self.ports[bridge.id] == "upstream"}
        switches = by_address(upstream.values())
        tops: dict[str, int] = {}
        for function in (*switches, *leaves):
            if not self._switch_above(function):
                host = self._host_above(function)
                tops[host.id] = tops.get(host.id, 0) + host.is_told
        shared = {host for host, count in tops.items() if count > 1 or not self.hosts[host].cpu}
        root_complexes = []
        for host in (host for host in self.hosts.values() if host.id in shared):
            if not host.cpu:
                evidence = f"{host.evidence}; its place is not told".removeprefix("; ")
                root_complexes.append(unknown_place(f"rc {host.id}", evidence, host.nodes))
                continue
            forwards = self.forwards.get(host.cpu)
            word = "yes" if forwards else "no"
            root_complexes.append(
                DiscoveredDevice(
                    id=f"rc {host.id}",
                    kind="root-complex",
                    part="root-complex",
                    parent=host.cpu,
                    node=host.node,
                    link=DiscoveredLink(evidence="inside the CPU"),
                    facts=(("forwards-p2p", word),) if forwards is not None else (),
                    evidence=host.evidence,
                )
            )
        devices = (
            *root_complexes,
            *(self._switch(function, shared) for function in switches),
            *(self._device(kind, functions, shared) for kind, functions in cards),
            *self._nvswitches(),
        )
        findings = tuple(self._findings())
        return PciDevices(devices, self.device_of, tuple(self.left_out), findings)

    def _place(self, function: pci.Function, shared: set[str]) -> tuple[str, int | None]:
        """Return what a device hangs on, and the NUMA node of it where it has several."""
        switch = self._switch_above(function)
        if switch:
            return switch, None
        host = self._host_above(function)
        return (f"rc {host.id}", None) if host.id in shared else (host.cpu, host.node)

    def _link(self, function: pci.Function, kind: str, part: str) -> DiscoveredLink:
        parts = catalogue().parts
        known_part = parts.get(part)
        slot = known_part.slot if known_part is not None else None
        lanes = slot.lanes if slot is not None else None
        usual = lanes or _USUAL_LANES.get(kind, _MOST_LANES)
        port = self.bridges.get(function.parent)
        link, oddities = pci.link_between(function, port, usual_lanes=usual)
        above = pci.Function("") if port is None else port
        at_rest = link.generation == 1 and not (function.link or function.most or above.most)
        if at_rest:  # all that is told is what it does at the moment
            ends = [part, switch_of(above.vendor, above.device)]
            if kind == "pcie-switch":
                ends[0] = switch_of(function.vendor, function.device)
            slots = [parts[end].slot for end in ends if end in parts]
            best = min((slot.generation for slot in slots if slot is not None), default=None)
            if best is not None or kind == "gpu":
                speed = (
                    f"{transfer_rate(best) / 1e9:g} GT/s" if best else "more, how much is not known"
                )
                if best != 1:
                    oddities["idle-link"] = f"2.5 GT/s now, and the part can {speed}"
                link = replace(link, generation=best, evidence=f"{link.evidence}; at rest")
        for code, words in oddities.items():
            is_rest = code == "idle-link" and kind == "gpu" and link.generation is not None
            of_code = self.odd_links.setdefault("link-at-rest" if is_rest else code, [])
            of_code.append((function.name, words))
        return link

    # --- devices --------------------------------------------------------------------------------

    def _switch(self, function: pci.Function, shared: set[str]) -> DiscoveredDevice:
        parent, node = self._place(function, shared)
        redirects = [
            bridge.redirects
            for bridge in self.bridges.values()
            if self.ports[bridge.id] == "downstream"
            and bridge.redirects is not None
            and self._switch_above(bridge) == function.id
        ]
        link = self._link(function, "pcie-switch", "")
        part = switch_of(function.vendor, function.device)
        if not part:
            part = _SWITCHES.get(function.most.generation or 0, "pcie-switch-unknown")
        elif (link.generation or 0) > int(part[-1]):
            part = "pcie-switch-unknown"
        return DiscoveredDevice(
            id=function.id,
            kind="pcie-switch",
            part=part,
            parent=parent,
            node=node,
            link=link,
            pci=(function.address,) if _is_real(function.address) else (),
            slot=printable(function.slot),
            facts=(("acs", "on" if any(redirects) else "off"),) if redirects else (),
            evidence=_evidence(function),
        )

    def _device(
        self, kind: Kind, functions: list[pci.Function], shared: set[str]
    ) -> DiscoveredDevice:
        first = functions[0]
        parent, node = self._place(first, shared)
        ports = tuple(rate for function in functions for rate in function.ports)
        part = _part(kind, first, max(len(functions), len(ports)))
        by_name = pci.port_rate_named(first.text)
        if part == "nic-unknown" and by_name and not any(ports):
            ports = (by_name,) * max(len(functions), len(ports))
        self.device_of |= {function.id: first.id for function in functions}
        network = "infiniband" if first.code.startswith("0207") else ""
        size = first.size if kind in ("nvme", "cxl-memory") and first.size else 0
        return DiscoveredDevice(
            id=first.id,
            kind="dpu" if part.startswith("bluefield") else kind,
            part=part,
            parent=parent,
            node=node,
            link=self._link(first, kind, part),
            pci=tuple(
                function.address
                for function in functions
                if _is_real(function.address) and function not in self.repeated
            ),
            rdma=_names(function.rdma for function in functions),
            label=printable(
                ", ".join(_names((*function.nets, *function.drives) for function in functions))
            ),
            slot=printable(first.slot),
            ports=ports,
            network=next((function.network for function in functions if function.network), network),
            facts=size_fact(size),
            evidence=_evidence(first),
        )

    def _nvswitches(self) -> tuple[DiscoveredDevice, ...]:
        """Return all NVSwitch chips as one device, as NCCL takes them."""
        chips = [functions[0] for kind, functions in self.cards if kind == NVSWITCH]
        if not chips:
            return ()
        self.device_of |= {chip.id: NVSWITCH for chip in chips}
        device = DiscoveredDevice(
            id=NVSWITCH,
            kind="nvswitch",
            part="nvswitch-unknown",
            pci=tuple(dict.fromkeys(chip.address for chip in chips if chip.address)),
            facts=(("chips", str(len(chips))),),
            evidence=f"{counted(len(chips), 'NVSwitch function')} on the PCI bus",
        )
        return (device,)

    # --- what is odd ----------------------------------------------------------------------------

    def _findings(self) -> Iterable[Finding]:
        """Yield one finding for each kind of oddity."""
        for code, severity, help in _LINK_ODDITIES:
            odd = self.odd_links.get(code, [])
            if odd:
                message = f"{and_more([name for name, _ in odd])}: {odd[0][1]}"
                yield Finding(code, message, severity=severity, help=help)
        if self.repeated:
            message = f"PCI addresses stand several times: {_shown(self.repeated)}"
            help = "both devices were taken, the second without its address"
            yield Finding("address-again", message, severity="warning", help=help)
        if self.virtual:
            count = counted(len(self.virtual), "virtual function")
            message = f"left out: {count}: {_shown(self.virtual)}"
            yield Finding("virtual-functions", message, severity="note")
        if self.classless:
            count = counted(len(self.classless), "PCI device")
            message = f"left out: {count} without a class: {_shown(self.classless)}"
            help = "add them to the YAML by hand"
            yield Finding("unclassified-device", message, severity="warning", help=help)
        elif self.nameless:
            message = "nothing tells what these PCI devices are, and they were left out: "
            message += _shown(self.nameless)
            help = "`lspci -nnvvv` tells classes; add them to the YAML by hand"
            yield Finding("unclassified-device", message, severity="note", help=help)


def hidden_ports(functions: Sequence[pci.Function], placeless: str = "\0") -> tuple[Finding, ...]:
    """Return the finding that a virtual machine hides its ports and switches, where it does.

    A PCIe device hangs on a port: on the root bus itself are only devices that somebody put there.

    Parameters
    ----------
    functions
        All of a source that shows bridges.
    placeless
        How the parents begin that stand for no known place.
    """
    ids = {function.id for function in functions}
    gpus = [
        function
        for function in functions
        if function.parent not in ids
        and not function.parent.startswith(placeless)
        and pci.kind_of(function) == "gpu"
    ]
    if len(gpus) < _HIDDEN_FROM:
        return ()
    message = f"{_shown(gpus)} hang on a root bus, without a port: "
    message += "a virtual machine that hides its switches?"
    help = "near and far cards look alike here; compare with the host's own topology"
    return (Finding("hidden-switches", message, severity="warning", help=help),)


def _shown(functions: list[pci.Function]) -> str:
    return and_more(list(dict.fromkeys(function.name for function in functions)))


def _bus(function: pci.Function) -> str:
    return function.address.rpartition(":")[0]


def _is_real(address: str) -> bool:
    """Whether it is an address of the machine, not one that topo made up for an export."""
    return bool(address) and not address.startswith(f"{pci.MADE_UP}:")


def _is_virtual(function: pci.Function, neighbours: list[pci.Function]) -> bool:
    """Whether a network function is a virtual one of another on its bus.

    Told as such; or it has no interface of its own and another on its bus has; or its name says
    so and another's does not.
    """
    if function.virtual is not None:
        return function.virtual
    if function.nets or function.rdma:
        return False
    if any(
        (neighbour.nets or neighbour.rdma) and neighbour.device != function.device
        for neighbour in neighbours
    ):
        return True
    virtual = [_VIRTUAL_FUNCTION in card.text.lower() for card in (function, *neighbours)]
    return virtual[0] and not all(virtual)


def _part(kind: Kind, function: pci.Function, ports: int) -> str:
    """Return the part by numbers, else by name, else one of which nothing is known.

    A part of another kind than the class says is none.
    """
    vendor = function.vendor or "0"
    by_numbers = identify(vendor, function.device or "0", ports=ports)
    for part in (by_numbers, part_named(function.text, ports=ports)):
        if part and {catalogue().parts[part].kind, kind} in ({kind}, {*CARDS}):
            return part
    if kind != "gpu":
        return f"{kind}-unknown"
    draws = function.code.startswith("0300") or _RADEON.search(function.text) is not None
    return "gpu-unknown" if draws else generic_gpu(vendor)


def _evidence(function: pci.Function) -> str:
    """Return class, numbers and name of a function for the comment."""
    if function.evidence:
        return function.evidence
    texts = [f"class {function.code[:4]}"] if function.code else []
    if function.vendor and function.device:
        texts.append(f"{vendor_name(function.vendor)} {function.device}")
    if function.text:
        texts.append(function.text)
    return printable(", ".join(texts))


def _names(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(printable(name) for group in groups for name in group))
