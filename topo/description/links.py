"""The `links:` and `measured:` of a file: which ends a line names, how they pair, what it holds.

Here are also the links that a caller changes, and those of devices added as copies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.cables import CABLE_KEYS, parse_cable, read_cable
from topo.catalogue.part import Cable, Figure, Medium, Part
from topo.catalogue.values import HERE
from topo.description.description import DescribedLink, End, Measurement
from topo.description.keys import MEASURED, entries_of, items_of, kind_of, text_of, value_of
from topo.description.names import MOST, Names, ranged
from topo.description.overrides import source_of
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import Finding, Place, UnknownNameError
from topo.phrases import did_you_mean, listed
from topo.records import dataclass
from topo.units import format_bit_rate, parse_rate

if TYPE_CHECKING:
    from topo.description.overrides import Change

_MODES: Final = ("in blocks", "all to all")
_JOINTS: Final = {"links": "--", "measured": "->"}
_ADVICE: Final = {
    "links": "write it like `- a -- b: pcie 5 x16`",
    "measured": "write it like `- a -> b: 55 GB/s`",
}
_END_KEYS: Final = ("from", "to", "a", "b", "source", "target", "src", "dst")  # of other formats
_DASHES = re.compile(r"\s(?:[\u2010-\u2015\u2212]+|<?-+>?|<?=+>?)\s")
_TIGHT = re.compile(r"(?<=[A-Za-z0-9\]])(?:--+>?|<?->)(?=[A-Za-z])")

# What a file may have in all: a cluster of MOST devices has a few links for each.
_MOST_LINKS: Final = 4 * MOST
# The keys of a cable that a change may name; its source comes with each.
_CABLE_KEYS: Final = tuple(key for key in CABLE_KEYS if key != "source")
_NAMED: Final = 4  # links in a list before "and 3 more"
Pairs = tuple[tuple[End, End], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One item of a list whose key joins two selections: the key, its parts and what it holds."""

    key: Scalar
    left: str
    right: str
    mode: str
    value: Node


# --- lines ----------------------------------------------------------------------------------------


def read_lines(node: Node | None, section: str, report: Report) -> tuple[Line, ...]:
    """Read the lines of a section, ``- a -- b: value`` or ``- a -> b: value``."""
    items = items_of(node, f"`{section}:` is a list", report, help="start each line with `- `")
    lines = (_read_line(item, section, report) for item in items)
    return tuple(line for line in lines if line is not None)


def _read_line(item: Node, section: str, report: Report) -> Line | None:
    joint = f" {_JOINTS[section]} "
    if isinstance(item, Mapping) and len(item.entries) == 1:
        key, value = item.entries[0]
        left, joined, right = key.text.partition(joint)
        if not joined or joint in right or not left.strip() or not right.strip():
            _report_not_joined(key, section, report)
            return None
        right = right.strip()
        mode = next((mode for mode in _MODES if right.endswith(f" {mode}")), "")
        return Line(key, left.strip(), right.removesuffix(mode).strip(), mode, value)
    if isinstance(item, Mapping) and item.entries and joint in item.entries[0][0].text:
        second = item.entries[1][0]
        message = f"`{second.text}` stands in the item of another line"
        report.add(second, "two-links-one-item", message, help="start each line with `- `")
    elif isinstance(item, Scalar) and joint in item.text:
        place = item.place
        after = report.document.line(place.line)[place.end_column - 1 :] if place.end_column else ""
        if after.startswith(" #"):
            message = "` #` starts a comment here and hides what joins the ends"
            report.add(item, "comment-ate-text", message, help="leave the `#` out")
            return None
        message = f"`{item.text}` has no `: ` between the ends and what joins them"
        advice = f"{_ADVICE[section]}, colon then space"
        report.add(item, "link-without-colon", message, help=advice)
    else:
        message, advice = f"{kind_of(item)} is not a line of `{section}:`", _ADVICE[section]
        ends = [item.get(key) for key in _END_KEYS] if isinstance(item, Mapping) else []
        texts = [end.text for end in ends if isinstance(end, Scalar)]
        if len(texts) == 2:  # noqa: PLR2004  (`{from: nic0, to: cpu0, type: pcie 5 x16}`)
            advice = f"write `- {texts[0]}{joint}{texts[1]}: ...`"
        report.add(item, "not-a-cable", message, help=advice)
    return None


def _report_not_joined(key: Scalar, section: str, report: Report) -> None:
    """Report a key that does not join two ends."""
    text, joint, advice = key.text, _JOINTS[section], _ADVICE[section]
    ends = [end.strip() for end in text.split(f" {joint} ")]
    dash = _DASHES.search(f" {text} ") or _TIGHT.search(text)
    name = "two hyphens with spaces, ` -- `" if joint == "--" else "` -> `"
    message = f"`{text}` does not join two ends: `{section}:` joins them by {name}"
    if len(ends) > 2 and all(ends):  # noqa: PLR2004  (a line has two)
        message = f"`{text}` joins {len(ends)} ends, and a line joins two"
        first, second = f"{ends[0]} {joint} {ends[1]}", f"{ends[1]} {joint} {ends[2]}"
        advice = f"write two lines, `- {first}` and `- {second}`"
    elif dash:
        if joint == "--" and ">" in dash[0]:
            message = f"`{text}`: an arrow is data in one direction, as under `measured:`"
        left, _, right = text.partition(dash[0].strip())
        advice = f"write `{left.strip()} {joint} {right.strip()}`"
    report.add(key, "not-a-cable", message, help=advice)


# --- pairs ----------------------------------------------------------------------------------------


def expand_line(line: Line, names: Names, report: Report) -> Pairs:
    """Return the pairs of ends that a line joins.

    Equal counts pair one to one, one end pairs with many, and else the line's own words say how.
    """
    left = names.ends(line.left, line.key, report)
    right = names.ends(line.right, line.key, report)
    if not left or not right:
        return ()
    if line.mode == "all to all":
        return _mesh(left, right, line, report)
    short, long = sorted((len(left), len(right)))
    pairs: Pairs = ()
    if line.mode == "in blocks":
        if long % short == 0:
            by_left, by_right = (max(1, long // len(side)) for side in (left, right))
            pairs = tuple((left[at // by_left], right[at // by_right]) for at in range(long))
    elif len(left) == len(right):
        pairs = tuple(zip(left, right, strict=True))
    elif short == 1:
        pairs = tuple(product(left, right))
    if not pairs:
        message = f"`{line.key.text}` joins {len(left)} with {len(right)}, and those do not pair"
        choices = [f"`all to all` ({short * long} links)", "or name one of them"]
        if long % short == 0:
            choices.insert(0, f"`in blocks` ({long // short} each)")
        if line.mode == "in blocks":
            message = f"`{line.key.text}`: {long} do not divide into {short} equal blocks"
        report.add(line.key, "unpaired", message, help=f"say {', '.join(choices)}")
    devices = [a.device for a, b in pairs if a.device == b.device]
    if not devices:
        return pairs
    device = devices[0] if len(devices) == 1 else "each device"
    message = f"`{line.key.text}` joins {device} with itself"
    help = f"a mesh is `{line.left} -- {line.right} all to all`" if len(pairs) > 1 else ""
    report.add(line.key, "self-link", message, help=help or "name two different devices")
    return ()


def _mesh(left: tuple[End, ...], right: tuple[End, ...], line: Line, report: Report) -> Pairs:
    if len(left) * len(right) > MOST:
        message = f"`{line.key.text}` makes {len(left) * len(right)} links, more than {MOST}"
        report.add(line.key, "huge-range", message, help="say it in blocks, or name fewer")
        return ()
    if left == right:
        pairs = tuple(combinations(left, 2))
    else:
        first = {frozenset(both): both for both in reversed(list(product(left, right)))}
        pairs = tuple(
            (a, b)
            for a, b in product(left, right)
            if first[frozenset((a, b))] == (a, b) and a.device != b.device
        )
    if not pairs:
        message = f"`{line.key.text}` joins a device with itself only"
        report.add(line.key, "self-link", message, help="name two different devices")
    return pairs


# --- links ----------------------------------------------------------------------------------------


def read_links(
    lines: Iterable[Line], *, media: MappingOf[str, Medium], report: Report
) -> tuple[tuple[Line, Cable], ...]:
    """Read what each line's cable is."""
    cabled = ((line, read_cable(line.value, media=media, report=report)) for line in lines)
    return tuple((line, cable) for line, cable in cabled if cable is not None)


def resolve_links(
    cabled: Iterable[tuple[Line, Cable]], names: Names, report: Report
) -> tuple[DescribedLink, ...]:
    """Return one link for each pair of ends; a file of more than `_MOST_LINKS` is refused."""
    links: list[DescribedLink] = []
    for line, cable in cabled:
        pairs = expand_line(line, names, report)
        if len(links) + len(pairs) > _MOST_LINKS:
            message = f"with `{line.key.text}` the file has more than {_MOST_LINKS} links"
            report.add(line.key, "huge-range", message, help="name fewer devices")
            break
        links.extend(DescribedLink(a, b, cable, line.key.place) for a, b in pairs)
    return tuple(links)


def change_links(
    links: tuple[DescribedLink, ...],
    changes: Iterable[Change],
    *,
    names: Names,
    media: MappingOf[str, Medium],
    report: Report,
    is_card: Callable[[str], bool],
    waiting: list[Change] | None = None,
) -> tuple[DescribedLink, ...]:
    """Return the links with those that a change names cabled, or led, as it says.

    The value is a cable, or other ends for the same cable: ``slot1 -- cpu1=slot1 -- cpu0``; after a
    key of a cable, ``slot1 -- cpu1.rate``, that figure of it alone. A port that no link names is
    the one that a cable of a bundle takes. Where `waiting` is given, it takes the changes that
    name no link yet; `is_card` says whether a device is a network card.

    Raises
    ------
    UnknownNameError
        If a change names no link.
    """
    for full_change in changes:
        change, key = _split_key(full_change, names)
        if key is not None and key.text not in _CABLE_KEYS:
            advice = did_you_mean(key.text, _CABLE_KEYS) or f"it has {listed(_CABLE_KEYS)}"
            report.add(key, "unknown-key", f"a cable has no `{key.text}`", help=advice)
            continue
        fields = _new_fields(change.value, names, media, report) if key is None else {}
        links, matched = _matching(links, change, names, is_card)
        if not matched and waiting is not None:
            waiting.append(full_change)
            continue
        if not matched:
            raise UnknownNameError(_no_link(change, links, names))
        if None in fields.values():
            continue
        changed: dict[Cable, MappingOf[str, Any]] = {}
        for cable in dict.fromkeys(links[at].cable for at in sorted(matched)):
            changed[cable] = fields
            if key is not None:
                changed[cable] = {"cable": _with_key(cable, key, change.value, media, report)}
        links = tuple(
            replace(link, **changed[link.cable], place=change.place) if at in matched else link
            for at, link in enumerate(links)
        )
    return links


def _new_fields(
    value: Node, names: Names, media: MappingOf[str, Medium], report: Report
) -> dict[str, End | Cable | None]:
    """Return the ends or the cable that a change gives a link; `None` for one that is wrong."""
    if isinstance(value, Scalar) and " -- " in value.text:
        both = value.text.split(" -- ", 1)
        ends = [names.ends(text.strip(), value, report) for text in both]
        if all(len(end) == 1 for end in ends):
            return {"a": ends[0][0], "b": ends[1][0]}
    return {"cable": read_cable(value, media=media, report=report)}


def _matching(
    links: tuple[DescribedLink, ...],
    change: Change,
    names: Names,
    is_card: Callable[[str], bool],
) -> tuple[tuple[DescribedLink, ...], frozenset[int]]:
    """Return the links, and the numbers of those that a change names.

    Where only a cable of a bundle takes the port that it names, bundles that do are taken apart.
    """
    sides = [side.strip().partition("/") for side in change.target.split(" -- ", 1)]
    left, right = ((frozenset(names.matching(device)), port) for device, _, port in sides)
    joins = partial(_joins, left=left, right=right)
    matched = frozenset(at for at, link in enumerate(links) if joins(link))
    if matched or not (left[1] or right[1]):
        return links, matched
    apart: list[DescribedLink] = []
    for link, cables in zip(links, _in_ports(links, is_card), strict=True):
        apart += cables if any(map(joins, cables)) else (link,)
    return tuple(apart), frozenset(at for at, link in enumerate(apart) if joins(link))


def _split_key(change: Change, names: Names) -> tuple[Change, Scalar | None]:
    """Return a change of a link without the key of its cable that ends its target, and that key."""
    target, dot, word = change.target.rpartition(".")
    _, joins, right = target.partition(" -- ")
    device, port, _ = right.strip().partition("/")
    is_device = not port and names.matching(f"{device}.{word}")
    is_key = word in _CABLE_KEYS or names.matching(device)
    if not dot or not joins or is_device or not is_key:
        return change, None
    return replace(change, target=target), Scalar(word, change.place)


def _with_key(
    cable: Cable, key: Scalar, value: Node, media: MappingOf[str, Medium], report: Report
) -> Cable:
    """Return a cable with one of its keys as a change says, the same where that is no value."""
    place = value.place
    source = Scalar(source_of(place), place)
    entries = {"medium": Scalar(cable.text, place), "source": source, key.text: value}
    pairs = ((Scalar(name, key.place), node) for name, node in entries.items())
    changed_cable = read_cable(Mapping(tuple(pairs), place), media=media, report=report)
    if changed_cable is None:
        return cable
    if key.text == "medium":
        of_medium = replace(changed_cable, stated=cable.stated, p2p=cable.p2p)
        return replace(of_medium, efficiency=cable.efficiency, duplex=cable.duplex)
    name = "stated" if key.text == "rate" else key.text
    changed: dict[str, Any] = {name: getattr(changed_cable, name)}
    return replace(cable, **changed)


def _in_ports(
    links: Iterable[DescribedLink], is_card: Callable[[str], bool]
) -> list[tuple[DescribedLink, ...]]:
    """Return for each link its cables, each in the port of a card that it takes."""
    links = tuple(links)
    free = FreePorts(end for link in links for end in (link.a, link.b))

    def in_port(end: End) -> End:
        dealt = not end.side and is_card(end.device)
        return End(end.device, free.next_of(end.device)) if dealt else end

    cables: list[tuple[DescribedLink, ...]] = []
    for link in links:
        if link.cable.reach != "network" or not (is_card(link.a.device) or is_card(link.b.device)):
            cables.append((link,))
            continue
        single = replace(link.cable, count=1)
        single_cables = (
            replace(link, a=in_port(link.a), b=in_port(link.b), cable=single)
            for _ in range(link.cable.count)
        )
        cables.append(tuple(single_cables))
    return cables


def _joins(
    link: DescribedLink, left: tuple[frozenset[str], str], right: tuple[frozenset[str], str]
) -> bool:
    """Whether a link leads from one side to the other, or back."""
    return (_fits(link.a, left) and _fits(link.b, right)) or (
        _fits(link.a, right) and _fits(link.b, left)
    )


def adapt_links(
    links: tuple[DescribedLink, ...],
    *,
    before: MappingOf[str, Part],
    part_of: Callable[[str], Part],
    media: MappingOf[str, Medium],
    report: Report,
    places: MappingOf[str, Place],
) -> tuple[DescribedLink, ...]:
    """Return the links as they are with other parts at their ends, and say what changes.

    A link that was as fast as its ends were is as fast as they are now, where both are known to
    be faster; one that is slower on purpose stays; none is faster than an end can.

    Parameters
    ----------
    links
        As the file has them.
    before, part_of
        The parts that were changed as they were, by device, and what returns the part that a
        device is now.
    media, report, places
        The media that there are, where a note goes, and where each part was changed.
    """
    adapted: list[DescribedLink] = []
    cables: dict[str, Cable] = {}
    notes: dict[tuple[str, str], list[str]] = {}
    for link in links:
        ends = (link.a.device, link.b.device)
        text = ""
        if not before.keys().isdisjoint(ends):
            now = [part_of(end) for end in ends]
            were = [before.get(end, part) for end, part in zip(ends, now, strict=True)]
            text = _adapted(link.cable, were, now, media)
        if text:
            notes.setdefault((link.cable.text, text), []).append(f"{link.a} -- {link.b}")
            cable = cables.get(text) or cables.setdefault(text, parse_cable(text, media))
            if link.cable.p2p != cable.p2p:
                cable = replace(cable, p2p=link.cable.p2p)
            link = replace(link, cable=cable)  # noqa: PLW2901
        adapted.append(link)
    for (old, new), names in notes.items():
        message = (
            f"{listed(names, most=_NAMED)}: `{new}` instead of `{old}`, which both ends have now"
        )
        help = "to have it otherwise, change the link too: `--set 'a -- b=cable'`"
        place = places[next(iter(before))]
        report.add(place, "link-adapted", message, help=help, severity="note")
    return tuple(adapted)


def _adapted(
    cable: Cable, old: Sequence[Part], new: Sequence[Part], media: MappingOf[str, Medium]
) -> str:
    """Return what a cable becomes with other parts at its ends, empty where it stays."""
    times = f"{cable.count}x " if cable.count > 1 else ""
    if cable.stated is not None:  # slower or faster on purpose
        return ""
    if cable.family == "pcie" and cable.generation and cable.lanes:
        old_slots, new_slots = ([part.slot for part in parts] for parts in (old, new))
        generations = [slot.generation for slot in new_slots if slot]
        fastest = min(generations, default=cable.generation)
        matched = [slot.generation for slot in old_slots if slot]
        may_rise = None not in new_slots and min(matched, default=0) == cable.generation
        generation = fastest if may_rise else min(fastest, cable.generation)
        widths = [
            part.slot.lanes
            for part in new
            if part.slot and part.slot.lanes and part.kind not in ("hba", "dpu")
        ]
        lanes = cable.lanes if cable.count > 1 else min([cable.lanes, *widths])
        if (generation, lanes) != (cable.generation, cable.lanes):
            return f"{times}pcie {generation} x{lanes}"
    if cable.reach == "network" and cable.rate.value is not None:
        were, are = ([part.ports.rate for part in parts if part.ports] for parts in (old, new))
        rates = [rate.value for rate in were if rate and rate.value]
        faster = [rate.value for rate in are if rate and rate.value]
        if rates and faster and min(rates) <= cable.rate.value < min(faster):
            text = fastest_cable(cable, min(faster), media)
            return f"{times}{text}" if text else ""
    return ""


def fastest_cable(cable: Cable, most: float, media: MappingOf[str, Medium]) -> str:
    """Return the fastest network cable of a cable's family up to a rate, if it is faster.

    Examples
    --------
    >>> from topo.catalogue.cables import parse_cable
    >>> from topo.catalogue.parts import catalogue
    >>> media = catalogue().media
    >>> fastest_cable(parse_cable("infiniband hdr", media), 50e9, media)
    'infiniband ndr'
    """
    assert cable.rate.value is not None
    if cable.family == "ethernet":
        return f"ethernet {format_bit_rate(most)}" if most > cable.rate.value else ""
    rates = {
        name: medium.rate.value
        for name, medium in media.items()
        if medium.family == cable.family and medium.rate is not None and medium.rate.value
    }
    faster = [name for name, rate in rates.items() if cable.rate.value < rate <= most]
    return max(faster, key=rates.__getitem__, default="")


def _fits(end: End, side: tuple[frozenset[str], str]) -> bool:
    """Whether an end is at one of the devices, and at the port or NUMA node, if any is named."""
    devices, port = side
    return end.device in devices and port in ("", end.side)


def _no_link(change: Change, links: Iterable[DescribedLink], names: Names) -> Finding:
    left, _, right = change.target.partition(" -- ")
    message = f"there is no link `{change.target}` to change"
    for side in (left, right):
        device = side.partition("/")[0].strip()
        if not names.matching(device):
            reason, advice = names.absent([device])
            return Finding("unknown-name", f"{message}: {reason}", place=change.place, help=advice)
    devices = names.matching(left.partition("/")[0].strip())
    neighbours = dict.fromkeys(
        (link.b if link.a.device in devices else link.a).device
        for link in links
        if {link.a.device, link.b.device} & set(devices)
    )
    advice = f"{left} is linked to {listed(ranged(neighbours))}" if neighbours else ""
    return Finding("unknown-name", message, place=change.place, help=advice)


def copied_links(
    copies: MappingOf[str, str], links: tuple[DescribedLink, ...]
) -> tuple[DescribedLink, ...]:
    """Return `links` followed by those of each copy: its model's, in the next free ports."""
    copied = list(links)
    for name, model in copies.items():
        for link in tuple(copied):
            a, b = (_of_copy(end, name, model) for end in (link.a, link.b))
            if a is not link.a or b is not link.b:
                copied.append(replace(link, a=a, b=b))
    return tuple(copied)


def links_of_copies_inside(
    copies: MappingOf[str, str], links: tuple[DescribedLink, ...]
) -> tuple[DescribedLink, ...]:
    """Return `links` followed by those that lead to copies inside used machines.

    Parameters
    ----------
    copies
        Models by the name of their copy, full names; no copy is a model.
    links
        The file's own.
    """
    of_model: dict[str, list[str]] = {}
    for name, model in copies.items():
        of_model.setdefault(model, []).append(name)
    of_a = (
        replace(link, a=End(name, link.a.side))
        for link in links
        for name in of_model.get(link.a.device, ())
    )
    of_b = (
        replace(link, b=End(name, link.b.side))
        for link in links
        for name in of_model.get(link.b.device, ())
    )
    return (*links, *of_a, *of_b)


def _of_copy(end: End, name: str, model: str) -> End:
    """Return the end that a copy has in place of its model's, or the same end."""
    device, dot, inside = end.device.partition(".")
    return End(f"{name}{dot}{inside}", end.side) if device == model else end


# --- ports ----------------------------------------------------------------------------------------


class FreePorts:
    """Deals out ports: each cable takes the next free one, and never one that is named.

    Parameters
    ----------
    ends
        The ends of all cables, as they are written.
    """

    def __init__(self, ends: Iterable[End]) -> None:
        self._named = {(end.device, end.side) for end in ends if end.side}
        self._dealt: Counter[str] = Counter()

    def next_of(self, device: str) -> str:
        """Return the next free port of a card: ``p2``."""
        while True:
            self._dealt[device] += 1
            port = f"p{self._dealt[device]}"
            if (device, port) not in self._named:
                return port


# --- measured rates -------------------------------------------------------------------------------


def read_measured(lines: Iterable[Line], report: Report) -> tuple[tuple[Line, Figure, str], ...]:
    """Read the rate, with its source, and the date of each line."""
    measured = []
    for line in lines:
        text, source, date = line.value, "", ""
        if isinstance(text, Mapping):
            entries = entries_of(text, MEASURED, "a measurement", report)
            if "rate" not in entries:
                continue
            text = entries["rate"]
            source = text_of(entries.get("source"), "`source`", report) or ""
            date = text_of(entries.get("date"), "`date`", report) or ""
        rate = value_of(text, "a measured rate", partial(parse_rate, positive=True), report)
        if rate is not None:
            measured.append((line, Figure(rate, "measured", source or HERE.at(text)), date))
    return tuple(measured)


def resolve_measured(
    measured: Iterable[tuple[Line, Figure, str]], names: Names, report: Report
) -> tuple[Measurement, ...]:
    """Return one measurement for each pair of ends."""
    return tuple(
        Measurement(str(a), str(b), rate, date, line.key.place)
        for line, rate, date in measured
        for a, b in expand_line(line, names, report)
    )
