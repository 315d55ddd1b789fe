"""The `settings:` of a file: facts of the host that decide which paths are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from topo.spec.keys import SETTINGS
from topo.spec.model import Settings
from topo.spec.shape import choice_of, entries_of, mapping_of, text_of
from topo.spec.vocabulary import IOMMU, TRANSPORTS

if TYPE_CHECKING:
    from topo.document.nodes import Node
    from topo.document.report import Report

__all__ = ["read_settings"]

# A flag's other spellings: a Python or JSON document says `false` where YAML says `off`.
_FLAGS: Final = {"no": "off", "false": "off", "yes": "on", "true": "on", "pt": "passthrough"}


def read_settings(node: Node, report: Report) -> Settings:
    """Read the entries of `settings:`; each knows its place."""
    mapping = mapping_of(node, "`settings:`", report, help="write it like `{iommu: off}`")
    if mapping is None:
        return Settings()
    entries = entries_of(mapping, SETTINGS, "`settings:`", report)
    values: dict[str, Any] = {key: _read(key, value, report) for key, value in entries.items()}
    places = {key: value.place for key, value in entries.items()}
    return Settings(**values, places=places)


def _read(key: str, node: Node, report: Report) -> str | None:
    what = f"`{key}`"
    if key == "transport":
        return choice_of(node, what, TRANSPORTS, report)
    text = text_of(node, what, report)
    if key != "iommu" or text is None or text.lower() in _FLAGS:
        return _FLAGS.get(text.lower(), text) if text and key == "iommu" else text
    return choice_of(node, what, IOMMU, report)
