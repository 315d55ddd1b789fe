"""Sources that tell facts of a machine's devices, and not where these are.

The ports of its cards, its memory modules, its drives: such a source is laid beside one that tells
the machine, and its facts are fitted to the devices that are there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from topo.discovery.describe import file_title
from topo.discovery.machine import DiscoveredDevice, Machine, printable
from topo.discovery.pci import card_of
from topo.errors import ExchangeError, Finding
from topo.phrases import listed

_LINES: Final = re.compile(r" lines? [\d-]+\Z")  # of a text, where a source stands
_SHARED: Final = ("channels", "size")  # facts of a socket's memory that its nodes share


def alone(machines: Sequence[Machine]) -> ExchangeError:
    """Return what is said where no source tells the machine that these facts are of."""
    subjects = listed(list(dict.fromkeys(machine.tells_only for machine in machines)))
    names = list(dict.fromkeys(_LINES.sub("", machine.file) for machine in machines))
    files = listed([f"`{name}`" for name in names])
    beside = " ".join(f"--and {name}" for name in names)
    tells = "tells" if len(names) == 1 else "tell"
    return ExchangeError(
        Finding(
            "facts-only",
            f"{files} {tells} {subjects}, and not what machine that is in",
            help=f"lay it beside a source of the machine: `topo import FILE {beside}`, where FILE "
            "has `lspci -vvv` or `nvidia-smi topo -m`, or is `/` on that host",
        )
    )


def fitted(machine: Machine, source: Machine) -> tuple[Machine, Machine]:
    """Return the machine with memories for what the source tells of them, and the source as fits.

    A source that numbers sockets, and not NUMA nodes, gets the machine's CPUs and memories: a
    socket's memory is shared by its nodes.
    """
    sockets = source.of_kind("cpu")
    machine = _on_sockets(machine, sockets)
    cpus = machine.of_kind("cpu")
    if source.of_kind("memory") and not machine.of_kind("memory"):
        machine = replace(machine, devices=(*machine.devices, *_memories_of(cpus)))
    if any(socket.numa for socket in sockets):
        return machine, source
    shares = _memory_shares(machine, source)
    findings = list(source.findings)
    if source.of_kind("memory") and not shares:
        message = f"the memory of {file_title(source.file)} fits no NUMA nodes here and is left out"
        findings.append(Finding("memory-not-placed", message, severity="warning"))
    lead = f"{source.file}: "
    as_here = [
        replace(sockets[at], id=lead + cpu.id, numa=cpu.numa)
        if len(sockets) == len(cpus)
        else DiscoveredDevice(lead + cpu.id, "cpu", "cpu-unknown", numa=cpu.numa)
        for at, cpu in enumerate(cpus)
    ]
    memories_as_here = [
        replace(share, id=lead + memory.id, parent=lead + memory.parent, node=memory.node)
        for memory, share in shares
    ]
    further = [device for device in source.devices if device.kind not in ("cpu", "memory")]
    return machine, replace(
        source, devices=(*as_here, *memories_as_here, *further), findings=tuple(findings)
    )


def _on_sockets(machine: Machine, sockets: Sequence[DiscoveredDevice]) -> Machine:
    """Return the machine with one CPU for all nodes of a socket, where it has one for each node."""
    cpus = machine.of_kind("cpu")
    cpu_of: dict[str, DiscoveredDevice] = {}
    for socket in sockets:
        of_socket = [cpu for cpu in cpus if cpu.numa and {*cpu.numa} <= {*socket.numa}]
        if len(of_socket) > 1 and all(len(cpu.numa) == 1 for cpu in of_socket):
            nodes = tuple(sorted(node for cpu in of_socket for node in cpu.numa))
            socket_cpu = replace(
                of_socket[0], numa=nodes, evidence="these NUMA nodes are of one socket"
            )
            cpu_of |= {cpu.id: socket_cpu for cpu in of_socket}
    if not cpu_of:
        return machine
    node_of = {cpu.id: cpu.numa[0] for cpu in cpus if cpu.id in cpu_of}
    devices: dict[str, DiscoveredDevice] = {}
    for device in machine.devices:
        if device.id in cpu_of:
            devices[cpu_of[device.id].id] = cpu_of[device.id]
        elif device.parent in cpu_of:
            parent, node = cpu_of[device.parent].id, node_of[device.parent]
            devices[device.id] = replace(device, parent=parent, node=node)
        else:
            devices[device.id] = device
    id_of = {id_: cpu.id for id_, cpu in cpu_of.items()}
    cables = (
        replace(cable, a=id_of.get(cable.a, cable.a), b=id_of.get(cable.b, cable.b))
        for cable in machine.cables
    )
    return replace(
        machine,
        devices=tuple(devices.values()),
        cables=tuple(dict.fromkeys(cable for cable in cables if cable.a != cable.b)),
    )


def _memories_of(cpus: Sequence[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return a memory of which nothing is known for each NUMA node."""
    return [
        DiscoveredDevice(f"ram {node} of {cpu.id}", "memory", "memory-unknown", cpu.id, node=node)
        for cpu in cpus
        for node in (cpu.numa if len(cpu.numa) > 1 else (None,))
    ]


def _memory_shares(
    machine: Machine, source: Machine
) -> list[tuple[DiscoveredDevice, DiscoveredDevice]]:
    """Return each memory of the machine with what the source's sockets have for it.

    Where the machine's CPUs are not the sockets, all sockets must have the same for it not to
    matter which is which.
    """
    cpus, sockets = machine.of_kind("cpu"), source.of_kind("cpu")
    memories = machine.of_kind("memory")
    memory_of = {memory.parent: memory for memory in source.of_kind("memory")}
    of_sockets = [memory_of[socket.id] for socket in sockets if socket.id in memory_of]
    if len(cpus) == len(sockets):
        socket_of = {cpu.id: socket.id for cpu, socket in zip(cpus, sockets, strict=True)}
        pairs = []
        for memory in memories:
            of_socket = memory_of.get(socket_of.get(memory.parent, ""))
            if of_socket is not None:
                nodes = sum(sibling.parent == memory.parent for sibling in memories)
                pairs.append((memory, _shared(of_socket, 1, nodes)))
        return pairs
    are_same = len(of_sockets) == len(sockets) and all(
        (memory.part, memory.facts) == (of_sockets[0].part, of_sockets[0].facts)
        for memory in of_sockets
    )
    if not are_same or not of_sockets or max(len(memories), len(sockets)) % len(of_sockets):
        return []
    return [(memory, _shared(of_sockets[0], len(sockets), len(memories))) for memory in memories]


def _shared(memory: DiscoveredDevice, sockets: int, nodes: int) -> DiscoveredDevice:
    """Return what of the memory of so many sockets is each of these nodes'."""
    if sockets == nodes:
        return memory
    facts = []
    part = memory.part
    for key, text in memory.facts:
        if key in _SHARED:
            number, _, unit = text.partition(" ")
            value = float(number) * sockets / nodes
            if key == "channels" and value != int(value):
                part = "memory-unknown"  # whose bus needs no channels
                continue
            if unit == "TB" and value < 1:
                value, unit = value * 1000, "GB"
            facts.append((key, f"{value:.4g} {unit}".rstrip()))
        else:
            facts.append((key, text))
    evidence = f"{memory.evidence}; of {sockets} sockets, shared by {nodes} nodes".removeprefix(
        "; "
    )
    if sockets == 1:
        evidence = f"{memory.evidence}; shared by {nodes} nodes".removeprefix("; ")
    return replace(memory, part=part, facts=tuple(facts), evidence=evidence)


def with_slots(machine: Machine, source: Machine) -> Machine:
    """Return the machine with the names of the slots that the source has addresses of."""
    slot_at = {card_of(address): slot for address, slot in reversed(source.slots)}
    devices = []
    for device in machine.devices:
        slots = [slot_at[card_of(address)] for address in device.pci if card_of(address) in slot_at]
        if device.slot or not slots:
            devices.append(device)
            continue
        words = f"slot from {file_title(source.file)}"
        evidence = f"{device.evidence}; {words}" if device.evidence else words
        devices.append(replace(device, slot=printable(slots[0]), evidence=evidence))
    return replace(machine, devices=tuple(devices))
