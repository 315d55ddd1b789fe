"""`topo compare`: data paths side by side."""

from __future__ import annotations

import click

from topo.cli.options import (
    How,
    Machine,
    Question,
    asks_host,
    asks_how,
    asks_json,
    asks_machine,
    asks_question,
    draws_timeline,
    example,
)
from topo.cli.output import put_document, put_page


@click.command(
    epilog=example(
        "topo compare gds-textbook",
        "topo compare gds-textbook --workload load --via legacy,legacy-pageable,direct",
        "topo compare dgx-h100 --from storage --to gpu0 --json",
        "topo compare gds-textbook --together -o time.png",
    )
)
@asks_machine
@asks_host
@asks_question
@click.option("together", "--together", is_flag=True, help="Run the file's workloads at once.")
@draws_timeline
@asks_how
@asks_json
def command(
    *,
    machine: Machine,
    question: Question,
    together: bool,
    output: str | None,
    theme: str,
    how: How,
    as_json: bool,
) -> int:
    """Compare data paths: hops, copies, trips through RAM, rate, what limits each.

    Asks about the file's workloads by legacy and direct, or by each --via; with --from and --to
    about those devices. With --cufile and --gdscheck the verdicts rest on what the host says of
    itself.
    """
    if together:
        return _together(machine, question, how, picture=(output, theme), as_json=as_json)
    if output:
        raise click.UsageError("-o draws the timeline of --together; topo draw draws the machine.")
    from topo.study.compare import compare
    from topo.study.timeline import at_once

    topology = machine.load()
    found = compare(
        topology,
        workload=question.workload,
        via=question.via,
        source=question.source,
        target=question.target,
        at=how.at,
        policy=how.policy_for(topology),
    )
    findings = (*topology.findings, *found.findings)
    meeting = at_once(found)
    if as_json:
        from topo.views.documents import comparison_document

        return put_document(comparison_document(found, meeting), findings)
    from topo.views.text.answers import comparison_page

    return put_page(comparison_page(found, meeting), findings)


def _together(
    machine: Machine,
    question: Question,
    how: How,
    *,
    picture: tuple[str | None, str],
    as_json: bool,
) -> int:
    if question.workload or question.by_ends:
        raise click.UsageError("--together asks about all of the file's workloads.")
    from topo.study.answer import DEFAULT_PATHS
    from topo.study.timeline import simulate_each

    topology = machine.load()
    found = simulate_each(
        topology,
        via=question.via or DEFAULT_PATHS,
        at=how.at,
        policy=how.policy_for(topology),
    )
    output, theme = picture
    if output:
        from topo.views.diagram.timeline import draw_timeline

        draw_timeline(*(simulation for _, simulation in found), theme=theme).write(output)
    if as_json:
        from topo.views.documents import together_document

        return put_document(together_document(found), topology.findings)
    from topo.views.text.answers import together_page

    return put_page(together_page(found), topology.findings)
