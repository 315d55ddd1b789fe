"""A topology in the formats of other programs; what a format cannot hold is named."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from topo.topology.topology import Topology

__all__ = ["EXPORTS", "Exported", "export_text"]

# Each module has `write(topology: Topology) -> Exported`.
EXPORTS: Final = {
    "nccl": "topo.exports.nccl",
    "dot": "topo.exports.dot",
    "mermaid": "topo.exports.mermaid",
    "json": "topo.exports.node_link",
    "graphml": "topo.exports.graphml",
    "simgrid": "topo.exports.simgrid",
    "csv": "topo.exports.csv",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of a foreign file, and what it does not hold."""

    text: str
    findings: tuple[Finding, ...] = ()


def export_text(kind: str, topology: Topology) -> Exported:
    """Write a topology in a foreign format.

    Parameters
    ----------
    kind
        A key of `EXPORTS`.
    topology
        The machine.

    Raises
    ------
    ExchangeError
        If there is no such format, or it cannot hold such a machine at all.
    """
    if kind not in EXPORTS:
        message = f"no exporter writes `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=f"there are {', '.join(EXPORTS)}"))
    found: Exported = import_module(EXPORTS[kind]).write(topology)
    return found


def not_held(format_name: str, *things: str) -> tuple[Finding, ...]:
    """Return the finding that names what a format has no place for; none where nothing is lost."""
    lost = [thing for thing in things if thing]
    if not lost:
        return ()
    message = f"{format_name} has no place for {', '.join(lost)}"
    return (Finding("not-held", message, severity="note"),)
