"""`topo export`: the machine for other programs."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.exports.formats import EXPORTS, export_text
from topo.files import spare_inputs, write_file
from topo.phrases import listed

_KINDS = [f"{kind} ({form.note})" if form.note else kind for kind, form in EXPORTS.items()]
_HELP = f"""Write the machine for other programs.

KIND is {listed(_KINDS, "or")}. What the format cannot hold is named.
"""


@verb.command(
    "topo export nccl dgx-h100 -o topo.xml", "topo export mermaid gds-textbook", help=_HELP
)
@click.argument("kind", metavar="KIND", type=click.Choice(list(EXPORTS)))
@verb.asks_machine
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@verb.asks_json
def command(kind: str, machine: verb.Machine, output: str | None, as_json: bool) -> int:
    """Write the machine for other programs."""
    topology = machine.load()
    exported = export_text(kind, topology)
    findings = (*topology.findings, *exported.findings)
    if output:
        spare_inputs(output, machine.files)
        write_file(output, exported.text)
    if as_json:
        document = {
            "schema": "topo.export/1",
            "kind": kind,
            "topology": topology.name,
            "text": exported.text,
        }
        return verb.put_document(document, findings)
    return verb.put_text("" if output else exported.text, findings)
