"""A document into a `Description`, in phases: version, shape, references.

Each phase says all of its mistakes at once, and the next begins only when there are none, so that
one cause gives one message.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from topo.catalogue.cables import read_media
from topo.catalogue.load import catalogue
from topo.catalogue.parts import read_parts
from topo.description.data_paths import built_in_files, check_fallbacks, read_data_paths
from topo.description.description import Description, Settings
from topo.description.devices import (
    Shelf,
    check_devices,
    copied_groups,
    expand_devices,
    read_devices,
)
from topo.description.keys import SETTINGS, TOP
from topo.description.links import (
    change_links,
    copied_links,
    read_lines,
    read_links,
    read_measured,
    resolve_links,
    resolve_measured,
)
from topo.description.names import Names
from topo.description.overrides import (
    Changes,
    read_changes,
    sort_changes,
    split_copies,
    with_entry,
)
from topo.description.shape import (
    check_commas,
    entries_of,
    is_extension,
    kind_of,
    mapping_of,
    text_of,
    values_of,
)
from topo.description.workloads import (
    read_expectations,
    read_workloads,
    resolve_expectations,
    resolve_workloads,
)
from topo.document.nodes import Mapping, Report, Scalar
from topo.errors import DescriptionError, Place
from topo.phrases import near_names
from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping as MappingOf

    from topo.catalogue.part import Cable, Figure, Medium
    from topo.description.description import Device, Override
    from topo.description.devices import Group
    from topo.description.links import Line
    from topo.description.overrides import Change
    from topo.description.workloads import Claim, Draft
    from topo.document.nodes import Document, Node


VERSION = "1"
_FOREIGN_FILES = {
    "services": "a Compose file",
    "apiVersion": "a Kubernetes manifest",
    "topology": "a containerlab or netlab file",
    "openapi": "an OpenAPI description",
}
Sections = dict[str, "Node"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Unresolved:
    """What of a file names devices, workloads and data paths that are not looked up yet.

    `media` are the built-in ones and the file's own, for a link that is given another cable.
    """

    media: MappingOf[str, Medium]
    cabled: tuple[tuple[Line, Cable], ...]
    measured: tuple[tuple[Line, Figure, str], ...]
    workloads: tuple[Draft, ...]
    expectations: tuple[Claim, ...]


def read_description(
    document: Document, *, name: str = "", overrides: MappingOf[str, Override] | None = None
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

    Raises
    ------
    DescriptionError
        With every mistake of the first phase that has any.
    UnknownNameError
        If an override changes something that is not there.
    """
    report = Report(document)
    description = describe(document, report, name=name, overrides=overrides)
    if not description.devices:
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
    return read_description(
        description.document,
        name=description.name,
        overrides={**description.overrides, **overrides},
    )


def describe(
    document: Document,
    report: Report,
    *,
    name: str = "",
    overrides: MappingOf[str, Override] | None = None,
) -> Description:
    """Read a document through every phase."""
    check_commas(document.root, report)
    report.stop(DescriptionError)
    sections = _read_version(document, report)
    report.stop(DescriptionError)
    groups = expand_devices(sections["devices"], report) if "devices" in sections else ()
    names = [name for group in groups for name in group.names]
    copies, changed = split_copies(overrides or {}, names)
    groups += copied_groups(copies, groups)
    changes = _sort_overrides(changed, groups, sections, report)
    sections = _changed(sections, changes)
    description, unresolved = _read_shape(document, sections, groups, changes.devices, report)
    report.stop(DescriptionError)
    description = _resolve(description, unresolved, copies, changes.links, report)
    report.stop(DescriptionError)
    return replace(description, name=description.name or name)


# --- version --------------------------------------------------------------------------------------


def _read_version(document: Document, report: Report) -> Sections:
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
        return entries_of(root, TOP, "a topology", report) if text == VERSION else {}
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


# --- overrides ------------------------------------------------------------------------------------


def _sort_overrides(
    overrides: MappingOf[str, Override],
    groups: tuple[Group, ...],
    sections: Sections,
    report: Report,
) -> Changes:
    if not overrides:
        return Changes()
    report.stop(DescriptionError)  # an override is not to blame for a device that could not be read
    names = Names((name for group in groups for name in group.names), {})
    keys = {
        section: tuple(key.text for key, _ in node)
        for section, node in sections.items()
        if isinstance(node, Mapping)
    }
    entries = {
        "parts": keys.get("parts", ()),
        "media": (*keys.get("media", ()), *catalogue().media),
        "workloads": keys.get("workloads", ()),
        "data-paths": (*keys.get("data-paths", ()), *built_in_files()),
    }
    return sort_changes(read_changes(overrides), names=names, entries=entries)


def _changed(sections: Sections, changes: Changes) -> Sections:
    """Return the sections with the changes to their entries laid in."""
    changed = dict(sections)
    for section, section_changes in changes.sections.items():
        for change in section_changes:
            if not section:
                changed[change.keys[0].text] = change.value
                continue
            old = changed.get(section)
            mapping = old if isinstance(old, Mapping) else Mapping((), change.place)
            changed[section] = with_entry(mapping, change)
    return changed


# --- shape ----------------------------------------------------------------------------------------


def _read_shape(
    document: Document,
    sections: Sections,
    groups: tuple[Group, ...],
    changes: MappingOf[str, list[Change]],
    report: Report,
) -> tuple[Description, _Unresolved]:
    """Read keys and values; the description has no links, workloads and so on yet."""
    built_in = catalogue()
    own_media = _without_extensions(sections.get("media"), "`media:`", report)
    media: MappingOf[str, Medium] = built_in.media
    if own_media is not None:
        media = read_media(own_media, media=media, report=report)
    own_parts = _without_extensions(sections.get("parts"), "`parts:`", report)
    parts = read_parts(own_parts, parts=built_in.parts, media=media, report=report)
    data_paths, path_overrides = read_data_paths(sections.get("data-paths"), report)
    description = Description(
        name=_text(sections, "name", report),
        title=_text(sections, "title", report),
        devices=read_devices(groups, changes, Shelf(parts, media), report),
        links=(),
        settings=_section(sections, "settings", _read_settings, report, Settings()),
        parts=parts.own,
        likes=_likes(own_parts),
        media={key.text: media[key.text] for key, _ in own_media or () if key.text in media},
        data_paths=data_paths,
        data_path_overrides=path_overrides,
        comment=_comment(document),
        file=document.name,
    )
    unresolved = _Unresolved(
        media=media,
        cabled=read_links(_lines(sections, "links", report), media=media, report=report),
        measured=read_measured(_lines(sections, "measured", report), report),
        workloads=_section(sections, "workloads", read_workloads, report, ()),
        expectations=_section(sections, "expect", read_expectations, report, ()),
    )
    return description, unresolved


def _without_extensions(node: Node | None, what: str, report: Report) -> Mapping | None:
    """Return a section without the writer's own `x-` keys."""
    mapping = mapping_of(node, what, report) if node is not None else None
    if mapping is None:
        return None
    entries = ((key, value) for key, value in mapping if not is_extension(key.text))
    return Mapping(tuple(entries), mapping.place)


def _likes(parts: Mapping | None) -> dict[str, str]:
    """Return the name of the part that each part starts from, where it names one."""
    nodes = {
        key.text: value.get("like") if isinstance(value, Mapping) else value
        for key, value in parts or ()
    }
    return {name: node.text.strip() for name, node in nodes.items() if isinstance(node, Scalar)}


def _section(
    sections: Sections, key: str, reader: Callable[[Node, Report], T], report: Report, absent: T
) -> T:
    return reader(sections[key], report) if key in sections else absent


def _lines(sections: Sections, section: str, report: Report) -> tuple[Line, ...]:
    return read_lines(sections[section], section, report) if section in sections else ()


def _read_settings(node: Node, report: Report) -> Settings:
    """Read the facts of the host; each knows its place."""
    mapping = mapping_of(node, "`settings:`", report, help="write it like `{iommu: off}`")
    if mapping is None:
        return Settings()
    entries = entries_of(mapping, SETTINGS, "`settings:`", report)
    places = {key: value.place for key, value in entries.items()}
    return Settings(**values_of(entries, SETTINGS, report), places=places)


def _text(sections: Sections, key: str, report: Report) -> str:
    node = sections.get(key)
    return (text_of(node, f"`{key}:`", report) or "") if node is not None else ""


def _comment(document: Document) -> str:
    """Return what stands above the first key, without its ``#``."""
    lines = takewhile(lambda line: line.startswith("#"), document.lines)
    return "\n".join(line.removeprefix("#").removeprefix(" ").rstrip() for line in lines)


# --- references -----------------------------------------------------------------------------------


def _resolve(
    description: Description,
    unresolved: _Unresolved,
    copies: MappingOf[str, str],
    link_changes: list[Change],
    report: Report,
) -> Description:
    """Return the description with all that names devices, workloads and data paths."""
    devices = description.devices
    names = _names(devices)
    # A stem in `links:` means what the file names: a copy is cabled as its model is.
    named = _names(tuple(device for device in devices if device.name not in copies))
    check_devices(devices, report)
    check_fallbacks(description.data_paths.values(), report)
    data_paths = (*built_in_files(), *description.data_paths)
    links = copied_links(copies, resolve_links(unresolved.cabled, named, report))
    workloads = resolve_workloads(
        unresolved.workloads,
        names=names,
        kinds={device.name: device.kind for device in devices},
        data_paths=data_paths,
        report=report,
    )
    return replace(
        description,
        links=change_links(links, link_changes, names=names, media=unresolved.media, report=report),
        workloads=workloads,
        expectations=resolve_expectations(
            unresolved.expectations,
            names=names,
            workloads={workload.name: workload for workload in workloads},
            data_paths=data_paths,
            report=report,
        ),
        measurements=resolve_measured(unresolved.measured, names, report),
    )


def _names(devices: tuple[Device, ...]) -> Names:
    return Names(
        (device.name for device in devices),
        {device.name: device.numa for device in devices if device.numa},
    )
