"""The `fabrics:` of a file: networks by rule, and the switches and cables that they stand for.

What is made of a fabric is as if it had been written: switches are devices (`compute-leaf0`,
`compute-spine0`, `compute-core0`), cables are links, and all of it stands at the fabric's line. How
many of each there are is `topo.description.clos`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from topo.catalogue.cables import read_cable
from topo.catalogue.part import Cable, Part
from topo.catalogue.parts import find_part
from topo.description import clos, keys
from topo.description.description import DescribedLink, End, Fabric, FabricKind, FabricTier
from topo.description.devices import Group, Shelf
from topo.description.names import MOST, Names, is_name, ranged
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.phrases import counted, listed
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.description.clos import Clos

_EXAMPLE: Final = (
    "write it like `{kind: rail-optimized, of: nic, switch: quantum-2, cable: infiniband ndr}`"
)
_MOST_CABLES: Final = 4 * MOST  # as links that are written
_SWITCHES: Final = {"leaf": "switch", "spine": "spine-switch", "core": "core-switch"}
# The cards of each node, in the order of their rails.
Nodes: TypeAlias = tuple[tuple[End, ...], ...]
_FEW: Final = 16  # one in so many
_TWO, _THREE = _LEVELS = (2, 3)


@dataclass(frozen=True, slots=True)
class Draft:
    """A fabric whose devices are still texts.

    Parameters
    ----------
    name
        Its name, where it stands.
    of, cards
        What `of:` selects: machines where `cards` says what in each of them, else cards.
    rails
        Cards of a node, `None` where nobody says.
    ports
        Ports of a leaf, a spine and a core.
    parts
        Their parts, where the file names them.
    cable, uplink
        Of a card, and one between switches.
    oversubscription
        Of leaves and of spines.
    nodes
        The node of each key that it states, for messages.
    """

    name: Scalar
    kind: FabricKind
    of: tuple[Scalar, ...]
    cards: tuple[Scalar, ...]
    rails: int | None
    ports: tuple[int, int, int]
    parts: MappingOf[str, Scalar]
    cable: Cable
    uplink: Cable
    oversubscription: tuple[float, float]
    levels: int | None
    unit: int | None
    leaves: int | None
    spines: int | None
    uplinks: int | None
    nodes: MappingOf[str, Node]

    @property
    def faster(self) -> float:
        """How many times as fast as a card's cable an uplink is; 1 where a rate is unknown."""
        below, above = self.cable.rate.value, self.uplink.rate.value
        ratio = above / below if below and above else 1.0
        return ratio if 0 < ratio < math.inf else 1.0

    def at(self, *keys: str) -> Node:
        """Return where one of these keys stands, else the fabric's name."""
        return next((self.nodes[key] for key in keys if key in self.nodes), self.name)


@dataclass(frozen=True, slots=True)
class Laid:
    """What was made of a fabric: its counts, its switches as entries of `devices:`, its cables."""

    fabric: Fabric
    groups: tuple[Group, ...]
    links: tuple[DescribedLink, ...]


# --- shape ----------------------------------------------------------------------------------------


def read_fabrics(node: Node | None, shelf: Shelf, report: Report) -> tuple[Draft, ...]:
    """Read the entries of `fabrics:`, without looking devices up."""
    mapping = keys.mapping_of(node, "`fabrics:`", report, help=f"give each a name; {_EXAMPLE}")
    drafts = []
    for name, value in mapping or ():
        if keys.is_extension(name.text):
            continue
        what = f"fabric `{name.text}`"
        named = is_name(name, report)
        fabric = keys.mapping_of(value, what, report, help=_EXAMPLE)
        if fabric is None:
            continue
        entries = keys.entries_of(fabric, keys.FABRIC, what, report)
        draft = _read_fabric(name, entries, what, shelf, report)
        if named and draft is not None:
            drafts.append(draft)
    return tuple(drafts)


def _read_fabric(
    name: Scalar, entries: dict[str, Node], what: str, shelf: Shelf, report: Report
) -> Draft | None:
    values = keys.values_of(entries, keys.FABRIC, report, of=what)
    cables = {
        key: read_cable(entries[key], media=shelf.media, report=report)
        for key in ("cable", "uplink")
        if key in entries
    }
    parts = {role: entries.get(key, entries.get("switch")) for role, key in _SWITCHES.items()}
    ports: dict[int, int | None] = {}
    for node in parts.values():
        if node is not None and id(node) not in ports:
            ports[id(node)] = _ports_of(node, what, shelf.parts, report)
    counts = [ports.get(id(node)) for node in parts.values()]
    leaf, spine, core = (min(count or 0, MOST) for count in counts)
    cable = cables.get("cable")
    uplink = cables.get("uplink", replace(cable, count=1) if cable else None)
    if cable is None or uplink is None or None in counts or "kind" not in values:
        return None
    for key, excluding in (("uplinks", "oversubscription"), ("leaves", "")):
        wrong = excluding in entries if excluding else values["kind"] == "rail-optimized"
        if key in entries and wrong:
            message = f"{what} says `{key}:` and `{excluding}:`, and one follows from the other"
            if not excluding:
                message = f"the leaves of {what} follow from its units and rails"
            report.add(entries[key], "misplaced-key", message, help="leave one out")
    levels = values.get("levels")
    if levels is not None and (
        levels not in _LEVELS or (values["kind"] == "leaf-spine" and levels != _TWO)
    ):
        message = f"{what} has 2 levels, leaves and spines, or 3 with cores; here stand {levels}"
        help = "a `leaf-spine` has 2" if levels in _LEVELS else "write 2 or 3"
        report.add(entries["levels"], "unknown-word", message, help=help)
        return None
    if uplink.count > 1:
        message = f"`uplink:` of {what} is one cable, and here are {uplink.count}"
        report.add(entries["uplink"], "misplaced-key", message, help="say how many by `uplinks:`")
        return None
    ratios = (*values.get("oversubscription", ()), 1.0, 1.0)
    return Draft(
        name=name,
        kind=values["kind"],
        of=values.get("of", ()),
        cards=values.get("cards", ()),
        rails=values.get("rails"),
        ports=(leaf, spine, core),
        parts={role: node for role, node in parts.items() if isinstance(node, Scalar)},
        cable=cable,
        uplink=uplink,
        oversubscription=(ratios[0], ratios[1]),
        levels=levels,
        **{key: values.get(key) for key in ("unit", "leaves", "spines", "uplinks")},
        nodes=entries,
    )


def _ports_of(node: Node, what: str, parts: MappingOf[str, Part], report: Report) -> int | None:
    """Return how many ports a switch has; what has none, or an unknown number, is reported."""
    if keys.text_of(node, f"the switch of {what}", report) is None:
        return None
    assert isinstance(node, Scalar)  # a text is a scalar's
    part = find_part(node, parts, report)
    if part is None:
        return None
    if part.kind != "network-switch":
        message = f"`{part.name}` is {keys.a_kind(part.kind)}, and a fabric is made of switches"
        report.add(node, "kind-mismatch", message, help="`topo parts` lists network switches")
        return None
    if part.ports is None or part.ports.count is None:
        message = f"how many ports `{part.name}` has is not known, so nor is how many it takes"
        help = f"give it ports under `parts:`: `{{like: {part.name}, ports: 64x infiniband ndr}}`"
        report.add(node, "missing-figure", message, help=help)
        return None
    return part.ports.count


# --- making ---------------------------------------------------------------------------------------


def lay_fabrics(drafts: Iterable[Draft], names: Names, report: Report) -> tuple[Laid, ...]:
    """Return what each fabric stands for; one that cannot be is reported with what would fit."""
    laid: list[Laid] = []
    switches = cables = 0
    for draft in drafts:
        nodes = _nodes(draft, names, report)
        plan = _plan(draft, len(nodes), len(nodes[0]), report) if nodes else None
        if plan is None:
            continue
        network = plan.network
        switches += plan.leaves + network.spines + network.cores
        to_cores = network.spines * network.core.above if network.core else 0
        cables += plan.ends + plan.leaves * network.up.above + to_cores
        if switches > MOST or cables > _MOST_CABLES:
            message = f"with fabric `{draft.name.text}` the file has {switches} switches and "
            message += f"{cables} cables of fabrics, more than {MOST} and {_MOST_CABLES}"
            report.add(draft.name, "huge-range", message, help="name fewer cards")
            break
        of_fabric = _lay(draft, nodes, plan)
        if taken := [
            name for group in of_fabric.groups for name in group.names if names.matching(name)
        ]:
            message = f"{listed(ranged(taken))} would be made here and "
            message += "is there already" if len(taken) == 1 else "are there already"
            report.add(draft.name, "defined-twice", message, help="call the fabric something else")
            continue
        laid.append(of_fabric)
    return tuple(laid)


def _nodes(draft: Draft, names: Names, report: Report) -> Nodes:
    """Return the cards of each node, in the order of their rails; none where something is wrong."""
    nodes = _machines(draft, names, report) if draft.cards else _blocks(draft, names, report)
    ends = Counter(end for cards in nodes for end in cards)
    if twice := [str(end) for end, count in ends.items() if count > 1]:
        message = f"fabric `{draft.name.text}` joins {listed(ranged(twice))} twice"
        report.add(draft.at("of"), "defined-twice", message, help="name each card once")
        return ()
    return _whole(draft, nodes, report)


def _whole(draft: Draft, nodes: Nodes, report: Report) -> Nodes:
    """Return the nodes if all of them have as many cards."""
    rails = draft.rails or len(nodes[0]) if nodes else 0
    uneven = next((cards for cards in nodes if len(cards) != rails), None)
    if uneven is None:
        return nodes
    if draft.cards:
        machine, first = (cards[0].device.partition(".")[0] for cards in (uneven, nodes[0]))
        message = f"{machine} has {counted(len(uneven), 'card')} for this fabric, and {first} "
        message += f"has {len(nodes[0])}"
        help = "name the cards that all have, or make two fabrics"
        if machine == first:
            message = f"`cards:` are {len(uneven)} of each machine, and `rails:` says {rails}"
            help = "leave `rails:` out"
    else:
        count = len(nodes) - 1
        fits = [counted(near * rails, "card") for near in (count, count + 1) if near]
        message = f"{counted(count * rails + len(uneven), 'card')} do not come out even: with "
        message += f"{rails} rails that is {counted(count, 'node')} and "
        message += f"{counted(len(uneven), 'card')} over"
        help = f"{listed(fits, 'or')} would do"
    report.add(draft.at("cards", "of"), "uneven-fabric", message, help=help)
    return ()


def _machines(draft: Draft, names: Names, report: Report) -> Nodes:
    """Return the cards of the machines that `of:` names."""
    nodes: list[tuple[End, ...]] = []
    of_template: dict[int, tuple[End, ...]] = {}
    for text in draft.of:
        machines = names.machines(text.text.strip())
        if not machines:
            message = f"no machine is called `{text.text}`, and `cards:` are of machines"
            help = (
                "leave `cards:` out" if names.matching(text.text) else names.absent([text.text])[1]
            )
            report.add(text, "unknown-name", message, help=help)
            return ()
        for machine in machines:
            inside = names.inside(machine)
            cards = of_template.get(id(inside))
            if cards is None:
                cards = of_template[id(inside)] = _cards(draft, machine, inside, report)
                if not cards:
                    return ()
            nodes.append(tuple(End(f"{machine}.{end.device}", end.side) for end in cards))
    return tuple(nodes)


def _cards(draft: Draft, machine: str, inside: Names, report: Report) -> tuple[End, ...]:
    """Return the cards of a machine by their names in it; one that it has not is reported."""
    ends: list[End] = []
    for text in draft.cards:
        device = text.text.partition("/")[0].strip()
        if not inside.matching(device):
            reason, advice = inside.absent([device])
            message = reason.replace("no device", f"{machine} has no", 1)
            report.add(text, "unknown-name", message, help=advice)
            return ()
        ends += inside.ends(text.text, text, report)
    return tuple(ends)


def _blocks(draft: Draft, names: Names, report: Report) -> Nodes:
    """Return the cards that `of:` names in blocks of as many as there are rails."""
    for text in draft.of:
        if machines := names.machines(text.text.strip()):
            message = f"`{text.text}` names machines, and a fabric joins their cards"
            card = next(iter(names.inside(machines[0])), "nic")
            help = f"say which: `cards: ...`, a name in it such as `{card}`"
            report.add(text, "missing-key", message, help=help)
            return ()
    ends = [end for text in draft.of for end in names.ends(text.text, text, report)]
    rails = draft.rails or 1
    return tuple(tuple(ends[at : at + rails]) for at in range(0, len(ends), rails))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How many cards and leaves there are, how many each takes in turn, and the network above."""

    ends: int
    leaves: int
    cards: int
    network: Clos


def _plan(draft: Draft, nodes: int, of_node: int, report: Report) -> _Plan | None:
    """Return the counts of a fabric for so many nodes with so many cards, or say what would do."""
    cards, ports = nodes * of_node, draft.ports[0]
    by_rail = draft.kind == "rail-optimized"
    a_node = draft.cable.count * (1 if by_rail else of_node)  # cables of a node in one leaf
    ratio, faster = draft.oversubscription[0], draft.faster
    room = ports - draft.uplinks if draft.uplinks else clos.most_downlinks(ports, ratio, faster)
    # Where a leaf serves no stated number of nodes, it may end in the middle of one.
    in_leaf = room // draft.cable.count
    if draft.unit:
        in_leaf = draft.unit * a_node // draft.cable.count
    elif draft.leaves:
        if nodes % draft.leaves:
            _report_uneven_leaves(draft, nodes, draft.leaves, report)
            return None
        in_leaf = cards // draft.leaves
    elif not (draft.uplinks or draft.spines):
        counts = (nodes, of_node) if by_rail else (cards, 1)
        in_leaf = _with_divisible_uplinks(draft, in_leaf, *counts)
    downlinks = in_leaf * draft.cable.count
    if not 0 < downlinks <= room:
        per_leaf = room // a_node
        message = f"a leaf of fabric `{draft.name.text}` has {counted(ports, 'port')}, and "
        uplinks = draft.uplinks or clos.uplinks_for(max(downlinks, 1), ratio, faster)
        message += f"{counted(max(downlinks, draft.cable.count), 'cable')} down need {uplinks} up"
        help = f"at most {counted(per_leaf, 'node')} a leaf would do" if per_leaf else ""
        help = help or "take a switch with more ports"
        report.add(
            draft.at("unit", "leaves", "uplinks", "switch"), "fabric-full", message, help=help
        )
        return None
    if by_rail:
        leaves = math.ceil(nodes / in_leaf) * of_node
        rails = [range(rail, leaves, of_node) for rail in range(of_node)]
    else:
        leaves = math.ceil(cards / in_leaf)
        if draft.leaves and leaves > draft.leaves:
            message = f"{counted(nodes, 'node')} need {leaves} leaves, and here are {draft.leaves}"
            report.add(
                draft.at("leaves"),
                "fabric-full",
                message,
                help=f"write {leaves}, or a larger `unit:`",
            )
            return None
        leaves = draft.leaves or leaves
        rails = [range(leaves)]
    if leaves > MOST:
        message = f"fabric `{draft.name.text}` has {leaves} leaves, more than {MOST}"
        report.add(draft.at("leaves", "unit"), "huge-range", message, help="make them fewer")
        return None
    network = _network(draft, leaves, rails, ports - downlinks, downlinks, report)
    return _Plan(cards, leaves, in_leaf, network) if network else None


def _with_divisible_uplinks(draft: Draft, most: int, count: int, leaves_each: int) -> int:
    """Return how many cards a leaf takes: a few less where its uplinks divide by nothing.

    43 uplinks go to 43 spines, a cable to each; of 44 four go to each of 11. `count` is what the
    leaves share, each part of it by `leaves_each` of them.
    """
    ratio, (ports, spine_ports, _) = draft.oversubscription[0], draft.ports
    fewest = math.ceil(count / most) if most else 0
    for in_leaf in range(most, most - most // _FEW - 1, -1):
        if not in_leaf or math.ceil(count / in_leaf) > fewest:
            break
        leaves, downlinks = fewest * leaves_each, in_leaf * draft.cable.count
        uplinks = clos.uplinks_for(downlinks, ratio, draft.faster)
        up = clos.evenly(leaves, uplinks, ports - downlinks, spine_ports)
        if up is None or up.bundle > 1 or leaves * 2 > spine_ports:
            return in_leaf
    return most


def _report_uneven_leaves(draft: Draft, nodes: int, leaves: int, report: Report) -> None:
    fewer = nodes - nodes % leaves
    sizes = " or ".join(str(count) for count in (fewer, fewer + leaves) if count)
    divisors = " or ".join(map(str, clos.divisors_around(nodes, leaves)))
    message = f"{nodes} nodes do not come out even on {leaves} leaves"
    unit = math.ceil(nodes / leaves)
    help = f"{sizes} nodes or {divisors} leaves do; `unit: {unit}` fills one leaf after the other"
    report.add(draft.at("leaves"), "uneven-fabric", message, help=help)


def _network(
    draft: Draft,
    leaves: int,
    rails: Sequence[Sequence[int]],
    most: int,
    downlinks: int,
    report: Report,
) -> Clos | None:
    """Return the network above so many leaves, of two levels where they suffice."""
    ratio, spine_ratio = draft.oversubscription
    _, spine_ports, core_ports = draft.ports
    need = draft.uplinks or clos.uplinks_for(downlinks, ratio, draft.faster)
    if draft.uplinks:
        most = need
    if draft.spines:
        return _with_spines(draft, leaves, need, most, report)
    if draft.levels != _THREE and (up := clos.evenly(leaves, need, most, spine_ports)):
        return clos.two_levels(leaves, up)
    if draft.levels != _TWO and draft.kind != "leaf-spine":
        network = clos.three_levels(
            rails,
            uplinks=need,
            most=most,
            spine_ports=spine_ports,
            core_ports=core_ports,
            oversubscription=spine_ratio,
        )
        if network:
            return network
        most_leaves = clos.most_downlinks(spine_ports, spine_ratio) * core_ports
        limit = f"three levels take {core_ports} groups of {most_leaves // core_ports}"
        fits = "a switch with more ports, or more `oversubscription:`"
    else:
        most_leaves, limit = spine_ports, f"a spine has {spine_ports} ports"
        fits = "a switch with more ports"
        if draft.kind != "leaf-spine":
            fits += ", or `levels: 3`"
    message = f"fabric `{draft.name.text}` needs {leaves} leaves, and {limit}"
    per_leaf = downlinks // draft.cable.count
    help = f"at most {counted(most_leaves * per_leaf, 'card')} would do; take {fits}"
    report.add(draft.at("of"), "fabric-full", message, help=help)
    return None


def _with_spines(draft: Draft, leaves: int, need: int, most: int, report: Report) -> Clos | None:
    """Return a network of two levels with the spines that the file states."""
    spines, ports = draft.spines or 1, draft.ports[1]
    bundle = math.ceil(need / spines)
    if draft.levels == _THREE:
        message = f"the spines of fabric `{draft.name.text}` follow from its groups"
        report.add(draft.at("spines"), "misplaced-key", message, help="leave `spines:` out")
    elif bundle * spines > most:
        fits = listed(map(str, clos.divisors_around(most, spines)), "or")
        message = f"{most} uplinks of a leaf do not come out even on {spines} spines"
        report.add(draft.at("spines"), "uneven-fabric", message, help=f"{fits} would do")
    elif bundle * leaves > ports:
        message = f"a spine of fabric `{draft.name.text}` has {ports} ports, and {leaves} leaves "
        message += f"with {counted(bundle, 'cable')} each need {bundle * leaves}"
        up = clos.evenly(leaves, need, most, ports)
        help = f"{up.above} spines would do" if up else f"it takes at most {ports} leaves"
        report.add(draft.at("spines"), "fabric-full", message, help=help)
    else:
        return clos.two_levels(leaves, clos.Evenly(bundle * spines, spines))
    return None


# --- switches and cables --------------------------------------------------------------------------


def _lay(draft: Draft, nodes: Nodes, plan: _Plan) -> Laid:
    """Return the switches and cables of a plan."""
    network, place = plan.network, draft.name.place
    counts = {"leaf": plan.leaves, "spine": network.spines, "core": network.cores}
    groups = tuple(_switches(draft, role, count) for role, count in counts.items() if count)
    leaves, spines, *cores = ([End(name) for name in group.names] for group in groups)
    if draft.kind == "rail-optimized":
        leaf_of = (
            node // plan.cards * len(cards) + rail
            for node, cards in enumerate(nodes)
            for rail in range(len(cards))
        )
    else:
        leaf_of = (card // plan.cards for card in range(plan.ends))
    downlinks = [
        DescribedLink(card, leaves[leaf], draft.cable, place)
        for card, leaf in zip((card for cards in nodes for card in cards), leaf_of, strict=True)
    ]
    uplink = _bundle(draft.uplink, network.up.bundle)
    uplinks = [
        DescribedLink(leaves[leaf], spines[spine], uplink, place)
        for group, members in enumerate(network.groups)
        for leaf in members
        for spine in range(group * network.up.above, (group + 1) * network.up.above)
    ]
    links, cables = [*downlinks, *uplinks], [plan.ends * draft.cable.count]
    cables.append(plan.leaves * network.up.uplinks)
    if network.core is not None:
        to_core = _bundle(draft.uplink, network.core.bundle)
        links += (
            DescribedLink(end, cores[0][position * network.core.above + core], to_core, place)
            for spine, end in enumerate(spines)
            for position in (spine % network.up.above,)
            for core in range(network.core.above)
        )
        cables.append(len(spines) * network.core.uplinks)
    tiers = tuple(
        FabricTier(role, group.names, below)
        for role, group, below in zip(counts, groups, cables, strict=False)
    )
    return Laid(Fabric(draft.name.text, draft.kind, tiers, place), groups, tuple(links))


def _switches(draft: Draft, role: str, count: int) -> Group:
    """Return the entry of `devices:` that says what the switches of a tier are."""
    stem, part = f"{draft.name.text}-{role}", draft.parts[role]
    names = tuple(f"{stem}{number}" for number in range(count))
    place = draft.name.place
    entries = ((Scalar("part", place), part), (Scalar("role", place), Scalar(role, place)))
    return Group(Scalar(f"{stem}[0-{count - 1}]", place), names, Mapping(entries, place))


def _bundle(cable: Cable, count: int) -> Cable:
    """Return so many of a cable side by side."""
    if count == 1:
        return cable
    return replace(cable, count=count, text=f"{count}x {cable.text}")
