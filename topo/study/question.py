"""What is asked: which workloads, between which ends, by which data paths and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from topo.catalogue.kinds import CARDS, STORAGE, Kind
from topo.description.description import (
    END_OF_KIND,
    ROOTED,
    Collective,
    DataPath,
    ModelNeed,
    Workload,
)
from topo.description.keys import a_kind
from topo.description.needs import ANY_SIZE, serves, size_of
from topo.description.workloads import (
    BY_A_SERVER,
    ON_NETWORK_ALONE,
    a_collective,
    direction_between,
    too_few_or_many,
)
from topo.errors import DescriptionError, Finding, UnknownNameError
from topo.flows.ends import ends_of
from topo.phrases import listed, nearest_names, shortened
from topo.routes.verdict import wrong_ends
from topo.topology.hosts import host_numbers
from topo.topology.locality import socket_of
from topo.topology.topology import Layer, Topology

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
    ("storage", "storage"): ("copy-buffered", "copy-odirect"),
    ("card", "card"): ("forward",),
}
# Where the two are in different servers.
_BETWEEN_SERVERS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("ram", "gpu"): ("rdma-staged", "rdma-direct"),
    ("ram", "ram"): ("sockets", "rdma"),
    ("gpu", "gpu"): ("peer-staged", "peer-rdma"),
}
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


def asked_workloads(
    topology: Topology,
    name: str | None,
    source: str,
    target: str,
    *,
    needs: str | None = None,
    checkpoint: str | None = None,
) -> tuple[Workload, ...]:
    """Return what is asked about: a model where one is named, two ends, else the file's workloads.

    Raises
    ------
    UnknownNameError, DescriptionError
        As `ask_need`, `ask` and `chosen_workloads`.
    """
    if needs is not None:
        return (ask_need(topology, needs, source, target),)
    if checkpoint is not None:
        return (ask_need(topology, checkpoint, source, target, asks="checkpoint"),)
    if source or target:
        return (ask(topology, source, target),)
    return chosen_workloads(topology, name)


def usual_paths(topology: Topology, workload: Workload) -> tuple[str, ...]:
    """Return the data paths that a workload is asked about where nobody names any, best last."""
    far, near = end_words(topology, workload)
    if between_servers(topology, workload):
        return _BETWEEN_SERVERS[far, near]
    if (far, near) == ("ram", "gpu"):
        steps = topology.steps[ends_of(topology, workload)[0].endpoint]
        if any(step.link.cable.family == "nvlink-c2c" for step in steps):
            return ("c2c",)
    return _USUAL_PATHS[far, near]


def end_words(topology: Topology, workload: Workload) -> tuple[str, str]:
    """Return what a workload's far end and its endpoint are, words of `ENDS`."""
    ends, *_ = ends_of(topology, workload)
    return (
        END_OF_KIND[topology[ends.far[0]].kind],
        END_OF_KIND[topology[ends.endpoint].kind],
    )


def between_servers(topology: Topology, workload: Workload) -> bool:
    """Whether a workload moves RAM's or GPUs' data, and none of it within a server."""
    if end_words(topology, workload) not in _BETWEEN_SERVERS:
        return False
    if not topology.of_kind("network-switch", *CARDS):
        return False
    topology = topology.telling_apart((workload,))
    sources, targets = map(topology.standing_for, (workload.sources, workload.targets))
    workload = replace(workload, sources=sources, targets=targets)
    # RAM is reached by the host's links; GPUs of several servers may be joined by their own.
    of_gpus = end_words(topology, workload) == ("gpu", "gpu")
    layers: tuple[Layer, ...] = ("host", "memory", "gpu") if of_gpus else ("host", "memory")
    numbers = host_numbers(topology, layers)
    far: tuple[str, ...] = ()
    servers: frozenset[int] = frozenset()
    for ends in ends_of(topology, workload):
        if ends.far is not far:  # to most endpoints it is the same
            far, servers = ends.far, frozenset(numbers[name] for name in ends.far)
        if not topology.is_representative(ends.endpoint):
            continue
        if numbers[ends.endpoint] in servers or not socket_of(topology, ends.endpoint):
            return False
    return any(socket_of(topology, name) for name in far)  # else it is cut off from its own server


def joins(topology: Topology, workload: Workload, path: DataPath) -> bool:
    """Whether a data path joins what a workload moves data between."""
    ends, *_ = ends_of(topology, workload)
    return not any(wrong_ends(topology, path, ends.far, ends.endpoint))


def ask(topology: Topology, source: str, target: str, *, size: float | None = None) -> Workload:
    """Return a workload made from two names; without a `size` only its rates mean something.

    It is a read where it goes towards the GPU, or what of the two stands for it (`ENDS`), a write
    where it goes away from it, and a copy between two of a sort, and network cards and others.

    An end that is not given is every GPU, or the storage: all on the network, else all drives.

    Raises
    ------
    UnknownNameError
        For a name that is not a device, a stem or a range.
    DescriptionError
        When one is nothing that data rests in, or both are storage on the network.
    """
    sources = _asked_devices(topology, source, target, end_is_source=True)
    targets = _asked_devices(topology, target, source, end_is_source=False)
    ends = (_end_of(topology, sources), _end_of(topology, targets))
    if "" in ends:
        wrong = _wrong(topology, {source: (sources, ends[0]), target: (targets, ends[1])})
        message = f"data goes between storage, RAM, GPUs and network cards; {wrong}"
        raise DescriptionError(Finding("not-storage-and-gpu", message))
    if all(any(topology[name].kind == "storage" for name in names) for names in (sources, targets)):
        message = f"{source or 'storage'} to {target or 'gpu'} is {ON_NETWORK_ALONE}"
        raise DescriptionError(Finding("not-storage-and-gpu", message, help=BY_A_SERVER))
    return Workload(
        name=f"{source or 'storage'} to {target or 'gpu'}",
        direction=direction_between(*ends),
        size=ANY_SIZE if size is None else size,
        sources=sources,
        targets=targets,
        sized=size is not None,
    )


def ask_need(
    topology: Topology,
    model: str,
    source: str = "",
    target: str = "",
    *,
    asks: Literal["needs", "checkpoint"] = "needs",
) -> Workload:
    """Return the workload of GPUs and what a model asks for, a name of the catalogue or the file.

    Ends are as for `ask`; a checkpoint goes from GPUs to storage where none is named.

    Parameters
    ----------
    topology, source, target
        The machine, and the ends.
    model
        Which model.
    asks
        What of it: ``needs``, the data that GPUs compute on, or ``checkpoint``.

    Raises
    ------
    UnknownNameError
        For a model or a device that is not there.
    DescriptionError
        When no GPU computes on the data or writes the checkpoint, or nobody says what the model
        reads or how large its checkpoint is.
    """
    from topo.catalogue.needs import needs

    known = {**needs(), **topology.description.needs}
    useful = [name for name, need in known.items() if serves(need, asks)]
    if model not in known:
        advice = nearest_names(model, useful)
        raise UnknownNameError(Finding("unknown-name", f"no model `{model}` is known", help=advice))
    if model not in useful:
        what = f"what {model} reads" if asks == "needs" else f"how large a checkpoint of {model} is"
        advice = f"known are {listed(useful)}"
        raise DescriptionError(Finding("need-unknown", f"nobody says {what}", help=advice))
    need = ModelNeed(asks, known[model])
    computes, accelerators = {
        "needs": (f"{model} computes on GPUs", "8x h100 each, from: storage, to: ram"),
        "checkpoint": ("GPUs write the checkpoint", "1024, from: ram, to: storage"),
    }[asks]
    workload_of_ram = f"`{{{asks}: {model}, accelerators: {accelerators}}}`"
    advice = f"a workload of the file says what stands behind RAM: {workload_of_ram}"
    if not topology.of_kind("gpu") and not (source and target):
        message = f"{computes}, and {topology.name} has none"
        raise DescriptionError(Finding("accelerators", message, help=advice))
    workload = ask(topology, source, target, size=size_of(need))
    if asks == "checkpoint":
        need = replace(need, mttf=needs()["accelerator"].figures["mttf"])
        if not source and not target:
            storage, gpus = workload.sources, workload.targets
            workload = replace(workload, direction="write", sources=gpus, targets=storage)
    leaves = asks == "checkpoint" and workload.direction == "write"
    strange = [
        name
        for name in (workload.sources if leaves else workload.targets)
        if (leaves or asks == "needs") and topology[name].kind != "gpu"
    ]
    if strange:
        message = f"{computes}, and {strange[0]} is none"
        raise DescriptionError(Finding("accelerators", message, help=advice))
    return replace(workload, name=model, need=need)


def ask_collective(
    topology: Topology,
    kind: Collective,
    over: str | Sequence[str] = "",
    *,
    size: float = ANY_SIZE,
    root: str = "",
) -> Workload:
    """Return the workload of a collective over some GPUs, all where none are named.

    Raises
    ------
    UnknownNameError
        For a name that is not a device, a stem or a range.
    DescriptionError
        When something else takes part, or fewer or more than a collective is told of; when the root
        is not one of them, or there is none.
    """
    if isinstance(over, str) and over:
        devices = topology.select(over)
    elif over:
        devices = tuple(topology[name] for name in over)
    else:
        devices = topology.of_kind("gpu")
        if not devices:
            raise UnknownNameError(Finding("unknown-name", f"{topology.name} has no GPU"))
    names = topology.named_by(devices)
    strange = next((device for device in devices if device.kind != "gpu"), None)
    if strange is not None:
        message = f"{a_collective(kind)} is over GPUs, and {strange.name} is {a_kind(strange.kind)}"
        raise DescriptionError(Finding("collective-ends", message))
    for message, advice in too_few_or_many(kind, len(names), names[0]):
        whole = f"{a_collective(kind)} over {message}"
        raise DescriptionError(Finding("collective-ends", whole, help=advice))
    roots = tuple(device.name for device in topology.select(root)) if root else names[:1]
    if root and (kind not in ROOTED or len(roots) > 1 or roots[0] not in names):
        message = f"the root of {a_collective(kind)} over {shortened(names)} is no {root}"
        advice = "a broadcast begins and a reduce ends at one of its GPUs; the others have no root"
        raise DescriptionError(Finding("collective-root", message, help=advice))
    return Workload(
        name=kind,
        direction="copy",
        size=size,
        sources=names,
        targets=names,
        collective=kind,
        root=roots[0] if kind in ROOTED else "",
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
        advice = "" if gpus else "data can rest in RAM as well: name `ram` with --from or --to"
        raise UnknownNameError(Finding("unknown-name", message, help=advice))
    return topology.named_by(devices)


def _end_of(topology: Topology, names: tuple[str, ...]) -> str:
    """Return what all devices of one end are, a word of `ENDS`, or (empty) a mixture or nothing."""
    words = {END_OF_KIND.get(topology[name].kind, "") for name in names}
    return words.pop() if len(words) == 1 else ""


def _wrong(topology: Topology, ends: Mapping[str, tuple[tuple[str, ...], str]]) -> str:
    """Say which of the ends asked for is nothing that data rests in."""
    strange = [
        f"{name} is {listed((a_kind(kind) for kind in kinds), most=_MOST)}"
        for name, (devices, end) in ends.items()
        if not end
        for kinds in [dict.fromkeys(topology[device].kind for device in devices)]
    ]
    return listed(strange, most=_MOST)


def path_names(via: str | Sequence[str]) -> tuple[str, ...]:
    """Return the data paths that a caller names: one, or several.

    Examples
    --------
    >>> path_names("direct"), path_names(["legacy", "direct"])
    (('direct',), ('legacy', 'direct'))
    """
    return (via,) * bool(via) if isinstance(via, str) else tuple(via)
