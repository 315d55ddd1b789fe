"""What cuFile's configuration and its driver say of the direct way: `settings:` of the file.

References
----------
NVIDIA GPUDirect Storage configuration and overview guides: compatibility mode, the keys of
cufile.json, dynamic routing; `gdscheck -p`, driver configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.description.shape import listed
from topo.routes.route import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.routes.ends import Ends
    from topo.routes.route import Effect
    from topo.topology import Topology


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


def _filesystem(ends: Ends) -> str:
    return (ends.topology.settings.filesystem or "").lower()


def _driver(ends: Ends) -> str:
    """Return the driver that carries the data, by gdscheck's rows."""
    by_filesystem = _DRIVERS.get(_filesystem(ends), "")
    if ends.remote:
        return by_filesystem or "nvmeof"
    return "p2pdma" if ends.topology.settings.p2pdma == "on" else "nvme"


def _denied(ends: Ends) -> Iterator[Reason]:
    settings = ends.topology.settings
    words = {word.lower() for word in settings.gds_denied or ()}
    for name in dict.fromkeys((_filesystem(ends), _driver(ends))):
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
