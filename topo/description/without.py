"""A description with something out of order: devices or cables that are there and do not work."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from topo.description.description import DescribedLink, Description, End, Use, Workload
from topo.description.flat import names_of
from topo.errors import Finding, UnknownNameError

Lost = TypeVar("Lost", bound=Hashable)


def without(description: Description, texts: Iterable[str]) -> Description:
    """Return what is left of a description when something fails.

    Parameters
    ----------
    description
        What a file says.
    texts
        What fails: devices as a selection names them (``leaf2``, ``node.slot1``, ``gpu[0-3]``), or
        one cable of each link between two selections (``leaf0 -- spine``, ``slot1/p2 -- leaf0``).

    Returns
    -------
    Description
        With those in `lost`, and what they leave of links and workloads. A GPU that is lost moves
        nothing, and the others move as much as before.

    Raises
    ------
    UnknownNameError
        If a text names no device or no link.
    """
    names = names_of(description)

    def selected(text: str) -> frozenset[str]:
        devices = names.matching(text)
        if not devices:
            message, advice = names.absent([text])
            raise UnknownNameError(Finding("unknown-name", message, help=advice))
        return frozenset(devices)

    lost = description.lost
    for text in map(str.strip, texts):
        if " -- " not in text:
            description = _without_devices(description, selected(text))
        else:
            (a, _, a_side), (b, _, b_side) = (
                side.strip().partition("/") for side in text.split(" -- ", 1)
            )
            left = description
            description = _without_cables(left, (selected(a), a_side), (selected(b), b_side))
            if description is left:
                message = f"there is no link `{text}` that could fail"
                raise UnknownNameError(Finding("unknown-name", message))
        lost = (*lost, text)
    return replace(description, lost=lost)


_Side: TypeAlias = "tuple[frozenset[str], str]"


def _without_cables(description: Description, a: _Side, b: _Side) -> Description:
    """Return the description with a cable less in each link between two sides."""

    def is_at(end: End, side: _Side) -> bool:
        return end.device in side[0] and side[1] in ("", end.side)

    links: list[DescribedLink] = []
    for link in description.links:
        forth = is_at(link.a, a) and is_at(link.b, b)
        if not forth and not (is_at(link.a, b) and is_at(link.b, a)):
            links.append(link)
        elif link.cable.count > 1:
            links.append(replace(link, cable=replace(link.cable, count=link.cable.count - 1)))
    a_inside, b_inside = _by_host(a[0]), _by_host(b[0])
    hosts = {host: (a_inside[host], b_inside[host]) for host in a_inside if host in b_inside}
    uses = _changed_inside(
        description.uses,
        hosts,
        lambda template, ends: _without_cables(template, (ends[0], a[1]), (ends[1], b[1])),
    )
    if len(links) == len(description.links) and uses is description.uses:
        changed = any(old is not new for old, new in zip(links, description.links, strict=True))
        if not changed:
            return description
    return replace(description, links=tuple(links), uses=uses)


def _without_devices(description: Description, devices: frozenset[str]) -> Description:
    """Return the description without devices and their links."""
    own = frozenset(name for name in devices if "." not in name)
    inside = _by_host(devices)
    return replace(
        description,
        devices=tuple(device for device in description.devices if device.name not in own),
        links=tuple(
            link for link in description.links if devices.isdisjoint((link.a.device, link.b.device))
        ),
        measurements=tuple(
            rate
            for rate in description.measurements
            if devices.isdisjoint(end.partition("/")[0] for end in (rate.source, rate.target))
        ),
        uses=_changed_inside(
            description.uses,
            inside,
            _without_devices,
        ),
        workloads=tuple(
            workload
            for workload in (_still(workload, devices) for workload in description.workloads)
            if workload.sources and workload.targets
        ),
    )


def _still(workload: Workload, devices: frozenset[str]) -> Workload:
    """Return a workload of the devices that are left, each with as many bytes as before."""
    sources, targets = (
        tuple(name for name in names if name not in devices)
        for names in (workload.sources, workload.targets)
    )
    before, left = (
        (workload.sources, sources)
        if workload.direction == "write"
        else (workload.targets, targets)
    )
    size = workload.size * len(left) / len(before)
    return replace(workload, sources=sources, targets=targets, size=size)


def _by_host(devices: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return what is inside used machines by the machine's name."""
    inside: dict[str, set[str]] = {}
    for name in devices:
        host, dot, device = name.partition(".")
        if dot:
            inside.setdefault(host, set()).add(device)
    return {host: frozenset(names) for host, names in inside.items()}


def _changed_inside(
    uses: tuple[Use, ...],
    hosts: Mapping[str, Lost],
    change: Callable[[Description, Lost], Description],
) -> tuple[Use, ...]:
    """Return used machines with a change made in some; where it is the same, they stay one use."""
    if not hosts:
        return uses
    changed: list[Use] = []
    for use in uses:
        names_by_loss: dict[Lost | None, list[str]] = {}
        for name in use.names:
            names_by_loss.setdefault(hosts.get(name), []).append(name)
        for lost, names in names_by_loss.items():
            template = use.template if lost is None else change(use.template, lost)
            changed.append(replace(use, names=tuple(names), template=template))
    return tuple(changed)
