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
    workloads can use it. With --from, --to or a model: the links that the usual ones (legacy and
    direct), or each --via, walk, and what a payload byte uses.
    """
    from topo.study.compare import paths
    from topo.study.question import asked_workloads, usual_paths

    topology = machine.load()
    arguments = question.arguments()
    in_full = question.by_ends or bool(question.model)
    if in_full:
        via = arguments.pop("via")
        workload = asked_workloads(topology, arguments.pop("workload"), **arguments)[0]
        topology = topology.telling_apart((workload,))
        arguments = {"workload": workload, "via": via or usual_paths(topology, workload)}
    arguments |= how.arguments(topology)
    with verb.progress("data paths") as progress:
        answers = paths(topology, **arguments, routes=in_full, progress=progress)
    if as_json:
        from topo.views.documents import paths_document

        document = paths_document(topology, answers, basis=how.at, routes=in_full)
        return verb.put_document(document, topology.findings)
    from topo.views.text.machine import paths_page, routes_page

    if in_full:
        return verb.put_page(routes_page(topology, answers, basis=how.at), topology.findings)
    return verb.put_page(paths_page(topology, answers), topology.findings)
