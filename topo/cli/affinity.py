"""`topo affinity`: which card and which drive each GPU should use."""

from __future__ import annotations

from typing import Any

from topo.cli import verb


@verb.command("topo affinity dgx-h100", "topo affinity dgx-a100 --rules gds")
@verb.asks_machine
@verb.choice(
    "--rules",
    verb.RULES,
    "Whose idea of near: nvidia-smi's classes, NCCL's paths, the GDS driver's ranking.",
)
@verb.asks_json
def command(machine: verb.Machine, rules: Any, as_json: bool) -> int:
    """Say which network card and which drive each GPU should use, and why.

    Cards that lead to storage and cards for compute (`role: compute`) are two questions. Of
    those as near, one with RDMA goes first, then the faster; where several are as good, the GPUs
    are dealt out so that each serves as many.
    """
    from topo.study.affinity import affinities

    topology = machine.load()
    findings = (*topology.findings, *topology.stand_ins)
    affinity = affinities(topology, rules=rules)
    if as_json:
        from topo.views.documents import affinity_document

        return verb.put_document(affinity_document(affinity), findings)
    from topo.views.text.locality import affinity_page

    return verb.put_page(affinity_page(affinity), findings)
