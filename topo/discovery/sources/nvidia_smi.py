"""Output of ``nvidia-smi topo -m`` and of its like: the least tree that such a matrix allows.

What is near hangs together. Devices that are PIX to each other share a switch; PXB, an upper one;
PHB, a root complex; NODE, a NUMA node. NVLink codes hide the PCIe relation: what the other pairs do
not settle is decided by the affinity columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from topo.catalogue.kinds import Kind
from topo.discovery.machine import (
    GPU_LINK,
    NVSWITCH,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    bundle,
    by_depth,
    printable,
    unknown_place,
)
from topo.discovery.sources.matrix_text import RANKS, Matrix, links_in, rank_of, read_matrix
from topo.errors import Finding
from topo.graph import components

_PIX, _PXB, _PHB, _NODE, _SYS = 1, 2, 3, 4, 5
_MOST_NVLINKS: Final = 18  # of one GPU: more in sum means that a switch is between
_TWO_PORTS: Final = 2
_MANY: Final = 4


def read(data: bytes, name: str) -> Machine:
    """Read a matrix and build the least tree that it allows.

    Raises an `ExchangeError` if there is no such matrix in it.
    """
    matrix = read_matrix(data, name)
    tree = _Tree(matrix)
    switches, cables = _fabric(matrix)
    return Machine(
        kind=matrix.vendor.kind,
        source=f"output of {matrix.vendor.command}",
        file=name,
        devices=(*tree.devices(), *switches),
        cables=cables,
        notes=(
            "Such a matrix knows neither addresses nor speeds, nor what parts these are: fill them",
            "in. Switches are those that the classes need; a cpu here is a NUMA node.",
        ),
        findings=(*matrix.findings, *tree.findings()),
    )


# --- NVLinks --------------------------------------------------------------------------------------


def _fabric(matrix: Matrix) -> tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...]]:
    """Return the NVSwitches and the cables: between pairs, or from each GPU to a switch."""
    gpus = set(matrix.gpus)
    links = {
        (a, b): count
        for a, b, code in matrix.pairs()
        if (count := links_in(code)) > 0 and {a, b} <= gpus
    }
    vendor_links, vendor_switches = _vendor_fabric(matrix)
    sums: Counter[str] = Counter()
    most: dict[str, int] = {}
    for pair, count in links.items():
        for name in pair:
            sums[name] += count
            most[name] = max(most.get(name, 0), count)
    if max(sums.values(), default=0) <= _MOST_NVLINKS:
        nvlinks = (
            DiscoveredCable(a, b, bundle(count, "nvlink unknown"), f"NV{count}")
            for (a, b), count in links.items()
        )
        return vendor_switches, (*nvlinks, *vendor_links)
    # One GPU would need more links than it has, were they all direct.
    switch = DiscoveredDevice(
        NVSWITCH, "nvswitch", "nvswitch-unknown", evidence="all GPUs are NV alike"
    )
    cables = (
        DiscoveredCable(name, NVSWITCH, bundle(most[name], "nvlink unknown"), f"NV{most[name]}")
        for name in matrix.gpus
        if name in most
    )
    return (switch, *vendor_switches), (*cables, *vendor_links)


def _vendor_fabric(
    matrix: Matrix,
) -> tuple[tuple[DiscoveredCable, ...], tuple[DiscoveredDevice, ...]]:
    """Return another vendor's links, each of a pair or to the switch that its code says."""
    cables: dict[tuple[str, str], DiscoveredCable] = {}
    switches: dict[str, DiscoveredDevice] = {}
    gpus = set(matrix.gpus)
    for a, b, code in matrix.pairs():
        if code not in matrix.links or not {a, b} <= gpus:
            continue
        evidence = f"{code}: {matrix.links[code]}"
        if code not in matrix.vendor.switched:
            cables[a, b] = DiscoveredCable(a, b, GPU_LINK, evidence)
            continue
        switch = f"switch of {code}"
        switches[switch] = DiscoveredDevice(
            switch, "nvswitch", "nvswitch-unknown", evidence=f"{evidence}, taken as one"
        )
        for name in (a, b):
            cables.setdefault((name, switch), DiscoveredCable(name, switch, GPU_LINK, evidence))
    return tuple(cables.values()), tuple(switches.values())


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
            self.groups[level] = self._joined(near) if level < _NODE else self._by_node(near)
        self.inner: list[DiscoveredDevice] = []
        self.leaves: dict[str, DiscoveredDevice] = {}
        nodes = self.groups[_NODE]
        numbers = [self._numbers(group) for group in nodes]
        if all(numbers):  # else in the order of the columns
            nodes = [group for _, group in sorted(zip(numbers, nodes, strict=True))]
        # Where some rows tell their CPUs, what tells none and is SYS to all has no known place.
        is_told = [any(map(self.matrix.affinity_of, group)) for group in nodes]
        placeless = [
            group
            for group, told in zip(nodes, is_told, strict=True)
            if sum(is_told) > 1 and not told and len(self._within(_PHB, group)) == 1
        ]
        nodes = [group for group in nodes if group not in placeless]
        for number, node in enumerate(nodes):
            self._add_node(node, f"cpu {number}")
        for number, group in enumerate(placeless):
            place = unknown_place(f"place {number}")
            self.inner.append(place)
            for upper in self._within(_PXB, group):
                self._add_switches(upper, place.id)

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

    def _by_node(self, near: list[tuple[str, str]]) -> list[list[str]]:
        """Return the NUMA nodes: what is told decides, then the codes, then rows that are alike.

        What is PHB or nearer stays together. `crossing` gets the pairs whose code is NODE, and
        whose NUMA nodes are told and differ.
        """
        nodes: dict[tuple[int, ...], str] = {}
        joined: list[tuple[str, str]] = []
        for group in self.groups[_PHB]:
            numbers = self._numbers(group)
            joined += [(group[0], name) for name in group]
            if numbers:
                joined.append((nodes.setdefault(numbers, group[0]), group[0]))
        groups = self._joined(joined)
        self.crossing: list[tuple[str, str]] = []
        for a, b in near:
            ends = [group for group in groups if a in group or b in group]
            numbers_of_ends = [{*self._numbers(group)} for group in ends]
            if all(numbers_of_ends) and not set.intersection(*numbers_of_ends):
                self.crossing.append((a, b))
            elif len(ends) > 1:
                joined.append((a, b))
                groups = self._joined(joined)
        return self._joined([*joined, *self._settled(groups)])

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
                    self.matrix.vendor.part,
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
        # SYS within a told NUMA node has a finding of its own.
        wrong = [
            (a, b, rank)
            for a, b, rank in ranked
            if level_of.get(frozenset((a, b)), _SYS) < rank and not self._share_node(a, b)
        ]
        if wrong:
            a, b, rank = wrong[0]
            nearer = RANKS[level_of[frozenset((a, b))]]
            message = f"{a} to {b} is {RANKS[rank]}, and by the other pairs {nearer} at most"
            message += f"; {len(wrong) - 1} more pairs like it" if len(wrong) > 1 else ""
            help = "no tree has these classes; the nearer one was built"
            yield Finding("impossible-matrix", message, severity="warning", help=help)
        to_cards = {rank for a, b, rank in ranked if a in matrix.gpus and b in matrix.cards}
        many = min(len(matrix.gpus), len(matrix.cards)) >= _MANY
        flat = many and _PHB in to_cards and to_cards <= {_PHB, _SYS}
        if flat or any(rank == _SYS and self._share_node(a, b) for a, b, rank in ranked):
            why = "every GPU is as far from every card" if flat else "SYS within one NUMA node"
            message = f"{why}: a virtual machine that hides its switches?"
            help = "compare with the host's own topology"
            yield Finding("hidden-switches", message, severity="warning", help=help)
        if self.crossing:
            a, b = self.crossing[0]
            message = f"{a} to {b} is {RANKS[_NODE]}, and their NUMA nodes are told and differ"
            message += f"; {len(self.crossing) - 1} more" if len(self.crossing) > 1 else ""
            help = "the told NUMA nodes were followed: the pair is SYS in the YAML"
            yield Finding("node-across-numa", message, severity="warning", help=help)
