"""Which GPU exchanges data with what, for each demand of a workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.errors import DescriptionError, Finding

if TYPE_CHECKING:
    from topo.description.description import Workload
    from topo.routes.route import Direction
    from topo.topology import Topology


@dataclass(frozen=True, slots=True)
class Ends:
    """One GPU, and what it exchanges data with: storage, other GPUs, or network cards.

    `direction` is the GPU's view: ``read`` fills it, ``write`` empties it. Several far ends share
    the bytes evenly.
    """

    gpu: str
    far: tuple[str, ...]
    direction: Direction


def ends_of(topology: Topology, workload: Workload) -> tuple[Ends, ...]:
    """Return the ends of each demand, in the order of the workload's GPUs.

    A read or a write is one demand a GPU with all of the storage. A copy pairs equal counts of
    devices; between a set and itself each receives evenly from all others; else each that
    receives does so evenly from all that send. A GPU that has the bytes already needs none.

    Raises
    ------
    DescriptionError
        When nothing is left to move: a copy from a device to itself.
    """
    sources, targets = workload.sources, workload.targets
    if workload.direction == "read":
        return tuple(Ends(gpu, sources, "read") for gpu in targets)
    if workload.direction == "write":
        return tuple(Ends(gpu, targets, "write") for gpu in sources)
    if topology[targets[0]].kind == "gpu":
        pairs = tuple(Ends(gpu, _peers(gpu, sources, targets), "read") for gpu in targets)
    else:
        pairs = tuple(Ends(gpu, _peers(gpu, targets, sources), "write") for gpu in sources)
    found = tuple(one for one in pairs if one.far)
    if not found:
        message = f"{workload.name} copies from {sources[0]} to itself"
        raise DescriptionError(Finding("workload-ends", message, place=workload.place))
    return found


def _peers(gpu: str, far: tuple[str, ...], near: tuple[str, ...]) -> tuple[str, ...]:
    """Return what `gpu`, one of `near`, exchanges data with among `far`."""
    if set(far) & set(near):
        return tuple(name for name in far if name != gpu)
    if len(far) == len(near):
        return (far[near.index(gpu)],)
    return far
