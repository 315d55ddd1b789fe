"""Which card and which drive each GPU should use, why, and who shares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.study.nearness import nearness_by, same_server
from topo.study.semi_matching import dealt
from topo.topology.locality import numa_nodes, socket_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.description.description import Device
    from topo.study.nearness import Nearness, Rules
    from topo.topology.topology import Topology


Purpose = Literal["compute", "storage", "any", "drive"]
PURPOSES: tuple[Purpose, ...] = ("compute", "storage", "any", "drive")


@dataclass(frozen=True, slots=True)
class Choice:
    """A card or drive for one GPU.

    Parameters
    ----------
    purpose
        ``storage``: a card that is cabled to storage; ``compute``: one whose role that is;
        ``any``: a card of which neither is said; ``drive``: a local drive.
    device, nearness
        What it is, and how near by the rules asked for.
    shared_with
        Other GPUs that have it too.
    as_near
        Devices just as near that others have, or nobody.
    """

    purpose: Purpose
    device: str
    nearness: Nearness
    shared_with: tuple[str, ...] = ()
    as_near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuAffinity:
    """A GPU: the CPU and NUMA nodes that it hangs on, and what it should use."""

    gpu: str
    cpu: str
    numa: tuple[int, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Affinities:
    """Every GPU with its cards and drives, and the other way round.

    `users` are the GPUs of each card and drive by purpose and name; nobody's are there as well.
    """

    topology: Topology
    rules: Rules
    gpus: tuple[GpuAffinity, ...]
    users: Mapping[Purpose, Mapping[str, tuple[str, ...]]]


def affinities(topology: Topology, *, rules: Rules = "nvidia-smi") -> Affinities:
    """Return which card and which drive each GPU should use.

    The nearest; of several as near, the GPUs are dealt out so that each device serves as equal a
    number of them as the machine allows.

    Parameters
    ----------
    topology
        The machine.
    rules
        Whose idea of near: ``nvidia-smi``'s classes, then fewest links, then widest; ``nccl``'s
        path types and bandwidths; the ``gds`` driver's ranking. NCCL knows no drives: those go by
        nvidia-smi's classes.

    Examples
    --------
    >>> import topo
    >>> first, *rest = affinities(topo.load("dgx-h100")).gpus
    >>> [(one.purpose, one.device, one.nearness.said) for one in first.choices]
    [('compute', 'nic0', 'PXB'), ('storage', 'slot2', 'NODE')]
    """
    purposes = _by_purpose(topology)
    gpus = [device.name for device in topology.of_kind("gpu")]
    near = _nearest(topology, gpus, purposes, rules)
    users: dict[Purpose, Mapping[str, tuple[str, ...]]] = {}
    for purpose, devices in purposes.items():
        wanted = {gpu: tuple(near[purpose].get(gpu, {})) for gpu in gpus}
        chosen = dealt({gpu: names for gpu, names in wanted.items() if names})
        users[purpose] = {
            name: tuple(gpu for gpu in gpus if chosen.get(gpu) == name) for name in devices
        }
    found = tuple(
        GpuAffinity(
            gpu, socket_of(topology, gpu), numa_nodes(topology, gpu), _choices(gpu, near, users)
        )
        for gpu in gpus
    )
    return Affinities(topology, rules, found, users)


_Near = dict[Purpose, dict[str, dict[str, "Nearness"]]]


def _choices(
    gpu: str, near: _Near, users: Mapping[Purpose, Mapping[str, tuple[str, ...]]]
) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            purpose=purpose,
            device=device,
            nearness=near[purpose][gpu][device],
            shared_with=tuple(other for other in those if other != gpu),
            as_near=tuple(name for name in near[purpose][gpu] if name != device),
        )
        for purpose, devices in users.items()
        for device, those in devices.items()
        if gpu in those
    )


def _nearest(
    topology: Topology, gpus: list[str], purposes: Mapping[Purpose, list[str]], rules: Rules
) -> _Near:
    """Return for each purpose and GPU the devices that none is nearer than."""
    found: _Near = {purpose: {} for purpose in purposes}
    servers = same_server(topology)
    for purpose, devices in purposes.items():
        measure = nearness_by(topology, _for(purpose, rules))
        by_server: dict[str, list[str]] = {}
        for name in devices:
            by_server.setdefault(servers[name], []).append(name)
        for gpu in gpus:
            reached = {
                name: nearness
                for name in by_server.get(servers[gpu], ())
                if (nearness := measure(gpu, name)) is not None
            }
            best = min((nearness.key for nearness in reached.values()), default=None)
            found[purpose][gpu] = {
                name: nearness for name, nearness in reached.items() if nearness.key == best
            }
    return found


def _for(purpose: Purpose, rules: Rules) -> Rules:
    """Return the rules for a purpose: NCCL knows no drives."""
    return "nvidia-smi" if purpose == "drive" and rules == "nccl" else rules


def _by_purpose(topology: Topology) -> dict[Purpose, list[str]]:
    """Return the cards and drives of each purpose that the machine has, in the file's order.

    A card that is cabled to storage and has the role `compute` is for both.
    """
    to_storage = _cabled_to_storage(topology)
    found: dict[Purpose, list[str]] = {purpose: [] for purpose in PURPOSES}
    for card in topology.of_kind("nic", "dpu"):
        for purpose in _card_purposes(card, to_storage=card.name in to_storage):
            found[purpose].append(card.name)
    found["drive"] = [device.name for device in topology.of_kind("nvme")]
    return {purpose: names for purpose, names in found.items() if names}


def _card_purposes(card: Device, *, to_storage: bool) -> tuple[Purpose, ...]:
    purposes: list[Purpose] = []
    if "compute" in card.role.lower():
        purposes.append("compute")
    if to_storage or "storage" in card.role.lower():
        purposes.append("storage")
    return tuple(purposes) or ("any",)


def _cabled_to_storage(topology: Topology) -> set[str]:
    """Return the cards that network cables join with storage, directly or through switches."""
    seen = {device.name for device in topology.of_kind("storage")}
    front = list(seen)
    while front:
        for step in topology.steps[front.pop()]:
            if step.link.layer != "network" or step.target in seen:
                continue
            seen.add(step.target)
            if topology[step.target].kind == "network-switch":
                front.append(step.target)
    return seen
