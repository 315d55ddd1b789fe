"""Copies by cores, and sequential reads of drives and files, past the page cache or out of it.

References
----------
open(2), O_DIRECT; preadv(2); memmove(3).
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import stat
import threading
from pathlib import Path
from typing import Final

from topo.description.names import numbers_in
from topo.errors import ExchangeError, Finding, UnitError
from topo.records import dataclass

_BLOCK_OF_COPY: Final = 8 * 2**20  # bytes of a step: more than a core's own caches
BLOCK: Final = 4 * 2**20  # bytes of one read


# --- RAM ------------------------------------------------------------------------------------------


class CoreCopy:
    """One core that copies one piece of RAM to another, piece after piece.

    `size` is of both buffers together: more than caches hold, so that RAM is copied.
    """

    def __init__(self, cpus: frozenset[int], size: int) -> None:
        self.cpus = cpus
        self._size = max(size // 2 // _BLOCK_OF_COPY, 1) * _BLOCK_OF_COPY
        self._buffers: list[mmap.mmap] = []
        self._at = 0

    def open(self) -> None:
        """Map and touch both buffers."""
        for _ in range(2):
            memory = mmap.mmap(-1, self._size)
            self._buffers.append(memory)
            ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, self._size)

    def step(self) -> int:
        """Copy the next block; other threads run meanwhile."""
        target, source = (
            ctypes.addressof(ctypes.c_char.from_buffer(memory, self._at))
            for memory in self._buffers
        )
        ctypes.memmove(target, source, _BLOCK_OF_COPY)
        self._at = (self._at + _BLOCK_OF_COPY) % self._size
        return _BLOCK_OF_COPY

    def close(self) -> None:
        """Give the buffers back."""
        self._buffers.clear()


def memory_nodes(root: Path = Path("/sys/devices/system/node")) -> dict[int, frozenset[int]]:
    """Return the CPUs of each NUMA node that has some and memory; one node 0 where none is told."""
    nodes: dict[int, frozenset[int]] = {}
    for folder in sorted(root.glob("node[0-9]*"), key=lambda path: int(path.name[4:] or 0)):
        try:
            cpus = frozenset(numbers_in((folder / "cpulist").read_text(encoding="ascii").strip()))
            size = (folder / "meminfo").read_text(encoding="ascii").partition("MemTotal:")[2]
        except (OSError, ValueError, UnitError):
            continue
        if cpus and size.split()[:1] not in ([], ["0"]):
            nodes[int(folder.name[4:])] = cpus
    return nodes or {0: frozenset(range(os.cpu_count() or 1))}


def available_memory(path: Path = Path("/proc/meminfo")) -> int:
    """Return the bytes of RAM that programs may take; 1 GiB where the system does not tell."""
    try:
        text = path.read_text(encoding="ascii").partition("MemAvailable:")[2].split()
        return int(text[0]) * 1024
    except (OSError, ValueError, IndexError):
        return 2**30


# --- storage --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readable:
    """A file or drive to read: its path, its bytes, and the drive it lies on, where that is told.

    `drive` is a controller's name, ``nvme0``; empty for what no single NVMe drive holds.
    """

    path: str
    size: int
    is_drive: bool
    drive: str


def readable(path: str) -> Readable:
    """Say what there is to read at a path.

    Raises
    ------
    ExchangeError
        If it is nothing that can be read in sequence, too small, or not permitted.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            status = os.fstat(descriptor)
            is_drive = stat.S_ISBLK(status.st_mode)
            size = os.lseek(descriptor, 0, os.SEEK_END) if is_drive else status.st_size
        finally:
            os.close(descriptor)
    except OSError as error:
        help = "a drive is read by root, or by members of the group `disk`"
        message = f"`{path}` cannot be read: {error.strerror}"
        advice = help if isinstance(error, PermissionError) else ""
        raise ExchangeError(Finding("probe-failed", message, help=advice)) from None
    if not (is_drive or stat.S_ISREG(status.st_mode)):
        message = f"`{path}` is neither a file nor a drive"
        raise ExchangeError(Finding("probe-failed", message))
    if size < 64 * BLOCK:
        message = f"`{path}` has {size >> 20} MiB, and {64 * BLOCK >> 20} are needed"
        raise ExchangeError(Finding("probe-failed", message, help="name a larger file"))
    number = status.st_rdev if is_drive else status.st_dev
    return Readable(path, size, is_drive, _drive(os.major(number), os.minor(number)))


def _drive(major: int, minor: int, root: Path = Path("/sys/dev/block")) -> str:
    """Return the NVMe controller that holds a device number, ``""`` where no single one does."""
    try:
        names = (root / f"{major}:{minor}").resolve(strict=True).parts
    except OSError:
        return ""
    namespaces = [name for name in names if name.startswith("nvme") and "n" in name[4:]]
    return "nvme" + namespaces[0][4:].partition("n")[0] if namespaces else ""


class Reader:
    """One thread's share of a sequential read; several of one `Offsets` read it together.

    Parameters
    ----------
    readable
        What is read.
    offsets
        Where the next block begins.
    direct
        Whether past the page cache, by O_DIRECT.
    """

    cpus: frozenset[int] = frozenset()

    def __init__(self, readable: Readable, offsets: Offsets, *, direct: bool) -> None:
        self._path, self._offsets, self._direct = readable.path, offsets, direct
        self._descriptor = -1
        self._buffer: mmap.mmap | None = None

    def open(self) -> None:
        """Open it and get a block of memory."""
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self._path, flags | (os.O_DIRECT if self._direct else 0))
        self._buffer = mmap.mmap(-1, BLOCK)

    def step(self) -> int:
        """Read the next block."""
        assert self._buffer is not None
        return os.preadv(self._descriptor, [self._buffer], self._offsets.next())

    def close(self) -> None:
        """Close it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._buffer = None


class Offsets:
    """Where blocks begin, one after another, and from the start again at the end."""

    def __init__(self, size: int) -> None:
        self._blocks = size // BLOCK
        self._count = itertools.count()
        self._lock = threading.Lock()

    def next(self) -> int:
        """Return where the next block begins."""
        with self._lock:
            return next(self._count) % self._blocks * BLOCK
