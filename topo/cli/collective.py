"""`topo collective`: what bandwidth an all-reduce, or another collective, has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.description.description import COLLECTIVES, ROOTED

if TYPE_CHECKING:
    from topo.description.description import Collective


def _size(_ctx: click.Context, option: click.Parameter, text: str) -> float:
    from topo.errors import UnitError
    from topo.units import parse_size

    try:
        return parse_size(text, positive=True)
    except UnitError as error:
        raise click.BadParameter(str(error), param=option) from None


@verb.command(
    "topo collective dgx-h100",
    "topo collective dgx-h100 all-reduce --over 'gpu[0-3]' --at theoretical",
    "topo collective dgx-h100 all-reduce --set settings.nvlink-sharp=on",
    "topo collective l40s-two-switches all-to-all --size '256 MB' --json",
)
@verb.asks_machine
@click.argument("kind", metavar="[COLLECTIVE]", type=click.Choice(COLLECTIVES), required=False)
@click.option(
    "--over",
    metavar="DEVICES",
    default="",
    help="The GPUs: all unless said.",
    shell_complete=verb.completes("devices"),
)
@click.option(
    "--size",
    default="1 GB",
    show_default=True,
    callback=_size,
    help="Bytes, as nccl-tests counts them.",
)
@click.option(
    "--root",
    metavar="DEVICE",
    default="",
    help="Of broadcast and reduce: first GPU.",
    shell_complete=verb.completes("devices"),
)
@click.option(
    "--via",
    metavar="PATH",
    multiple=True,
    callback=lambda _ctx, _option, values: verb.lists(values),
    help="Data path to ask about: peer-nvlink, ... (repeatable, or a,b).",
    shell_complete=verb.completes("data paths"),
)
@partial(verb.asks_how, at="achievable")
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    kind: Collective | None,
    over: str,
    size: float,
    root: str,
    via: tuple[str, ...],
    how: verb.How,
    as_json: bool,
) -> int:
    """Say what busbw an all-reduce or the like should have, by which rings, and why.

    COLLECTIVE is all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or reduce; all of
    them unless one is named. Rates are those of nccl-tests: algbw is size over time, busbw what a
    ring passes over each hop for it. What a test should show is what is achievable, so that is
    what is asked.
    """
    from topo.study.collective import collective

    if root and kind not in ROOTED:
        raise click.UsageError("--root is of broadcast and of reduce: name one of them.")
    topology = machine.load()
    comparison = collective(
        topology, kind or "", over=over, size=size, root=root, via=via, **how.arguments(topology)
    )
    findings = (*topology.findings, *comparison.findings)
    if as_json:
        from topo.views.documents import collective_document

        return verb.put_document(collective_document(comparison), findings)
    from topo.views.text.collective import collective_page

    return verb.put_page(collective_page(comparison), findings)
