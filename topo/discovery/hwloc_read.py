"""hwloc's XML as plain values: objects with their words put right for all versions.

References
----------
hwloc, ``topology-xml.c``, ``hwloc2.dtd``, and ``hwloc.dtd`` of version 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.discovery.foreign import read_xml
from topo.discovery.machine import printable
from topo.discovery.pci import read_address
from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element


_OLD_NAMES: Final = {"Socket": "Package", "System": "Machine", "Node": "NUMANode"}
_TYPE: Final = re.compile(
    r"([0-9a-f]{4})\s*(?:\(\w*\)\s*)?\[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE
)
# What `osdev_type` means: a number up to version 2, bits from version 3 on.
_SORTS_2: Final = ("storage", "gpu", "network", "openfabrics", "dma", "coprocessor")
_SORTS_3: Final = ("storage", "memory", "gpu", "coprocessor", "network", "openfabrics", "dma")
_MOST_CELLS: Final = 250_000
_MOST_NODES: Final = 4096


@dataclass(frozen=True, slots=True)
class Thing:
    """One object: its type, attributes and infos, what hangs below it."""

    type: str
    attributes: dict[str, str]
    infos: dict[str, str]
    children: tuple[Thing, ...]

    def get(self, name: str) -> str:
        """Return an attribute, ``""`` when it is absent."""
        return self.attributes.get(name, "")

    def walk(self) -> Iterator[Thing]:
        """Yield this object and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def address(self) -> str:
        """Its PCI address in full, ``""`` when it has none."""
        return read_address(self.get("pci_busid"))

    @property
    def is_host_bridge(self) -> bool:
        """Whether it is a bridge from the CPU to PCI."""
        return self.type == "Bridge" and self.get("bridge_type").startswith("0-")

    def numbers(self) -> tuple[str, str, str]:
        """Return class, vendor and device of a PCI object."""
        found = _TYPE.match(self.get("pci_type").strip())
        return (found[1].lower(), found[2].lower(), found[3].lower()) if found else ("", "", "")

    def rate(self) -> float | None:
        """Return the link's GB/s, `None` when it is 0 or absent: not known."""
        return _positive(self.get("pci_link_speed"))

    def nodes(self) -> tuple[int, ...]:
        """Return the NUMA nodes of its nodeset."""
        return _bits(self.get("nodeset"))


@dataclass(frozen=True, slots=True)
class Matrix:
    """Distances: the objects by ``Type:index``, and one row for each."""

    name: str
    objects: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class HwlocFile:
    """A file: its version (``1`` when it names none), its machine, its matrices."""

    version: str
    machine: Thing
    matrices: tuple[Matrix, ...]

    @property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.version.partition(".")[0])

    def things(self, *types: str) -> list[Thing]:
        """Return the objects of these types."""
        return [one for one in self.machine.walk() if one.type in types]

    def sorts(self, thing: Thing) -> frozenset[str]:
        """Return what an OS device is: ``network``, ``openfabrics``, ``storage`` ..."""
        number = thing.get("osdev_type").strip()
        if not re.fullmatch(r"\d{1,4}", number):
            return frozenset()
        value = int(number)
        if self.major >= 3:  # noqa: PLR2004
            return frozenset(name for at, name in enumerate(_SORTS_3) if value >> at & 1)
        if value >= len(_SORTS_2):
            return frozenset()
        sort = _SORTS_2[value]
        if sort == "storage" and (
            thing.get("subtype") in ("CXLMem", "SPM", "NVM") or thing.get("name").startswith("dax")
        ):
            return frozenset({"memory"})
        return frozenset({sort, "network"} if sort == "openfabrics" else {sort})


def read_file(data: bytes, name: str) -> HwlocFile:
    """Read a file.

    Raises
    ------
    ExchangeError
        If it is not XML, or XML of another kind, or has no machine in it.
    """
    root = read_xml(data, name, doctype=True)
    if root.tag != "topology":
        message = f"`{name}` has <{printable(root.tag)}> at its top, not <topology>"
        raise ExchangeError(Finding("wrong-kind", message))
    version = root.get("version", "1").strip()
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3})*", version):
        version = "2"
    top = next((child for child in root if child.tag == "object"), None)
    if top is None:
        raise ExchangeError(Finding("nothing-there", f"`{name}` has no <object>, so no machine"))
    matrices = tuple(_matrices(root))
    return HwlocFile(version, _thing(top), matrices)


def _thing(element: Element) -> Thing:
    kind = element.get("type", "")
    infos: dict[str, str] = {}
    for child in element:
        if child.tag == "info" and child.get("name"):
            infos.setdefault(child.get("name", ""), child.get("value", ""))
    below = tuple(_thing(child) for child in element if child.tag == "object")
    return Thing(_OLD_NAMES.get(kind, kind), dict(element.attrib), infos, below)


# --- matrices -------------------------------------------------------------------------------------


def _matrices(root: Element) -> Iterator[Matrix]:
    for element in root:
        if element.tag in ("distances2", "distances2hetero"):
            found = _matrix(element)
            if found is not None:
                yield found


def _matrix(element: Element) -> Matrix | None:
    """Return one matrix, `None` when its numbers do not make a square."""
    indexes = _texts(element, "indexes")
    values = [_number(text) for text in _texts(element, "u64values")]
    size = len(indexes)
    if not size or size * size != len(values) or None in values:
        return None
    kind = element.get("type", "")
    names = tuple(text if ":" in text else f"{kind}:{text}" for text in indexes)
    cells = [value or 0.0 for value in values]
    rows = tuple(tuple(cells[at * size : (at + 1) * size]) for at in range(size))
    return Matrix(element.get("name", ""), names, rows)


def _texts(element: Element, tag: str) -> list[str]:
    text = " ".join(child.text or "" for child in element if child.tag == tag)
    return text.split()[:_MOST_CELLS]


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,18}", text) else None


def _positive(text: str) -> float | None:
    if not re.fullmatch(r"\d{1,6}(?:\.\d{1,12})?", text.strip()):
        return None
    return float(text) or None


def _bits(mask: str) -> tuple[int, ...]:
    """Return the numbers of the bits of a mask: ``0x00000001,,0x0`` has bit 64.

    A part between commas has 32 bits, an empty one is 0; ``0xf...f`` is without end and is none.
    """
    value = 0
    for part in mask.split(","):
        digits = part.strip().removeprefix("0x")
        if not re.fullmatch(r"[0-9a-fA-F]{0,8}", digits) or value.bit_length() > _MOST_NODES:
            return ()
        value = value << 32 | int(digits or "0", 16)
    return tuple(at for at in range(value.bit_length()) if value >> at & 1)
