"""A description back into a plain document: every range expanded, one device a key.

`build(to_document(spec))` gives the same description, apart from places and from sources that are
a file and its line.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from topo.catalogue.load import catalogue
from topo.description.dump_parts import (
    cable_value,
    device_value,
    figure_value,
    medium_value,
    part_value,
)
from topo.description.keys import SETTINGS
from topo.description.settings import settings_value
from topo.document.nodes import Mapping, Sequence
from topo.units import spell_duration, spell_rate, spell_ratio, spell_size

if TYPE_CHECKING:
    from topo.description.description import DataPath, Description, Measurement, Workload
    from topo.document.nodes import Node


Plain = dict[str, Any]


def to_document(description: Description) -> Plain:
    """Return a description as mappings, lists and texts of the YAML's own shape.

    Parameters
    ----------
    spec
        The description; comments and findings are left out.

    Examples
    --------
    >>> from topo.description.loading import loads
    >>> to_document(loads("{topo: 1, name: box, devices: {'gpu[0-1]': l40s}}"))
    {'topo': 1, 'name': 'box', 'devices': {'gpu0': 'l40s', 'gpu1': 'l40s'}}
    """
    built_in = catalogue()
    media = {**description.media} if description.media else {}
    settings = {
        key: value
        for key in SETTINGS
        if (value := settings_value(description.settings, key)) is not None
    }
    sections: Plain = {
        "topo": 1,
        "name": description.name,
        "title": description.title,
        "settings": settings,
        "parts": {
            name: part_value(part, description.likes.get(name, ""), description.parts)
            for name, part in description.parts.items()
        },
        "media": {name: medium_value(medium) for name, medium in media.items()},
        "data-paths": {
            **{name: _data_path(path) for name, path in description.data_paths.items()},
            **{name: _plain(entries) for name, entries in description.data_path_overrides.items()},
        },
        "devices": {
            device.name: device_value(device, description.parts) for device in description.devices
        },
        "links": [
            {f"{link.a} -- {link.b}": cable_value(link.cable, media, built_in.media)}
            for link in description.links
        ],
        "measured": [_measurement(measurement) for measurement in description.measurements],
        "workloads": {workload.name: _workload(workload) for workload in description.workloads},
        "expect": [expectation.text for expectation in description.expectations],
    }
    return {key: value for key, value in sections.items() if value}


def _plain(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key.text: _plain(value) for key, value in node}
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return node.text


def _data_path(path: DataPath) -> Plain:
    moves: list[Any] = []
    for move in path.moves:
        text = f"{move.source} -> {move.target} by {move.mover}"
        if move.rate is None or move.rate.value is None:
            moves.append(text)
            continue
        rate = spell_rate(move.rate.value) + " per worker" * move.per_worker
        moves.append({text: {"rate": rate, "source": move.rate.source}})
    found: Plain = {
        "title": path.title,
        "moves": moves,
        "stages": path.stages if path.stages != "pipelined" else "",
        "workers": path.workers if path.workers != 1 else 0,
        "needs": list(path.needs),
        "falls-back-to": path.falls_back_to,
        "code": path.code,
        "source": path.source,
    }
    return {key: value for key, value in found.items() if value}


def _measurement(measurement: Measurement) -> Plain:
    found = {"rate": figure_value(measurement.rate, "rate", kind="measured")}
    if isinstance(found["rate"], dict):
        found = {"rate": found["rate"]["value"], "source": measurement.rate.source}
    if measurement.date:
        found["date"] = measurement.date
    return {f"{measurement.source} -> {measurement.target}": found}


def _workload(workload: Workload) -> Plain:
    found: Plain = {
        workload.direction: spell_size(workload.size),
        "from": list(workload.sources),
        "to": list(workload.targets),
    }
    if workload.via:
        found["via"] = list(workload.via)
    if workload.efficiency is not None:
        low, high = (spell_ratio(ratio) for ratio in workload.efficiency)
        found["efficiency"] = low if low == high else f"{low.removesuffix(' %')}-{high}"
    if workload.weight != 1:
        found["weight"] = repr(workload.weight)
    if workload.limit is not None and math.isfinite(workload.limit):
        found["limit"] = spell_rate(workload.limit)
    if workload.start:
        found["start"] = spell_duration(workload.start)
    return found
