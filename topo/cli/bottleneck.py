"""`topo bottleneck`: what binds, by how much, whom it stops, and what would bind next."""

from __future__ import annotations

import click

from topo.cli.options import (
    How,
    Machine,
    Question,
    asks_how,
    asks_json,
    asks_machine,
    asks_question,
    example,
)
from topo.cli.output import put_document, put_page


@click.command(
    epilog=example(
        "topo bottleneck gds-textbook --via legacy",
        "topo bottleneck dgx-h100 --workload checkpoint --json",
    )
)
@asks_machine
@asks_question
@asks_how
@asks_json
def command(machine: Machine, question: Question, how: How, as_json: bool) -> int:
    """Say what binds, by how much, whom it stops, and what would bind next.

    About one workload by one data path: the file's first and direct, unless --workload, --via, or
    --from and --to say otherwise.
    """
    from topo.study import bottleneck

    if len(question.via) > 1:
        raise click.UsageError("bottleneck asks about one data path: give one --via.")
    topology = machine.load()
    found = bottleneck(
        topology,
        workload=question.workload,
        via=question.via[0] if question.via else "direct",
        source=question.source,
        target=question.target,
        at=how.at,
        policy=how.policy_for(topology),
    )
    if as_json:
        from topo.views.json.answers import bottleneck_document

        return put_document(bottleneck_document(topology, found), topology.findings)
    from topo.views.text.answers import bottleneck_page

    return put_page(bottleneck_page(topology, found), topology.findings)
