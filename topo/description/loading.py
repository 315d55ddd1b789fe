"""Where a topology comes from, and its reading into a `Description`.

It comes from a file, a built-in by name, standard input, a text, or a `dict`. It is read in phases:
version, shape, references. Each phase says all of its mistakes at once, and the next begins only
when there are none, so that one cause gives one message.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topo import files
from topo.catalogue.cables import read_media
from topo.catalogue.part import Medium, Part
from topo.catalogue.parts import catalogue, read_parts
from topo.description import workloads as work
from topo.description.data_paths import built_in_files, check_fallbacks, read_data_paths
from topo.description.description import GROUPS, DescribedLink, Description, Override, Settings
from topo.description.devices import (
    NOT_COPIED,
    Group,
    Shelf,
    check_devices,
    copied_groups,
    expand_devices,
    read_devices,
)
from topo.description.flat import DeviceIndex, names_of
from topo.description.keys import (
    SETTINGS,
    TOP,
    check_commas,
    choice_of,
    entries_of,
    is_extension,
    kind_of,
    mapping_of,
    text_of,
    values_of,
)
from topo.description.links import (
    adapt_links,
    change_links,
    copied_links,
    links_of_copies_inside,
    read_lines,
    read_links,
    read_measured,
    resolve_links,
    resolve_measured,
)
from topo.description.locating import find_builtin, is_path, read_file
from topo.description.names import Names
from topo.description.overrides import (
    Change,
    Changes,
    inherit,
    made_changes,
    read_changes,
    sort_changes,
    split_copies,
    with_entry,
)
from topo.description.python_values import document_of
from topo.description.sweep import read_axes
from topo.description.uses import (
    Library,
    Origin,
    copied_inside,
    is_use,
    parts_written,
    read_uses,
    with_used,
)
from topo.document.nodes import Document, Mapping, Node, Report, Scalar
from topo.document.parse import parse
from topo.errors import DescriptionError, Place
from topo.phrases import listed, near_names, visible

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.description.fabrics import Draft as FabricDraft

VERSION: Final = "1"
_SHOWN: Final = 4  # keys that one message names
_FOREIGN_FILES: Final = {
    "services": "a Compose file",
    "apiVersion": "a Kubernetes manifest",
    "topology": "a containerlab or netlab file",
    "openapi": "an OpenAPI description",
}


def load(
    path_or_name: str | os.PathLike[str], *, overrides: MappingOf[str, str] | None = None
) -> Description:
    """Load a file (`-` is standard input), or a machine that topo ships by its name.

    `topo.load` says what the arguments mean and what is raised, for this and for `loads` and
    `build`.
    """
    text = os.fspath(path_or_name)
    if text == files.STANDARD_INPUT:
        return loads(read_file(text), name="<stdin>", overrides=overrides)
    if isinstance(path_or_name, os.PathLike) or is_path(text):
        document = parse(read_file(text), name=text)
        path = Path(text).resolve()
        origin = Origin(str(path.parent), ((str(path), ""),))
        name = visible(Path(text).stem)
        return read_description(document, name=name, overrides=overrides, origin=origin)
    path = find_builtin(text)
    document = parse(path.read_bytes(), name=f"topologies/{text}.yaml")
    origin = Origin(chain=((str(path), ""),))
    return read_description(document, name=text, overrides=overrides, origin=origin)


def loads(
    text: str | bytes, *, name: str = "<text>", overrides: MappingOf[str, str] | None = None
) -> Description:
    """Load a description from YAML text.

    Examples
    --------
    >>> spec = loads("{topo: 1, devices: {'gpu[0-1]': h100-sxm-80gb}}")
    >>> [device.name for device in spec.devices]
    ['gpu0', 'gpu1']
    """
    return read_description(parse(text, name=name), name="topology", overrides=overrides)


def build(
    document: MappingOf[str, Any], *, overrides: MappingOf[str, str] | None = None
) -> Description:
    """Build a description from a `dict` of the same shape as the YAML.

    Examples
    --------
    >>> build({"topo": 1, "devices": {"gpu0": "h100-sxm-80gb"}}).devices[0].name
    'gpu0'
    """
    return read_description(document_of(document), name="topology", overrides=overrides)


# --- reading --------------------------------------------------------------------------------------


def read_description(
    document: Document,
    *,
    name: str = "",
    overrides: MappingOf[str, Override] | None = None,
    origin: Origin | None = None,
) -> Description:
    """Read a document.

    Parameters
    ----------
    document
        The parsed text.
    name
        What the topology is called if the file does not say.
    overrides
        What to change on the way, by target: ``{"slot1.part": "connectx-8"}``.
    origin
        Where it was read from; what is no file uses built-in machines only.

    Raises
    ------
    DescriptionError
        With every mistake of the first phase that has any.
    UnknownNameError
        If an override changes something that is not there.
    """
    report = Report(document)
    origin = origin or Origin()
    description = describe(document, report, name=name, overrides=overrides, origin=origin)
    if not description.devices and not description.uses:
        report.add(
            Place(document.name, 1, 1),
            "no-devices",
            "there are no devices, so there is nothing to ask about",
            help="add `devices:` with one `name: part` a line",
            severity="warning",
        )
    return replace(
        description,
        findings=report.findings,
        document=document,
        overrides=dict(overrides or {}),
        origin=origin,
    )


def vary(description: Description, overrides: MappingOf[str, Override]) -> Description:
    """Return what the same text says with other overrides laid over those it was read with.

    Parameters
    ----------
    description
        A description that was read from a text or a `dict`.
    overrides
        What to change, by target: ``{"slot1.part": "connectx-8"}``.

    Raises
    ------
    DescriptionError, UnknownNameError
        As for `read_description`.
    """
    assert description.document is not None, "only what was read can be read again"
    origin = description.origin
    return read_description(
        description.document,
        name=description.name,
        overrides={**description.overrides, **overrides},
        origin=replace(origin, library=Library(origin.library)) if origin else None,
    )


def describe(
    document: Document,
    report: Report,
    *,
    name: str = "",
    overrides: MappingOf[str, Override] | None = None,
    origin: Origin | None = None,
    parts: MappingOf[str, Part] | None = None,
) -> Description:
    """Read a document through every phase; `parts` are those of the file around it."""
    check_commas(document.root, report)
    report.stop(DescriptionError)
    sections = _read_version(document, report)
    report.stop(DescriptionError)
    groups = expand_devices(sections.get("devices"), report)
    names = [name for group in groups for name in group.names]
    copies, changed = split_copies(overrides or {}, names)
    groups += copied_groups(copies, groups)
    changes = Changes()
    if changed:
        # An override is not to blame for a device that could not be read.
        report.stop(DescriptionError)
        sections, changes = _with_overrides(sections, groups, changed)
        changes = inherit(changes, copies, NOT_COPIED)
    description = _read_sections(
        document, sections, groups, copies, changes, origin or Origin(), parts or {}, report
    )
    report.stop(DescriptionError)
    return replace(description, name=description.name or name)


# --- version --------------------------------------------------------------------------------------


def _read_version(document: Document, report: Report) -> dict[str, Node]:
    root = document.root
    if not isinstance(root, Mapping):
        message = f"a topology begins with `topo: {VERSION}`; here stands {kind_of(root)}"
        report.add(root, "wrong-shape", message, help=f"write `topo: {VERSION}` as the first line")
        return {}
    stated = root.get("topo")
    if stated is not None:
        text = stated.text if isinstance(stated, Scalar) else ""
        if text != VERSION:
            message = (
                f"this topo reads version {VERSION} of the format, "
                f"and here stands {text or kind_of(stated)}"
            )
            report.add(stated, "version", message, help=f"write `topo: {VERSION}`")
        if text != VERSION:
            return {}
        return entries_of(_without_misplaced(root, report), TOP, "a topology", report)
    foreign = next((key for key in _FOREIGN_FILES if root.get(key)), "")
    message = f"the first line of a topology is `topo: {VERSION}`, and it is not there"
    if foreign:
        kind = _FOREIGN_FILES[foreign]
        message = f"this is {kind}, not a topology, whose first line is `topo: {VERSION}`"
    at = root.key(foreign) or (root.entries[0][0] if root.entries else root)
    near = isinstance(at, Scalar) and "topo" in near_names(at.text, TOP)
    advice = f"write `topo: {VERSION}`" if near else f"add `topo: {VERSION}` at the top"
    report.add(at, "version", message, help="" if foreign else advice)
    return {}


def _without_misplaced(root: Mapping, report: Report) -> Mapping:
    """Return the top of a file without what belongs into a section: one mistake for each."""
    misplaced: dict[str, list[str]] = {}
    at: dict[str, Scalar] = {}
    entries: list[tuple[Scalar, Node]] = []
    for key, value in root:
        section = "" if key.text in TOP or is_extension(key.text) else _section_of(key.text, value)
        if section:
            at.setdefault(section, key)
            misplaced.setdefault(section, []).append(f"`{key.text}`")
        else:
            entries.append((key, value))
    for section, keys in misplaced.items():
        are = "is not a key" if len(keys) == 1 else "are not keys"
        message = f"{listed(keys, most=_SHOWN)} {are} of a topology"
        advice = f"indent {'it' if len(keys) == 1 else 'them'} under `{section}:`"
        report.add(at[section], "unknown-key", message, help=advice)
    return Mapping(tuple(entries), root.place)


def _section_of(key: str, value: Node) -> str:
    """Return the section that an entry at the top looks as if it belonged into, or nothing."""
    inside = {name.text for name, _ in value} if isinstance(value, Mapping) else set()
    if inside & {"from", "over"}:
        return "workloads"
    is_part = isinstance(value, Scalar) and value.text in catalogue().parts
    if is_part or inside & {"part", "use"} or ("[" in key and " " not in key):
        return "devices"
    return "settings" if key in SETTINGS else ""


def _with_overrides(
    sections: dict[str, Node], groups: tuple[Group, ...], overrides: MappingOf[str, Override]
) -> tuple[dict[str, Node], Changes]:
    """Return the sections with the changes to their entries laid in, and all changes."""
    keys = {
        section: tuple(key.text for key, _ in node)
        for section, node in sections.items()
        if isinstance(node, Mapping)
    }
    changes = sort_changes(
        read_changes(overrides),
        names=Names((name for group in groups for name in group.names), {}),
        entries={
            "parts": keys.get("parts", ()),
            "media": (*keys.get("media", ()), *catalogue().media),
            "fabrics": keys.get("fabrics", ()),
            "workloads": keys.get("workloads", ()),
            "data-paths": (*keys.get("data-paths", ()), *built_in_files()),
        },
    )
    changed = dict(sections)
    for section, section_changes in changes.sections.items():
        for change in section_changes:
            if not section:
                changed[change.keys[0].text] = change.value
                continue
            old = changed.get(section)
            mapping = old if isinstance(old, Mapping) else Mapping((), change.place)
            changed[section] = with_entry(mapping, change.keys, change.value)
    return changed, changes


def _read_sections(
    document: Document,
    sections: dict[str, Node],
    groups: tuple[Group, ...],
    copies: MappingOf[str, str],
    changes: Changes,
    origin: Origin,
    around: MappingOf[str, Part],
    report: Report,
) -> Description:
    """Read keys and values, then look up the devices, workloads and data paths that they name."""
    built_in = catalogue()
    own_media = _without_extensions(sections.get("media"), "`media:`", report)
    media: MappingOf[str, Medium] = built_in.media
    if own_media is not None:
        media = read_media(own_media, media=media, report=report)
    own_parts = _without_extensions(sections.get("parts"), "`parts:`", report)
    all_parts = {**around, **built_in.parts} if around else built_in.parts
    parts = read_parts(own_parts, parts=all_parts, media=media, report=report)
    uses = read_uses(
        filter(is_use, groups),
        changes.devices,
        origin=origin,
        parts=parts.own,
        describe=describe,
        report=report,
    )
    groups = tuple(group for group in groups if not is_use(group))
    shelf = Shelf(parts, media)
    likes = {
        key.text: value.get("like") if isinstance(value, Mapping) else value
        for key, value in own_parts or ()
    }
    comment = takewhile(lambda line: line.startswith("#"), document.lines)
    data_paths, path_overrides = read_data_paths(sections.get("data-paths"), report)
    description = Description(
        name=_line_of(sections.get("name"), "`name:`", report),
        title=(text_of(sections.get("title"), "`title:`", report) or "").strip().replace("\n", " "),
        devices=read_devices(groups, changes.devices, shelf, report),
        links=(),
        settings=_read_settings(sections.get("settings"), report),
        parts=parts.own,
        likes={name: node.text.strip() for name, node in likes.items() if isinstance(node, Scalar)},
        media={key.text: media[key.text] for key, _ in own_media or () if key.text in media},
        data_paths=data_paths,
        needs=_read_own_needs(sections.get("needs"), report),
        data_path_overrides=path_overrides,
        comment="\n".join(line.removeprefix("#").removeprefix(" ").rstrip() for line in comment),
        group=choice_of(sections["group"], "`group:`", GROUPS, report) or ""
        if "group" in sections
        else "",
        file=document.name,
    )
    drafted: tuple[FabricDraft, ...] = ()
    if "fabrics" in sections:
        from topo.description.fabrics import lay_fabrics, read_fabrics  # most files have none

        drafted = read_fabrics(sections["fabrics"], shelf, report)
    cabled = read_links(
        read_lines(sections.get("links"), "links", report), media=media, report=report
    )
    measured = read_measured(read_lines(sections.get("measured"), "measured", report), report)
    drafts = work.read_workloads(sections.get("workloads"), report)
    claims = work.read_expectations(sections.get("expect"), report)
    axes = read_axes(sections.get("sweep"), report)
    report.stop(DescriptionError)

    # A stem in `fabrics:` or `links:` means what the file names: a copy is cabled as its model is.
    description = with_used(description, uses, report) if uses else description
    named = names_of(_without(copies, description))
    fabrics = lay_fabrics(drafted, named, report) if drafted else ()
    switches = tuple(group for fabric in fabrics for group in fabric.groups)
    if drafted or changes.made:
        report.stop(DescriptionError)
        switch_names = Names((name for group in switches for name in group.names), {})
        to_switches = made_changes(changes.made, switch_names)
        devices = description.devices + read_devices(switches, to_switches, shelf, report)
        description = replace(description, devices=devices)
        changes.devices.update(to_switches)
        report.stop(DescriptionError)
        named = names_of(_without(copies, description))
    names = names_of(description) if copies else named
    index = DeviceIndex(description)
    check_devices(description.devices, report)
    check_fallbacks(data_paths.values(), report)
    path_names = (*built_in_files(), *description.data_paths)
    of_fabrics = tuple(link for fabric in fabrics for link in fabric.links)
    links = of_fabrics + resolve_links(cabled, named, report)
    links = _links(links, (*groups, *switches), copies, changes, description, shelf, report)
    workloads = work.resolve_workloads(
        drafts,
        names=names,
        kind_of=lambda name: index[name].kind,
        data_paths=path_names,
        needs=description.needs,
        report=report,
    )
    return replace(
        description,
        fabrics=tuple(fabric.fabric for fabric in fabrics),
        links=links,
        axes=axes,
        workloads=workloads,
        expectations=work.resolve_expectations(
            claims,
            names=names,
            workloads={workload.name: workload for workload in workloads},
            data_paths=path_names,
            report=report,
        ),
        measurements=resolve_measured(measured, names, report),
    )


def _links(
    links: tuple[DescribedLink, ...],
    groups: tuple[Group, ...],
    copies: MappingOf[str, str],
    changes: Changes,
    description: Description,
    shelf: Shelf,
    report: Report,
) -> tuple[DescribedLink, ...]:
    """Return the file's links as changed parts and changes leave them, with those of the copies.

    A copy is cabled as its model is by then; changes that name a link of a copy come last.
    """
    media = shelf.media
    index = DeviceIndex(description)
    places = {
        name: change.place
        for name, of_device in changes.devices.items()
        for change in of_device
        if change.keys[0].text == "part"
    }
    before: dict[str, Part] = {}
    if places:  # their parts as the file has them: what they were cabled for
        unchanged = (group for group in groups if not places.keys().isdisjoint(group.names))
        devices = read_devices(unchanged, {}, shelf, Report(report.document))
        before = {device.name: device.part for device in devices if device.name in places}
    inner, inner_places = parts_written(description.uses, links, index)
    before |= inner
    places |= inner_places
    names, later = names_of(description), list[Change]()

    def is_card(name: str) -> bool:
        return index[name].is_nic

    adapt = partial(
        adapt_links,
        part_of=lambda name: index[name].part,
        places=places,
        media=media,
        report=report,
    )
    originals = {name: part for name, part in before.items() if name not in copies}
    links = adapt(links, before=originals)
    links = change_links(
        links,
        changes.links,
        names=names,
        media=media,
        report=report,
        is_card=is_card,
        waiting=later,
    )
    # a copy with a part of its own, unlike its model's
    unlike = {
        name: index[model].part
        for name, model in copies.items()
        if name in places and index[name].part != index[model].part
    }
    links = adapt(copied_links(copies, links), before=unlike)
    inside = {
        ".".join((name, *(key.text for key in change.keys))): model
        for name, of_machine in changes.devices.items()
        for change in of_machine
        if (model := copied_inside(name, change)) is not None
    }
    links = links_of_copies_inside(inside, links) if inside else links
    return change_links(links, later, names=names, media=media, report=report, is_card=is_card)


def _without_extensions(node: Node | None, what: str, report: Report) -> Mapping | None:
    """Return a section without the writer's own `x-` keys."""
    mapping = mapping_of(node, what, report)
    if mapping is None:
        return None
    entries = ((key, value) for key, value in mapping if not is_extension(key.text))
    return Mapping(tuple(entries), mapping.place)


def _line_of(node: Node | None, what: str, report: Report) -> str:
    """Return a name: one line, with nothing in it that is not seen."""
    text = text_of(node, what, report) or ""
    if node is not None and visible(text) != text:
        message = f"{what} has a character that cannot be seen: {visible(text)}"
        report.add(node, "control-character", message, help="write the name without it")
        return visible(text)
    return text


def _read_settings(node: Node | None, report: Report) -> Settings:
    """Read the facts of the host; each knows its place."""
    mapping = mapping_of(node, "`settings:`", report, help="write it like `{iommu: off}`")
    if mapping is None:
        return Settings()
    entries = entries_of(mapping, SETTINGS, "`settings:`", report)
    places = {key: value.place for key, value in entries.items()}
    return Settings(**values_of(entries, SETTINGS, report), places=places)


def _read_own_needs(node: Node | None, report: Report) -> MappingOf[str, Need]:
    mapping = _without_extensions(node, "`needs:`", report)
    if mapping is None:
        return {}
    from topo.catalogue.needs import read_needs  # most files have none

    return read_needs(mapping, report)


def _without(copies: MappingOf[str, str], description: Description) -> Description:
    """Return the description without devices and machines that are copies."""
    if not copies:
        return description
    names_left = (
        tuple(name for name in use.names if name not in copies) for use in description.uses
    )
    return replace(
        description,
        devices=tuple(device for device in description.devices if device.name not in copies),
        uses=tuple(
            replace(use, names=names)
            for use, names in zip(description.uses, names_left, strict=True)
        ),
    )
