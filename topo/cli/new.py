"""`topo new`: a commented file to start from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from topo.cli.options import asks_json, example
from topo.cli.output import put_document, put_text
from topo.errors import Finding, TopoError
from topo.files import write_file

_USUAL = "my-server"
_NAME_LINE = re.compile(r"^name:.*$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@click.command(
    epilog=example("topo new", "topo new lab-box --like dgx-h100", "topo new -o lab-box.yaml")
)
@click.argument("name", required=False)
@click.option("--like", metavar="MACHINE", help="Start from a built-in machine.")
@click.option("-o", "--output", metavar="FILE", help="Write there; an existing file stays.")
@asks_json
def command(name: str | None, like: str | None, output: str | None, as_json: bool) -> int:
    """Write a commented topology file to start from.

    NAME is the machine's name; without it, the file's.
    """
    chosen = name or (Path(output).stem if output else "") or _USUAL
    if not _NAME.fullmatch(chosen) or "--" in chosen:
        if name:
            raise click.BadParameter(f"`{name}` is not a name like lab-box", param_hint="NAME")
        chosen = _USUAL
    text = _NAME_LINE.sub(f"name: {chosen}", _template(like), count=1)
    if output:
        if Path(output).exists():
            message = f"`{output}` is there already"
            raise TopoError(Finding("file-exists", message, help="choose another name"))
        write_file(output, text)
    if as_json:
        return put_document({"schema": "topo.new/1", "name": chosen, "file": output, "text": text})
    return put_text(f"wrote {output}\n" if output else text)


def _template(like: str | None) -> str:
    if like is None:
        return (files("topo.cli") / "starter.yaml").read_text(encoding="utf-8")
    from topo.description.loading import builtin_text

    return builtin_text(like)
