"""Lists of lspci: a line for each function, with ``-vvv`` a block of facts below it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import class_named, vendor_named
from topo.discovery.machine import printable
from topo.discovery.pci import Function, LinkSpeed, address_key, generation_of, read_address
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.discovery.pci import Port


_HEAD: Final = re.compile(
    r"\s{0,4}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])\s+"
    r"(?P<class>[^:\[\]]{2,60}?)(?:\s*\[(?P<code>[0-9a-f]{4})\])?:\s+(?P<name>.*)",
    re.IGNORECASE,
)
_EXTRAS: Final = re.compile(
    r"\s*\((?:rev|prog-if) [^)]*\)|\s*\[[0-9a-f]{4}:[0-9a-f]{4}\]", re.IGNORECASE
)
_NUMBERS: Final = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE)
_LINK: Final = re.compile(r"Speed ([\d.]+ ?GT/s|unknown)[^,]*, Width x(\d{1,2})")
_BUSSES: Final = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2})", re.IGNORECASE)
_EXPRESS: Final = re.compile(r"Express (?:\(v\d\) )?(Root Port|Upstream Port|Downstream Port)")
_PORTS: Final[dict[str, Port]] = {
    "Root Port": "root",
    "Upstream Port": "upstream",
    "Downstream Port": "downstream",
}
_DENIED: Final = "<access denied>"
_MOST_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """What a text of lspci tells: functions, the buses that are roots, what it was called with."""

    functions: tuple[Function, ...]
    roots: tuple[str, ...]
    form: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Block:
    function: Function
    secondary: str = ""


def numbers_in(text: str) -> tuple[str, str]:
    """Return vendor and device number of a name that ``-nn`` wrote, empty when it has none."""
    found = _NUMBERS.findall(text)
    return (found[-1][0].lower(), found[-1][1].lower()) if found else ("", "")


def read_blocks(lines: list[str]) -> Listing | None:
    """Return what a list tells, `None` when no line names a function."""
    blocks: list[_Block] = []
    denied = False
    for line in lines:
        found = _HEAD.match(line)
        if found and not line.startswith("\t"):
            blocks.append(_Block(_function(found, len(blocks))))
        elif blocks:
            _fact(line.strip(), blocks[-1])
            denied = denied or _DENIED in line
    if not blocks:
        return None
    blocks = list({block.function.address: block for block in reversed(blocks)}.values())
    blocks.sort(key=lambda block: address_key(block.function.address))
    return _listing(blocks, denied=denied)


# --- lines ----------------------------------------------------------------------------------------


def _function(found: re.Match[str], count: int) -> Function:
    text = printable(found["name"])
    vendor, device = numbers_in(text)
    address = read_address(found["address"])
    return Function(
        id=f"{address} {count}",
        address=address,
        code=(found["code"] or class_named(found["class"]) or "ff").lower(),
        vendor=vendor or vendor_named(text),
        device=device,
        text=_EXTRAS.sub("", text).strip(),
    )


def _fact(line: str, block: _Block) -> None:
    """Take a line of a block, where it says something of use."""
    one = block.function
    word, _, rest = line.partition(":")
    rest = rest.strip()
    if word == "LnkCap":
        block.function = replace(one, most=_lanes(rest))
    elif word == "LnkSta":
        block.function = replace(one, current=_lanes(rest))
    elif word == "NUMA node" and rest.isdecimal() and len(rest) <= _MOST_DIGITS:
        block.function = replace(one, node=int(rest))
    elif word == "Physical Slot":
        block.function = replace(one, slot=printable(rest))
    elif word == "ACSCtl":
        block.function = replace(one, redirects="ReqRedir+" in rest)
    elif word == "Bus" and (found := _BUSSES.match(line)):
        block.secondary = found[1].lower()
    elif word == "Capabilities" and (found := _EXPRESS.search(rest)):
        block.function = replace(one, port=_PORTS[found[1]])


def _lanes(text: str) -> LinkSpeed:
    found = _LINK.search(text)
    if found is None:
        return LinkSpeed()
    width = int(found[2])
    return LinkSpeed(generation_of(found[1]), width if width in LANES else None)


# --- the tree -------------------------------------------------------------------------------------


def _listing(blocks: list[_Block], *, denied: bool) -> Listing:
    bridges = {
        (block.function.address.partition(":")[0], block.secondary): block.function.id
        for block in blocks
        if block.secondary and block.secondary != "00"
    }
    known = _roots(block.function for block in blocks)
    functions = [replace(b.function, parent=_parent(b.function, bridges, known)) for b in blocks]
    ids = {one.id for one in functions}
    roots = [one.parent for one in functions if one.parent not in ids]
    blind = not bridges and any(one.is_bridge for one in functions)
    detailed = any(one.most or one.current for one in functions)
    return Listing(
        tuple(functions),
        tuple(dict.fromkeys(roots)),
        " -vvv" if detailed or bridges else "",
        ("Speeds are the most that both ends of a link can.",) if detailed else (),
        tuple(_findings(blind=blind, denied=denied)),
    )


def _roots(functions: Iterable[Function]) -> list[tuple[str, int]]:
    """Return domain and bus of each host bridge, in order."""
    return sorted(
        {
            (domain, int(bus, 16))
            for one in functions
            if one.code.startswith("0600") and one.address.endswith(":00.0")
            for domain, bus in [one.address.split(":")[:2]]
        }
    )


def _parent(
    one: Function, bridges: dict[tuple[str, str], str], roots: list[tuple[str, int]]
) -> str:
    """Return the bridge above a function; without one, the host bridge its bus belongs to."""
    domain, bus, _ = one.address.split(":")
    above = bridges.get((domain, bus))
    if above is not None and above != one.id:
        return above
    before = [number for place, number in roots if place == domain and number <= int(bus, 16)]
    return f"{domain}:{max(before):02x}" if before else f"{domain}:{bus}"


def _findings(*, blind: bool, denied: bool) -> Iterable[Finding]:
    if blind:
        yield Finding(
            "no-tree",
            "the list does not tell what hangs on which bridge: switches are missing",
            severity="warning",
            help="`lspci -tv` draws the tree, `sudo lspci -vvv` tells it with speeds",
        )
    if denied:
        yield Finding(
            "access-denied",
            "capabilities were hidden from the user who ran lspci: no speeds",
            severity="warning",
            help="run it as root: `sudo lspci -vvv`",
        )
