"""Records of ``lspci -vmm`` (with ``-nn``, ``-n``, ``-k``), and lines of ``lspci -mm``.

They tell classes, names or numbers, NUMA nodes and slots, and neither a tree nor links.

References
----------
pciutils, ``lspci.c`` (``show_machine``) and ``lspci.man``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from topo.catalogue.identities import class_named, vendor_named
from topo.discovery.machine import printable
from topo.discovery.pci import Function, read_address

_ADDRESS: Final = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_ENTRY: Final = re.compile(r"\s{0,4}(?P<key>[A-Z][A-Za-z]{1,14}):\s+(?P<text>\S.*)")
_BEGINS: Final = re.compile(
    rf"\s{{0,4}}(?:Slot|Device):\s+(?P<address>{_ADDRESS})\s*", re.IGNORECASE
)
_LINE: Final = re.compile(rf"\s{{0,4}}(?P<address>{_ADDRESS}) (?P<words>\".*)", re.IGNORECASE)
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.){0,400})"')
_NUMBER: Final = re.compile(r"(?:(?P<name>.*\S)\s*\[)?(?P<number>[0-9a-f]{4})\]?", re.IGNORECASE)
_NO_NAME: Final = re.compile(r"Device ([0-9a-f]{4})")
_MOST_DIGITS: Final = 4
_CLASS, _VENDOR, _DEVICE = range(3)


def read_records(lines: Iterable[str]) -> list[Function]:
    """Return the functions of a text's records or lines, in its order."""
    return [
        _function(at, address, entries) for at, (address, entries) in enumerate(_records(lines))
    ]


def _records(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the address of each record with its entries."""
    address, entries = "", dict[str, str]()
    for line in lines:
        words = _LINE.match(line)
        begins = words or _BEGINS.fullmatch(line)
        if begins is not None:
            if address:
                yield address, entries
            address, entries = read_address(begins["address"]), {}
        if words is not None:
            texts = [re.sub(r"\\(.)", r"\1", word) for word in _WORD.findall(words["words"])]
            entries = dict(zip(("Class", "Vendor", "Device"), texts, strict=False))
        elif begins is None and (entry := _ENTRY.match(line)) and address:
            entries.setdefault(entry["key"], entry["text"].strip())
    if address:
        yield address, entries


def _function(at: int, address: str, entries: dict[str, str]) -> Function:
    names, numbers = [], []
    for key in ("Class", "Vendor", "Device"):
        text = entries.get(key, "")
        number = _NUMBER.fullmatch(text)
        names.append((number["name"] or "") if number else text)
        numbers.append(number["number"].lower() if number else "")
    if (unnamed := _NO_NAME.fullmatch(names[_DEVICE])) and not numbers[_DEVICE]:
        numbers[_DEVICE] = unnamed[1].lower()  # what lspci writes where its list has no name
    node = entries.get("NUMANode", "")
    return Function(
        id=f"{address} {at}",
        address=address,
        code=numbers[_CLASS] or class_named(names[_CLASS]) or "ff",
        vendor=numbers[_VENDOR] or vendor_named(names[_VENDOR]),
        device=numbers[_DEVICE],
        text=printable(" ".join(filter(None, names[_VENDOR:]))),
        node=int(node) if node.isdecimal() and len(node) <= _MOST_DIGITS else None,
        slot=printable(entries.get("PhySlot", "")),
    )
