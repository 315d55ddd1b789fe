"""A description with something out of order: devices or cables that are there and do not work."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from topo.catalogue.kinds import HOSTS, STORAGE, Kind
from topo.description.description import DescribedLink, Description, End, Use, Workload
from topo.description.flat import hosts, names_of
from topo.description.names import Names, ranged
from topo.errors import Finding, UnknownNameError
from topo.graph import breadth_first
from topo.phrases import listed

_MOST: Final = 4  # names in a list before "and 3 more"

Lost = TypeVar("Lost", bound=Hashable)


def without(
    description: Description, texts: Iterable[str], names: Names | None = None
) -> Description:
    """Return what is left of a description when something fails.

    Parameters
    ----------
    description
        What a file says.
    texts
        What fails: devices as a selection names them (``leaf2``, ``node.slot1``, ``gpu[0-3]``),
        whole used machines (``node3``), or one cable of each link between two selections (``leaf0
        -- spine``, ``slot1/p2 -- leaf0``).
    names
        Those of its devices, where somebody has them.

    Returns
    -------
    Description
        With those in `lost`, and what they leave of links and workloads. A GPU that is lost moves
        nothing, and the others move as much as before. What no CPU leads to any more (devices below
        a switch that fails, storage whose cards fail) stays without links, and storage among it is
        lost to workloads. Where all that a workload reads from, or all that it fills, is lost,
        those devices stay and nothing leads to them: what it gets is an answer, too.

    Raises
    ------
    UnknownNameError
        With every text that names no device or no link.
    """
    before, names = description, names or names_of(description)
    findings: list[Finding] = []

    lost = description.lost
    for text in map(str.strip, texts):
        sides = failing(names, text)
        ends = zip(_ends(text), sides, strict=True)
        missing = [end for (end, _), (devices, _) in ends if not devices]
        for end in missing:
            message, advice = names.absent([end])
            findings.append(Finding("unknown-name", message, help=advice))
        if len(sides) == 1:
            description = _without_devices(description, sides[0][0])
        else:
            left = _without_cables(description, *sides)
            if left is description and not missing:
                findings.append(_no_such_link(description, text, *sides))
            description = left
        lost = (*lost, text)
    if findings:
        raise UnknownNameError(findings)
    if cut_off := dict(_cut_off(before, description)):
        storage = frozenset(name for name, kind in cut_off.items() if kind in STORAGE)
        description = replace(
            _disconnected(description, (frozenset(cut_off), frozenset(cut_off))),
            workloads=tuple(_still(workload, storage) for workload in description.workloads),
        )
    return replace(description, lost=lost)


_Side: TypeAlias = "tuple[frozenset[str], str]"


def failing(names: Names, text: str) -> tuple[_Side, ...]:
    """Return the devices that a text names, or those at each end of links, with their side there.

    Parameters
    ----------
    names
        Those of the description.
    text
        As for `without`; where it names nothing, there are no devices.
    """

    def devices(end: str) -> frozenset[str]:
        return frozenset(names.matching(end) or names.in_machines(end))

    return tuple((devices(end), side) for end, side in _ends(text))


def _ends(text: str) -> list[tuple[str, str]]:
    """Return the devices that a text names and no side, or both ends of links with their sides."""
    a, joins, b = text.partition(" -- ")
    if not joins:
        return [(text.strip(), "")]
    return [(end.strip(), side.strip()) for end, _, side in (a.partition("/"), b.partition("/"))]


def _no_such_link(description: Description, text: str, a: _Side, b: _Side) -> Finding:
    """Return the finding that no link joins two sides, with what the first is joined with."""
    first = min(a[0])
    inside = {f"{host}.": template for host, template in hosts(description)}
    neighbours = {
        prefix + far.device: None
        for prefix, part in {"": description, **inside}.items()
        for link in part.links
        for near, far in ((link.a, link.b), (link.b, link.a))
        if prefix + near.device == first and (a[1] in ("", near.side) or far.device not in b[0])
    }
    advice = (
        f"{first} is joined with {listed(ranged(neighbours), most=_MOST)}" if neighbours else ""
    )
    return Finding("unknown-name", f"no link joins `{text}`", help=advice)


def _cut_off(before: Description, left: Description) -> Iterator[tuple[str, Kind]]:
    """Yield the devices, with their kinds, that a CPU led to and none does any more."""
    reached = _reached(left)
    yield from ((name, kind) for name, kind in _reached(before).items() if name not in reached)
    if left.uses is before.uses:
        return
    templates = dict(hosts(before))
    for host, template in hosts(left):
        if template is not templates[host]:
            for name, kind in _cut_off(templates[host], template):
                yield f"{host}.{name}", kind


def _reached(description: Description) -> dict[str, Kind]:
    """Return the kinds of the devices that a CPU leads to: by PCIe and the like, storage by cards.

    Where there is no CPU, root complexes stand for them, and used machines have their own.
    """
    kinds = {device.name: device.kind for device in description.devices}
    on_host: dict[str, list[str]] = {}
    on_network: dict[str, list[str]] = {}
    for link in description.links:
        a, b = link.a.device, link.b.device
        among_gpus = {kinds.get(a), kinds.get(b)} <= {"gpu", "nvswitch"}
        if link.cable.reach == "memory" or among_gpus:
            continue
        steps = on_network if link.cable.reach == "network" else on_host
        steps.setdefault(a, []).append(b)
        steps.setdefault(b, []).append(a)
    roots = [name for name, kind in kinds.items() if kind == "cpu"]
    roots = roots or [name for name, kind in kinds.items() if kind in HOSTS]
    roots += [name for name in (*on_host, *on_network) if name not in kinds]
    by_host = breadth_first(roots, lambda name: on_host.get(name, ()))
    by_network = breadth_first(by_host, lambda name: on_network.get(name, ()))
    return {
        name: kind
        for name, kind in kinds.items()
        if name in by_host or (kind == "storage" and name in by_network)
    }


def _without_cables(description: Description, a: _Side, b: _Side) -> Description:
    """Return the description with a cable less in each link between two sides."""

    def is_at(end: End, side: _Side) -> bool:
        return end.device in side[0] and side[1] in ("", end.side)

    either = a[0] | b[0]
    left: dict[int, DescribedLink | None] = {}  # of those that change, by number
    for number in [at for at, link in enumerate(description.links) if link.a.device in either]:
        link = description.links[number]
        forth = is_at(link.a, a) and is_at(link.b, b)
        if forth or (is_at(link.a, b) and is_at(link.b, a)):
            cable = replace(link.cable, count=link.cable.count - 1)
            left[number] = replace(link, cable=cable) if cable.count else None
    a_inside, b_inside = _by_host(a[0]), _by_host(b[0])
    sides = {host: (a_inside[host], b_inside[host]) for host in a_inside if host in b_inside}
    uses = _changed_inside(
        description.uses,
        sides,
        lambda template, ends: _without_cables(template, (ends[0], a[1]), (ends[1], b[1])),
    )
    if not left and uses is description.uses:
        return description
    if not left:
        return replace(description, uses=uses)
    links: list[DescribedLink] = []
    start = 0
    for number, changed in left.items():
        links += description.links[start:number]
        links += [changed] if changed is not None else []
        start = number + 1
    return replace(description, links=(*links, *description.links[start:]), uses=uses)


def _without_devices(description: Description, devices: frozenset[str]) -> Description:
    """Return the description without devices and their links."""
    staying = {
        name
        for workload in description.workloads
        for names in (workload.sources, workload.targets)
        if devices.issuperset(names)
        for name in names
    }
    return replace(
        _disconnected(description, (devices, frozenset(staying))),
        workloads=tuple(_still(workload, devices) for workload in description.workloads),
    )


def _disconnected(
    description: Description, lost: tuple[frozenset[str], frozenset[str]]
) -> Description:
    """Return the description without the links of some devices, and without most of those.

    `lost` are the devices, and those among them that stay.
    """
    devices, staying = lost
    inside, kept_inside = _by_host(devices), _by_host(staying)
    links = tuple(
        [
            link
            for link in description.links
            if link.a.device not in devices and link.b.device not in devices
        ]
    )
    return replace(
        description,
        devices=tuple(
            device
            for device in description.devices
            if device.name not in devices or device.name in staying
        ),
        links=links if len(links) < len(description.links) else description.links,
        measurements=tuple(
            rate
            for rate in description.measurements
            if devices.isdisjoint(end.partition("/")[0] for end in (rate.source, rate.target))
        ),
        uses=_changed_inside(
            description.uses,
            {host: (names, kept_inside.get(host, frozenset())) for host, names in inside.items()},
            _disconnected,
        ),
    )


def _still(workload: Workload, devices: frozenset[str]) -> Workload:
    """Return a workload of the devices that are left, each with as many bytes as before."""
    sources, targets = (
        names if devices.issuperset(names) else tuple(name for name in names if name not in devices)
        for names in (workload.sources, workload.targets)
    )
    before, left = (
        (workload.sources, sources)
        if workload.direction == "write"
        else (workload.targets, targets)
    )
    size = workload.size * len(left) / len(before)
    if workload.collective:  # each GPU has as much, whoever takes part
        root = sources[0] if workload.root in devices else workload.root
        return replace(workload, sources=sources, targets=targets, root=root)
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
    lost_inside: Mapping[str, Lost],
    change: Callable[[Description, Lost], Description],
) -> tuple[Use, ...]:
    """Return used machines with a change made in some; where it is the same, they stay one use."""
    if not lost_inside:
        return uses
    changed: list[Use] = []
    for use in uses:
        names_by_loss: dict[Lost | None, list[str]] = {}
        for name in use.names:
            names_by_loss.setdefault(lost_inside.get(name), []).append(name)
        for lost, names in names_by_loss.items():
            template = use.template if lost is None else change(use.template, lost)
            if template is not use.template and not template.device_count:
                continue  # a whole machine
            changed.append(replace(use, names=tuple(names), template=template))
    return tuple(changed)
