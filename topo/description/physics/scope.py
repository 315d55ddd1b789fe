"""Ways: PCIe is a tree, workloads have a way to go, and nothing stands alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.description.physics.wiring import HOSTS, has, names_of, other_end, worded
from topo.description.shape import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.description import DescribedLink, Workload
    from topo.description.physics.wiring import Wiring
    from topo.document.nodes import Report
    from topo.errors import Place


_PASSED: Final = ("nic", "dpu", "hba", "pcie-switch", "network-switch", *HOSTS)
_CARDS: Final = ("nic", "dpu")


# --- loops ----------------------------------------------------------------------------------------


def check_loops(wiring: Wiring, report: Report) -> None:
    """Report PCIe links that close a loop, once a line; parallel cables are no loop."""
    tree = _Forest()
    said: set[Place] = set()
    for link in wiring.links:
        if link.cable.family != "pcie":
            continue
        loop = tree.add(link)
        if loop and link.place not in said:
            said.add(link.place)
            _report_loop(link, loop, wiring, report)


def _report_loop(
    link: DescribedLink, loop: list[DescribedLink], wiring: Wiring, report: Report
) -> None:
    names = [link.a.device]
    for step in (link, *loop):
        names.append(other_end(step, names[-1]))
    ends = {wiring.kind(name) for name in names}
    report.add(
        link.place,
        "pcie-loop",
        f"PCIe is a tree, and this link closes a loop: {' - '.join(names)}",
        help="is one of them NVLink? Write `18x nvlink 4`"
        if "gpu" in ends
        else "leave one of these links out; is one of them NVLink, or a link between sockets?",
        notes=[f"{step.a.device} -- {step.b.device} is on line {step.place.line}" for step in loop],
    )


class _Forest:
    """Links added one by one, with the way back wherever one closes a loop."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._ways: dict[str, list[DescribedLink]] = {}

    def add(self, link: DescribedLink) -> list[DescribedLink]:
        """Add a link; where its ends were joined already, return that way, from `b` to `a`."""
        one, other = self._root(link.a.device), self._root(link.b.device)
        if one != other:
            self._roots[one] = other
            self._ways.setdefault(link.a.device, []).append(link)
            self._ways.setdefault(link.b.device, []).append(link)
            return []
        way = self._way(link.b.device, link.a.device)
        return way if len(way) > 1 else []

    def _root(self, name: str) -> str:
        while (up := self._roots.get(name, name)) != name:
            self._roots[name] = self._roots.get(up, up)
            name = up
        return name

    def _way(self, source: str, target: str) -> list[DescribedLink]:
        came: dict[str, DescribedLink] = {}
        front = [source]
        for name in front:
            for link in self._ways.get(name, ()):
                near = other_end(link, name)
                if near != source and near not in came:
                    came[near] = link
                    front.append(near)
        way = []
        while target != source:
            way.append(came[target])
            target = other_end(came[target], target)
        return way[::-1]


# --- ways -----------------------------------------------------------------------------------------


def check_reach(wiring: Wiring, report: Report) -> None:
    """Report workloads without a way, then devices and groups of them that nothing reaches."""
    if not wiring.links:
        _report_unlinked(wiring, report)
        return
    explained: set[str] = set()
    said: set[tuple[str, ...]] = set()
    for workload in wiring.description.workloads:
        _check_workload(workload, wiring, explained, said, report)
    _check_alone(wiring, explained, report)
    _check_apart(wiring, explained, report)


def _report_unlinked(wiring: Wiring, report: Report) -> None:
    """Warn of a file with workloads and no link: a beginning, not a mistake."""
    if wiring.description.workloads and wiring.description.workloads[0].place is not None:
        report.add(
            wiring.description.workloads[0].place,
            "no-way",
            "there are no links yet, so no data has a way to go",
            help="add `links:` with one `- a -- b: cable` a line",
            severity="warning",
        )


def _check_workload(
    workload: Workload,
    wiring: Wiring,
    explained: set[str],
    said: set[tuple[str, ...]],
    report: Report,
) -> None:
    stores, gpus = workload.sources, workload.targets
    if workload.direction == "write":
        stores, gpus = gpus, stores
    fabric = workload.direction == "copy"
    reached = _reached(stores, wiring, fabric=fabric)
    cut_off = tuple(name for name in gpus if name not in reached)
    if cut_off and (*stores, "", *cut_off) not in said:
        said.add((*stores, "", *cut_off))
        _report_cut_off(stores, reached, cut_off, wiring, explained, report)
    if cut_off:
        return
    back = _reached(gpus, wiring, fabric=fabric)
    idle = tuple(name for name in stores if name not in back)
    if idle and idle not in said:
        said.add(idle)
        _report_cut_off(gpus, back, idle, wiring, explained, report)


def _reached(sources: Iterable[str], wiring: Wiring, *, fabric: bool = False) -> dict[str, None]:
    """Return what data from the sources can get to, in the order it is found.

    Between GPUs it may take the `fabric` too, which is no way to storage.
    """
    passed = {*_PASSED, "nvswitch"} if fabric else {*_PASSED}
    found = dict.fromkeys(sources)
    starts = frozenset(found)
    front = list(found)
    for name in front:
        if name in starts or wiring.kind(name) in passed:
            for link in wiring.at[name]:
                near = other_end(link, name)
                if near not in found and (fabric or not wiring.is_fabric(link)):
                    found[near] = None
                    front.append(near)
    return found


def _report_cut_off(
    sources: tuple[str, ...],
    reached: dict[str, None],
    targets: tuple[str, ...],
    wiring: Wiring,
    explained: set[str],
    report: Report,
) -> None:
    """Report targets that no source reaches, once for each place where the way breaks off."""
    islands: dict[tuple[str, ...], list[str]] = {}
    for target in targets:
        passed = [name for name in _reached((target,), wiring) if wiring.kind(name) in _PASSED]
        islands.setdefault(tuple(sorted(passed)), []).append(target)
    mine = tuple(name for name in reached if wiring.kind(name) in _PASSED)
    for island, names in islands.items():
        explained.update(sources, mine, names, island)
        why, culprit, advice = _broken(sources, mine, island, names, wiring)
        went = names_of(mine[:6]) + (" ..." if len(mine) > 6 else "")  # noqa: PLR2004
        report.add(
            wiring.devices[culprit].place,
            "no-way",
            f"nothing joins {names_of(sources)} to {names_of(names)}: {why}",
            help=advice,
            notes=[f"from {names_of(sources)} data reaches {went}"] if mine else [],
        )


def _broken(
    sources: tuple[str, ...],
    mine: tuple[str, ...],
    island: tuple[str, ...],
    names: list[str],
    wiring: Wiring,
) -> tuple[str, str, str]:
    """Return why there is no way, the device where it breaks off, and what to write."""
    if not mine:
        return _hangs_on_nothing(sources, wiring)
    if not island:
        return _hangs_on_nothing(names, wiring)
    my_hosts, its_hosts = (
        [name for name in side if wiring.kind(name) in HOSTS] for side in (mine, island)
    )
    if my_hosts and its_hosts:
        one, other = my_hosts[-1], its_hosts[0]
        why = f"{names_of(names)} {_hang(names)} on {other}, which has no link to {one}"
        return why, other, f"add `- {one} -- {other}: 4x upi 16 GT/s`, or the link that it is"
    side = island if my_hosts or not its_hosts else mine
    ends = names if side is island else sources
    top = _top(side, wiring)
    lacks = "uplink" if wiring.kind(top) == "pcie-switch" else "link to a CPU"
    host = (my_hosts or its_hosts or ["cpu0"])[0]
    only = "only " if len(side) == 1 else ""
    why = f"{names_of(ends)} {_hang(ends)} {only}on {top}, which has no {lacks}"
    return why, top, f"add `- {top} -- {host}: {_slot_of(top, wiring)}`"


def _hang(names: Iterable[str]) -> str:
    return "hangs" if len(list(names)) == 1 else "hang"


def _top(side: tuple[str, ...], wiring: Wiring) -> str:
    """Return the device of a group that would lead on to a CPU: a switch, else a card."""
    for kinds in (("pcie-switch",), ("hba",), _CARDS, ("network-switch",)):
        for name in side:
            if wiring.kind(name) in kinds:
                return name
    return side[0]


def _hangs_on_nothing(names: Iterable[str], wiring: Wiring) -> tuple[str, str, str]:
    first, *_ = known = list(names)
    if wiring.at[first]:
        kinds = listed(
            dict.fromkeys(
                worded(wiring.kind(other_end(link, first)), 2) for link in wiring.at[first]
            )
        )
        why = f"{names_of(known)} {_hang(known)} only on {kinds}"
    else:
        why = f"{has(known)} no link"
    return why, first, _link_for(first, wiring)


def _link_for(name: str, wiring: Wiring) -> str:
    """Return the line that would link a device, with a partner that is there."""
    kind = wiring.kind(name)
    if kind in ("storage", "network-switch"):
        partner, cable = (*wiring.of_kind(*_CARDS), "nic0")[0], "infiniband ndr"
    elif kind == "nvswitch":
        partner, cable = (*wiring.of_kind("gpu"), "gpu0")[0], "18x nvlink 4"
    elif kind in HOSTS:
        others = [host for host in wiring.of_kind(*HOSTS) if host != name]
        partner, cable = (*others, "cpu1")[0], "4x upi 16 GT/s"
    else:
        partner = (*wiring.of_kind("pcie-switch"), *wiring.of_kind(*HOSTS), "cpu0")[0]
        cable = _slot_of(name, wiring)
    return f"add `- {name} -- {partner}: {cable}`"


def _slot_of(name: str, wiring: Wiring) -> str:
    """Return the PCIe cable that a device can have."""
    slot = wiring.devices[name].part.slot
    return f"pcie {slot.generation} x{slot.lanes or 16}" if slot else "pcie 5 x16"


def _check_alone(wiring: Wiring, explained: set[str], report: Report) -> None:
    """Report devices in no link at all, in one message; memories have a rule of their own."""
    alone = [
        name
        for name, links in wiring.at.items()
        if not links and name not in explained and wiring.kind(name) != "memory"
    ]
    if not alone:
        return
    report.add(
        wiring.devices[alone[0]].place,
        "unreached",
        f"nothing reaches {names_of(alone)}: no link names {'it' if len(alone) == 1 else 'them'}",
        help=_link_for(alone[0], wiring),
    )


def _check_apart(wiring: Wiring, explained: set[str], report: Report) -> None:
    """Report what is linked together and to no host, in a machine that has one."""
    if not wiring.of_kind(*HOSTS):
        return
    joined = _reached(wiring.of_kind(*HOSTS), wiring)
    apart = [
        name
        for name, links in wiring.at.items()
        if links
        and name not in joined
        and name not in explained
        and wiring.kind(name) in ("gpu", "nvme", "hba", "pcie-switch", *_CARDS, "cxl-memory")
        and any(not wiring.is_fabric(link) for link in links)
    ]
    if not apart:
        return
    top = _top(tuple(apart), wiring)
    report.add(
        wiring.devices[top].place,
        "unreached",
        f"nothing joins {names_of(apart)} with a CPU",
        help=f"add `- {top} -- {wiring.of_kind(*HOSTS)[0]}: {_slot_of(top, wiring)}`",
    )
