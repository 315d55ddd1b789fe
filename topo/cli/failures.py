"""`topo failures`: what is left when something fails."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.files import spare_inputs


@verb.command(
    "topo failures gds-textbook --via direct",
    "topo failures dgx-h100 --workload load --pairs --top 10",
    "topo failures pod-32 --needs unet3d",
    "topo failures dgx-h100 --json",
    "topo failures kv-cache -o worst.svg",
)
@verb.asks_machine
@verb.asks_question
@click.option("--pairs", is_flag=True, help="Two at a time.")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows to show.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Draw the worst, what failed and who stops marked: FILE.svg, .png, .pdf, .dot or .drawio.",
)
@verb.choice("--theme", verb.THEMES, "Of the picture.")
@verb.asks_how
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    pairs: bool,
    top: int,
    output: str | None,
    theme: str,
    how: verb.How,
    as_json: bool,
) -> int:
    """Say what is left when a link, card, switch, drive or appliance fails.

    One at a time, or two with --pairs: the rate that is left, and who has no way any more, the
    worst first. What is alike is asked about once.
    """
    via = question.one_via()
    from topo.study.failures import failures
    from topo.study.question import asked_workloads

    topology = machine.load()
    workload = asked_workloads(
        topology, question.workload, question.source, question.target, **question.model
    )[0]
    with verb.progress("failures") as progress:
        result = failures(
            topology,
            workload=workload,
            via=via,
            pairs=pairs,
            progress=progress,
            **how.arguments(topology),
        )
    if output and result.losses:
        from topo.views.diagram.sheet import draw_loss

        spare_inputs(output, machine.files)
        draw_loss(result, result.losses[0], theme=theme).write(output)
    if as_json:
        from topo.views.documents import failures_document

        return verb.put_document(failures_document(result), topology.findings)
    from topo.views.text.failures import failures_page

    return verb.put_page(failures_page(result, top), topology.findings)
