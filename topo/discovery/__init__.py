"""Foreign formats in and out.

An importer turns bytes into a `Machine`; from there all go the same way: YAML text, read by the
same rules as everybody's, so that an imported machine is a topology like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from topo.errors import DescriptionError, ExchangeError, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topo.description.description import Description
    from topo.discovery.kinds import Guess
    from topo.discovery.machine import Machine

__all__ = [
    "KINDS",
    "LARGEST",
    "Imported",
    "import_folder",
    "import_text",
    "import_together",
    "sight",
    "sight_folder",
]

# Each module has `read(data: bytes, name: str) -> Machine`.
KINDS: Final = {
    "nccl": "topo.discovery.nccl",
    "nvidia-smi": "topo.discovery.nvidia_smi",
    "hwloc": "topo.discovery.hwloc",
    "lspci": "topo.discovery.lspci",
    "sysfs": "topo.discovery.sysfs",
    "rocm-smi": "topo.discovery.rocm_smi",
}
LARGEST: Final = 64 * 2**20  # bytes of a file
_MOST_DEVICES: Final = 4096
_MOST_CPUS: Final = 128


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported machine.

    Parameters
    ----------
    document
        As mappings, lists and texts: `topo.build` takes it.
    yaml
        The file to edit, with comments.
    findings
        What the source does not know, or says wrongly.
    spec
        The description that `yaml` reads as.
    """

    kind: str
    document: dict[str, Any]
    yaml: str
    findings: tuple[Finding, ...]
    description: Description
    machine: Machine


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
    return written(sight(kind, data, name), storage=storage)


def import_folder(
    kind: str | None, folder: Path, name: str, *, storage: Sequence[str] = ()
) -> Imported:
    """Import a machine from a folder with its ``/sys`` in it; ``/`` is this machine.

    Parameters
    ----------
    kind
        ``sysfs``, or `None`, which means the same.
    folder, name
        The folder, and what messages and the machine are called after.
    storage
        As for `import_text`.

    Raises
    ------
    ExchangeError
        If another kind is wanted, or nothing of a machine is in the folder.
    """
    return written(sight_folder(kind, folder, name), storage=storage)


def import_together(machines: Sequence[Machine], *, storage: Sequence[str] = ()) -> Imported:
    """Import one machine from several sources, the first of which stands where they disagree.

    Parameters
    ----------
    machines
        What `sight` or `sight_folder` read; at least one.
    storage
        As for `import_text`.

    Raises
    ------
    ExchangeError
        If together they say what no machine can be, or `storage` names a card that is not there.
    """
    from topo.discovery.combine import combined

    if len(machines) == 1:
        return written(machines[0], storage=storage)
    try:
        return written(combined(machines), storage=storage)
    except DescriptionError as error:
        said = [one.message for one in error.findings if one.severity == "error"]
        message = f"together the sources say what no machine can be: {said[0]}"
        help = "are they of one machine? import each alone, and compare"
        raise ExchangeError(
            Finding("sources-disagree", message, help=help, notes=tuple(said[1:]))
        ) from None


def sight_folder(kind: str | None, folder: Path, name: str) -> Machine:
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
    this = not name.strip("/")
    return read_folder(folder, "this machine" if this else name)


def sight(kind: str | None, data: bytes, name: str) -> Machine:
    """Read a foreign file into a discovered machine.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    from topo.discovery.kinds import guess_kind

    if len(data) > LARGEST:
        message = f"`{name}` has more than {LARGEST >> 20} MiB"
        raise ExchangeError(Finding("import-too-big", message))
    guess = guess_kind(data)
    _refuse_wrong(kind, guess, data, name)
    found: Machine = import_module(KINDS[kind or guess.kind]).read(data, name)
    _refuse_crowds(found)
    return found


def _refuse_wrong(kind: str | None, guess: Guess, data: bytes, name: str) -> None:
    """Name a file for what it is, where it is not what the wanted importer reads."""
    all_kinds = f"topo imports {', '.join(KINDS)}"
    if kind is not None and kind not in KINDS:
        message = f"no importer reads `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    if not guess.kind and (kind is None or guess.known):
        other = f", not what `{kind}` reads" if kind else ""
        message = f"`{name}` is {guess.words}{other}"
        raise ExchangeError(Finding("wrong-kind", message, help=guess.help or all_kinds))
    if kind is not None and guess.kind not in ("", kind):
        message = f"`{name}` is {guess.words}, not what `{kind}` reads"
        help = f"write `topo import {guess.kind} {name}`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    if kind in ("nccl", "hwloc") and b"<" not in data:
        message = f"`{name}` is no XML, so not what `{kind}` reads"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))


def written(machine: Machine, *, storage: Sequence[str] = ()) -> Imported:
    """Write a discovered machine as a topology file and read that as any other.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there.
    DescriptionError
        If the source says something that no machine can be.
    """
    from topo.description.dump import to_document
    from topo.description.format import format_text
    from topo.description.loading import loads
    from topo.discovery.bounds import bounded
    from topo.discovery.fit import exceeding
    from topo.discovery.lint import judge
    from topo.discovery.write import to_yaml
    from topo.topology.build import build_topology

    machine = bounded(machine)
    text, supply = to_yaml(machine, storage=storage)
    yaml = format_text(text, name=machine.file)
    description = loads(yaml, name=f"{machine.file} as YAML")
    build_topology(description)  # physics holds for it as for any other file
    description = replace(description, file=machine.file)
    findings = (
        *machine.findings,
        *judge(machine),
        *exceeding(machine),
        *supply.findings,
    )
    return Imported(machine.kind, to_document(description), yaml, findings, description, machine)


def _refuse_crowds(machine: Machine) -> None:
    """Refuse more devices than any machine has, before everything is compared with everything."""
    count, cpus = len(machine.devices), len(machine.of_kind("cpu"))
    if count > _MOST_DEVICES or cpus > _MOST_CPUS:
        message = f"`{machine.file}` has {count} devices and {cpus} NUMA nodes"
        help = f"a machine has at most {_MOST_DEVICES} and {_MOST_CPUS}"
        raise ExchangeError(Finding("import-too-big", message, help=help))
