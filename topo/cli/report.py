"""`topo report`: the answers as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from topo.cli import verb
from topo.files import STANDARD_INPUT, replace_file, spare_inputs, unwritable


@verb.command(
    "topo report gds-textbook -o textbook.html",
    "topo report dgx-h100 --at achievable -o achievable.html",
    "topo report dgx-h100 --needs unet3d -o feeding.html",
)
@verb.asks_machine
@verb.asks_host
@verb.asks_question
@verb.asks_how
@click.option(
    "-o", "--output", metavar="FILE", help="Where to: an .html file, - is standard output."
)
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    question: verb.Question,
    how: verb.How,
    output: str | None,
    as_json: bool,
) -> int:
    """Write the answers as one page for a browser, with sliders that ask what if.

    One file that needs nothing else and asks no network: pictures, every data path, what binds and
    what would bind next, the source of each figure, and a solver of its own for other capacities.
    --json prints the document that drives it.
    """
    if output is None and not as_json:
        raise click.UsageError("say where the page goes: -o report.html")
    if output == STANDARD_INPUT and as_json:
        raise click.UsageError("the page and --json cannot both go to standard output")
    from topo.study.report import report

    topology = machine.load()
    with verb.progress("data paths") as progress:
        whole = report(
            topology, **question.about(topology), **how.arguments(topology), progress=progress
        )
    words = _command_line(machine, question, how)
    if output is not None:
        from topo.views.report.page import report_page

        page = report_page(whole, command=words, folder=verb.Session.current().folder)
        if output == STANDARD_INPUT:
            return verb.put_text(page, whole.findings)
        spare_inputs(output, machine.files)
        try:
            replace_file(Path(output), page.encode())
        except OSError as error:
            raise unwritable(f"`{output}`", error) from None
    if as_json:
        from topo.views.report.document import report_document

        return verb.put_document(report_document(whole, command=words), whole.findings)
    return verb.put_text(f"wrote {output}\n", whole.findings)


def _command_line(machine: verb.Machine, question: verb.Question, how: verb.How) -> tuple[str, ...]:
    """Return the words after ``topo compare`` that ask the same of each data path."""
    file = machine.file
    path = Path(file)
    words = [path.name if path.is_absolute() else file]
    for key, value in machine.overrides.items():
        words += ["--set", f"{key}={value}"]
    for name in machine.without:
        words += ["--without", name]
    options = {
        "--cufile": machine.cufile,
        "--gdscheck": machine.gdscheck,
        **{f"--{asks}": model for asks, model in question.model.items()},
        "--from": question.source,
        "--to": question.target,
        "--at": how.at if how.at != "theoretical" else "",
        "--nics": how.policy.nics if how.policy.nics != "nearest" else "",
        "--routes": how.policy.routes if how.policy.routes != "spread" else "",
        "--pairing": how.policy.pairing,
    }
    for option, value in options.items():
        words += [option, value] if value else []
    for buffer, place in how.policy.buffers:
        words += ["--buffers", f"{buffer}={place}"]
    return tuple(words)
