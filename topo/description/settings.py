"""The `settings:` of a file: facts of the host that decide which paths are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from topo.description.description import Settings
from topo.description.keys import (
    COMPAT_MODES,
    GDS_SUPPORT,
    IOMMU,
    ON_OFF,
    ROUTING,
    SETTINGS,
    TRANSPORTS,
)
from topo.description.shape import choice_of, entries_of, mapping_of, text_of, texts_of
from topo.document.nodes import Scalar, Sequence

if TYPE_CHECKING:
    from topo.document.nodes import Node, Report


# A flag's other spellings: a Python or JSON document says `false` where YAML says `off`.
_FLAGS: Final = {"no": "off", "false": "off", "yes": "on", "true": "on"}
_OTHER_WORDS: Final = {
    "iommu": {**_FLAGS, "pt": "passthrough"},
    "compat-mode": {**_FLAGS, "yes": "allowed", "true": "allowed", "on": "allowed"},
    "direct-writes": _FLAGS,
    "p2pdma": _FLAGS,
    "transport": {},
}
_CHOICES: Final = {
    "iommu": IOMMU,
    "compat-mode": COMPAT_MODES,
    "direct-writes": ON_OFF,
    "p2pdma": ON_OFF,
    "transport": TRANSPORTS,
}


def read_settings(node: Node, report: Report) -> Settings:
    """Read the entries of `settings:`; each knows its place."""
    mapping = mapping_of(node, "`settings:`", report, help="write it like `{iommu: off}`")
    if mapping is None:
        return Settings()
    entries = entries_of(mapping, SETTINGS, "`settings:`", report)
    values: dict[str, Any] = {
        key.replace("-", "_"): _read(key, value, report) for key, value in entries.items()
    }
    places = {key: value.place for key, value in entries.items()}
    return Settings(**values, places=places)


def settings_value(settings: Settings, key: str) -> str | list[str] | None:
    """Return what a file says under `key`: a word or a list, `None` when nothing."""
    value = getattr(settings, key.replace("-", "_"))
    if key == "dynamic-routing" and value in ((), ROUTING):
        return "on" if value else "off"
    return list(value) if isinstance(value, tuple) else value


def _read(key: str, node: Node, report: Report) -> str | tuple[str, ...] | None:
    what = f"`{key}`"
    if key == "dynamic-routing":
        return _routing(node, what, report)
    if key == "gds-support":
        return _words(node, what, GDS_SUPPORT, report)
    if key == "gds-denied":
        return tuple(item.text for item in _items(node, what, report))
    if key not in _CHOICES:
        return text_of(node, what, report)
    return choice_of(_plain(key, node), what, _CHOICES[key], report)


def _plain(key: str, node: Node) -> Node:
    """Return a flag in its usual spelling."""
    if not isinstance(node, Scalar) or node.text.lower() not in _OTHER_WORDS[key]:
        return node
    return Scalar(_OTHER_WORDS[key][node.text.lower()], node.place, node.quoted)


def _routing(node: Node, what: str, report: Report) -> tuple[str, ...]:
    """Read `off`, `on` (the order that cuFile ships with) or an order."""
    if isinstance(node, Scalar):
        word = _FLAGS.get(node.text.lower(), node.text.lower())
        if word in ON_OFF:
            return ROUTING if word == "on" else ()
    return _words(node, what, ROUTING, report)


def _words(node: Node, what: str, choices: tuple[str, ...], report: Report) -> tuple[str, ...]:
    found = (choice_of(item, what, choices, report) for item in _items(node, what, report))
    return tuple(dict.fromkeys(word for word in found if word is not None))


def _items(node: Node, what: str, report: Report) -> tuple[Scalar, ...]:
    """Return the items of a list; `none` is an empty one."""
    if isinstance(node, Scalar) and node.text.lower() == "none":
        return ()
    if isinstance(node, Sequence) and not node.items:
        return ()
    return texts_of(node, what, report)
