"""The `devices:` of a file: ranges expanded, lists dealt out, parts found and varied, and checked.

Here are also the devices that a caller adds by copying one that is there (``--set slot3=slot1``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Table
from functools import partial
from typing import Any, Final

from topo.catalogue.fields import FIELDS
from topo.catalogue.part import Medium, Part
from topo.catalogue.parts import OTHER_PARTS, find_part, vary_part
from topo.catalogue.values import rejoin
from topo.description import keys
from topo.description.description import Device
from topo.description.locating import builtin_names
from topo.description.names import MOST, expand, numbers_in, ranged, stem_of
from topo.description.overrides import Change, with_entry
from topo.document.nodes import Mapping, Node, Report, Scalar, Sequence
from topo.errors import Place, UnitError
from topo.phrases import counted, did_you_mean, listed
from topo.records import dataclass
from topo.units import parse_flag

_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", re.IGNORECASE)
_PART_KEYS: Final = (*FIELDS, "source", "source-kind", "title")
_HABITS: Final = ("model", "type", "kind", "like", "is")  # what people write for `part`
_COUNTS: Final = ("count", "number", "quantity", "num", "amount", "copies")  # and for a range
_FEW = re.compile("[1-9][0-9]{0,4}")
_NOUNS: Final = {
    "pci": "address",
    "rdma": "name",
    "numa": "range",
    "slot": "slot",
    "label": "label",
}
_OF_A_PART: Final = ("kind", "like")  # what makes a part
_MOST_NUMA: Final = 1024  # of one CPU: as many as Linux knows
# What belongs to one device only, and so not to a copy of it.
NOT_COPIED: Final = frozenset({"pci", "rdma", "label", "slot", "numa"})
# What a kind must state, by number, `unknown` or `unlimited`: what is not there is no figure.
NEEDED: Final = {
    "storage": ("read", "write"),
    "nvme": ("read", "write"),
    "hba": ("read", "write"),
    "nic": ("chip",),
    "dpu": ("chip",),
    "cxl-memory": ("bus",),
    "memory": ("channels", "transfer-rate", "bytes-per-transfer"),  # or its bus
}


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where parts and media are looked up: the file's own over the built-in ones."""

    parts: Table[str, Part]
    media: Table[str, Medium]


@dataclass(frozen=True, slots=True)
class Group:
    """One entry of `devices:` and the devices that it defines."""

    key: Scalar
    names: tuple[str, ...]
    value: Node

    @property
    def is_range(self) -> bool:
        """Whether a list in it deals out one item a device."""
        return "[" in self.key.text


# --- names ----------------------------------------------------------------------------------------


def expand_devices(node: Node | None, report: Report) -> tuple[Group, ...]:
    """Return the entries of `devices:` with the names that each defines."""
    mapping = keys.mapping_of(node, "`devices:`", report, help="write `name: part`, one a line")
    groups: list[Group] = []
    first: dict[str, Scalar] = {}
    for key, value in mapping or ():
        if keys.is_extension(key.text):
            continue
        names = expand(key, report)
        if len(first) + len(names) > MOST:
            message = f"with `{key.text}` the file names more than {MOST} devices"
            report.add(key, "huge-range", message, help="write smaller ranges")
            break
        repeated: dict[Place, list[str]] = {}
        for name in names:
            if name in first:
                repeated.setdefault(first[name].place, []).append(name)
            first.setdefault(name, key)
        for place, again in repeated.items():
            report.add(
                key,
                "defined-twice",
                f"{listed(ranged(again))} {'is' if len(again) == 1 else 'are'} defined twice",
                help="a device stands under one key only",
                notes=[f"first defined on line {place.line}"],
            )
        groups.append(Group(key, names, value))
    _check_names(first, report)
    return tuple(groups)


def _check_names(first: dict[str, Scalar], report: Report) -> None:
    """Report names that differ only in case (the first), and names that are also a stem."""
    lower: dict[str, str] = {}
    for name, key in first.items():
        earlier = lower.setdefault(name.lower(), name)
        if earlier != name:
            message = f"{name} and {earlier} differ only in case"
            note = f"{earlier} is defined on line {first[earlier].place.line}"
            report.add(key, "case-clash", message, help="give one another name", notes=[note])
            break
    stems = {stem_of(name)[0]: name for name in reversed(first) if stem_of(name)[1] >= 0}
    for name in (name for name in first if name in stems):
        message = f"`{name}` is a device and also means every {name} with a number"
        note = f"{stems[name]} is defined on line {first[stems[name]].place.line}"
        report.add(first[name], "name-clash", message, help="give it a number too", notes=[note])


def copied_groups(copies: Table[str, str], groups: Iterable[Group]) -> tuple[Group, ...]:
    """Return one group for each copy, with what its model's entry says of any of its kind."""
    new_groups: dict[str, Group] = {}
    for number, (name, model) in enumerate(copies.items(), start=1):
        group = next(group for group in (*groups, *new_groups.values()) if model in group.names)
        value, at = group.value, group.names.index(model)
        if isinstance(value, Mapping):
            entries = (
                (key, _dealt(node, at, group)) for key, node in value if key.text not in NOT_COPIED
            )
            value = Mapping(tuple(entries), value.place)
        key = Scalar(name, Place("--set", number, 1, len(name) + 1))
        new_groups[name] = Group(key, (name,), _dealt(value, at, group))
    return tuple(new_groups.values())


def _dealt(node: Node, at: int, group: Group) -> Node:
    """Return what a list on a range gives the device at a position; anything else is for all."""
    return node.items[at] if group.is_range and isinstance(node, Sequence) else node


# --- entries --------------------------------------------------------------------------------------


def read_devices(
    groups: Iterable[Group], changes: Table[str, Iterable[Change]], shelf: Shelf, report: Report
) -> tuple[Device, ...]:
    """Return every device with its own variant of its part."""
    reader = _DeviceReader(shelf, report)
    devices: list[Device] = []
    for group in groups:
        mapping = _as_mapping(group, report)
        if mapping is None:
            continue
        for name, entries in zip(group.names, deal(group, mapping, report), strict=False):
            changed = entries
            for change in changes.get(name, ()):
                changed = with_entry(changed, change.keys, change.value)
            device = reader.read(name, group.key.place, changed)
            if device is not None:
                devices.append(device)
    return tuple(devices)


def _as_mapping(group: Group, report: Report) -> Mapping | None:
    """Return a group's entries; a text, or a list on a range, is short for its part."""
    value = group.value
    if isinstance(value, Mapping):
        return rejoin(value, (*keys.DEVICE, *_PART_KEYS))
    if isinstance(value, Sequence) and not group.is_range:
        message = f"{group.key.text} is a part or a mapping, not a list"
        report.add(value, "wrong-shape", message)
        return None
    return Mapping(((Scalar("part", group.key.place), value),), value.place)


def deal(group: Group, mapping: Mapping, report: Report) -> list[Mapping]:
    """Return one mapping a device; each list in a range's mapping gives every device one item.

    None at all when the parts themselves could not be dealt out.
    """
    count = len(group.names)
    lists = {
        key.text: value.items
        for key, value in mapping
        if group.is_range and isinstance(value, Sequence) and not keys.is_extension(key.text)
    }
    wrong = {name for name, items in lists.items() if len(items) != count}
    for key, value in mapping:
        if key.text not in wrong:
            continue
        length = len(lists[key.text])
        noun = _NOUNS.get(key.text, "value")
        nouns = noun if length == 1 else f"{noun}{'es' if noun.endswith('s') else 's'}"
        message = f"{length} {nouns} for {counted(count, 'device')}; "
        if without := group.names[length:]:
            message += f"{listed(ranged(without))} {'has' if len(without) == 1 else 'have'} none"
        else:
            extra = length - count
            message += f"the last {extra} belong{'s' * (extra == 1)} to none"
        help = f"a list on a range has one {noun} a device"
        report.add(value, "list-length", message, help=help)
    if "part" in wrong:
        return []
    if not lists:
        return [mapping] * count
    entries = [(key, value) for key, value in mapping if key.text not in wrong]
    return [
        Mapping(tuple((key, _dealt(value, at, group)) for key, value in entries), mapping.place)
        for at in range(count)
    ]


class _DeviceReader:
    """Reads devices; what several devices share is read, and complained about, once."""

    def __init__(self, shelf: Shelf, report: Report) -> None:
        self._shelf = shelf
        self._report = report
        self._values: dict[tuple[str, int], Any] = {}
        self._parts: dict[tuple[object, ...], Part | None] = {}
        self._refused: set[int] = set()
        self._numa = 0
        self._last: tuple[Mapping, Part | None, dict[str, Any]] | None = None

    def read(self, name: str, place: Place, entries: Mapping) -> Device | None:
        if self._last is None or self._last[0] is not entries:
            self._last = (entries, *self._part_and_values(name, entries))
        _, part, values = self._last
        return Device(name, part, place, **values) if part is not None else None

    def _part_and_values(self, name: str, entries: Mapping) -> tuple[Part | None, dict[str, Any]]:
        """Return the part, and the device's own values by field."""
        values: dict[str, Any] = {}
        figures: list[tuple[Scalar, Node]] = []
        for key, node in entries:
            if key.text in _READERS:
                # Nodes live as long as their document, so `id` tells them apart.
                at = (key.text, id(node))
                if at not in self._values:
                    self._values[at] = _READERS[key.text](node, f"`{key.text}`", self._report)
                    if key.text == "numa":
                        self._count_numa(node, at)
                if self._values[at] is not None:
                    values["slot_name" if key.text == "slot" else key.text] = self._values[at]
            elif key.text in _PART_KEYS:
                figures.append((key, node))
            elif (
                key.text != "part"
                and not keys.is_extension(key.text)
                and id(key) not in self._refused
            ):
                self._refused.add(id(key))
                message = f"`{key.text}` is not a key of a device"
                notes = [f"known keys: {', '.join(keys.DEVICE)}, and the figures of its part"]
                help = _near(key.text)
                if key.text in _COUNTS and isinstance(node, Scalar) and _FEW.fullmatch(node.text):
                    help = f"write a range: `{stem_of(name)[0]}[0-{int(node.text) - 1}]`"
                elif key.text in _OF_A_PART:
                    help += " A part of your own is made under `parts:`, and named here"
                self._report.add(key, "unknown-key", message, help=help, notes=notes)
        # The mapping itself may be dealt out and gone before the next is made.
        part_node = entries.get("part")
        shared = (
            entries.place if part_node is None else id(part_node),
            *((id(key), id(figure)) for key, figure in figures),
        )
        if shared not in self._parts:
            self._parts[shared] = self._part(name, part_node, entries, figures)
        return self._parts[shared], values

    def _count_numa(self, node: Node, at: tuple[str, int]) -> None:
        """Refuse what makes the file's NUMA nodes too many, and any after it."""
        before = self._numa
        self._numa += len(self._values[at])
        if self._numa > MOST:
            self._values[at] = ()
            if before <= MOST:
                message = f"with this the file has more than {MOST} NUMA nodes"
                self._report.add(node, "huge-range", message, help="write smaller ranges")

    def _part(
        self, name: str, node: Node | None, entries: Mapping, figures: list[tuple[Scalar, Node]]
    ) -> Part | None:
        if node is None and any(
            word in _near(key.text) for key, _ in entries for word in ("`part`", "`use`")
        ):
            return None  # reported already: `model` stands where `part` was meant
        if node is None:
            self._report.add(
                entries, "missing-key", f"{name} does not say its part", help=OTHER_PARTS
            )
            return None
        if keys.text_of(node, f"the part of {name}", self._report, help=OTHER_PARTS) is None:
            return None
        assert isinstance(node, Scalar)  # a text is a scalar's
        if node.text not in self._shelf.parts and node.text in builtin_names():
            message = f"`{node.text}` is a whole machine, not a part"
            self._report.add(node, "unknown-part", message, help=f"write `{{use: {node.text}}}`")
            return None
        part = find_part(node, self._shelf.parts, self._report)
        if part is None or not figures:
            return part
        return vary_part(part, figures, media=self._shelf.media, report=self._report)


def _near(key: str) -> str:
    """Return advice for a key that a device does not have."""
    return did_you_mean("part" if key in _HABITS else key, (*keys.DEVICE, *_PART_KEYS, "use"))


def _items(node: Node, what: str, parse: Callable[[str], Any], report: Report) -> tuple[Any, ...]:
    """Return what `parse` makes of each item of a list, or of a single text."""
    items = node.items if isinstance(node, Sequence) else (node,)
    values = [keys.value_of(item, what, parse, report) for item in items]
    return tuple(value for value in values if value is not None)


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        advice = "write it like 1b:00.0 or 0000:1b:00.0"
        raise UnitError("bad-address", f"`{text}` is not a PCI address", advice)
    return text.lower()


def _numa(node: Node, what: str, report: Report) -> tuple[int, ...]:
    nodes: dict[int, None] = {}
    parse = partial(numbers_in, most=_MOST_NUMA)
    for item in node.items if isinstance(node, Sequence) else (node,):
        nodes |= dict.fromkeys(keys.value_of(item, what, parse, report) or ())
        if len(nodes) > _MOST_NUMA:
            message = f"{what} of one CPU has more than {_MOST_NUMA} NUMA nodes"
            report.add(item, "huge-range", message, help="write a smaller range")
            return ()
    return tuple(nodes)


_READERS: Final[dict[str, Callable[[Node, str, Report], Any]]] = {
    "label": keys.text_of,
    "role": keys.text_of,
    "slot": keys.text_of,
    "pci": lambda node, what, report: _items(node, what, _address, report),
    "rdma": lambda node, what, report: tuple(
        text.text for text in keys.texts_of(node, what, report)
    ),
    "numa": _numa,
    "outside": lambda node, what, report: keys.value_of(node, what, parse_flag, report),
}


# --- what the devices say of themselves agrees ----------------------------------------------------


def check_devices(devices: tuple[Device, ...], report: Report) -> None:
    """Check that addresses and NUMA nodes have one owner and that figures are stated."""
    owners: dict[str, Device] = {}
    for device in devices:
        for address in device.pci:
            full = address if address.count(":") > 1 else f"0000:{address}"
            domain, _, within = full.partition(":")
            owner = owners.setdefault(f"{int(domain, 16):08x}:{within}", device)
            if owner is not device or device.pci.count(address) > 1:
                report.add(
                    device.place,
                    "duplicate-address",
                    f"the PCI address {address} is given twice: "
                    f"to {owner.name} and to {device.name}",
                    help="each PCI function has its own",
                    notes=[f"{owner.name} stands on line {owner.place.line}"],
                )
                break
    _check_numa(devices, report)
    _check_figures(devices, report)


def _check_numa(devices: tuple[Device, ...], report: Report) -> None:
    owners: dict[int, Device] = {}
    for device in devices:
        if device.numa and device.kind != "cpu":
            message = f"{device.name} is {keys.a_kind(device.kind)}, and NUMA nodes belong to a CPU"
            report.add(device.place, "misplaced-key", message, help="leave `numa:` out here")
            continue
        for number in device.numa:
            owner = owners.setdefault(number, device)
            if owner is not device:
                message = f"{owner.name} and {device.name} both have NUMA node {number}"
                report.add(
                    device.place,
                    "defined-twice",
                    message,
                    help="the numbers are the operating system's, each once: `numa: [0-3, 4-7]`",
                )
                break


def _check_figures(devices: tuple[Device, ...], report: Report) -> None:
    """Report figures that no one states: once for a part, naming the devices that lack them."""
    lacking: dict[tuple[str, tuple[str, ...]], list[Device]] = {}
    for device in devices:
        part = device.part
        needed = NEEDED.get(part.kind, ())
        if part.kind == "memory" and part.figure("bus") is not None:
            needed = ()
        if missing := tuple(key for key in needed if part.figure(key) is None):
            lacking.setdefault((part.name, missing), []).append(device)
    for (name, missing), without in lacking.items():
        first = without[0]
        choices = ["the figure", "`unknown` (results become `at most`)"]
        example = ""
        if any(FIELDS[key].unlimited for key in missing):
            choices.append("`unlimited` (it is not modelled)")
            if first.part.place is None:  # a shipped part; one of the file's own is changed there
                figures = ", ".join(f"{key}: unknown" for key in missing)
                example = f": `{first.name}: {{part: {name}, {figures}}}`"
        report.add(
            first.part.place or first.place,
            "missing-figure",
            f"`{name}` does not say its {listed(f'`{key}:`' for key in missing)}, and "
            f"{listed(ranged(device.name for device in without))} "
            f"need{'s' * (len(without) == 1)} it",
            help=f"write {listed(choices, 'or')}{example}",
        )
