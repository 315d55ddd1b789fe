"""A file tree to read Linux's /sys and /proc from: a folder, or a tar archive, never outside it.

Links are followed by hand: an absolute one starts at the tree's own root, ``..`` stops there. So a
copied tree cannot show files of the machine that topo runs on. An archive is read once into
memory, and nothing is unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from pathlib import Path


Place = tuple[str, ...]
Sort = Literal["folder", "file", "link", ""]

_LONGEST_FILE: Final = 64 * 1024
_MOST_LINKS: Final = 40
_MOST_STEPS: Final = 500
_MOST_NAMES: Final = 20_000
_MOST_MEMBERS: Final = 300_000
_MOST_BYTES: Final = 256 * 2**20
_DEEPEST: Final = 40
_OPENERS: Final[tuple[tuple[bytes, Callable[[BytesIO], Any]], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
)


class FileTree(ABC):
    """A tree of files with its own root."""

    def __init__(self) -> None:
        self._resolved: dict[Place, Place | None] = {}

    @abstractmethod
    def _sort(self, place: Place) -> Sort:
        """Return what stands at a place, links not followed."""

    @abstractmethod
    def _target(self, place: Place) -> str:
        """Return where a link leads."""

    @abstractmethod
    def _names(self, place: Place) -> list[str]:
        """Return the names in a folder."""

    @abstractmethod
    def _bytes(self, place: Place) -> bytes:
        """Return the beginning of a file."""

    def resolve(self, path: str) -> str:
        """Return a path without links, ``""`` when nothing stands there."""
        place = self._walk(_steps_of(path))
        return "/" + "/".join(place) if place is not None else ""

    def text(self, path: str) -> str:
        """Return a file's text without white space around it, ``""`` when it cannot be read."""
        return self.data(path).decode("utf-8", "replace").strip()

    def data(self, path: str) -> bytes:
        """Return a file's first bytes, ``b""`` when it cannot be read."""
        place = self._walk(_steps_of(path))
        if place is None or self._sort(place) != "file":
            return b""
        try:
            return self._bytes(place)[:_LONGEST_FILE]
        except OSError:
            return b""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none when it is absent."""
        place = self._walk(_steps_of(path))
        if place is None or self._sort(place) != "folder":
            return []
        try:
            return sorted(self._names(place)[:_MOST_NAMES])
        except OSError:
            return []

    def is_link(self, path: str) -> bool:
        """Whether the last step of a path is a link."""
        *above, last = _steps_of(path)
        place = self._walk(above)
        return place is not None and self._sort((*place, last)) == "link"

    def _walk(self, steps: list[str]) -> Place | None:
        key = tuple(steps)
        if key not in self._resolved:
            self._resolved[key] = self._walked(steps)
        return self._resolved[key]

    def _walked(self, steps: list[str]) -> Place | None:
        place: Place = ()
        todo = list(reversed(steps))
        links = count = 0
        while todo:
            step = todo.pop()
            count += 1
            if count > _MOST_STEPS:
                return None
            if step == "..":
                place = place[:-1]
                continue
            below = (*place, step)
            sort = self._sort(below)
            if not sort:
                return None
            if sort != "link":
                place = below
                continue
            links += 1
            target = self._target(below)
            if links > _MOST_LINKS:
                return None
            place = () if target.startswith("/") else place
            todo += reversed(_steps_of(target))
        return place


def _steps_of(path: str) -> list[str]:
    """Return the steps of a path, without those that lead nowhere."""
    return [step for step in path.split("/") if step not in ("", ".")]


class Folder(FileTree):
    """A folder as a tree; ``/`` is the machine itself."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def _path(self, place: Place) -> str:
        return os.path.join(self.root, *place)  # noqa: PTH118  (called a great many times)

    def _sort(self, place: Place) -> Sort:
        try:
            mode = os.lstat(self._path(place)).st_mode
        except (OSError, ValueError):
            return ""
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) else ""

    def _target(self, place: Place) -> str:
        try:
            return os.readlink(self._path(place))  # noqa: PTH115
        except OSError:
            return ""

    def _names(self, place: Place) -> list[str]:
        return os.listdir(self._path(place))  # noqa: PTH208

    def _bytes(self, place: Place) -> bytes:
        with open(self._path(place), "rb") as file:  # noqa: PTH123
            return file.read(_LONGEST_FILE)


class Archive(FileTree):
    """A tar archive as a tree, read once into memory; nothing is unpacked.

    Raises
    ------
    ExchangeError
        If it is none, is cut, or holds more than a machine's description.
    """

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__()
        self._nodes: dict[Place, bytes | str | None] = {(): None}
        try:
            for place, content in _members(data, name):
                self._put(place, content)
        except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
            if len(self._nodes) == 1:
                message = f"`{name}` is no tar archive that can be read: "
                message += "is it cut, or another kind of file?"
                help = "pack it anew: tar czf machine.tar.gz -C FOLDER sys proc"
                raise ExchangeError(Finding("broken-archive", message, help=help)) from None
            self.broken = type(error).__name__
        else:
            self.broken = ""
        self._children: dict[Place, list[str]] = {}
        for place in self._nodes:
            if place:
                self._children.setdefault(place[:-1], []).append(place[-1])
        self._top = self._find_top()

    def _put(self, place: Place, content: bytes | str | None) -> None:
        for at in range(1, len(place)):
            self._nodes.setdefault(place[:at], None)
        if place and (content is not None or place not in self._nodes):
            self._nodes[place] = content

    def _find_top(self) -> Place:
        """Return the folder that holds `sys`: the archive's root, or one folder in it."""
        for place in ((), *((name,) for name in sorted(self._children.get((), [])))):
            if "sys" in self._children.get(place, []):
                return place
        return ()

    def _sort(self, place: Place) -> Sort:
        if (*self._top, *place) not in self._nodes:
            return ""
        content = self._nodes[(*self._top, *place)]
        return "folder" if content is None else "link" if isinstance(content, str) else "file"

    def _target(self, place: Place) -> str:
        return str(self._nodes[(*self._top, *place)])

    def _names(self, place: Place) -> list[str]:
        return self._children.get((*self._top, *place), [])

    def _bytes(self, place: Place) -> bytes:
        content = self._nodes[(*self._top, *place)]
        return content if isinstance(content, bytes) else b""


def _unpacked(data: bytes, name: str) -> bytes:
    """Return an archive without its compression, as far as it goes and no further than allowed."""
    opener = next((opener for magic, opener in _OPENERS if data.startswith(magic)), None)
    if opener is None:
        return data
    unpacked = bytearray()
    try:
        with opener(BytesIO(data)) as file:
            while piece := file.read(2**20):
                unpacked += piece
                if len(unpacked) > _MOST_BYTES:
                    raise ExchangeError(_too_much(name))
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        pass  # what came before the break is still worth reading
    return bytes(unpacked)


def _too_much(name: str) -> Finding:
    message = f"`{name}` is an archive with more in it than any machine's /sys"
    return Finding("import-too-big", message)


def _members(data: bytes, name: str) -> Iterator[tuple[Place, bytes | str | None]]:
    """Yield what an archive holds: a folder, a file's first bytes, or a link's target."""
    left = _MOST_BYTES
    with tarfile.open(fileobj=BytesIO(_unpacked(data, name)), mode="r:") as archive:
        for count, member in enumerate(archive):
            left -= 512 + max(0, member.size)
            if count > _MOST_MEMBERS or left < 0:
                raise ExchangeError(_too_much(name))
            steps = _steps_of(member.name)
            if ".." in steps or len(steps) > _DEEPEST:
                continue
            if member.isdir():
                yield tuple(steps), None
            elif member.issym():
                yield tuple(steps), member.linkname
            elif member.isreg():
                file = archive.extractfile(member)
                yield tuple(steps), file.read(_LONGEST_FILE) if file is not None else b""
