"""Whether two hosts are alike, and what tells them apart where they are not.

Alike are documents that say the same but for what no two hosts share: addresses, names of network
cards in Linux, labels and slots. Memory may differ by what a kernel keeps for itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from topo.description.write import stem_of
from topo.units import parse_size

Plain: TypeAlias = dict[str, Any]
_Cables: TypeAlias = dict[tuple[str, ...], tuple[str, list[Any]]]

IDENTITIES: Final = ("pci", "rdma", "label", "slot")
"""What two hosts never share, alike or not."""

_SAME_SIZE: Final = 0.01  # of memory: the kernel keeps a little of it, not always as much


def likeness(document: Plain) -> str:
    """Return a text that is the same for two hosts that are alike, but for sizes of memory."""
    devices = {}
    for name, entries in _entries(document).items():
        left_out = (*IDENTITIES, "size") if name.startswith("ram") else IDENTITIES
        devices[name] = [(key, entry) for key, entry in entries.items() if key not in left_out]
    return json.dumps({**document, "name": "", "title": "", "devices": devices})


def _sizes(document: Plain) -> list[float]:
    texts = (entries.get("size") for entries in _entries(document).values())
    return [parse_size(text) for text in texts if text]


def same_sizes(document: Plain, second: Plain) -> bool:
    """Whether two hosts that are alike have the same memory, as far as a kernel shows it."""
    sizes, second_sizes = _sizes(document), _sizes(second)
    return len(sizes) == len(second_sizes) and all(
        abs(a - b) <= _SAME_SIZE * max(a, b) for a, b in zip(sizes, second_sizes, strict=True)
    )


# --- how two differ -------------------------------------------------------------------------------


def differences(document: Plain, usual: Plain) -> Iterator[str]:
    """Yield what a host has otherwise than another, in words."""
    ours, theirs = _entries(document), _entries(usual)
    same = _matched(ours, theirs)
    yield from _other_devices(ours, theirs, same)
    yield from _other_links(_cables(document), _cables(usual), same)
    for section in ("parts", "media"):
        entries, usual_entries = document.get(section, {}), usual.get(section, {})
        for name in entries:
            if entries[name] != usual_entries.get(name, entries[name]):
                yield f"{name} is {_text(entries[name])}"


def _other_devices(
    ours: Mapping[str, Plain], theirs: Mapping[str, Plain], same: Mapping[str, str]
) -> Iterator[str]:
    """Yield the devices that one of two hosts lacks, and those that are not what they are there."""
    matched_names = set(same.values())
    for name, entries in theirs.items():
        if name not in matched_names:
            yield f"{_spelled(name, entries)} is missing"
    for name, entries in ours.items():
        if name not in same:
            yield f"{_spelled(name, entries)} is there as well"
    for name, usual_name in same.items():
        for key in dict.fromkeys((*ours[name], *theirs[usual_name])):
            value, usual_value = ours[name].get(key), theirs[usual_name].get(key)
            if key not in IDENTITIES and value != usual_value:
                what = f"{name} is" if key == "part" else f"{name} has {key}"
                yield f"{what} {_text(value)}, not {_text(usual_value)}"


def _other_links(cables: _Cables, usual_cables: _Cables, same: Mapping[str, str]) -> Iterator[str]:
    """Yield the links that differ between devices that both hosts have."""
    matched_names = set(same.values())
    renamed: _Cables = {}
    for ends, cabling in cables.items():
        if all(_device(end) in same for end in ends):
            renamed[tuple(sorted(_renamed(end, same) for end in ends))] = cabling
    for ends, (text, usual_values) in usual_cables.items():
        if ends in renamed:
            own_text, values = renamed.pop(ends)
            if values != usual_values:
                yield f"{own_text} is {_text(values)}, not {_text(usual_values)}"
        elif all(_device(end) in matched_names for end in ends):
            yield f"{text} is not linked"
    for text, values in renamed.values():
        yield f"{text} is linked as well, {_text(values)}"


def _entries(document: Plain) -> dict[str, Plain]:
    return {name: entries_of(value) for name, value in document["devices"].items()}


def entries_of(value: Plain | str) -> Plain:
    """Return what a document says of a device, which may be its part alone."""
    return value if isinstance(value, dict) else {"part": value}


def _matched(ours: Mapping[str, Plain], theirs: Mapping[str, Plain]) -> dict[str, str]:
    """Return which device of one host is which of another: by address, or else by number."""
    same: dict[str, str] = {}
    for stem in dict.fromkeys(map(stem_of, ours)):
        names = [name for name in ours if stem_of(name) == stem]
        usual = [name for name in theirs if stem_of(name) == stem]
        at = {_text(theirs[name]["pci"]): name for name in usual if "pci" in theirs[name]}
        by_address = {
            name: at[address]
            for name in names
            if (address := _text(ours[name].get("pci", ""))) in at
        }
        if by_address and len(names) != len(usual):
            same |= by_address
        else:
            same |= dict(zip(names, usual, strict=False))
    return same


def _cables(document: Plain) -> _Cables:
    """Return the cables between each two ends, with how these are written."""
    cables: _Cables = {}
    for item in document["links"]:
        ((text, cable),) = item.items()
        cables.setdefault(tuple(sorted(text.split(" -- "))), (text, []))[1].append(cable)
    return cables


def _device(end: str) -> str:
    return end.partition("/")[0]


def _renamed(end: str, names: Mapping[str, str]) -> str:
    device, slash, side = end.partition("/")
    return names[device] + slash + side


def _spelled(name: str, entries: Plain) -> str:
    address = entries.get("pci", "")
    return f"{name} ({entries['part']}{f' at {_text(address)}' if address else ''})"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return " and ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items())
    return str(value)
