"""Copies that were measured at once, beside what topo expects of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.study.prediction import Forecast, Reading, Sample
from topo.study.question import ask
from topo.study.timeline import simulate

if TYPE_CHECKING:
    from topo.description.description import Basis, Workload
    from topo.measuring.mapping import Mapper
    from topo.measuring.results import Concurrent
    from topo.study.timeline import Simulation
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology

_OF_MANY = "a rate of several copies at once"
_BYTES = 1e9  # of each copy; what it is does not matter at the start


def concurrent_readings(
    topology: Topology, runs: Sequence[Concurrent], mapper: Mapper
) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """Return the rate of each run beside what is expected, and what has no place here.

    Parameters
    ----------
    topology, runs
        The machine, and what was measured on it: copies between RAM and GPUs.
    mapper
        Names the devices of the results.
    """
    readings: list[Reading] = []
    unmapped: list[str] = []
    for run in runs:
        workloads: list[Workload] = []
        for source, target in run.pairs:
            (gpu,) = mapper.devices(target if source.kind == "ram" else source)[:1] or ("",)
            if not gpu:
                break
            near = mapper.memories_near(gpu)
            if source.kind == "ram":
                read = ask(topology, near[0], gpu, size=_BYTES)
                workloads.append(replace(read, sources=near))
            else:
                write = ask(topology, gpu, near[0], size=_BYTES)
                workloads.append(replace(write, targets=near))
        if len(workloads) < len(run.pairs):
            unmapped.append(f"{run.test}: not all of its GPUs are here")
            continue
        readings.append(_reading(topology, run, workloads))
    return tuple(readings), tuple(unmapped)


def _reading(topology: Topology, run: Concurrent, workloads: Sequence[Workload]) -> Reading:
    theoretical = simulate(topology, workloads=workloads, via="pinned", at="theoretical")
    achievable = simulate(topology, workloads=workloads, via="pinned", at="achievable")
    simulations: dict[Basis, Simulation] = {"theoretical": theoretical, "achievable": achievable}
    bound: tuple[Resource, ...] = achievable.bound
    forecast = Forecast(
        theoretical=theoretical.moments[0].rate,
        achievable=achievable.moments[0].rate,
        at_most=tuple(basis for basis, simulation in simulations.items() if simulation.at_most),
        limit=bound[0] if bound else None,
    )
    sources = tuple(dict.fromkeys(name for workload in workloads for name in workload.sources))
    targets = tuple(dict.fromkeys(name for workload in workloads for name in workload.targets))
    return Reading(Sample(run.test, sources, targets, run.rate, unwritten=_OF_MANY), forecast)
