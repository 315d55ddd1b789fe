"""`topo diff`: two machines side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.errors import TopoError

if TYPE_CHECKING:
    from topo.errors import Finding
    from topo.topology.topology import Topology

_FAILING = ("slower", "refused", "changed")


@verb.command(
    "topo diff dgx-a100 dgx-h100 --workload load",
    "topo diff gds-textbook --set slot.part=connectx-8-dual-port",
    "topo diff pod-32 --without node3 --via direct --markdown",
    "topo diff gds-textbook gds-textbook --fail-on slower --json",
)
@verb.asks_machine
@click.argument(
    "other", metavar="[OTHER]", required=False, shell_complete=verb.completes("machines")
)
@verb.asks_question
@verb.asks_how
@click.option(
    "--fail-on",
    metavar="WORDS",
    multiple=True,
    callback=lambda _ctx, option, values: _words(values, option),
    help="Exit with 1 if an answer is `slower` or `refused` after, or anything is `changed` "
    "(repeatable, or a,b).",
)
@verb.asks_markdown
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    other: str | None,
    question: verb.Question,
    how: verb.How,
    fail_on: tuple[str, ...],
    as_json: bool,
) -> int:
    """Say what differs between two machines, and what it does to the answers.

    FILE is before, OTHER after; --set and --without change what is after, and without OTHER that
    is FILE. Devices, links and figures with their sources, then every answer side by side, and
    why it is faster or slower.
    """
    if other is None and not machine.overrides and not machine.without:
        raise click.UsageError("say what to compare with: another file, --set or --without")
    if other == machine.file == "-":
        raise click.UsageError("standard input holds one machine: give a file for the other")
    verb.Session.answers_about(machine.file, other or "")
    from topo.study.diff import diff

    before, after = _both(machine, other)
    result = diff(before, after, **question.arguments(), **how.arguments(after))
    findings = tuple(dict.fromkeys((*before.findings, *after.findings, *result.findings)))
    failed = {
        "slower": bool(result.slower),
        "refused": bool(result.refused),
        "changed": result.changed,
    }
    code = int(any(failed[word] for word in fail_on))
    if as_json:
        from topo.views.documents import diff_document

        document = diff_document(result, tuple(word for word in fail_on if failed[word]))
        return verb.put_document(document, findings) or code
    from topo.views.text.diff import diff_page, nothing_differs

    if not result.changed:
        return verb.put_text(nothing_differs(result), findings)
    return verb.put_page(diff_page(result), findings) or code


def _both(machine: verb.Machine, other: str | None) -> tuple[Topology, Topology]:
    """Return the machine before and after, or raise everything that is wrong with either."""
    first = replace(machine, overrides={}, without=())
    loaded: list[Topology] = []
    wrong: list[Finding] = []
    for side in (first, replace(machine, file=other) if other is not None else machine):
        try:
            whole = None
            if other is None and loaded:  # standard input is read once
                whole = loaded[0].replace(side.overrides) if side.overrides else loaded[0]
            loaded.append(side.load(whole))
        except TopoError as error:
            wrong += error.findings
            if other is None:
                break
    if wrong:
        raise TopoError(dict.fromkeys(wrong))
    return loaded[0], loaded[1]


def _words(values: tuple[str, ...], option: click.Parameter) -> tuple[str, ...]:
    words = verb.lists(values)
    for word in words:
        if word not in _FAILING:
            known = ", ".join(_FAILING)
            raise click.BadParameter(f"`{word}` is not one of {known}", param=option)
    return words
