"""`topo import`: a topology file from what a machine or a tool says of itself."""

from __future__ import annotations

from pathlib import Path

import click

from topo.cli import verb
from topo.files import STANDARD_INPUT, spare_inputs, write_file

_MOST_WORDS = 2
_AND = "--and"


class _Import(click.Command):
    """A command whose `--and` takes a KIND and a FILE, or a FILE alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each `--and` both its values, an empty KIND where none is written."""
        from topo.discovery.importing import KINDS

        completed: list[str] = []
        left = list(reversed(args))
        while left:
            word = left.pop()
            name, _, glued = word.partition("=")
            if name != _AND:
                completed.append(word)
                continue
            if not (glued or left):
                raise click.UsageError("--and needs a FILE.")
            first = glued or left.pop()
            kind = (
                first in KINDS
                and bool(left)
                and (left[-1] == STANDARD_INPUT or left[-1][:1] != "-")
            )
            completed += [_AND, first, left.pop()] if kind else [_AND, "", first]
        return super().parse_args(ctx, completed)


@verb.command(
    "topo import nccl topo.xml -o server.yaml",
    "nvidia-smi topo -m | topo import -",
    "topo import sysfs / -o this-machine.yaml",
    "topo import nccl topo.xml --and nvidia-smi matrix.txt",
    cls=_Import,
)
@click.argument("words", metavar="[KIND] FILE", nargs=-1, required=True)
@click.option(
    "--storage",
    metavar="NIC",
    multiple=True,
    help="A card that leads to storage, by its name, RDMA name or PCI address "
    "(repeatable, or a,b).",
)
@click.option(
    _AND,
    "others",
    metavar="[KIND] FILE",
    nargs=2,
    multiple=True,
    help="A further source of the same machine (repeatable): it fills the gaps of the first, "
    "and where the two contradict each other, that is said.",
)
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@verb.asks_json
def command(
    words: tuple[str, ...],
    storage: tuple[str, ...],
    others: tuple[tuple[str, str], ...],
    output: str | None,
    as_json: bool,
) -> int:
    """Make a topology file of what a machine or a tool says of itself.

    KIND is nccl (NCCL's or RCCL's XML), nvidia-smi (the text of `nvidia-smi topo -m`), hwloc (XML
    of lstopo), lspci (the text of `lspci -tv`, `-vvv` or `-nn`), sysfs (a folder or tar archive
    with a copy of /sys, or / for this machine), rocm-smi (`--showtopo`) or infragraph (YAML of
    hosts and the network between them); without it, it is guessed from what stands in FILE. What
    the source does not know is `unknown`; a storage target is a guess unless --storage says which
    cards lead to it.
    """
    if len(words) > _MOST_WORDS:
        raise click.UsageError("a KIND and a FILE, or a FILE alone.")
    kind, file = words if len(words) == _MOST_WORDS else ("", words[0])
    sources = [(kind, file), *others]
    if [file for _, file in sources].count(STANDARD_INPUT) > 1:
        raise click.UsageError("only one FILE can be standard input.")
    verb.Session.answers_about(file)
    from topo.description.locating import read_file
    from topo.discovery.importing import discover, discover_folder, import_together

    machines = []
    with verb.progress("sources") as progress:
        for kind, file in sources:
            if file != STANDARD_INPUT and Path(file).is_dir():
                machines.append(discover_folder(kind or None, Path(file), file))
            else:
                name = "<stdin>" if file == STANDARD_INPUT else file
                machines.append(discover(kind or None, read_file(file), name))
            progress(len(machines), len(sources) + 1)  # and what is made of them
        imported = import_together(machines, storage=verb.lists(storage))
    if output:
        spare_inputs(output, (file for _, file in sources))
        write_file(output, imported.yaml)
    if as_json:
        document = {
            "schema": "topo.import/1",
            "kind": imported.kind,
            "topology": imported.description.name,
            "together": list(imported.machine.together),
            "left_out": list(imported.machine.left_out),
            "document": imported.document,
            "yaml": imported.yaml,
        }
        return verb.put_document(document, imported.findings)
    return verb.put_text("" if output else imported.yaml, imported.findings)
