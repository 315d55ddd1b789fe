"""Whether a data path is possible between two devices, and why: every reason by its code.

Rules of peer-to-peer traffic (GPUDirect RDMA documentation, supported systems; GPUDirect Storage
guides; Linux PCI peer-to-peer DMA documentation): under one switch it always works; through a
host bridge when the bridge forwards it and the IOMMU does not translate (on Arm hosts the other
way round); across sockets it works at a loss that only a measurement can tell.

What cuFile's configuration and its driver say is in the `settings:` of the file (NVIDIA GPUDirect
Storage configuration and overview guides: compatibility mode, the keys of cufile.json, dynamic
routing; `gdscheck -p`, driver configuration).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from topo.description.description import ENDS, DataPath, Device, Settings
from topo.description.keys import AN_END
from topo.description.names import ranged
from topo.phrases import listed
from topo.routes.route import Direction, Effect, Reason, Subflow, Transfer, Verdict
from topo.routes.search import shown_names
from topo.routes.usage import dma_limits_of, is_peer, is_posted, over_pcie, stated_caps
from topo.topology.locality import socket_of
from topo.topology.topology import Topology

KnownReasons: TypeAlias = dict[int, tuple[Transfer, tuple[Reason, ...]]]
"""What the walks of transfers say, by the identity of each, which is kept."""


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that the worst of `reasons` gives."""
    effects = {reason.effect for reason in reasons}
    if "refused" in effects:
        return "refused"
    if "unknown" in effects:
        return "unknown"
    return "ok-slower" if "slower" in effects else "ok"


# --- what a data path needs, before any search ----------------------------------------------------

_MOST_NAMES: Final = 6  # of devices, in a reason


def stated_needs(
    topology: Topology,
    path: DataPath,
    far_ends: Sequence[str],
    remote: Sequence[str],
    gpu: str,
    direction: Direction = "read",
) -> Iterator[Reason]:
    """Yield what the file's facts say about the needs of `path`.

    `remote` are those of the far ends that are in no host, or in another one than the endpoint.
    """
    settings, steps = topology.settings_of(gpu), topology.steps[gpu]
    local = [name for name in far_ends if name not in remote]
    for need in path.needs:
        reason: Reason | None = None
        if need == "peer-to-peer" and topology[gpu].kind == "gpu":
            reason = _peer_to_peer(topology[gpu])
        elif need == "nvidia-gpu" and topology[gpu].part.facts.get("maker") == "amd":
            fact = f"cuFile and its driver take NVIDIA's GPUs, not {topology[gpu].part.name}"
            instead = "p2pdma" if local and not remote and path.name == "direct" else ""
            reason = Reason("not-nvidia", "refused", fact, topology[gpu].place, instead=instead)
        elif need == "cufile" and topology[gpu].part.facts.get("maker") != "amd":
            reason = _cufile(settings, direction, remote=bool(remote))
        elif need == "filesystem" and settings.filesystem is not None:
            if settings.filesystem.lower() not in _DRIVERS:
                fact = f"GPUDirect Storage does not go directly through {settings.filesystem}"
                reason = _stated(settings, "filesystem", "filesystem", "refused", fact)
        elif need == "rdma" and remote and settings.transport == "tcp":
            fact = "NVMe/TCP ends in socket buffers: a core copies from them"
            reason = _stated(settings, "transport", "transport", "refused", fact)
        elif need == "controller-memory":
            reason = _controller_memory(topology, (*far_ends, gpu))
        elif need == "local-drive" and remote:
            fact = f"{_are(topology, remote)} not local to the server"
            reason = Reason("needs-local-drive", "refused", fact)
        elif need == "remote-storage" and local:
            fact = f"{_are(topology, local)} local to the server"
            reason = Reason("needs-remote-storage", "refused", fact)
        elif need == "c2c" and all(step.link.cable.family != "nvlink-c2c" for step in steps):
            reason = Reason("needs-c2c", "refused", "no NVLink-C2C leads to", about=(gpu,))
        elif need == "fabric" and all(step.link.layer != "gpu" for step in steps):
            reason = Reason("needs-gpu-links", "refused", "no GPU links lead to", about=(gpu,))
        if reason is not None:
            yield reason


def wrong_ends(
    topology: Topology, path: DataPath, far_ends: tuple[str, ...], endpoint: str
) -> Iterator[Reason]:
    """Yield the reason when `path` does not join what it is asked to."""
    kinds = ENDS[path.far_end]
    misfits = [name for name in far_ends if topology[name].kind not in kinds]
    if topology[endpoint].kind not in ENDS[path.near_end]:
        misfits = [endpoint, *far_ends]
    if misfits:
        joined = f"{path.name} joins {AN_END[path.near_end]} with {listed(kinds, 'or')}"
        yield Reason("wrong-ends", "refused", f"{joined}, not with {listed(misfits)}")


def _peer_to_peer(gpu: Device) -> Reason | None:
    """Return why a GPU cannot, or may not, take part in peer-to-peer traffic."""
    allowed = gpu.part.flag("p2p")
    if allowed is None:
        fact = f"nothing says whether {gpu.part.name} takes PCIe peer-to-peer traffic"
        return Reason("peer-to-peer-unknown", "unknown", fact, gpu.place)
    if allowed:
        return None
    fact = f"{gpu.part.name} has no PCIe peer-to-peer"
    about: tuple[str, ...] = ()
    source = gpu.part.sources.get("p2p", "")
    own = gpu.part.place is None and source.startswith(f"{gpu.place.file}:")
    if source == "--set" or own:  # others of the part may have it
        fact, about = "no PCIe peer-to-peer, by `p2p: no` of", (gpu.name,)
    return Reason("no-peer-to-peer", "refused", fact, gpu.place, about)


def _controller_memory(topology: Topology, drives: Sequence[str]) -> Reason | None:
    """Return why one drive cannot write into another: neither has memory for that, or says so."""
    flags = {topology[name].part.flag("controller-memory") for name in drives}
    if True in flags:
        return None
    names = listed(ranged(drives, 4))
    fact = f"no controller memory buffer is stated for {names}, into which a drive could write"
    return Reason("no-controller-memory", "refused", fact)


def _stated(
    settings: Settings, key: str, code: str, effect: Effect, fact: str, instead: str = ""
) -> Reason:
    """Return a reason that rests on what the file says under a key of `settings:`."""
    return Reason(code, effect, fact, settings.places.get(key), instead=instead)


def _are(topology: Topology, names: Sequence[str]) -> str:
    texts = shown_names(topology, names)
    is_one = len(texts) == 1 and not {"[", ","} & set(texts[0])
    return f"{listed(texts, most=_MOST_NAMES)} {'is' if is_one else 'are'}"


# --- cuFile ---------------------------------------------------------------------------------------

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
_ROUTED: Final = {"GPU_MEM_NVLINKS": "routed-nvlink", "SYS_MEM": "routed-sysmem"}


def _cufile(settings: Settings, direction: Direction, *, remote: bool) -> Reason | None:
    """Return why cuFile does not go directly to (remote) storage, the weightiest fact first."""
    if settings.compat_mode == "forced":
        fact = "cuFile's compatibility mode is forced"
        return _stated(settings, "compat-mode", "compat-forced", "refused", fact, "compat")
    filesystem = (settings.filesystem or "").lower()
    if remote:
        driver = _DRIVERS.get(filesystem, "") or "nvmeof"
    else:
        driver = "p2pdma" if settings.p2pdma == "on" else "nvme"
    denied = {word.lower() for word in settings.gds_denied or ()}
    for name in (filesystem, driver):
        if name and name in denied:
            fact = f"cuFile's denylist names {name}"
            return _stated(settings, "gds-denied", "gds-denied", "refused", fact, "compat")
    supported = settings.gds_support
    if supported is not None and driver not in supported:
        if remote and not settings.filesystem and supported:
            # Without a filesystem it is not known whose support counts.
            fact = (
                f"the GDS driver supports {listed(supported)} here, not nvmeof, and no filesystem "
                "is stated"
            )
            return _stated(settings, "gds-support", "gds-support-unknown", "unknown", fact)
        if driver != "nvme" or "p2pdma" not in supported:
            others = f", only {listed(supported)}" if supported else ""
            fact = f"the GDS driver does not support {driver} here{others}"
            return _stated(settings, "gds-support", "gds-support", "refused", fact)
    if settings.direct_writes == "off" and direction == "write" and remote:
        fact = "cuFile's direct writes to remote storage are off"
        return _stated(settings, "direct-writes", "direct-writes", "refused", fact, "compat")
    return None


def routing_reason(
    topology: Topology, cards: tuple[str, ...], near: tuple[str, ...], gpu: str, joined: set[str]
) -> Reason | None:
    """Return which path cuFile's dynamic routing takes instead of the direct one, if it does.

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
    order, tree = topology.settings_of(gpu).dynamic_routing, topology.tree
    if not order or not near or all(tree.meeting(card, gpu) for card in near):
        return None
    staging = [
        peer.name
        for peer in topology.of_kind("gpu")
        if peer.name != gpu and any(tree.meeting(card, peer.name) for card in cards)
    ]
    applies = {
        "GPU_MEM_NVLINKS": not joined.isdisjoint(staging),
        "GPU_MEM": bool(staging),
        "SYS_MEM": True,
        "P2P": True,
    }
    policy = next((policy for policy in order if applies[policy]), "P2P")
    if policy == "P2P":
        return None
    names = listed(cards)
    if policy != "SYS_MEM":
        why = f"a GPU that shares a root port with {names} takes the data first"
    elif staging:
        why = "the order names nothing before it that applies"
    else:
        why = f"no GPU shares a root port with {names}, so the data goes by pinned RAM"
    fact = f"cuFile's dynamic routing takes {policy} ({why}) to"
    instead = _ROUTED.get(policy, "")
    effect: Effect = "refused" if instead else "unknown"
    place = topology.settings_of(gpu).places.get("dynamic-routing")
    return Reason("dynamic-routing", effect, fact, place, (gpu,), instead)


# --- what the walk says ---------------------------------------------------------------------------


def peer_reasons(
    topology: Topology, subflows: Iterable[Subflow], known: KnownReasons | None = None
) -> Iterator[Reason]:
    """Yield what the walks of devices' transfers say; the same reason may come several times.

    What was said of a peer transfer that routes have in common is `known`, and remembered there.
    """
    subflows = tuple(subflows)
    transfers = {
        (
            transfer.engine,
            transfer.source if topology[transfer.source].kind == "gpu" else transfer.target,
        ): transfer
        for subflow in subflows
        for transfer in subflow.transfers
        if is_peer(topology, transfer)
    }
    yield from _dma_reasons(topology, subflows)
    for transfer in transfers.values():
        if known is None:
            yield from _reasons_of_walk(topology, transfer)
            continue
        if id(transfer) not in known:
            known[id(transfer)] = (transfer, tuple(_reasons_of_walk(topology, transfer)))
        yield from known[id(transfer)][1]


def _dma_reasons(topology: Topology, subflows: Iterable[Subflow]) -> Iterator[Reason]:
    """Yield the links of which nobody knows what devices get of them."""
    for subflow in subflows:
        for transfer in subflow.transfers:
            for step, _, limit in dma_limits_of(topology, transfer):
                if limit.capacity.theoretical.unknown:
                    fact = (
                        f"how much devices get of {limit.limited_by} is not published "
                        "(state what you measure under `measured:`):"
                    )
                    yield Reason(
                        "dma-rate-unknown", "assumed", fact, None, (step.source, step.target)
                    )


def _reasons_of_walk(topology: Topology, transfer: Transfer) -> Iterator[Reason]:
    gpus = [end for end in (transfer.target, transfer.source) if topology[end].kind == "gpu"]
    for gpu in gpus:
        unable = _peer_to_peer(topology[gpu])
        if unable is not None:
            yield unable
    if transfer.move.mover == "nic":
        for end in (topology[name] for name in (*gpus, transfer.engine)):
            if end.part.flag("gdr") is False:
                fact = "GPUDirect RDMA is off (`gdr: no`) at"
                yield Reason("no-gpudirect-rdma", "refused", fact, end.place, (end.name,))
    in_host = [step for step in transfer.walk if step.link.layer == "host"]
    meeting = topology.tree.meeting(in_host[0].source, in_host[-1].target)
    if meeting and topology[meeting].part.flag("acs") is None:
        fact = "assumes that ACS redirect is off at"
        yield Reason("acs-not-said", "assumed", fact, topology[meeting].place, (meeting,))
    passed = dict.fromkeys(
        name for step, _ in transfer.shares for name in (step.source, step.target)
    )
    hosts = [topology[name] for name in passed if topology[name].is_host]
    if not hosts:
        yield Reason("same-switch", "fine", "peer-to-peer under one switch")
        return
    by_pcie = over_pcie(topology, transfer)
    if by_pcie:
        for host in hosts:
            yield _host_bridge(topology, host)
        yield from _between_bridges(topology, transfer)
    yield from _iommu(topology, hosts, over_pcie=by_pcie)
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
        fact = "peer-to-peer between sockets, over"
        yield Reason("cross-socket", "slower", fact, about=sockets)
    if by_pcie and not any(stated_caps(topology, transfer)):
        code = "peer-rate-unknown"
        fact = "peer-to-peer rate unknown here: no cap is stated for"
        if len(sockets) > 1 and not is_posted(topology, transfer):
            code = "far-reads-unknown"
            fact = (
                "reads of a GPU of another socket wait for answers, how fast is not published "
                "(state what you measure, `p2p: {non-posted: ...}`):"
            )
        yield Reason(code, "assumed", fact, about=tuple(host.name for host in hosts))


def _host_bridge(topology: Topology, host: Device) -> Reason:
    passes_peers, part = host.part.flag("forwards-p2p"), host.part.name
    about = (host.name,)
    if passes_peers is None:  # a root complex is of its CPU, as far as it does not say itself
        cpu = topology[socket_of(topology, host.name)].part
        passes_peers, part = cpu.flag("forwards-p2p"), cpu.name
    if passes_peers is None:
        fact = f"{part} is not known to forward peer-to-peer traffic:"
        return Reason("host-bridge-unknown", "unknown", fact, host.place, about)
    if passes_peers:
        fact = f"{part} forwards peer-to-peer traffic:"
        return Reason("host-bridge", "fine", fact, about=about)
    fact = f"{part} does not forward peer-to-peer traffic:"
    return Reason("host-bridge", "refused", fact, host.place, about)


def _between_bridges(topology: Topology, transfer: Transfer) -> Iterator[Reason]:
    """Yield what forbids a way from one host bridge to another, where the walk takes one."""
    roots = [step.target for step in transfer.walk if topology[step.target].is_host]
    if roots[:1] == roots[-1:]:
        return
    sockets = (socket_of(topology, root) for root in roots)
    for host in map(topology.__getitem__, dict.fromkeys((*roots, *sockets))):
        if host.part.flag("one-bridge-only"):
            fact = f"{host.part.name} forwards peer-to-peer traffic below one host bridge only:"
            yield Reason("host-bridge", "refused", fact, host.place, (host.name,))


def _iommu(topology: Topology, hosts: list[Device], *, over_pcie: bool) -> Iterator[Reason]:
    """Yield what the IOMMU's setting means: x86 wants it off, Arm on, whatever the GPU's link."""
    cpus = [topology[socket_of(topology, host.name)] for host in hosts]
    arm = any(host.part.facts.get("architecture") == "arm" for host in (*hosts, *cpus))
    if not arm and not over_pcie:
        return
    settings = topology.settings_of(next(iter(hosts)).name)
    works = "on" if arm else "in passthrough"
    if settings.iommu is None:
        needed = "on" if arm else "off or in passthrough"
        yield Reason("iommu-not-said", "assumed", f"assumes the IOMMU {needed}")
    elif settings.iommu == "passthrough-or-on":
        fact = f"the IOMMU is on or in passthrough, and peer-to-peer works only {works}"
        yield _stated(settings, "iommu", "iommu-unknown", "unknown", fact)
    elif arm and settings.iommu != "on":
        state = "off" if settings.iommu == "off" else "in passthrough"
        fact = f"this Arm host needs the IOMMU on, and it is {state}"
        yield _stated(settings, "iommu", "iommu", "refused", fact)
    elif not arm and settings.iommu == "on":
        fact = "the IOMMU translates: no peer-to-peer through the root"
        yield _stated(settings, "iommu", "iommu", "refused", fact)
