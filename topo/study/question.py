"""What is asked: which workloads, between which ends, by which data paths and policy."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from topo.catalogue.kinds import MEMORIES, STORAGE, Kind
from topo.datapaths.registry import count, data_paths
from topo.description.description import DataPath, Direction, Workload
from topo.description.keys import a_kind
from topo.errors import DescriptionError, Finding, UnknownNameError
from topo.flows.demands import ends_of
from topo.phrases import listed
from topo.routes.route import Policy
from topo.routes.verdict import wrong_ends
from topo.topology.topology import Topology

DEFAULT_PATHS = ("legacy", "direct")
_GPU_PATHS = ("peer-ram", "peer-pcie", "peer-nvlink")
_CARD_PATHS = ("nic-ram", "nic-direct")
_ANY_SIZE = 1e9  # bytes: rates are the same whatever it is
_MOST = 4  # names in a list before "and 3 more"


def chosen_workloads(topology: Topology, name: str | None) -> tuple[Workload, ...]:
    """Return the workload called `name`, or all of them.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    DescriptionError
        If the file has no workloads at all.
    """
    workloads = topology.description.workloads
    if not workloads:
        raise DescriptionError(
            Finding(
                "no-workload",
                f"{topology.name} has no workloads",
                help="add one, `load: {read: 640 GB, from: storage, to: gpu}` under workloads:, "
                "or ask with --from and --to",
            )
        )
    matched = tuple(workload for workload in workloads if name in (None, workload.name))
    if not matched:
        names = ", ".join(workload.name for workload in workloads)
        raise UnknownNameError(
            Finding("unknown-name", f"no workload {name}", help=f"known: {names}")
        )
    return matched


def usual_paths(topology: Topology, workload: Workload) -> tuple[str, ...]:
    """Return the data paths that a workload is asked about where nobody names any, best last."""
    if workload.direction != "copy":
        return DEFAULT_PATHS
    kinds = {topology[name].kind for name in (*workload.sources, *workload.targets)}
    return _GPU_PATHS if kinds == {"gpu"} else _CARD_PATHS


def joins(topology: Topology, workload: Workload, path: DataPath) -> bool:
    """Whether a data path joins what a workload moves data between."""
    return not any(wrong_ends(topology, path, ends_of(topology, workload)[0].far))


def ask(topology: Topology, source: str, target: str, *, size: float | None = None) -> Workload:
    """Return a workload made from two names; without a `size` only its rates mean something.

    It is a read when `source` is storage, a write when `target` is, else a copy between GPUs or
    a GPU and a network card.

    An end that is not given is every GPU, or the storage: all on the network, else all drives.

    Raises
    ------
    UnknownNameError
        For a name that is not a device, a stem or a range.
    DescriptionError
        When neither is a GPU, or the other is nothing that data rests in.
    """
    sources = _asked_devices(topology, source, target, end_is_source=True)
    targets = _asked_devices(topology, target, source, end_is_source=False)
    ends = (_end_of(topology, sources), _end_of(topology, targets))
    if "gpu" not in ends or "" in ends:
        wrong = _wrong(topology, {source: (sources, ends[0]), target: (targets, ends[1])})
        message = f"data goes between a GPU and storage, a network card or another GPU; {wrong}"
        raise DescriptionError(Finding("not-storage-and-gpu", message))
    direction: Direction = "copy"
    if "storage" in ends:
        direction = "read" if ends[0] == "storage" else "write"
    return Workload(
        name=f"{source or 'storage'} to {target or 'gpu'}",
        direction=direction,
        size=_ANY_SIZE if size is None else size,
        sources=sources,
        targets=targets,
        sized=size is not None,
    )


def _asked_devices(
    topology: Topology, name: str, far_name: str, *, end_is_source: bool
) -> tuple[str, ...]:
    """Return the devices of one end; an end not given is what the far end leaves."""
    if name:
        return tuple(device.name for device in topology.select(name))
    gpus = not end_is_source
    if far_name:
        gpus = topology.select(far_name)[0].kind != "gpu"
    # Where no storage is named: what is on the network, else the drives, else their controllers.
    kinds: tuple[Kind, ...] = ("gpu",) if gpus else STORAGE
    devices = next((devices for kind in kinds if (devices := topology.of_kind(kind))), ())
    if not devices:
        message = f"{topology.name} has no {'GPU' if gpus else 'storage'}"
        raise UnknownNameError(Finding("unknown-name", message))
    return tuple(device.name for device in devices)


def _end_of(topology: Topology, names: tuple[str, ...]) -> str:
    """Return what all devices of one end are: GPUs, storage, cards, or (empty) a mixture."""
    devices = [topology[name] for name in names]
    if all(device.kind == "gpu" for device in devices):
        return "gpu"
    if all(device.is_storage for device in devices):
        return "storage"
    return "card" if all(device.is_nic for device in devices) else ""


def _wrong(topology: Topology, ends: Mapping[str, tuple[tuple[str, ...], str]]) -> str:
    """Say which of the ends asked for is nothing that data rests in, or that none is a GPU."""
    strange = [
        f"{name} is {listed((a_kind(kind) for kind in kinds), most=_MOST)}"
        for name, (devices, end) in ends.items()
        if not end
        for kinds in [dict.fromkeys(topology[device].kind for device in devices)]
    ]
    if strange:
        return listed(strange, most=_MOST)
    names = list(ends)
    return f"{names[0]} is no GPU" if len(names) == 1 else f"neither {' nor '.join(names)} is a GPU"


def checked_policy(topology: Topology, policy: Policy) -> Policy:
    """Return `policy` when every buffer and every place that it names is there.

    Raises
    ------
    UnknownNameError
        For a buffer that no data path has, or a place that is no memory: a misspelt buffer must
        not be ignored.
    """
    if not policy.buffers:
        return policy
    buffers = [
        buffer.removesuffix("-buffer")
        for path in data_paths(topology.description)
        for buffer in count(path).buffers
    ]
    memories = [device.name for device in topology.of_kind(*MEMORIES)]
    valid = {"RAM buffer": [*buffers, "all"], "memory": ["near-gpu", "near-nic", *memories]}
    named = [("RAM buffer", name) for name, _ in policy.buffers]
    named += [("memory", place) for _, place in policy.buffers]
    findings = []
    for what, name in named:
        if name not in valid[what]:
            near = get_close_matches(name, valid[what], n=1)
            names = ", ".join(dict.fromkeys(valid[what]))
            advice = f"did you mean {near[0]}?" if near else f"there are {names}"
            findings.append(Finding("unknown-name", f"no {what} `{name}`", help=advice))
    if findings:
        raise UnknownNameError(findings)
    return policy
