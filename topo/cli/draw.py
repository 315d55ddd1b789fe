"""`topo draw`: the machine and the way the data goes, as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from topo.cli import verb
from topo.files import STANDARD_INPUT, spare_inputs, write_file

_FLOWCHARTS = (".mmd", ".mermaid")  # text that lays itself out, and no picture


@verb.command(
    "topo draw gds-textbook -o textbook.svg",
    "topo draw dgx-h100 --to gpu4 --via direct --theme dark -o direct.png",
)
@verb.asks_machine
@verb.asks_question
@verb.asks_how
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to: .svg, .png, .pdf, .dot, .mmd (Mermaid, what binds marked), .drawio "
    "(diagrams.net) or .pptx (with python-pptx); - is SVG on standard output.",
)
@click.option(
    "--width", type=click.IntRange(16), metavar="PIXELS", help="Of a .png, instead of its scale."
)
@click.option(
    "--scale",
    type=click.FloatRange(0.05, 20),
    metavar="NUMBER",
    help="Pixels a point of a .png: 1.5 unless said; the smallest text is 10 points high.",
)
@click.option("--no-routes", is_flag=True, help="The machine alone.")
@click.option("--together", is_flag=True, help="All routes over one machine, not side by side.")
@verb.choice("--theme", verb.THEMES)
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
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    how: verb.How,
    output: str | None,
    width: int | None,
    scale: float | None,
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
    of what is asked by name, by a model, or by --from and --to; a file without workloads is drawn
    alone.
    """
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    if output is None and (as_json or on_terminal):
        raise click.UsageError("say where the picture goes: -o picture.svg")
    output = output or STANDARD_INPUT
    if output == STANDARD_INPUT and as_json:
        raise click.UsageError("the picture and --json cannot both go to standard output")
    if width and scale:
        raise click.UsageError("--width and --scale both say how large the picture is: give one")
    if (width or scale) and Path(output).suffix.lower() != ".png":
        raise click.UsageError("--width and --scale are for a .png; other formats have no pixels")
    from topo.views.diagram.sheet import draw

    whole = machine.whole() if machine.without else None
    topology = machine.load(whole)
    answer, arguments = None, question.about(topology)
    workloads = topology.description.workloads
    asked = question.by_ends or question.workload or question.model
    if workloads and not asked:
        arguments["workload"] = workloads[0].name
    if not no_routes and (workloads or asked or question.via):
        from topo.study.compare import compare

        answer = compare(topology, **arguments, **how.arguments(topology)).workloads[0]
    if Path(output).suffix.lower() in _FLOWCHARTS and not as_json:
        from topo.views.mermaid import mermaid

        spare_inputs(output, machine.files)
        write_file(output, mermaid(topology, answer, at=how.at))
        return verb.put_text(f"wrote {output}\n", topology.findings)
    picture = draw(
        topology,
        answer=answer,
        theme=theme,
        collapse="auto" if collapse is None else collapse,
        side_by_side=not together,
        legend=not no_legend,
        at=how.at,
        whole=whole,
    )
    if output == STANDARD_INPUT:
        return verb.put_text(picture.svg(engine=engine or "graphviz-pure"), topology.findings)
    spare_inputs(output, machine.files)
    picture.write(output, engine=engine, width=width, scale=scale)
    if as_json:
        from topo.views.documents import picture_document

        document = picture_document(topology, picture, Path(output).name, answer)
        return verb.put_document(document, topology.findings)
    return verb.put_text(f"wrote {output}\n", topology.findings)
