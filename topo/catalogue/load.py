"""The catalogue that topo ships: YAML files beside this one, each entry decoded when asked for.

A run that uses six parts reads six entries: an index of where each stands is made from the line
starts alone, and only an entry's own lines are parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from topo.catalogue.index import PART_FILES, entries
from topo.catalogue.media import read_medium
from topo.catalogue.part import Catalogue, Medium, Part
from topo.catalogue.parts import read_part
from topo.document.nodes import Mapping as MappingNode
from topo.document.nodes import Scalar
from topo.document.report import Report
from topo.errors import DescriptionError

if TYPE_CHECKING:
    from topo.document.nodes import Node


T = TypeVar("T")


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
    parts: _Shelf[Part] = _Shelf(PART_FILES, lambda *entry: _part(*entry, media=media))
    return Catalogue(parts, media)


class _Shelf(Mapping[str, T], Generic[T]):
    """Entries by name, each decoded once, when first asked for."""

    def __init__(
        self,
        files: tuple[str, ...],
        decode: Callable[[str, Node, Report, Mapping[str, T]], T | None],
    ) -> None:
        self._decode = decode
        self._texts = {name: text for file in files for name, text in entries(file)}
        self._decoded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._decoded:
            file, text = self._texts[name]
            self._decoded[name] = self._read(name, file, text)
        return self._decoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def _read(self, name: str, file: str, text: str) -> T:
        from topo.document import parse

        document = parse(text, name=f"catalogue/{file}.yaml")
        report = Report(document)
        root = document.root
        node = root.get(name) if isinstance(root, MappingNode) else None
        entry = self._decode(name, node, report, self) if node is not None else None
        report.stop(DescriptionError)
        if entry is None:
            raise KeyError(name)
        return entry


def _medium(name: str, node: Node, report: Report, media: Mapping[str, Medium]) -> Medium | None:
    # Without a base of its own name: that is how a user's medium changes a shipped one.
    like = node.get("like") if isinstance(node, MappingNode) else None
    base = like.text if isinstance(like, Scalar) else ""
    bases = {base: media[base]} if base in media else {}
    return read_medium(name, node, media=bases, report=report, kind="datasheet")


def _part(
    name: str,
    node: Node,
    report: Report,
    parts: Mapping[str, Part],
    *,
    media: Mapping[str, Medium],
) -> Part | None:
    part = read_part(name, node, parts=parts, media=media, report=report, kind="datasheet")
    return None if part is None else replace(part, place=None)
