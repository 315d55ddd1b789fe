"""Redfish resources in a text: one expanded document, a list, a map, or several in a row.

What stands between documents, as headings and prompts do, is passed over.

References
----------
DMTF DSP0266, Redfish Specification, and DSP8010, its schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from topo.discovery.machine import printable
from topo.records import dataclass

_BEGINS: Final = re.compile(r"(?m)^[ \t`]*([{\[])|\}\s*([{\[])")
_TYPE: Final = re.compile(r"#([A-Za-z]{1,60})\.")
_FOLDERS: Final = {  # of addresses, where a resource does not say its type
    "PCIeDevices": "PCIeDevice",
    "PCIeFunctions": "PCIeFunction",
    "Processors": "Processor",
    "Memory": "Memory",
    "NetworkAdapters": "NetworkAdapter",
    "Ports": "Port",
    "NetworkPorts": "NetworkPort",
    "Drives": "Drive",
}
_MOST_CHARACTERS: Final = 64 * 2**20  # that are looked at, what was cut being looked at anew
_MOST_ATTEMPTS: Final = 2000
_MOST: Final = 300_000
_DEEPEST: Final = 60


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: its type, ``PCIeDevice``, its address, its properties."""

    type: str
    address: str
    body: Mapping[str, Any] = field(default_factory=dict)

    def get(self, *path: str) -> Any:
        """Return what stands at a path of properties, `None` where nothing does."""
        value: Any = self.body
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def inner(self, *path: str) -> Resource:
        """Return the properties within one, none where it has no such."""
        value = self.get(*path)
        return Resource("", "", value if isinstance(value, Mapping) else {})

    def members(self, *path: str) -> list[Resource]:
        """Return the properties of each member of a list."""
        value = self.get(*path)
        several = value if isinstance(value, list) else []
        return [Resource("", "", member) for member in several if isinstance(member, Mapping)]

    def text(self, *path: str) -> str:
        """Return a property as a line of text, ``""`` where it is none."""
        value = self.get(*path)
        return printable(value) if isinstance(value, str) else ""

    def number(self, *path: str) -> float:
        """Return a property as a number that is not negative, 0 where it is none."""
        value = self.get(*path)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and 0 < value < 1e18 else 0.0  # noqa: PLR2004

    def links(self, *path: str) -> list[str]:
        """Return the addresses that a link, or a list of links, leads to."""
        value = self.get(*path)
        several = value if isinstance(value, list) else [value]
        return [_address(link) for link in several if isinstance(link, Mapping) and _address(link)]

    @property
    def is_there(self) -> bool:
        """Whether it is no empty place for such a thing."""
        return self.text("Status", "State") != "Absent"


def read_resources(text: str) -> tuple[dict[str, Resource], bool]:
    """Return the resources of a text by their addresses, and whether a document in it is cut."""
    resources: dict[str, Resource] = {}
    is_cut = False
    decoder = json.JSONDecoder()
    at, looked_at = 0, 0
    for _ in range(_MOST_ATTEMPTS):
        begins = _BEGINS.search(text, at)
        if begins is None or looked_at > _MOST_CHARACTERS:
            break
        start = begins.start(1) if begins[1] else begins.start(2)
        try:
            root, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            looked_at += max(error.pos - start, 0)
            is_cut, at = True, start + 1
            continue
        except (RecursionError, ValueError):
            is_cut = True
            break
        looked_at += at - start
        at = max(at - 1, start + 1) if text[at - 1 : at] == "}" else at
        for resource in _resources(root):
            before = resources.get(resource.address)
            if before is None or len(before.body) < len(resource.body):
                resources[resource.address] = resource
    return resources, is_cut


def _resources(root: Any) -> Iterator[Resource]:
    """Yield all resources in a document, those inside others too."""
    left: list[tuple[Any, int]] = [(root, 0)]
    for _ in range(_MOST):
        if not left:
            return
        value, depth = left.pop()
        if depth > _DEEPEST:
            continue
        if isinstance(value, Mapping):
            if resource := _resource(value):
                yield resource
            left += ((inner, depth + 1) for inner in reversed([*value.values()]))
        elif isinstance(value, list):
            left += ((inner, depth + 1) for inner in reversed(value))


def _resource(value: Mapping[str, Any]) -> Resource | None:
    """Return a table of properties as a resource, `None` where it only leads to one."""
    address = _address(value)
    kind = _TYPE.match(str(value.get("@odata.type", ""))[:100])
    folder = address.split("/")[-2:-1]
    type_ = kind[1] if kind else _FOLDERS.get(folder[0], "") if folder and len(value) > 1 else ""
    return Resource(type_, address, value) if type_ and address else None


def _address(value: Mapping[str, Any]) -> str:
    address = value.get("@odata.id")
    return address.rstrip("/")[:400] if isinstance(address, str) else ""
