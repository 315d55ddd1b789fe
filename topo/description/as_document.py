"""A description back into a plain document, of mappings, lists and texts.

`build(to_document(description))` gives the same description, apart from places and from sources
that are a file and its line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from topo.catalogue import fields
from topo.catalogue.needs import Need, needs
from topo.catalogue.part import Cable, Figure, FigureKind, Medium, Part, PeerCaps, Ports
from topo.catalogue.parts import catalogue
from topo.description.description import (
    Axis,
    DataPath,
    Description,
    Device,
    Measurement,
    ModelNeed,
    Use,
    Workload,
)
from topo.description.keys import SETTINGS
from topo.document.nodes import plain
from topo.units import spell_duration, spell_rate, spell_ratio, spell_size

Plain = dict[str, Any]
# The source and kind that a mapping states for all the figures in it.
Usual = tuple[str, "FigureKind"]

# A source that is the place of the figure itself, which a new document has elsewhere.
_OWN_PLACE: Final = re.compile(r".*:[0-9]+")
_QUOTED: Final[Usual] = ("", "quoted")


def to_document(description: Description) -> Plain:
    """Return a description as mappings, lists and texts of the YAML's own shape.

    Parameters
    ----------
    description
        The description; comments and findings are left out.

    Examples
    --------
    >>> from topo.description.loading import loads
    >>> to_document(loads("{topo: 1, name: box, devices: {'gpu[0-1]': l40s}}"))
    {'topo': 1, 'name': 'box', 'devices': {'gpu0': 'l40s', 'gpu1': 'l40s'}}
    """
    description = description.folded or description
    media, parts = description.media, description.parts
    come_along = {
        name
        for use in description.uses
        for name in (*use.template.data_paths, *use.template.data_path_overrides)
    }
    settings = {key: description.settings.stated(key) for key in SETTINGS}
    sections: Plain = {
        "topo": 1,
        "name": description.name,
        "title": description.title,
        "group": description.group,
        "settings": {key: value for key, value in settings.items() if value is not None},
        "parts": {
            name: _part_value(part, description.likes.get(name, ""), parts)
            for name, part in parts.items()
        },
        "media": {name: _medium_value(medium) for name, medium in media.items()},
        "data-paths": {
            name: value
            for name, value in (
                *((name, _data_path(path)) for name, path in description.data_paths.items()),
                *((name, plain(node)) for name, node in description.data_path_overrides.items()),
            )
            if name not in come_along
        },
        "needs": {name: _need(need) for name, need in description.needs.items()},
        "devices": {
            **{name: _use_value(use) for use in description.uses for name in use.names},
            **{device.name: _device_value(device, parts) for device in description.devices},
        },
        "links": [
            {f"{link.a} -- {link.b}": _cable_value(link.cable, media)} for link in description.links
        ],
        "measured": [
            {f"{measurement.source} -> {measurement.target}": _measurement(measurement)}
            for measurement in description.measurements
        ],
        "workloads": {workload.name: _workload(workload) for workload in description.workloads},
        "expect": [expectation.text for expectation in description.expectations],
        "sweep": {axis.name: _axis(axis) for axis in description.axes},
    }
    return _stated(sections)


def _stated(entries: Plain) -> Plain:
    return {key: value for key, value in entries.items() if value}


def _data_path(path: DataPath) -> Plain:
    moves: list[Any] = []
    for move in path.moves:
        text = f"{move.source} -> {move.target} by {move.mover}"
        text += f" over {move.over}" if move.over else ""
        if move.rate is None or move.rate.value is None:
            moves.append(text)
            continue
        rate = spell_rate(move.rate.value) + " per worker" * move.per_worker
        moves.append({text: {"rate": rate, "source": move.rate.source}})
    return _stated(
        {
            "title": path.title,
            "moves": moves,
            "stages": path.stages if path.stages != "pipelined" else "",
            "workers": path.workers if path.workers != 1 else 0,
            "needs": list(path.needs),
            "falls-back-to": path.falls_back_to,
            "to-other-servers": path.to_other_servers,
            "source": path.source,
        }
    )


def _use_value(use: Use) -> Plain:
    overrides = {
        target: value if isinstance(value, str) else plain(value)
        for target, value in use.overrides.items()
    }
    return _stated({"use": use.source, "set": overrides})


def _measurement(measurement: Measurement) -> Plain:
    rate = _figure_value(measurement.rate, fields.RATE, kind="measured")
    entries = {"rate": rate}
    if isinstance(rate, dict):
        entries = {"rate": rate["value"], "source": measurement.rate.source}
    return {**entries, "date": measurement.date} if measurement.date else entries


def _axis(axis: Axis) -> list[str] | dict[str, Plain]:
    if all(choice.changes == {axis.name: choice.label} for choice in axis.choices):
        return [choice.label for choice in axis.choices]
    return {choice.label: dict(choice.changes) for choice in axis.choices}


def _workload(workload: Workload) -> Plain:
    need = workload.need
    sized = need is None or (need.asks == "needs" and workload.sized)
    entries: Plain = {
        **({workload.direction: spell_size(workload.size)} if sized else {}),
        **(_of_model(need) if need else {}),
        "from": list(workload.sources),
        "to": list(workload.targets),
    }
    if workload.collective:
        entries = {
            workload.collective: spell_size(workload.size),
            "over": list(workload.sources),
            **({"root": workload.root} if workload.root else {}),
        }
    if workload.via:
        entries["via"] = list(workload.via)
    if workload.efficiency is not None:
        low, high = (spell_ratio(ratio) for ratio in workload.efficiency)
        entries["efficiency"] = low if low == high else f"{low.removesuffix(' %')}-{high}"
    if workload.weight != 1:
        entries["weight"] = repr(workload.weight)
    if workload.limit is not None and math.isfinite(workload.limit):
        entries["limit"] = spell_rate(workload.limit)
    if workload.pairing:
        entries["pairing"] = workload.pairing
    if workload.target != "staged":
        entries["target"] = workload.target
    if workload.start:
        entries["start"] = spell_duration(workload.start)
    return entries


def _of_model(need: ModelNeed) -> Plain:
    of_each = " each" * (need.asks == "needs")
    words = f"{need.accelerators}x {need.accelerator}{of_each}" if need.accelerator else ""
    if not need.accelerator or not need.accelerators:
        words = need.accelerator or (f"{need.accelerators}{of_each}" if need.accelerators else "")
    stated = need.mttf is not None and need.mttf != needs()["accelerator"].figures["mttf"]
    return _stated(
        {
            need.asks: need.model.name,
            "tokens": need.tokens,
            "accelerators": words,
            "mttf": spell_duration(need.mttf.value or 0.0) if stated and need.mttf else "",
        }
    )


def _need(need: Need) -> Plain:
    figures = {
        key: _figure_value(figure, fields.NEED_FIELDS[key].quantity)
        for key, figure in need.figures.items()
    }
    steps = {key: _figure_value(step, fields.DURATION) for key, step in need.steps.items()}
    return _stated({"title": need.title, "source": need.source, **figures, "step": steps})


# --- parts, devices, cables and media: what differs from what they are like -----------------------


def _part_value(part: Part, like: str, own_parts: Mapping[str, Part]) -> Plain:
    """Return a part of a file's own, which started from the part `like` or from nothing."""
    built_in = catalogue().parts
    base = built_in.get(like) if like == part.name or like not in own_parts else own_parts[like]
    start = {"like": like} if base is not None else {"kind": part.kind}
    return {**start, **_differences(part, base)}


def _device_value(device: Device, own_parts: Mapping[str, Part]) -> Any:
    """Return a device: its part alone, or with what it says of itself."""
    part = device.part
    entries = _stated(
        {
            "label": device.label,
            "role": device.role,
            "slot": device.slot_name,
            "pci": device.pci[0] if len(device.pci) == 1 else list(device.pci),
            "rdma": device.rdma[0] if len(device.rdma) == 1 else list(device.rdma),
            "numa": list(device.numa),
            "outside": "yes" if device.outside else "",
        }
    )
    entries |= _differences(part, own_parts.get(part.name) or catalogue().parts.get(part.name))
    return {"part": part.name, **entries} if entries else part.name


def _differences(part: Part, base: Part | None) -> Plain:
    """Return the keys in which a part differs from its base, in the table's order."""
    entries: Plain = {}
    if part.title != (base.title if base else ""):
        entries["title"] = part.title
    source = part.source if part.source != (base.source if base else "") else ""
    for name, part_field in fields.FIELDS.items():
        value = _difference(part, base, part_field, (source, "quoted"))
        if value is not None:
            entries[name] = value
    return {**entries, "source": source} if source else entries


def _difference(part: Part, base: Part | None, field: fields.Field, usual: Usual) -> Any:
    """Return the value of one key, or `None` where the base has the same."""
    quantity = field.quantity
    if quantity is fields.SLOT:
        slot = part.slot
        if slot is None or slot == (base and base.slot):
            return None
        return _sourced(quantity.spelled(slot), slot.source, slot.kind, usual)
    if quantity is fields.PORTS:
        ports, base_ports = part.ports, base.ports if base else None
        if field.name != "ports":
            ports, base_ports = part.fabric, base.fabric if base else None
        if ports is None or ports == base_ports:
            return None
        return _ports(ports, base_ports, usual)
    if quantity is fields.CAPS and part.peer_caps and part.peer_caps != (base and base.peer_caps):
        return _caps(part.peer_caps, usual)
    if not quantity.unit:
        return _word(part, base, field.name, usual)
    figure = part.figures.get(field.name)
    if figure is None or (base is not None and base.figures.get(field.name) == figure):
        return None
    return _figure_value(figure, quantity, source=usual[0])


def _word(part: Part, base: Part | None, name: str, usual: Usual) -> Any:
    """Return a flag or a text with its source, or `None` where the base has the same."""
    values: Plain = {**part.facts, **part.flags}
    base_values: Plain = {**base.facts, **base.flags} if base else {}
    if name not in values or (name in base_values and values[name] == base_values[name]):
        return None
    text, source = values[name], part.sources.get(name, "")
    text = fields.FLAG.spelled(text) if name in part.flags else text
    return _sourced(text, source, "quoted", usual if source else _QUOTED)


def _ports(ports: Ports, base: Ports | None, usual: Usual) -> Any:
    """Return ports; a count alone where what the ports are comes from the base."""
    text: Any = "unknown" if ports.count is None else ports.count
    inherited = base is not None and (ports.rate, ports.medium) == (base.rate, base.medium)
    if ports.count is not None and not inherited:
        rate = fields.RATE.spelled(ports.rate.value if ports.rate else None)
        if ports.medium is not None:
            medium = catalogue().media.get(ports.medium)
            tells_rate = medium is not None and medium.rate is not None
            text = f"{ports.count}x {ports.medium}{'' if tells_rate else f' {rate}'}"
        elif ports.rate is not None:
            text = f"{ports.count}x {rate}"
    return _sourced(text, ports.source, ports.kind, usual)


def _caps(caps: PeerCaps, usual: Usual = _QUOTED) -> Plain:
    return {
        name: _ranged(
            _sourced(
                str(fields.RATE.spelled(cap.rate.value)) + " per flow" * cap.per_flow,
                cap.rate.source,
                cap.rate.kind,
                usual,
            ),
            cap.rate,
            fields.RATE,
        )
        for name, cap in (("posted", caps.posted), ("non-posted", caps.non_posted))
        if cap is not None
    }


def _cable_value(cable: Cable, own_media: Mapping[str, Medium]) -> Any:
    """Return a cable: its shorthand, or a mapping where it has figures of its own."""
    medium = own_media.get(cable.medium) or catalogue().media.get(cable.medium)
    entries: Plain = {}
    for key in ("efficiency", "duplex"):
        ratio = getattr(cable, key)
        if ratio is not None and ratio != (getattr(medium, key) if medium else None):
            entries[key] = _figure_value(ratio, fields.MEDIUM_FIELDS[key].quantity)
    if cable.stated is not None:
        entries["rate"] = _figure_value(cable.stated, fields.RATE)
    if cable.p2p is not None:
        entries["p2p"] = _caps(cable.p2p)
    return {"medium": cable.text, **entries} if entries else cable.text


def _medium_value(medium: Medium) -> Plain:
    """Return a medium of a file's own, with everything that it says."""
    base = catalogue().media.get(medium.name)
    source = medium.source if base is None or medium.source != base.source else ""
    entries: Plain = {"title": medium.title, "reach": medium.reach}
    figures = {
        "transfer-rate": medium.transfer_rate if medium.encoding else None,
        "rate": medium.rate if not medium.encoding else None,
        "bytes-per-transfer": medium.bytes_per_transfer,
        "efficiency": medium.efficiency,
        "duplex": medium.duplex,
        "dma": medium.dma,
    }
    for key, figure in figures.items():
        if figure is not None:
            entries[key] = _figure_value(figure, fields.MEDIUM_FIELDS[key].quantity, source=source)
    entries |= {"encoding": medium.encoding, "source": source}
    if medium.rate is not None and not medium.encoding:
        entries["per-lane"] = fields.FLAG.spelled(medium.per_lane)
    return _stated(entries)


def _figure_value(
    figure: Figure, quantity: fields.Quantity, *, kind: FigureKind = "quoted", source: str = ""
) -> Any:
    """Return a figure as YAML writes it: plain, or with its source and kind.

    `kind` and `source` are what the mapping around it says of all its figures.
    """
    value = _sourced(quantity.spelled(figure.value), figure.source, figure.kind, (source, kind))
    return _ranged(value, figure, quantity)


def _ranged(value: Any, figure: Figure, quantity: fields.Quantity) -> Any:
    """Return the value of a figure with the range that it has, if it has one."""
    if figure.range is None:
        return value
    low, high = map(quantity.spelled, figure.range)
    entries = value if isinstance(value, dict) else {"value": value}
    return {**entries, "range": f"{low} - {high}"}


def _sourced(text: Any, source: str, kind: FigureKind, usual: Usual) -> Any:
    """Return a value with its source and kind, or alone where those are the usual ones."""
    usual_source, usual_kind = usual
    if usual_source:
        needs_no_source = source == usual_source
    else:
        needs_no_source = not source or _OWN_PLACE.fullmatch(source) is not None
    if needs_no_source and kind == usual_kind:
        return text
    entries = {"value": text, "source": source} if source else {"value": text}
    return entries if kind in (usual_kind, "formula") else {**entries, "kind": kind}
