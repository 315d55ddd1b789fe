"""`topo import`: a topology file from what a machine or a tool says of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from topo.cli.options import asks_json, example, lists
from topo.cli.output import Session, put_document, put_text, write_file

_STDIN = "-"
_MOST_WORDS = 2


@click.command(
    epilog=example(
        "topo import nccl topo.xml -o server.yaml",
        "nvidia-smi topo -m | topo import -",
        "topo import sysfs / -o this-machine.yaml",
    )
)
@click.argument("words", metavar="[KIND] FILE", nargs=-1, required=True)
@click.option(
    "--storage",
    metavar="NIC",
    multiple=True,
    help="A card that leads to storage, by its name, RDMA name or PCI address "
    "(repeatable, or a,b).",
)
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@asks_json
def command(
    words: tuple[str, ...], storage: tuple[str, ...], output: str | None, as_json: bool
) -> int:
    """Make a topology file of what a machine or a tool says of itself.

    KIND is nccl (NCCL's or RCCL's XML), nvidia-smi (the text of `nvidia-smi topo -m`), hwloc (XML
    of lstopo), lspci (the text of `lspci -tv`, `-vvv` or `-nn`), sysfs (a folder or tar archive
    with a copy of /sys, or / for this machine) or rocm-smi (`--showtopo`); without it, it is
    guessed from what stands in FILE. What the source does not know is `unknown`; a storage target
    is a guess unless --storage says which cards lead to it.
    """
    if len(words) > _MOST_WORDS:
        raise click.UsageError("a KIND and a FILE, or a FILE alone.")
    kind, file = words if len(words) == _MOST_WORDS else (None, words[0])
    path = Path(file)
    Session.current().folder = str(path.parent) if path.is_absolute() else ""
    from topo.exchange import import_folder, import_text
    from topo.spec.loading import read_file

    if file != _STDIN and path.is_dir():
        found = import_folder(kind, path, file, storage=lists(storage))
    else:
        data = sys.stdin.buffer.read() if file == _STDIN else read_file(file)
        name = "<stdin>" if file == _STDIN else file
        found = import_text(kind, data, name, storage=lists(storage))
    if output:
        write_file(output, found.yaml)
    if as_json:
        document = {
            "schema": "topo.import/1",
            "kind": found.kind,
            "topology": found.spec.name,
            "left_out": list(found.sighting.left_out),
            "document": found.document,
            "yaml": found.yaml,
        }
        return put_document(document, found.findings)
    return put_text("" if output else found.yaml, found.findings)
