"""Whether a data path is possible between two devices, and why: every reason by its code.

Rules of peer-to-peer traffic (GPUDirect RDMA documentation, supported systems; GPUDirect Storage
guides; Linux PCI peer-to-peer DMA documentation): under one switch it always works; through a
host bridge when the bridge forwards it and the IOMMU does not translate (on Arm hosts the other
way round); across sockets it works at a loss that only a measurement can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.routes.model import Reason, Verdict
from topo.routes.use import is_peer, peer_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from topo.routes.model import Branch, Leg
    from topo.spec.model import DataPath
    from topo.topology import Device, Topology

__all__ = ["closed", "peer_reasons", "stated_needs", "verdict_of"]

_HOSTS = ("cpu", "root-complex")
# Filesystems and clients that cuFile names as supported for direct transfers.
_DIRECT_FILESYSTEMS = frozenset(
    {"ext4", "xfs", "lustre", "weka", "wekafs", "beegfs", "gpfs", "nfs", "nfs-rdma", "vast", "scatefs"}
)


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
    topology: Topology, path: DataPath, storages: tuple[str, ...], gpu: str
) -> tuple[Reason, ...]:
    """Return what the file's facts say about the needs of `path`."""
    return tuple(
        reason
        for need in path.needs
        for reason in _NEEDS.get(need, _nothing)(topology, storages, gpu)
    )


def _nothing(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    yield from ()


def _peer_to_peer(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    device = topology[gpu]
    allowed = device.part.flag("p2p")
    if allowed is False:
        yield Reason(
            "no-peer-to-peer",
            "refused",
            f"{device.part.name} has no PCIe peer-to-peer",
            device.place,
        )
    elif allowed is None:
        yield Reason(
            "peer-to-peer-unknown",
            "unknown",
            f"nothing says whether {device.part.name} takes PCIe peer-to-peer traffic",
            device.place,
        )


def _filesystem(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    said = topology.settings.filesystem
    if said is not None and said.lower() not in _DIRECT_FILESYSTEMS:
        yield Reason(
            "filesystem",
            "refused",
            f"GPUDirect Storage does not go directly through {said}",
            topology.settings.places.get("filesystem"),
        )


def _rdma(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    remote = any(topology[name].kind == "storage" for name in storages)
    if remote and topology.settings.transport == "tcp":
        yield Reason(
            "transport",
            "refused",
            "NVMe/TCP ends in socket buffers: a core copies from them",
            topology.settings.places.get("transport"),
        )


def _local_drive(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    for name in storages:
        if topology[name].kind == "storage":
            yield Reason("needs-local-drive", "refused", f"{name} is not a local drive")


def _remote_storage(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    for name in storages:
        if topology[name].kind != "storage":
            yield Reason("needs-remote-storage", "refused", f"{name} is a local drive")


def _c2c(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    if not any(step.link.cable.family == "nvlink-c2c" for step in topology.steps[gpu]):
        yield Reason("needs-c2c", "refused", f"{gpu} has no NVLink-C2C")


def _fabric(topology: Topology, storages: tuple[str, ...], gpu: str) -> Iterator[Reason]:
    if not any(step.link.layer == "gpu" for step in topology.steps[gpu]):
        yield Reason("needs-gpu-links", "refused", f"no GPU links lead to {gpu}")


_NEEDS: dict[str, Callable[[Topology, tuple[str, ...], str], Iterator[Reason]]] = {
    "peer-to-peer": _peer_to_peer,
    "filesystem": _filesystem,
    "rdma": _rdma,
    "local-drive": _local_drive,
    "remote-storage": _remote_storage,
    "c2c": _c2c,
    "fabric": _fabric,
}


def closed(topology: Topology, path: DataPath, storage: str, gpu: str) -> Reason:
    """Return the reason for "no way": what is missing between `storage` and `gpu`."""
    if not topology.of_kind("memory") and any(
        end.endswith("-buffer") for move in path.moves for end in (move.source, move.target)
    ):
        return Reason("no-memory", "refused", "no system RAM in this file for the buffers")
    text = f"no permitted way joins {storage} and {gpu}"
    if topology[storage].kind == "storage":
        text = f"no network card reaches both {storage} and {gpu}"
    return Reason("no-way", "refused", text, topology[gpu].place)


# --- what the walk says -------------------------------------------------------------------------


def peer_reasons(
    topology: Topology, branches: Iterable[Branch], direction: str
) -> Iterator[Reason]:
    """Yield what the walks of peer-to-peer legs say; the same reason may come several times."""
    for branch in branches:
        for leg in branch.legs:
            if is_peer(topology, leg):
                yield from _leg_reasons(topology, leg, direction)


def _leg_reasons(topology: Topology, leg: Leg, direction: str) -> Iterator[Reason]:
    hosts = _hosts_passed(topology, leg)
    if not hosts:
        yield Reason("same-switch", "fine", "peer-to-peer under one switch")
        return
    over_pcie = _all_pcie(topology, leg)
    if over_pcie:
        for host in hosts:
            yield from _host_bridge(topology, host)
        yield from _iommu(topology, hosts)
        yield from _redirect(topology, leg)
    if len(hosts) > 1:
        yield Reason(
            "cross-socket",
            "slower",
            f"peer-to-peer between sockets, over {hosts[0].name} and {hosts[-1].name}",
        )
    if over_pcie and not _capped(topology, leg, direction):
        yield Reason(
            "peer-rate-unknown",
            "assumed",
            "peer-to-peer rate unknown here: no cap is stated for "
            + " or ".join(host.name for host in hosts),
        )


def _hosts_passed(topology: Topology, leg: Leg) -> tuple[Device, ...]:
    passed = dict.fromkeys(
        name
        for step in leg.walk
        for name in (step.source, step.target)
        if topology[name].kind in _HOSTS
    )
    return tuple(topology[name] for name in passed)


def _all_pcie(topology: Topology, leg: Leg) -> bool:
    """Whether the GPU is entered or left by PCIe: chip-to-chip links are the CPU's own fabric."""
    gpu_step = leg.walk[-1] if topology[leg.target].kind == "gpu" else leg.walk[0]
    return gpu_step.link.cable.family == "pcie"


def _host_bridge(topology: Topology, host: Device) -> Iterator[Reason]:
    forwards = host.part.flag("forwards-p2p")
    if forwards is False:
        yield Reason(
            "host-bridge",
            "refused",
            f"{host.name} ({host.part.name}) does not forward peer-to-peer traffic",
            host.place,
        )
    elif forwards is None:
        yield Reason(
            "host-bridge-unknown",
            "unknown",
            f"{host.name} ({host.part.name}) is not known to forward peer-to-peer traffic",
            host.place,
        )
    else:
        yield Reason("host-bridge", "fine", f"{host.name} forwards peer-to-peer traffic")


def _iommu(topology: Topology, hosts: tuple[Device, ...]) -> Iterator[Reason]:
    arm = any(host.part.facts.get("architecture") == "arm" for host in hosts)
    said, place = topology.settings.iommu, topology.settings.places.get("iommu")
    if said is None:
        wanted = "on" if arm else "off or in passthrough"
        yield Reason("iommu-not-said", "assumed", f"assumes the IOMMU {wanted}")
    elif arm and said != "on":
        yield Reason("iommu", "refused", f"this Arm host needs the IOMMU on, it is {said}", place)
    elif not arm and said == "on":
        yield Reason(
            "iommu", "refused", "the IOMMU translates: peer-to-peer through the root is off", place
        )


def _redirect(topology: Topology, leg: Leg) -> Iterator[Reason]:
    """Yield the ACS reason when the walk uses one uplink both ways."""
    links = [step.link.name for step in leg.walk if step.link.layer == "host"]
    if len(set(links)) == len(links):
        return
    for step in leg.walk:
        device = topology[step.target]
        if device.part.flag("acs"):
            yield Reason(
                "acs-redirect",
                "slower",
                f"ACS redirect at {device.name}: goes by the root, its uplink twice",
                device.place,
            )
            return


def _capped(topology: Topology, leg: Leg, direction: str) -> bool:
    for _, caps, _ in peer_sites(topology, leg):
        if (caps.posted if direction == "read" else caps.non_posted) is not None:
            return True
    return False
