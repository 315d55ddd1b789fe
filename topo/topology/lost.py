"""A topology with what failed in it still there: to be drawn, not to be asked.

What is left when something fails has no such device and no such cable. A picture of it shows them
all the same, where they were, so that one sees what is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.description.flat import hosts, names_of
from topo.description.without import failing
from topo.records import dataclass
from topo.topology.build import layer_of
from topo.topology.topology import Link

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.description.description import Description, Device, End
    from topo.errors import Place
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True, eq=False)
class WithLost:
    """What is left, with what failed.

    Parameters
    ----------
    topology
        Devices and links of both; resources, and answers, are of what is left alone.
    texts
        What failed, as it was named.
    devices, links
        What of `topology` failed.
    cut_off
        Devices of it that nothing leads to any more.
    """

    topology: Topology
    texts: tuple[str, ...]
    devices: frozenset[str]
    links: tuple[Link, ...]
    cut_off: frozenset[str]


def with_lost(left: Topology, whole: Topology) -> WithLost:
    """Return a topology with what it has lost of another.

    Parameters
    ----------
    left
        What is left: `whole.without(...)`.
    whole
        What it is left of.
    """
    described = whole.description.folded or whole.description
    lost = (left.description.folded or left.description).lost
    texts = lost[len(described.lost) :]
    names = names_of(described)
    failures = [failing(names, text) for text in texts]
    cables = [ends for ends in failures if len(ends) > 1]
    order = {name: place for place, name in enumerate(whole.devices)}

    def original(name: str) -> str:
        """Return the device of `whole` that is, or stands for, this one."""
        return name if name in order or whole.folding is None else whole.folding.stands_in(name)

    named = frozenset(name for ends in failures if len(ends) == 1 for name in ends[0][0])
    alone = frozenset(n for n in left.devices if not left.steps[n] and whole.steps.get(original(n)))
    devices = named | alone  # with their links

    def present(name: str) -> str:
        """Return the device of the picture that is, or stands for, this one."""
        if name in devices or name in left.devices or left.folding is None:
            return name
        return left.folding.stands_in(name)

    all_devices: dict[str, Device] = {**left.devices}
    for name in devices - all_devices.keys():
        all_devices[name] = replace(whole[original(name)], name=name)
    in_order = sorted(all_devices, key=lambda name: (order.get(original(name), len(order)), name))
    counts: dict[tuple[End, End, Cable, Place], int] = {}
    near_hosts = {name.rpartition(".")[0] for name in devices}
    near_hosts |= {name.rpartition(".")[0] for ends in cables for name in ends[0][0]}
    for a, b, cable, place in _links(described, near_hosts):
        of_device = a.device in devices or b.device in devices
        if not of_device and not any(_joins(a, b, ends) for ends in cables):
            continue
        if b.device in devices and a.device not in devices:
            a, b = b, a  # noqa: PLW2901  (what failed first: of it there is one)
        near, far = (replace(end, device=present(end.device)) for end in (a, b))
        if near.device in all_devices and far.device in all_devices:
            cable = cable if of_device else replace(cable, count=1)  # noqa: PLW2901
            key = (near, far, cable, place)
            counts[key] = counts.get(key, 0) + 1
    links = tuple(
        Link(
            a,
            b,
            cable,
            layer_of(cable, all_devices[a.device], all_devices[b.device]),
            place,
            times=(count, 1),
        )
        for (a, b, cable, place), count in counts.items()
    )
    topology = replace(
        left,
        devices={name: all_devices[name] for name in in_order},
        links=(*left.links, *links),
    )
    failed = tuple(
        link
        for link in links
        if not named.isdisjoint((link.a.device, link.b.device))
        or any(_joins(link.a, link.b, ends) for ends in cables)
    )
    return WithLost(topology, texts, named, failed, alone - named)


def _links(
    description: Description, near: set[str], prefix: str = ""
) -> Iterator[tuple[End, End, Cable, Place]]:
    """Yield the links of a description, and those inside the machines of `near`."""
    for link in description.links:
        a, b = (replace(end, device=prefix + end.device) for end in (link.a, link.b))
        yield a, b, link.cable, link.place
    for host, template in hosts(description):
        if any(f"{name}.".startswith(f"{prefix}{host}.") for name in near):
            yield from _links(template, near, f"{prefix}{host}.")


def _joins(a: End, b: End, ends: tuple[tuple[frozenset[str], str], ...]) -> bool:
    """Whether a link has its ends at two sides, either way."""

    def at(end: End, side: tuple[frozenset[str], str]) -> bool:
        return end.device in side[0] and side[1] in ("", end.side)

    first, second = ends
    return (at(a, first) and at(b, second)) or (at(a, second) and at(b, first))
