"""Who exchanges data with whom: the ends of a workload's demands, and how they are paired."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topo.description.description import END_OF_KIND, ENDS
from topo.description.names import MOST
from topo.errors import DescriptionError, Finding
from topo.records import dataclass
from topo.routes.nearness import Nearness, by_class, nearest_devices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.description.description import Workload
    from topo.routes.route import Direction
    from topo.routes.router import Router
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Ends:
    """An endpoint, and what it exchanges data with: storage, RAM, other GPUs, or network cards.

    `direction` is the endpoint's view: ``read`` fills it, ``write`` empties it. Several far ends
    share the bytes evenly.
    """

    endpoint: str
    far: tuple[str, ...]
    direction: Direction


def ends_of(topology: Topology, workload: Workload) -> tuple[Ends, ...]:
    """Return the ends of each demand, in the order of the workload's endpoints.

    Of the two ends it is what comes later in `ENDS` that is filled or emptied, of two alike the
    target; a drive before storage on the network. Each endpoint exchanges data with all of the
    storage, or all of the RAM. Of GPUs and network cards equal counts pair; between a set and
    itself each receives evenly from all others; else each that receives does so evenly from all
    that send. A GPU that has the bytes already needs none.

    Raises
    ------
    DescriptionError
        When nothing is left to move, a copy from a device to itself, or between too many.
    """
    sources, targets = workload.sources, workload.targets
    words = [END_OF_KIND[topology[names[0]].kind] for names in (sources, targets)]
    order = [
        (
            list(ENDS).index(word),
            word != "storage" or all(topology[name].kind != "storage" for name in names),
        )
        for word, names in zip(words, (sources, targets), strict=True)
    ]
    emptied = order[0] > order[1] or (order[0] == order[1] and workload.direction == "write")
    direction: Direction = "write" if emptied else "read"
    near, far = (sources, targets) if emptied else (targets, sources)
    if "ram" in words or ("storage" in words and words != ["storage", "storage"]):
        return tuple(Ends(endpoint, far, direction) for endpoint in near)
    pairs = len(sources) * len(targets)
    one_by_one = len(sources) == len(targets) and not set(sources) & set(targets)
    if pairs > MOST and (not one_by_one or "storage" in words):
        message = f"{workload.name} copies between {pairs} pairs of devices, more than {MOST}"
        advice = "name fewer devices"
        raise DescriptionError(Finding("huge-range", message, workload.place, help=advice))
    if "storage" in words:
        return _moving(workload, (Ends(name, _but(name, far), direction) for name in near))
    peers = zip(near, _peers(near, far), strict=True)
    return _moving(workload, (Ends(name, names, direction) for name, names in peers))


def _moving(workload: Workload, ends: Iterable[Ends]) -> tuple[Ends, ...]:
    """Return the ends between which something is left to move."""
    moving = tuple(each for each in ends if each.far)
    if not moving:
        message = f"{workload.name} copies from {workload.sources[0]} to itself"
        raise DescriptionError(Finding("workload-ends", message, place=workload.place))
    return moving


def _but(endpoint: str, far: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in far if name != endpoint)


def _peers(near: tuple[str, ...], far: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what each of `near` exchanges data with among `far`."""
    if set(far) & set(near):
        return [_but(endpoint, far) for endpoint in near]
    if len(far) == len(near):
        return [(name,) for name in far]
    return [far] * len(near)


# --- pairing --------------------------------------------------------------------------------------


def paired_ends(router: Router, workload: Workload) -> tuple[Ends, ...]:
    """Return the ends of each demand with the far ends that it is paired with.

    The policy's pairing goes before the workload's. Where neither says one, RAM is drawn from the
    nearest memories, and everything else as `ends_of` has it.

    Raises
    ------
    DescriptionError
        As `ends_of`; and where neither of the numbers of devices is a multiple of the other and the
        pairing is in order.
    """
    topology = router.topology
    ends = ends_of(topology, workload)
    pairing = router.policy.pairing or workload.pairing
    if not pairing and topology[ends[0].far[0]].is_memory:
        pairing = "nearest"
    sources, targets = workload.sources, workload.targets
    far = sources if ends[0].direction == "read" else targets
    if pairing == "all":
        alike = set(sources) & set(targets) and not topology[far[0]].is_memory
        return tuple(replace(each, far=_but(each.endpoint, far) if alike else far) for each in ends)
    if not pairing or all(len(each.far) == 1 for each in ends):
        return ends
    if pairing == "in-order":
        paired = _in_order(workload, ends, far)
        if topology[far[0]].is_memory:
            return paired
        return _moving(workload, (replace(e, far=_but(e.endpoint, e.far)) for e in paired))
    return _nearest(router, ends)


def _in_order(workload: Workload, ends: tuple[Ends, ...], far: tuple[str, ...]) -> tuple[Ends, ...]:
    """Return the ends paired by number: equal counts one by one, else in blocks."""
    many, few = max(len(ends), len(far)), min(len(ends), len(far))
    if many % few:
        message = (
            f"{workload.name} pairs {len(far)} and {len(ends)} devices in order, and neither "
            "number is a multiple of the other"
        )
        raise DescriptionError(Finding("workload-ends", message, place=workload.place))
    block = len(far) // len(ends)
    return tuple(
        replace(
            each,
            far=far[place * block : (place + 1) * block]
            if block
            else (far[place * len(far) // len(ends)],),
        )
        for place, each in enumerate(ends)
    )


def _nearest(router: Router, ends: tuple[Ends, ...]) -> tuple[Ends, ...]:
    """Return the ends with the nearest of their far ends, all of them where several are as near.

    What has none in its server keeps all.
    """
    topology = router.topology
    if topology[ends[0].far[0]].is_memory:
        return tuple(
            replace(each, far=router.nearest_memories(each.far, each.endpoint)) for each in ends
        )
    far = tuple(dict.fromkeys(name for each in ends for name in each.far))
    allowed = {each.endpoint: frozenset(each.far) for each in ends}
    by_host = by_class(topology)

    def measure(endpoint: str, name: str) -> Nearness | None:
        """Return how near a device is; a target on the network as the card that leads to it."""
        if name not in allowed[endpoint]:
            return None
        cards = router.nearest_cards(name, endpoint) if topology[name].kind == "storage" else ()
        return by_host(endpoint, cards[0] if cards else name)

    nearest = nearest_devices(topology, list(allowed), far, measure)
    return tuple(replace(each, far=tuple(nearest[each.endpoint]) or each.far) for each in ends)
