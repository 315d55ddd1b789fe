"""What follows from a list of moves: buffers, copies, bytes on the memory bus.

Nothing of this is typed in with a data path: the list of moves says it all, so a user's own path
is counted by the same rules as the shipped ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.description.description import DataPath


_NOT_RAM = ("storage", "peer", "gpu", "staging-gpu")


@dataclass(frozen=True, slots=True)
class Counts:
    """How a data path treats system RAM, for every payload byte.

    Parameters
    ----------
    buffers
        RAM buffers in the order a read fills them.
    cpu_memory_copies
        Moves with a RAM buffer at either end by a core or by a GPU's copy engine.
    core_copies
        Moves by a core.
    dram_writes, dram_reads
        Bytes written to and read from memory for each payload byte: no cache hits, streaming
        stores (no read-for-ownership).
    """

    buffers: tuple[str, ...]
    cpu_memory_copies: int
    core_copies: int
    dram_writes: int
    dram_reads: int

    @property
    def ram_traversals(self) -> int:
        """Residences of the payload in system RAM: each begins when a move ends there."""
        return self.dram_writes

    @property
    def dram_bytes(self) -> int:
        """Writes plus reads for each payload byte."""
        return self.dram_writes + self.dram_reads


def is_ram(place: str) -> bool:
    """Whether a move's end is a buffer in system RAM."""
    return place not in _NOT_RAM


def count(path: DataPath) -> Counts:
    """Return what the moves of `path` do to system RAM."""
    ends = [end for move in path.moves for end in (move.source, move.target)]
    return Counts(
        buffers=tuple(dict.fromkeys(end for end in ends if is_ram(end))),
        cpu_memory_copies=sum(
            move.mover in ("core", "gpu") and (is_ram(move.source) or is_ram(move.target))
            for move in path.moves
        ),
        core_copies=sum(move.mover == "core" for move in path.moves),
        dram_writes=sum(is_ram(move.target) for move in path.moves),
        dram_reads=sum(is_ram(move.source) for move in path.moves),
    )
