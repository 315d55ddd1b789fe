"""Legacy against direct, or any data paths against each other, for a file's workloads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_path
from topo.description.description import Workload
from topo.description.shape import a_kind
from topo.errors import DescriptionError, Finding, UnknownNameError
from topo.phrases import listed
from topo.routes.route import Policy, merged
from topo.routes.router import Router
from topo.study.answer import answer
from topo.study.answers import Comparison, WorkloadAnswer
from topo.study.insights import insights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from topo.catalogue.kinds import Kind
    from topo.description.description import Basis, Direction
    from topo.routes.route import Reason
    from topo.study.answers import PathAnswer
    from topo.topology.topology import Topology


DEFAULT_PATHS = ("legacy", "direct")
_MOST = 4  # names in a list before "and 3 more"
_ANY_SIZE = 1e9  # bytes: rates are the same whatever it is
_GPU_PATHS = ("peer-ram", "peer-pcie", "peer-nvlink")
_CARD_PATHS = ("nic-ram", "nic-direct")
# Where no storage is named: what is on the network, else the drives, else their controllers.
_STORAGE: tuple[tuple[Kind, ...], ...] = (("storage",), ("nvme",), ("hba",))


def compare(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: Sequence[str] = (),
    source: str = "",
    target: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> Comparison:
    """Compare data paths for the workloads of a topology.

    Parameters
    ----------
    topology
        The machine.
    workload
        One workload's name, or a workload value; all of the file's by default.
    via
        Data paths; by default the workload's own `via`, else legacy and direct.
    source, target
        Device names or stems: ask about these instead of the file's workloads.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.

    Returns
    -------
    Comparison
        Indexed by data path when there is one workload.

    Raises
    ------
    UnknownNameError
        For a workload, device or data path that is not there.
    DescriptionError
        When there is nothing to compare: no workload in the file and none asked for.

    Examples
    --------
    >>> import topo
    >>> machine = topo.load("gds-textbook")
    >>> topo.compare(machine, workload="load")["direct"].time_s
    6.4
    """
    policy = policy or Policy()
    router = Router(topology, policy)
    if isinstance(workload, Workload):
        chosen: tuple[Workload, ...] = (workload,)
    elif source or target:
        chosen = (ask(topology, source, target),)
    else:
        chosen = chosen_workloads(topology, workload)
    answers = tuple(_workload(router, one, tuple(via), at) for one in chosen)
    return Comparison(
        topology=topology,
        basis=at,
        policy=policy,
        workloads=answers,
        findings=tuple(_findings(answers, at)),
    )


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
    found = tuple(one for one in workloads if name in (None, one.name))
    if not found:
        known = ", ".join(one.name for one in workloads)
        raise UnknownNameError(
            Finding("unknown-name", f"no workload {name}", help=f"known: {known}")
        )
    return found


def usual_paths(topology: Topology, workload: Workload) -> tuple[str, ...]:
    """Return the data paths that a workload is asked about where nobody names any."""
    if workload.direction != "copy":
        return DEFAULT_PATHS
    kinds = {topology[name].kind for name in (*workload.sources, *workload.targets)}
    return _GPU_PATHS if kinds == {"gpu"} else _CARD_PATHS


def path_of(topology: Topology, workload: Workload, via: str | Mapping[str, str]) -> str:
    """Return the path said for a workload, else its own first, else the usual one."""
    said = via if isinstance(via, str) else via.get(workload.name, "")
    if said:
        return said
    usual = usual_paths(topology, workload)
    # A copy goes the best way that its kind of ends has; storage the way everybody can go.
    return next(iter(workload.via), usual[-1] if workload.direction == "copy" else usual[0])


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
    sources = _names(topology, source, target, want_source=True)
    targets = _names(topology, target, source, want_source=False)
    ends = tuple(_end_of(topology, names) for names in (sources, targets))
    if "gpu" not in ends or "" in ends:
        wrong = _wrong(topology, {source: (sources, ends[0]), target: (targets, ends[1])})
        message = f"data goes between a GPU and storage, a network card or another GPU; {wrong}"
        raise DescriptionError(Finding("not-storage-and-gpu", message))
    return Workload(
        name=f"{source or 'storage'} to {target or 'gpu'}",
        direction=_direction(ends),
        size=_ANY_SIZE if size is None else size,
        sources=sources,
        targets=targets,
        sized=size is not None,
    )


def _wrong(topology: Topology, asked: Mapping[str, tuple[tuple[str, ...], str]]) -> str:
    """Say which of the ends asked for is nothing that data rests in, or that none is a GPU."""
    strange = [
        f"{name} is {listed((a_kind(kind) for kind in kinds), most=_MOST)}"
        for name, (devices, end) in asked.items()
        if not end
        for kinds in [dict.fromkeys(topology[device].kind for device in devices)]
    ]
    if strange:
        return listed(strange, most=_MOST)
    names = list(asked)
    return f"{names[0]} is no GPU" if len(names) == 1 else f"neither {' nor '.join(names)} is a GPU"


def _end_of(topology: Topology, names: tuple[str, ...]) -> str:
    """Return what all devices of one end are: storage, GPUs, cards, or (empty) a mixture."""
    kinds = {topology[name].kind for name in names}
    ends = (("gpu", {"gpu"}), ("storage", {"storage", "nvme", "hba"}), ("card", {"nic", "dpu"}))
    return next((end for end, allowed in ends if kinds <= allowed), "")


def _direction(ends: tuple[str, ...]) -> Direction:
    if "storage" not in ends:
        return "copy"
    return "read" if ends[0] == "storage" else "write"


def _names(topology: Topology, name: str, other: str, *, want_source: bool) -> tuple[str, ...]:
    """Return the devices of one end; an end not given is what the other end leaves."""
    if name:
        return tuple(device.name for device in topology.select(name))
    other_is_gpu = bool(other) and topology.select(other)[0].kind == "gpu"
    gpus = not other_is_gpu if other else not want_source
    kinds: tuple[tuple[Kind, ...], ...] = (("gpu",),) if gpus else _STORAGE
    found = next((devices for each in kinds if (devices := topology.of_kind(*each))), ())
    if not found:
        message = f"{topology.name} has no {'GPU' if gpus else 'storage'}"
        raise UnknownNameError(Finding("unknown-name", message))
    return tuple(device.name for device in found)


def _workload(
    router: Router, workload: Workload, via: tuple[str, ...], basis: Basis
) -> WorkloadAnswer:
    chosen = via or workload.via
    names = dict.fromkeys(chosen or usual_paths(router.topology, workload))
    paths = [_by(router, workload, name, basis) for name in names]
    if not chosen:  # what is taken instead is asked about as well
        taken = dict.fromkeys(
            reason.instead for path in paths for reason in path.reasons if reason.instead
        )
        paths += [_by(router, workload, name, basis) for name in taken if name not in names]
    found = WorkloadAnswer(workload=workload, paths=tuple(paths))
    return replace(found, insights=insights(router.topology, found))


def _by(router: Router, workload: Workload, name: str, basis: Basis) -> PathAnswer:
    return answer(router, workload, data_path(router.topology.description, name), basis=basis)


def _findings(answers: tuple[WorkloadAnswer, ...], basis: Basis) -> Iterator[Finding]:
    """Yield what the answers rest on: an efficiency not used, unknown figures, assumptions."""
    for found in answers:
        if found.workload.efficiency and basis != "theoretical":
            yield Finding(
                "efficiency-ignored",
                f"the efficiency of workload {found.workload.name} is for theoretical results; "
                f"at {basis} it is ignored",
                severity="note",
                place=found.workload.place,
            )
    by_path: dict[str, list[PathAnswer]] = {}
    for path in (path for found in answers for path in found.paths):
        by_path.setdefault(path.name, []).append(path)
    yield from _unknown(by_path)
    yield from _assumed(by_path)


def _unknown(by_path: Mapping[str, list[PathAnswer]]) -> Iterator[Finding]:
    """Yield the unknown capacities, once for all data paths that meet the same."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, paths in by_path.items():
        unknowns = tuple(dict.fromkeys(unknown for path in paths for unknown in path.unknowns))
        found.setdefault(unknowns, []).append(name)
    for unknowns, names in found.items():
        if unknowns:
            yield Finding(
                "unknown-capacity",
                f"rates by {listed(names, most=_MOST)} are at most: unknown is how much passes "
                f"{listed(unknowns, most=_MOST)}",
                severity="warning",
            )


def _assumed(by_path: Mapping[str, list[PathAnswer]]) -> Iterator[Finding]:
    """Yield the assumptions, once for all data paths that rest on the same."""
    found: dict[Reason, list[str]] = {}
    for name, paths in by_path.items():
        for reason in merged(reason for path in paths for reason in path.reasons):
            if reason.effect == "assumed":
                found.setdefault(reason, []).append(name)
    for reason, names in found.items():
        text = f"{listed(names, most=_MOST)}: {reason.text}"
        yield Finding(reason.code, text, severity="note", place=reason.place)
