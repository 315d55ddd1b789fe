"""`topo doubt`: how sure the answers are."""

from __future__ import annotations

from functools import partial

from topo.cli import verb
from topo.files import spare_inputs


@verb.command(
    "topo doubt dgx-h100",
    "topo doubt dgx-a100 --workload local --via legacy,direct",
    "topo doubt l40s-two-switches --workload load -o doubt.svg",
    "topo doubt dgx-h100 --set ram.efficiency='72 %' --json",
)
@verb.asks_machine
@verb.asks_host
@verb.asks_question
@verb.draws("the tornado")
@partial(verb.asks_how, at="achievable")
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    output: str | None,
    theme: str,
    how: verb.How,
    as_json: bool,
) -> int:
    """Say how sure the answers are: what each guess does, and what to measure first.

    Each guess, and each figure whose source says a range, is a band. The rate is a range that holds
    90 % of all draws; a tornado says what each band does alone; and the one measurement is named
    that is expected to settle most. Most guesses are of what is achievable, so that is what is
    asked.
    """
    from topo.study.doubt import doubt

    topology = machine.load()
    with verb.progress("answers") as progress:
        result = doubt(
            topology, **question.about(topology), **how.arguments(topology), progress=progress
        )
    findings = (*topology.findings, *result.findings)
    if output:
        from topo.views.diagram.tornado import draw_tornado

        spare_inputs(output, machine.files)
        draw_tornado(result, theme=theme).write(output)
    if as_json:
        from topo.views.documents import doubt_document

        return verb.put_document(doubt_document(result), findings)
    from topo.views.text.doubt import doubt_page

    return verb.put_page(doubt_page(result), findings)
