"""PCIe: generations, the lanes of a slot, and all lanes of a host or switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.description.physics.wiring import HOSTS, forwards, grouped, has, lines_of, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.catalogue.part import Slot
    from topo.description.description import DescribedLink
    from topo.description.physics.wiring import Wiring
    from topo.document.nodes import Report
    from topo.errors import Place


def check_generations(wiring: Wiring, report: Report) -> None:
    """Report cables of a PCIe generation that an end does not have."""
    newer = grouped(
        ((link.place, part_name, slot, _best(link, wiring)), name)
        for link in wiring.links
        for name, part_name, slot in _slots(link, wiring)
        if link.cable.generation is not None and link.cable.generation > slot.generation
    )
    said: dict[Place, Slot] = {}
    for (place, part_name, slot, best), names in newer.items():
        if place in said and said[place].generation <= slot.generation:
            continue  # the other end, which lacks it too
        said[place] = slot
        verb = "is" if len(names) == 1 else "are"
        report.add(
            place,
            "pcie-generation",
            f"{names_of(names)} ({part_name}) {verb} PCIe {slot.generation}",
            help=f"write `{best}`",
            notes=_source(part_name, slot),
        )


def check_slots(wiring: Wiring, report: Report) -> None:
    """Report links with more lanes than a device's slot has, alone or together."""
    _check_single(wiring, report)
    _check_together(wiring, report)


def _check_single(wiring: Wiring, report: Report) -> None:
    wider = grouped(
        ((link.place, part_name, slot, _best(link, wiring)), name)
        for link in wiring.links
        for name, part_name, slot in _slots(link, wiring)
        if _is_bound(link, name, wiring) and _lanes(link) > (slot.lanes or _lanes(link))
    )
    for (place, part_name, slot, best), names in wider.items():
        report.add(
            place,
            "lanes-over-slot",
            f"{has(names)} x{slot.lanes} ({part_name}), so the link can be at most that",
            help=f"write `{best}`",
            notes=_source(part_name, slot),
        )


def _check_together(wiring: Wiring, report: Report) -> None:
    """Report devices whose links fit one by one and not all at once."""
    over: list[tuple[tuple[Place, str, int, str], str]] = []
    for name, device in wiring.devices.items():
        slot = device.part.slot
        if slot is None or slot.lanes is None or device.part.kind in (*HOSTS, "pcie-switch"):
            continue
        for links in _sides(name, wiring):
            widths = [_lanes(link) for link in links]
            if len(links) > 1 and sum(widths) > slot.lanes >= max(widths):
                last = links[-1]
                text = " and ".join(f"x{width}" for width in widths)
                key = (last.place, device.part.name, slot.lanes, f"{text} ({lines_of(links)})")
                over.append((key, name))
    for (place, part_name, lanes, text), names in grouped(over).items():
        report.add(
            place,
            "lanes-over-slot",
            f"{has(names)} x{lanes} in all ({part_name}), and here are {text}",
            help="leave one out, or make them narrower",
        )


def check_host_lanes(wiring: Wiring, report: Report) -> None:
    """Report CPUs, root complexes and switches with more lanes in use than they have."""
    over: list[tuple[tuple[Place, str, int, int, str, str], str]] = []
    for name in wiring.of_kind(*HOSTS, "pcie-switch"):
        part = wiring.devices[name].part
        figure = part.figure("pcie-lanes")
        if figure is None or figure.value is None:
            continue
        used = 0
        links = [link for link in wiring.at[name] if link.cable.family == "pcie"]
        for link in links:
            before, used = used, used + _lanes(link)
            if before <= figure.value < used:
                culprit = link
        if used > figure.value:
            lines = lines_of(links)
            lanes = int(figure.value)
            over.append(((culprit.place, part.name, lanes, used, lines, figure.source), name))
    for (place, part_name, lanes, used, lines, source), names in grouped(over).items():
        each = "" if len(names) == 1 else " each"
        report.add(
            place,
            "lanes-used-up",
            f"{has(names)} {lanes} PCIe lanes{each} ({part_name}), and the links take {used}",
            help="narrow or leave out a link, or put a PCIe switch between",
            notes=[f"they stand on {lines}", f"{lanes} lanes: {source}"],
        )


# --- what a link and its ends have ----------------------------------------------------------------


def _slots(link: DescribedLink, wiring: Wiring) -> Iterator[tuple[str, str, Slot]]:
    """Yield the ends of a PCIe link that say what they have: device, part, slot."""
    if link.cable.family != "pcie":
        return
    for end in (link.a, link.b):
        part = wiring.devices[end.device].part
        if part.slot is not None:
            yield end.device, part.name, part.slot


def _lanes(link: DescribedLink) -> int:
    return (link.cable.lanes or 0) * link.cable.count


def _best(link: DescribedLink, wiring: Wiring) -> str:
    """Return the cable that both ends can have."""
    slots = [slot for _, _, slot in _slots(link, wiring)]
    bound = [slot for name, _, slot in _slots(link, wiring) if _is_bound(link, name, wiring)]
    generation = min([slot.generation for slot in slots] + [link.cable.generation or 99])
    lanes = min([slot.lanes for slot in bound if slot.lanes] + [_lanes(link)])
    shown = f"pcie {generation}" if link.cable.generation else "pcie unknown"
    return f"{shown} x{lanes}" if lanes else shown


def _is_bound(link: DescribedLink, name: str, wiring: Wiring) -> bool:
    """Whether the device's own slot bounds a link of it: not what hangs below a RAID card."""
    device = wiring.devices[name]
    if device.part.kind in ("hba", "dpu"):
        return wiring.leads_up(link, name)
    return True


def _sides(name: str, wiring: Wiring) -> list[list[DescribedLink]]:
    """Return a device's PCIe links that share its lanes: all, or those up and those down."""
    links = [link for link in wiring.at[name] if link.cable.family == "pcie"]
    if not forwards(wiring.devices[name]):
        return [links]
    up = [link for link in links if wiring.leads_up(link, name)]
    down = [link for link in links if not wiring.leads_up(link, name)]
    return [up] if wiring.kind(name) in ("hba", "dpu") else [up, down]


def _source(part_name: str, slot: Slot) -> list[str]:
    lanes = f" x{slot.lanes}" if slot.lanes else ""
    return [f"{part_name}: PCIe {slot.generation}{lanes}, {slot.source}"] if slot.source else []
