"""``numactl --hardware``, ``lscpu`` and its ``-J``: NUMA nodes, memory, sockets, the CPU's model.

Which nodes are of one socket neither says by itself: the number of sockets is lscpu's, and what
lies near to what is numactl's table of distances.

References
----------
numactl, ``numactl.c``: ``hardware``. util-linux, ``sys-utils/lscpu.c``: ``print_summary``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from topo.discovery.foreign import BEFORE, json_in, nothing_there, read_lines
from topo.discovery.machine import Machine, printable
from topo.discovery.numa import Package, hosts_of, with_generation
from topo.graph import components
from topo.records import dataclass

_CPUS: Final = re.compile(rf"{BEFORE}node (\d{{1,4}}) cpus:(.*)")
_SIZE: Final = re.compile(rf"{BEFORE}node (\d{{1,4}}) size:\s*(\d{{1,10}}) MB")
_COLUMNS: Final = re.compile(rf"{BEFORE}node((?:\s+\d{{1,4}})+)\s*")
_ROW: Final = re.compile(rf"{BEFORE}(\d{{1,4}}):((?:\s+\d{{1,5}})+)\s*")
_KEY: Final = re.compile(
    rf"{BEFORE}(Model name|Vendor ID|CPU family|Model|Socket\(s\)|NUMA node\(s\)"
    r"|NUMA node(\d{1,4}) CPU\(s\)):\s*(.*)"
)
_MOST_NODES, _MOST_SOCKETS, _DEEPEST = 128, 16, 16
_SMALL: Final = re.compile(r"\d{1,3}")


@dataclass(slots=True)
class _Nodes:
    """What the text says of nodes and CPUs; the first of each."""

    with_cpus: dict[int, bool] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    distances: dict[tuple[int, int], int] = field(default_factory=dict)
    cpu: dict[str, str] = field(default_factory=dict)  # by lscpu's words
    sockets: int = 0

    @property
    def model(self) -> str:
        """The CPU's name, with its generation where the name has no number."""
        words = ("Model name", "Vendor ID", "CPU family", "Model")
        return with_generation(*(self.cpu.get(word, "") for word in words))

    @property
    def nodes(self) -> dict[int, int | None]:
        """The bytes of memory of each node with CPUs."""
        numbers = sorted(node for node, has_cpus in self.with_cpus.items() if has_cpus)
        return {node: self.sizes.get(node) for node in numbers[:_MOST_NODES]}


def read(data: bytes, name: str) -> Machine:
    """Read NUMA nodes and CPUs of either tool, or of both one after the other.

    Raises an `ExchangeError` if neither a node nor a CPU's model is told.
    """
    lines = read_lines(data, name)
    root = json_in(lines, name, "lscpu -J > cpus.json")
    text_nodes = _read(lines if root is None else _fields(root))
    if not text_nodes.nodes and not text_nodes.model:
        message = f"`{name}` tells no NUMA node with CPUs, and no model of a CPU"
        raise nothing_there(message, "paste what `numactl --hardware` and `lscpu` write")
    groups = _sockets(text_nodes)
    packages = [Package(frozenset(group), text_nodes.model) for group in groups]
    hosts = hosts_of(
        text_nodes.nodes, packages, text_nodes.model if groups or not text_nodes.nodes else ""
    )
    bare = [node for node, has_cpus in text_nodes.with_cpus.items() if not has_cpus]
    return Machine(
        kind="numactl",
        source="NUMA nodes by numactl and lscpu",
        file=name,
        devices=tuple(device for device in hosts.devices if device.kind == "cpu" or device.facts),
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        left_out=tuple(f"node {node}" for node in bare),
        tells_only="its CPUs and NUMA nodes",
    )


def _fields(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the fields of lscpu's JSON as its text has them, however deep they stand."""
    if isinstance(value, dict):
        field, data = value.get("field"), value.get("data")
        if isinstance(field, str) and isinstance(data, str):
            yield f"{field.rstrip(':')}: {data}"
        value = [value.get("lscpu"), value.get("children")]
    for inner in value if isinstance(value, list) and depth < _DEEPEST else []:
        yield from _fields(inner, depth + 1)


def _read(lines: Iterable[str]) -> _Nodes:
    text_nodes = _Nodes()
    columns: list[int] = []
    for line in lines:
        if match := _CPUS.match(line):
            text_nodes.with_cpus.setdefault(int(match[1]), bool(match[2].strip()))
        elif match := _SIZE.match(line):
            text_nodes.sizes.setdefault(int(match[1]), int(match[2]) * 2**20)
        elif match := _COLUMNS.fullmatch(line):
            columns = [int(text) for text in match[1].split()][:_MOST_NODES]
        elif columns and (match := _ROW.fullmatch(line)):
            for column, text in zip(columns, match[2].split(), strict=False):
                text_nodes.distances.setdefault((int(match[1]), column), int(text))
        elif match := _KEY.match(line):
            key, node, text = match[1], match[2], match[3].strip()
            if node is not None:
                text_nodes.with_cpus.setdefault(int(node), bool(text))
            elif key == "Socket(s)" and _SMALL.fullmatch(text):
                text_nodes.sockets = text_nodes.sockets or int(text)
            elif text:
                text_nodes.cpu.setdefault(key, printable(text))
    return text_nodes


def _sockets(text_nodes: _Nodes) -> list[list[int]]:
    """Return the nodes of each socket, none where that is not told.

    One socket has all nodes; as many sockets as nodes have one each. Otherwise those nodes share a
    socket that lie nearer to each other than to the rest, if that gives as many as lscpu counts.
    """
    nodes = list(text_nodes.nodes)
    if not nodes or not 0 < text_nodes.sockets <= _MOST_SOCKETS:
        return []
    if text_nodes.sockets == 1:
        return [nodes]
    if text_nodes.sockets == len(nodes):
        return [[node] for node in nodes]
    for farthest in sorted(set(text_nodes.distances.values())):
        groups = _within(nodes, text_nodes.distances, farthest)
        if len(groups) == text_nodes.sockets and len({len(group) for group in groups}) == 1:
            return groups
    return []


def _within(
    nodes: Sequence[int], distances: Mapping[tuple[int, int], int], farthest: int
) -> list[list[int]]:
    """Return the nodes in groups that are joined by distances up to one."""

    def near(node: int) -> set[int]:
        return {end for end in nodes if distances.get((node, end), farthest + 1) <= farthest}

    return [sorted(group) for group in components(nodes, near)]
