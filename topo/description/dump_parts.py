"""Parts, devices, cables and media back into plain values: what differs from what they are like."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.keys import KEYS
from topo.catalogue.load import catalogue
from topo.units import spell_rate, spell_ratio, spell_size, spell_transfer_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from topo.catalogue.keys import Key, Quantity
    from topo.catalogue.part import (
        Cable,
        Figure,
        FigureKind,
        Medium,
        Part,
        PeerCap,
        PeerCaps,
        Ports,
        Slot,
    )
    from topo.description.description import Device


Plain = dict[str, Any]
Usual = tuple[str, "FigureKind"]
# A source that is the place of the figure itself, which a new document has elsewhere.
_HERE: Final = re.compile(r".*:[0-9]+")
_PLAIN: Final[Usual] = ("", "quoted")
_SPELL: Final[dict[str, Callable[[float], str]]] = {
    "rate": spell_rate,
    "size": spell_size,
    "ratio": spell_ratio,
    "transfer-rate": spell_transfer_rate,
}


# --- values ---------------------------------------------------------------------------------------


def figure_value(
    figure: Figure, quantity: Quantity, *, kind: FigureKind = "quoted", source: str = ""
) -> Any:
    """Return a figure as YAML writes it: plain, or with its source and kind.

    Parameters
    ----------
    figure, quantity
        The figure and what it is.
    kind, source
        What the mapping around it says of all its figures.
    """
    return _sourced(_number(figure.value, quantity), figure.source, figure.kind, (source, kind))


def _number(value: float | None, quantity: Quantity) -> Any:
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "unlimited"
    return _SPELL[quantity](value) if quantity in _SPELL else int(value)


def _sourced(text: Any, source: str, kind: FigureKind, usual: Usual = _PLAIN) -> Any:
    """Return a value with its source and kind, or alone where those are the usual ones."""
    plain = source == usual[0] if usual[0] else not source or _HERE.fullmatch(source)
    if plain and kind == usual[1]:
        return text
    found = {"value": text, "source": source} if source else {"value": text}
    return found if kind in (usual[1], "formula") else {**found, "kind": kind}


def _flag(value: bool | None) -> str:  # noqa: FBT001  (a flag's own value)
    return "unknown" if value is None else "yes" if value else "no"


def _slot(slot: Slot, usual: Usual) -> Any:
    text = str(slot.generation) + (f" x{slot.lanes}" if slot.lanes else "")
    return _sourced(text, slot.source, slot.kind, usual)


def _ports(ports: Ports, base: Ports | None, usual: Usual) -> Any:
    """Return ports; a count alone where what the ports are comes from the base."""
    text: Any = "unknown" if ports.count is None else ports.count
    inherited = base is not None and (ports.rate, ports.medium) == (base.rate, base.medium)
    if ports.count is not None and not inherited:
        if ports.medium is not None:
            text = f"{ports.count}x {_medium_text(ports.medium, ports.rate)}"
        elif ports.rate is not None:
            text = f"{ports.count}x {_number(ports.rate.value, 'rate')}"
    return _sourced(text, ports.source, ports.kind, usual)


def _medium_text(name: str, rate: Figure | None) -> str:
    """Return a medium with the rate that it has to say: ``xgmi 64 GB/s``."""
    medium = catalogue().media.get(name)
    if medium is not None and medium.rate is not None:
        return name
    return f"{name} {_number(rate.value if rate else None, 'rate')}"


def _caps(caps: PeerCaps, usual: Usual = _PLAIN) -> Plain:
    both = {"posted": caps.posted, "non-posted": caps.non_posted}
    return {name: _cap(cap, usual) for name, cap in both.items() if cap is not None}


def _cap(cap: PeerCap, usual: Usual) -> Any:
    text = str(_number(cap.rate.value, "rate")) + " per flow" * cap.per_flow
    return _sourced(text, cap.rate.source, cap.rate.kind, usual)


# --- parts ----------------------------------------------------------------------------------------


def part_value(part: Part, like: str, own: Mapping[str, Part]) -> Plain:
    """Return a part of a file's own.

    Parameters
    ----------
    part
        The part.
    like
        The part that it started from, or nothing.
    own
        All parts of the file.
    """
    built_in = catalogue().parts
    base = built_in.get(like) if like == part.name or like not in own else own[like]
    start = {"like": like} if base is not None else {"kind": part.kind}
    return {**start, **_differences(part, base)}


def device_value(device: Device, own: Mapping[str, Part]) -> Any:
    """Return a device: its part alone, or with what it says of itself."""
    part = device.part
    base = own.get(part.name) or catalogue().parts.get(part.name)
    said: Plain = {
        "label": device.label,
        "role": device.role,
        "slot": device.slot_name,
        "pci": device.pci[0] if len(device.pci) == 1 else list(device.pci),
        "rdma": device.rdma[0] if len(device.rdma) == 1 else list(device.rdma),
        "numa": list(device.numa),
        "outside": "yes" if device.outside else "",
    }
    entries = {key: value for key, value in said.items() if value}
    entries |= _differences(part, base)
    return {"part": part.name, **entries} if entries else part.name


def _differences(part: Part, base: Part | None) -> Plain:
    """Return the keys in which a part differs from its base, in the table's order."""
    found: Plain = {}
    if part.title != (base.title if base else ""):
        found["title"] = part.title
    own_source = part.source if part.source != (base.source if base else "") else ""
    for key in KEYS.values():
        value = _difference(part, base, key, (own_source, "quoted"))
        if value is not None:
            found[key.name] = value
    return {**found, "source": own_source} if own_source else found


def _difference(part: Part, base: Part | None, key: Key, usual: Usual) -> Any:
    """Return the value of one key, or `None` where the base has the same."""
    if key.quantity == "slot":
        changed = part.slot is not None and part.slot != (base and base.slot)
        return _slot(part.slot, usual) if changed and part.slot else None
    if key.quantity == "ports":
        ports = part.ports if key.name == "ports" else part.fabric
        other = (base.ports if key.name == "ports" else base.fabric) if base else None
        return _ports(ports, other, usual) if ports is not None and ports != other else None
    if key.quantity == "caps" and part.peer_caps and part.peer_caps != (base and base.peer_caps):
        return _caps(part.peer_caps, usual)
    if key.quantity in ("flag", "caps", "text"):
        return _word(part, base, key.name, usual)
    figure = part.figures.get(key.name)
    if figure is None or (base is not None and base.figures.get(key.name) == figure):
        return None
    return figure_value(figure, key.quantity, source=usual[0])


def _word(part: Part, base: Part | None, name: str, usual: Usual) -> Any:
    """Return a flag or a text with its source, or `None` where the base has the same."""
    values, others = (
        {**each.facts, **{key: _flag(value) for key, value in each.flags.items()}} if each else {}
        for each in (part, base)
    )
    if name not in values or values[name] == others.get(name):
        return None
    source = part.sources.get(name, "")
    return _sourced(values[name], source, "quoted", usual if source else _PLAIN)


# --- cables and media -----------------------------------------------------------------------------


def cable_value(cable: Cable, *shelves: Mapping[str, Medium]) -> Any:
    """Return a cable: its shorthand, or a mapping where it has figures of its own."""
    medium = next((shelf[cable.medium] for shelf in shelves if cable.medium in shelf), None)
    own: Plain = {}
    if cable.efficiency is not None and cable.efficiency != (medium.efficiency if medium else None):
        own["efficiency"] = figure_value(cable.efficiency, "ratio")
    if cable.p2p is not None:
        own["p2p"] = _caps(cable.p2p)
    return {"medium": cable.text, **own} if own else cable.text


def medium_value(medium: Medium) -> Plain:
    """Return a medium of a file's own, with everything that it says."""
    base = catalogue().media.get(medium.name)
    source = medium.source if base is None or medium.source != base.source else ""
    found: Plain = {"title": medium.title, "reach": medium.reach}
    figures: dict[str, tuple[Figure | None, Quantity]] = {
        "transfer-rate": (medium.transfer_rate if medium.encoding else None, "transfer-rate"),
        "rate": (medium.rate if not medium.encoding else None, "rate"),
        "bytes-per-transfer": (medium.bytes_per_transfer, "count"),
        "efficiency": (medium.efficiency, "ratio"),
    }
    for key, (figure, quantity) in figures.items():
        if figure is not None:
            found[key] = figure_value(figure, quantity, source=source)
    found |= {"encoding": medium.encoding, "source": source}
    if medium.rate is not None and not medium.encoding:
        found["per-lane"] = _flag(medium.per_lane)
    return {key: value for key, value in found.items() if value}
