"""What could be changed where a machine binds: overrides as ``--set`` takes them, not asked yet.

It starts from the full resources that stop demands. For each it offers a better part, one more of
it, or a better cable or link, as far as the machine is known to take it. A server is a unit:
nothing is moved from one to another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import count
from typing import TypeVar

from topo.catalogue.kinds import CARDS, HOSTS
from topo.catalogue.part import Medium, Part, module_limit, modules_taken
from topo.catalogue.parts import catalogue
from topo.datapaths.registry import data_path, data_paths
from topo.description.description import DescribedLink, Device, Workload
from topo.description.links import fastest_cable
from topo.description.names import ranged
from topo.errors import TopoError
from topo.graph import groups, refine
from topo.phrases import listed
from topo.records import dataclass
from topo.topology.locality import socket_of
from topo.topology.resources import Resource, ResourceClass
from topo.topology.topology import Link, Topology
from topo.units import format_bit_rate, format_rate

Key = TypeVar("Key", bound="Hashable")

KINDS = (
    *("other-card", "another-card", "faster-cable", "another-cable", "faster-pcie"),
    *("faster-memory", "other-storage", "another-storage", "another-socket-link"),
    *("other-socket", "data-path"),
)
"""What a candidate changes; costs are given by these."""

# Of more devices than these that one could be added beside, only one of those alike is asked about.
_MOST_SINGLES = 8
_NAMED = 4  # devices in a title before "and 3 more"

_STORAGE: dict[ResourceClass, str] = {
    "storage-read": "read",
    "storage-write": "write",
    "drive-read": "read",
    "drive-write": "write",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to change.

    Parameters
    ----------
    kind
        One of `KINDS`.
    frame, thing
        What it is, in a few words: `frame` with `thing` in the place of ``{}``. Candidates of one
        frame differ in their thing only, and can share a line.
    changes
        Overrides, as ``--set`` takes them.
    via
        Another data path to ask by; empty keeps the one asked about.
    count
        How many things have to be bought or moved: costs are for each.
    alike
        How many more there are that differ from it by symmetry only, and are not offered.
    """

    kind: str
    frame: str
    thing: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    via: str = ""
    count: int = 1
    alike: int = 0

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.framed(self.thing)

    def framed(self, things: str) -> str:
        """Return the title with other things in it."""
        return self.frame.replace("{}", things)


def candidates(
    topology: Topology, bound: Iterable[Resource], via: str, workloads: Sequence[Workload]
) -> tuple[Candidate, ...]:
    """Return what could be changed about what binds, without asking whether it helps.

    Of a cloud's instance nothing can be but the data path.

    Parameters
    ----------
    topology
        The machine.
    bound
        The full resources that stop demands.
    via
        The data path in use.
    workloads
        What moves: another storage becomes an end of theirs.
    """
    # the data paths that join the same sort of ends
    used = data_path(topology.description, via)
    paths = [
        path.name
        for path in data_paths(topology.description)
        if (path.far_end, path.near_end, path.between_servers)
        == (used.far_end, used.near_end, used.between_servers)
    ]
    other_paths = tuple(
        Candidate("data-path", "data path {}", name, via=name) for name in paths if name != via
    )
    if is_rented(topology):
        return other_paths
    offers = _Offers(topology, tuple(bound), workloads)
    return (
        *offers.other_cards(),
        *offers.another_card(),
        *offers.cables(),
        *offers.pcie(),
        *offers.storage(),
        *offers.memory(),
        *offers.between_sockets(),
        *offers.other_socket(),
        *other_paths,
    )


def is_rented(topology: Topology) -> bool:
    """Whether a machine is an instance of a cloud, whose user changes no part of it."""
    return topology.description.group == "cloud"


class _Offers:
    """What may be offered about the full resources of one machine."""

    def __init__(
        self, topology: Topology, bound: Sequence[Resource], workloads: Sequence[Workload]
    ) -> None:
        self._topology = topology
        self._bound = bound
        self._workloads = workloads
        ids = {resource.id for resource in bound}
        self._links = [
            link
            for link in topology.links
            if any(way is not None and way.id in ids for way in (link.forward, link.backward))
        ]

    # --- cards ------------------------------------------------------------------------------------

    def other_cards(self) -> Iterator[Candidate]:
        """Yield the cards of the catalogue that are better at what binds, with ports for all."""
        topology = self._topology
        for (_, keys), cards in _grouped(self._bound_cards).items():
            devices = [topology[name] for name in cards]
            part = devices[0].part
            cables = [
                step.link.cable
                for device in devices
                for step in topology.steps[device.name]
                if step.link.layer == "network"
            ]
            cabled = max(
                sum(step.link.layer == "network" for step in topology.steps[device.name])
                for device in devices
            )
            families = {cable.family for cable in cables}
            better: dict[tuple[float, float], Part] = {}  # the first by name of those as fast
            for _, card in sorted(catalogue().parts.items()):
                ports = card.ports
                if card.kind != part.kind or card.flag("bridge") or ports is None:
                    continue
                medium = (ports.medium or "").partition(" ")[0]
                fits = (ports.count or 0) >= cabled and (not medium or families <= {medium})
                if fits and _beats(card, part, keys):
                    speeds = _speeds(card)
                    better.setdefault((speeds["chip"], speeds["port"]), card)
            for (chip, _), card in sorted(better.items()):
                set_parts = _set(cards, "part", card.name)
                old = _part_or_names(part.name, cards)
                title = f"{card.name} instead of {old} ({format_bit_rate(chip)} a chip)"
                yield Candidate("other-card", title, changes=set_parts, count=len(devices))
                raised = self._raised(devices, card)
                if raised and card.slot:
                    framed = f"{title} on PCIe {card.slot.generation}"
                    both = {**set_parts, **raised}
                    yield Candidate("other-card", framed, changes=both, count=len(devices))

    @cached_property
    def _bound_cards(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The cards that bind: their part, and by what (``chip``, ``port``, ``slot``)."""
        keys: dict[str, dict[str, None]] = {}
        for resource in self._bound:
            if resource.kind == "nic-chip":
                keys.setdefault(resource.device, {})["chip"] = None
            elif resource.limited_by == f"port of {resource.device}":
                keys.setdefault(resource.device, {})["port"] = None
        for link in self._links:
            for end in (link.a.device, link.b.device):
                device = self._topology[end]
                slot = device.part.slot if device.is_nic else None
                generation = slot.generation if slot is not None else 0
                if link.cable.family == "pcie" and link.cable.generation == generation:
                    keys.setdefault(end, {})["slot"] = None
        return {
            card.name: (card.part.name, tuple(sorted(keys[card.name])))
            for card in self._topology.of_kind(*CARDS)
            if card.name in keys and not card.part.flag("bridge")
        }

    def _raised(self, cards: Sequence[Device], card: Part) -> dict[str, str]:
        """Return the PCIe links at the generation of a card whose host's is not known."""
        generation = card.slot.generation if card.slot else 0
        return {
            f"{device.name} -- {step.target}": f"pcie {generation} x{step.link.cable.lanes}"
            for device in cards
            for step in self._topology.steps[device.name]
            if step.link.cable.family == "pcie"
            and self._topology[step.target].part.slot is None
            and (step.link.cable.generation or generation) < generation
            and step.link.cable.lanes
        }

    def another_card(self) -> Iterator[Candidate]:
        """Yield one more beside every card that binds, and one more beside one of them."""
        kinds = ("nic-chip", "network-port")
        names = {resource.device for resource in self._bound if resource.kind in kinds}
        for link in self._links:
            if link.cable.family == "pcie":
                names |= {link.a.device, link.b.device}
        cards = [
            device
            for device in self._topology.of_kind(*CARDS)
            if device.name in names and not device.part.flag("bridge")
        ]
        yield from self._another("another-card", cards)

    def _another(self, kind: str, devices: Sequence[Device]) -> Iterator[Candidate]:
        """Yield one more beside each device of a part, and beside one of them."""
        for part_name, names in _grouped({d.name: d.part.name for d in devices}).items():
            sort = _part_or_names(part_name, names)
            new_names: list[str] = []
            singles: dict[str, str] = {}
            free: dict[str, Iterator[str]] = {}  # names in each machine that is used
            for name in names:
                machine = name.rpartition(".")[0]
                if machine not in free:
                    free[machine] = self._free_names(re.sub(r"\d+$", "", name))
                    singles[machine] = next(free[machine])
                    new_names.append(singles[machine])
                else:
                    new_names.append(next(free[machine]))
            if len(names) > 1:
                copies = dict(zip(new_names, names, strict=True))
                title = f"a second {sort} beside each ({_named(copies)})"
                changes = {**copies, **self._as_ends(copies)}
                yield Candidate(kind, title, changes=changes, count=len(names))
            for name, alike in self._representatives(names):
                new_name = singles[name.rpartition(".")[0]]
                copies = {new_name: name}
                yield Candidate(
                    kind,
                    f"another {sort} ({new_name}) beside {{}}",
                    name,
                    {**copies, **self._as_ends(copies)},
                    alike=alike,
                )

    def _free_names(self, stem: str) -> Iterator[str]:
        """Yield names of a stem that no device has, in order."""
        matches = (re.fullmatch(rf"{re.escape(stem)}(\d+)", d) for d in self._topology.devices)
        first = max((int(match[1]) for match in matches if match), default=0) + 1
        return (f"{stem}{number}" for number in count(first))

    def _as_ends(self, copies: Mapping[str, str]) -> dict[str, str]:
        """Return what makes copies of storage ends of the workloads where their stem does not."""
        first, model = next(iter(copies.items()))
        if not self._topology[model].is_storage:
            return {}
        try:
            changed = self._topology.replace(copies)
        except TopoError:  # which is why it cannot be added
            return {}
        of_name = {workload.name: workload for workload in changed.description.workloads}
        ends: dict[str, str] = {}
        for workload in self._workloads:
            key = "to" if workload.direction == "write" else "from"
            now = of_name.get(workload.name)
            if now is None:  # asked by ends or a model: all that its words still mean
                continue
            stores = now.targets if key == "to" else now.sources
            if model in stores and first not in stores:
                ends[f"{workload.name}.{key}"] = f"[{', '.join((*stores, *copies))}]"
        return ends

    def _representatives(self, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the devices to ask about one by one, each with how many more are alike."""
        if len(names) <= _MOST_SINGLES:
            yield from ((name, 0) for name in names)
            return
        for alike in groups({name: self._classes[name] for name in names}):
            yield alike[0], len(alike) - 1

    @cached_property
    def _classes(self) -> Mapping[str, int]:
        """Devices by class: those of one class have the same around them, and do the same."""
        topology = self._topology
        ends: dict[str, list[tuple[int, bool]]] = {name: [] for name in topology.devices}
        for number, workload in enumerate(topology.description.workloads):
            for names, is_source in ((workload.sources, True), (workload.targets, False)):
                for name in names:
                    ends[name].append((number, is_source))
        colours = {
            name: (id(device.part), device.outside, tuple(ends[name]))
            for name, device in topology.devices.items()
        }

        def around(name: str, classes: Mapping[str, int]) -> tuple[object, ...]:
            seen = (
                (
                    classes[step.target],
                    step.link.cable.text,
                    *(
                        (way.capacity.theoretical.value, way.capacity.measured is not None)
                        for way in (step.link.forward, step.link.backward)
                        if way is not None
                    ),
                )
                for step in topology.steps[name]
            )
            return tuple(sorted(seen, key=repr))

        return refine(colours, around)

    # --- cables and links -------------------------------------------------------------------------

    def cables(self) -> Iterator[Candidate]:
        """Yield the fastest cable that both ends take, and one more where ports are free."""
        topology = self._topology
        media: dict[str, Medium] = {**catalogue().media, **topology.description.media}
        network = [link for link in self._links if link.layer == "network"]
        pairs = dict.fromkeys((link.a.device, link.b.device) for link in network)
        faster: dict[tuple[str, str], list[DescribedLink]] = {}
        more: dict[str, list[DescribedLink]] = {}
        for pair in pairs:
            described = self._described[frozenset(pair)]
            link = described[0]
            plain = re.sub(r"^\d+x ", "", link.cable.text)
            ports = [topology[end].part.ports for end in pair]
            rates = [port.rate.value for port in ports if port and port.rate and port.rate.value]
            if rates and link.cable.rate.value is not None:
                text = fastest_cable(link.cable, min(rates), media)
                if text and all(other.cable.text == link.cable.text for other in described):
                    faster.setdefault((plain, text), []).append(link)
            if len(described) == 1 and not link.a.side and not link.b.side:
                more.setdefault(plain, []).append(link)
        for (plain, text), links in faster.items():
            changes = {_key(link): f"{_times(link.cable.count)}{text}" for link in links}
            frame = f"{text} instead of {plain} at {{}}"
            cables = sum(link.cable.count for link in links)
            thing = self._at(links)
            yield Candidate("faster-cable", frame, thing, changes, count=cables)
        for plain, links in more.items():
            wanted = Counter(end.device for link in links for end in (link.a, link.b))
            if all(self._free_ports(name) >= number for name, number in wanted.items()):
                changes = {_key(link): f"{link.cable.count + 1}x {plain}" for link in links}
                frame = f"one more {plain} at {{}}"
                thing = self._at(links)
                yield Candidate("another-cable", frame, thing, changes, count=len(links))

    def _free_ports(self, name: str) -> float:
        """Return how many network ports of a device have no cable; many where it does not say."""
        ports = self._topology[name].part.ports
        if ports is None or ports.count is None:
            return float("inf")
        steps = self._topology.steps[name]
        used = sum(step.link.cable.count for step in steps if step.link.layer == "network")
        return ports.count - used

    @cached_property
    def _described(self) -> dict[frozenset[str], list[DescribedLink]]:
        """The links as the file has them, by their two ends."""
        by_ends: dict[frozenset[str], list[DescribedLink]] = {}
        for link in self._topology.description.links:
            by_ends.setdefault(frozenset((link.a.device, link.b.device)), []).append(link)
        return by_ends

    def _at(self, links: Sequence[DescribedLink | Link]) -> str:
        """Name the devices whose links these are: the cards, else the ends further from a host."""
        names: dict[str, None] = {}
        for link in links:
            ends = [self._topology[end.device] for end in (link.a, link.b)]
            lower = [end for end in ends if end.is_nic] or [
                end for end in ends if not end.is_host and end.kind != "network-switch"
            ]
            names[(lower or ends)[0].name] = None
        return _named(names)

    def pcie(self) -> Iterator[Candidate]:
        """Yield the generation and lanes that both ends have, where a link has less."""
        wider: dict[tuple[str, str], list[Link]] = {}
        for link in self._links:
            cable = link.cable
            if cable.family != "pcie" or not cable.generation or not cable.lanes:
                continue
            ends = [self._topology[end.device] for end in (link.a, link.b)]
            slots = [end.part.slot for end in ends if end.part.slot is not None]
            generation = min((slot.generation for slot in slots), default=cable.generation)
            widths = [slot.lanes // cable.count for slot in slots if slot.lanes]
            lanes = min(widths, default=cable.lanes)
            if generation > cable.generation or lanes > cable.lanes:
                text = f"pcie {max(generation, cable.generation)} x{max(lanes, cable.lanes)}"
                wider.setdefault((cable.text, f"{_times(cable.count)}{text}"), []).append(link)
        for (old, new), links in wider.items():
            changes = {_key(link): new for link in links}
            frame = f"{new} instead of {old} at {{}}"
            thing = self._at(links)
            yield Candidate("faster-pcie", frame, thing, changes, count=len(changes))

    def between_sockets(self) -> Iterator[Candidate]:
        """Yield one more link between two sockets that are known to have one."""
        for link in self._links:
            ends = (link.a.device, link.b.device)
            most = [self._topology[end].part.figures.get("socket-links") for end in ends]
            cable = link.cable
            if not all(self._topology[end].is_host for end in ends) or cable.rate.value is None:
                continue
            if len(self._described[frozenset(ends)]) > 1:
                continue
            if all(figure and figure.value and figure.value > cable.count for figure in most):
                number, plain = cable.count + 1, re.sub(r"^\d+x ", "", cable.text)
                yield Candidate(
                    "another-socket-link",
                    f"{number}x {plain} instead of {cable.text} between {{}}",
                    listed(ends),
                    {_key(link): f"{number}x {plain}"},
                )

    def other_socket(self) -> Iterator[Candidate]:
        """Yield each card that storage is cabled to moved to each other socket of its server."""
        topology = self._topology
        binding = {"socket-link", "uplink", "peer-to-peer"}
        if binding.isdisjoint(resource.kind for resource in self._bound):
            return
        cards = [
            device
            for device in topology.of_kind(*CARDS)
            if any(step.link.layer == "network" for step in topology.steps[device.name])
        ]
        for name, alike in self._representatives([card.name for card in cards]):
            socket = socket_of(topology, name)
            to_socket = [step for step in topology.steps[name] if step.target == socket]
            if len(to_socket) != 1 or name not in topology.host_of:
                continue
            for other in topology.host_of[name].devices:
                if topology[other].kind in HOSTS and other != socket:
                    changes = {f"{name} -- {socket}": f"{name} -- {other}"}
                    title = f"{{}} moved from {socket} to {other}"
                    yield Candidate("other-socket", title, name, changes, alike=alike)

    # --- storage and memory -----------------------------------------------------------------------

    def storage(self) -> Iterator[Candidate]:
        """Yield faster drives and storage of the same kind, and one more of each that binds."""
        topology = self._topology
        keys: dict[str, str] = {}
        for resource in self._bound:
            if resource.kind in _STORAGE:
                keys[resource.device] = _STORAGE[resource.kind]
        for link in self._links:
            for end in (link.a.device, link.b.device):
                if topology[end].is_drive and topology[end].kind == "nvme":
                    keys.setdefault(end, "slot")
        same_part = {name: (topology[name].part.name, key) for name, key in keys.items()}
        parts = {**catalogue().parts, **topology.description.parts}
        for (part_name, key), names in _grouped(same_part).items():
            part = topology[names[0]].part
            by_rate: dict[tuple[float, float], Part] = {}
            for _, better in sorted(parts.items()):
                if better.kind == part.kind and _beats(better, part, (key,)):
                    speeds = _speeds(better)
                    by_rate.setdefault((speeds["read"], speeds["write"]), better)
            for (read, write), better in sorted(by_rate.items()):
                shown = format_rate(write if key == "write" else read)
                old = _part_or_names(part_name, names)
                title = f"{better.name} instead of {old} ({shown} each)"
                changes = _set(names, "part", better.name)
                yield Candidate("other-storage", title, changes=changes, count=len(names))
        yield from self._another("another-storage", [topology[name] for name in keys])

    def memory(self) -> Iterator[Candidate]:
        """Yield one DIMM a channel, faster modules, and all channels, as the CPUs take them.

        A memory whose bus is quoted as a whole has no channels to change.
        """
        topology = self._topology
        names = {resource.device for resource in self._bound if resource.kind == "memory-bus"}
        memories = [memory for memory in topology.of_kind("memory") if memory.name in names]
        for part_name, same in _grouped({m.name: m.part.name for m in memories}).items():
            part = topology[same[0]].part
            if part.figure("bus") is not None or part.figure("channels") is None:
                continue
            sockets = [socket_of(topology, name) for name in same]
            cpus = [topology[socket].part for socket in dict.fromkeys(sockets) if socket]
            if _value(part, "dimms-per-channel") > 1:
                changes = _set(same, "dimms-per-channel", "1")
                rated = [module_limit(cpu, part.facts.get("module", "")) for cpu in cpus]
                slowest = min((limit.value for limit in rated if limit and limit.value), default=0)
                if 0 < slowest < _value(part, "transfer-rate"):  # faster than the CPU runs them
                    changes |= _set(same, "transfer-rate", f"{slowest / 1e6:g} MT/s")
                title = "one DIMM a channel"
                yield Candidate("faster-memory", title, changes=changes, count=len(same))
            for name, module in sorted(catalogue().parts.items()):
                sort, rate = module.facts.get("module", ""), _value(module, "transfer-rate")
                limits = [module_limit(cpu, sort) for cpu in cpus if sort in modules_taken(cpu)]
                if len(limits) < len(cpus) or not cpus or rate <= _value(part, "transfer-rate"):
                    continue
                if all(limit and limit.value and rate <= limit.value for limit in limits):
                    changes = _set(same, "part", name)
                    frame = f"{{}} instead of {_part_or_names(part_name, same)}"
                    yield Candidate("faster-memory", frame, name, changes, count=len(same))
            most = {_value(cpu, "memory-channels") for cpu in cpus}
            channels, beside = _value(part, "channels"), max(Counter(sockets).values())
            if len(most) == 1 and beside == 1 and channels < max(most):
                changes = _set(same, "channels", f"{max(most):g}")
                title = f"modules in all {max(most):g} channels instead of {channels:g}"
                yield Candidate("faster-memory", title, changes=changes, count=len(same))


# --- small helpers --------------------------------------------------------------------------------


def _beats(better: Part, part: Part, keys: Sequence[str]) -> bool:
    """Whether a part is better at one of these and worse at nothing that is known of both."""
    new, old = _speeds(better), _speeds(part)
    finite = all(value != float("inf") for value in new.values())
    return (
        finite
        and any(new[key] > old[key] > 0 for key in keys)
        and all(new[key] >= old[key] for key in new if new[key] and old[key])
    )


def _speeds(part: Part) -> dict[str, float]:
    """Return what a card or drive is compared by, zero where it is not known."""
    rate = part.ports.rate if part.ports else None
    return {
        "chip": _value(part, "chip"),
        "port": (rate.value or 0.0) if rate else 0.0,
        "slot": float(part.slot.generation) if part.slot else 0.0,
        "read": _value(part, "read"),
        "write": _value(part, "write"),
    }


def _value(part: Part, key: str) -> float:
    figure = part.figure(key)
    return figure.value if figure is not None and figure.value is not None else 0.0


def _grouped(keys: Mapping[str, Key]) -> dict[Key, list[str]]:
    """Return names by what they have in common, in the order of the first."""
    names: dict[Key, list[str]] = {}
    for name, key in keys.items():
        names.setdefault(key, []).append(name)
    return names


def _set(names: Sequence[str], key: str, value: str) -> dict[str, str]:
    """Return the overrides that give a key of devices a value: a range where there are many."""
    return {f"{text}.{key}": value for text in ranged(names, most=len(names))}


def _named(names: Iterable[str]) -> str:
    return listed(ranged(names), most=_NAMED)


def _part_or_names(part: str, names: Iterable[str]) -> str:
    """Return a part's name; where it stands for one that nobody knows, the devices'."""
    return _named(names) if part.endswith("-unknown") else part


def _times(count: int) -> str:
    return f"{count}x " if count > 1 else ""


def _key(link: DescribedLink | Link) -> str:
    """Return the override that changes a link, whichever of its cables."""
    return f"{link.a.device} -- {link.b.device}"
