"""The text of an InfraGraph file: devices of components, instances of devices, edges between them.

Names are looked up, slices counted out, and every mistake is said with its place. A device that has
ports and nothing that computes is a network switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Final

from topo.catalogue.kinds import KINDS
from topo.description.keys import items_of, mapping_of, text_of
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.document.parse import parse
from topo.errors import DocumentError, ExchangeError, Finding
from topo.phrases import counted, did_you_mean
from topo.records import dataclass

MOST_DEVICES: Final = 50_000
SLOT: Final = "slot"  # the kind of what passes on the links that it joins
_MOST_EDGES: Final = 400_000
_CHOICES: Final = {"cpu": "cpu", "xpu": "gpu", "npu": "gpu", "nic": "nic", "memory": "memory"}
_END: Final = re.compile(r"([^\[\].]+)(?:\[([^\]]*)\])?")
_SLICE: Final = re.compile(
    r"\s*(-?\d{1,9})?\s*(?:(:)\s*(-?\d{1,9})?\s*(?::\s*(-?[1-9]\d{0,8})?\s*)?)?"
)
_NVSWITCH: Final = re.compile(r"nv[ _-]?(?:l(?:ink)?)?[ _-]?sw|nvlink", re.IGNORECASE)
_CUSTOM: Final = (
    (re.compile(r"slot|endpoint|connector|transceiver|bridge", re.IGNORECASE), SLOT),
    (re.compile(r"nic|hca", re.IGNORECASE), "nic"),
    (re.compile(r"nvme|ssd|drive|disk", re.IGNORECASE), "nvme"),
)


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a device: so many equal things."""

    name: str
    count: int
    kind: str
    text: str
    ports: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    """A device: its components and links by name, its edges, and whether it is a network switch.

    `ports` are those of the component that has most. `edges` are of an instance without a name.
    """

    name: str
    text: str
    components: dict[str, Component]
    links: dict[str, Node]
    edge_nodes: tuple[Node, ...]
    is_switch: bool
    ports: int
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """So many of a device."""

    name: str
    count: int
    device: Device


@dataclass(frozen=True, slots=True)
class Edge:
    """Two things, each an instance's and a component's name with their numbers, and what joins."""

    a: Thing
    b: Thing
    link: str


@dataclass(frozen=True, slots=True)
class Thing:
    """One component of one instance; a switch is one thing by itself."""

    instance: str
    number: int
    component: str
    index: int


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """A whole file: instances and links by name, the edges between instances, and findings."""

    instances: dict[str, Instance]
    links: dict[str, Node]
    edges: tuple[Edge, ...]
    findings: tuple[Finding, ...]


def read_infrastructure(data: bytes, name: str) -> Infrastructure:
    """Read an infrastructure, or a device's file alone, of which there is then one.

    Raises
    ------
    ExchangeError
        With every mistake of the file, if it is not whole.
    """
    try:
        document = parse(data, name=name)
    except DocumentError as error:
        raise ExchangeError(error.findings) from None
    report = Report(document)
    root = document.root
    if not isinstance(root, Mapping) or not (root.get("devices") or root.get("components")):
        message = f"`{name}` is a YAML file, not what `infragraph` reads"
        help = "an infrastructure has `devices:`, a device alone has `components:`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    if root.get("components") and not root.get("instances"):
        place, title = root.place, root.get("name")
        title = title if isinstance(title, Scalar) else Scalar("host", place)
        entries = ((Scalar("name", place), title), (Scalar("device", place), title))
        instance = Mapping((*entries, (Scalar("count", place), Scalar("1", place))), place)
        root = Mapping(
            ((Scalar("devices", place), root), (Scalar("instances", place), instance)), place
        )
    return _Reader(report).infrastructure(root, name)


class _Reader:
    """Reads one file; every mistake goes to the report."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def infrastructure(self, root: Mapping, name: str) -> Infrastructure:
        shapes = self._devices(root.get("devices"))
        self._report.stop(ExchangeError)
        devices = {device.name: self._with_edges(device) for device in shapes.values()}
        instances = self._instances(root.get("instances"), devices)
        count = sum(
            instance.count * sum(part.count for part in instance.device.components.values())
            for instance in instances.values()
        )
        if count > MOST_DEVICES:
            message = f"`{name}` has {count} components, more than {MOST_DEVICES}"
            raise ExchangeError(Finding("import-too-big", message))
        links = self._links(root.get("links"))
        nodes = self._items(root.get("edges"), "`edges:`")
        edges = self._all_edges(nodes, instances, links)
        self._report.stop(ExchangeError)
        return Infrastructure(instances, links, edges, self._report.findings)

    def _with_edges(self, device: Device) -> Device:
        alone = {"": Instance("", 1, device)}
        return replace(device, edges=self._all_edges(device.edge_nodes, alone, device.links))

    def _all_edges(
        self, nodes: Iterable[Node], instances: dict[str, Instance], links: dict[str, Node]
    ) -> tuple[Edge, ...]:
        edges: list[Edge] = []
        for node in nodes:
            edges += self._edges(node, instances, links)
            if len(edges) > _MOST_EDGES:
                message = f"with this there are more than {_MOST_EDGES} pairs"
                self._report.add(node, "huge-range", message)
                break
        return tuple(edges)

    # --- shape ---

    def _items(self, node: Node | None, what: str) -> tuple[Node, ...]:
        return items_of(node, f"{what} is a list", self._report, help="start each with `- `")

    def _text(self, node: Node | None, what: str) -> str:
        return text_of(node, what, self._report) or ""

    def _named(self, node: Node | None, what: str) -> Iterator[tuple[str, Mapping]]:
        """Yield the entries of a list by their `name:`, each once."""
        names: set[str] = set()
        for item in self._items(node, what):
            mapping = mapping_of(item, f"an entry of {what}", self._report)
            if mapping is None:
                continue
            name = self._text(mapping.get("name"), f"`name` in {what}")
            if not name:
                if mapping.get("name") is None:
                    message = f"an entry of {what} has no `name:`"
                    self._report.add(mapping, "missing-key", message)
            elif name in names:
                self._report.add(mapping, "defined-twice", f"`{name}` stands in {what} twice")
            else:
                names.add(name)
                yield name, mapping

    def _count(self, mapping: Mapping) -> int:
        node = mapping.get("count")
        text = self._text(node, "`count`") if node is not None else "1"
        if not re.fullmatch(r"[0-9]{1,9}", text):
            message = f"`count` is a whole number, not `{text}`"
            self._report.add(node or mapping, "bad-number", message)
            return 0
        return int(text)

    def _links(self, node: Node | None) -> dict[str, Node]:
        return dict(self._named(node, "`links:`"))

    def _devices(self, node: Node | None) -> dict[str, Device]:
        entries = dict(self._named(node, "`devices:`")) if not isinstance(node, Mapping) else {}
        if isinstance(node, Mapping):  # a device's file alone
            entries = {self._text(node.get("name"), "`name`") or "host": node}
        choices = {name: self._choices(entry) for name, entry in entries.items()}
        return {
            name: self._device(name, entry, choices[name], choices)
            for name, entry in entries.items()
        }

    def _choices(self, entry: Mapping) -> list[tuple[str, str, Mapping, int]]:
        """Return name, choice, entry and count of each component of a device."""
        choices = []
        for name, component in self._named(entry.get("components"), "`components:`"):
            node = component.get("choice") or component.get("type")
            choices.append((name, self._text(node, "`choice`"), component, self._count(component)))
        return choices

    def _device(
        self,
        name: str,
        entry: Mapping,
        choices: list[tuple[str, str, Mapping, int]],
        of_devices: dict[str, list[tuple[str, str, Mapping, int]]],
    ) -> Device:
        ports = max((count for _, choice, _, count in choices if choice == "port"), default=0)
        inner = {choice for _, choice, _, _ in choices}
        is_switch = ports > 0 and inner.isdisjoint(("xpu", "npu", "nic", "memory", "device"))
        components = {}
        for part_name, choice, component, count in choices:
            description = plain_text(component.get("description"))
            text = f"{part_name}: {description}" if description else part_name
            kind, of_part = self._kind(choice, component, text), 0
            if choice == "device":
                of_device = of_devices.get(part_name, [])
                of_part = max((number for _, of, _, number in of_device if of == "port"), default=0)
                if not of_device:
                    message = (
                        f"`{part_name}` is a component that is a device, and none is so called"
                    )
                    help = did_you_mean(part_name, of_devices)
                    self._report.add(component, "unknown-name", message, help=help)
                kind = "nic" if of_part else ""
            components[part_name] = Component(part_name, count, kind, text, of_part)
        return Device(
            name,
            f"{name}: {plain_text(entry.get('description'))}",
            components,
            self._links(entry.get("links")),
            self._items(entry.get("edges"), "`edges:`"),
            is_switch,
            ports,
        )

    def _kind(self, choice: str, component: Mapping, text: str) -> str:
        """Return the kind of a component, `SLOT` for what passes links on, empty for no device."""
        if choice == "switch":
            return "nvswitch" if _NVSWITCH.search(text) else "pcie-switch"
        if choice == "port":
            return "nic"
        if choice != "custom":
            return _CHOICES.get(choice, "")
        custom = component.get("custom")
        stated = custom.get("type") if isinstance(custom, Mapping) else None
        word = self._text(stated, "`type`")
        if word in KINDS:
            return word
        return next((kind for pattern, kind in _CUSTOM if pattern.search(word)), "")

    def _instances(self, node: Node | None, devices: dict[str, Device]) -> dict[str, Instance]:
        instances = {}
        entries = (
            [(self._text(node.get("name"), "`name`"), node)]
            if isinstance(node, Mapping)
            else list(self._named(node, "`instances:`"))
        )
        for name, entry in entries:
            of_device = self._text(entry.get("device"), "`device`")
            if of_device in devices:
                instances[name] = Instance(name, self._count(entry), devices[of_device])
            else:
                message = f"instance `{name}` is of a device `{of_device}`, and there is none"
                help = did_you_mean(of_device, devices)
                self._report.add(entry.get("device") or entry, "unknown-name", message, help=help)
        return instances

    # --- edges ---

    def _edges(
        self, node: Node, instances: dict[str, Instance], links: dict[str, Node]
    ) -> list[Edge]:
        """Return the pairs that an edge joins by its scheme."""
        edge = mapping_of(node, "an edge", self._report)
        if edge is None:
            return []
        ends = [self._things(edge, key, instances) for key in ("ep1", "ep2")]
        link = self._text(edge.get("link"), "`link`")
        if link not in links:
            message = f"the edge is of a link `{link}`, and `links:` has none so called"
            help = did_you_mean(link, links)
            self._report.add(edge.get("link") or edge, "unknown-name", message, help=help)
        left, right = ends
        scheme = plain_text(edge.get("scheme"))
        if plain_text(edge.get("many2many")) == "true":
            scheme = "many2many"
        if len(left) * len(right) > _MOST_EDGES and scheme == "many2many":
            message = f"the edge makes {len(left) * len(right)} pairs, more than {_MOST_EDGES}"
            self._report.add(edge, "huge-range", message)
            return []
        pairs: Iterable[tuple[Thing, Thing]]
        if scheme == "many2many":
            pairs = product(left, right)
            if left == right:
                pairs = ((a, b) for at, a in enumerate(left) for b in left[at + 1 :])
        elif scheme == "ring":
            pairs = [*pairwise(left), (left[-1], left[0])] if len(left) > 1 else ()
        elif scheme in ("", "one2one"):
            pairs = zip(left, right, strict=False)  # the rest stays unjoined, as InfraGraph does
        else:
            message = f"`scheme` is one2one, many2many or ring, not `{scheme}`"
            self._report.add(edge, "unknown-word", message)
            return []
        return [Edge(a, b, link) for a, b in pairs if a != b]

    def _things(self, edge: Mapping, key: str, instances: dict[str, Instance]) -> list[Thing]:
        """Return what one end of an edge names; a mistake is reported once."""
        end = mapping_of(edge.get(key), f"`{key}`", self._report)
        if end is None:
            if edge.get(key) is None:
                self._report.add(edge, "missing-key", f"an edge needs `{key}:`")
            return []
        component = self._text(end.get("component"), "`component`")
        outer = self._text(end.get("instance"), "`instance`") if "" not in instances else ""
        inner = plain_text(end.get("device"))
        # Of a device in a device the first counts: `cx5[0:2].pcie_endpoint[0]` is of two cards.
        first = (inner or component).split(".", 1)[0]
        instance_name, instance_slice = _split(outer)
        component_name, component_slice = _split(first)
        instance = instances.get(instance_name)
        if instance is None:
            message = f"there is no instance `{instance_name}`"
            help = did_you_mean(instance_name, instances)
            self._report.add(end.get("instance") or end, "unknown-name", message, help=help)
            return []
        inside = instance.device.components.get(component_name)
        if inside is None:
            message = f"`{instance.device.name}` has no component `{component_name}`"
            help = did_you_mean(component_name, instance.device.components)
            self._report.add(end.get("component") or end, "unknown-name", message, help=help)
            return []
        numbers = self._numbers(instance_slice, instance.count, end)
        indices = self._numbers(component_slice, inside.count, end)
        if len(numbers) * len(indices) > _MOST_EDGES:
            message = f"`{key}` names more than {_MOST_EDGES} components"
            self._report.add(end, "huge-range", message)
            return []
        return [
            Thing(instance_name, number, component_name, index)
            for number in numbers
            for index in indices
        ]

    def _numbers(self, text: str | None, count: int, at: Mapping) -> range:
        """Return the numbers that a slice of Python's stands for."""
        if not text:
            return range(count)
        match = _SLICE.fullmatch(text)
        if match is None or not any(match.groups()):
            self._report.add(at, "bad-range", f"`[{text}]` is no slice: write `[0:4]` or `[3]`")
            return range(0)
        first, colon, last, step = match.groups()
        if not colon:
            index = int(first) + (count if int(first) < 0 else 0)
            if 0 <= index < count:
                return range(index, index + 1)
            message = f"`[{text}]` is beyond the {counted(count, 'one')} that there are"
            self._report.add(at, "bad-range", message, help=f"numbers go from 0 to {count - 1}")
            return range(0)
        bounds = [int(bound) if bound else None for bound in (first, last, step)]
        return range(*slice(*bounds).indices(count))


def _split(text: str) -> tuple[str, str | None]:
    match = _END.fullmatch(text.strip())
    return (match[1], match[2]) if match else (text, None)


def plain_text(node: Node | None) -> str:
    """Return the text of a scalar, empty where there is none."""
    return node.text.strip() if isinstance(node, Scalar) else ""
