"""`topo simulate`: the workloads at once, over time."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.files import spare_inputs


@verb.command(
    "topo simulate gds-textbook --via legacy",
    "topo simulate gds-textbook --via load=direct,checkpoint=legacy --json",
    "topo simulate gds-textbook -o time.svg --theme dark",
)
@verb.asks_machine
@click.option(
    "--via",
    metavar="PATH",
    multiple=True,
    help="Data path of all, or of one: direct, load=direct,checkpoint=legacy.",
    shell_complete=verb.completes("data paths"),
)
@verb.asks_how
@verb.draws_timeline
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    via: tuple[str, ...],
    how: verb.How,
    output: str | None,
    theme: str,
    as_json: bool,
) -> int:
    """Run the file's workloads together until each has its bytes.

    Says who gets what in every span, what stops it, and when each is done; as some finish, the
    others speed up. One --via is for all that it can serve; the others go by their own, else by the
    best that is not refused.
    """
    from topo.study.timeline import simulate

    topology = machine.load()
    words = verb.lists(via)
    data_paths: str | dict[str, str]  # one for all, or one by workload
    if len(words) == 1 and "=" not in words[0]:
        data_paths = words[0]
    elif all("=" in word for word in words):
        pairs = (word.partition("=") for word in words)
        data_paths = {workload.strip(): path.strip() for workload, _, path in pairs}
    else:
        raise click.UsageError("give one --via for all, or --via WORKLOAD=PATH for each.")
    arguments = how.arguments(topology)
    with verb.progress("workloads") as progress:
        simulation = simulate(topology, via=data_paths, **arguments, progress=progress)
    findings = (*topology.findings, *simulation.findings)
    if output:
        from topo.views.diagram.timeline import draw_timeline

        spare_inputs(output, machine.files)
        draw_timeline(simulation, theme=theme).write(output)
    if as_json:
        from topo.views.documents import simulation_document

        return verb.put_document(simulation_document(simulation), findings)
    from topo.views.text.timeline import simulation_page

    return verb.put_page(simulation_page(simulation), findings)
