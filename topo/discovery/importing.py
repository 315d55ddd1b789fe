"""Imports: a file, a folder, or several sources of one machine, as a topology file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from topo.errors import DescriptionError, ExchangeError, Finding
from topo.files import LARGEST
from topo.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from topo.description.description import Description
    from topo.discovery.machine import Machine


# Each module has `read(data: bytes, name: str) -> Machine`; messages call the file by `name`.
KINDS: Final = {
    "nccl": "topo.discovery.nccl",
    "nvidia-smi": "topo.discovery.nvidia_smi",
    "hwloc": "topo.discovery.hwloc",
    "lspci": "topo.discovery.lspci",
    "sysfs": "topo.discovery.sysfs",
    "rocm-smi": "topo.discovery.rocm_smi",
}
_MOST_DEVICES: Final = 4096
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
        from topo.description.write import to_document

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
    from topo.discovery.combine import combined

    if len(machines) == 1:
        return import_machine(machines[0], storage=storage)
    try:
        return import_machine(combined(machines), storage=storage)
    except DescriptionError as error:
        messages = [finding.message for finding in error.findings if finding.severity == "error"]
        raise ExchangeError(
            Finding(
                "sources-disagree",
                f"together the sources say what no machine can be: {messages[0]}",
                help="are they of one machine? import each alone, and compare",
                notes=tuple(messages[1:]),
            )
        ) from None


def import_machine(machine: Machine, *, storage: Sequence[str] = ()) -> Imported:
    """Write a discovered machine as a topology file and read that as any other.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there.
    DescriptionError
        If the source says something that no machine can be.
    """
    from topo.description.loading import loads
    from topo.description.write import to_yaml
    from topo.discovery.describe import completed, describe, with_drive_links
    from topo.discovery.lint import lint, with_possible_speeds
    from topo.topology.build import build_topology

    is_tree_alone = machine.kind == "lspci" and machine.places
    if is_tree_alone and all(
        device.is_host or device.is_memory or device.kind == "pcie-switch"
        for device in machine.devices
    ):
        message = f"`{machine.file}` tells where PCI devices are, and not what they are"
        help = "`lspci -tv` names them; or lay another source of the machine beside it: --and FILE"
        raise ExchangeError(Finding("no-names", message, help=help))
    machine = with_drive_links(machine)
    oddities = lint(machine)
    machine = with_possible_speeds(machine)
    complete, guesses = completed(machine, storage)
    yaml = to_yaml(*describe(complete, machine.title()))
    description = loads(yaml, name=f"{machine.file} as YAML")
    build_topology(description)  # physics holds for it as for any other file
    description = replace(description, file=machine.file)
    return Imported(machine, yaml, description, (*machine.findings, *oddities, *guesses))


def discover_folder(kind: str | None, folder: Path, name: str) -> Machine:
    """Read a folder with a machine's ``/sys`` in it into a discovered machine.

    Raises
    ------
    ExchangeError
        If another kind is wanted, or nothing of a machine is in the folder.
    """
    from topo.discovery.sysfs import read_folder

    if kind not in (None, "sysfs"):
        message = f"`{name}` is a folder, not what `{kind}` reads"
        raise ExchangeError(
            Finding("wrong-kind", message, help=f"write `topo import sysfs {name}`")
        )
    return read_folder(folder, name if name.strip("/") else "this machine")


def discover(kind: str | None, data: bytes, name: str) -> Machine:
    """Read a foreign file into a discovered machine.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    if len(data) > LARGEST:
        message = f"`{name}` has more than {LARGEST >> 20} MiB"
        raise ExchangeError(Finding("import-too-big", message))
    machine: Machine = import_module(KINDS[_importer(kind, data, name)]).read(data, name)
    # More than any machine has, before everything is compared with everything.
    count, cpus = len(machine.devices), len(machine.of_kind("cpu"))
    if count > _MOST_DEVICES or cpus > _MOST_CPUS:
        message = f"`{machine.file}` has {count} devices and {cpus} NUMA nodes"
        help = f"a machine has at most {_MOST_DEVICES} and {_MOST_CPUS}"
        raise ExchangeError(Finding("import-too-big", message, help=help))
    return machine


def _importer(kind: str | None, data: bytes, name: str) -> str:
    """Return the importer of a file, which is named for what it is where that is none."""
    from topo.discovery.foreign import file_kind

    all_kinds = f"topo imports {', '.join(KINDS)}"
    if kind is not None and kind not in KINDS:
        message = f"no importer reads `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    file = file_kind(data)
    if not file.importer and (kind is None or file.recognised):
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
