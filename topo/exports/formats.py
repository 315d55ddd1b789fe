"""Which formats there are: a new one is a function that writes it, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from topo.errors import ExchangeError, Finding
from topo.records import dataclass
from topo.topology.topology import Topology


class Format(NamedTuple):
    """Where a format's writer is, ``module:function``, and what a reader may not know of it.

    What is `drawn` says how many are alike; in other formats each device stands for itself.
    """

    writer: str
    note: str = ""
    drawn: bool = False


# Each writer is a function from a `Topology` to an `Exported`.
EXPORTS: Final = {
    "nccl": Format("topo.exports.nccl:write_nccl", "for NCCL_TOPO_FILE"),
    "dot": Format("topo.exports.graphs:write_dot", "Graphviz", drawn=True),
    "mermaid": Format("topo.exports.graphs:write_mermaid", drawn=True),
    "json": Format("topo.exports.graphs:write_json", "node-link, as NetworkX and D3 read it"),
    "graphml": Format("topo.exports.graphs:write_graphml"),
    "simgrid": Format("topo.exports.graphs:write_simgrid", "a platform"),
    "csv": Format("topo.exports.graphs:write_csv", "a table of links"),
    "infragraph": Format("topo.exports.infragraph:write_infragraph", "YAML of a cluster"),
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
    module, _, function = EXPORTS[kind].writer.partition(":")
    if not EXPORTS[kind].drawn:
        topology = topology.written_out()
    exported: Exported = getattr(import_module(module), function)(topology)
    return exported


def not_held(format_name: str, *losses: str) -> tuple[Finding, ...]:
    """Return the finding that names what a format has no place for."""
    message = f"{format_name} has no place for {', '.join(losses)}"
    return (Finding("not-held", message, severity="note"),)
