"""Text of ``lstopo``: ``lstopo-no-graphics``, ``lstopo -v``, ``lstopo --of console``.

The lines become the objects of hwloc's XML, and are read as those are. Without ``-v`` they have
neither rates nor numbers of vendors; a GPU's maker is told by what its driver calls it.

References
----------
hwloc 1.0 to 3.0, ``utils/lstopo/lstopo-text.c``, ``hwloc/traversal.c``, ``hwloc/pci-common.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import AMD, INTEL, NVIDIA
from topo.discovery.foreign import nothing_there, read_lines
from topo.discovery.sources.hwloc import HwlocFile, Object, machine_of
from topo.errors import ExchangeError, Finding
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.discovery.machine import Machine

_TYPES: Final = (
    r"Machine|System|Package|Socket|Die|Group\d{0,2}|NUMANode|MemCache|L\d[di]?(?:Cache)?|Core|PU|"
    r"HostBridge|PCIBridge|Bridge|PCI(?:Dev)?|Misc|(?:OSDev|OS)\[[A-Za-z,-]{1,80}\]|Block|Storage|"
    r"Mem(?:ory)?|Net(?:work)?|OpenFabrics|OFED|CoProc|Co-Processor|GPU|DMA"
)
_OBJECT: Final = re.compile(
    rf"(?P<type>{_TYPES})(?:\((?P<subtype>[^()]{{1,40}})\))?(?= |\Z)"
    r"(?: L#\d{1,9}(?:-\d{1,9})?)?(?: P#(?P<index>\d{1,4})(?= |\Z))?"
    r"(?: (?P<bus>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?:-[0-9a-f.:]{1,8})?|"
    r"[0-9a-f]{4}:[0-9a-f]{4}))?"
    r"(?: \((?P<class>[A-Z0-9][A-Za-z0-9-]{1,25})\)(?= |\Z))?"
    r"(?: \((?P<facts>.*)\))?(?: \"(?P<name>[^\"]{1,100})\")?"
)
_MERGED: Final = re.compile(rf" \+ (?=(?:{_TYPES})(?:\(|[ ]|\Z))")
_COLLAPSED: Final = re.compile(r"\d{1,5} x \{ (.*?) \}")
_FACT: Final = re.compile(r'([A-Za-z_][\w-]{0,60})=("[^"]*"|[^\s"()]*(?:\([^()]*\))?)')
_INDEX: Final = re.compile(r"P#(\d{1,4})\b")
_SIZE: Final = re.compile(r"(?:local=|^P#\d{1,4} |^)(\d{1,12}) ?([KMGT])i?B\b")
_ID: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
_CLASSES: Final = {  # of hwloc's words for them, where a device of topo can be that
    "SCSI": "0100",
    "RAID": "0104",
    "SATA": "0106",
    "SAS": "0107",
    "NVMExp": "0108",
    "NVMExpress": "0108",
    "Storage": "0180",
    "Ethernet": "0200",
    "InfiniBand": "0207",
    "Fabric": "0208",
    "Network": "0280",
    "VGA": "0300",
    "3D": "0302",
    "Display": "0380",
    "CXLMem": "0502",
    "PCIBridge": "0604",
    "Co-Processor": "0b40",
    "ProcessingAccelerator": "1200",
}
_SORTS: Final = {  # of OS devices, as bits of hwloc's version 3
    "storage": 1,
    "block": 1,
    "mem": 2,
    "memory": 2,
    "gpu": 4,
    "coproc": 8,
    "co-processor": 8,
    "net": 16,
    "network": 16,
    "openfabrics": 32 | 16,
    "ofed": 32 | 16,
    "dma": 64,
}
_MEMORY: Final = ("CXLMem", "SPM", "NVM")
_MAKERS: Final = (("cuda", NVIDIA), ("nvml", NVIDIA), ("rsmi", AMD), ("ze", INTEL))
_UNITS: Final = "KMGT"
_WORD: Final = 8  # digits between the commas of a mask
_DEEPEST: Final = 200
_MOST: Final = 200_000
# How far in a kind of line is, where the spaces are lost.
_DEPTHS: Final = {"Machine": 0, "Package": 1, "NUMANode": 2, "HostBridge": 3}


@dataclass(slots=True)
class _Item:
    """An object that is being read, with what stands below it."""

    type: str
    attributes: dict[str, str] = field(default_factory=dict)
    infos: dict[str, str] = field(default_factory=dict)
    below: list[_Item] = field(default_factory=list)
    nodes: int = 0


def read(data: bytes, name: str) -> Machine:
    """Read what lstopo wrote; an `ExchangeError` if there is no machine in it."""
    lines = [line.expandtabs(2).rstrip() for line in read_lines(data, name)]
    chains = [(len(line) - len(line.lstrip()), chain) for line in lines if (chain := _chain(line))]
    if len(chains) > _MOST:
        message = f"`{name}` has more than {_MOST} objects, which no machine needs"
        raise ExchangeError(Finding("import-too-big", message))
    if all(item.type in ("Misc", "OSDev", "PU", "Core") for _, chain in chains for item in chain):
        message = f"`{name}` has no machine of lstopo: no line with a package or a PCI device"
        help = "paste the output of `lstopo-no-graphics -v`"
        raise nothing_there(message, help)
    is_flat = len(chains) > 1 and len({indent for indent, _ in chains}) == 1
    root = _tree(chains, is_flat=is_flat)
    _nodes_below(root)
    file = HwlocFile("3", _frozen(root), ())
    machine = machine_of(file, name)
    findings = list(machine.findings)
    if is_flat and file.objects("PCIDev"):
        message = "the lines begin all at one column: what hangs on which bridge is lost"
        help = "paste the text with its spaces, as a file"
        findings.insert(0, Finding("no-tree", message, severity="warning", help=help))
    return replace(machine, kind="lstopo", source="text of lstopo", findings=tuple(findings))


def _chain(line: str) -> list[_Item]:
    """Return the objects of a line, each in the one before: `` + `` joins those of one place."""
    text = line.strip()
    if collapsed := _COLLAPSED.match(text):  # functions that are alike, of which the first is named
        text = collapsed[1]
    items: list[_Item] = []
    for part in _MERGED.split(text):
        match = _OBJECT.match(part)
        if match is None or (not items and match["type"] == "System"):
            break
        items.append(_item(match))
    return items


def _item(match: re.Match[str]) -> _Item:
    kind, facts = match["type"], match["facts"] or match["class"] or ""
    infos = {key: text.strip('"') for key, text in _FACT.findall(facts)}
    attributes: dict[str, str] = {}
    index = _INDEX.match(facts)
    if number := match["index"] or (index[1] if index else ""):
        attributes["os_index"] = number
    if match["subtype"]:
        attributes["subtype"] = match["subtype"]
    if match["name"]:
        attributes["name"] = match["name"]
    if kind == "NUMANode" and (size := _SIZE.search(facts)):
        count = int(size[1]) * 1024 ** (1 + _UNITS.index(size[2]))
        attributes["local_memory"] = str(count)
    if kind in ("HostBridge", "PCIBridge", "Bridge", "PCI", "PCIDev"):
        bus = match["bus"] or ""
        address = infos.pop("busid", "" if _ID.fullmatch(bus) else bus).partition("-")[0]
        numbers = infos.pop("id", bus if _ID.fullmatch(bus) else "")
        number = infos.pop("class", "")[:4] or _CLASSES.get(match["class"] or "", "")
        if match["class"] and not number:
            number = "ff00"  # hwloc has a word for it, and topo no device
        attributes["pci_busid"] = address
        attributes["pci_type"] = f"{number or '0000'} [{numbers}]" if numbers else number
        attributes["pci_link_speed"] = infos.pop("link", "").removesuffix("GB/s")
        if kind == "HostBridge":
            attributes = {"bridge_type": "0-1", "bridge_pci": infos.pop("buses", "")}
        kind = "PCIDev" if kind.startswith("PCI") and kind != "PCIBridge" else "Bridge"
    elif kind == "Socket":
        kind = "Package"
    elif (sort := re.sub(r"^OS(?:Dev)?\[|\]$", "", kind).lower()) and not sort.isdecimal():
        words = sort.split(",")
        if all(word in _SORTS for word in words):
            bits = 0
            for word in words:
                bits |= _SORTS[word]
            if bits == _SORTS["storage"] and match["subtype"] in _MEMORY:
                bits = _SORTS["memory"]  # before hwloc 3
            attributes["osdev_type"] = str(bits)
            kind = "OSDev"
    if not attributes.get("pci_busid"):
        attributes.pop("pci_busid", None)
    return _Item(kind, attributes, infos)


def _tree(chains: Iterable[tuple[int, list[_Item]]], *, is_flat: bool) -> _Item:
    """Return the machine: a line hangs on the nearest one above that begins further left."""
    root = _Item("Machine")
    above: list[tuple[int, int, _Item]] = [(-1, 0, root)]  # column, depth, object
    for indent, chain in chains:
        column = indent
        if is_flat:
            kind = "HostBridge" if "bridge_type" in chain[0].attributes else chain[0].type
            if kind == "Bridge":
                continue
            column = _DEPTHS.get(kind, 5 if kind == "OSDev" else 4)
        while above[-1][0] >= column:
            above.pop()
        _, depth, parent = above[-1]
        for outer, inner in pairwise((parent, *chain)):
            outer.below.append(inner)
        above.append((column, depth + len(chain), chain[-1]))
        if depth + len(chain) > _DEEPEST:
            message = f"lstopo's text is deeper than {_DEEPEST}, which no machine needs"
            raise ExchangeError(Finding("import-too-big", message))
    return root


def _nodes_below(item: _Item) -> int:
    """Return the NUMA nodes of an object and of all below it, as bits, and note them there."""
    number = item.attributes.get("os_index", "")
    item.nodes = 1 << int(number) if item.type == "NUMANode" and number else 0
    for child in item.below:
        item.nodes |= _nodes_below(child)
    return item.nodes


def _frozen(item: _Item, around: int = 0) -> Object:
    """Return an object with its nodeset; one without NUMA nodes is near those `around` it."""
    if item.type == "PCIDev":
        _name_maker(item)
    nodes = item.nodes or around
    digits = f"{nodes:x}"
    digits = digits.zfill(-(-len(digits) // _WORD) * _WORD)
    words = [f"0x{digits[at : at + _WORD]}" for at in range(0, len(digits), _WORD)]
    attributes = {**item.attributes, "nodeset": ",".join(words)} if nodes else item.attributes
    below = tuple(_frozen(child, nodes) for child in item.below)
    return Object(item.type, attributes, item.infos, below)


def _name_maker(item: _Item) -> None:
    """Give a GPU without numbers the maker that its driver's names tell."""
    code = item.attributes["pci_type"]
    if "[" in code or not code.startswith(("03", "12", "0b40")):
        return
    names = " ".join(child.attributes.get("name", "") for child in item.below)
    maker = next((maker for word, maker in _MAKERS if re.search(rf"\b{word}\d", names)), "")
    if maker:
        item.attributes["pci_type"] = f"{code} [{maker}:0000]"
