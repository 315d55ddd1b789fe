"""`topo bottleneck`: what binds, by how much, whom it stops, and what would bind next."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from topo.topology import Topology

_USUAL = "direct"


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
    from topo.study import compare, ladder

    if len(question.via) > 1:
        raise click.UsageError("bottleneck asks about one data path: give one --via.")
    topology = machine.load()
    found = compare(
        topology,
        workload=question.workload or _first_workload(topology, question),
        via=question.via or (_USUAL,),
        source=question.source,
        target=question.target,
        at=how.at,
        policy=how.policy,
    )
    (answer,) = found.workloads
    (path,) = answer.paths
    steps = None
    if path.matrix is not None:
        steps = ladder(topology, answer.workload, path, basis=how.at)
    findings = (*topology.findings, *found.findings)
    if as_json:
        from topo.views.json.answers import bottleneck_document

        document = bottleneck_document(topology, answer.workload, path, steps, basis=how.at)
        return put_document(document, findings)
    from topo.views.text.answers import bottleneck_page

    page = bottleneck_page(topology, answer.workload, path, steps, basis=how.at)
    return put_page(page, findings)


def _first_workload(topology: Topology, question: Question) -> str | None:
    if question.by_ends or not topology.spec.workloads:
        return None
    return topology.spec.workloads[0].name
