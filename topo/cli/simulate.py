"""`topo simulate`: the workloads at once, over time."""

from __future__ import annotations

import click

from topo.cli.options import (
    How,
    Machine,
    asks_how,
    asks_json,
    asks_machine,
    draws_timeline,
    example,
    lists,
)
from topo.cli.output import put_document, put_page


@click.command(
    epilog=example(
        "topo simulate gds-textbook --via legacy",
        "topo simulate gds-textbook --via load=direct,checkpoint=legacy --json",
        "topo simulate gds-textbook -o time.svg --theme dark",
    )
)
@asks_machine
@click.option(
    "--via",
    metavar="PATH",
    multiple=True,
    help="Data path of all, or of one: direct, load=direct,checkpoint=legacy.",
)
@asks_how
@draws_timeline
@asks_json
def command(
    *,
    machine: Machine,
    via: tuple[str, ...],
    how: How,
    output: str | None,
    theme: str,
    as_json: bool,
) -> int:
    """Run the file's workloads together until each has its bytes.

    Says who gets what in every span, what stops it, and when each is done; as some finish, the
    others speed up.
    """
    from topo.study.timeline import simulate

    topology = machine.load()
    found = simulate(topology, via=_paths(lists(via)), at=how.at, policy=how.policy_for(topology))
    if output:
        from topo.views.diagram.timeline import draw_timeline

        draw_timeline(found, theme=theme).write(output)
    if as_json:
        from topo.views.documents import simulation_document

        return put_document(simulation_document(found), topology.findings)
    from topo.views.text.answers import simulation_page

    return put_page(simulation_page(found), topology.findings)


def _paths(words: tuple[str, ...]) -> str | dict[str, str]:
    """Return one data path for all, or one by workload."""
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    if not all("=" in word for word in words):
        raise click.UsageError("give one --via for all, or --via WORKLOAD=PATH for each.")
    pairs = (word.partition("=") for word in words)
    return {name.strip(): path.strip() for name, _, path in pairs}
