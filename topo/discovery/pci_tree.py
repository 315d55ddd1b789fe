"""PCI functions become devices: cards of several functions, switches of several ports.

A switch is one upstream port and the downstream ports below it. A host bridge becomes a root
complex where several things hang on it, which is what makes a pair PHB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.discovery.addresses import card_of
from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, printable
from topo.discovery.pci import address_key, chain_of, ports_of
from topo.discovery.pci_kinds import is_bridge, kind_of
from topo.discovery.pci_link import link_between
from topo.discovery.pci_parts import part_of_function, seen_as, switch_part, usual_lanes
from topo.discovery.pci_said import Oddities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from topo.catalogue.kinds import Kind
    from topo.discovery.pci import Function, HostBridge
    from topo.errors import Finding


_NVSWITCH: Final = "nvswitch"


@dataclass(frozen=True, slots=True)
class Grown:
    """The devices of a PCI tree, which device each function is in, and what is odd."""

    devices: tuple[DiscoveredDevice, ...]
    device_of: dict[str, str]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]


def grow(
    functions: Iterable[Function],
    hosts: Sequence[HostBridge],
    forwards: Mapping[str, bool] | None = None,
) -> Grown:
    """Make devices of PCI functions.

    Parameters
    ----------
    functions
        All that the source tells, in any order.
    hosts
        The roots they hang on; at least one.
    forwards
        Whether a CPU forwards peer-to-peer traffic, by its `id`, where that is known: its host
        bridges do as it does.
    """
    ordered = sorted(functions, key=lambda one: address_key(one.address))
    return _Tree(ordered, hosts, forwards or {}).grown()


class _Tree:
    def __init__(
        self,
        functions: list[Function],
        hosts: Sequence[HostBridge],
        forwards: Mapping[str, bool],
    ) -> None:
        self.hosts = {host.id: host for host in hosts}
        self.forwards = forwards
        self.bridges = {one.id: one for one in functions if is_bridge(one)}
        self.ports = ports_of(self.bridges.values())
        self.odd = Oddities()
        self.device_of: dict[str, str] = {}
        self.left_out: list[str] = []
        leaves: list[tuple[Kind, Function]] = []
        for one in functions:
            kind = None if one.id in self.bridges else kind_of(one)
            if kind is not None:
                leaves.append((kind, one))
            elif not one.code and not one.text and one.id not in self.bridges:
                self.odd.classless(one)
                self.left_out.append(one.address or one.id)
        self.cards = self._cards(leaves)

    # --- cards ----------------------------------------------------------------------------------

    def _cards(self, leaves: list[tuple[Kind, Function]]) -> list[tuple[Kind, list[Function]]]:
        """Return what belongs together: a network card's functions, all else one by one."""
        cards: dict[tuple[str, ...], tuple[Kind, list[Function]]] = {}
        seen: set[str] = set()
        busses: dict[str, list[Function]] = {}
        for kind, one in leaves:
            if kind == "nic":
                busses.setdefault(_bus(one), []).append(one)
        for kind, one in leaves:
            if kind == "nic" and _is_virtual(one, busses[_bus(one)]):
                self.left_out.append(one.address)
                self.odd.virtual(one)
                continue
            if one.address and one.address in seen:
                self.odd.repeated(one)
            seen.add(one.address)
            key: tuple[str, ...] = (one.id,)
            if kind == "nic" and one.address:
                key = (one.parent, card_of(one.address), one.vendor, one.device)
            cards.setdefault(key, (kind, []))[1].append(one)
        return list(cards.values())

    # --- places ---------------------------------------------------------------------------------

    def _switch_above(self, one: Function) -> str:
        """Return the `id` of the upstream port of the nearest switch above, ``""`` if none."""
        chain = chain_of(one, self.bridges)
        return next((bridge.id for bridge in chain if self.ports[bridge.id] == "upstream"), "")

    def _host_above(self, one: Function) -> HostBridge:
        chain = chain_of(one, self.bridges)
        top = chain[-1] if chain else one
        return self.hosts.get(top.parent) or next(iter(self.hosts.values()))

    def _needed(self) -> dict[str, Function]:
        """Return the switches that have a device below them, by their upstream ports."""
        needed: dict[str, Function] = {}
        for kind, functions in self.cards:
            if kind == _NVSWITCH:
                continue
            for bridge in chain_of(functions[0], self.bridges):
                if self.ports[bridge.id] == "upstream":
                    needed[bridge.id] = bridge
        return dict(sorted(needed.items(), key=lambda item: address_key(item[1].address)))

    def grown(self) -> Grown:
        switches = self._needed()
        tops: dict[str, list[str]] = {}
        leaves = [functions[0] for kind, functions in self.cards if kind != _NVSWITCH]
        for one in (*switches.values(), *leaves):
            if not self._switch_above(one):
                tops.setdefault(self._host_above(one).id, []).append(one.id)
        shared = {host for host, names in tops.items() if len(names) > 1}
        roots = [self._root(self.hosts[key]) for key in self.hosts if key in shared]
        made = [self._switch(one, shared) for one in switches.values()]
        found = [
            self._device(kind, functions, shared)
            for kind, functions in self.cards
            if kind != _NVSWITCH
        ]
        chips = self._nvswitches()
        return Grown(
            devices=(*roots, *made, *found, *chips),
            device_of=self.device_of,
            left_out=tuple(self.left_out),
            findings=self.odd.findings(),
        )

    def _root(self, host: HostBridge) -> DiscoveredDevice:
        known = self.forwards.get(host.cpu)
        return DiscoveredDevice(
            id=f"rc {host.id}",
            kind="root-complex",
            part="root-complex",
            parent=host.cpu,
            node=host.node,
            link=DiscoveredLink(said="inside the CPU"),
            facts=(("forwards-p2p", "yes" if known else "no"),) if known is not None else (),
            said=host.said,
        )

    def _place(self, one: Function, shared: set[str]) -> tuple[str, int | None]:
        """Return what a device hangs on, and the NUMA node of it where it has several."""
        switch = self._switch_above(one)
        if switch:
            return switch, None
        host = self._host_above(one)
        return (f"rc {host.id}", None) if host.id in shared else (host.cpu, host.node)

    def _link(self, one: Function, kind: str, part: str) -> DiscoveredLink:
        chain = chain_of(one, self.bridges)
        found = link_between(one, chain[0] if chain else None, usual=usual_lanes(kind, part))
        self.odd.link(one, found)
        return found.link

    # --- devices --------------------------------------------------------------------------------

    def _switch(self, one: Function, shared: set[str]) -> DiscoveredDevice:
        parent, node = self._place(one, shared)
        below = [
            bridge
            for bridge in self.bridges.values()
            if self.ports[bridge.id] == "downstream" and self._switch_above(bridge) == one.id
        ]
        told = [bridge.redirects for bridge in below if bridge.redirects is not None]
        link = self._link(one, "pcie-switch", "")
        return DiscoveredDevice(
            id=one.id,
            kind="pcie-switch",
            part=switch_part(one, link),
            parent=parent,
            node=node,
            link=link,
            pci=(one.address,) if one.address else (),
            slot=printable(one.slot),
            facts=(("acs", "on" if any(told) else "off"),) if told else (),
            said=seen_as(one),
        )

    def _device(self, kind: Kind, functions: list[Function], shared: set[str]) -> DiscoveredDevice:
        one = functions[0]
        parent, node = self._place(one, shared)
        nics = max(len(functions), len(one.ports))
        part = part_of_function(kind, one, nics)
        for function in functions:
            self.device_of[function.id] = one.id
        addresses = tuple(
            function.address
            for function in functions
            if function.address and not self.odd.is_repeated(function)
        )
        size = one.size if kind in ("nvme", "cxl-memory") else None
        return DiscoveredDevice(
            id=one.id,
            kind="dpu" if part.startswith("bluefield") else kind,
            part=part,
            parent=parent,
            node=node,
            link=self._link(one, kind, part),
            pci=addresses,
            rdma=_all(function.rdma for function in functions),
            label=printable(", ".join(_all((*f.nets, *f.drives) for f in functions))),
            slot=printable(one.slot),
            ports=tuple(rate for function in functions for rate in function.ports),
            network=next((f.network for f in functions if f.network), _sort_of_network(one)),
            facts=(("size", _size(size)),) if size else (),
            said=seen_as(one),
        )

    def _nvswitches(self) -> tuple[DiscoveredDevice, ...]:
        """Return all NVSwitch chips as one device, as NCCL takes them."""
        chips = [functions[0] for kind, functions in self.cards if kind == _NVSWITCH]
        if not chips:
            return ()
        self.device_of |= {chip.id: _NVSWITCH for chip in chips}
        device = DiscoveredDevice(
            id=_NVSWITCH,
            kind="nvswitch",
            part="nvswitch-unknown",
            pci=tuple(dict.fromkeys(chip.address for chip in chips if chip.address)),
            facts=(("chips", str(len(chips))),),
            said=f"{len(chips)} NVSwitch functions on the PCI bus",
        )
        return (device,)


def _bus(one: Function) -> str:
    return one.address.rpartition(":")[0]


def _is_virtual(one: Function, near: list[Function]) -> bool:
    """Whether a network function is a virtual one of another on its bus.

    Told as such; or it has no interface of its own and another on its bus has; or its name says
    so and another's does not.
    """
    if one.virtual:
        return True
    if one.nets or one.rdma:
        return False
    if any((other.nets or other.rdma) and other.device != one.device for other in near):
        return True
    word = "virtual function"
    return word in one.text.lower() and any(word not in other.text.lower() for other in near)


def _all(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(printable(name) for group in groups for name in group))


def _sort_of_network(one: Function) -> str:
    return "infiniband" if one.code.startswith("0207") else ""


def _size(size: int) -> str:
    return f"{size / 1e12:.4g} TB" if size >= 1e12 else f"{size / 1e9:.4g} GB"  # noqa: PLR2004
