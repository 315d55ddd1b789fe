"""What two sources say differently of the same devices: links, ports, places, NVLinks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import lane_rate
from topo.discovery.combine_match import numa_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.discovery.combine_match import Matches
    from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine


MATRICES: Final = ("nvidia-smi", "rocm-smi")
_BLIND: Final = {"no-tree", "no-bridges", "no-io", "abridged"}
_CLOSE: Final = 0.03
_FABRIC: Final = re.compile(r"(?:(\d+)x )?(nvlink|xgmi)\b(?!-c2c)")
_COMPARED: Final = ("acs", "chips", "size")


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of one fact: of a device, or of a pair of them.

    `ids` are those of the first source; empty for the machine as a whole.
    """

    what: str
    ids: tuple[str, ...]
    mine: str
    its: str
    grave: bool = False


def differences(first: Machine, second: Machine, matches: Matches) -> list[Difference]:
    """Return everything that the two sources contradict each other in."""
    mine = {one.id: one for one in first.devices}
    its = {one.id: one for one in second.devices}
    pairs = [(mine[one], its[other]) for one, other in matches.pairs]
    found = [*_counts(first, second, matches), *_at_addresses(first, second)]
    for one, other in pairs:
        found += _of_device(one, other, first, second)
    placed = [pair for pair in pairs if pair[0].kind in ("gpu", "nic", "dpu", "nvme")]
    for pair, further in combinations(placed, 2):
        found += _of_pair(pair, further, first, second)
    return list(dict.fromkeys((*found, *_fabrics(placed, first, second))))


def tree_known(machine: Machine) -> bool:
    """Whether a source tells the PCIe tree, and not only what can be concluded from classes."""
    return machine.kind not in MATRICES and not _codes(machine) & _BLIND


def _codes(machine: Machine) -> set[str]:
    return {finding.code for finding in machine.findings}


# --- the machine ----------------------------------------------------------------------------------


def _counts(first: Machine, second: Machine, matches: Matches) -> Iterator[Difference]:
    counts = [len(one.of_kind("gpu")) for one in (first, second)]
    if counts[0] != counts[1] and _lists_gpus(first) and _lists_gpus(second):
        yield Difference("number of GPUs", (), str(counts[0]), str(counts[1]), grave=True)
    if "GPUs" in matches.strange:
        ends = [next(iter(s.of_kind("gpu"))).pci[0] for s in (first, second)]
        yield Difference("PCI address of the first GPU", (), ends[0], ends[1], grave=True)


def _at_addresses(first: Machine, second: Machine) -> Iterator[Difference]:
    """Yield the addresses at which the two see different kinds of devices."""
    mine = {address: one.kind for one in first.devices for address in one.pci}
    for one in second.devices:
        for address in one.pci:
            kinds = (mine.get(address, one.kind), one.kind)
            if kinds[0] != kinds[1] and {*kinds} != {"nic", "dpu"}:
                yield Difference(f"at {address}", (), kinds[0], kinds[1], grave=True)


def _lists_gpus(machine: Machine) -> bool:
    """Whether a source tells all GPUs: nothing that could be one was left out."""
    codes = _codes(machine)
    none = "no-io" in codes and not machine.of_kind("gpu")
    return not none and not codes & {"unclassified-device", "abridged"}


# --- one device -----------------------------------------------------------------------------------


def _of_device(
    one: DiscoveredDevice, other: DiscoveredDevice, first: Machine, second: Machine
) -> Iterator[Difference]:
    here = (one.id,)
    if one.kind not in ("cpu", "memory") and _parts_differ(one.part, other.part):
        yield Difference("part", here, one.part, other.part)
    if link_differs(one.link, other.link):
        cables = [end.link.cable for end in (one, other) if end.link]
        yield Difference("PCIe link", here, cables[0], cables[1])
    speeds = [sorted({rate for rate in device.ports if rate}) for device in (one, other)]
    if speeds[0] and speeds[1] and not {*speeds[0]} & {*speeds[1]}:
        yield Difference("port speed", here, _gigabits(speeds[0]), _gigabits(speeds[1]))
    if one.kind not in ("cpu", "memory"):
        nodes = (numa_of(one, first), numa_of(other, second))
        if nodes[0] and nodes[1] and not {*nodes[0]} & {*nodes[1]}:
            yield Difference("NUMA node", here, _numbers(nodes[0]), _numbers(nodes[1]))
    facts = (dict(one.facts), dict(other.facts))
    for key in _COMPARED:
        if key in facts[0] and key in facts[1] and _values_differ(facts[0][key], facts[1][key]):
            yield Difference(key, here, facts[0][key], facts[1][key])
    named = (
        ("RDMA name", one.rdma, other.rdma),
        ("slot", (one.slot,), (other.slot,)),
    )
    for what, names, others in named:
        if any(names) and any(others) and not {*names} & {*others}:
            yield Difference(what, here, ", ".join(names), ", ".join(others))


def _parts_differ(one: str, other: str) -> bool:
    vague = any(part.endswith("-unknown") or part == "amd-instinct" for part in (one, other))
    return not vague and not one.startswith(other) and not other.startswith(one)


def _rate(link: DiscoveredLink) -> float | None:
    if link.generation is None or link.lanes is None:
        return None
    return lane_rate(link.generation) * link.lanes


def link_differs(one: DiscoveredLink | None, other: DiscoveredLink | None) -> bool:
    """Whether two links cannot be the same; a guessed split of a rate is only that rate."""
    if one is None or other is None:
        return False
    rates = (_rate(one), _rate(other))
    if rates[0] is not None and rates[1] is not None:
        if "are a guess" in one.evidence or "are a guess" in other.evidence:
            return abs(rates[0] - rates[1]) > _CLOSE * max(rates[0], rates[1])
        return (one.generation, one.lanes) != (other.generation, other.lanes)
    halves = ((one.generation, other.generation), (one.lanes, other.lanes))
    return any(a is not None and b is not None and a != b for a, b in halves)


def _values_differ(one: str, other: str) -> bool:
    sizes = [re.fullmatch(r"([\d.]+) ([GT])B", text) for text in (one, other)]
    if sizes[0] is None or sizes[1] is None:
        return one != other
    values = [float(found[1]) * (1000 if found[2] == "T" else 1) for found in sizes if found]
    return abs(values[0] - values[1]) > 0.1 * max(values)  # what the firmware keeps differs


def _gigabits(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate / 1e9:g} Gb/s" for rate in rates)


def _numbers(nodes: tuple[int, ...]) -> str:
    return ", ".join(map(str, nodes))


# --- pairs ----------------------------------------------------------------------------------------

_Both = tuple["DiscoveredDevice", "DiscoveredDevice"]


def _of_pair(one: _Both, other: _Both, first: Machine, second: Machine) -> Iterator[Difference]:
    if one[0].id == other[0].id or one[1].id == other[1].id:
        return
    codes = [_class(one[0], other[0], first), _class(one[1], other[1], second)]
    blurred = "nccl" in (first.kind, second.kind)  # which does not know host bridges
    if all(codes) and codes[0] != codes[1] and not (blurred and {*codes} == {"PHB", "NODE"}):
        yield Difference("class", (one[0].id, other[0].id), codes[0], codes[1])


def _class(one: DiscoveredDevice, other: DiscoveredDevice, machine: Machine) -> str:
    """Return the class of a pair in the PCIe tree, ``""`` where the source does not know it."""
    if machine.kind in MATRICES and one.kind == other.kind == "gpu":
        counts = nvlinks(machine)
        if counts.get(frozenset((one.id, other.id))):
            return ""  # the code NV# hides the class
    chains = [_above(one, machine), _above(other, machine)]
    common = next((found for found in chains[0] if found in chains[1]), None)
    kinds = {device.id: device.kind for device in machine.devices}
    if common is not None and kinds[common.id] == "pcie-switch":
        between = chains[0].index(common) + chains[1].index(common)
        return "" if _codes(machine) & _BLIND else "PIX" if not between else "PXB"
    if common is not None and kinds[common.id] == "root-complex":
        return "PHB"
    if _codes(machine) & (_BLIND | {"numa-unknown"}):
        return ""
    nodes = [numa_of(one, machine), numa_of(other, machine)]
    apart = bool(nodes[0] and nodes[1]) and not {*nodes[0]} & {*nodes[1]}
    return "SYS" if common is None or apart else "NODE"


def _above(device: DiscoveredDevice, machine: Machine) -> list[DiscoveredDevice]:
    known = {one.id: one for one in machine.devices}
    chain: list[DiscoveredDevice] = []
    here = known.get(device.parent)
    while here is not None and here not in chain:
        chain.append(here)
        here = known.get(here.parent)
    return chain


def nvlinks(machine: Machine) -> Counter[frozenset[str]]:
    """Return how many NVLinks or xGMI links join each pair of GPUs, directly or by switches."""
    gpus = {gpu.id for gpu in machine.of_kind("gpu")}
    direct: Counter[frozenset[str]] = Counter()
    switched: Counter[str] = Counter()
    for cable in machine.cables:
        found = _FABRIC.match(cable.cable)
        ends = frozenset((cable.a, cable.b))
        if found is None:
            continue
        count = int(found[1] or 1)
        if ends <= gpus:
            direct[ends] += count
        elif len(ends & gpus) == 1 and _switch_end(cable.b, machine):
            switched[cable.a] += count
    for one, other in combinations(sorted(switched), 2):
        direct[frozenset((one, other))] += min(switched[one], switched[other])
    return direct


def _switch_end(key: str, machine: Machine) -> bool:
    return any(one.id == key for one in machine.of_kind("nvswitch"))


def links_known(machine: Machine) -> bool:
    """Whether a source tells NVLinks; a matrix also tells that there are none."""
    if "guessed-nvlinks" in _codes(machine):
        return False
    many = len(machine.of_kind("gpu")) > 1
    told = machine.kind in MATRICES and many
    return told or machine.fabric_known or bool(nvlinks(machine))


def _fabrics(placed: Sequence[_Both], first: Machine, second: Machine) -> Iterator[Difference]:
    if not (links_known(first) and links_known(second)):
        return
    counts = (nvlinks(first), nvlinks(second))
    gpus = [pair for pair in placed if pair[0].kind == "gpu"]
    for one, other in combinations(gpus, 2):
        mine = counts[0][frozenset((one[0].id, other[0].id))]
        its = counts[1][frozenset((one[1].id, other[1].id))]
        if mine != its:
            yield Difference("NVLinks", (one[0].id, other[0].id), str(mine), str(its))
