"""Read where a part is plugged in: its PCIe slot, its network ports, its GPU-to-GPU ports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.catalogue.cables import LANES, parse_cable
from topo.catalogue.fields import HERE, Origin, open_value
from topo.catalogue.part import Figure, Ports, Slot
from topo.errors import UnitError
from topo.phrases import near_names
from topo.units import parse_rate

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from topo.catalogue.part import Medium
    from topo.document.nodes import Node, Report


_PORT_EXAMPLES: Final = "write 4, `2x 400 Gb/s` or `4x infiniband ndr`"


def read_slot(
    node: Node, *, media: Table[str, Medium], report: Report, origin: Origin = HERE
) -> Slot | None:
    """Read a PCIe generation and perhaps a width: ``5 x16``, ``5``."""
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    try:
        return parse_slot(scalar.text, media, source=origin.at(scalar), origin=origin)
    except UnitError as error:
        report.unit(scalar, error)
        return None


def parse_slot(
    text: str, media: Table[str, Medium], *, source: str = "", origin: Origin = HERE
) -> Slot:
    """Read ``5 x16`` or ``5``.

    Raises
    ------
    UnitError
        With the code `bad-slot` or `unknown-medium`.
    """
    written = re.fullmatch(r"([0-9]{1,2})(?:\s+x([0-9]{1,3}))?", text.strip())
    if written is None:
        raise UnitError(
            "bad-slot",
            f"`{text.strip()}` is no PCIe generation and width",
            _likely_slot(text) or "write the generation and the lanes: 5 x16",
        )
    generation, lanes = int(written[1]), written[2] and int(written[2])
    if f"pcie {generation}" not in media:
        known = [name.partition(" ")[2] for name in media if name.startswith("pcie ")]
        raise UnitError(
            "unknown-medium",
            f"there is no PCIe {generation}",
            f"generations are {', '.join(known)}",
        )
    if lanes is not None and lanes not in LANES:
        raise UnitError(
            "bad-slot", f"PCIe has no x{lanes}", "a link has 1, 2, 4, 8 or 16 lanes: 5 x16"
        )
    return Slot(generation, lanes or None, source, origin.kind)


def _likely_slot(text: str) -> str:
    """Return advice for ``gen5 x16``, ``pcie 5.0 x16``, ``16x 5``, or nothing."""
    words = re.sub(r"pci-?e?|gen|\.0", " ", text.lower()).strip()
    width = re.search(r"x\s*([0-9]{1,2})\b", words) or re.search(r"\b([0-9]{1,2})\s*x", words)
    if width is None:
        return ""
    lanes = width[1]
    rest = (words[: width.start()] + words[width.end() :]).strip()
    if not rest:
        return f"write the generation too: 5 x{lanes}"
    return f"write `{rest} x{lanes}`" if re.fullmatch("[1-9]", rest) else ""


def read_ports(
    node: Node,
    *,
    media: Table[str, Medium],
    report: Report,
    origin: Origin = HERE,
    base: Ports | None = None,
    name: str = "ports",
) -> Ports | None:
    """Read ``4``, ``2x 400 Gb/s``, ``4x infiniband ndr``; a bare count keeps what `base` says."""
    opened = open_value(node, report=report, origin=origin)
    if opened is None:
        return None
    scalar, origin = opened
    try:
        return parse_ports(
            scalar.text, media, source=origin.at(scalar), origin=origin, base=base, name=name
        )
    except UnitError as error:
        report.unit(scalar, error)
        return None


def parse_ports(
    text: str,
    media: Table[str, Medium],
    *,
    source: str = "",
    origin: Origin = HERE,
    base: Ports | None = None,
    name: str = "ports",
) -> Ports:
    """Read a number of ports with their rate or medium.

    Raises
    ------
    UnitError
        With the code `bad-ports`, `zero-capacity`, `unknown-medium`, or one of a rate's.
    """
    words = text.split()
    times = re.fullmatch(r"([0-9]{1,9})(x?)", words[0]) if words else None
    if times is not None and int(times[1]) == 0:
        raise UnitError("zero-capacity", f"`{name}` is zero", "leave the key out, or `unknown`")
    rate, medium = (base.rate, base.medium) if base is not None else (None, None)
    if text.strip() == "unknown":
        return Ports(None, rate, medium, source, origin.kind)
    if times is not None and len(words) == 1 and not times[2]:
        return Ports(int(times[1]), rate, medium, source, origin.kind)
    rest = words[1:] if times is not None and times[2] else words
    if not rest or rest[1:2] == ["x"]:
        raise UnitError(
            "bad-ports", f"`{text.strip()}` does not say what the ports are", _PORT_EXAMPLES
        )
    rate, medium = _port(" ".join(rest), media, source, origin, name)
    return Ports(int(times[1]) if times and times[2] else 1, rate, medium, source, origin.kind)


def _port(
    text: str, media: Table[str, Medium], source: str, origin: Origin, name: str
) -> tuple[Figure, str | None]:
    """Read one port: a rate, or a medium."""
    if re.match(r"[-+.0-9]", text):
        value = parse_rate(text)
        if not value:
            raise UnitError("zero-capacity", f"`{name}` let nothing through", "write `unknown`")
        return Figure(value, origin.kind, source), None
    if len(text.split()) == 1 and text not in media and not near_names(text, media):
        raise UnitError("bad-ports", f"`{text}` does not say what the ports are", _PORT_EXAMPLES)
    cable = parse_cable(text, media, source=source, kind=origin.kind)
    fits = ("network",) if name == "ports" else ("gpu", "host")
    if cable.reach not in fits or cable.lanes is not None:
        wanted = "a network" if name == "ports" else "GPUs"
        raise UnitError(
            "wrong-medium",
            f"`{text}` does not join {wanted}, as `{name}` do",
            _PORT_EXAMPLES if name == "ports" else "write `18x nvlink 4` or `7x xgmi 64 GB/s`",
        )
    return cable.rate, cable.medium
