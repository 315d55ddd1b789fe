"""`topo fmt`: topology files in topo's own layout."""

from __future__ import annotations

import click

from topo.cli import verb
from topo.errors import Finding, TopoError
from topo.files import STANDARD_INPUT, write_file


@verb.command("topo new | topo fmt -")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
@verb.asks_json
def command(files: tuple[str, ...], check: bool, as_json: bool) -> int:
    """Format topology files, keeping their comments.

    Files are changed in place, each whole or not at all; - reads standard input and writes
    standard output.
    """
    if STANDARD_INPUT in files and len(files) > 1:
        raise click.UsageError("- stands alone.")
    findings: list[Finding] = []
    changed: dict[str, bool] = {}
    for file in files:
        try:
            changed[file] = _format(file, check=check, quiet=as_json)
        except TopoError as error:
            findings.extend(error.findings)
    for file in (file for file, differs in changed.items() if check and differs):
        name = "standard input" if file == STANDARD_INPUT else f"`{file}`"
        message, advice = f"{name} is not in topo's layout", f"run topo fmt {file}"
        findings.append(Finding("not-formatted", message, help=advice))
    if as_json:
        files_changed = [{"file": file, "changed": differs} for file, differs in changed.items()]
        return verb.put_document({"schema": "topo.fmt/1", "files": files_changed}, findings)
    return verb.put_text("", findings)


def _format(file: str, *, check: bool, quiet: bool) -> bool:
    """Format one file and say whether that changes it."""
    from topo.description.format import format_text
    from topo.description.locating import read_file
    from topo.document.text import read_text

    standard = file == STANDARD_INPUT
    data = read_file(file)
    name = "<stdin>" if standard else file
    formatted = format_text(read_text(data, name), name=name)
    differs = formatted.encode() != data
    if check:
        return differs
    if standard and not quiet:
        verb.put_text(formatted)
    elif differs and not standard:
        write_file(file, formatted, was=data)
    return differs
