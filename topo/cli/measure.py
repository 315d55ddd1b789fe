"""`topo measure`: measured rates into a topology file, beside what topo expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.files import STANDARD_INPUT, spare_inputs, write_file
from topo.phrases import counted

if TYPE_CHECKING:
    from topo.measuring.results import Results

_KINDS = (
    "nvbandwidth",
    "fio",
    "gdsio",
    "perftest",
    "nccl-tests",
    "p2pBandwidthLatencyTest",
    "bandwidthTest",
    "rocm-bandwidth-test",
    "TransferBench",
    "ior",
    "elbencho",
    "dlio",
)


@verb.command(
    "topo measure dgx-h100 nvbandwidth.json -o server.yaml",
    "topo measure server.yaml gdsio.txt --storage storage --gpus gpu2 --date 2026-11-29",
    "topo measure server.yaml --host --dry-run",
)
@click.argument("file", metavar="FILE", shell_complete=verb.completes("machines"))
@click.argument("result", metavar="[RESULT]", required=False)
@click.option("--host", is_flag=True, help="Measure this very host, which FILE describes.")
@click.option(
    "--read",
    "reads",
    metavar="PATH",
    multiple=True,
    help="With --host, a drive or file to read in sequence (repeatable). It is never written.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    help="With --host, the longest that it may take.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    default="",
    help="With --host, the most RAM for buffers: '2 GB'; a quarter of what is free by default.",
)
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    metavar="PROGRAM",
    help="The only one to read of RESULT; all that its content shows if absent.",
)
@click.option("-o", "--output", metavar="OUT", help="Write there and leave FILE as it is.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option("--date", metavar="DAY", default="", help="When it was measured: 2026-11-29.")
@click.option(
    "--gpus",
    metavar="GPU",
    multiple=True,
    help="RESULT's GPUs in its order (repeatable, or a,b).",
    shell_complete=verb.completes("devices"),
)
@click.option(
    "--nic",
    metavar="NIC",
    default="",
    help="The card that was measured.",
    shell_complete=verb.completes("devices"),
)
@click.option(
    "--storage",
    metavar="DEVICE",
    multiple=True,
    help="The storage that was measured (repeatable, or a,b).",
    shell_complete=verb.completes("devices"),
)
@verb.asks_json
def command(
    *,
    file: str,
    result: str | None,
    host: bool,
    reads: tuple[str, ...],
    seconds: float,
    memory: str,
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

    RESULT is what one of these printed: nvbandwidth, p2pBandwidthLatencyTest, bandwidthTest,
    rocm-bandwidth-test, TransferBench; fio, gdsio, ior, elbencho, DLIO (summary.json); perftest
    (ib_write_bw); nccl-tests or rccl-tests (all_reduce_perf); or several one after the other. Its
    rates become `measured:` lines of FILE, whose comments and layout stay; a rate for a pair that
    is there replaces it. Then `topo compare FILE --at measured` uses them. The busbw of a
    collective is compared only.

    With --host this host is measured, in place of a RESULT: pinned and pageable copies of each
    NVIDIA GPU both ways, each pair of GPUs, all at once, copies by cores, and reads of what --read
    names, by O_DIRECT and out of the page cache. Nothing is written but FILE, or OUT.
    """
    if host == (result is not None):
        raise click.UsageError("name a RESULT, or measure this host with --host; not both.")
    if not host and (reads or memory):
        raise click.UsageError("--read and --memory go with --host.")
    if date and not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise click.BadParameter(f"`{date}` is no day like 2026-11-29", param_hint="--date")
    if STANDARD_INPUT in (file, result) and file == result:
        raise click.UsageError("one of FILE and RESULT is -, not both.")
    verb.Session.answers_about(file)
    from topo.description.locating import builtin_text, is_path, read_file
    from topo.document.text import read_text
    from topo.measuring.measure import laid_over
    from topo.topology.build import load, loads

    is_file = file != STANDARD_INPUT and is_path(file)
    if file == STANDARD_INPUT:
        content, name = read_file(file), "<stdin>"
    elif is_file:
        content, name = read_file(file), file
    else:
        content, name = builtin_text(file).encode(), f"topologies/{file}.yaml"
    text = read_text(content, name)
    topology = loads(text, name=name) if file == STANDARD_INPUT else load(file)
    results = _measured_here(reads, seconds, memory) if result is None else _read(result, kind)
    measured = laid_over(
        topology,
        results,
        gpus=verb.lists(gpus),
        nic=nic,
        storage=verb.lists(storage),
        date=date,
    )
    written = measured.over(text, name=name)
    output = output or (file if is_file and measured.lines else "")
    if output and not dry_run:
        spare_inputs(output, (result or STANDARD_INPUT, *reads))
        # Lines end as they did: on Windows with a carriage return.
        in_place = is_file and Path(output).exists() and Path(output).samefile(file)
        lines = written.replace("\n", "\r\n") if b"\r\n" in content else written
        write_file(output, lines, was=content if in_place else None)
    findings = (*measured.topology.findings, *measured.findings)
    if as_json:
        from topo.views.documents import measured_document

        document = measured_document(
            topology, measured.kind, measured.readings, measured.lines, measured.unmapped
        )
        return verb.put_document(document, findings)
    from topo.views.text.answers import measured_page

    outcome = _outcome(len(measured.lines), output, dry_run=dry_run)
    page = measured_page(topology, measured.readings, measured.unmapped, outcome)
    return verb.put_page(page, findings)


def _read(result: str, kind: str | None) -> tuple[Results, ...]:
    """Return what a result file tells."""
    from topo.description.locating import read_file
    from topo.measuring.result_files import read_results

    return read_results(kind, read_file(result), "<stdin>" if result == STANDARD_INPUT else result)


def _measured_here(reads: tuple[str, ...], seconds: float, memory: str) -> Results:
    """Return what this host was measured to do."""
    from topo.errors import UnitError
    from topo.measuring.probe.plan import probe
    from topo.units import parse_size

    try:
        most = int(parse_size(memory, positive=True)) if memory else None
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    with verb.progress("tests") as progress:
        return probe(reads=reads, seconds=seconds, memory=most, progress=progress)


def _outcome(count: int, output: str, *, dry_run: bool) -> str:
    """Return the sentence about what was written."""
    rates = counted(count, "measured rate")
    if not count:
        return "Nothing to write."
    if dry_run:
        return f"Nothing was written; {rates} would be."
    if not output:
        return f"Nothing was written: name a file for {rates} with -o."
    return f"Wrote {rates} to {output}."
