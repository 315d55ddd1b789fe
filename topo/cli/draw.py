"""`topo draw`: the machine and the way the data goes, as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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
from topo.cli.output import put_document, put_text

if TYPE_CHECKING:
    from topo.study.answers import WorkloadAnswer
    from topo.topology.topology import Topology

_STDOUT = "-"


@click.command(
    epilog=example(
        "topo draw gds-textbook -o textbook.svg",
        "topo draw dgx-h100 --to gpu4 --via direct --theme dark -o direct.png",
    )
)
@asks_machine
@asks_question
@asks_how
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to: .svg, .png, .dot, or .pdf with a system Graphviz; - is SVG on standard output.",
)
@click.option("--no-routes", is_flag=True, help="The machine alone.")
@click.option("--together", is_flag=True, help="All routes over one machine, not side by side.")
@click.option("--theme", type=click.Choice(("light", "dark")), default="light", show_default=True)
@click.option(
    "--collapse/--no-collapse",
    default=None,
    help="Draw devices that are alike as one: always, never; else as it fits.",
)
@click.option("--no-legend", is_flag=True, help="Leave the legend out.")
@click.option(
    "--engine",
    type=click.Choice(("graphviz-pure", "dot")),
    help="What lays it out: the engine that came with topo, or a system Graphviz.",
)
@asks_json
def command(
    *,
    machine: Machine,
    question: Question,
    how: How,
    output: str | None,
    no_routes: bool,
    together: bool,
    theme: str,
    collapse: bool | None,
    no_legend: bool,
    engine: Literal["graphviz-pure", "dot"] | None,
    as_json: bool,
) -> int:
    """Draw the machine and the way the data goes.

    Shows how legacy and direct, or each --via, reach the first GPU of the file's first workload,
    of --workload, or of --from and --to; a file without workloads is drawn alone.
    """
    output = _destination(output, as_json)
    from topo.views.diagram.sheet import draw

    topology = machine.load()
    answer = None if no_routes else _answer(topology, question, how)
    picture = draw(
        topology,
        answer=answer,
        theme=theme,
        collapse="auto" if collapse is None else collapse,
        side_by_side=not together,
        legend=not no_legend,
        at=how.at,
    )
    if output == _STDOUT:
        return put_text(picture.svg(engine=engine or "graphviz-pure"), topology.findings)
    picture.write(output, engine=engine)
    if as_json:
        from topo.views.documents import picture_document

        document = picture_document(topology, picture, Path(output).name, answer)
        return put_document(document, topology.findings)
    return put_text(f"wrote {output}\n", topology.findings)


def _destination(output: str | None, as_json: bool) -> str:
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    if output is None and (as_json or on_terminal):
        raise click.UsageError("say where the picture goes: -o picture.svg")
    if output == _STDOUT and as_json:
        raise click.UsageError("the picture and --json cannot both go to standard output")
    return output or _STDOUT


def _answer(topology: Topology, question: Question, how: How) -> WorkloadAnswer | None:
    """Return the answer whose routes are drawn, `None` where there is no question."""
    from topo.study.compare import compare

    asked = question.by_ends or question.workload or question.via
    if not asked and not topology.description.workloads:
        return None
    workload = question.workload
    if not workload and not question.by_ends and topology.description.workloads:
        workload = topology.description.workloads[0].name
    found = compare(
        topology,
        workload=workload,
        via=question.via,
        source=question.source,
        target=question.target,
        at=how.at,
        policy=how.policy_for(topology),
    )
    return found.workloads[0]
