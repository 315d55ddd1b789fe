"""Which card and which drive each GPU should use, why, and who shares it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from topo.catalogue.kinds import CARDS
from topo.graph import breadth_first
from topo.limits import MOST_PAIRS, refuse_more
from topo.records import dataclass
from topo.routes.nearness import Measure, Nearness, by_class, nearest_devices, semi_matching
from topo.topology.locality import numa_nodes, socket_of
from topo.topology.rules import TYPES, gds_ranking, nccl_matrix
from topo.topology.topology import Topology

Purpose = Literal["compute", "storage", "any", "drive"]
PURPOSES: tuple[Purpose, ...] = ("compute", "storage", "any", "drive")
Rules = Literal["nvidia-smi", "nccl", "gds"]

_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Choice:
    """A card or drive for one GPU, or several.

    Parameters
    ----------
    purpose
        ``storage``: a card that is cabled to storage; ``compute``: one whose role that is;
        ``any``: a card of which neither is said; ``drive``: a local drive.
    device, nearness
        What it is, and how near by the rules asked for.
    rdma
        Its RDMA names.
    also
        More devices as near, which no other GPU has.
    shared_with
        Other GPUs that have it too.
    as_near
        Devices just as good that other GPUs have.
    """

    purpose: Purpose
    device: str
    nearness: Nearness
    rdma: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()
    as_near: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All that the GPU should use, its own first."""
        return (self.device, *self.also)


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

    def would_do_for(self, purpose: Purpose, device: str) -> tuple[str, ...]:
        """Return the GPUs of other devices that this one would serve as well."""
        return tuple(
            gpu.gpu
            for gpu in self.gpus
            for choice in gpu.choices
            if choice.purpose == purpose and device in choice.as_near
        )


def affinities(topology: Topology, *, rules: Rules = "nvidia-smi") -> Affinities:
    """Return which card and which drive each GPU should use.

    The nearest; of those one with RDMA, where others have none; of those the fastest. Of several
    that are as good, the GPUs are dealt out so that each device serves as equal a number of them as
    the machine allows. Devices that no GPU has then are dealt out to those that they are as good
    for, so that of four cards behind a GPU's switch it has all. How many links lead there does not
    count: sources of classes tell none.

    Parameters
    ----------
    topology
        The machine.
    rules
        Whose idea of near: ``nvidia-smi``'s classes, ``nccl``'s path types, the ``gds`` driver's
        distances. NCCL knows no drives: those go by nvidia-smi's classes.

    Examples
    --------
    >>> import topo
    >>> first, *_ = affinities(topo.load("dgx-h100")).gpus
    >>> [(choice.purpose, choice.device, choice.nearness.label) for choice in first.choices]
    [('compute', 'nic0', 'PXB'), ('storage', 'slot2', 'NODE')]
    """
    gpus = list(filter(topology.is_representative, (gpu.name for gpu in topology.of_kind("gpu"))))
    users: dict[Purpose, Mapping[str, tuple[str, ...]]] = {}
    choices: dict[str, list[Choice]] = {gpu: [] for gpu in gpus}
    for purpose, devices in _by_purpose(topology).items():
        # NCCL knows no drives
        measure = nearness_by(
            topology, "nvidia-smi" if (purpose, rules) == ("drive", "nccl") else rules
        )
        nearest = nearest_devices(topology, gpus, devices, measure)
        dealt = semi_matching({gpu: list(near) for gpu, near in nearest.items() if near})
        spare = _spare(nearest, dealt, devices)
        users[purpose] = {
            device: tuple(gpu for gpu in gpus if device in (dealt.get(gpu), *spare.get(gpu, ())))
            for device in devices
        }
        sharing_pairs = sum(len(sharing) ** 2 for sharing in users[purpose].values())
        refuse_more(
            sharing_pairs,
            MOST_PAIRS,
            f"pairs of GPUs share a device for the purpose `{purpose}`",
            "name fewer GPUs: an affinity lists for each what it shares with which",
        )
        for gpu, device in dealt.items():
            near, sharing, also = nearest[gpu], users[purpose][device], spare.get(gpu, ())
            choices[gpu].append(
                Choice(
                    purpose=purpose,
                    device=device,
                    nearness=near[device],
                    rdma=topology[device].rdma,
                    also=also,
                    shared_with=tuple(sharer for sharer in sharing if sharer != gpu),
                    as_near=tuple(name for name in near if name not in (device, *also)),
                )
            )
    affinity = (
        GpuAffinity(gpu, socket_of(topology, gpu), numa_nodes(topology, gpu), tuple(choices[gpu]))
        for gpu in gpus
    )
    return Affinities(topology, rules, tuple(affinity), users)


def _spare(
    nearest: Mapping[str, Mapping[str, Nearness]], dealt: Mapping[str, str], devices: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return devices that are no GPU's own by the GPU that gets them, in the devices' order."""
    candidates: dict[str, list[str]] = {device: [] for device in devices}
    for device in dealt.values():
        candidates.pop(device, None)
    for gpu, near in nearest.items():
        for device in near:
            if device in candidates:
                candidates[device].append(gpu)
    spare: dict[str, tuple[str, ...]] = {}
    matched = semi_matching({device: gpus for device, gpus in candidates.items() if gpus})
    for device in filter(matched.__contains__, candidates):
        gpu = matched[device]
        spare[gpu] = (*spare.get(gpu, ()), device)
    return spare


def _by_purpose(topology: Topology) -> dict[Purpose, list[str]]:
    """Return the cards and drives of each purpose that the machine has, in the file's order.

    A card that is cabled to storage and has the role `compute` is for both.
    """

    def cabled(name: str) -> Iterator[str]:
        if topology[name].kind in ("storage", "network-switch"):
            for step in topology.steps[name]:
                if step.link.layer == "network":
                    yield step.target

    # what network cables join with storage, directly or through switches
    to_storage = breadth_first((device.name for device in topology.of_kind("storage")), cabled)
    devices: dict[Purpose, list[str]] = {purpose: [] for purpose in PURPOSES}
    for card in topology.of_kind(*CARDS):
        compute = "compute" in card.role.lower()
        storage = card.name in to_storage or "storage" in card.role.lower()
        if compute:
            devices["compute"].append(card.name)
        if storage:
            devices["storage"].append(card.name)
        if not compute and not storage:
            devices["any"].append(card.name)
    devices["drive"] = [device.name for device in topology.of_kind("nvme")]
    return {
        purpose: answering
        for purpose, names in devices.items()
        if (answering := list(filter(topology.is_representative, names)))
    }


# --- how near, by whose rules ---------------------------------------------------------------------


def nearness_by(topology: Topology, rules: Rules) -> Measure:
    """Return a function of a GPU and another device: how near, `None` when nothing joins them."""
    return {"nvidia-smi": by_class, "nccl": _by_nccl, "gds": _by_gds}[rules](topology)


def _by_nccl(topology: Topology) -> Measure:
    paths = nccl_matrix(topology)

    def measure(gpu: str, device: str) -> Nearness | None:
        path = paths.get(gpu, {}).get(device)
        if path is None:
            return None
        return Nearness(path.type, path.hops, path.bandwidth * _GIGA, TYPES.index(path.type))

    return measure


def _by_gds(topology: Topology) -> Measure:
    ranking = gds_ranking(topology)
    peers = {(gpu, peer.name): peer for gpu, ranked in ranking.items() for peer in ranked}

    def measure(gpu: str, device: str) -> Nearness | None:
        peer = peers.get((gpu, device))
        if peer is None:
            return None
        return Nearness(f"distance {peer.distance}", None, None, peer.distance)

    return measure
