"""What the caller changes while a file is read: ``--set slot1.part=connectx-8``.

A change is sorted by its target first, then laid into the tree where its target stands, so that it
meets the same rules as if it had been written there. So is another device like one that is there,
cabled alike (``--set slot3=slot1``): `devices` and `links` copy the entry and the cables.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import field, replace
from itertools import chain
from typing import Final

from topo.catalogue.fields import FIELDS
from topo.description.description import Override
from topo.description.names import Names, stem_of
from topo.description.python_values import node_of
from topo.document.nodes import Mapping, Node, Scalar, Sequence
from topo.document.parse import parse
from topo.errors import Finding, Place, UnknownNameError
from topo.phrases import did_you_mean
from topo.records import dataclass

_FILE: Final = "--set"
# Keys of devices, parts and media under which `{value: ..., source: ...}` may stand.
_FIGURES: Final = frozenset(FIELDS) | {"rate"}
_TITLES: Final = ("name", "title")
_SECTIONS: Final = ("settings", "parts", "media", "fabrics", "workloads", "data-paths")


@dataclass(frozen=True, slots=True)
class Change:
    """One override: the keys that lead to the value below its target, and the value."""

    target: str
    keys: tuple[Scalar, ...]
    value: Node

    @property
    def place(self) -> Place:
        """Where the target stands, or the value where that was said elsewhere."""
        place = self.value.place
        return Place(_FILE, place.line, 1) if place.file == _FILE else place


@dataclass(frozen=True, slots=True)
class Changes:
    """Overrides by what they change: devices by name, sections by name, links in a list.

    `made` may be of switches that a fabric makes, which are not there yet (`made_changes`).
    """

    devices: dict[str, list[Change]] = field(default_factory=dict)
    sections: dict[str, list[Change]] = field(default_factory=dict)
    links: list[Change] = field(default_factory=list)
    made: list[Change] = field(default_factory=list)


def split_copies(
    overrides: MappingOf[str, Override], devices: Iterable[str]
) -> tuple[dict[str, str], dict[str, Override]]:
    """Return the copies, ``{new: model}``, and the overrides that are none.

    An override is a copy when its target is one new name and its value a device of the file, or
    a copy made before it.
    """
    names = set(devices)
    copies: dict[str, str] = {}
    changes: dict[str, Override] = {}
    for target, value in overrides.items():
        is_new = not set(". ") & set(target) and target not in (*_TITLES, *names)
        model = value.text if isinstance(value, Scalar) else value
        if is_new and isinstance(model, str) and model in names:
            copies[target] = model
            names.add(target)
        else:
            changes[target] = value
    return copies, changes


def read_changes(overrides: MappingOf[str, Override]) -> tuple[Change, ...]:
    """Read ``{"slot1.part": "connectx-8"}``; each key and value knows its place in ``--set``.

    A value that is a node already keeps its own place.
    """
    changes = []
    for line, (target, value) in enumerate(overrides.items(), start=1):
        key = target.strip()
        node = value if isinstance(value, Scalar | Sequence | Mapping) else None
        if node is None:
            text = value.strip() if isinstance(value, str) else ""
            place = Place(_FILE, line, len(key) + 2, len(key) + 2 + len(text))
            if text[:1] in ("[", "{"):  # YAML's short form of a list or a mapping
                node = _moved(parse(text, name=_FILE).root, place)
            else:
                node = node_of(text if isinstance(value, str) else value, place)
        name, dot, below = key.partition(".")
        words = below.split(".") if dot else []
        if " -- " in key:
            name, words, node = _inside_machine(key, node)
        elif name in ("media", "parts") and len(words) > 1:  # `parts.acme.v2.chip`
            words = below.rsplit(".", 1)
        elif name == "devices":
            name, *words = words or [""]
        place = Place(_FILE, line, 1, len(key) + 1)
        changes.append(Change(name, tuple(Scalar(word, place) for word in words), node))
    return tuple(changes)


def _inside_machine(target: str, value: Node) -> tuple[str, list[str], Node]:
    """Return target, keys and value of a change to a link.

    Both ends in one used machine, ``node.slot1 -- node.cpu1``, make it a change of that machine.
    """
    machines = {side.strip().partition(".")[0] for side in target.split(" -- ") if "." in side}
    if len(machines) != 1 or any("." not in side for side in target.split(" -- ")):
        return target, [], value
    machine = machines.pop()

    def inside(text: str) -> str:
        return " -- ".join(side.strip().removeprefix(f"{machine}.") for side in text.split(" -- "))

    if isinstance(value, Scalar) and " -- " in value.text:
        value = replace(value, text=inside(value.text))
    return machine, [inside(target)], value


def _moved(node: Node, place: Place) -> Node:
    if isinstance(node, Scalar):
        return Scalar(node.text, place, node.quoted)
    if isinstance(node, Mapping):
        entries = ((Scalar(key.text, place), _moved(value, place)) for key, value in node)
        return Mapping(tuple(entries), place)
    return Sequence(tuple(_moved(item, place) for item in node.items), place)


def with_entry(mapping: Mapping, keys: tuple[Scalar, ...], value: Node) -> Mapping:
    """Return the mapping with a value under keys, of which each leads into the one before."""
    key, below = keys[0], keys[1:]
    old = mapping.get(key.text)
    if below:
        inner = old if isinstance(old, Mapping) else Mapping((), key.place)
        value = with_entry(inner, below, value)
    entries = [(key, value) if name.text == key.text else (name, node) for name, node in mapping]
    if old is None:
        entries.append((key, value))
    return Mapping(tuple(entries), mapping.place)


# --- targets --------------------------------------------------------------------------------------


def sort_changes(
    changes: Iterable[Change], *, names: Names, entries: MappingOf[str, tuple[str, ...]]
) -> Changes:
    """Sort overrides by what they change.

    Parameters
    ----------
    changes
        What `read_changes` gave.
    names
        The devices.
    entries
        For each section that has entries of one's own naming, their names.

    Raises
    ------
    UnknownNameError
        If a target is no device, workload, data path or section.
    """
    by_target = Changes()
    fabrics = entries["fabrics"]
    unknown: list[Finding] = []
    for change in changes:
        if " -- " in change.target:
            by_target.links.append(change)
        elif devices := names.matching(change.target) if change.keys else ():
            sourced = _sourced(change)
            for name in devices:
                by_target.devices.setdefault(name, []).append(sourced)
        elif (section := _section_change(change, entries)) is not None:
            by_target.sections.setdefault(section.target, []).append(section)
        elif change.keys and change.target.startswith(tuple(f"{name}-" for name in fabrics)):
            by_target.made.append(change)
        else:
            unknown.append(_unknown(change, names, entries))
    if unknown:
        raise UnknownNameError(unknown)
    return by_target


def made_changes(changes: Iterable[Change], switches: Names) -> dict[str, list[Change]]:
    """Return the changes of each switch that a fabric made.

    Raises
    ------
    UnknownNameError
        If a target is none of `switches`.
    """
    by_name: dict[str, list[Change]] = {}
    for change in changes:
        matched = switches.matching(change.target)
        if not matched:
            message, advice = switches.absent([change.target])
            raise UnknownNameError(
                Finding("unknown-name", message, place=change.place, help=advice)
            )
        for name in matched:
            by_name.setdefault(name, []).append(_sourced(change))
    return by_name


def inherit(changes: Changes, copies: MappingOf[str, str], not_copied: Iterable[str]) -> Changes:
    """Return the changes with those of each model for its copies too, before their own.

    Parameters
    ----------
    changes
        What `sort_changes` gave.
    copies
        Models by the name of their copy.
    not_copied
        The keys that belong to one device only, and so to no copy of it.
    """
    devices = dict(changes.devices)
    for name, model in copies.items():
        of_model = [
            change for change in devices.get(model, ()) if change.keys[0].text not in not_copied
        ]
        if of_model:
            devices[name] = [*of_model, *devices.get(name, ())]
    return replace(changes, devices=devices)


def _sourced(change: Change) -> Change:
    """Return a change whose figure has its own source, lest it take that of the part around it."""
    value = change.value
    if not isinstance(value, Scalar) or not any(key.text in _FIGURES for key in change.keys):
        return change
    place = value.place
    source = source_of(place)
    entries = ((Scalar("value", place), value), (Scalar("source", place), Scalar(source, place)))
    return replace(change, value=Mapping(entries, place))


def source_of(place: Place) -> str:
    """Return the source of a figure that a change says, for whoever reads it."""
    return _FILE if place.file == _FILE else f"{place.file}:{place.line}"


def _section_change(change: Change, entries: MappingOf[str, tuple[str, ...]]) -> Change | None:
    """Return the change with its section as target (none for a title), or `None` without one."""
    target, keys = change.target, change.keys
    if not keys:
        title = (Scalar(target, change.place),)
        return Change("", title, change.value) if target in _TITLES else None
    if target == "settings":
        return change
    if target in entries:
        if keys[0].text not in entries[target] or len(keys) == 1:
            return None
        return _sourced(change) if target in ("parts", "media") else change
    for section in ("workloads", "data-paths", "fabrics"):
        if target in entries[section]:
            return Change(section, (Scalar(target, change.place), *keys), change.value)
    return None


def _unknown(change: Change, names: Names, entries: MappingOf[str, tuple[str, ...]]) -> Finding:
    stems = dict.fromkeys(stem_of(name)[0] for name in names)
    sections = (entries[section] for section in ("fabrics", "workloads", "data-paths"))
    words = [*names, *stems, *chain(*sections), *_SECTIONS]
    target = change.target
    if not change.keys and target in words:
        message = f"`{target}` is not something that one value can stand for"
        key = "part=..." if target in (*names, *stems) else "key=value"
        advice = f"name a key of it: `{target}.{key}`"
    elif target in entries and change.keys:
        message = f"there is no `{change.keys[0].text}` under `{target}:`"
        advice = did_you_mean(change.keys[0].text, entries[target])
    else:
        message, advice = names.absent([target])
        if ";" not in message:  # which says what there is of that stem
            message += ", and no workload or data path"
            advice = did_you_mean(target, words) or advice
    return Finding("unknown-name", message, place=change.place, help=advice)
