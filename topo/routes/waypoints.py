"""The stations that people count as hops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.datapaths import is_ram

if TYPE_CHECKING:
    from topo.routes.route import Subflow, Transfer
    from topo.topology import Topology


_MEDIA = {"pcie": "PCIe", "nvlink": "NVLink", "nvlink-c2c": "NVLink-C2C", "xgmi": "xGMI"}


def waypoints(topology: Topology, subflow: Subflow) -> tuple[str, ...]:
    """Return the waypoints of one branch in the order of travel.

    They are the storage, the card or controller that moves its data, each RAM buffer, the medium
    by which a move enters or leaves a GPU, and the GPU's memory. Hops are one less.
    """
    first = subflow.transfers[0]
    found = [_station(first.source, first.move.source)]
    for transfer in subflow.transfers:
        between = [_engine(transfer), _medium(topology, transfer)]
        if topology[transfer.source].kind == "gpu":
            between.reverse()
        found.extend(station for station in between if station)
        found.append(_station(transfer.target, transfer.move.target))
    return tuple(found)


def _station(device: str, end: str) -> str:
    return end if is_ram(end) else device


def _engine(transfer: Transfer) -> str:
    """Return the card's name where a card or a controller moves the data of a storage."""
    moves = transfer.move.mover in ("nic", "drive") and transfer.engine not in (
        transfer.source,
        transfer.target,
    )
    return transfer.engine if moves else ""


def _medium(topology: Topology, transfer: Transfer) -> str:
    for name, step in ((transfer.source, transfer.walk[:1]), (transfer.target, transfer.walk[-1:])):
        if topology[name].kind == "gpu" and step:
            family = step[0].link.cable.family
            return _MEDIA.get(family, family)
    return ""
