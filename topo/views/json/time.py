"""Time and change as documents: simulate, workloads together, upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.views.json.values import resource_document

if TYPE_CHECKING:
    from topo.study import Moment, Outcome, Simulation, Upgrade, Upgrades


def simulation_document(found: Simulation) -> dict[str, Any]:
    """Return ``topo.simulate/1``: runs, spans, and when each demand is done."""
    return {
        "schema": "topo.simulate/1",
        "topology": found.topology.name,
        "basis": found.basis,
        **_timeline(found),
    }


def together_document(found: tuple[tuple[str, Simulation], ...]) -> dict[str, Any]:
    """Return ``topo.together/1``: the same workloads at once, by each data path."""
    first = found[0][1]
    return {
        "schema": "topo.together/1",
        "topology": first.topology.name,
        "basis": first.basis,
        "paths": [{"data_path": name, **_timeline(one)} for name, one in found],
    }


def upgrades_document(found: Upgrades) -> dict[str, Any]:
    """Return ``topo.upgrade/1``: what is, each change with its overrides, what was rejected."""
    return {
        "schema": "topo.upgrade/1",
        "topology": found.topology.name,
        "basis": found.basis,
        "workloads": [workload.name for workload in found.workloads],
        "data_path": found.via,
        "now": _outcome(found.now),
        "upgrades": [_upgrade(one, found) for one in found.ranked],
        "rejected": [
            {
                "kind": one.kind,
                "title": one.title,
                "set": dict(one.changes),
                "data_path": one.via or None,
                "reason": why,
            }
            for one, why in found.rejected
        ],
    }


def _timeline(found: Simulation) -> dict[str, Any]:
    return {
        "end_s": found.end,
        "runs": [
            {
                "workload": run.workload.name,
                "data_path": run.data_path,
                "bytes": run.workload.size,
                "start_s": run.start,
                "finish_s": run.finish,
                "time_s": run.duration,
            }
            for run in found.runs
        ],
        "spans": [_moment(moment) for moment in found.moments],
        "finishes_s": dict(found.finishes),
    }


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "start_s": moment.start,
        "end_s": moment.end,
        "workloads": [
            {
                "workload": one.workload,
                "rate_bytes_per_s": one.rate,
                "gpus": list(one.gpus),
                "stopped_by": [resource_document(resource) for resource in one.stopped_by],
            }
            for one in moment.rates
        ],
    }


def _upgrade(one: Upgrade, found: Upgrades) -> dict[str, Any]:
    return {
        "title": one.title,
        "kinds": [part.kind for part in one.parts],
        "set": one.changes,
        "data_path": one.via or found.via,
        "count": one.count,
        "cost": one.cost,
        **_outcome(one.outcome),
        "reason": found.reason(one),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "time_s": outcome.time,
        "times_s": dict(outcome.times),
        "bottlenecks": [resource_document(resource) for resource in outcome.bound],
    }
