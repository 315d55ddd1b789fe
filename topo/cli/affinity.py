"""`topo affinity`: which card and which drive each GPU should use."""

from __future__ import annotations

from typing import Any

import click

from topo.cli.options import Machine, asks_json, asks_machine, example
from topo.cli.output import put_document, put_page

_RULES = ("nvidia-smi", "nccl", "gds")


@click.command(epilog=example("topo affinity dgx-h100", "topo affinity dgx-a100 --rules gds"))
@asks_machine
@click.option(
    "--rules",
    type=click.Choice(_RULES),
    default="nvidia-smi",
    show_default=True,
    help="Whose idea of near: nvidia-smi's classes, NCCL's paths, the GDS driver's ranking.",
)
@asks_json
def command(machine: Machine, rules: Any, as_json: bool) -> int:
    """Say which network card and which drive each GPU should use, and why.

    Cards that lead to storage and cards for compute (`role: compute`) are two questions. Where
    several are as near, the GPUs are dealt out so that each serves as many.
    """
    from topo.study.affinity import affinities

    topology = machine.load()
    found = affinities(topology, rules=rules)
    if as_json:
        from topo.views.documents import affinity_document

        return put_document(affinity_document(found), topology.findings)
    from topo.views.text.locality import affinity_page

    return put_page(affinity_page(found), topology.findings)
