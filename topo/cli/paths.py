"""`topo paths`: which data paths there are, and how each is laid."""

from __future__ import annotations

from topo.cli import verb


@verb.command("topo paths dgx-h100", "topo paths dgx-h100 --from storage --to gpu0 --via direct")
@verb.asks_machine
@verb.asks_host
@verb.asks_question
@verb.asks_how
@verb.asks_json
def command(machine: verb.Machine, question: verb.Question, how: verb.How, as_json: bool) -> int:
    """List the data paths and their verdicts, or the routes between two devices.

    Without ends: every data path with its moves, what it does to RAM, and whether the file's
    workloads can use it. With --from or --to: the links that the usual ones (legacy and direct), or
    each --via, walk, and what a payload byte uses.
    """
    from topo.study.compare import paths
    from topo.study.question import ask, usual_paths

    topology = machine.load()
    arguments = question.arguments()
    if question.by_ends:
        workload = ask(topology, question.source, question.target)
        topology = topology.telling_apart((workload,))
        if not question.via:
            arguments["via"] = usual_paths(topology, workload)
    arguments |= how.arguments(topology)
    with verb.progress("data paths") as progress:
        answers = paths(topology, **arguments, routes=question.by_ends, progress=progress)
    if as_json:
        from topo.views.documents import paths_document

        document = paths_document(topology, answers, basis=how.at, routes=question.by_ends)
        return verb.put_document(document, topology.findings)
    from topo.views.text.machine import paths_page, routes_page

    if question.by_ends:
        return verb.put_page(routes_page(topology, answers, basis=how.at), topology.findings)
    return verb.put_page(paths_page(topology, answers), topology.findings)
