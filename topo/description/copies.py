"""Another device like one that is there, cabled alike: ``--set slot3=slot1``.

A copy is an override, so it meets every rule of a device that the file itself names: free ports,
free lanes, one name for one thing. Its links are those of its model, once more; what belongs to
one device only (addresses, labels, slots) is not copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.description.description import End
from topo.description.devices import Group
from topo.document.nodes import Mapping, Scalar, Sequence
from topo.errors import Place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as MappingOf

    from topo.description.description import DescribedLink, Override
    from topo.document.nodes import Node


_ITS_OWN: Final = frozenset({"pci", "rdma", "label", "slot", "numa"})
_NOT_DEVICES: Final = frozenset({"name", "title"})


def split_copies(
    overrides: MappingOf[str, Override], groups: Iterable[Group]
) -> tuple[dict[str, str], dict[str, Override]]:
    """Return the copies, ``{new: model}``, and the overrides that are none.

    An override is a copy when its target is one new name and its value a device of the file, or
    a copy made before it.
    """
    known = {name for group in groups for name in group.names}
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


def copied_groups(copies: MappingOf[str, str], groups: Iterable[Group]) -> tuple[Group, ...]:
    """Return one group for each copy, with what its model's entry says of any of its kind."""
    made: dict[str, Group] = {}
    for number, (name, model) in enumerate(copies.items(), start=1):
        group = next(one for one in (*groups, *made.values()) if model in one.names)
        key = Scalar(name, Place("--set", number, 1, len(name) + 1))
        made[name] = Group(key, (name,), _said_of(group, model))
    return tuple(made.values())


def _said_of(group: Group, model: str) -> Node:
    """Return the model's own entry, dealt out of its range's lists."""
    at = group.names.index(model)

    def dealt(node: Node) -> Node:
        return node.items[at] if group.is_range and isinstance(node, Sequence) else node

    if not isinstance(group.value, Mapping):
        return dealt(group.value)
    entries = tuple((key, dealt(value)) for key, value in group.value if key.text not in _ITS_OWN)
    return Mapping(entries, group.value.place)


def copied_links(
    copies: MappingOf[str, str], links: tuple[DescribedLink, ...]
) -> tuple[DescribedLink, ...]:
    """Return `links` followed by those of each copy: its model's, in the next free ports."""
    found = list(links)
    for name, model in copies.items():
        found.extend(
            replace(link, a=_instead(link.a, model, name), b=_instead(link.b, model, name))
            for link in tuple(found)
            if model in (link.a.device, link.b.device)
        )
    return tuple(found)


def _instead(end: End, model: str, name: str) -> End:
    return End(name, end.side) if end.device == model else end
