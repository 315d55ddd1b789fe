"""`topo compare`: data paths side by side."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.files import spare_inputs


@verb.command(
    "topo compare gds-textbook",
    "topo compare gds-textbook --workload load --via legacy,legacy-pageable,direct",
    "topo compare dgx-h100 --from storage --to gpu0 --json",
    "topo compare dgx-h100 --needs unet3d",
    "topo compare dgx-h100 --checkpoint llama3-70b",
    "topo compare gds-textbook --workload load --markdown",
    "topo compare gds-textbook --together -o time.png",
)
@verb.asks_machine
@verb.asks_host
@verb.asks_question
@click.option("together", "--together", is_flag=True, help="Run the file's workloads at once.")
@verb.draws_timeline
@verb.asks_how
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    together: bool,
    output: str | None,
    theme: str,
    how: verb.How,
    as_json: bool,
) -> int:
    """Compare data paths: hops, copies, trips through RAM, rate, what limits each.

    Asks about the file's workloads by legacy and direct, or by each --via; with --needs or
    --checkpoint about what a model asks for; with --from and --to about those devices. With
    --cufile and --gdscheck the verdicts rest on what the host says of itself.
    """
    if together and (question.workload or question.by_ends or question.model):
        raise click.UsageError("--together asks about all of the file's workloads.")
    if output and not together:
        raise click.UsageError("-o draws the timeline of --together; topo draw draws the machine.")
    topology = machine.load()
    if together:
        from topo.study.timeline import simulate_each

        simulations = simulate_each(topology, via=question.via, **how.arguments(topology))
        of_runs = (finding for _, run in simulations for finding in run.findings)
        findings = (*topology.findings, *dict.fromkeys(of_runs))
        if output:
            from topo.views.diagram.timeline import draw_timeline

            timelines = (simulation for _, simulation in simulations)
            spare_inputs(output, machine.files)
            draw_timeline(*timelines, theme=theme).write(output)
        if as_json:
            from topo.views.documents import together_document

            return verb.put_document(together_document(simulations), findings)
        from topo.views.text.timeline import together_page

        return verb.put_page(together_page(simulations), findings)
    from topo.study.compare import compare
    from topo.study.timeline import at_once

    comparison = compare(topology, **question.about(topology), **how.arguments(topology))
    findings = (*topology.findings, *comparison.findings)
    meeting = at_once(comparison)
    if as_json:
        from topo.views.documents import comparison_document

        return verb.put_document(comparison_document(comparison, meeting), findings)
    from topo.views.text.answers import comparison_page

    return verb.put_page(comparison_page(comparison, meeting), findings)
