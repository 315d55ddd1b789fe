"""From a result file's own numbers and names to the topology's devices, and into its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from topo.catalogue.kinds import CARDS, STORAGE
from topo.description.measured_edit import MeasuredLine
from topo.discovery.pci import card_of, read_address
from topo.errors import ExchangeError, Finding, UnknownNameError
from topo.study.prediction import Predictor, Sample
from topo.topology.locality import matrix_devices, numa_nodes

if TYPE_CHECKING:
    from topo.description.description import Device
    from topo.measuring.results import End, Result, Results
    from topo.topology.topology import Topology

_DIGITS = 6  # of a written rate; no measurement has more


class Mapper:
    """Names the devices of one file's results.

    Parameters
    ----------
    topology, results
        The machine and the file.
    predictor
        Knows which memories are near a device.
    gpus, nic, storage
        What the caller says of the file: its GPUs in order, its card, its storage.

    Raises
    ------
    UnknownNameError
        If the caller names a device that is not there, or of another kind.
    """

    def __init__(
        self,
        topology: Topology,
        results: Results,
        predictor: Predictor,
        *,
        gpus: Sequence[str] = (),
        nic: str = "",
        storage: Sequence[str] = (),
    ) -> None:
        self._topology = topology
        self._results = results
        self._predictor = predictor
        self._gpus = _selected(topology, gpus, ("gpu",), "--gpus")
        self._nic = _selected(topology, [nic] * bool(nic), CARDS, "--nic")
        self._storage = _selected(topology, storage, STORAGE, "--storage")
        self.chosen_gpus = self._gpus  # those that the caller named
        self.findings: list[Finding] = []
        self.unmapped: list[str] = list(results.left_out)
        if len(set(results.addresses)) < len(results.addresses):
            twice = next(text for text in results.addresses if results.addresses.count(text) > 1)
            message = f"the results give two GPUs one PCI address, {twice}"
            raise ExchangeError(Finding("duplicate-address", message))
        if not self._gpus:  # by the addresses that the file tells, if all are here
            present = topology.of_kind("gpu")
            matches = [_at_address(present, address) for address in results.addresses]
            if matches and all(matches):
                self._gpus = tuple(name for names in matches for name in names)
        self._gpus = self._gpus or self._in_order()

    def sample(self, result: Result) -> Sample | None:
        """Return a result with the topology's names, `None` (and a line of `unmapped`) if none."""
        source, target = self.devices(result.source), self.devices(result.target)
        if result.source == result.target and result.source.kind == "ram":
            return self._core_copy(result)
        named = (*source, *target)
        far_ram = ""
        if named and "ram" in (result.source.kind, result.target.kind):
            memories, far_ram = self._memories(result, named[0])
            source, target = source or memories, target or memories
        same = source == target
        if not source or not target or same:
            why = f"both of its ends are {source[0]}" if source and same else ""
            line = f"{result.test}: {why or self._why_unmapped(result)}"
            if line not in self.unmapped:
                self.unmapped.append(line)
            return None
        port, unwritten = self._port(result, named)
        return Sample(
            test=result.test,
            source=source,
            target=target,
            rate=result.rate,
            via=result.via,
            port=port,
            both=result.both,
            busy=result.busy,
            unwritten=result.unwritten or unwritten or far_ram,
            date=self._results.date,
            workers=result.workers,
        )

    def memories_near(self, device: str) -> tuple[str, ...]:
        """Return the memories that a copy from or to a device uses."""
        return self._predictor.memories_near(device)

    def _core_copy(self, result: Result) -> Sample | None:
        """Return a copy by cores of a NUMA node's memory into itself, or of the only memory's."""
        memories = [device.name for device in self._topology.of_kind("memory")]
        node = result.source.number
        at_node = [name for name in memories if node in numa_nodes(self._topology, name)]
        names = tuple(at_node or memories[: len(memories) == 1])
        if not names:
            why = f"which memory NUMA node {node} has is not told: give the CPUs their `numa:`"
            self.unmapped.append(f"{result.test}: {why}")
            return None
        return Sample(
            test=result.test,
            source=names,
            target=names,
            rate=result.rate,
            workers=result.workers,
            unwritten=result.unwritten or "what cores copy is a figure of their CPU, of no pair",
            date=self._results.date,
        )

    def _memories(self, result: Result, device: str) -> tuple[tuple[str, ...], str]:
        """Return the memories of a copy to or from `device`, and why its rate has no place.

        They are those near the device unless the file numbers their NUMA node.
        """
        near = self._predictor.memories_near(device)
        if not near and len(self._topology.hosts) == 1:  # of storage behind cards, any
            near = tuple(memory.name for memory in self._topology.of_kind("memory"))
        ends = (result.source, result.target)
        node = next((end.number for end in ends if end.kind == "ram"), -1)
        if node < 0:
            return near, ""
        cpus = self._topology.of_kind("cpu")
        numbered = any(cpu.numa for cpu in cpus)
        at = [cpu.name for cpu in cpus if node in cpu.numa] if numbered else []
        at = at or [cpu.name for cpu in cpus[node : node + 1] if not numbered]
        of_socket = self._predictor.memories_near(at[0]) if at else ()
        of_node = [
            memory
            for memory in of_socket
            for step in self._topology.steps[memory]
            if f"{at[0]}/numa{node}" in (str(step.link.a), str(step.link.b))
        ]
        memories = tuple(of_node) or of_socket
        far = len(memories) > 1 and memories != near
        return memories, "several memories of another socket: no pair stands for it" * far

    def _why_unmapped(self, result: Result) -> str:
        """Say which end has no device: RAM only where the other end has one."""
        ends = (result.source, result.target)
        absent = [end for end in ends if end.kind != "ram" and not self.devices(end)]
        end = (*absent, *ends)[0] if absent or ends[0].kind == "ram" else ends[1]
        if end.kind == "ram" and end.number >= 0:
            return f"the file has no system RAM of NUMA node {end.number}"
        if end.kind == "ram" and len(self._topology.hosts) > 1:
            return "which server's RAM it was is not told"
        if end.kind == "ram":
            return "the file has no system RAM near it"
        if end.kind == "gpu" and end.number >= 0 and self._gpus:
            return f"{end} of the file is none of the {len(self._gpus)} GPUs here"
        option = {"gpu": "--gpus", "card": "--nic", "storage": "--storage"}[end.kind]
        name = f" `{end.name}`" if end.name else ""
        kind = "GPU" if end.kind == "gpu" else end.kind
        return f"which {kind}{name} it was is not known: say it with {option}"

    def devices(self, end: End) -> tuple[str, ...]:
        """Return the devices of an end by name; none for RAM, which the other end tells."""
        if end.kind == "ram":
            return ()
        if end.kind == "gpu":
            if end.name:
                return _at_address(self._topology.of_kind("gpu"), end.name)
            if end.number < 0:  # the file does not say: the caller's, or the only one
                return self._gpus if len(self._gpus) == 1 else ()
            return self._gpus[end.number : end.number + 1]
        if end.kind == "card":
            devices = self._topology.of_kind(*CARDS)
            matches = [card for card in devices if end.name in (*card.rdma, card.name, card.label)]
            if self._nic or end.name:
                return self._nic or tuple(card.name for card in matches[:1])
        else:
            drives = self._topology.of_kind("nvme")
            devices = (*drives, *self._topology.of_kind("storage", "hba"))
            matches = [drive for drive in drives if end.name in (drive.name, drive.label)]
            if self._storage or (matches and end.name):
                return self._storage or (matches[0].name,)
            if "/" in end.name:  # a path, and what it lies on is none of the drives
                return ()
        return (devices[0].name,) if len(devices) == 1 else ()

    def _port(self, result: Result, names: tuple[str, ...]) -> tuple[str, str]:
        """Return the port that a network test went by, and why its rate is not the card's."""
        cards = [self._topology[name] for name in names if self._topology[name].is_nic]
        if not cards:
            return "", ""
        card, ends = cards[0], (result.source, result.target)
        if not _several_ports(card):
            return f"{card.name}/p1", ""
        rdma_name = next((end.name for end in ends if end.kind == "card"), "")
        if rdma_name not in card.rdma:
            return f"{card.name}/p1", f"which port of {card.name} was used is not known"
        return f"{card.name}/p{card.rdma.index(rdma_name) + 1}", ""

    def _in_order(self) -> tuple[str, ...]:
        """Return the GPUs as the driver numbers them: by PCI address, else as in the file."""
        gpus = tuple(gpu for gpu in matrix_devices(self._topology) if gpu.kind == "gpu")
        count, results = self._results.gpu_count, self._results.results
        ends = (end for result in results for end in (result.source, result.target))
        numbered = any(end.kind == "gpu" and end.number >= 0 for end in ends)
        if count and count != len(gpus):
            message = f"the results are of {count} GPUs, and {self._topology.name} has {len(gpus)}"
            help = "name those that were measured, in order: --gpus gpu0,gpu1"
            self.findings.append(Finding("gpu-count", message, severity="warning", help=help))
        elif count > 1 or (gpus and not count and numbered):
            by_address = all(gpu.pci for gpu in gpus)
            order = "of their PCI address" if by_address else "in which the file has them"
            message = f"GPUs of the results are taken in the order {order}"
            help = "say it with --gpus"
            self.findings.append(Finding("gpu-order", message, severity="note", help=help))
        return tuple(gpu.name for gpu in gpus)


def _at_address(gpus: Sequence[Device], address: str) -> tuple[str, ...]:
    """Return the GPU at a PCI address; its function does not matter."""
    card = card_of(read_address(address))
    at_card = (gpu for gpu in gpus if card in {card_of(read_address(pci)) for pci in gpu.pci})
    return tuple(gpu.name for gpu in at_card)[:1]


def _selected(
    topology: Topology, names: Sequence[str], kinds: tuple[str, ...], option: str
) -> tuple[str, ...]:
    devices = [device for name in names for device in topology.select(name)]
    for device in devices:
        if device.kind not in kinds:
            message = f"{option}: {device.name} is a {device.kind}, not a {kinds[0]}"
            raise UnknownNameError(Finding("unknown-name", message))
    return tuple(dict.fromkeys(device.name for device in devices))


def _several_ports(card: Device) -> bool:
    return card.part.ports is not None and card.part.ports.count != 1


# --- where in a topology file a measured rate belongs: on a pair, a link, or nowhere --------------


def measured_lines(
    topology: Topology, predictor: Predictor, sample: Sample, *, date: str = ""
) -> tuple[MeasuredLine, ...]:
    """Return what a sample is in the file; nothing where no pair or link stands for it."""
    return tuple(
        MeasuredLine(
            source,
            target,
            float(f"{sample.rate * share:.{_DIGITS}g}"),
            sample.test if share == 1 else f"{sample.test}, an equal share",
            date or sample.date,
        )
        for source, target, share in _places(topology, predictor, sample)
    )


def _places(
    topology: Topology, predictor: Predictor, sample: Sample
) -> Iterator[tuple[str, str, float]]:
    """Yield pairs or links that a sample stands for, each with its part of the rate."""
    devices = [topology[name] for name in (*sample.source, *sample.target)]
    by_ram = any(device.is_memory for device in devices)
    cards = [device for device in devices if device.is_nic]
    pair_count = len(sample.source) * len(sample.target)
    if by_ram and any(device.is_storage for device in devices):
        # The link of each storage, if it has one neighbour: it and its drive are meant.
        reads = topology[sample.source[0]].is_storage
        storages = sample.source if reads else sample.target
        for name in storages:
            neighbours = list(dict.fromkeys(step.target for step in topology.steps[name]))
            if len(neighbours) == 1:
                ends = (name, neighbours[0]) if reads else (neighbours[0], name)
                yield (*ends, 1.0 / len(storages))
    elif by_ram and cards:
        yield from _cable(topology, sample)
    elif by_ram and pair_count > 1:
        # Several memories share the copy: the GPU's own link.
        step = predictor.last_step(sample)
        if step is not None:
            yield step.source, step.target, 1.0
    elif cards:
        if not _several_ports(cards[0]):  # the pair is of the whole card
            yield sample.source[0], sample.target[0], 1.0
    else:
        for source in sample.source:
            yield from ((source, target, 1.0 / pair_count) for target in sample.target)


def _cable(topology: Topology, sample: Sample) -> Iterator[tuple[str, str, float]]:
    """Yield the cable at the port that a network test went by."""
    out = topology[sample.target[0]].is_nic
    card = (sample.target if out else sample.source)[0]
    for step in topology.steps[card]:
        if step.link.layer == "network" and sample.port in (str(step.link.a), str(step.link.b)):
            port = sample.port if _several_ports(topology[card]) else card
            yield (port, step.target, 1.0) if out else (step.target, port, 1.0)
            return
