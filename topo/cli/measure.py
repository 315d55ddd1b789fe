"""`topo measure`: measured rates into a topology file, beside what topo expected."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from topo.cli.options import asks_json, example, lists
from topo.cli.output import Session, put_document, put_page
from topo.files import write_file

if TYPE_CHECKING:
    from topo.measuring.measure import Measured

_STDIN = "-"
_KINDS = ("nvbandwidth", "fio", "gdsio", "perftest")


@click.command(
    epilog=example(
        "topo measure dgx-h100 nvbandwidth.json -o server.yaml",
        "topo measure server.yaml gdsio.txt --storage storage --gpus gpu2 --date 2026-11-29",
    )
)
@click.argument("file", metavar="FILE")
@click.argument("result", metavar="RESULT")
@click.option("--kind", type=click.Choice(_KINDS), help="Of RESULT; told by its content if absent.")
@click.option("-o", "--output", metavar="OUT", help="Write there and leave FILE as it is.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option("--date", metavar="DAY", default="", help="When it was measured: 2026-11-29.")
@click.option(
    "--gpus", metavar="GPU", multiple=True, help="RESULT's GPUs in its order (repeatable, or a,b)."
)
@click.option("--nic", metavar="NIC", default="", help="The card that was measured.")
@click.option(
    "--storage",
    metavar="DEVICE",
    multiple=True,
    help="The storage that was measured (repeatable, or a,b).",
)
@asks_json
def command(
    *,
    file: str,
    result: str,
    kind: str | None,
    output: str | None,
    dry_run: bool,
    date: str,
    gpus: tuple[str, ...],
    nic: str,
    storage: tuple[str, ...],
    as_json: bool,
) -> int:
    """Put measured rates into a file, beside what topo expected.

    RESULT is what nvbandwidth --json, fio --output-format=json, gdsio or perftest (ib_write_bw)
    printed. Its rates become `measured:` lines of FILE, whose comments and layout stay; a rate
    for a pair that is there replaces it. Then `topo compare FILE --at measured` uses them.
    """
    if date and not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise click.BadParameter(f"`{date}` is no day like 2026-11-29", param_hint="--date")
    if _STDIN in (file, result) and file == result:
        raise click.UsageError("one of FILE and RESULT is -, not both.")
    path = PurePath(file)
    Session.current().folder = str(path.parent) if path.is_absolute() else ""
    from topo.measuring.measure import measure
    from topo.topology.build import load, loads

    text, name, broken = _text_of(file)
    topology = loads(text, name=name) if file == _STDIN else load(file)
    data = sys.stdin.buffer.read() if result == _STDIN else _bytes_of(result)
    found = measure(
        topology,
        data,
        name="<stdin>" if result == _STDIN else result,
        kind=kind,
        gpus=lists(gpus),
        nic=nic,
        storage=lists(storage),
        date=date,
    )
    written = found.over(text, name=name)
    target = output or (file if _is_file(file) else "")
    said = _said(found, target, dry_run=dry_run)
    if target and not dry_run and (output or found.lines):
        write_file(target, written.replace("\n", "\r\n") if broken else written)
    return _show(found, said, as_json=as_json)


def _show(found: Measured, said: str, *, as_json: bool) -> int:
    findings = (*found.topology.findings, *found.findings)
    if as_json:
        from topo.views.documents import measured_document

        document = measured_document(
            found.topology, found.kind, found.readings, found.lines, found.unmapped
        )
        return put_document(document, findings)
    from topo.views.text.answers import measured_page

    page = measured_page(found.topology, found.readings, found.unmapped, said)
    return put_page(page, findings)


def _said(found: Measured, target: str, *, dry_run: bool) -> str:
    """Return the sentence about what was written."""
    count = len(found.lines)
    what = f"{count} measured rate{'s' * (count != 1)}"
    if not count:
        return "Nothing to write."
    if dry_run:
        return f"Nothing was written; {what} would be."
    if not target:
        return f"Nothing was written: name a file for {what} with -o."
    return f"Wrote {what} to {target}."


def _is_file(file: str) -> bool:
    from topo.description.loading import is_path

    return file != _STDIN and is_path(file)


def _bytes_of(file: str) -> bytes:
    from topo.description.loading import read_file

    return read_file(file)


def _text_of(file: str) -> tuple[str, str, bool]:
    """Return a topology's text, what messages call it, and whether its lines end as Windows'."""
    from topo.description.loading import builtin_text
    from topo.document.text import read_text

    if file == _STDIN:
        data, name = sys.stdin.buffer.read(), "<stdin>"
    elif _is_file(file):
        data, name = _bytes_of(file), file
    else:
        data, name = builtin_text(file).encode(), f"topologies/{file}.yaml"
    return read_text(data, name), name, b"\r\n" in data
