"""`topo upgrade`: what to change, ranked by what it does to the time."""

from __future__ import annotations

import math

import click

from topo.cli import verb

_DEAREST = 1e15  # in any currency: sums of more say nothing


@verb.command(
    "topo upgrade dgx-h100 --via legacy",
    "topo upgrade gds-textbook --together --combine 2",
    "topo upgrade dgx-a100 --needs unet3d",
    "topo upgrade dgx-h100 --checkpoint llama3-70b",
    "topo upgrade dgx-h100 --cost other-card=1800 --cost another-card=1500 --json",
)
@verb.asks_machine
@verb.asks_question
@click.option("--together", is_flag=True, help="All workloads at once, by when the last is done.")
@click.option(
    "--combine",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="How many changes may be taken together.",
)
@click.option(
    "costs",
    "--cost",
    metavar="KIND=AMOUNT",
    multiple=True,
    help="What one costs, by the kind of change: other-card, another-card, faster-cable ... "
    "(repeatable; `topo explain upgrade` has them all).",
)
@click.option(
    "most", "--most", type=click.IntRange(1), default=12, show_default=True, help="Rows to show."
)
@verb.asks_how
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    together: bool,
    combine: int,
    costs: tuple[str, ...],
    most: int,
    how: verb.How,
    as_json: bool,
) -> int:
    """Rank changes: cards, cables, memory, storage, sockets, data paths.

    It starts from what binds, and asks about pairs where no single change gains anything. Each is
    computed in full; what breaks a rule of the machine is listed with the reason. Every figure is
    that of `topo compare` with the same --set. It asks about the file's first workload by its own
    data path or the best that is not refused, unless it is told otherwise.
    """
    via = question.one_via()
    if together and (question.workload or question.by_ends or question.model):
        raise click.UsageError("--together asks about all of the file's workloads.")
    from topo.study.candidates import KINDS
    from topo.study.upgrade import upgrades

    costs_by_kind: dict[str, float] = {}
    for word in costs:
        kind, sign, text = word.partition("=")
        if not sign or kind.strip() not in KINDS:
            kinds = ", ".join(KINDS)
            raise click.BadParameter(f"`{word}` is not KIND=AMOUNT; kinds are {kinds}")
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 <= amount <= _DEAREST:
            message = f"`{text}` is no amount: expected zero or more"
            raise click.BadParameter(f"{message}, up to {_DEAREST:.0e}")
        costs_by_kind[kind.strip()] = amount
    topology = machine.load()
    with verb.progress("asking") as progress:
        ranking = upgrades(
            topology,
            **{**question.arguments(), "via": via},
            together=together,
            combine=combine,
            costs=costs_by_kind,
            progress=progress,
            **how.arguments(topology),
        )
    findings = (*topology.findings, *ranking.findings)
    if as_json:
        from topo.views.documents import upgrades_document

        return verb.put_document(upgrades_document(ranking), findings)
    from topo.views.text.upgrades import upgrades_page

    return verb.put_page(upgrades_page(ranking, most=most), findings)
