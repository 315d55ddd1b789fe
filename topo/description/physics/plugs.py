"""Ports: each takes one cable, there are so many of them, and some take one medium only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.description.physics.wiring import grouped, has, lines_of
from topo.description.shape import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topo.catalogue.part import Ports
    from topo.description.description import DescribedLink, End
    from topo.description.physics.wiring import Wiring
    from topo.document.nodes import Report
    from topo.errors import Place


_NETWORK: Final = ("storage", "nic", "dpu", "network-switch")
_FEW: Final = 2  # ports that a message names one by one


@dataclass(frozen=True, slots=True)
class _Full:
    """Where a device's ports run out: how many it has, and who uses them."""

    place: Place
    ports: int
    noun: str
    taken: int
    lines: str
    here: int
    cable: str
    note: str


# --- numbers of ports -----------------------------------------------------------------------------


def check_ports(wiring: Wiring, report: Report) -> None:
    """Report more cables than a card, a target or a switch has ports for."""
    full: list[tuple[_Full, str]] = []
    other: list[tuple[tuple[Place, str, str, str], str]] = []
    for name in wiring.of_kind(*_NETWORK):
        ports = wiring.devices[name].part.ports
        links = [link for link in wiring.at[name] if link.cable.reach == "network"]
        other += _other_medium(name, ports, links)
        full += _overflow(name, ports, ports.count if ports else None, links, wiring, "port")
    for name in wiring.of_kind("pcie-switch"):
        ports = wiring.devices[name].part.ports
        links = [
            link
            for link in wiring.at[name]
            if link.cable.family == "pcie" and not wiring.leads_up(link, name)
        ]
        count = ports.count if ports else None
        full += _overflow(name, ports, count, links, wiring, "downstream port")
    _report_full(full, report)
    _report_other_medium(other, report)


def check_fabric(wiring: Wiring, report: Report) -> None:
    """Report more links between GPUs than they have ports for, or of another medium."""
    full: list[tuple[_Full, str]] = []
    none: list[tuple[tuple[Place, str, str], str]] = []
    other: list[tuple[tuple[Place, str, str, str], str]] = []
    for name in wiring.of_kind("gpu", "nvswitch"):
        part = wiring.devices[name].part
        links = [link for link in wiring.at[name] if wiring.is_fabric(link)]
        if part.fabric is None:
            none += [((links[0].place, part.name, links[0].cable.family), name)] if links else []
            continue
        noun = f"{part.fabric.medium} port" if part.fabric.medium else "port to other GPUs"
        full += _overflow(name, part.fabric, _of_all_chips(wiring, name), links, wiring, noun)
        other += _other_medium(name, part.fabric, links)
    _report_full(full, report)
    _report_other_medium(other, report)
    for (place, part_name, family), names in grouped(none).items():
        report.add(
            place,
            "no-port",
            f"{has(names)} no ports for {family}: {part_name} states none",
            help="leave the link out, or say what it has: `fabric: 4x nvlink 4`",
        )


def _of_all_chips(wiring: Wiring, name: str) -> int | None:
    """Return the fabric ports of a device: of one chip times its chips, `None` when unknown."""
    part = wiring.devices[name].part
    count = part.fabric.count if part.fabric else None
    chips = part.figures.get("chips")
    if count is None or chips is None:
        return count
    return None if chips.value is None else count * int(chips.value)


def _overflow(
    name: str,
    ports: Ports | None,
    count: int | None,
    links: list[DescribedLink],
    wiring: Wiring,
    noun: str,
) -> Iterator[tuple[_Full, str]]:
    if ports is None or count is None:
        return
    used = 0
    for at, link in enumerate(links):
        used += link.cable.count if link.cable.family != "pcie" else 1
        if used <= count:
            continue
        before = [earlier for earlier in links[:at] if earlier.place != link.place]
        here = [one for one in links if one.place == link.place]
        taken = sum(earlier.cable.count for earlier in before)
        cables = sum(one.cable.count for one in here)
        part = wiring.devices[name].part.name
        yield (
            _Full(
                place=link.place,
                ports=count,
                noun=noun,
                taken=taken,
                lines=lines_of(before, "uses", "use") if before else "",
                here=cables,
                cable=link.cable.text.rpartition("x ")[2] if link.cable.count > 1 else "",
                note=f"{part}: {count} {noun}s, {ports.source}" if ports.source else "",
            ),
            name,
        )
        return


def _report_full(full: Iterable[tuple[_Full, str]], report: Report) -> None:
    for what, names in grouped(full).items():
        each = "" if len(names) == 1 else " each"
        message = f"{has(names)} {what.ports} {what.noun}{'s' * (what.ports != 1)}{each}"
        left = what.ports - what.taken
        if what.lines and left > 0:
            message += f"; {what.lines} {what.taken} of them, and here {_cables(what.here)} more"
        elif what.lines:
            message += f"; {what.lines} {'it' if what.ports == 1 else 'them'}"
        else:
            message += f", and here {_cables(what.here)}"
        advice = "leave this cable out, or take a part with more ports"
        if what.cable and left > 0:
            advice = f"write `{left}x {what.cable}`" if left > 1 else f"write `{what.cable}`"
        notes = [what.note] if what.note else []
        report.add(what.place, "ports-used-up", message, help=advice, notes=notes)


def _cables(count: int) -> str:
    return "is 1 cable" if count == 1 else f"are {count} cables"


def _other_medium(
    name: str, ports: Ports | None, links: list[DescribedLink]
) -> Iterator[tuple[tuple[Place, str, str, str], str]]:
    """Yield the first cable that does not fit the ports: NVLink fits its own generation only."""
    if ports is None or ports.medium is None:
        return
    family = ports.medium.partition(" ")[0]
    for link in links:
        fits = {family, ports.medium} if family == "nvlink" else {link.cable.medium}
        if link.cable.family != family or link.cable.medium not in fits:
            count = f"{link.cable.count}x " if link.cable.count > 1 else ""
            said = (ports.medium, link.cable.medium, count)
            yield (link.place, *said), name
            return


def _report_other_medium(
    other: Iterable[tuple[tuple[Place, str, str, str], str]], report: Report
) -> None:
    for (place, ports, cable, count), names in grouped(other).items():
        report.add(
            place,
            "wrong-medium",
            f"{has(names)} {ports} ports, and this cable is {cable}",
            help=f"write `{count}{ports}`",
        )


# --- ports by name --------------------------------------------------------------------------------


def check_named_ports(wiring: Wiring, report: Report) -> None:
    """Report ports that a device does not have, and ports that two cables share."""
    owners: dict[tuple[str, bool], DescribedLink] = {}
    absent: list[tuple[tuple[Place, str, str], str]] = []
    for link in wiring.links:
        for end in (link.a, link.b):
            if not end.side.startswith("p"):
                continue
            fault = _absent(end, link, wiring)
            if fault is not None:
                absent.append(((link.place, *fault), end.device))
                continue
            owner = owners.setdefault((str(end), wiring.is_fabric(link)), link)
            if owner is not link:
                _report_taken(end, owner, link, report)
            elif link.cable.count > 1:
                message = f"{end} is one port, and here are {link.cable.count} cables"
                advice = f"write `{link.a.device} -- {link.b.device}: {link.cable.text}`"
                report.add(link.place, "port-taken", message, help=advice)
    for (place, message, advice), names in grouped(absent).items():
        report.add(place, "no-port", f"{has(names)} {message}", help=advice)


def _report_taken(end: End, owner: DescribedLink, link: DescribedLink, report: Report) -> None:
    report.add(
        link.place,
        "port-taken",
        f"{end} is taken already",
        help="one port takes one cable; leave the port out and the next free one is used",
        notes=[f"it is taken on {lines_of([owner])}"],
    )


def _absent(end: End, link: DescribedLink, wiring: Wiring) -> tuple[str, str] | None:
    """Return message and advice where an end names a port that is not there for its cable."""
    part = wiring.devices[end.device].part
    number = int(end.side.removeprefix("p"))
    if link.cable.reach == "network" or part.kind == "pcie-switch":
        ports, count = part.ports, part.ports.count if part.ports else None
    elif wiring.is_fabric(link):
        ports, count = part.fabric, _of_all_chips(wiring, end.device)
    else:
        ports, count = None, None
    if ports is None and part.kind not in (*_NETWORK[:1], "pcie-switch"):
        plugs = f"no port {end.side} that {link.cable.family} plugs into"
        return plugs, f"leave `/{end.side}` out"
    if number and (count is None or number <= count):
        return None
    advice = "leave the port out and the next free one is used"
    if count is None:
        return f"no port {end.side}: ports are numbered from p1", advice
    few = f", {listed(f'p{at + 1}' for at in range(count))}" if count <= _FEW else ""
    return f"{count} port{'s' * (count != 1)}{few}, and no {end.side}", advice
