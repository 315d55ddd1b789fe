"""What is asked: which workloads, between which ends, by which data paths and policy."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from topo.catalogue.kinds import MEMORIES, STORAGE, Kind
from topo.datapaths.registry import count, data_paths
from topo.description.description import END_OF_KIND, ENDS, DataPath, Direction, Workload
from topo.description.keys import AN_END, a_kind
from topo.errors import DescriptionError, Finding, UnknownNameError
from topo.flows.ends import ends_of
from topo.phrases import listed
from topo.routes.route import Policy
from topo.routes.verdict import wrong_ends
from topo.topology.topology import Topology

DEFAULT_PATHS = ("legacy", "direct")
# By the far end and the endpoint, best last.
_USUAL_PATHS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("storage", "gpu"): DEFAULT_PATHS,
    ("storage", "ram"): ("buffered", "odirect"),
    ("card", "gpu"): ("nic-ram", "nic-direct"),
    ("storage", "card"): ("target-p2p", "target-staged"),
    ("card", "ram"): ("nic-host",),
    ("ram", "gpu"): ("pageable", "pinned"),
    ("ram", "ram"): ("memcpy",),
    ("gpu", "gpu"): ("peer-ram", "peer-pcie", "peer-nvlink"),
}
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
    """Return the data paths that a workload is asked about where nobody names any, best last.

    Raises
    ------
    DescriptionError
        Where nothing that ships with topo joins its ends.
    """
    far, near = end_words(topology, workload)
    if (far, near) == ("ram", "gpu"):
        steps = topology.steps[ends_of(topology, workload)[0].endpoint]
        if any(step.link.cable.family == "nvlink-c2c" for step in steps):
            return ("c2c",)
    if (far, near) not in _USUAL_PATHS:
        raise DescriptionError(
            Finding(
                "not-storage-and-gpu",
                f"{workload.name}: {_not_joined(far, near)}",
                place=workload.place,
                help="name a data path of your own with via:, or RAM or a GPU at one end",
            )
        )
    return _USUAL_PATHS[far, near]


def end_words(topology: Topology, workload: Workload) -> tuple[str, str]:
    """Return what a workload's far end and its endpoint are, words of `ENDS`."""
    ends, *_ = ends_of(topology, workload)
    return (
        END_OF_KIND[topology[ends.far[0]].kind],
        END_OF_KIND[topology[ends.endpoint].kind],
    )


def joins(topology: Topology, workload: Workload, path: DataPath) -> bool:
    """Whether a data path joins what a workload moves data between."""
    ends, *_ = ends_of(topology, workload)
    return not any(wrong_ends(topology, path, ends.far, ends.endpoint))


def ask(topology: Topology, source: str, target: str, *, size: float | None = None) -> Workload:
    """Return a workload made from two names; without a `size` only its rates mean something.

    It is a read where it goes towards the GPU, or what of the two stands for it (`ENDS`), a write
    where it goes away from it, and a copy between GPUs, or GPUs and network cards.

    An end that is not given is every GPU, or the storage: all on the network, else all drives.

    Raises
    ------
    UnknownNameError
        For a name that is not a device, a stem or a range.
    DescriptionError
        When one is nothing that data rests in, or nothing moves data between the two.
    """
    sources = _asked_devices(topology, source, target, end_is_source=True)
    targets = _asked_devices(topology, target, source, end_is_source=False)
    ends = (_end_of(topology, sources), _end_of(topology, targets))
    order = sorted(ends, key=[*ENDS, ""].index)
    if "" in ends or (order[0], order[1]) not in _USUAL_PATHS:
        wrong = _wrong(topology, {source: (sources, ends[0]), target: (targets, ends[1])})
        message = f"data goes between storage, RAM, GPUs and network cards; {wrong}"
        raise DescriptionError(Finding("not-storage-and-gpu", message))
    direction: Direction = "copy"
    if "storage" in ends or set(ends) == {"ram", "gpu"}:
        direction = "read" if [*ends] == order else "write"
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
    """Return what all devices of one end are, a word of `ENDS`, or (empty) a mixture or nothing."""
    words = {END_OF_KIND.get(topology[name].kind, "") for name in names}
    return words.pop() if len(words) == 1 else ""


def _wrong(topology: Topology, ends: Mapping[str, tuple[tuple[str, ...], str]]) -> str:
    """Say which of the ends asked for is nothing that data rests in, or what nothing joins."""
    strange = [
        f"{name} is {listed((a_kind(kind) for kind in kinds), most=_MOST)}"
        for name, (devices, end) in ends.items()
        if not end
        for kinds in [dict.fromkeys(topology[device].kind for device in devices)]
    ]
    if strange:
        return listed(strange, most=_MOST)
    words = [end for _, end in ends.values()]
    return f"{_not_joined(words[0], words[-1])} alone: name RAM or a GPU at one end"


def _not_joined(end: str, end_too: str) -> str:
    return f"no data path joins {AN_END[end]} with {AN_END[end_too]}"


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
