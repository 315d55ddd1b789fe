"""`topo export`: the machine for other programs."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.exports.formats import EXPORTS, Exported, export_text
from topo.files import spare_inputs, write_file
from topo.phrases import listed

_KINDS = [f"{kind} ({form.note})" if form.note else kind for kind, form in EXPORTS.items()]
_HELP = f"""Write the machine for other programs.

KIND is {listed(_KINDS, "or")}. What the format cannot hold is named. A mermaid one can mark what
binds: that of --workload, by each --via, or --from and --to.
"""


@verb.command(
    "topo export nccl dgx-h100 -o topo.xml",
    "topo export mermaid gds-textbook --workload load --via direct",
    help=_HELP,
)
@click.argument("kind", metavar="KIND", type=click.Choice(list(EXPORTS)))
@verb.asks_machine
@verb.asks_question
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@verb.asks_json
def command(
    kind: str, machine: verb.Machine, question: verb.Question, output: str | None, as_json: bool
) -> int:
    """Write the machine for other programs."""
    asked = question.workload or question.via or question.by_ends or question.model
    if asked and kind != "mermaid":
        message = "--workload, --needs, --checkpoint, --via, --from and --to are for mermaid"
        raise click.UsageError(f"{message}; {kind} has no place for an answer")
    topology = machine.load()
    if asked:
        from topo.study.compare import compare
        from topo.views.mermaid import mermaid

        answer = compare(topology, **question.about(topology)).workloads[0]
        exported = Exported(mermaid(topology, answer))
    else:
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
