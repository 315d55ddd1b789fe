"""What the machine is: devices, links, resources, locality classes, and a NetworkX graph of it."""

from topo.description.description import Device
from topo.topology.build import build_topology
from topo.topology.locality import locality, matrix, matrix_devices, pci_functions, rank, socket_of
from topo.topology.ram import ram_headline, ram_rate
from topo.topology.topology import Capacity, Link, Resource, Step, Topology

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
