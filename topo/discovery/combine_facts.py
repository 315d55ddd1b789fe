"""The facts of a device from two sources: a gap in one is filled from the other, and said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.load import catalogue
from topo.discovery.combine_differ import MATRICES, link_differs, links_known
from topo.discovery.combine_tree import with_source
from topo.discovery.describe import file_title
from topo.discovery.machine import DiscoveredCable, DiscoveredLink

if TYPE_CHECKING:
    from topo.discovery.combine_match import Matches
    from topo.discovery.machine import DiscoveredDevice, Machine


_TEXTS: Final = (
    ("pci", "address"),
    ("rdma", "RDMA name"),
    ("slot", "slot"),
    ("network", ""),
    ("numa", "NUMA node"),
)


def filled(base: Machine, extra: Machine, matches: Matches) -> tuple[DiscoveredDevice, ...]:
    """Return the first source's devices, each with what only the other tells of it."""
    its = {one.id: one for one in extra.devices}
    shares: dict[str, list[DiscoveredDevice]] = {}
    for mine, other in matches.pairs:
        if other in its and other != mine:
            shares.setdefault(mine, []).append(_share(its[other], mine, matches.mine(other)))
    return tuple(
        _filled(one, _joined(shares[one.id]), extra) if one.id in shares else one
        for one in base.devices
    )


def _share(other: DiscoveredDevice, mine: str, all_mine: list[str]) -> DiscoveredDevice:
    """Return what of a device is of `mine`, where the first source takes it for several."""
    if len(all_mine) == 1:
        return other
    at = all_mine.index(mine)

    def part(values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(values) == len(all_mine):
            return values[at : at + 1]
        return values if at == 0 else ()

    return replace(other, pci=part(other.pci), rdma=part(other.rdma), ports=part(other.ports))


def _joined(shares: list[DiscoveredDevice]) -> DiscoveredDevice:
    """Return as one device what the first source takes for one."""
    return replace(
        shares[0],
        pci=tuple(dict.fromkeys(address for one in shares for address in one.pci)),
        rdma=tuple(dict.fromkeys(name for one in shares for name in one.rdma)),
        ports=tuple(rate for one in shares for rate in one.ports),
    )


def _filled(one: DiscoveredDevice, other: DiscoveredDevice, extra: Machine) -> DiscoveredDevice:
    """Return a device with what it lacks; its comment says what that is and whence."""
    name = file_title(extra.file)
    new: dict[str, Any] = {}
    words: list[str] = []
    if _vague(one.part) and not _vague(other.part):
        new["part"] = other.part
        words.append("part")
    for key, word in _TEXTS:
        if not getattr(one, key) and getattr(other, key):
            new[key] = getattr(other, key)
            words.append(word)
    if not one.label and other.label and extra.kind not in MATRICES:
        new["label"] = other.label
        words.append("label")
    if not any(one.ports) and any(other.ports):
        new["ports"] = other.ports
        words.append("port speed")
    mine = dict(one.facts)
    more = {key: text for key, text in other.facts if key not in mine and key != "functions"}
    new["facts"] = (*one.facts, *more.items())
    words += more
    new["link"] = _link(one.link, other.link, name)
    what = ", ".join(word for word in words if word)
    return replace(
        one, evidence=with_source(one.evidence, name, what) if what else one.evidence, **new
    )


def _vague(part: str) -> bool:
    return part.endswith("-unknown") or part == "amd-instinct"


def _link(
    one: DiscoveredLink | None, other: DiscoveredLink | None, name: str
) -> DiscoveredLink | None:
    """Return the first link with the half it lacks, or a guessed split put right."""
    if one is None or other is None or link_differs(one, other):
        return one
    guess = "are a guess" in one.evidence and "are a guess" not in other.evidence
    whole = other.generation is not None and other.lanes is not None
    if guess and whole:
        return replace(other, evidence=with_source(other.evidence, name))
    gaps = [one.generation is None and other.generation, one.lanes is None and other.lanes]
    if not any(gaps):
        return one
    return DiscoveredLink(
        generation=one.generation or other.generation,
        lanes=one.lanes or other.lanes,
        evidence=with_source(other.evidence, name),
    )


# --- links outside PCIe ---------------------------------------------------------------------------


def cables_of(
    base: Machine, extra: Machine, matches: Matches, *, base_first: bool
) -> tuple[list[DiscoveredDevice], list[DiscoveredCable]]:
    """Return the cables, and the NVSwitches that they need and the first source does not have.

    NVLinks are those of the first source, `base` or `extra`, or of the other where it knows none.
    """
    order = (base, extra) if base_first else (extra, base)
    teller = next((one for one in order if links_known(one)), base)
    known = {one.id for one in base.devices}
    kept = [one for one in base.cables if teller is base or not _between_gpus(one)]
    if teller is base:
        return [], kept
    name = file_title(extra.file)
    switches = {one.id: one for one in extra.of_kind("nvswitch")}
    for cable in extra.cables:
        if _between_gpus(cable):
            ends = [_end(key, matches, switches) for key in (cable.a, cable.b)]
            if all(one in known or one in switches for one in ends):
                said = with_source(cable.evidence, name)
                kept.append(DiscoveredCable(ends[0], ends[1], cable.cable, said))
    new = [replace(one, evidence=with_source(one.evidence, name)) for one in switches.values()]
    return [one for one in new if any(one.id == cable.b for cable in kept)], kept


def _end(key: str, matches: Matches, switches: dict[str, DiscoveredDevice]) -> str:
    """Return what an end of the other source's cable is here, ``""`` when nothing is."""
    return next(iter(matches.mine(key)), key if key in switches else "")


def _between_gpus(cable: DiscoveredCable) -> bool:
    return "c2c" not in cable.cable and ("nvlink" in cable.cable or "xgmi" in cable.cable)


def known_media(machine: Machine) -> Machine:
    """Return the machine with the generation of NVLinks that only their number is known of."""
    parts = {one.id: one.part for one in machine.of_kind("gpu")}
    cables = []
    for cable in machine.cables:
        part = catalogue().parts.get(parts.get(cable.a, ""))
        medium = part.fabric.medium if part is not None and part.fabric is not None else None
        if cable.cable.endswith("nvlink unknown") and (medium or "").startswith("nvlink"):
            text = cable.cable.replace("nvlink unknown", str(medium))
            cable = replace(cable, cable=text)  # noqa: PLW2901
        cables.append(cable)
    return replace(machine, cables=tuple(cables))
