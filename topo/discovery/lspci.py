"""Output of ``lspci``: the tree of ``-tv``, the blocks of ``-vvv``, and plain lists.

References
----------
pciutils, ``ls-tree.c``, ``ls-caps.c`` and ``lspci.man``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.discovery.foreign import read_lines
from topo.discovery.lspci_blocks import read_blocks
from topo.discovery.lspci_tree import read_tree
from topo.discovery.machine import Machine
from topo.discovery.numa import NumaNode, hosts_of
from topo.discovery.nvswitches import joined
from topo.discovery.pci import HostBridge, address_key
from topo.discovery.pci_tree import by_address, devices_of
from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from topo.discovery.lspci_blocks import Listing
    from topo.discovery.numa import Hosts


def read(data: bytes, name: str) -> Machine:
    """Read what lspci printed.

    Parameters
    ----------
    data, name
        The text, and what messages call it.

    Raises
    ------
    ExchangeError
        If there is no PCI function in it.
    """
    lines = read_lines(data, name)
    listing = read_tree(lines) or read_blocks(lines)
    if listing is None:
        message = f"`{name}` has no line of lspci: no PCI address with a device behind it"
        help = "paste the output of `lspci -tv` or `lspci -vvv`"
        raise ExchangeError(Finding("nothing-there", message, help=help))
    hosts, bridges = _hosts(listing)
    grown = devices_of(by_address(listing.functions), bridges, hosts.forwards)
    devices, cables, guesses = joined((*hosts.devices, *grown.devices))
    return Machine(
        kind="lspci",
        source=f"output of lspci{listing.form}",
        file=name,
        devices=devices,
        cables=cables,
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        notes=listing.notes,
        left_out=grown.left_out,
        findings=(*listing.findings, *_numa(listing, bridges), *grown.findings, *guesses),
    )


def _hosts(listing: Listing) -> tuple[Hosts, list[HostBridge]]:
    """Return a CPU for each NUMA node that is told, one where none is, and the host bridges."""
    known = {one.node for one in listing.functions if one.node is not None}
    hosts = hosts_of([NumaNode(number) for number in sorted(known)], [])
    node_of: dict[str, int] = {}
    above = {one.id: one for one in listing.functions}
    for one in listing.functions:
        top = one
        for _ in range(len(above)):
            if top.parent not in above:
                break
            top = above[top.parent]
        if one.node is not None:
            node_of.setdefault(top.parent, one.node)
    roots = sorted({*listing.roots}, key=lambda root: address_key(f"{root}:00.0"))
    bridges = []
    for root in roots:
        cpu, _ = hosts.place([node_of[root]]) if root in node_of else (hosts.first, None)
        bridges.append(HostBridge(root, cpu, None, f"host bridge of bus {root}"))
    return hosts, bridges


def _numa(listing: Listing, bridges: list[HostBridge]) -> tuple[Finding, ...]:
    if len(bridges) < 2 or any(one.node is not None for one in listing.functions):  # noqa: PLR2004
        return ()
    return (
        Finding(
            "numa-unknown",
            f"{len(bridges)} host bridges, and which CPU each belongs to is not told: "
            "all were put under one",
            severity="warning",
            help="`lspci -vvv` tells the NUMA node; put links under the right CPU in the YAML",
        ),
    )
