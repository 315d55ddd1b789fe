"""A document into a `Description`, in phases: version, shape, references.

Each phase says all of its mistakes at once, and the next begins only when there are none, so that
one cause gives one message.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from topo.catalogue.load import catalogue
from topo.catalogue.media import read_media
from topo.catalogue.parts import read_parts
from topo.description.data_paths import (
    built_in_files,
    check_fallbacks,
    read_data_path,
    vary_data_path,
)
from topo.description.description import DataPath, Description, Settings
from topo.description.devices import (
    Shelf,
    check_devices,
    copied_groups,
    expand_devices,
    read_devices,
)
from topo.description.keys import TOP
from topo.description.links import (
    change_links,
    copied_links,
    read_lines,
    read_links,
    read_measured,
    resolve_links,
    resolve_measured,
)
from topo.description.names import Names, is_name
from topo.description.overrides import (
    Changes,
    read_changes,
    sort_changes,
    split_copies,
    with_entry,
)
from topo.description.settings import read_settings
from topo.description.shape import (
    check_commas,
    entries_of,
    is_extension,
    kind_of,
    mapping_of,
    text_of,
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

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping as MappingOf

    from topo.catalogue.part import Cable, Figure, Medium, Part
    from topo.description.description import Device, Override
    from topo.description.devices import Group
    from topo.description.links import Line
    from topo.description.workloads import Claim, Draft
    from topo.document.nodes import Document, Node


VERSION = "1"
_OTHER_FILES = {
    "services": "a Compose file",
    "apiVersion": "a Kubernetes manifest",
    "topology": "a containerlab or netlab file",
    "openapi": "an OpenAPI description",
}
Sections = dict[str, "Node"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Shape:
    """A file whose keys and values are read and whose names are not looked up yet."""

    sections: Sections
    settings: Settings
    media: MappingOf[str, Medium]
    parts: MappingOf[str, Part]
    likes: MappingOf[str, str]
    shelf: Shelf
    data_paths: dict[str, DataPath]
    data_path_overrides: dict[str, Mapping]
    devices: tuple[Device, ...]
    cabled: tuple[tuple[Line, Cable], ...]
    measured: tuple[tuple[Line, Figure, str], ...]
    workloads: tuple[Draft, ...]
    expectations: tuple[Claim, ...]
    copies: MappingOf[str, str] = field(default_factory=dict)


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
    description = _with_findings(description, report)
    return replace(description, document=document, overrides=dict(overrides or {}))


def vary(description: Description, overrides: MappingOf[str, Override]) -> Description:
    """Return what the same text says with other overrides laid over those it was read with.

    Parameters
    ----------
    spec
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
    copies, changed = split_copies(
        overrides or {}, (name for group in groups for name in group.names)
    )
    groups += copied_groups(copies, groups)
    changes = _sort(groups, sections, changed, report)
    shape = _read_shape(_changed(sections, changes), groups, changes, report)
    report.stop(DescriptionError)
    description = _resolve(replace(shape, copies=copies), changes, document, name, report)
    report.stop(DescriptionError)
    return description


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
            shown = text or kind_of(stated)
            message = f"this topo reads version {VERSION} of the format, and here stands {shown}"
            report.add(stated, "version", message, help=f"write `topo: {VERSION}`")
        return entries_of(root, TOP, "a topology", report) if text == VERSION else {}
    other = next((key for key in _OTHER_FILES if root.get(key)), "")
    message = f"the first line of a topology is `topo: {VERSION}`, and it is not there"
    if other:
        message = (
            f"this is {_OTHER_FILES[other]}, not a topology, whose first line is `topo: {VERSION}`"
        )
    at = root.key(other) or (root.entries[0][0] if root.entries else root)
    near = isinstance(at, Scalar) and "topo" in near_names(at.text, TOP)
    advice = f"write `topo: {VERSION}`" if near else f"add `topo: {VERSION}` at the top"
    report.add(at, "version", message, help="" if other else advice)
    return {}


# --- overrides ------------------------------------------------------------------------------------


def _sort(
    groups: tuple[Group, ...],
    sections: Sections,
    overrides: MappingOf[str, Override],
    report: Report,
) -> Changes:
    if not overrides:
        return Changes()
    report.stop(DescriptionError)  # an override is not to blame for a device that could not be read
    names = Names((name for group in groups for name in group.names), {})
    entries = {
        "parts": _keys(sections.get("parts")),
        "media": (*_keys(sections.get("media")), *catalogue().media),
        "workloads": _keys(sections.get("workloads")),
        "data-paths": (*_keys(sections.get("data-paths")), *built_in_files()),
    }
    return sort_changes(read_changes(overrides), names=names, entries=entries)


def _keys(node: Node | None) -> tuple[str, ...]:
    return tuple(key.text for key, _ in node) if isinstance(node, Mapping) else ()


def _changed(sections: Sections, changes: Changes) -> Sections:
    """Return the sections with the changes to their entries laid in."""
    changed = dict(sections)
    for section, list_of_changes in changes.sections.items():
        for change in list_of_changes:
            if not section:
                changed[change.keys[0].text] = change.value
                continue
            old = changed.get(section)
            base = old if isinstance(old, Mapping) else Mapping((), change.place)
            changed[section] = with_entry(base, change)
    return changed


# --- shape ----------------------------------------------------------------------------------------


def _read_shape(
    sections: Sections, groups: tuple[Group, ...], changes: Changes, report: Report
) -> _Shape:
    built_in = catalogue()
    own_media = _own(sections.get("media"), "`media:`", report)
    media: MappingOf[str, Medium] = built_in.media
    if own_media is not None:
        media = read_media(own_media, media=media, report=report)
    own_parts = _own(sections.get("parts"), "`parts:`", report)
    parts = read_parts(own_parts, parts=built_in.parts, media=media, report=report)
    shelf = Shelf(parts, media)
    data_paths, path_overrides = _read_data_paths(sections.get("data-paths"), report)
    return _Shape(
        sections=sections,
        settings=_section(sections, "settings", read_settings, report, Settings()),
        media={key.text: media[key.text] for key, _ in own_media or () if key.text in media},
        parts=parts.own,
        likes=_likes(own_parts),
        shelf=shelf,
        data_paths=data_paths,
        data_path_overrides=path_overrides,
        devices=read_devices(groups, changes.devices, shelf, report),
        cabled=read_links(_lines(sections, "links", report), media=media, report=report),
        measured=read_measured(_lines(sections, "measured", report), report),
        workloads=_section(sections, "workloads", read_workloads, report, ()),
        expectations=_section(sections, "expect", read_expectations, report, ()),
    )


def _own(node: Node | None, what: str, report: Report) -> Mapping | None:
    """Return a section without the writer's own `x-` keys."""
    mapping = mapping_of(node, what, report) if node is not None else None
    if mapping is None:
        return None
    kept = tuple((key, value) for key, value in mapping if not is_extension(key.text))
    return Mapping(kept, mapping.place)


def _likes(parts: Mapping | None) -> dict[str, str]:
    """Return the name of the part that each part starts from, where it names one."""
    likes = {
        key.text: value.get("like") if isinstance(value, Mapping) else value
        for key, value in parts or ()
    }
    return {name: like.text.strip() for name, like in likes.items() if isinstance(like, Scalar)}


def _section(
    sections: Sections, key: str, read: Callable[[Node, Report], T], report: Report, absent: T
) -> T:
    return read(sections[key], report) if key in sections else absent


def _lines(sections: Sections, key: str, report: Report) -> tuple[Line, ...]:
    joint = "--" if key == "links" else "->"
    return read_lines(sections[key], key, joint, report) if key in sections else ()


def _read_data_paths(
    node: Node | None, report: Report
) -> tuple[dict[str, DataPath], dict[str, Mapping]]:
    """Return the file's own data paths, and what it changes in built-in ones."""
    own: dict[str, DataPath] = {}
    overrides: dict[str, Mapping] = {}
    for key, value in _own(node, "`data-paths:`", report) or ():
        if key.text not in built_in_files():
            if is_name(key, report):
                own[key.text] = read_data_path(key.text, value, report=report)
            continue
        entries = mapping_of(value, f"data path `{key.text}`", report)
        if entries is not None:
            vary_data_path(DataPath(key.text, ()), entries, report=report)
            overrides[key.text] = entries
    return own, overrides


# --- references -----------------------------------------------------------------------------------


def _resolve(
    shape: _Shape, changes: Changes, document: Document, name: str, report: Report
) -> Description:
    devices = shape.devices
    names = _names(devices)
    # A stem in `links:` means what the file names: a copy is cabled as its model is.
    before = tuple(device for device in devices if device.name not in shape.copies)
    check_devices(devices, report)
    check_fallbacks(shape.data_paths.values(), report)
    known = (*built_in_files(), *shape.data_paths)
    kinds = {device.name: device.part.kind for device in devices}
    links = copied_links(shape.copies, resolve_links(shape.cabled, _names(before), report))
    workloads = resolve_workloads(
        shape.workloads, names=names, kinds=kinds, data_paths=known, report=report
    )
    expectations = resolve_expectations(
        shape.expectations,
        names=names,
        workloads={workload.name: workload for workload in workloads},
        data_paths=known,
        report=report,
    )
    return Description(
        name=_text(shape.sections, "name", report) or name,
        title=_text(shape.sections, "title", report),
        devices=devices,
        links=change_links(
            links, changes.links, names=names, media=shape.shelf.media, report=report
        ),
        workloads=workloads,
        expectations=expectations,
        measurements=resolve_measured(shape.measured, names, report),
        settings=shape.settings,
        parts=shape.parts,
        likes=shape.likes,
        media=shape.media,
        data_paths=shape.data_paths,
        data_path_overrides=shape.data_path_overrides,
        comment=_comment(document),
        file=document.name,
    )


def _names(devices: tuple[Device, ...]) -> Names:
    return Names(
        (device.name for device in devices),
        {device.name: device.numa for device in devices if device.numa},
    )


def _text(sections: Sections, key: str, report: Report) -> str:
    node = sections.get(key)
    return (text_of(node, f"`{key}:`", report) or "") if node is not None else ""


def _comment(document: Document) -> str:
    """Return what stands above the first key, without its ``#``."""
    lines: list[str] = []
    for line in document.lines:
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" ").rstrip())
    return "\n".join(lines)


def _with_findings(description: Description, report: Report) -> Description:
    if not description.devices:
        at = Place(report.document.name, 1, 1)
        report.add(
            at,
            "no-devices",
            "there are no devices, so there is nothing to ask about",
            help="add `devices:` with one `name: part` a line",
            severity="warning",
        )
    return replace(description, findings=report.findings)
