"""Two machines of one machine become one: gaps of either are filled, contradictions are said.

Each fact keeps where it came from: what is not of the first source has the other's name in its
comment. Where the two contradict each other the first stands, and a notice has the other's value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.description.write import selection, stem_of
from topo.discovery.combine_differ import MATRICES, differences, links_known, tree_known
from topo.discovery.combine_facts import cables_of, filled, known_media
from topo.discovery.combine_match import Matches, match
from topo.discovery.combine_tree import added, bridged, moved
from topo.discovery.describe import device_names, file_title
from topo.discovery.machine import DiscoveredDevice, DiscoveredLink
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.discovery.combine_differ import Difference
    from topo.discovery.machine import Machine


_MOST: Final = 20
_STRUCTURE: Final = ("class", "NUMA node")
# Said of one source alone; another may settle it, and what is left is judged of both.
_SETTLED: Final = {"numa-unknown", "no-tree", "no-bridges", "no-io", "guessed-nvlinks"}
_PAIR: Final = 2


def combined(machines: Sequence[Machine]) -> Machine:
    """Return one machine of the machine that all of these show, the first before the others."""
    whole = machines[0]
    for number, other in enumerate(machines[1:], 2):
        whole = _both(whole, _renamed(other, f"{number}: "))
    return whole


def _renamed(machine: Machine, lead: str) -> Machine:
    """Return a discovered machine whose devices have ids that no other machine's have."""
    devices = tuple(
        replace(one, id=lead + one.id, parent=one.parent and lead + one.parent)
        for one in machine.devices
    )
    cables = tuple(replace(one, a=lead + one.a, b=lead + one.b) for one in machine.cables)
    places = tuple((address, lead + parent) for address, parent in machine.places)
    return replace(machine, devices=devices, cables=cables, places=places)


def _recognised(one: Machine, other: Machine) -> Machine:
    """Return the machine with the devices at places of which only the other knows what they are."""
    known = {address: device for device in other.devices for address in device.pci}
    name = file_title(other.file)
    found = [
        DiscoveredDevice(
            id=f"place {parent} {address}",
            kind=known[address].kind,
            part=known[address].part,
            parent=parent,
            link=DiscoveredLink(),
            pci=(address,),
            evidence=f"what it is, from {name}",
        )
        for address, parent in one.places
        if address in known
    ]
    seen = {device.pci[0] for device in found}
    places = tuple(place for place in one.places if place[0] not in seen)
    return replace(
        one,
        devices=(*one.devices, *found),
        places=places,
        left_out=tuple(address for address in one.left_out if address not in seen),
        findings=tuple(
            said for said in one.findings if places or said.code != "unclassified-device"
        ),
    )


def _both(first: Machine, second: Machine) -> Machine:
    first, second = _recognised(first, second), _recognised(second, first)
    matches = match(first, second)
    found = differences(first, second, matches)
    # A first source without a tree of its own is laid upon the other's, if nothing speaks against.
    apart = any(one.what in _STRUCTURE or one.grave for one in found)
    swap = tree_known(second) and not tree_known(first) and not apart
    if swap:
        turned = Matches([(other, one) for one, other in matches.pairs])
        whole = _merged(second, first, turned, base_first=False)
        other_of = dict(reversed(matches.pairs))
        found = [
            replace(one, ids=tuple(other_of.get(key, key) for key in one.ids)) for one in found
        ]
    else:
        whole = _merged(first, second, matches, base_first=True)
    left = tuple(note for note in whole.notes if note not in (*first.notes, *second.notes))
    whole = replace(
        whole,
        kind=second.kind if swap else first.kind,
        source=first.source,
        file=first.file,
        together=(*first.together, f"{file_title(second.file)} ({second.source})"),
        notes=(*dict.fromkeys(_notes(first, second)), *matches.said, *left),
        left_out=tuple(dict.fromkeys((*first.left_out, *second.left_out))),
        fabric_known=links_known(first) or links_known(second),
        findings=_findings(first, second, whole),
    )
    return _told(whole, found, _label(first), file_title(second.file))


def _notes(first: Machine, second: Machine) -> tuple[str, ...]:
    """Return the notes of both; what a matrix cannot know does not matter beside a tree."""
    both = (first, second)
    trees = [one for one in both if one.kind not in MATRICES] or both
    return tuple(note for one in trees for note in one.notes)


def _label(machine: Machine) -> str:
    """Return what a source is called: after all its files, where it was combined before."""
    further = (other.rpartition(" (")[0] for other in machine.together)
    return " with ".join((file_title(machine.file), *further))


def _merged(base: Machine, extra: Machine, matches: Matches, *, base_first: bool) -> Machine:
    """Return the base's tree with what the other source adds to it."""
    base = bridged(moved(base, extra, matches), extra, matches)
    switches, cables = cables_of(base, extra, matches, base_first=base_first)
    base = replace(base, devices=filled(base, extra, matches))
    base = added(base, extra, matches)
    parts = {one.name: one for one in (*extra.parts, *base.parts)}
    used = {one.part for one in base.devices}
    return known_media(
        replace(
            base,
            devices=tuple(
                one
                for one in (*base.devices, *switches)
                if one.kind != "nvswitch" or any(one.id in (wire.a, wire.b) for wire in cables)
            ),
            cables=tuple(cables),
            parts=tuple(part for name, part in parts.items() if name in used),
            socket_cable=base.socket_cable or extra.socket_cable,
        )
    )


def _findings(first: Machine, second: Machine, whole: Machine) -> tuple[Finding, ...]:
    """Return what was said of each source, without what the other settles."""
    found = [*first.findings]
    made = [one for one in whole.findings if one not in (*first.findings, *second.findings)]
    for finding in second.findings:
        if finding.code not in _SETTLED:
            note = f"in {file_title(second.file)}"
            found.append(replace(finding, notes=(*finding.notes, note)))
    return (*(one for one in found if one.code not in _SETTLED or _lasts(one, whole)), *made)


def _lasts(finding: Finding, whole: Machine) -> bool:
    """Whether what one source does not know is still not known."""
    if finding.code == "numa-unknown":
        return not any(cpu.numa for cpu in whole.of_kind("cpu"))
    if finding.code == "guessed-nvlinks":
        return any("a guess" in cable.evidence for cable in whole.cables)
    if finding.code == "no-io":
        return not any(one.link is not None for one in whole.devices)
    return not whole.of_kind("pcie-switch")


# --- contradictions -------------------------------------------------------------------------------


def _told(whole: Machine, found: list[Difference], first: str, second: str) -> Machine:
    """Return the machine with a finding and a comment for each contradiction."""
    names = device_names(whole.devices)
    groups: dict[tuple[str, str, str, bool], list[tuple[str, ...]]] = {}
    for one in found:
        if all(key in names for key in one.ids):
            fact = (one.what, one.mine, one.its, one.grave)
            groups.setdefault(fact, []).append(one.ids)
    findings: list[Finding] = []
    notes: list[str] = []
    notices: dict[str, list[str]] = {}
    for (what, mine, its, grave), members in groups.items():
        said = f"{what} {mine} in {first}, {its} in {second}"
        about = _about(members, names)
        if len(members[0]) == 1:
            for (key,) in members:
                notices.setdefault(key, []).append(said)
        else:
            notes.append(f"The sources disagree: {about}{said}.")
        findings.append(_finding(f"{about}{said}", first, grave=grave))
    devices = tuple(
        replace(one, notices=(*one.notices, *notices.get(one.id, ()))) for one in whole.devices
    )
    if len(findings) > _MOST:
        findings[_MOST:] = [_finding(f"{len(findings) - _MOST} more facts", first, grave=False)]
        notes[_MOST:] = []
    return replace(
        whole,
        devices=devices,
        notes=(*whole.notes, *notes),
        findings=(*whole.findings, *findings),
    )


def _about(members: list[tuple[str, ...]], names: dict[str, str]) -> str:
    """Return the devices, or the pair and how many more there are, with a colon."""
    if not members[0]:
        return ""
    if len(members[0]) == _PAIR:
        one, other = (names[key] for key in members[0])
        more = f" and {len(members) - 1} more pairs" if len(members) > 1 else ""
        return f"{one} to {other}{more}: "
    stems: dict[str, list[str]] = {}
    for (key,) in members:
        stems.setdefault(stem_of(names[key]), []).append(names[key])
    return ", ".join(selection(found, {}) for found in stems.values()) + ": "


def _finding(message: str, first: str, *, grave: bool) -> Finding:
    help = "are they of one machine?" if grave else f"what {first} says was kept; correct the YAML"
    return Finding("sources-disagree", message, severity="error" if grave else "warning", help=help)
