"""The named data paths, and what follows from their moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from topo.description.data_paths import (
    built_in_files,
    nearest_path,
    read_data_path,
    vary_data_path,
)
from topo.description.description import DataPath, Description
from topo.document.nodes import Mapping as MappingNode
from topo.document.nodes import Report
from topo.document.parse import parse
from topo.errors import DescriptionError, Finding, UnknownNameError
from topo.records import dataclass


@cache
def built_in(name: str) -> DataPath:
    """Return a shipped data path, read from its own YAML file.

    Raises
    ------
    UnknownNameError
        If topo ships none of that name.
    """
    file = built_in_files().get(name)
    if file is None:
        raise _unknown(name, built_in_files())
    document = parse(file.read_bytes(), name=f"topo/datapaths/data/{file.name}")
    report = Report(document)
    assert isinstance(document.root, MappingNode)
    (_, node), *_ = document.root.entries
    path = read_data_path(name, node, report=report)
    report.stop(DescriptionError)
    assert path is not None
    return path


def data_path(description: Description, name: str) -> DataPath:
    """Return the data path that `name` means in a file: its own before a shipped one.

    Raises
    ------
    UnknownNameError
        If there is none; the near name is in the help.
    """
    if name in description.data_paths:
        return description.data_paths[name]
    if name not in built_in_files():
        raise _unknown(name, (*description.data_paths, *built_in_files()))
    changes = description.data_path_overrides.get(name)
    if changes is None:
        return built_in(name)
    # The reader of the file has checked the changes: the report stays empty.
    return vary_data_path(built_in(name), changes, report=Report(parse("topo: 1", name="")))


def data_paths(description: Description) -> tuple[DataPath, ...]:
    """Return every data path a file can use: the shipped ones, then its own."""
    names = dict.fromkeys((*built_in_files(), *description.data_paths))
    return tuple(data_path(description, name) for name in names)


def _unknown(name: str, names: Iterable[str]) -> UnknownNameError:
    advice = nearest_path(name, names)
    return UnknownNameError(Finding("unknown-data-path", f"no data path `{name}`", help=advice))


# --- counts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """How a data path treats the system RAM of one server, for every payload byte.

    Parameters
    ----------
    buffers
        RAM buffers in the order a read fills them.
    ram_traversals
        Residences of the payload in a RAM buffer: each begins when a move ends there. Where RAM is
        an end of the path, the payload comes from there or stays: that is none.
    cpu_memory_copies
        Moves with RAM at either end by a core or by a GPU's copy engine.
    core_copies
        Moves by a core.
    dram_writes, dram_reads
        Bytes written to and read from memory for each payload byte: no cache hits, streaming
        stores (no read-for-ownership).
    """

    buffers: tuple[str, ...]
    ram_traversals: int
    cpu_memory_copies: int
    core_copies: int
    dram_writes: int
    dram_reads: int

    @property
    def dram_bytes(self) -> int:
        """Writes plus reads for each payload byte."""
        return self.dram_writes + self.dram_reads


def is_buffer(place: str) -> bool:
    """Whether a move's end is a buffer in system RAM, where data rests between moves."""
    return place.endswith("-buffer")


def is_ram(place: str) -> bool:
    """Whether a move's end is in system RAM: a buffer, or RAM as an end of the data path."""
    return place == "ram" or is_buffer(place)


def halves(path: DataPath) -> tuple[DataPath | None, DataPath]:
    """Return a data path as it goes in the far end's server, and from its card on.

    `None` and itself where no move goes over the network. Each half has the card at which the
    other one begins or ends: the engines of both cards move the data.
    """
    at = next((index for index, move in enumerate(path.moves) if move.over == "network"), None)
    if at is None:
        return None, path
    crossing = path.moves[at]
    leaving = replace(crossing, target="card", over=None)
    entering = replace(crossing, source="card", over=None)
    return (
        replace(path, moves=(*path.moves[:at], leaving)),
        replace(path, moves=(entering, *path.moves[at + 1 :])),
    )


def buffers_of(path: DataPath) -> tuple[str, ...]:
    """Return the RAM buffers of a data path in the order in which a read fills them."""
    ends = (end for move in path.moves for end in (move.source, move.target))
    return tuple(dict.fromkeys(end for end in ends if is_buffer(end)))


def count(path: DataPath) -> Counts:
    """Return what the moves of `path` do to system RAM.

    Where it goes over the network it is the RAM of the endpoint's server: `halves` has the other.
    """
    _, path = halves(path)
    return Counts(
        buffers=buffers_of(path),
        ram_traversals=sum(is_buffer(move.target) for move in path.moves),
        cpu_memory_copies=sum(
            move.mover in ("core", "gpu") and (is_ram(move.source) or is_ram(move.target))
            for move in path.moves
        ),
        core_copies=sum(move.mover == "core" for move in path.moves),
        dram_writes=sum(is_ram(move.target) for move in path.moves),
        dram_reads=sum(is_ram(move.source) for move in path.moves),
    )
