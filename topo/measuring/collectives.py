"""What nccl-tests measured, beside what topo expects of the same GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from topo.description.description import ROOTED
from topo.errors import DescriptionError
from topo.phrases import counted
from topo.study.collective import collective
from topo.study.prediction import Forecast, Reading, Sample
from topo.topology.hosts import host_numbers
from topo.topology.locality import matrix_devices

if TYPE_CHECKING:
    from topo.description.description import Basis, Collective
    from topo.measuring.results import CollectiveRun
    from topo.study.answers import PathAnswer
    from topo.topology.topology import Topology

_OF_MANY = "a rate of several GPUs at once"


def collective_readings(
    topology: Topology, runs: Sequence[CollectiveRun], gpus: tuple[str, ...]
) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """Return the bus bandwidth of each run beside what is expected, and what has no place here.

    Parameters
    ----------
    topology, runs
        The machine, and what was run on it.
    gpus
        The GPUs that took part, where the caller says them.
    """
    readings: list[Reading] = []
    unmapped: list[str] = []
    for run in runs:
        names = gpus or _gpus(topology, run)
        why = run.unknown
        if not why and not names:
            servers = counted(run.server_count, "server")
            why = f"which GPUs of {servers} took part is not known: say it with --gpus"
        if run.count and names and len(names) != run.count:
            why = why or f"{counted(run.count, 'GPU')} took part, not {len(names)}"
        if why:
            unmapped.append(f"{run.test}: {why}")
            continue
        try:
            readings.append(_reading(topology, run, names))
        except DescriptionError as error:
            unmapped.append(f"{run.test}: {error.findings[0].message}")
    return tuple(readings), tuple(unmapped)


def _gpus(topology: Topology, run: CollectiveRun) -> tuple[str, ...]:
    """Return the GPUs of a run: all, or those of one server by address, else by number."""
    present = [device for device in matrix_devices(topology) if device.kind == "gpu"]
    if run.count in (0, len(present)):
        return tuple(device.name for device in present)
    if run.server_count > 1:
        return ()
    numbers = host_numbers(topology)
    first = [device for device in present if numbers[device.name] == numbers[present[0].name]]
    at = [
        device.name
        for rank in run.ranks
        for device in first
        if rank.address.lower().removeprefix("0x") in _addresses(device.pci)
    ]
    if len(at) == run.count:
        return tuple(at)
    devices = [rank.device for rank in run.ranks] or list(range(run.count))
    if max(devices) >= len(first) or len(set(devices)) < len(devices):
        return ()
    return tuple(first[number].name for number in devices)


def _addresses(addresses: Sequence[str]) -> set[str]:
    """Return how programs write PCI addresses: the bus alone, or without the function."""
    whole = {address.lower() for address in addresses}
    parts = {address.rsplit(".", 1)[0] for address in whole}
    return whole | parts | {part.split(":")[-2] for part in parts if ":" in part}


def _reading(topology: Topology, run: CollectiveRun, gpus: tuple[str, ...]) -> Reading:
    """Return one run beside what its fastest data path should have."""
    kind = cast("Collective", run.kind)
    root = gpus[run.root] if kind in ROOTED and 0 <= run.root < len(gpus) else ""

    def asked(at: Basis, via: Sequence[str] = ()) -> list[PathAnswer]:
        answer = collective(topology, kind, over=gpus, size=run.size, root=root, via=via, at=at)
        return [path for path in answer.workloads[0].paths if path.rate is not None]

    sample = Sample(run.test, gpus, gpus, run.bus_rate, unwritten=_OF_MANY)
    achievable = asked("achievable")
    if not achievable:
        return Reading(sample, Forecast(refused=f"no way joins the GPUs of {run.test}"))
    best = max(achievable, key=lambda path: (path.rate or 0.0, not path.at_most))
    (theoretical,) = asked("theoretical", (best.name,))
    bases: dict[Basis, PathAnswer] = {"theoretical": theoretical, "achievable": best}
    forecast = Forecast(
        theoretical=theoretical.bus_rate,
        achievable=best.bus_rate,
        at_most=tuple(basis for basis, path in bases.items() if path.at_most),
        limit=best.bound[0] if best.bound else None,
    )
    named = Sample(run.test, gpus, gpus, run.bus_rate, via=best.name, unwritten=_OF_MANY)
    return Reading(named, forecast)
