"""`topo export`: the machine for other programs."""

from __future__ import annotations

import click

from topo.cli.options import Machine, asks_json, asks_machine, example
from topo.cli.output import put_document, put_text
from topo.files import write_file

_KINDS = ("nccl", "dot", "mermaid", "json", "graphml", "simgrid", "csv")


@click.command(
    epilog=example("topo export nccl dgx-h100 -o topo.xml", "topo export mermaid gds-textbook")
)
@click.argument("kind", metavar="KIND", type=click.Choice(_KINDS))
@asks_machine
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@asks_json
def command(kind: str, machine: Machine, output: str | None, as_json: bool) -> int:
    """Write the machine for other programs.

    KIND is nccl (for NCCL_TOPO_FILE), dot (Graphviz), mermaid, json (node-link, as NetworkX and D3
    read it), graphml, simgrid (a platform) or csv (a table of links). What the format cannot hold
    is named.
    """
    from topo.exports import export_text

    topology = machine.load()
    found = export_text(kind, topology)
    findings = (*topology.findings, *found.findings)
    if output:
        write_file(output, found.text)
    if as_json:
        document = {
            "schema": "topo.export/1",
            "kind": kind,
            "topology": topology.name,
            "text": found.text,
        }
        return put_document(document, findings)
    return put_text("" if output else found.text, findings)
