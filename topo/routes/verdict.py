"""Whether a data path is possible between two devices, and why: every reason by its code.

Rules of peer-to-peer traffic (GPUDirect RDMA documentation, supported systems; GPUDirect Storage
guides; Linux PCI peer-to-peer DMA documentation): under one switch it always works; through a
host bridge when the bridge forwards it and the IOMMU does not translate (on Arm hosts the other
way round); across sockets it works at a loss that only a measurement can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.description.shape import listed
from topo.routes.route import Reason, Verdict
from topo.routes.usage import dma_way, is_peer, peer_sites
from topo.topology.locality import socket_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from topo.description.description import DataPath, Device
    from topo.routes.route import Direction, Effect, Subflow, Transfer
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Ends:
    """Storage (or a peer) and a GPU of one machine, and which way the data goes."""

    topology: Topology
    storages: tuple[str, ...]
    gpu: str
    direction: Direction = "read"

    @property
    def remote(self) -> bool:
        """Whether some of the storage is behind a network."""
        return any(self.topology[name].kind == "storage" for name in self.storages)


_HOSTS = ("cpu", "root-complex")


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that the worst of `reasons` gives."""
    effects = {reason.effect for reason in reasons}
    if "refused" in effects:
        return "refused"
    if "unknown" in effects:
        return "unknown"
    return "ok-slower" if "slower" in effects else "ok"


# --- what a data path needs, before any search --------------------------------------------------


def stated_needs(
    topology: Topology,
    path: DataPath,
    storages: tuple[str, ...],
    gpu: str,
    direction: Direction = "read",
) -> tuple[Reason, ...]:
    """Return what the file's facts say about the needs of `path`."""
    ends = Ends(topology, storages, gpu, direction)
    found = (_NEEDS[need](ends) for need in path.needs)
    return tuple(reason for reason in found if reason is not None)


def wrong_ends(topology: Topology, path: DataPath, far: tuple[str, ...]) -> Iterator[Reason]:
    """Yield the reason when `path` does not join a GPU with what it is asked to."""
    wanted: tuple[str, ...] = ("storage", "nvme", "hba")
    if path.far_end == "peer":
        by_nic = any(move.mover == "nic" for move in path.moves)
        wanted = ("nic", "dpu") if by_nic else ("gpu",)
    misfits = [name for name in far if topology[name].kind not in wanted]
    if misfits:
        text = f"{path.name} joins a GPU with {listed(wanted, 'or')}, not with {listed(misfits)}"
        yield Reason("wrong-ends", "refused", text)


def _peer_to_peer(ends: Ends) -> Reason | None:
    device = ends.topology[ends.gpu]
    allowed = device.part.flag("p2p")
    if allowed is None:
        text = f"nothing says whether {device.part.name} takes PCIe peer-to-peer traffic"
        return Reason("peer-to-peer-unknown", "unknown", text, device.place)
    if allowed:
        return None
    text = f"{device.part.name} has no PCIe peer-to-peer"
    return Reason("no-peer-to-peer", "refused", text, device.place)


def _filesystem(ends: Ends) -> Reason | None:
    settings = ends.topology.settings
    if settings.filesystem is None or settings.filesystem.lower() in DIRECT_FILESYSTEMS:
        return None
    text = f"GPUDirect Storage does not go directly through {settings.filesystem}"
    return Reason("filesystem", "refused", text, settings.places.get("filesystem"))


def _rdma(ends: Ends) -> Reason | None:
    settings = ends.topology.settings
    remote = any(ends.topology[name].kind == "storage" for name in ends.storages)
    if not remote or settings.transport != "tcp":
        return None
    text = "NVMe/TCP ends in socket buffers: a core copies from them"
    return Reason("transport", "refused", text, settings.places.get("transport"))


def _local_drive(ends: Ends) -> Reason | None:
    remote = [name for name in ends.storages if ends.topology[name].kind == "storage"]
    if not remote:
        return None
    text = f"{listed(remote)} {_is(remote)} not local to the server"
    return Reason("needs-local-drive", "refused", text)


def _remote_storage(ends: Ends) -> Reason | None:
    local = [name for name in ends.storages if ends.topology[name].kind != "storage"]
    if not local:
        return None
    text = f"{listed(local)} {_is(local)} local to the server"
    return Reason("needs-remote-storage", "refused", text)


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _c2c(ends: Ends) -> Reason | None:
    if any(step.link.cable.family == "nvlink-c2c" for step in ends.topology.steps[ends.gpu]):
        return None
    return Reason("needs-c2c", "refused", "no NVLink-C2C leads to", about=(ends.gpu,))


def _fabric(ends: Ends) -> Reason | None:
    if any(step.link.layer == "gpu" for step in ends.topology.steps[ends.gpu]):
        return None
    return Reason("needs-gpu-links", "refused", "no GPU links lead to", about=(ends.gpu,))


# Filesystems and clients that cuFile names as supported for direct transfers, and the driver that
# gdscheck lists them under; the first two lie on a drive.
_DRIVERS: Final[Mapping[str, str]] = {
    "ext4": "",
    "xfs": "",
    "lustre": "lustre",
    "weka": "wekafs",
    "wekafs": "wekafs",
    "beegfs": "beegfs",
    "gpfs": "gpfs",
    "nfs": "nfs",
    "nfs-rdma": "nfs",
    "vast": "nfs",
    "scatefs": "scatefs",
}
DIRECT_FILESYSTEMS: Final = frozenset(_DRIVERS)
_ROUTED: Final = {"GPU_MEM_NVLINKS": "routed-nvlink", "SYS_MEM": "routed-sysmem"}


def cufile_reason(ends: Ends) -> Reason | None:
    """Return why cuFile does not go directly between `ends`, the weightiest fact first."""
    return next(_reasons(ends), None)


def _reasons(ends: Ends) -> Iterator[Reason]:
    settings = ends.topology.settings
    if settings.compat_mode == "forced":
        place = settings.places.get("compat-mode")
        text = "cuFile's compatibility mode is forced"
        yield Reason("compat-forced", "refused", text, place, instead="compat")
    yield from _denied(ends)
    yield from _unsupported(ends)
    if settings.direct_writes == "off" and ends.direction == "write" and ends.remote:
        place = settings.places.get("direct-writes")
        text = "cuFile's direct writes to remote storage are off"
        yield Reason("direct-writes", "refused", text, place, instead="compat")


def _filesystem_of(ends: Ends) -> str:
    return (ends.topology.settings.filesystem or "").lower()


def _driver(ends: Ends) -> str:
    """Return the driver that carries the data, by gdscheck's rows."""
    by_filesystem = _DRIVERS.get(_filesystem_of(ends), "")
    if ends.remote:
        return by_filesystem or "nvmeof"
    return "p2pdma" if ends.topology.settings.p2pdma == "on" else "nvme"


def _denied(ends: Ends) -> Iterator[Reason]:
    settings = ends.topology.settings
    words = {word.lower() for word in settings.gds_denied or ()}
    for name in dict.fromkeys((_filesystem_of(ends), _driver(ends))):
        if name and name in words:
            text = f"cuFile's denylist names {name}"
            place = settings.places.get("gds-denied")
            yield Reason("gds-denied", "refused", text, place, instead="compat")


def _unsupported(ends: Ends) -> Iterator[Reason]:
    """Yield what the driver lacks; without a filesystem it is not known whose support counts."""
    settings = ends.topology.settings
    supported, place = settings.gds_support, settings.places.get("gds-support")
    driver = _driver(ends)
    if supported is None or driver in supported:
        return
    if driver == "nvme" and "p2pdma" in supported:
        return
    if ends.remote and not settings.filesystem and supported:
        text = (
            f"the GDS driver supports {listed(supported)} here, not nvmeof, and no filesystem is "
            "stated"
        )
        yield Reason("gds-support-unknown", "unknown", text, place)
        return
    others = f", only {listed(supported)}" if supported else ""
    text = f"the GDS driver does not support {driver} here{others}"
    yield Reason("gds-support", "refused", text, place)


_NEEDS: dict[str, Callable[[Ends], Reason | None]] = {
    "peer-to-peer": _peer_to_peer,
    "filesystem": _filesystem,
    "rdma": _rdma,
    "local-drive": _local_drive,
    "remote-storage": _remote_storage,
    "c2c": _c2c,
    "fabric": _fabric,
    "cufile": cufile_reason,
}


# --- what the walk says -------------------------------------------------------------------------


def peer_reasons(topology: Topology, subflows: Iterable[Subflow]) -> Iterator[Reason]:
    """Yield what the walks of peer-to-peer legs say; the same reason may come several times."""
    transfers = {
        (
            transfer.engine,
            transfer.source if topology[transfer.source].kind == "gpu" else transfer.target,
        ): transfer
        for subflow in subflows
        for transfer in subflow.transfers
        if is_peer(topology, transfer)
    }
    for transfer in transfers.values():
        yield from _leg_reasons(topology, transfer)


def _leg_reasons(topology: Topology, transfer: Transfer) -> Iterator[Reason]:
    gpus = [end for end in (transfer.target, transfer.source) if topology[end].kind == "gpu"]
    for gpu in gpus:
        unable = _peer_to_peer(Ends(topology, (), gpu))
        if unable is not None:
            yield unable
    hosts = _hosts_passed(topology, transfer)
    if not hosts:
        yield Reason("same-switch", "fine", "peer-to-peer under one switch")
        return
    over_pcie = all(_enters_by_pcie(transfer, gpu) for gpu in gpus)
    if over_pcie:
        for host in hosts:
            yield _host_bridge(host)
    yield from _iommu(topology, hosts, over_pcie=over_pcie)
    yield from _detours(topology, transfer, hosts)
    if over_pcie and not _capped(topology, transfer):
        yield Reason(
            "peer-rate-unknown",
            "assumed",
            "peer-to-peer rate unknown here: no cap is stated for",
            about=tuple(host.name for host in hosts),
        )


def _detours(topology: Topology, transfer: Transfer, hosts: tuple[Device, ...]) -> Iterator[Reason]:
    """Yield what makes the way longer than it looks: ACS redirect, another socket."""
    if transfer.sent_up_by:
        yield Reason(
            "acs-redirect",
            "slower",
            "ACS redirect sends peer-to-peer traffic by the root, over the uplink twice, at",
            topology[transfer.sent_up_by].place,
            about=(transfer.sent_up_by,),
        )
    sockets = tuple(dict.fromkeys(socket_of(topology, host.name) for host in hosts))
    if len(sockets) > 1:
        text = "peer-to-peer between sockets, over"
        yield Reason("cross-socket", "slower", text, about=sockets)


def _hosts_passed(topology: Topology, transfer: Transfer) -> tuple[Device, ...]:
    passed = dict.fromkeys(
        name
        for step, _ in transfer.shares
        for name in (step.source, step.target)
        if topology[name].kind in _HOSTS
    )
    return tuple(topology[name] for name in passed)


def _enters_by_pcie(transfer: Transfer, gpu: str) -> bool:
    """Whether a GPU is entered or left by PCIe: chip-to-chip links are the CPU's own fabric."""
    gpu_step = transfer.walk[-1] if transfer.target == gpu else transfer.walk[0]
    return gpu_step.link.cable.family == "pcie"


def _host_bridge(host: Device) -> Reason:
    forwards, part = host.part.flag("forwards-p2p"), host.part.name
    about = (host.name,)
    if forwards is None:
        text = f"{part} is not known to forward peer-to-peer traffic:"
        return Reason("host-bridge-unknown", "unknown", text, host.place, about)
    if forwards:
        text = f"{part} forwards peer-to-peer traffic:"
        return Reason("host-bridge", "fine", text, about=about)
    text = f"{part} does not forward peer-to-peer traffic:"
    return Reason("host-bridge", "refused", text, host.place, about)


def _iommu(topology: Topology, hosts: tuple[Device, ...], *, over_pcie: bool) -> Iterator[Reason]:
    """Yield what the IOMMU's setting means: x86 wants it off, Arm on, whatever the GPU's link."""
    arm = any(host.part.facts.get("architecture") == "arm" for host in hosts)
    if not arm and not over_pcie:
        return
    said, place = topology.settings.iommu, topology.settings.places.get("iommu")
    if said is None:
        wanted = "on" if arm else "off or in passthrough"
        yield Reason("iommu-not-said", "assumed", f"assumes the IOMMU {wanted}")
    elif said == "passthrough-or-on":
        works = "on" if arm else "in passthrough"
        text = f"the IOMMU is on or in passthrough, and peer-to-peer works only {works}"
        yield Reason("iommu-unknown", "unknown", text, place)
    elif arm and said != "on":
        text = f"this Arm host needs the IOMMU on, and it is {_IOMMU[said]}"
        yield Reason("iommu", "refused", text, place)
    elif not arm and said == "on":
        text = "the IOMMU translates: no peer-to-peer through the root"
        yield Reason("iommu", "refused", text, place)


_IOMMU = {"off": "off", "passthrough": "in passthrough"}


def _capped(topology: Topology, transfer: Transfer) -> bool:
    way = dma_way(topology, transfer)
    return any(site.cap(way) is not None for site in peer_sites(topology, transfer))


# --- dynamic routing ------------------------------------------------------------------------------


def routing_reason(
    topology: Topology, cards: tuple[str, ...], near: tuple[str, ...], gpu: str, joined: set[str]
) -> Reason | None:
    """Return which way cuFile's dynamic routing takes instead of the direct one, if it does.

    Where the GPU hangs in one PCIe tree with its cards, routing is not used. Else the first policy
    of the order that applies is: staging in a GPU that shares a root port with one of the cards, or
    pinned RAM.

    Parameters
    ----------
    topology
        The machine.
    cards, near
        The cards that lead to the storage, and those of them that serve this GPU.
    gpu
        The GPU.
    joined
        The GPUs that GPU links join with it.
    """
    order, tree = topology.settings.dynamic_routing, topology.tree
    if not order or not near or all(tree.meeting(card, gpu) for card in near):
        return None
    stages = [
        one.name
        for one in topology.of_kind("gpu")
        if one.name != gpu and any(tree.meeting(card, one.name) for card in cards)
    ]
    by_links = [name for name in stages if name in joined]
    ways = {
        "GPU_MEM_NVLINKS": by_links,
        "GPU_MEM": stages,
        "SYS_MEM": ["pinned RAM"],
        "P2P": ["the direct way"],
    }
    policy = next((policy for policy in order if ways[policy]), "P2P")
    if policy == "P2P":
        return None
    return _routed(topology, policy, cards, gpu, stages=bool(stages))


def _routed(
    topology: Topology, policy: str, cards: tuple[str, ...], gpu: str, *, stages: bool
) -> Reason:
    place = topology.settings.places.get("dynamic-routing")
    names = listed(cards)
    if policy != "SYS_MEM":
        why = f"a GPU that shares a root port with {names} takes the data first"
    elif stages:
        why = "the order names nothing before it that applies"
    else:
        why = f"no GPU shares a root port with {names}, so the data goes by pinned RAM"
    text = f"cuFile's dynamic routing takes {policy} ({why}) to"
    instead = _ROUTED.get(policy, "")
    effect: Effect = "refused" if instead else "unknown"
    return Reason("dynamic-routing", effect, text, place, (gpu,), instead)
