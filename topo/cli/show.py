"""`topo show`: devices, links, resources, and where each number comes from."""

from __future__ import annotations

from topo.cli import verb


@verb.command("topo show dgx-h100")
@verb.asks_machine
@verb.asks_json
def command(machine: verb.Machine, as_json: bool) -> int:
    """Show devices, links and resources, each figure with its source.

    With --json the document holds the file as well, with every range expanded; topo.build reads
    it back.
    """
    topology = machine.load()
    if as_json:
        from topo.description.as_document import to_document
        from topo.views.documents import topology_document

        document = topology_document(topology, to_document(topology.description))
        return verb.put_document(document, topology.findings)
    from topo.views.text.machine import show_page

    return verb.put_page(show_page(topology), topology.findings)
