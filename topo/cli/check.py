"""`topo check`: whether a file is right and what it expects comes out; how a host is set up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.errors import CertificateError, TopoError
from topo.files import STANDARD_INPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.errors import Finding
    from topo.host.host_check import HostCheck
    from topo.study.check import Judgement
    from topo.topology.topology import Topology
    from topo.views.ci import CheckedFile
    from topo.views.text.page import Block

_THIS_HOST = "/"
_FORMATS = ("github", "sarif", "junit")


@verb.command(
    "topo check dgx-h100",
    "topo check dgx-h100 gds-textbook --format junit",
    "topo check --host",
    "topo check --host host.tar.gz",
)
@partial(verb.asks_machine, required=False, many=True)
@verb.asks_how
@click.option(
    "--host",
    metavar="[HOST]",
    is_flag=False,
    flag_value=_THIS_HOST,
    help="How this host is set up, or the one whose /sys is in a folder or archive.",
)
@click.option(
    "format_",
    "--format",
    type=click.Choice(_FORMATS),
    help="What a CI system reads: annotations of GitHub, SARIF 2.1.0, JUnit's XML.",
)
@verb.asks_json
def command(
    machines: tuple[verb.Machine, ...],
    how: verb.How,
    host: str | None,
    format_: str | None,
    as_json: bool,
) -> int:
    """Read a file, look for mistakes, and judge the sentences of its `expect:`.

    Prints one line for each file when all is well. Exits with 1 when something is wrong or an
    expectation does not hold; a file with mistakes does not keep the next from being checked.

    With --host it is this very host instead, or a copy of one (a folder with its /sys, or what
    `topo import --host --bundle` packed): links, ACS, IOMMU, sizes of packets, BAR1, NUMA nodes,
    RDMA, drivers and governor, each with what it costs here in GB/s. Exits with 1 when something
    is set up worse than it could be.
    """
    named = [machine for machine in machines if machine.file]
    if format_ and (as_json or host is not None):
        raise click.UsageError("--format goes with neither --json nor --host.")
    if host is not None:
        if named:
            raise click.UsageError("--host is about a host, and FILE about a machine: give one.")
        return _check_host(host, machines[0], how, as_json)
    if not named:
        raise click.UsageError("Missing argument 'FILE'.")
    if [machine.file for machine in named].count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be one file only.")
    several = len(named) > 1
    if not several and not format_:
        return _put_alone(*_checked(named[0], how), as_json=as_json)
    outcomes = [_outcome(machine, how) for machine in named]
    findings = tuple(finding for checked, _ in outcomes for finding in checked.findings)
    code = int(any(finding.severity == "error" for finding in findings))
    if as_json:
        from topo.views.documents import check_document, findings_document

        documents = [
            {
                "file": checked.name,
                **findings_document(checked.findings),
                **(check_document(topology, checked.judgements) if topology else {}),
            }
            for checked, topology in outcomes
        ]
        return verb.put_document({"schema": "topo.checks/1", "files": documents}) or code
    if format_:
        # GitHub reads what both streams say: there each is said once.
        beside = () if format_ == "github" else findings
        text = _formatted(format_, [checked for checked, _ in outcomes])
        return verb.put_text(text, beside) or code
    from topo.views.findings import all_holds

    held = (
        all_holds(topology, file=checked.name)
        for checked, topology in outcomes
        if topology and not any(finding.severity == "error" for finding in checked.findings)
    )
    return verb.put_text("".join(held), findings)


def _checked(
    machine: verb.Machine, how: verb.How
) -> tuple[Topology, tuple[Judgement, ...], tuple[Finding, ...]]:
    """Return a machine, what became of its expectations, and what was found."""
    topology = machine.load()
    judgements: tuple[Judgement, ...] = ()
    if topology.description.expectations:
        from topo.study.check import check

        judgements = check(topology, **how.arguments(topology))
    broken: tuple[Finding, ...] = ()
    if not all(judgement.holds for judgement in judgements):
        from topo.views.sentences import broken_expectations

        broken = broken_expectations(judgements)
    return topology, judgements, (*topology.findings, *broken)


def _outcome(machine: verb.Machine, how: verb.How) -> tuple[CheckedFile, Topology | None]:
    """Return what was found in one of several files, whatever is in it."""
    from topo.views.ci import CheckedFile

    name = "<stdin>" if machine.file == STANDARD_INPUT else machine.file
    try:
        topology, judgements, findings = _checked(machine, how)
    except CertificateError:  # a fault of topo, and of no file
        raise
    except TopoError as error:
        return CheckedFile(name, error.findings), None
    return CheckedFile(name, findings, judgements), topology


def _put_alone(
    topology: Topology,
    judgements: tuple[Judgement, ...],
    findings: tuple[Finding, ...],
    *,
    as_json: bool,
) -> int:
    if as_json:
        from topo.views.documents import check_document

        document = check_document(topology, judgements)
        return verb.put_document(document, findings, keeps=True)
    from topo.views.findings import all_holds

    wrong = any(finding.severity == "error" for finding in findings)
    return verb.put_text("" if wrong else all_holds(topology), findings)


def _formatted(format_: str, files: list[CheckedFile]) -> str:
    from topo.views import ci

    if format_ == "github":
        return ci.github(files)
    if format_ == "junit":
        return ci.junit(files)
    from topo.views.json import encoded

    return encoded(ci.sarif(files))


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
    outcome = check_host(whole, state, has_storage=not is_guess, **how.arguments(whole))
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
