"""A machine as a topology file that a person would write: ranges, comments, `unknown`."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from topo.discovery.defaults import supplied
from topo.discovery.fit import entries_of
from topo.discovery.machine import printable
from topo.discovery.naming import file_title, is_next, machine_name, named, selection, stem_of
from topo.discovery.wire import Wire, wire_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.discovery.defaults import Supply
    from topo.discovery.fit import Entries, Value
    from topo.discovery.machine import DiscoveredDevice, Machine


_WIDTH: Final = 96
_COMMENT: Final = 160
_NOTE: Final = 400  # characters of a note, over several lines
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 _./()+%-]*")
_ADDRESS: Final = re.compile(r"[0-9a-fA-F:]+\.[0-7]")
_ORDER: Final = {
    kind: place
    for place, kinds in enumerate(
        (
            ("storage",),
            ("nic", "dpu"),
            *(("cpu",), ("root-complex",), ("memory",), ("cxl-memory",), ("pcie-switch",)),
            *(("gpu",), ("nvswitch",), ("nvme",), ("hba",), ("network-switch",)),
        )
    )
    for kind in kinds
}
_LINK_ORDER: Final = ("storage", "ram", "cpu", "rc", "sw", "nic", "nvme", "hba", "cxl", "gpu")

Group = tuple[list[str], list["Entries"], list["DiscoveredDevice"]]


def to_yaml(machine: Machine, *, storage: Sequence[str] = ()) -> tuple[str, Supply]:
    """Return the topology file's text, and what had to be supplied to make it whole.

    Parameters
    ----------
    machine
        What was seen.
    storage
        The network cards that a storage target is cabled to, by the names that the file gives
        them, their RDMA names or PCI addresses; guessed when empty.
    """
    names = named(machine.devices)
    supply = supplied(machine, names, storage)
    lines = [
        *_head(machine),
        "topo: 1",
        f"name: {machine_name(machine.file)}",
        f"title: {_quoted(machine.title())}",
        *_parts(machine),
        *supply.media,
        "",
        "devices:",
        *_devices(machine, names, supply),
        "",
        "links:",
        *_links(machine, names, supply),
        *supply.workloads,
    ]
    return "\n".join(lines) + "\n", supply


# --- head and parts -------------------------------------------------------------------------------


def _head(machine: Machine) -> Iterator[str]:
    yield f"# Imported from {printable(file_title(machine.file))} ({machine.source})."
    for other in machine.together:
        yield f"# Combined with {printable(other)}."
    yield "# What the source does not tell is `unknown`; memories and their buses are assumed."
    for note in machine.notes:
        lines = wrap(printable(note, _NOTE), _WIDTH, break_on_hyphens=False)
        yield from (f"# {line}" for line in lines)


def _parts(machine: Machine) -> Iterator[str]:
    if machine.parts:
        yield ""
        yield "parts:"
    for part in machine.parts:
        entries: Entries = {"like": part.like, "title": part.title, **dict(part.facts)}
        yield f"  {part.name}: {_flow(entries)}"


# --- devices --------------------------------------------------------------------------------------


def _devices(machine: Machine, names: dict[str, str], supply: Supply) -> Iterator[str]:
    yield from supply.storage
    everything = sorted((*machine.devices, *supply.devices), key=lambda device: _ORDER[device.kind])
    domains = any(not one.startswith("0000:") for device in everything for one in device.pci)
    known = {**names, **supply.names}
    groups: list[Group] = []
    for device in everything:
        entries = entries_of(device, machine, domains=domains)
        _add(groups, known[device.id], entries, device)
    for found in groups:
        yield from _written(*found)


def _add(groups: list[Group], name: str, entries: Entries, device: DiscoveredDevice) -> None:
    """Put a device to the group before it where one entry can define both."""
    if groups:
        members, values, seen = groups[-1]
        same = is_next(members[-1], name) and [*values[-1]] == [*entries]
        if same and values[-1]["part"] == entries["part"]:
            members.append(name)
            values.append(entries)
            seen.append(device)
            return
    groups.append(([name], [entries], [device]))


def _written(
    members: list[str], values: list[Entries], seen: list[DiscoveredDevice]
) -> Iterator[str]:
    yield from _remarks(members, seen)
    key = members[0]
    if len(members) > 1:
        stem = stem_of(key)
        key = f"{stem}[{key.removeprefix(stem)}-{members[-1].removeprefix(stem)}]"
    dealt = _dealt(values)
    texts = list(dict.fromkeys(one.said for one in seen if one.said))
    comment = texts[0] if len(texts) == 1 else f"{texts[0]}; others differ" if texts else ""
    flow = next(iter(values[0].values())) if len(values[0]) == 1 else _flow(dealt)
    line = f"  {key}: {flow}"
    if len(line) <= _WIDTH:
        yield _commented(line, comment)
        return
    yield _commented(f"  {key}:", comment)
    for name, value in dealt.items():
        yield from _wrapped(f"    {name}: ", value)


def _remarks(members: list[str], seen: list[DiscoveredDevice]) -> Iterator[str]:
    """Yield each remark once, with all devices that it is about."""
    about: dict[str, list[str]] = {}
    for name, device in zip(members, seen, strict=True):
        for remark in device.remarks:
            about.setdefault(remark, []).append(name)
    for remark, names in about.items():
        yield f"  # {selection(names, {})}: {printable(remark, _NOTE)}"


def _dealt(values: list[Entries]) -> dict[str, Value | list[Value]]:
    """Return one value for all where they agree, else a list with one for each."""
    dealt: dict[str, Value | list[Value]] = {}
    for key, first in values[0].items():
        column = [entries[key] for entries in values]
        agree = all(value == first for value in column) and isinstance(first, str)
        dealt[key] = first if agree or len(values) == 1 else column
    return dealt


def _wrapped(lead: str, value: Value | list[Value]) -> Iterator[str]:
    """Yield a key with its value, a long list over several lines."""
    if isinstance(value, str):
        yield lead + _scalar(value)
        return
    indent, line = " " * (len(lead) + 1), f"{lead}["
    for at, item in enumerate(value):
        text = _value(item) + ("]" if at == len(value) - 1 else ", ")
        if len(line) + len(text) > _WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += text
    yield line


def _flow(entries: dict[str, Value] | dict[str, Value | list[Value]]) -> str:
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in entries.items()) + "}"


def _value(value: Value | list[Value]) -> str:
    if isinstance(value, str):
        return _scalar(value)
    return "[" + ", ".join(_value(item) for item in value) + "]"


def _scalar(text: str) -> str:
    return text if _ADDRESS.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """Return text as YAML takes it for text anywhere, in quotes where it needs them."""
    if _PLAIN.fullmatch(text) and not text.endswith(" "):
        return text
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _commented(line: str, comment: str) -> str:
    return f"{line}  # {printable(comment, _COMMENT)}" if comment else line


# --- links ----------------------------------------------------------------------------------------


def _links(machine: Machine, names: dict[str, str], supply: Supply) -> Iterator[str]:
    known = {**names, **supply.names}
    wires = [*supply.wires]
    for device in (*machine.devices, *supply.devices):
        if device.parent and device.link is not None:
            link = device.link
            wires.append(Wire(known[device.id], _side(device, known), link.cable, link.said))
        elif device.parent and device.kind == "memory":
            wires.append(Wire(known[device.id], _side(device, known), "memory-bus"))
    wires += [
        Wire(known[cable.a], known[cable.b], cable.cable, cable.said) for cable in machine.cables
    ]
    wires.sort(key=lambda wire: _LINK_ORDER.index(stem_of(wire.a)))
    everyone: dict[str, list[str]] = {}
    for name in (*known.values(), *supply.targets):
        everyone.setdefault(stem_of(name), []).append(name)
    before = ""
    for line in wire_lines(wires, everyone):
        said = "" if line.said == before else line.said  # the same again goes without saying
        yield _commented(f"  - {line.a} -- {line.b}: {line.cable}", said)
        before = line.said


def _side(device: DiscoveredDevice, known: dict[str, str]) -> str:
    """Return what a device hangs on, with the NUMA node where that is a CPU with several."""
    parent = known[device.parent]
    return parent if device.node is None else f"{parent}/numa{device.node}"
