"""This very host: what it says of itself, by /sys and by its tools, and what it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from topo.description.locating import read_file
from topo.discovery.file_kinds import file_kind
from topo.discovery.host_sources import HostMachine, machine_of, texts_in
from topo.discovery.importing import THIS_HOST, discover
from topo.discovery.sources.file_tree import Archive, FileTree, Folder, Recorded
from topo.discovery.sources.sysfs import read_functions, read_processors, root_of
from topo.errors import ExchangeError, Finding
from topo.files import STANDARD_INPUT
from topo.host.bundle import bundle, stand_ins_for
from topo.host.gathering import COMMANDS, LIMIT_S, HostCommand, Ran, gather
from topo.host.kernel_state import HostState, read_host_state
from topo.phrases import counted
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.discovery.machine import Machine

SourceState = Literal[
    "read", "not-read", "left-out", "absent", "denied", "failed", "timed-out", "too-long", "silent"
]


@dataclass(frozen=True, slots=True)
class HostSource:
    """One source of a host, and what became of it.

    Parameters
    ----------
    name
        The command, or ``/sys``.
    state
        Whether it was read, and why not.
    words
        What it told, or its own words on why it failed.
    lacking
        What is not known without it; empty where it was read, or is no loss on this host.
    """

    name: str
    state: SourceState
    words: str = ""
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class GatheredHost:
    """What was gathered of a host.

    Parameters
    ----------
    tree
        Its files, which remember what was read of them.
    results
        What became of each command.
    host
        The machine that they tell together, or why they tell none.
    state
        How it is set up.
    sources
        Each source, and what became of it.
    """

    tree: Recorded
    results: tuple[Ran, ...]
    host: HostMachine | ExchangeError
    state: HostState
    sources: tuple[HostSource, ...]

    def packed(self, files: FileTree) -> bytes:
        """Return all that was gathered as an archive without identity.

        Parameters
        ----------
        files
            The host's files, which tell its names and serial numbers.
        """
        return bundle(self.tree.seen, self.results, stand_ins_for(files))


def gather_host(
    root: Path = Path("/"),
    commands: tuple[HostCommand, ...] = COMMANDS,
    *,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
) -> GatheredHost:
    """Gather what a host says of itself.

    Parameters
    ----------
    root
        The folder that has its ``sys``.
    commands
        Which of its tools are run.
    progress
        Is told how many have run, and how many there are.
    """
    tree = Recorded(Folder(root))
    results = gather(commands, progress=progress)
    texts = [text for result in results if (text := result.text) is not None]
    host: HostMachine | ExchangeError
    try:
        host = machine_of(tree, THIS_HOST, texts, discover)
    except ExchangeError as error:
        host = error
    used = host.used if isinstance(host, HostMachine) else {}
    processors = read_processors(tree)
    functions = read_functions(tree, processors)
    sources = [HostSource("/sys", "read", _counts(len(functions), processors.node_of))]
    for result in results:
        lacking = result.command.lacking if result.command.matters(functions) else ""
        sources.append(_source(result, used.get(result.command.line, ""), lacking))
    return GatheredHost(tree, results, host, read_host_state(tree, texts), tuple(sources))


def read_host(
    place: str, *, progress: Callable[[int, int], None] = lambda _done, _count: None
) -> tuple[Machine, HostState]:
    """Return a host's machine, and how the host is set up.

    Parameters
    ----------
    place
        ``/`` for this very host, whose tools are run; a folder or an archive with a copy of one.
    progress
        As for `gather_host`.

    Raises
    ------
    TopoError
        If it cannot be read, or is no copy of a host.
    """
    if place.strip() and not place.strip("/"):
        gathered = gather_host(progress=progress)
        if isinstance(gathered.host, ExchangeError):
            raise gathered.host
        return gathered.host.machine, gathered.state
    tree: FileTree
    if place != STANDARD_INPUT and Path(place).is_dir():
        tree = Folder(root_of(Path(place)))
    else:
        data = read_file(place)
        kind = file_kind(data)
        if kind.importer != "sysfs":
            message = f"`{place}` is {kind.words}, and no copy of a host"
            help = "a folder or archive with its /sys: `topo import --host --bundle host.tar.gz`"
            raise ExchangeError(Finding("wrong-kind", message, help=help))
        tree = Archive(data, place)
    texts = texts_in(tree)
    host = machine_of(tree, place, texts, discover)
    return host.machine, read_host_state(tree, texts)


def _counts(functions: int, node_of: dict[int, int]) -> str:
    devices = counted(functions, "PCI function")
    return f"{devices}, {counted(len({*node_of.values()}), 'NUMA node')}"


def _source(result: Ran, reason: str, lacking: str) -> HostSource:
    """Return what became of a command; `reason` is why what it printed was not used."""
    name, state = result.command.line, result.state
    if state == "timed-out":
        return HostSource(name, state, f"it was stopped after {LIMIT_S:g} s", lacking)
    if state == "too-long":
        return HostSource(name, state, "it prints without end", lacking)
    if state != "ran":
        return HostSource(name, state, result.words, lacking)
    if result.text is None:
        return HostSource(name, "silent", "", lacking)
    if not reason:
        return HostSource(name, "read")
    return HostSource(name, "left-out" if reason.startswith("left out") else "not-read", reason)
