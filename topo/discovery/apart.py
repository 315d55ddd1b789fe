"""A source of several hosts taken apart: each host by itself, and the network that joins them.

InfraGraph's files are of whole clusters. What they say of one host becomes a machine of its own,
so that hosts which are alike become one file (`topo.discovery.cluster`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.discovery.describe import device_names, machine_name
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, Machine

_OUTER: Final = ("network-switch", "storage")
_A_HOST: Final = "host"  # what a device of a host by itself says: there are others, and a network


@dataclass(frozen=True, slots=True)
class Network:
    """What is between hosts.

    Parameters
    ----------
    outer
        The switches and storage targets, and the cables among these.
    cables
        Those with an end in a host: of the cable's ends the host, empty for what is outside, and
        the `id` there.
    """

    outer: Machine
    cables: tuple[tuple[tuple[str, str], tuple[str, str], DiscoveredCable], ...]


def is_of_several_hosts(machine: Machine) -> bool:
    """Whether a source tells of more than one host."""
    return len({device.host for device in machine.devices if _is_inside(device)}) > 1


def _is_inside(device: DiscoveredDevice) -> bool:
    """Whether a device is of a host: the NVSwitch of a domain of many hosts is in none of them."""
    is_shared = device.kind == "nvswitch" and not device.host
    return device.kind not in _OUTER and not is_shared


def in_a_host(machine: Machine) -> Machine:
    """Return a machine as one of several hosts that a network joins: no storage is guessed."""
    devices = tuple(replace(device, host=_A_HOST) for device in machine.devices)
    return replace(machine, devices=devices)


def taken_apart(machine: Machine) -> tuple[dict[str, Machine], Network]:
    """Return the hosts of a machine by name, and the network between them.

    Hosts that are the same, in the same order, are one object.
    """
    servers = {device.host: None for device in machine.devices if _is_inside(device)}
    outer = tuple(device for device in machine.devices if device.host not in servers)
    names = _host_names(servers, {name.lower() for name in device_names(outer).values()})
    host_of = {device.id: device.host for device in machine.devices if device.host in servers}

    def inner(id_: str) -> str:
        return id_.removeprefix(f"{host_of[id_]}.") if id_ in host_of else id_

    devices_of: dict[str, list[DiscoveredDevice]] = {host: [] for host in servers}
    for device in machine.devices:
        if device.host in servers:
            parent = inner(device.parent) if device.parent else ""
            alone = replace(device, id=inner(device.id), parent=parent, host=_A_HOST, name="")
            devices_of[device.host].append(alone)
    cables_of: dict[str, list[DiscoveredCable]] = {host: [] for host in servers}
    between = []
    outer_cables = []
    for cable in machine.cables:
        a, b = ((host_of.get(end, ""), inner(end)) for end in (cable.a, cable.b))
        if a[0] != b[0]:
            between.append(((names.get(a[0], ""), a[1]), (names.get(b[0], ""), b[1]), cable))
        elif a[0]:
            cables_of[a[0]].append(replace(cable, a=a[1], b=b[1]))
        else:
            outer_cables.append(cable)
    alike: dict[object, Machine] = {}
    hosts = {}
    for host in servers:
        devices, cables = tuple(devices_of[host]), tuple(cables_of[host])
        by_itself = replace(machine, devices=devices, cables=cables, findings=(), left_out=())
        hosts[names[host]] = alike.setdefault((devices, cables), by_itself)
    network = Network(replace(machine, devices=outer, cables=tuple(outer_cables)), tuple(between))
    return hosts, network


def _host_names(hosts: Mapping[str, None], taken: set[str]) -> dict[str, str]:
    """Return a name for each host, ``node.3`` is ``node3``, that nothing else has."""
    names = {}
    for host in hosts:
        instance, dot, number = host.rpartition(".")
        if not dot:
            instance, number = host, ""
        stem = machine_name(instance.replace(".", "-"))
        stem += "-" * (bool(dot) and stem[-1].isdigit())
        while f"{stem}{number}".lower() in taken:
            stem = f"{stem}-another-"
        names[host] = f"{stem}{number}"
        taken.add(names[host].lower())
    return names
