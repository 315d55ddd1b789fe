"""The graph that NCCL and RCCL write into their log, and what else the log says of cards and GPUs.

All releases are read that write a graph: ``GPU/81000`` and ``GPU/0-81000`` are the same. A line
hangs on the nearest one above that begins further left; each process of a log has a graph of its
own.

References
----------
NVIDIA NCCL 2.5 to 2.30, ``src/graph/topo.cc`` (``ncclTopoPrintRec``), ``src/graph/paths.cc``
(``printNodePaths``) and ``src/debug.cc``; ROCm RCCL, the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from topo.discovery.machine import printable
from topo.discovery.pci import read_address
from topo.records import dataclass

_MESSAGE: Final = re.compile(r"(?P<before>.{0,400}?)\b[A-Z]{0,6}CCL INFO ?(?P<text>.*)")
_ORIGIN: Final = re.compile(r"([A-Za-z0-9][\w.-]{0,250}):\d+(?::\d+)? \[\d+\]\s*\Z")
_TITLE: Final = re.compile(r"=== System : max(?:Bw|Width)")
_END: Final = re.compile(r"\s*={10,}\s*\Z")
_NODE: Final = r"(?:([0-9a-fA-F]{1,4})-)?([0-9a-fA-F]{1,16})\b"
_CPU: Final = re.compile(
    rf"\s*CPU/{_NODE}\s*(?:\((-?\d{{1,4}})/(-?\d{{1,4}})/(-?\d{{1,4}})\))?\s*\Z"
)
_LINK: Final = re.compile(
    r"(?P<indent>\s*)\+ (?P<link>[A-Z0-9]{2,5})\[ ?(?P<rate>\d{1,7}(?:\.\d{1,3})?)\] - "
    rf"(?P<kind>[A-Z0-9]{{2,5}})/{_NODE}(?: \((?P<facts>[^()]{{1,80}})\))?"
)
_PATHS: Final = re.compile(rf"\s*(?P<kind>GPU|NET)/{_NODE} :(?P<paths>.*)")
_PATH: Final = re.compile(rf"\b(?P<kind>GPU|NET)/{_NODE} \(\d+/")
_NET_FACTS: Final = re.compile(r"(?:\d+/)?([0-9a-fA-F]{1,16})/(-?\d{1,5})/(\d{1,7}(?:\.\d{1,9})?)")
_USING: Final = re.compile(r"NET/(?P<plugin>\w{1,20}) : Using (?P<list>.*?)(?:; OOB.*)?\Z")
_MERGED: Final = re.compile(r"\[(\d{1,4})\]=\{([^{}]*)\}")
_PORT: Final = re.compile(r"\[(\d{1,4})\] ?([\w.+-]{1,100}):(?:(\d{1,3})/(IB|RoCE))?")
_FILLED: Final = re.compile(
    r"Filled (\S{1,100}) in topo with pciPath=\S*/([0-9a-f]{4,8}:[0-9a-f:.]{7})(?:\s|\Z)"
)
_RANK: Final = re.compile(
    r"\bRank\s+\d+\s.{0,80}?\bon\s+([\w.-]{1,250})\s+device\s+\d+\s+"
    r"\[(?:0x)?([0-9a-fA-F:.]{2,16})\]\s+(\S.*)"
)
_BUS_DIGITS: Final = 2
_IN_TREE: Final = ("PCI", "GPU", "DEV", "NIC")
_OF_A_GPU: Final = ("NVL", "XGMI", "C2C", "LOC")
_SYSTEM_BITS: Final = 56


@dataclass(frozen=True, slots=True)
class Node:
    """What the graph has in the PCIe tree: a CPU, a switch, a GPU, a card.

    Parameters
    ----------
    key
        Its kind and number: ``GPU/81000``. A ``DEV``, of newer releases, is a GPU's hardware.
    system
        Which of several hosts of one NVLink domain it is in.
    number
        A NUMA node, or a PCI address as a number.
    above
        The key of what it hangs on, empty for a CPU.
    rate
        The link to that as the log has it: ``24.0``.
    facts
        What stands in brackets behind it.
    """

    key: str
    kind: str
    system: int
    number: int
    above: str = ""
    rate: str = ""
    facts: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link outside the PCIe tree, by the keys of its ends: NVLink, xGMI, C2C, between CPUs."""

    link: str
    a: str
    b: str
    rate: str


@dataclass(frozen=True, slots=True)
class Port:
    """A network port of a card, by the card's key: its index in NCCL's list, and bits/s."""

    card: str
    index: int
    rate: float | None


@dataclass(slots=True)
class Graph:
    """One graph of a log.

    Parameters
    ----------
    host
        The name of the host that wrote it, empty where the log's lines do not begin with one.
    nodes, edges, ports
        By their keys, in the log's order.
    listed
        The GPUs and ports that its table of paths has.
    lost
        How many lines have no place in it.
    is_flat
        Whether the lines have lost their indentation.
    """

    host: str
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    ports: dict[tuple[str, int], Port] = field(default_factory=dict)
    listed: dict[str, None] = field(default_factory=dict)
    lost: int = 0
    is_flat: bool = False


@dataclass(frozen=True, slots=True)
class CardName:
    """What NCCL calls an entry of its list of cards: RDMA devices, or interfaces of sockets."""

    names: tuple[str, ...]
    network: str
    is_rdma: bool


@dataclass(slots=True)
class Log:
    """What a log tells.

    Parameters
    ----------
    graphs
        Those with a CPU in them.
    cards
        By host and index in NCCL's list.
    names_at
        The names of cards by host and PCI address.
    gpus_at
        The names of GPUs by host and PCI address, from the head of nccl-tests.
    is_of_amd
        Whether it is RCCL's.
    """

    graphs: list[Graph] = field(default_factory=list)
    cards: dict[tuple[str, int], CardName] = field(default_factory=dict)
    names_at: dict[tuple[str, str], str] = field(default_factory=dict)
    gpus_at: dict[tuple[str, str], str] = field(default_factory=dict)
    is_of_amd: bool = False


def read_log(lines: Iterable[str]) -> Log:
    """Read the lines of a log, those of several processes and hosts mixed."""
    log = Log()
    open_graphs: dict[str, _Open] = {}
    for line in lines:
        message = _MESSAGE.match(line)
        if message is None:
            origin = host = ""
            text = line
        else:
            origin_match = _ORIGIN.search(message["before"])
            origin = origin_match[0] if origin_match else ""
            host = origin_match[1].partition(".")[0] if origin_match else ""
            text = message["text"]
        text = text.rstrip().expandtabs()
        log.is_of_amd = log.is_of_amd or "RCCL version" in line or "+ XGMI[" in text
        if _TITLE.search(text):
            open_graphs[origin] = _Open(Graph(host))
            log.graphs.append(open_graphs[origin].graph)
        elif (at := open_graphs.get(origin)) is not None and at.takes(text):
            continue
        elif (cpu := _CPU.match(text)) or _LINK.match(text):  # the title was cut off
            open_graphs[origin] = _Open(Graph(host), is_cut=not cpu)
            log.graphs.append(open_graphs[origin].graph)
            open_graphs[origin].takes(text)
        else:
            _take_name(log, host, text)
    log.graphs = [graph for graph in log.graphs if graph.nodes]
    return log


class _Open:
    """A graph that is being read: the lines that the next one may hang on, by their columns."""

    def __init__(self, graph: Graph, *, is_cut: bool = False) -> None:
        self.graph = graph
        self.above: list[tuple[int, Node]] = []
        self.last: Node | None = None  # what the last line put into the tree
        self.is_closed = is_cut

    def takes(self, text: str) -> bool:
        """Whether a line is the graph's; then it is taken."""
        if paths := _PATHS.match(text):
            self.is_closed = True
            for path in (paths, *_PATH.finditer(paths["paths"])):
                system, number = _number(path[2], path[3])
                self.graph.listed[_key(path["kind"], system, number)] = None
        elif _END.match(text):
            self.is_closed = True
        elif cpu := _CPU.match(text):
            if self.is_closed and self.graph.nodes:
                return False
            self.is_closed = False
            system, number = _number(cpu[1], cpu[2])
            facts = "/".join(filter(None, cpu.groups()[2:]))
            self._add(-1, Node(_key("CPU", system, number), "CPU", system, number, facts=facts))
        elif link := _LINK.match(text):
            if self.is_closed or not self.above:
                self.graph.lost += 1
            else:
                self._take_link(link)
        else:
            return False
        return True

    def _add(self, column: int, node: Node) -> None:
        while self.above and self.above[-1][0] >= column:
            self.above.pop()
        self.above.append((column, node))
        self.last = node
        self.graph.nodes.setdefault(node.key, node)

    def _take_link(self, match: re.Match[str]) -> None:
        column, link, kind = len(match["indent"]), match["link"], match["kind"]
        system, number = _number(match[5], match[6])
        key = _key(kind, system, number)
        while self.above[-1][0] >= column:
            self.above.pop()
        parent = self.above[-1][1]
        if link == "PCI" and kind in _IN_TREE:
            facts = match["facts"] or ""
            self._add(column, Node(key, kind, system, number, parent.key, match["rate"], facts))
            return
        # Without indentation a GPU's links seem to be the CPU's, and stand behind the GPU.
        last = self.last if self.last is not None else parent
        is_astray = parent.kind == "CPU" and (
            (link == "NET" and last.kind == "NIC")
            or (link in _OF_A_GPU and last.kind in ("GPU", "DEV") and last.above == parent.key)
        )
        if is_astray:
            self.graph.is_flat = True
            parent = last
        if link == "NET" and kind == "NET":
            facts_of_net = _NET_FACTS.match(match["facts"] or "")
            rate = float(facts_of_net[3]) * 8e9 if facts_of_net else float(match["rate"]) * 8e9
            self.graph.ports.setdefault(
                (parent.key, number), Port(parent.key, number, rate if rate > 0 else None)
            )
        elif link != "NET":
            self.graph.edges.append(Edge(link, parent.key, key, match["rate"]))


def _number(system: str | None, number: str) -> tuple[int, int]:
    """Return the system and the number of a node; both may stand in one."""
    value = int(number, 16)
    if system is not None:
        return int(system, 16), value
    if value >> 63:  # below zero: what is not known
        return 0, value
    return value >> _SYSTEM_BITS, value & ((1 << _SYSTEM_BITS) - 1)


def _key(kind: str, system: int, number: int) -> str:
    return f"{kind}/{system:x}-{number:x}"


def _take_name(log: Log, host: str, text: str) -> None:
    """Take what a line says of a card's or a GPU's name, where it does."""
    if using := _USING.search(text):
        is_rdma = using["plugin"] != "Socket"
        entries = [(index, _PORT.findall(ports)) for index, ports in _MERGED.findall(using["list"])]
        if not entries:
            entries = [(port[0], [port]) for port in _PORT.findall(using["list"])]
        for index, ports in entries:
            names = tuple(dict.fromkeys(printable(name) for _, name, _, _ in ports))
            layers = {layer for *_, layer in ports}
            network = {"IB": "infiniband", "RoCE": "ethernet"}.get("".join(layers), "")
            before = log.cards.get((host, int(index)))
            if names and (before is None or (is_rdma and not before.is_rdma)):
                log.cards[host, int(index)] = CardName(names, network, is_rdma)
    elif filled := _FILLED.search(text):
        if address := read_address(filled[2]):
            log.names_at.setdefault((host, address), printable(filled[1]))
    elif rank := _RANK.search(text):
        place = rank[2]
        address = read_address(f"{place}:00" if len(place) == _BUS_DIGITS else place)
        if address:
            log.gpus_at.setdefault((rank[1].partition(".")[0], address), printable(rank[3]))
