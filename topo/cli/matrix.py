"""`topo matrix`: the locality of every pair, in the layout of ``nvidia-smi topo -m``."""

from __future__ import annotations

import click

from topo.cli import verb


@verb.command("topo matrix dgx-h100", "topo matrix dgx-h100 --rules nccl")
@verb.asks_machine
@click.option("--functions", is_flag=True, help="Each PCI function of a card has a row.")
@verb.choice(
    "--rules",
    verb.RULES,
    "Whose eyes: nvidia-smi's classes, NCCL's types and GB/s, the GDS driver's distances.",
)
@click.option("--release", metavar="NAME", help="Of NCCL, whose numbers to use: current, ...")
@click.option("--all", "every", is_flag=True, help="Every device, however many there are.")
@verb.asks_json
def command(
    *,
    machine: verb.Machine,
    functions: bool,
    rules: str,
    release: str | None,
    every: bool,
    as_json: bool,
) -> int:
    """Print the locality of every pair, as `nvidia-smi topo -m` does.

    GPUs first, then network cards, each in the order of their PCI addresses. Of many servers the
    first one's are shown, unless --all asks for the others.
    """
    if release is not None and rules != "nccl":
        raise click.UsageError("--release goes with --rules nccl.")
    if functions and rules != "nvidia-smi":
        raise click.UsageError("--functions goes with --rules nvidia-smi.")
    topology = machine.load()
    findings = (*topology.findings, *topology.stand_ins)
    if rules == "gds":
        from topo.topology.rules import gds_ranking
        from topo.views.documents import gds_document
        from topo.views.text.locality import gds_page

        ranking = gds_ranking(topology)
        if as_json:
            return verb.put_document(gds_document(topology, ranking), findings)
        return verb.put_page(gds_page(ranking), findings)
    from topo.topology.locality import matrix, matrix_rows, numa_nodes

    devices, left_out = matrix_rows(topology, every=every)
    findings = (*findings, *left_out)
    if rules == "nccl":
        from topo.topology.rules import NEWEST, nccl_matrix, nccl_numbers
        from topo.views.documents import nccl_document
        from topo.views.text.locality import nccl_page

        numbers = nccl_numbers(release or NEWEST)
        paths = nccl_matrix(topology, devices=devices, release=numbers.release)
        if as_json:
            return verb.put_document(nccl_document(topology, paths, numbers), findings)
        return verb.put_page(nccl_page(paths, numbers), findings)
    with verb.progress("pairs") as progress:
        classes = matrix(topology, devices=devices, functions=functions, progress=progress)
    numa = {row: numa_nodes(topology, row.partition("/")[0]) for row in classes}
    if as_json:
        from topo.views.documents import matrix_document

        return verb.put_document(matrix_document(topology, classes, numa=numa), findings)
    from topo.views.text.locality import matrix_page

    return verb.put_page(matrix_page(topology, classes, numa=numa), findings)
