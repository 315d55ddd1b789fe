"""Output of ``nvidia-smi topo -m``, also pasted, coloured, wrapped, old, or without its legend.

The least tree that such a matrix allows is built: what is near hangs together. Devices that are PIX
to each other share a switch; PXB, an upper switch; PHB, a root complex; NODE, a NUMA node. NVLink
codes hide the PCIe relation: what the other pairs do not settle is decided by the affinity columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from topo.catalogue.kinds import Kind
from topo.description.names import numbers_in
from topo.discovery.foreign import read_lines
from topo.discovery.machine import (
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    by_depth,
    printable,
)
from topo.errors import ExchangeError, Finding, Place, UnitError
from topo.graph import components
from topo.records import dataclass

# Nearest first; what was called otherwise once.
RANKS: Final = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
_OLD_CODES: Final = {"SOC": "SYS", "PSB": "PIX"}
_PIX, _PXB, _PHB, _NODE, _SYS = 1, 2, 3, 4, 5
_NVLINKS: Final = re.compile(r"NV(\d{1,2})")

_COLUMNS: Final = re.compile(
    r"CPU\s+Affinity|NUMA\s+Affinity|Node\s+Affinity|GPU\s+NUMA\s+ID|\S+", re.IGNORECASE
)
_FIELDS: Final = {
    "cpu affinity": "cpus",
    "numa affinity": "numa",
    "node affinity": "numa",
    "gpu numa id": "gpu_numa",
}
_DEVICE: Final = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|(?!(?:NV|X)\d*$)[A-Za-z][\w.:-]{0,40}\d\w{0,8}")
_KNOWN_CODE: Final = re.compile(r"NV\d{1,2}|NODE|SYS|PHB|PXB|PIX|PSB|SOC|X")
_ANY_CODE: Final = re.compile(r"[A-Za-z][A-Za-z/#]{0,5}\d{0,2}(?=\s|$)")
_PEER_CODES: Final = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
_LEGEND: Final = re.compile(r"\s*(NIC\d{1,4})\s*:\s*(\S{1,60})\s*")
_NODES: Final = re.compile(r"[0-9]{1,4}(?:[-,][0-9]{1,4})*")
_MOST_DEVICES: Final = 256
_MOST_NVLINKS: Final = 18  # of one GPU: more in sum means that a switch is between
_SWITCH: Final = "nvswitch"
_TWO_PORTS: Final = 2
_MANY: Final = 4


@dataclass(frozen=True, slots=True)
class Affinity:
    """What stands behind a row: lists as written, ``""`` where nothing stands."""

    cpus: str = ""
    numa: str = ""
    gpu_numa: str = ""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The NUMA nodes as numbers."""
        if not _NODES.fullmatch(self.numa):
            return ()
        try:
            return numbers_in(self.numa)
        except UnitError:  # no list after all: then nothing is known
            return ()

    def __bool__(self) -> bool:
        return bool(self.cpus or self.nodes)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix.

    Parameters
    ----------
    names
        GPUs and cards in the order of the columns.
    codes
        Code by row and column, as written.
    affinity
        By row.
    legend
        The device that each ``NIC#`` stands for.
    """

    names: tuple[str, ...]
    codes: Mapping[tuple[str, str], str]
    affinity: Mapping[str, Affinity]
    legend: Mapping[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in order."""
        return tuple(name for name in self.names if name.startswith("GPU"))

    @property
    def cards(self) -> tuple[str, ...]:
        """The network cards' functions, in order."""
        return tuple(name for name in self.names if not name.startswith("GPU"))

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield every pair once, with the code of its first row that has one."""
        for at, a in enumerate(self.names):
            for b in self.names[at + 1 :]:
                yield a, b, self.codes.get((a, b)) or self.codes.get((b, a), "")

    def affinity_of(self, name: str) -> Affinity:
        """Return what stands behind a device's row, nothing where it has none."""
        return self.affinity.get(name, Affinity())


def rank_of(code: str) -> int | None:
    """Return how far a PCIe code is, `None` for links between GPUs and what is unknown.

    Examples
    --------
    >>> rank_of("PIX"), rank_of("SOC"), rank_of("NV12")
    (1, 5, None)
    """
    code = _OLD_CODES.get(code, code)
    return RANKS.index(code) if code in RANKS else None


def links_in(code: str) -> int:
    """Return how many NVLinks a code says, 0 for other codes."""
    match = _NVLINKS.fullmatch(code)
    return int(match[1]) if match else 0


def read(data: bytes, name: str) -> Machine:
    """Read a matrix and build the least tree that it allows.

    Raises an `ExchangeError` if there is no such matrix in it.
    """
    matrix = read_matrix(data, name)
    tree = _Tree(matrix)
    switches, cables = _fabric(matrix)
    return Machine(
        kind="nvidia-smi",
        source="output of nvidia-smi topo -m",
        file=name,
        devices=(*tree.devices(), *switches),
        cables=cables,
        notes=(
            "Such a matrix knows neither addresses nor speeds, nor what parts these are: fill them",
            "in. Switches are those that the classes need; a cpu here is a NUMA node.",
        ),
        findings=(*matrix.findings, *tree.findings()),
    )


# --- lines ----------------------------------------------------------------------------------------


def read_matrix(data: bytes, name: str) -> Matrix:
    """Read the matrix alone.

    Raises
    ------
    ExchangeError
        If there is none, or it is one of ``topo -p2p``.
    """
    lines = read_lines(data, name)
    at, names, fields = _header(lines, name)
    rows = _rows(lines, at, names)
    if not rows:
        message = f"`{name}` names {len(names)} devices and has no row for any"
        raise ExchangeError(Finding("unreadable-matrix", message, place=Place(name, at + 1, 1)))
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    codes: dict[tuple[str, str], str] = {}
    affinity: dict[str, Affinity] = {}
    short: list[tuple[int, str]] = []
    for row, (number, text) in rows.items():
        cells, behind = _cells(text, len(names))
        if len(cells) < len(names):
            short.append((number, row))
        codes |= {(row, column): code for column, code in zip(names, cells, strict=False)}
        values = dict(zip(fields, behind.split(), strict=False))
        affinity[row] = Affinity(
            **{field: printable(value) for field, value in values.items() if value != "N/A"}
        )
    between = {code for (row, column), code in codes.items() if row != column}
    if between and between <= _PEER_CODES:
        message = f"`{name}` is a peer-to-peer matrix of `nvidia-smi topo -p2p`, not of `topo -m`"
        raise ExchangeError(Finding("wrong-kind", message, help="run `nvidia-smi topo -m`"))
    findings: list[Finding] = []
    rowless = [device for device in names if device not in rows]
    if short or rowless:
        what = f"the row of {short[0][1]} is short" if short else f"{rowless[0]} has no row"
        message = (
            f"{what}; the cells were taken from the other half of the matrix where it has them"
        )
        place = Place(name, short[0][0], 1) if short else None
        findings.append(Finding("ragged-matrix", message, place=place, severity="warning"))
    findings += _odd_codes(codes)
    return Matrix(names, codes, affinity, legend, tuple(findings))


def _odd_codes(codes: dict[tuple[str, str], str]) -> Iterator[Finding]:
    between = {code for (row, column), code in codes.items() if row != column}
    odd = sorted(code for code in between if rank_of(code) is None and not links_in(code))
    if odd:
        message = (
            f"{', '.join(odd[:3])}: no code of nvidia-smi's; such pairs are taken as not known"
        )
        help = "another vendor's tool prints the same form"
        yield Finding("unknown-code", message, severity="warning", help=help)
    unequal = [
        (a, b) for (a, b), code in codes.items() if a < b and codes.get((b, a), code) != code
    ]
    if unequal:
        a, b = unequal[0]
        message = f"{a} to {b} is {codes[a, b]}, and back {codes[b, a]}"
        message += f"; {len(unequal) - 1} more" if len(unequal) > 1 else ""
        help = "the first was taken; was the text edited?"
        yield Finding("asymmetric-matrix", message, severity="warning", help=help)


def _header(lines: list[str], name: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return the header's index, its devices, and the fields behind them."""
    for at, line in enumerate(lines):
        tokens = _COLUMNS.findall(line)
        words = [" ".join(token.lower().split()) for token in tokens]
        behind = next((place for place, word in enumerate(words) if word in _FIELDS), None)
        names = tokens[:behind]
        if not names or not re.fullmatch(r"GPU\d{1,4}", names[0]):
            continue
        if all(_DEVICE.fullmatch(device) for device in names) and len(set(names)) == len(names):
            if len(names) > _MOST_DEVICES:
                message = f"`{name}` names {len(names)} devices, more than {_MOST_DEVICES}"
                raise ExchangeError(Finding("import-too-big", message))
            fields = [_FIELDS[word] for word in words[len(names) :] if word in _FIELDS]
            return at, tuple(names), tuple(fields)
    message = f"`{name}` has no line that names GPU0 and the other devices"
    help = "paste the whole output of nvidia-smi topo -m"
    raise ExchangeError(Finding("unreadable-matrix", message, help=help))


def _rows(lines: list[str], header: int, names: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """Return for each row its line number and what stands behind its name, wrapped lines joined."""
    rows: dict[str, tuple[int, str]] = {}
    current = ""
    for at, line in enumerate(lines[header + 1 :], header + 2):
        first, _, behind = line.strip(" ").lstrip("\t ").replace("\t", " \t", 1).partition(" ")
        if first in names and first not in rows and _starts_with_code(behind):
            current = first
            rows[first] = (at, behind)
        elif not line.strip() or "=" in line or line.strip().endswith(":"):
            if current:
                break
        elif current and _starts_with_code(line):
            number, text = rows[current]
            if len(_cells(text, len(names))[0]) < len(names):
                rows[current] = (number, f"{text} {line}")
            elif len(rows) == len(names):
                break
        elif len(rows) == len(names):
            break
    return rows


def _starts_with_code(text: str) -> bool:
    text = text.strip()
    return bool(_KNOWN_CODE.match(text) or _ANY_CODE.match(text))


def _cells(text: str, count: int) -> tuple[list[str], str]:
    """Return up to `count` codes, also when they stick together, and what is behind them."""
    cells: list[str] = []
    at = 0
    while len(cells) < count:
        while at < len(text) and text[at].isspace():
            at += 1
        match = _KNOWN_CODE.match(text, at) or _ANY_CODE.match(text, at)
        if match is None:
            break
        cells.append(match[0])
        at = match.end()
    return cells, text[at:]


# --- NVLinks --------------------------------------------------------------------------------------


def _fabric(matrix: Matrix) -> tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...]]:
    """Return the NVSwitches and the cables: between pairs, or from each GPU to a switch."""
    gpus = set(matrix.gpus)
    links = {
        (a, b): count
        for a, b, code in matrix.pairs()
        if (count := links_in(code)) > 0 and {a, b} <= gpus
    }
    sums: Counter[str] = Counter()
    most: dict[str, int] = {}
    for pair, count in links.items():
        for name in pair:
            sums[name] += count
            most[name] = max(most.get(name, 0), count)
    if max(sums.values(), default=0) <= _MOST_NVLINKS:
        return (), tuple(
            DiscoveredCable(a, b, bundle(count, "nvlink unknown"), f"NV{count}")
            for (a, b), count in links.items()
        )
    # One GPU would need more links than it has, were they all direct.
    switch = DiscoveredDevice(
        _SWITCH, "nvswitch", "nvswitch-unknown", evidence="all GPUs are NV alike"
    )
    cables = (
        DiscoveredCable(name, _SWITCH, bundle(most[name], "nvlink unknown"), f"NV{most[name]}")
        for name in matrix.gpus
        if name in most
    )
    return (switch,), tuple(cables)


# --- the tree -------------------------------------------------------------------------------------


class _Tree:
    """Components of nearness at each level, and the devices that make them."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        # An X between two devices says nothing that can be.
        self.ranks = {(a, b): rank_of(code) or None for a, b, code in matrix.pairs()}
        # The devices that are within each level of one another, directly or by others.
        self.groups: dict[int, list[list[str]]] = {}
        for level in range(_PIX, _SYS):
            near = [pair for pair, rank in self.ranks.items() if rank is not None and rank <= level]
            self.groups[level] = self._joined(near)
            if level == _NODE:
                self.groups[level] = self._joined([*near, *self._settled(self.groups[level])])
        self.inner: list[DiscoveredDevice] = []
        self.leaves: dict[str, DiscoveredDevice] = {}
        nodes = self.groups[_NODE]
        numbers = [self._numbers(group) for group in nodes]
        if all(numbers):  # else in the order of the columns
            nodes = [group for _, group in sorted(zip(numbers, nodes, strict=True))]
        for number, node in enumerate(nodes):
            self._add_node(node, f"cpu {number}")

    def devices(self) -> tuple[DiscoveredDevice, ...]:
        """Return all devices; GPUs and cards in the order of the columns."""
        leaves = (self.leaves[name] for name in self.matrix.names if name in self.leaves)
        return (*by_depth(self.inner), *leaves)

    # --- nearness -----------------------------------------------------------------------------

    def _joined(self, pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
        neighbours: dict[str, list[str]] = {name: [] for name in self.matrix.names}
        for a, b in pairs:
            neighbours[a].append(b)
            neighbours[b].append(a)
        return components(self.matrix.names, neighbours.__getitem__)

    def _settled(self, groups: list[list[str]]) -> list[tuple[str, str]]:
        """Return pairs that the affinity puts into one NUMA node, where no code speaks against.

        Rows that are the same, or both empty, speak for one node too.
        """
        place = {name: at for at, group in enumerate(groups) for name in group}
        apart = {
            frozenset((place[a], place[b])) for (a, b), rank in self.ranks.items() if rank == _SYS
        }
        settled = []
        for (a, b), rank in self.ranks.items():
            if rank is None and frozenset((place[a], place[b])) not in apart:
                rows = self.matrix.affinity_of(a), self.matrix.affinity_of(b)
                if rows[0] == rows[1] or not any(rows) or self._share_node(a, b):
                    settled.append((a, b))
        return settled

    def _share_node(self, a: str, b: str) -> bool:
        nodes = self.matrix.affinity_of(a).nodes
        return bool(nodes) and nodes == self.matrix.affinity_of(b).nodes

    # --- devices ------------------------------------------------------------------------------

    def _numbers(self, group: list[str]) -> tuple[int, ...]:
        return next((nodes for name in group if (nodes := self.matrix.affinity_of(name).nodes)), ())

    def _add_node(self, group: list[str], cpu: str) -> None:
        used = {number for device in self.inner for number in device.numa}
        numbers = self._numbers(group)
        cpus = next((row.cpus for name in group if (row := self.matrix.affinity_of(name)).cpus), "")
        evidence = f"CPU affinity {cpus}" if cpus else ""
        numa = () if used & {*numbers} else numbers
        self.inner.append(DiscoveredDevice(cpu, "cpu", "cpu-unknown", numa=numa, evidence=evidence))
        for number, members in enumerate(self._within(_PHB, group)):
            above = cpu
            uppers = self._within(_PXB, members)
            if len(uppers) > 1:
                evidence = "PHB: these share a host bridge"
                above = self._add(
                    f"{cpu} root {number}", "root-complex", "root-complex", cpu, evidence
                )
            for upper in uppers:
                self._add_switches(upper, above)

    def _add_switches(self, members: list[str], above: str) -> None:
        part = "pcie-switch-unknown"
        groups = self._within(_PIX, members)
        several = len(groups) > 1
        if several:
            evidence = "PXB: several switches are between"
            above = self._add(f"{above} upper {members[0]}", "pcie-switch", part, above, evidence)
        for group in groups:
            parent = above
            if several or (len(group) > 1 and not self._is_card(group)):
                key = f"{above} switch {group[0]}"
                evidence = "" if several else "PIX: these share a switch"
                parent = self._add(key, "pcie-switch", part, above, evidence)
            if self._is_card(group):
                self.leaves[group[0]] = self._card(group, parent)
                continue
            for name in group:
                if name not in self.matrix.gpus:
                    self.leaves[name] = self._card([name], parent)
                    continue
                node = self.matrix.affinity_of(name).gpu_numa
                self.leaves[name] = DiscoveredDevice(
                    name,
                    "gpu",
                    "gpu-unknown",
                    parent=parent,
                    link=DiscoveredLink(),
                    evidence=f"GPU NUMA ID {node}" if node else "",
                )

    def _within(self, level: int, members: list[str]) -> list[list[str]]:
        groups = ([name for name in group if name in members] for group in self.groups[level])
        return [group for group in groups if group]

    def _add(self, key: str, kind: Kind, part: str, parent: str, evidence: str) -> str:
        device = DiscoveredDevice(
            key, kind, part, parent=parent, link=DiscoveredLink(), evidence=evidence
        )
        self.inner.append(device)
        return key

    def _is_card(self, group: list[str]) -> bool:
        """Whether two functions are neighbours by number and alone: the ports of one card."""
        cards = self.matrix.cards
        if len(group) != _TWO_PORTS or not set(group) <= set(cards):
            return False
        return abs(cards.index(group[0]) - cards.index(group[1])) == 1

    def _card(self, names: list[str], parent: str) -> DiscoveredDevice:
        legend = self.matrix.legend
        texts = (legend.get(name, "" if name.startswith("NIC") else name) for name in names)
        rdma = tuple(printable(text) for text in texts if text)
        several = len(names) > 1
        return DiscoveredDevice(
            names[0],
            "nic",
            "nic-unknown",
            parent=parent,
            link=DiscoveredLink(),
            rdma=rdma,
            label="" if rdma else ", ".join(names),
            facts=(("functions", str(len(names))),) if several else (),
            evidence="two functions that are PIX: one card, or two on a switch" if several else "",
        )

    # --- what is odd --------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """Yield what no tree can be, and signs of a virtual machine."""
        matrix = self.matrix
        level_of = {
            frozenset((a, b)): level
            for level in range(_NODE, 0, -1)
            for group in self.groups[level]
            for at, a in enumerate(group)
            for b in group[at + 1 :]
        }
        ranked = [(a, b, rank) for (a, b), rank in self.ranks.items() if rank is not None]
        wrong = [pair for pair in ranked if level_of.get(frozenset(pair[:2]), _SYS) < pair[2]]
        if wrong:
            a, b, rank = wrong[0]
            nearer = RANKS[level_of[frozenset((a, b))]]
            message = f"{a} to {b} is {RANKS[rank]}, and by the other pairs {nearer} at most"
            message += f"; {len(wrong) - 1} more pairs like it" if len(wrong) > 1 else ""
            help = "no tree has these classes; the nearer one was built"
            yield Finding("impossible-matrix", message, severity="warning", help=help)
        to_cards = {rank for a, b, rank in ranked if a in matrix.gpus and b in matrix.cards}
        many = min(len(matrix.gpus), len(matrix.cards)) >= _MANY
        flat = many and to_cards and to_cards <= {_PHB, _SYS}
        if flat or any(rank == _SYS and self._share_node(a, b) for a, b, rank in ranked):
            why = "every GPU is as far from every card" if flat else "SYS within one NUMA node"
            message = f"{why}: a virtual machine that hides its switches?"
            help = "compare with the host's own topology"
            yield Finding("hidden-switches", message, severity="warning", help=help)
        for a, b, rank in ranked:
            nodes = {*matrix.affinity_of(a).nodes}, {*matrix.affinity_of(b).nodes}
            if rank <= _NODE and all(nodes) and not nodes[0] & nodes[1]:
                message = f"{a} and {b} hang on different NUMA nodes and are no SYS"
                help = "NODE is within one NUMA node; the codes were followed"
                yield Finding("node-across-numa", message, severity="warning", help=help)
                break
