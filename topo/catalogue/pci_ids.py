"""Which part a PCI function is: by its numbers, or by what stands in the brackets of its name.

Data with its source: ``data/pci-ids.yaml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from topo.catalogue.index import DATA
from topo.document import parse
from topo.document.nodes import Mapping as MappingNode
from topo.document.nodes import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class PciIds:
    """Parts by vendor and device number, parts by name, and where both come from."""

    numbers: Mapping[tuple[str, str], str]
    names: Mapping[str, str]
    source: str


@cache
def pci_ids() -> PciIds:
    """Return the table that topo ships.

    Examples
    --------
    >>> pci_ids().numbers["10de", "2330"], pci_ids().names["connectx-7"]
    ('h100-sxm-80gb', 'connectx-7')
    """
    text = (DATA / "pci-ids.yaml").read_text(encoding="utf-8")
    root = parse(text, name="catalogue/pci-ids.yaml").root
    assert isinstance(root, MappingNode)
    source = root.get("source")
    numbers = {}
    for key, part in _texts(root, "numbers").items():
        vendor, _, device = key.partition(":")
        numbers[vendor, device] = part
    return PciIds(numbers, _texts(root, "names"), source.text if isinstance(source, Scalar) else "")


def _texts(root: MappingNode, key: str) -> dict[str, str]:
    node = root.get(key)
    assert isinstance(node, MappingNode)
    return {name.text: value.text for name, value in node if isinstance(value, Scalar)}
