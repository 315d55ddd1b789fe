"""A topology as InfraGraph's YAML: hosts that are alike are instances of one device.

A host is what host links join: its devices are components, by their names without numbers. A
network switch is a device of ports.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from topo.description.names import stem_of
from topo.exports.formats import Exported, not_held
from topo.phrases import visible
from topo.topology.hosts import host_numbers

if TYPE_CHECKING:
    from topo.description.description import Device
    from topo.topology.topology import Link, Topology

_CHOICES: Final[Mapping[str, str]] = {
    "cpu": "cpu",
    "gpu": "xpu",
    "nic": "nic",
    "dpu": "nic",
    "memory": "memory",
    "pcie-switch": "switch",
    "nvswitch": "switch",
}
_INSIDE: Final = "inside"  # what joins the ports of a switch
# What may stand in a name of InfraGraph's, and in a text without quotes.
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9 _.,/()\[\]+-]*")
_WORDS: Final = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


class _Component(NamedTuple):
    """A device within its host: the name of the component, and its number there."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


def write_infragraph(topology: Topology) -> Exported:
    """Write InfraGraph's YAML, each cable between hosts as an edge."""
    number_of = host_numbers(topology)
    hosts: dict[int, list[Device]] = {}
    for device in topology.devices.values():
        hosts.setdefault(number_of[device.name], []).append(device)
    inside: dict[int, list[Link]] = {}
    network: list[Link] = []
    for link in topology.links:
        of_network = link.layer == "network"
        (network if of_network else inside.setdefault(number_of[link.a.device], [])).append(link)
    component_of: dict[str, _Component] = {}
    instance_of: dict[int, str] = {}
    devices: dict[str, Any] = {}  # by what they are, without their names
    instances: Counter[tuple[str, str]] = Counter()
    for number, members in hosts.items():
        component_of |= _components(members)
        entry = _device(topology, members, inside.get(number, ()), component_of)
        alone = members[0] if len(members) == 1 else None
        form = json.dumps(entry)
        if form not in devices:
            named = alone.part.name if alone else "host"
            devices[form] = {
                "name": _free(named, [entry_before["name"] for entry_before in devices.values()])
            }
            devices[form] |= entry
        device_name = devices[form]["name"]
        instance = (_stem(alone.name) if alone else device_name, device_name)
        instance_of[number] = f"{instance[0]}[{instances[instance]}]"
        instances[instance] += 1
    ports: Counter[str] = Counter()

    def end(name: str) -> dict[str, str]:
        component = component_of[name]
        if topology[name].kind == "network-switch":
            component = _Component("port", ports[name])
            ports[name] += 1
        return {"instance": instance_of[number_of[name]], "component": str(component)}

    document = {
        "name": _ODD.sub("-", topology.name) or "topology",
        "description": visible(topology.title),
        "devices": list(devices.values()),
        "links": list(_links(network, single=True)),
        "instances": [
            {"name": name, "device": device, "count": count}
            for (name, device), count in instances.items()
        ],
        "edges": [
            _edge(end(link.a.device), end(link.b.device), _link_name(link, single=True))
            for link in network
            for _ in range(link.cable.count)
        ],
    }
    losses = ("chips, buses and drives' rates", "settings", "workloads")
    return Exported("\n".join(_yaml(document)) + "\n", not_held("InfraGraph", *losses))


# --- hosts ----------------------------------------------------------------------------------------


def _components(devices: Iterable[Device]) -> dict[str, _Component]:
    """Return the component that each device of a host is: equal ones of one stem are one."""
    names: dict[tuple[str, str], str] = {}
    counts: Counter[str] = Counter()
    components = {}
    for device in devices:
        key = (_stem(device.name), device.part.name)
        if key not in names:
            names[key] = _free(key[0], names.values())
        components[device.name] = _Component(names[key], counts[names[key]])
        counts[names[key]] += 1
    return components


def _device(
    topology: Topology,
    devices: Sequence[Device],
    links: Sequence[Link],
    component_of: Mapping[str, _Component],
) -> dict[str, Any]:
    """Return the entry of a host but for its name: the same for hosts that are alike."""
    first = devices[0]
    if first.kind == "network-switch" and len(devices) == 1:
        cables = sum(step.link.cable.count for step in topology.steps[first.name])
        stated = first.part.ports.count if first.part.ports else None
        ports = {"name": "port", "choice": "port", "count": max(cables, stated or 0, 1)}
        return {
            "description": _described(first),
            "components": [{"name": "asic", "choice": "cpu", "count": 1}, ports],
            "links": [{"name": _INSIDE}],
            "edges": [_edge({"component": "asic"}, {"component": "port"}, _INSIDE, "many2many")],
        }
    counts = Counter(component_of[device.name].name for device in devices)
    entries: dict[str, dict[str, Any]] = {}
    for device in devices:
        choice = _CHOICES.get(device.kind, "custom")
        name = component_of[device.name].name
        entry: dict[str, Any] = {"name": name, "description": _described(device)}
        entry |= {"choice": choice, "count": counts[name]}
        if choice == "custom":
            entry["custom"] = {"type": device.kind}
        entries.setdefault(name, entry)
    pairs = [(component_of[link.a.device], component_of[link.b.device], link) for link in links]
    return {
        "description": _described(first) if len(devices) == 1 else f"{len(devices)} devices",
        "components": list(entries.values()),
        "links": list(_links(links)),
        "edges": list(_folded(pairs)),
    }


def _folded(pairs: Iterable[tuple[_Component, _Component, Link]]) -> Iterator[dict[str, Any]]:
    """Yield the edges of a host: runs of numbers that rise by one on both sides, or on one."""
    runs: list[tuple[_Component, _Component, str, tuple[int, int], int]] = []
    for a, b, link in pairs:
        name = _link_name(link)
        if runs:
            first_a, first_b, link_name, step, count = runs[-1]
            moved = (a.number - first_a.number, b.number - first_b.number)
            rise = moved if count == 1 else step
            if (
                (link_name, first_a.name, first_b.name) == (name, a.name, b.name)
                and rise in ((1, 1), (1, 0), (0, 1))
                and moved == (rise[0] * count, rise[1] * count)
            ):
                runs[-1] = (first_a, first_b, link_name, rise, count + 1)
                continue
        runs.append((a, b, name, (0, 0), 1))
    for a, b, name, step, count in runs:
        ends = [
            {"component": f"{end.name}[{end.number}:{end.number + count}]" if rise else str(end)}
            for end, rise in zip((a, b), step, strict=True)
        ]
        yield _edge(ends[0], ends[1], name, "one2one" if step in ((0, 0), (1, 1)) else "many2many")


def _described(device: Device) -> str:
    return visible(f"{device.part.name}: {device.part.title}".removesuffix(": "))


def _stem(name: str) -> str:
    """Return a device's name without its number, and without the host that it is in."""
    inner = name.rpartition(".")[2]
    return _ODD.sub("-", stem_of(inner)[0].rstrip("-_")) or "device"


def _free(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number behind it where it is taken."""
    used = set(taken)
    name = _ODD.sub("-", name)
    return next(
        candidate
        for candidate in (name, *(f"{name}-{count}" for count in range(2, len(used) + 3)))
        if candidate not in used
    )


# --- links and edges ------------------------------------------------------------------------------


def _links(links: Iterable[Link], *, single: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the entry of each sort of link once: of all its cables together, or of a single one."""
    for name, link in {_link_name(link, single=single): link for link in links}.items():
        text = _single(link) if single else link.cable.text
        entry: dict[str, Any] = {"name": name, "description": visible(text)}
        rate, count = link.cable.rate.value, 1 if single else link.cable.count
        if rate is not None and rate < float("inf"):
            gigabits = rate * count * 8 / 1e9
            bandwidth = {"choice": "gigabits_per_second", "gigabits_per_second": gigabits}
            entry["physical"] = {"bandwidth": bandwidth}
        yield entry


def _link_name(link: Link, *, single: bool = False) -> str:
    return _ODD.sub("-", _single(link) if single else link.cable.text).strip("-")


def _single(link: Link) -> str:
    """Return one cable of a bundle as it is written; of a dealt-out one too."""
    return re.sub("^[0-9]+x ", "", link.cable.text)


def _edge(
    a: dict[str, str], b: dict[str, str], link: str, scheme: str = "one2one"
) -> dict[str, Any]:
    return {"ep1": a, "ep2": b, "scheme": scheme, "link": link}


# --- YAML -----------------------------------------------------------------------------------------


def _yaml(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping or a list in YAML's block form."""
    entries = value.items() if isinstance(value, Mapping) else [("", item) for item in value]
    for key, item in entries:
        lead = f"{indent}{key}:" if key else f"{indent}-"
        if isinstance(item, Mapping | list) and item:
            lines = list(_yaml(item, f"{indent}  "))
            if not key:  # the first entry stands behind the hyphen
                lines[0] = f"{lead} {lines[0].lstrip()}"
            yield from ([lead] if key else []) + lines
        else:
            yield f"{lead} {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if is_plain and value[-1] != " " else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
