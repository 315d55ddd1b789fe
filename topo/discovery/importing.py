"""Imports: a file, a folder, or several sources of one machine, as a topology file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from topo.discovery.file_kinds import KINDS, YAML, file_kind
from topo.discovery.oddities import oddities, with_possible_speeds
from topo.errors import DescriptionError, ExchangeError, Finding
from topo.files import LARGEST
from topo.limits import MOST_IN_A_SERVER
from topo.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from topo.description.description import Description
    from topo.description.write import Comments
    from topo.discovery.machine import Machine


THIS_HOST: Final = "this machine"
_MOST_CPUS: Final = 128


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported machine.

    Parameters
    ----------
    machine
        What the sources told.
    yaml
        The file to edit, with comments.
    description
        What `yaml` reads as.
    findings
        What the source does not know, or says wrongly.
    """

    machine: Machine
    yaml: str
    description: Description
    findings: tuple[Finding, ...]

    @property
    def kind(self) -> str:
        """The kind of source, a key of `KINDS`."""
        return self.machine.kind

    @property
    def document(self) -> dict[str, Any]:
        """The description as mappings, lists and texts: `topo.build` takes it."""
        from topo.description.as_document import to_document

        return to_document(self.description)


def import_text(
    kind: str | None, data: bytes, name: str, *, storage: Sequence[str] = ()
) -> Imported:
    """Import a machine from what a tool wrote.

    Parameters
    ----------
    kind
        A key of `KINDS`; guessed from the content when `None`.
    data, name
        The file, and what messages and the machine are called after.
    storage
        The network cards that lead to storage, as the imported file names them; guessed when
        empty.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    return import_machine(discover(kind, data, name), storage=storage)


def import_together(machines: Sequence[Machine], *, storage: Sequence[str] = ()) -> Imported:
    """Import one machine from several sources, the first of which stands where they disagree.

    Parameters
    ----------
    machines
        What `discover` or `discover_folder` read; at least one.
    storage
        As for `import_text`.

    Raises
    ------
    ExchangeError
        If together they say what no machine can be, or `storage` names a card that is not there.
    """
    return import_machine(one_machine(machines), storage=storage)


def one_machine(machines: Sequence[Machine]) -> Machine:
    """Return the machine that several sources are of; at least one."""
    from topo.discovery.combine import combined

    return combined(machines) if len(machines) > 1 else machines[0]


def import_machine(machine: Machine, *, storage: Sequence[str] = ()) -> Imported:
    """Write a discovered machine as a topology file and read that as any other.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there.
    DescriptionError
        If the source says something that no machine can be.
    """
    draft = draft_of(machine, storage)
    return read_back(draft, draft.document)


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """What is to be written of a machine.

    Parameters
    ----------
    machine
        What the sources told.
    document, comments
        What the file is to have.
    findings
        What the source does not know, or says wrongly.
    """

    machine: Machine
    document: dict[str, Any]
    comments: Comments
    findings: tuple[Finding, ...]


def draft_of(machine: Machine, storage: Sequence[str] = ()) -> ImportDraft:
    """Return the document of a machine with what it lacks, and what is odd or a guess in it.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there, nothing says what the devices are, or the
        source tells facts only.
    """
    from topo.discovery.apart import is_of_several_hosts
    from topo.discovery.describe import completed, describe, with_drive_links
    from topo.discovery.facts_only import alone

    if machine.tells_only:
        raise alone([machine, *machine.further])
    if is_of_several_hosts(machine) and machine.kind != "infragraph":  # which names all devices
        message = f"`{machine.file}` is of several hosts, each of which has a file of its own"
        help = f"say where: `topo import {machine.file} -o cluster.yaml`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    is_tree_alone = machine.kind == "lspci" and machine.places
    if is_tree_alone and all(
        device.is_host or device.is_memory or device.kind == "pcie-switch"
        for device in machine.devices
    ):
        message = f"`{machine.file}` tells where PCI devices are, and not what they are"
        help = "`lspci -tv` names them; or lay another source of the machine beside it: --and FILE"
        raise ExchangeError(Finding("no-names", message, help=help))
    machine = with_drive_links(machine)
    findings = (*machine.findings, *oddities(machine))
    machine = with_possible_speeds(machine)
    complete, guesses = completed(machine, storage)
    document, comments = describe(complete, machine.title())
    return ImportDraft(machine, document, comments, (*findings, *guesses))


def read_back(draft: ImportDraft, document: Mapping[str, Any]) -> Imported:
    """Return the machine of a document, written as YAML and read as any other file.

    Raises
    ------
    DescriptionError
        If it says something that no machine can be.
    ExchangeError
        If several sources do so together.
    """
    from topo.description.loading import loads
    from topo.description.write import to_yaml
    from topo.topology.build import build_topology

    file = draft.machine.file
    yaml = to_yaml(document, draft.comments)
    try:
        description = loads(yaml, name=f"{file} as YAML")
        build_topology(description)  # physics holds for it as for any other file
    except DescriptionError as error:
        if not draft.machine.together:
            raise
        messages = [finding.message for finding in error.findings if finding.severity == "error"]
        raise ExchangeError(
            Finding(
                "sources-disagree",
                f"together the sources say what no machine can be: {messages[0]}",
                help="are they of one machine? import each alone, and compare",
                notes=tuple(messages[1:]),
            )
        ) from None
    return Imported(draft.machine, yaml, replace(description, file=file), draft.findings)


def discover_folder(kind: str | None, folder: Path, name: str) -> Machine:
    """Read a folder with a machine's ``/sys`` in it into a discovered machine.

    Raises
    ------
    ExchangeError
        If another kind is wanted, or nothing of a machine is in the folder.
    """
    from topo.discovery.host_sources import machine_of, texts_in
    from topo.discovery.sources.file_tree import Folder
    from topo.discovery.sources.sysfs import root_of

    if kind not in (None, "sysfs"):
        message = f"`{name}` is a folder, not what `{kind}` reads"
        raise ExchangeError(
            Finding("wrong-kind", message, help=f"write `topo import sysfs {name}`")
        )
    tree = Folder(root_of(folder))
    is_copy = bool(name.strip("/"))
    texts = texts_in(tree) if is_copy else ()
    return machine_of(tree, name if is_copy else THIS_HOST, texts, discover).machine


def discover(kind: str | None, data: bytes, name: str) -> Machine:
    """Read a foreign file, compressed or not, into a discovered machine.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    from topo.discovery.sources.file_tree import is_compressed_text, unpacked

    data = unpacked(data, name) if is_compressed_text(data) else data
    if len(data) > LARGEST:
        message = f"`{name}` has more than {LARGEST >> 20} MiB"
        raise ExchangeError(Finding("import-too-big", message))
    if kind is None and file_kind(data).importer != "redfish":  # whose documents belong together
        from topo.discovery.pasted import machine_in

        pasted = machine_in(data, name, discover)
        if pasted is not None:
            return pasted
    importer = _importer(kind, data, name)
    machine = (
        _read_archive(data, name)
        if importer == "sysfs"
        else import_module(KINDS[importer]).read(data, name)
    )
    # More than any machine has, before everything in it is compared with everything.
    hosts = Counter(device.host for device in machine.devices)
    host, count = max(hosts.items(), key=itemgetter(1), default=("", 0))
    cpus = sum(device.host == host for device in machine.of_kind("cpu"))
    if count > MOST_IN_A_SERVER or cpus > _MOST_CPUS:
        message = f"`{machine.file}` has {count} devices and {cpus} NUMA nodes"
        help = f"a machine has at most {MOST_IN_A_SERVER} and {_MOST_CPUS}"
        raise ExchangeError(Finding("import-too-big", message, help=help))
    return machine


def _read_archive(data: bytes, name: str) -> Machine:
    """Read an archive of a host: its /sys, and what its tools printed where that is in it."""
    from topo.discovery.host_sources import machine_of, texts_in
    from topo.discovery.sources.file_tree import Archive

    tree = Archive(data, name)
    return machine_of(tree, name, texts_in(tree), discover).machine


def _importer(kind: str | None, data: bytes, name: str) -> str:
    """Return the importer of a file, which is named for what it is where that is none."""
    all_kinds = f"topo imports {', '.join(KINDS)}"
    if kind is not None and kind not in KINDS:
        message = f"no importer reads `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    file = file_kind(data)
    is_known = file.recognised and not (kind == "infragraph" and file.words == YAML)
    if not file.importer and (kind is None or is_known):
        instead_of = f", not what `{kind}` reads" if kind else ""
        message = f"`{name}` is {file.words}{instead_of}"
        raise ExchangeError(Finding("wrong-kind", message, help=file.help or all_kinds))
    if kind is not None and file.importer not in ("", kind):
        message = f"`{name}` is {file.words}, not what `{kind}` reads"
        help = f"write `topo import {file.importer} {name}`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    if kind in ("nccl", "hwloc") and b"<" not in data:
        message = f"`{name}` is no XML, so not what `{kind}` reads"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    return kind or file.importer
