"""The catalogue that topo ships: YAML files beside this one, each entry decoded when asked for.

A run that uses six parts reads six entries: an index of where each stands is made from the line
starts alone, and only an entry's own lines are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, Generic, TypeVar

from topo.catalogue.cables import read_medium
from topo.catalogue.part import Catalogue, Medium, Part
from topo.catalogue.parts import read_part
from topo.document.nodes import Mapping as MappingNode
from topo.document.nodes import Node, Report, Scalar
from topo.errors import DescriptionError

T = TypeVar("T")
DATA: Final = Path(__file__).parent / "data"
PART_FILES: Final = ("gpus", "nics", "cpus", "memory", "storage", "drives", "switches")
_ENTRY: Final = re.compile(r"^([A-Za-z][A-Za-z0-9._ -]*):", re.MULTILINE)


@cache
def catalogue() -> Catalogue:
    """Return the parts and media that topo ships.

    Examples
    --------
    >>> catalogue().parts["h100-sxm-80gb"].figures["memory"].value
    80000000000.0
    >>> catalogue().media["pcie 5"].rate.source
    '32 GT/s x 128/130 / 8'
    """
    media: _Shelf[Medium] = _Shelf(("media",), _medium)

    def decode(name: str, node: Node, report: Report, parts: Mapping[str, Part]) -> Part | None:
        part = read_part(name, node, parts=parts, media=media, report=report, kind="datasheet")
        return None if part is None else replace(part, place=None)

    return Catalogue(_Shelf(PART_FILES, decode), media)


@cache
def part_names() -> tuple[str, ...]:
    """Return the names of all shipped parts, in the order of the files."""
    return tuple(name for file in PART_FILES for name, _ in _entries(file))


class _Shelf(Mapping[str, T], Generic[T]):
    """Entries by name, each decoded once, when first asked for."""

    def __init__(
        self,
        files: tuple[str, ...],
        decode: Callable[[str, Node, Report, Mapping[str, T]], T | None],
    ) -> None:
        self._decode = decode
        self._texts = {name: text for file in files for name, text in _entries(file)}
        self._decoded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._decoded:
            from topo.document.parse import parse

            file, text = self._texts[name]
            document = parse(text, name=f"catalogue/{file}.yaml")
            report = Report(document)
            root = document.root
            node = root.get(name) if isinstance(root, MappingNode) else None
            entry = self._decode(name, node, report, self) if node is not None else None
            report.stop(DescriptionError)
            if entry is None:
                raise KeyError(name)
            self._decoded[name] = entry
        return self._decoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _medium(name: str, node: Node, report: Report, media: Mapping[str, Medium]) -> Medium | None:
    # Without a base of its own name: that is how a user's medium changes a shipped one.
    base_name = node.get("like") if isinstance(node, MappingNode) else None
    base = base_name.text if isinstance(base_name, Scalar) else ""
    bases = {base: media[base]} if base in media else {}
    return read_medium(name, node, media=bases, report=report, kind="datasheet")


def _entries(file: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each entry's name, file and text; empty lines keep its line numbers."""
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    keys = list(_ENTRY.finditer(text))
    ends = [key.start() for key in keys[1:]] + [len(text)]
    line = 0
    at = 0
    for entry, end in zip(keys, ends, strict=True):
        line += text.count("\n", at, entry.start())
        at = entry.start()
        yield entry[1], (file, "\n" * line + text[at:end])
