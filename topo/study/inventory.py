"""What a machine is made of, as facts by name: what two machines are compared by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from topo.catalogue.part import Cable, Figure, PeerCap, PeerCaps, Ports, Slot
from topo.catalogue.values import Word
from topo.description.as_document import to_document
from topo.phrases import shortened

if TYPE_CHECKING:
    from topo.description.description import Description, Device
    from topo.topology.topology import Topology

Section = Literal[
    "devices",
    "links",
    "settings",
    "measured",
    "data paths",
    "workloads",
    "expectations",
    "out of order",
]
Fact: TypeAlias = "Figure | Slot | Ports | PeerCap | Word"
Facts: TypeAlias = Mapping[str, Fact]

PLACEMENT: Final = frozenset({"label", "slot", "pci", "rdma", "numa", "ends"})
"""Facts of where something sits, by which it differs from others that are alike."""

_OWN_PLACE: Final = re.compile(r".*:[0-9]+")  # a source that is where the figure itself stands


def inventory_of(topology: Topology) -> Inventory:
    """Return what a machine is made of; machines that it uses stay as they are used."""
    return Inventory(topology.description.folded or topology.description)


def without_places(value: Any) -> Hashable:
    """Return a fact, or several, as a key that is the same wherever in a file they stand."""
    if isinstance(value, Mapping):
        return tuple((key, without_places(item)) for key, item in value.items())
    if isinstance(value, tuple):
        return tuple(map(without_places, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value if isinstance(value, Hashable) else repr(value)
    own = (
        "" if field.name == "source" and _OWN_PLACE.fullmatch(item) else item
        for field in fields(value)
        for item in (getattr(value, field.name),)
    )
    return (type(value).__name__, *map(without_places, own))


class Inventory:
    """The facts of one description; of machines that it uses each has an inventory of its own.

    Parameters
    ----------
    description
        What a file says, machines that it uses not written out.
    names
        Other names for some devices.
    """

    def __init__(self, description: Description, names: Mapping[str, str] | None = None) -> None:
        self.description = description
        self._names = names or {}

    def named(self, names: Mapping[str, str]) -> Inventory:
        """Return the same with some devices by other names."""
        return Inventory(self.description, names) if names else self

    @cached_property
    def machines(self) -> Mapping[str, Inventory]:
        """What is used, by the name that it has here."""
        of_templates: dict[int, Inventory] = {}
        return {
            name: of_templates.setdefault(id(use.template), Inventory(use.template))
            for use in self.description.uses
            for name in use.names
        }

    @cached_property
    def sections(self) -> Mapping[Section, Mapping[str, Facts]]:
        """Facts by section and name."""
        description = self.description
        plain = to_document(
            replace(
                description,
                devices=(),
                links=(),
                uses=(),
                measurements=(),
                parts={},
                media={},
                folded=None,
            )
        )
        settings = plain.get("settings", {})
        return {
            "devices": dict(self._devices()),
            "links": dict(self._links()),
            "settings": {"": _worded(settings)} if settings else {},
            "measured": {
                f"{self._end(rate.source)} -> {self._end(rate.target)}": {"rate": rate.rate}
                for rate in description.measurements
            },
            "data paths": {
                name: _worded(path) for name, path in plain.get("data-paths", {}).items()
            },
            "workloads": {
                name: _worded(
                    {
                        key: list(map(self._name, value)) if key in ("from", "to") else value
                        for key, value in workload.items()
                    }
                )
                for name, workload in plain.get("workloads", {}).items()
            },
            "expectations": {text: {} for text in plain.get("expect", ())},
            "out of order": {text: {} for text in description.lost},
        }

    def _name(self, device: str) -> str:
        return self._names.get(device, device)

    def _end(self, text: str) -> str:
        device, slash, side = text.partition("/")
        return f"{self._name(device)}{slash}{side}"

    def _devices(self) -> Iterator[tuple[str, Facts]]:
        for use in self.description.uses:
            count = str(use.template.device_count)
            facts = {"use": Word(None, use.source, ""), "devices": Word(None, count, "")}
            yield from ((name, facts) for name in use.names)
        for device in self.description.devices:
            yield self._name(device.name), device_facts(device)

    @cached_property
    def _bundles(self) -> Mapping[tuple[str, str], list[tuple[str, str, Cable]]]:
        """The cables of each pair of ends, with the ports or nodes that they name there."""
        bundles: dict[tuple[str, str], list[tuple[str, str, Cable]]] = {}
        for link in self.description.links:
            a, b = self._name(link.a.device), self._name(link.b.device)
            if (b, a) in bundles:
                bundles[b, a].append((link.b.side, link.a.side, link.cable))
            else:
                bundles.setdefault((a, b), []).append((link.a.side, link.b.side, link.cable))
        return bundles

    def _links(self) -> Iterator[tuple[str, Facts]]:
        of_cables: dict[tuple[tuple[str, str, Cable], ...], Facts] = {}
        for (a, b), cables in self._bundles.items():
            key = tuple(cables)
            if key not in of_cables:
                of_cables[key] = cable_facts(cables)
            yield f"{a} -- {b}", of_cables[key]

    # --- by another name ---

    def renamed_in(self, after: Inventory) -> Mapping[str, str]:
        """Return the new names of devices that are probably the same as ones with other names.

        Only where no other device of either side is the same part with the same neighbours.
        """
        names: dict[str, str] = {}
        own, theirs = self._own_devices, after._own_devices
        gone = [name for name in own if name not in theirs]
        added = [name for name in theirs if name not in own]
        while gone and added:
            before = self._by_structure(gone, names, {*gone, *added})
            after_it = after._by_structure(added, {}, {*gone, *added} - {*names.values()})
            certain = {
                before[structure][0]: after_it[structure][0]
                for structure in before
                if len(before[structure]) == 1 and len(after_it.get(structure, ())) == 1
            }
            if not certain:
                break
            names |= certain
            gone = [name for name in gone if name not in names]
            added = [name for name in added if name not in certain.values()]
        return names

    @cached_property
    def _own_devices(self) -> Mapping[str, Device]:
        return {device.name: device for device in self.description.devices}

    def _by_structure(
        self, devices: Iterable[str], names: Mapping[str, str], nameless: set[str]
    ) -> Mapping[Hashable, list[str]]:
        """Return devices by part and neighbours; who has a neighbour that is not known is none."""
        around: dict[str, list[Hashable]] = defaultdict(list)
        for (a, b), cables in self._bundles.items():
            facts = without_places(cable_facts(cables))
            around[a].append((names.get(b, b), facts))
            around[b].append((names.get(a, a), facts))
        alike: dict[Hashable, list[str]] = {}
        for name in devices:
            neighbours = around[name]
            unknown = any(
                isinstance(neighbour, tuple) and neighbour[0] in nameless
                for neighbour in neighbours
            )
            if neighbours and not unknown:
                facts = without_places(device_facts(self._own_devices[name]))
                alike.setdefault((facts, tuple(sorted(map(repr, neighbours)))), []).append(name)
        return alike


def oriented(links: Mapping[str, Facts], model: Mapping[str, Facts]) -> Mapping[str, Facts]:
    """Return links by their names, written from the end that a model writes them from."""
    turned = {name: " -- ".join(reversed(name.split(" -- "))) for name in links}
    return {
        name if name in model or turned[name] not in model else turned[name]: facts
        for name, facts in links.items()
    }


def _worded(entries: Mapping[str, Any]) -> Facts:
    return {key: Word(None, _text(value), "") for key, value in entries.items()}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return shortened(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    return str(value)


# --- a device and a cable -------------------------------------------------------------------------


def device_facts(device: Device) -> Facts:
    """Return what is known of a device: its part with each of its figures, and where it sits."""
    part = device.part
    facts: dict[str, Fact | None] = {
        "part": Word(None, part.name, part.source if part.place is None else ""),
        "pcie": part.slot,
        "ports": part.ports,
        "fabric": part.fabric,
        **part.figures,
        **{
            key: Word(flag, "", part.sources.get(key, part.source))
            for key, flag in part.flags.items()
        },
        **{
            key: Word(None, text, part.sources.get(key, part.source))
            for key, text in part.facts.items()
        },
        **_caps(part.peer_caps),
    }
    stated = {
        "label": device.label,
        "role": device.role,
        "slot": device.slot_name,
        "pci": ", ".join(device.pci),
        "rdma": ", ".join(device.rdma),
        "numa": ", ".join(map(str, device.numa)),
        "outside": "yes" * device.outside,
    }
    facts |= {key: Word(None, text, "") for key, text in stated.items() if text}
    return {key: fact for key, fact in facts.items() if fact is not None}


def cable_facts(cables: Iterable[tuple[str, str, Cable]]) -> Facts:
    """Return what joins two devices: which cables and how many, and their figures.

    Figures stand beside them where all are alike.
    """
    counts: Counter[str] = Counter()
    ends: list[str] = []
    different: dict[Hashable, Cable] = {}
    for a, b, cable in cables:
        lanes = f" x{cable.lanes}" if cable.lanes else ""
        counts[f"{cable.medium}{lanes}"] += cable.count
        ends.append(" to ".join(filter(None, (a, b))))
        different[without_places(replace(cable, count=1, text=""))] = cable
    texts = (f"{count}x {text}" if count > 1 else text for text, count in sorted(counts.items()))
    facts: dict[str, Fact | None] = {"cable": Word(None, ", ".join(texts), "")}
    if any(ends):
        facts["ends"] = Word(None, shortened(sorted(filter(None, ends))), "")
    if len(different) == 1:
        (cable,) = different.values()
        if cable.reach != "memory":
            facts["rate"] = cable.rate
        facts |= {"efficiency": cable.efficiency, "duplex": cable.duplex, **_caps(cable.p2p)}
    return {key: fact for key, fact in facts.items() if fact is not None}


def _caps(caps: PeerCaps | None) -> dict[str, Fact | None]:
    return {"p2p posted": caps.posted, "p2p non-posted": caps.non_posted} if caps else {}
