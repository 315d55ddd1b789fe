"""The public picture of a topology as a NetworkX graph, for generic algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx

if TYPE_CHECKING:
    from topo.catalogue.part import Figure
    from topo.topology.topology import Topology

_GIGA = 1e9


def to_networkx(topology: Topology) -> networkx.MultiDiGraph[str]:
    """Return a new `networkx.MultiDiGraph` of `topology`: two edges for every duplex link.

    Node attributes: ``kind``, ``part``, ``label``, ``role``, ``outside``. Edge attributes:
    ``bandwidth`` (GB/s, theoretical, this direction; `None` when unknown, infinite when
    unlimited), ``achievable`` and ``measured`` (GB/s or `None`), ``medium``, ``layer``, ``lanes``,
    ``cables``, ``resource`` (its name), ``link`` (as written). A memory's two edges share one
    resource, its bus, and both show the bus's bandwidth.

    Changing the graph changes nothing in the topology.
    """
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=topology.name)
    for device in topology.devices.values():
        graph.add_node(
            device.name,
            kind=device.kind,
            part=device.part.name,
            label=device.label,
            role=device.role,
            outside=device.outside,
        )
    for link in topology.links:
        # A memory's link has no resources of its own.
        bus = topology.resources.get(f"{link.a.device}/bus") or topology.resources.get(
            f"{link.b.device}/bus"
        )
        for source, target, resource in (
            (link.a.device, link.b.device, link.forward),
            (link.b.device, link.a.device, link.backward),
        ):
            used = resource or bus
            graph.add_edge(
                source,
                target,
                bandwidth=_gigabytes(used.capacity.theoretical if used else None),
                achievable=_gigabytes(used.capacity.achievable if used else None),
                measured=_gigabytes(used.capacity.measured if used else None),
                medium=link.cable.medium,
                layer=link.layer,
                lanes=link.cable.lanes,
                cables=link.cable.count,
                resource=used.name if used else None,
                link=link.name,
            )
    return graph


def _gigabytes(figure: Figure | None) -> float | None:
    return None if figure is None or figure.value is None else figure.value / _GIGA
