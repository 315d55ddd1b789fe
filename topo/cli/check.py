"""`topo check`: whether a file is right, and whether what it expects comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.cli import verb

if TYPE_CHECKING:
    from topo.errors import Finding
    from topo.study.check import Judgement


@verb.command("topo check dgx-h100")
@verb.asks_machine
@verb.asks_how
@verb.asks_json
def command(machine: verb.Machine, how: verb.How, as_json: bool) -> int:
    """Read a file, look for mistakes, and judge the sentences of its `expect:`.

    Prints one line when all is well. Exits with 1 when something is wrong or an expectation does
    not hold.
    """
    topology = machine.load()
    judgements: tuple[Judgement, ...] = ()
    if topology.description.expectations:
        from topo.study.check import check

        judgements = check(topology, **how.arguments(topology))
    broken: tuple[Finding, ...] = ()
    if not all(judgement.holds for judgement in judgements):
        from topo.views.sentences import broken_expectations

        broken = broken_expectations(judgements)
    findings = (*topology.findings, *broken)
    if as_json:
        from topo.views.documents import check_document

        return verb.put_document(check_document(topology, judgements), findings)
    from topo.views.findings import all_holds

    return verb.put_text("" if broken else all_holds(topology), findings)
