"""What a machine and the catalogue are, as documents: show, matrix, parts, machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.catalogue.keys import KEYS
from topo.topology.resources import ram_headline, ram_rate
from topo.views.json.values import (
    capacity_document,
    figure_document,
    place_document,
    resource_document,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from topo.catalogue.part import Medium, Part, PeerCaps, Ports, Slot
    from topo.description.description import Device
    from topo.topology.resources import Resource
    from topo.topology.topology import Link, Topology


_UNITS = {
    "rate": "bytes_per_s",
    "size": "bytes",
    "count": "count",
    "ratio": "ratio",
    "transfer-rate": "transfers_per_s",
}


def topology_document(topology: Topology, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``topo.show/1``: devices, links and resources, each figure with kind and source.

    Parameters
    ----------
    topology
        The machine.
    document
        What its file says, in the file's own shape: `topo.build` takes it back.
    """
    return {
        "schema": "topo.show/1",
        "topology": topology.name,
        "title": topology.title,
        "devices": [_device(device) for device in topology.devices.values()],
        "links": [_link(link) for link in topology.links],
        "resources": [_resource(resource) for resource in topology.resources.values()],
        "ram_bytes_per_s": ram_rate(topology),
        "ram_headline_bytes_per_s": ram_headline(topology),
        "unknown": [
            resource.id
            for resource in topology.resources.values()
            if resource.capacity.theoretical.value is None
        ],
        "document": document,
    }


def matrix_document(
    topology: Topology,
    classes: Mapping[str, Mapping[str, str]],
    *,
    numa: Mapping[str, Iterable[int]],
) -> dict[str, Any]:
    """Return ``topo.matrix/1``: the class of every pair; null where nothing joins the two.

    Parameters
    ----------
    topology
        The machine.
    classes
        Class by row and column.
    numa
        OS numbers of the NUMA nodes that each row is attached to.
    """
    return {
        "schema": "topo.matrix/1",
        "topology": topology.name,
        "matrix": {
            row: {column: name or None for column, name in columns.items()}
            for row, columns in classes.items()
        },
        "numa_affinity": {row: list(numa[row]) or None for row in classes},
    }


def catalogue_document(parts: Iterable[Part], media: Iterable[Medium]) -> dict[str, Any]:
    """Return ``topo.parts/1``: parts and media, each figure with kind and source."""
    return {
        "schema": "topo.parts/1",
        "parts": [{"name": part.name, **_part(part)} for part in parts],
        "media": [_medium(medium) for medium in media],
    }


def machines_document(machines: Iterable[Topology]) -> dict[str, Any]:
    """Return ``topo.machines/1``: the machines that topo ships."""
    return {
        "schema": "topo.machines/1",
        "machines": [
            {
                "name": machine.name,
                "title": machine.title,
                "devices": len(machine.devices),
                "links": len(machine.links),
                "gpus": len(machine.of_kind("gpu")),
                "workloads": [workload.name for workload in machine.description.workloads],
            }
            for machine in machines
        ],
    }


# --- devices, links, resources ------------------------------------------------------------------


def _device(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "part": device.part.name,
        "label": device.label or None,
        "role": device.role or None,
        "slot": device.slot_name or None,
        "pci": list(device.pci),
        "rdma": list(device.rdma),
        "numa": list(device.numa),
        "outside": device.outside,
        "place": place_document(device.place),
        **_part(device.part),
    }


def _link(link: Link) -> dict[str, Any]:
    cable = link.cable
    return {
        "a": str(link.a),
        "b": str(link.b),
        "medium": cable.medium,
        "cables": cable.count,
        "lanes": cable.lanes,
        "layer": link.layer,
        "forward": link.forward.id if link.forward else None,
        "backward": link.backward.id if link.backward else None,
        "efficiency": figure_document(cable.efficiency, "ratio"),
        "peer_caps": _caps(cable.p2p),
        "place": place_document(link.place),
    }


def _resource(resource: Resource) -> dict[str, Any]:
    return {
        "id": resource.id,
        **resource_document(resource),
        "limited_by": resource.limited_by or None,
        **capacity_document(resource.capacity),
    }


# --- parts and media ----------------------------------------------------------------------------


def _part(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "title": part.title or None,
        "source": part.source or None,
        "figures": {
            key: figure_document(figure, _UNITS[KEYS[key].quantity])
            for key, figure in part.figures.items()
        },
        "flags": {
            key: {"value": value, "source": part.sources.get(key, part.source) or None}
            for key, value in part.flags.items()
        },
        "facts": {
            key: {"value": value, "source": part.sources.get(key, part.source) or None}
            for key, value in part.facts.items()
        },
        "pcie": _slot(part.slot),
        "ports": _ports(part.ports),
        "fabric": _ports(part.fabric),
        "peer_caps": _caps(part.peer_caps),
    }


def _slot(slot: Slot | None) -> dict[str, Any] | None:
    if slot is None:
        return None
    return {
        "generation": slot.generation,
        "lanes": slot.lanes,
        "kind": slot.kind,
        "source": slot.source,
    }


def _ports(ports: Ports | None) -> dict[str, Any] | None:
    if ports is None:
        return None
    return {
        "count": ports.count,
        "kind": ports.kind,
        "source": ports.source,
        "medium": ports.medium,
        "rate": figure_document(ports.rate),
    }


def _caps(caps: PeerCaps | None) -> dict[str, Any] | None:
    if caps is None:
        return None
    return {
        name: {**(figure_document(cap.rate) or {}), "per_flow": cap.per_flow} if cap else None
        for name, cap in (("posted", caps.posted), ("non_posted", caps.non_posted))
    }


def _medium(medium: Medium) -> dict[str, Any]:
    return {
        "name": medium.name,
        "title": medium.title or None,
        "family": medium.family,
        "reach": medium.reach,
        "rate": figure_document(medium.rate),
        "per_lane": medium.per_lane,
        "transfer_rate": figure_document(medium.transfer_rate, "transfers_per_s"),
        "encoding": medium.encoding or None,
        "bytes_per_transfer": figure_document(medium.bytes_per_transfer, "count"),
        "efficiency": figure_document(medium.efficiency, "ratio"),
        "source": medium.source or None,
    }
