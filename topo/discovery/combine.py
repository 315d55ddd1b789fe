"""Two sources of one machine become one: gaps of either are filled, contradictions are said.

Each fact keeps where it came from: what is not of the first source has the other's name in its
comment. Where the two contradict each other the first stands, and a notice has the other's value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from topo.catalogue.kinds import CARDS, Kind
from topo.catalogue.parts import catalogue
from topo.description.write import selection, stem_of
from topo.discovery import matching
from topo.discovery.describe import device_names, file_title
from topo.discovery.facts_only import alone, fitted, with_slots
from topo.discovery.gpu_links import with_ends_of_links
from topo.discovery.machine import (
    GPU_LINK,
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    Machine,
    ancestors,
    numa_of,
    printable,
)
from topo.errors import Finding, Severity
from topo.phrases import and_more, counted

_MOST_DIFFERENCES: Final = 20
_STRUCTURE: Final = ("class", "NUMA node")
_NODE_NOT_TOLD: Final = "its NUMA node is not told"
_LEAVES: Final[tuple[Kind, ...]] = ("gpu", "nic", "dpu", "nvme", "hba", "cxl-memory")
_FILLED: Final = (  # attributes of a device, and what comments call them
    ("pci", "address"),
    ("rdma", "RDMA name"),
    ("slot", "slot"),
    ("network", ""),
    ("numa", "NUMA node"),
)
_PAIR: Final = 2


def combined(machines: Sequence[Machine]) -> Machine:
    """Return one machine of all that these sources tell of it, the first before the others.

    Sources that tell facts only come after those that tell the machine.

    Raises
    ------
    ExchangeError
        If none tells the machine.
    """
    sources = [source for machine in machines for source in (machine, *machine.further)]
    result, *further = sorted(sources, key=lambda source: bool(source.tells_only))
    if result.tells_only:
        raise alone(sources)
    for machine in further:
        lead = f"{len(result.together) + 2}: "  # makes ids that no other machine's devices have
        renamed = replace(
            machine,
            devices=tuple(
                replace(device, id=lead + device.id, parent=device.parent and lead + device.parent)
                for device in machine.devices
            ),
            cables=tuple(
                replace(cable, a=lead + cable.a, b=lead + cable.b) for cable in machine.cables
            ),
            places=tuple((address, lead + parent) for address, parent in machine.places),
            gpu_links=tuple(replace(links, gpu=lead + links.gpu) for links in machine.gpu_links),
        )
        result = _both(result, renamed)
    return result


def _both(first: Machine, second: Machine) -> Machine:
    if second.tells_only:
        first, second = fitted(first, second)
    first, second = _recognised(first, second), _recognised(second, first)
    matches = matching.match(first, second)
    second, pairs_of_switches = with_ends_of_links(second, first, matches.pairs)
    matches.add(pairs_of_switches)
    differing = matching.differences(first, second, matches)
    # A first source without a tree of its own is laid upon the other's, if nothing speaks against.
    contradicts = any(difference.what in _STRUCTURE or difference.grave for difference in differing)
    swap = matching.tells_tree(second) and not matching.tells_tree(first) and not contradicts
    if swap:
        turned = matching.Matches([(b, a) for a, b in matches.pairs])
        merged = _merged(second, first, turned, base_first=False)
        second_id = dict(reversed(matches.pairs))
        differing = [
            replace(difference, ids=tuple(second_id.get(id_, id_) for id_ in difference.ids))
            for difference in differing
        ]
    else:
        merged = _merged(first, second, matches, base_first=True)
    # What a matrix cannot know does not matter beside a tree.
    both = (first, second)
    trees = [
        machine
        for machine in both
        if machine.kind not in matching.MATRICES and not machine.tells_only
    ] or both
    notes = dict.fromkeys(note for machine in trees for note in machine.notes)
    new_notes = [note for note in merged.notes if note not in (*first.notes, *second.notes)]
    merged = replace(
        with_slots(merged, second),
        kind=second.kind if swap else first.kind,
        source=first.source,
        file=first.file,
        together=(*first.together, f"{file_title(second.file)} ({second.source})"),
        notes=(*notes, *matches.notes, *new_notes),
        left_out=tuple(dict.fromkeys((*first.left_out, *second.left_out))),
        fabric_known=matching.tells_links(first) or matching.tells_links(second),
        findings=_findings(first, second, merged),
    )
    return _with_differences(merged, differing, _called(first), _called(second))


def _called(machine: Machine) -> str:
    """Return what sentences call a source: its file, and how many it was combined with."""
    name, further = file_title(machine.file), machine.together
    if len(further) == 1:
        return f"{name} with {further[0].rpartition(' (')[0]}"
    return f"{name} with {len(further)} more" if further else name


def _recognised(machine: Machine, source: Machine) -> Machine:
    """Return the machine with the devices at places of which only the other knows what they are."""
    device_at = {address: device for device in source.devices for address in device.pci}
    recognised = [
        DiscoveredDevice(
            id=f"place {parent} {address}",
            kind=device_at[address].kind,
            part=device_at[address].part,
            parent=parent,
            link=DiscoveredLink(),
            pci=(address,),
            evidence=f"what it is, from {_called(source)}",
        )
        for address, parent in machine.places
        if address in device_at
    ]
    places = tuple(place for place in machine.places if place[0] not in device_at)
    settled = {device.pci[0] for device in recognised}
    return replace(
        machine,
        devices=(*machine.devices, *recognised),
        places=places,
        left_out=tuple(address for address in machine.left_out if address not in settled),
        findings=tuple(
            finding
            for finding in machine.findings
            if places or finding.code != "unclassified-device"
        ),
    )


def _merged(
    base: Machine, extra: Machine, matches: matching.Matches, *, base_first: bool
) -> Machine:
    """Return the base's tree with what the other source adds to it."""
    base = _with_host_bridges(_on_cpus_of(base, extra, matches), extra, matches)
    switches, cables = _cables(base, extra, matches, base_first=base_first)
    base = replace(base, devices=_filled_devices(base, extra, matches))
    base = _Additions(base, extra, matches).result()
    parts = {part.name: part for part in (*extra.parts, *base.parts)}
    used = {device.part for device in base.devices}
    ends = {end for cable in cables for end in (cable.a, cable.b)}
    part_of = {gpu.id: gpu.part for gpu in base.of_kind("gpu")}
    medium_of = {
        id_: links.medium for links in extra.gpu_links for id_ in matches.first_ids(links.gpu)
    }
    media = {medium for medium in medium_of.values() if medium}
    usual_medium = media.pop() if len(media) == 1 else ""
    for at, cable in enumerate(cables):  # NVLinks of which only the number is known
        part = catalogue().parts.get(part_of.get(cable.a, ""))
        of_part = part.fabric.medium if part is not None and part.fabric is not None else None
        medium = of_part or medium_of.get(cable.a) or usual_medium
        if cable.cable.endswith("nvlink unknown") and medium.startswith("nvlink"):
            text = cable.cable.replace("nvlink unknown", medium)
            cables[at] = replace(cable, cable=text)
    return replace(
        base,
        devices=tuple(
            device
            for device in (*base.devices, *switches)
            if device.kind != "nvswitch" or device.id in ends
        ),
        cables=tuple(cables),
        parts=tuple(part for name, part in parts.items() if name in used),
        socket_cable=base.socket_cable or extra.socket_cable,
    )


def _with_source(evidence: str, name: str, what: str = "") -> str:
    """Return a comment with the source that it, or the facts `what`, comes from."""
    source = f"{what} from {name}" if what else f"from {name}"
    return f"{evidence}; {source}" if evidence and source not in evidence else evidence or source


# --- findings -------------------------------------------------------------------------------------


def _findings(first: Machine, second: Machine, merged: Machine) -> tuple[Finding, ...]:
    """Return what was said of either source, without what the other settles."""
    no_switch = not merged.of_kind("pcie-switch")
    is_open = {  # by findings on one source alone: whether both together do not know it either
        "numa-unknown": not any(cpu.numa for cpu in merged.of_kind("cpu")),
        "guessed-nvlinks": any("a guess" in cable.evidence for cable in merged.cables),
        "no-io": not any(device.link is not None for device in merged.devices),
        "no-tree": no_switch,
        "no-bridges": no_switch,
    }
    note = f"in {_called(second)}"
    before = (*first.findings, *second.findings)
    return (
        *(finding for finding in first.findings if is_open.get(finding.code, True)),
        *(
            replace(finding, notes=(*finding.notes, note))
            for finding in second.findings
            if finding.code not in is_open
        ),
        *(finding for finding in merged.findings if finding not in before),
    )


def _with_differences(
    merged: Machine, differing: list[matching.Difference], first: str, second: str
) -> Machine:
    """Return the machine with a finding and a comment for each contradiction.

    `first` and `second` are what the sources are called.
    """
    names = device_names(merged.devices)
    groups: dict[tuple[str, str, str, bool], list[tuple[str, ...]]] = {}
    for difference in differing:
        if all(id_ in names for id_ in difference.ids):
            fact = (difference.what, difference.first, difference.second, difference.grave)
            groups.setdefault(fact, []).append(difference.ids)
    findings: list[Finding] = []
    notes: list[str] = []
    notices: dict[str, list[str]] = {}
    advice = f"what {first} says was kept; correct the YAML"
    for (what, value, second_value, grave), members in groups.items():
        text = f"{what} {value} in {first}, {second_value} in {second}"
        about = _about(members, names)
        if len(members[0]) == 1:
            for (id_,) in members:
                notices.setdefault(id_, []).append(text)
        else:
            notes.append(f"The sources disagree: {about}{text}.")
        message = f"{about}{text}"
        help = "are they of one machine?" if grave else advice
        severity: Severity = "error" if grave else "warning"
        findings.append(Finding("sources-disagree", message, severity=severity, help=help))
    if len(findings) > _MOST_DIFFERENCES:
        message = f"{len(findings) - _MOST_DIFFERENCES} more facts"
        more = Finding("sources-disagree", message, severity="warning", help=advice)
        findings[_MOST_DIFFERENCES:] = [more]
        notes[_MOST_DIFFERENCES:] = []
    return replace(
        merged,
        devices=tuple(
            replace(device, notices=(*device.notices, *notices.get(device.id, ())))
            for device in merged.devices
        ),
        notes=(*merged.notes, *notes),
        findings=(*merged.findings, *findings),
    )


def _about(members: list[tuple[str, ...]], names: dict[str, str]) -> str:
    """Return the devices, or the pair and how many more there are, with a colon."""
    if not members[0]:
        return ""
    if len(members[0]) == _PAIR:
        a, b = (names[id_] for id_ in members[0])
        more = f" and {len(members) - 1} more pairs" if len(members) > 1 else ""
        return f"{a} to {b}{more}: "
    stems: dict[str, list[str]] = {}
    for (id_,) in members:
        stems.setdefault(stem_of(names[id_]), []).append(names[id_])
    return ", ".join(selection(of_stem, {}) for of_stem in stems.values()) + ": "


# --- facts ----------------------------------------------------------------------------------------


def _filled_devices(
    base: Machine, extra: Machine, matches: matching.Matches
) -> tuple[DiscoveredDevice, ...]:
    """Return the first source's devices, each with what only the other tells of it."""
    devices, extra_devices = base.by_id(), extra.by_id()
    shares: dict[str, list[DiscoveredDevice]] = {}
    for id_, extra_id in matches.pairs:
        if extra_id in extra_devices and extra_id != id_:
            share = _share(extra_devices[extra_id], id_, matches.first_ids(extra_id))
            shares.setdefault(id_, []).append(share)
    for id_, of_device in shares.items():
        source = replace(  # several, which the first source takes for one
            of_device[0],
            pci=tuple(dict.fromkeys(address for share in of_device for address in share.pci)),
            rdma=tuple(dict.fromkeys(name for share in of_device for name in share.rdma)),
            ports=tuple(rate for share in of_device for rate in share.ports),
            label=", ".join(dict.fromkeys(share.label for share in of_device if share.label)),
            notices=tuple(notice for share in of_device for notice in share.notices),
        )
        if id_ in devices:
            devices[id_] = _filled(devices[id_], source, extra)
    return tuple(devices.values())


def _share(device: DiscoveredDevice, id_: str, all_ids: list[str]) -> DiscoveredDevice:
    """Return what of a device is of `id_`, where the first source takes it for several."""
    if len(all_ids) == 1:
        return device
    at = all_ids.index(id_)

    def part(values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(values) == len(all_ids):
            return values[at : at + 1]
        return values if at == 0 else ()

    return replace(device, pci=part(device.pci), rdma=part(device.rdma), ports=part(device.ports))


def _filled(device: DiscoveredDevice, source: DiscoveredDevice, extra: Machine) -> DiscoveredDevice:
    """Return a device with what it lacks; its comment says what that is and whence."""
    name = _called(extra)
    new: dict[str, Any] = {}
    words: list[str] = []
    is_family = device.kind == "cpu" and device.part not in catalogue().parts
    named = is_family and bool(extra.tells_only) and source.part in catalogue().parts
    if (named or matching.is_vague(device.part)) and not matching.is_vague(source.part):
        new["part"] = source.part
        words.append("part")
    for key, word in _FILLED:
        if not getattr(device, key) and getattr(source, key):
            new[key] = getattr(source, key)
            words.append(word)
    if not device.label and source.label and extra.kind not in matching.MATRICES:
        new["label"] = source.label
        words.append("label")
    if not any(device.ports) and any(source.ports):
        untold = len(device.pci) - len(source.ports) if extra.tells_only else 0
        new["ports"] = source.ports + (None,) * untold
        words.append("port speed")
    if extra.tells_only and source.notices:
        new["notices"] = (*device.notices, *source.notices)
    facts = dict(device.facts)
    new_facts = {key: text for key, text in source.facts if key not in facts and key != "functions"}
    words += new_facts
    what = ", ".join(word for word in words if word)
    before = device.evidence
    if extra.tells_only and source.evidence:
        before = f"{before}; {source.evidence}".removeprefix("; ")
    return replace(
        device,
        facts=(*device.facts, *new_facts.items()),
        link=_filled_link(device.link, source.link, name),
        evidence=_with_source(before, name, what) if what else device.evidence,
        **new,
    )


def _filled_link(
    link: DiscoveredLink | None, source: DiscoveredLink | None, name: str
) -> DiscoveredLink | None:
    """Return the first link with the half it lacks, or a guessed split put right."""
    if link is None or source is None or matching.link_differs(link, source):
        return link
    evidence = _with_source(source.evidence, name)
    complete = source.generation is not None and source.lanes is not None
    if complete and matching.is_guessed(link) and not matching.is_guessed(source):
        return replace(source, evidence=evidence)
    generation, lanes = link.generation or source.generation, link.lanes or source.lanes
    if (generation, lanes) == (link.generation, link.lanes):
        return link
    return DiscoveredLink(generation, lanes, evidence)


# --- links outside PCIe ---------------------------------------------------------------------------


def _cables(
    base: Machine, extra: Machine, matches: matching.Matches, *, base_first: bool
) -> tuple[list[DiscoveredDevice], list[DiscoveredCable]]:
    """Return the cables, and the NVSwitches that they need and the first source does not have.

    NVLinks are those of the first source, `base` or `extra`, or of the other where it knows none.
    """
    order = (base, extra) if base_first else (extra, base)
    if next((machine for machine in order if matching.tells_links(machine)), base) is base:
        return [], list(base.cables)
    name = _called(extra)
    ids = {device.id for device in base.devices}
    switches = {switch.id: switch for switch in extra.of_kind("nvswitch")}
    cables = [cable for cable in base.cables if not _joins_gpus(cable)]
    for cable in extra.cables:
        if not _joins_gpus(cable):
            continue
        a, b = (
            next(iter(matches.first_ids(end)), end if end in switches else "")
            for end in (cable.a, cable.b)
        )
        if all(end in ids or end in switches for end in (a, b)):
            evidence = _with_source(cable.evidence, name)
            cables.append(DiscoveredCable(a, b, cable.cable, evidence))
    ends = {cable.b for cable in cables}
    new = [
        replace(switch, evidence=_with_source(switch.evidence, name))
        for switch in switches.values()
        if switch.id in ends
    ]
    return new, cables


def _joins_gpus(cable: DiscoveredCable) -> bool:
    is_known = "nvlink" in cable.cable or "xgmi" in cable.cable
    return cable.cable == GPU_LINK or ("c2c" not in cable.cable and is_known)


# --- trees ----------------------------------------------------------------------------------------


def _top(
    device: DiscoveredDevice, by_id: Mapping[str, DiscoveredDevice]
) -> DiscoveredDevice | None:
    """Return the device itself or its ancestor that hangs on a CPU, `None` when there is none."""
    for place in (device, *ancestors(device, by_id)):
        above = by_id.get(place.parent)
        if above is not None and above.kind == "cpu":
            return place
    return None


def _on_cpus_of(base: Machine, extra: Machine, matches: matching.Matches) -> Machine:
    """Return the first tree on the other's CPUs, where the first knows no NUMA nodes."""
    cpus, base_cpus = extra.of_kind("cpu"), base.of_kind("cpu")
    numbered = any(cpu.numa for cpu in base_cpus) or not any(cpu.numa for cpu in cpus)
    if extra.tells_only or numbered or len(cpus) <= len(base_cpus):
        return base
    by_id, extra_by_id = base.by_id(), extra.by_id()
    votes: dict[str, Counter[str]] = {}
    for id_, extra_id in matches.pairs:
        top = _top(by_id[id_], by_id)
        extra_top = _top(extra_by_id[extra_id], extra_by_id)
        if top is not None and extra_top is not None and by_id[id_].kind in _LEAVES:
            votes.setdefault(top.id, Counter())[extra_top.parent] += 1
    matches.pairs = [pair for pair in matches.pairs if by_id[pair[0]].kind != "cpu"]
    matches.add((cpu.id, cpu.id) for cpu in cpus)
    name = _called(extra)
    devices = [replace(cpu, evidence=_with_source(cpu.evidence, name)) for cpu in cpus]
    unplaced: list[DiscoveredDevice] = []
    for device in base.devices:
        above = by_id.get(device.parent)
        if device.kind == "cpu":
            continue
        if above is None or above.kind != "cpu":
            devices.append(device)
            continue
        chosen = votes.get(device.id)
        parent = chosen.most_common(1)[0][0] if chosen else cpus[0].id
        moved = replace(device, parent=parent)
        if not chosen and device.kind != "memory":
            moved = replace(moved, notices=(*device.notices, _NODE_NOT_TOLD))
            unplaced.append(moved)
        devices.append(moved)
    # A link inside a CPU's chip goes where its GPU goes; one between CPUs goes with them.
    by_id = {device.id: device for device in devices}
    cables = []
    for cable in base.cables:
        ends = [end for end in (cable.a, cable.b) if end in by_id]
        if len(ends) == 1:
            ends.append(ancestors(by_id[ends[0]], by_id)[-1].id)
        if ends:
            cables.append(replace(cable, a=ends[0], b=ends[1]))
    findings = list(base.findings)
    if unplaced:
        names = and_more([(*device.pci, device.label or device.evidence)[0] for device in unplaced])
        message = f"the NUMA node of {names} is not told by either source: put under the first CPU"
        help = "`lspci -vvv` tells the NUMA node; put links under the right CPU in the YAML"
        findings.append(Finding("numa-unknown", message, severity="warning", help=help))
    return replace(base, devices=tuple(devices), cables=tuple(cables), findings=tuple(findings))


def _with_host_bridges(base: Machine, extra: Machine, matches: matching.Matches) -> Machine:
    """Return a tree of NCCL's, which knows no host bridges, with those of the other source."""
    if base.kind not in matching.NCCL or base.of_kind("root-complex"):
        return base
    by_id, extra_by_id = base.by_id(), extra.by_id()
    leaves = [
        (a, b)
        for a, b in matches.pairs
        if by_id[a].kind in _LEAVES and extra_by_id[b].kind in _LEAVES
    ]
    for root in extra.of_kind("root-complex"):
        tops: dict[str, DiscoveredDevice] = {}
        for a, b in leaves:
            top = _top(by_id[a], by_id)
            above = (device.id for device in ancestors(extra_by_id[b], extra_by_id))
            if top is not None and root.id in above:
                tops[top.id] = top
        cpus = {top.parent for top in tops.values()}
        if len(cpus) != 1 or any(top.kind == "root-complex" for top in tops.values()):
            continue
        evidence = _with_source(root.evidence, _called(extra))
        by_id[root.id] = replace(root, parent=cpus.pop(), node=None, evidence=evidence)
        by_id |= {id_: replace(top, parent=root.id, node=None) for id_, top in tops.items()}
        matches.add([(root.id, root.id)])
    return replace(base, devices=tuple(by_id.values()))


class _Additions:
    """The first source's devices with those that only the other has, each at its place."""

    def __init__(self, base: Machine, extra: Machine, matches: matching.Matches) -> None:
        self.base, self.extra, self.matches = base, extra, matches
        self.devices = base.by_id()
        self.extra_devices = extra.by_id()
        self.name = _called(extra)
        self.addresses = {address for device in base.devices for address in device.pci}

    def result(self) -> Machine:
        """Return the machine, with a note on what could not be placed."""
        skipped = 0
        for device in self.extra.devices:
            if self.matches.first_ids(device.id) or device.id in self.devices:
                continue
            # CPUs and switches come with what hangs on them.
            comes_alone = device.kind in (*_LEAVES, "memory", "storage")
            comes_alone = comes_alone and not self.extra.tells_only
            is_taken = self.addresses & {*device.pci}  # by something else in the first source
            present = self.base.of_kind(*(CARDS if device.is_nic else (device.kind,)))
            is_further = device.kind not in ("gpu", "memory", "storage") and bool(device.pci)
            is_new = not present or (is_further and all(card.pci for card in present))
            if comes_alone and not is_taken and is_new:
                self._add(device)
            else:
                is_lost = bool(self.extra.tells_only) and device.kind == "memory"
                skipped += device.kind in _LEAVES or is_lost
        notes = list(self.base.notes)
        if skipped:
            count = counted(skipped, "device")
            text = f"{count} of {self.name} could not be placed here: left out."
            notes.append(printable(text))
        return replace(self.base, devices=tuple(self.devices.values()), notes=tuple(notes))

    def _add(self, device: DiscoveredDevice) -> None:
        parent = self._place(device.parent)
        above = self.devices.get(parent)
        nodes = numa_of(device, self.extra_devices)
        several = above is not None and above.kind == "cpu" and len(above.numa) > 1
        inside = several and len(nodes) == 1 and above is not None and nodes[0] in above.numa
        self.devices[device.id] = replace(
            device,
            parent=parent,
            node=nodes[0] if inside else None,
            evidence=_with_source(device.evidence, self.name),
        )

    def _place(self, id_: str) -> str:
        """Return what stands here for a device of the other source, added where nothing does."""
        matched = self.matches.first_ids(id_)
        if matched or id_ in self.devices or id_ not in self.extra_devices:
            return matched[0] if matched else id_
        device = self.extra_devices[id_]
        if device.kind == "cpu":
            cpus = self.base.of_kind("cpu")
            if len(cpus) == 1 and not cpus[0].numa:
                return cpus[0].id
        parents = {
            self.devices[sibling].parent
            for child in self.extra.devices
            if child.parent == id_ and child.kind in _LEAVES
            for sibling in self.matches.first_ids(child.id)
        }
        above = self.devices.get(next(iter(parents))) if len(parents) == 1 else None
        if above is not None and above.kind != "cpu":
            return above.id
        if self.addresses & {*device.pci}:
            return self._place(device.parent)
        self._add(device)
        return device.id
