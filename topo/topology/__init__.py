"""What the machine is: devices, links, resources, locality classes, and a NetworkX graph of it."""

from topo.topology.build import build_topology
from topo.topology.locality import locality, matrix, matrix_devices, pci_functions, rank, socket_of
from topo.topology.model import (
    Capacity,
    Device,
    Link,
    Resource,
    Step,
    Topology,
)
from topo.topology.ram import ram_headline, ram_rate

__all__ = [
    "Capacity",
    "Device",
    "Link",
    "Resource",
    "Step",
    "Topology",
    "build_topology",
    "locality",
    "matrix",
    "matrix_devices",
    "pci_functions",
    "ram_headline",
    "ram_rate",
    "rank",
    "socket_of",
]
