"""`topo bottleneck`: what binds, by how much, whom it stops, and what would bind next."""

from __future__ import annotations

from typing import Any

import click

from topo.cli import verb


@verb.command(
    "topo bottleneck gds-textbook --via legacy",
    "topo bottleneck dgx-h100 --workload checkpoint --json",
    "topo bottleneck pod-32 --needs unet3d",
)
@verb.asks_machine
@verb.asks_question
@verb.choice(
    "--rule",
    ("max-min", "largest-total"),
    "Whose rates and prices: shared fairly, or the largest total of all.",
)
@click.option("--each", is_flag=True, help="One line a GPU and a resource, equal ones too.")
@verb.asks_how
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    rule: Any,
    each: bool,
    how: verb.How,
    as_json: bool,
) -> int:
    """Say what binds, whom it stops, what would bind next, what more is worth.

    About one workload by one data path: the file's first, by its own or the best that is not
    refused, unless it is told otherwise. A price is two numbers: what one GB/s more of a resource
    adds to all together and saves, and what one less costs.
    """
    from topo.study.bottleneck import bottleneck
    from topo.study.prices import explain

    via = question.one_via()
    topology = machine.load()
    arguments = {**question.about(topology), "via": via}
    study = bottleneck(topology, **arguments, **how.arguments(topology))
    matrix = study.answer.matrix
    findings = (*topology.findings, *study.findings)
    explained = None
    if matrix is not None:
        explained = explain(matrix, rule=rule, each=each, sized=study.workload.sized)
    if as_json:
        from topo.views.documents import bottleneck_document

        return verb.put_document(bottleneck_document(study, explained), findings)
    from topo.views.text.answers import bottleneck_page

    return verb.put_page(bottleneck_page(study, explained), findings)
