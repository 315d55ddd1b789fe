"""What came out of a question, as documents: compare, bottleneck, paths and routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.study.lengths import links_range
from topo.study.words import class_words
from topo.views.json.shares import explanation_document
from topo.views.json.values import figure_document, place_document, resource_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.datapaths.registry import Counts
    from topo.description.description import Basis, Move, Workload
    from topo.routes.route import Reason, Route, Subflow, Transfer
    from topo.study import (
        AtOnce,
        Bottleneck,
        Comparison,
        Explanation,
        Ladder,
        PathAnswer,
        PathSurvey,
        RoutedPath,
        Rung,
        WorkloadAnswer,
    )
    from topo.topology.topology import Topology


def comparison_document(found: Comparison, meeting: AtOnce | None = None) -> dict[str, Any]:
    """Return ``topo.compare/1``: every workload by every data path.

    `meeting` adds when each is done if all run at once, as ``together``.
    """
    return {
        "schema": "topo.compare/1",
        "topology": found.topology.name,
        "basis": found.basis,
        "policy": {
            "nics": found.policy.nics,
            "routes": found.policy.routes,
            "buffers": dict(found.policy.buffers),
        },
        "workloads": [_workload_answer(answer, found.basis) for answer in found.workloads],
        "together": _meeting(meeting) if meeting else None,
    }


def bottleneck_document(
    topology: Topology, found: Ladder, explained: Explanation | None = None
) -> dict[str, Any]:
    """Return ``topo.bottleneck/1``: what binds one workload by one data path, and what is next.

    `explained` adds who gets what, what is used by whom, and prices.
    """
    path = found.answer
    return {
        "schema": "topo.bottleneck/1",
        "topology": topology.name,
        "basis": found.basis,
        "workload": found.workload.name,
        "direction": found.workload.direction,
        **_size(found.workload),
        "data_path": path.name,
        "verdict": path.verdict,
        "reasons": [_reason(reason) for reason in path.reasons],
        "rate_bytes_per_s": path.rate,
        "at_most": path.at_most,
        "time_s": path.time,
        "bottlenecks": _bottlenecks(path, found.basis),
        "own_limits": list(path.own_limits),
        "rates_by_gpu_bytes_per_s": dict(path.rates),
        "ladder": [_rung(rung, found.basis) for rung in found.rungs],
        "ladder_end": found.end,
        **(
            explanation_document(explained)
            if explained
            else {"demands": [], "resources": [], "prices": None}
        ),
        "unknown": list(path.unknowns),
    }


def paths_document(
    topology: Topology, found: Sequence[PathSurvey], *, basis: Basis, routes: bool = False
) -> dict[str, Any]:
    """Return ``topo.paths/1``: data paths with their moves, counts and verdicts.

    Parameters
    ----------
    topology
        The machine.
    found
        The data paths, laid.
    basis
        Which figure of each capacity is shown beside a route's use of it.
    routes
        Whether to add the links walked and the use of each resource.
    """
    shown = (topology, basis) if routes else None
    return {
        "schema": "topo.paths/1",
        "topology": topology.name,
        "data_paths": [_survey(one, shown) for one in found],
    }


# --- parts of an answer -------------------------------------------------------------------------


def _meeting(found: AtOnce) -> dict[str, Any]:
    return {
        "paths": [
            {
                "data_path": name,
                "at_most": name in found.at_most,
                "end_s": run.end,
                "finishes_s": {one.workload.name: one.finish for one in run.runs},
            }
            for name, run in found.runs
        ],
        "sentence": found.sentence,
    }


def _workload_answer(answer: WorkloadAnswer, basis: Basis) -> dict[str, Any]:
    workload = answer.workload
    return {
        "name": workload.name,
        "direction": workload.direction,
        **_size(workload),
        "from": list(workload.sources),
        "to": list(workload.targets),
        "efficiency": list(workload.efficiency) if workload.efficiency else None,
        "paths": [_path_answer(path, basis) for path in answer.paths],
        "insights": list(answer.insights),
    }


def _path_answer(found: PathAnswer, basis: Basis) -> dict[str, Any]:
    return {
        "data_path": found.name,
        "title": found.data_path.title,
        "verdict": found.verdict,
        "reasons": [_reason(reason) for reason in found.reasons],
        "logical_hops": found.logical_hops if found.rate is not None else None,
        "logical_hops_range": _range(found.hops_range, found.rate),
        "physical_links": found.physical_links if found.rate is not None else None,
        "physical_links_range": _range(found.links_range, found.rate),
        "waypoints": list(found.routes[0].waypoints) if found.routes else [],
        **_counted(found.counts),
        "ram_traffic_bytes": found.ram_traffic,
        "ram_floor_s": found.ram_floor,
        "dram_bytes": found.dram_bytes,
        "dram_floor_s": found.dram_floor,
        "rate_bytes_per_s": found.rate,
        "at_most": found.at_most,
        "time_s": found.time,
        "time_range_s": list(found.time_range) if found.time_range else None,
        "bottlenecks": _bottlenecks(found, basis),
        "own_limits": list(found.own_limits),
        "rates_by_gpu_bytes_per_s": dict(found.rates),
        "rates_by_basis_bytes_per_s": {basis: found.rate_at(basis) for basis in found.by_basis},
        "at_most_by_basis": {basis: found.at_most_at(basis) for basis in found.by_basis},
        "serial_rate_bytes_per_s": found.serial_rate,
        "cores_needed": found.cores.cores if found.cores else 0 if found.rate is not None else None,
        "core_copy_bytes_per_s": found.cores.rate_per_core if found.cores else None,
        "core_copy_source": found.cores.source if found.cores else None,
        "unknown": list(found.unknowns),
        "unlimited": list(found.unlimited),
    }


def _size(workload: Workload) -> dict[str, Any]:
    note = None if workload.sized else "no size is said: rates only"
    return {"bytes": workload.size if workload.sized else None, "note": note}


def _range(span: tuple[int, int], rate: float | None) -> list[int] | None:
    """Return the fewest and the most over all GPUs and branches; null for a refused path."""
    return None if rate is None else list(span)


def _counted(counts: Counts) -> dict[str, Any]:
    return {
        "ram_traversals": counts.ram_traversals,
        "cpu_memory_copies": counts.cpu_memory_copies,
        "core_copies": counts.core_copies,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "effect": reason.effect,
        "text": reason.text,
        "place": place_document(reason.place),
        "instead": reason.instead or None,
    }


def _bottlenecks(found: PathAnswer, basis: Basis) -> list[dict[str, Any]]:
    return [_bottleneck(one, basis) for one in found.bottlenecks]


def _bottleneck(one: Bottleneck, basis: Basis) -> dict[str, Any]:
    figure = one.resource.capacity.at(basis)
    return {
        **resource_document(one.resource),
        "capacity_bytes_per_s": one.capacity,
        "load_bytes_per_s": one.load,
        "basis": one.resource.capacity.used(basis),
        "kind": figure.kind,
        "source": figure.source,
        "limited_by": one.resource.limited_by or None,
        "stops": list(one.stops),
    }


def _rung(rung: Rung, basis: Basis) -> dict[str, Any]:
    return {
        "rate_bytes_per_s": rung.rate,
        "classes": [
            {
                "class": kind,
                "words": class_words(kind, len(group)),
                "resources": [_bottleneck(one, basis) for one in group],
            }
            for kind, group in rung.classes
        ],
    }


# --- data paths and routes ----------------------------------------------------------------------


def _survey(found: PathSurvey, shown: tuple[Topology, Basis] | None) -> dict[str, Any]:
    path = found.data_path
    return {
        "data_path": path.name,
        "title": path.title,
        "source": path.source,
        "stages": path.stages,
        "workers": path.workers,
        "needs": list(path.needs),
        "falls_back_to": path.falls_back_to or None,
        "moves": [_move(move) for move in path.moves],
        **_counted(found.counts),
        "dram_bytes_per_byte": found.counts.dram_bytes,
        "workloads": [_laid(one, shown) for one in found.laid],
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "from": move.source,
        "to": move.target,
        "by": move.mover,
        "rate_bytes_per_s": move.rate.value if move.rate else None,
        "per_worker": move.per_worker,
    }


def _laid(found: RoutedPath, shown: tuple[Topology, Basis] | None) -> dict[str, Any]:
    first = found.routes[0]
    refused = found.verdict == "refused"
    document: dict[str, Any] = {
        "name": found.workload.name,
        "direction": found.workload.direction,
        "verdict": found.verdict,
        "reasons": [_reason(reason) for reason in found.reasons],
        "logical_hops": None if refused else first.logical_hops,
        "physical_links": None if refused else first.physical_links,
        "physical_links_range": None if refused else list(links_range(found.routes)),
    }
    if shown:
        document["routes"] = [_route(route, *shown) for route in found.routes]
    return document


def _route(route: Route, topology: Topology, basis: Basis) -> dict[str, Any]:
    extra = {resource.id: resource for resource in route.extra}
    used = [
        (topology.resources.get(name) or extra[name], weight) for name, weight in route.use.items()
    ]
    return {
        "gpu": route.gpu,
        "verdict": route.verdict,
        "reasons": [_reason(reason) for reason in route.reasons],
        "waypoints": list(route.waypoints),
        "branches": [_branch(subflow) for subflow in route.subflows],
        "use": [
            {
                **resource_document(resource),
                "bytes_per_byte": weight,
                "basis": resource.capacity.used(basis),
                **(figure_document(resource.capacity.at(basis), "capacity_bytes_per_s") or {}),
            }
            for resource, weight in used
        ],
    }


def _branch(subflow: Subflow) -> dict[str, Any]:
    return {
        "share": subflow.share,
        "storage": subflow.storage,
        "nic": subflow.card or None,
        "memories": dict(subflow.memories),
        "moves": [_leg(transfer) for transfer in subflow.transfers],
    }


def _leg(transfer: Transfer) -> dict[str, Any]:
    return {
        "from": transfer.move.source,
        "to": transfer.move.target,
        "by": transfer.move.mover,
        "engine": transfer.engine,
        "source": transfer.source,
        "target": transfer.target,
        "links": [
            {"from": step.source, "to": step.target, "medium": step.link.cable.medium}
            for step in transfer.walk
        ],
        "equal_walks": transfer.alternatives,
    }
