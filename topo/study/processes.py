"""What each GPU's process should use, server by server: cards, their RDMA ports, memories, cores.

`topo.study.affinity` says which card is whose; here stands what a program is told of that, by the
names that the operating system has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import MEMORIES
from topo.records import dataclass
from topo.topology.locality import locality, matrix_devices, numa_nodes, socket_of
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.study.affinity import Affinities, GpuAffinity, Purpose

# Whose cards carry the traffic of GPUs among servers, where there are several: the first of these.
_TRAFFIC: Final[tuple[Purpose, ...]] = ("compute", "any", "storage")
# A kernel's name for an RDMA device; what has other signs would be read as something else.
_RDMA_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Card:
    """A network card: its RDMA ports by device and number.

    There are none where nobody states its RDMA names, or one that is no name of the kernel's: that
    is `odd` then.
    """

    name: str
    ports: tuple[tuple[str, int], ...] = ()
    odd: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Its RDMA devices, each once."""
        return tuple(dict.fromkeys(device for device, _ in self.ports))


@dataclass(frozen=True, slots=True)
class Process:
    """One GPU, for the process that uses it.

    Parameters
    ----------
    gpu, number
        Its name, and its number on the server: by PCI address, or as the file has them.
    cards, nearness
        Its own card, then others as near that nobody else has; and the class of its own.
    cpu
        The CPU that it hangs on.
    numa, of_cpu
        The NUMA nodes of the GPU, and of its whole CPU, by the operating system's numbers.
    memories, of_cpu_memories
        The memories of either.
    """

    gpu: str
    number: int
    cards: tuple[str, ...]
    nearness: str
    cpu: str
    numa: tuple[int, ...]
    of_cpu: tuple[int, ...]
    memories: tuple[str, ...]
    of_cpu_memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """Servers in which the same holds, told by the first of them.

    Parameters
    ----------
    names
        Their names; none for a machine that nobody uses in another.
    purpose
        What the cards that carry the GPUs' traffic are for.
    processes
        One a GPU, by its number.
    cards
        All cards of that purpose, in the order of the file.
    cpus
        Its CPUs, in the order of the file.
    gpus
        How many GPUs there are in each, asked about or not.
    maker
        Who makes the GPUs, where all are of one: ``nvidia``, ``amd``.
    """

    topology: Topology
    names: tuple[str, ...]
    purpose: Purpose
    processes: tuple[Process, ...]
    cards: Mapping[str, Card]
    cpus: tuple[str, ...]
    gpus: int
    maker: str

    @property
    def cores(self) -> dict[str, tuple[int, int]]:
        """First and last core of each CPU, counted through all; none where a count is unknown."""
        numbers: dict[str, tuple[int, int]] = {}
        first = 0
        for cpu in self.cpus:
            figure = self.topology[cpu].part.figure("cores")
            if figure is None or not figure.value:
                return {}
            numbers[cpu] = (first, first + int(figure.value) - 1)
            first += int(figure.value)
        return numbers

    def inside(self, device: str) -> str:
        """Return the name that a device has in its own server."""
        return device.removeprefix(f"{self.names[0]}.") if self.names else device


def servers(affinities: Affinities, gpus: Sequence[str] = ()) -> tuple[Server, ...]:
    """Return the kinds of server with what each GPU should use; alike servers are one.

    Parameters
    ----------
    affinities
        Which card is whose.
    gpus
        GPUs to tell about; all without any.
    """
    topology = affinities.topology
    rates = _rates_by_host(topology)
    by_host: dict[str, list[GpuAffinity]] = {}
    for affinity in affinities.gpus:
        host = topology.host_of.get(affinity.gpu)
        by_host.setdefault(host.name if host else affinity.gpu, []).append(affinity)
    # Servers that say the same in their own names are one.
    alike: dict[tuple[object, ...], list[Server]] = {}
    for name, members in by_host.items():
        server = _server(affinities, name, members, frozenset(gpus))
        if server.processes:
            key = (*_in_own_names(server), *rates.get(name, ()))
            alike.setdefault(key, []).append(server)
    return tuple(_joined(kind) for kind in alike.values())


def _server(
    affinities: Affinities, host: str, members: Sequence[GpuAffinity], asked: frozenset[str]
) -> Server:
    topology = affinities.topology
    names = [member.gpu for member in members]
    ordered = [device.name for device in matrix_devices(topology) if device.name in set(names)]
    purposes = {choice.purpose for member in members for choice in member.choices}
    purpose: Purpose = next((carrying for carrying in _TRAFFIC if carrying in purposes), "any")
    here = topology.host_of.get(names[0])
    inside = here.devices if here is not None else tuple(names)
    cards = {
        name: _card(topology, name)
        for name in affinities.users.get(purpose, {})
        if topology.host_of.get(name) is here
    }
    of_gpu = {member.gpu: member for member in members}
    processes = []
    for number, gpu in enumerate(ordered):
        if asked and gpu not in asked:
            continue
        cpu = socket_of(topology, gpu)
        choice = next(
            (choice for choice in of_gpu[gpu].choices if choice.purpose == purpose),
            None,
        )
        processes.append(
            Process(
                gpu=gpu,
                number=number,
                cards=choice.devices if choice is not None else (),
                nearness=locality(topology, gpu, choice.device) if choice is not None else "",
                cpu=cpu,
                numa=numa_nodes(topology, gpu),
                of_cpu=topology[cpu].numa if cpu else (),
                memories=_memories(topology, inside, gpu, near=True),
                of_cpu_memories=_memories(topology, inside, gpu, near=False),
            )
        )
    cpus = tuple(name for name in inside if topology[name].kind == "cpu")
    makers = {str(topology[name].part.facts.get("maker", "")) for name in names}
    unit = host if all(name.startswith(f"{host}.") for name in names) else ""
    return Server(
        topology=topology,
        names=(unit,) if unit else (),
        purpose=purpose,
        processes=tuple(processes),
        cards=cards,
        cpus=cpus,
        gpus=len(names),
        maker=makers.pop() if len(makers) == 1 else "",
    )


def _card(topology: Topology, name: str) -> Card:
    """Return a card with the RDMA ports that are cabled; all of them where none is."""
    device = topology[name]
    odd = next(
        (rdma for rdma in device.rdma if not _RDMA_NAME.fullmatch(rdma)),
        "",
    )
    if not device.rdma or odd:
        return Card(name, odd=odd)
    ends = [end for link in topology.links for end in (link.a, link.b) if end.device == name]
    cabled = {int(end.side[1:]) for end in ends if re.fullmatch(r"p[0-9]+", end.side)}
    # One RDMA device a port, as drivers of current cards make them: each has one port of its own.
    ports = [(rdma, 1) for place, rdma in enumerate(device.rdma, 1) if place in cabled]
    return Card(name, tuple(ports) or tuple((rdma, 1) for rdma in device.rdma))


def _memories(
    topology: Topology, inside: Iterable[str], gpu: str, *, near: bool
) -> tuple[str, ...]:
    """Return the memories of a GPU's NUMA nodes, or of its whole CPU."""
    nodes, cpu = set(numa_nodes(topology, gpu)), socket_of(topology, gpu)
    memories = [name for name in inside if topology[name].kind in MEMORIES]
    of_cpu = [name for name in memories if socket_of(topology, name) == cpu]
    if not near or not nodes:
        return tuple(of_cpu)
    of_node = tuple(name for name in of_cpu if nodes >= set(numa_nodes(topology, name)))
    return of_node or tuple(of_cpu)


# --- alike servers --------------------------------------------------------------------------------


def _in_own_names(server: Server) -> tuple[object, ...]:
    topology = server.topology
    return (
        bool(server.names),
        server.purpose,
        server.gpus,
        *(
            (
                *map(server.inside, (process.gpu, process.cpu, *process.cards)),
                process.number,
                process.nearness,
                process.numa,
                process.of_cpu,
                topology[process.gpu].part.name,
                topology[process.gpu].pci,
                tuple(map(server.inside, process.memories)),
            )
            for process in server.processes
        ),
        *((server.inside(card.name), card.ports, card.odd) for card in server.cards.values()),
        *((server.inside(cpu), topology[cpu].part.name) for cpu in server.cpus),
        *server.cores.values(),
    )


def _rates_by_host(topology: Topology) -> dict[str, tuple[tuple[str, float | None], ...]]:
    """Return what everything inside each server passes, in its own names."""
    rates: dict[str, list[tuple[str, float | None]]] = {}
    for resource in topology.resources.values():
        host = topology.host_of.get(resource.device)
        if host is not None and not resource.kind.startswith("network-"):
            inside = resource.id.replace(f"{host.name}.", "")
            rates.setdefault(host.name, []).append((inside, resource.capacity.theoretical.value))
    return {host: tuple(sorted(of_host, key=str)) for host, of_host in rates.items()}


def _joined(kind: Sequence[Server]) -> Server:
    """Return alike servers as one, with the names of all that each of them stands for."""
    first = kind[0]
    folding = first.topology.folding
    names: list[str] = []
    for server in kind:
        gpu = server.processes[0].gpu
        alike = folding.names(gpu) if folding is not None else (gpu,)
        suffix = f".{server.inside(gpu)}"
        names += [name.removesuffix(suffix) for name in alike if server.names]
    return replace(first, names=tuple(names))
