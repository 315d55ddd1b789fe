"""Read peer-to-peer caps: behaviour that somebody stated, by PCIe's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.catalogue.figures import (
    HERE,
    Origin,
    open_value,
    origin_of,
    read_figure,
    refuse_unknown_keys,
    rejoin,
)
from topo.catalogue.part import PeerCap, PeerCaps
from topo.document.nodes import Mapping, Scalar

if TYPE_CHECKING:
    from topo.document.nodes import Node, Report


_CAPS: Final = ("posted", "non-posted")
_CAPS_KEYS: Final = (*_CAPS, "source", "kind")


def read_caps(node: Node, *, report: Report, origin: Origin = HERE) -> PeerCaps | None:
    """Read ``{posted: 22 GB/s, non-posted: 10 GB/s per flow}``."""
    if not isinstance(node, Mapping):
        report.add(
            node,
            "wrong-shape",
            "peer-to-peer caps are a mapping",
            help="write {posted: 22 GB/s, non-posted: 10 GB/s per flow}",
        )
        return None
    node = rejoin(node, _CAPS_KEYS)
    refuse_unknown_keys(node, _CAPS_KEYS, report=report, owner="peer-to-peer caps")
    origin = origin_of(node, report=report, origin=origin, key="kind")
    caps = {
        name: _cap(said, name, report=report, origin=origin)
        for name in _CAPS
        if (said := node.get(name)) is not None
    }
    return PeerCaps(caps.get("posted"), caps.get("non-posted"))


def _cap(node: Node, name: str, *, report: Report, origin: Origin) -> PeerCap | None:
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    text, per_flow = re.subn(r"\s+per\s+flow\s*$", "", scalar.text)
    scalar = Scalar(text, scalar.place, scalar.quoted)
    rate = read_figure(scalar, "rate", report=report, origin=origin, name=name)
    return None if rate is None else PeerCap(rate, bool(per_flow))
