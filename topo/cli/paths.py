"""`topo paths`: which data paths there are, and how each is laid."""

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
    example,
)
from topo.cli.output import put_document, put_page


@click.command(
    epilog=example(
        "topo paths dgx-h100",
        "topo paths dgx-h100 --from storage --to gpu0 --via direct",
    )
)
@asks_machine
@asks_host
@asks_question
@asks_how
@asks_json
def command(machine: Machine, question: Question, how: How, as_json: bool) -> int:
    """List the data paths and their verdicts, or the routes between two devices.

    Without ends: every data path with its moves, what it does to RAM, and whether the file's
    workloads can use it. With --from or --to: the links that legacy and direct, or each --via,
    walk, and what a payload byte uses.
    """
    from topo.study.answer import DEFAULT_PATHS
    from topo.study.compare import paths

    topology = machine.load()
    found = paths(
        topology,
        workload=question.workload,
        via=question.via or (DEFAULT_PATHS if question.by_ends else ()),
        source=question.source,
        target=question.target,
        at=how.at,
        policy=how.policy_for(topology),
    )
    if as_json:
        from topo.views.documents import paths_document

        document = paths_document(topology, found, basis=how.at, routes=question.by_ends)
        return put_document(document, topology.findings)
    from topo.views.text.machine import paths_page, routes_page

    if question.by_ends:
        return put_page(routes_page(topology, found, basis=how.at), topology.findings)
    return put_page(paths_page(topology, found), topology.findings)
