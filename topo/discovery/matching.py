"""Two sources of one machine side by side: which device is which, and what they say differently.

Devices are matched by address, by name, or by order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import combinations, product
from typing import Final

from topo.catalogue.identities import lane_rate
from topo.catalogue.kinds import CARDS, Kind
from topo.discovery.describe import file_title
from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine, ancestors, numa_of
from topo.discovery.pci import address_key, card_of
from topo.records import dataclass

NCCL: Final = ("nccl", "nccl-log")
MATRICES: Final = (
    "nvidia-smi",
    "rocm-smi",
    "amd-smi",
    "npu-smi",
    "xpu-smi",
    "mx-smi",
    "mthreads-gmi",
    "hl-smi",
)
_BY_ADDRESS: Final[tuple[Kind, ...]] = ("nvme", "hba", "pcie-switch", "cxl-memory")
_RDMA_PARTS: Final = ("connectx", "bluefield", "efa")
_PLACED: Final[tuple[Kind, ...]] = ("gpu", "nic", "dpu", "nvme")
_TREELESS: Final = {"no-tree", "no-bridges", "no-io", "abridged"}  # findings of such sources
_CLOSE: Final = 0.03
_SIZES_CLOSE: Final = 0.1  # what the firmware keeps differs
_FABRIC: Final = re.compile(r"(?:(\d+)x )?(nvlink|xgmi)\b(?!-c2c)")
_SIZE: Final = re.compile(r"([\d.]+) ([GT])B")
_COMPARED: Final = ("acs", "chips", "size")

Pair = tuple[str, str]
_Devices = tuple["DiscoveredDevice", "DiscoveredDevice"]


@dataclass(slots=True)
class Matches:
    """Pairs of devices, the first source's `id` first, and sentences on how they were matched.

    `strange` are the kinds whose addresses are told by both sources and agree nowhere.
    """

    pairs: list[Pair] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def first_ids(self, second_id: str) -> list[str]:
        """Return what a device of the second source is in the first."""
        return [first for first, second in self.pairs if second == second_id]

    def add(self, pairs: Iterable[Pair]) -> None:
        """Add pairs, each once."""
        self.pairs += [pair for pair in dict.fromkeys(pairs) if pair not in self.pairs]


def match(first: Machine, second: Machine) -> Matches:
    """Return the pairs of devices that are the same in both sources."""
    matches = Matches()
    cpus = first.of_kind("cpu"), second.of_kind("cpu")
    pairs = [(a.id, b.id) for a, b in product(*cpus) if {*a.numa} & {*b.numa}]
    numbered = all(any(cpu.numa for cpu in of_source) for of_source in cpus)
    if not pairs and not numbered and len(cpus[0]) == len(cpus[1]):
        pairs = [(a.id, b.id) for a, b in zip(*cpus, strict=True)]
    matches.add(pairs)
    matches.add(_by_key(first.of_kind("gpu"), second.of_kind("gpu"), lambda gpu: gpu.pci))
    _match_by_order(matches, (first, second), ("gpu",), "GPUs", lambda gpus: [gpus])
    _match_by_index(matches, first, second)
    # Sources tell different functions of a card.
    matches.add(
        _by_key(
            first.of_kind(*CARDS),
            second.of_kind(*CARDS),
            lambda card: dict.fromkeys(card_of(address) for address in card.pci),
        )
    )
    cards = _unmatched(matches, (first, second), CARDS)
    matches.add(_by_key(*cards, lambda card: card.rdma))
    if second.tells_only:  # it has names where a source of a machine has places
        cards = _unmatched(matches, (first, second), CARDS)
        matches.add(_by_key(*cards, _names_in_label))
        drives = first.of_kind("nvme"), second.of_kind("nvme")
        matches.add(_by_key(*drives, _names_in_label))
    # Where both have names, or one has those of interfaces alone, what is left is of other cards.
    by_name = any(card.rdma for card in first.of_kind(*CARDS)) or not any(
        card.rdma or card.pci for card in cards[1]
    )
    if not (second.tells_only and by_name):
        _match_by_order(matches, (first, second), CARDS, "Network cards", _candidates)
    for kind in _BY_ADDRESS:
        matches.add(_by_key(first.of_kind(kind), second.of_kind(kind), lambda device: device.pci))
    if second.tells_only:
        _match_alike(matches, _unmatched(matches, (first, second), ("nvme",)))
    switches = zip(first.of_kind("nvswitch"), second.of_kind("nvswitch"), strict=False)
    matches.add((mine.id, other.id) for mine, other in switches)
    by_id = first.by_id() | second.by_id()
    memories = first.of_kind("memory"), second.of_kind("memory")
    matches.add(_by_key(*memories, lambda memory: numa_of(memory, by_id)))
    if not numbered and len(memories[0]) == len(memories[1]):
        both_memories = zip(*memories, strict=True)
        of_same_cpu = ((a, b) for a, b in both_memories if (a.parent, b.parent) in matches.pairs)
        matches.add((a.id, b.id) for a, b in of_same_cpu)
    return matches


def same_cards(first: Machine, second: Machine) -> dict[str, str]:
    """Return the second source's card for each of the first: by RDMA name, else in order.

    In order where none has a known name, and both have as many: of the second those that can do
    RDMA, where all are too many.
    """
    cards, seconds = list(first.of_kind(*CARDS)), list(second.of_kind(*CARDS))
    named = _by_key(seconds, cards, lambda card: card.rdma)
    if named:
        return {of_first: of_second for of_second, of_first in named}
    for candidates in _candidates(seconds):
        if len(candidates) == len(cards):
            ids = (card.id for card in _sorted(candidates))
            return dict(zip((card.id for card in cards), ids, strict=True))
    return {}


def _by_key(
    first: Sequence[DiscoveredDevice],
    second: Sequence[DiscoveredDevice],
    keys: Callable[[DiscoveredDevice], Iterable[object]],
) -> list[Pair]:
    """Return the pairs of devices that have one of their keys in common."""
    first_id: dict[object, str] = {}
    for device in first:
        for key in keys(device):
            first_id.setdefault(key, device.id)
    return [
        (first_id[key], device.id) for device in second for key in keys(device) if key in first_id
    ]


def _names_in_label(device: DiscoveredDevice) -> list[str]:
    """Return what the operating system calls a device: its interfaces, its drives."""
    return [name for name in device.label.split(", ") if name]


def _unmatched(
    matches: Matches, machines: tuple[Machine, Machine], kinds: tuple[Kind, ...]
) -> tuple[list[DiscoveredDevice], list[DiscoveredDevice]]:
    matched = {first for first, _ in matches.pairs}, {second for _, second in matches.pairs}
    first, second = (
        [device for device in machine.of_kind(*kinds) if device.id not in ids]
        for machine, ids in zip(machines, matched, strict=True)
    )
    return first, second


def _match_by_order(
    matches: Matches,
    machines: tuple[Machine, Machine],
    kinds: tuple[Kind, ...],
    words: str,
    choices: Callable[[list[DiscoveredDevice]], list[list[DiscoveredDevice]]],
) -> None:
    """Match devices by their order where none of a kind could be matched before."""
    first, second = _unmatched(matches, machines, kinds)
    if not first or not second:
        return
    of_first = machines[0].of_kind(*kinds)
    addressed = all(device.pci for device in (*first, *second))
    if addressed and (len(first) < len(of_first) or kinds != ("gpu",)):
        return  # some have the same address, so these are others; and so are cards with others
    for some_first, some_second in product(choices(first), choices(second)):
        pairs = _in_order(some_first, some_second)
        if not pairs:
            continue
        matches.add(pairs)
        how = "addresses differ"
        if not addressed:
            blind = machines[1 if any(device.pci for device in of_first) else 0]
            how = f"{file_title(blind.file)} has no addresses"
        matches.notes.append(f"{words} were matched by their order: {how}.")
        if addressed:
            matches.strange.append(words)
        return


def _match_by_index(matches: Matches, first: Machine, second: Machine) -> None:
    """Match those GPUs of a source of facts that it has only numbers of: ``nvlink -i 3``."""
    unmatched = _unmatched(matches, (first, second), ("gpu",))[1] if second.tells_only else []
    gpus = _sorted(list(first.of_kind("gpu")))
    pairs = [
        (gpus[gpu.index].id, gpu.id)
        for gpu in unmatched
        if gpu.index is not None and gpu.index < len(gpus)
    ]
    if pairs:
        matches.add(pairs)
        name = file_title(second.file)
        matches.notes.append(f"GPUs were matched by their numbers: {name} has no addresses.")


def _match_alike(
    matches: Matches, drives: tuple[list[DiscoveredDevice], list[DiscoveredDevice]]
) -> None:
    """Match drives that neither address nor name tells apart, where it does not matter which."""
    first, second = drives
    facts = {(drive.part, drive.facts) for drive in second}
    if len(facts) == 1 and len(first) == len(second):
        matches.add((a.id, b.id) for a, b in zip(first, second, strict=True))


def _candidates(cards: list[DiscoveredDevice]) -> list[list[DiscoveredDevice]]:
    """Return all cards, and those that can do RDMA: `nvidia-smi` lists no others."""
    able = [
        card
        for card in cards
        if card.rdma or card.network == "infiniband" or card.part.startswith(_RDMA_PARTS)
    ]
    return [cards, able]


def _in_order(first: list[DiscoveredDevice], second: list[DiscoveredDevice]) -> list[Pair]:
    """Return pairs where both have as many functions, or as many devices; else none."""
    first, second = _sorted(first), _sorted(second)
    functions = _functions(first), _functions(second)
    if len(functions[0]) == len(functions[1]):
        return list(zip(*functions, strict=True))
    if len(first) == len(second):
        return [(a.id, b.id) for a, b in zip(first, second, strict=True)]
    return []


def _sorted(devices: list[DiscoveredDevice]) -> list[DiscoveredDevice]:
    """Return devices by address where all have one: the order that NVIDIA's tools number by."""
    if not all(device.pci for device in devices):
        return devices
    return sorted(devices, key=lambda device: address_key(device.pci[0]))


def _functions(devices: list[DiscoveredDevice]) -> list[str]:
    return [
        device.id for device in devices for _ in range(max(len(device.pci), len(device.rdma), 1))
    ]


# --- what a source tells --------------------------------------------------------------------------


def tells_tree(machine: Machine) -> bool:
    """Whether a source tells the PCIe tree, and not only what can be concluded from classes."""
    is_alone = machine.kind not in MATRICES and not machine.tells_only
    return is_alone and not _codes(machine) & _TREELESS


def tells_links(machine: Machine) -> bool:
    """Whether a source tells NVLinks; a matrix also tells that there are none."""
    if "guessed-nvlinks" in _codes(machine):
        return False
    whole_matrix = machine.kind in MATRICES and len(machine.of_kind("gpu")) > 1
    return whole_matrix or machine.fabric_known or bool(_nvlinks(machine))


def _codes(machine: Machine) -> set[str]:
    return {finding.code for finding in machine.findings}


def _nvlinks(machine: Machine) -> Counter[frozenset[str]]:
    """Return how many NVLinks or xGMI links join each pair of GPUs, directly or by switches."""
    gpus = {gpu.id for gpu in machine.of_kind("gpu")}
    switches = {switch.id for switch in machine.of_kind("nvswitch")}
    links: Counter[frozenset[str]] = Counter()
    switched: Counter[str] = Counter()
    for cable in machine.cables:
        fabric = _FABRIC.match(cable.cable)
        if fabric is None:
            continue
        ends = frozenset((cable.a, cable.b))
        count = int(fabric[1] or 1)
        if ends <= gpus:
            links[ends] += count
        elif len(ends & gpus) == 1 and cable.b in switches:
            switched[cable.a] += count
    for a, b in combinations(sorted(switched), 2):
        links[frozenset((a, b))] += min(switched[a], switched[b])
    return links


class _Source:
    """A machine with what is asked of it for each pair of devices."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kind = machine.kind
        self.by_id = machine.by_id()
        self.codes = _codes(machine)

    @cached_property
    def nvlinks(self) -> Counter[frozenset[str]]:
        """The links of each pair of GPUs."""
        return _nvlinks(self.machine)

    def locality(self, a: DiscoveredDevice, b: DiscoveredDevice) -> str:
        """Return the class of a pair in the PCIe tree, ``""`` where the source does not know it."""
        between_gpus = self.kind in MATRICES and a.kind == b.kind == "gpu"
        if between_gpus and self.nvlinks[frozenset((a.id, b.id))]:
            return ""  # the code NV# hides the class
        chains = ancestors(a, self.by_id), ancestors(b, self.by_id)
        common = next((above for above in chains[0] if above in chains[1]), None)
        if common is not None and common.kind == "pcie-switch":
            between = chains[0].index(common) + chains[1].index(common)
            return "" if self.codes & _TREELESS else "PXB" if between else "PIX"
        if common is not None and common.kind == "root-complex":
            return "PHB"
        tops = [[end, *ancestors(end, self.by_id)][-1] for end in (a, b)]
        placeless = any(top.kind == "root-complex" for top in tops)
        if placeless or self.codes & (_TREELESS | {"numa-unknown"}):
            return ""
        nodes = {*numa_of(a, self.by_id)}, {*numa_of(b, self.by_id)}
        apart = all(nodes) and not nodes[0] & nodes[1]
        return "SYS" if common is None or apart else "NODE"


# --- differences ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of one fact: of a device, or of a pair of them.

    `ids` are those of the first source; empty for the machine as a whole. A grave one says that
    the sources are not of one machine.
    """

    what: str
    ids: tuple[str, ...]
    first: str
    second: str
    grave: bool = False


def differences(first: Machine, second: Machine, matches: Matches) -> list[Difference]:
    """Return everything that the two sources contradict each other in."""
    sources = _Source(first), _Source(second)
    pairs = [(sources[0].by_id[a], sources[1].by_id[b]) for a, b in matches.pairs]
    differing = [*_of_machines(sources, matches), *_of_gpu_links(first, second, matches)]
    for pair in pairs:
        differing += _of_devices(pair, sources)
    placed = [pair for pair in pairs if pair[0].kind in _PLACED]
    with_nccl = {first.kind, second.kind} & {*NCCL}  # which do not know host bridges
    for (a, b), (further_a, further_b) in combinations(placed, 2):
        if a.id == further_a.id or b.id == further_b.id:
            continue
        classes = sources[0].locality(a, further_a), sources[1].locality(b, further_b)
        blurred = with_nccl and {*classes} == {"PHB", "NODE"}
        if all(classes) and classes[0] != classes[1] and not blurred:
            differing.append(Difference("class", (a.id, further_a.id), *classes))
    # What is told by GPU is compared by GPU, in _of_gpu_links.
    if tells_links(first) and tells_links(second) and not second.gpu_links:
        gpus = [pair for pair in placed if pair[0].kind == "gpu"]
        for pair, further in combinations(gpus, 2):
            ids = pair[0].id, further[0].id
            counts = (
                sources[0].nvlinks[frozenset(ids)],
                sources[1].nvlinks[frozenset((pair[1].id, further[1].id))],
            )
            if counts[0] != counts[1]:
                differing.append(Difference("NVLinks", ids, str(counts[0]), str(counts[1])))
    return list(dict.fromkeys(differing))


def _of_gpu_links(first: Machine, second: Machine, matches: Matches) -> Iterator[Difference]:
    """Yield where a GPU has another number of NVLinks than a source says that it has up."""
    if not tells_links(first):
        return
    total: Counter[str] = Counter()
    for cable in first.cables:
        if fabric := _FABRIC.match(cable.cable):
            for end in (cable.a, cable.b):
                total[end] += int(fabric[1] or 1)
    for links in second.gpu_links:
        for id_ in matches.first_ids(links.gpu):
            if total[id_] != links.active:
                yield Difference("NVLinks", (id_,), str(total[id_]), f"{links.active} up")


def _of_machines(sources: tuple[_Source, _Source], matches: Matches) -> Iterator[Difference]:
    first, second = sources[0].machine, sources[1].machine
    gpus = first.of_kind("gpu"), second.of_kind("gpu")
    counts = len(gpus[0]), len(gpus[1])
    if second.tells_only:
        return
    # Whether both tell all GPUs: nothing that could be one was left out, or was not the job's.
    complete = not any(
        source.kind == "nccl-log"
        or source.codes & {"unclassified-device", "abridged"}
        or ("no-io" in source.codes and not count)
        for source, count in zip(sources, counts, strict=True)
    )
    if counts[0] != counts[1] and complete:
        yield Difference("number of GPUs", (), str(counts[0]), str(counts[1]), grave=True)
    if "GPUs" in matches.strange:
        addresses = gpus[0][0].pci[0], gpus[1][0].pci[0]
        yield Difference("PCI address of the first GPU", (), *addresses, grave=True)
    kind_at = {address: device.kind for device in first.devices for address in device.pci}
    for device in second.devices:
        for address in device.pci:
            kinds = kind_at.get(address, device.kind), device.kind
            if kinds[0] != kinds[1] and {*kinds} != {*CARDS}:
                yield Difference(f"at {address}", (), *kinds, grave=True)


def _of_devices(pair: _Devices, sources: tuple[_Source, _Source]) -> Iterator[Difference]:
    first, second = pair
    ids = (first.id,)
    parts = first.part, second.part
    if first.kind not in ("cpu", "memory") and not any(is_vague(part) for part in parts):
        shorter, longer = sorted(parts, key=len)
        if not longer.startswith(shorter):
            yield Difference("part", ids, *parts)
    if first.link and second.link and link_differs(first.link, second.link):
        yield Difference("PCIe link", ids, first.link.cable, second.link.cable)
    speeds = [sorted({rate for rate in device.ports if rate}) for device in pair]
    if _apart(*speeds):
        first_text, second_text = (
            ", ".join(f"{rate / 1e9:g} Gb/s" for rate in rates) for rates in speeds
        )
        yield Difference("port speed", ids, first_text, second_text)
    if first.kind not in ("cpu", "memory"):
        nodes = [numa_of(device, of.by_id) for device, of in zip(pair, sources, strict=True)]
        if _apart(*nodes):
            first_text, second_text = (", ".join(map(str, numbers)) for numbers in nodes)
            yield Difference("NUMA node", ids, first_text, second_text)
    facts = dict(first.facts), dict(second.facts)
    for key in _COMPARED:
        if key not in facts[0] or key not in facts[1] or first.is_host_size:
            continue  # of nodes that tell less, other sources tell no more
        if _values_differ(facts[0][key], facts[1][key]):
            yield Difference(key, ids, facts[0][key], facts[1][key])
    if _apart(first.rdma, second.rdma):
        yield Difference("RDMA name", ids, ", ".join(first.rdma), ", ".join(second.rdma))
    if first.slot and second.slot and first.slot != second.slot:
        yield Difference("slot", ids, first.slot, second.slot)


def _apart(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether both sources say something, and nothing of it is the same."""
    return bool(first) and bool(second) and not {*first} & {*second}


def is_vague(part: str) -> bool:
    """Whether a part says no more than what kind of device it is."""
    return part.endswith("-unknown") or part == "amd-instinct"


def is_guessed(link: DiscoveredLink) -> bool:
    """Whether the source told a rate alone, of which generation and lanes are a guess."""
    return "are a guess" in link.evidence


def link_differs(first: DiscoveredLink, second: DiscoveredLink) -> bool:
    """Whether two links cannot be the same; a guessed split of a rate is only that rate."""
    rates = [
        lane_rate(link.generation) * link.lanes
        for link in (first, second)
        if link.generation is not None and link.lanes is not None
    ]
    if len(rates) == 2 and (is_guessed(first) or is_guessed(second)):  # noqa: PLR2004
        return abs(rates[0] - rates[1]) > _CLOSE * max(rates)
    halves = (first.generation, second.generation), (first.lanes, second.lanes)
    return any(a is not None and b is not None and a != b for a, b in halves)


def _values_differ(first: str, second: str) -> bool:
    sizes = [_SIZE.fullmatch(text) for text in (first, second)]
    values = [float(size[1]) * (1000 if size[2] == "T" else 1) for size in sizes if size]
    if len(values) < len(sizes):
        return first != second
    return abs(values[0] - values[1]) > _SIZES_CLOSE * max(values)
