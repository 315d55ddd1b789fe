"""`topo matrix`: the locality of every pair, in the layout of ``nvidia-smi topo -m``."""

from __future__ import annotations

import click

from topo.cli.options import Machine, asks_json, asks_machine, example
from topo.cli.output import put_document, put_page


@click.command(epilog=example("topo matrix dgx-h100"))
@asks_machine
@click.option("--functions", is_flag=True, help="Each PCI function of a card has a row.")
@asks_json
def command(machine: Machine, functions: bool, as_json: bool) -> int:
    """Print the locality of every pair, as `nvidia-smi topo -m` does.

    GPUs first, then network cards, each in the order of their PCI addresses.
    """
    from topo.topology import matrix
    from topo.topology.numa import numa_nodes

    topology = machine.load()
    classes = matrix(topology, functions=functions)
    numa = {row: numa_nodes(topology, row.partition("/")[0]) for row in classes}
    if as_json:
        from topo.views.json.machine import matrix_document

        return put_document(matrix_document(topology, classes, numa=numa), topology.findings)
    from topo.views.text.machine import matrix_page

    return put_page(matrix_page(topology, classes, numa=numa), topology.findings)
