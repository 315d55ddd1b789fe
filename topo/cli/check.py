"""`topo check`: whether a file is right and what it expects comes out; how a host is set up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from topo.cli import verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.errors import Finding
    from topo.host.host_check import HostCheck
    from topo.study.check import Judgement
    from topo.views.text.page import Block

_THIS_HOST = "/"


@verb.command("topo check dgx-h100", "topo check --host", "topo check --host host.tar.gz")
@partial(verb.asks_machine, required=False)
@verb.asks_how
@click.option(
    "--host",
    metavar="[HOST]",
    is_flag=False,
    flag_value=_THIS_HOST,
    help="How this host is set up, or the one whose /sys is in a folder or archive.",
)
@verb.asks_json
def command(machine: verb.Machine, how: verb.How, host: str | None, as_json: bool) -> int:
    """Read a file, look for mistakes, and judge the sentences of its `expect:`.

    Prints one line when all is well. Exits with 1 when something is wrong or an expectation does
    not hold.

    With --host it is this very host instead, or a copy of one (a folder with its /sys, or what
    `topo import --host --bundle` packed): links, ACS, IOMMU, sizes of packets, BAR1, NUMA nodes,
    RDMA, drivers and governor, each with what it costs here in GB/s. Exits with 1 when something
    is set up worse than it could be.
    """
    if host is not None:
        if machine.file:
            raise click.UsageError("--host is about a host, and FILE about a machine: give one.")
        return _check_host(host, machine, how, as_json)
    if not machine.file:
        raise click.UsageError("Missing argument 'FILE'.")
    topology = machine.load()
    judgements: tuple[Judgement, ...] = ()
    if topology.description.expectations:
        from topo.study.check import check

        judgements = check(topology, **how.arguments(topology))
    broken: tuple[Finding, ...] = ()
    if not all(judgement.holds for judgement in judgements):
        from topo.views.sentences import broken_expectations

        broken = broken_expectations(judgements)
    findings = (*topology.findings, *broken)
    if as_json:
        from topo.views.documents import check_document

        return verb.put_document(check_document(topology, judgements), findings)
    from topo.views.findings import all_holds

    return verb.put_text("" if broken else all_holds(topology), findings)


# --- a host ---------------------------------------------------------------------------------------

_SHOWN_OF_IMPORT = ("broken-archive", "host-text-left-out", "hidden-switches", "gpu-off-fabric")


def _check_host(host: str, machine: verb.Machine, how: verb.How, as_json: bool) -> int:
    """Say how a host is set up, and what that costs."""
    from topo.discovery.importing import import_machine
    from topo.host.host_check import check_host
    from topo.host.this_host import read_host
    from topo.topology.build import build_topology

    verb.Session.answers_about(host)
    with verb.progress("commands") as progress:
        discovered, state = read_host(host, progress=progress)
    imported = import_machine(discovered)
    topology = build_topology(imported.description)
    if machine.overrides:
        topology = topology.replace(machine.overrides)
    is_guess = any(found.code == "guessed-storage" for found in imported.findings)
    whole = topology.without(*machine.without) if machine.without else topology
    outcome = check_host(whole, state, has_storage=not is_guess, at=how.at)
    of_import = [found for found in imported.findings if found.code in _SHOWN_OF_IMPORT]
    findings = (*of_import, *outcome.findings)
    if as_json:
        document = {
            "schema": "topo.host-check/1",
            "topology": topology.name,
            "well": outcome.is_well,
            "checked": [
                {
                    "subject": checked.subject,
                    "problems": [problem.code for problem in checked.problems],
                    "well": checked.well if checked.is_well else None,
                    "unknown": checked.unknown or None,
                }
                for checked in outcome.checked
            ],
        }
        return verb.put_document(document, findings) or int(not outcome.is_well)
    return verb.put_page(_host_page(outcome), findings) or int(not outcome.is_well)


def _host_page(outcome: HostCheck) -> Iterator[Block]:
    """Yield the outcome of each rule; what is wrong stands in the findings."""
    from topo.views.text.page import Cell, Heading, table, title_of, wide

    yield Heading(title_of(outcome.topology))
    rows = []
    for checked in outcome.checked:
        worst = [problem.code for problem in checked.problems if problem.severity == "warning"]
        if checked.problems:
            codes = ", ".join(dict.fromkeys(problem.code for problem in checked.problems))
            cell = Cell(codes, "bad" if worst else "warn")
        elif checked.is_well:
            cell = Cell("ok", "good")
        else:
            cell = Cell("unknown", "warn")
        words = checked.well if checked.is_well else checked.unknown
        rows.append((checked.subject, cell, words))
    yield table(("", wide(), wide()), rows)
