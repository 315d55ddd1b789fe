"""Two PCI trees of one machine: what hangs where, by the source that knows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from topo.discovery.combine_match import numa_of
from topo.discovery.describe import file_title
from topo.discovery.machine import printable
from topo.errors import Finding
from topo.phrases import and_more

if TYPE_CHECKING:
    from topo.discovery.combine_match import Matches
    from topo.discovery.machine import DiscoveredDevice, Machine


_NOT_TOLD: Final = "its NUMA node is not told"
_LEAVES: Final = ("gpu", "nic", "dpu", "nvme", "hba", "cxl-memory")


def with_source(said: str, name: str, what: str = "") -> str:
    """Return a comment with the source that it, or the facts `what`, comes from."""
    source = f"{what} from {name}" if what else f"from {name}"
    return f"{said}; {source}" if said and source not in said else said or source


def _top(device: DiscoveredDevice, known: dict[str, DiscoveredDevice]) -> DiscoveredDevice | None:
    """Return the device itself or its ancestor that hangs on a CPU, `None` when there is none."""
    here = device
    for _ in range(len(known)):
        above = known.get(here.parent)
        if above is None:
            return None
        if above.kind == "cpu":
            return here
        here = above
    return None


def moved(base: Machine, extra: Machine, matches: Matches) -> Machine:
    """Return the first tree on the other's CPUs, where the first knows no NUMA nodes."""
    cpus = extra.of_kind("cpu")
    few = base.of_kind("cpu")
    if any(one.numa for one in few) or not any(one.numa for one in cpus) or len(cpus) <= len(few):
        return base
    known = {one.id: one for one in base.devices}
    its = {one.id: one for one in extra.devices}
    votes: dict[str, Counter[str]] = {}
    for mine, other in matches.pairs:
        top, its_top = _top(known[mine], known), _top(its[other], its)
        if top is not None and its_top is not None and known[mine].kind in _LEAVES:
            votes.setdefault(top.id, Counter())[its_top.parent] += 1
    name = file_title(extra.file)
    made = [replace(cpu, evidence=with_source(cpu.evidence, name)) for cpu in cpus]
    matches.pairs = [pair for pair in matches.pairs if known[pair[0]].kind != "cpu"]
    matches.add((cpu.id, cpu.id) for cpu in cpus)
    devices: list[DiscoveredDevice] = [*made]
    lost: list[DiscoveredDevice] = []
    for one in base.devices:
        if one.kind == "cpu":
            continue
        if known.get(one.parent, one).kind == "cpu" and one.parent:
            chosen = votes.get(one.id)
            cpu = chosen.most_common(1)[0][0] if chosen else made[0].id
            one = replace(one, parent=cpu)  # noqa: PLW2901
            if not chosen and one.kind != "memory":
                one = replace(one, notices=(*one.notices, _NOT_TOLD))  # noqa: PLW2901
                lost.append(one)
        devices.append(one)
    findings = (*base.findings, *([_lost(lost)] if lost else []))
    return replace(base, devices=tuple(devices), findings=findings)


def _lost(devices: list[DiscoveredDevice]) -> Finding:
    names = and_more([one.pci[0] if one.pci else one.label or one.evidence for one in devices])
    return Finding(
        "numa-unknown",
        f"the NUMA node of {names} is not told by either source: put under the first CPU",
        severity="warning",
        help="`lspci -vvv` tells the NUMA node; put links under the right CPU in the YAML",
    )


def bridged(base: Machine, extra: Machine, matches: Matches) -> Machine:
    """Return a tree of NCCL's, which knows no host bridges, with those of the other source."""
    if base.kind != "nccl" or base.of_kind("root-complex"):
        return base
    name = file_title(extra.file)
    its = {one.id: one for one in extra.devices}
    known = {one.id: one for one in base.devices}
    for root in extra.of_kind("root-complex"):
        tops = {
            top.id: top
            for one, other in matches.pairs
            if known[one].kind in _LEAVES and its[other].kind in _LEAVES
            if _hangs_on(its[other], root.id, its) and (top := _top(known[one], known)) is not None
        }
        cpus = {top.parent for top in tops.values()}
        if len(cpus) != 1 or any(top.kind == "root-complex" for top in tops.values()):
            continue
        above = replace(
            root, parent=cpus.pop(), node=None, evidence=with_source(root.evidence, name)
        )
        known[root.id] = above
        known |= {key: replace(top, parent=root.id, node=None) for key, top in tops.items()}
        matches.add([(root.id, root.id)])
    return replace(base, devices=tuple(known.values()))


def _hangs_on(device: DiscoveredDevice, key: str, known: dict[str, DiscoveredDevice]) -> bool:
    here: DiscoveredDevice | None = device
    for _ in range(len(known)):
        if here is None:
            return False
        if here.parent == key:
            return True
        here = known.get(here.parent)
    return False


# --- what only the other source has ---------------------------------------------------------------


def added(base: Machine, extra: Machine, matches: Matches) -> Machine:
    """Return the first source's devices with those that only the other has."""
    return _Adder(base, extra, matches).whole()


class _Adder:
    def __init__(self, base: Machine, extra: Machine, matches: Matches) -> None:
        self.base, self.extra, self.matches = base, extra, matches
        self.devices = {one.id: one for one in base.devices}
        self.its = {one.id: one for one in extra.devices}
        self.name = file_title(extra.file)
        self.taken = {address for one in base.devices for address in one.pci}
        self.skipped: list[DiscoveredDevice] = []

    def whole(self) -> Machine:
        for one in self.extra.devices:
            if self.matches.mine(one.id) or one.id in self.devices:
                continue
            if self._wanted(one):
                self._add(one)
            elif one.kind in _LEAVES:
                self.skipped.append(one)
        return replace(
            self.base,
            devices=tuple(self.devices.values()),
            notes=(*self.base.notes, *self._said()),
        )

    def _wanted(self, one: DiscoveredDevice) -> bool:
        if one.kind not in (*_LEAVES, "memory", "storage"):
            return False  # CPUs and switches come with what hangs on them
        if self.taken & {*one.pci}:
            return False  # something else stands there in the first source
        kinds = ("nic", "dpu") if one.kind in ("nic", "dpu") else (one.kind,)
        mine = self.base.of_kind(*kinds)
        if one.kind in ("gpu", "memory", "storage"):
            return not mine
        return not mine or (bool(one.pci) and all(other.pci for other in mine))

    def _add(self, one: DiscoveredDevice) -> None:
        parent = self._place(one.parent)
        said = with_source(one.evidence, self.name)
        self.devices[one.id] = replace(one, evidence=said, **self._below(one, parent))

    def _below(self, one: DiscoveredDevice, parent: str) -> dict[str, Any]:
        """Return parent and, where that is a CPU with several, NUMA node."""
        above = self.devices.get(parent)
        nodes = numa_of(one, self.extra)
        several = above is not None and above.kind == "cpu" and len(above.numa) > 1
        inside = several and len(nodes) == 1 and above is not None and nodes[0] in above.numa
        return {"parent": parent, "node": nodes[0] if inside else None}

    def _place(self, key: str) -> str:
        """Return what stands here for a device of the other source, added where nothing does."""
        mine = self.matches.mine(key)
        if mine or key in self.devices or key not in self.its:
            return mine[0] if mine else key
        one = self.its[key]
        if one.kind == "cpu":
            cpus = self.base.of_kind("cpu")
            if len(cpus) == 1 and not cpus[0].numa:
                return cpus[0].id
        near = {
            self.devices[sibling].parent
            for child in self.extra.devices
            if child.parent == key and child.kind in _LEAVES
            for sibling in self.matches.mine(child.id)
        }
        above = self.devices.get(next(iter(near))) if len(near) == 1 else None
        if above is not None and above.kind != "cpu":
            return above.id
        if self.taken & {*one.pci}:
            return self._place(one.parent)
        self._add(one)
        return one.id

    def _said(self) -> list[str]:
        if not self.skipped:
            return []
        count = len(self.skipped)
        return [printable(f"{count} devices of {self.name} could not be placed and are left out.")]
