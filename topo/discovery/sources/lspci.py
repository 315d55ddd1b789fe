"""Output of ``lspci``: the tree of ``-tv``, the blocks of ``-vvv``, records, and plain lists.

References
----------
pciutils, ``ls-tree.c``, ``ls-caps.c`` and ``lspci.man``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import class_named, vendor_named
from topo.discovery.foreign import nothing_there, read_lines
from topo.discovery.gpu_links import with_nvswitch_links
from topo.discovery.machine import DiscoveredDevice, Machine, printable
from topo.discovery.numa import hosts_of
from topo.discovery.pci import (
    Function,
    HostBridge,
    LinkSpeed,
    Port,
    address_key,
    chain_of,
    generation_of,
    read_address,
)
from topo.discovery.pci_tree import by_address, devices_of
from topo.discovery.sources.lspci_records import read_records
from topo.errors import Finding
from topo.records import dataclass

# A line of a list, and facts in the block below it.
_HEAD: Final = re.compile(
    r"\s{0,4}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])\s+"
    r"(?P<class>[^:\[\]]{2,60}?)(?:\s*\[(?P<code>[0-9a-f]{4})\])?:\s+(?P<name>.*)",
    re.IGNORECASE,
)
_EXTRAS: Final = re.compile(
    r"\s*\((?:rev|prog-if) [^)]*\)|\s*\[[0-9a-f]{4}:[0-9a-f]{4}\]", re.IGNORECASE
)
_DEVICE_NUMBER: Final = re.compile(r"\bDevice ([0-9a-f]{4})\b")
_NUMBERS: Final = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE)
_LINK: Final = re.compile(r"Speed ([\d.]+ ?GT/s|unknown)[^,]*, Width x(\d{1,2})")
_BUSES: Final = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2})", re.IGNORECASE)
_EXPRESS: Final = re.compile(r"Express (?:\(v\d\) )?(Root Port|Upstream Port|Downstream Port)")
_PORTS: Final[dict[str, Port]] = {
    "Root Port": "root",
    "Upstream Port": "upstream",
    "Downstream Port": "downstream",
}
_DENIED: Final = "<access denied>"
_MOST_DIGITS: Final = 4

# The picture of a tree.
_BUS: Final = re.compile(
    r"\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]", re.IGNORECASE
)
_DEVICE: Final = re.compile(
    r"(?P<device>[01][0-9a-f])\.(?P<function>[0-7])(?=-|\s|$)", re.IGNORECASE
)
_ROOT: Final = re.compile(
    r"^[ |]*[-+\\`]+-?\[(?:[0-9a-f]{4,8}:[0-9a-f]{2}|[0-9a-f]{2}\]-)", re.IGNORECASE
)
_COMMENT: Final = re.compile(r"\s{2,}#.*$")
_MOST_COLUMNS: Final = 1000


@dataclass(frozen=True, slots=True)
class Listing:
    """What a text of lspci tells: functions, the buses that are roots, what it was called with."""

    functions: tuple[Function, ...]
    roots: tuple[str, ...]
    form: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]


def read(data: bytes, name: str) -> Machine:
    """Read what lspci printed; an `ExchangeError` if there is no PCI function in it."""
    lines = read_lines(data, name)
    listing = read_tree(lines) or _as_listing(read_records(lines), " -vmm") or read_blocks(lines)
    if listing is None:
        message = f"`{name}` has no line of lspci: no PCI address with a device behind it"
        help = "paste the output of `lspci -tv` or `lspci -vvv`"
        raise nothing_there(message, help)
    node_of: dict[str, int] = {}  # of each host bridge, where something on it says one
    by_id = {function.id: function for function in listing.functions}
    for function in listing.functions:
        if function.node is not None:
            top = [function, *chain_of(function, by_id)][-1]
            node_of.setdefault(top.parent, function.node)
    numbers = {function.node for function in listing.functions if function.node is not None}
    hosts = hosts_of(dict.fromkeys(numbers))
    bridges = []
    for root in sorted({*listing.roots}, key=lambda root: address_key(f"{root}:00.0")):
        cpu, _ = hosts.place([node_of[root]] if root in node_of else [])
        bridges.append(HostBridge(root, cpu, evidence=f"host bridge of bus {root}"))
    # A tree without names tells places alone: what stands there, another source may know.
    functions = by_address(listing.functions)
    nameless = listing.form == " -t"
    pci = devices_of(functions, bridges, hosts.forwards, keep_switches=nameless)
    places = tuple(_places(functions, pci.devices, bridges)) if nameless else ()
    unnamed = () if nameless else pci.findings
    devices, cables, guesses = with_nvswitch_links((*hosts.devices, *pci.devices))
    nodes_unknown: list[Finding] = []
    if len(bridges) > 1 and all(function.node is None for function in listing.functions):
        message = f"{len(bridges)} host bridges, and which CPU each belongs to is not told: "
        message += "all were put under one"
        help = "`lspci -vvv` tells the NUMA node; put links under the right CPU in the YAML"
        nodes_unknown.append(Finding("numa-unknown", message, severity="warning", help=help))
    return Machine(
        kind="lspci",
        source=f"output of lspci{listing.form}",
        file=name,
        devices=devices,
        cables=cables,
        parts=hosts.parts,
        socket_cable=hosts.socket_cable,
        notes=listing.notes,
        left_out=() if nameless else pci.left_out,
        findings=(*listing.findings, *nodes_unknown, *unnamed, *guesses),
        places=places,
    )


def _places(
    functions: Iterable[Function],
    devices: Iterable[DiscoveredDevice],
    bridges: Iterable[HostBridge],
) -> Iterator[tuple[str, str]]:
    """Yield the address of each endpoint with the switch, root complex or CPU that it hangs on."""
    by_id = {function.id: function for function in functions}
    ids = {device.id for device in devices}
    cpus = {bridge.id: bridge.cpu for bridge in bridges}
    for function in by_id.values():
        if not function.is_bridge:
            chain = chain_of(function, by_id)
            switch = next((bridge.id for bridge in chain if bridge.id in ids), "")
            root = [function, *chain][-1].parent
            yield function.address, switch or (f"rc {root}" if f"rc {root}" in ids else cpus[root])


def _named_function(id_: str, address: str, code: str, text: str, *, parent: str = "") -> Function:
    """Return a function with the vendor and device number that ``-nn`` wrote into its name."""
    pairs = _NUMBERS.findall(text)
    vendor, device = pairs[-1] if pairs else ("", "")
    if not pairs and (number := _DEVICE_NUMBER.search(text)):
        device = number[1]  # what lspci writes where its list has no name
    return Function(
        id=id_,
        parent=parent,
        address=address,
        code=code,
        vendor=vendor.lower() or vendor_named(text),
        device=device.lower(),
        text=text,
    )


# --- lists and blocks -----------------------------------------------------------------------------


def read_blocks(lines: list[str]) -> Listing | None:
    """Return what a list tells, `None` when no line names a function."""
    listed: list[Function] = []
    bus_below: dict[str, str] = {}  # the bus below each bridge
    denied = False
    for line in lines:
        head = _HEAD.match(line)
        if head and not line.startswith("\t"):
            text, address = printable(head["name"]), read_address(head["address"])
            code = (head["code"] or class_named(head["class"]) or "ff").lower()
            function = _named_function(f"{address} {len(listed)}", address, code, text)
            listed.append(replace(function, text=_EXTRAS.sub("", text).strip()))
        elif listed:
            listed[-1] = _with_fact(listed[-1], line.strip())
            if buses := _BUSES.match(line.strip()):
                bus_below[listed[-1].id] = buses[1].lower()
            denied = denied or _DENIED in line
    detailed = any(function.most or function.current for function in listed)
    form = " -vvv" if detailed or any(bus != "00" for bus in bus_below.values()) else ""
    return _as_listing(listed, form, bus_below, is_denied=denied)


def _as_listing(
    listed: Iterable[Function],
    form: str,
    bus_below: Mapping[str, str] | None = None,
    *,
    is_denied: bool = False,
) -> Listing | None:
    """Return listed functions with what each hangs on, as far as buses tell; `None` without any.

    Parameters
    ----------
    listed
        The functions.
    form
        What lspci was called with.
    bus_below
        The bus below each bridge, by its `id`.
    is_denied
        Whether capabilities were hidden.
    """
    by_first = {function.address: function for function in reversed([*listed])}  # each once
    if not by_first:
        return None
    functions = by_address(by_first.values())
    below = bus_below or {}
    bridges = {
        (function.address.partition(":")[0], bus): function.id
        for function in functions
        if (bus := below.get(function.id, "00")) != "00"
    }
    places = [tuple(function.address.split(":")[:2]) for function in functions]
    # Buses with a host bridge of their own, each with the NUMA node that it says; root ports are on
    # such a bus too.
    roots: dict[tuple[str, str], int | None] = {}
    for function, (domain, bus) in zip(functions, places, strict=True):
        is_host = function.code.startswith("0600") and function.address.endswith(":00.0")
        if is_host or function.port == "root":
            roots[domain, bus] = roots.get((domain, bus), function.node)
    for at, (function, (domain, bus)) in enumerate(zip(functions, places, strict=True)):
        parent = bridges.get((domain, bus), function.id)
        if parent == function.id:  # without a bridge above, the host bridge its bus belongs to
            before = [
                root
                for (place, root), node in roots.items()
                if place == domain
                and root <= bus
                and (root == bus or None in (node, function.node) or node == function.node)
            ]
            parent = f"{domain}:{max(before, default=bus)}"
        functions[at] = replace(function, parent=parent)
    ids = {function.id for function in functions}
    detailed = any(function.most or function.current for function in functions)
    findings = []
    # Behind a bus that is no root's there is a bridge, listed or not.
    cut = not roots and any(bus != "00" for _, bus in places)
    if not bridges and (cut or any(function.is_bridge for function in functions)):
        message = "the list does not tell what hangs on which bridge: switches are missing"
        help = "`lspci -tv` draws the tree, `sudo lspci -vvv` tells it with speeds"
        findings.append(Finding("no-tree", message, severity="warning", help=help))
    if is_denied:
        message = "capabilities were hidden from the user who ran lspci: no speeds"
        help = "run it as root: `sudo lspci -vvv`"
        findings.append(Finding("access-denied", message, severity="warning", help=help))
    return Listing(
        tuple(functions),
        tuple(
            dict.fromkeys(function.parent for function in functions if function.parent not in ids)
        ),
        form,
        ("Speeds are the most that both ends of a link can.",) if detailed else (),
        tuple(findings),
    )


def _with_fact(function: Function, line: str) -> Function:
    """Return a function with what a line of its block says, where that is of use."""
    word, _, text = line.partition(":")
    text = text.strip()
    if word == "LnkCap":
        return replace(function, most=_link_speed(text))
    if word == "LnkSta":
        return replace(function, current=_link_speed(text))
    if word == "NUMA node" and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return replace(function, node=int(text))
    if word == "Physical Slot":
        return replace(function, slot=printable(text))
    if word == "ACSCtl":
        return replace(function, redirects="ReqRedir+" in text)
    if word == "Capabilities" and (express := _EXPRESS.search(text)):
        return replace(function, port=_PORTS[express[1]])
    return function


def _link_speed(text: str) -> LinkSpeed:
    link = _LINK.search(text)
    if link is None:
        return LinkSpeed()
    lanes = int(link[2])
    return LinkSpeed(generation_of(link[1]), lanes if lanes in LANES else None)


# --- trees ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Bus:
    """A bus that is open: where its branches are, and the bridge above it."""

    column: int
    domain: str
    number: str
    parent: str


@dataclass(slots=True)
class _Picture:
    """What was read of a tree so far; `skipped` counts the lines without a device."""

    functions: list[Function] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    open: list[_Bus] = field(default_factory=list)
    skipped: int = 0


def read_tree(lines: list[str]) -> Listing | None:
    """Return what a tree shows, `None` when there is none.

    A branch hangs on the line of bars or pluses above it, so the column of a ``+`` is what tells
    the bus. Lines that were cut or commented by hand are passed over, and that is said.
    """
    if not any(_ROOT.match(line) for line in lines):
        return None
    picture = _Picture()
    for line in lines:
        text = _COMMENT.sub("", line.rstrip())[:_MOST_COLUMNS]
        if text.strip(" |-+\\"):
            _take_line(text, picture)
    if not picture.functions:
        return None
    findings = []
    if picture.skipped:
        message = f"{picture.skipped} lines show no device: cut or written by hand?"
        help = "what they stood for is missing; paste the whole output"
        findings.append(Finding("abridged", message, severity="warning", help=help))
    named = any(function.text for function in picture.functions)
    return Listing(
        tuple(picture.functions),
        tuple(dict.fromkeys(picture.roots)),
        " -tv" if named else " -t",
        ("A tree of lspci knows neither speeds nor NUMA nodes; kinds are told by names.",),
        tuple(findings),
    )


def _take_line(text: str, picture: _Picture) -> None:
    """Take one line: it goes on with an open bus, or opens a root."""
    at = len(text) - len(text.lstrip(" |"))
    if text[at : at + 2] in ("+-", "\\-"):
        while picture.open and picture.open[-1].column > at:
            picture.open.pop()
        branch, at = at, at + 1
    elif text.startswith("-"):
        branch = at
    else:
        picture.skipped += 1
        return
    bus = picture.open[-1] if picture.open and picture.open[-1].column == branch else None
    before = len(picture.functions)
    _walk(text, at, bus, picture)
    if len(picture.functions) == before and not _BUS.search(text):
        picture.skipped += 1


def _walk(text: str, at: int, bus: _Bus | None, picture: _Picture) -> None:
    """Walk along a line: buses open, bridges lead on, a name ends it."""
    bridge = ""
    while at < len(text):
        if text[at] == "-":
            at += 1
        elif text[at] in "+\\" and bus is not None:
            bus.column = at
            picture.open.append(bus)
            at += 1
        elif text[at] == "+":  # the line of roots
            at += 1
        elif match := _BUS.match(text, at):
            number, parent = match["bus"].lower(), bridge or (bus.parent if bus else "")
            domain = bus.domain if bus else "0000"
            if match["domain"] or not parent:  # old releases wrote no domain
                domain = f"{int(match['domain'] or '0', 16):04x}"
                parent = f"{domain}:{number}"
                picture.roots.append(parent)
                picture.open.clear()
            bus = _Bus(-1, domain, number, parent)
            at = match.end()
        elif (match := _DEVICE.match(text, at)) and bus is not None:
            at = match.end()
            is_bridge = text[at : at + 1] == "-"
            address = f"{bus.domain}:{bus.number}:{match['device'].lower()}.{match['function']}"
            bridge = f"{address} {len(picture.functions)}"
            code, name = ("0604", "") if is_bridge else ("", printable(text[at:]))
            picture.functions.append(
                _named_function(bridge, address, code, name, parent=bus.parent)
            )
            if not is_bridge:
                return
            at += 1
        else:
            return
