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
Content = list[str] | bytes | str  # a folder's names, a file's beginning, where a link leads

TEXTS: Final = "texts"  # the folder beside `sys` with what the host's tools printed
_LONGEST_FILE: Final = 64 * 1024
_LONGEST_TEXT: Final = 8 * 2**20
_MOST_LINKS: Final = 40
_MOST_STEPS: Final = 500
_MOST_NAMES: Final = 20_000
_MOST_MEMBERS: Final = 300_000
_MOST_BYTES: Final = 256 * 2**20
_DEEPEST: Final = 40
_BLOCK: Final = 512  # bytes of an archive's head
_BROKEN: Final = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
_OPENERS: Final[tuple[tuple[bytes, Callable[[BytesIO], Any]], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
)


class FileTree(ABC):
    """A tree of files with its own root; `findings` are what is to be said of it as a whole."""

    findings: tuple[Finding, ...] = ()

    def __init__(self) -> None:
        self._resolved: dict[str, Place | None] = {}

    @abstractmethod
    def sort_at(self, place: Place) -> Sort:
        """Return what stands at a place, links not followed."""

    @abstractmethod
    def read_at(self, place: Place, sort: Sort) -> Content:
        """Return what a place of this sort holds."""

    def _content(self, place: Place | None, sort: Sort) -> Content:
        """Return what a place holds, ``""`` when it is of another sort or cannot be read."""
        if place is None or self.sort_at(place) != sort:
            return ""
        try:
            return self.read_at(place, sort)
        except OSError:
            return ""

    def resolve(self, path: str) -> str:
        """Return a path without links, ``""`` when nothing stands there."""
        place = self._walk(path)
        return "/" + "/".join(place) if place is not None else ""

    def text(self, path: str) -> str:
        """Return a file's text without white space around it, ``""`` when it cannot be read."""
        return self.data(path).decode("utf-8", "replace").strip()

    def data(self, path: str) -> bytes:
        """Return a file's first bytes, ``b""`` when it cannot be read."""
        content = self._content(self._walk(path), "file")
        return content if isinstance(content, bytes) else b""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none when it is absent."""
        content = self._content(self._walk(path), "folder")
        return sorted(content[:_MOST_NAMES]) if isinstance(content, list) else []

    def _walk(self, path: str) -> Place | None:
        if path not in self._resolved:
            self._resolved[path] = self._walked(path)
        return self._resolved[path]

    def _walked(self, path: str) -> Place | None:
        place: Place = ()
        todo = list(reversed(_steps_of(path)))
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
            sort = self.sort_at(below)
            if not sort:
                return None
            if sort != "link":
                place = below
                continue
            links += 1
            target = self._content(below, "link")
            if links > _MOST_LINKS or not isinstance(target, str):
                return None
            place = () if target.startswith("/") else place
            todo += reversed(_steps_of(target))
        return place


def _steps_of(path: str) -> list[str]:
    """Return the steps of a path, without those that lead nowhere."""
    return [step for step in path.split("/") if step not in ("", ".")]


class Recorded(FileTree):
    """Another tree that remembers what was read of it, so that a copy can answer the same.

    A folder's names that nobody looked at are remembered where they are folders or links.
    """

    def __init__(self, tree: FileTree) -> None:
        super().__init__()
        self._tree = tree
        self.findings = tree.findings
        self.seen: dict[Place, Content | None] = {}  # a folder is `None`, a file unread is empty

    def sort_at(self, place: Place) -> Sort:
        """Return what stands at a place, which is remembered."""
        sort = self._tree.sort_at(place)
        if sort and place not in self.seen:
            self.seen[place] = None if sort == "folder" else b"" if sort == "file" else ""
            if sort == "link":
                self.read_at(place, sort)
        return sort

    def read_at(self, place: Place, sort: Sort) -> Content:
        """Return what a place holds, which is remembered."""
        content = self._tree.read_at(place, sort)
        if sort != "folder":
            self.seen[place] = content
            return content
        for name in sorted(content)[:_MOST_NAMES]:
            below = (*place, str(name))
            if self._tree.sort_at(below) in ("folder", "link"):
                self.sort_at(below)
        return content


def _most_bytes(place: Place) -> int:
    """Return how much of a file is read."""
    return _LONGEST_TEXT if TEXTS in place[-2:-1] else _LONGEST_FILE


class Folder(FileTree):
    """A folder as a tree; ``/`` is the machine itself."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def sort_at(self, place: Place) -> Sort:
        """Return what stands there, links not followed."""
        try:  # not by pathlib, since this is called a great many times
            mode = os.lstat(os.path.join(self.root, *place)).st_mode  # noqa: PTH118
        except (OSError, ValueError):
            return ""
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) else ""

    def read_at(self, place: Place, sort: Sort) -> Content:
        """Return what it holds."""
        path = os.path.join(self.root, *place)  # noqa: PTH118
        if sort == "folder":
            return os.listdir(path)  # noqa: PTH208
        if sort == "link":
            return os.readlink(path)  # noqa: PTH115
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_most_bytes(place))


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
                for at in range(1, len(place)):
                    self._nodes.setdefault(place[:at], None)
                if place and (content is not None or place not in self._nodes):
                    self._nodes[place] = content
        except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
            if len(self._nodes) == 1:
                message = f"`{name}` is no tar archive that can be read: "
                message += "is it cut, or another kind of file?"
                help = "pack it anew: tar czf machine.tar.gz -C FOLDER sys proc"
                raise ExchangeError(Finding("broken-archive", message, help=help)) from None
            self.findings = (
                Finding(
                    "broken-archive",
                    "the archive breaks off: what came before was read",
                    severity="warning",
                    help="pack it anew on the machine",
                ),
            )
        self._children: dict[Place, list[str]] = {}
        for place in self._nodes:
            if place:
                self._children.setdefault(place[:-1], []).append(place[-1])
        # The folder that holds `sys` or texts: the archive's root, or one folder in it.
        tops: list[Place] = [(), *((folder,) for folder in sorted(self._children.get((), [])))]
        self._top = next(
            (top for top in tops if {"sys", TEXTS} & {*self._children.get(top, [])}), ()
        )

    def sort_at(self, place: Place) -> Sort:
        """Return what stands there, links not followed."""
        if (*self._top, *place) not in self._nodes:
            return ""
        content = self._nodes[(*self._top, *place)]
        return "folder" if content is None else "link" if isinstance(content, str) else "file"

    def read_at(self, place: Place, sort: Sort) -> Content:
        """Return what it holds."""
        place = (*self._top, *place)
        return self._children.get(place, []) if sort == "folder" else self._nodes[place] or ""


def is_compressed_text(data: bytes) -> bool:
    """Whether a compressed file is a text: an archive's first block has zeros."""
    opener = next((opener for magic, opener in _OPENERS if data.startswith(magic)), None)
    try:
        with opener(BytesIO(data)) if opener else BytesIO() as file:
            beginning = file.read(_BLOCK)
    except _BROKEN:
        return False
    return bool(beginning) and b"\x00" not in beginning


def unpacked(data: bytes, name: str) -> bytes:
    """Return a file without its compression, as far as it goes.

    Raises
    ------
    ExchangeError
        If more is in it than any machine's archive has.
    """
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
    except _BROKEN:
        pass  # what came before the break is still worth reading
    return bytes(unpacked)


def _too_much(name: str) -> Finding:
    message = f"`{name}` is an archive with more in it than any machine's /sys"
    return Finding("import-too-big", message)


def _members(data: bytes, name: str) -> Iterator[tuple[Place, bytes | str | None]]:
    """Yield what an archive holds: a folder, a file's first bytes, or a link's target."""
    left = _MOST_BYTES
    with tarfile.open(fileobj=BytesIO(unpacked(data, name)), mode="r:") as archive:
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
                place = tuple(steps)
                yield place, file.read(_most_bytes(place)) if file is not None else b""
