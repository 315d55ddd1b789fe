"""Could this machine be built? Rules over its topology, one function each, every mistake at once.

What a cable may join, ports and lanes (`topo.topology.cabling`), and whether data gets anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from topo.catalogue.fields import MODULES
from topo.catalogue.kinds import CARDS, HOSTS, Kind
from topo.catalogue.part import Part, memory_transfer_rate, module_limit, modules_taken
from topo.description.description import Device
from topo.description.names import stem_of
from topo.document.nodes import Report
from topo.errors import DescriptionError, Finding, Place
from topo.graph import breadth_first
from topo.limits import MOST_IN_A_SERVER, MOST_LINKS_IN_A_SERVER, refuse_more
from topo.phrases import counted, listed
from topo.topology.cabling import check_cabling, has, names_by_cause, names_of, noun_of
from topo.topology.hosts import host_numbers
from topo.topology.topology import Link, Topology

# What data passes through; never RAM, GPUs or storage.
_PASSED: Final[tuple[Kind, ...]] = (*CARDS, "hba", "pcie-switch", "network-switch", *HOSTS)
_NAMES_OF_REACHED: Final = 6
# PCIe numbers its buses with 8 bits (PCI Express Base Specification, 2.2.4.2): bus 0 is the root's,
# a link is one, and so is the inside of each switch. So many links follow each other at most.
_MOST_BUSES: Final = 256
_DEEPEST: Final = _MOST_BUSES // 2


def check(topology: Topology) -> tuple[Finding, ...]:
    """Return the findings of the description with those of physics.

    Parameters
    ----------
    topology
        Devices and links as they were described: ports not dealt out, no resources yet.

    Raises
    ------
    DescriptionError
        With every mistake, where there is one.
    """
    description = topology.description
    assert description.document is not None, "only what was read has places to blame"
    report = Report(description.document, description.findings)
    _refuse_crowd(topology)
    sound = check_cabling(topology, report)
    if not description.lost:
        _check_buses(topology, report)
    _check_memories(topology, report)
    _check_rdma_names(topology, report)
    _check_loops(sound, report)
    _check_depth(topology, report)
    if description.lost:
        pass  # what is cut off is an answer, not a mistake
    elif topology.links:
        _Reach(topology, report).check()
    elif description.workloads and description.workloads[0].place is not None:
        report.add(  # a beginning, not a mistake
            description.workloads[0].place,
            "no-way",
            "there are no links yet, so no data has a way to go",
            help="add `links:` with one `- a -- b: cable` a line",
            severity="warning",
        )
    report.stop(DescriptionError)
    return report.findings


def _check_buses(topology: Topology, report: Report) -> None:
    """Report memories that hang on nothing; in a file without any link that is no mistake yet."""
    memories = [memory for memory in topology.of_kind("memory") if not topology.steps[memory.name]]
    if not memories or not topology.links:
        return
    first, number = memories[0], stem_of(memories[0].name)[1]
    hosts = [host.name for host in topology.of_kind(*HOSTS)]
    host = next((name for name in hosts if stem_of(name)[1] == number), (*hosts, "cpu0")[0])
    names = [memory.name for memory in memories]
    report.add(
        first.place,
        "memory-without-bus",
        f"{has(names)} no bus: nothing joins {'it' if len(names) == 1 else 'them'} with a CPU",
        help=f"add `- {first.name} -- {host}: memory-bus` to `links:`",
    )


def _check_rdma_names(topology: Topology, report: Report) -> None:
    """Report cards of one server that have one RDMA name: settings that name it mean both.

    A warning, since nothing but the names that other programs are told follows from it.
    """
    users: dict[tuple[str, str], list[Device]] = {}
    for device in topology.devices.values():
        machine = device.name.rpartition(".")[0]
        for name in dict.fromkeys(device.rdma):
            users.setdefault((machine, name), []).append(device)
    shared = {key: devices for key, devices in users.items() if len(devices) > 1}
    if not shared:
        return
    hosts = host_numbers(topology)
    for (_, name), devices in shared.items():
        owners: dict[int, Device] = {}
        for device in devices:
            owner = owners.setdefault(hosts[device.name], device)
            if owner is not device:
                report.add(
                    device.place,
                    "duplicate-rdma-name",
                    f"{owner.name} and {device.name} both have the RDMA name {name}",
                    help="each card has its own, as /sys/class/infiniband lists them",
                    severity="warning",
                )


# --- memories -------------------------------------------------------------------------------------


def _check_memories(topology: Topology, report: Report) -> None:
    """Report memories that their CPU does not take: the sort, or so many channels.

    One that is faster than the CPU is rated for is a warning: modules run at the CPU's speed, but a
    machine may be overclocked, or measured as it is.
    """
    of_cpu: dict[str, list[Device]] = {}
    for memory in topology.of_kind("memory"):
        steps = topology.steps[memory.name]
        attachment = topology.tree.attachment(memory.name) if steps else None
        if attachment is not None and topology[attachment.socket].kind == "cpu":
            of_cpu.setdefault(attachment.socket, []).append(memory)
    refused: list[tuple[tuple[Place, str, str, str, str], str]] = []
    fast: list[tuple[tuple[Place, str, str, str, str, str], str]] = []
    crowded: list[tuple[tuple[Place, str, str, str], str]] = []
    for name, memories in of_cpu.items():
        cpu = topology[name].part
        for memory in memories:
            if (reason := _not_taken(memory.part, cpu)) is not None:
                refused.append(((memory.place, memory.part.name, *reason), memory.name))
            elif (excess := _over_rating(memory.part, cpu)) is not None:
                fast.append(((memory.place, memory.part.name, *excess), memory.name))
        channels = [memory.part.figure("channels") for memory in memories]
        stated = sum(figure.value or 0.0 for figure in channels if figure is not None)
        most = cpu.figure("memory-channels")
        if most is not None and most.value is not None and stated > most.value:
            lack = f" ({cpu.name}) for {counted(int(stated), 'channel')} of memory"
            note = f"{most.value:g} memory channels: {most.source}"
            crowded.append(((memories[-1].place, f"{most.value:g}", lack, note), name))
    for (place, part_name, reason_text, advice, note), names in names_by_cause(refused).items():
        message = f"{names_of(names)} ({part_name}) {reason_text}"
        report.add(place, "memory-not-taken", message, help=advice, notes=(note,))
    for (place, part_name, rate, rated, advice, note), names in names_by_cause(fast).items():
        message = f"{rate} for {names_of(names)} ({part_name}) is more than {rated}"
        report.add(
            place, "memory-over-speed", message, help=advice, notes=(note,), severity="warning"
        )
    for (place, most_text, lack, note), names in names_by_cause(crowded).items():
        message = f"{has(names)} {most_text} memory channels{' each' * (len(names) > 1)}{lack}"
        advice = f"write `channels: {most_text}`, or what its memories have in all"
        report.add(place, "memory-not-taken", message, help=advice, notes=(note,))


def _not_taken(memory: Part, cpu: Part) -> tuple[str, str, str] | None:
    """Return why a memory cannot be plugged in, with advice and the source of what can."""
    module, taken = memory.facts.get("module", ""), modules_taken(cpu)
    if not module or not taken or module in taken:  # or nobody says what it is, or what is taken
        return None
    titles, fastest = listed((MODULES[sort] for sort in taken), "or"), module_limit(cpu, taken[0])
    speed = f"-{fastest.value / 1e6:g}" if fastest is not None and fastest.value else ""
    return (
        f"cannot be plugged in: {cpu.name} takes {titles}, no {MODULES[module]}",
        f"write `{taken[0]}{speed}`",
        f"{titles}: {cpu.figures[taken[0]].source}",
    )


def _over_rating(memory: Part, cpu: Part) -> tuple[str, str, str, str] | None:
    """Return the speed of a memory above its CPU's, that, advice, and the source of the CPU's."""
    module, per_channel = memory.facts.get("module", ""), memory.figure("dimms-per-channel")
    several = per_channel is not None and (per_channel.value or 1.0) > 1
    limit, rate = module_limit(cpu, module, 2.0 if several else 1.0), memory_transfer_rate(memory)
    if memory.figure("bus") is not None or limit is None or rate is None or rate.value is None:
        return None
    assert limit.value is not None
    if rate.value <= limit.value * (1 + 1e-9):
        return None
    most, dimms = f"{limit.value / 1e6:g} MT/s", " with two DIMMs a channel" * several
    return (
        f"{rate.value / 1e6:g} MT/s",
        f"{cpu.name} is rated for: {MODULES[module]} of {most}{dimms}",
        f"write `transfer-rate: {most}`, at which it runs faster modules; not if it is overclocked",
        f"{most}: {limit.source}",
    )


# --- loops ----------------------------------------------------------------------------------------


def _check_loops(topology: Topology, report: Report) -> None:
    """Report PCIe links that close a loop, once a line; parallel cables are no loop."""
    parents: dict[str, str] = {}  # of a union-find: what hangs together has one root
    joins: dict[str, dict[str, Link]] = {}  # the links that close no loop, by both ends

    def root(name: str) -> str:
        while (parent := parents.get(name, name)) != name:
            parents[name] = parents.get(parent, parent)
            name = parent
        return name

    reported: set[Place] = set()
    for link in topology.links:
        if link.cable.family != "pcie":
            continue
        a, b = link.a.device, link.b.device
        if root(a) != root(b):
            parents[root(a)] = root(b)
            joins.setdefault(a, {})[b] = joins.setdefault(b, {})[a] = link
            continue
        distances = breadth_first([a], joins.__getitem__)
        loop: list[Link] = []  # the path that joins the ends already, from `b` to `a`
        while b != a:
            nearer = min(joins[b], key=distances.__getitem__)
            loop.append(joins[b][nearer])
            b = nearer
        if len(loop) <= 1 or link.place in reported:
            continue
        reported.add(link.place)
        names = [a]
        for step in (link, *loop):
            names.append(step.b.device if step.a.device == names[-1] else step.a.device)
        advice = "leave one of these links out; is one of them NVLink, or a link between sockets?"
        if any(topology[name].kind == "gpu" for name in names):
            advice = "is one of them NVLink? Write `18x nvlink 4`"
        report.add(
            link.place,
            "pcie-loop",
            f"PCIe is a tree, and this link closes a loop: {' - '.join(names)}",
            help=advice,
            notes=[
                f"{step.a.device} -- {step.b.device} is on line {step.place.line}" for step in loop
            ],
        )


def _check_depth(topology: Topology, report: Report) -> None:
    """Report what hangs below more switches than PCIe has numbers for, once a switch too many."""
    if len(topology.of_kind("pcie-switch", "hba", *CARDS)) < _DEEPEST:
        return
    depths = topology.tree.depths
    if max(depths.values(), default=0) <= _DEEPEST:
        return
    first = next(name for name, depth in depths.items() if depth == _DEEPEST + 1)
    report.add(
        topology[first].place,
        "pcie-too-deep",
        f"{first} hangs below {_DEEPEST} PCIe links one after the other, and with switches between "
        f"them that takes more than the {_MOST_BUSES} buses that PCIe has numbers for",
        help=f"put at most {_DEEPEST - 1} switches one below the other",
    )


# --- size -----------------------------------------------------------------------------------------


def _refuse_crowd(topology: Topology) -> None:
    """Refuse a server of more devices than topo looks at, before each is held against the others.

    Raises
    ------
    DescriptionError
        Naming its first device.
    """
    if len(topology.devices) <= MOST_IN_A_SERVER and len(topology.links) <= MOST_LINKS_IN_A_SERVER:
        return
    host = max(topology.hosts, key=lambda host: len(host.devices), default=None)
    if host is not None:
        first = topology[host.devices[0]]
        refuse_more(
            len(host.devices),
            MOST_IN_A_SERVER,
            f"devices are joined to one server, that of {first.name}",
            "name fewer; of many servers write one, and `use:` it",
            place=first.place,
        )
    inside = (link for link in topology.links if link.layer != "network")
    hosts = topology.host_of
    homes = Counter(hosts[link.a.device].name for link in inside if link.a.device in hosts)
    name, count = next(iter(homes.most_common(1)), ("", 0))
    refuse_more(
        count,
        MOST_LINKS_IN_A_SERVER,
        f"links are in one server, {name}",
        "name fewer devices, or join them by a switch",
        place=topology.links[-1].place,
    )


# --- whether data gets there ----------------------------------------------------------------------


class _Reach:
    """Reports workloads whose data gets nowhere, then devices that nothing reaches."""

    def __init__(self, topology: Topology, report: Report) -> None:
        self._topology = topology
        self._report = report
        self._explained: set[str] = set()  # devices that a message has named

    def check(self) -> None:
        """Report every break once."""
        reported: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        topology = self._topology
        for workload in topology.description.workloads:
            stores, gpus = map(topology.standing_for, (workload.sources, workload.targets))
            if workload.direction == "write":
                stores, gpus = gpus, stores
            # GPUs that no storage reaches, else storage that reaches no GPU.
            for starts, ends, cause in ((stores, gpus, stores), (gpus, stores, ())):
                reached = self._reached(starts, fabric=workload.direction == "copy")
                cut_off = tuple(name for name in ends if name not in reached)
                if cut_off and (cause, cut_off) not in reported:
                    reported.add((cause, cut_off))
                    place = workload.place or topology[starts[0]].place
                    self._report_cut_off(starts, reached, cut_off, place)
                if cut_off:
                    break
        # Devices in no link at all, in one message; memories have a rule of their own.
        alone = [
            name
            for name, steps in self._topology.steps.items()
            if not steps and name not in self._explained and self._topology[name].kind != "memory"
        ]
        if alone:
            device = self._topology[alone[0]]
            them = "it" if len(alone) == 1 else "them"
            message = f"nothing reaches {names_of(alone)}: no link names {them}"
            advice = self._advice_to_link(device)
            self._report.add(device.place, "unreached", message, help=advice)
        self._check_apart()

    def _reached(self, sources: Iterable[str], *, fabric: bool = False) -> dict[str, int]:
        """Return what data from the sources can get to, in the order it is met.

        Between GPUs it may take the `fabric` too, which leads to no storage.
        """
        starts = frozenset(sources)

        def neighbours(name: str) -> list[str]:
            kind = self._topology[name].kind
            if name in starts or kind in _PASSED or (fabric and kind == "nvswitch"):
                steps = self._topology.steps[name]
                return [step.target for step in steps if fabric or step.link.layer != "gpu"]
            return []

        return breadth_first(sources, neighbours)

    def _passed(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if self._topology[name].kind in _PASSED)

    def _report_cut_off(
        self,
        sources: tuple[str, ...],
        reached: Iterable[str],
        targets: tuple[str, ...],
        asked: Place,
    ) -> None:
        """Report targets that no source reaches, once for each place where the path breaks off.

        `asked` is where the workload stands.
        """
        mainland = self._passed(reached)
        islands: dict[tuple[str, ...], list[str]] = {}
        servers: list[str] = []  # what is in servers without a network, one message for all
        for target in targets:
            island = tuple(sorted(self._passed(self._reached((target,)))))
            if any(self._topology[name].kind == "network-switch" for name in island):
                islands.setdefault(island, []).append(target)
            elif self._in_other_servers(mainland, island):
                servers.append(target)
            else:
                islands.setdefault(island, []).append(target)
        if servers:
            island = self._passed(self._reached(servers))
            islands = {island: servers, **islands}
        for island, names in islands.items():
            self._explained.update(sources, mainland, names, island)
            reason, place, advice = self._break(sources, mainland, names, island, asked)
            notes = []
            if mainland:
                dots = " ..." if len(mainland) > _NAMES_OF_REACHED else ""
                shown_names = names_of(mainland[:_NAMES_OF_REACHED])
                notes = [f"from {names_of(sources)} data reaches {shown_names}{dots}"]
            self._report.add(
                place,
                "no-way",
                f"nothing joins {names_of(sources)} to {names_of(names)}: {reason}",
                help=advice,
                notes=notes,
            )

    def _break(
        self,
        sources: tuple[str, ...],
        mainland: tuple[str, ...],
        targets: list[str],
        island: tuple[str, ...],
        blamed: Place,
    ) -> tuple[str, Place, str]:
        """Return why data does not get there, the place to blame, and what to write."""
        if not mainland:
            return self._hangs_on_nothing(sources)
        if not island:
            return self._hangs_on_nothing(targets)
        near_hosts, far_hosts = (self._hosts(side) for side in (mainland, island))
        if self._in_other_servers(mainland, island) or not all(
            hosts or self._switch(side) is None
            for hosts, side in ((near_hosts, mainland), (far_hosts, island))
        ):
            return self._lacks_network(mainland, island, blamed)
        if near_hosts and far_hosts:
            near, far = near_hosts[-1], far_hosts[0]
            reason = f"{has(targets, 'hangs', 'hang')} on {far}, which has no link to {near}"
            advice = f"add `- {near} -- {far}: 4x upi 16 GT/s`, or the link that it is"
            return reason, self._topology[far].place, advice
        on_island = bool(near_hosts or not far_hosts)
        side, ends = (island, targets) if on_island else (mainland, sources)
        top = self._top(side)
        lacks = "uplink" if top.kind == "pcie-switch" else "link to a CPU"
        only = "only " if len(side) == 1 else ""
        host = (near_hosts or far_hosts or ["cpu0"])[0]
        reason = f"{has(ends, 'hangs', 'hang')} {only}on {top.name}, which has no {lacks}"
        return reason, top.place, f"add `- {top.name} -- {host}: {_pcie_cable(top)}`"

    def _hosts(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._topology[name].is_host]

    def _switch(self, names: Iterable[str]) -> Device | None:
        """Return the network switch through which devices are joined, where there is one."""
        devices = map(self._topology.__getitem__, names)
        return next((device for device in devices if device.kind == "network-switch"), None)

    def _in_other_servers(self, mainland: Iterable[str], island: Iterable[str]) -> bool:
        """Whether an island is in used machines, and nothing of the mainland is in one of them."""
        machines, near_machines = (
            {_machine(name) for name in self._hosts(side)} for side in (island, mainland)
        )
        return bool(machines) and "" not in machines and machines.isdisjoint(near_machines)

    def _lacks_network(
        self, mainland: tuple[str, ...], island: tuple[str, ...], blamed: Place
    ) -> tuple[str, Place, str]:
        """Return that no network link joins two sides, the place to blame, and what to write."""
        near = self._switch(mainland) or next(self._cards(mainland), None)
        alike = {card.name.rpartition(".")[2]: card for card in reversed([*self._cards(island)])}
        usual = (card.name.rpartition(".")[2] for card in self._cards(mainland))
        far = (
            self._switch(island)
            or next((alike[name] for name in usual if name in alike), None)
            or next(self._cards(island), None)
        )
        texts = [
            names_of(tuple(dict.fromkeys(map(_machine, self._hosts(side)))))
            if self._in_other_servers((), side) and self._switch(side) is None
            else end.name
            if end is not None
            else side[0]
            for side, end in ((mainland, near), (island, far))
        ]
        reason = f"no network link joins {texts[0]} with {texts[1]}"
        advice = "give both a network card"
        if near is not None and far is not None:
            advice = f"add `- {far.name} -- {near.name}: {_network_cable(near, far)}`"
        ends = (end for end in (near, far) if end is not None and not _machine(end.name))
        return reason, next((end.place for end in ends), blamed), advice

    def _cards(self, names: Iterable[str]) -> Iterator[Device]:
        devices = map(self._topology.__getitem__, names)
        return (device for device in devices if device.kind in CARDS)

    def _hangs_on_nothing(self, names: Sequence[str]) -> tuple[str, Place, str]:
        device = self._topology[names[0]]
        steps = self._topology.steps[device.name]
        if steps:
            neighbours = (noun_of(self._topology[step.target].kind, 2) for step in steps)
            reason = f"{has(names, 'hangs', 'hang')} only on {listed(dict.fromkeys(neighbours))}"
        else:
            reason = f"{has(names)} no link"
        return reason, device.place, self._advice_to_link(device)

    def _top(self, names: Collection[str]) -> Device:
        """Return the device of a group that would lead on to a CPU: a switch, else a card."""
        devices = [self._topology[name] for name in names]
        for kinds in (("pcie-switch",), ("hba",), CARDS, ("network-switch",)):
            for device in devices:
                if device.kind in kinds:
                    return device
        return devices[0]

    def _advice_to_link(self, device: Device) -> str:
        """Return the line that would link a device, with a partner that is there."""

        def first(default: str, *kinds: Kind) -> str:
            partners = self._topology.of_kind(*kinds)
            return next((partner.name for partner in partners if partner is not device), default)

        if device.kind in ("storage", "network-switch"):
            partner, cable = first("nic0", *CARDS), _network_cable(device)
        elif device.kind == "nvswitch":
            partner, cable = first("gpu0", "gpu"), "18x nvlink 4"
        elif device.is_host:
            partner, cable = first("cpu1", *HOSTS), "4x upi 16 GT/s"
        else:
            is_switch = device.kind == "pcie-switch"
            switches = () if is_switch else self._topology.of_kind("pcie-switch")
            partner = switches[0].name if switches else first("cpu0", *HOSTS)
            cable = _pcie_cable(device)
        return f"add `- {device.name} -- {partner}: {cable}`"

    def _check_apart(self) -> None:
        """Report what is linked together and to no host, in a machine that has one."""
        hosts = [host.name for host in self._topology.of_kind(*HOSTS)]
        if not hosts:
            return
        reached = self._reached(hosts)
        kinds = ("gpu", "nvme", "hba", "pcie-switch", *CARDS, "cxl-memory")
        apart = [
            name
            for name, steps in self._topology.steps.items()
            if name not in reached
            and name not in self._explained
            and self._topology[name].kind in kinds
            and any(step.link.layer != "gpu" for step in steps)
        ]
        if not apart:
            return
        top = self._top(apart)
        self._report.add(
            top.place,
            "unreached",
            f"nothing joins {names_of(apart)} with a CPU",
            help=f"add `- {top.name} -- {hosts[0]}: {_pcie_cable(top)}`",
        )


def _pcie_cable(device: Device) -> str:
    """Return the PCIe cable that a device can have."""
    slot = device.part.slot
    return f"pcie {slot.generation} x{slot.lanes or 16}" if slot else "pcie 5 x16"


def _network_cable(*devices: Device) -> str:
    """Return a network cable that devices can have, as far as their ports say."""
    ports = [device.part.ports for device in devices if device.part.ports is not None]
    medium = next((plug.medium for plug in ports if plug.medium is not None), "infiniband ndr")
    figures = [plug.rate.value for plug in ports if plug.rate is not None]
    rates = [rate for rate in figures if rate is not None]
    if medium != "ethernet" or not rates:
        return medium
    return f"{medium} {min(rates) * 8 / 1e9:.10g} Gb/s"


def _machine(device: str) -> str:
    """Return the used machine that a device is in; empty in the file's own."""
    return device.rpartition(".")[0]
