"""Network interfaces and RDMA devices of a PCI function, with the rate of each port."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING, Final

from topo.discovery.machine import printable

if TYPE_CHECKING:
    from topo.discovery.sysfs_files import Tree


_RATE: Final = re.compile(r"([\d.]{1,8}) Gb/sec")
_ACTIVE: Final = re.compile(r"4:|ACTIVE")
_MOST_GIDS: Final = 64


@dataclass(frozen=True, slots=True)
class Network:
    """What a card's function is called, its rates in bits/s, ``infiniband`` or ``ethernet``."""

    nets: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    rates: tuple[float | None, ...] = ()
    sort: str = ""


def network_of(tree: Tree, here: str) -> Network:
    """Return what the function at a path has of network."""
    nets = tree.names(f"{here}/net")
    rdma = tree.names(f"{here}/infiniband")
    if not nets and not rdma:
        return Network()
    rates: list[float | None] = []
    layers: set[str] = set()
    for name in rdma:
        for port in tree.names(f"{here}/infiniband/{name}/ports"):
            place = f"{here}/infiniband/{name}/ports/{port}"
            rates.append(_port_rate(tree, place))
            layers.add(tree.text(f"{place}/link_layer").lower())
    if not rdma:
        rates = [_net_rate(tree.text(f"{here}/net/{name}/speed")) for name in nets]
    sort = next((layer for layer in ("infiniband", "ethernet") if layer in layers), "")
    return Network(
        tuple(printable(name) for name in nets),
        tuple(printable(name) for name in rdma),
        tuple(rates),
        sort,
    )


def _port_rate(tree: Tree, place: str) -> float | None:
    """Return a port's rate, `None` while it is down: then it says any number."""
    state = tree.text(f"{place}/state")
    found = _RATE.match(tree.text(f"{place}/rate"))
    if found is None or (state and not _ACTIVE.search(state)):
        return None
    try:
        return float(found[1]) * 1e9 or None
    except ValueError:
        return None


def _net_rate(text: str) -> float | None:
    """Return an interface's rate: Mbit/s, and -1 while it is down."""
    return int(text) * 1e6 or None if re.fullmatch(r"\d{1,8}", text) else None


def addresses_of(tree: Tree, rdma: str) -> set[str]:
    """Return the IP addresses of an RDMA device, by its GIDs."""
    found = set()
    for port in tree.names(f"/sys/class/infiniband/{rdma}/ports"):
        place = f"/sys/class/infiniband/{rdma}/ports/{port}/gids"
        for name in tree.names(place)[:_MOST_GIDS]:
            try:
                whole = IPv6Address(tree.text(f"{place}/{name}"))
            except AddressValueError:
                continue
            found.add(str(whole.ipv4_mapped or whole))
    return found
