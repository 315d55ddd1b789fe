"""`topo show`: devices, links, resources, and where each number comes from."""

from __future__ import annotations

import click

from topo.cli.options import Machine, asks_json, asks_machine, example
from topo.cli.output import put_document, put_page


@click.command(epilog=example("topo show dgx-h100"))
@asks_machine
@asks_json
def command(machine: Machine, as_json: bool) -> int:
    """Show devices, links and resources, each figure with its source.

    With --json the document holds the file as well, with every range expanded; topo.build reads
    it back.
    """
    topology = machine.load()
    if as_json:
        from topo.description.dump import to_document
        from topo.views.documents import topology_document

        document = topology_document(topology, to_document(topology.description))
        return put_document(document, topology.findings)
    from topo.views.text.machine import show_page

    return put_page(show_page(topology), topology.findings)
