"""`topo sweep`: one question of many variants, kept in a file that it goes on from."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from topo.cli import verb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.description import Axis
    from topo.errors import Finding
    from topo.study.sweep import Sweep
    from topo.study.variants import Outcome
    from topo.sweeps.engines import Engine


@verb.command(
    "topo sweep gds-textbook --vary 'ram.bus=100 GB/s,200 GB/s' --vary via=legacy,direct",
    "topo sweep dgx-h100 --via legacy-pageable --vary ram.channels=2,4,8 --against ram.channels",
    "topo sweep dgx-h100 --vary slot1.part=connectx-7-dual-port,connectx-8 --json",
)
@verb.asks_machine
@click.option(
    "varied",
    "--vary",
    metavar="KEY=A,B",
    multiple=True,
    help="An axis: a key of --set, or workload, via, at, nics, routes, pairing, and its values "
    "(repeatable; those of the file's `sweep:` where there is none).",
)
@verb.asks_question
@click.option(
    "outputs",
    "-o",
    "--output",
    metavar="FILE",
    multiple=True,
    help="Rows as FILE.csv, .jsonl or .parquet, which the same command goes on with; or a picture "
    "of the front: FILE.svg, .png, .pdf (repeatable).",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Answer in so many processes of this machine."
)
@click.option(
    "engine_address", "--engine", metavar="URL", help="Answer on a Dask cluster: dask://host:8786."
)
@click.option(
    "--aim", type=click.Choice(["time", "rate"]), help="What is best; the time where it is known."
)
@click.option(
    "--against",
    metavar="WHAT",
    default="",
    help="What a design shall take little of: cost (by default), or an axis of numbers.",
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Rows to show.")
@verb.choice("--theme", verb.THEMES, "Of the picture.")
@verb.asks_how
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    varied: tuple[str, ...],
    question: verb.Question,
    outputs: tuple[str, ...],
    workers: int | None,
    engine_address: str | None,
    aim: Any,
    against: str,
    top: int,
    theme: str,
    how: verb.How,
    as_json: bool,
) -> int:
    """Answer one question of many designs, and say which is best and what each price buys.

    Every combination of the values is a design and a row; one that cannot be is a row with the
    reason. Figures are those of `topo compare` with the same --set.
    """
    from topo.study.front import check_against, may_cost, swept
    from topo.study.sweep import axis_of, planned
    from topo.study.variants import Question

    if workers is not None and engine_address is not None:
        raise click.UsageError("--workers and --engine both say who answers: give one.")
    store_path, pictures = _outputs(outputs, machine)
    topology = machine.load()
    axes = [_axis(text) for text in varied] or list(topology.description.axes)
    via = question.via
    if via:  # what is named here goes before what the axes say
        axes = [axis for axis in axes if axis.name != "via"]
    if len(via) > 1:
        axes.append(axis_of("via", via))
    asked = Question(
        question.workload or "",
        via[0] if len(via) == 1 else "",
        question.source,
        question.target,
        question.needs,
        question.checkpoint,
        **how.arguments(topology),
    )
    sweep = planned(topology, axes, asked)
    if against:
        check_against(sweep, against)
    if pictures and not against and not may_cost(sweep):
        from topo.views.diagram.front import no_front

        raise no_front()
    outcomes, notes = _answered(sweep, store_path, _engine(workers, engine_address))
    found = swept(sweep, outcomes, aim=aim, against=against)
    for picture in pictures:
        from topo.views.diagram.front import draw_front

        draw_front(found, theme=theme).write(picture)
    findings = (*topology.findings, *notes)
    if as_json:
        from topo.views.documents import sweep_document

        return verb.put_document(sweep_document(found), findings)
    from topo.views.text.sweep import sweep_page

    return verb.put_page(sweep_page(found, most=top), findings)


def _axis(text: str) -> Axis:
    from topo.study.sweep import axis_of, split_values

    key, sign, values = text.partition("=")
    if not sign or not key.strip():
        raise click.BadParameter(f"`{text}` is not KEY=A,B", param_hint="'--vary'")
    return axis_of(key.strip(), split_values(values))


def _outputs(outputs: Iterable[str], machine: verb.Machine) -> tuple[str, list[str]]:
    """Return the file for rows, if there is one, and those for pictures."""
    from topo.files import spare_inputs
    from topo.sweeps.store import SUFFIXES, require_parquet
    from topo.views.diagram.picture import FORMATS

    store = ""
    pictures: list[str] = []
    for output in outputs:
        spare_inputs(output, machine.files)
        suffix = PurePath(output).suffix
        if suffix not in SUFFIXES:
            if suffix.lower() not in FORMATS:
                expected = " ".join((*SUFFIXES, *FORMATS))
                message = f"`{output}` is neither for rows nor a picture: one of {expected}"
                raise click.BadParameter(message, param_hint="'-o'")
            pictures.append(output)
            continue
        if store:
            raise click.UsageError("rows go into one file: give one of .csv, .jsonl or .parquet.")
        store = output
    if store.endswith(".parquet"):
        require_parquet()
    return store, pictures


def _engine(workers: int | None, address: str | None) -> Engine:
    from topo.sweeps import engines

    if address is not None:
        return engines.dask(address)
    return engines.processes(workers) if workers is not None else engines.here


def _answered(
    sweep: Sweep, path: str, engine: Engine
) -> tuple[dict[int, Outcome], tuple[Finding, ...]]:
    """Return what came of all designs, kept in a file where one is named."""
    from contextlib import nullcontext

    from topo.errors import Finding
    from topo.sweeps.engines import answer_all
    from topo.sweeps.store import Store, write_parquet

    parquet = path.endswith(".parquet")
    rows_path = f"{path}.rows.jsonl" if parquet else path
    with Store(sweep, rows_path) if path else nullcontext() as store:
        outcomes: dict[int, Outcome] = dict(store.known) if store else {}
        left = [number for number in range(sweep.count) if number not in outcomes]
        kept = sweep.count - len(left)
        try:
            with verb.progress("designs", unit="designs") as progress:
                done = 0
                for answered in answer_all(sweep, left, engine) if left else ():
                    if store:
                        store.append(answered)
                    outcomes.update(answered)
                    done += len(answered)
                    progress(done, len(left))
        except KeyboardInterrupt:
            if outcomes and store:
                message = f"{len(outcomes):,} of {sweep.count:,} designs are in `{rows_path}`"
                advice = "the same command goes on from there"
                stopped = Finding("sweep-interrupted", message, severity="note", help=advice)
                verb.put_text("", [stopped])
            raise
        if store:
            store.finish()
    if parquet:
        write_parquet(sweep, path, outcomes)
    if not kept:
        return outcomes, ()
    message = f"{kept:,} of {sweep.count:,} designs were in `{rows_path}` already"
    return outcomes, (Finding("sweep-resumed", message, severity="note"),)
