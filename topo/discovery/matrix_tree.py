"""The least tree that a locality matrix allows: what is near hangs together.

Devices that are PIX to each other share a switch; PXB, an upper switch; PHB, a root complex; NODE,
a NUMA node. NVLink codes hide the PCIe relation: what the other pairs do not settle is decided by
the affinity columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine, by_depth
from topo.discovery.matrix import RANKS, rank_of
from topo.discovery.matrix_links import SWITCH, by_switch, nvlinks
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.discovery.matrix import Affinity, Matrix


_SWITCH, _UPPER, _ROOT, _NODE, _APART = 1, 2, 3, 4, 5
_PAIR: Final = 2
_MANY: Final = 4


def to_sighting(matrix: Matrix, name: str) -> Machine:
    """Return the machine that a matrix stands for."""
    tree = _Tree(matrix)
    return Machine(
        kind="nvidia-smi",
        source="output of nvidia-smi topo -m",
        file=name,
        devices=tree.devices(),
        cables=nvlinks(matrix),
        notes=(
            "Such a matrix knows neither addresses nor speeds, nor what parts these are: fill them",
            "in. Switches are those that the classes need; a cpu here is a NUMA node.",
        ),
        findings=(*matrix.findings, *tree.findings),
    )


class _Tree:
    """Components of nearness at each level, and the devices that make them."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.findings: list[Finding] = []
        # An X between two devices says nothing that can be.
        self._ranks = {(one, other): rank_of(code) or None for one, other, code in matrix.pairs()}
        self._groups = {level: self._components(level) for level in range(_SWITCH, _APART)}
        self._made: list[DiscoveredDevice] = []
        self._leaves: dict[str, DiscoveredDevice] = {}
        self._find_impossible()
        self._find_hidden()
        for number, node in enumerate(self._nodes()):
            self._grow_node(node, f"cpu {number}")

    # --- nearness -----------------------------------------------------------------------------

    def _components(self, level: int) -> list[list[str]]:
        """Return the devices that are within `level` of one another, directly or by others."""
        near = [pair for pair, rank in self._ranks.items() if rank is not None and rank <= level]
        groups = _joined(self.matrix.names, near)
        return (
            _joined(self.matrix.names, [*near, *self._settled(groups)])
            if level == _NODE
            else (groups)
        )

    def _settled(self, groups: list[list[str]]) -> list[tuple[str, str]]:
        """Return pairs that the affinity puts into one NUMA node, where no code speaks against."""
        place = {name: at for at, group in enumerate(groups) for name in group}
        apart = {
            frozenset((place[one], place[other]))
            for (one, other), rank in self._ranks.items()
            if rank == _APART
        }
        return [
            (one, other)
            for (one, other), rank in self._ranks.items()
            if rank is None
            and frozenset((place[one], place[other])) not in apart
            and _together(self.matrix.affinity.get(one), self.matrix.affinity.get(other))
        ]

    def _find_impossible(self) -> None:
        level_of = {
            frozenset((one, other)): level
            for level in range(_NODE, 0, -1)
            for group in self._groups[level]
            for at, one in enumerate(group)
            for other in group[at + 1 :]
        }
        wrong = [
            (one, other, rank)
            for (one, other), rank in self._ranks.items()
            if rank is not None and level_of.get(frozenset((one, other)), _APART) < rank
        ]
        if wrong:
            one, other, rank = wrong[0]
            nearer = RANKS[level_of[frozenset((one, other))]]
            self.findings.append(
                Finding(
                    "impossible-matrix",
                    f"{one} to {other} is {RANKS[rank]}, and by the other pairs {nearer} at most"
                    + (f"; {len(wrong) - 1} more pairs like it" if len(wrong) > 1 else ""),
                    severity="warning",
                    help="no tree has these classes; the nearer one was built",
                )
            )

    def _find_hidden(self) -> None:
        matrix = self.matrix
        ranks = {
            rank
            for (one, other), rank in self._ranks.items()
            if rank is not None and one in matrix.gpus and other in matrix.cards
        }
        counts = (len(matrix.gpus), len(matrix.cards))
        flat = min(counts) >= _MANY and ranks and ranks <= {_ROOT, _APART}
        nodes = {
            (one, other): rank
            for (one, other), rank in self._ranks.items()
            if _same_nodes(matrix.affinity.get(one), matrix.affinity.get(other))
        }
        if flat or _APART in nodes.values():
            why = "every GPU is as far from every card" if flat else "SYS within one NUMA node"
            self.findings.append(
                Finding(
                    "hidden-switches",
                    f"{why}: a virtual machine that hides its switches?",
                    severity="warning",
                    help="compare with the host's own topology",
                )
            )
        across = [
            pair
            for pair, rank in self._ranks.items()
            if rank is not None and rank <= _NODE and self._other_nodes(*pair)
        ]
        if across:
            one, other = across[0]
            self.findings.append(
                Finding(
                    "node-across-numa",
                    f"{one} and {other} hang on different NUMA nodes and are no SYS",
                    severity="warning",
                    help="NODE is within one NUMA node; the codes were followed",
                )
            )

    def _other_nodes(self, one: str, other: str) -> bool:
        mine, its = (self.matrix.affinity.get(name) for name in (one, other))
        return bool(mine and its and mine.nodes and its.nodes and not {*mine.nodes} & {*its.nodes})

    # --- devices ------------------------------------------------------------------------------

    def _nodes(self) -> list[list[str]]:
        """Return the NUMA nodes' devices, by the nodes' numbers where all have one."""
        groups = self._groups[_NODE]
        numbers = [self._numbers(group) for group in groups]
        if all(numbers):
            return [group for _, group in sorted(zip(numbers, groups, strict=True))]
        return groups

    def _numbers(self, group: Iterable[str]) -> tuple[int, ...]:
        rows = (self.matrix.affinity.get(name) for name in group)
        return next((row.nodes for row in rows if row and row.nodes), ())

    def _grow_node(self, group: list[str], cpu: str) -> None:
        taken = {number for device in self._made for number in device.numa}
        numbers = self._numbers(group)
        rows = (self.matrix.affinity.get(name) for name in group)
        cpus = next((row.cpus for row in rows if row and row.cpus), "")
        numa = numbers if not taken & set(numbers) else ()
        said = f"CPU affinity {cpus}" if cpus else ""
        self._made.append(DiscoveredDevice(cpu, "cpu", "cpu-unknown", numa=numa, evidence=said))
        for at, members in enumerate(self._within(_ROOT, group)):
            above = cpu
            if len(self._within(_UPPER, members)) > 1:
                above = f"{cpu} root {at}"
                self._inner(above, "root-complex", cpu, "PHB: these share a host bridge")
            for each in self._within(_UPPER, members):
                self._grow_switches(each, above)

    def _grow_switches(self, members: list[str], above: str) -> None:
        parts = self._within(_SWITCH, members)
        if len(parts) > 1:
            upper = f"{above} upper {members[0]}"
            self._inner(upper, "pcie-switch", above, "PXB: several switches are between")
            above = upper
        for part in parts:
            if len(parts) > 1 or (len(part) > 1 and not self._is_card(part)):
                switch = f"{above} switch {part[0]}"
                said = "" if len(parts) > 1 else "PIX: these share a switch"
                self._inner(switch, "pcie-switch", above, said)
                self._hang(part, switch)
            else:
                self._hang(part, above)

    def _within(self, level: int, members: list[str]) -> list[list[str]]:
        return [
            group
            for found in self._groups[level]
            if (group := [name for name in found if name in members])
        ]

    def _inner(self, key: str, kind: str, parent: str, said: str) -> None:
        if kind == "root-complex":
            device = DiscoveredDevice(
                key,
                "root-complex",
                "root-complex",
                parent=parent,
                link=DiscoveredLink(),
                evidence=said,
            )
        else:
            device = DiscoveredDevice(
                key,
                "pcie-switch",
                "pcie-switch-unknown",
                parent=parent,
                link=DiscoveredLink(),
                evidence=said,
            )
        self._made.append(device)

    def _is_card(self, part: list[str]) -> bool:
        """Whether two functions are neighbours by number and alone: the ports of one card."""
        cards = self.matrix.cards
        if len(part) != _PAIR or not set(part) <= set(cards):
            return False
        return abs(cards.index(part[0]) - cards.index(part[1])) == 1

    def _hang(self, part: list[str], parent: str) -> None:
        if len(part) == _PAIR and self._is_card(part):
            self._leaves[part[0]] = self._card(part, parent)
            return
        for name in part:
            gpu = name in self.matrix.gpus
            self._leaves[name] = self._gpu(name, parent) if gpu else self._card([name], parent)

    def _gpu(self, name: str, parent: str) -> DiscoveredDevice:
        row = self.matrix.affinity.get(name)
        said = f"GPU NUMA ID {row.gpu_numa}" if row and row.gpu_numa else ""
        return DiscoveredDevice(
            name, "gpu", "gpu-unknown", parent=parent, link=DiscoveredLink(), evidence=said
        )

    def _card(self, names: list[str], parent: str) -> DiscoveredDevice:
        legend = self.matrix.legend
        known = [legend.get(name, "" if name.startswith("NIC") else name) for name in names]
        rdma = tuple(name for name in known if name)
        said = "two functions that are PIX: one card, or two on a switch" if len(names) > 1 else ""
        return DiscoveredDevice(
            names[0],
            "nic",
            "nic-unknown",
            parent=parent,
            link=DiscoveredLink(),
            rdma=rdma,
            label="" if rdma else ", ".join(names),
            facts=(("functions", str(len(names))),) if len(names) > 1 else (),
            evidence=said,
        )

    def devices(self) -> tuple[DiscoveredDevice, ...]:
        """Return all devices; GPUs and cards in the order of the columns."""
        leaves = [self._leaves[name] for name in self.matrix.names if name in self._leaves]
        chips = (
            [
                DiscoveredDevice(
                    SWITCH, "nvswitch", "nvswitch-unknown", evidence="all GPUs are NV alike"
                )
            ]
            if by_switch(self.matrix)
            else []
        )
        return (*by_depth(self._made), *leaves, *chips)


def _joined(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups that pairs make of names, in order."""
    group = {name: [name] for name in names}
    for one, other in pairs:
        if group[one] is not group[other]:
            merged = [*group[one], *group[other]]
            for name in merged:
                group[name] = merged
    order = {name: at for at, name in enumerate(group)}
    groups = {id(members): sorted(members, key=order.__getitem__) for members in group.values()}
    return sorted(groups.values(), key=lambda members: order[members[0]])


def _together(one: Affinity | None, other: Affinity | None) -> bool:
    """Whether affinity puts two devices into one NUMA node; also where it says nothing of both."""
    return (one or None) == (other or None) or _same_nodes(one, other)


def _same_nodes(one: Affinity | None, other: Affinity | None) -> bool:
    return bool(one and other and one.nodes and one.nodes == other.nodes)
