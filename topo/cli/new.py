"""`topo new`: a commented file to start from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from topo.cli import verb
from topo.errors import Finding, TopoError
from topo.files import write_file

_USUAL = "my-server"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@verb.command("topo new", "topo new lab-box --like dgx-h100", "topo new -o lab-box.yaml")
@click.argument("name", required=False)
@click.option(
    "machine",
    "--like",
    metavar="MACHINE",
    help="Copy a built-in machine (topo parts --machines), comments and all.",
    shell_complete=verb.completes("machines"),
)
@click.option("-o", "--output", metavar="FILE", help="Write there; an existing file stays.")
@verb.asks_json
def command(name: str | None, machine: str | None, output: str | None, as_json: bool) -> int:
    """Write a commented topology file to start from.

    NAME is the machine's name; without it, the file's.
    """
    chosen = name or (Path(output).stem if output else "") or _USUAL
    if not _NAME.fullmatch(chosen) or "--" in chosen:
        if name:
            message = f"`{name}` is not a name like lab-box"
            if name.endswith((".yaml", ".yml")):
                message += f"; to write that file: topo new -o {name}"
            raise click.BadParameter(message, param_hint="NAME")
        chosen = _USUAL
    if machine is None:
        template = (files("topo.cli") / "starter.yaml").read_text(encoding="utf-8")
    else:
        from topo.description.locating import builtin_text

        template = builtin_text(machine)
    text = re.sub(r"(?m)^name:.*$", f"name: {chosen}", template, count=1)
    if output:
        if Path(output).exists():
            message = f"`{output}` is there already"
            raise TopoError(Finding("file-exists", message, help="choose another name"))
        write_file(output, text)
    if as_json:
        return verb.put_document(
            {"schema": "topo.new/1", "name": chosen, "file": output, "text": text}
        )
    return verb.put_text(f"wrote {output}\n" if output else text)
