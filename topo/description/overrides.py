"""What the caller changes while a file is read: ``--set slot1.part=connectx-8``.

A change is sorted by its target first, then laid into the tree where its target stands, so that it
meets the same rules as if it had been written there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.fields import FIELDS
from topo.description.shape import node_of
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.document.parse import parse
from topo.errors import Finding, Place, UnknownNameError
from topo.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as MappingOf

    from topo.description.description import Override
    from topo.description.names import Names
    from topo.document.nodes import Node


FILE: Final = "--set"
# Keys of devices, parts and media under which `{value: ..., source: ...}` may stand.
_FIGURES: Final = frozenset(FIELDS) | {"rate"}
_NODES: Final = (Scalar, Sequence, Mapping)
_NOT_DEVICES: Final = frozenset({"name", "title"})
_SECTIONS: Final = ("settings", "parts", "media", "workloads", "data-paths")


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
        return Place(FILE, place.line, 1) if place.file == FILE else place


@dataclass(frozen=True, slots=True)
class Changes:
    """Overrides by what they change: devices and workloads by name, sections by name and entry."""

    devices: dict[str, list[Change]] = field(default_factory=dict)
    sections: dict[str, list[Change]] = field(default_factory=dict)
    links: list[Change] = field(default_factory=list)


def read_changes(overrides: MappingOf[str, Override]) -> tuple[Change, ...]:
    """Read ``{"slot1.part": "connectx-8"}``; each key and value knows its place in ``--set``.

    A value that is a node already keeps its own place.
    """
    return tuple(
        _read_change(key.strip(), value, number)
        for number, (key, value) in enumerate(overrides.items(), start=1)
    )


def _read_change(key: str, given: object, line: int) -> Change:
    text = given.strip() if isinstance(given, str) else ""
    place = Place(FILE, line, len(key) + 2, len(key) + 2 + len(text))
    if isinstance(given, str):
        value = _value(text, place)
    else:
        value = given if isinstance(given, _NODES) else node_of(given, place)
    if " -- " in key:
        return Change(key, (), value)
    section, dot, rest = key.partition(".")
    if section in ("media", "parts") and "." in rest:
        name, _, last = rest.rpartition(".")
        words = [section, name, last]
    elif section == "devices":
        words = rest.split(".")
    else:
        words = [section, *rest.split(".")] if dot else [section]
    place = Place(FILE, line, 1, len(key) + 1)
    keys = tuple(Scalar(word, place) for word in words[1:])
    return Change(words[0], keys, value)


def _value(text: str, place: Place) -> Node:
    """Return the value's node: a list or mapping in YAML's short form, else the text as it is."""
    if text[:1] not in ("[", "{"):
        return Scalar(text, place)
    return _moved(parse(text, name=FILE).root, place)


def _moved(node: Node, place: Place) -> Node:
    if isinstance(node, Scalar):
        return Scalar(node.text, place, node.quoted)
    if isinstance(node, Mapping):
        entries = ((Scalar(key.text, place), _moved(value, place)) for key, value in node)
        return Mapping(tuple(entries), place)
    return type(node)(tuple(_moved(item, place) for item in node.items), place)


def with_entry(mapping: Mapping, change: Change) -> Mapping:
    """Return the mapping with a change's value under its keys."""
    return _with(mapping, change.keys, change.value)


def _with(mapping: Mapping, keys: tuple[Scalar, ...], value: Node) -> Mapping:
    key, rest = keys[0], keys[1:]
    old = mapping.get(key.text)
    if rest:
        below = old if isinstance(old, Mapping) else Mapping((), key.place)
        value = _with(below, rest, value)
    kept = [(key, value) if name.text == key.text else (name, inner) for name, inner in mapping]
    if old is None:
        kept.append((key, value))
    return Mapping(tuple(kept), mapping.place)


def split_copies(
    overrides: MappingOf[str, Override], devices: Iterable[str]
) -> tuple[dict[str, str], dict[str, Override]]:
    """Return the copies, ``{new: model}``, and the overrides that are none.

    An override is a copy when its target is one new name and its value a device of the file, or
    a copy made before it.
    """
    known = set(devices)
    copies: dict[str, str] = {}
    rest: dict[str, Override] = {}
    for target, value in overrides.items():
        plain = not set(". ") & set(target) and target not in known | _NOT_DEVICES
        if plain and isinstance(value, str) and value in known:
            copies[target] = value
            known.add(target)
        else:
            rest[target] = value
    return copies, rest


# --- targets --------------------------------------------------------------------------------------


def sort_changes(
    changes: Iterable[Change], *, names: Names, entries: MappingOf[str, Iterable[str]]
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
    known = {section: tuple(words) for section, words in entries.items()}
    found = Changes()
    unknown: list[Finding] = []
    for change in changes:
        if " -- " in change.target:
            found.links.append(change)
        elif devices := names.matching(change.target) if change.keys else ():
            sourced = _sourced(change)
            for name in devices:
                found.devices.setdefault(name, []).append(sourced)
        elif (section := _section_change(change, known)) is not None:
            found.sections.setdefault(section.target, []).append(section)
        else:
            unknown.append(_unknown(change, names, known))
    if unknown:
        raise UnknownNameError(unknown)
    return found


def _sourced(change: Change) -> Change:
    """Return a change whose figure has its own source, lest it take that of the part around it."""
    value = change.value
    if not isinstance(value, Scalar) or not any(key.text in _FIGURES for key in change.keys):
        return change
    place = value.place
    source = FILE if place.file == FILE else f"{place.file}:{place.line}"
    entries = ((Scalar("value", place), value), (Scalar("source", place), Scalar(source, place)))
    return replace(change, value=Mapping(entries, place))


def _section_change(change: Change, known: MappingOf[str, Iterable[str]]) -> Change | None:
    """Return the change with its section as target, or `None` when there is none."""
    if not change.keys:
        plain = change.target in ("name", "title")
        return Change("", (Scalar(change.target, change.place),), change.value) if plain else None
    if change.target == "settings":
        return change
    if change.target in known:
        known_entry = change.keys[0].text in known[change.target] and len(change.keys) > 1
        own_figures = change.target in ("parts", "media")
        return (_sourced(change) if own_figures else change) if known_entry else None
    for section in ("workloads", "data-paths"):
        if change.target in known[section]:
            keys = (Scalar(change.target, change.place), *change.keys)
            return Change(section, keys, change.value)
    return None


def _unknown(change: Change, names: Names, known: MappingOf[str, Iterable[str]]) -> Finding:
    words = [*names, *known["workloads"], *known["data-paths"], *_SECTIONS]
    target = change.target
    if not change.keys and target in words:
        message = f"`{target}` is not something that one value can stand for"
        advice = f"name a key of it: `{target}.key=value`"
    elif target in known and change.keys:
        message = f"there is no `{change.keys[0].text}` under `{target}:`"
        advice = did_you_mean(change.keys[0].text, known[target])
    else:
        message, advice = names.absent([target])
        message += ", and no workload or data path" * (";" not in message)
        advice = did_you_mean(target, words) or advice
    return Finding("unknown-name", message, place=change.place, help=advice)
