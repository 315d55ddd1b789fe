"""Entries of `devices:` that put a machine of another file inside this one.

``node[0-31]: {use: dgx-h100}`` gives 32 machines that are one template. A file is found beside the
file that uses it, never outside that one's folder tree, and each is read once, however often it is
used. What is wrong in it is said once: at its own place, with the lines that led there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from topo.catalogue.values import rejoin
from topo.description import locating
from topo.description.description import DataPath, Description, Override, Settings, Use
from topo.description.devices import Group, deal
from topo.description.flat import DeviceIndex
from topo.description.keys import USE, entries_of, mapping_of, text_of
from topo.document.nodes import Document, Mapping, Report, Scalar, plain
from topo.document.parse import parse
from topo.errors import TopoError, UnknownNameError
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.catalogue.part import Medium, Part
    from topo.description.description import DescribedLink
    from topo.description.overrides import Change
    from topo.errors import Place

MOST_DEVICES: Final = 2_000_000
"""Most devices of a description in all, those of used machines counted each."""

_DEEPEST: Final = 16  # files that use one another
Describe: TypeAlias = Callable[..., Description]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from, and what that lets it use.

    Parameters
    ----------
    folder
        The folder that a path in it is relative to, and must not leave; `None` where the document
        is no file: then it uses built-in machines only.
    chain
        The files on the way to it, itself last, each with the place that uses it.
    library
        The files that were read for it.
    """

    folder: str | None = None
    chain: tuple[tuple[str, str], ...] = ()
    library: Library = field(default_factory=lambda: Library())  # noqa: PLW0108  (it stands below)


class Library:
    """The files that descriptions use: each is read once, a variant of it described once.

    A template that is `None` could not be read, which was said. The key of one has its file, what
    is changed in it, and whether the parts of the file around it were there for that.
    """

    def __init__(self, before: Library | None = None) -> None:
        """Begin with what was read for the same files `before`."""
        self.documents: dict[str, Document] = dict(before.documents) if before else {}
        self.templates: dict[tuple[str, str, str], Description | None] = {
            key: template
            for key, template in (before.templates.items() if before else ())
            if template is not None and not key[2]
        }
        self.warned: set[str] = set()  # the files whose warnings were said


@dataclass(frozen=True, slots=True)
class _UsedFile:
    """What a `use:` names: a key that no other file has, its name in messages, its folder."""

    key: str
    name: str
    folder: str | None
    path: str


def is_use(group: Group) -> bool:
    """Whether an entry of `devices:` is of machines, not of devices."""
    return isinstance(group.value, Mapping) and group.value.key("use") is not None


def read_uses(
    groups: Iterable[Group],
    changes: MappingOf[str, Iterable[Change]],
    *,
    origin: Origin,
    parts: MappingOf[str, Part],
    describe: Describe,
    report: Report,
) -> tuple[Use, ...]:
    """Return the machines of the entries that use some.

    Parameters
    ----------
    groups
        The entries with `use:`.
    changes
        What the caller changes, by the name of a machine here.
    origin
        Where this document comes from.
    parts
        Its own parts: what is changed in a machine may be one of them.
    describe
        Reads a document: `topo.description.loading.describe`.
    report
        Gets what is wrong, in the used files as well.
    """
    reader = _Reader(origin, parts, describe, report)
    variants: dict[tuple[str, str, str], tuple[list[str], Use]] = {}
    count = 0
    for group in groups:
        for name, source, (written, overrides) in _entries(group, changes, report):
            key = (source.text, written.spelled, overrides.spelled)
            if key not in variants:
                template = reader.template(source, overrides.values, overrides.spelled, name)
                if template is None:
                    continue
                before: Description | None = template
                if overrides is not written:
                    before = reader.template(source, written.values, written.spelled, name)
                use = Use((), template, source.place, source.text, overrides.values, before)
                variants[key] = ([], use)
            names, use = variants[key]
            names.append(name)
            count += use.template.device_count
        if count > MOST_DEVICES:
            message = f"with `{group.key.text}` there are {count:,} devices in all"
            advice = f"topo describes at most {MOST_DEVICES:,}"
            report.add(group.key, "huge-range", message, help=advice)
            break
    return tuple(replace(use, names=tuple(names)) for names, use in variants.values())


@dataclass(frozen=True, slots=True)
class _Overrides:
    """What is changed in a machine, and a text that is the same where that is the same."""

    values: MappingOf[str, Override]
    spelled: str = ""


def _entries(
    group: Group, changes: MappingOf[str, Iterable[Change]], report: Report
) -> Iterator[tuple[str, Scalar, tuple[_Overrides, _Overrides]]]:
    """Yield each machine's name, what it uses, and what is changed in it.

    That is twice: what the file says under `set:`, and with what the caller changes.
    """
    assert isinstance(group.value, Mapping)  # `is_use`
    mapping = rejoin(group.value, USE)
    entries_of(mapping, USE, "an entry with `use:`", report)
    written = _Overrides({})
    of_each: tuple[Mapping, ...] = ()  # what a `set:` says of each machine
    dealt_out, laid_in = None, None
    for at, (name, entries) in enumerate(
        zip(group.names, deal(group, mapping, report), strict=False)
    ):
        source, changed = entries.get("use"), entries.get("set")
        if changed is not dealt_out:
            dealt_out = changed
            what = mapping_of(changed, "`set:`", report, help="write `{slot1.part: connectx-8}`")
            of_each = tuple(deal(Group(group.key, group.names, what), what, report)) if what else ()
        changes_here = of_each[at] if at < len(of_each) else None
        if changes_here is not laid_in:
            laid_in = changes_here
            entries_here = laid_in.entries if laid_in is not None else ()
            values = {target.text: value for target, value in entries_here}
            written = _Overrides(values, _spelled(values))
        overrides = written.values
        for change in changes.get(name, ()):
            target = ".".join(key.text for key in change.keys)
            if target == "use":
                source = change.value
            elif (model := copied_inside(name, change)) is not None:
                overrides = {**overrides, target: model.partition(".")[2]}
            else:
                overrides = {**overrides, target: change.value}
        if text_of(source, "`use:`", report, help="name a built-in machine or a file") is None:
            return
        assert isinstance(source, Scalar)  # a text is a scalar's
        both = written, written
        if overrides is not written.values:
            both = written, _Overrides(overrides, _spelled(overrides))
        yield name, source, both


def copied_inside(machine: str, change: Change) -> str | None:
    """Return the full name of the device that a change copies inside a machine.

    ``node0.slot3=node0.slot1`` adds another like one that is there, ``node.slot3=node.slot1`` one
    in each, ``rack0.node0.slot3=rack0.node0.slot1`` one further inside; `None` for other changes.
    """
    value = change.value
    if not isinstance(value, Scalar):
        return None
    between = "".join(f"{key.text}." for key in change.keys[:-1])
    for start in (f"{machine}.{between}", f"{change.target}.{between}"):
        model = value.text.removeprefix(start)
        if model != value.text and "." not in model:
            return f"{machine}.{between}{model}"
    return None


def _spelled(overrides: MappingOf[str, Override]) -> str:
    """Return a text that is the same for overrides that change the same."""
    values = [
        (target, value if isinstance(value, str) else plain(value))
        for target, value in overrides.items()
    ]
    return json.dumps(values) if values else ""


class _Reader:
    """Finds and reads what the entries of one document use."""

    def __init__(
        self, origin: Origin, parts: MappingOf[str, Part], describe: Describe, report: Report
    ) -> None:
        self._origin = origin
        self._parts = parts
        self._describe = describe
        self._report = report
        self._files: dict[str, _UsedFile | None] = {}

    def template(
        self, source: Scalar, overrides: MappingOf[str, Override], spelled: str, machine: str
    ) -> Description | None:
        """Return what the file says with something changed, `None` where it cannot be read."""
        if source.text not in self._files:
            self._files[source.text] = self._find(source)
        file = self._files[source.text]
        if file is None:
            return None
        # The file as it stands first: what is wrong in it is not said again of its variants.
        template = self._described(file, {}, "", source, machine)
        if template is None or not overrides:
            return template
        return self._described(file, overrides, spelled, source, machine)

    def _described(
        self,
        file: _UsedFile,
        overrides: MappingOf[str, Override],
        spelled: str,
        source: Scalar,
        machine: str,
    ) -> Description | None:
        library = self._origin.library
        parts = self._parts if overrides else {}
        key = (file.key, spelled, self._report.document.name if parts else "")
        if key not in library.templates:
            library.templates[key] = None
            library.templates[key] = self._read(file, overrides, parts, source, machine)
        elif library.templates[key] is None:
            self._report.include((), failed=True)
        template = library.templates[key]
        if template is not None and file.key not in library.warned:
            library.warned.add(file.key)
            self._report.include(template.findings)
        return template

    def _read(
        self,
        file: _UsedFile,
        overrides: MappingOf[str, Override],
        parts: MappingOf[str, Part],
        source: Scalar,
        machine: str,
    ) -> Description | None:
        place = f"used at {source.place}"
        try:
            document = self._document(file)
            chain = (*self._origin.chain, (file.key, str(source.place)))
            inner = Report(document)
            description = self._describe(
                document,
                inner,
                name=PurePath(file.name).stem,
                overrides=overrides,
                origin=Origin(file.folder, chain, self._origin.library),
                parts=parts,
            )
        except TopoError as error:
            where = f"in {machine}: " if isinstance(error, UnknownNameError) else ""
            self._report.include(
                (
                    replace(finding, message=where + finding.message, notes=(*finding.notes, place))
                    for finding in error.findings
                ),
                failed=not error.findings,
            )
            return None
        noted = (replace(finding, notes=(*finding.notes, place)) for finding in inner.findings)
        return replace(_as_template(description), findings=tuple(noted))

    def _document(self, file: _UsedFile) -> Document:
        documents = self._origin.library.documents
        if file.key not in documents:
            documents[file.key] = parse(locating.read_file(file.path), name=file.name)
        return documents[file.key]

    # --- which file ---

    def _find(self, source: Scalar) -> _UsedFile | None:
        chain = self._origin.chain
        if len(chain) >= _DEEPEST:
            message = f"more than {_DEEPEST} files use one another"
            self._report.add(source, "use-cycle", message)
            return None
        file = self._beside(source) if locating.is_path(source.text) else self._built_in(source)
        if file is not None and file.key in (key for key, _ in chain):
            message = f"`{source.text}` is on the way here: a machine cannot be inside itself"
            self._report.add(source, "use-cycle", message)
            return None
        return file

    def _built_in(self, source: Scalar) -> _UsedFile | None:
        folder = self._origin.folder
        try:
            path = locating.find_builtin(source.text, beside=folder)
        except UnknownNameError as error:
            for finding in error.findings:
                message, notes = finding.message, finding.notes
                self._report.add(source, finding.code, message, help=finding.help, notes=notes)
            return None
        key = str(path)
        return _UsedFile(key, f"topologies/{source.text}.yaml", None, key)

    def _beside(self, source: Scalar) -> _UsedFile | None:
        """Return a file in the document's own folder tree, links followed."""
        text, document = source.text, self._report.document.name
        if self._origin.folder is None:
            message = f"`{text}` is a file, and {document} has no folder to look in"
            advice = "use a built-in machine, or save this as a file beside the other"
            self._report.add(source, "use-outside", message, help=advice)
            return None
        folder = Path(self._origin.folder)
        try:
            path = (folder / text).resolve()
        except (OSError, ValueError, RuntimeError):  # a circle of links, a zero byte
            path = folder / "?"
        if not path.is_relative_to(folder) or path == folder:
            message = f"`{text}` leads out of the folder of {document}"
            advice = "a used file lies beside the file that uses it, or in a folder below"
            self._report.add(source, "use-outside", message, help=advice)
            return None
        name = str(PurePath(document).parent / text)
        if not path.is_file():
            try:
                locating.read_file(name if Path(name).exists() else str(folder / text))
            except TopoError as error:
                for finding in error.findings:
                    message = finding.message.replace(str(folder / text), name)
                    self._report.add(source, finding.code, message, help=finding.help)
                return None
        return _UsedFile(str(path), name, str(path.parent), str(path))


# --- what was changed in machines -----------------------------------------------------------------


def parts_written(
    uses: Iterable[Use], links: Iterable[DescribedLink], index: DeviceIndex
) -> tuple[dict[str, Part], dict[str, Place]]:
    """Return the parts of devices in used machines that a caller changes, and where.

    Parameters
    ----------
    uses
        The machines.
    links
        Those outside them: what is at no end of one is left out.
    index
        The devices as they are now.
    """
    changed = {
        name: use
        for use in uses
        if use.written is not None and use.written is not use.template
        for name in use.names
    }
    written: dict[int, DeviceIndex] = {}
    before: dict[str, Part] = {}
    places: dict[str, Place] = {}
    for end in (end.device for link in links for end in (link.a, link.b)) if changed else ():
        machine, _, inside = end.partition(".")
        use = changed.get(machine)
        if use is None or use.written is None or end in before:
            continue
        if id(use) not in written:
            written[id(use)] = DeviceIndex(use.written)
        try:
            part = written[id(use)][inside].part
        except KeyError:  # a copy of one that is there
            continue
        if part != index[end].part:
            *_, value = use.overrides.values()
            before[end] = part
            places[end] = use.place if isinstance(value, str) else value.place
    return before, places


# --- what comes along -----------------------------------------------------------------------------


def _as_template(description: Description) -> Description:
    """Return what a used file gives to the files around it."""
    outside = {device.name for device in description.devices if device.outside}
    changes: dict[str, Any] = {"workloads": (), "expectations": (), "axes": ()}
    if outside:
        changes["devices"] = tuple(
            device for device in description.devices if device.name not in outside
        )
        changes["links"] = tuple(
            link for link in description.links if outside.isdisjoint((link.a.device, link.b.device))
        )
        changes["measurements"] = tuple(
            rate
            for rate in description.measurements
            if outside.isdisjoint(end.partition("/")[0] for end in (rate.source, rate.target))
        )
    return replace(description, **changes)


def with_used(description: Description, uses: tuple[Use, ...], report: Report) -> Description:
    """Return the description with the machines that it uses, and what comes along with them.

    Its settings lie over theirs, in machines inside them as well. Data paths and media come
    along; one name for different ones in two files is a mistake.
    """
    under: dict[int, Description] = {}
    settings = description.settings
    uses = tuple(
        replace(
            use,
            template=_under(use.template, settings, under),
            written=_under(use.written, settings, under) if use.written is not None else None,
        )
        for use in uses
    )
    templates = list({id(use.template): use for use in uses}.values())
    data_paths = dict(description.data_paths)
    path_overrides = dict(description.data_path_overrides)
    media = dict(description.media)
    for use in templates:
        for name, medium in _all_media(use.template):
            stated = media.setdefault(name, medium)
            if _figures(stated) != _figures(medium):
                what = f"medium `{name}`"
                _report_clash(what, str(stated.place), str(medium.place), use, report)
        for name, path in use.template.data_paths.items():
            first = data_paths.setdefault(name, path)
            if _meaning(first) != _meaning(path):
                what = f"data path `{name}`"
                _report_clash(what, str(first.place), str(path.place), use, report)
        for name, entries in use.template.data_path_overrides.items():
            changed = path_overrides.setdefault(name, entries)
            if plain(changed) != plain(entries):
                what = f"data path `{name}`"
                _report_clash(what, str(changed.place), str(entries.place), use, report)
    return replace(
        description, uses=uses, data_paths=data_paths, data_path_overrides=path_overrides
    )


def _under(template: Description, settings: Settings, under: dict[int, Description]) -> Description:
    """Return a template with settings laid over its own and over those inside it."""
    if id(template) not in under:
        uses = tuple(
            replace(use, template=_under(use.template, settings, under)) for use in template.uses
        )
        both = template.settings.under(settings)
        same = both is template.settings
        under[id(template)] = template if same else replace(template, settings=both, uses=uses)
    return under[id(template)]


def _meaning(path: DataPath) -> tuple[object, ...]:
    """Return what a data path does, without where that is said."""
    moves = tuple(
        replace(move, rate=replace(move.rate, source="") if move.rate else None)
        for move in path.moves
    )
    instead = path.falls_back_to, path.to_other_servers
    return moves, path.stages, path.workers, path.needs, *instead


def _all_media(template: Description) -> Iterator[tuple[str, Medium]]:
    """Yield the media of a used file by name, with those of the files that it uses."""
    yield from template.media.items()
    for inner in {id(use.template): use.template for use in template.uses}.values():
        yield from _all_media(inner)


def _figures(medium: Medium) -> tuple[object, ...]:
    """Return what a medium is, without where that is said."""
    figures = (
        medium.rate,
        medium.transfer_rate,
        medium.bytes_per_transfer,
        medium.efficiency,
        medium.duplex,
        medium.dma,
    )
    values = (figure.value if figure is not None else None for figure in figures)
    return medium.family, medium.reach, medium.per_lane, medium.encoding, *values


def _report_clash(what: str, first: str, second: str, use: Use, report: Report) -> None:
    message = f"the {what} is one thing at {first} and another at {second}"
    report.add(use.place, "defined-twice", message, help="give one of them another name")
