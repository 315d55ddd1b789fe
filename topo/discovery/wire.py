"""Links as lines: equal links of devices that follow one another become one line."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from topo.discovery.naming import selection, stem_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Wire:
    """One link between two named devices, and the comment that belongs to it."""

    a: str
    b: str
    cable: str
    said: str = ""


def wire_lines(wires: Iterable[Wire], everyone: Mapping[str, list[str]]) -> list[Wire]:
    """Return lines of a topology file: `a` and `b` are selections, `b` with its mode.

    Parameters
    ----------
    wires
        The links, in the order of their devices.
    everyone
        All names of the file by stem, in order.
    """
    lines: list[Wire] = []
    kinds: dict[tuple[str, str, str], list[Wire]] = {}
    for wire in wires:
        kinds.setdefault((stem_of(wire.a), stem_of(wire.b), wire.cable), []).append(wire)
    for group in kinds.values():
        lines += _lines(group, everyone)
    return lines


def _lines(group: list[Wire], everyone: Mapping[str, list[str]]) -> list[Wire]:
    whole = _as_one(group, everyone)
    if whole is not None:
        return [whole]
    lines = []
    for parent, of_parent in groupby(sorted(group, key=lambda wire: _key(wire.b)), lambda w: w.b):
        mine = list(of_parent)
        names = [wire.a for wire in mine]
        lines.append(Wire(selection(names, everyone), parent, mine[0].cable, _said(mine)))
    return lines


def _as_one(group: list[Wire], everyone: Mapping[str, list[str]]) -> Wire | None:
    """Return the one line that makes exactly these links, `None` when there is none."""
    children, parents = [wire.a for wire in group], [wire.b for wire in group]
    above = sorted(set(parents), key=_key)
    below = sorted(set(children), key=_key)
    cable, said = group[0].cable, _said(group)
    if stem_of(children[0]) == stem_of(parents[0]):
        mesh = sorted({*children, *parents}, key=_key)
        pairs = {frozenset((wire.a, wire.b)) for wire in group}
        if len(mesh) > 2 and len(pairs) == len(group) == len(mesh) * (len(mesh) - 1) // 2:  # noqa: PLR2004
            every = selection(mesh, everyone)
            return Wire(every, f"{every} all to all", cable, said)
        if len(group) == 1:
            return group[0]
        if set(children) & set(parents):
            return None
    if len(above) == 1 and len(below) == len(group):
        return Wire(selection(below, everyone), above[0], cable, said)
    if len(below) == 1 and len(above) == len(group):
        return Wire(below[0], selection(above, everyone), cable, said)
    if len(below) != len(group) or len(group) % len(above):
        return None
    ordered = sorted(group, key=lambda wire: _key(wire.a))
    size = len(group) // len(above)
    if [wire.b for wire in ordered] != [name for name in above for _ in range(size)]:
        return None
    mode = " in blocks" if size > 1 else ""
    return Wire(selection(below, everyone), f"{selection(above, everyone)}{mode}", cable, said)


def _key(name: str) -> tuple[str, int]:
    stem = stem_of(name)
    return stem, int(name.removeprefix(stem) or 0)


def _said(wires: Iterable[Wire]) -> str:
    texts = list(dict.fromkeys(wire.said for wire in wires if wire.said))
    return texts[0] if len(texts) == 1 else f"{texts[0]} and others" if texts else ""
